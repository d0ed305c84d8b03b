//! External sort of lines: they are sorted in runs, which are merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::ArchiveEffort;
use webtwin_base::error::Result;
use webtwin_spill::RunLog;

/// Size of the lines that are sorted at a time, in bytes.
const RUN_BYTES: usize = 32 << 20;

/// Lines that several threads add.
pub(super) struct SortedLines(Mutex<Runs>);

/// Unsorted lines, and sorted runs.
struct Runs {
    open: Vec<u8>,
    run_bytes: usize,
    run_log: RunLog<u8>,
    /// Range of blocks of each run.
    runs: Vec<Range<usize>>,
}

impl SortedLines {
    pub(crate) fn new(effort: &ArchiveEffort) -> SortedLines {
        SortedLines::with_runs_of(RUN_BYTES, effort)
    }

    fn with_runs_of(run_bytes: usize, effort: &ArchiveEffort) -> SortedLines {
        let run_log = RunLog::new(&effort.part(4));
        SortedLines(Mutex::new(Runs { open: Vec::new(), run_bytes, run_log, runs: Vec::new() }))
    }

    /// Adds lines, which include their line ends.
    pub(crate) fn add(&self, lines: &[u8]) -> Result<()> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.open.extend_from_slice(lines);
        if runs.open.len() >= runs.run_bytes { runs.end_run() } else { Ok(()) }
    }

    /// Passes all lines with their ends to `take`, ascending by bytes.
    ///
    /// # Errors
    /// Returns any error of the disk, and the first error of `take`.
    ///
    /// # Cost
    /// A block of 1 MiB for each run.
    pub(crate) fn merge(self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut runs = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        runs.end_run()?;
        let Runs { mut run_log, runs, .. } = runs;
        let mut cursors: Vec<Cursor> = runs.into_iter().map(Cursor::of).collect();
        let mut heads = BinaryHeap::new();
        for (number, cursor) in cursors.iter_mut().enumerate() {
            heads.extend(cursor.next(&mut run_log)?.map(|line| Reverse((line, number))));
        }
        while let Some(Reverse((line, number))) = heads.pop() {
            take(&line)?;
            heads.extend(cursors[number].next(&mut run_log)?.map(|line| Reverse((line, number))));
        }
        Ok(())
    }
}

impl Runs {
    fn end_run(&mut self) -> Result<()> {
        let open = std::mem::take(&mut self.open);
        let mut lines: Vec<&[u8]> = open.split_inclusive(|&byte| byte == b'\n').collect();
        lines.sort_unstable();
        let first = self.run_log.blocks();
        lines.iter().try_for_each(|line| self.run_log.push(line.iter().copied()))?;
        // Ends the block, so that the next run begins with a new one.
        self.run_log.finish()?;
        self.runs.push(first..self.run_log.blocks());
        Ok(())
    }
}

/// Cursor over a run.
struct Cursor {
    blocks: Range<usize>,
    block: Vec<u8>,
    position: usize,
}

impl Cursor {
    fn of(blocks: Range<usize>) -> Cursor {
        Cursor { blocks, block: Vec::new(), position: 0 }
    }

    fn next(&mut self, run_log: &mut RunLog<u8>) -> Result<Option<Vec<u8>>> {
        if self.position == self.block.len() {
            let Some(number) = self.blocks.next() else { return Ok(None) };
            run_log.read(number, &mut self.block)?;
            run_log.forget(number);
            self.position = 0;
        }
        let line =
            self.block[self.position..].split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default().to_vec();
        self.position += line.len();
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_are_sorted_with_any_memory(
            adds in prop::collection::vec(prop::collection::vec("[a-c }]{0,12}", 0..9), 0..40),
            run_bytes in 1usize..300,
            memory_bytes in prop::sample::select(vec![0u64, 1 << 30]),
        ) {
            let effort = ArchiveEffort { workers: 1, memory_bytes, spill: std::env::temp_dir() };
            let sorted = SortedLines::with_runs_of(run_bytes, &effort);
            for lines in &adds {
                let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
                sorted.add(lines.as_bytes()).unwrap();
            }
            let mut plain: Vec<String> = adds.concat().into_iter().map(|line| line + "\n").collect();
            plain.sort_unstable();
            let mut merged = Vec::new();
            sorted.merge(|line| { merged.extend_from_slice(line); Ok(()) }).unwrap();
            prop_assert_eq!(String::from_utf8(merged).unwrap(), plain.concat());
        }
    }
}
