//! Parquet files of unknown origin: bounded memory, no panics, and failures of the store kept apart
//! from invalid content.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;

use webtwin_base::error::Error;
use webtwin_base::read_at::RandomAccess;

/// Maximum size of an accepted footer in bytes. A footer of this size describes a few hundred
/// thousand column chunks.
const FOOTER_BYTES: u64 = 64 << 20;

/// Parquet file whose footer has been read.
pub struct ParquetFile {
    /// Reader of its row groups and metadata.
    pub reader: SerializedFileReader<ParquetSource>,
    failure: Arc<Mutex<Option<Error>>>,
}

/// Reason why a part of a Parquet file cannot be read.
#[derive(Debug)]
pub enum Fault {
    /// The bytes violate the format. Contains the description of the violation.
    Content(String),
    /// The store failed, or the file changed.
    Run(Error),
}

impl ParquetFile {
    /// Opens a file and reads its footer.
    pub fn open(file: Arc<dyn RandomAccess>) -> std::result::Result<ParquetFile, Fault> {
        check_ends(file.as_ref())?;
        let failure = Arc::new(Mutex::new(None));
        let chunks = ParquetSource { file, failure: Arc::clone(&failure) };
        // The statistics per kind of page are needed, because a copy of the file must have the same
        // kinds of pages.
        let options = ReadOptionsBuilder::new().with_encoding_stats_as_mask(false).build();
        let reader = guard(&failure, || SerializedFileReader::new_with_options(chunks, options))?;
        Ok(ParquetFile { reader, failure })
    }

    /// Runs a read from this file, and converts errors and panics of the reader into a [`Fault`].
    pub fn guard<T>(&self, reader: impl FnOnce() -> parquet::errors::Result<T>) -> std::result::Result<T, Fault> {
        guard(&self.failure, reader)
    }

    /// Opens a leaf column of a row group.
    pub fn column(&self, group: usize, leaf: usize) -> std::result::Result<ColumnReader, Fault> {
        self.guard(|| self.reader.get_row_group(group)?.get_column_reader(leaf))
    }
}

/// Checks the magic numbers at both ends, and that the footer lies within the file, before its
/// bytes are used.
fn check_ends(file: &dyn RandomAccess) -> std::result::Result<(), Fault> {
    let content = |reason: String| Err(Fault::Content(reason));
    let length = file.len();
    if length < 12 {
        return content(format!("has {length} bytes, too few for a Parquet file; write or fetch it again"));
    }
    let tail = file.read_at(length - 8, 8).map_err(Fault::Run)?;
    match &tail[4..] {
        b"PAR1" => {}
        b"PARE" => return content("is encrypted, which is not supported; decrypt it".into()),
        _ => return content("has no Parquet footer at its end, so it is incomplete; write or fetch it again".into()),
    }
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if footer > length - 12 {
        return content(format!(
            "has a footer of {footer} bytes, more than its {length} bytes; write or fetch it again"
        ));
    }
    if footer > FOOTER_BYTES {
        return content(format!(
            "has a footer of {footer} bytes, more than the maximum of {FOOTER_BYTES} bytes; write fewer row groups or \
             columns"
        ));
    }
    Ok(())
}

/// Runs a read, and converts errors and panics into a [`Fault`]. The `parquet` crate still panics
/// on some damage, so a panic counts as damage. A failure of the store, which is recorded in
/// `failure`, takes precedence.
fn guard<T>(
    failure: &Mutex<Option<Error>>,
    reader: impl FnOnce() -> parquet::errors::Result<T>,
) -> std::result::Result<T, Fault> {
    let outcome = catch_unwind(AssertUnwindSafe(reader));
    if let Some(error) = failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(Fault::Run(error));
    }
    match outcome {
        Ok(read) => read.map_err(|error| Fault::Content(error.to_string())),
        Err(_) => Err(Fault::Content("its data is damaged, so the decoder failed".into())),
    }
}

/// Adapter from a file to the `parquet` crate.
pub struct ParquetSource {
    file: Arc<dyn RandomAccess>,
    failure: Arc<Mutex<Option<Error>>>,
}

impl ParquetSource {
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

impl Length for ParquetSource {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for ParquetSource {
    type T = FileCursor;

    fn get_read(&self, start: u64) -> parquet::errors::Result<FileCursor> {
        let chunks = ParquetSource { file: Arc::clone(&self.file), failure: Arc::clone(&self.failure) };
        Ok(FileCursor { chunks, next: start, buffer: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // Checked before the allocation, so that a damaged length cannot cause a large one.
        if start.checked_add(length as u64).is_none_or(|end| end > self.file.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at offset {start} are beyond the end")));
        }
        Ok(self.bytes(start, length)?)
    }
}

/// Sequential reader from a position in a file. The `parquet` crate uses it for page headers, which
/// are short.
pub struct FileCursor {
    chunks: ParquetSource,
    next: u64,
    buffer: Bytes,
}

impl Read for FileCursor {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer = self.chunks.bytes(self.next, 512)?;
            self.next += self.buffer.len() as u64;
        }
        let bytes = self.buffer.split_to(into.len().min(self.buffer.len()));
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

impl Fault {
    /// Converts the fault into the error of an input that cannot be read at all.
    pub fn of_input(self, name: &str) -> Error {
        match self {
            Fault::Content(reason) => Error::input(name, format!("bad_parquet: {reason}")),
            Fault::Run(error) => error,
        }
    }
}

/// Returns the number of rows of a row group, or 0 if the footer has a negative number
/// ([`has_rows_below_zero`]).
pub fn rows_of(file: &ParquetFile, group: usize) -> usize {
    usize::try_from(file.reader.metadata().row_group(group).num_rows()).unwrap_or(0)
}

/// True if the footer has a negative number of rows for a row group, whose true number is then
/// unknown.
pub fn has_rows_below_zero(file: &ParquetFile, group: usize) -> bool {
    file.reader.metadata().row_group(group).num_rows() < 0
}
