use std::io::Write;

use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::record::ReadResult;
use webtwin_base::read_at::Bytes;
use webtwin_job::DigestPolicy;

fn settings_within(limits: &RecordLimits) -> InputSettings {
    InputSettings { limits: *limits, digests: DigestPolicy::Check, ..InputSettings::default() }
}

fn read_whole(bytes: &[u8], limits: &RecordLimits, block_bytes: usize) -> Vec<ReadResult> {
    let mut results = Vec::new();
    let mut sink = |result| {
        results.push(result);
        Ok(())
    };
    let file = Bytes(bytes.to_vec());
    let input = settings_within(limits);
    let sink = &mut CountingSink::new(&input, &mut sink);
    let end = read_in_blocks(&file, 0..file.len(), EntryPoint::Search, sink, block_bytes).unwrap();
    assert_eq!(end.records, results.len() as u64);
    results
}

fn offset(result: &ReadResult) -> u64 {
    match result {
        ReadResult::Page(page) => page.offset,
        ReadResult::Refused(refused) => refused.offset,
    }
}

fn read_by_ranges(bytes: &[u8], limits: &RecordLimits, block_bytes: usize, range_bytes: u64) -> Vec<ReadResult> {
    let file = Bytes(bytes.to_vec());
    let mut ends = Vec::new();
    let mut results = Vec::new();
    for start in (0..file.len()).step_by(range_bytes as usize) {
        let mut range_results = Vec::new();
        let mut sink = |result| {
            range_results.push(result);
            Ok(())
        };
        let range = start..(start + range_bytes).min(file.len());
        let input = settings_within(limits);
        let sink = &mut CountingSink::new(&input, &mut sink);
        ends.push(read_in_blocks(&file, range, EntryPoint::Search, sink, block_bytes).unwrap());
        results.push(range_results);
    }
    let valid_from = settle(&ends);
    let results_from = |(found, from): (Vec<ReadResult>, u64)| found.into_iter().filter(move |one| offset(one) >= from);
    results.into_iter().zip(valid_from).flat_map(results_from).collect()
}

fn record(format: RecordFormat, url: &str, length: Option<usize>, payload: &[u8]) -> Vec<u8> {
    let length = length.unwrap_or(payload.len());
    if format == RecordFormat::Arc {
        let head = format!("http://h/{url} 1.2.3.4 20080101000000 text/plain {length}\n");
        return [head.as_bytes(), payload, b"\n"].concat();
    }
    let mut bytes = format!(
        "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://h/{url}\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\n\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

/// Text that does not compress to a trivial size.
fn words(seed: usize, count: usize) -> String {
    (0..count).map(|i| format!("w{} ", (seed * 7919 + i * i * 31) % 9973)).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Stored,
    Zstd,
    OneGzip,
}

impl Packing {
    fn pack(self, bytes: &[u8]) -> Vec<u8> {
        let gzip = |level| {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(level));
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        match self {
            Packing::Plain | Packing::OneGzip => bytes.to_vec(),
            Packing::Gzip => gzip(6),
            Packing::Stored => gzip(0),
            Packing::Zstd => {
                let mut compressor = zstd::bulk::Compressor::new(1).unwrap();
                compressor.include_checksum(true).unwrap();
                compressor.compress(bytes).unwrap()
            }
        }
    }
}

/// A piece of a test file.
#[derive(Debug, Clone)]
enum Piece {
    Page(usize),
    /// A record that contains an archive in the packing of the file, cut off by this number of
    /// bytes.
    Archive {
        records: usize,
        cut: usize,
    },
    Empty,
    Garbage(Vec<u8>),
    Zeros(usize),
    NewLines(usize),
    /// A page with one byte changed.
    Flipped {
        words: usize,
        at: prop::sample::Index,
        by: u8,
    },
    /// A page without its tail.
    Cut {
        words: usize,
        at: prop::sample::Index,
    },
    /// A page with this declared length, which may by chance equal that of other content that
    /// starts with it.
    WrongLength {
        words: usize,
        length: usize,
    },
    TooShort {
        words: usize,
        by: prop::sample::Index,
    },
    TooLong {
        words: usize,
    },
}

fn piece() -> impl Strategy<Value = Piece> {
    let position = any::<prop::sample::Index>;
    prop_oneof![
        6 => (0usize..40).prop_map(Piece::Page),
        2 => (1usize..5, cut_of_archive()).prop_map(|(records, cut)| Piece::Archive { records, cut }),
        1 => Just(Piece::Empty),
        1 => prop::collection::vec(any::<u8>(), 1..200).prop_map(Piece::Garbage),
        1 => (1usize..300).prop_map(Piece::Zeros),
        1 => (1usize..90).prop_map(Piece::NewLines),
        2 => (0usize..40, position(), 1u8..).prop_map(|(words, at, by)| Piece::Flipped { words, at, by }),
        1 => (0usize..40, position()).prop_map(|(words, at)| Piece::Cut { words, at }),
        1 => (1usize..40, position()).prop_map(|(words, by)| Piece::TooShort { words, by }),
        1 => (1usize..40).prop_map(|words| Piece::TooLong { words }),
    ]
}

/// The cut is either within the line ends of the last record or within its head. A record with a
/// shortened body would, by chance, claim to end where other content does, once in a few thousand
/// such small files.
fn cut_of_archive() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..5, 65usize..140]
}

fn any_piece() -> impl Strategy<Value = Piece> {
    let wrong_length = (1usize..40, 0usize..900).prop_map(|(words, length)| Piece::WrongLength { words, length });
    prop_oneof![12 => piece(), 1 => wrong_length]
}

/// Makes a file of `pieces`; returns it and the URLs of its undamaged pages.
fn file(format: RecordFormat, packing: Packing, pieces: &[Piece]) -> (Vec<u8>, Vec<String>) {
    let mut bytes = Vec::new();
    let mut urls = Vec::new();
    // If no member ends, a wrong length is trusted if other content happens to end there. That case
    // is not tested here.
    let lengths_alone = matches!(packing, Packing::Plain | Packing::OneGzip);
    let damaged_words = |words: usize| if lengths_alone { words % 8 } else { words };
    for (i, piece) in pieces.iter().enumerate() {
        let page = |name: &str, length, words_| record(format, name, length, words(i, words_).as_bytes());
        match piece {
            Piece::Page(words) => {
                bytes.extend(packing.pack(&page(&i.to_string(), None, *words)));
                // In ARC, a record without content is a tombstone.
                if format == RecordFormat::Warc || *words > 0 {
                    urls.push(format!("http://h/{i}"));
                }
            }
            Piece::Archive { records, cut } => {
                let inner: Vec<u8> =
                    (0..*records).flat_map(|k| packing.pack(&page(&format!("inner{i}-{k}"), None, 9))).collect();
                // In ARC, a shortened body would by chance claim to end at the end of some line far
                // more often.
                let is_of_body = (2..=words(i, 9).len() + 1).contains(cut);
                let cut = if format == RecordFormat::Arc && is_of_body { 1 } else { *cut };
                let inner = &inner[..inner.len() - cut.min(inner.len())];
                bytes.extend(packing.pack(&record(format, &i.to_string(), None, &[b"archive: ", inner].concat())));
                urls.push(format!("http://h/{i}"));
            }
            Piece::Empty => bytes.extend(packing.pack(b"")),
            Piece::Garbage(garbage) => bytes.extend(garbage),
            Piece::Zeros(count) => bytes.extend(vec![0; *count]),
            Piece::NewLines(count) => bytes.extend(b"\r\n".repeat(*count)),
            Piece::Flipped { words, at, by } => {
                let mut damaged_record = packing.pack(&page("damaged", None, damaged_words(*words)));
                let at = at.index(damaged_record.len());
                damaged_record[at] ^= by;
                bytes.extend(damaged_record);
            }
            Piece::Cut { words, at } => {
                let damaged_record = packing.pack(&page("damaged", None, damaged_words(*words)));
                // A line of ARC that is cut off merges with the next, because URLs may contain
                // URLs.
                let minimum = match format == RecordFormat::Arc && lengths_alone {
                    true => memchr::memchr(b'\n', &damaged_record).expect("its head is a line") + 1,
                    false => 0,
                };
                bytes.extend(&damaged_record[..minimum + at.index(damaged_record.len() - minimum)]);
            }
            Piece::WrongLength { words, length } => {
                let length = if lengths_alone { &20_000 } else { length };
                bytes.extend(packing.pack(&page("damaged", Some(*length), *words)));
            }
            Piece::TooShort { words: count, by } => {
                let length = words(i, *count).len();
                bytes.extend(packing.pack(&page("damaged", Some(length - 1 - by.index(length)), *count)));
            }
            Piece::TooLong { words } => bytes.extend(packing.pack(&page("damaged", Some(20_000), *words))),
        }
    }
    if packing == Packing::OneGzip {
        bytes = Packing::Gzip.pack(&bytes);
    }
    (bytes, urls)
}

fn packing() -> impl Strategy<Value = Packing> {
    prop::sample::select(vec![Packing::Plain, Packing::Gzip, Packing::Stored, Packing::Zstd, Packing::OneGzip])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn ranges_of_any_size_equal_one_range(
        format in prop::sample::select(vec![RecordFormat::Warc, RecordFormat::Arc]),
        packing in packing(),
        pieces in prop::collection::vec(any_piece(), 0..8),
        block_bytes in 5usize..3000,
        range_bytes in 1u64..200,
        record_bytes in prop::sample::select(vec![40u64, 200, 16 << 20]),
    ) {
        let limits = RecordLimits { record_bytes, head_bytes: 400, ..RecordLimits::default() };
        let (bytes, _) = file(format, packing, &pieces);
        let expected = read_whole(&bytes, &limits, block_bytes);
        // The bytes that zstd yields before an error depend on the size of its input pieces.
        if packing != Packing::Zstd {
            prop_assert_eq!(&read_whole(&bytes, &limits, BLOCK_BYTES), &expected, "whole, but in large blocks");
        }
        prop_assert_eq!(&read_by_ranges(&bytes, &limits, block_bytes, range_bytes), &expected);
    }

    #[test]
    fn stream_equals_a_plain_file_unless_a_record_claims_to_be_longer(
        format in prop::sample::select(vec![RecordFormat::Warc, RecordFormat::Arc]),
        pieces in prop::collection::vec(piece(), 0..8),
    ) {
        let pieces: Vec<Piece> =
            pieces.into_iter().filter(|piece| !matches!(piece, Piece::TooLong { .. } | Piece::Cut { .. } | Piece::Flipped { .. })).collect();
        let (bytes, _) = file(format, Packing::Plain, &[&[Piece::Page(3)], &*pieces, &[Piece::Page(3)]].concat());
        let mut found = Vec::new();
        let mut sink = |one| {
            found.push(one);
            Ok(())
        };
        let limits = RecordLimits::default();
        read_stream(&bytes[..], &settings_within(&limits), &mut sink).unwrap();
        prop_assert_eq!(found, read_whole(&bytes, &limits, BLOCK_BYTES));
    }

    #[test]
    fn undamaged_pages_survive_between_damaged_ones(
        format in prop::sample::select(vec![RecordFormat::Warc, RecordFormat::Arc]),
        packing in packing(),
        pieces in prop::collection::vec(piece(), 0..8),
    ) {
        let (bytes, mut urls) = file(format, packing, &[&[Piece::Page(3)], &*pieces].concat());
        let mut found: Vec<String> = read_whole(&bytes, &RecordLimits::default(), BLOCK_BYTES)
            .into_iter()
            .filter_map(|one| match one {
                ReadResult::Page(page) => Some(page.url),
                ReadResult::Refused(_) => None,
            })
            .collect();
        found.retain(|url| {
            let name = url.strip_prefix("http://h/").unwrap_or_default();
            name.starts_with("inner") || name.parse::<usize>().is_ok()
        });
        urls.sort();
        found.sort();
        prop_assert_eq!(found, urls);
    }
}

#[test]
fn pages_of_arc_files_have_location_date_type_and_status() {
    let head = "filedesc://a.arc 0.0.0.0 20080101000000 text/plain 12\n1 0 somebody\n\n";
    let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=latin1\r\n\r\n<p>one";
    let line = |uri: &str, length: usize| format!("{uri} 1.2.3.4 20080102030405 text/html {length}\n");
    let first = format!("{}{http}\n", line("http://a/one page", http.len()));
    let second = format!("{}<p>two\n", line("http://a/2", 6));
    let dns = format!("{}20080101\n", line("dns:a", 8));
    // By the standard, each record begins with a line end.
    let members =
        [head, first.as_str(), &format!("\n{second}"), &dns].map(|member| Packing::Gzip.pack(member.as_bytes()));
    let limits = RecordLimits::default();
    for (bytes, starts, lengths) in [
        (
            [head, &first, &second, &dns].concat().into_bytes(),
            [head.len(), head.len() + first.len()],
            [first.len(), second.len()],
        ),
        (
            members.concat(),
            [members[0].len(), members[0].len() + members[1].len()],
            [members[1].len(), members[2].len()],
        ),
    ] {
        let results = read_whole(&bytes, &limits, BLOCK_BYTES);
        let [
            ReadResult::Refused(version),
            ReadResult::Page(first_page),
            ReadResult::Page(second_page),
            ReadResult::Refused(server),
        ] = &results[..]
        else {
            panic!("{results:?}")
        };
        assert_eq!([version.reason, server.reason], [Reason::NotAPageRecord; 2]);
        assert_eq!([first_page.url.as_str(), second_page.url.as_str()], ["http://a/one page", "http://a/2"]);
        assert_eq!([first_page.body.as_slice(), second_page.body.as_slice()], [b"<p>one", b"<p>two"]);
        assert_eq!((first_page.charset.as_deref(), second_page.charset.as_deref()), (Some("latin1"), None));
        assert_eq!([first_page.offset, second_page.offset], starts.map(|start| start as u64));
        assert_eq!([first_page.length, second_page.length], lengths.map(|length| length as u64));
        assert_eq!([first_page.fetch_time, second_page.fetch_time], [1_199_243_045; 2]);
        assert_eq!([first_page.repaired, second_page.repaired], [None; 2]);
        assert_eq!(read_by_ranges(&bytes, &limits, 512, 20), results);
    }
}

#[test]
fn archive_truncated_within_a_record_repeats_no_record() {
    let formats = [RecordFormat::Warc, RecordFormat::Arc];
    for (format, packing) in
        formats.into_iter().flat_map(|format| [Packing::Plain, Packing::Stored].map(|packing| (format, packing)))
    {
        // The cuts are within the line ends of the last record, up to its head.
        for cut_length in 0..90 {
            let pieces =
                [Piece::Page(3), Piece::Archive { records: 3, cut: cut_length }, Piece::Page(200), Piece::Page(3)];
            let (bytes, urls) = file(format, packing, &pieces);
            let expected = read_whole(&bytes, &RecordLimits::default(), BLOCK_BYTES);
            let pages: Vec<_> =
                expected.iter().map(|one| matches!(one, ReadResult::Page(page) if page.repaired.is_none())).collect();
            assert_eq!(pages, vec![true; urls.len()]);
            for range_bytes in (1..300).step_by(31) {
                assert_eq!(
                    read_by_ranges(&bytes, &RecordLimits::default(), 512, range_bytes),
                    expected,
                    "{format:?} {packing:?} {cut_length} {range_bytes}"
                );
            }
        }
    }
}

/// URLs of pages, and reasons of refusals with their bytes.
fn outline(results: &[ReadResult]) -> (Vec<&str>, Vec<(Reason, u64)>) {
    fn url(result: &ReadResult) -> Option<&str> {
        match result {
            ReadResult::Page(page) => Some(page.url.rsplit('/').next().unwrap_or_default()),
            ReadResult::Refused(_) => None,
        }
    }
    let reason = |result: &ReadResult| match result {
        ReadResult::Page(_) => None,
        ReadResult::Refused(refused) => Some((refused.reason, refused.bytes)),
    };
    (results.iter().filter_map(url).collect(), results.iter().filter_map(reason).collect())
}

/// Reads a file as a whole, in ranges, and each record again by its place.
fn read_in_all_ways(bytes: &[u8], case: &str) -> Vec<ReadResult> {
    let results = read_whole(bytes, &RecordLimits::default(), BLOCK_BYTES);
    for range_bytes in [1, 7, 100, 5000] {
        assert_eq!(read_by_ranges(bytes, &RecordLimits::default(), 512, range_bytes), results, "{case}, {range_bytes}");
    }
    for result in results.iter().filter(|one| matches!(one, ReadResult::Page(_))) {
        let (place, mut reread) = (offset(result), Vec::new());
        let mut sink = |record| {
            reread.push(record);
            Ok(())
        };
        read_again(&Bytes(bytes.to_vec()), place..place + 1, &settings_within(&RecordLimits::default()), &mut sink)
            .unwrap();
        assert!(reread.contains(result), "{case}: {place} holds {reread:?}");
    }
    results
}

#[test]
fn members_may_begin_and_end_anywhere_between_plain_records() {
    let pages: Vec<Vec<u8>> =
        (0..6).map(|i| record(RecordFormat::Warc, &i.to_string(), None, words(i, 200).as_bytes())).collect();
    let records = pages.concat();
    let heads = |page: &[u8]| memchr::memmem::find(page, b"\r\n\r\n").unwrap() + 4;
    for packing in [Packing::Gzip, Packing::Stored, Packing::Zstd] {
        let pack =
            |pieces: &mut dyn Iterator<Item = &[u8]>| pieces.flat_map(|piece| packing.pack(piece)).collect::<Vec<u8>>();
        let (first, rest) = (pages[..2].concat(), pages[2..].concat());
        for (case, bytes) in [
            ("blocks", pack(&mut records.chunks(700))),
            ("blocks that end a record at times", pack(&mut records.chunks(pages[0].len()))),
            ("small blocks", pack(&mut records.chunks(3))),
            (
                "heads and bodies",
                pack(&mut pages.iter().flat_map(|page| <[&[u8]; 2]>::from(page.split_at(heads(page))))),
            ),
            ("line ends", pack(&mut pages.iter().flat_map(|page| <[&[u8]; 2]>::from(page.split_at(page.len() - 4))))),
            ("plain behind", [pack(&mut pages[..2].iter().map(|page| &page[..])), rest.clone()].concat()),
            ("plain before", [first.clone(), pack(&mut pages[2..].iter().map(|page| &page[..]))].concat()),
            ("plain before blocks", [first.clone(), pack(&mut rest.chunks(500))].concat()),
            ("blocks before plain", [pack(&mut first.chunks(500)), rest.clone()].concat()),
            (
                "plain between",
                [pack(&mut first.chunks(90)), pages[2].clone(), pack(&mut pages[3..].concat().chunks(90))].concat(),
            ),
            ("one member", packing.pack(&records)),
        ] {
            let results = read_in_all_ways(&bytes, case);
            assert_eq!(outline(&results), (vec!["0", "1", "2", "3", "4", "5"], vec![]), "{case} {packing:?}");
        }
    }
}

#[test]
fn gzip_and_zstd_and_plain_records_may_follow_each_other() {
    let page = |i: usize| record(RecordFormat::Warc, &i.to_string(), None, words(i, 50).as_bytes());
    let packings = [Packing::Zstd, Packing::Plain, Packing::Gzip, Packing::Plain, Packing::Zstd, Packing::Gzip];
    for first in 0..packings.len() {
        let bytes: Vec<u8> = (0..6).flat_map(|i| packings[(first + i) % packings.len()].pack(&page(i))).collect();
        let results = read_in_all_ways(&bytes, "mixed");
        assert_eq!(outline(&results), (vec!["0", "1", "2", "3", "4", "5"], vec![]), "{first}");
    }
}

#[test]
fn each_frame_finds_its_dictionary_at_any_position() {
    let pages: Vec<Vec<u8>> =
        (0..400).map(|i| record(RecordFormat::Warc, &i.to_string(), None, words(i, 20).as_bytes())).collect();
    let part = |pages: &[Vec<u8>]| {
        let dictionary = zstd::dict::from_samples(pages, 2000).unwrap();
        let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
        let mut bytes = [b"\x5d\x2a\x4d\x18", &(dictionary.len() as u32).to_le_bytes()[..], &dictionary].concat();
        pages.iter().for_each(|page| bytes.extend(compressor.compress(page).unwrap()));
        bytes
    };
    let frame_of = |page: &[u8]| Packing::Zstd.pack(page);
    let limits = RecordLimits::default();
    // Between two dictionaries there is a frame that needs none, or a plain record.
    for middle in [frame_of(&pages[200]), pages[200].clone()] {
        let bytes = [part(&pages[..200]), middle, part(&pages[201..399]), frame_of(&pages[399])].concat();
        let results = read_whole(&bytes, &limits, BLOCK_BYTES);
        assert_eq!((outline(&results).0.len(), outline(&results).1), (400, vec![]));
        for range_bytes in [300, 5000, 20_000] {
            assert_eq!(read_by_ranges(&bytes, &limits, 512, range_bytes), results, "{range_bytes}");
        }
    }
}

#[test]
fn a_window_over_the_limit_is_named_with_the_setting_that_raises_it() {
    let page = record(RecordFormat::Warc, "0", None, b"text");
    let frame_with_window = |window: u8| {
        [&[0x28, 0xb5, 0x2f, 0xfd, 0, window << 3], &(page.len() as u32 * 8 + 1).to_le_bytes()[..3], &page].concat()
    };
    let read = |bytes: Vec<u8>, limits: RecordLimits| {
        let mut count = 0;
        let mut sink = |result| {
            count += usize::from(matches!(result, ReadResult::Page(_)));
            Ok(())
        };
        let length = bytes.len() as u64;
        read_range(&Bytes(bytes), 0..length, &settings_within(&limits), &mut sink).map(|_| count)
    };
    let limits = RecordLimits::default();
    assert_eq!(read(frame_with_window(18), limits).unwrap(), 1, "256 MiB");
    let large = [frame_with_window(10), frame_with_window(21)].concat();
    let error = read(large.clone(), limits).unwrap_err();
    let message = error.of_input("a.warc.zst").to_string();
    assert!(message.contains("a.warc.zst") && message.contains("2.0 GiB"), "{message}");
    assert!(message.contains("input.limits.window_bytes (of dedup: --max-window) to 2147483648"), "{message}");
    assert_eq!(read(large, RecordLimits { window_bytes: 2 << 30, ..limits }).unwrap(), 2);
}

#[test]
fn lost_bytes_are_counted() {
    let pages: Vec<Vec<u8>> =
        (0..40).map(|i| record(RecordFormat::Warc, &i.to_string(), None, words(i, 200).as_bytes())).collect();
    let member = |page: &Vec<u8>| Packing::Gzip.pack(page);
    let (prefix, suffix) = (pages[..3].iter().flat_map(member).collect::<Vec<u8>>(), member(&pages[3]));
    let lost_records = |bytes: &[u8]| outline(&read_whole(bytes, &RecordLimits::default(), BLOCK_BYTES)).1;
    let garbage = vec![b'?'; 5000];
    assert_eq!(lost_records(&[&prefix[..], &garbage, &suffix].concat()), [(Reason::Garbage, 5000)]);
    // One member with many records, damaged in its middle: its rest is lost.
    let mut large_member = Packing::Gzip.pack(&pages.concat());
    let middle = large_member.len() / 2;
    large_member[middle..middle + 50].fill(0xff);
    let lost_bytes: u64 = lost_records(&[&prefix[..], &large_member, &suffix].concat()).iter().map(|lost| lost.1).sum();
    assert!(
        (large_member.len() as u64 / 3..large_member.len() as u64 * 2 / 3).contains(&lost_bytes),
        "{lost_bytes} of {}",
        large_member.len()
    );
    // A file of many blocks: only the records that extend into the damaged one are lost.
    let mut blocks: Vec<Vec<u8>> = pages.concat().chunks(1000).map(|block| Packing::Gzip.pack(block)).collect();
    blocks[20][100..120].fill(0);
    let results = read_whole(&blocks.concat(), &RecordLimits::default(), BLOCK_BYTES);
    assert!(outline(&results).0.len() >= 36, "{:?}", outline(&results));
    let lost_bytes: u64 = outline(&results).1.iter().map(|lost| lost.1).sum();
    assert!((500..4000).contains(&lost_bytes), "{lost_bytes}");
}

fn seconds(bytes: &[u8]) -> f64 {
    let start = std::time::Instant::now();
    std::hint::black_box(read_whole(bytes, &RecordLimits::default(), BLOCK_BYTES));
    start.elapsed().as_secs_f64()
}

/// Archives within one block in which many places look like a record or a member. Quadratic time
/// would take 64 times as long for 8 times the size. A busy machine gets more tries.
#[test]
fn time_is_linear_in_the_file_for_hostile_archives() {
    let first_record = |format| record(format, "a", None, b"words");
    for (format, unit) in [
        (RecordFormat::Warc, &b"WARC/1.0\r\n"[..]),
        (RecordFormat::Warc, b"warc/1.0\r\n"),
        (RecordFormat::Warc, b"\x1f\x8b\x08"),
        (RecordFormat::Warc, b"\x28\xb5\x2f\xfd"),
        (RecordFormat::Warc, b"WARC/\x28\xb5\x2f\xfd"),
        (RecordFormat::Arc, b"http://a/\n"),
    ] {
        let file = |bytes: usize| [&first_record(format)[..], &unit.repeat(bytes / unit.len())].concat();
        let (short_file, long_file) = (file(BLOCK_BYTES / 10), file(BLOCK_BYTES / 10 * 8));
        let ratios = std::iter::repeat_with(|| seconds(&long_file) / seconds(&short_file));
        assert!(ratios.take(20).any(|ratio| ratio < 24.0), "{:?}", unit.escape_ascii().to_string());
    }
}
