//! WARC and ARC: several ranges of a file yield the same records as one range. Every record is
//! reported once, and none is outside of the file.

use std::io::Write;

use super::{cuts, first, found, offset};
use flate2::Compression;
use flate2::write::GzEncoder;
use webtwin_base::read_at::Bytes;
use webtwin_job::{DigestPolicy, InputSettings, RecordLimits};
use webtwin_pages::record::ReadResult;
use webtwin_pages::warc::{RangeEnd, read_range, read_stream, settle};

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    let Some((how, rest)) = first(data) else { return };
    let limits = RecordLimits { record_bytes: 1 << 16, head_bytes: 1 << 11, links: 100, ..RecordLimits::default() };
    let input = InputSettings { limits, digests: DigestPolicy::Check, ..InputSettings::default() };
    // The input is used as it is, or in gzip members that are cut at record boundaries or anywhere.
    let bytes = match how % 4 {
        0 | 1 => rest.to_vec(),
        2 => members(rest.split_inclusive(|&byte| byte == 0xff)),
        _ => members(rest.chunks(1 + how)),
    };
    let length = bytes.len() as u64;
    let file = Bytes(bytes);
    let (end, whole) = found(|sink| read_range(&file, 0..length, &input, sink));
    assert_eq!(end.records, whole.len() as u64);
    assert!(whole.is_sorted_by_key(offset));
    for one in &whole {
        assert!(offset(one) < length.max(1));
        if let ReadResult::Page(page) = one {
            assert!(page.offset + page.length <= length, "{} + {} > {length}", page.offset, page.length);
            assert!(page.body.len() as u64 <= limits.record_bytes);
        }
    }
    let (mut ends, mut parts) = (Vec::new(), Vec::new());
    for range in cuts(length, how).windows(2) {
        let (end, part) = found(|sink| read_range(&file, range[0]..range[1], &input, sink));
        ends.push(end);
        parts.push(part);
    }
    if !ends.iter().any(|end| is_excepted(end, &whole, length)) {
        let parts = parts.into_iter().zip(settle(&ends));
        let parts: Vec<ReadResult> =
            parts.flat_map(|(part, from)| part.into_iter().filter(move |one| offset(one) >= from)).collect();
        assert_eq!(parts, whole);
    }
    let (end, stream) = found(|sink| read_stream(rest, &input, sink));
    assert_eq!(end.records, stream.len() as u64);
}

/// True if a range is the exception documented in [`settle`]: its last record is within another
/// record and claims to end where a third one begins or ends.
fn is_excepted(range: &RangeEnd, whole: &[ReadResult], length: u64) -> bool {
    let ends = |one: &ReadResult| match one {
        ReadResult::Page(page) => page.offset + page.length == range.end,
        _ => false,
    };
    let is_reported = |at: u64| whole.iter().any(|one| offset(one) == at);
    range.last_start.is_some_and(|last| !is_reported(last))
        && (range.end == length || is_reported(range.end) || whole.iter().any(ends))
}

fn members<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let member = |part: &[u8]| {
        let mut member = GzEncoder::new(Vec::new(), Compression::none());
        member.write_all(part).and_then(|()| member.finish()).expect("writing to memory succeeds")
    };
    parts.flat_map(member).collect()
}
