//! Groups rows that arrive in any order by ranges of a worker's pages, in bounded memory, so that
//! they can be read in the order of pages.

use std::ops::Range;

use bytemuck::Pod;

use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_spill::{Partitions, ReleaseOnDrop, SpillColumn, partition_bits};

/// Rows of a worker's pages, partitioned into ranges of pages.
///
/// # Memory
/// Holds all rows, or as many as the budget of the step allows. One range is in memory while it is
/// read.
pub struct PageRanges<T> {
    /// Number of pages of the worker. The next field is the number of pages of a range.
    pages: usize,
    range: usize,
    partitions: Partitions<T>,
    _release: ReleaseOnDrop,
}

impl<T: Pod> PageRanges<T> {
    /// Creates empty ranges for about `rows` rows of the given number of pages. `kinds` is the
    /// number of kinds of rows that share the memory budget of the step.
    pub fn new(net: &Net<'_>, pages: usize, rows: u64, kinds: u64) -> PageRanges<T> {
        let bits = partition_bits::<T>(rows);
        let partitions = Partitions::new(1 << bits, &net.memory.for_partitions(kinds, bits));
        PageRanges { pages, range: (pages >> bits) + 1, partitions, _release: net.memory.release_on_drop() }
    }

    /// Adds a row of the page at index `place` among the worker's own pages.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn push(&mut self, place: usize, row: T) -> Result<()> {
        self.partitions.push(place / self.range, row)
    }

    /// Calls `visit` for one range after the other, with the indices of its pages and with its rows
    /// in no particular order.
    ///
    /// # Errors
    /// Returns any error of the disk and of `visit`, and an error if the run has ended.
    pub fn for_each(
        mut self,
        net: &Net<'_>,
        mut visit: impl FnMut(Range<usize>, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let mut rows = Vec::new();
        for number in 0..self.partitions.count() {
            net.check()?;
            self.partitions.take(number, &mut rows)?;
            let begin = |number: usize| self.pages.min(number * self.range);
            visit(begin(number)..begin(number + 1), &mut rows)?;
        }
        Ok(())
    }

    /// Returns all rows in ascending order of `key`, which must order rows by page first.
    ///
    /// # Errors
    /// Returns any error of the disk, and an error if the run has ended.
    pub fn sorted<K: Ord>(self, net: &Net<'_>, key: impl Fn(&T) -> K) -> Result<SpillColumn<T>> {
        let mut sorted = SpillColumn::new(&net.memory);
        self.for_each(net, |_, rows| {
            rows.sort_unstable_by_key(&key);
            rows.iter().try_for_each(|&row| sorted.push(row))
        })?;
        Ok(sorted)
    }
}
