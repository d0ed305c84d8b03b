//! Table designs: sets of bits of a fingerprint that must be equal, one for each table, such that
//! no near pair is missed.
//!
//! A design is a list of *keys*, each a set of bit positions. Table i finds the pairs that agree on
//! all bits of key i. For any k differing bits, at least one key must contain none of them. The
//! papers' designs ([`paper`]) and better ones ([`covering`]) are both lists of keys, and code that
//! uses a design does not depend on its origin.
//!
//! # Source
//! \[MJS07\] section 3.1: t tables, each with a permutation that puts the bits of its key on top; p
//! is the number of bits in the key.

pub mod batch;
pub mod choose;
pub mod covering;
pub mod machine;
pub mod paper;

use webtwin_base::error::{Error, Result};

/// Keys made of whole blocks: bit j of a key represents block j of the `blocks` into which the
/// fingerprint is divided.
///
/// # Examples
/// Ten keys, each of two out of five blocks, survive three errors.
/// ```
/// use webtwin_core::hamming::design::{BlockDesign, subsets};
///
/// let pairs = BlockDesign { blocks: 5, keys: subsets(5, 2).collect() };
/// assert_eq!((pairs.keys.len(), pairs.top_bits(64)), (10, 25));
/// assert!(pairs.survives(3) && !pairs.survives(4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDesign {
    /// Number of blocks into which the fingerprint is divided, at most 32.
    pub blocks: u32,
    /// Sets of blocks that must be equal.
    pub keys: Vec<u32>,
}

impl BlockDesign {
    /// True if for every choice of `k` blocks some key has none of them. Then any k errors leave
    /// some key without an error.
    ///
    /// # Cost
    /// (blocks choose k) x keys.
    pub fn survives(&self, k: u32) -> bool {
        subsets(self.blocks, k.min(self.blocks)).all(|errors| self.keys.iter().any(|key| key & errors == 0))
    }

    /// Returns the keys over the bits set in `bits`. These are divided into blocks from the lowest
    /// bit up, the larger blocks first.
    ///
    /// # Panics
    /// Panics if there are fewer bits than blocks.
    pub fn over(&self, bits: u64) -> Vec<u64> {
        let width = bits.count_ones();
        assert!(width >= self.blocks, "{width} bits cannot be cut in {} blocks", self.blocks);
        let mut remaining = bits;
        let blocks: Vec<u64> = (0..self.blocks)
            .map(|block| {
                let size = width / self.blocks + u32::from(block < width % self.blocks);
                let block_bits = lowest(remaining, size);
                remaining &= !block_bits;
                block_bits
            })
            .collect();
        let mask = |key: &u32| {
            blocks.iter().enumerate().filter(|(block, _)| key >> block & 1 == 1).fold(0, |mask, (_, bits)| mask | bits)
        };
        self.keys.iter().map(mask).collect()
    }

    /// Returns p, the number of bits of the smallest key over a fingerprint of `f` bits.
    pub fn top_bits(&self, f: u32) -> u32 {
        self.over(width_mask(f)).iter().map(|key| key.count_ones()).min().unwrap_or(0)
    }
}

/// A design for fingerprints of `f` bits and distances up to `k`.
///
/// # Examples
/// 64 bits in four blocks of 16, of which one must be equal: whatever three bits differ, some block
/// has none of them.
/// ```
/// use webtwin_core::hamming::design::{BlockDesign, TableDesign};
///
/// let design = TableDesign::new(64, 3, &BlockDesign { blocks: 4, keys: vec![0b0001, 0b0010, 0b0100, 0b1000] });
/// assert_eq!((design.keys.len(), design.top_bits()), (4, 16));
/// assert!(design.survives_exhaustively());
/// // A probe of one table with 2^34 random fingerprints finds 2^18 of them.
/// assert_eq!(design.matches_a_probe(2f64.powi(34)), 262_144.0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TableDesign {
    /// Width of a fingerprint, in bits.
    pub f: u32,
    /// Largest distance, in bits.
    pub k: u32,
    /// Bits that must be equal, one mask for each table.
    pub keys: Vec<u64>,
}

impl TableDesign {
    /// Creates the design that results from a block design over all `f` bits.
    pub fn new(f: u32, k: u32, blocks: &BlockDesign) -> TableDesign {
        TableDesign { f, k, keys: blocks.over(width_mask(f)) }
    }

    /// Returns p of the smallest key, in bits.
    pub fn top_bits(&self) -> u32 {
        self.keys.iter().map(|key| key.count_ones()).min().unwrap_or(0)
    }

    /// Returns the number of fingerprints that a probe of one table finds among `documents` random
    /// ones, averaged over the tables.
    pub fn matches_a_probe(&self, documents: f64) -> f64 {
        let sum: f64 = self.keys.iter().map(|key| documents / 2f64.powi(key.count_ones() as i32)).sum();
        sum / self.keys.len() as f64
    }

    /// True if every error pattern of `k` bits leaves some key without an error.
    ///
    /// # Cost
    /// (f choose k) x keys: 75 million patterns for k = 6.
    pub fn survives_exhaustively(&self) -> bool {
        subsets_of_64(self.f, self.k).all(|errors| self.keys.iter().any(|key| key & errors == 0))
    }
}

/// Returns k if it is less than `f`, the number of bits of a fingerprint.
///
/// # Errors
/// Returns [`Error::Usage`] if k is `f` or more, because all fingerprints would then be near each
/// other.
pub fn k_below(f: u32, k: u32) -> Result<u32> {
    if k < f {
        Ok(k)
    } else {
        Err(Error::Usage(format!("k is {k} bits, but must be less than the {f} bits of a fingerprint")))
    }
}

/// Returns a mask of the lowest `f` bits.
pub fn width_mask(f: u32) -> u64 {
    if f >= 64 { u64::MAX } else { (1 << f) - 1 }
}

/// Returns the lowest `n` set bits of `bits`.
fn lowest(bits: u64, n: u32) -> u64 {
    let mut high_bits = bits;
    (0..n).for_each(|_| high_bits &= high_bits.wrapping_sub(1));
    bits & !high_bits
}

/// Yields all sets of `n` out of `size` elements, as bits, ascending.
pub fn subsets(size: u32, n: u32) -> impl Iterator<Item = u32> {
    subsets_of_64(size, n).map(|set| set as u32)
}

/// Yields the sets of [`subsets`], for up to 64 elements.
pub fn subsets_of_64(size: u32, n: u32) -> impl Iterator<Item = u64> {
    let first = (n <= size).then(|| width_mask(n));
    std::iter::successors(first, move |&set| {
        if set == 0 {
            return None;
        }
        // The next larger number with the same number of ones.
        let low = set & set.wrapping_neg();
        let ripple = set.checked_add(low)?;
        let next = ripple | ((set ^ ripple) / low) >> 2;
        (next & !width_mask(size) == 0).then_some(next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_are_all_and_each_once() {
        for (size, n, count) in [(5, 2, 10), (6, 3, 20), (4, 4, 1), (7, 0, 1), (3, 4, 0), (32, 1, 32)] {
            let sets: Vec<u32> = subsets(size, n).collect();
            assert_eq!(sets.len(), count, "{n} of {size}");
            assert!(sets.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(sets.iter().all(|set| set.count_ones() == n));
        }
        assert_eq!(subsets_of_64(64, 2).count(), 2016);
        assert_eq!(subsets_of_64(64, 63).count(), 64);
    }

    #[test]
    fn blocks_share_the_bits_out_evenly_and_completely() {
        let single_blocks = BlockDesign { blocks: 6, keys: (0..6).map(|block| 1 << block).collect() };
        let keys = single_blocks.over(u64::MAX);
        assert_eq!(keys.iter().map(|key| key.count_ones()).collect::<Vec<_>>(), [11, 11, 11, 11, 10, 10]);
        assert_eq!(keys.iter().fold(0, |all, key| all ^ key), u64::MAX);
        let odd = single_blocks.over(0x5555_5555_5555_5555);
        assert_eq!(odd.iter().fold(0, |all, key| all ^ key), 0x5555_5555_5555_5555);
    }

    #[test]
    fn a_design_that_lacks_a_key_does_not_survive() {
        let mut pigeons = BlockDesign { blocks: 4, keys: vec![1, 2, 4, 8] };
        assert!(pigeons.survives(3));
        assert!(TableDesign::new(32, 3, &pigeons).survives_exhaustively());
        pigeons.keys.pop();
        assert!(!pigeons.survives(3));
        assert!(!TableDesign::new(32, 3, &pigeons).survives_exhaustively());
    }
}
