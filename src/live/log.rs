//! The log: frames that are appended to segments, and nothing else.
//!
//! ```text
//! DIR/log/000000.log ...   segments of some 64 MB; frames back to back
//! frame                    MARK: u32, length: u32, checksum of the payload: u64, payload
//! ```
//!
//! A payload begins with a byte for its kind. [`Log::flush`] ends what has been appended with a frame of kind [`COMMIT`]
//! and hands it to the system; [`Unsynced::sync`](crate::Unsynced::sync) waits for the disk. After a crash the frames after the last
//! whole one are dropped. Those may have been written out of order, so frames behind a broken one prove nothing; but a
//! commit is only written once the one before is on disk, so a broken frame before the last commit but one is damage, and
//! an error.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::error::{Error, Result};

/// First bytes of a frame.
const MARK: u32 = 0x7477_6c31;

/// Bytes before a payload.
const HEAD: usize = 16;

/// Bytes after which a segment is full.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Longest payload: a page with the longest URL and sample has less.
const LONGEST: usize = 1 << 20;

/// Bytes that [`Log::read_start`] reads.
const START: usize = 256;

/// Kind of the frame that ends a group.
const COMMIT: u8 = 0;

/// Bits of a place that count bytes within its segment.
const OFFSET_BITS: u32 = 40;

/// Where a payload is: the number of its segment, and its offset there.
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
    /// Segments; the last one grows.
    segments: Vec<Arc<File>>,
    /// Bytes of the last segment that the system has.
    written: u64,
    /// Frames that it has not.
    waiting: Vec<u8>,
}

impl Log {
    /// Opens the log of a folder, which may be missing, and hands each payload to a function, in order.
    ///
    /// # Errors
    /// [`Error::Input`] for a damaged log; [`Error::Storage`] when it cannot be read or written; those of `each`.
    pub(crate) fn open(folder: &Path, mut each: impl FnMut(&Log, LogPosition, &[u8]) -> Result<()>) -> Result<Log> {
        fs::create_dir_all(folder).map_err(|cause| failed(folder, cause))?;
        let mut log = Log { folder: folder.to_path_buf(), segments: Vec::new(), written: 0, waiting: Vec::new() };
        for number in 0.. {
            let path = log.segment_path(number);
            let next_exists = log.segment_path(number + 1).exists();
            let file = match OpenOptions::new().read(true).append(true).open(&path) {
                Ok(file) => Arc::new(file),
                Err(cause) if cause.kind() == ErrorKind::NotFound => break,
                Err(cause) => return Err(failed(&path, cause)),
            };
            log.segments.push(file);
            log.written = log.replay(number, next_exists, &mut each)?;
        }
        if log.segments.is_empty() {
            log.begin_segment()?;
        }
        Ok(log)
    }

    fn segment_path(&self, number: usize) -> PathBuf {
        path_of(&self.folder, number)
    }

    /// Reads the last segment; returns the bytes of its whole frames, to which it is cut if no other follows.
    fn replay(
        &mut self,
        number: usize,
        next_exists: bool,
        each: &mut impl FnMut(&Log, LogPosition, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let (path, file) = (self.segment_path(number), Arc::clone(&self.segments[number]));
        let mut bytes = Vec::new();
        (&*file).read_to_end(&mut bytes).map_err(|cause| failed(&path, cause))?;
        self.written = bytes.len() as u64;
        let mut at = 0;
        while let Some(payload) = frame(&bytes, at) {
            if payload[0] != COMMIT {
                each(self, LogPosition::new(number, (at + HEAD) as u64), payload)?;
            }
            at += HEAD + payload.len();
        }
        if at < bytes.len() {
            if commits(&bytes[at..]) > 1 || next_exists {
                let why = format!(
                    "the log is damaged at byte {at}, before what was acknowledged; restore the file from a backup, or begin with \
                     an empty folder and feed the WARC files again"
                );
                return Err(Error::input(path.display().to_string(), why));
            }
            file.set_len(at as u64).and_then(|()| file.sync_data()).map_err(|cause| failed(&path, cause))?;
        }
        Ok(at as u64)
    }

    fn begin_segment(&mut self) -> Result<()> {
        let path = self.segment_path(self.segments.len());
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(|cause| failed(&path, cause))?;
        // The name of a file is on disk once its folder is.
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(|cause| failed(&self.folder, cause))?;
        self.segments.push(Arc::new(file));
        self.written = 0;
        Ok(())
    }

    /// Appends a payload, which begins with its kind; returns where it will be.
    pub(crate) fn append(&mut self, payload: &[u8]) -> LogPosition {
        debug_assert!(payload.len() <= LONGEST && payload[0] != COMMIT);
        let at = self.written + self.waiting.len() as u64 + HEAD as u64;
        self.push(payload);
        LogPosition::new(self.segments.len() - 1, at)
    }

    fn push(&mut self, payload: &[u8]) {
        self.waiting.extend(MARK.to_le_bytes());
        self.waiting.extend((payload.len() as u32).to_le_bytes());
        self.waiting.extend(xxh3_64(payload).to_le_bytes());
        self.waiting.extend(payload);
    }

    /// Hands what was appended to the system; `None` if that is nothing. The file returned is to be synced.
    ///
    /// # Errors
    /// [`Error::Storage`] when it cannot be written, as on a full disk. What was appended stays, and the next call writes it.
    pub(crate) fn flush(&mut self) -> Result<Option<Arc<File>>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let appended = self.waiting.len();
        self.push(&[COMMIT]);
        let file = Arc::clone(self.segments.last().expect("a log has a segment"));
        if let Err(cause) = (&*file).write_all(&self.waiting) {
            self.waiting.truncate(appended);
            let _ = file.set_len(self.written);
            return Err(failed(&self.segment_path(self.segments.len() - 1), cause));
        }
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        if self.written >= SEGMENT_BYTES {
            file.sync_data().map_err(|cause| failed(&self.folder, cause))?;
            self.begin_segment()?;
        }
        Ok(Some(file))
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// [`Error::Input`] when it is damaged; [`Error::Storage`] when it cannot be read.
    pub(crate) fn read(&self, place: LogPosition) -> Result<Vec<u8>> {
        let (segment, offset) = place.parts();
        if !self.has(place) {
            let at = (offset - self.written) as usize - HEAD;
            return Ok(frame(&self.waiting, at).expect("it was appended").to_vec());
        }
        read_from(&self.segments[segment], offset).map_err(|fault| fault.of(&self.segment_path(segment)))
    }

    /// Reads the first bytes of a payload, as many as a page with a URL of usual length needs, without comparing its checksum, which
    /// was compared when the log was opened.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] when it cannot be read.
    pub(crate) fn read_start<T>(
        &self,
        place: LogPosition,
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let (segment, offset) = place.parts();
        if !self.has(place) {
            return Ok(decode(&self.waiting[(offset - self.written) as usize..]));
        }
        let mut start = [0; START];
        let read = read_at(&self.segments[segment], &mut start, offset);
        let read = read.map_err(|cause| failed(&self.segment_path(segment), cause))?;
        Ok(decode(&start[..read]))
    }

    /// Returns whether everything has been flushed.
    pub(crate) fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether a payload has been flushed.
    fn has(&self, place: LogPosition) -> bool {
        let (segment, offset) = place.parts();
        segment + 1 < self.segments.len() || offset < self.written
    }

    /// Reads payloads that have been flushed, on another thread.
    pub(crate) fn reader(&self) -> LogReader {
        LogReader { folder: self.folder.clone(), segments: self.segments.clone() }
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        let full = self.segments.len() as u64 - 1;
        let sizes = self.segments[..full as usize].iter().map(|file| file.metadata().map_or(0, |about| about.len()));
        sizes.sum::<u64>() + self.written
    }
}

/// Reads payloads of a log that goes on growing.
#[derive(Debug, Clone)]
pub(crate) struct LogReader {
    folder: PathBuf,
    segments: Vec<Arc<File>>,
}

impl LogReader {
    /// Reads a payload.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub(crate) fn read(&self, place: LogPosition) -> Result<Vec<u8>> {
        let (segment, offset) = place.parts();
        read_from(&self.segments[segment], offset).map_err(|fault| fault.of(&path_of(&self.folder, segment)))
    }
}

/// Why a payload cannot be read.
enum Fault {
    Io(std::io::Error),
    Damaged(u64),
}

impl Fault {
    fn of(self, path: &Path) -> Error {
        match self {
            Fault::Io(cause) => failed(path, cause),
            Fault::Damaged(at) => Error::input(path.display().to_string(), format!("the log is damaged at byte {at}")),
        }
    }
}

/// Reads the payload at an offset.
fn read_from(file: &File, offset: u64) -> std::result::Result<Vec<u8>, Fault> {
    let start = offset - HEAD as u64;
    // Most payloads are short.
    let mut bytes = vec![0; 2048];
    let read = read_at(file, &mut bytes, start).map_err(Fault::Io)?;
    bytes.truncate(read);
    let whole = HEAD + length(&bytes).filter(|&length| length <= LONGEST).ok_or(Fault::Damaged(start))?;
    if whole > bytes.len() {
        bytes.resize(whole, 0);
        read_at(file, &mut bytes[read..], start + read as u64).map_err(Fault::Io)?;
    }
    frame(&bytes, 0).map(<[u8]>::to_vec).ok_or(Fault::Damaged(start))
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, buffer: &mut [u8], start: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], start + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(done)
}

/// Length of the payload of the frame that bytes begin with.
fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.get(..HEAD)?;
    (head[..4] == MARK.to_le_bytes()).then(|| u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize)
}

/// Payload of the whole frame at a byte.
fn frame(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let bytes = &bytes[at..];
    let payload = bytes.get(HEAD..HEAD + length(bytes)?)?;
    let checksum = u64::from_le_bytes(bytes[8..HEAD].try_into().expect("eight bytes"));
    (!payload.is_empty() && xxh3_64(payload) == checksum).then_some(payload)
}

/// Number of whole commits in bytes that do not begin with a whole frame.
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
        let mut found = Vec::new();
        let log = Log::open(folder, |log, place, payload| {
            assert_eq!(log.read(place).unwrap(), payload);
            found.push(payload.to_vec());
            Ok(())
        })?;
        Ok((log, found))
    }

    /// Two groups: `1 a`, `1 b`; then `1 c`.
    fn written(folder: &Path) -> Vec<LogPosition> {
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
    fn what_is_cut_at_any_byte_is_read_up_to_the_last_whole_frame() {
        let whole = tempfile::tempdir().unwrap();
        written(whole.path());
        let bytes = fs::read(whole.path().join("000000.log")).unwrap();
        for cut in 0..=bytes.len() {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("000000.log"), &bytes[..cut]).unwrap();
            let (mut log, found) = payloads(folder.path()).unwrap();
            let expected = [18, 36, 71].iter().filter(|end| **end <= cut).count();
            assert_eq!(found.len(), expected, "cut at {cut}");
            let place = log.append(b"\x01d");
            log.flush().unwrap();
            assert_eq!(log.read(place).unwrap(), b"\x01d");
            assert_eq!(payloads(folder.path()).unwrap().1.len(), expected + 1);
        }
    }

    #[test]
    fn damage_before_what_was_acknowledged_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000000.log");
        written(folder.path());
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            // The first group ends at 53: the second commit was written once the first was on disk.
            assert_eq!(payloads(folder.path()).is_err(), at < 36, "byte {at}");
        }
    }
}
