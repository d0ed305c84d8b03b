//! Ranges of the local pages that one work item has filled.

use std::ops::Range;

use crate::reading::worker_pages::WorkerPages;
use webtwin_pages::warc::RangeEnd;

/// Ranges of the local pages that belong to one work item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPart {
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

impl ItemPart {
    /// Starts a part at the current end of the local pages. [`ItemPart::to_here`] sets its end.
    pub fn from_here(local_pages: &WorkerPages) -> ItemPart {
        let from = |rows: usize| rows..rows;
        ItemPart {
            slots: from(local_pages.exact.len()),
            rejections: from(local_pages.rejections.len()),
            leads: from(local_pages.leads.len()),
            editions: from(local_pages.editions.len()),
            redirects: from(local_pages.redirects.len()),
            addresses: from(local_pages.addresses.len()),
            revisits: from(local_pages.revisits.len()),
            segments: from(local_pages.segments.len()),
            end: RangeEnd { first_start: None, last_start: None, end: 0, records: 0 },
        }
    }

    /// Ends the part at the current end of the local pages, after the item that was added last.
    ///
    /// # Panics
    /// Panics if no item has been added.
    pub fn to_here(self, local_pages: &WorkerPages) -> ItemPart {
        ItemPart {
            slots: self.slots.start..local_pages.exact.len(),
            rejections: self.rejections.start..local_pages.rejections.len(),
            leads: self.leads.start..local_pages.leads.len(),
            editions: self.editions.start..local_pages.editions.len(),
            redirects: self.redirects.start..local_pages.redirects.len(),
            addresses: self.addresses.start..local_pages.addresses.len(),
            revisits: self.revisits.start..local_pages.revisits.len(),
            segments: self.segments.start..local_pages.segments.len(),
            end: local_pages.items.last().expect("an item has been read").1,
        }
    }

    /// Returns the approximate bytes of the checkpoint of this part.
    pub(super) fn bytes(&self, local_pages: &WorkerPages) -> u64 {
        let slots = || self.slots.clone();
        let numbers = local_pages.fprints.items_of(slots()) + local_pages.links.items_of(slots());
        let features = local_pages.features.items_of(slots());
        let shingles = local_pages.sets.as_ref().map_or(0, |sets| sets.items_of(slots()));
        let rows =
            slots().len() + self.rejections.len() + self.redirects.len() + self.revisits.len() + self.segments.len();
        8 * (numbers
            + self.editions.len() as u64
            + 4 * self.addresses.len() as u64
            + local_pages.captures.words_of(slots()))
            + 10 * features
            + 4 * shingles
            + 100 * rows as u64
    }
}
