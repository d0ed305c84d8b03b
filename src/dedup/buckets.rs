//! Rows partitioned into buckets by a hash, which are processed bucket by bucket in bounded memory.
//!
//! The number of buckets is determined before the input is read. If there are more rows than
//! expected (texts of a few words have more keys than long ones), a bucket that does not fit is
//! divided by further bits of the hash. Rows with the same hash stay together, so they must fit.

use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

use super::corpus::{BandRow, ExactRow};
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;
use webtwin_spill::{MemoryPool, Partitions};

/// Row with a hash by which it is partitioned.
pub(crate) trait HashedRow: Pod + Send {
    /// Returns the hash, whose bits must be uniformly distributed.
    fn hash(&self) -> u64;
}

impl HashedRow for ExactRow {
    fn hash(&self) -> u64 {
        self.hash[0]
    }
}

impl HashedRow for BandRow {
    fn hash(&self) -> u64 {
        self.key
    }
}

/// Returns the bucket of a hash. Each bucket is an equal range of hashes.
pub(crate) fn bucket(hash: u64, buckets: usize) -> usize {
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

/// Returns the part of a bucket that a hash belongs to. It depends on the position of the hash
/// within the bucket's range.
fn part(hash: u64, buckets: usize, parts: usize) -> usize {
    bucket(hash.wrapping_mul(buckets as u64), parts)
}

/// Memory limits of rows that are being processed.
#[derive(Debug, Clone)]
pub(crate) struct WorkBounds {
    /// Bytes for each row, including the data derived from it.
    pub row_bytes: u64,
    /// Maximum bytes of the rows that a thread processes at a time.
    pub thread_bytes: u64,
    /// Maximum bytes of the rows with one hash. Only one thread at a time may exceed `of_thread`.
    pub hash_bytes: u64,
    /// Total memory allowed, for error messages.
    pub memory_bytes: u64,
    /// Pool for the parts of divided buckets.
    pub pool: MemoryPool,
}

/// Calls `work` with all rows of each bucket, or of a part of a bucket that is too large, on
/// several threads. Each thread has an outcome of its own, which it passes to `work`. Rows with the
/// same hash are passed together.
///
/// # Errors
/// Returns any error of `work` and of the disk with the rows, and [`Error::MemoryLimit`] if the
/// rows with one hash do not fit.
///
/// # Cost
/// Rows of a divided bucket are written and read once more.
pub(crate) fn each_bucket<T: HashedRow, O: Send>(
    mut partitions: Vec<&mut Partitions<T>>,
    threads: usize,
    bounds: &WorkBounds,
    outcome: impl Fn() -> O + Sync,
    work: impl Fn(&mut O, &mut Vec<T>) -> Result<()> + Sync,
) -> Result<Vec<O>> {
    let buckets = partitions.first().map_or(0, |part| part.count());
    let partitions = Mutex::new(&mut partitions);
    let one_at_a_time = Mutex::new(());
    let most_rows = (bounds.thread_bytes / bounds.row_bytes).max(1);
    let new_outcome = || (outcome(), Vec::new(), Vec::new());
    let outcomes = threads::for_each(threads, buckets, new_outcome, |(outcome, rows, buffer), number| {
        let mut undivided = partitions.lock().unwrap_or_else(PoisonError::into_inner);
        let count: u64 = undivided.iter().map(|of_thread| of_thread.rows_of(number)).sum();
        if count <= most_rows {
            gather(&mut undivided, number, rows, buffer)?;
            drop(undivided);
            return work(outcome, rows);
        }
        // Twice the number needed for a perfectly even distribution, because the distribution is
        // only approximately even.
        let parts = (2 * count.div_ceil(most_rows)).next_power_of_two() as usize;
        let mut parts_of_bucket = Partitions::new(parts, &bounds.pool.limited(0));
        for thread_rows in undivided.iter_mut() {
            thread_rows.take(number, buffer)?;
            buffer.iter().try_for_each(|row| parts_of_bucket.push(part(row.hash(), buckets, parts), *row))?;
        }
        drop(undivided);
        (*rows, *buffer) = (Vec::new(), Vec::new());
        for number in 0..parts {
            let count = parts_of_bucket.rows_of(number);
            let needed_bytes = count * bounds.row_bytes;
            if needed_bytes > bounds.hash_bytes.max(bounds.thread_bytes) {
                return Err(Error::MemoryLimit {
                    what: format!("dedup of {count} texts with the same key"),
                    needed_bytes: (u128::from(bounds.memory_bytes) * u128::from(needed_bytes)
                        / u128::from(bounds.hash_bytes)) as u64,
                    allowed_bytes: bounds.memory_bytes,
                    setting: "--memory".into(),
                });
            }
            // Parts above the limit are processed one at a time, so that only one of them is in
            // memory.
            let _alone = (count > most_rows).then(|| one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner));
            parts_of_bucket.take(number, rows)?;
            work(outcome, rows)?;
            if count > most_rows {
                *rows = Vec::new();
            }
        }
        Ok(())
    })?;
    Ok(outcomes.into_iter().map(|(outcome, ..)| outcome).collect())
}

/// Replaces the content of `rows` with the rows of a bucket. `buffer` is a scratch buffer.
fn gather<T: Pod>(
    partitions: &mut [&mut Partitions<T>],
    bucket: usize,
    rows: &mut Vec<T>,
    buffer: &mut Vec<T>,
) -> Result<()> {
    rows.clear();
    for thread_rows in partitions.iter_mut() {
        thread_rows.take(bucket, buffer)?;
        rows.extend_from_slice(buffer);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds(rows: u64, hash_bytes: u64) -> WorkBounds {
        let pool = MemoryPool::default();
        WorkBounds { row_bytes: 48, thread_bytes: rows * 48, hash_bytes: hash_bytes * 48, memory_bytes: 1 << 20, pool }
    }

    fn worked_on(keys: &[u64], buckets: usize, bounds: &WorkBounds) -> Result<Vec<Vec<u64>>> {
        let limited = |bytes| Partitions::new(buckets, &bounds.pool.limited(bytes));
        let mut halves = [limited(0), limited(1 << 20)];
        for (number, &key) in keys.iter().enumerate() {
            halves[number % 2].push(bucket(key, buckets), BandRow { key, record: [0, number as u32] }).unwrap();
        }
        let results =
            each_bucket(halves.iter_mut().collect(), 2, bounds, Vec::new, |result: &mut Vec<Vec<u64>>, rows| {
                result.push(rows.iter().map(|row| row.key).collect());
                Ok(())
            });
        results.map(|done| done.into_iter().flatten().collect())
    }

    proptest! {
        #[test]
        fn all_rows_are_returned_once_and_grouped_by_hash(
            keys in prop::collection::vec(any::<u64>(), 0..400), copies in 1usize..5, buckets in 1usize..9, most in 1u64..60,
        ) {
            let mut keys: Vec<u64> = keys.iter().flat_map(|&key| vec![key; copies]).collect();
            let done = worked_on(&keys, buckets, &bounds(most, 1000)).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for rows in &done {
                let of_these: std::collections::BTreeSet<u64> = rows.iter().copied().collect();
                prop_assert!(of_these.is_disjoint(&seen));
                seen.extend(of_these);
            }
            let mut got: Vec<u64> = done.into_iter().flatten().collect();
            got.sort_unstable();
            keys.sort_unstable();
            prop_assert_eq!(got, keys);
        }
    }

    #[test]
    fn a_bucket_that_is_too_large_is_divided() {
        let keys: Vec<u64> = (0..20_000u64).map(|at| xxhash_rust::xxh3::xxh3_64(&at.to_le_bytes())).collect();
        let results = worked_on(&keys, 4, &bounds(1000, 1000)).unwrap();
        assert!(results.iter().all(|rows| rows.len() <= 1000) && results.len() >= 20);
    }

    #[test]
    fn rejects_rows_of_one_hash_that_do_not_fit_with_the_required_memory() {
        let refused = worked_on(&[7; 3000], 4, &bounds(100, 1000)).unwrap_err();
        let Error::MemoryLimit { needed_bytes, .. } = refused else { panic!("{refused}") };
        assert_eq!(needed_bytes, 3 << 20);
        assert!(refused.to_string().contains("3000 texts"), "{refused}");
        assert_eq!(worked_on(&[7; 900], 4, &bounds(100, 1000)).unwrap().concat().len(), 900);
    }
}
