//! Cache of the words of recent tokens. Most tokens of a text have occurred shortly before, and
//! segmenting them by the tables of Unicode costs ten times as much as a look-up.

use xxhash_rust::xxh3::xxh3_64;

/// Number of cached tokens, a power of two.
const TOKENS: usize = 1 << 12;

/// Maximum bytes of a cached token.
const TOKEN_BYTES: usize = 32;

/// Maximum bytes of the words of a cached token.
const WORD_BYTES: usize = 56;

/// Maximum number of words of a cached token.
const WORDS: usize = 4;

/// A token with its words. An empty token marks an unused entry.
#[derive(Debug, Clone, Copy)]
struct Entry {
    token_bytes: u8,
    token: [u8; TOKEN_BYTES],
    words: u8,
    ends: [u8; WORDS],
    bytes: [u8; WORD_BYTES],
}

const NONE: Entry =
    Entry { token_bytes: 0, token: [0; TOKEN_BYTES], words: 0, ends: [0; WORDS], bytes: [0; WORD_BYTES] };

/// Cache of recent tokens, each at the index that its hash determines.
#[derive(Debug, Default)]
pub(super) struct Memo {
    entries: Vec<Entry>,
}

impl Memo {
    /// Calls `word` with each word of `token`. If the token is not cached, `find` computes the
    /// words.
    pub(super) fn for_each_word(
        &mut self,
        token: &str,
        find: impl FnOnce(&mut dyn FnMut(&[u8])),
        word: &mut impl FnMut(&[u8]),
    ) {
        let token = token.as_bytes();
        if token.len() > TOKEN_BYTES {
            return find(word);
        }
        if self.entries.is_empty() {
            self.entries.resize(TOKENS, NONE);
        }
        let entry = &mut self.entries[xxh3_64(token) as usize % TOKENS];
        if &entry.token[..usize::from(entry.token_bytes)] != token {
            *entry = NONE;
            let mut fits = true;
            find(&mut |found| {
                word(found);
                fits = fits && entry.push(found);
            });
            if fits {
                entry.token_bytes = token.len() as u8;
                entry.token[..token.len()].copy_from_slice(token);
            } else {
                *entry = NONE;
            }
            return;
        }
        let mut start = 0;
        for &end in &entry.ends[..usize::from(entry.words)] {
            word(&entry.bytes[start..usize::from(end)]);
            start = usize::from(end);
        }
    }
}

impl Entry {
    /// Appends a word; returns false if there is no space for it.
    fn push(&mut self, word: &[u8]) -> bool {
        let words = usize::from(self.words);
        let start = if words == 0 { 0 } else { usize::from(self.ends[words - 1]) };
        let end = start + word.len();
        if words == WORDS || end > WORD_BYTES {
            return false;
        }
        self.bytes[start..end].copy_from_slice(word);
        self.ends[words] = end as u8;
        self.words += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_words_equal_uncached_ones() {
        // More tokens than the cache holds; some have too many words, some too long ones, some
        // none.
        let split = |token: &str, emit: &mut dyn FnMut(&[u8])| {
            token.split('-').filter(|word| !word.is_empty()).for_each(|word| emit(word.repeat(2).as_bytes()));
        };
        let tokens: Vec<String> = (0..3 * TOKENS)
            .map(|number| match number % 5 {
                0 => "-".repeat(number % 40),
                1 => format!("a-b-c-d{number}"),
                2 => format!("a-b-c-d-e{number}"),
                3 => format!("{number:030}"),
                _ => format!("é{number}-x"),
            })
            .collect();
        let mut memo = Memo::default();
        for token in tokens.iter().chain(tokens.iter().rev()) {
            let (mut words, mut expected) = (Vec::new(), Vec::new());
            memo.for_each_word(token, |emit| split(token, emit), &mut |word: &[u8]| words.push(word.to_vec()));
            split(token, &mut |word| expected.push(word.to_vec()));
            assert_eq!(words, expected, "{token}");
        }
    }
}
