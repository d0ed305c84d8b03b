//! Ranges of the local pages that one work item has filled.

use std::ops::Range;

use crate::reading::worker_pages::WorkerPages;
use webtwin_pages::warc::RangeEnd;

/// Ranges of the local pages that belong to one work item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Slots of the pages.
    pub slots: Range<usize>,
    /// Indices of the rejections.
    pub rejections: Range<usize>,
    /// Indices of the pages that lead to another page.
    pub leads: Range<usize>,
    /// Indices of the editions that the pages name.
    pub editions: Range<usize>,
    /// Indices of the redirects.
    pub redirects: Range<usize>,
    /// Indices of the addresses of hosts.
    pub addresses: Range<usize>,
    /// Indices of the revisits.
    pub revisits: Range<usize>,
    /// Indices of the segments.
    pub segments: Range<usize>,
    /// End of the item, with its number of records.
    pub end: RangeEnd,
}

impl Part {
    /// Starts a part at the current end of the local pages. [`Part::to_here`] sets its end.
    pub fn from_here(shelf: &WorkerPages) -> Part {
        let from = |rows: usize| rows..rows;
        Part {
            slots: from(shelf.exact.len()),
            rejections: from(shelf.rejections.len()),
            leads: from(shelf.leads.len()),
            editions: from(shelf.editions.len()),
            redirects: from(shelf.redirects.len()),
            addresses: from(shelf.addresses.len()),
            revisits: from(shelf.revisits.len()),
            segments: from(shelf.segments.len()),
            end: RangeEnd { first_start: None, last_start: None, end: 0, records: 0 },
        }
    }

    /// Ends the part at the current end of the local pages, after the item that was added last.
    ///
    /// # Panics
    /// Panics if no item has been added.
    pub fn to_here(self, shelf: &WorkerPages) -> Part {
        Part {
            slots: self.slots.start..shelf.exact.len(),
            rejections: self.rejections.start..shelf.rejections.len(),
            leads: self.leads.start..shelf.leads.len(),
            editions: self.editions.start..shelf.editions.len(),
            redirects: self.redirects.start..shelf.redirects.len(),
            addresses: self.addresses.start..shelf.addresses.len(),
            revisits: self.revisits.start..shelf.revisits.len(),
            segments: self.segments.start..shelf.segments.len(),
            end: shelf.items.last().expect("an item has been read").1,
        }
    }

    /// Returns the approximate bytes of the checkpoint of this part.
    pub(super) fn bytes(&self, shelf: &WorkerPages) -> u64 {
        let slots = || self.slots.clone();
        let numbers = shelf.fprints.items_of(slots()) + shelf.links.items_of(slots());
        let features = shelf.features.items_of(slots());
        let shingles = shelf.sets.as_ref().map_or(0, |sets| sets.items_of(slots()));
        let rows =
            slots().len() + self.rejections.len() + self.redirects.len() + self.revisits.len() + self.segments.len();
        8 * (numbers + self.editions.len() as u64 + 4 * self.addresses.len() as u64 + shelf.captures.words_of(slots()))
            + 10 * features
            + 4 * shingles
            + 100 * rows as u64
    }
}
