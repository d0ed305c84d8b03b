//! Reads rows of tables that other programs wrote. Each worker reads its share of the parts of the
//! tables. A part is a row group of a Parquet file, or a whole file of lines.

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_job::RecordLimits;
use webtwin_pages::foreign_table::{ForeignTable, ForeignTableRow};

/// Row that cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Bytes of the row, if it is a line of text.
    pub bytes: u64,
}

/// Row that was parsed, or a malformed row.
pub type ForeignRow<T> = std::result::Result<T, Malformed>;

/// Numbers of rows of some tables by their outcome; `read = used + unknown + malformed + self_pairs
/// + duplicates`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCounts {
    /// Rows read.
    pub read: u64,
    /// Rows that are used: the first of equal rows, with known pages.
    pub used: u64,
    /// Rows with an unknown page.
    pub unknown: u64,
    /// Rows that cannot be parsed.
    pub malformed: u64,
    /// Bytes of the malformed rows that are lines of text.
    pub malformed_bytes: u64,
    /// Pairs of a page with itself.
    pub self_pairs: u64,
    /// Rows that repeat other rows.
    pub duplicates: u64,
}

impl RowCounts {
    /// Counts a row, and returns it if it was parsed.
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

    /// Adds up the counts of all workers, and computes the number of used rows. Takes one round.
    ///
    /// # Errors
    /// Returns an error only if the run has ended.
    pub(crate) fn of_all(self, net: &mut Net<'_>) -> Result<RowCounts> {
        let RowCounts { read: rows_read, unknown, malformed, malformed_bytes, self_pairs, duplicates, .. } = self;
        let [rows_read, unknown, malformed, malformed_bytes, self_pairs, duplicates] =
            net.all_sum("rows", [rows_read, unknown, malformed, malformed_bytes, self_pairs, duplicates])?;
        let rows_used = rows_read - unknown - malformed - self_pairs - duplicates;
        Ok(RowCounts { read: rows_read, used: rows_used, unknown, malformed, malformed_bytes, self_pairs, duplicates })
    }
}

/// Share of a worker in the parts of some tables.
pub(crate) struct OwnParts<'t> {
    tables: Vec<&'t ForeignTable>,
    limits: &'t RecordLimits,
    index: usize,
    peers: usize,
}

impl<'t> OwnParts<'t> {
    /// Returns the share of this worker.
    pub(crate) fn new(net: &Net<'_>, tables: Vec<&'t ForeignTable>, limits: &'t RecordLimits) -> OwnParts<'t> {
        OwnParts { tables, limits, index: net.index(), peers: net.peers() }
    }

    /// Returns the approximate number of rows in this share.
    pub(crate) fn expected_rows(&self) -> u64 {
        let parts = |(number, table): (usize, &&ForeignTable)| {
            let own_parts = table.parts().iter().enumerate().filter(|(part, _)| self.has(number, *part));
            own_parts.map(|(_, rows)| rows).sum::<u64>()
        };
        self.tables.iter().enumerate().map(parts).sum()
    }

    fn has(&self, number: usize, part: usize) -> bool {
        (number + part) % self.peers == self.index
    }

    /// Reads the rows of this share. `make` receives the fields of the wanted columns, and returns
    /// `None` if it cannot parse them.
    pub(crate) fn rows<T: 't, const N: usize>(
        self,
        columns: [&'static [&'static str]; N],
        make: fn([Option<String>; N]) -> Option<T>,
    ) -> impl Iterator<Item = Result<ForeignRow<T>>> + 't {
        let tables = (0..self.tables.len())
            .map(move |number| self.tables[number].rows(columns, self.limits, |part| self.has(number, part)));
        tables.flatten_ok().map(move |row| {
            let ForeignTableRow { fields, bytes, .. } = row??;
            Ok(fields.and_then(make).ok_or(Malformed { bytes }))
        })
    }
}
