//! Segmented records (WARC 1.1, sections 5.20 to 5.22 and 6.9): a block that is continued in other
//! records, of type `continuation`, often in other files.

use super::record_head::Head;
use super::{page, revisits};
use crate::record::{Found, Means, RawPage, Reason, Refusal, Refused};
use webtwin_job::{Digests, Input};

/// A segment of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Hash of the record id of the first segment.
    pub origin: u64,
    /// Number of the segment, from 1.
    pub number: u32,
    /// Length of the whole block as the last segment declares it; 0 if absent.
    pub total: u64,
    /// Bytes of the block that this segment contains.
    pub block: Vec<u8>,
    /// Length of the record in its file.
    pub length: u64,
    /// Damage that was repaired in the segment.
    pub mended: Option<Reason>,
    /// Head of the record, for the first segment only.
    head: Option<Box<Head>>,
}

/// Returns the segment in a record, if the record is one of a segmented page.
pub(super) fn segment(
    head: &Head,
    block: &[u8],
    length: u64,
    reason: Reason,
    mended: Option<Reason>,
) -> Option<Segment> {
    let number = head.segment?;
    let origin = match (number, head.kind.as_str()) {
        (1, _) if reason == Reason::Segmented => &head.id,
        (2.., "continuation") => &head.segment_origin,
        _ => return None,
    };
    let origin = revisits::name(origin);
    let head_of_first = (number == 1).then(|| Box::new(head.clone()));
    let (total, block) = (head.segment_total, block.to_vec());
    (origin != 0).then_some(Segment { origin, number, total, block, length, mended, head: head_of_first })
}

impl Segment {
    /// Returns the segment in a result of a reader, if it has this number and starts at `offset`.
    /// Several records share a place in a compressed file of one member, so `origin`, if known,
    /// must match, too.
    pub fn pick(found: Found, offset: u64, number: u32, origin: Option<u64>) -> Option<Segment> {
        let Found::Refused(Refused { offset: at, means: Some(means), .. }) = found else { return None };
        let Means::Segment(segment) = *means else { return None };
        let is_of = origin.is_none_or(|origin| origin == segment.origin);
        (at == offset && segment.number == number && is_of).then_some(segment)
    }
}

/// Joins the segments of a record into a page, without a place in the file.
///
/// # Errors
/// Returns the reason if the record is not a page.
///
/// # Panics
/// Panics unless the segments begin with a first segment.
pub fn join(segments: &[Segment], input: &Input) -> Result<RawPage, Refusal> {
    let head = segments[0].head.as_deref().expect("a first segment has a head");
    // The digest of the block in the first head is that of the segment, not of the whole block.
    let head = Head { segment: None, block_digest: String::new(), ..head.clone() };
    let block: Vec<u8> = segments.iter().flat_map(|segment| &segment.block).copied().collect();
    let mended = segments.iter().find_map(|segment| segment.mended);
    let mut page = page::page(&head, &block, mended, input)?;
    let checked = input.digests == Digests::Check && page.mended.is_none();
    if checked && page::is_other(&head, &block, &page.body, &input.limits) {
        page.mended = Some(Reason::DigestMismatch);
    }
    page.length = segments[0].length;
    Ok(page)
}
