//! Rows that lie in buckets by a hash, bucket by bucket, within a bound of memory.
//!
//! How many buckets there are is decided before the input is read. Where there are more rows than expected (texts of a
//! few words make more keys than long ones), a bucket that does not fit is divided by further bits of the hash. Rows of
//! one hash stay together, so they must fit.

use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

use super::corpus::{BandRow, ExactRow};
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;
use webtwin_spill::{MemoryPool, Partitions};

/// What a row is found by.
pub(crate) trait Hashed: Pod + Send {
    /// The hash, of which all bits are alike.
    fn hash(&self) -> u64;
}

impl Hashed for ExactRow {
    fn hash(&self) -> u64 {
        self.hash[0]
    }
}

impl Hashed for BandRow {
    fn hash(&self) -> u64 {
        self.key
    }
}

/// The bucket of a hash: an equal share of all hashes.
pub(crate) fn bucket(hash: u64, buckets: usize) -> usize {
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

/// The same among the parts of a bucket: by what the hash has beyond the bits that the bucket took.
fn part(hash: u64, buckets: usize, parts: usize) -> usize {
    bucket(hash.wrapping_mul(buckets as u64), parts)
}

/// What rows may take while they are worked on.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// Bytes that a row takes, with what is made of it.
    pub row_bytes: u64,
    /// Bytes of all rows that a thread works on.
    pub of_thread: u64,
    /// Bytes of rows with one hash, of which only one thread has more than `of_thread` at a time.
    pub of_hash: u64,
    /// Memory that was allowed in all, and what stands for it in a refusal.
    pub memory_bytes: u64,
    /// For parts of buckets.
    pub pool: MemoryPool,
}

/// Calls `work` with all rows of each bucket, or part of one that is too large, in several threads, each with an outcome
/// of its own to work into. Rows with the same hash come together.
///
/// # Errors
/// Those of `work`, and of the disk that holds rows; [`Error::MemoryLimit`] when rows of one hash do not fit.
///
/// # Cost
/// Rows of a divided bucket are written and read once more.
pub(crate) fn each_bucket<T: Hashed, O: Send>(
    mut all: Vec<&mut Partitions<T>>,
    threads: usize,
    bounds: &Bounds,
    outcome: impl Fn() -> O + Sync,
    work: impl Fn(&mut O, &mut Vec<T>) -> Result<()> + Sync,
) -> Result<Vec<O>> {
    let buckets = all.first().map_or(0, |part| part.count());
    let all = Mutex::new(&mut all);
    let one_at_a_time = Mutex::new(());
    let most_rows = (bounds.of_thread / bounds.row_bytes).max(1);
    let begun = || (outcome(), Vec::new(), Vec::new());
    let done = threads::for_each(threads, buckets, begun, |(outcome, rows, some), number| {
        let mut whole = all.lock().unwrap_or_else(PoisonError::into_inner);
        let count: u64 = whole.iter().map(|of_thread| of_thread.rows_of(number)).sum();
        if count <= most_rows {
            gather(&mut whole, number, rows, some)?;
            drop(whole);
            return work(outcome, rows);
        }
        // Twice as many as needed if hashes were spread evenly, as they are not quite.
        let parts = (2 * count.div_ceil(most_rows)).next_power_of_two() as usize;
        let mut divided = Partitions::new(parts, &bounds.pool.limited(0));
        for of_thread in whole.iter_mut() {
            of_thread.take(number, some)?;
            some.iter().try_for_each(|row| divided.push(part(row.hash(), buckets, parts), *row))?;
        }
        drop(whole);
        (*rows, *some) = (Vec::new(), Vec::new());
        for number in 0..parts {
            let count = divided.rows_of(number);
            let needed = count * bounds.row_bytes;
            if needed > bounds.of_hash.max(bounds.of_thread) {
                return Err(Error::MemoryLimit {
                    what: format!("dedup with {count} texts that have the same key"),
                    needed_bytes: (u128::from(bounds.memory_bytes) * u128::from(needed) / u128::from(bounds.of_hash))
                        as u64,
                    allowed_bytes: bounds.memory_bytes,
                    setting: "--memory".into(),
                });
            }
            let _alone = (count > most_rows).then(|| one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner));
            divided.take(number, rows)?;
            work(outcome, rows)?;
            if count > most_rows {
                *rows = Vec::new();
            }
        }
        Ok(())
    })?;
    Ok(done.into_iter().map(|(outcome, ..)| outcome).collect())
}

/// Replaces the content of `rows` with the rows of a bucket; `some` is room.
fn gather<T: Pod>(all: &mut [&mut Partitions<T>], bucket: usize, rows: &mut Vec<T>, some: &mut Vec<T>) -> Result<()> {
    rows.clear();
    for of_thread in all.iter_mut() {
        of_thread.take(bucket, some)?;
        rows.extend_from_slice(some);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds(rows: u64, of_hash: u64) -> Bounds {
        let pool = MemoryPool::default();
        Bounds { row_bytes: 48, of_thread: rows * 48, of_hash: of_hash * 48, memory_bytes: 1 << 20, pool }
    }

    fn worked_on(keys: &[u64], buckets: usize, bounds: &Bounds) -> Result<Vec<Vec<u64>>> {
        let within = |bytes| Partitions::new(buckets, &bounds.pool.limited(bytes));
        let mut halves = [within(0), within(1 << 20)];
        for (at, &key) in keys.iter().enumerate() {
            halves[at % 2].push(bucket(key, buckets), BandRow { key, record: [0, at as u32] }).unwrap();
        }
        let done = each_bucket(halves.iter_mut().collect(), 2, bounds, Vec::new, |done: &mut Vec<Vec<u64>>, rows| {
            done.push(rows.iter().map(|row| row.key).collect());
            Ok(())
        });
        done.map(|done| done.into_iter().flatten().collect())
    }

    proptest! {
        #[test]
        fn all_rows_come_once_and_those_of_a_hash_together(
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
        let done = worked_on(&keys, 4, &bounds(1000, 1000)).unwrap();
        assert!(done.iter().all(|rows| rows.len() <= 1000) && done.len() >= 20);
    }

    #[test]
    fn rows_of_one_hash_that_do_not_fit_are_refused_with_the_memory_that_would_do() {
        let refused = worked_on(&[7; 3000], 4, &bounds(100, 1000)).unwrap_err();
        let Error::MemoryLimit { needed_bytes, .. } = refused else { panic!("{refused}") };
        assert_eq!(needed_bytes, 3 << 20);
        assert!(refused.to_string().contains("3000 texts"), "{refused}");
        assert_eq!(worked_on(&[7; 900], 4, &bounds(100, 1000)).unwrap().concat().len(), 900);
    }
}
