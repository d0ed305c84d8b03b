//! What a report says of the duplicates in a corpus.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sets::Row;

/// Clusters of duplicates in a corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clusters {
    /// The largest ones, the largest first.
    pub shown: Vec<Cluster>,
    /// How many there are in all.
    pub all: u64,
}

/// A record that stays, and those that are removed in its favour.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// The record that stays.
    pub kept: Record,
    /// Number of removed records.
    pub removed: u64,
    /// The same by reason: `exact`, `near`, `against`.
    pub removed_by: BTreeMap<String, u64>,
    /// Removed records that are least like it, the least first.
    pub members: Vec<Duplicate>,
    /// The text that stays next to that of the first member; empty if both are equal or were not read.
    pub diff: Vec<Row>,
    /// Why the texts could not be read again; empty if they could, or were not wanted.
    pub unread: String,
}

/// Name and place of a record of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Its id.
    pub id: String,
    /// File with it.
    pub file: String,
    /// Its row there, from 0.
    pub row: u64,
}

/// A record that is removed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Duplicate {
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// `exact`, `near` or `against`.
    pub why: String,
    /// Resemblance to the record that stays.
    pub similarity: f64,
}
