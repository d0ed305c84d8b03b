//! Where the figures of a report come from.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Count;

/// Where the figures come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunFacts {
    /// Records read.
    pub read: u64,
    /// Records kept as pages, or of a corpus in it.
    pub kept: u64,
    /// Records of a corpus that were removed, or annotated, as duplicates; none for a job that reads pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// Records not kept, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Pages kept though something in them was mended, by reason.
    pub mended: BTreeMap<String, u64>,
    /// Inputs that end within a record.
    pub torn: u64,
    /// Inputs with records that were not kept.
    pub inputs_with_rejected: u64,
    /// The inputs with the most of them, most first.
    pub rejected_by_input: Vec<Rejected>,
    /// Text that was left out, and why.
    pub left_out: Vec<Count>,
    /// Settings that are not the default: dotted name, value as JSON.
    pub settings: BTreeMap<String, String>,
    /// Recipes behind ids and fingerprints.
    pub recipes: BTreeMap<String, String>,
    /// Rows of each table.
    pub tables: BTreeMap<String, u64>,
    /// What only this run of the job knows; none if it was not asked for.
    pub machine: Option<Machine>,
}

/// An input with records that were not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// The input.
    pub source: String,
    /// Records not kept, by reason.
    pub by_reason: BTreeMap<String, u64>,
}

/// What differs from run to run of the same job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// The folder of the result.
    pub folder: String,
    /// Version and commit of the program that wrote it.
    pub build: String,
    /// Workers.
    pub workers: u64,
    /// Stages in order, with their seconds.
    pub seconds: Vec<Stage>,
    /// Peak memory of process 0, in bytes.
    pub peak_memory_bytes: u64,
    /// Folder in which it was started.
    pub started_in: String,
    /// Files of the result, and their bytes.
    pub files: u64,
    /// See above.
    pub bytes: u64,
}

/// A stage of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Its name.
    pub stage: String,
    /// Seconds it took.
    pub seconds: f64,
}
