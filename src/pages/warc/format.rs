//! What tells WARC from ARC: where a record may start, and how its head is read. All else is alike.

use std::borrow::Cow;

use memchr::memchr;

use super::record_head::{self, Head, HeadEnd, MAGIC};
use super::{arc_head, http};

/// The format of the records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// WARC or WET.
    Warc,
    /// ARC, the forerunner of WARC.
    Arc,
}

impl Format {
    /// Bytes after a place from which [`Format::starts`] decides.
    pub(super) fn look_bytes(self) -> usize {
        match self {
            Format::Warc => record_head::LOOK_BYTES,
            Format::Arc => arc_head::LOOK_BYTES,
        }
    }

    /// Whether a record starts here. The answer depends on these bytes alone.
    pub(super) fn starts(self, bytes: &[u8]) -> bool {
        match self {
            Format::Warc => record_head::starts(bytes),
            Format::Arc => arc_head::starts(bytes),
        }
    }

    /// The first place in `bytes` where a record may start.
    pub(super) fn next_candidate(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Format::Warc => record_head::find_magic(bytes),
            Format::Arc => arc_head::next_candidate(bytes),
        }
    }

    /// Bytes at the end of some without a candidate that may be part of one.
    pub(super) fn straddling_bytes(self) -> u64 {
        match self {
            Format::Warc => MAGIC.len() as u64 - 1,
            Format::Arc => arc_head::SCHEME_BYTES as u64 - 1,
        }
    }

    /// Whether the first bytes of a member are those of a record. One of ARC may begin with a line end, which belongs to
    /// the record in the words of its standard.
    pub(super) fn begins(self, first: &[u8]) -> bool {
        match self {
            Format::Warc => record_head::has_magic(first),
            Format::Arc => arc_head::begins(first.trim_ascii_start()),
        }
    }

    /// Whether a file that ends after these bytes of a member may have been cut within the start of a record.
    pub(super) fn may_begin(self, first: &[u8]) -> bool {
        match self {
            Format::Warc => record_head::may_have_magic(first),
            Format::Arc => first.trim_ascii_start().is_empty(),
        }
    }

    /// Looks for the end of the head at the start of `bytes`.
    pub(super) fn head_end(self, bytes: &[u8]) -> HeadEnd {
        match self {
            Format::Warc => record_head::head_end(bytes),
            Format::Arc => memchr(b'\n', bytes).map_or(HeadEnd::Unseen, |end| HeadEnd::At(end + 1)),
        }
    }

    /// Reads a head; `None` if it is none.
    pub(super) fn parse(self, head: &[u8]) -> Option<Head> {
        match self {
            Format::Warc => Some(record_head::parse(head)),
            Format::Arc => arc_head::parse(head),
        }
    }

    /// Line ends after a record, which prove its length, whatever follows them.
    pub(super) fn line_ends(self) -> usize {
        match self {
            Format::Warc => 2,
            Format::Arc => 1,
        }
    }

    /// The head of a record in the light of its payload: in ARC, what a server sent without an HTTP head (HTTP/0.9) is the
    /// page itself, and a record without any content is what archives leave in the place of one that they took out.
    pub(super) fn settle<'h>(self, head: &'h Head, payload: &[u8]) -> Cow<'h, Head> {
        match self {
            Format::Arc if payload.iter().all(|&byte| byte == 0 || byte.is_ascii_whitespace()) => {
                Cow::Owned(Head { kind: "tombstone".to_owned(), ..head.clone() })
            }
            Format::Arc if !http::begins(payload) => Cow::Owned(Head { kind: "resource".to_owned(), ..head.clone() }),
            _ => Cow::Borrowed(head),
        }
    }
}
