//! Coarse counting: finds the pairs that may occur T times without storing a pair.
//!
//! The hashing scan adds each pair of pages that share a chunk to counters A\[1..m\]. A bucket
//! whose counter reaches T is heavy. The candidate-selection scan passes only pairs whose buckets
//! are all heavy, and these are counted exactly. A counter is never below the count of any of its
//! pairs, so no pair is missed. Light pairs that pass cost time but never produce a wrong row.
//!
//! Each worker counts the chunks it owns in its own counters. The counters of all workers are added
//! up before heavy buckets are determined.
//!
//! # Source
//! \[SGM98\] section 2.2; several hash functions as in its \[17\], *Computing iceberg queries
//! efficiently*.
//!
//! # Deviations
//! - A bucket is heavy if A\[i\] >= T. The paper has "> T", which would lose pairs with F = T.
//! - The hash functions of a pair select counters within one line of 64, so that a pair costs one
//!   memory access, and only the smallest counters of the pair are raised ("conservative update").
//!   With both changes the counters remain upper bounds.
//! - Counters are bytes and saturate at 255, which is used in place of T if T is larger.
//! - If m counters do not fit in memory, another hash function splits the pairs into parts. The
//!   hashing scan is repeated for each part, in the same memory; candidates are selected in one
//!   scan.

use webtwin_base::ids::splitmix64;

/// Number of counters in a line.
const LINE: usize = 64;

/// Number and shape of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Number of lines of 64 counters in each part.
    pub lines: u32,
    /// Number of counters of a pair, 1 to 3.
    pub hashes: u32,
    /// Number of parts that the pairs are split into, each with its own hashing scan.
    pub parts: u32,
}

/// Location of the counters of a pair.
struct Place {
    part: u32,
    line: usize,
    /// Positions within the line: six bits for each hash function.
    within: u64,
}

impl Layout {
    #[inline]
    fn place(&self, pair: u64) -> Place {
        let hash = splitmix64(pair);
        let scaled = u128::from(hash) * u128::from(self.parts);
        let line = (scaled as u64 as u128 * u128::from(self.lines)) >> 64;
        // The line takes the leading bits; the six-bit fields come from a product of all of them.
        Place {
            part: (scaled >> 64) as u32,
            line: line as usize,
            within: hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 16,
        }
    }

    /// Returns the bytes of the counters of one part, including the pairs buffered for them, and
    /// the bytes of the bitmaps of all parts.
    pub fn bytes(&self) -> (u64, u64) {
        let counters = u64::from(self.lines) * LINE as u64;
        let regions = u64::from(self.lines.div_ceil(1 << REGION_BITS));
        (counters + regions * 4 * PENDING as u64, counters / 8 * u64::from(self.parts))
    }
}

/// Binary logarithm of the lines of a region: 512 KiB of counters, which stay in a core's cache
/// while pairs are added to them.
const REGION_BITS: u32 = 13;

/// Number of pairs that are buffered for a region before its counters are raised.
const PENDING: usize = 1 << 14;

/// Counters A\[1..m\] of one worker for one part of the pairs.
///
/// Counters take far more memory than a cache holds. Therefore pairs are buffered by region and
/// added when a buffer is full.
///
/// # Examples
/// With T = 3, the pair that occurs three times is a candidate. A pair that occurs once is no
/// candidate, unless it shares its counters with frequent pairs.
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::coarse_count::{CoarseCounter, HeavyBuckets, Layout};
/// use webtwin_core::overlap::count_pairs::pair_key;
///
/// let layout = Layout { lines: 16, hashes: 2, parts: 1 };
/// let (frequent, rare) = (pair_key(Page(0), Page(1)), pair_key(Page(0), Page(2)));
///
/// let mut counter = CoarseCounter::new(layout);
/// [frequent, rare, frequent, frequent].into_iter().for_each(|pair| counter.add(pair));
/// let mut heavy = HeavyBuckets::new(layout);
/// heavy.judge(counter.finish(), 3);
/// assert_eq!((heavy.may_hold(frequent), heavy.may_hold(rare)), (true, false));
/// ```
#[derive(Debug)]
pub struct CoarseCounter {
    layout: Layout,
    part: u32,
    counters: Vec<[u8; LINE]>,
    /// Buffered pairs of each region: the line within the region, then six bits for each hash
    /// function.
    pending: Vec<Vec<u32>>,
}

impl CoarseCounter {
    /// Creates counters that are all zero.
    pub fn new(layout: Layout) -> CoarseCounter {
        let regions = layout.lines.div_ceil(1 << REGION_BITS);
        CoarseCounter {
            layout,
            part: 0,
            counters: bytemuck::zeroed_vec(layout.lines as usize),
            pending: (0..regions).map(|_| Vec::with_capacity(PENDING)).collect(),
        }
    }

    /// Starts the hashing scan of a part.
    pub fn begin(&mut self, part: u32) {
        self.part = part;
        self.counters.fill([0; LINE]);
    }

    /// Counts a pair; ignores pairs of other parts.
    #[inline]
    pub fn add(&mut self, pair: u64) {
        let place = self.layout.place(pair);
        if place.part != self.part {
            return;
        }
        let region = place.line >> REGION_BITS;
        let line = place.line as u32 & ((1 << REGION_BITS) - 1);
        let pending = &mut self.pending[region];
        pending.push(line << 18 | place.within as u32 & 0x3_ffff);
        if pending.len() == PENDING {
            self.count_region(region);
        }
    }

    #[cold]
    fn count_region(&mut self, region: usize) {
        let lines = &mut self.counters[region << REGION_BITS..];
        match self.layout.hashes {
            1 => raise::<1>(lines, &self.pending[region]),
            2 => raise::<2>(lines, &self.pending[region]),
            _ => raise::<3>(lines, &self.pending[region]),
        }
        self.pending[region].clear();
    }

    /// Returns the counters, to be added up over workers.
    pub fn finish(&mut self) -> &[u8] {
        (0..self.pending.len()).for_each(|region| self.count_region(region));
        self.counters.as_flattened()
    }
}

/// Raises the smallest counters of each pair.
fn raise<const HASHES: usize>(lines: &mut [[u8; LINE]], pending: &[u32]) {
    for &pair in pending {
        let line = &mut lines[(pair >> 18) as usize];
        let at: [usize; HASHES] = std::array::from_fn(|hash| (pair >> (6 * hash)) as usize % LINE);
        let smallest = at.iter().fold(u8::MAX, |smallest, &at| smallest.min(line[at]));
        let raised = smallest.saturating_add(1);
        at.iter().for_each(|&at| line[at] = line[at].max(raised));
    }
}

/// BITMAP of \[SGM98\]: marks the heavy buckets of all parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeavyBuckets {
    layout: Layout,
    /// One bit for each counter, one word for each line, part after part.
    bits: Vec<u64>,
}

impl HeavyBuckets {
    /// Creates a bitmap that holds no part yet.
    pub fn new(layout: Layout) -> HeavyBuckets {
        HeavyBuckets { layout, bits: Vec::with_capacity(layout.lines as usize * layout.parts as usize) }
    }

    /// Adds the next part from its counters, summed over all workers. Counters of at least
    /// `min_count` are heavy.
    pub fn judge(&mut self, counters: &[u8], min_count: u32) {
        let threshold = min_count.clamp(1, 255) as u8;
        self.bits.extend(counters.chunks_exact(LINE).map(|line| {
            line.iter().enumerate().fold(0, |word, (bit, &count)| word | u64::from(count >= threshold) << bit)
        }));
    }

    /// True if a pair is a candidate, that is, if all of its buckets are heavy.
    #[inline]
    pub fn may_hold(&self, pair: u64) -> bool {
        let place = self.layout.place(pair);
        let word = self.bits[place.part as usize * self.layout.lines as usize + place.line];
        (0..self.layout.hashes).all(|hash| word >> ((place.within >> (6 * hash)) % LINE as u64) & 1 == 1)
    }

    /// Returns the fraction of heavy buckets, in thousandths.
    pub fn heavy_thousandths(&self) -> u64 {
        let heavy: u64 = self.bits.iter().map(|word| u64::from(word.count_ones())).sum();
        heavy * 1000 / (self.bits.len() as u64 * LINE as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_pair_that_occurs_t_times_is_missed(
            pairs in prop::collection::vec(0u64..60, 0..600), workers in 1usize..4, least in 1u32..12,
            lines in 1u32..4, hashes in 1u32..4, parts in 1u32..4
        ) {
            let layout = Layout { lines, hashes, parts };
            let mut heavy = HeavyBuckets::new(layout);
            let mut counters: Vec<_> = (0..workers).map(|_| CoarseCounter::new(layout)).collect();
            for part in 0..parts {
                let mut sum = vec![0u8; lines as usize * LINE];
                for (worker, counter) in counters.iter_mut().enumerate() {
                    counter.begin(part);
                    pairs.iter().skip(worker).step_by(workers).for_each(|&pair| counter.add(pair));
                    sum.iter_mut().zip(counter.finish()).for_each(|(sum, &more)| *sum = sum.saturating_add(more));
                }
                heavy.judge(&sum, least);
            }
            let mut exact = BTreeMap::new();
            pairs.iter().for_each(|&pair| *exact.entry(pair).or_insert(0u32) += 1);
            prop_assert!(exact.iter().all(|(&pair, &count)| count < least || heavy.may_hold(pair)));
        }
    }

    #[test]
    fn light_pairs_are_filtered_while_counters_suffice() {
        // 400,000 pairs that occur once and 100 that occur 25 times; a counter for every three
        // pairs.
        let layout = Layout { lines: 2_048, hashes: 2, parts: 1 };
        let mut counter = CoarseCounter::new(layout);
        (0..400_000).for_each(|pair| counter.add(pair));
        (0..25).for_each(|_| (1_000_000..1_000_100).for_each(|pair| counter.add(pair)));
        let mut heavy = HeavyBuckets::new(layout);
        heavy.judge(counter.finish(), 25);
        assert!((1_000_000..1_000_100).all(|pair| heavy.may_hold(pair)));
        assert!((0..400_000).filter(|&pair| heavy.may_hold(pair)).count() < 400);
    }

    #[test]
    fn counters_saturate_at_255() {
        let layout = Layout { lines: 1, hashes: 1, parts: 1 };
        let mut counter = CoarseCounter::new(layout);
        (0..300).for_each(|_| counter.add(5));
        let mut heavy = HeavyBuckets::new(layout);
        heavy.judge(counter.finish(), 299);
        assert!(heavy.may_hold(5));
    }
}
