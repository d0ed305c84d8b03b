//! Rows in ascending order over all workers: all of them at the first worker, or, if they have many
//! bytes, in ranges that are dealt to the processes in turn.
//!
//! The ranges follow from the rows alone, so they are the same with any number of workers.

use std::borrow::Cow;

use itertools::Itertools;
use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::error::Result;
use webtwin_core::applications::file_part::FilePart;
use webtwin_engine::{Net, Owners};
use webtwin_spill::{SortedOutput, Sorter, SpillRows};

/// Number of rows for each range in the sample from which the bounds of ranges are taken.
const SAMPLES_A_RANGE: u64 = 64;

/// Row with a key by which rows are ordered first.
pub trait RangedRow: Ord + Clone + Serialize + DeserializeOwned + Send + 'static {
    /// Type of the key.
    type Key: Ord + Clone + Serialize + DeserializeOwned + Send + 'static;

    /// Returns the key.
    fn key(&self) -> Self::Key;
}

/// Ranges of sorted rows, which are dealt to the workers.
#[derive(Debug)]
pub struct SortedRanges<T: RangedRow> {
    /// First key of each range but the first one, ascending.
    bounds: Vec<T::Key>,
    owners: RangeOwners,
    worker: usize,
    /// Rows of the ranges of this worker.
    rows: SortedOutput<T>,
}

impl<T: RangedRow> SortedRanges<T> {
    /// Sorts the rows of all workers, in ranges of about `range_bytes` bytes in serialised form.
    /// Takes two rounds, or three if there are several ranges.
    ///
    /// # Errors
    /// Returns any error of the disk, and an error if the run has ended.
    ///
    /// # Memory
    /// That of [`Sorter`], and in each process 64 keys for each range.
    pub fn sort(net: &mut Net<'_>, name: &str, rows: &SpillRows<T>, range_bytes: u64) -> Result<SortedRanges<T>> {
        let [bytes, count] = net.all_sum(name, [rows.bytes(), rows.len() as u64])?;
        let ranges = bytes / range_bytes + 1;
        let bounds = if ranges > 1 { bounds(net, name, rows, ranges, count)? } else { Vec::new() };
        let owners = RangeOwners { processes: net.processes(), workers: net.workers_per_process() };
        let mut sorter = Sorter::new(&net.memory);
        let rows = rows.rows().map_ok(|row| (owners.owner(range(&bounds, &row)), row));
        net.exchange_values_into(name, rows, |row| sorter.push(row))?;
        Ok(SortedRanges { bounds, owners, worker: net.index(), rows: sorter.finish()? })
    }

    /// Sorts rows that each worker has made of its ranges of these rows. If there is one range, all
    /// rows are at the first worker already, and no round is needed.
    ///
    /// # Errors
    /// Returns the errors of [`SortedRanges::sort`].
    pub fn sort_derived<U: RangedRow>(
        &self,
        net: &mut Net<'_>,
        name: &str,
        rows: &SpillRows<U>,
        range_bytes: u64,
    ) -> Result<SortedRanges<U>> {
        if !self.bounds.is_empty() {
            return SortedRanges::sort(net, name, rows, range_bytes);
        }
        let mut sorter = Sorter::new(&net.memory);
        rows.rows().try_for_each(|row| sorter.push(row?))?;
        Ok(SortedRanges { bounds: Vec::new(), owners: self.owners, worker: self.worker, rows: sorter.finish()? })
    }

    /// Calls `visit` with each range of this worker and its rows, ascending. `visit` must take all
    /// rows.
    ///
    /// # Errors
    /// Returns the first error of `visit`. Each row may be an error of the disk.
    pub fn each_range<'s>(
        &'s self,
        mut visit: impl FnMut(FilePart, &mut dyn Iterator<Item = Result<Cow<'s, T>>>) -> Result<()>,
    ) -> Result<()> {
        let (count, mut rows) = (self.bounds.len() + 1, self.rows.rows().peekable());
        let mut own_ranges = (0..count).filter(|&range| self.owners.owner(range) == self.worker);
        own_ranges.try_for_each(|number| {
            // An error ends the visit, so it may belong to any range.
            let is_in =
                |row: &Result<Cow<'s, T>>| row.as_ref().map_or(true, |row| range(&self.bounds, &**row) == number);
            visit(FilePart { number, count }, &mut rows.peeking_take_while(is_in))
        })
    }
}

/// Mapping of ranges to workers: each range goes to the next process.
#[derive(Debug, Clone, Copy)]
struct RangeOwners {
    processes: usize,
    workers: usize,
}

impl Owners<usize> for RangeOwners {
    fn owner(&self, range: usize) -> usize {
        range % self.processes * self.workers + range / self.processes % self.workers
    }
}

/// Returns the number of the range of a row.
fn range<T: RangedRow>(bounds: &[T::Key], row: &T) -> usize {
    if bounds.is_empty() { 0 } else { bounds.partition_point(|bound| *bound <= row.key()) }
}

/// Returns the first keys of all but the first of `ranges` ranges with about equal numbers of rows,
/// from a sample of all `count` rows.
fn bounds<T: RangedRow>(
    net: &mut Net<'_>,
    name: &str,
    rows: &SpillRows<T>,
    ranges: u64,
    count: u64,
) -> Result<Vec<T::Key>> {
    let step = (count / (SAMPLES_A_RANGE * ranges)).max(1);
    let is_sampled = |key: &T::Key| {
        let bytes = bincode::serialize(key).expect("plain values go into memory");
        xxh3_64(&bytes).is_multiple_of(step)
    };
    let keys = rows.rows().map_ok(|row| row.key()).filter_ok(is_sampled);
    let own_sample: Vec<T::Key> = keys.collect::<Result<_>>()?;
    let mut sample: Vec<T::Key> = net.all_gather(name, own_sample)?.into_iter().flatten().collect();
    sample.sort_unstable();
    let place = |range: u64| (range * sample.len() as u64 / ranges) as usize;
    let mut bounds: Vec<T::Key> = (1..ranges).filter_map(|range| sample.get(place(range)).cloned()).collect();
    bounds.dedup();
    Ok(bounds)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use webtwin_engine::{ClusterLayout, run};
    use webtwin_spill::MemoryPool;

    impl RangedRow for (String, u32) {
        type Key = String;

        fn key(&self) -> String {
            self.0.clone()
        }
    }

    /// Returns the rows of all ranges by number, sorted by several workers.
    fn ranges(rows: &[(String, u32)], workers: usize, range_bytes: u64) -> BTreeMap<usize, Vec<(String, u32)>> {
        let rows = rows.to_vec();
        let ranges = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| {
            let mut own_rows = SpillRows::new(&MemoryPool::default());
            own_rows.extend(rows.iter().skip(net.index()).step_by(workers).cloned())?;
            let sorted = SortedRanges::sort(net, "rows", &own_rows, range_bytes)?;
            let mut own_ranges = Vec::new();
            sorted.each_range(|part, rows| {
                own_ranges.push((part, rows.map_ok(Cow::into_owned).collect::<Result<Vec<_>>>()?));
                Ok(())
            })?;
            Ok(own_ranges)
        });
        let ranges: Vec<_> = ranges.unwrap().into_iter().flatten().collect();
        assert!(ranges.iter().all(|(part, _)| part.count == ranges.len()));
        ranges.into_iter().map(|(part, rows)| (part.number, rows)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn ranges_are_all_rows_in_order_and_the_same_with_any_number_of_workers(
            rows in prop::collection::vec(("[a-d]{0,3}", 0u32..9), 0..200), range_bytes in 1u64..2000
        ) {
            let sorted_by_one = ranges(&rows, 1, range_bytes);
            let mut sorted = rows.clone();
            sorted.sort();
            prop_assert_eq!(sorted_by_one.values().flatten().collect::<Vec<_>>(), sorted.iter().collect::<Vec<_>>());
            prop_assert!([2, 3].iter().all(|&workers| ranges(&rows, workers, range_bytes) == sorted_by_one));
            prop_assert_eq!(ranges(&rows, 2, 1 << 20).len(), 1);
        }
    }

    #[test]
    fn large_lists_are_divided_evenly() {
        let rows: Vec<(String, u32)> = (0..5000).map(|number| (format!("{number:05}"), number)).collect();
        let sizes: Vec<usize> = ranges(&rows, 3, 10_000).values().map(Vec::len).collect();
        assert!(sizes.len() > 7 && sizes.iter().all(|&size| (200..1200).contains(&size)), "{sizes:?}");
    }
}
