//! Counts pairs from partitions: step 6 of [`crate::pairs::overlap_join`].
//!
//! A bucket is counted as a whole if it fits in memory. A larger bucket is divided by its pages,
//! and the pairs of a single page by their partners, until each part fits. Pairs that are moved to
//! a part leave the bucket, so bucket and parts together take what the bucket took.
//!
//! # Cost
//! Moves a pair of a divided bucket once more for each level of division. Each level has up to 64
//! parts.

use std::ops::Range;

use webtwin_base::error::Result;
use webtwin_base::ids::{Number, Page};
use webtwin_core::overlap::count_pairs::{CountScratch, count, pair_key, smaller};
use webtwin_spill::{MemoryPool, Partitions};

/// Number of pairs that are always counted as a whole. Their memory is reserved.
const MIN_BATCH_PAIRS: u64 = 1 << 19;

/// Number of pairs beyond which the division of a bucket costs less than cache misses in a larger
/// one.
const MAX_BATCH_PAIRS: u64 = 1 << 21;

/// Bytes of a pair while it is counted.
const PAIR_BYTES: u64 = 28;

/// Maximum number of parts of a bucket, as a power of two. The open blocks of the parts take 4 MiB.
const MAX_PART_BITS: u32 = 6;

/// Range of pairs, numbered by [`pair_key`]: 2^`bits` pairs from `first`.
#[derive(Debug, Clone, Copy)]
struct Keys {
    first: u64,
    bits: u32,
}

impl Keys {
    /// Returns the number of smaller pages in the range, at least one.
    fn pages(self) -> usize {
        1 << self.bits.saturating_sub(32)
    }
}

/// Counts the pairs of buckets, and emits those that occur often enough.
pub(super) struct PairCounter<F> {
    /// Minimum number of occurrences.
    min_shared: u32,
    /// Number of bits of a page number.
    page_bits: u32,
    /// Memory pool of the pairs.
    pool: MemoryPool,
    /// Minimum and maximum number of pairs that are counted as a whole, both powers of two.
    batch_bounds: [u64; 2],
    bucket: Vec<u64>,
    scratch: CountScratch,
    /// Bytes of parts that were written to disk.
    pub(super) spilled_bytes: u64,
    emit: F,
}

impl<F: FnMut(Page, Page, u32)> PairCounter<F> {
    /// Creates a counter for pairs of `pages` pages within the pool. `emit` is passed to
    /// [`count`].
    pub(super) fn new(min_shared: u32, pages: usize, pool: MemoryPool, emit: F) -> PairCounter<F> {
        let page_bits = pages.next_power_of_two().trailing_zeros();
        let (batch_bounds, spilled_bytes) = ([MIN_BATCH_PAIRS, MAX_BATCH_PAIRS], 0);
        let (bucket, scratch) = Default::default();
        PairCounter { min_shared, page_bits, pool, batch_bounds, bucket, scratch, spilled_bytes, emit }
    }

    /// Takes the pairs of a bucket, whose smaller pages are `pages`, and counts them. They are
    /// emitted in ascending order.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub(super) fn count(&mut self, pairs: &mut Partitions<u64>, bucket: usize, pages: Range<usize>) -> Result<()> {
        let bits = 32 + pages.len().next_power_of_two().trailing_zeros();
        self.count_keys(pairs, bucket, Keys { first: pair_key(Page::from_index(pages.start), Page(0)), bits }, 0)
    }

    /// Frees the memory of counting, before other data fills it.
    pub(super) fn release(&mut self) {
        (self.bucket, self.scratch) = Default::default();
    }

    /// Counts a part of a bucket, like [`PairCounter::count`]. `held_bytes` is the memory of other
    /// buckets.
    fn count_keys(&mut self, pairs: &mut Partitions<u64>, bucket: usize, keys: Keys, held_bytes: u64) -> Result<()> {
        let rows = pairs.rows_of(bucket);
        let held_bytes = held_bytes + pairs.held_bytes();
        let batch_rows = self.batch_rows(self.pool.of_worker().saturating_sub(held_bytes));
        if rows <= batch_rows {
            pairs.take(bucket, &mut self.bucket)?;
            count(&self.bucket, smaller(keys.first), keys.pages(), self.min_shared, &mut self.scratch, &mut self.emit);
            return Ok(());
        }
        if keys.bits == 0 {
            // All pairs of this part are the same pair.
            pairs.forget(bucket);
            if rows >= u64::from(self.min_shared) {
                (self.emit)(smaller(keys.first), Page(keys.first as u32), rows as u32);
            }
            return Ok(());
        }
        // The partner of a page has no more bits than a page number.
        let (bits, min_bits) = if keys.bits > 32 { (keys.bits, 32) } else { (keys.bits.min(self.page_bits), 0) };
        let part_bits = (bits - min_bits).min((rows / batch_rows).ilog2() + 2).min(MAX_PART_BITS);
        let left = bits - part_bits;
        self.release();
        let held_bytes = held_bytes - pairs.held_bytes_of(bucket);
        let allowed_bytes = self.pool.of_worker().saturating_sub(held_bytes);
        let mut parts = Partitions::new(1 << part_bits, &self.pool.limited(allowed_bytes));
        pairs.drain(bucket, &mut self.bucket, |piece| {
            piece.iter().try_for_each(|&pair| parts.push(((pair - keys.first) >> left) as usize, pair))
        })?;
        for part in 0..parts.count() {
            let keys = Keys { first: keys.first + ((part as u64) << left), bits: left };
            self.count_keys(&mut parts, part, keys, held_bytes)?;
        }
        self.spilled_bytes += parts.spilled_bytes();
        Ok(())
    }

    /// Returns the number of pairs that are counted as a whole if `free_bytes` bytes are free.
    fn batch_rows(&self, free_bytes: u64) -> u64 {
        let [min_rows, max_rows] = self.batch_bounds;
        (1 << (free_bytes / PAIR_BYTES).max(1).ilog2()).clamp(min_rows, max_rows)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the pairs found among `pairs`, where `pages` are the smaller pages of the bucket.
    fn counted_pairs(
        pairs: &[u64],
        pages: Range<usize>,
        min_shared: u32,
        batch_rows: u64,
        allowed_bytes: u64,
    ) -> Vec<(Page, Page, u32)> {
        let pool = MemoryPool::default().limited(allowed_bytes);
        let mut buckets = Partitions::new(1, &pool);
        pairs.iter().try_for_each(|&pair| buckets.push(0, pair)).unwrap();
        let mut pair_counts = Vec::new();
        let mut counter = PairCounter::new(min_shared, 1000, pool, |a, b, f| pair_counts.push((a, b, f)));
        counter.batch_bounds = [batch_rows.next_power_of_two(); 2];
        counter.count(&mut buckets, 0, pages).unwrap();
        assert_eq!((buckets.rows(), buckets.held_bytes()), (0, 0));
        pair_counts
    }

    proptest! {
        #[test]
        fn partial_counts_equal_a_single_count(
            first in prop::sample::select(vec![0u32, 7, 64]),
            pairs in prop::collection::vec((0u32..10, 0u32..40), 0..3000),
            pages in 10usize..20, least in 0u32..6, together in 1u64..500,
        ) {
            let keys: Vec<u64> = pairs.iter().map(|&(a, b)| pair_key(Page(first + a), Page(first + 20 + b * b / 2))).collect();
            let mut counted_as_whole = Vec::new();
            count(&keys, Page(first), pages, least, &mut CountScratch::default(), |a, b, f| counted_as_whole.push((a, b, f)));
            let start = first as usize;
            prop_assert_eq!(counted_pairs(&keys, start..start + pages, least, together, u64::MAX), counted_as_whole);
        }
    }

    #[test]
    fn large_bucket_is_split_in_memory_if_it_fits_and_on_disk_otherwise() {
        // Two thirds of the pairs have the same smaller page, and half of these are the same pair.
        let key = |at: u64| match at % 6 {
            0 | 1 => pair_key(Page(3), Page(5)),
            2 | 3 => pair_key(Page(3), Page((at * at % 900) as u32 + 10)),
            _ => pair_key(Page((at % 7) as u32), Page((at * 7 % 800) as u32 + 10)),
        };
        let keys: Vec<u64> = (0..600_000).map(key).collect();
        let expected = counted_pairs(&keys, 0..8, 2, 1 << 20, u64::MAX);
        assert!(expected.contains(&(Page(3), Page(5), 200_000)));
        for (batch_rows, allowed_bytes) in [(1 << 16, u64::MAX), (1 << 10, u64::MAX), (1 << 16, 1 << 20), (1 << 10, 0)]
        {
            assert!(
                counted_pairs(&keys, 0..8, 2, batch_rows, allowed_bytes) == expected,
                "{batch_rows} {allowed_bytes}"
            );
        }
        // Moved pairs take the place of the originals, so everything fits where the bucket did.
        let pool = |bytes| MemoryPool::default().limited(bytes);
        for (allowed_bytes, spills) in [(5_000_000, false), (1_000_000, true)] {
            let mut buckets = Partitions::new(1, &pool(5_000_000));
            keys.iter().try_for_each(|&pair| buckets.push(0, pair)).unwrap();
            let mut counter = PairCounter::new(2, 1000, pool(allowed_bytes), |_, _, _| {});
            counter.batch_bounds = [1 << 16; 2];
            counter.count(&mut buckets, 0, 0..8).unwrap();
            assert_eq!((counter.spilled_bytes > 0, buckets.spilled_bytes()), (spills, 0));
        }
    }

    #[test]
    fn more_free_memory_allows_larger_batches() {
        let counter = PairCounter::new(1, 1, MemoryPool::default().limited(0), |_, _, _| {});
        let batch_of = |bytes| counter.batch_rows(bytes);
        assert_eq!(
            [0, 20 << 20, 28 << 20, 50 << 20, u64::MAX].map(batch_of),
            [1 << 19, 1 << 19, 1 << 20, 1 << 20, 1 << 21]
        );
    }
}
