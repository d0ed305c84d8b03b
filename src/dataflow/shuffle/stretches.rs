//! Rows that arrive in any order and are taken in the order of a worker's pages, in bounded memory: laid down by stretches of these.

use std::ops::Range;

use bytemuck::Pod;

use crate::shuffle::memory_budget::{MemoryBudget, bucket_bits};
use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_storage::aside::{Aside, AsideWriter};
use webtwin_storage::spill::Buckets;
use webtwin_storage::spill_file::Disk;

/// Rows of a worker's pages.
///
/// # Memory
/// Those that are held: all, or what the room for them allows; one stretch while they are taken.
pub struct Stretches<T> {
    /// Pages of the worker, and of a stretch.
    pages: usize,
    stretch: usize,
    buckets: Buckets<T>,
}

impl<T: Pod> Stretches<T> {
    /// For about `rows` rows of so many pages, as far as `room` has memory for them.
    pub fn new(net: &Net<'_>, (pages, rows): (usize, u64), room: &MemoryBudget) -> Stretches<T> {
        let bits = bucket_bits(rows * size_of::<T>() as u64);
        let buckets = Buckets::new(1 << bits, room.of_buckets(net, 1, 1 << bits), &room.disk(net));
        Stretches { pages, stretch: (pages >> bits) + 1, buckets }
    }

    /// Adds a row of the page at a place among the worker's own.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn push(&mut self, place: usize, row: T) -> Result<()> {
        self.buckets.push(place / self.stretch, row)
    }

    /// Gives `each` the places of one stretch after the other, and its rows in no particular order.
    ///
    /// # Errors
    /// Those of the disk, and of `each`; or when the run has ended.
    pub fn each(mut self, net: &Net<'_>, mut each: impl FnMut(Range<usize>, &mut [T]) -> Result<()>) -> Result<()> {
        let mut rows = Vec::new();
        for number in 0..self.buckets.count() {
            net.check()?;
            self.buckets.take(number, &mut rows)?;
            let begin = |number: usize| self.pages.min(number * self.stretch);
            each(begin(number)..begin(number + 1), &mut rows)?;
        }
        Ok(())
    }

    /// All rows, ascending by `key`, which orders them by page first; on `disk`, if there is one.
    ///
    /// # Errors
    /// Those of the disk; or when the run has ended.
    pub fn sorted<K: Ord>(self, net: &Net<'_>, key: impl Fn(&T) -> K, disk: Option<&Disk>) -> Result<Aside<T>> {
        let mut sorted = AsideWriter::beside(disk);
        self.each(net, |_, rows| {
            rows.sort_unstable_by_key(&key);
            rows.iter().try_for_each(|&row| sorted.push(row))
        })?;
        sorted.finish()
    }
}
