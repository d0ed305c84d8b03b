//! Records in segments (WARC 1.1, sections 5.20 to 5.22 and 6.9): a block that is continued in other records, of type
//! `continuation`, often in other files.

use super::record_head::Head;
use super::{page, revisits};
use crate::record::{Found, Means, RawPage, Reason, Refusal, Refused};
use webtwin_job::{Digests, Input};

/// A segment of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The record id of the first segment, as a hash.
    pub origin: u64,
    /// Its number, from 1 on.
    pub number: u32,
    /// Length of the whole block, as the last segment says; 0 if it does not.
    pub total: u64,
    /// Its part of the block.
    pub block: Vec<u8>,
    /// Length of the record in its file.
    pub length: u64,
    /// What was mended in it.
    pub mended: Option<Reason>,
    /// Of the first segment.
    head: Option<Box<Head>>,
}

/// The segment in a record that was read, if it is one of a page.
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
    /// The segment in what was read, if it is the one of this number that starts at `offset`, and of the record with this
    /// first segment, where that is known: several records may share a place, in a compressed file of one member.
    pub fn pick(found: Found, offset: u64, number: u32, origin: Option<u64>) -> Option<Segment> {
        let Found::Refused(Refused { offset: at, means: Some(means), .. }) = found else { return None };
        let Means::Segment(segment) = *means else { return None };
        let is_of = origin.is_none_or(|origin| origin == segment.origin);
        (at == offset && segment.number == number && is_of).then_some(segment)
    }
}

/// The page in the segments of a record, without its place in the file.
///
/// # Errors
/// Why there is none.
///
/// # Panics
/// Unless they begin with a first segment.
pub fn join(segments: &[Segment], input: &Input) -> Result<RawPage, Refusal> {
    let head = segments[0].head.as_deref().expect("a first segment has a head");
    // The digest of the block is that of the segment.
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
