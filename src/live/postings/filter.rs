//! Blocked Bloom filter: it avoids reading runs that do not have a chunk.
//!
//! # Source
//! Putze, Sanders, Singler, *Cache-, hash- and space-efficient Bloom filters* (2007): all bits of a
//! key are in one block of the size of a cache line.

use webtwin_base::ids::splitmix64;

/// Number of words of a block: one cache line.
const BLOCK_WORDS: usize = 8;

/// Number of bits of a filter for each key.
const BITS_PER_KEY: u64 = 8;

/// Number of bits that are set for a key.
const BITS_SET: u32 = 5;

/// Approximate set of keys. It has no false negatives, and about 3 % false positives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    /// Creates an empty filter for the given number of keys.
    pub(super) fn for_keys(keys: u64) -> Filter {
        let blocks = (keys * BITS_PER_KEY).div_ceil(64 * BLOCK_WORDS as u64).max(1);
        Filter { words: vec![0; blocks as usize * BLOCK_WORDS] }
    }

    /// Creates a filter from the words of [`Filter::words`]; `None` if they are not whole blocks.
    pub(super) fn from_words(words: Vec<u64>) -> Option<Filter> {
        (!words.is_empty() && words.len().is_multiple_of(BLOCK_WORDS)).then_some(Filter { words })
    }

    /// Returns the words of the filter.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the first word of a key's block, and the hash from which its bits are taken.
    fn block(&self, key: u64) -> (usize, u64) {
        let hash = splitmix64(key);
        let blocks = (self.words.len() / BLOCK_WORDS) as u128;
        (((u128::from(hash) * blocks) >> 64) as usize * BLOCK_WORDS, splitmix64(hash))
    }

    /// Adds a key.
    pub(super) fn insert(&mut self, key: u64) {
        let (first, mut bits) = self.block(key);
        for _ in 0..BITS_SET {
            let bit = bits as usize % (64 * BLOCK_WORDS);
            self.words[first + bit / 64] |= 1 << (bit % 64);
            bits >>= 9;
        }
    }

    /// Returns true if the filter may have a key.
    pub(super) fn contains(&self, key: u64) -> bool {
        let (first, mut bits) = self.block(key);
        (0..BITS_SET).all(|_| {
            let bit = bits as usize % (64 * BLOCK_WORDS);
            bits >>= 9;
            self.words[first + bit / 64] & 1 << (bit % 64) != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_contains_its_keys_and_few_others() {
        let mut filter = Filter::for_keys(10_000);
        (0..10_000).for_each(|key| filter.insert(key));
        assert!((0..10_000).all(|key| filter.contains(key)));
        let false_positives = (10_000..110_000).filter(|&key| filter.contains(key)).count();
        assert!(false_positives < 4_000, "{false_positives} of 100,000");
        assert_eq!(Filter::from_words(filter.words().to_vec()), Some(filter));
    }
}
