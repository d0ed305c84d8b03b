//! The part of a shelf that reading one work item has filled.

use std::ops::Range;

use crate::reading::worker_pages::WorkerPages;
use webtwin_pages::warc::RangeEnd;

/// What one item has left on a shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Slots of its pages.
    pub slots: Range<usize>,
    /// Places of its rejections.
    pub rejections: Range<usize>,
    /// Places of its pages that lead on.
    pub leads: Range<usize>,
    /// Places of the editions that its pages name.
    pub editions: Range<usize>,
    /// Places of its redirects.
    pub redirects: Range<usize>,
    /// Places of its addresses of hosts.
    pub addresses: Range<usize>,
    /// Places of its revisits.
    pub revisits: Range<usize>,
    /// Places of its segments.
    pub segments: Range<usize>,
    /// What reading it came to.
    pub end: RangeEnd,
}

impl Part {
    /// What is put on the shelf after this call, once [`Part::to_here`] says where it ends.
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

    /// The part up to the item put on the shelf last.
    ///
    /// # Panics
    /// If there is none.
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

    /// Bytes of its record, about.
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
