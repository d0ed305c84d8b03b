//! The `rejected` table: records that are not kept go to the owners of their inputs, who put them in order.
//!
//! # Memory
//! Those of a round on their way; then all that arrive, or within a bound some tens of megabytes and 8 bytes each.

use std::ops::Range;

use crate::reading::lists::until_failure;
use crate::reading::rejections::{Rejection, Rejections};
use crate::shuffle::memory_estimate::room_beside;
use crate::sinks::drafts::{Draft, Rows};
use crate::sinks::sorted::Sorted;
use webtwin_base::error::Result;
use webtwin_engine::{Net, Owners, RoundRobin};
use webtwin_job::Job;
use webtwin_storage::table::{Column, Table};

/// Bytes that a worker sends in a round, about.
const BYTES_AT_ONCE: u64 = 4 << 20;

/// The rows of the partitions that this worker owns, ascending.
pub(crate) struct Rejected {
    rows: Rejections,
    /// Partitions, and the numbers of their rows.
    parts: Vec<(usize, Range<usize>)>,
}

impl Rejected {
    /// Brings records of so many inputs to the owners of their partitions, in rounds.
    ///
    /// # Errors
    /// Those of the disk that they may be on; or when the run has ended.
    pub(crate) fn gather(
        net: &mut Net<'_>,
        rejections: Rejections,
        (sources, partitions): (usize, usize),
        job: &Job,
    ) -> Result<Rejected> {
        let (dealt, disk) = (RoundRobin::new(net.peers()), room_beside(0, job).disk_if_bounded(net));
        // Inputs are in ascending order, and a partition has a range of them.
        let partition = |row: &Rejection| row.source as usize * partitions / sources.max(1);
        let bytes = |row: &Rejection| (size_of::<Rejection>() + row.detail.len()) as u64;
        let mut arrived = Sorted::beside(disk.as_ref())?;
        let rows = rejections.rows().map(|row| row.map(|row| (dealt.owner(partition(&row)), row)));
        until_failure(rows, |rows| {
            net.exchange_in_rounds("rejected", rows, (BYTES_AT_ONCE, bytes), |row| arrived.push(row))
        })?;
        let mut found = Rejected { rows: rejections.like(), parts: Vec::new() };
        drop(rejections);
        for row in arrived.finish()?.rows() {
            let (row, number) = (row?, found.rows.len());
            match found.parts.last_mut() {
                Some((last, numbers)) if *last == partition(&row) => numbers.end += 1,
                _ => found.parts.push((partition(&row), number..number + 1)),
            }
            found.rows.push(&row)?;
        }
        Ok(found)
    }

    /// The parts of the table. `sources` are the names of the inputs.
    pub(crate) fn drafts<'r>(&'r self, sources: &'r [String]) -> impl Iterator<Item = Draft<'r>> {
        self.parts.iter().map(move |(partition, numbers)| {
            let make = move |piece: Range<usize>| {
                let rows = self.rows.read(numbers.start + piece.start..numbers.start + piece.end);
                Ok(table(&rows.collect::<Result<Vec<Rejection>>>()?, sources))
            };
            Draft { name: "rejected", partition: *partition, rows: Rows::Unmade(numbers.len(), Box::new(make)) }
        })
    }
}

/// The table with these rows.
pub(crate) fn table(rows: &[Rejection], sources: &[String]) -> Table {
    Table::new([
        ("source", Column::Text(rows.iter().map(|row| &*sources[row.source as usize]).collect())),
        ("offset", Column::Count(rows.iter().map(|row| row.offset).collect())),
        ("reason", Column::Text(rows.iter().map(|row| row.reason.as_str()).collect())),
        ("detail", Column::Text(rows.iter().map(|row| &*row.detail).collect())),
    ])
}
