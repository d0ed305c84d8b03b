//! The reduce stage: rows that were found meet at the worker that merges them, each is told once, and they go to the parts of
//! their table, which are written.
//!
//! Parts are equal ranges of the ids that occur, and as many as keep a part below some 64 MB. So workers tell each other the
//! largest id and the number of rows that they have merged before they deal rows out to parts.
//!
//! # Memory
//! All rows, over all workers: until they are merged, and from then on in their parts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use timely::ExchangeData;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange as To, Pipeline};
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::{Operator, OutputBuilder};
use timely::dataflow::operators::vec::Broadcast;

use crate::sinks::stage::put_part;
use webtwin_base::ids::DocId;
use webtwin_engine::{Failures, Rows};
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;
use webtwin_storage::table::{Column, Table};

/// Rows of a part, about: 22 bytes each on disk, at most.
const PART_ROWS: u64 = 3_000_000;

/// Rows that an operator hands on before others have their turn.
pub(super) const BATCH: usize = 1 << 16;

/// A row that is told once, however often it is found; of rows that are the same the smallest.
pub(super) trait Told: ExchangeData + Copy + Ord {
    /// Name of its table.
    const TABLE: &'static str;

    /// The id by which rows are dealt out to parts.
    fn id(&self) -> u64;

    /// Whether one of two rows is enough.
    fn is_same(&self, other: &Self) -> bool;

    /// Adds up what the summary says of the rows of a part.
    fn count(rows: &[Self], counts: &mut BTreeMap<u32, u64>);

    /// The table of rows.
    fn table(rows: &[Self]) -> Table;
}

/// Two near documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct NearPair {
    /// The one: of F where there are queries, else the smaller.
    pub a: DocId,
    /// The other.
    pub b: DocId,
    /// Bits in which their fingerprints differ.
    pub distance: u32,
}

impl Told for NearPair {
    const TABLE: &'static str = "pairs";

    fn id(&self) -> u64 {
        self.a
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.a, self.b) == (other.a, other.b)
    }

    /// Pairs by distance.
    fn count(rows: &[Self], counts: &mut BTreeMap<u32, u64>) {
        rows.iter().for_each(|row| *counts.entry(row.distance).or_default() += 1);
    }

    fn table(rows: &[Self]) -> Table {
        Table::new([
            ("a", Column::Id(rows.iter().map(|row| row.a).collect())),
            ("b", Column::Id(rows.iter().map(|row| row.b).collect())),
            ("measure", Column::Text(rows.iter().map(|_| "hamming".to_string()).collect())),
            ("value", Column::U32(rows.iter().map(|row| row.distance).collect())),
        ])
    }
}

/// A document in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Member {
    /// The group, by the document that names it.
    pub group: DocId,
    /// The document.
    pub document: DocId,
    /// Whether it is a query.
    pub is_query: bool,
}

impl Told for Member {
    const TABLE: &'static str = "groups";

    fn id(&self) -> u64 {
        self.group
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    /// Groups, as number 0.
    fn count(rows: &[Self], counts: &mut BTreeMap<u32, u64>) {
        *counts.entry(0).or_default() += rows.chunk_by(|x, y| x.group == y.group).count() as u64;
    }

    fn table(rows: &[Self]) -> Table {
        Table::new([
            ("group", Column::Id(rows.iter().map(|row| row.group).collect())),
            ("doc_id", Column::Id(rows.iter().map(|row| row.document).collect())),
            ("query", Column::Bool(rows.iter().map(|row| row.is_query).collect())),
        ])
    }
}

/// Where a worker writes parts, and what it has written.
#[derive(Debug, Clone)]
pub(super) struct Output {
    attempt: Attempt,
    partitions: u64,
    written: Rc<RefCell<Written>>,
}

/// What a worker has written of a table.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Its parts.
    pub files: Vec<FileEntry>,
    /// What [`Told::count`] has counted in them.
    pub counts: BTreeMap<u32, u64>,
}

impl Output {
    /// Parts are staged by `attempt`, at most so many.
    pub(super) fn new(attempt: &Attempt, partitions: u64) -> Output {
        Output { attempt: attempt.clone(), partitions, written: Rc::default() }
    }

    /// What was written.
    pub(super) fn take(&self) -> Written {
        self.written.take()
    }

    /// Writes a part.
    fn put<R: Told>(&self, partition: usize, rows: &[R]) -> webtwin_base::error::Result<()> {
        let mut written = self.written.borrow_mut();
        written.files.push(put_part(&self.attempt, R::TABLE, partition, &R::table(rows))?);
        R::count(rows, &mut written.counts);
        Ok(())
    }
}

/// Merges the rows that come together here and writes the parts of their table; rows that may be the same come to the same
/// worker.
pub(super) fn merge_and_write<'s, R: Told>(rows: Rows<'s, R>, output: &Output, failures: &Failures) {
    let (merged, largest) = merge(rows);
    write(deal_out(merged, largest.broadcast(), output.partitions), output, failures);
}

/// Rows in ascending order and each once, when all have come; and before them the largest id, and their number.
fn merge<'s, R: Told>(rows: Rows<'s, R>) -> (Rows<'s, R>, Rows<'s, (u64, u64)>) {
    let scope = rows.scope();
    let mut builder = OperatorBuilder::new("merge".into(), scope);
    let mut arriving = builder.new_input(rows, Pipeline);
    let (merged, merged_rows) = builder.new_output();
    let (largest, largest_id) = builder.new_output();
    let mut merged = OutputBuilder::<_, CapacityContainerBuilder<Vec<R>>>::from(merged);
    let mut largest = OutputBuilder::<_, CapacityContainerBuilder<Vec<(u64, u64)>>>::from(largest);
    let again = scope.activator_for(builder.operator_info().address);
    builder.build(move |capabilities| {
        let mut to_come = Some(capabilities);
        let (mut rows, mut handed_on) = (Vec::new(), 0);
        move |frontiers| {
            arriving.for_each(|_, some| rows.append(some));
            if !frontiers[0].is_empty() {
                return;
            }
            if let Some(capabilities) = to_come.as_mut().filter(|capabilities| capabilities.len() == 2) {
                rows.sort_unstable();
                rows.dedup_by(|later, first| later.is_same(first));
                if let Some(last) = rows.last() {
                    largest.activate().session(&capabilities[1]).give((last.id(), rows.len() as u64));
                }
                capabilities.truncate(1);
            }
            let Some(capabilities) = &to_come else { return };
            let end = rows.len().min(handed_on + BATCH);
            merged.activate().session(&capabilities[0]).give_iterator(rows[handed_on..end].iter().copied());
            handed_on = end;
            if end < rows.len() {
                again.activate();
            } else {
                (rows, to_come) = (Vec::new(), None);
                handed_on = 0;
            }
        }
    });
    (merged_rows, largest_id)
}

/// Each row with the number of its part, once the largest id and the number of all rows are known.
fn deal_out<'s, R: Told>(rows: Rows<'s, R>, largest: Rows<'s, (u64, u64)>, partitions: u64) -> Rows<'s, (u32, R)> {
    rows.binary_frontier(largest, Pipeline, Pipeline, "deal out to parts", move |capability, _| {
        let mut to_come = Some(capability);
        let (mut waiting, mut largest_id, mut all): (Vec<Vec<R>>, u64, u64) = (Vec::new(), 0, 0);
        move |(rows, rows_to_come), (largest, ids_to_come), output| {
            rows.for_each(|_, some| waiting.push(std::mem::take(some)));
            largest.for_each(|_, of_workers| {
                for (largest, rows) in of_workers.iter() {
                    (largest_id, all) = (largest_id.max(*largest), all + rows);
                }
            });
            let Some(capability) = &to_come else { return };
            if !ids_to_come.is_empty() {
                return;
            }
            let parts = all.div_ceil(PART_ROWS).clamp(1, partitions);
            let part = |row: &R| (u128::from(row.id()) * u128::from(parts) / (u128::from(largest_id) + 1)) as u32;
            output.session(capability).give_iterator(waiting.drain(..).flatten().map(|row| (part(&row), row)));
            if rows_to_come.is_empty() {
                to_come = None;
            }
        }
    })
}

/// Writes parts at the workers that own them, each when all of its rows have come.
fn write<R: Told>(rows: Rows<'_, (u32, R)>, output: &Output, failures: &Failures) {
    let (output, failures) = (output.clone(), failures.clone());
    let mut parts: BTreeMap<u32, Vec<R>> = BTreeMap::new();
    rows.sink(To::new(|row: &(u32, R)| u64::from(row.0)), "write parts", move |(rows, to_come)| {
        rows.for_each(|_, rows| rows.drain(..).for_each(|(part, row)| parts.entry(part).or_default().push(row)));
        while to_come.is_empty()
            && let Some((part, mut rows)) = parts.pop_first()
        {
            rows.sort_unstable();
            if let Err(error) = output.put(part as usize, &rows) {
                failures.tell(error);
            }
        }
    });
}
