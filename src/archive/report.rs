//! Report of an archive: totals, and the expected content of each restored file.

use serde::{Deserialize, Serialize};

use webtwin_base::error::{Error, Result};
use webtwin_storage::location::Location;

/// File name of the summary.
pub(super) const SUMMARY: &str = "summary.json";

/// Numbers of records of the input, or of their bytes, by the outcome of the records. `read` is the
/// sum of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveCounts {
    /// Complete records in the input, or all of its bytes.
    pub read: u64,
    /// Records copied unchanged. For bytes, includes those that do not belong to complete records.
    pub copied: u64,
    /// Records written as revisits.
    pub revisits: u64,
    /// Near-copies written as differences.
    pub near: u64,
}

impl ArchiveCounts {
    fn add(&mut self, other: &ArchiveCounts) {
        self.read += other.read;
        self.copied += other.copied;
        self.revisits += other.revisits;
        self.near += other.near;
    }
}

/// Near-copies whose difference is smaller than the record, with their sizes in three forms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearSummary {
    /// Number of near-copies.
    pub records: u64,
    /// Size in the input, in bytes.
    pub stored_bytes: u64,
    /// Size as separate zstd frames of the same level, in bytes. Measured only if the differences
    /// are not written.
    pub zstd_bytes: Option<u64>,
    /// Size as differences, in bytes, including the records that replace them in the WARC files.
    pub near_bytes: u64,
}

impl NearSummary {
    pub(super) fn add(&mut self, other: &NearSummary) {
        self.records += other.records;
        self.stored_bytes += other.stored_bytes;
        self.near_bytes += other.near_bytes;
        self.zstd_bytes = other.zstd_bytes.map(|bytes| bytes + self.zstd_bytes.unwrap_or(0)).or(self.zstd_bytes);
    }
}

/// File of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSummary {
    /// Path of the file in the archive.
    pub path: String,
    /// Size of the original file, in bytes.
    pub bytes_in: u64,
    /// Size of the archived file in bytes, including the differences of its near-copies.
    pub bytes_out: u64,
    /// Numbers of records.
    pub records: ArchiveCounts,
    /// Bytes of the original file by the outcome of its records.
    #[serde(default)]
    pub bytes: ArchiveCounts,
    /// Number of ranges of bytes that do not belong to complete records, which are copied
    /// unchanged.
    pub others: u64,
    /// Total size of these ranges in bytes.
    pub other_bytes: u64,
    /// SHA-256, in hexadecimal, of the decompressed records and of the other bytes unchanged, in
    /// their order. Without other bytes it is the output of `zcat FILE | sha256sum`.
    pub sha256: String,
}

/// Content of an archive, as written to `summary.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveSummary {
    /// Numbers of records of all files.
    pub records: ArchiveCounts,
    /// Bytes of all original files by the outcome of the records.
    #[serde(default)]
    pub bytes: ArchiveCounts,
    /// Number of revisits and differences in `records` that refer to older archives.
    #[serde(default)]
    pub against: u64,
    /// Total size of the original files, in bytes.
    pub bytes_in: u64,
    /// Total size of the archived files, in bytes.
    pub bytes_out: u64,
    /// Number of copies that stay because a revisit would not be smaller.
    pub kept_small: u64,
    /// Number of copies that stay because a revisit of the input refers to them.
    pub kept_referred: u64,
    /// Number of copies that stay because no unambiguous name refers to their payload.
    #[serde(default)]
    pub kept_ambiguous: u64,
    /// Near-copies, written or only measured.
    pub near: NearSummary,
    /// All files, by path.
    pub files: Vec<FileSummary>,
}

impl ArchiveSummary {
    /// Sums up the files.
    pub(super) fn from_files(
        mut files: Vec<FileSummary>,
        near_summary: NearSummary,
        older_files: u64,
        [n_kept_small, n_kept_referred, kept_ambiguous]: [u64; 3],
    ) -> ArchiveSummary {
        files.sort_unstable_by(|x, y| x.path.cmp(&y.path));
        let (mut records, mut bytes) = (ArchiveCounts::default(), ArchiveCounts::default());
        for file in &files {
            records.add(&file.records);
            bytes.add(&file.bytes);
        }
        let (bytes_in, bytes_out) = files.iter().fold((0, 0), |(x, y), file| (x + file.bytes_in, y + file.bytes_out));
        ArchiveSummary {
            records,
            bytes,
            against: older_files,
            bytes_in,
            bytes_out,
            kept_small: n_kept_small,
            kept_referred: n_kept_referred,
            kept_ambiguous,
            near: near_summary,
            files,
        }
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        (serde_json::to_string_pretty(self).expect("a summary is plain values") + "\n").into_bytes()
    }

    /// Parses the summary of an archive.
    pub(super) fn read(folder: &Location, bytes: &[u8]) -> Result<ArchiveSummary> {
        serde_json::from_slice(bytes).map_err(|cause| {
            Error::input(
                folder.name(),
                format!("this build cannot read {SUMMARY}: {cause}; restore the archive with the build that wrote it"),
            )
        })
    }
}

/// Totals of a restoration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Number of files.
    pub files: u64,
    /// Number of files that are identical to the originals, because nothing in them was replaced.
    pub same_files: u64,
    /// Number of records.
    pub records: u64,
    /// Number of records that had been replaced.
    pub restored: u64,
    /// Number of bytes written.
    pub bytes: u64,
}
