//! Differences between WARC and ARC: where a record may start, and how its head is parsed. The rest
//! of the reader is common to both.

use std::borrow::Cow;

use memchr::memchr;

use super::record_head::{self, HeadEnd, MAGIC, RecordHead};
use super::{arc_head, http};

/// Format of the records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFormat {
    /// WARC or WET.
    Warc,
    /// ARC, the predecessor of WARC.
    Arc,
}

impl RecordFormat {
    /// Returns the number of bytes at a place from which [`RecordFormat::starts`] decides.
    pub(super) fn sniff_bytes(self) -> usize {
        match self {
            RecordFormat::Warc => record_head::SNIFF_BYTES,
            RecordFormat::Arc => arc_head::SNIFF_BYTES,
        }
    }

    /// True if a record starts here. The result depends only on these bytes.
    pub(super) fn starts(self, bytes: &[u8]) -> bool {
        match self {
            RecordFormat::Warc => record_head::starts(bytes),
            RecordFormat::Arc => arc_head::starts(bytes),
        }
    }

    /// Returns the first position in `bytes` at which a record may start.
    pub(super) fn next_candidate(self, bytes: &[u8]) -> Option<usize> {
        match self {
            RecordFormat::Warc => record_head::find_magic(bytes),
            RecordFormat::Arc => arc_head::next_candidate(bytes),
        }
    }

    /// Returns the number of bytes at the end of a buffer without a candidate that may be the
    /// beginning of one.
    pub(super) fn straddling_bytes(self) -> u64 {
        match self {
            RecordFormat::Warc => MAGIC.len() as u64 - 1,
            RecordFormat::Arc => arc_head::SCHEME_BYTES as u64 - 1,
        }
    }

    /// True if the first bytes of a member are those of a record. An ARC record may begin with a
    /// line end, which belongs to the record by its standard.
    pub(super) fn begins(self, first: &[u8]) -> bool {
        match self {
            RecordFormat::Warc => record_head::has_magic(first),
            RecordFormat::Arc => arc_head::begins(first.trim_ascii_start()),
        }
    }

    /// True if these are the only bytes of a member before the end of the file, and may be the
    /// cut-off start of a record.
    pub(super) fn may_begin(self, first: &[u8]) -> bool {
        match self {
            RecordFormat::Warc => record_head::may_have_magic(first),
            RecordFormat::Arc => first.trim_ascii_start().is_empty(),
        }
    }

    /// Searches for the end of the head at the start of `bytes`.
    pub(super) fn head_end(self, bytes: &[u8]) -> HeadEnd {
        match self {
            RecordFormat::Warc => record_head::head_end(bytes),
            RecordFormat::Arc => memchr(b'\n', bytes).map_or(HeadEnd::Incomplete, |end| HeadEnd::Complete(end + 1)),
        }
    }

    /// Parses a head; returns `None` if it is not one.
    pub(super) fn parse(self, head: &[u8]) -> Option<RecordHead> {
        match self {
            RecordFormat::Warc => Some(record_head::parse(head)),
            RecordFormat::Arc => arc_head::parse(head),
        }
    }

    /// Returns the number of line ends after a record that confirm its length, regardless of the
    /// bytes that follow.
    pub(super) fn line_ends(self) -> usize {
        match self {
            RecordFormat::Warc => 2,
            RecordFormat::Arc => 1,
        }
    }

    /// Corrects the head of a record by its payload.
    ///
    /// In ARC, a response without an HTTP head (HTTP/0.9) is the page itself, and a record without
    /// any content is the placeholder of a record that an archive has removed.
    pub(super) fn settle<'h>(self, head: &'h RecordHead, payload: &[u8]) -> Cow<'h, RecordHead> {
        match self {
            RecordFormat::Arc if payload.iter().all(|&byte| byte == 0 || byte.is_ascii_whitespace()) => {
                Cow::Owned(RecordHead { kind: "tombstone".to_owned(), ..head.clone() })
            }
            RecordFormat::Arc if !http::begins(payload) => {
                Cow::Owned(RecordHead { kind: "resource".to_owned(), ..head.clone() })
            }
            _ => Cow::Borrowed(head),
        }
    }
}
