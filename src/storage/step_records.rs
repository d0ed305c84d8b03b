//! Checkpoints on the local disk: the result of a worker at the end of a step, from which an
//! interrupted run resumes.
//!
//! A file is the result of one worker in one step. Its stamp identifies the input of the step and
//! the run. This module treats the bytes after the stamp as opaque; the writer interprets them.
//! When a later run repeats the step, the same worker replaces the file.
//!
//! # Layout
//! A `FileHead` (magic, format, job digest, build, checksum), then pieces of up to 1 MiB, each an
//! `RecordPrefix` (key, length, two checksums) and its bytes. The key of a piece is its number. The
//! first piece is the stamp, and the last one is empty. So a truncated file is detected, and so is
//! one whose pieces are reordered.
//!
//! # Safety of the answer
//! Equals that of [`super::records`]: a file is used only if it is complete and was made by the
//! same build, for the same job. The caller compares the run and the input. A file gets its name
//! after it is complete, and is not synced.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};

use super::records::{FileHead, HALF, RecordPrefix, STEP, read_pod};
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;

/// Maximum size of a piece in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Origin of a checkpoint. All workers of a run use the same number for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct StepStamp {
    /// Digest of all input of the step.
    pub input_digest: u64,
    /// Random number of the run.
    pub run: u64,
}

/// Checkpoints of the steps of one worker, in one folder.
#[derive(Debug, Clone)]
pub struct StepRecords {
    folder: PathBuf,
    head: FileHead,
    worker: String,
}

impl StepRecords {
    /// Returns the checkpoints of one worker in an existing folder. The pair is the worker's index
    /// and the number of workers.
    pub(super) fn new(folder: &Path, head: FileHead, (worker, workers): (usize, usize)) -> StepRecords {
        StepRecords { folder: folder.into(), head, worker: format!("{worker}-of-{workers}") }
    }

    /// Returns the stamp of the checkpoint of a step, if it is complete. Reads the whole file.
    pub fn stamp(&self, step: &str) -> Option<StepStamp> {
        let (stamp, mut payload) = self.open(step).ok()?;
        std::io::copy(&mut payload, &mut std::io::sink()).ok()?;
        Some(stamp)
    }

    /// Reads the content of a checkpoint after the stamp. Reading ends with an error of
    /// [`ErrorKind::InvalidData`] if the file is not intact.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn read(&self, step: &str) -> std::io::Result<impl Read + use<>> {
        Ok(self.open(step)?.1)
    }

    fn open(&self, step: &str) -> std::io::Result<(StepStamp, Pieces<BufReader<File>>)> {
        let mut file = BufReader::with_capacity(1 << 18, File::open(self.path(step))?);
        let head: FileHead = read_pod(&mut file)?;
        let mut pieces = Pieces { from: file, next: 0, piece: Vec::new(), taken_bytes: 0, ended: false };
        if head != self.head {
            return Err(ErrorKind::InvalidData.into());
        }
        let stamp = read_pod(&mut pieces)?;
        Ok((stamp, pieces))
    }

    /// Writes the checkpoint of a step. `content` writes the bytes after the stamp.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if writing fails, and any error of `content`. Then an earlier
    /// checkpoint of the step may still exist.
    pub fn write(
        &self,
        step: &str,
        stamp: StepStamp,
        content: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let mut record = self.begin(step, stamp)?;
        content(&mut record)?;
        record.finish()
    }

    /// Begins the checkpoint of a step, whose content is written to the returned value. It replaces
    /// an earlier one when it is finished.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the file cannot be created.
    pub fn begin(&self, step: &str, stamp: StepStamp) -> Result<StepRecord> {
        let path = self.path(step);
        let file_error = |cause: std::io::Error| Error::storage(path.to_string_lossy(), cause);
        let half = Temporary::at(path.with_extension(HALF));
        let mut file = BufWriter::with_capacity(1 << 18, File::create(half.path()).map_err(file_error)?);
        file.write_all(bytemuck::bytes_of(&self.head)).map_err(file_error)?;
        let mut pieces = PieceWriter { to: file, next: 0, piece: Vec::new() };
        pieces.write_all(bytemuck::bytes_of(&stamp)).and_then(|()| pieces.end_piece()).map_err(file_error)?;
        Ok(StepRecord { pieces, half, path })
    }

    fn path(&self, step: &str) -> PathBuf {
        self.folder.join(format!("{step}-{}.{STEP}", self.worker))
    }
}

/// Checkpoint of a step that is being written.
#[derive(Debug)]
pub struct StepRecord {
    pieces: PieceWriter<BufWriter<File>>,
    half: Temporary,
    path: PathBuf,
}

impl StepRecord {
    /// Completes the checkpoint and gives the file its name.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if writing fails.
    pub fn finish(self) -> Result<()> {
        let StepRecord { mut pieces, half, path } = self;
        let mut end = || -> std::io::Result<()> {
            if !pieces.piece.is_empty() {
                pieces.end_piece()?;
            }
            // The empty piece marks the end of the content.
            pieces.end_piece()?;
            pieces.to.flush()?;
            fs::rename(half.path(), &path)
        };
        end().map_err(|cause| Error::storage(path.to_string_lossy(), cause))
    }
}

impl Write for StepRecord {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pieces.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.pieces.flush()
    }
}

/// Writer of pieces.
#[derive(Debug)]
struct PieceWriter<W> {
    to: W,
    /// Number of the next piece.
    next: u128,
    piece: Vec<u8>,
}

impl<W: Write> PieceWriter<W> {
    fn end_piece(&mut self) -> std::io::Result<()> {
        self.to.write_all(bytemuck::bytes_of(&RecordPrefix::new(self.next, &self.piece)))?;
        self.to.write_all(&self.piece)?;
        self.next += 1;
        self.piece.clear();
        Ok(())
    }
}

impl<W: Write> Write for PieceWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let length = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..length]);
        if self.piece.len() == PIECE_BYTES {
            self.end_piece()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Reader of pieces up to the empty one. Each piece is checked before any of its bytes is returned.
struct Pieces<R> {
    from: R,
    /// Number of the next piece.
    next: u128,
    piece: Vec<u8>,
    taken_bytes: usize,
    ended: bool,
}

impl<R: Read> Pieces<R> {
    fn next_piece(&mut self) -> std::io::Result<()> {
        let damaged = || std::io::Error::from(ErrorKind::InvalidData);
        let entry: RecordPrefix = read_pod(&mut self.from).map_err(|_| damaged())?;
        let bytes = entry.length().filter(|bytes| *bytes <= PIECE_BYTES as u64).ok_or_else(damaged)?;
        self.piece.resize(bytes as usize, 0);
        self.from.read_exact(&mut self.piece).map_err(|_| damaged())?;
        if entry != RecordPrefix::new(self.next, &self.piece) {
            return Err(damaged());
        }
        (self.next, self.taken_bytes) = (self.next + 1, 0);
        self.ended = bytes == 0;
        if self.ended && self.from.read(&mut [0])? > 0 {
            return Err(damaged());
        }
        Ok(())
    }
}

impl<R: Read> Read for Pieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.taken_bytes == self.piece.len() && !self.ended {
            self.next_piece()?;
        }
        let length = buffer.len().min(self.piece.len() - self.taken_bytes);
        buffer[..length].copy_from_slice(&self.piece[self.taken_bytes..][..length]);
        self.taken_bytes += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAMP: StepStamp = StepStamp { input_digest: 3, run: 4 };

    fn records_in(folder: &Path) -> StepRecords {
        StepRecords::new(folder, FileHead::new([5; 32], "build"), (1, 2))
    }

    fn write(records: &StepRecords, content: &[u8]) {
        records.write("pairs", STAMP, |to| to.write_all(content).map_err(|cause| Error::storage("", cause))).unwrap();
    }

    fn read(records: &StepRecords) -> Option<Vec<u8>> {
        assert_eq!(records.stamp("pairs")?, STAMP);
        let mut bytes = Vec::new();
        records.read("pairs").unwrap().read_to_end(&mut bytes).unwrap();
        Some(bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn checkpoints_of_any_length_are_read_as_written(
            length in prop_oneof![0..100usize, PIECE_BYTES - 20..PIECE_BYTES + 20, 2 * PIECE_BYTES..3 * PIECE_BYTES]
        ) {
            let folder = tempfile::tempdir().unwrap();
            let content: Vec<u8> = (0..length as u32).map(|at| (at.wrapping_mul(at) >> 3) as u8).collect();
            write(&records_in(folder.path()), b"what an earlier run has found");
            write(&records_in(folder.path()), &content);
            prop_assert!(read(&records_in(folder.path())).unwrap() == content);
            prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn changed_truncated_or_longer_checkpoint_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let records = records_in(folder.path());
        write(&records, b"pairs of pages");
        let file = records.path("pairs");
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 16;
            for bytes in [&flipped[..], &whole[..at]] {
                fs::write(&file, bytes).unwrap();
                assert_eq!(read(&records), None, "{at}");
            }
        }
        fs::write(&file, [&whole[..], b"x"].concat()).unwrap();
        assert_eq!(read(&records), None);
        fs::write(&file, &whole).unwrap();
        assert_eq!(read(&records).unwrap(), b"pairs of pages");
    }

    #[test]
    fn checkpoints_of_another_job_build_worker_or_worker_count_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        write(&records_in(folder.path()), b"pairs");
        let records_of =
            |digest, build, worker| StepRecords::new(folder.path(), FileHead::new([digest; 32], build), worker);
        assert!(read(&records_of(5, "build", (1, 2))).is_some());
        for other in [
            records_of(6, "build", (1, 2)),
            records_of(5, "other", (1, 2)),
            records_of(5, "build", (0, 2)),
            records_of(5, "build", (1, 3)),
        ] {
            assert_eq!(other.stamp("pairs"), None);
        }
    }
}
