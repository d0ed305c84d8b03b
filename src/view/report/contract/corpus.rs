//! Duplicates of a corpus in a report.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sets::DiffRow;

/// Clusters of duplicates in a corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedClusters {
    /// Largest clusters, the largest first.
    pub shown: Vec<ReportedCluster>,
    /// Number of all clusters.
    pub all: u64,
}

/// Kept record, and the records that are removed in its favour.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedCluster {
    /// Kept record.
    pub kept: ReportedRecord,
    /// Number of removed records.
    pub removed: u64,
    /// Number of removed records by reason: `exact`, `near`, `against`.
    pub removed_by: BTreeMap<String, u64>,
    /// Removed records that are least similar to the kept one, the least similar first.
    pub members: Vec<Duplicate>,
    /// Text of the kept record next to that of the first member. Empty if both are equal or were
    /// not read.
    pub diff: Vec<DiffRow>,
    /// Reason why the texts could not be read again. Empty if they were read or not requested.
    pub unread: String,
}

/// Id and location of a record of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedRecord {
    /// Id of the record.
    pub id: String,
    /// File of the record.
    pub file: String,
    /// Row in the file, from 0.
    pub row: u64,
}

/// Removed record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Duplicate {
    /// Id and location of the record.
    #[serde(flatten)]
    pub record: ReportedRecord,
    /// `exact`, `near` or `against`.
    pub why: String,
    /// Resemblance to the kept record.
    pub similarity: f64,
}
