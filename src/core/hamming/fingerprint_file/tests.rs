use std::sync::Arc;

use proptest::prelude::*;

use super::super::coding::tests::fingerprints;
use super::*;
use crate::hamming::coding::Coder;
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::{Bytes, RandomAccess};

fn open(bytes: &[u8]) -> Result<FingerprintFile> {
    FingerprintFile::open("part-00000.fp", Arc::new(Bytes(bytes.to_vec())))
}

fn doc_ids(sorted: &[u64]) -> Vec<u64> {
    (0..sorted.len() as u64).map(webtwin_base::ids::splitmix64).collect()
}

fn all(file: &FingerprintFile) -> Result<Vec<u64>> {
    let mut rows = vec![1, 2, 3];
    file.decode_all(&mut rows).map(|()| rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn chunk_returns_its_rows_by_block_and_as_a_whole(
        sorted in fingerprints(64),
        coder in prop::sample::select(&Coder::ALL[..]),
        from in 0usize..3000,
        length in 0usize..3000,
    ) {
        let ids = doc_ids(&sorted);
        let bytes = chunk(64, coder, "recipe-1", &sorted, Some(&ids)).unwrap();
        let file = open(&bytes).unwrap();
        file.verify().unwrap();
        prop_assert_eq!(&all(&file).unwrap(), &sorted);
        let mut rows = Vec::new();
        for block in 0..file.blocks() {
            file.decode_block(block, &mut rows).unwrap();
            prop_assert_eq!(&rows, &sorted[file.rows_of(block)]);
        }
        let from = from.min(sorted.len());
        let end = (from + length).min(sorted.len());
        prop_assert_eq!(&file.doc_ids(from..end).unwrap(), &ids[from..end]);
    }

    #[test]
    fn a_set_is_its_chunks_one_after_the_other(sorted in fingerprints(32), rows in 1usize..1000) {
        let ids = doc_ids(&sorted);
        let mut writer = ChunkWriter::new(32, Coder::EliasFano, "recipe-1", true).with_chunk_rows(rows);
        let mut written = Vec::new();
        for (&fingerprint, &doc_id) in sorted.iter().zip(&ids) {
            written.extend(writer.push(fingerprint, doc_id).unwrap());
        }
        let (last, manifest) = writer.finish().unwrap();
        written.extend(last);
        let manifest = FingerprintManifest::from_json(NAME, &manifest.to_json()).unwrap();
        prop_assert_eq!(manifest.chunks.len(), sorted.len().div_ceil(rows));
        let (mut rows, mut found_ids) = (Vec::new(), Vec::new());
        for (entry, written) in manifest.chunks.iter().zip(&written) {
            prop_assert!(entry.name == written.name && entry.is(&written.bytes));
            let file = open(&written.bytes).unwrap();
            prop_assert_eq!((file.header().first, file.header().last), (entry.first, entry.last));
            rows.extend(all(&file).unwrap());
            found_ids.extend(file.doc_ids(0..entry.count as usize).unwrap());
        }
        prop_assert_eq!((rows, found_ids), (sorted, ids));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn each_fingerprint_is_in_one_part_with_all_its_rows(
        runs in prop::collection::vec((0u64..99, 0usize..3000), 0..12), parts in 1usize..9
    ) {
        let mut sorted: Vec<u64> = runs.iter().flat_map(|&(value, copies)| vec![value; copies]).collect();
        sorted.sort_unstable();
        let file = open(&chunk(64, Coder::EliasFano, "recipe-1", &sorted, None).unwrap()).unwrap();
        let (mut report, mut rows) = (Vec::new(), vec![7; 3]);
        for part in 0..parts {
            let first = file.decode_part(part, parts, &mut rows).unwrap();
            prop_assert!(rows.is_empty() || first == report.len());
            prop_assert!(rows.is_empty() || report.last() != rows.first());
            report.extend_from_slice(&rows);
        }
        prop_assert_eq!(report, sorted);
    }
}

#[test]
fn empty_single_and_extreme_chunks_are_read() {
    for sorted in [vec![], vec![9], vec![0, u64::MAX], vec![u64::MAX; 2500]] {
        for coder in Coder::ALL {
            let file = open(&chunk(64, coder, "recipe-1", &sorted, None).unwrap()).unwrap();
            assert_eq!(all(&file).unwrap(), sorted);
            assert!(file.doc_ids(0..sorted.len()).unwrap().is_empty());
            assert!(!file.header().doc_ids);
        }
    }
}

#[test]
fn any_changed_byte_is_detected() {
    let sorted: Vec<u64> = (0..60).map(|at| at * at * 0x0123_4567_89ab).collect();
    for coder in Coder::ALL {
        let ids = doc_ids(&sorted);
        let bytes = chunk(64, coder, "recipe-1", &sorted, Some(&ids)).unwrap();
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                let noticed = match open(&bytes) {
                    Err(error) => {
                        assert_eq!(error.exit_code(), 3);
                        true
                    }
                    Ok(file) => {
                        let rows = all(&file);
                        assert!(rows.is_err() || rows.unwrap() == sorted);
                        let outcome = file.doc_ids(0..60);
                        assert!(outcome.is_err() || outcome.unwrap() == ids);
                        file.verify().is_err()
                    }
                };
                assert!(noticed, "{coder:?}: byte {at}");
            }
        }
        for cut in 0..bytes.len() {
            assert!(open(&bytes[..cut]).is_err(), "{coder:?}: cut at {cut}");
        }
    }
}

#[test]
fn file_of_another_kind_or_format_is_distinguished_from_a_damaged_one() {
    let report = |bytes: &[u8]| open(bytes).err().unwrap().to_string();
    let mut bytes = chunk(64, Coder::EliasFano, "recipe-1", &[1, 2, 3], None).unwrap();
    assert!(report(b"some text").contains("not a fingerprint file"));
    assert!(report(&[&bytes[..], b"more"].concat()).contains("bytes by its head"));
    bytes[8] = 2;
    let message = report(&bytes);
    assert!(
        message.contains("part-00000.fp") && message.contains("format 2, but this build reads format 1"),
        "{message}"
    );
}

#[test]
fn a_coder_that_this_build_does_not_read_is_named() {
    let message = "encoded as `huffman`, which this build does not read; make the fingerprint file again";
    let header = open(&chunk(64, Coder::EliasFano, "recipe-1", &[1], None).unwrap()).unwrap().header().clone();
    let mut header_json = serde_json::to_value(&header).unwrap();
    header_json["coder"] = "huffman".into();
    let head = super::super::sections::head(KIND, &header_json, &[&[][..]; 5]);
    let error = open(&head).err().unwrap().to_string();
    assert!(error.contains(message), "{error}");
    let manifest = ChunkWriter::new(8, Coder::EliasFano, "recipe-1", false).finish().unwrap().1.to_json();
    let manifest = String::from_utf8(manifest).unwrap().replace("elias-fano", "huffman");
    let error = FingerprintManifest::from_json(NAME, manifest.as_bytes()).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn rejects_directory_larger_than_its_bytes() {
    let sorted: Vec<u64> = (0..9).collect();
    let header = open(&chunk(64, Coder::EliasFano, "recipe-1", &sorted, None).unwrap()).unwrap().header().clone();
    let long_header = ChunkHeader { count: 1 << 31, ..header };
    let mut directory = 8u64.to_le_bytes().to_vec();
    directory.extend([1u32 << 31, 20, 0].iter().flat_map(|number| number.to_le_bytes()));
    let sections: [&[u8]; 5] = [&[], &directory, &[], &[0; 20], &[]];
    let mut bytes = super::super::sections::head(KIND, &long_header, &sections);
    bytes.extend(sections.concat());
    assert!(open(&bytes).err().unwrap().to_string().contains("its directory contradicts itself"));
}

#[test]
fn unsorted_or_too_wide_rows_are_an_internal_error() {
    let defect = |made: Result<Vec<u8>>| matches!(made, Err(Error::Invariant(_)));
    assert!(defect(chunk(64, Coder::Raw, "recipe-1", &[2, 1], None)));
    assert!(defect(chunk(8, Coder::Raw, "recipe-1", &[256], None)));
    assert!(defect(chunk(8, Coder::Raw, "recipe-1", &[1, 2], Some(&[7]))));
    let mut writer = ChunkWriter::new(64, Coder::Raw, "recipe-1", false).with_chunk_rows(1);
    assert!(writer.push(5, 0).unwrap().is_some());
    assert!(writer.push(4, 0).is_err());
}

#[test]
fn a_manifest_that_contradicts_itself_is_refused() {
    let mut writer = ChunkWriter::new(8, Coder::EliasFano, "recipe-1", false).with_chunk_rows(2);
    for fingerprint in [1, 2, 3, 4, 5] {
        writer.push(fingerprint, 0).unwrap();
    }
    let good = writer.finish().unwrap().1;
    let refusal = |change: fn(&mut FingerprintManifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        FingerprintManifest::from_json("set/fingerprints.json", &manifest.to_json()).unwrap_err().to_string()
    };
    assert_eq!(FingerprintManifest::from_json(NAME, &good.to_json()).unwrap(), good);
    assert!(refusal(|manifest| manifest.format = 7).contains("format 7, but this build reads format 1"));
    assert!(refusal(|manifest| manifest.count = 9).contains("5 fingerprints, but its count is 9"));
    assert!(refusal(|manifest| manifest.chunks.swap(0, 1)).contains("ascending"));
    assert!(refusal(|manifest| manifest.chunks[2].last = 999).contains("wider"));
    assert!(refusal(|manifest| manifest.f = 65).contains("65 bits"));
    assert!(refusal(|manifest| manifest.chunks[1].name = "../x".into()).contains("not in its folder"));
    assert!(
        FingerprintManifest::from_json(NAME, b"[]")
            .unwrap_err()
            .to_string()
            .contains("not a valid list of fingerprint files")
    );
}

#[test]
fn a_chunk_of_format_1_keeps_its_bytes() {
    let bytes =
        chunk(64, Coder::EliasFano, "simhash-1", &[3, 3, 5, 0x100, 0x1234], Some(&[10, 11, 12, 13, 14])).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, include_str!("../../../../tests/data/hamming/chunk-format-1.hex").trim());
}

/// A file that records all reads.
struct Counting(Vec<u8>, std::sync::Mutex<Vec<(u64, usize)>>);

impl RandomAccess for Counting {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.1.lock().unwrap().push((offset, length));
        Bytes(&self.0).read_at(offset, length)
    }
}

#[test]
fn reading_fingerprints_reads_no_doc_ids() {
    let sorted: Vec<u64> = (0..20_000).map(|at| at << 40).collect();
    let bytes = chunk(64, Coder::EliasFano, "recipe-1", &sorted, Some(&doc_ids(&sorted))).unwrap();
    let doc_ids_from = bytes.len() as u64 - 160_000;
    let file = Arc::new(Counting(bytes, Default::default()));
    let chunk = FingerprintFile::open("chunk", file.clone()).unwrap();
    let mut rows = Vec::new();
    chunk.decode_block(7, &mut rows).unwrap();
    let (_, length) = *file.1.lock().unwrap().last().unwrap();
    assert!(length < 8 * rows.len());
    chunk.decode_all(&mut rows).unwrap();
    let reads = file.1.lock().unwrap().clone();
    assert!(reads.iter().skip(1).all(|&(offset, length)| offset + length as u64 <= doc_ids_from), "{reads:?}");
}
