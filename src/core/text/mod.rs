//! Weighted features of plain text: a description of the content of a page that ignores order.
//!
//! Input: the text of a page. Output: its [`Feature`]s. A feature is a phrase of a few neighbouring
//! terms, or a single term, identified by its 64-bit hash.
//!
//! # Source
//! \[MJS07\] section 2: "features are computed using standard IR techniques like tokenization, case
//! folding, stop-word removal, stemming and phrase detection".
//!
//! # Deviations
//! - The paper does not define which phrases it detects. Here they are all runs of a given number
//!   of terms.
//! - It does not define how it weights features; see [`Weights`].

pub mod fold;
pub mod language;
mod memo;
pub mod notices;
mod plain;
mod runs;
mod scripts;
pub mod terms;
pub mod titles;
pub mod words;

use xxhash_rust::xxh3::xxh3_64;

use terms::Terms;
use webtwin_job::Weights;
use words::WordSplitter;

/// A feature with its weight on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Feature {
    /// XXH3 hash of the term, or of the hashes of its terms.
    pub hash: u64,
    /// Weight in sixteenths, more than 0.
    pub weight: u32,
}

/// Extractor of the features of one text after another, which reuses its buffers.
///
/// # Examples
/// ```
/// use webtwin_core::text::Features;
/// use webtwin_job::languages::NONE;
///
/// let mut features = Features::new(2, NONE, NONE);
/// assert_eq!(features.extract("one two three").len(), 2);
/// let words = features.extract("One, two! Three").to_vec();
/// assert_eq!(features.extract("one two three"), words);
/// ```
#[derive(Debug)]
pub struct Features {
    words: WordSplitter,
    terms: Terms,
    phrase: usize,
    /// Terms of the current text, then its features, including repeats.
    hashes: Vec<u64>,
}

impl Features {
    /// Creates an extractor of features of `phrase` terms each, with the stop words of one language
    /// and the stemmer of one language ([`Terms::new`]).
    pub fn new(phrase: u32, stop_words: &str, stemming: &str) -> Features {
        let terms = Terms::new(stop_words, stemming);
        Features { words: WordSplitter::default(), terms, phrase: phrase as usize, hashes: Vec::new() }
    }

    /// Returns the features of `text`, including repeats. A text with fewer terms than a phrase is
    /// one phrase.
    ///
    /// # Cost
    /// One pass over the text, one over its terms.
    pub fn extract(&mut self, text: &str) -> &mut [u64] {
        let Features { words, terms, phrase, hashes } = self;
        hashes.clear();
        words.for_each_word(text, |word| hashes.extend(terms.term(word)));
        if *phrase > 1 && !hashes.is_empty() {
            let phrases = (hashes.len() + 1).saturating_sub(*phrase).max(1);
            for first in 0..phrases {
                let last = hashes.len().min(first + *phrase);
                hashes[first] = xxh3_64(bytemuck::cast_slice(&hashes[first..last]));
            }
            hashes.truncate(phrases);
        }
        hashes
    }
}

/// Weights features by their number of occurrences on a page. `hashes` may be in any order;
/// `features` becomes ascending by hash, each once.
///
/// # Examples
/// ```
/// use webtwin_core::text::{Feature, weigh};
/// use webtwin_job::Weights;
///
/// let mut features = Vec::new();
/// weigh(&mut [7, 3, 7, 7, 7], Weights::Log, &mut features);
/// // A feature that occurs four times has three times the weight of one that occurs once.
/// assert_eq!(features, [Feature { hash: 3, weight: 16 }, Feature { hash: 7, weight: 48 }]);
/// ```
pub fn weigh(hashes: &mut [u64], weights: Weights, features: &mut Vec<Feature>) {
    features.clear();
    hashes.sort_unstable();
    let run = |run: &[u64]| Feature { hash: run[0], weight: weight(run.len() as u32, weights) };
    features.extend(hashes.chunk_by(|x, y| x == y).map(run));
}

/// Returns the weight of a feature that occurs `count` times on a page, in sixteenths.
pub fn weight(count: u32, weights: Weights) -> u32 {
    match weights {
        Weights::Count => count.saturating_mul(16),
        Weights::Log => 16 + log2(u64::from(count)),
        Weights::Once => 16,
    }
}

/// Returns the weight of a feature in a crawl, in sixteenths: log2 of (pages of the crawl / pages
/// with the feature). The weight of a feature that is on all pages is one sixteenth.
///
/// # Examples
/// ```
/// use webtwin_core::text::inverse_document_frequency;
///
/// // On one of 1024 pages, on half of them, on all of them.
/// let weights = [1, 512, 1024].map(|pages| inverse_document_frequency(1024, pages));
/// assert_eq!(weights, [160, 16, 1]);
/// ```
pub fn inverse_document_frequency(pages: u64, pages_with: u64) -> u32 {
    (log2(pages) - log2(pages_with.clamp(1, pages.max(1)))).max(1)
}

/// Returns log2 in sixteenths, rounded down, and 0 for 0. Computed by repeated squaring, so the
/// result does not depend on floating point.
pub fn log2(number: u64) -> u32 {
    if number == 0 {
        return 0;
    }
    let whole = number.ilog2();
    // The number divided by its highest power of two, in [1, 2), with 31 fractional bits.
    let mut mantissa = if whole > 31 { number >> (whole - 31) } else { number << (31 - whole) };
    let mut log = u64::from(whole);
    for _ in 0..4 {
        mantissa = (mantissa * mantissa) >> 31;
        log <<= 1;
        if mantissa >> 32 > 0 {
            mantissa >>= 1;
            log |= 1;
        }
    }
    log as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_job::languages::NONE;

    fn features(phrase: u32, text: &str) -> Vec<u64> {
        Features::new(phrase, NONE, NONE).extract(text).to_vec()
    }

    #[test]
    fn a_feature_is_a_term_or_a_run_of_terms() {
        let hash = |word: &str| xxh3_64(word.as_bytes());
        assert_eq!(features(1, "One two, one."), [hash("one"), hash("two"), hash("one")]);
        let pair = |x, y| xxh3_64(bytemuck::cast_slice(&[hash(x), hash(y)]));
        assert_eq!(features(2, "one two\none"), [pair("one", "two"), pair("two", "one")]);
        assert_eq!(features(3, "one two"), [pair("one", "two")]);
        assert!(features(2, " -- ").is_empty());
    }

    #[test]
    fn weights_count_or_count_less_and_less_or_do_not_count() {
        let mut features = Vec::new();
        let mut weights = |weights| {
            weigh(&mut [7, 3, 7, 7, 7], weights, &mut features);
            features.iter().map(|feature| (feature.hash, feature.weight)).collect::<Vec<_>>()
        };
        assert_eq!(weights(Weights::Count), [(3, 16), (7, 64)]);
        assert_eq!(weights(Weights::Log), [(3, 16), (7, 48)]);
        assert_eq!(weights(Weights::Once), [(3, 16), (7, 16)]);
    }

    #[test]
    fn a_feature_on_every_page_weighs_next_to_nothing() {
        assert_eq!(inverse_document_frequency(1024, 1), 160);
        assert_eq!(inverse_document_frequency(1024, 512), 16);
        assert_eq!(inverse_document_frequency(1024, 1024), 1);
        assert_eq!(inverse_document_frequency(0, 0), 1);
    }

    proptest! {
        #[test]
        fn fixed_point_logarithm_equals_the_logarithm(number in 1u64..1 << 40) {
            // Sixteenths are exact enough to compare, except for numbers next to a step.
            let expected = (number as f64).log2() * 16.0;
            let deviation = (f64::from(log2(number)) - expected.floor()).abs();
            prop_assert!(deviation == 0.0 || (deviation == 1.0 && (expected.fract() < 1e-5 || expected.fract() > 1.0 - 1e-5)));
        }
    }
}
