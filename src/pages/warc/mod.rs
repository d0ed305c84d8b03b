//! Reader of WARC, WET and ARC files: records of web archives, read in ranges, past any damage.
//!
//! Input: a file of WARC 0.18, 1.0 or 1.1 records, or of ARC records of version 1 or 2: plain, in
//! gzip members or zstd frames (one for each record, or fewer), or a stream of decoded bytes.
//! Output: a [`ReadResult`](super::record::ReadResult) for each record, in file order, and one for each range
//! of bytes outside of records.
//!
//! | layer | file | task |
//! |---|---|---|
//! | bytes | `blocks`, `window`, `plain`, `stream` | bytes at a position |
//! | members | `members`, `chain`, `decoder`, `frames` | start and end of a member, and the content after it |
//! | records | `records`, `format`, `record_head`, `arc_head`, `fields` | start and true length of a record |
//! | pages | `page`, `form`, `media_type`, `http`, `encodings` | content of a record as a page |
//! | stored records | `stored` | bytes of whole records, to be moved rather than read |
//! | references | `revisits`, `segments`, `digests` | other records to which a record refers |
//!
//! # Ranges
//! One large file is divided among many workers. Each reads the records that *start* in its range,
//! up to their ends. A range finds its first record by a search, so it may start inside a record
//! that itself contains an archive. The test whether a record starts at a position depends only on
//! the bytes there. Such a reader therefore continues with the true records from the next true one
//! on; [`settle`] determines the offset from which on its records are true.
//!
//! # Members
//! The records of a file are in the bytes to which its members decode, one after another, for any
//! division into members: one for each record, as the standard recommends; blocks of a fixed size
//! (bgzip); the head of a record and its body; or some records in members and others plain. Where
//! each record has a member of its own, ranges share the work. Other records are read by the range
//! with the last member before them that starts with a record.
//!
//! # Damage
//! Damage costs the record that contains it. A record ends, in order of decreasing trust, at the
//! end of its compressed member, at its `Content-Length` if a record may end there, or at the next
//! place where a record starts.
//!
//! # Cost
//! Time is linear in the bytes of the file, for any content. Memory is two blocks of 1 MiB and
//! twice the record limit.

use std::io::Read;
use std::ops::Range;

use super::decoded::FileStream;
use super::record::{Reason, RecordSink};
use super::sniff::is_html;
use super::zstd_head::LARGEST_WINDOW_LOG;
use webtwin_base::error::Result;
use webtwin_base::read_at::RandomAccess;
use webtwin_job::{InputSettings, RecordLimits};

mod address;
mod arc_head;
mod blocks;
mod chain;
mod decoder;
mod digests;
mod encodings;
mod fields;
mod form;
mod format;
mod frames;
mod http;
mod media_type;
mod members;
mod page;
mod plain;
mod record_head;
mod records;
mod revisits;
pub mod segments;
pub mod stored;
mod stream;
mod window;

pub use format::RecordFormat;

use blocks::{BLOCK_BYTES, Blocks};
use decoder::Codec;
use members::{EntryPoint, MemberStart, Members, NextMember};
use plain::Plain;
use records::{CountingSink, RecordReader};
use window::{Buffer, Window};

/// Number of bytes that are read at a time to detect the format of a file.
const PROBE_BYTES: usize = 16 << 10;

/// Number of bytes at the start of a file that may be damaged without a change of the detected
/// format.
const DAMAGED_START_BYTES: u64 = 1 << 20;

/// Compression of the records of a WARC file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordCompression {
    /// Not compressed.
    Plain,
    /// In gzip members, each with its own checksum.
    Gzip,
    /// In zstd frames, perhaps with a dictionary.
    Zstd,
}

/// Outcome of reading a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RangeEnd {
    /// Offset of the first record that was read.
    pub first_start: Option<u64>,
    /// Offset of the last record that was read.
    pub last_start: Option<u64>,
    /// Start of the record after the last one that was read, if known. No record that starts before
    /// this offset is left to later ranges.
    pub end: u64,
    /// Number of calls of the sink.
    pub records: u64,
}

impl RangeEnd {
    /// Adds the offsets of the first and last record of another part of the range.
    fn add(&mut self, first: Option<u64>, last: Option<u64>) {
        self.first_start = self.first_start.or(first);
        self.last_start = last.or(self.last_start);
    }
}

/// Reads the records of `file` that start in `range`, and the bytes between each record and the
/// next.
///
/// All ranges of a file together, each filtered by [`settle`], yield the same as the range
/// `0..file.len()`. A file that is not a WARC ([`probe`]) yields one [`Reason::Garbage`] at offset
/// 0.
///
/// # Errors
/// Returns any error of `file` and `sink`.
///
/// # Cost
/// Reads the range, the rest of its last record, and the first bytes of the file.
///
/// # Examples
/// ```
/// use webtwin_base::read_at::Bytes;
/// use webtwin_job::InputSettings;
/// use webtwin_pages::record::ReadResult;
/// use webtwin_pages::warc::read_range;
///
/// let record = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a.example/\r\n\
///     Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nHello\r\n\r\n";
/// let file = Bytes(record.as_bytes());
/// let mut pages = Vec::new();
/// let end = read_range(&file, 0..record.len() as u64, &InputSettings::default(), &mut |found| {
///     if let ReadResult::Page(page) = found {
///         pages.push((page.url, page.body));
///     }
///     Ok(())
/// })?;
/// assert_eq!((end.records, end.end), (1, record.len() as u64));
/// assert_eq!(pages, [("http://a.example/".to_string(), b"Hello".to_vec())]);
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
pub fn read_range(
    file: &dyn RandomAccess,
    range: Range<u64>,
    input: &InputSettings,
    sink: &mut RecordSink,
) -> Result<RangeEnd> {
    read_in_blocks(file, range, EntryPoint::Search, &mut CountingSink::new(input, sink), BLOCK_BYTES)
}

/// Reads the records of a stream of decoded bytes, for compressions that cannot be entered at a
/// record. Offsets and lengths count decoded bytes.
///
/// # Errors
/// Returns failures of storage in the stream, and any error of `sink`. Damage ends the stream with
/// a refusal.
pub fn read_stream(stream: impl Read + FileStream, input: &InputSettings, sink: &mut RecordSink) -> Result<RangeEnd> {
    stream::read(stream, &mut CountingSink::new(input, sink))
}

/// Reads the records whose offsets are in `places`, and possibly others. `places` must begin with
/// the offset of a record that was read before.
///
/// # Errors
/// Returns any error of [`read_range`].
pub fn read_again(
    file: &dyn RandomAccess,
    places: Range<u64>,
    input: &InputSettings,
    sink: &mut RecordSink,
) -> Result<()> {
    read_in_blocks(file, places, EntryPoint::Known, &mut CountingSink::new(input, sink), BLOCK_BYTES).map(drop)
}

fn read_in_blocks(
    file: &dyn RandomAccess,
    range: Range<u64>,
    entry: EntryPoint,
    sink: &mut CountingSink,
    block_bytes: usize,
) -> Result<RangeEnd> {
    let end = match probe(file)? {
        Some((format, compression)) => {
            let blocks = Blocks::new(file, block_bytes);
            let begins_plain = compression == RecordCompression::Plain;
            Members::new(blocks, format, begins_plain, &sink.input.limits)?.read(range.start, range.end, entry, sink)?
        }
        None => {
            if range.start == 0 && !file.is_empty() {
                sink.refuse(0, Reason::Garbage, format!("{} bytes: {}", file.len(), looks_like(file)?), file.len())?;
            }
            RangeEnd { first_start: None, last_start: None, end: range.start, records: sink.n_results }
        }
    };
    sink.flush()?;
    Ok(end)
}

/// Returns for every range of a file the smallest offset from which on its records are true.
/// Records before it lie inside a record of an earlier range. `ends` contains the outcomes of all
/// ranges of the file, in file order.
///
/// The result is exact, with one exception: an archive that is embedded in a record and cut off
/// there, and whose last record claims to end, after that outer record, exactly at the start or end
/// of another one (in ARC, at the end of any line). Even then the result depends only on the file
/// and its ranges.
pub fn settle(ends: &[RangeEnd]) -> Vec<u64> {
    let mut valid_from = 0;
    let mut offsets = Vec::with_capacity(ends.len());
    for range in ends {
        offsets.push(valid_from);
        // The end of a record that is not true has no meaning.
        if range.last_start.is_some_and(|last| last >= valid_from) {
            valid_from = valid_from.max(range.end);
        }
    }
    offsets
}

/// Detects the format and compression of `file` from its first bytes. Returns `None` if it is not a
/// WARC or ARC file.
///
/// The first MiB may be damaged if it contains a record or member.
///
/// # Errors
/// Returns any error of `file`.
///
/// # Examples
/// ```
/// use webtwin_base::read_at::Bytes;
/// use webtwin_pages::warc::{RecordCompression, RecordFormat, probe};
///
/// let head = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
/// assert_eq!(probe(&Bytes(head.to_vec()))?, Some((RecordFormat::Warc, RecordCompression::Plain)));
/// assert_eq!(probe(&Bytes(b"<html>".to_vec()))?, None);
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
pub fn probe(file: &dyn RandomAccess) -> Result<Option<(RecordFormat, RecordCompression)>> {
    let first = Blocks::new(file, PROBE_BYTES).peek(0, PROBE_BYTES)?;
    let formats = [RecordFormat::Warc, RecordFormat::Arc];
    if let Some(&format) = formats.iter().find(|format| format.begins(start_of_text(&first))) {
        return Ok(Some((format, RecordCompression::Plain)));
    }
    for format in formats {
        if let Some(compression) = probe_for(file, format)? {
            return Ok(Some((format, compression)));
        }
    }
    Ok(None)
}

fn probe_for(file: &dyn RandomAccess, format: RecordFormat) -> Result<Option<RecordCompression>> {
    // The reader refuses windows that exceed the limit, so detection accepts all.
    let limits = RecordLimits { window_bytes: 1 << LARGEST_WINDOW_LOG, ..RecordLimits::default() };
    let first = Blocks::new(file, PROBE_BYTES).peek(0, PROBE_BYTES)?;
    let mut members = Members::new(Blocks::new(file, PROBE_BYTES), format, false, &limits)?;
    let compression = |members: &Members| match members.codec() {
        Codec::Gzip => Some(RecordCompression::Gzip),
        Codec::Zstd => Some(RecordCompression::Zstd),
    };
    let (position, is_damaged) = match members.behind(0)? {
        NextMember::Start(start) if start.is_record() => return Ok(compression(&members)),
        NextMember::Start(start) if start.continues() => {
            let codec = compression(&members);
            let content = members.first_bytes_of_chain(start.at())?;
            if format.begins(start_of_text(&content)) {
                return Ok(codec);
            }
            // An intact member with other content means that the whole file is of another kind.
            return Ok(None);
        }
        NextMember::Start(_) | NextMember::End => (0, false),
        NextMember::Other(position, _) => (position, true),
    };
    if is_damaged && members.find_record(position, DAMAGED_START_BYTES)?.is_some() {
        return Ok(compression(&members));
    }
    if is_html(&first) {
        return Ok(None);
    }
    let mut nothing = |_| Ok(());
    let input = InputSettings { limits, ..InputSettings::default() };
    let mut sink = CountingSink::new(&input, &mut nothing);
    let window = Window::new(Plain { members: &mut members, position: 0 }, Buffer::default(), 0, None);
    let first_record = RecordReader::new(window, &mut sink, format).find(0, DAMAGED_START_BYTES, None)?;
    Ok(first_record.map(|_| RecordCompression::Plain))
}

/// True if a line, given without its end, is the head of an ARC record.
pub(super) fn is_arc_line(line: &[u8]) -> bool {
    arc_head::begins(line) && arc_head::parse(line).is_some()
}

/// Returns a short description of a file that is not a WARC, for a message.
///
/// # Errors
/// Returns any error of `file`.
pub fn looks_like(file: &dyn RandomAccess) -> Result<&'static str> {
    let limits = RecordLimits::default();
    let first = Blocks::new(file, PROBE_BYTES).peek(0, PROBE_BYTES)?;
    let mut members = Members::new(Blocks::new(file, PROBE_BYTES), RecordFormat::Warc, false, &limits)?;
    if first.starts_with(&[0x1f, 0x8b]) && members.open(0)? != MemberStart::Other(Reason::BadCompression) {
        return Ok(match members.first_bytes() {
            [0x1f, 0x8b, ..] => "gzip within gzip, so decompress it once",
            inner if is_html(inner) => "a gzip file of HTML",
            _ => "a gzip file of something other than WARC",
        });
    }
    Ok(match start_of_text(&first) {
        [] if file.is_empty() => "an empty file",
        text if text.starts_with(b"version https://git-lfs") => {
            "a Git LFS pointer, not the file, so run `git lfs pull`"
        }
        text if is_html(text) => "an HTML page, perhaps an error page of the server it came from",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "a zstd file of something other than WARC",
        _ => "no WARC record in its first MiB",
    })
}

fn start_of_text(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start()
}

#[cfg(test)]
mod tests;
