//! External sort of plain rows: in memory up to a worker's budget, and beyond that in sorted runs
//! on the local disk, which are merged during reading.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use bytemuck::Pod;

use super::disk::{Extent, SpillFile};
use super::pool::MemoryPool;
use webtwin_base::error::Result;

/// Size of the part of a run that is read at a time, in bytes.
const BLOCK_BYTES: usize = 32 << 10;

/// Number of runs that are merged at a time.
const FAN_IN: usize = 256;

/// Minimum size of a run in bytes: the total size of the blocks of a merge.
const MIN_RUN_BYTES: u64 = (FAN_IN * BLOCK_BYTES) as u64;

/// Maximum size of a run in bytes. A worker sorts and writes it within a second, during which other
/// workers wait for it.
const MAX_RUN_BYTES: u64 = 128 << 20;

/// Size of the part of a run whose disk space is freed together, in bytes. Only whole blocks of the
/// device can be freed.
const RELEASED_BYTES: usize = 1 << 20;

/// Collects plain rows in any order, to be read in ascending order.
///
/// # Memory
/// The rows, up to the pool's budget for a worker, which is treated as at least
/// [`RowSorter::MIN_BYTES`].
#[derive(Debug)]
pub struct RowSorter<T> {
    rows_in_memory: Vec<T>,
    max_rows: usize,
    run_rows: usize,
    runs: Runs,
}

/// Rows in ascending order. Each is taken once.
///
/// # Memory
/// The rows that are not on disk, and 32 KiB for each run on disk.
#[derive(Debug)]
pub struct SortedRows<T> {
    merge: Merge<T>,
    runs: Runs,
}

impl<T> RowSorter<T> {
    /// Minimum memory of a sorter, in bytes.
    pub const MIN_BYTES: u64 = MIN_RUN_BYTES;
}

impl<T: Pod + Ord> RowSorter<T> {
    /// Creates a sorter without rows.
    pub fn new(pool: &MemoryPool) -> RowSorter<T> {
        let run_bytes = (pool.of_worker() / 4).clamp(MIN_RUN_BYTES, MAX_RUN_BYTES);
        RowSorter::in_runs(pool, pool.of_worker().max(MIN_RUN_BYTES), run_bytes)
    }

    /// Creates a sorter that holds `max_bytes` bytes in memory, and writes runs of `run_bytes`
    /// bytes.
    fn in_runs(pool: &MemoryPool, max_bytes: u64, run_bytes: u64) -> RowSorter<T> {
        let rows = |bytes: u64| usize::try_from(bytes / size_of::<T>() as u64).unwrap_or(usize::MAX).max(1);
        let runs = Runs { file: SpillFile::new(&pool.disk()), blocks: Vec::new(), runs: Vec::new() };
        RowSorter { rows_in_memory: Vec::new(), max_rows: rows(max_bytes), run_rows: rows(run_bytes), runs }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn extend(&mut self, mut rows: &[T]) -> Result<()> {
        while !rows.is_empty() {
            if self.rows_in_memory.len() == self.max_rows {
                self.spill()?;
            }
            let (head, remaining) = rows.split_at(rows.len().min(self.max_rows - self.rows_in_memory.len()));
            if self.rows_in_memory.capacity() - self.rows_in_memory.len() < head.len() {
                let capacity =
                    (2 * self.rows_in_memory.capacity()).clamp(head.len() + self.rows_in_memory.len(), self.max_rows);
                self.rows_in_memory.reserve_exact(capacity - self.rows_in_memory.len());
            }
            self.rows_in_memory.extend_from_slice(head);
            rows = remaining;
        }
        Ok(())
    }

    /// Writes the last rows as a run. The earlier rows stay in memory, and may never have to be
    /// written.
    fn spill(&mut self) -> Result<()> {
        let start = self.rows_in_memory.len().saturating_sub(self.run_rows);
        self.rows_in_memory[start..].sort_unstable();
        self.runs.append(&self.rows_in_memory[start..])?;
        self.rows_in_memory.truncate(start);
        Ok(())
    }

    /// Sorts all rows.
    ///
    /// # Errors
    /// Returns any error of the disk.
    ///
    /// # Cost
    /// Rows are written a second time if there are more than 256 runs.
    pub fn finish(mut self) -> Result<SortedRows<T>> {
        self.rows_in_memory.sort_unstable();
        while self.runs.runs.len() > FAN_IN {
            self.runs.merge_first::<T>()?;
        }
        let mut merge = Merge::new(&self.runs.runs, self.rows_in_memory);
        merge.rewind(&self.runs)?;
        Ok(SortedRows { merge, runs: self.runs })
    }
}

impl<T: Pod + Ord> SortedRows<T> {
    /// Calls `visit` with all rows, in several pieces. It must precede the first
    /// [`SortedRows::take`].
    ///
    /// # Errors
    /// Returns any error of the disk.
    ///
    /// # Cost
    /// Equals a full pass with [`SortedRows::take`] if there are runs on disk.
    pub fn for_each_piece(&mut self, mut visit: impl FnMut(&[T])) -> Result<()> {
        if self.runs.runs.is_empty() {
            self.merge.cursors.iter().for_each(|cursor| visit(&cursor.rows));
            return Ok(());
        }
        let mut rows = Vec::new();
        loop {
            self.merge.read(rows_of_block::<T>(), &mut rows, &self.runs)?;
            if rows.is_empty() {
                return self.merge.rewind(&self.runs);
            }
            visit(&rows);
        }
    }

    /// Replaces the content of `into` with the next rows, at most `count` of them. It is empty at
    /// the end. The disk space of the rows is freed.
    ///
    /// # Errors
    /// Returns any error of the disk.
    ///
    /// # Cost
    /// Each row on disk is read once. The number of comparisons per row is about twice the number
    /// of binary digits of the number of runs.
    pub fn take(&mut self, count: usize, into: &mut Vec<T>) -> Result<()> {
        self.merge.read(count, into, &self.runs)?;
        self.merge.release(&mut self.runs);
        Ok(())
    }
}

/// Sorted runs in a spill file.
#[derive(Debug)]
struct Runs {
    file: SpillFile,
    blocks: Vec<Extent>,
    /// Range of blocks of each run.
    runs: Vec<Range<usize>>,
}

impl Runs {
    fn append<T: Pod>(&mut self, rows: &[T]) -> Result<()> {
        let start = self.blocks.len();
        for rows in rows.chunks(rows_of_block::<T>()) {
            self.blocks.push(self.file.append(bytemuck::cast_slice(rows))?);
        }
        self.runs.push(start..self.blocks.len());
        Ok(())
    }

    /// Merges the first runs into one.
    fn merge_first<T: Pod + Ord>(&mut self) -> Result<()> {
        let first: Vec<Range<usize>> = self.runs.drain(..FAN_IN).collect();
        let mut merge = Merge::<T>::new(&first, Vec::new());
        merge.rewind(self)?;
        let (start, mut rows) = (self.blocks.len(), Vec::new());
        loop {
            merge.read(rows_of_block::<T>(), &mut rows, self)?;
            merge.release(self);
            if rows.is_empty() {
                break;
            }
            self.blocks.push(self.file.append(bytemuck::cast_slice(&rows))?);
        }
        self.runs.push(start..self.blocks.len());
        Ok(())
    }

    /// Frees the disk space of consecutive blocks.
    fn release(&mut self, blocks: Range<usize>) {
        let bytes = self.blocks[blocks.clone()].iter().map(|block| block.bytes).sum();
        self.file.release(self.blocks[blocks.start].offset, bytes);
    }
}

/// Returns the number of rows in a full block.
const fn rows_of_block<T>() -> usize {
    BLOCK_BYTES / size_of::<T>()
}

/// Merge of sorted runs.
#[derive(Debug)]
struct Merge<T> {
    /// One cursor for each run on disk, and a last one for the rows in memory.
    cursors: Vec<Cursor<T>>,
    /// Next row of each cursor that has one, with the number of the cursor.
    next: BinaryHeap<Reverse<(T, usize)>>,
}

impl<T: Pod + Ord> Merge<T> {
    fn new(runs: &[Range<usize>], rows_in_memory: Vec<T>) -> Merge<T> {
        let on_disk = runs.iter().map(|blocks| Cursor::new(Vec::new(), blocks.clone()));
        Merge { cursors: on_disk.chain([Cursor::new(rows_in_memory, 0..0)]).collect(), next: BinaryHeap::new() }
    }

    /// Moves all cursors to their first row.
    fn rewind(&mut self, runs: &Runs) -> Result<()> {
        self.next.clear();
        for (number, cursor) in self.cursors.iter_mut().enumerate() {
            cursor.rewind();
            self.next.extend(cursor.row(runs)?.map(|row| Reverse((row, number))));
        }
        Ok(())
    }

    /// Reads the next rows like [`SortedRows::take`], but does not free their disk space.
    fn read(&mut self, count: usize, into: &mut Vec<T>, runs: &Runs) -> Result<()> {
        into.clear();
        while into.len() < count {
            let is_last = self.next.len() == 1;
            let Some(mut first) = self.next.peek_mut() else { break };
            let Reverse((_, number)) = *first;
            let cursor = &mut self.cursors[number];
            let rows = &cursor.rows[cursor.at..];
            // With a single cursor left, its rows need no further comparison.
            let count_taken = if is_last { rows.len().min(count - into.len()) } else { 1 };
            into.extend_from_slice(&rows[..count_taken]);
            cursor.at += count_taken;
            match cursor.row(runs)? {
                Some(row) => *first = Reverse((row, number)),
                None => drop(PeekMut::pop(first)),
            }
        }
        Ok(())
    }

    /// Frees the disk space of blocks that have been read.
    fn release(&mut self, runs: &mut Runs) {
        self.cursors.iter_mut().for_each(|cursor| cursor.release(runs));
    }
}

/// Cursor over a run, or over rows in memory.
#[derive(Debug)]
struct Cursor<T> {
    rows: Vec<T>,
    /// Index of the next row in `rows`.
    at: usize,
    blocks: Range<usize>,
    /// First block that has not been read, and first block whose disk space has not been freed.
    next_block: usize,
    released: usize,
}

impl<T: Pod> Cursor<T> {
    fn new(rows: Vec<T>, blocks: Range<usize>) -> Cursor<T> {
        Cursor { rows, at: 0, next_block: blocks.start, released: blocks.start, blocks }
    }

    fn rewind(&mut self) {
        if !self.blocks.is_empty() {
            self.rows.clear();
        }
        (self.at, self.next_block) = (0, self.blocks.start);
    }

    /// Returns the next row without advancing.
    fn row(&mut self, runs: &Runs) -> Result<Option<T>> {
        if self.at == self.rows.len() && self.next_block < self.blocks.end {
            self.rows.clear();
            runs.file.read(runs.blocks[self.next_block], &mut self.rows)?;
            (self.at, self.next_block) = (0, self.next_block + 1);
        }
        Ok(self.rows.get(self.at).copied())
    }

    fn release(&mut self, runs: &mut Runs) {
        let read_blocks = self.released..self.next_block;
        if read_blocks.len() * BLOCK_BYTES >= RELEASED_BYTES
            || (!read_blocks.is_empty() && read_blocks.end == self.blocks.end)
        {
            runs.release(read_blocks);
            self.released = self.next_block;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn take_all(sorted: &mut SortedRows<[u32; 3]>, count: usize) -> Result<Vec<[u32; 3]>> {
        let (mut rows, mut batch) = (Vec::new(), vec![[9; 3]]);
        while !batch.is_empty() {
            sorted.take(count, &mut batch)?;
            assert!(batch.len() <= count);
            rows.extend_from_slice(&batch);
        }
        Ok(rows)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn rows_come_sorted_from_memory_and_from_any_runs(
            seed: u32, lengths in prop::collection::vec(0usize..9000, 0..9), most in 1u64..200_000, run in 1u64..100_000,
            count in 1usize..5000
        ) {
            let row = |at: u32| [(at ^ seed).wrapping_mul(0x9e37_79b1) >> 18, at % 3, at % 2];
            let rows: Vec<[u32; 3]> = (0..lengths.iter().sum::<usize>() as u32).map(row).collect();
            let mut expected = rows.clone();
            expected.sort_unstable();
            let pool = MemoryPool::default();
            // A merge of one run for each row would take minutes.
            let run = run.max(12 * rows.len() as u64 / 1000).min(most.max(12));
            for limit in [u64::MAX, most.max(run)] {
                let (mut sorter, mut rest) = (RowSorter::in_runs(&pool, limit, run), &rows[..]);
                for &length in &lengths {
                    let (head, tail) = rest.split_at(length);
                    sorter.extend(head).unwrap();
                    rest = tail;
                }
                let mut sorted = sorter.finish().unwrap();
                for _ in 0..2 {
                    let mut visited_rows = Vec::new();
                    sorted.for_each_piece(|rows| visited_rows.extend_from_slice(rows)).unwrap();
                    prop_assert_eq!(&visited_rows, &expected);
                }
                prop_assert_eq!(&take_all(&mut sorted, count).unwrap(), &expected);
            }
        }
    }

    #[test]
    fn more_runs_than_are_merged_at_a_time_are_merged_before_and_their_disk_is_released() {
        let rows: Vec<[u32; 3]> = (0..600_000u32).map(|at| [at.wrapping_mul(0x9e37_79b1), at, 0]).collect();
        let mut sorter = RowSorter::in_runs(&MemoryPool::default(), 12_000, 12_000);
        sorter.extend(&rows).unwrap();
        assert!(sorter.runs.runs.len() > 2 * FAN_IN);
        let mut sorted = sorter.finish().unwrap();
        assert!(sorted.runs.runs.len() <= FAN_IN);
        let mut expected = rows;
        expected.sort_unstable();
        assert!(take_all(&mut sorted, 100_000).unwrap() == expected);
        if cfg!(target_os = "linux") {
            assert!(sorted.runs.file.taken_bytes() < sorted.runs.file.written_bytes() / 4);
        }
    }

    #[test]
    fn failing_disk_is_an_error_if_needed() {
        let rows: Vec<[u32; 3]> = (0..3_000_000).map(|at| [at, 0, 0]).collect();
        let nowhere = MemoryPool::new(0, Path::new("/nowhere/at/all"), super::super::SPILL);
        let error = RowSorter::new(&nowhere).extend(&rows).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all (effort.spill)"), "{error}");
        let mut sorter = RowSorter::new(&MemoryPool::default().limited(0));
        sorter.extend(&rows).unwrap();
        let mut sorted = sorter.finish().unwrap();
        sorted.runs.file.damage(5_000_000);
        assert!(take_all(&mut sorted, 1000).unwrap_err().to_string().contains("other bytes than were written"));
    }
}
