//! The reduce stage: sorts the rows that arrive at each worker and removes repetitions.
//!
//! # Memory
//! Takes the memory of a [`RowSorter`]: beyond its share of the pool, a worker writes rows to the
//! local disk.

use std::cell::RefCell;
use std::rc::Rc;

use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::Operator;

use super::rows::ResultRow;
use crate::shuffle::memory::{at_rest, of_process};
use webtwin_base::build_info::memory_bytes;
use webtwin_base::error::Result;
use webtwin_engine::{Failures, RowStream};
use webtwin_job::Effort;
use webtwin_spill::{MemoryPool, RowSorter, SortedRows};

/// Number of rows that an operator passes on before other operators run.
pub(super) const BATCH: usize = 1 << 16;

/// Returns the memory pool of a sorter in a process with `workers` workers that holds `held_bytes`
/// of its own. Rows move from one sorter to another, so a worker has two at a time.
pub(super) fn pool_of_sorter(held_bytes: u64, workers: usize, effort: &Effort) -> MemoryPool {
    let held_bytes = (held_bytes + at_rest(workers)).max(memory_bytes());
    let pool = MemoryPool { workers: workers as u64, ..of_process(held_bytes, effort) };
    MemoryPool { disk_bytes: pool.disk_bytes, ..pool.part(2) }
}

/// Merged rows of all workers, each at the worker where it was merged.
pub(super) struct MergedWorkers<'s, R> {
    /// Rows of this worker. They are available after all `extents` have arrived.
    pub rows: Rc<RefCell<Option<MergedRows<R>>>>,
    /// Largest id and number of merged rows of each worker that has rows.
    pub extents: RowStream<'s, (u64, u64)>,
}

/// Iterator over rows in ascending order and without repetitions.
#[derive(Debug)]
pub(super) struct MergedRows<R> {
    sorted: SortedRows<R>,
    last: Option<R>,
}

impl<R: ResultRow> MergedRows<R> {
    /// Replaces the content of `into` by the next rows, up to [`BATCH`] of them; by no rows at the
    /// end.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub(super) fn take(&mut self, into: &mut Vec<R>) -> Result<()> {
        loop {
            self.sorted.take(BATCH, into)?;
            let is_end = into.is_empty();
            into.retain(|row| is_next(row, &mut self.last));
            if is_end || !into.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the largest id and the number of rows; `None` if there are no rows. Must be called
    /// before the first row is taken.
    fn extent(&mut self) -> Result<Option<(u64, u64)>> {
        let (mut last, mut count): (Option<R>, u64) = (None, 0);
        self.sorted
            .for_each_piece(|rows| count += rows.iter().filter(|row| is_next(*row, &mut last)).count() as u64)?;
        Ok(last.map(|last| (last.id(), count)))
    }
}

/// Returns true, and stores the row as the previous one, unless it is the same as the previous row.
fn is_next<R: ResultRow>(row: &R, last: &mut Option<R>) -> bool {
    let is_next = last.as_ref().is_none_or(|last| !last.is_same(row));
    if is_next {
        *last = Some(*row);
    }
    is_next
}

/// Merges the rows that arrive at each worker. Rows that may be the same must arrive at the same
/// worker. `pool` is called when the first rows arrive; it limits the memory of the rows.
pub(super) fn merge<'s, R: ResultRow>(
    rows: RowStream<'s, R>,
    pool: impl Fn() -> MemoryPool + 'static,
    failures: &Failures,
) -> MergedWorkers<'s, R> {
    let merged: Rc<RefCell<Option<MergedRows<R>>>> = Rc::default();
    let (slot, failures) = (Rc::clone(&merged), failures.clone());
    let extents = rows.unary_frontier(Pipeline, "merge", move |capability, _| {
        let mut held_capability = Some(capability);
        let mut sorter: Option<RowSorter<R>> = None;
        move |(rows, rows_to_come), output| {
            rows.for_each(|_, rows| {
                let sorter = sorter.get_or_insert_with(|| RowSorter::new(&pool()));
                sorter.extend(rows).unwrap_or_else(|error| failures.notify(error));
            });
            if !rows_to_come.is_empty() {
                return;
            }
            let Some(capability) = held_capability.take() else { return };
            let Some(sorter) = sorter.take() else { return };
            let sorted = sorter.finish().map(|sorted| MergedRows { sorted, last: None });
            match sorted.and_then(|mut rows| Ok((rows.extent()?, rows))) {
                Ok((extent, rows)) => {
                    output.session(&capability).give_iterator(extent.into_iter());
                    *slot.borrow_mut() = Some(rows);
                }
                Err(error) => failures.notify(error),
            }
        }
    });
    MergedWorkers { rows: merged, extents }
}
