//! Fingerprint files: the written rows are read back by blocks, by parts and as a whole. Damage
//! causes an error or changes nothing, and the statements of a file about itself are verified.

use std::sync::Arc;

use super::{damaged, first};
use webtwin_base::ids::DocId;
use webtwin_base::read_at::Bytes;
use webtwin_core::hamming::coding::Coder;
use webtwin_core::hamming::fingerprint_file::{ChunkHeader, FORMAT, FingerprintFile, chunk};
use webtwin_core::hamming::sections::{FileKind, head};

const CODERS: [Coder; 2] = [Coder::EliasFano, Coder::Raw];

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    let Some((how, rest)) = first(data) else { return };
    let Some((f, rest)) = first(rest) else { return };
    let (coder, f) = (CODERS[how % 2], 1 + f as u32 % 64);
    match how / 2 % 3 {
        0 => drop(FingerprintFile::open("fuzzed", Arc::new(Bytes(rest.to_vec())))),
        1 => forged(coder, f, rest),
        _ => written(coder, f, rest, how >= 128),
    }
}

/// Checks a file with arbitrary sections that have correct checksums.
fn forged(coder: Coder, f: u32, rest: &[u8]) {
    let Some((&[count, unused, blocks], rest)) = rest.split_first_chunk::<3>() else { return };
    let mut rest = rest;
    let mut take = |bytes: usize| {
        let section;
        (section, rest) = rest.split_at(bytes.min(rest.len()));
        section
    };
    let (unused, directory) = (take(usize::from(unused)), take(20 * usize::from(blocks % 8)));
    let count = u64::from(count);
    let about = ChunkHeader { f, coder, recipe: "fuzzed".into(), count, first: 0, last: 0, doc_ids: false };
    let sections = [unused, directory, &[], rest, &[]];
    let kind = FileKind { magic: b"wt-fprnt", format: FORMAT, description: "a fingerprint file", remedy: "" };
    let bytes = [&head(kind, &about, &sections)[..], &sections.concat()].concat();
    let Ok(file) = FingerprintFile::open("fuzzed", Arc::new(Bytes(bytes))) else { return };
    look(&file);
    drop(file.verify());
}

/// Checks a file that the program has written, intact and damaged.
fn written(coder: Coder, f: u32, rest: &[u8], with_doc_ids: bool) {
    let (values, changes) = rest.split_at(rest.len() / 8 * 7);
    let mask = u64::MAX >> (64 - f);
    let mut fingerprints: Vec<u64> =
        values.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes) & mask).collect();
    fingerprints.sort_unstable();
    let doc_ids: Vec<DocId> = (0..fingerprints.len() as u64).map(|n| n ^ 0xabcd).collect();
    let whole = chunk(f, coder, "fuzzed", &fingerprints, with_doc_ids.then_some(&doc_ids)).expect("rows in order");
    let file =
        FingerprintFile::open("whole", Arc::new(Bytes(whole.clone()))).expect("the file was written by this target");
    assert_eq!(look(&file), Some((fingerprints.clone(), if with_doc_ids { doc_ids } else { Vec::new() })));
    file.verify().expect("the file was written by this target");
    let bytes = damaged(&whole, changes);
    if let Ok(other) = FingerprintFile::open("damaged", Arc::new(Bytes(bytes.clone()))) {
        let mut rows = Vec::new();
        let result = other.decode_all(&mut rows);
        assert!(result.is_err() || rows == fingerprints, "damage changes fingerprints without an error");
        let doc_ids = file.doc_ids(0..rows.len().min(fingerprints.len()));
        let others = other.doc_ids(0..fingerprints.len().min(other.header().count as usize));
        assert!(
            result.is_err() || others.is_err() || others.ok() == doc_ids.ok(),
            "damage changes doc ids without an error"
        );
        assert!(other.verify().is_err() || bytes.starts_with(&whole), "damage is not detected");
    }
}

/// Returns the fingerprints and doc ids of a readable file. Checks that reading by blocks and by
/// parts yields the same.
fn look(file: &FingerprintFile) -> Option<(Vec<u64>, Vec<DocId>)> {
    let mut fingerprints = Vec::new();
    file.decode_all(&mut fingerprints).ok()?;
    assert_eq!(fingerprints.len() as u64, file.header().count);
    let (mut by_block, mut rows) = (Vec::new(), Vec::new());
    for block in 0..file.blocks() {
        file.decode_block(block, &mut rows).expect("a block of a readable file can be read");
        by_block.extend_from_slice(&rows);
    }
    assert_eq!(by_block, fingerprints);
    if fingerprints.is_sorted() {
        for parts in [1, 2, 5] {
            let mut by_part = Vec::new();
            for part in 0..parts {
                let place = file.decode_part(part, parts, &mut rows).expect("a block of a readable file can be read");
                assert!(rows.is_empty() || place == by_part.len());
                by_part.extend_from_slice(&rows);
            }
            assert_eq!(by_part, fingerprints);
        }
    }
    file.doc_ids(0..fingerprints.len()).ok().map(|doc_ids| (fingerprints, doc_ids))
}
