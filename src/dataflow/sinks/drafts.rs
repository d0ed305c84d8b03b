//! Parts of tables whose rows are made when they are written.
//!
//! Rows as a run holds them take less memory than as columns of a table, which repeat URLs and names of hosts. So they are made a
//! piece at a time: once to be weighed and, unless they are few, once more to be written.

use std::fmt;
use std::ops::Range;

use bytemuck::Pod;

use crate::parts::Part;
use crate::shuffle::directory::Directory;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_spill::Column;
use webtwin_storage::table::Table;

/// A part of a table: the rows of one partition.
pub struct Draft<'r> {
    /// Name of the table.
    pub name: &'r str,
    /// The partition.
    pub partition: usize,
    /// The rows.
    pub(super) rows: Rows<'r>,
}

/// What makes some of the rows of a part.
pub type Make<'r> = Box<dyn Fn(Range<usize>) -> Result<Table> + 'r>;

/// The rows of a part.
pub enum Rows<'r> {
    /// As they are.
    Made(Table),
    /// So many, to be made.
    Unmade(usize, Make<'r>),
}

/// Rows of a piece, at most; those of the first; and bytes of one, about.
const PIECE_ROWS: usize = 1 << 14;
pub(super) const FIRST_ROWS: usize = 1 << 8;
const PIECE_BYTES: usize = 4 << 20;

impl fmt::Debug for Draft<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.name, self.partition)
    }
}

impl From<Part> for Draft<'_> {
    fn from(Part { name, partition, rows }: Part) -> Self {
        Draft::made(name, partition, rows)
    }
}

impl<'r> Draft<'r> {
    /// A part whose rows are made.
    pub(super) fn made(name: &'r str, partition: usize, rows: Table) -> Draft<'r> {
        Draft { name, partition, rows: Rows::Made(rows) }
    }

    /// Bytes that its rows take on disk, about. What is made for that stays while `room` has as many bytes, which it takes.
    ///
    /// # Errors
    /// Those of making the rows, which may be of what is on disk.
    pub(super) fn weigh(&mut self, room: &mut u64) -> Result<u64> {
        let (rows, make) = match &self.rows {
            Rows::Made(table) => return Ok(table.weight()),
            Rows::Unmade(rows, make) => (*rows, make),
        };
        let (mut bytes, mut made) = (0, (rows <= PIECE_ROWS).then(Table::default));
        for piece in pieces(rows, make) {
            let piece = piece?;
            bytes += piece.weight();
            made = made.filter(|_| bytes <= *room);
            if let Some(made) = &mut made {
                made.append(piece)?;
            }
        }
        if let Some(made) = made {
            *room -= bytes;
            self.rows = Rows::Made(made);
        }
        Ok(bytes)
    }

    /// Its rows.
    pub(super) fn pieces(self) -> Box<dyn Iterator<Item = Result<Table>> + 'r> {
        match self.rows {
            Rows::Made(table) => Box::new(std::iter::once(Ok(table))),
            Rows::Unmade(rows, make) => Box::new(pieces(rows, make)),
        }
    }
}

/// Rows made a piece at a time: a few first, then as many as [`PIECE_BYTES`] have room for by what those before took. No rows are a
/// piece, too.
fn pieces(rows: usize, make: impl Fn(Range<usize>) -> Result<Table>) -> impl Iterator<Item = Result<Table>> {
    let (mut made, mut next) = (0, FIRST_ROWS);
    let mut is_first = true;
    std::iter::from_fn(move || {
        if made == rows && !is_first {
            return None;
        }
        is_first = false;
        let piece = made..rows.min(made + next);
        made = piece.end;
        let table = make(piece.clone());
        if let Ok(table) = &table {
            let a_row = table.bytes(0..table.rows()) / table.rows().max(1);
            next = (PIECE_BYTES / a_row.max(1)).clamp(1, PIECE_ROWS).min(4 * piece.len().max(1));
        }
        Some(table)
    })
}

/// The parts of a table with these rows, which ascend by partition.
pub(crate) fn split<'r, R>(
    name: &'static str,
    rows: &'r [R],
    partition: impl Fn(&R) -> usize,
    table: impl Fn(&'r [R]) -> Result<Table> + Copy + 'r,
) -> Vec<Draft<'r>> {
    let of_partition = rows.chunk_by(|x, y| partition(x) == partition(y));
    let draft = |rows: &'r [R]| {
        let make = Box::new(move |piece: Range<usize>| table(&rows[piece]));
        Draft { name, partition: partition(&rows[0]), rows: Rows::Unmade(rows.len(), make) }
    };
    of_partition.map(draft).collect()
}

/// The same where a row is in the partition of a page.
pub(crate) fn by_page<'r, R>(
    name: &'static str,
    directory: &Directory,
    rows: &'r [R],
    page: impl Fn(&R) -> Page,
    table: impl Fn(&'r [R]) -> Result<Table> + Copy + 'r,
) -> Vec<Draft<'r>> {
    split(name, rows, |row| directory.partition(page(row)), table)
}

/// The same of rows that are aside.
///
/// # Errors
/// Those of the disk that they may be on.
pub(crate) fn by_page_aside<'r, R: Pod>(
    name: &'static str,
    directory: &Directory,
    rows: &'r Column<R>,
    page: impl Fn(&R) -> Page,
    table: impl Fn(&[R]) -> Result<Table> + Copy + 'r,
) -> Result<Vec<Draft<'r>>> {
    let (mut parts, mut end) = (Vec::<(usize, Range<usize>)>::new(), 0);
    for block in rows.blocks() {
        for row in &*block? {
            let partition = directory.partition(page(row));
            end += 1;
            match parts.last_mut() {
                Some(last) if last.0 == partition => last.1.end = end,
                _ => parts.push((partition, end - 1..end)),
            }
        }
    }
    let draft = |(partition, places): (usize, Range<usize>)| {
        let count = places.len();
        let make = move |piece: Range<usize>| table(&rows.read(places.start + piece.start..places.start + piece.end)?);
        Draft { name, partition, rows: Rows::Unmade(count, Box::new(make)) }
    };
    Ok(parts.into_iter().map(draft).collect())
}
