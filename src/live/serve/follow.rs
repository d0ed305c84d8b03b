//! Follows growing files: reads each up to its last whole record, again and again.
//!
//! A file is read in pieces, each one like a file of its own. The last record of a piece may be
//! incomplete. So it is left for the next poll if it is damaged, or if its length leads beyond the
//! end of the piece. A damaged record that is followed by other records is rejected. The offset up
//! to which a file has been read is written to the log in one group with its pages: after a crash,
//! no record is lost and none is counted twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use flate2::bufread::GzDecoder;

use super::reading::{Digesters, ReadCounts, ReadOutcome, ReadRecord, read};
use super::writer::{BatchSender, SharedIndex};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_base::threads;
use webtwin_pages::record::Reason;
use webtwin_pages::warc;

/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Size of a piece in bytes, unless a record is longer.
const PIECE: u64 = 8 << 20;

/// Maximum size of the head of an incomplete record that is waited for, in bytes.
const HEAD: usize = 64 << 10;

/// Maximum length of an incomplete record that is waited for, in bytes. A damaged length must not
/// block a file forever.
const MAX_RECORD_BYTES: u64 = 4 << 30;

/// Number of bytes without a record that are skipped together.
const GARBAGE: u64 = 1 << 20;

/// Time without growth after which a file counts as complete.
const COMPLETE: Duration = Duration::from_secs(120);

/// Magic number of the frame that holds a zstd dictionary, at the beginning of a file.
const DICTIONARY: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// Condition for the end of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCondition {
    /// Ends when the process is asked to stop.
    Stopped,
    /// Ends when no file has grown for this time; zero ends after the first poll.
    Idle(Duration),
}

/// Callback that receives the name of each complete file, on a separate thread. Its errors are
/// printed as warnings.
pub type OnComplete = Box<dyn Fn(&Path) -> Result<()> + Send + Sync>;

/// Reader of all followed files.
pub(super) struct FollowedFiles {
    pub patterns: Vec<String>,
    pub end_condition: EndCondition,
    pub threads: usize,
    pub index: Arc<SharedIndex>,
    pub writer: BatchSender,
    pub digesters: Arc<Digesters>,
    pub counts: Arc<Mutex<ReadCounts>>,
    pub stop: Arc<AtomicBool>,
    pub on_complete: Option<OnComplete>,
}

/// A followed file.
#[derive(Debug)]
struct Growing {
    /// Name of the file as matched by the pattern: relative if the pattern is relative.
    name: PathBuf,
    inode: Option<u64>,
    offset: u64,
    /// Size of the file at the last poll, in bytes.
    bytes: u64,
    /// Time of the last poll at which records of the file were read.
    grown: Instant,
    /// True if the file has been passed on as complete and has not grown since.
    is_complete: bool,
}

impl Growing {
    /// Creates the state of a file that has been read up to an offset.
    fn from_offset(offset: u64) -> Growing {
        Growing { name: PathBuf::new(), inode: None, offset, bytes: 0, grown: Instant::now(), is_complete: false }
    }
}

impl FollowedFiles {
    /// Polls the files and reads new records until the end condition holds or the service is
    /// stopped.
    ///
    /// # Errors
    /// Returns any error of the patterns and of the writer. A file that cannot be read causes a
    /// warning and is read again at the next poll.
    pub(super) fn run(mut self) -> Result<()> {
        let mut open_files: BTreeMap<PathBuf, Growing> = BTreeMap::new();
        for (name, offset) in self.index.index().files() {
            open_files.insert(name.into(), Growing::from_offset(offset));
        }
        let completed = self.on_complete.take().map(Completed::start).transpose()?;
        let (mut last, mut failed) = (Instant::now(), BTreeSet::new());
        while !self.is_stopped() {
            let mut news: Vec<(PathBuf, Growing)> = Vec::new();
            for (path, name) in self.paths()? {
                let file = open_files.remove(&path).unwrap_or_else(|| Growing::from_offset(0));
                news.push((path, Growing { name, ..file }));
            }
            let news: Vec<_> = news.into_iter().map(|of| Mutex::new(Some(of))).collect();
            // Files are polled in parallel. Each one is moved to its thread and back, because a
            // poll changes its state.
            let results = threads::for_each(self.threads, news.len(), Vec::new, |output, number| {
                let entry = news[number].lock().unwrap_or_else(PoisonError::into_inner).take();
                let (path, mut file) = entry.expect("each file is looked at once");
                let previous_offset = file.offset;
                let outcome = self.read_appended(&path, &mut file);
                let has_grown = file.offset != previous_offset;
                output.push((path, file, has_grown, outcome));
                Ok(())
            })?;
            for (path, mut file, has_grown, outcome) in results.into_iter().flatten() {
                match outcome {
                    Err(error @ (Error::Storage { .. } | Error::Input { .. })) => {
                        // One warning for each failing file, not one for each poll.
                        if failed.insert(path.clone()) {
                            notify(format_args!("warning: a followed file cannot be read and is retried: {error}"));
                        }
                    }
                    Err(error) => return Err(error),
                    Ok(()) => drop(failed.remove(&path)),
                }
                if has_grown {
                    last = Instant::now();
                    (file.grown, file.is_complete) = (last, false);
                }
                open_files.insert(path, file);
            }
            let is_end = matches!(self.end_condition, EndCondition::Idle(time) if last.elapsed() >= time);
            if let Some(completed) = &completed {
                let is_complete =
                    |file: &&mut Growing| !file.is_complete && file.bytes > 0 && file.bytes == file.offset;
                for file in open_files.values_mut().filter(is_complete) {
                    // No later poll passes files on, so at the end they count as complete even if
                    // they grew recently.
                    if is_end || file.grown.elapsed() >= COMPLETE {
                        file.is_complete = true;
                        completed.pass(&file.name);
                    }
                }
            }
            match self.end_condition {
                EndCondition::Idle(_) if is_end => {
                    for (path, file) in open_files.iter().filter(|(_, file)| file.bytes > file.offset) {
                        let (rest, path) = (file.bytes - file.offset, path.display());
                        notify(format_args!(
                            "warning: {path}: the last {rest} bytes are not a complete record, and were not read"
                        ));
                    }
                    return completed.map_or(Ok(()), Completed::end);
                }
                _ => sleep(POLL_INTERVAL),
            }
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the absolute paths of the files that match the patterns now, each with its name as
    /// matched by the pattern.
    fn paths(&self) -> Result<BTreeMap<PathBuf, PathBuf>> {
        let mut paths = BTreeMap::new();
        for pattern in &self.patterns {
            let invalid_pattern = |cause: glob::PatternError| Error::Usage(format!("--follow {pattern}: {cause}"));
            // A folder that cannot be read is skipped, because it may be readable at the next poll.
            let matching_paths = glob::glob(pattern).map_err(invalid_pattern)?.flatten().filter(|path| path.is_file());
            paths
                .extend(matching_paths.map(|name| (std::path::absolute(&name).unwrap_or_else(|_| name.clone()), name)));
        }
        Ok(paths)
    }

    /// Reads the records that were appended to a file since the last poll.
    fn read_appended(&self, path: &Path, file_state: &mut Growing) -> Result<()> {
        let name = path.to_string_lossy();
        let failed = |cause| Error::storage(name.to_string(), cause);
        let file = match File::open(path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
            file => file.map_err(failed)?,
        };
        let metadata = file.metadata().map_err(failed)?;
        // A crawler may replace a file under its name. Then the old offset has no meaning.
        let is_other = file_state.inode.is_some_and(|inode| inode != metadata.ino());
        if is_other || metadata.len() < file_state.offset {
            let message = if is_other { "was replaced by another file" } else { "has become shorter" };
            notify(format_args!("warning: {name} {message}, and is read again from its beginning"));
            (file_state.offset, file_state.bytes) = (0, 0);
        }
        file_state.inode = Some(metadata.ino());
        if file_state.bytes == metadata.len() {
            return Ok(());
        }
        let mut length = PIECE;
        while file_state.offset < metadata.len() && !self.is_stopped() {
            let piece = Piece::of(&file, &name, file_state.offset, (file_state.offset + length).min(metadata.len()))?;
            let (records, end) = self.whole_records(&piece)?;
            match end == file_state.offset {
                true if piece.end == metadata.len() => break,
                // The first record is longer than the piece.
                true => length *= 2,
                false => {
                    self.take(records, &name, end)?;
                    (file_state.offset, length) = (end, PIECE);
                }
            }
        }
        file_state.bytes = metadata.len();
        Ok(())
    }

    /// Returns the whole records of a piece, and the offset in the file at which they end.
    fn whole_records(&self, piece: &Piece<'_>) -> Result<(Vec<ReadRecord>, u64)> {
        let input = &self.digesters.job().input;
        if piece.len() > 2 * GARBAGE && warc::probe(piece)?.is_none() {
            let detail = format!("{GARBAGE} bytes: {}", warc::looks_like(piece)?);
            let outcome = ReadOutcome::Rejected(Reason::Garbage, detail);
            return Ok((vec![ReadRecord { offset: piece.start, outcome, is_doubtful: true }], piece.start + GARBAGE));
        }
        let mut records: Vec<ReadRecord> = Vec::new();
        let (mut end, mut is_half) = (piece.end, false);
        self.digesters.with(|digester| {
            warc::read_range(piece, 0..piece.len(), input, &mut |read_result| {
                let mut record = read(digester, read_result)?;
                record.offset = piece.file_offset(record.offset);
                if is_half {
                    return Ok(());
                }
                if piece.leads_beyond(record.offset)? {
                    (end, is_half) = (record.offset, true);
                    return Ok(());
                }
                records.push(record);
                Ok(())
            })
        })?;
        if let Some(last) = records.last().filter(|_| !is_half)
            && (last.is_doubtful || piece.is_cut_behind(last.offset)?)
        {
            end = last.offset;
        }
        // Records with equal offsets are in one compressed member, and are withheld together.
        records.truncate(records.partition_point(|record| record.offset < end));
        Ok((records, end))
    }

    /// Sends records to the writer, with the offset at which they end, and waits until they are on
    /// disk.
    fn take(&self, records: Vec<ReadRecord>, name: &str, end: u64) -> Result<()> {
        let mut counts = ReadCounts::default();
        records.iter().for_each(|record| counts.add(&record.outcome));
        let items = records.into_iter().filter_map(|record| match record.outcome {
            ReadOutcome::Item(item) => Some(item),
            ReadOutcome::Rejected(reason, detail) => {
                if reason.is_bad() {
                    notify(format_args!(
                        "warning: {name}: the record at byte {} is rejected, {}: {detail}",
                        record.offset,
                        reason.as_str()
                    ));
                }
                None
            }
        });
        let reply = self.writer.add(items.collect(), Some((name.to_string(), end)));
        reply.map_err(|why| Error::storage(name.to_string(), why))?;
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).merge(&counts);
        Ok(())
    }
}

/// Thread that passes complete files to the callback. If the service is stopped, the process ends
/// without waiting for it.
struct Completed {
    send: Sender<PathBuf>,
    thread: JoinHandle<()>,
}

impl Completed {
    fn start(on_complete: OnComplete) -> Result<Completed> {
        let (send, receiver) = channel::<PathBuf>();
        let thread = threads::start(move || {
            for name in receiver {
                if let Err(error) = on_complete(&name) {
                    let name = name.display();
                    notify(format_args!("warning: {name} is not in the state, so the next run reads it: {error}"));
                }
            }
        })?;
        Ok(Completed { send, thread })
    }

    fn pass(&self, name: &Path) {
        // The send fails only if the thread has panicked, which was reported. The next run reads
        // the file.
        let _ = self.send.send(name.to_path_buf());
    }

    /// Waits until the callback has handled all files.
    fn end(self) -> Result<()> {
        drop(self.send);
        let panicked = |_| Error::Invariant("the thread that reads complete files has panicked".into());
        self.thread.join().map_err(panicked)
    }
}

/// Part of a file, preceded by the dictionary frame of the file, if there is one.
struct Piece<'f> {
    file: &'f File,
    name: &'f str,
    prefix: Vec<u8>,
    start: u64,
    end: u64,
    is_plain: bool,
}

impl<'f> Piece<'f> {
    fn of(file: &'f File, name: &'f str, start: u64, end: u64) -> Result<Piece<'f>> {
        let mut piece = Piece { file, name, prefix: Vec::new(), start, end, is_plain: false };
        let head = piece.bytes(0, 8)?;
        if let Some(&[a, b, c, d]) = head.strip_prefix(&DICTIONARY)
            && start > 0
        {
            piece.prefix = piece.bytes(0, 8 + u32::from_le_bytes([a, b, c, d]) as usize)?;
        }
        let first = piece.bytes(start, 4)?;
        piece.is_plain = first.iter().all(|byte| byte.is_ascii()) && first != DICTIONARY;
        // A plain record counts as whole without the line ends that follow it, so they may begin
        // the next piece.
        while piece.is_plain && piece.start < end && matches!(piece.bytes(piece.start, 1)?[..], [b'\r' | b'\n']) {
            piece.start += 1;
        }
        Ok(piece)
    }

    fn bytes(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let length = (length as u64).min(self.end.saturating_sub(offset)) as usize;
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            let read = self.file.read_at(&mut bytes[filled..], offset + filled as u64);
            match read.map_err(|cause| Error::storage(self.name.to_string(), cause))? {
                0 => break,
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn file_offset(&self, offset: u64) -> u64 {
        self.start + offset.saturating_sub(self.prefix.len() as u64)
    }

    /// Returns true if the compressed member at an offset, which is the last one, does not end
    /// within the piece. The reader does not report this for a record that is not a page.
    fn is_cut_behind(&self, offset: u64) -> Result<bool> {
        Ok(!self.is_plain && is_cut(&self.bytes(offset, (self.end - offset) as usize)?))
    }

    /// Returns true if the length that a plain record states leads beyond the end of the piece.
    fn leads_beyond(&self, offset: u64) -> Result<bool> {
        if !self.is_plain {
            return Ok(false);
        }
        let bytes = self.bytes(offset, HEAD)?;
        let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n").filter(|_| bytes.starts_with(b"WARC/")) else {
            return Ok(false);
        };
        let lines = bytes[..end].split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let length = lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
        });
        Ok(length.is_some_and(|length| length <= MAX_RECORD_BYTES && offset + end as u64 + 4 + length > self.end))
    }
}

/// Returns true if bytes begin with a compressed member that does not end within them.
fn is_cut(bytes: &[u8]) -> bool {
    match bytes {
        [0x1f, 0x8b, ..] => {
            let read = std::io::copy(&mut GzDecoder::new(bytes), &mut std::io::sink());
            read.is_err_and(|cause| cause.kind() == ErrorKind::UnexpectedEof)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd::zstd_safe::find_frame_compressed_size(bytes).is_err(),
        _ => false,
    }
}

impl RandomAccess for Piece<'_> {
    fn len(&self) -> u64 {
        self.prefix.len() as u64 + (self.end - self.start)
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let Some(offset_after_prefix) = offset.checked_sub(self.prefix.len() as u64) else {
            let mut bytes = self.prefix[offset as usize..].to_vec();
            bytes.truncate(length);
            let rest = self.bytes(self.start, length - bytes.len())?;
            bytes.extend(rest);
            return Ok(bytes);
        };
        self.bytes(self.start + offset_after_prefix, length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::index::LiveIndex;
    use webtwin_job::Job;

    fn followed(folder: &Path) -> FollowedFiles {
        let job = Job::default();
        let (index, writer, _) = BatchSender::start(LiveIndex::open(folder, &job).unwrap(), || ()).unwrap();
        FollowedFiles {
            patterns: Vec::new(),
            end_condition: EndCondition::Stopped,
            threads: 1,
            index,
            writer,
            digesters: Arc::new(Digesters::new(job)),
            counts: Arc::default(),
            stop: Arc::default(),
            on_complete: None,
        }
    }

    fn record(kind: &str, url: &str, media: &str, body: &[u8]) -> Vec<u8> {
        let http = [format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n").as_bytes(), body].concat();
        let head =
            format!("WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http\r\n");
        [format!("{head}Content-Length: {}\r\n\r\n", http.len()).as_bytes(), &http, b"\r\n\r\n"].concat()
    }

    /// Returns pages, records that are not pages, and a page that contains a record.
    fn records() -> Vec<Vec<u8>> {
        let page = |n: u32| {
            record("response", &format!("http://a.example/{n}"), "text/html", format!("<p>page {n}").as_bytes())
        };
        let holder = [b"<pre>".as_slice(), &page(9), b"</pre>"].concat();
        vec![
            record("warcinfo", "", "text/plain", b"software: a test"),
            page(1),
            record("response", "http://a.example/film", "video/mp4", &[7; 90]),
            record("response", "http://a.example/holder", "text/html", &holder),
            record("request", "http://a.example/1", "text/plain", b"-"),
            page(2),
        ]
    }

    /// Lets a file grow by one byte at a time. Only whole records must be read, each of them once.
    fn grows(members: &[Vec<u8>]) {
        let folder = tempfile::tempdir().unwrap();
        let followed = followed(&folder.path().join("index"));
        let path = folder.path().join("x.warc");
        let mut state = Growing::from_offset(0);
        let ends: Vec<u64> = members
            .iter()
            .scan(0, |end, member| {
                Some({
                    *end += member.len() as u64;
                    *end
                })
            })
            .collect();
        let mut file = File::create(&path).unwrap();
        for (position, byte) in members.concat().iter().enumerate() {
            file.write_all(&[*byte]).unwrap();
            followed.read_appended(&path, &mut state).unwrap();
            let read = followed.counts.lock().unwrap().read as usize;
            // A plain record is whole without the line ends that follow it.
            let n_whole = ends.partition_point(|&end| end <= position as u64 + 1);
            let whole_but_lines = ends.partition_point(|&end| end <= position as u64 + 1 + 4);
            assert!((n_whole..=whole_but_lines).contains(&read), "byte {position}: {read} of {n_whole}, {ends:?}");
        }
        let counts = followed.counts.lock().unwrap().clone();
        assert_eq!((counts.read, counts.kept), (6, 3), "{counts:?}");
    }

    #[test]
    fn growing_plain_file_is_read_by_records() {
        grows(&records());
    }

    #[test]
    fn growing_gzip_members_are_read_by_records() {
        let member = |record: &Vec<u8>| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(record).unwrap();
            gzip.finish().unwrap()
        };
        grows(&records().iter().map(member).collect::<Vec<_>>());
    }

    #[test]
    fn growing_zstd_frames_are_read_by_records() {
        grows(&records().iter().map(|record| zstd::encode_all(&record[..], 3).unwrap()).collect::<Vec<_>>());
    }

    #[test]
    fn damage_in_the_middle_is_a_rejected_record_and_a_shorter_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let followed = followed(&folder.path().join("index"));
        let path = folder.path().join("x.warc");
        let mut damaged_bytes = records();
        damaged_bytes[2].truncate(60);
        std::fs::write(&path, damaged_bytes.concat()).unwrap();
        let mut state = Growing::from_offset(0);
        followed.read_appended(&path, &mut state).unwrap();
        let counts = followed.counts.lock().unwrap().clone();
        assert_eq!(counts.kept, 3, "{counts:?}");
        assert!(counts.read == counts.kept + counts.rejected.values().sum::<u64>());
        assert_eq!(state.offset, std::fs::metadata(&path).unwrap().len());
        std::fs::write(&path, records()[1].clone()).unwrap();
        followed.read_appended(&path, &mut state).unwrap();
        assert_eq!(followed.counts.lock().unwrap().kept, 4);
    }
}
