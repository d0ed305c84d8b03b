//! Records that are no pages, as they wait on a shelf: redirects, revisits and segments.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::reading::rejection::Rejection;
use webtwin_base::ids::DocId;
use webtwin_pages::record::{Names, Reason};
use webtwin_pages::warc::segments;

/// A record that is no page, but leads to another URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// Doc id of its URL.
    pub from: DocId,
    /// Doc id of the URL it leads to.
    pub to: DocId,
    /// Its canonical URL, if it leads to another URL of its registered domain for good; else empty.
    pub url: String,
    /// Seconds since 1970; 0 when unknown.
    pub fetch_time: i64,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Where the record starts.
    pub offset: u64,
}

/// A revisit record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revisit {
    /// Canonical URL.
    pub url: String,
    /// Seconds since 1970; 0 when unknown.
    pub fetch_time: i64,
    /// Its own names; the payload is that of its original.
    pub names: Names,
    /// Record id of the original, as [`Names::id`].
    pub refers_to: u64,
    /// Doc id of the original's URL; 0 if it is not named.
    pub original: DocId,
    /// Fetch time of the original; 0 if it is not named.
    pub original_time: i64,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Where its record starts.
    pub offset: u64,
    /// Length of the record.
    pub length: u64,
}

/// A segment of a record. Orders by record, number, block and place in the input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Segment {
    /// Record id of the first segment, as a hash.
    pub origin: u64,
    /// Its number, from 1 on.
    pub number: u32,
    /// Hash of its block.
    pub block: u64,
    /// Number of the input.
    pub source: u32,
    /// Where its record starts.
    pub offset: u64,
    /// Number of the work item.
    pub item: u32,
    /// Bytes of its block.
    pub bytes: u64,
    /// Bytes of the whole block, as the last segment says; 0 if it does not.
    pub total: u64,
}

impl Segment {
    /// Notes a segment that was read in an item of an input.
    pub fn of(segment: &segments::Segment, offset: u64, item: u32, source: u32) -> Segment {
        let segments::Segment { origin, number, total, ref block, .. } = *segment;
        Segment { origin, number, block: xxh3_64(block), source, offset, item, bytes: block.len() as u64, total }
    }

    pub(super) fn rejected(&self, reason: Reason, detail: impl Into<String>) -> Rejection {
        let Segment { source, offset, item, bytes, .. } = *self;
        Rejection { source, offset, reason, detail: detail.into(), item, bytes }
    }
}
