//! Shingle paragraphs of a text that is a document.
//!
//! Shingle paragraphs may repeat, and the study counts repeats. To compare documents as sets, like
//! all other texts here, each occurrence has its own *mark*: the first one is the fingerprint of
//! the paragraph with its lowest bit cleared, the n-th is a hash of both with its lowest bit set.
//! Documents with equal sets of marks have equal paragraphs equally often. The number of marks that
//! two documents share is the number of occurrences of paragraphs that they share. The even marks
//! are the set of paragraphs.
//!
//! # Source
//! \[PBZ06\] Definition 1; section 4: "we considered only documents with size greater than 450
//! characters".
//!
//! # Deviations
//! - A full stop inside a word (`3.11`) does not end a sentence, and white space between sentences
//!   is part of neither; so 450 characters still have three sentences.
//! - The paper compares the texts themselves; here fingerprints of 63 bits are compared.
//! - The paper does not define the treatment of one or two last sentences. By the letter of
//!   Definition 1 they are not a shingle paragraph, and then pages that differ only in their last
//!   line are duplicates; here they are one.

use xxhash_rust::xxh3::xxh3_64;

use crate::chunks::{ChunkRecipe, PageFingerprints};
use webtwin_base::ids::{FPrint, splitmix64};
use webtwin_job::{ChunkSettings, Study};

/// Number of sentences of a shingle paragraph.
const SENTENCES: usize = 3;

/// Converter of texts to documents of marks.
///
/// # Examples
/// ```
/// use webtwin_core::study::paragraphs::Paragraphs;
/// use webtwin_job::resolve;
///
/// let job = resolve("job.toml", "preset = \"study\"", &[])?;
/// let mut paragraphs = Paragraphs::new(&job.chunks, &job.study);
/// let mut marks = Vec::new();
/// // 40 sentences are 13 shingle paragraphs of three sentences and one of the last sentence. Each
/// // repeat has a mark of its own.
/// let document = paragraphs.marks(&"It is said. ".repeat(40), &mut marks);
/// assert_eq!((document.chunks, marks.len()), (14, 14));
/// // A text of up to 450 characters is no document.
/// assert_eq!(paragraphs.marks("It is said.", &mut marks).chunks, 0);
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
#[derive(Debug)]
pub struct Paragraphs {
    recipe: ChunkRecipe,
    study: Study,
}

impl Paragraphs {
    /// Creates a converter from the settings of a job; `chunks.unit` must be shingle paragraphs.
    pub fn new(chunks: &ChunkSettings, study: &Study) -> Paragraphs {
        Paragraphs { recipe: ChunkRecipe::new(chunks), study: study.clone() }
    }

    /// Writes the marks of `text` into `marks`, ascending. A text that is too short to be a
    /// document has no marks, and its `exact` is 0. Otherwise `exact` is a hash of the marks.
    pub fn marks(&mut self, text: &str, marks: &mut Vec<FPrint>) -> PageFingerprints {
        marks.clear();
        // No text has more characters than bytes.
        let min_characters = self.study.min_characters as usize;
        if text.len() <= min_characters || text.chars().count() <= min_characters {
            return PageFingerprints { exact: 0, chunks: 0 };
        }
        let sentences = self.recipe.in_order(text, marks);
        if !self.study.rest && !sentences.is_multiple_of(SENTENCES) {
            marks.pop();
        }
        mark(marks);
        PageFingerprints { exact: whole(marks), chunks: marks.len() as u32 }
    }
}

/// Converts the fingerprints of a document's shingle paragraphs, in any order, to its marks,
/// ascending.
pub fn mark(fprints: &mut [FPrint]) {
    fprints.iter_mut().for_each(|fprint| *fprint &= !1);
    fprints.sort_unstable();
    for repeats in fprints.chunk_by_mut(|x, y| x == y) {
        let first = repeats[0];
        repeats[1..]
            .iter_mut()
            .zip(1..)
            .for_each(|(again, number)| *again = splitmix64(splitmix64(first) ^ number) | 1);
    }
    fprints.sort_unstable();
}

/// True if a mark is that of a repeated occurrence of a paragraph in its document.
pub fn is_repeat(mark: FPrint) -> bool {
    mark & 1 == 1
}

/// Returns a hash of all marks of a document, or 0 if there are none.
pub fn whole(marks: &[FPrint]) -> FPrint {
    if marks.is_empty() { 0 } else { xxh3_64(bytemuck::cast_slice(marks)).max(1) }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use webtwin_job::Job;

    fn marks_of(text: &str, with_rest: bool) -> (PageFingerprints, Vec<FPrint>) {
        let job = webtwin_job::resolve("", "preset = \"study\"", &[]).unwrap();
        let study = Study { rest: with_rest, ..Job::default().study };
        let mut marks = Vec::new();
        (Paragraphs::new(&job.chunks, &study).marks(text, &mut marks), marks)
    }

    fn sentences(names: &str) -> String {
        names.chars().map(|name| format!("{} the end. ", name.to_string().repeat(100))).collect()
    }

    #[test]
    fn inserted_sentence_changes_all_paragraphs_and_replaced_one_only_its_own() {
        let (document, marks) = marks_of(&sentences("abcdef"), true);
        assert_eq!(document.chunks, 2);
        let (_, shifted) = marks_of(&sentences("xabcdef"), true);
        assert!(!shifted.iter().any(|mark| marks.contains(mark)));
        let (_, replaced) = marks_of(&sentences("xbcdef"), true);
        assert_eq!(replaced.iter().filter(|mark| marks.contains(mark)).count(), 1);
    }

    #[test]
    fn repeated_paragraphs_have_marks_of_their_own() {
        let (repeated, marks) = marks_of(&sentences("abcabc"), true);
        assert_eq!((repeated.chunks, marks.len(), marks.iter().filter(|&&mark| is_repeat(mark)).count()), (2, 2, 1));
    }

    proptest! {
        #[test]
        fn two_documents_share_as_many_marks_as_occurrences(
            left in prop::collection::vec(0u64..6, 0..12), right in prop::collection::vec(0u64..6, 0..12)
        ) {
            let fprints = |names: &[u64]| names.iter().map(|&name| splitmix64(name)).collect::<Vec<_>>();
            let counts = |names: &[u64]| {
                let mut counts = BTreeMap::new();
                names.iter().for_each(|name| *counts.entry(*name).or_insert(0usize) += 1);
                counts
            };
            let (mut a, mut b) = (fprints(&left), fprints(&right));
            mark(&mut a);
            mark(&mut b);
            let other = counts(&right);
            let expected: usize = counts(&left).iter().map(|(name, n)| *n.min(other.get(name).unwrap_or(&0))).sum();
            let (a, b): (BTreeSet<_>, BTreeSet<_>) = (a.into_iter().collect(), b.into_iter().collect());
            prop_assert_eq!((a.len(), b.len()), (left.len(), right.len()));
            prop_assert_eq!(a.intersection(&b).count(), expected);
        }
    }
}
