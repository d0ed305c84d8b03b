//! Recall of true pairs by the resemblance of their texts.
//!
//! The truth identifies copies by name. The resemblance of two pages shows how hard it is to find
//! the pair: versions of a page that was rewritten are copies by name only. *Resemblance* is that
//! of the sets of 8-word shingles of the visible texts, |A ∩ B| / |A ∪ B|. Words are separated by
//! white space. A text of fewer than 8 words is one shingle, and a text without words has none.
//!
//! # Source
//! Broder, *On the resemblance and containment of documents* (1997), for shingles and resemblance.

use xxhash_rust::xxh3::xxh3_64;

use webtwin_core::overlap::in_common;
use webtwin_evaluate::{FigureRow, Ratio};

/// Number of words per shingle.
const WORDS: usize = 8;

/// Lower bounds of the bands in hundredths, descending, with the target recall of each.
const BANDS: [(u64, &str, Option<f64>); 4] =
    [(90, ">= 0.9", Some(0.98)), (70, "0.7-0.9", Some(0.93)), (40, "0.4-0.7", None), (0, "< 0.4", None)];

/// Returns the shingles of a text, ascending and without repetitions.
pub(super) fn shingles(text: &str) -> Vec<u64> {
    let words: Vec<u64> = text.split_ascii_whitespace().map(|word| xxh3_64(word.as_bytes())).collect();
    let hash = |window: &[u64]| xxh3_64(bytemuck::cast_slice(window));
    let mut shingles: Vec<u64> = match words.len() {
        0 => Vec::new(),
        n if n < WORDS => vec![hash(&words)],
        _ => words.windows(WORDS).map(hash).collect(),
    };
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

/// Returns |A ∩ B| / |A ∪ B| for two ascending sets without duplicates.
pub(super) fn resemblance(a: &[u64], b: &[u64]) -> Ratio {
    let (n_shared, n_all) = in_common(a, b);
    Ratio { part: n_shared as u64, whole: n_all as u64 }
}

/// Predicted pairs among true pairs, by band of resemblance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PairsByBand {
    bands: [Ratio; BANDS.len()],
    /// Pairs of pages without words, whose resemblance is undefined.
    wordless: Ratio,
}

impl PairsByBand {
    /// Counts a true pair. `is_predicted` is true if the run found it.
    pub(super) fn add(&mut self, resemblance: Ratio, is_predicted: bool) {
        let band = BANDS.iter().position(|band| 100 * resemblance.part >= band.0 * resemblance.whole);
        let counts = match resemblance.whole {
            0 => &mut self.wordless,
            _ => &mut self.bands[band.expect("the last band begins at 0")],
        };
        counts.whole += 1;
        counts.part += u64::from(is_predicted);
    }

    /// Returns for each band the number of its true pairs, and their recall.
    pub(super) fn rows(&self) -> Vec<FigureRow> {
        let mut rows = Vec::new();
        let wordless = [(self.wordless, "without words", None)];
        let named_bands = self.bands.iter().zip(BANDS).map(|(counts, (_, name, reach))| (*counts, name, reach));
        for (counts, name, reach) in named_bands.chain(wordless) {
            rows.push(FigureRow::new(&format!("true pairs, resemblance {name}"), Some(counts.whole as f64), "pairs"));
            let recall = FigureRow::new(&format!("recall, resemblance {name}"), counts.value(), "share");
            rows.push(reach.map_or(recall.clone(), |reach| recall.at_least(reach)));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_changed_word_costs_the_eight_shingles_it_is_in() {
        let words = |changed_word: usize| -> String {
            (0..40).map(|n| if n == changed_word { "x ".to_owned() } else { format!("{n}\n") }).collect()
        };
        let (shingles_before, shingles_after) = (shingles(&words(99)), shingles(&words(20)));
        assert_eq!(shingles_before.len(), 33);
        assert_eq!(resemblance(&shingles_before, &shingles_after), Ratio { part: 25, whole: 41 });
    }

    #[test]
    fn short_text_is_one_shingle_and_empty_text_has_none() {
        assert_eq!((shingles("a b").len(), shingles(" \n").len()), (1, 0));
        assert_eq!(shingles("a  b"), shingles("a\nb"));
    }

    #[test]
    fn bands_begin_at_their_stated_bounds() {
        let mut bands = PairsByBand::default();
        for (part, total) in [(9, 10), (89, 100), (7, 10), (69, 100), (4, 10), (39, 100), (0, 1), (0, 0)] {
            bands.add(Ratio { part, whole: total }, true);
        }
        let pairs: Vec<f64> = bands.rows().iter().filter_map(|row| row.ours.filter(|_| row.unit == "pairs")).collect();
        assert_eq!(pairs, [1.0, 2.0, 2.0, 2.0, 1.0]);
    }

    proptest! {
        #[test]
        fn resemblance_equals_that_of_sets(a: BTreeSet<u8>, b: BTreeSet<u8>) {
            let list = |set: &BTreeSet<u8>| set.iter().map(|&x| u64::from(x)).collect::<Vec<_>>();
            let want = Ratio { part: a.intersection(&b).count() as u64, whole: a.union(&b).count() as u64 };
            prop_assert_eq!(resemblance(&list(&a), &list(&b)), want);
        }
    }
}
