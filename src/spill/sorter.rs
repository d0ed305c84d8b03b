//! Serialised rows in their order: in memory, or within a bound in sorted runs on the local disk, which are merged when they are
//! read.

use std::borrow::Cow;
use std::iter::once;

use bincode::Options;
use itertools::{Either, Itertools};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::pool::MemoryPool;
use super::rows::{Rows, codec};
use webtwin_base::error::Result;

/// Bytes of a run, as they are on disk.
const RUN_BYTES: u64 = 8 << 20;

/// Rows on their way into [`Sorted`].
///
/// # Memory
/// All of them; or within a bound those of a run, some tens of megabytes, until it is finished, and 4 bytes a row.
#[derive(Debug)]
pub struct Sorter<T> {
    /// Those that came last, or all, in the order they came.
    held: Vec<T>,
    /// Bytes of these on disk; 0 where they stay in memory.
    bytes: u64,
    /// Those with which they are a run.
    most: u64,
    on_disk: Rows<T>,
    /// Number of the row after each run.
    ends: Vec<usize>,
}

/// Rows in their order.
///
/// # Memory
/// As [`Sorter`].
#[derive(Debug)]
pub struct Sorted<T>(Sorter<T>);

impl<T: Ord + Clone + Serialize + DeserializeOwned> Sorter<T> {
    /// No rows yet.
    pub fn new(pool: &MemoryPool) -> Sorter<T> {
        Sorter::in_runs(pool, RUN_BYTES)
    }

    fn in_runs(pool: &MemoryPool, bytes: u64) -> Sorter<T> {
        let most = if pool.is_bounded() { bytes } else { u64::MAX };
        Sorter { held: Vec::new(), bytes: 0, most, on_disk: Rows::new(pool), ends: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn push(&mut self, row: T) -> Result<()> {
        if self.most < u64::MAX {
            self.bytes += codec().serialized_size(&row).expect("plain values have a size");
        }
        self.held.push(row);
        if self.bytes < self.most { Ok(()) } else { self.end_run() }
    }

    /// All rows, in their order.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn finish(mut self) -> Result<Sorted<T>> {
        if self.most < u64::MAX {
            self.end_run()?;
        }
        self.held.sort_unstable();
        Ok(Sorted(self))
    }

    fn end_run(&mut self) -> Result<()> {
        let mut run = std::mem::take(&mut self.held);
        run.sort_unstable();
        run.iter().try_for_each(|row| self.on_disk.push(row))?;
        self.ends.push(self.on_disk.len());
        self.bytes = 0;
        Ok(())
    }
}

impl<T: Ord + Clone + Serialize + DeserializeOwned> Sorted<T> {
    /// None yet of other rows, held as these are.
    pub fn alike<U: Serialize + DeserializeOwned>(&self) -> Sorter<U> {
        let Sorted(Sorter { most, on_disk, .. }) = self;
        Sorter { held: Vec::new(), bytes: 0, most: *most, on_disk: on_disk.alike(), ends: Vec::new() }
    }

    /// All of them, ascending.
    ///
    /// # Errors
    /// Those of the disk.
    ///
    /// # Cost
    /// Each row is read once, and compared as often as the number of runs has binary digits. Memory: a row and some tens of kilobytes a run.
    pub fn rows(&self) -> impl Iterator<Item = Result<Cow<'_, T>>> {
        let Sorted(Sorter { held, on_disk, ends, .. }) = self;
        let starts = once(0).chain(ends.iter().copied());
        let runs = starts.zip(ends).map(|(start, &end)| {
            let mut reader = on_disk.reader();
            Either::Left((start..end).map(move |number| reader.get(number).map(Cow::Owned)))
        });
        let held = Either::Right(held.iter().map(|row| Ok(Cow::Borrowed(row))));
        runs.chain(once(held)).kmerge_by(|x: &Result<Cow<'_, T>>, y| match (x, y) {
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
                let found = writer.finish().unwrap();
                let found: Vec<(String, u8)> = found.rows().map(|row| row.unwrap().into_owned()).collect();
                prop_assert_eq!(&found, &sorted);
            }
        }
    }
}
