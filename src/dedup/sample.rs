//! Estimates from the beginnings of some files: their compression ratio, and the length of their
//! records.

use std::collections::BTreeMap;

use super::batches::{LineBatches, RecordBatch};
use super::inputs::{CorpusFile, CorpusFormat};
use webtwin_base::error::Result;
use webtwin_job::RecordLimits;
use webtwin_pages::decoded::Compression;

/// Maximum number of files in the sample.
const FILES: usize = 16;

/// Approximate number of decoded bytes read from each file.
const BYTES: u64 = 4 << 20;

/// Assumed length of a text in bytes, for formats that are not sampled. The texts of a corpus are
/// rarely shorter.
const TEXT_BYTES: u64 = 1000;

/// Estimated numbers of records and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CorpusEstimate {
    /// Decoded size of the records in bytes.
    pub decoded_bytes: u64,
    /// Number of records.
    pub records: u64,
}

/// Totals of the sampled beginnings of files of one format.
#[derive(Debug, Default)]
struct Beginnings {
    encoded_bytes: u64,
    decoded_bytes: u64,
    lines: u64,
}

/// Estimates the content of all files from the beginnings of some of them.
///
/// # Errors
/// Returns any error of the store.
///
/// # Cost
/// Reads 4 MiB, decoded, of at most 16 files.
pub(crate) fn expected(files: &[CorpusFile], limits: &RecordLimits) -> Result<CorpusEstimate> {
    let mut by_format: BTreeMap<&str, Beginnings> = BTreeMap::new();
    let lines: Vec<&CorpusFile> = files.iter().filter(|file| matches!(file.format, CorpusFormat::Jsonl(_))).collect();
    let step = lines.len().div_ceil(FILES).max(1);
    for file in lines.iter().step_by(step) {
        let beginnings = by_format.entry(file.format.name()).or_default();
        let mut batches = LineBatches::open(file, limits)?;
        let mut decoded_bytes = 0;
        while decoded_bytes < BYTES
            && let Some(RecordBatch::Lines { bytes, .. }) = batches.next()?
        {
            decoded_bytes += bytes.len() as u64;
            beginnings.lines += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        }
        beginnings.encoded_bytes += batches.take_bytes_read();
        beginnings.decoded_bytes += decoded_bytes;
    }
    let expected_of = |file: &CorpusFile| match by_format.get(file.format.name()) {
        Some(&Beginnings { encoded_bytes, decoded_bytes, lines }) if encoded_bytes > 0 && decoded_bytes > 0 => {
            let scaled = |n: u64| (u128::from(file.stamp.bytes) * u128::from(n) / u128::from(encoded_bytes)) as u64;
            CorpusEstimate { decoded_bytes: scaled(decoded_bytes), records: scaled(lines.max(1)) }
        }
        _ => {
            let decoded_bytes = file.stamp.bytes * usual_ratio(file.format);
            CorpusEstimate { decoded_bytes, records: decoded_bytes / TEXT_BYTES }
        }
    };
    Ok(files.iter().map(expected_of).fold(CorpusEstimate::default(), |sum, file| CorpusEstimate {
        decoded_bytes: sum.decoded_bytes + file.decoded_bytes,
        records: sum.records + file.records,
    }))
}

/// Returns the usual ratio of decoded to stored size.
fn usual_ratio(format: CorpusFormat) -> u64 {
    match format {
        CorpusFormat::Jsonl(Compression::None) => 1,
        CorpusFormat::Jsonl(Compression::Gzip) => 3,
        CorpusFormat::Jsonl(Compression::Zstd | Compression::Bzip2) => 4,
        CorpusFormat::Jsonl(Compression::Xz) => 5,
        CorpusFormat::Parquet => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::super::inputs::tests::found;
    use super::*;

    #[test]
    fn totals_of_all_files_are_estimated_from_the_beginnings_of_some() {
        let folder = tempfile::tempdir().unwrap();
        let line = |at: u32| format!("{{\"text\":\"{at:040} {}\"}}\n", xxhash_rust::xxh3::xxh3_64(&at.to_le_bytes()));
        let text: String = (0..60_000).map(line).collect();
        std::fs::write(folder.path().join("a.jsonl"), &text).unwrap();
        std::fs::write(folder.path().join("b.jsonl"), &text).unwrap();
        let files = found(folder.path());
        let message = expected(&files, &RecordLimits::default()).unwrap();
        assert_eq!(message.decoded_bytes, 2 * text.len() as u64);
        assert!(message.records.abs_diff(120_000) < 1200, "{message:?}");

        for file in ["a.jsonl", "b.jsonl"] {
            let bytes = zstd::bulk::compress(text.as_bytes(), 3).unwrap();
            std::fs::write(folder.path().join(file), bytes).unwrap();
        }
        let message = expected(&found(folder.path()), &RecordLimits::default()).unwrap();
        assert!(message.decoded_bytes.abs_diff(2 * text.len() as u64) < text.len() as u64 / 5, "{message:?}");
        assert!(message.records.abs_diff(120_000) < 12_000, "{message:?}");
        assert_eq!(expected(&[], &RecordLimits::default()).unwrap(), CorpusEstimate::default());
    }
}
