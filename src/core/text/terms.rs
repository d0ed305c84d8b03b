//! Terms of words: stop words are dropped, inflected words are reduced to their stem, and the
//! result is hashed.
//!
//! Both steps depend on the language, and both are off unless the job names a language. If the
//! language of a page were detected incorrectly, its features would change, and differ from those
//! of its copies.

use std::collections::HashSet;

use rust_stemmers::Stemmer;
use xxhash_rust::xxh3::xxh3_64;

use super::fold::Folding;
use webtwin_job::languages::{stemmer, stop_words};

/// Number of words that are cached with their terms, a power of two.
const CACHED_WORDS: usize = 1 << 13;

/// Maximum bytes of a cached word.
const MAX_WORD_BYTES: usize = 16;

/// Mapping of words to hashed terms.
///
/// # Examples
/// ```
/// use webtwin_core::text::terms::Terms;
/// use webtwin_job::languages::NONE;
///
/// let mut english = Terms::new("en", "en");
/// assert_eq!(english.term(b"the"), None);
/// assert_eq!(english.term(b"mirrors"), english.term(b"mirrored"));
///
/// let mut plain = Terms::new(NONE, NONE);
/// assert_ne!(plain.term(b"mirrors"), plain.term(b"mirrored"));
/// ```
pub struct Terms {
    /// Stop words, folded like other words.
    stop_words: HashSet<String>,
    stemmer: Option<Stemmer>,
    /// Cache of recent words by their hash, each with its term. Stemming costs fifty times as much
    /// as a look-up.
    memo: Vec<(u128, Option<u64>)>,
}

impl std::fmt::Debug for Terms {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Terms with {} stop words", self.stop_words.len())
    }
}

impl Terms {
    /// Creates a mapping with the stop words of one language and the stemmer of one language, each
    /// a code or [`webtwin_job::languages::NONE`].
    pub fn new(stop_words: &str, stemming: &str) -> Terms {
        let stemmer = stemmer(stemming).map(Stemmer::create);
        let mut folding = Folding::default();
        let words = self::stop_words(stop_words).unwrap_or_default();
        let stop_words: HashSet<String> = words.iter().map(|word| folding.folded(word).to_string()).collect();
        let memo = if stemmer.is_some() || !stop_words.is_empty() { vec![(0, None); CACHED_WORDS] } else { Vec::new() };
        Terms { stop_words, stemmer, memo }
    }

    /// Returns the term of a folded word as its 64-bit XXH3 hash, or `None` for a stop word.
    pub fn term(&mut self, word: &[u8]) -> Option<u64> {
        let hash = xxh3_64(word);
        if self.memo.is_empty() {
            return Some(hash);
        }
        if word.len() > MAX_WORD_BYTES {
            return self.look_up(word, hash);
        }
        let mut key = [0; MAX_WORD_BYTES];
        key[..word.len()].copy_from_slice(word);
        let (key, place) = (u128::from_le_bytes(key), hash as usize % CACHED_WORDS);
        if self.memo[place].0 != key {
            self.memo[place] = (key, self.look_up(word, hash));
        }
        self.memo[place].1
    }

    fn look_up(&self, word: &[u8], hash: u64) -> Option<u64> {
        let text = std::str::from_utf8(word).expect("words are UTF-8");
        if self.stop_words.contains(text) {
            return None;
        }
        Some(self.stemmer.as_ref().map_or(hash, |stemmer| xxh3_64(stemmer.stem(text).as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_job::languages::NONE;

    #[test]
    fn stop_words_have_no_term_and_inflections_have_one() {
        let mut terms = Terms::new("en", "en");
        assert_eq!(terms.term(b"the"), None);
        assert_eq!(terms.term(b"duplicates"), Some(xxh3_64(b"duplic")));
        assert_eq!(terms.term(b"duplicates"), terms.term(b"duplicate"));
        assert_eq!(terms.term(b"incomprehensibilities"), terms.term(b"incomprehensibility"));
        // Words are folded, and so are stop words: final sigma becomes sigma, and ß becomes ss.
        assert_eq!(Terms::new("el", NONE).term("τησ".as_bytes()), None);
        assert_eq!(Terms::new("de", NONE).term(b"dass"), None);
        assert_eq!(Terms::new(NONE, NONE).term(b"the"), Some(xxh3_64(b"the")));
    }

    #[test]
    fn cached_terms_equal_uncached_ones() {
        let mut terms = Terms::new("en", "en");
        let words: Vec<String> = (0..4 * CACHED_WORDS).map(|n| format!("{}ing", n % (2 * CACHED_WORDS + 7))).collect();
        assert!(words.iter().all(|word| terms.term(word.as_bytes()) == Terms::look_up(&terms, word.as_bytes(), 0)));
    }
}
