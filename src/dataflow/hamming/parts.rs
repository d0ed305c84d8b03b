//! Parts of a table: equal ranges of the ids that occur. Their number is chosen so that a part
//! stays below about 64 MB. To compute them, workers exchange the largest id and the number of rows
//! that they have merged, before they send the rows to the writers of the parts.
//!
//! Rows are sent twice: to where they are merged, and to where they are written. Ranges of ids from
//! the start would save the second exchange, but not its work. The ranges of the parts are only
//! known after all rows are merged, so rows at the ends of ranges would still move. And the ids of
//! ready-made fingerprints are their places in F, so that all copies of a fingerprint, which have
//! most of the pairs, would be merged by one worker.
//!
//! # Memory
//! Takes the memory of a [`RowSorter`] for the rows of all parts of a worker, and a row group of
//! the part that is written.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::iter::from_fn;
use std::rc::Rc;

use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::vec::Broadcast;

use super::merge::MergedWorkers;
use super::pace::Pace;
use super::rows::ResultRow;
use crate::sinks::stage::put_pieces;
use webtwin_base::error::Result;
use webtwin_engine::{Failures, RowStream};
use webtwin_spill::{MemoryPool, RowSorter, SortedRows};
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;

/// Approximate number of rows of a part. A row takes at most 22 bytes on disk.
const PART_ROWS: u64 = 3_000_000;

/// Number of rows that are encoded together.
const PIECE_ROWS: usize = 1 << 14;

/// Destination of a worker's parts, and the parts that it has written.
#[derive(Debug, Clone)]
pub(super) struct PartWriter {
    attempt: Attempt,
    partitions: u64,
    written: Rc<RefCell<WrittenTable>>,
}

/// Parts of a table that a worker has written.
#[derive(Debug, Default)]
pub(super) struct WrittenTable {
    /// Files of the parts.
    pub files: Vec<FileEntry>,
    /// Counts for the summary, by [`ResultRow::counted_as`].
    pub counts: BTreeMap<u32, u64>,
}

impl PartWriter {
    /// Creates an output whose parts are staged by `attempt`, at most `partitions` of them.
    pub(super) fn new(attempt: &Attempt, partitions: u64) -> PartWriter {
        PartWriter { attempt: attempt.clone(), partitions, written: Rc::default() }
    }

    /// Removes and returns the record of what was written.
    pub(super) fn take(&self) -> WrittenTable {
        self.written.take()
    }

    /// Writes sorted rows, part by part.
    fn put<R: ResultRow>(&self, parts: Parts, rows: SortedRows<R>) -> Result<()> {
        let mut rows = Pieces { rows, piece: Vec::new(), at: 0 };
        let written = &mut *self.written.borrow_mut();
        while let Some(part) = rows.peek()?.map(|row| parts.part_of(row)) {
            let mut previous = None;
            let mut piece = || {
                let part_rows = rows.take_while(|row| parts.part_of(row) == part)?;
                for row in part_rows {
                    if let Some(number) = row.counted_as(previous.as_ref()) {
                        *written.counts.entry(number).or_default() += 1;
                    }
                    previous = Some(*row);
                }
                Ok((!part_rows.is_empty()).then(|| R::table(part_rows)))
            };
            let pieces = from_fn(|| piece().transpose());
            written.files.push(put_pieces(&self.attempt, R::TABLE, part as usize, pieces)?);
        }
        Ok(())
    }
}

/// Sorted rows, read piece by piece.
struct Pieces<R> {
    rows: SortedRows<R>,
    piece: Vec<R>,
    at: usize,
}

impl<R: ResultRow> Pieces<R> {
    /// Returns the next row without consuming it.
    fn peek(&mut self) -> Result<Option<&R>> {
        if self.at == self.piece.len() {
            self.at = 0;
            self.rows.take(PIECE_ROWS, &mut self.piece)?;
        }
        Ok(self.piece.get(self.at))
    }

    /// Consumes and returns some of the next rows for which `is_taken` returns true. After the
    /// first row for which it returns false, it must return false for all rows.
    fn take_while(&mut self, is_taken: impl Fn(&R) -> bool) -> Result<&[R]> {
        self.peek()?;
        let start = self.at;
        self.at += self.piece[start..].partition_point(is_taken);
        Ok(&self.piece[start..self.at])
    }
}

/// Division of rows among parts.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    largest_id: u64,
    count: u64,
}

impl Parts {
    /// Divides rows into at most `max_parts` parts, given the largest id and the number of rows of
    /// each worker.
    fn new(extents: &[(u64, u64)], max_parts: u64) -> Parts {
        let rows: u64 = extents.iter().map(|extent| extent.1).sum();
        let largest_id = extents.iter().map(|extent| extent.0).max().unwrap_or(0);
        Parts { largest_id, count: rows.div_ceil(PART_ROWS).clamp(1, max_parts) }
    }

    /// Returns the part of a row.
    fn part_of<R: ResultRow>(&self, row: &R) -> u32 {
        (u128::from(row.id()) * u128::from(self.count) / (u128::from(self.largest_id) + 1)) as u32
    }
}

/// Writes merged rows as the parts of their table.
pub(super) fn write<R: ResultRow>(
    merged: MergedWorkers<'_, R>,
    output: &PartWriter,
    pool: impl Fn() -> MemoryPool + 'static,
    failures: &Failures,
) {
    let parts: Rc<Cell<Parts>> = Rc::default();
    let pace = Pace::default();
    let rows = with_parts(merged, &parts, output.partitions, pace.clone(), failures);
    let rows = pace.send(rows, |row| u64::from(row.0));
    let (output, failures) = (output.clone(), failures.clone());
    let mut sorter: Option<RowSorter<R>> = None;
    let mut rows_of_batch = Vec::new();
    rows.sink(Pipeline, "write parts", move |(rows, frontier)| {
        rows.for_each(|_, rows| {
            rows_of_batch.clear();
            rows_of_batch.extend(rows.iter().map(|row| row.1));
            let sorter = sorter.get_or_insert_with(|| RowSorter::new(&pool()));
            sorter.extend(&rows_of_batch).unwrap_or_else(|error| failures.notify(error));
        });
        if frontier.is_empty()
            && let Some(sorter) = sorter.take()
        {
            let written = sorter.finish().and_then(|rows| output.put(parts.get(), rows));
            written.unwrap_or_else(|error| failures.notify(error));
        }
    });
}

/// Returns each row with the number of its part, after all workers know the division into `parts`.
fn with_parts<'s, R: ResultRow>(
    merged: MergedWorkers<'s, R>,
    parts: &Rc<Cell<Parts>>,
    part_limit: u64,
    mut pace: Pace,
    failures: &Failures,
) -> RowStream<'s, (u32, R)> {
    let MergedWorkers { rows: merged, extents } = merged;
    let (scope, parts, failures) = (extents.scope(), Rc::clone(parts), failures.clone());
    extents.broadcast().unary_frontier(Pipeline, "divide among parts", move |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut held_capability = Some(capability);
        let (mut all_extents, mut batch) = (Vec::new(), Vec::new());
        move |(extents, extents_to_come), output| {
            extents.for_each(|_, extents| all_extents.append(extents));
            let Some(capability) = held_capability.as_mut().filter(|_| extents_to_come.is_empty()) else { return };
            if !pace.begin_batch(capability) {
                activator.activate_after(Pace::PATIENCE);
                return;
            }
            let mut merged = merged.borrow_mut();
            let outcome = merged.as_mut().map_or(Ok(()), |rows| rows.take(&mut batch));
            outcome.unwrap_or_else(|error| failures.notify(error));
            parts.set(Parts::new(&all_extents, part_limit));
            let (parts, mut remaining) = (parts.get(), &batch[..]);
            let mut session = output.session(&*capability);
            while let Some(part) = remaining.first().map(|row| parts.part_of(row)) {
                let (part_rows, later) =
                    remaining.split_at(remaining.partition_point(|row| parts.part_of(row) == part));
                session.give_iterator(part_rows.iter().map(|row| (part, *row)));
                remaining = later;
            }
            drop(session);
            if batch.is_empty() {
                (*merged, held_capability) = (None, None);
            } else {
                activator.activate();
            }
        }
    })
}
