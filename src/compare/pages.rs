//! Classification of a page's change between two crawls.

use serde::Serialize;

/// Change of a page between two crawls, or of a URL that is a page in only one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageChange {
    /// The bytes are equal.
    Same,
    /// The texts are equal, the bytes differ.
    Bytes,
    /// The texts differ, but share nearly all of their content.
    Near,
    /// The texts differ.
    Changed,
    /// The texts differ and share hardly any content.
    Rewritten,
    /// The page has again a text of a crawl before the old one, which the old crawl did not have.
    Reverted,
    /// Only the new crawl has the page.
    New,
    /// Only the old crawl has the page.
    Gone,
    /// Only the old crawl has the page; the new crawl has it at another URL.
    MovedFrom,
    /// Only the new crawl has the page; the old crawl had it at another URL.
    MovedTo,
}

impl PageChange {
    /// All variants, in the order of their declaration.
    pub const ALL: [PageChange; 10] = [
        PageChange::Same,
        PageChange::Bytes,
        PageChange::Near,
        PageChange::Changed,
        PageChange::Rewritten,
        PageChange::Reverted,
        PageChange::New,
        PageChange::Gone,
        PageChange::MovedFrom,
        PageChange::MovedTo,
    ];

    /// Returns the value in tables.
    pub fn as_str(self) -> &'static str {
        ["same", "bytes", "near", "changed", "rewritten", "reverted", "new", "gone", "moved_from", "moved_to"]
            [self as usize]
    }

    /// True if the old crawl has such a page.
    pub fn is_old(self) -> bool {
        !matches!(self, PageChange::New | PageChange::MovedTo)
    }

    /// True if the new crawl has such a page.
    pub fn is_new(self) -> bool {
        !matches!(self, PageChange::Gone | PageChange::MovedFrom)
    }

    /// Returns the change as it is when old and new are exchanged.
    pub fn mirrored(self) -> PageChange {
        match self {
            PageChange::New => PageChange::Gone,
            PageChange::Gone => PageChange::New,
            PageChange::MovedFrom => PageChange::MovedTo,
            PageChange::MovedTo => PageChange::MovedFrom,
            what => what,
        }
    }
}

/// Hashes of a page's content that a result stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageContent {
    /// `pages.exact`: hash of the text, or of the bytes if there is little text. 0 for a page
    /// without content.
    pub exact: u64,
    /// `pages.body`: hash of the bytes.
    pub body: u64,
    /// `pages.simhash`, if the page has one.
    pub simhash: Option<u64>,
}

impl PageContent {
    /// True if two pages have the same text. Two pages without text have the same text only if
    /// their bytes are equal.
    pub fn same_text(&self, other: &PageContent) -> bool {
        self.body == other.body || self.exact != 0 && self.exact == other.exact
    }

    /// Returns the Hamming distance of the two simhashes, if both pages have one.
    pub fn bits(&self, other: &PageContent) -> Option<u32> {
        Some((self.simhash? ^ other.simhash?).count_ones())
    }
}

/// Numbers of distinct chunks of two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkOverlap {
    /// Number of chunks that both texts have.
    pub n_shared: u32,
    /// Number of chunks of each text.
    pub n_chunks: [u32; 2],
}

impl ChunkOverlap {
    /// Returns the shared chunks as a fraction of the larger text's chunks, in millionths. Two
    /// texts without chunks yield 1,000,000.
    pub fn millionths(&self) -> u64 {
        match u64::from(self.n_chunks[0].max(self.n_chunks[1])) {
            0 => 1_000_000,
            larger => u64::from(self.n_shared) * 1_000_000 / larger,
        }
    }
}

/// Maximum Hamming distance of the simhashes of a page that counts as near. Measured on pairs of
/// texts from three crawls of manuals: of the pages within 6 bits, 71 of 100 share nine tenths of
/// their chunks; of the pages that share nine tenths, 79 of 100 are found.
pub(crate) const MAX_NEAR_BITS: u32 = 6;

/// Hamming distance of the simhashes beyond which a page counts as rewritten. It is the best
/// threshold for the same pairs of texts, although only 38 of 100 pages beyond it are rewritten by
/// their chunks.
pub(crate) const REWRITTEN_BITS: u32 = 18;

/// Minimum resemblance of two texts for a page that counts as near, in millionths: shared chunks as
/// a fraction of the larger text's chunks.
const NEAR_RESEMBLANCE: u64 = 900_000;

/// Resemblance below which a page counts as rewritten, in millionths. It equals the default of
/// `overlap.min_resemblance`, below which two texts are not similar.
const REWRITTEN_RESEMBLANCE: u64 = 350_000;

/// Classifies the change of a page that both crawls have. `bits` is the Hamming distance of the
/// simhashes and `chunks` counts the shared chunks; either is `None` if unknown. A page with
/// another text that is not known to be near or rewritten has changed.
///
/// The result is the same when old and new are exchanged.
pub fn what(old: &PageContent, new: &PageContent, bits: Option<u32>, chunks: Option<ChunkOverlap>) -> PageChange {
    if old.body == new.body {
        return PageChange::Same;
    }
    if old.same_text(new) {
        return PageChange::Bytes;
    }
    match (chunks, bits) {
        (Some(chunks), _) if chunks.millionths() >= NEAR_RESEMBLANCE => PageChange::Near,
        (Some(chunks), _) if chunks.millionths() < REWRITTEN_RESEMBLANCE => PageChange::Rewritten,
        (Some(_), _) => PageChange::Changed,
        (None, Some(bits)) if bits <= MAX_NEAR_BITS => PageChange::Near,
        (None, Some(bits)) if bits > REWRITTEN_BITS => PageChange::Rewritten,
        (None, _) => PageChange::Changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(exact: u64, body: u64, simhash: u64) -> PageContent {
        PageContent { exact, body, simhash: Some(simhash) }
    }

    fn message(old: PageContent, new: PageContent, chunks: Option<ChunkOverlap>) -> PageChange {
        let [forward, backward] = [[old, new], [new, old]].map(|[a, b]| what(&a, &b, a.bits(&b), chunks));
        assert_eq!(forward, backward);
        forward
    }

    #[test]
    fn bytes_text_and_resemblance_decide_in_this_order() {
        let old = content(1, 1, 0);
        assert_eq!(message(old, old, None), PageChange::Same);
        assert_eq!(message(old, content(1, 2, 0), None), PageChange::Bytes);
        assert_eq!(message(old, content(2, 2, 0b11_1111), None), PageChange::Near);
        assert_eq!(message(old, content(2, 2, 0b111_1111), None), PageChange::Changed);
        assert_eq!(message(old, content(2, 2, u64::MAX >> 45), None), PageChange::Rewritten);
        assert_eq!(message(old, PageContent { simhash: None, ..content(2, 2, 0) }, None), PageChange::Changed);
    }

    #[test]
    fn shared_chunks_outweigh_simhashes() {
        let (old, new) = (content(1, 1, 0), content(2, 2, u64::MAX));
        let overlap_of = |shared| Some(ChunkOverlap { n_shared: shared, n_chunks: [10, 8] });
        assert_eq!(
            [9, 8, 4, 3].map(|n| message(old, new, overlap_of(n))),
            [PageChange::Near, PageChange::Changed, PageChange::Changed, PageChange::Rewritten]
        );
    }

    #[test]
    fn pages_without_text_are_compared_by_bytes_only() {
        assert_eq!(message(content(0, 1, 0), content(0, 2, 1 << 40), None), PageChange::Near);
        assert_eq!(message(content(0, 0, 0), content(0, 0, 0), None), PageChange::Same);
    }
}
