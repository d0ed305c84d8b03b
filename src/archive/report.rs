//! What came of an archive: totals, and what each file of it should become again.

use serde::{Deserialize, Serialize};

use webtwin_base::error::{Error, Result};
use webtwin_storage::location::Location;

/// Name of the file with the summary.
pub(super) const SUMMARY: &str = "summary.json";

/// Records, or bytes, of the input, by what became of the records; `read` is the sum of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Whole records in the input; all of its bytes.
    pub read: u64,
    /// Copied as they are, with the bytes that are no whole records.
    pub copied: u64,
    /// Written as revisits.
    pub revisits: u64,
    /// Near-copies, written as differences.
    pub near: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.read += other.read;
        self.copied += other.copied;
        self.revisits += other.revisits;
        self.near += other.near;
    }
}

/// Near-copies for which a difference is smaller: the bytes that they take in three forms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearSummary {
    /// How many.
    pub records: u64,
    /// As they are in the input.
    pub stored_bytes: u64,
    /// Each alone in a zstd frame of the same level; measured only if they are not written.
    pub zstd_bytes: Option<u64>,
    /// As differences, with what stands for them in the WARC files.
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

/// A file of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSummary {
    /// Its path in the archive.
    pub path: String,
    /// Its bytes before.
    pub bytes_in: u64,
    /// Its bytes now, with those of the differences of its near-copies.
    pub bytes_out: u64,
    /// Its records.
    pub records: Counts,
    /// Its bytes before.
    #[serde(default)]
    pub bytes: Counts,
    /// Stretches of bytes that are no whole records, copied as they are.
    pub others: u64,
    /// Their bytes.
    pub other_bytes: u64,
    /// SHA-256, in hexadecimal, of its records, decompressed, and other bytes, as they are, in their order. Without other
    /// bytes, what `zcat FILE | sha256sum` prints.
    pub sha256: String,
}

/// What an archive holds: the content of `summary.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Records of all files.
    pub records: Counts,
    /// Bytes of all files before.
    #[serde(default)]
    pub bytes: Counts,
    /// Revisits and differences, of `records`, that refer to older archives.
    #[serde(default)]
    pub against: u64,
    /// Bytes of all files before.
    pub bytes_in: u64,
    /// Bytes of all files now.
    pub bytes_out: u64,
    /// Copies that stay because a revisit would not be smaller.
    pub kept_small: u64,
    /// Copies that stay because a revisit of the input refers to them.
    pub kept_referred: u64,
    /// Copies that stay because no name leads to their payload and to no other.
    #[serde(default)]
    pub kept_ambiguous: u64,
    /// Near-copies, written or only measured.
    pub near: NearSummary,
    /// Each file, by path.
    pub files: Vec<FileSummary>,
}

impl Summary {
    /// Sums up files.
    pub(super) fn of(
        mut files: Vec<FileSummary>,
        near: NearSummary,
        against: u64,
        [kept_small, kept_referred, kept_ambiguous]: [u64; 3],
    ) -> Summary {
        files.sort_unstable_by(|x, y| x.path.cmp(&y.path));
        let (mut records, mut bytes) = (Counts::default(), Counts::default());
        for file in &files {
            records.add(&file.records);
            bytes.add(&file.bytes);
        }
        let (bytes_in, bytes_out) = files.iter().fold((0, 0), |(x, y), file| (x + file.bytes_in, y + file.bytes_out));
        Summary { records, bytes, against, bytes_in, bytes_out, kept_small, kept_referred, kept_ambiguous, near, files }
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        (serde_json::to_string_pretty(self).expect("a summary is plain values") + "\n").into_bytes()
    }

    /// Reads the summary of an archive.
    pub(super) fn read(folder: &Location, bytes: &[u8]) -> Result<Summary> {
        serde_json::from_slice(bytes).map_err(|cause| {
            Error::input(folder.name(), format!("{SUMMARY} is not that of an archive that this build knows: {cause}"))
        })
    }
}

/// What was restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Files.
    pub files: u64,
    /// Those of them that are the originals to the byte, for nothing in them was replaced.
    pub same_files: u64,
    /// Records.
    pub records: u64,
    /// Those of them that had been replaced.
    pub restored: u64,
    /// Bytes written.
    pub bytes: u64,
}
