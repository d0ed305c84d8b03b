//! Parts of tables whose rows are built when they are written.
//!
//! Rows in the internal form take less memory than as columns of a table, which repeat URLs and
//! names of hosts. So table rows are built piece by piece: once to estimate their size and, unless
//! there are few of them, again to be written.

use std::fmt;
use std::ops::Range;

use bytemuck::Pod;

use crate::parts::TablePart;
use crate::shuffle::directory::Directory;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_spill::SpillColumn;
use webtwin_storage::table::Table;

/// Part of a table: the rows of one partition.
pub struct Draft<'r> {
    /// Name of the table.
    pub name: &'r str,
    /// Number of the partition.
    pub partition: usize,
    /// Rows of the part.
    pub(super) rows: PartRows<'r>,
}

/// Function that builds a range of the rows of a part.
pub type Make<'r> = Box<dyn Fn(Range<usize>) -> Result<Table> + 'r>;

/// Rows of a part.
pub enum PartRows<'r> {
    /// Rows that have been built.
    Built(Table),
    /// Number of rows, and the function that builds them.
    Unbuilt(usize, Make<'r>),
}

/// Maximum number of rows of a piece. The next constants are the number of rows of the first piece,
/// and the approximate bytes of a piece.
const PIECE_ROWS: usize = 1 << 14;
pub(super) const FIRST_ROWS: usize = 1 << 8;
const PIECE_BYTES: usize = 4 << 20;

impl fmt::Debug for Draft<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.name, self.partition)
    }
}

impl From<TablePart> for Draft<'_> {
    fn from(TablePart { name, partition, rows }: TablePart) -> Self {
        Draft::with_rows(name, partition, rows)
    }
}

impl<'r> Draft<'r> {
    /// Creates a part with rows that have been built.
    pub(super) fn with_rows(name: &'r str, partition: usize, rows: Table) -> Draft<'r> {
        Draft { name, partition, rows: PartRows::Built(rows) }
    }

    /// Returns the approximate bytes of the rows on disk. The rows that are built for this are kept
    /// if they fit into the budget `budget`, which is reduced by their bytes.
    ///
    /// # Errors
    /// Returns any error of building the rows, which may be read from disk.
    pub(super) fn weigh(&mut self, budget: &mut u64) -> Result<u64> {
        let (rows, make) = match &self.rows {
            PartRows::Built(table) => return Ok(table.weight()),
            PartRows::Unbuilt(rows, make) => (*rows, make),
        };
        let (mut bytes, mut table) = (0, (rows <= PIECE_ROWS).then(Table::default));
        for piece in pieces(rows, make) {
            let piece = piece?;
            bytes += piece.weight();
            table = table.filter(|_| bytes <= *budget);
            if let Some(table) = &mut table {
                table.append(piece)?;
            }
        }
        if let Some(table) = table {
            *budget -= bytes;
            self.rows = PartRows::Built(table);
        }
        Ok(bytes)
    }

    /// Returns the rows, piece by piece.
    pub(super) fn pieces(self) -> Box<dyn Iterator<Item = Result<Table>> + 'r> {
        match self.rows {
            PartRows::Built(table) => Box::new(std::iter::once(Ok(table))),
            PartRows::Unbuilt(rows, make) => Box::new(pieces(rows, make)),
        }
    }
}

/// Builds rows piece by piece: a few first, then as many as fit into [`PIECE_BYTES`] according to
/// the size of the previous rows. An empty part has one piece without rows.
fn pieces(rows: usize, make: impl Fn(Range<usize>) -> Result<Table>) -> impl Iterator<Item = Result<Table>> {
    let (mut piece_start, mut next) = (0, FIRST_ROWS);
    let mut is_first = true;
    std::iter::from_fn(move || {
        if piece_start == rows && !is_first {
            return None;
        }
        is_first = false;
        let piece = piece_start..rows.min(piece_start + next);
        piece_start = piece.end;
        let table = make(piece.clone());
        if let Ok(table) = &table {
            let a_row = table.bytes(0..table.rows()) / table.rows().max(1);
            next = (PIECE_BYTES / a_row.max(1)).clamp(1, PIECE_ROWS).min(4 * piece.len().max(1));
        }
        Some(table)
    })
}

/// Returns the parts of a table with the given rows, which are ascending by partition.
pub(crate) fn split<'r, R>(
    name: &'static str,
    rows: &'r [R],
    partition: impl Fn(&R) -> usize,
    table: impl Fn(&'r [R]) -> Result<Table> + Copy + 'r,
) -> Vec<Draft<'r>> {
    let partition_rows = rows.chunk_by(|x, y| partition(x) == partition(y));
    let draft = |rows: &'r [R]| {
        let make = Box::new(move |piece: Range<usize>| table(&rows[piece]));
        Draft { name, partition: partition(&rows[0]), rows: PartRows::Unbuilt(rows.len(), make) }
    };
    partition_rows.map(draft).collect()
}

/// Returns the parts of a table with the given rows, each of which is in the partition of its page.
pub(crate) fn by_page<'r, R>(
    name: &'static str,
    directory: &Directory,
    rows: &'r [R],
    page: impl Fn(&R) -> Page,
    table: impl Fn(&'r [R]) -> Result<Table> + Copy + 'r,
) -> Vec<Draft<'r>> {
    split(name, rows, |row| directory.partition(page(row)), table)
}

/// Returns the parts of a table with the rows of a column, each of which is in the partition of its
/// page.
///
/// # Errors
/// Returns any error of the disk, on which the column may be.
pub(crate) fn spilled_by_page<'r, R: Pod>(
    name: &'static str,
    directory: &Directory,
    rows: &'r SpillColumn<R>,
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
        Draft { name, partition, rows: PartRows::Unbuilt(count, Box::new(make)) }
    };
    Ok(parts.into_iter().map(draft).collect())
}
