//! JSONL: each line that is not blank is reported once, in ranges of any length and also in
//! compressed files.

use std::io::Write;

use super::{cuts, first, found};
use flate2::write::GzEncoder;
use webtwin_base::read_at::Bytes;
use webtwin_job::{FieldNames, RecordLimits};
use webtwin_pages::decoded::Compression;
use webtwin_pages::jsonl::{read_range, read_whole};
use webtwin_pages::record::ReadResult;

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    let Some((how, rest)) = first(data) else { return };
    let (limits, fields) = (RecordLimits::default(), FieldNames::default());
    let file = Bytes(rest.to_vec());
    let ((), whole) = found(|sink| read_whole(&file, Compression::None, &limits, &fields, sink));
    let is_blank = |line: &&[u8]| line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii().is_empty();
    assert_eq!(whole.len(), rest.split(|&byte| byte == b'\n').filter(|line| !is_blank(line)).count());
    let ranges = cuts(rest.len() as u64, how);
    let ranges = ranges
        .windows(2)
        .flat_map(|range| found(|sink| read_range(&file, range[0]..range[1], &limits, &fields, sink)).1);
    assert_eq!(ranges.collect::<Vec<ReadResult>>(), whole);
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::none());
    let packed = packed.write_all(rest).and_then(|()| packed.finish()).expect("writing to memory succeeds");
    let ((), unpacked) = found(|sink| read_whole(&Bytes(packed), Compression::Gzip, &limits, &fields, sink));
    assert_eq!(without_length(unpacked), without_length(whole));
}

/// Returns results without the length of their records, which is an estimate in a compressed file.
fn without_length(mut results: Vec<ReadResult>) -> Vec<ReadResult> {
    for result in &mut results {
        match result {
            ReadResult::Page(page) => page.length = 0,
            ReadResult::Refused(refused) => refused.bytes = 0,
        }
    }
    results
}
