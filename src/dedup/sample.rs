//! Estimates from the beginnings of some files: their compression ratio, and the length of their
//! records.

use std::collections::BTreeMap;

use super::batches::{Batch, LineBatches};
use super::inputs::{Format, InputFile};
use webtwin_base::error::Result;
use webtwin_job::Limits;
use webtwin_pages::decoded::Compression;

/// Maximum number of files in the sample.
const FILES: usize = 16;

/// Approximate number of decoded bytes read from each file.
const BYTES: u64 = 4 << 20;

/// Assumed length of a text in bytes, for formats that are not sampled. The texts of a corpus are
/// rarely shorter.
const A_TEXT: u64 = 1000;

/// Estimated numbers of records and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Decoded size of the records in bytes.
    pub decoded_bytes: u64,
    /// Number of records.
    pub records: u64,
}

/// Totals of the sampled beginnings of files of one format.
#[derive(Debug, Default)]
struct Beginnings {
    encoded: u64,
    decoded: u64,
    lines: u64,
}

/// Estimates the content of all files from the beginnings of some of them.
///
/// # Errors
/// Returns any error of the store.
///
/// # Cost
/// Reads 4 MiB, decoded, of at most 16 files.
pub(crate) fn expected(files: &[InputFile], limits: &Limits) -> Result<Expected> {
    let mut seen: BTreeMap<&str, Beginnings> = BTreeMap::new();
    let lines: Vec<&InputFile> = files.iter().filter(|file| matches!(file.format, Format::Jsonl(_))).collect();
    let step = lines.len().div_ceil(FILES).max(1);
    for file in lines.iter().step_by(step) {
        let beginnings = seen.entry(file.format.name()).or_default();
        let mut batches = LineBatches::open(file, limits)?;
        let mut decoded = 0;
        while decoded < BYTES
            && let Some(Batch::Lines { bytes, .. }) = batches.next()?
        {
            decoded += bytes.len() as u64;
            beginnings.lines += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        }
        beginnings.encoded += batches.taken();
        beginnings.decoded += decoded;
    }
    let of_file = |file: &InputFile| match seen.get(file.format.name()) {
        Some(&Beginnings { encoded, decoded, lines }) if encoded > 0 && decoded > 0 => {
            let of_file = |n: u64| (u128::from(file.stamp.bytes) * u128::from(n) / u128::from(encoded)) as u64;
            Expected { decoded_bytes: of_file(decoded), records: of_file(lines.max(1)) }
        }
        _ => {
            let decoded_bytes = file.stamp.bytes * usual_ratio(file.format);
            Expected { decoded_bytes, records: decoded_bytes / A_TEXT }
        }
    };
    Ok(files.iter().map(of_file).fold(Expected::default(), |sum, file| Expected {
        decoded_bytes: sum.decoded_bytes + file.decoded_bytes,
        records: sum.records + file.records,
    }))
}

/// Returns the usual ratio of decoded to stored size.
fn usual_ratio(format: Format) -> u64 {
    match format {
        Format::Jsonl(Compression::None) => 1,
        Format::Jsonl(Compression::Gzip) => 3,
        Format::Jsonl(Compression::Zstd | Compression::Bzip2) => 4,
        Format::Jsonl(Compression::Xz) => 5,
        Format::Parquet => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::super::inputs::tests::found;
    use super::*;

    #[test]
    fn records_and_bytes_of_all_files_are_told_by_the_beginnings_of_some() {
        let folder = tempfile::tempdir().unwrap();
        let line = |at: u32| format!("{{\"text\":\"{at:040} {}\"}}\n", xxhash_rust::xxh3::xxh3_64(&at.to_le_bytes()));
        let text: String = (0..60_000).map(line).collect();
        std::fs::write(folder.path().join("a.jsonl"), &text).unwrap();
        std::fs::write(folder.path().join("b.jsonl"), &text).unwrap();
        let files = found(folder.path());
        let told = expected(&files, &Limits::default()).unwrap();
        assert_eq!(told.decoded_bytes, 2 * text.len() as u64);
        assert!(told.records.abs_diff(120_000) < 1200, "{told:?}");

        for file in ["a.jsonl", "b.jsonl"] {
            let bytes = zstd::bulk::compress(text.as_bytes(), 3).unwrap();
            std::fs::write(folder.path().join(file), bytes).unwrap();
        }
        let told = expected(&found(folder.path()), &Limits::default()).unwrap();
        assert!(told.decoded_bytes.abs_diff(2 * text.len() as u64) < text.len() as u64 / 5, "{told:?}");
        assert!(told.records.abs_diff(120_000) < 12_000, "{told:?}");
        assert_eq!(expected(&[], &Limits::default()).unwrap(), Expected::default());
    }
}
