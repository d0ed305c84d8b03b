//! The file `index.cdxj`: positions of the captures of an archive, for replay tools.
//!
//! ```text
//! org,example)/a 20260101000000 {"url": "http://example.org/a", "mime": "text/html",
//!     "status": "200", "digest": "sha1:...", "length": "523", "offset": "410",
//!     "filename": "x.warc.gz"}
//! ```
//!
//! The index has one line for each record, ascending by bytes, with the fields and values that
//! `cdxj-indexer --sort` writes. It covers the types `response`, `revisit`, `resource` and
//! `metadata`, except for records of fields (`application/warc-fields`), the form in which
//! near-copies are stored. A revisit has the media type `warc/revisit`. Differences from that tool:
//!
//! - File paths are relative to the archive.
//! - Only complete records with a target and a date have a line.

use std::fmt::Write as _;
use std::ops::Range;

use data_encoding::BASE32;
use sha1::{Digest as _, Sha1};

use super::record::without_brackets;
use webtwin_base::error::Result;
use webtwin_pages::fetch_time;
use webtwin_pages::surt::surt_key;
use webtwin_pages::url::CanonicalUrl;
use webtwin_pages::warc::stored::{ByteReceiver, StoredRecord, Visitor, values};

/// File name of the index.
pub(super) const INDEX: &str = "index.cdxj";

/// Maximum part of a revisit's block that is kept to read its HTTP head, in bytes.
const HTTP_BYTES: usize = 64 << 10;

/// Position of a record in the archive.
pub(super) struct ArchivePosition<'p> {
    pub path: &'p str,
    pub offset: u64,
    pub length: u64,
}

/// Appends the line of a record with the given heads to `lines`, if it is a capture. `digest` is
/// that of its payload, for records without a digest.
pub(super) fn push_line(
    lines: &mut Vec<u8>,
    head: &[u8],
    http: &[u8],
    digest: Option<String>,
    place: &ArchivePosition,
) {
    let first = |head: &[u8], name: &str| values(head, name).into_iter().next().filter(|value| !value.is_empty());
    let kind = kind(head);
    let url = first(head, "WARC-Target-URI").map(|url| without_brackets(&url).replace(' ', "%20"));
    let seconds = first(head, "WARC-Date").and_then(|date| fetch_time::parse(&date));
    let (Some(url), Some(seconds)) = (url.filter(|url| !url.is_empty()), seconds) else { return };
    let media = first(head, "Content-Type");
    let is_capture = match kind.as_str() {
        "response" | "revisit" => true,
        "resource" | "metadata" => media.as_deref() != Some("application/warc-fields"),
        _ => false,
    };
    if !is_capture {
        return;
    }
    let mime = match kind.as_str() {
        "revisit" => Some("warc/revisit".to_string()),
        "response" => first(http, "Content-Type"),
        _ => media,
    };
    let essence = |media: String| media.split([';', ' ', '\t']).next().unwrap_or_default().to_string();
    let fields = [
        ("url", Some(url.clone())),
        ("mime", mime.map(essence)),
        ("status", status(http)),
        ("digest", first(head, "WARC-Payload-Digest").or(digest)),
        ("length", Some(place.length.to_string())),
        ("offset", Some(place.offset.to_string())),
        ("filename", Some(place.path.to_string())),
    ];
    let fields: Vec<String> =
        fields.into_iter().filter_map(|(name, value)| Some(format!("{}: {}", quoted(name), quoted(&value?)))).collect();
    let digits: String = fetch_time::format(seconds).chars().filter(char::is_ascii_digit).collect();
    lines.extend_from_slice(format!("{} {digits} {{{}}}\n", key(&url), fields.join(", ")).as_bytes());
}

fn kind(head: &[u8]) -> String {
    values(head, "WARC-Type").concat().to_ascii_lowercase()
}

/// Returns the status code of an HTTP head, or `None` if there is none.
fn status(http: &[u8]) -> Option<String> {
    let line = http.split(|&byte| byte == b'\r' || byte == b'\n').next()?;
    let code = std::str::from_utf8(line).ok()?.split_ascii_whitespace().nth(1)?;
    Some(code.to_string())
}

/// Returns the SURT key of a URL. A URL with another scheme has the key of the same URL under
/// `http:`. A URL without a host is its own key.
fn key(url: &str) -> String {
    let key_of_place = || {
        let (_, rest) =
            url.split_once("://").filter(|(scheme, rest)| !scheme.contains(':') && !rest.starts_with('/'))?;
        CanonicalUrl::parse(&format!("http://{rest}")).ok()
    };
    match CanonicalUrl::parse(url).ok().or_else(key_of_place) {
        Some(url) => surt_key(&url),
        None => url.to_lowercase().chars().filter(|char| !char.is_whitespace()).collect(),
    }
}

/// Returns a text as a JSON string in ASCII.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for char in serde_json::Value::from(text).to_string().chars() {
        match char {
            ' '..='~' => quoted.push(char),
            _ => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    write!(quoted, "\\u{unit:04x}").expect("writing to a string cannot fail");
                }
            }
        }
    }
    quoted
}

/// Record of the input that the archive stores in another form.
pub(super) struct ReplacedRecord {
    /// Range of the record in the input.
    pub range: Range<u64>,
    /// Number of bytes that replace it.
    pub bytes: u64,
}

/// Produces the lines of the copied records of a file by reading the file again.
pub(super) struct CopiedRecords<'i> {
    path: &'i str,
    /// Replaced records that have not been reached yet, ascending.
    replaced_records: &'i [ReplacedRecord],
    /// Number of bytes by which records move towards the beginning, modulo 2^64.
    shift: u64,
    /// Digest of the current payload, if its record has none.
    sha1: Option<Sha1>,
    /// First bytes of the current block, if its record is a revisit.
    block: Option<Vec<u8>>,
    pub lines: Vec<u8>,
}

impl<'i> CopiedRecords<'i> {
    /// Returns the producer for the file with this path. `replaced_records` are its replaced
    /// records, ascending.
    pub(crate) fn new(path: &'i str, replaced_records: &'i [ReplacedRecord]) -> CopiedRecords<'i> {
        CopiedRecords { path, replaced_records, shift: 0, sha1: None, block: None, lines: Vec::new() }
    }
}

impl ByteReceiver for CopiedRecords<'_> {
    fn heads(&mut self, head: &[u8], _: &[u8]) {
        let kind = kind(head);
        let has_digest = values(head, "WARC-Payload-Digest").first().is_some_and(|digest| !digest.is_empty());
        let is_hashed = !has_digest && ["response", "resource", "metadata"].contains(&kind.as_str());
        self.sha1 = is_hashed.then(Sha1::new);
        self.block = (kind == "revisit").then(Vec::new);
    }

    fn payload(&mut self, bytes: &[u8]) {
        if let Some(sha1) = &mut self.sha1 {
            sha1.update(bytes);
        }
        if let Some(block) = &mut self.block {
            block.extend_from_slice(&bytes[..bytes.len().min(HTTP_BYTES - block.len())]);
        }
    }
}

impl Visitor for CopiedRecords<'_> {
    fn record(&mut self, record: StoredRecord) -> Result<()> {
        let length = record.range.end - record.range.start;
        if let Some((first, rest)) =
            self.replaced_records.split_first().filter(|(first, _)| first.range == record.range)
        {
            self.replaced_records = rest;
            self.shift = self.shift.wrapping_add(length).wrapping_sub(first.bytes);
            return Ok(());
        }
        let digest = self.sha1.take().map(|sha1| format!("sha1:{}", BASE32.encode(&sha1.finalize())));
        let http = self.block.take().unwrap_or(record.http);
        let place = ArchivePosition { path: self.path, offset: record.range.start.wrapping_sub(self.shift), length };
        push_line(&mut self.lines, &record.head, &http, digest, &place);
        Ok(())
    }

    fn receive_other(&mut self, _: Range<u64>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: ArchivePosition = ArchivePosition { path: "a/x.warc.gz", offset: 7, length: 9 };

    fn line(head: &str, http: &str) -> String {
        let mut lines = Vec::new();
        let head = format!("WARC/1.1\r\nWARC-Date: 2026-01-02T03:04:05.6Z\r\n{head}\r\n\r\n");
        push_line(&mut lines, head.as_bytes(), http.as_bytes(), Some("sha1:X".into()), &PLACE);
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn index_lines_equal_those_of_other_indexers() {
        // Expected lines are the output of cdxj-indexer 1.5.0, except for position and digest.
        let place = "\"length\": \"9\", \"offset\": \"7\", \"filename\": \"a/x.warc.gz\"}\n";
        let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=utf-8\r\n\r\n";
        for (head, http, expected) in [
            (
                "WARC-Type: response\r\nWARC-Target-URI: <http://www.a.example/B c?\u{fc}=\"1\">",
                html,
                "example,a)/b%20c?%c3%bc=\"1\" 20260102030405 {\"url\": \"http://www.a.example/B%20c?\\u00fc=\\\"1\\\"\", \
                 \"mime\": \"text/html\", \"status\": \"200\", \"digest\": \"sha1:X\", ",
            ),
            (
                "WARC-Type: revisit\r\nWARC-Target-URI: http://a.example/\r\nWARC-Payload-Digest: sha1:Y",
                html,
                "example,a)/ 20260102030405 {\"url\": \"http://a.example/\", \"mime\": \"warc/revisit\", \"status\": \"200\", \
                 \"digest\": \"sha1:Y\", ",
            ),
            (
                "WARC-Type: resource\r\nWARC-Target-URI: ftp://a.example/\u{1f600}\r\nContent-Type: text/plain; x",
                "",
                "example,a)/%f0%9f%98%80 20260102030405 {\"url\": \"ftp://a.example/\\ud83d\\ude00\", \
                 \"mime\": \"text/plain\", \"digest\": \"sha1:X\", ",
            ),
            (
                "WARC-Type: metadata\r\nWARC-Target-URI: urn:view:HTTP://a.example/B\r\nContent-Type: image/png",
                "",
                "urn:view:http://a.example/b 20260102030405 {\"url\": \"urn:view:HTTP://a.example/B\", \
                 \"mime\": \"image/png\", \"digest\": \"sha1:X\", ",
            ),
        ] {
            assert_eq!(line(head, http), format!("{expected}{place}"));
        }
    }

    #[test]
    fn records_without_a_capture_have_no_index_line() {
        for head in [
            "WARC-Type: request\r\nWARC-Target-URI: http://a.example/",
            "WARC-Type: metadata\r\nWARC-Target-URI: http://a.example/\r\nContent-Type: application/warc-fields",
            "WARC-Type: response",
            "WARC-Target-URI: http://a.example/",
        ] {
            assert_eq!(line(head, ""), "", "{head}");
        }
    }
}
