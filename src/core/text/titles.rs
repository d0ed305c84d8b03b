//! Words of titles, by which pages of two sites are distinguished.
//!
//! Pages of one template, such as the search pages of two manuals, are as alike as two versions of
//! a page. Their titles are not: each has a word that the other lacks (*Search — nova
//! documentation*, *Search — ironic documentation*), while versions differ in numbers (*Search —
//! Python 3.13 documentation*) and copies add the name of their site.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Sketch of the words of a title, except those with a digit: each word sets three of 128 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(transparent)]
pub struct TitleWords([u64; 2]);

impl TitleWords {
    /// Returns the sketch of the words of a title, in lower case.
    ///
    /// # Examples
    /// ```
    /// use webtwin_core::text::titles::TitleWords;
    ///
    /// let titles = ["Search — nova 31.0 documentation", "Search — ironic documentation"];
    /// let [search, other] = titles.map(TitleWords::from_title);
    /// assert!(search.differ_from(other));
    /// for version in ["Search — nova 34.1 documentation", "Search - Nova documentation | Mirror", "Nova", ""] {
    ///     assert!(!search.differ_from(TitleWords::from_title(version)));
    /// }
    /// ```
    pub fn from_title(title: &str) -> TitleWords {
        let mut bits = [0; 2];
        for word in title.split(|character: char| !character.is_alphanumeric()) {
            if !word.is_empty() && !word.contains(char::is_numeric) {
                let hash = xxh3_64(word.to_lowercase().as_bytes());
                for bit in [hash, hash >> 7, hash >> 14] {
                    bits[(bit >> 6 & 1) as usize] |= 1 << (bit & 63);
                }
            }
        }
        TitleWords(bits)
    }

    /// True if each of the titles has a word that the other lacks. Of pairs of titles with eight
    /// words that differ in one, one in a hundred is not recognised as different.
    pub fn differ_from(self, other: TitleWords) -> bool {
        let lacks = |has: TitleWords, other: TitleWords| (0..2).any(|half| has.0[half] & !other.0[half] != 0);
        lacks(self, other) && lacks(other, self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A title with all words of the other never differs from it, and titles that differ have
        /// words of their own.
        #[test]
        fn titles_differ_only_if_each_has_a_word_of_its_own(
            a in prop::collection::vec("[a-d]{1,2}|[0-9]|Ä", 0..6), b in prop::collection::vec("[a-d]{1,2}|[0-9]|ä", 0..6)
        ) {
            let words = |title: &[String]| -> BTreeSet<String> {
                title.iter().filter(|word| word.parse::<u8>().is_err()).map(|word| word.to_lowercase()).collect()
            };
            let [words_of_a, words_of_b] = [&a, &b].map(|title| TitleWords::from_title(&title.join(" - ")));
            let (words_a, words_b) = (words(&a), words(&b));
            if words_of_a.differ_from(words_of_b) {
                prop_assert!(!words_a.is_subset(&words_b) && !words_b.is_subset(&words_a));
            }
            prop_assert_eq!(words_of_a.differ_from(words_of_b), words_of_b.differ_from(words_of_a));
        }
    }
}
