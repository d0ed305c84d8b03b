//! Joins records in segments: the segments of a record become a page in the place of the first
//! segment.
//!
//! While the input is read, a segment is only noted. Then the segments of a record are collected at
//! one worker, which reads them again, joins them and reads the page. They may be in any files of
//! the input and in any order. Of two segments with the same number and different blocks, one is
//! chosen independently of the files. Of copies, the copy in the file of the first segment is
//! chosen, otherwise the earliest copy. A segment that continues another one is rejected as
//! `not_a_page_record`. All segments of an incomplete record are rejected as `segmented`.
//!
//! # Memory
//! Takes 56 bytes for each segment, and one record at a time, within the size limit of a record.
//!
//! # Cost
//! Reads each segment twice. In a compressed file without members, everything before a segment is
//! read twice, too.

use crate::reading::ingest::{PageIngest, Queue};
use crate::reading::other_records::SegmentRecord;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::error::{Error, Result};
use webtwin_engine::Net;
use webtwin_job::{InputSettings, Job};
use webtwin_pages::record::{RawPage, ReadResult, Reason, Refusal, RefusedRecord};
use webtwin_pages::warc::segments::{self, join};
use webtwin_pages::work_items::WorkList;

/// Converts the segments of all workers into captures and rejections.
///
/// `floors[item]` is the offset from which the records of a work item are valid.
///
/// # Errors
/// Returns any error of reading segments again, and an error if the run has ended.
pub fn resolve(
    net: &mut Net<'_>,
    local_pages: &mut WorkerPages,
    queue: &Queue,
    job: &Job,
    floors: &[u64],
) -> Result<()> {
    let (untrue, rows): (Vec<SegmentRecord>, Vec<SegmentRecord>) =
        std::mem::take(&mut local_pages.segments).into_iter().partition(|row| row.offset < floors[row.item as usize]);
    local_pages.rejections.extend(untrue.iter().map(|row| row.rejected(Reason::Segmented, "")))?;
    if net.all_sum("segments", [rows.len() as u64])? == [0] {
        return Ok(());
    }
    let peers = net.peers() as u64;
    let owner_rows = rows.into_iter().map(|row| Ok(((row.origin % peers) as usize, row)));
    let mut rows: Vec<SegmentRecord> = net.exchange_values("segments", owner_rows)?;
    rows.sort_unstable();
    let mut reader = PageIngest::on(std::mem::take(local_pages), net, job)?;
    for record in rows.chunk_by(|x, y| x.origin == y.origin) {
        let firsts = record.partition_point(|row| row.number == 1);
        for first in &record[..firsts] {
            net.check()?;
            reader.item = (first.item, first.source);
            let mut places = Vec::new();
            let whole_record = match whole(first, &record[firsts..], job.input.limits.record_bytes) {
                Ok(parts) => {
                    places.extend(parts.iter().map(|row| (row.source, row.offset)));
                    read(net, &places, Some(first.origin), &queue.work, &job.input)?
                }
                Err(refusal) => Err(refusal),
            };
            let outcome = match whole_record {
                Ok(page) => ReadResult::Page(page),
                Err((reason, detail)) => ReadResult::Refused(RefusedRecord::new(first.offset, reason, detail)),
            };
            reader.segments = places.split_off(places.len().min(1));
            reader.take(outcome, &queue.progress)?;
        }
        let (reason, detail) = match firsts {
            0 => (Reason::Segmented, "a continuation whose first segment is not in the input or is not a page"),
            _ => (Reason::NotAPageRecord, "continuation"),
        };
        reader.local_pages.rejections.extend(record[firsts..].iter().map(|row| row.rejected(reason, detail)))?;
    }
    *local_pages = reader.local_pages;
    Ok(())
}

/// Returns all segments of a record in their order, given its first segment and the continuations
/// of the record in ascending order. Fails if the record is incomplete or exceeds `max_bytes`
/// bytes.
fn whole<'s>(
    first: &'s SegmentRecord,
    later_segments: &'s [SegmentRecord],
    max_bytes: u64,
) -> std::result::Result<Vec<&'s SegmentRecord>, Refusal> {
    let mut parts = vec![first];
    for copies_of_segment in later_segments.chunk_by(|x, y| x.number == y.number) {
        let next = parts.len() as u32 + 1;
        if copies_of_segment[0].number != next {
            return Err((Reason::Segmented, format!("segment {next} is missing")));
        }
        let mut copies = copies_of_segment.iter().take_while(|row| row.block == copies_of_segment[0].block);
        parts.push(copies.find(|row| row.source == first.source).unwrap_or(&copies_of_segment[0]));
    }
    let bytes: u64 = parts.iter().map(|row| row.bytes).sum();
    match parts[parts.len() - 1].total {
        0 => Err((Reason::Segmented, format!("segment {} is missing", parts.len() + 1))),
        _ if bytes > max_bytes => {
            Err((Reason::RecordTooLarge, format!("over {max_bytes} bytes in {} segments", parts.len())))
        }
        total if total != bytes => {
            Err((Reason::Segmented, format!("its segments have {bytes} bytes, not the declared {total} bytes")))
        }
        _ => Ok(parts),
    }
}

/// Reads the segments of a record again, given as numbers of inputs and offsets, and then the page
/// in them. `origin` is the hash of the record's id, if it is known.
///
/// # Errors
/// Returns any error of the input, and [`Error::Input`] if the input has changed.
pub fn read(
    net: &Net<'_>,
    places: &[(u32, u64)],
    mut origin: Option<u64>,
    work: &WorkList,
    input: &InputSettings,
) -> Result<std::result::Result<RawPage, Refusal>> {
    let mut segments = Vec::with_capacity(places.len());
    for (&(source, offset), number) in places.iter().zip(1..) {
        let mut segment = None;
        work.read_again(source, &[offset], input, &mut |read| {
            net.check()?;
            segment = segment.take().or(segments::WarcSegment::pick(read, offset, number, origin));
            Ok(())
        })?;
        let missing_segment = || {
            let fault = format!(
                "the record at offset {offset} is no longer segment {number}: the file changed during the run; run \
                again"
            );
            Error::input(&work.inputs[source as usize], fault)
        };
        let segment = segment.ok_or_else(missing_segment)?;
        origin = Some(segment.origin);
        segments.push(segment);
    }
    Ok(join(&segments, input).map(|page| RawPage { offset: places[0].1, ..page }))
}
