//! The `rejected` table: records that are not kept are sent to the owners of their inputs, which
//! sort them.
//!
//! # Memory
//! Takes the memory of the records of one round in transit, and of all records that arrive. If
//! memory is limited, takes some tens of megabytes, and 8 bytes for each record.

use std::ops::Range;

use crate::reading::rejection::Rejection;
use crate::sinks::drafts::{self, Draft};
use webtwin_base::error::Result;
use webtwin_engine::{Net, Owners, RoundRobin};
use webtwin_spill::{Sorter, SpillRows};
use webtwin_storage::table::{Table, TableColumn};

/// Rows of the partitions that this worker owns, ascending.
pub(crate) struct RejectedRows {
    rows: SpillRows<Rejection>,
    /// Partitions, and the ranges of their rows.
    parts: Vec<(usize, Range<usize>)>,
}

impl RejectedRows {
    /// Sends records of `sources` inputs to the owners of their partitions, in rounds.
    ///
    /// # Errors
    /// Returns any error of the disk, on which records may be, and an error if the run has ended.
    pub(crate) fn gather(
        net: &mut Net<'_>,
        rejections: SpillRows<Rejection>,
        sources: usize,
        partitions: usize,
    ) -> Result<RejectedRows> {
        let assignment = RoundRobin::new(net.peers());
        // Inputs are in ascending order, and each partition has a range of them.
        let partition = |row: &Rejection| row.source as usize * partitions / sources.max(1);
        let mut sorter = Sorter::new(&net.memory);
        let rows = rejections.rows().map(|row| row.map(|row| (assignment.owner(partition(&row)), row)));
        net.exchange_values_into("rejected", rows, |row| sorter.push(row))?;
        let mut rejected = RejectedRows { rows: rejections.like(), parts: Vec::new() };
        drop(rejections);
        for row in sorter.finish()?.rows() {
            let (row, number) = (row?, rejected.rows.len());
            match rejected.parts.last_mut() {
                Some((last, numbers)) if *last == partition(&row) => numbers.end += 1,
                _ => rejected.parts.push((partition(&row), number..number + 1)),
            }
            rejected.rows.push(&row)?;
        }
        Ok(rejected)
    }

    /// Returns the parts of the table. `sources` are the names of the inputs.
    pub(crate) fn drafts<'r>(&'r self, sources: &'r [String]) -> impl Iterator<Item = Draft<'r>> {
        self.parts.iter().map(move |(partition, numbers)| {
            let make = move |piece: Range<usize>| {
                let rows = self.rows.read(numbers.start + piece.start..numbers.start + piece.end);
                Ok(table(&rows.collect::<Result<Vec<Rejection>>>()?, sources))
            };
            Draft {
                name: "rejected",
                partition: *partition,
                rows: drafts::PartRows::Unbuilt(numbers.len(), Box::new(make)),
            }
        })
    }
}

/// Returns the table with the given rows.
pub(crate) fn table(rows: &[Rejection], sources: &[String]) -> Table {
    Table::new([
        ("source", TableColumn::Text(rows.iter().map(|row| &*sources[row.source as usize]).collect())),
        ("offset", TableColumn::Count(rows.iter().map(|row| row.offset).collect())),
        ("reason", TableColumn::Text(rows.iter().map(|row| row.reason.as_str()).collect())),
        ("detail", TableColumn::Text(rows.iter().map(|row| &*row.detail).collect())),
    ])
}
