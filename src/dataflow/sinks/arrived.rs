//! Slices of tables that are sent to the owners of their files.
//!
//! The slices stay in memory if memory is not limited. Otherwise they wait on the local disk.

use itertools::Itertools;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::drafts::{FIRST_ROWS, Make};
use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_spill::SpillRows;
use webtwin_storage::table::Table;

/// Maximum number of rows of a slice. It equals the rows of the first piece of a draft, so a stored
/// slice is always read as one piece.
const SLICE_ROWS: usize = FIRST_ROWS;

/// Slices that arrived, each with its place, in the order of arrival.
pub struct IncomingRows<P> {
    /// Slices in memory.
    pub in_memory: Vec<(P, Table)>,
    /// Slices on disk.
    pub stored: StoredSlices<P>,
}

/// Slices on disk.
pub struct StoredSlices<P> {
    /// Places, and numbers of rows.
    slices: Vec<(P, usize)>,
    tables: SpillRows<Table>,
}

/// Sends slices to the workers that they are paired with. The slices are given in pieces, each of
/// which may fail.
///
/// # Errors
/// Returns any error of building the slices, and any error of the disk.
pub fn bring<P: Copy + Serialize + DeserializeOwned + Send + 'static>(
    net: &mut Net<'_>,
    pieces: impl Iterator<Item = Result<impl Iterator<Item = (usize, (P, Table))>>>,
) -> Result<IncomingRows<P>> {
    let (mut rows_in_memory, mut stored) =
        (Vec::new(), StoredSlices { slices: Vec::new(), tables: SpillRows::new(&net.memory) });
    let is_bounded = net.memory.is_bounded();
    net.exchange_values_into("tables", pieces.flatten_ok(), |(place, rows)| {
        if !is_bounded {
            rows_in_memory.push((place, rows));
            return Ok(());
        }
        stored.slices.push((place, rows.rows()));
        stored.tables.push(&rows)
    })?;
    Ok(IncomingRows { in_memory: rows_in_memory, stored })
}

impl<P: Copy> StoredSlices<P> {
    /// Returns the slices: their places, their numbers of rows, and functions that read the rows.
    pub fn slices(&self) -> impl Iterator<Item = (P, usize, Make<'_>)> {
        let slice = move |(number, &(place, rows))| {
            (place, rows, Box::new(move |_| self.tables.reader().get(number)) as Make<'_>)
        };
        self.slices.iter().enumerate().map(slice)
    }
}

/// Cuts a table into slices that are sent separately.
pub fn slices(table: Table) -> impl Iterator<Item = Table> {
    let rows: Vec<usize> = (0..table.rows()).collect();
    (0..rows.len()).step_by(SLICE_ROWS).map(move |start| table.pick(&rows[start..rows.len().min(start + SLICE_ROWS)]))
}
