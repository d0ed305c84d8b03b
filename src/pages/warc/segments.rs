//! Segmented records (WARC 1.1, sections 5.20 to 5.22 and 6.9): a block that is continued in other
//! records, of type `continuation`, often in other files.

use super::record_head::RecordHead;
use super::{page, revisits};
use crate::record::{NonPage, RawPage, ReadResult, Reason, Refusal, RefusedRecord};
use webtwin_job::{DigestPolicy, InputSettings};

/// A segment of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarcSegment {
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
    pub repaired: Option<Reason>,
    /// Head of the record, for the first segment only.
    head: Option<Box<RecordHead>>,
}

/// Returns the segment in a record, if the record is one of a segmented page.
pub(super) fn segment(
    head: &RecordHead,
    block: &[u8],
    length: u64,
    reason: Reason,
    repair_reason: Option<Reason>,
) -> Option<WarcSegment> {
    let number = head.segment?;
    let origin = match (number, head.kind.as_str()) {
        (1, _) if reason == Reason::Segmented => &head.id,
        (2.., "continuation") => &head.segment_origin,
        _ => return None,
    };
    let origin = revisits::name(origin);
    let head_of_first = (number == 1).then(|| Box::new(head.clone()));
    let (total, block) = (head.segment_total, block.to_vec());
    (origin != 0).then_some(WarcSegment {
        origin,
        number,
        total,
        block,
        length,
        repaired: repair_reason,
        head: head_of_first,
    })
}

impl WarcSegment {
    /// Returns the segment in a result of a reader, if it has this number and starts at `offset`.
    /// Several records share a place in a compressed file of one member, so `origin`, if known,
    /// must match, too.
    pub fn pick(result: ReadResult, offset: u64, number: u32, origin: Option<u64>) -> Option<WarcSegment> {
        let ReadResult::Refused(RefusedRecord { offset: record_offset, means: Some(meaning), .. }) = result else {
            return None;
        };
        let NonPage::Segment(segment) = *meaning else { return None };
        let is_of = origin.is_none_or(|origin| origin == segment.origin);
        (record_offset == offset && segment.number == number && is_of).then_some(segment)
    }
}

/// Joins the segments of a record into a page, without a place in the file.
///
/// # Errors
/// Returns the reason if the record is not a page.
///
/// # Panics
/// Panics unless the segments begin with a first segment.
pub fn join(segments: &[WarcSegment], input: &InputSettings) -> Result<RawPage, Refusal> {
    let head = segments[0].head.as_deref().expect("a first segment has a head");
    // The digest of the block in the first head is that of the segment, not of the whole block.
    let head = RecordHead { segment: None, block_digest: String::new(), ..head.clone() };
    let block: Vec<u8> = segments.iter().flat_map(|segment| &segment.block).copied().collect();
    let repair_reason = segments.iter().find_map(|segment| segment.repaired);
    let mut page = page::page(&head, &block, repair_reason, input)?;
    let is_checked = input.digests == DigestPolicy::Check && page.repaired.is_none();
    if is_checked && page::is_other(&head, &block, &page.body, &input.limits) {
        page.repaired = Some(Reason::DigestMismatch);
    }
    page.length = segments[0].length;
    Ok(page)
}
