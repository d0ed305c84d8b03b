//! Rows of tables of any origin: each worker reads its share of their parts, which are row groups of Parquet
//! and whole files of lines.

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_job::Limits;
use webtwin_pages::foreign_table::{ForeignTable, Row};

/// A row that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Its bytes, where it is a line of text.
    pub bytes: u64,
}

/// A row that was understood, or one that cannot be.
pub type ForeignRow<T> = std::result::Result<T, Malformed>;

/// Outcome of the rows of some tables; `read = used + unknown + malformed + self_pairs + duplicates`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCounts {
    /// Rows read.
    pub read: u64,
    /// Rows that are the first to say what they do of known pages.
    pub used: u64,
    /// Rows with an unknown page.
    pub unknown: u64,
    /// Rows that cannot be understood.
    pub malformed: u64,
    /// Bytes of these, where they are lines of text.
    pub malformed_bytes: u64,
    /// Pairs of a page with itself.
    pub self_pairs: u64,
    /// Rows that repeat others.
    pub duplicates: u64,
}

impl RowCounts {
    /// Counts a row, and returns it if it was understood.
    pub(crate) fn understood<T>(&mut self, row: ForeignRow<T>) -> Option<T> {
        self.read += 1;
        match row {
            Ok(row) => Some(row),
            Err(Malformed { bytes }) => {
                self.malformed += 1;
                self.malformed_bytes += bytes;
                None
            }
        }
    }

    /// Adds up the counts of all workers, and fills in the rows that are used. One round.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub(crate) fn of_all(self, net: &mut Net<'_>) -> Result<RowCounts> {
        let RowCounts { read, unknown, malformed, malformed_bytes, self_pairs, duplicates, .. } = self;
        let [read, unknown, malformed, malformed_bytes, self_pairs, duplicates] =
            net.all_sum("rows", [read, unknown, malformed, malformed_bytes, self_pairs, duplicates])?;
        let used = read - unknown - malformed - self_pairs - duplicates;
        Ok(RowCounts { read, used, unknown, malformed, malformed_bytes, self_pairs, duplicates })
    }
}

/// A worker's share of the parts of some tables.
pub(crate) struct OwnParts<'t> {
    tables: Vec<&'t ForeignTable>,
    limits: &'t Limits,
    index: usize,
    peers: usize,
}

impl<'t> OwnParts<'t> {
    /// Returns the share of this worker.
    pub(crate) fn of(net: &Net<'_>, tables: Vec<&'t ForeignTable>, limits: &'t Limits) -> OwnParts<'t> {
        OwnParts { tables, limits, index: net.index(), peers: net.peers() }
    }

    /// Returns the approximate number of rows.
    pub(crate) fn about(&self) -> u64 {
        let parts = |(number, table): (usize, &&ForeignTable)| {
            let own = table.parts().iter().enumerate().filter(|(part, _)| self.has(number, *part));
            own.map(|(_, rows)| rows).sum::<u64>()
        };
        self.tables.iter().enumerate().map(parts).sum()
    }

    fn has(&self, number: usize, part: usize) -> bool {
        (number + part) % self.peers == self.index
    }

    /// Reads the rows of this share. `make` gets the fields of the wanted columns, and returns `None` if it
    /// cannot understand them.
    pub(crate) fn rows<T: 't, const N: usize>(
        self,
        wanted: [&'static [&'static str]; N],
        make: fn([Option<String>; N]) -> Option<T>,
    ) -> impl Iterator<Item = Result<ForeignRow<T>>> + 't {
        let tables = (0..self.tables.len())
            .map(move |number| self.tables[number].rows(wanted, self.limits, |part| self.has(number, part)));
        tables.flatten_ok().map(move |row| {
            let Row { fields, bytes } = row??;
            Ok(fields.and_then(make).ok_or(Malformed { bytes }))
        })
    }
}
