//! Opening Parquet files of unknown origin: bounded memory, no panic, and a store's failure never mistaken for bad
//! content.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;

use webtwin_base::error::Error;
use webtwin_base::read_at::ReadAt;

/// Largest footer accepted. One of this size describes a few hundred thousand column chunks.
const FOOTER_BYTES: u64 = 64 << 20;

/// A Parquet file whose footer has been read.
pub struct ParquetFile {
    /// The reader of its row groups and metadata.
    pub reader: SerializedFileReader<Chunks>,
    failure: Arc<Mutex<Option<Error>>>,
}

/// Why a part of a Parquet file cannot be read.
#[derive(Debug)]
pub enum Fault {
    /// The bytes violate the format; says how.
    Content(String),
    /// The store failed, or the file changed.
    Run(Error),
}

impl ParquetFile {
    /// Opens a file and reads its footer.
    pub fn open(file: Arc<dyn ReadAt>) -> std::result::Result<ParquetFile, Fault> {
        check_ends(file.as_ref())?;
        let failure = Arc::new(Mutex::new(None));
        let chunks = Chunks { file, failure: Arc::clone(&failure) };
        // The kinds of pages, not only their encodings: a copy has pages like those of its original.
        let options = ReadOptionsBuilder::new().with_encoding_stats_as_mask(false).build();
        let reader = guard(&failure, || SerializedFileReader::new_with_options(chunks, options))?;
        Ok(ParquetFile { reader, failure })
    }

    /// Runs a read from this file, turning errors and panics of the reader into a [`Fault`].
    pub fn guard<T>(&self, read: impl FnOnce() -> parquet::errors::Result<T>) -> std::result::Result<T, Fault> {
        guard(&self.failure, read)
    }

    /// Opens a leaf column of a row group.
    pub fn column(&self, group: usize, leaf: usize) -> std::result::Result<ColumnReader, Fault> {
        self.guard(|| self.reader.get_row_group(group)?.get_column_reader(leaf))
    }
}

/// Checks the magic at both ends, and that the footer lies within the file, before any of its bytes is trusted.
fn check_ends(file: &dyn ReadAt) -> std::result::Result<(), Fault> {
    let content = |reason: String| Err(Fault::Content(reason));
    let length = file.len();
    if length < 12 {
        return content(format!("is {length} bytes long, too short for a Parquet file"));
    }
    let tail = file.read_at(length - 8, 8).map_err(Fault::Run)?;
    match &tail[4..] {
        b"PAR1" => {}
        b"PARE" => return content("is encrypted, which is not supported".into()),
        _ => return content("has no Parquet footer at its end; was it written to the end?".into()),
    }
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if footer > length - 12 {
        return content(format!("names a footer of {footer} bytes in a file of {length}"));
    }
    if footer > FOOTER_BYTES {
        return content(format!("has a footer of {footer} bytes, more than the {FOOTER_BYTES} that are read"));
    }
    Ok(())
}

/// The crate still panics on some damage, so a panic counts as damage; a failure of the store, noted on its way, takes
/// precedence.
fn guard<T>(
    failure: &Mutex<Option<Error>>,
    read: impl FnOnce() -> parquet::errors::Result<T>,
) -> std::result::Result<T, Fault> {
    let outcome = catch_unwind(AssertUnwindSafe(read));
    if let Some(error) = failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(Fault::Run(error));
    }
    match outcome {
        Ok(read) => read.map_err(|error| Fault::Content(error.to_string())),
        Err(_) => Err(Fault::Content("its data leads the decoder astray".into())),
    }
}

/// Adapts a file to the crate.
pub struct Chunks {
    file: Arc<dyn ReadAt>,
    failure: Arc<Mutex<Option<Error>>>,
}

impl Chunks {
    fn bytes(&self, start: u64, length: usize) -> io::Result<Bytes> {
        match self.file.read_at(start, length) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => {
                let reason = error.to_string();
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                Err(io::Error::other(reason))
            }
        }
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Chunks {
    type T = From;

    fn get_read(&self, start: u64) -> parquet::errors::Result<From> {
        let chunks = Chunks { file: Arc::clone(&self.file), failure: Arc::clone(&self.failure) };
        Ok(From { chunks, next: start, buffer: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // Checked first, because damage must not make us allocate.
        if start.checked_add(length as u64).is_none_or(|end| end > self.file.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} lie beyond the end")));
        }
        Ok(self.bytes(start, length)?)
    }
}

/// Reads on from a place in a file. The crate reads page headers with it, which are short.
pub struct From {
    chunks: Chunks,
    next: u64,
    buffer: Bytes,
}

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer = self.chunks.bytes(self.next, 512)?;
            self.next += self.buffer.len() as u64;
        }
        let taken = self.buffer.split_to(into.len().min(self.buffer.len()));
        into[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}

impl Fault {
    /// Converts the fault into an error of an input that cannot be read at all.
    pub fn of_input(self, name: &str) -> Error {
        match self {
            Fault::Content(reason) => Error::input(name, format!("bad_parquet: {reason}")),
            Fault::Run(error) => error,
        }
    }
}

/// Number of rows of a row group; 0 if the footer has a negative one ([`has_rows_below_zero`]).
pub fn rows_of(file: &ParquetFile, group: usize) -> usize {
    usize::try_from(file.reader.metadata().row_group(group).num_rows()).unwrap_or(0)
}

/// Whether the footer gives a row group fewer than no rows: then nobody knows how many there are.
pub fn has_rows_below_zero(file: &ParquetFile, group: usize) -> bool {
    file.reader.metadata().row_group(group).num_rows() < 0
}
