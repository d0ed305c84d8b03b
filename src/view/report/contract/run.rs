//! Provenance of the figures of a report.

use std::collections::BTreeMap;

use serde::Serialize;

use super::LabeledCount;

/// Provenance of the figures of a report.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunFacts {
    /// Number of records read.
    pub read: u64,
    /// Number of records kept as pages, or in a corpus.
    pub kept: u64,
    /// Number of records of a corpus that were removed, or annotated, as duplicates. `None` for a
    /// job that reads pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// Number of records not kept, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Number of pages kept after a part of them was repaired, by reason.
    #[serde(rename = "mended")]
    pub repaired: BTreeMap<String, u64>,
    /// Number of inputs that end within a record.
    pub torn: u64,
    /// Number of inputs with records that were not kept.
    pub inputs_with_rejected: u64,
    /// Inputs with the most records that were not kept, the most first.
    pub rejected_by_input: Vec<RejectingInput>,
    /// Amounts of text that were left out, with the reason.
    pub left_out: Vec<LabeledCount>,
    /// Settings that differ from the default: value as JSON by dotted name.
    pub settings: BTreeMap<String, String>,
    /// Recipes of ids and fingerprints.
    pub recipes: BTreeMap<String, String>,
    /// Number of rows of each table.
    pub tables: BTreeMap<String, u64>,
    /// Facts that are specific to this run of the job. `None` if not requested.
    pub machine: Option<Machine>,
}

/// Input with records that were not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RejectingInput {
    /// Name of the input.
    pub source: String,
    /// Number of records not kept, by reason.
    pub by_reason: BTreeMap<String, u64>,
}

/// Facts that differ between runs of the same job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Folder of the result.
    pub folder: String,
    /// Version and commit of the program that wrote the result.
    pub build: String,
    /// Number of workers.
    pub workers: u64,
    /// Stages in order, with their seconds.
    pub seconds: Vec<Stage>,
    /// Peak memory of process 0, in bytes.
    pub peak_memory_bytes: u64,
    /// Folder in which the program was started.
    pub started_in: String,
    /// Number of files of the result.
    pub files: u64,
    /// Size of the files, in bytes.
    pub bytes: u64,
}

/// Stage of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Name of the stage.
    pub stage: String,
    /// Duration in seconds.
    pub seconds: f64,
}
