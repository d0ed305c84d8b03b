//! Head of a WARC record: where one may start, and its fields.

use memchr::{memchr_iter, memmem};

use super::address;
use super::fields::{Line, is_blank, lines, next_line, text};
use super::media_type::media_type;

/// Number of bytes at a place from which [`starts`] decides.
pub(super) const SNIFF_BYTES: usize = 512;

/// First bytes of a record of any version, as nearly all programs write them.
pub(super) const MAGIC: &[u8] = b"WARC/";

/// Number of bytes that are searched for one form of the first bytes after the other.
const SEARCH_BYTES: usize = 16 << 10;

/// Accepted forms of the first bytes. Words of the grammar in the standard are case-insensitive,
/// but programs do not write mixed case.
const MAGICS: [&[u8]; 2] = [MAGIC, b"warc/"];

/// True if the bytes begin like a record.
pub(super) fn has_magic(bytes: &[u8]) -> bool {
    MAGICS.iter().any(|magic| bytes.starts_with(magic))
}

/// True if the bytes are a prefix of the first bytes of a record.
pub(super) fn may_have_magic(bytes: &[u8]) -> bool {
    MAGICS.iter().any(|magic| magic.starts_with(bytes))
}

/// Returns the first position that looks like the beginning of a record.
pub(super) fn find_magic(bytes: &[u8]) -> Option<usize> {
    let [upper, lower] = MAGICS;
    // Each search is limited, because a file with many matches of one form and few of the other
    // would otherwise be searched to its end again and again.
    (0..bytes.len()).step_by(SEARCH_BYTES).find_map(|start| {
        let end = bytes.len().min(start + SEARCH_BYTES + MAGIC.len() - 1);
        let bytes = &bytes[start..end];
        let first = memmem::find(bytes, upper);
        let nearest = memmem::find(&bytes[..first.unwrap_or(bytes.len())], lower).or(first);
        nearest.map(|position| start + position)
    })
}

/// True if a record of a known version starts here: `WARC/0.x` or `WARC/1.x` alone on its line and,
/// within [`SNIFF_BYTES`] and before the blank line, a `WARC-` or `Content-` field.
///
/// The result depends only on these bytes, never on the way in which the reader has reached them.
/// Readers that come from different positions therefore agree.
pub(super) fn starts(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(SNIFF_BYTES)];
    if !is_known_version(bytes) || memchr::memchr(b'\n', bytes).is_none() {
        return false;
    }
    let mut rest = next_line(bytes).1;
    loop {
        let (line, rest_after) = next_line(rest);
        if line.is_empty() {
            return false;
        }
        let has_name =
            |name: &str| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
        if (has_name("WARC-") || has_name("Content-")) && line.contains(&b':') {
            return true;
        }
        rest = rest_after;
    }
}

fn is_known_version(bytes: &[u8]) -> bool {
    let version = next_line(bytes).0.trim_ascii_end();
    let number = MAGICS.iter().find_map(|magic| version.strip_prefix(*magic)).unwrap_or_default();
    let minor = number.strip_prefix(b"0.").or(number.strip_prefix(b"1."));
    minor.is_some_and(|minor| (1..=4).contains(&minor.len()) && minor.iter().all(u8::is_ascii_digit))
}

/// Outcome of the search for the end of a head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeadEnd {
    /// The head has this number of bytes, including the blank line.
    Complete(usize),
    /// Another record starts at this byte, before any blank line.
    NextRecord(usize),
    /// The end is not within these bytes.
    Incomplete,
}

/// Searches for the end of the head at the start of `bytes`.
///
/// # Cost
/// One pass, which never goes beyond the next start of a record. A pile of heads without ends is
/// therefore read once, not once per head.
pub(super) fn head_end(bytes: &[u8]) -> HeadEnd {
    let mut line = 0;
    for end in memchr_iter(b'\n', bytes) {
        if line > 0 && is_blank(&bytes[line..end]) {
            return HeadEnd::Complete(end + 1);
        }
        let mut start = line.max(MAGIC.len()).min(end);
        while let Some(match_start) = find_magic(&bytes[start..end]) {
            if starts(&bytes[start + match_start..]) {
                return HeadEnd::NextRecord(start + match_start);
            }
            start += match_start + MAGIC.len();
        }
        line = end + 1;
    }
    HeadEnd::Incomplete
}

/// Fields of the head of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordHead {
    /// Version line, if the version is unknown.
    pub bad_version: Option<String>,
    /// `WARC-Type` in lower case; empty if absent.
    pub kind: String,
    /// `WARC-Target-URI` as written; empty if absent.
    pub uri: String,
    /// `WARC-Date` as written; empty if absent.
    pub date: String,
    /// Media type of the payload, in lower case, without parameters.
    pub media: String,
    /// Charset that `Content-Type` declares.
    pub charset: Option<String>,
    /// `WARC-Identified-Payload-Type`: the media type that the crawler identified, in lower case;
    /// empty if absent.
    pub identified: String,
    /// `Content-Length`, or a description of the error in it.
    pub length: Result<u64, String>,
    /// True if some line is not a header line.
    pub odd_line: bool,
    /// `WARC-Segment-Number`, counted from 1, or 0 if the value is not a number; `None` for a
    /// record that is not a segment.
    pub segment: Option<u32>,
    /// `WARC-Segment-Origin-ID` without angle brackets; empty if absent.
    pub segment_origin: String,
    /// `WARC-Segment-Total-Length`; 0 if absent.
    pub segment_total: u64,
    /// `WARC-Record-ID` without angle brackets; empty if absent.
    pub id: String,
    /// `WARC-Block-Digest` as written; empty if absent.
    pub block_digest: String,
    /// `WARC-Payload-Digest` as written; empty if absent.
    pub payload_digest: String,
    /// Hash of `WARC-IP-Address`; 0 if absent.
    pub address: u64,
    /// `WARC-Profile` as written, without angle brackets; empty if absent.
    pub profile: String,
    /// `WARC-Refers-To` without angle brackets; empty if absent.
    pub refers_to: String,
    /// `WARC-Refers-To-Target-URI` as written; empty if absent.
    pub refers_to_uri: String,
    /// `WARC-Refers-To-Date` as written; empty if absent.
    pub refers_to_date: String,
}

impl RecordHead {
    /// Returns a head without fields.
    pub(super) fn empty() -> RecordHead {
        RecordHead {
            bad_version: None,
            kind: String::new(),
            uri: String::new(),
            date: String::new(),
            media: String::new(),
            charset: None,
            identified: String::new(),
            length: Err("no Content-Length".to_owned()),
            odd_line: false,
            segment: None,
            segment_origin: String::new(),
            segment_total: 0,
            id: String::new(),
            block_digest: String::new(),
            payload_digest: String::new(),
            address: 0,
            profile: String::new(),
            refers_to: String::new(),
            refers_to_uri: String::new(),
            refers_to_date: String::new(),
        }
    }
}

/// Parses a head, given from its version line to its blank line.
pub(super) fn parse(bytes: &[u8]) -> RecordHead {
    let mut head = RecordHead::empty();
    if !is_known_version(bytes) {
        head.bad_version = Some(text(next_line(bytes).0).chars().take(40).collect());
    }
    let mut length = None;
    for line in lines(bytes) {
        let Line::Field(name, value) = line else {
            head.odd_line = true;
            continue;
        };
        let is_named = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        if is_named("WARC-Type") {
            head.kind = text(&value).to_ascii_lowercase();
        } else if is_named("WARC-Target-URI") {
            head.uri = text(&value);
        } else if is_named("WARC-Date") {
            head.date = text(&value);
        } else if is_named("WARC-Record-ID") {
            head.id = without_brackets(&value);
        } else if is_named("WARC-Block-Digest") {
            head.block_digest = text(&value);
        } else if is_named("WARC-Payload-Digest") {
            head.payload_digest = text(&value);
        } else if is_named("WARC-IP-Address") {
            head.address = address::name(&value);
        } else if is_named("WARC-Profile") {
            head.profile = without_brackets(&value);
        } else if is_named("WARC-Segment-Number") {
            // 0 is not a valid segment number, so it marks a value that cannot be parsed.
            head.segment = Some(text(&value).parse().unwrap_or(0));
        } else if is_named("WARC-Segment-Origin-ID") {
            head.segment_origin = without_brackets(&value);
        } else if is_named("WARC-Segment-Total-Length") {
            head.segment_total = number(&value).unwrap_or(0);
        } else if is_named("WARC-Refers-To") {
            head.refers_to = without_brackets(&value);
        } else if is_named("WARC-Refers-To-Target-URI") {
            head.refers_to_uri = text(&value);
        } else if is_named("WARC-Refers-To-Date") {
            head.refers_to_date = text(&value);
        } else if is_named("Content-Type") {
            (head.media, head.charset) = media_type(&text(&value));
        } else if is_named("WARC-Identified-Payload-Type") {
            head.identified = media_type(&text(&value)).0;
        } else if is_named("Content-Length") {
            match &length {
                None => head.length = number(&value),
                // An equal repetition is harmless, but of two different lengths neither can be
                // trusted.
                Some(previous_value) if *previous_value != value => {
                    head.length = Err("two different Content-Lengths".to_owned())
                }
                Some(_) => (),
            }
            length.get_or_insert(value);
        }
    }
    head
}

/// Returns a URI in the notation of WARC 1.1. WARC 1.0 puts angle brackets around it.
fn without_brackets(value: &[u8]) -> String {
    let value = value.strip_prefix(b"<").unwrap_or(value);
    text(value.strip_suffix(b">").unwrap_or(value))
}

fn number(value: &[u8]) -> Result<u64, String> {
    let label = || text(&value[..value.len().min(40)]);
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(format!("Content-Length {:?} is not a number", label()));
    }
    text(value).parse().map_err(|_| format!("Content-Length {} is too large", label()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_form_of_the_first_bytes_is_found() {
        assert_eq!(find_magic(b"warc WARC"), None);
        for [first, second] in [MAGICS, [MAGICS[1], MAGICS[0]]] {
            for position in SEARCH_BYTES - 6..SEARCH_BYTES + 6 {
                let bytes = [&vec![b'/'; position][..], first, second, &[0; SEARCH_BYTES]].concat();
                assert_eq!(find_magic(&bytes), Some(position));
                assert_eq!(find_magic(&bytes[..position + 4]), None);
            }
        }
    }

    #[test]
    fn a_record_starts_with_a_known_version_and_a_field_of_its_own() {
        assert!(starts(b"WARC/1.0\r\nWARC-Type: response\r\n"));
        assert!(starts(b"WARC/0.18\nX-Odd\ncontent-length: 5\n\n"));
        assert!(starts(b"warc/1.0\r\nwarc-type: response\r\n"));
        assert!(!starts(b"Warc/1.0\r\nwarc-type: response\r\n"));
        assert!(starts(b"WARC/1.1 \r\nX: y\r\nWARC-Type: response\r\n"));
        assert!(!starts(b"WARC/1.0 is the format\r\nWARC-Type: response\r\n"));
        assert!(!starts(b"WARC/1.0\r\n\r\nWARC-Type: response\r\n"));
        assert!(!starts(b"WARC/9.9\r\nWARC-Type: response\r\n"));
        assert!(!starts(b"WARC/1.0\r\nHost: a\r\nAccept: b\r\n\r\n"));
        assert!(!starts(b"WARC/1.0"));
    }

    #[test]
    fn a_head_ends_at_its_blank_line_or_where_another_record_starts() {
        assert_eq!(head_end(b"WARC/1.0\r\nA: b\r\n\r\nbody"), HeadEnd::Complete(18));
        assert_eq!(head_end(b"WARC/1.0\nA: b\n\nbody"), HeadEnd::Complete(15));
        assert_eq!(head_end(b"WARC/1.0\r\r\nA: b\r\r\n\r\r\nbody"), HeadEnd::Complete(21));
        assert_eq!(head_end(b"WARC/1.0\nA: b\n"), HeadEnd::Incomplete);
        assert_eq!(head_end(b"WARC/1.0\nA: xWARC/1.0\nWARC-Type: x\n\n"), HeadEnd::NextRecord(13));
        assert_eq!(head_end(b"WARC/1.0\nA: xwarc/1.0\nWARC-Type: x\n\n"), HeadEnd::NextRecord(13));
        assert_eq!(head_end(b"WARC/1.0\nA: see WARC/1.0 there\n\n"), HeadEnd::Complete(32));
    }

    #[test]
    fn header_has_the_fields_of_a_page() {
        let head = parse(
            b"WARC/1.0\r\nwarc-type: Response\r\nWARC-Target-URI: <http://a/>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
              no colon\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: 12\r\nContent-Length: 12\r\n\r\n",
        );
        assert_eq!(head.kind, "response");
        assert_eq!(head.uri, "<http://a/>");
        assert_eq!(head.media, "application/http");
        assert_eq!(head.length, Ok(12));
        assert!(head.odd_line);
        assert_eq!(head.bad_version, None);
    }

    #[test]
    fn rejects_missing_repeated_negative_or_too_large_length() {
        let length = |lines: &str| parse(format!("WARC/1.0\r\n{lines}\r\n").as_bytes()).length;
        assert_eq!(length("Content-Length: 0\r\n"), Ok(0));
        for bad in ["", "Content-Length: -1\r\n", "Content-Length:\r\n", "Content-Length: 99999999999999999999999\r\n"]
        {
            assert!(length(bad).is_err(), "{bad}");
        }
        assert!(length("Content-Length: 7\r\nContent-Length: 8\r\n").is_err());
        assert!(length("Content-Length: 7\r\nContent-Length: 8\r\nContent-Length: 7\r\n").is_err());
    }
}
