//! Chunks of texts, and fingerprints of chunks.
//!
//! Input: the text of a page. Its lines end with `\n`; an empty line, of which there is at most one
//! in a row, ends a paragraph. Output: the page's set of chunk fingerprints, ascending and without
//! duplicates, and its whole-document fingerprint.
//!
//! # Source
//! \[SGM98\] section 2: "each textual chunk is then hashed down to a 32-bit fingerprint"; two pages
//! are compared by the fingerprints they share, so as sets. \[PBZ06\] Def. 1 for sentences and
//! shingle paragraphs.
//!
//! # Deviations
//! - Fingerprints have 64 bits unless the job asks for the papers' 32: with 10^8 distinct chunks,
//!   32 bits collide constantly.
//! - A chunk of several units is hashed as the sequence of its units' hashes, so that sliding
//!   windows copy no text.

mod columns;
mod split;

use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::ids::{FPrint, splitmix64};
use webtwin_job::{ChunkSettings, Unit};

/// Procedure that cuts and hashes text, identified by [`ChunkSettings::recipe`]. Recipes with equal
/// names produce equal fingerprints.
///
/// # Examples
/// ```
/// use webtwin_core::chunks::ChunkRecipe;
/// use webtwin_job::{ChunkSettings, Unit};
///
/// let two_lines = ChunkSettings { unit: Unit::Lines, count: 2, sliding: false, wrap: 0, bits: 64, min_text: 0 };
/// let mut recipe = ChunkRecipe::new(&two_lines);
/// let (mut left, mut right) = (Vec::new(), Vec::new());
/// recipe.fingerprint("one\ntwo\nthree\nfour", &mut left);
/// recipe.fingerprint("one\ntwo\nthree\nfive", &mut right);
/// let shared = left.iter().filter(|fprint| right.contains(fprint)).count();
/// assert_eq!((left.len(), shared), (2, 1));
/// ```
#[derive(Debug, Clone)]
pub struct ChunkRecipe {
    chunks: ChunkSettings,
    units: Vec<u64>,
}

/// Fingerprint and number of chunks of one page.
///
/// # Examples
/// ```
/// use webtwin_core::chunks::{PageFingerprints, ChunkRecipe};
/// use webtwin_job::{ChunkSettings, Unit};
///
/// let lines =
///     ChunkSettings { unit: Unit::Lines, count: 1, sliding: false, wrap: 0, bits: 64, min_text: 5 };
/// let mut recipe = ChunkRecipe::new(&lines);
/// let mut fprints = Vec::new();
///
/// // The line that occurs twice counts as two chunks, but has one fingerprint.
/// let document = recipe.fingerprint("tick\ntock\ntick", &mut fprints);
/// assert_eq!((document.chunks, fprints.len()), (3, 2));
///
/// // A text below `min_text` bytes has no fingerprint.
/// assert_eq!(recipe.fingerprint("tick", &mut fprints), PageFingerprints { exact: 0, chunks: 0 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFingerprints {
    /// Fingerprint of the whole text. It is 0 for a page with less text than `min_text`; only the
    /// fingerprint of its [`bytes()`] distinguishes such a page from others. A text that happens to
    /// hash to 0 gets 1.
    pub exact: FPrint,
    /// Number of chunks before duplicates within the page are removed.
    pub chunks: u32,
}

impl ChunkRecipe {
    /// Creates the recipe of a job's `[chunks]`.
    pub fn new(chunks: &ChunkSettings) -> ChunkRecipe {
        ChunkRecipe { chunks: *chunks, units: Vec::new() }
    }

    /// Writes the fingerprints of `text` into `fprints`: ascending, each once.
    ///
    /// A last chunk of fewer than `count` units counts, too, so every page with text has a chunk.
    ///
    /// # Cost
    /// One pass over the text, then a sort of its chunks.
    pub fn fingerprint(&mut self, text: &str, fprints: &mut Vec<FPrint>) -> PageFingerprints {
        fprints.clear();
        if text.is_empty() || text.len() < self.chunks.min_text as usize {
            return PageFingerprints { exact: 0, chunks: 0 };
        }
        self.in_order(text, fprints);
        let chunks = fprints.len() as u32;
        fprints.sort_unstable();
        fprints.dedup();
        PageFingerprints { exact: whole(text), chunks }
    }

    /// Writes the fingerprints of `text` into `fprints` in the order of the text, including
    /// repeats. Returns the number of units from which they are made.
    pub fn in_order(&mut self, text: &str, fprints: &mut Vec<FPrint>) -> usize {
        fprints.clear();
        let mut units = std::mem::take(&mut self.units);
        units.clear();
        self.split(text, &mut |unit| units.push(xxh3_64(unit)));
        let count = self.units_a_chunk();
        let mask = if self.chunks.bits == 32 { u64::from(u32::MAX) } else { u64::MAX };
        if count == 1 {
            fprints.extend(units.iter().map(|unit| unit & mask));
        } else if self.chunks.sliding && units.len() >= count {
            fprints.extend(units.windows(count).map(|window| sequence(window) & mask));
        } else {
            fprints.extend(units.chunks(count).map(|chunk| sequence(chunk) & mask));
        }
        self.units = units;
        self.units.len()
    }

    /// Returns the chunks of `text` in order, including repeats, with the fingerprints that
    /// [`ChunkRecipe::fingerprint`] computes. Line breaks join the units of a chunk.
    ///
    /// # Examples
    /// Six sentences are two shingle paragraphs of three sentences each (\[PBZ06\] Def. 1).
    /// ```
    /// use webtwin_core::chunks::ChunkRecipe;
    /// use webtwin_job::{ChunkSettings, Unit};
    ///
    /// let unit = Unit::ShingleParagraphs;
    /// let chunks = ChunkSettings { unit, count: 1, sliding: false, wrap: 0, bits: 64, min_text: 0 };
    /// let paragraphs = ChunkRecipe::new(&chunks).chunks("s1. s2. s3. s4. s5. s6.");
    /// let texts: Vec<&str> = paragraphs.iter().map(|(_, text)| text.as_str()).collect();
    /// assert_eq!(texts, ["s1.\ns2.\ns3.", "s4.\ns5.\ns6."]);
    /// ```
    pub fn chunks(&self, text: &str) -> Vec<(FPrint, String)> {
        if text.is_empty() || text.len() < self.chunks.min_text as usize {
            return Vec::new();
        }
        let mut units: Vec<String> = Vec::new();
        self.split(text, &mut |unit| units.push(String::from_utf8_lossy(unit).into_owned()));
        let mask = if self.chunks.bits == 32 { u64::from(u32::MAX) } else { u64::MAX };
        let count = self.units_a_chunk();
        let chunk = |units: &[String]| {
            let hashes: Vec<u64> = units.iter().map(|unit| xxh3_64(unit.as_bytes())).collect();
            let fprint = if count == 1 { hashes[0] } else { sequence(&hashes) };
            (fprint & mask, units.join("\n"))
        };
        match self.chunks.sliding && units.len() >= count {
            true => units.windows(count).map(chunk).collect(),
            false => units.chunks(count).map(chunk).collect(),
        }
    }

    fn split(&self, text: &str, push: &mut impl FnMut(&[u8])) {
        match self.chunks.unit {
            Unit::Document => push(text.as_bytes()),
            Unit::Lines => split::lines(text, self.chunks.wrap as usize, push),
            Unit::Sentences | Unit::ShingleParagraphs => split::sentences(text, push),
            Unit::Paragraphs => split::paragraphs(text, push),
            Unit::Words => split::words(text, push),
        }
    }

    fn units_a_chunk(&self) -> usize {
        if self.chunks.unit == Unit::ShingleParagraphs { 3 } else { self.chunks.count as usize }
    }
}

/// Returns the fingerprint of a whole text that is long enough to have one.
pub fn whole(text: &str) -> FPrint {
    xxh3_64(text.as_bytes()).max(1)
}

/// Returns an identifier of a page with too little text: the fingerprint of its bytes, mixed so
/// that it differs from fingerprints of texts.
pub fn instead_of_text(body: FPrint) -> FPrint {
    if body == 0 { 0 } else { splitmix64(body).max(1) }
}

/// Returns the fingerprint of a page's bytes, without transfer and content encodings, or 0 for an
/// empty body.
pub fn bytes(body: &[u8]) -> FPrint {
    if body.is_empty() { 0 } else { xxh3_64(body).max(1) }
}

fn sequence(units: &[u64]) -> FPrint {
    xxh3_64(bytemuck::cast_slice(units))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recipe(unit: Unit, count: u32, sliding: bool) -> ChunkRecipe {
        ChunkRecipe::new(&ChunkSettings { unit, count, sliding, wrap: 0, bits: 64, min_text: 0 })
    }

    fn fingerprints(recipe: &mut ChunkRecipe, text: &str) -> Vec<FPrint> {
        let mut fprints = Vec::new();
        recipe.fingerprint(text, &mut fprints);
        fprints
    }

    #[test]
    fn a_page_without_text_has_no_fingerprint_at_all() {
        let mut fprints = vec![7];
        let document = recipe(Unit::Lines, 1, false).fingerprint("", &mut fprints);
        assert_eq!((document, fprints.len()), (PageFingerprints { exact: 0, chunks: 0 }, 0));
    }

    #[test]
    fn a_page_with_too_little_text_is_a_copy_of_nothing() {
        let chunks = ChunkSettings { unit: Unit::Lines, count: 1, sliding: false, wrap: 0, bits: 64, min_text: 5 };
        let mut fprints = Vec::new();
        assert_eq!(ChunkRecipe::new(&chunks).fingerprint("Wait", &mut fprints).exact, 0);
        assert_ne!(ChunkRecipe::new(&chunks).fingerprint("Wait.", &mut fprints).exact, 0);
    }

    #[test]
    fn inserted_line_shifts_fixed_groups_but_not_sliding_windows() {
        let original = "a\nb\nc\nd\ne\nf\ng\nh";
        let edited = "new\na\nb\nc\nd\ne\nf\ng\nh";
        let shared = |sliding| {
            let mut recipe = recipe(Unit::Lines, 4, sliding);
            let left = fingerprints(&mut recipe, original);
            fingerprints(&mut recipe, edited).iter().filter(|fprint| left.contains(fprint)).count()
        };
        assert_eq!(shared(false), 0);
        assert_eq!(shared(true), 5);
    }

    #[test]
    fn repeated_chunks_count_once_in_the_set_and_each_time_in_the_total() {
        let mut fprints = Vec::new();
        let document = recipe(Unit::Lines, 1, false).fingerprint("x\ny\nx", &mut fprints);
        assert_eq!((document.chunks, fprints.len()), (3, 2));
    }

    #[test]
    fn recipe_v1_yields_stable_fingerprints() {
        assert_eq!(fingerprints(&mut recipe(Unit::Lines, 1, false), "hello"), [xxh3_64(b"hello")]);
        assert_eq!(xxh3_64(b"hello"), 0x9555_e855_5c62_dcfd);
    }

    proptest! {
        #[test]
        fn chunks_with_their_text_have_the_fingerprints_of_the_page(
            text in "[ab. \n]{0,60}", unit in 0usize..6, count in 1u32..4, sliding: bool
        ) {
            let unit = [Unit::Document, Unit::Lines, Unit::Sentences, Unit::Paragraphs, Unit::Words, Unit::ShingleParagraphs][unit];
            let count = if matches!(unit, Unit::Document | Unit::ShingleParagraphs) { 1 } else { count };
            let mut recipe = recipe(unit, count, sliding);
            let mut fprints: Vec<FPrint> = recipe.chunks(&text).into_iter().map(|(fprint, _)| fprint).collect();
            fprints.sort_unstable();
            fprints.dedup();
            prop_assert_eq!(fprints, fingerprints(&mut recipe, &text));
        }

        #[test]
        fn groups_of_lines_equal_joined_units(
            lines in prop::collection::vec("[ab]{1,3}", 1..30), count in 2u32..5, sliding: bool
        ) {
            let actual = fingerprints(&mut recipe(Unit::Lines, count, sliding), &lines.join("\n"));
            let n = count as usize;
            let mut expected: Vec<FPrint> = (0..lines.len())
                .filter(|start| if sliding { start + n <= lines.len() || *start == 0 } else { start % n == 0 })
                .map(|start| {
                    let units: Vec<u64> = lines[start..lines.len().min(start + n)]
                        .iter().map(|line| xxh3_64(line.as_bytes())).collect();
                    xxh3_64(bytemuck::cast_slice(&units))
                })
                .collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(actual, expected);
        }
    }
}
