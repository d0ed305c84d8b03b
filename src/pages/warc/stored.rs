//! Records as stored: the position of each in its file, its heads, and the bytes of its payload.
//!
//! This module is for code that moves records, not for code that reads pages. It is strict where
//! the readers of pages are tolerant: a record is *whole* if no property of it is guessed. It
//! starts with a head of a known version, has the length that it declares, ends with two line ends,
//! is followed by another record or the end and, in a compressed file, has a member of its own with
//! a correct checksum. Bytes between whole records are *other bytes*, with any content.
//!
//! Whole records and ranges of other bytes tile the file: each begins at the end of the one before.
//! The extent of other bytes does not depend on bytes after the record that ends them, with one
//! exception: in a plain file, the lengths that forged records claim.
//!
//! # Cost
//! Linear in the bytes of the file. A record of any length is read in pieces of at most 256 KiB.

use std::ops::Range;

use super::{
    BLOCK_BYTES, Blocks, RecordCompression, RecordFormat,
    decoder::{Codec, MemberDecoder},
    fields::{Line, lines, text},
    frames, http, probe,
    record_head::{self, HeadEnd, MAGIC, SNIFF_BYTES},
    window::{Buffer, Ending},
};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;
use webtwin_job::RecordLimits;

/// Maximum number of bytes that are read or decoded at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Number of bytes of a record in a plain file that are read first. Most records are short.
const FIRST_BYTES: usize = 4 << 10;

/// Bytes that follow the block of every record.
pub const TRAILER: &[u8] = b"\r\n\r\n";

/// Number of consecutive places that look like records but are not, after which the rest of the
/// file counts as other bytes. Bounds the cost of a pile of forged records to a multiple of its
/// size.
const RETRIES: u32 = 64;

/// A whole record, without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Range of its bytes in the file, compressed or not.
    pub range: Range<u64>,
    /// Head of the record, from the version to the blank line.
    pub head: Vec<u8>,
    /// Head of the HTTP response with which the block begins, up to the blank line; empty if there
    /// is none.
    pub http: Vec<u8>,
    /// Length of the payload in bytes. The payload is the rest of the block, in the transfer
    /// encoding as received.
    pub payload_bytes: u64,
}

/// Receiver of the bytes of a possible record.
pub trait ByteReceiver {
    /// Receives the heads of a possible record. Discards all bytes since the last record that was
    /// whole.
    fn heads(&mut self, head: &[u8], http: &[u8]);

    /// Receives the next bytes of the payload.
    fn payload(&mut self, bytes: &[u8]);
}

/// Receiver of the content of a file, in file order.
pub trait Visitor: ByteReceiver {
    /// Receives a whole record, whose bytes were passed last.
    ///
    /// # Errors
    /// Returns an error to stop the reader.
    fn record(&mut self, record: StoredRecord) -> Result<()>;

    /// Receives a range of bytes of the file that are not a whole record. The range is never empty.
    ///
    /// # Errors
    /// Returns an error to stop the reader.
    fn receive_other(&mut self, range: Range<u64>) -> Result<()>;
}

/// Reader of the stored records of one WARC file.
pub struct StoredRecords<'f> {
    blocks: Blocks<'f>,
    compression: RecordCompression,
    dictionary: Option<Vec<u8>>,
    decoder: Option<MemberDecoder>,
    buffer: Buffer,
    limits: RecordLimits,
    /// Way in which the current member, or the plain file, has ended.
    ending: Option<Ending>,
}

impl<'f> StoredRecords<'f> {
    /// Opens a file; returns `None` if it is not a WARC and not empty. Of the limits, only those of
    /// heads and of the expansion ratio apply.
    ///
    /// # Errors
    /// Returns any error of `file`.
    pub fn open(file: &'f dyn RandomAccess, limits: &RecordLimits) -> Result<Option<StoredRecords<'f>>> {
        let compression = match probe(file)? {
            Some((RecordFormat::Warc, compression)) => compression,
            None if file.is_empty() => RecordCompression::Plain,
            Some((RecordFormat::Arc, _)) | None => return Ok(None),
        };
        let mut blocks = Blocks::new(file, BLOCK_BYTES);
        let dictionary = match compression {
            RecordCompression::Zstd => frames::dictionary(&mut blocks, 0, limits)?,
            _ => None,
        };
        let mut decoder = (compression != RecordCompression::Plain).then(|| MemberDecoder::new(limits));
        if let (Some(decoder), Some(dictionary)) = (&mut decoder, &dictionary) {
            decoder.learn(dictionary);
        }
        let buffer = Buffer::default();
        Ok(Some(StoredRecords { blocks, compression, dictionary, decoder, buffer, limits: *limits, ending: None }))
    }

    /// Returns the compression of the records.
    pub fn compression(&self) -> RecordCompression {
        self.compression
    }

    /// Returns the dictionary of a zstd file, decompressed, if it has one.
    pub fn dictionary(&self) -> Option<&[u8]> {
        self.dictionary.as_deref()
    }

    /// Passes the whole file to a visitor.
    ///
    /// # Errors
    /// Returns any error of the file and of the visitor.
    pub fn visit(&mut self, visitor: &mut impl Visitor) -> Result<()> {
        let (mut position, mut n_read, mut retries) = (0, 0, 0);
        while position < self.blocks.len() && retries < RETRIES {
            match self.read(position, visitor)? {
                Some(_) if n_read < position => {
                    // The bytes before this record are passed first. The record is then read again.
                    visitor.receive_other(n_read..position)?;
                    n_read = position;
                }
                Some(record) => {
                    (position, n_read, retries) = (record.range.end, record.range.end, 0);
                    visitor.record(record)?;
                }
                None => {
                    retries += 1;
                    position = self.next(position + 1)?;
                }
            }
        }
        if n_read < self.blocks.len() {
            visitor.receive_other(n_read..self.blocks.len())?;
        }
        Ok(())
    }

    /// Reads the record at `start` and passes its bytes to `take` in pieces. Returns `None` if
    /// there is no whole record, possibly after a part of it was passed.
    ///
    /// # Errors
    /// Returns any error of the file.
    pub fn read(&mut self, start: u64, take: &mut dyn ByteReceiver) -> Result<Option<StoredRecord>> {
        if !self.begin(start)? {
            return Ok(None);
        }
        self.whole_record(start, take)
    }

    /// Reads the head of the record at `start`, which must be whole.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if there is none, and any error of the file.
    pub fn head(&mut self, start: u64) -> Result<Vec<u8>> {
        let head = match self.begin(start)? {
            true => self.record_head(start, &mut 0)?,
            false => None,
        };
        head.ok_or_else(|| Error::Invariant(format!("no record at {start}, where one was read before")))
    }

    /// Returns the next position from `start` on at which a record may begin, or the length of the
    /// file.
    fn next(&mut self, start: u64) -> Result<u64> {
        let length = self.blocks.len();
        Ok(self.blocks.find(self.magic(), start, length)?.unwrap_or(length))
    }

    /// Returns the first bytes of a record, or of its member.
    fn magic(&self) -> &'static [u8] {
        match self.compression {
            RecordCompression::Plain => MAGIC,
            RecordCompression::Gzip => Codec::Gzip.magic(),
            RecordCompression::Zstd => Codec::Zstd.magic(),
        }
    }

    fn begin(&mut self, start: u64) -> Result<bool> {
        self.buffer.clear();
        self.ending = None;
        let magic = self.magic();
        match &mut self.decoder {
            Some(_) if self.blocks.peek(start, magic.len())? != magic => Ok(false),
            Some(decoder) => Ok(decoder.open(&mut self.blocks, start, &self.limits)?.is_ok()),
            None => Ok(true),
        }
    }

    /// Adds up to `capacity` bytes to the buffer. `position` is the position in a plain file after
    /// the bytes read so far. Returns false if there are no more bytes.
    fn more(&mut self, position: &mut u64, capacity: usize) -> Result<bool> {
        if self.ending.is_some() {
            return Ok(false);
        }
        let length_before = self.buffer.filled().len();
        if let Some(decoder) = &mut self.decoder {
            self.ending = decoder.more(&mut self.blocks, &self.limits, capacity, &mut self.buffer)?;
        } else {
            let bytes = self.blocks.from(*position)?;
            let bytes = &bytes[..bytes.len().min(capacity)];
            self.buffer.capacity(bytes.len()).copy_from_slice(bytes);
            self.buffer.advance(bytes.len());
            *position += bytes.len() as u64;
            self.ending = bytes.is_empty().then_some(Ending::File);
        }
        Ok(self.buffer.filled().len() > length_before || self.ending.is_none())
    }

    /// Reads up to the end of the head of the record and returns the head, which also stays in the
    /// buffer.
    fn record_head(&mut self, start: u64, position: &mut u64) -> Result<Option<Vec<u8>>> {
        *position = start;
        let limit = self.limits.head_bytes as usize;
        loop {
            let bytes = self.buffer.filled();
            if bytes.len() >= MAGIC.len() && !bytes.starts_with(MAGIC) {
                return Ok(None);
            }
            match record_head::head_end(&bytes[..bytes.len().min(limit)]) {
                HeadEnd::Complete(length) if record_head::starts(bytes) => return Ok(Some(bytes[..length].to_vec())),
                HeadEnd::Incomplete if bytes.len() < limit => (),
                _ => return Ok(None),
            }
            if !self.more(position, FIRST_BYTES)? {
                return Ok(None);
            }
        }
    }

    fn whole_record(&mut self, start: u64, take: &mut dyn ByteReceiver) -> Result<Option<StoredRecord>> {
        let mut position = start;
        let Some(head) = self.record_head(start, &mut position)? else { return Ok(None) };
        let parsed = record_head::parse(&head);
        let (Ok(length), None) = (parsed.length, parsed.bad_version) else { return Ok(None) };
        self.buffer.forget(head.len());

        let mut http = Vec::new();
        if parsed.kind == "response" && parsed.media == "application/http" {
            let limit = length.min(self.limits.head_bytes);
            while (self.buffer.filled().len() as u64) < limit {
                if http::blank_line(self.buffered(limit)).is_some() || !self.more(&mut position, FIRST_BYTES)? {
                    break;
                }
            }
            if let Some(end) = http::blank_line(self.buffered(limit)) {
                http = self.buffer.filled()[..end].to_vec();
                self.buffer.forget(end);
            }
        }

        take.heads(&head, &http);
        let payload_bytes = length - http.len() as u64;
        let mut left = payload_bytes;
        while left > 0 {
            let bytes = self.buffered(left);
            take.payload(bytes);
            let n_bytes = bytes.len();
            left -= n_bytes as u64;
            self.buffer.forget(n_bytes);
            if left > 0 && !self.more(&mut position, BUFFER_BYTES)? {
                return Ok(None);
            }
        }
        // A member must end directly after the trailer. In a plain file, the start of the next
        // record must be seen.
        let lookahead = if self.decoder.is_some() { TRAILER.len() + 1 } else { TRAILER.len() + SNIFF_BYTES };
        while self.buffer.filled().len() < lookahead && self.more(&mut position, lookahead)? {}
        let Some(next) = self.buffer.filled().strip_prefix(TRAILER) else { return Ok(None) };
        let end = match &self.decoder {
            Some(decoder) if self.ending == Some(Ending::Member) && next.is_empty() => decoder.at(),
            None if record_head::starts(next) || next.is_empty() && self.ending.is_some() => {
                position - next.len() as u64
            }
            _ => return Ok(None),
        };
        Ok(Some(StoredRecord { range: start..end, head, http, payload_bytes }))
    }

    /// Returns the first bytes of the buffer, at most `limit`.
    fn buffered(&self, limit: u64) -> &[u8] {
        let bytes = self.buffer.filled();
        &bytes[..bytes.len().min(usize::try_from(limit).unwrap_or(usize::MAX))]
    }
}

/// Returns the values of a field in a head of WARC or HTTP, in order, without line folds.
pub fn values(head: &[u8], name: &str) -> Vec<String> {
    let field_value = |line| match line {
        Line::Field(field_name, value) if field_name.eq_ignore_ascii_case(name.as_bytes()) => Some(text(&value)),
        _ => None,
    };
    lines(head).filter_map(field_value).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;
    use webtwin_base::read_at::Bytes;

    /// Content of a file, one string per entry.
    #[derive(Default)]
    struct Seen {
        entries: Vec<String>,
        payload: Vec<u8>,
        end: u64,
    }

    impl ByteReceiver for Seen {
        fn heads(&mut self, _: &[u8], _: &[u8]) {
            self.payload.clear();
        }

        fn payload(&mut self, bytes: &[u8]) {
            self.payload.extend_from_slice(bytes);
        }
    }

    impl Visitor for Seen {
        fn record(&mut self, record: StoredRecord) -> Result<()> {
            assert_eq!((record.range.start, record.payload_bytes), (self.end, self.payload.len() as u64));
            self.end = record.range.end;
            self.entries.push(String::from_utf8_lossy(&[&record.http[..], &self.payload].concat()).into_owned());
            Ok(())
        }

        fn receive_other(&mut self, range: Range<u64>) -> Result<()> {
            assert!(range.start == self.end && range.end > self.end);
            self.end = range.end;
            self.entries.push(format!("other {}", range.end - range.start));
            Ok(())
        }
    }

    fn visit_all(bytes: &[u8]) -> Vec<String> {
        let file = Bytes(bytes.to_vec());
        let mut records = Seen::default();
        StoredRecords::open(&file, &RecordLimits::default()).unwrap().unwrap().visit(&mut records).unwrap();
        assert_eq!(records.end, bytes.len() as u64);
        records.entries
    }

    fn record(block: &str) -> Vec<u8> {
        let fields = "WARC-Type: response\r\nWARC-Target-URI: http://a/\r\nContent-Type: application/http";
        format!("WARC/1.1\r\n{fields}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n", block.len()).into_bytes()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut member = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        member.write_all(bytes).unwrap();
        member.finish().unwrap()
    }

    const HTTP: &str = "HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody";

    #[test]
    fn complete_records_have_header_and_payload_in_each_compression() {
        let records = [record(HTTP), record("no head"), record("")];
        assert_eq!(visit_all(&records.concat()), [HTTP, "no head", ""]);
        assert_eq!(visit_all(&records.clone().map(|record| gzip(&record)).concat()), [HTTP, "no head", ""]);
        let frames = records.map(|record| zstd::bulk::compress(&record, 3).unwrap());
        assert_eq!(visit_all(&frames.concat()), [HTTP, "no head", ""]);
        assert_eq!(visit_all(b""), [""; 0]);
    }

    #[test]
    fn long_record_is_returned_in_pieces() {
        let long = format!("HTTP/1.1 200 OK\r\n\r\n{}", "0123456789".repeat(1 << 18));
        assert_eq!(visit_all(&[record(&long), record(HTTP)].concat()), [&long, HTTP]);
        assert_eq!(visit_all(&[gzip(&record(&long)), gzip(&record(HTTP))].concat()), [&long, HTTP]);
    }

    #[test]
    fn incomplete_records_are_other_bytes() {
        let (complete, truncated_member) =
            (gzip(&record(HTTP)), gzip(&record("0123456789 is not what this ends with")));
        let mut corrupt = complete.clone();
        *corrupt.last_mut().unwrap() ^= 1;
        for (case, bytes) in [
            ("a member that is cut", truncated_member[..truncated_member.len() - 9].to_vec()),
            ("a wrong checksum", corrupt),
            ("two records in a member", gzip(&[record(HTTP), record(HTTP)].concat())),
            ("another length", gzip(&[&record(HTTP)[..], b"x"].concat())),
            ("an empty member", gzip(b"")),
            ("zeros", vec![0; 700]),
            ("something else", gzip(b"hello")),
        ] {
            let entries = visit_all(&[&complete[..], &bytes, &complete].concat());
            assert_eq!(entries, [HTTP, &format!("other {}", bytes.len()), HTTP], "{case}");
            assert_eq!(
                visit_all(&[&complete[..], &bytes].concat()),
                [HTTP, &format!("other {}", bytes.len())],
                "{case}"
            );
        }
        let short_record = b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 2\r\n\r\nabc\r\n\r\n";
        let entries = visit_all(&[&record(HTTP)[..], short_record, &record("x")].concat());
        assert_eq!(entries, [HTTP, &format!("other {}", short_record.len()), "x"]);
    }

    #[test]
    fn a_dictionary_is_other_bytes_and_decodes_the_rest() {
        let records: Vec<Vec<u8>> = (0..200).map(|i| record(&format!("{HTTP} number {i} {}", i * 7919))).collect();
        let dictionary = zstd::dict::from_samples(&records, 2000).unwrap();
        let mut file = [b"\x5d\x2a\x4d\x18", &(dictionary.len() as u32).to_le_bytes()[..], &dictionary].concat();
        let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
        for record in &records[..3] {
            file.extend(compressor.compress(record).unwrap());
        }
        let entries = visit_all(&file);
        assert_eq!((entries.len(), entries[0].as_str()), (4, format!("other {}", dictionary.len() + 8).as_str()));
    }

    proptest! {
        #[test]
        fn records_and_other_bytes_tile_any_file(
            parts in prop::collection::vec((0usize..6, 0usize..400), 1..12),
            cut in 0usize..3000,
            flip in (0usize..3000, any::<u8>()),
        ) {
            let bodies = ["", "a", HTTP, "WARC/1.1\r\nWARC-Type: x\r\nContent-Length: 0\r\n\r\n\r\n\r\n", "\r\n\r\n", "0123456789"];
            for compressed in [false, true] {
                let mut file = Vec::new();
                for &(body, from) in &parts {
                    let whole = record(bodies[body]);
                    let whole = if compressed { gzip(&whole) } else { whole };
                    let from = if from < 350 { 0 } else { (from - 350).min(whole.len()) };
                    file.extend_from_slice(&whole[from..]);
                }
                file.truncate(file.len().max(cut) - cut.min(file.len()).min(50));
                if let Some(byte) = file.get_mut(flip.0) {
                    *byte ^= flip.1;
                }
                let bytes = Bytes(file.clone());
                if let Some(mut records) = StoredRecords::open(&bytes, &RecordLimits::default()).unwrap() {
                    let mut seen = Seen::default();
                    records.visit(&mut seen).unwrap();
                    prop_assert_eq!(seen.end, file.len() as u64);
                }
            }
        }
    }
}
