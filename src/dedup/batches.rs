//! Division of a file into batches of whole records, which are read in sequence and processed
//! concurrently.
//!
//! Reading a file is sequential, but processing its records is not. So a batch is read while the
//! file is locked, and processed after the lock is released: a single file keeps all threads busy,
//! compressed or not.
//!
//! This is why lines are not read with [`webtwin_pages::jsonl`]. That module reads a range of a
//! file and emits each page on arrival. Here whole lines are collected, and their bytes are written
//! again unchanged.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::data_type::ByteArray;

use super::inputs::{CorpusFile, CorpusFormat};
use super::order::OrderKey;
use super::parquet_texts::ParquetTexts;
use super::settings::DedupSettings;
use webtwin_base::error::Result;
use webtwin_base::read_at::RandomAccess;
use webtwin_job::RecordLimits;
use webtwin_pages::decoded::{DecodedFile, FileStream, sort_out};
use webtwin_pages::record::Reason;
use webtwin_storage::open::{OpenFile, open_pinned};

/// Approximate size of a batch in bytes.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Records that were read together.
pub(crate) enum RecordBatch {
    /// Lines with their ends; the last line of the file may lack one.
    Lines {
        /// Offset of the first line in the decoded file.
        offset: u64,
        /// Bytes of the lines.
        bytes: Vec<u8>,
    },
    /// Line that exceeds the limit.
    TooLong {
        /// Offset of the line in the decoded file.
        offset: u64,
        /// Length of the line in bytes.
        length: u64,
    },
    /// Rest of the file, which cannot be decoded.
    Damaged {
        /// Offset of the rest in the decoded file.
        offset: u64,
        /// Reason of the rejection.
        reason: Reason,
        /// Description for users.
        detail: String,
        /// Number of lost bytes of the stored file.
        lost_bytes: u64,
    },
    /// Rows of a table.
    Rows(Vec<CorpusRow>),
}

/// Columns of a table's row that are needed.
pub(crate) struct CorpusRow {
    /// Text; `None` if it is null.
    pub text: Option<ByteArray>,
    /// Id of the record, if there is one.
    pub id: Option<String>,
    /// Value that the keep rule compares.
    pub key: OrderKey,
    /// Values of the fields that records are counted by.
    pub values: Vec<Option<String>>,
}

/// File that is being read.
pub(crate) enum Batches {
    /// Lines of JSON.
    Lines(LineBatches),
    /// Rows of Parquet.
    Rows(Box<ParquetTexts>),
}

impl Batches {
    /// Opens a file.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the file has changed, or is not Parquet
    /// with a column for the text.
    pub(crate) fn open(file: &CorpusFile, settings: &DedupSettings) -> Result<Batches> {
        Ok(match file.format {
            CorpusFormat::Jsonl(_) => Batches::Lines(LineBatches::open(file, &settings.limits)?),
            CorpusFormat::Parquet => Batches::Rows(Box::new(ParquetTexts::open(file, settings)?)),
        })
    }

    /// Returns the number of bytes of the file read since the last call.
    pub(crate) fn take_bytes_read(&mut self) -> u64 {
        match self {
            Batches::Lines(lines) => lines.take_bytes_read(),
            Batches::Rows(rows) => rows.take_bytes_read(),
        }
    }

    /// Returns the next batch, or `None` at the end.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Batches::Lines(lines) => lines.next(),
            Batches::Rows(rows) => rows.next().map(|rows| rows.map(RecordBatch::Rows)),
        }
    }
}

/// Lines of a file in batches.
pub(crate) struct LineBatches {
    input: Input,
    limit: usize,
    /// Offset of the next batch in the decoded file.
    offset: u64,
    /// Beginning of an incomplete line.
    partial_line: Vec<u8>,
    bytes_read: Arc<AtomicU64>,
}

/// File that counts the bytes that are read from it.
struct Counted {
    file: Arc<OpenFile>,
    bytes_read: Arc<AtomicU64>,
}

impl RandomAccess for Counted {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let bytes = self.file.read_at(offset, length)?;
        self.bytes_read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Stream of lines of a file.
trait LineStream: Read + FileStream + Send {}

impl<S: Read + FileStream + Send> LineStream for S {}

enum Input {
    Open(Box<dyn LineStream>),
    /// Decoding error, and the number of bytes of the file that it makes unreadable.
    Failed(io::Error, u64),
    Ended,
}

impl LineBatches {
    /// Opens a file.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the file has changed.
    pub(crate) fn open(file: &CorpusFile, limits: &RecordLimits) -> Result<LineBatches> {
        let CorpusFormat::Jsonl(compression) = file.format else {
            return Err(webtwin_base::error::Error::Invariant(format!("{} is not read as lines", file.name())));
        };
        let bytes_taken = Arc::default();
        let bytes =
            Arc::new(Counted { file: open_pinned(&file.location, &file.stamp)?, bytes_read: Arc::clone(&bytes_taken) });
        let length = bytes.len();
        let input = DecodedFile::shared(bytes, compression, limits)
            .map_or_else(|error| Input::Failed(error, length), |input| Input::Open(Box::new(input)));
        Ok(LineBatches { bytes_read: bytes_taken, ..LineBatches::of(input, limits) })
    }

    fn of(input: Input, limits: &RecordLimits) -> LineBatches {
        let limit = usize::try_from(limits.record_bytes).unwrap_or(usize::MAX);
        LineBatches { input, limit, offset: 0, partial_line: Vec::new(), bytes_read: Arc::default() }
    }

    /// Returns the number of bytes of the file read since the last call.
    pub(crate) fn take_bytes_read(&self) -> u64 {
        self.bytes_read.swap(0, Ordering::Relaxed)
    }

    /// Returns the next batch, or `None` at the end.
    ///
    /// # Errors
    /// Returns any error of the store.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut bytes = std::mem::take(&mut self.partial_line);
        let mut searched = bytes.len();
        loop {
            let is_more = self.fill(&mut bytes)?;
            if let Some(end) = memchr::memrchr(b'\n', &bytes[searched..]) {
                self.partial_line = bytes.split_off(searched + end + 1);
                return Ok(Some(self.lines(bytes)));
            }
            if !is_more {
                // If decoding has failed, a line without an end is incomplete.
                return match bytes.is_empty() || matches!(self.input, Input::Failed(..)) {
                    false => Ok(Some(self.lines(bytes))),
                    true => self.damage(),
                };
            }
            searched = bytes.len();
            if bytes.len() > self.limit.max(BATCH_BYTES) {
                return self.too_long(bytes).map(Some);
            }
        }
    }

    fn lines(&mut self, bytes: Vec<u8>) -> RecordBatch {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        RecordBatch::Lines { offset, bytes }
    }

    /// Skips the rest of a line that begins with `bytes`.
    fn too_long(&mut self, mut bytes: Vec<u8>) -> Result<RecordBatch> {
        let (offset, mut length) = (self.offset, bytes.len() as u64);
        loop {
            bytes.clear();
            let is_more = self.fill(&mut bytes)?;
            let end = memchr::memchr(b'\n', &bytes);
            length += end.unwrap_or(bytes.len()) as u64;
            if let Some(end) = end {
                self.partial_line = bytes.split_off(end + 1);
                self.offset += length + 1;
                return Ok(RecordBatch::TooLong { offset, length });
            }
            if !is_more {
                self.offset += length;
                return Ok(RecordBatch::TooLong { offset, length });
            }
        }
    }

    /// Reads up to the size of a batch. Returns true if there may be more data.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> Result<bool> {
        let Input::Open(input) = &mut self.input else { return Ok(false) };
        let start = bytes.len();
        bytes.resize(start + BATCH_BYTES, 0);
        let mut end = start;
        while end < bytes.len() {
            match input.read(&mut bytes[end..]) {
                Ok(0) => {
                    self.input = Input::Ended;
                    break;
                }
                Ok(count) => end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let lost_bytes = input.rest();
                    self.input = Input::Failed(error, lost_bytes);
                    break;
                }
            }
        }
        bytes.truncate(end);
        Ok(matches!(self.input, Input::Open(_)))
    }

    /// Returns the damage that ended the file, if any.
    fn damage(&mut self) -> Result<Option<RecordBatch>> {
        match std::mem::replace(&mut self.input, Input::Ended) {
            Input::Failed(error, lost_bytes) => {
                let (reason, detail) = sort_out(error)?;
                Ok(Some(RecordBatch::Damaged { offset: self.offset, reason, detail, lost_bytes }))
            }
            _ => Ok(None),
        }
    }
}

/// Returns the lines of a batch with their ends.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        let (line, remainder) = rest.split_at(end);
        rest = remainder;
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reader that returns a few bytes at a time.
    struct Slow(Vec<u8>, usize, usize);

    impl Read for Slow {
        fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
            let count = output.len().min(self.2).min(self.0.len() - self.1);
            output[..count].copy_from_slice(&self.0[self.1..][..count]);
            self.1 += count;
            Ok(count)
        }
    }

    impl FileStream for Slow {
        fn file_bytes(&self, decoded_bytes: u64) -> u64 {
            decoded_bytes
        }

        fn rest(&self) -> u64 {
            (self.0.len() - self.1) as u64
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn batches_concatenate_to_the_file(
            lengths in prop::collection::vec(prop_oneof![0usize..300, 900_000usize..2_500_000], 0..8),
            last_newline: bool, step in 1000usize..3_000_000, limit in 1_000_000u64..2_000_000,
        ) {
            let mut file = lengths.iter().map(|&length| "x".repeat(length)).collect::<Vec<_>>().join("\n").into_bytes();
            if last_newline {
                file.push(b'\n');
            }
            let limits = RecordLimits { record_bytes: limit, ..RecordLimits::default() };
            let mut batches = LineBatches::of(Input::Open(Box::new(Slow(file.clone(), 0, step))), &limits);
            let mut at = 0;
            while let Some(batch) = batches.next().unwrap() {
                match batch {
                    RecordBatch::Lines { offset, bytes } => {
                        prop_assert_eq!(offset, at);
                        prop_assert!(bytes == file[at as usize..at as usize + bytes.len()]);
                        at += bytes.len() as u64;
                        prop_assert!(at == file.len() as u64 || bytes.ends_with(b"\n"));
                    }
                    RecordBatch::TooLong { offset, length } => {
                        prop_assert_eq!(offset, at);
                        prop_assert!(length > limit);
                        at += length;
                        prop_assert!(at == file.len() as u64 || file[at as usize] == b'\n');
                        at += u64::from(at < file.len() as u64);
                    }
                    _ => prop_assert!(false),
                }
            }
            prop_assert_eq!(at, file.len() as u64);
        }
    }

    #[test]
    fn lines_before_damage_are_read() {
        /// Stream that fails when a given number of bytes is left.
        struct Torn(Slow, u64);
        impl Read for Torn {
            fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
                match self.0.rest() - self.1 {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    rest => self.0.read(&mut output[..rest as usize]),
                }
            }
        }
        impl FileStream for Torn {
            fn file_bytes(&self, decoded_bytes: u64) -> u64 {
                self.0.file_bytes(decoded_bytes)
            }

            fn rest(&self) -> u64 {
                self.0.rest()
            }
        }
        let truncated = Torn(Slow(b"one\ntwo\nthree\nfour".to_vec(), 0, 4), 7);
        let mut batches = LineBatches::of(Input::Open(Box::new(truncated)), &RecordLimits::default());
        let Some(RecordBatch::Lines { bytes, .. }) = batches.next().unwrap() else { panic!() };
        assert_eq!(bytes, b"one\ntwo\n");
        let Some(RecordBatch::Damaged { offset, reason, lost_bytes, .. }) = batches.next().unwrap() else { panic!() };
        assert_eq!((offset, reason, lost_bytes), (8, Reason::Truncated, 7));
        assert!(batches.next().unwrap().is_none());
    }
}
