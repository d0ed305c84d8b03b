//! Rows that arrive in any order and are taken in the order of a worker's pages, in bounded memory: by stretches of these.

use std::ops::Range;

use bytemuck::Pod;

use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_spill::{Column, GiveBack, Partitions, partition_bits};

/// Rows of a worker's pages.
///
/// # Memory
/// Those that are held: all, or what the step has memory for; one stretch while they are taken.
pub struct Stretches<T> {
    /// Pages of the worker, and of a stretch.
    pages: usize,
    stretch: usize,
    partitions: Partitions<T>,
    _give_back: GiveBack,
}

impl<T: Pod> Stretches<T> {
    /// For about `rows` rows of so many pages; one of so many kinds of rows that share the memory of the step.
    pub fn new(net: &Net<'_>, pages: usize, rows: u64, kinds: u64) -> Stretches<T> {
        let bits = partition_bits::<T>(rows);
        let partitions = Partitions::new(1 << bits, &net.memory.for_partitions(kinds, bits));
        Stretches { pages, stretch: (pages >> bits) + 1, partitions, _give_back: net.memory.give_back() }
    }

    /// Adds a row of the page at a place among the worker's own.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn push(&mut self, place: usize, row: T) -> Result<()> {
        self.partitions.push(place / self.stretch, row)
    }

    /// Gives `each` the places of one stretch after the other, and its rows in no particular order.
    ///
    /// # Errors
    /// Those of the disk, and of `each`; or when the run has ended.
    pub fn each(mut self, net: &Net<'_>, mut each: impl FnMut(Range<usize>, &mut [T]) -> Result<()>) -> Result<()> {
        let mut rows = Vec::new();
        for number in 0..self.partitions.count() {
            net.check()?;
            self.partitions.take(number, &mut rows)?;
            let begin = |number: usize| self.pages.min(number * self.stretch);
            each(begin(number)..begin(number + 1), &mut rows)?;
        }
        Ok(())
    }

    /// All rows, ascending by `key`, which orders them by page first.
    ///
    /// # Errors
    /// Those of the disk; or when the run has ended.
    pub fn sorted<K: Ord>(self, net: &Net<'_>, key: impl Fn(&T) -> K) -> Result<Column<T>> {
        let mut sorted = Column::new(&net.memory);
        self.each(net, |_, rows| {
            rows.sort_unstable_by_key(&key);
            rows.iter().try_for_each(|&row| sorted.push(row))
        })?;
        Ok(sorted)
    }
}
