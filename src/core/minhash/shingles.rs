//! Sets of shingles of texts: all runs of n words, tokens or characters, each represented by a hash
//! of 32 bits.
//!
//! A text with fewer units than a shingle has one shingle, the whole text; a text without any unit
//! has none. The hash of a run is a polynomial in the hashes of its units, which is updated from
//! one run to the next. So a shingle of 20 words costs no more than one of two.

use xxhash_rust::xxh3::xxh3_64;

use crate::text::fold::Folding;
use crate::text::words::WordSplitter;
use webtwin_base::ids::splitmix64;
pub use webtwin_job::Shingling;

/// An odd multiplier with well-mixed bits (the golden ratio in 64 bits).
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Extractor of the shingles of one text after another, which reuses its buffers.
///
/// # Examples
/// The example of Broder: this text has three different shingles of four words.
/// ```
/// use webtwin_core::minhash::shingles::{Shingles, Shingling};
///
/// let mut shingles = Shingles::new(Shingling::Words(4));
/// assert_eq!(shingles.hashes("a rose is a rose is a rose").len(), 3);
/// // A text with fewer words than a shingle is one shingle.
/// assert_eq!(shingles.hashes("a rose").len(), 1);
/// ```
#[derive(Debug)]
pub struct Shingles {
    shingling: Shingling,
    words: WordSplitter,
    folding: Folding,
    units: Vec<u64>,
    hashes: Vec<u32>,
    sorter: Sorter,
}

impl Shingles {
    /// Creates an extractor of shingles of the given kind and length.
    pub fn new(shingling: Shingling) -> Shingles {
        Shingles {
            shingling,
            words: WordSplitter::default(),
            folding: Folding::default(),
            units: Vec::new(),
            hashes: Vec::new(),
            sorter: Sorter::default(),
        }
    }

    /// Returns the hashes of the shingles of `text`, ascending, each once.
    ///
    /// # Cost
    /// One pass over the text, and a sort of one hash for each unit.
    pub fn hashes(&mut self, text: &str) -> &[u32] {
        let Shingles { shingling, words, folding, units, hashes, sorter } = self;
        units.clear();
        let count = match *shingling {
            Shingling::Words(count) => {
                words.for_each_word(text, |word| units.push(xxh3_64(word)));
                count
            }
            Shingling::Tokens(count) => {
                let mut push = |token: &str| units.push(xxh3_64(token.as_bytes()));
                for piece in text.split_whitespace() {
                    match piece.is_ascii() {
                        true => push(piece),
                        false => folding.composed(piece).split_whitespace().for_each(&mut push),
                    }
                }
                count
            }
            Shingling::Chars(count) => {
                for piece in text.split_whitespace() {
                    if piece.is_ascii() {
                        push_characters(piece.bytes().map(|byte| char::from(byte.to_ascii_lowercase())), units);
                    } else {
                        folding
                            .folded(piece)
                            .split_whitespace()
                            .for_each(|token| push_characters(token.chars(), units));
                    }
                }
                count
            }
        };
        runs(units, count as usize, hashes);
        sorter.sort(hashes);
        hashes.dedup();
        hashes
    }
}

/// Appends the units of a token, after a space unless the token is the first.
fn push_characters(token: impl Iterator<Item = char>, units: &mut Vec<u64>) {
    if !units.is_empty() {
        units.push(splitmix64(u64::from(' ')));
    }
    units.extend(token.map(|character| splitmix64(u64::from(character))));
}

/// Computes the hashes of all runs of `count` units, in order.
fn runs(units: &[u64], count: usize, hashes: &mut Vec<u32>) {
    hashes.clear();
    if units.is_empty() {
        return;
    }
    let count = count.min(units.len());
    let append = |hash: u64, unit: u64| hash.wrapping_mul(BASE).wrapping_add(unit);
    let oldest = BASE.wrapping_pow(count as u32 - 1);
    // The high half is used, because the low bits of a polynomial depend on low bits only.
    let shingle = |hash: u64| (splitmix64(hash) >> 32) as u32;
    let mut hash = units[..count].iter().fold(0, |hash, &unit| append(hash, unit));
    hashes.push(shingle(hash));
    for (&old, &new) in units.iter().zip(&units[count..]) {
        hash = append(hash.wrapping_sub(old.wrapping_mul(oldest)), new);
        hashes.push(shingle(hash));
    }
}

/// Sorter of hashes: distributes them into buckets by their leading bits, then sorts by insertion.
///
/// Hashes are spread evenly, so a bucket has one or two, few of which are out of order. A text that
/// repeats itself has many equal hashes; then the sort of the standard library is used.
#[derive(Debug, Default)]
struct Sorter {
    /// Index at which each bucket's next hash is written.
    next: Vec<u32>,
    sorted: Vec<u32>,
}

/// Numbers of hashes for which buckets are used: with fewer they cost more than they save, with
/// more they exceed the cache.
const BUCKET_HASHES: std::ops::RangeInclusive<usize> = 32..=1 << 16;

/// Maximum number of hashes of a bucket that are sorted by insertion.
const INSERTION_HASHES: u32 = 16;

impl Sorter {
    /// Sorts hashes in ascending order.
    ///
    /// # Cost
    /// About 3 ns a hash for texts of hundreds of words, a third of the time of the standard
    /// library.
    fn sort(&mut self, hashes: &mut Vec<u32>) {
        if !BUCKET_HASHES.contains(&hashes.len()) {
            return hashes.sort_unstable();
        }
        let Sorter { next, sorted } = self;
        let bits = hashes.len().ilog2() + 1;
        let bucket = |hash: u32| (hash >> (u32::BITS - bits)) as usize;
        next.clear();
        next.resize(1 << bits, 0);
        hashes.iter().for_each(|&hash| next[bucket(hash)] += 1);
        let (mut start, mut largest) = (0, 0);
        for next in next.iter_mut() {
            largest = largest.max(*next);
            (*next, start) = (start, start + *next);
        }
        if largest > INSERTION_HASHES {
            return hashes.sort_unstable();
        }
        sorted.resize(hashes.len(), 0);
        for &hash in hashes.iter() {
            let next = &mut next[bucket(hash)];
            sorted[*next as usize] = hash;
            *next += 1;
        }
        for at in 1..sorted.len() {
            let (hash, mut to) = (sorted[at], at);
            while to > 0 && sorted[to - 1] > hash {
                sorted[to] = sorted[to - 1];
                to -= 1;
            }
            sorted[to] = hash;
        }
        std::mem::swap(hashes, sorted);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Returns the runs themselves.
    fn plain(units: &[String], count: usize) -> BTreeSet<Vec<String>> {
        let count = count.min(units.len()).max(1);
        units.windows(count).map(<[String]>::to_vec).collect()
    }

    fn set(shingling: Shingling, text: &str) -> BTreeSet<u32> {
        Shingles::new(shingling).hashes(text).iter().copied().collect()
    }

    proptest! {
        #[test]
        fn hashes_are_sorted(
            hashes in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..3, u32::MAX - 2..=u32::MAX], 0..300),
        ) {
            let (mut sorted, mut expected) = (hashes.clone(), hashes);
            Sorter::default().sort(&mut sorted);
            expected.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }

        #[test]
        fn texts_share_equally_many_hashes_and_shingles(
            x in prop::collection::vec("[a-c]{1,2}", 0..40), y in prop::collection::vec("[a-c]{1,2}", 0..40),
            count in 1u32..7,
        ) {
            let (plain_x, plain_y) = (plain(&x, count as usize), plain(&y, count as usize));
            for shingling in [Shingling::Words(count), Shingling::Tokens(count)] {
                let (hashes_x, hashes_y) = (set(shingling, &x.join(" ")), set(shingling, &y.join(" ")));
                prop_assert_eq!(hashes_x.len(), plain_x.len());
                prop_assert_eq!(hashes_x.intersection(&hashes_y).count(), plain_x.intersection(&plain_y).count());
            }
        }

        #[test]
        fn character_shingles_are_in_lower_case(text in "[a-cA-C \n]{0,40}", count in 1u32..7) {
            let clean = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
            let characters: Vec<String> = clean.chars().map(String::from).collect();
            prop_assert_eq!(set(Shingling::Chars(count), &text).len(), plain(&characters, count as usize).len());
        }
    }

    #[test]
    fn words_are_folded_and_tokens_are_not() {
        assert_eq!(set(Shingling::Words(2), "One, TWO three!"), set(Shingling::Words(2), "one two: Three"));
        assert_ne!(set(Shingling::Tokens(2), "One, two"), set(Shingling::Tokens(2), "One two"));
        assert_ne!(set(Shingling::Tokens(1), "One"), set(Shingling::Tokens(1), "one"));
    }

    #[test]
    fn visually_equal_texts_have_equal_shingles() {
        let text = "Der Große Fluß wäre höher; 12 000 Möwen flögen ü\u{308}ber ΟΔΟΣ Σίσυφος";
        let nfd = text.replace('ö', "o\u{308}").replace('ä', "a\u{308}");
        let spaces = text.replace(' ', "\u{202f}");
        let invisible = text.replace('e', "\u{ad}e\u{200d}\u{feff}").replace('0', "0\u{fe0f}");
        for other in [nfd, spaces, invisible] {
            for shingling in [Shingling::Words(3), Shingling::Tokens(3), Shingling::Chars(7)] {
                assert_eq!(set(shingling, &other), set(shingling, text), "{other:?}");
            }
        }
        let capitals = text.to_uppercase();
        for shingling in [Shingling::Words(3), Shingling::Chars(7)] {
            assert_eq!(set(shingling, &capitals), set(shingling, text));
        }
    }

    /// Verifies the figures of `docs/dedup.md` for scripts without spaces: evenly spread changes of
    /// 1,000 units that leave a resemblance of 0.8.
    #[test]
    fn a_changed_character_of_chinese_counts_about_as_much_as_a_changed_word_of_english() {
        let han = |at: u32| char::from_u32(0x4e00 + at).unwrap().to_string();
        let english = |at: u32| format!(" w{at}");
        let resemblance = |shingling: Shingling, unit: &dyn Fn(u32) -> String, changes: u32, run: u32| {
            let is_changed =
                |at: u32| (0..changes).any(|change| (10 + 26 * change..).take(run as usize).any(|of| of == at));
            let text = |is_copy: bool| -> String {
                (0..1000).map(|at| unit(if is_copy && is_changed(at) { at + 5000 } else { at })).collect()
            };
            let (original, copy) = (set(shingling, &text(false)), set(shingling, &text(true)));
            original.intersection(&copy).count() as f64 / original.union(&copy).count() as f64
        };
        for (shingling, unit, max_changes, run) in [
            (Shingling::Words(5), &english as &dyn Fn(u32) -> String, 22, 1),
            (Shingling::Words(5), &han, 18, 1),
            (Shingling::Words(5), &han, 15, 2),
            (Shingling::Chars(5), &han, 22, 1),
            (Shingling::Chars(3), &han, 36, 1),
        ] {
            let is_reached = |changes: u32| resemblance(shingling, unit, changes, run) >= 0.8;
            assert!(
                is_reached(max_changes) && !is_reached(max_changes + 1),
                "{shingling}: {max_changes} changes of {run}"
            );
        }
    }

    #[test]
    fn a_short_text_is_one_shingle_and_an_empty_one_has_none() {
        assert_eq!(set(Shingling::Words(5), "two words").len(), 1);
        assert_ne!(set(Shingling::Words(5), "two words"), set(Shingling::Words(5), "words two"));
        assert!(set(Shingling::Words(5), " -- ").is_empty() && set(Shingling::Chars(3), " \n").is_empty());
    }
}
