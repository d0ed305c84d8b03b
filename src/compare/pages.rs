//! What became of a page.

use serde::Serialize;

/// What became of a page, or of a URL that is a page in one crawl only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Equal bytes.
    Same,
    /// Equal text, other bytes.
    Bytes,
    /// Other text, and nearly all of it as before.
    Near,
    /// Other text.
    Changed,
    /// Other text, and hardly any of it as before.
    Rewritten,
    /// A text that the page had in a crawl before the old one, and not in the old one.
    Reverted,
    /// A page of the new crawl only.
    New,
    /// A page of the old crawl only.
    Gone,
    /// A page of the old crawl only, which stands at another URL in the new one.
    MovedFrom,
    /// A page of the new crawl only, which stood at another URL in the old one.
    MovedTo,
}

impl What {
    /// All, in the order of their declaration.
    pub const ALL: [What; 10] = [
        What::Same,
        What::Bytes,
        What::Near,
        What::Changed,
        What::Rewritten,
        What::Reverted,
        What::New,
        What::Gone,
        What::MovedFrom,
        What::MovedTo,
    ];

    /// The word in tables.
    pub fn as_str(self) -> &'static str {
        ["same", "bytes", "near", "changed", "rewritten", "reverted", "new", "gone", "moved_from", "moved_to"]
            [self as usize]
    }

    /// Whether such a page is in the old crawl.
    pub fn is_old(self) -> bool {
        !matches!(self, What::New | What::MovedTo)
    }

    /// Whether such a page is in the new crawl.
    pub fn is_new(self) -> bool {
        !matches!(self, What::Gone | What::MovedFrom)
    }

    /// What it is when the two crawls change places.
    pub fn mirrored(self) -> What {
        match self {
            What::New => What::Gone,
            What::Gone => What::New,
            What::MovedFrom => What::MovedTo,
            What::MovedTo => What::MovedFrom,
            what => what,
        }
    }
}

/// What a result knows of a page's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// `pages.exact`: hash of the text, or of the bytes where there is little text; 0 for a page without any.
    pub exact: u64,
    /// `pages.body`: hash of the bytes.
    pub body: u64,
    /// `pages.simhash`, if it has one.
    pub simhash: Option<u64>,
}

impl Content {
    /// Whether two pages have the same text; pages without any have, if their bytes are the same.
    pub fn same_text(&self, other: &Content) -> bool {
        self.body == other.body || self.exact != 0 && self.exact == other.exact
    }

    /// Bits in which their simhashes differ, if both have one.
    pub fn bits(&self, other: &Content) -> Option<u32> {
        Some((self.simhash? ^ other.simhash?).count_ones())
    }
}

/// Chunks of two texts, each counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharedChunks {
    /// Chunks that both have.
    pub shared: u32,
    /// Chunks of each.
    pub of: [u32; 2],
}

impl SharedChunks {
    /// Chunks shared as a share of the larger text's, in millionths; all of them for two texts without any.
    pub fn millionths(&self) -> u64 {
        match u64::from(self.of[0].max(self.of[1])) {
            0 => 1_000_000,
            larger => u64::from(self.shared) * 1_000_000 / larger,
        }
    }
}

/// Bits of the simhash in which a page with another text may differ to be near. Of pairs of texts from three crawls of manuals, 6 is right
/// for 71 of 100 pages whose texts share nine tenths of their chunks, and finds 79 of 100 such pages.
pub(crate) const NEAR_BITS: u32 = 6;

/// Bits of the simhash beyond which a page is rewritten; the best for the same pairs, though right for 38 of 100 only.
pub(crate) const REWRITTEN_BITS: u32 = 18;

/// Resemblance of two texts from which on a page is near, in millionths: shared chunks, as a fraction of those of the larger text.
const NEAR: u64 = 900_000;

/// Resemblance below which a page is rewritten, in millionths: what the default of `overlap.min_resemblance` no longer joins.
const REWRITTEN: u64 = 350_000;

/// What became of a page that is in both crawls. `bits` are those in which the simhashes differ, `chunks` what the texts have in
/// common; each as far as it is known. What is not known to be near or rewritten has changed.
///
/// Equal when old and new change places.
pub fn what(old: &Content, new: &Content, bits: Option<u32>, chunks: Option<SharedChunks>) -> What {
    if old.body == new.body {
        return What::Same;
    }
    if old.same_text(new) {
        return What::Bytes;
    }
    match (chunks, bits) {
        (Some(chunks), _) if chunks.millionths() >= NEAR => What::Near,
        (Some(chunks), _) if chunks.millionths() < REWRITTEN => What::Rewritten,
        (Some(_), _) => What::Changed,
        (None, Some(bits)) if bits <= NEAR_BITS => What::Near,
        (None, Some(bits)) if bits > REWRITTEN_BITS => What::Rewritten,
        (None, _) => What::Changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(exact: u64, body: u64, simhash: u64) -> Content {
        Content { exact, body, simhash: Some(simhash) }
    }

    fn told(old: Content, new: Content, chunks: Option<SharedChunks>) -> What {
        let [there, back] = [[old, new], [new, old]].map(|[a, b]| what(&a, &b, a.bits(&b), chunks));
        assert_eq!(there, back);
        there
    }

    #[test]
    fn bytes_then_text_then_resemblance_decide() {
        let old = content(1, 1, 0);
        assert_eq!(told(old, old, None), What::Same);
        assert_eq!(told(old, content(1, 2, 0), None), What::Bytes);
        assert_eq!(told(old, content(2, 2, 0b11_1111), None), What::Near);
        assert_eq!(told(old, content(2, 2, 0b111_1111), None), What::Changed);
        assert_eq!(told(old, content(2, 2, u64::MAX >> 45), None), What::Rewritten);
        assert_eq!(told(old, Content { simhash: None, ..content(2, 2, 0) }, None), What::Changed);
    }

    #[test]
    fn shared_chunks_outweigh_simhashes() {
        let (old, new) = (content(1, 1, 0), content(2, 2, u64::MAX));
        let shared = |shared| Some(SharedChunks { shared, of: [10, 8] });
        assert_eq!(
            [9, 8, 4, 3].map(|n| told(old, new, shared(n))),
            [What::Near, What::Changed, What::Changed, What::Rewritten]
        );
    }

    #[test]
    fn pages_without_text_are_the_same_by_their_bytes_only() {
        assert_eq!(told(content(0, 1, 0), content(0, 2, 1 << 40), None), What::Near);
        assert_eq!(told(content(0, 0, 0), content(0, 0, 0), None), What::Same);
    }
}
