//! External sort of serialised rows: in memory if that is unbounded, otherwise in sorted runs on
//! the local disk, which are merged during reading.

use std::borrow::Cow;
use std::iter::once;

use bincode::Options;
use itertools::{Either, Itertools};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::pool::MemoryPool;
use super::rows::{SpillRows, codec};
use webtwin_base::error::Result;

/// Size of a run on disk, in bytes.
const RUN_BYTES: u64 = 8 << 20;

/// Collects rows for [`SortedOutput`].
///
/// # Memory
/// All rows. If memory is bounded: the rows of an unfinished run, some tens of MB, and 4 bytes for
/// each row.
#[derive(Debug)]
pub struct Sorter<T> {
    /// Rows in memory, in insertion order: all of them, or those after the last run.
    rows_in_memory: Vec<T>,
    /// Size of the rows in `rows_in_memory` in serialised form, in bytes; 0 if all rows stay in
    /// memory.
    bytes: u64,
    /// Size at which the rows become a run, in bytes.
    run_bytes: u64,
    on_disk: SpillRows<T>,
    /// Number of rows up to the end of each run.
    ends: Vec<usize>,
}

/// Rows in ascending order.
///
/// # Memory
/// That of [`Sorter`].
#[derive(Debug)]
pub struct SortedOutput<T>(Sorter<T>);

impl<T: Ord + Clone + Serialize + DeserializeOwned> Sorter<T> {
    /// Creates a sorter without rows.
    pub fn new(pool: &MemoryPool) -> Sorter<T> {
        Sorter::in_runs(pool, RUN_BYTES)
    }

    fn in_runs(pool: &MemoryPool, bytes: u64) -> Sorter<T> {
        let limit = if pool.is_bounded() { bytes } else { u64::MAX };
        Sorter {
            rows_in_memory: Vec::new(),
            bytes: 0,
            run_bytes: limit,
            on_disk: SpillRows::new(pool),
            ends: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn push(&mut self, row: T) -> Result<()> {
        if self.run_bytes < u64::MAX {
            self.bytes += codec().serialized_size(&row).expect("plain values have a size");
        }
        self.rows_in_memory.push(row);
        if self.bytes < self.run_bytes { Ok(()) } else { self.end_run() }
    }

    /// Sorts all rows.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn finish(mut self) -> Result<SortedOutput<T>> {
        if self.run_bytes < u64::MAX {
            self.end_run()?;
        }
        self.rows_in_memory.sort_unstable();
        Ok(SortedOutput(self))
    }

    fn end_run(&mut self) -> Result<()> {
        let mut run = std::mem::take(&mut self.rows_in_memory);
        run.sort_unstable();
        run.iter().try_for_each(|row| self.on_disk.push(row))?;
        self.ends.push(self.on_disk.len());
        self.bytes = 0;
        Ok(())
    }
}

impl<T: Ord + Clone + Serialize + DeserializeOwned> SortedOutput<T> {
    /// Creates an empty sorter for rows of another type, with the same memory budget and the same
    /// disk.
    pub fn alike<U: Serialize + DeserializeOwned>(&self) -> Sorter<U> {
        let SortedOutput(Sorter { run_bytes: limit, on_disk, .. }) = self;
        Sorter { rows_in_memory: Vec::new(), bytes: 0, run_bytes: *limit, on_disk: on_disk.like(), ends: Vec::new() }
    }

    /// Returns all rows in ascending order.
    ///
    /// # Errors
    /// Each item may be an error of the disk.
    ///
    /// # Cost
    /// Each row is read once. The number of comparisons per row is the number of binary digits of
    /// the number of runs. Memory: one row and some tens of KB for each run.
    pub fn rows(&self) -> impl Iterator<Item = Result<Cow<'_, T>>> {
        let SortedOutput(Sorter { rows_in_memory, on_disk, ends, .. }) = self;
        let starts = once(0).chain(ends.iter().copied());
        let runs = starts.zip(ends).map(|(start, &end)| {
            let mut reader = on_disk.reader();
            Either::Left((start..end).map(move |number| reader.get(number).map(Cow::Owned)))
        });
        let sorted_in_memory = Either::Right(rows_in_memory.iter().map(|row| Ok(Cow::Borrowed(row))));
        runs.chain(once(sorted_in_memory)).kmerge_by(|x: &Result<Cow<'_, T>>, y| match (x, y) {
            (Ok(x), Ok(y)) => x < y,
            (x, _) => x.is_err(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_sorted_from_memory_and_from_runs_of_any_length(
            rows in prop::collection::vec(("[a-c]{0,4}", any::<u8>()), 0..60), run in 1u64..200
        ) {
            let mut sorted = rows.clone();
            sorted.sort();
            for pool in [MemoryPool::default(), MemoryPool::default().limited(0)] {
                let mut writer = Sorter::in_runs(&pool, run);
                rows.iter().try_for_each(|row| writer.push(row.clone())).unwrap();
                let output = writer.finish().unwrap();
                let output_rows: Vec<(String, u8)> = output.rows().map(|row| row.unwrap().into_owned()).collect();
                prop_assert_eq!(&output_rows, &sorted);
            }
        }
    }
}
