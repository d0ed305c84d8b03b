//! File of fixed-size rows, memory-mapped and checked block by block on first access.
//!
//! ```text
//! rows, one after the other | checks: 4 bytes for each 4096 of the rows (see webtwin_core::hamming::checked) | trailer
//! ```
//!
//! The trailer is last, so that a file of any length is written in one pass. Numbers have the byte
//! order of the machine; a file of another byte order appears as another format and is refused. The
//! manifest of the index has the trailer's checksum (the *seal*), so a file of another index is
//! refused too.
//!
//! # Cost
//! A thousandth of the rows' size in addition, on disk and in memory while writing. Opening a file
//! reads its checks.

use std::io::Write;
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::checked::{BLOCK, CheckedSection, checks};
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::mapped::FileBytes;
use webtwin_storage::new_file::NewFile;

const MAGIC: [u8; 8] = *b"wt-lookp";

/// Format of the files that this build writes and reads.
const FORMAT: u32 = 1;

/// Number of bytes that are written at a time.
const PIECE: usize = 256 * BLOCK;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Trailer {
    magic: [u8; 8],
    format: u32,
    row_bytes: u32,
    rows: u64,
    checks: u64,
    /// XXH3 of all previous fields.
    own_offset: u64,
}

impl Trailer {
    fn of(row_bytes: usize, rows: u64, checks: &[u8]) -> Trailer {
        let checks = xxh3_64(checks);
        let open = Trailer { magic: MAGIC, format: FORMAT, row_bytes: row_bytes as u32, rows, checks, own_offset: 0 };
        Trailer { own_offset: open.checksum(), ..open }
    }

    fn checksum(&self) -> u64 {
        xxh3_64(&bytemuck::bytes_of(self)[..size_of::<Trailer>() - 8])
    }
}

/// Entry of a column in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// Number of rows.
    pub rows: u64,
    /// Checksum of the trailer, which has the checksums of the other parts.
    pub seal: String,
}

/// Writes a column to a file.
pub struct ColumnWriter<R> {
    file: NewFile,
    open: Vec<u8>,
    checks: Vec<u8>,
    rows: u64,
    row_type: PhantomData<R>,
}

impl<R: Pod> ColumnWriter<R> {
    /// Starts a column in a newly created file.
    pub fn new(file: NewFile) -> ColumnWriter<R> {
        ColumnWriter { file, open: Vec::with_capacity(PIECE), checks: Vec::new(), rows: 0, row_type: PhantomData }
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Returns any error of the store.
    #[inline]
    pub fn push(&mut self, row: R) -> Result<()> {
        self.extend(&[row])
    }

    /// Appends rows.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub fn extend(&mut self, rows: &[R]) -> Result<()> {
        self.rows += rows.len() as u64;
        let mut bytes: &[u8] = bytemuck::cast_slice(rows);
        while !bytes.is_empty() {
            let (now, remainder) = bytes.split_at(bytes.len().min(PIECE - self.open.len()));
            self.open.extend_from_slice(now);
            bytes = remainder;
            if self.open.len() == PIECE {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the buffered bytes: whole blocks, except in the last call.
    fn flush(&mut self) -> Result<()> {
        self.checks.extend(checks(&[&self.open]));
        self.file.write_all(&self.open).map_err(unwrap_error)?;
        self.open.clear();
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub fn finish(mut self) -> Result<(FileEntry, Seal)> {
        self.flush()?;
        let trailer = Trailer::of(size_of::<R>(), self.rows, &self.checks);
        self.file
            .write_all(&self.checks)
            .and_then(|()| self.file.write_all(bytemuck::bytes_of(&trailer)))
            .map_err(unwrap_error)?;
        let seal = Seal { rows: self.rows, seal: format!("{:016x}", trailer.own_offset) };
        Ok((self.file.finish(None)?, seal))
    }
}

/// Unwraps the error of a new file from the standard library's error type.
fn unwrap_error(cause: std::io::Error) -> Error {
    match cause.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => error.clone(),
        None => Error::storage("index", cause),
    }
}

/// Opened column. Threads may share it.
#[derive(Debug)]
pub struct IndexColumn<R> {
    name: String,
    bytes: FileBytes,
    section: CheckedSection,
    rows: usize,
    row_type: PhantomData<fn() -> R>,
}

impl<R: Pod> IndexColumn<R> {
    /// Opens a column. `name` is for messages.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is not a column, is truncated, is damaged at its end,
    /// or is not the one that was sealed.
    pub fn open(name: &str, bytes: FileBytes, seal: &Seal) -> Result<IndexColumn<R>> {
        let refuse = |how: &str| Err(Error::input(name, format!("{how}; fetch the index again or rebuild it")));
        let content: &[u8] = bytes.as_ref();
        let Some((rest, trailer)) = content.len().checked_sub(size_of::<Trailer>()).map(|at| content.split_at(at))
        else {
            return refuse("the file is too short for a file of an index");
        };
        let trailer: Trailer = bytemuck::pod_read_unaligned(trailer);
        if (trailer.magic, trailer.format, trailer.row_bytes as usize) != (MAGIC, FORMAT, size_of::<R>()) {
            return refuse("the file is truncated, or is not a file of an index that this build reads");
        }
        if trailer.own_offset != trailer.checksum()
            || format!("{:016x}", trailer.own_offset) != seal.seal
            || trailer.rows != seal.rows
        {
            return refuse("the file is not the one that was written with the index");
        }
        let rows = usize::try_from(trailer.rows).ok().and_then(|rows| rows.checked_mul(size_of::<R>()));
        let Some(end) = rows.filter(|end| *end <= rest.len()) else { return refuse("the file is truncated") };
        let checks = end..rest.len();
        if xxh3_64(&rest[checks.clone()]) != trailer.checks {
            return refuse("the checksums of the file are damaged");
        }
        let all_rows = 0..end;
        let Some([section]) = CheckedSection::sections([all_rows], checks) else {
            return refuse("the file is truncated");
        };
        let rows = trailer.rows as usize;
        Ok(IndexColumn { name: name.into(), bytes, section, rows, row_type: PhantomData })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the size of the file in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes.as_ref().len()
    }

    /// Returns a row.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the row is damaged or does not exist.
    #[inline]
    pub fn get(&self, row: usize) -> Result<R> {
        let span = row * size_of::<R>()..(row + 1) * size_of::<R>();
        let bytes: &[u8] = self.bytes.as_ref();
        match row < self.rows && self.section.is_good(bytes, span.clone()) {
            true => Ok(bytemuck::pod_read_unaligned(&bytes[span])),
            false => Err(self.damage_error(row)),
        }
    }

    /// Returns the rows of a range.
    ///
    /// # Errors
    /// Returns any error of [`IndexColumn::get`].
    pub fn range(&self, rows: Range<usize>) -> Result<impl ExactSizeIterator<Item = R> + '_> {
        let span = rows.start * size_of::<R>()..rows.end * size_of::<R>();
        let bytes: &[u8] = self.bytes.as_ref();
        let is_valid = rows.start <= rows.end && rows.end <= self.rows;
        match is_valid && (rows.is_empty() || self.section.is_good(bytes, span.clone())) {
            true => Ok(bytes[span].chunks_exact(size_of::<R>()).map(bytemuck::pod_read_unaligned)),
            false => Err(self.damage_error(rows.start)),
        }
    }

    #[cold]
    fn damage_error(&self, row: usize) -> Error {
        let message = match row < self.rows {
            true => format!("the file is damaged near row {row}"),
            false => format!(
                "the file has {} rows, but another file refers to row {row}, so the files are from different indexes",
                self.rows
            ),
        };
        Error::input(&self.name, format!("{message}; fetch the index again or rebuild it"))
    }
}

impl IndexColumn<u8> {
    /// Returns the bytes of a range.
    ///
    /// # Errors
    /// Returns any error of [`IndexColumn::get`].
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Result<&[u8]> {
        let bytes: &[u8] = self.bytes.as_ref();
        let is_valid = range.start <= range.end && range.end <= self.rows;
        match is_valid && (range.is_empty() || self.section.is_good(bytes, range.clone())) {
            true => Ok(&bytes[range]),
            false => Err(self.damage_error(range.start)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_storage::location::Location;
    use webtwin_storage::mapped::{Residence, file_bytes};

    /// Writes a column of the given rows in a folder.
    pub(in crate::lookup) fn column<R: Pod>(folder: &tempfile::TempDir, name: &str, rows: &[R]) -> (Location, Seal) {
        let location = Location::parse(folder.path().join(name).to_str().unwrap()).unwrap();
        let mut writer = ColumnWriter::new(NewFile::create(&location, name).unwrap());
        rows.chunks(1000).for_each(|some| writer.extend(some).unwrap());
        (location, writer.finish().unwrap().1)
    }

    fn open_column(location: &Location, seal: &Seal) -> Result<IndexColumn<u64>> {
        IndexColumn::open("c", file_bytes(location, Residence::Mapped).unwrap(), seal)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn rows_are_read_back_and_a_damaged_block_is_an_error(
            rows in 1usize..200_000, flip in any::<prop::sample::Index>(), asked in prop::collection::vec(any::<prop::sample::Index>(), 20)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let want: Vec<u64> = (0..rows as u64).map(webtwin_base::ids::splitmix64).collect();
            let (at, seal) = column(&folder, "c", &want);
            let whole = open_column(&at, &seal).unwrap();
            prop_assert!(asked.iter().all(|row| whole.get(row.index(rows)).unwrap() == want[row.index(rows)]));
            prop_assert!(whole.get(rows).is_err());
            drop(whole);
            let mut bytes = at.get().unwrap().unwrap();
            let hit = flip.index(bytes.len());
            bytes[hit] ^= 4;
            at.put(&bytes).unwrap();
            match open_column(&at, &seal) {
                Err(error) => prop_assert!(hit >= 8 * rows && error.exit_code() == 3),
                Ok(column) => {
                    prop_assert!(column.get(hit / 8).is_err());
                    for row in asked.iter().map(|row| row.index(rows)) {
                        prop_assert!(column.get(row).map_or(row * 8 / BLOCK == hit / BLOCK, |value| value == want[row]));
                    }
                }
            }
        }
    }

    #[test]
    fn a_column_of_another_index_or_of_other_rows_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (first, seal) = column(&folder, "one", &[1u64, 2]);
        let (second, _) = column(&folder, "other", &[1u64, 3]);
        assert!(open_column(&first, &seal).is_ok());
        assert!(open_column(&second, &seal).is_err());
        assert!(IndexColumn::<u32>::open("c", file_bytes(&first, Residence::Loaded).unwrap(), &seal).is_err());
        let bytes = first.get().unwrap().unwrap();
        for length in 0..bytes.len() {
            first.put(&bytes[..length]).unwrap();
            assert!(open_column(&first, &seal).is_err(), "{length}");
        }
    }
}
