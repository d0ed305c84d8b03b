//! Each case is a file of valid pages around a defect, with the expected outcomes in order.
//!
//! An outcome is a word: `a` is the page `http://h.example/a` with its expected body; `a~` the page
//! with another body; `a(gzip_crc)` a repaired page; `!garbage` a rejected record.

pub(crate) mod build;
mod cases;

use std::sync::atomic::{AtomicU64, Ordering};

use webtwin::{
    error::Result,
    job::{DigestPolicy, InputSettings, RecordLimits},
    pages::{
        record::ReadResult,
        warc::{RecordCompression, RecordFormat, looks_like, probe, read_range, settle},
    },
    read_at::{Bytes, RandomAccess},
};

use cases::Case;

fn checked(limits: RecordLimits) -> InputSettings {
    InputSettings { limits, digests: DigestPolicy::Check, ..InputSettings::default() }
}

/// Reads `file` in ranges of `range_bytes`, as a run does.
fn read(file: &Bytes<Vec<u8>>, range_bytes: u64) -> Vec<ReadResult> {
    let mut by_range = Vec::new();
    let mut ends = Vec::new();
    for start in (0..file.len()).step_by(range_bytes as usize) {
        let mut results = Vec::new();
        let mut sink = |one| {
            results.push(one);
            Ok(())
        };
        let range = start..(start + range_bytes).min(file.len());
        let end = read_range(file, range, &checked(RecordLimits::default()), &mut sink).unwrap();
        assert_eq!(end.records, results.len() as u64);
        by_range.push(results);
        ends.push(end);
    }
    let offset = |one: &ReadResult| match one {
        ReadResult::Page(page) => page.offset,
        ReadResult::Refused(refused) => refused.offset,
    };
    let true_only = |(found, from): (Vec<ReadResult>, u64)| found.into_iter().filter(move |one| offset(one) >= from);
    by_range.into_iter().zip(settle(&ends)).flat_map(true_only).collect()
}

fn outcome(found: &[ReadResult]) -> String {
    let word = |one: &ReadResult| match one {
        ReadResult::Refused(refused) => format!("!{}", refused.reason.as_str()),
        ReadResult::Page(page) => {
            let name = page.url.rsplit('/').next().unwrap();
            let other = if page.body == build::page(name) { "" } else { "~" };
            let repaired = page.repaired.map_or(String::new(), |reason| format!("({})", reason.as_str()));
            format!("{name}{other}{repaired}")
        }
    };
    found.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_bad_file_has_its_expected_outcome() {
    let mut wrong = Vec::new();
    for Case { name, bytes, expected } in cases::all() {
        let outcomes_found = outcome(&read(&Bytes(bytes), u64::MAX >> 1));
        if outcomes_found != expected {
            wrong.push(format!("{name}\n  expected {expected}\n  found    {outcomes_found}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_bad_file_has_the_same_outcome_in_small_ranges() {
    for Case { name, bytes, .. } in cases::all().into_iter().filter(|case| case.bytes.len() < 100_000) {
        let file = Bytes(bytes);
        let expected = read(&file, u64::MAX >> 1);
        for range_bytes in [97, 1024] {
            assert_eq!(
                outcome(&read(&file, range_bytes)),
                outcome(&expected),
                "{name} in ranges of {range_bytes} bytes"
            );
            assert_eq!(read(&file, range_bytes), expected, "{name} in ranges of {range_bytes} bytes");
        }
    }
}

#[test]
fn cases_are_complete_and_have_distinct_names() {
    let mut names: Vec<_> = cases::all().into_iter().map(|case| case.name).collect();
    assert!(names.len() >= 60, "{}", names.len());
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases::all().len());
}

#[test]
fn files_that_are_not_warc_are_rejected_before_reading() {
    let sound = build::Record::of("a").bytes();
    let packed = build::gzip(&sound);
    for (bytes, about) in [
        (build::gzip(&packed), "gzip within gzip"),
        (b"<html>404 from the mirror</html>".to_vec(), "an HTML page"),
        (build::gzip(b"<html>404 from the mirror</html>"), "a gzip file of HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n".to_vec(), "a Git LFS pointer"),
        (build::gzip(b"{\"url\":\"http://a/\"}\n"), "a gzip file of something"),
        (build::zstd(b"{\"url\":\"http://a/\"}\n"), "a zstd file of something"),
        (vec![], "an empty file"),
        (b"just words".to_vec(), "no WARC record"),
    ] {
        let file = Bytes(bytes);
        assert_eq!(probe(&file).unwrap(), None, "{about}");
        let stderr_text = looks_like(&file).unwrap();
        assert!(stderr_text.starts_with(about), "{stderr_text}, not {about}");
        let refused = if file.is_empty() { "" } else { "!garbage" };
        assert_eq!(outcome(&read(&file, 10)), refused, "{about}");
    }
}

#[test]
fn warc_file_is_recognised_even_with_a_damaged_beginning() {
    let sound = build::Record::of("a").bytes();
    let (gzip, zstd) = (build::gzip(&sound), build::zstd(&sound));
    for (bytes, compression) in [
        (sound.clone(), RecordCompression::Plain),
        ([b"\r\n", sound.as_slice()].concat(), RecordCompression::Plain),
        ([build::flipped(sound.clone(), 1), sound.clone()].concat(), RecordCompression::Plain),
        (gzip.clone(), RecordCompression::Gzip),
        ([build::gzip(b""), gzip.clone()].concat(), RecordCompression::Gzip),
        ([build::flipped(gzip.clone(), 12), gzip.clone()].concat(), RecordCompression::Gzip),
        ([build::flipped(gzip.clone(), 0), gzip.clone()].concat(), RecordCompression::Gzip),
        (zstd.clone(), RecordCompression::Zstd),
        ([b"\x50\x2a\x4d\x18\x03\0\0\0abc", zstd.as_slice()].concat(), RecordCompression::Zstd),
        ([build::flipped(zstd.clone(), 2), zstd.clone()].concat(), RecordCompression::Zstd),
    ] {
        assert_eq!(probe(&Bytes(bytes)).unwrap(), Some((RecordFormat::Warc, compression)));
    }
}

/// A file that stores nothing but its length.
struct Endless {
    start: Vec<u8>,
    length: u64,
}

impl RandomAccess for Endless {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let length = length.min((self.length - offset) as usize);
        let stored_bytes = self.start.iter().skip(offset as usize).copied();
        Ok(stored_bytes.chain(std::iter::repeat(b'x')).take(length).collect())
    }
}

#[test]
fn oversized_plain_record_is_skipped_unread() {
    let huge = 1 << 40;
    let head = build::Record::with("huge", Vec::new()).length(huge).bytes();
    let head = head.strip_suffix(b"\r\n\r\n").unwrap();
    let file = Endless { start: [build::Record::of("a").bytes().as_slice(), head].concat(), length: 0 };
    let file = Endless { length: file.start.len() as u64 + huge, ..file };
    let mut results = Vec::new();
    let mut sink = |one| {
        results.push(one);
        Ok(())
    };
    read_range(&file, 0..file.length, &checked(RecordLimits::default()), &mut sink).unwrap();
    assert_eq!(outcome(&results), "a !record_too_large");
}

/// A file that counts the bytes that are read from it.
struct Counted {
    bytes: Bytes<Vec<u8>>,
    read: AtomicU64,
}

impl RandomAccess for Counted {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let bytes = self.bytes.read_at(offset, length)?;
        self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

#[test]
fn forged_headers_and_members_are_read_in_linear_time() {
    let sound = build::Record::of("a").bytes();
    let packed = build::gzip(&sound);
    // A gzip member that starts a record and then contains the next 65,000 bytes as a stored block.
    let forged =
        [b"\x1f\x8b\x08\0\0\0\0\0\0\x03\0\xe8\xfd\x17\x02WARC/1.0\r\nWARC-Type: response\r\n".as_slice()].concat();
    let piles = [
        ("heads without end", &sound, b"WARC/1.0\nWARC-Type: x\n".repeat(100_000), &sound),
        ("heads that claim far", &sound, b"WARC/1.0\nWARC-Type: x\nContent-Length: 1800011\n\n".repeat(80_000), &sound),
        (
            "heads that claim too far",
            &sound,
            b"WARC/1.0\nWARC-Type: x\nContent-Length: 3000011\n\n".repeat(80_000),
            &sound,
        ),
        ("gzip heads", &packed, b"\x1f\x8b\x08\0\0\0\0\0\0\x03".repeat(300_000), &packed),
        ("members without end", &packed, forged.repeat(70_000), &packed),
    ];
    // If the reader scanned the claimed range of each header or member again, a pile would cost a
    // hundred gigabytes, and this test would not end.
    for (name, before, pile, behind) in piles {
        let file = Counted { bytes: Bytes([before.as_slice(), &pile, behind].concat()), read: AtomicU64::new(0) };
        let limits = RecordLimits { record_bytes: 2 << 20, ..RecordLimits::default() };
        let mut pages = Vec::new();
        let mut sink = |one| {
            if let ReadResult::Page(page) = one {
                pages.push(page.url);
            }
            Ok(())
        };
        read_range(&file, 0..file.len(), &checked(limits), &mut sink).unwrap();
        let read = file.read.into_inner();
        assert!(read < 4 * file.bytes.len(), "{name}: {read} bytes read of {}", file.bytes.len());
        // Members that contain the following bytes are skipped in bulk, together with the page
        // directly after them.
        let survivors = if name == "members without end" { 1 } else { 2 };
        assert_eq!(pages, vec!["http://h.example/a"; survivors], "{name}");
    }
}
