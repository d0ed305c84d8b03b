//! Append-only log: frames in segment files.
//!
//! ```text
//! DIR/log/000000.log ...   segments of some 64 MB; frames back to back
//! frame                    MARK: u32, length: u32, checksum of the payload: u64, payload
//! ```
//!
//! A payload begins with a byte for its kind. [`Log::flush`] closes a group of appended frames by a
//! frame of kind [`COMMIT`] and writes the group to the operating system;
//! [`UnsyncedWrites::sync`](crate::UnsyncedWrites::sync) waits for the disk. After a crash, the
//! frames after the last intact one are dropped. The disk may have written them out of order, so an
//! intact frame after a broken one does not prove that the broken one was acknowledged. But a
//! commit is only written once the commit before it is on disk. So a broken frame with more than
//! one commit after it is damage, and opening the log fails.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::error::{Error, Result};

/// Magic number at the beginning of a frame.
const MARK: u32 = 0x7477_6c31;

/// Size of a frame header, in bytes.
const HEAD: usize = 16;

/// Size from which a segment is full, in bytes.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Maximum size of a payload, in bytes. A page with the longest URL and the largest sample is
/// smaller.
const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// Number of bytes that [`Log::read_start`] reads.
const START: usize = 256;

/// Kind of the frame that closes a group.
const COMMIT: u8 = 0;

/// Number of bits of a position that hold the offset within the segment.
const OFFSET_BITS: u32 = 40;

/// Position of a payload: the number of its segment, and its offset in the segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogPosition(u64);

impl LogPosition {
    fn new(segment: usize, offset: u64) -> LogPosition {
        LogPosition((segment as u64) << OFFSET_BITS | offset)
    }

    fn parts(self) -> (usize, u64) {
        ((self.0 >> OFFSET_BITS) as usize, self.0 & ((1 << OFFSET_BITS) - 1))
    }
}

/// A log, open for appending.
#[derive(Debug)]
pub(crate) struct Log {
    folder: PathBuf,
    /// Segment files, in order; frames are appended to the last one.
    segments: Vec<Arc<File>>,
    /// Number of bytes of the last segment that were written to the operating system.
    written_bytes: u64,
    /// Frames that were appended and are not yet written.
    pending: Vec<u8>,
}

impl Log {
    /// Opens the log in a folder, creates it if it is missing, and calls `visit` with each payload,
    /// in order.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the log is damaged, [`Error::Storage`] if it cannot be read or
    /// written, and any error of `visit`.
    pub(crate) fn open(folder: &Path, mut visit: impl FnMut(&Log, LogPosition, &[u8]) -> Result<()>) -> Result<Log> {
        fs::create_dir_all(folder).map_err(|cause| failed(folder, cause))?;
        let mut log = Log { folder: folder.to_path_buf(), segments: Vec::new(), written_bytes: 0, pending: Vec::new() };
        for number in 0.. {
            let path = log.segment_path(number);
            let next_exists = log.segment_path(number + 1).exists();
            let file = match OpenOptions::new().read(true).append(true).open(&path) {
                Ok(file) => Arc::new(file),
                Err(cause) if cause.kind() == ErrorKind::NotFound => break,
                Err(cause) => return Err(failed(&path, cause)),
            };
            log.segments.push(file);
            log.written_bytes = log.replay(number, next_exists, &mut visit)?;
        }
        if log.segments.is_empty() {
            log.begin_segment()?;
        }
        Ok(log)
    }

    fn segment_path(&self, number: usize) -> PathBuf {
        path_of(&self.folder, number)
    }

    /// Reads the segment `number`, which is the last one so far, and calls `visit` with its
    /// payloads. Returns the size of its intact frames in bytes; the file is truncated to this size
    /// if no other segment follows.
    fn replay(
        &mut self,
        number: usize,
        next_exists: bool,
        visit: &mut impl FnMut(&Log, LogPosition, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let (path, file) = (self.segment_path(number), Arc::clone(&self.segments[number]));
        let mut bytes = Vec::new();
        (&*file).read_to_end(&mut bytes).map_err(|cause| failed(&path, cause))?;
        self.written_bytes = bytes.len() as u64;
        let mut offset = 0;
        while let Some(payload) = frame(&bytes, offset) {
            if payload[0] != COMMIT {
                visit(self, LogPosition::new(number, (offset + HEAD) as u64), payload)?;
            }
            offset += HEAD + payload.len();
        }
        if offset < bytes.len() {
            // One commit may follow a broken frame after a crash, because the disk may write the
            // blocks of one group in any order. Two commits, or a later segment, prove that this
            // byte was on disk.
            if commits(&bytes[offset..]) > 1 || next_exists {
                let why = format!(
                    "the log is damaged at byte {offset}, in records that were acknowledged; restore the file from a \
                     backup, or start with a new folder and add the pages again"
                );
                return Err(Error::input(path.display().to_string(), why));
            }
            file.set_len(offset as u64).and_then(|()| file.sync_data()).map_err(|cause| failed(&path, cause))?;
        }
        Ok(offset as u64)
    }

    fn begin_segment(&mut self) -> Result<()> {
        let path = self.segment_path(self.segments.len());
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(|cause| failed(&path, cause))?;
        // A new file survives a crash only once its folder is synced.
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(|cause| failed(&self.folder, cause))?;
        self.segments.push(Arc::new(file));
        self.written_bytes = 0;
        Ok(())
    }

    /// Appends a payload, whose first byte is its kind; returns the position that the payload will
    /// have.
    pub(crate) fn append(&mut self, payload: &[u8]) -> LogPosition {
        debug_assert!(payload.len() <= MAX_PAYLOAD_BYTES && payload[0] != COMMIT);
        let offset = self.written_bytes + self.pending.len() as u64 + HEAD as u64;
        self.push(payload);
        LogPosition::new(self.segments.len() - 1, offset)
    }

    fn push(&mut self, payload: &[u8]) {
        self.pending.extend(MARK.to_le_bytes());
        self.pending.extend((payload.len() as u32).to_le_bytes());
        self.pending.extend(xxh3_64(payload).to_le_bytes());
        self.pending.extend(payload);
    }

    /// Writes the pending frames to the operating system; returns `None` if there are none. The
    /// caller must sync the returned file.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the frames cannot be written, for example on a full disk. The
    /// frames stay pending, and the next call writes them.
    pub(crate) fn flush(&mut self) -> Result<Option<Arc<File>>> {
        if self.pending.is_empty() {
            return Ok(None);
        }
        let appended = self.pending.len();
        self.push(&[COMMIT]);
        let file = Arc::clone(self.segments.last().expect("a log has a segment"));
        if let Err(cause) = (&*file).write_all(&self.pending) {
            self.pending.truncate(appended);
            // A partly written group is removed, so that a retry does not append after a broken
            // frame.
            let _ = file.set_len(self.written_bytes);
            return Err(failed(&self.segment_path(self.segments.len() - 1), cause));
        }
        self.written_bytes += self.pending.len() as u64;
        self.pending.clear();
        // The old segment is synced first: on replay, the presence of a later segment means that
        // all frames of this one are on disk.
        if self.written_bytes >= SEGMENT_BYTES {
            file.sync_data().map_err(|cause| failed(&self.folder, cause))?;
            self.begin_segment()?;
        }
        Ok(Some(file))
    }

    /// Reads the payload at a position.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the payload is damaged, and [`Error::Storage`] if it cannot be
    /// read.
    pub(crate) fn read(&self, place: LogPosition) -> Result<Vec<u8>> {
        let (segment, offset) = place.parts();
        if !self.has_flushed(place) {
            let start = (offset - self.written_bytes) as usize - HEAD;
            return Ok(frame(&self.pending, start).expect("it was appended").to_vec());
        }
        read_from(&self.segments[segment], offset).map_err(|fault| fault.of(&self.segment_path(segment)))
    }

    /// Reads and decodes the first bytes of a payload: enough for a page with a URL of usual
    /// length. The checksum is not verified here, because it was verified when the log was opened.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the payload cannot be read.
    pub(crate) fn read_start<T>(
        &self,
        place: LogPosition,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let (segment, offset) = place.parts();
        if !self.has_flushed(place) {
            return Ok(decode(&self.pending[(offset - self.written_bytes) as usize..]));
        }
        let mut start = [0; START];
        let read = read_at(&self.segments[segment], &mut start, offset);
        let read = read.map_err(|cause| failed(&self.segment_path(segment), cause))?;
        Ok(decode(&start[..read]))
    }

    /// Returns true if no frames are pending.
    pub(crate) fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns true if the payload at a position has been flushed.
    fn has_flushed(&self, place: LogPosition) -> bool {
        let (segment, offset) = place.parts();
        segment + 1 < self.segments.len() || offset < self.written_bytes
    }

    /// Returns a reader of the payloads that have been flushed so far, for use on another thread.
    pub(crate) fn reader(&self) -> LogReader {
        LogReader { folder: self.folder.clone(), segments: self.segments.clone() }
    }

    /// Returns the size of all segments, in bytes, without pending frames.
    pub(crate) fn bytes(&self) -> u64 {
        let full_segments = self.segments.len() as u64 - 1;
        let sizes =
            self.segments[..full_segments as usize].iter().map(|file| file.metadata().map_or(0, |about| about.len()));
        sizes.sum::<u64>() + self.written_bytes
    }
}

/// Reads payloads of a log while frames are appended to it.
#[derive(Debug, Clone)]
pub(crate) struct LogReader {
    folder: PathBuf,
    segments: Vec<Arc<File>>,
}

impl LogReader {
    /// Reads the payload at a position, which was flushed before the reader was created.
    ///
    /// # Errors
    /// Returns any error of [`Log::read`].
    pub(crate) fn read(&self, place: LogPosition) -> Result<Vec<u8>> {
        let (segment, offset) = place.parts();
        read_from(&self.segments[segment], offset).map_err(|fault| fault.of(&path_of(&self.folder, segment)))
    }
}

/// Reason for which a payload cannot be read.
enum Fault {
    Io(std::io::Error),
    Damaged(u64),
}

impl Fault {
    fn of(self, path: &Path) -> Error {
        match self {
            Fault::Io(cause) => failed(path, cause),
            Fault::Damaged(offset) => {
                let why = format!("the log is damaged at byte {offset}; restore the file from a backup");
                Error::input(path.display().to_string(), why)
            }
        }
    }
}

/// Reads the payload at an offset of a segment.
fn read_from(file: &File, offset: u64) -> std::result::Result<Vec<u8>, Fault> {
    let start = offset - HEAD as u64;
    // Most payloads are shorter, so one read is enough.
    let mut bytes = vec![0; 2048];
    let read = read_at(file, &mut bytes, start).map_err(Fault::Io)?;
    bytes.truncate(read);
    let frame_length =
        HEAD + length(&bytes).filter(|&length| length <= MAX_PAYLOAD_BYTES).ok_or(Fault::Damaged(start))?;
    if frame_length > bytes.len() {
        bytes.resize(frame_length, 0);
        read_at(file, &mut bytes[read..], start + read as u64).map_err(Fault::Io)?;
    }
    frame(&bytes, 0).map(<[u8]>::to_vec).ok_or(Fault::Damaged(start))
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
fn read_at(file: &File, buffer: &mut [u8], start: u64) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], start + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(filled)
}

/// Returns the payload length that a frame header states; `None` if the bytes do not begin with a
/// frame header.
fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.get(..HEAD)?;
    (head[..4] == MARK.to_le_bytes()).then(|| u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize)
}

/// Returns the payload of the frame at an offset; `None` if the frame is incomplete or damaged.
fn frame(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let bytes = &bytes[offset..];
    let payload = bytes.get(HEAD..HEAD + length(bytes)?)?;
    let checksum = u64::from_le_bytes(bytes[8..HEAD].try_into().expect("eight bytes"));
    (!payload.is_empty() && xxh3_64(payload) == checksum).then_some(payload)
}

/// Returns the number of intact commits in bytes that do not begin with an intact frame.
fn commits(bytes: &[u8]) -> usize {
    let mark = MARK.to_le_bytes();
    let starts = (0..bytes.len().saturating_sub(HEAD)).filter(|&at| bytes[at..at + 4] == mark);
    starts.filter(|&at| frame(bytes, at) == Some(&[COMMIT])).count()
}

fn path_of(folder: &Path, segment: usize) -> PathBuf {
    folder.join(format!("{segment:06}.log"))
}

fn failed(path: &Path, cause: std::io::Error) -> Error {
    Error::storage(path.display().to_string(), cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(folder: &Path) -> Result<(Log, Vec<Vec<u8>>)> {
        let mut payloads = Vec::new();
        let log = Log::open(folder, |log, place, payload| {
            assert_eq!(log.read(place).unwrap(), payload);
            payloads.push(payload.to_vec());
            Ok(())
        })?;
        Ok((log, payloads))
    }

    /// Writes two groups: `1 a` and `1 b`, then `1 c`. Returns their positions.
    fn write_groups(folder: &Path) -> Vec<LogPosition> {
        let (mut log, _) = payloads(folder).unwrap();
        let mut places = vec![log.append(b"\x01a"), log.append(b"\x01b")];
        assert_eq!(log.read(places[1]).unwrap(), b"\x01b");
        log.flush().unwrap().unwrap();
        places.push(log.append(b"\x01c"));
        log.flush().unwrap().unwrap();
        assert!(log.flush().unwrap().is_none());
        assert_eq!(log.read(places[0]).unwrap(), b"\x01a");
        places
    }

    #[test]
    fn truncated_file_is_read_up_to_the_last_whole_frame() {
        let complete = tempfile::tempdir().unwrap();
        write_groups(complete.path());
        let bytes = fs::read(complete.path().join("000000.log")).unwrap();
        for length in 0..=bytes.len() {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("000000.log"), &bytes[..length]).unwrap();
            let (mut log, frames) = payloads(folder.path()).unwrap();
            let expected = [18, 36, 71].iter().filter(|end| **end <= length).count();
            assert_eq!(frames.len(), expected, "cut at {length}");
            let place = log.append(b"\x01d");
            log.flush().unwrap();
            assert_eq!(log.read(place).unwrap(), b"\x01d");
            assert_eq!(payloads(folder.path()).unwrap().1.len(), expected + 1);
        }
    }

    #[test]
    fn damage_before_acknowledged_data_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000000.log");
        write_groups(folder.path());
        let bytes = fs::read(&path).unwrap();
        for position in 0..bytes.len() {
            let mut damaged_bytes = bytes.clone();
            damaged_bytes[position] ^= 0x10;
            fs::write(&path, &damaged_bytes).unwrap();
            // The frames of the first group end at byte 36, and its commit at byte 53. Damage
            // before byte 36 leaves both commits intact, and the second commit was only written
            // once the first group was on disk.
            assert_eq!(payloads(folder.path()).is_err(), position < 36, "byte {position}");
        }
    }
}
