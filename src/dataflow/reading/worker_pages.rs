//! What one worker has read: rows of pages, their fingerprints and links, in columns.
//!
//! # Memory
//! 8 bytes a distinct chunk, 10 bytes a distinct feature where simhashes wait for the crawl, 8 bytes a distinct link and about 200 bytes a page, until the run ends.

use serde::{Deserialize, Serialize};

use crate::dataflow::reading::revisits::Revisit;
use crate::dataflow::reading::segments::Segment;
use crate::dataflow::reading::shingle_sets::ShingleSets;
use crate::ids::{DocId, FPrint, Page, SimHash};
use crate::pages::record::{Names, Reason};
use crate::pages::warc::RangeEnd;
use crate::text::Feature;

/// A captured page as it travels to the owner of its doc id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Hash of the canonical URL.
    pub doc_id: DocId,
    /// Canonical URL.
    pub url: String,
    /// Seconds since 1970; 0 when unknown.
    pub fetch_time: i64,
    /// HTTP status.
    pub status: u16,
    /// Media type.
    pub mime: String,
    /// Bytes as fetched, decoded.
    pub body_bytes: u64,
    /// Fingerprint of these bytes.
    pub body: FPrint,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Chunks, each as often as it stands on the page.
    pub chunks: u32,
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    /// Simhash of the features of its text; `None` for a page with too few of them, and as long as it waits for the crawl.
    pub simhash: Option<SimHash>,
    /// `ΠD` of its text, of as many numbers as signatures have; none for a page without signatures.
    pub projected: Vec<i64>,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Where its record starts.
    pub offset: u64,
    /// Length of the record.
    pub length: u64,
    /// What was mended in it.
    pub mended: Vec<Reason>,
    /// Worker on whose shelf the fingerprints and links are.
    pub worker: u32,
    /// Slot on that shelf.
    pub slot: u32,
    /// For a revisit, where the record with its content is.
    pub original: Option<Box<Place>>,
    /// For a record in segments, where those after the first are: numbers of inputs, and offsets.
    pub segments: Vec<(u32, u64)>,
}

/// Where a record is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Number of the input.
    pub source: u32,
    /// Where the record starts.
    pub offset: u64,
    /// Its canonical URL.
    pub url: String,
}

/// A record that is no page, but leads to another URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// Doc id of its URL.
    pub from: DocId,
    /// Doc id of the URL it leads to.
    pub to: DocId,
    /// Seconds since 1970; 0 when unknown.
    pub fetch_time: i64,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Where the record starts.
    pub offset: u64,
}

/// A record that is not kept, on its way to the `rejected` table. Orders by source, offset, reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rejection {
    /// Number of the input.
    pub source: u32,
    /// Where the record starts.
    pub offset: u64,
    /// Why it is not kept.
    pub reason: Reason,
    /// Particulars.
    pub detail: String,
    /// Number of the work item.
    pub item: u32,
}

/// Lists of numbers back to back.
#[derive(Debug, Default)]
pub struct Lists {
    ends: Vec<u64>,
    items: Vec<u64>,
}

impl Lists {
    /// Appends a list.
    pub fn push(&mut self, list: &[u64]) {
        self.push_all(list.iter().copied());
    }

    fn push_all(&mut self, list: impl Iterator<Item = u64>) {
        self.items.extend(list);
        self.ends.push(self.items.len() as u64);
    }

    /// The list in a slot.
    pub fn get(&self, slot: usize) -> &[u64] {
        &self.items[self.range(slot)]
    }

    /// Numbers in neighbouring slots.
    pub fn span(&self, slots: std::ops::Range<usize>) -> &[u64] {
        if slots.is_empty() { &[] } else { &self.items[self.range(slots.start).start..self.range(slots.end - 1).end] }
    }

    fn range(&self, slot: usize) -> std::ops::Range<usize> {
        let start = if slot == 0 { 0 } else { self.ends[slot - 1] };
        start as usize..self.ends[slot] as usize
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.ends.len()
    }

    /// Numbers in all lists.
    pub fn items(&self) -> usize {
        self.items.len()
    }

    /// Gives back the memory.
    pub fn clear(&mut self) {
        *self = Lists::default();
    }
}

/// Weighted features back to back.
#[derive(Debug, Default)]
pub struct FeatureLists {
    hashes: Lists,
    weights: Vec<u16>,
}

impl FeatureLists {
    /// Appends the features of a page; a weight beyond 65,535 sixteenths is that.
    pub fn push(&mut self, features: &[Feature]) {
        self.hashes.push_all(features.iter().map(|feature| feature.hash));
        self.weights.extend(features.iter().map(|feature| feature.weight.min(u32::from(u16::MAX)) as u16));
    }

    /// Appends the features of a page as [`FeatureLists::get`] gives them.
    pub fn push_as_kept(&mut self, hashes: &[u64], weights: &[u16]) {
        self.hashes.push(hashes);
        self.weights.extend_from_slice(weights);
    }

    /// Hashes and weights of the features in a slot.
    pub fn get(&self, slot: usize) -> (&[u64], &[u16]) {
        let range = self.hashes.range(slot);
        (&self.hashes.items[range.clone()], &self.weights[range])
    }

    /// Hashes and weights of the features in neighbouring slots; none where there are no slots.
    pub fn span(&self, slots: std::ops::Range<usize>) -> (&[u64], &[u16]) {
        if slots.is_empty() || self.slots() == 0 {
            return (&[], &[]);
        }
        let range = self.hashes.range(slots.start).start..self.hashes.range(slots.end - 1).end;
        (&self.hashes.items[range.clone()], &self.weights[range])
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.hashes.ends.len()
    }

    /// Features in all lists.
    pub fn items(&self) -> usize {
        self.weights.len()
    }

    /// Gives back the memory.
    pub fn clear(&mut self) {
        *self = FeatureLists::default();
    }
}

/// A page that lost to another capture of its URL.
pub const NOT_KEPT: Page = Page::MAX;

/// What one worker has read. Slots number its pages in the order of reading.
#[derive(Debug, Default)]
pub struct WorkerPages {
    /// Rows that have not been sent to their owners yet.
    pub captures: Vec<Capture>,
    /// Whole-document fingerprint of each slot.
    pub exact: Vec<FPrint>,
    /// Chunk fingerprints of each slot, for a study the marks of its shingle paragraphs: ascending, each once.
    pub fprints: Lists,
    /// Weighted features of each slot where simhashes wait for the crawl, else no slots.
    pub features: FeatureLists,
    /// Sets of shingles of each slot, where pages are compared by these.
    pub sets: Option<ShingleSets>,
    /// Doc ids of the link targets of each slot.
    pub links: Lists,
    /// Page in each slot once captures are settled, or [`NOT_KEPT`].
    pub pages: Vec<Page>,
    /// Slots of pages that lead to another URL, ascending, with its doc id.
    pub leads: Vec<(u32, DocId)>,
    /// Redirects, until links are resolved.
    pub redirects: Vec<Redirect>,
    /// Names of the record of each slot, until revisits are resolved.
    pub names: Vec<Names>,
    /// Revisits, until they are resolved.
    pub revisits: Vec<Revisit>,
    /// Segments of records, until they are joined.
    pub segments: Vec<Segment>,
    /// Records that are not kept.
    pub rejections: Vec<Rejection>,
    /// What reading each work item came to.
    pub items: Vec<(u32, RangeEnd)>,
}

impl WorkerPages {
    /// Slots of the pages that are kept, with their numbers.
    pub fn kept(&self) -> impl Iterator<Item = (usize, Page)> + '_ {
        self.pages.iter().copied().enumerate().filter(|&(_, page)| page != NOT_KEPT)
    }
}
