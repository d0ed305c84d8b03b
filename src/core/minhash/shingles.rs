//! Text becomes the set of its shingles: all runs of n words, tokens or characters, each known by a hash of 32 bits.
//!
//! A text with fewer units than a shingle has one shingle, itself; one without any unit has none. The hash of a run is
//! a polynomial in the hashes of its units, which is carried from one run to the next, so a shingle of 20 words costs
//! no more than one of two.

use xxhash_rust::xxh3::xxh3_64;

use crate::text::fold::Folding;
use crate::text::words::Words;
use webtwin_base::ids::splitmix64;
pub use webtwin_job::Shingling;

/// An odd multiplier with well-mixed bits (the golden ratio in 64 bits).
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finds the shingles of one text after another; keeps its memory.
#[derive(Debug)]
pub struct Shingles {
    shingling: Shingling,
    words: Words,
    folding: Folding,
    units: Vec<u64>,
    found: Vec<u32>,
    sorter: Sorter,
}

impl Shingles {
    /// A finder of such shingles.
    pub fn new(shingling: Shingling) -> Shingles {
        Shingles {
            shingling,
            words: Words::default(),
            folding: Folding::default(),
            units: Vec::new(),
            found: Vec::new(),
            sorter: Sorter::default(),
        }
    }

    /// The hashes of the shingles of `text`, ascending, each once.
    ///
    /// # Cost
    /// One pass over the text, and a sort of as many hashes as it has units.
    pub fn of(&mut self, text: &str) -> &[u32] {
        let Shingles { shingling, words, folding, units, found, sorter } = self;
        units.clear();
        let count = match *shingling {
            Shingling::Words(count) => {
                words.each(text, |word| units.push(xxh3_64(word)));
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
        runs(units, count as usize, found);
        sorter.sort(found);
        found.dedup();
        found
    }
}

/// Appends the units of a token, after a space unless it is the first.
fn push_characters(token: impl Iterator<Item = char>, units: &mut Vec<u64>) {
    if !units.is_empty() {
        units.push(splitmix64(u64::from(' ')));
    }
    units.extend(token.map(|character| splitmix64(u64::from(character))));
}

/// The hashes of all runs of `count` units, in order.
fn runs(units: &[u64], count: usize, found: &mut Vec<u32>) {
    found.clear();
    if units.is_empty() {
        return;
    }
    let count = count.min(units.len());
    let append = |hash: u64, unit: u64| hash.wrapping_mul(BASE).wrapping_add(unit);
    let oldest = BASE.wrapping_pow(count as u32 - 1);
    // The high half: the low bits of a polynomial depend on low bits only.
    let shingle = |hash: u64| (splitmix64(hash) >> 32) as u32;
    let mut hash = units[..count].iter().fold(0, |hash, &unit| append(hash, unit));
    found.push(shingle(hash));
    for (&old, &new) in units.iter().zip(&units[count..]) {
        hash = append(hash.wrapping_sub(old.wrapping_mul(oldest)), new);
        found.push(shingle(hash));
    }
}

/// Sorts hashes: into buckets by their leading bits, and then by insertion.
///
/// Hashes are spread evenly, so few of a bucket's one or two are out of order. A text that repeats itself has many of one
/// hash; then the standard library sorts.
#[derive(Debug, Default)]
struct Sorter {
    /// For each bucket, where its next hash goes.
    next: Vec<u32>,
    sorted: Vec<u32>,
}

/// Numbers of hashes that buckets are for: with fewer they do not pay, with more they do not stay in the cache.
const IN_BUCKETS: std::ops::RangeInclusive<usize> = 32..=1 << 16;

/// The most hashes of a bucket that are sorted by insertion.
const INSERTED: u32 = 16;

impl Sorter {
    /// Sorts, ascending.
    ///
    /// # Cost
    /// About 3 ns a hash for texts of hundreds of words, a third of what the standard library takes.
    fn sort(&mut self, hashes: &mut Vec<u32>) {
        if !IN_BUCKETS.contains(&hashes.len()) {
            return hashes.sort_unstable();
        }
        let Sorter { next, sorted } = self;
        let bits = hashes.len().ilog2() + 1;
        let bucket = |hash: u32| (hash >> (u32::BITS - bits)) as usize;
        next.clear();
        next.resize(1 << bits, 0);
        hashes.iter().for_each(|&hash| next[bucket(hash)] += 1);
        let (mut before, mut largest) = (0, 0);
        for next in next.iter_mut() {
            largest = largest.max(*next);
            (*next, before) = (before, before + *next);
        }
        if largest > INSERTED {
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

    /// The runs themselves.
    fn plain(units: &[String], count: usize) -> BTreeSet<Vec<String>> {
        let count = count.min(units.len()).max(1);
        units.windows(count).map(<[String]>::to_vec).collect()
    }

    fn set(shingling: Shingling, text: &str) -> BTreeSet<u32> {
        Shingles::new(shingling).of(text).iter().copied().collect()
    }

    proptest! {
        #[test]
        fn hashes_are_sorted(
            hashes in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..3, u32::MAX - 2..=u32::MAX], 0..300),
        ) {
            let (mut sorted, mut want) = (hashes.clone(), hashes);
            Sorter::default().sort(&mut sorted);
            want.sort_unstable();
            prop_assert_eq!(sorted, want);
        }

        #[test]
        fn two_texts_share_as_many_hashes_as_shingles(
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
        fn runs_of_characters_are_those_of_the_text_in_lower_case(text in "[a-cA-C \n]{0,40}", count in 1u32..7) {
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
    fn texts_that_look_the_same_have_the_same_shingles() {
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

    /// The figures of `docs/dedup.md` for scripts without spaces: evenly spread changes of 1,000 units that leave a
    /// resemblance of 0.8.
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
        for (shingling, unit, most, run) in [
            (Shingling::Words(5), &english as &dyn Fn(u32) -> String, 22, 1),
            (Shingling::Words(5), &han, 18, 1),
            (Shingling::Words(5), &han, 15, 2),
            (Shingling::Chars(5), &han, 22, 1),
            (Shingling::Chars(3), &han, 36, 1),
        ] {
            let reached = |changes: u32| resemblance(shingling, unit, changes, run) >= 0.8;
            assert!(reached(most) && !reached(most + 1), "{shingling}: {most} changes of {run}");
        }
    }

    #[test]
    fn a_short_text_is_one_shingle_and_an_empty_one_has_none() {
        assert_eq!(set(Shingling::Words(5), "two words").len(), 1);
        assert_ne!(set(Shingling::Words(5), "two words"), set(Shingling::Words(5), "words two"));
        assert!(set(Shingling::Words(5), " -- ").is_empty() && set(Shingling::Chars(3), " \n").is_empty());
    }
}
