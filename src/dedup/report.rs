//! Totals of a run: the file `_webtwin/summary`, and notices for users.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::corpus::Corpus;
use super::counts::{self, ValueCounts};
use super::inputs::Inputs;
use super::settings::{DedupSettings, KeepRule};
use super::verdicts::Verdicts;
use webtwin_base::error::Result;

/// Maximum number of clusters in the summary's list of the largest ones.
const MAX_CLUSTERS: usize = 20;

/// Divisor of the number of records. A cluster of at least this fraction is reported as a notice.
const GIANT_SHARE: u64 = 20;

/// Totals of a run. They contain no times or machines, so equal results have equal summaries.
#[derive(Debug, Clone, Serialize)]
pub struct DedupSummary {
    /// Numbers of records of the input by outcome: read = kept + removed + rejected.
    pub records: CorpusRecordTotals,
    /// Total lengths of texts.
    pub text_bytes: TextBytes,
    /// Number of records of `against`.
    pub against: u64,
    /// Number of texts that are only white space. They are kept and are not duplicates of each
    /// other.
    pub empty_texts: u64,
    /// Number of records without a value in the id field. Their file and row serve as the id.
    pub without_id: u64,
    /// Number of records without a value for the keep rule. They come last.
    pub without_key: u64,
    /// Number of pairs of sets that were compared.
    pub compared: u64,
    /// Number of kept records in favour of which others are removed.
    pub clusters: u64,
    /// Numbers of clusters by class of size. The size includes the kept record.
    pub cluster_sizes: Vec<ClusterSizes>,
    /// Largest clusters.
    pub largest_clusters: Vec<DuplicateCluster>,
    /// Counts by file of the input.
    pub files: Vec<FileCounts>,
    /// Counts by value of each field of `--count-by`, in descending order of frequency.
    pub counts_by: BTreeMap<String, Vec<ValueCounts>>,
    /// Settings that the result depends on.
    pub settings: Value,
}

/// Numbers of records of the input by outcome.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CorpusRecordTotals {
    /// Number of records read.
    pub read: u64,
    /// Number of records kept.
    pub kept: u64,
    /// Total number of records removed (or annotated as duplicates).
    pub removed: u64,
    /// Number of records removed by reason.
    pub removed_by: BTreeMap<&'static str, u64>,
    /// Total number of records rejected.
    pub rejected: u64,
    /// Number of records rejected by reason.
    pub rejected_by: BTreeMap<&'static str, u64>,
}

/// Total lengths of texts in bytes, by the outcome of their records.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct TextBytes {
    /// Texts of kept records.
    pub kept: u64,
    /// Texts of removed records.
    pub removed: u64,
}

/// Kept record with duplicates.
#[derive(Debug, Clone, Serialize)]
pub struct DuplicateCluster {
    /// Id of the record.
    pub id: String,
    /// File with the record.
    pub file: String,
    /// Row of the record in the file, from 0.
    pub row: u64,
    /// Number of records removed in its favour.
    pub removed: u64,
}

/// Number of clusters of a class of sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClusterSizes {
    /// Minimum number of records of such a cluster.
    pub from: u64,
    /// Maximum number of records of such a cluster; `None` for no limit.
    pub to: Option<u64>,
    /// Number of clusters.
    pub clusters: u64,
}

/// Minimum number of records of a cluster in each class of sizes.
const SIZES: [u64; 7] = [2, 3, 4, 5, 10, 100, 1000];

/// Counts clusters by size. Each entry begins with the number of records removed in the cluster.
fn cluster_sizes(clusters: &[(u64, u32)]) -> Vec<ClusterSizes> {
    let classes = SIZES.iter().enumerate().map(|(number, &minimum)| {
        let maximum = SIZES.get(number + 1).map(|next| next - 1);
        let is_of_class = |(removed, _): &&(u64, u32)| (minimum..=maximum.unwrap_or(u64::MAX)).contains(&(removed + 1));
        ClusterSizes { from: minimum, to: maximum, clusters: clusters.iter().filter(is_of_class).count() as u64 }
    });
    classes.filter(|class| class.clusters > 0).collect()
}

/// Counts of a file.
#[derive(Debug, Clone, Serialize)]
pub struct FileCounts {
    /// File name.
    pub file: String,
    /// File format.
    pub format: &'static str,
    /// Number of records kept.
    pub kept: u64,
    /// Number of records removed.
    pub removed: u64,
    /// Number of records rejected.
    pub rejected: u64,
}

impl DedupSummary {
    /// Counts the records by outcome.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Usage`] if a field has too many values.
    pub fn new(
        settings: &DedupSettings,
        inputs: &Inputs,
        corpus: &Corpus,
        verdicts: &Verdicts,
        n_compared: u64,
    ) -> Result<DedupSummary> {
        let mut records = CorpusRecordTotals::default();
        let mut text_bytes = TextBytes::default();
        let mut favoured: Vec<u32> = Vec::new();
        let mut files = Vec::new();
        // Records of `against` are not part of the totals.
        for (number, file) in inputs.files.iter().enumerate().skip(inputs.n_against) {
            let file_rejections = corpus.rejections.iter().filter(|rejection| rejection.file as usize == number);
            let mut counts =
                FileCounts { file: file.name().into(), format: file.format.name(), kept: 0, removed: 0, rejected: 0 };
            for rejection in file_rejections {
                counts.rejected += 1;
                *records.rejected_by.entry(rejection.reason.as_str()).or_default() += 1;
            }
            for batch in corpus.of_file(number as u32) {
                for (record, row) in (batch.first..).zip(&batch.records) {
                    match verdicts.removal(record) {
                        None => {
                            counts.kept += 1;
                            text_bytes.kept += u64::from(row.text_bytes);
                        }
                        Some(removal) => {
                            counts.removed += 1;
                            text_bytes.removed += u64::from(row.text_bytes);
                            *records.removed_by.entry(removal.why.as_str()).or_default() += 1;
                            // One entry for each removed record; equal entries form a cluster.
                            favoured.push(removal.kept_record);
                        }
                    }
                }
            }
            records.kept += counts.kept;
            records.removed += counts.removed;
            records.rejected += counts.rejected;
            files.push(counts);
        }
        records.read = records.kept + records.removed + records.rejected;
        favoured.sort_unstable();
        let mut clusters: Vec<(u64, u32)> =
            favoured.chunk_by(|x, y| x == y).map(|same| (same.len() as u64, same[0])).collect();
        let (n_clusters, cluster_sizes) = (clusters.len() as u64, cluster_sizes(&clusters));
        // Ties are decided by the number of the record, so that the summary is deterministic.
        clusters.sort_unstable_by_key(|&(removed, record)| (std::cmp::Reverse(removed), record));
        clusters.truncate(MAX_CLUSTERS);
        let cluster = |(n_removed, record)| {
            let (file, row) = corpus.place(record);
            let file = inputs.files[file as usize].name().into();
            Ok(DuplicateCluster { id: corpus.id(record)?, file, row, removed: n_removed })
        };
        Ok(DedupSummary {
            records,
            text_bytes,
            against: corpus.against().into(),
            empty_texts: corpus.empty,
            without_id: corpus.n_without_id,
            without_key: corpus.n_without_key,
            compared: n_compared,
            clusters: n_clusters,
            cluster_sizes,
            largest_clusters: clusters.into_iter().map(cluster).collect::<Result<_>>()?,
            files,
            counts_by: counts::count(&settings.count_by, corpus, verdicts)?,
            settings: settings.answer(),
        })
    }

    /// Returns notices about results that a user may not expect.
    pub fn surprises(&self, settings: &DedupSettings) -> Vec<String> {
        let mut lines = Vec::new();
        if self.records.rejected > 0 {
            let reasons: Vec<String> =
                self.records.rejected_by.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
            lines.push(format!("{} records rejected: {}", self.records.rejected, reasons.join(", ")));
        }
        if self.empty_texts > 0 {
            lines.push(format!("{} texts are empty and are all kept", self.empty_texts));
        }
        if self.without_id > 0 {
            lines.push(format!("{} records have no id; FILE:ROW is used instead", self.without_id));
        }
        if self.without_key > 0 && settings.keep != KeepRule::First {
            lines.push(format!(
                "{} records lack the field that --keep {} compares; other records are preferred to them",
                self.without_key,
                settings.keep.name()
            ));
        }
        if let Some(largest_cluster) = self.largest_clusters.first()
            && largest_cluster.removed >= 100
            && largest_cluster.removed * GIANT_SHARE >= self.records.read
        {
            lines.push(format!(
                "{} records are duplicates of one record, {}",
                largest_cluster.removed, largest_cluster.id
            ));
        }
        lines
    }
}
