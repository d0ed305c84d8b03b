//! Slices of tables on their way to the owners of their files.
//!
//! Without a bound of memory they come at once, and stay in it. Within one they come in rounds, and wait on the local disk.

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::drafts::Make;
use crate::dataflow::reading::item_record::codec;
use crate::dataflow::reading::lists::{Lists, until_failure};
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::storage::spill::Disk;
use crate::storage::table::Table;

/// Bytes on disk, about, of rows that a worker sends in a round where memory has a bound.
const SENT_AT_ONCE: u64 = 4_000_000;

/// Rows that travel together.
const SLICE_ROWS: usize = 256;

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
    /// For each its length in bytes, and these.
    bytes: Lists,
}

/// Brings slices, given in pieces that may fail, to the workers beside them: at once, or in rounds if there is a disk.
///
/// # Errors
/// Those of making the slices, and of the disk.
pub fn bring<P: Copy + Default + Serialize + DeserializeOwned + Send + 'static>(
    net: &mut Net<'_>,
    pieces: impl Iterator<Item = Result<impl Iterator<Item = (usize, (P, Table))>>>,
    disk: Option<&Disk>,
) -> Result<Arrived<P>> {
    let stored = Stored { slices: Vec::new(), bytes: disk.map(Lists::beside).unwrap_or_default() };
    let (mut arrived, mut failed) = (Arrived { held: Vec::new(), stored }, None);
    arrived.stored.bytes.hold_at_most(0)?;
    let (mut slices, peers) = (until_failure(pieces, &mut failed).flatten().peekable(), net.peers());
    loop {
        let (mut sent, mut marks) = (0, 0..0);
        let some = std::iter::from_fn(|| {
            if sent < SENT_AT_ONCE
                && let Some(slice) = slices.next()
            {
                sent += disk.map_or(0, |_| slice.1.1.weight());
                if sent >= SENT_AT_ONCE && slices.peek().is_some() {
                    marks = 0..peers;
                }
                return Some(slice);
            }
            // A table without columns says that there is another round.
            marks.next().map(|to| (to, Default::default()))
        });
        let mut goes_on = false;
        for (place, rows) in net.exchange_rows("tables", some)? {
            match disk {
                _ if rows.columns.is_empty() => goes_on = true,
                None => arrived.held.push((place, rows)),
                Some(_) => arrived.stored.push(place, &rows)?,
            }
        }
        if !goes_on {
            break;
        }
    }
    drop(slices);
    failed.map_or(Ok(arrived), Err)
}

impl<P: Copy> Stored<P> {
    fn push(&mut self, place: P, rows: &Table) -> Result<()> {
        let bytes = codec().serialize(rows).expect("plain values go into memory");
        let mut words = vec![0; 1 + bytes.len().div_ceil(8)];
        words[0] = bytes.len() as u64;
        bytemuck::cast_slice_mut(&mut words[1..])[..bytes.len()].copy_from_slice(&bytes);
        self.slices.push((place, rows.rows()));
        self.bytes.push(&words)
    }

    fn get(&self, number: usize) -> Result<Table> {
        let mut bytes = self.bytes.reader();
        let words = bytes.get(number)?;
        let table: &[u8] = &bytemuck::cast_slice(&words[1..])[..words[0] as usize];
        codec().deserialize(table).map_err(|cause| Error::Invariant(format!("rows of a table on disk: {cause}")))
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
