//! Records that are not pages and wait for later processing: redirects, revisits and segments.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::reading::rejection::Rejection;
use webtwin_base::ids::DocId;
use webtwin_pages::record::{Reason, RecordIds};
use webtwin_pages::warc::segments;

/// Record that is not a page, but leads to another URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectRecord {
    /// Doc id of the record's URL.
    pub from: DocId,
    /// Doc id of the URL that the record leads to.
    pub to: DocId,
    /// Canonical URL of the record, if it leads permanently to another URL of the same registered
    /// domain; otherwise empty.
    pub url: String,
    /// Fetch time in seconds since 1970; 0 if it is unknown.
    pub fetch_time: i64,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Offset at which the record starts.
    pub offset: u64,
}

/// Revisit record: it refers to another record for its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisitRecord {
    /// Canonical URL.
    pub url: String,
    /// Fetch time in seconds since 1970; 0 if it is unknown.
    pub fetch_time: i64,
    /// Names of the revisit; the payload is the payload of its original.
    pub names: RecordIds,
    /// Record id of the original, in the form of [`RecordIds::id`]; 0 if it is not named.
    pub refers_to: u64,
    /// Doc id of the original's URL; 0 if it is not named.
    pub original: DocId,
    /// Fetch time of the original; 0 if it is not named.
    pub original_time: i64,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Offset at which the record starts.
    pub offset: u64,
    /// Length of the record.
    pub length: u64,
    /// Damage of the record that was repaired.
    pub repaired: Option<Reason>,
}

/// Segment of a record. Ordered by record, number, block and place in the input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SegmentRecord {
    /// Hash of the record id of the first segment.
    pub origin: u64,
    /// Number of the segment, from 1.
    pub number: u32,
    /// Hash of the block of the segment.
    pub block: u64,
    /// Number of the input.
    pub source: u32,
    /// Offset at which the record of the segment starts.
    pub offset: u64,
    /// Number of the work item.
    pub item: u32,
    /// Bytes of the block of the segment.
    pub bytes: u64,
    /// Bytes of the complete block according to the last segment; 0 if this is another segment or
    /// the number is missing.
    pub total: u64,
}

impl SegmentRecord {
    /// Creates the note of a segment that was read in a work item of an input.
    pub fn from_segment(segment: &segments::WarcSegment, offset: u64, item: u32, source: u32) -> SegmentRecord {
        let segments::WarcSegment { origin, number, total, ref block, .. } = *segment;
        SegmentRecord { origin, number, block: xxh3_64(block), source, offset, item, bytes: block.len() as u64, total }
    }

    pub(super) fn rejected(&self, reason: Reason, detail: impl Into<String>) -> Rejection {
        let SegmentRecord { source, offset, item, bytes, .. } = *self;
        Rejection { source, offset, reason, detail: detail.into(), item, bytes }
    }
}
