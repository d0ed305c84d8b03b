//! Slices of tables on their way to the owners of their files.
//!
//! Without a bound of memory they stay in it. Within one they wait on the local disk.

use itertools::Itertools;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::drafts::{FIRST_ROWS, Make};
use webtwin_base::error::Result;
use webtwin_engine::Net;
use webtwin_spill::Rows;
use webtwin_storage::table::Table;

/// Rows that travel together: what comes is made at once.
const SLICE_ROWS: usize = FIRST_ROWS;

/// What others have sent, each with the place that it is for, in the order it came.
pub struct Arrived<P> {
    /// In memory.
    pub held: Vec<(P, Table)>,
    /// On disk.
    pub stored: Stored<P>,
}

/// Slices on disk.
pub struct Stored<P> {
    /// Places, and numbers of rows.
    slices: Vec<(P, usize)>,
    tables: Rows<Table>,
}

/// Brings slices, given in pieces that may fail, to the workers beside them.
///
/// # Errors
/// Those of making the slices, and of the disk.
pub fn bring<P: Copy + Serialize + DeserializeOwned + Send + 'static>(
    net: &mut Net<'_>,
    pieces: impl Iterator<Item = Result<impl Iterator<Item = (usize, (P, Table))>>>,
) -> Result<Arrived<P>> {
    let (mut held, mut stored) = (Vec::new(), Stored { slices: Vec::new(), tables: Rows::new(&net.memory) });
    let is_bounded = net.memory.is_bounded();
    net.exchange_values_into("tables", pieces.flatten_ok(), |(place, rows)| {
        if !is_bounded {
            held.push((place, rows));
            return Ok(());
        }
        stored.slices.push((place, rows.rows()));
        stored.tables.push(&rows)
    })?;
    Ok(Arrived { held, stored })
}

impl<P: Copy> Stored<P> {
    /// The slices: their places, their rows, and what makes these.
    pub fn slices(&self) -> impl Iterator<Item = (P, usize, Make<'_>)> {
        let slice = move |(number, &(place, rows))| {
            (place, rows, Box::new(move |_| self.tables.reader().get(number)) as Make<'_>)
        };
        self.slices.iter().enumerate().map(slice)
    }
}

/// A table cut into pieces that are sent by themselves.
pub fn slices(table: Table) -> impl Iterator<Item = Table> {
    let rows: Vec<usize> = (0..table.rows()).collect();
    (0..rows.len()).step_by(SLICE_ROWS).map(move |start| table.pick(&rows[start..rows.len().min(start + SLICE_ROWS)]))
}
