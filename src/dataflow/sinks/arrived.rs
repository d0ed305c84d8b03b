//! Slices of tables on their way to the owners of their files.
//!
//! Without a bound of memory they come at once, and stay in it. Within one they come in rounds, and wait on the local disk.

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::drafts::{FIRST_ROWS, Make};
use crate::reading::byte_lists::ByteLists;
use crate::reading::item_record::codec;
use crate::reading::lists::until_failure;
use webtwin_base::error::{Error, Result};
use webtwin_engine::Net;
use webtwin_storage::spill_file::Disk;
use webtwin_storage::table::Table;

/// Bytes on disk, about, of rows that a worker sends in a round where memory has a bound.
pub const SENT_AT_ONCE: u64 = 4_000_000;

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
    tables: ByteLists,
}

/// Brings slices, given in pieces that may fail, to the workers beside them: at once, or in rounds if there is a disk.
///
/// # Errors
/// Those of making the slices, and of the disk.
pub fn bring<P: Copy + Serialize + DeserializeOwned + Send + 'static>(
    net: &mut Net<'_>,
    pieces: impl Iterator<Item = Result<impl Iterator<Item = (usize, (P, Table))>>>,
    disk: Option<&Disk>,
) -> Result<Arrived<P>> {
    let (mut held, mut stored) = (Vec::new(), Stored { slices: Vec::new(), tables: ByteLists::default() });
    until_failure(pieces, |pieces| match disk {
        None => {
            held = net.exchange_rows("tables", pieces.flatten())?;
            Ok(())
        }
        Some(disk) => {
            stored.tables = ByteLists::on(disk)?;
            let most = (SENT_AT_ONCE, |slice: &(P, Table)| slice.1.weight());
            net.exchange_in_rounds("tables", pieces.flatten(), most, |(place, rows)| stored.push(place, &rows))
        }
    })?;
    Ok(Arrived { held, stored })
}

impl<P: Copy> Stored<P> {
    fn push(&mut self, place: P, rows: &Table) -> Result<()> {
        self.slices.push((place, rows.rows()));
        self.tables.push(&codec().serialize(rows).expect("plain values go into memory"))
    }

    fn get(&self, number: usize) -> Result<Table> {
        let mut tables = self.tables.reader();
        let table = codec().deserialize(tables.get(number)?);
        table.map_err(|cause| Error::Invariant(format!("rows of a table on disk: {cause}")))
    }

    /// The slices: their places, their rows, and what makes these.
    pub fn slices(&self) -> impl Iterator<Item = (P, usize, Make<'_>)> {
        let slice = move |(number, &(place, rows))| (place, rows, Box::new(move |_| self.get(number)) as Make<'_>);
        self.slices.iter().enumerate().map(slice)
    }
}

/// A table cut into pieces that are sent by themselves.
pub fn slices(table: Table) -> impl Iterator<Item = Table> {
    let rows: Vec<usize> = (0..table.rows()).collect();
    (0..rows.len()).step_by(SLICE_ROWS).map(move |start| table.pick(&rows[start..rows.len().min(start + SLICE_ROWS)]))
}
