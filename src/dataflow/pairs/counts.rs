//! What is counted on the way to the Overlap table.

use serde::{Deserialize, Serialize};

/// What was counted on the way, this worker's share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapCounts {
    /// Rows of `FPrint-DocID`.
    pub tuples: u64,
    /// Distinct chunks.
    pub chunks: u64,
    /// Chunks found to be site furniture, and their rows.
    pub template_chunks: u64,
    /// Rows of these.
    pub template_tuples: u64,
    /// Chunks on too many pages, and their rows.
    pub frequent_chunks: u64,
    /// Rows of these.
    pub frequent_tuples: u64,
    /// Pairs of pages that share a chunk that counts, once for each.
    pub emitted: u64,
    /// Of these, those left when pages that cannot be in a similar pair are taken out.
    pub left: u64,
    /// Pairs that are similar.
    pub similar: u64,
    /// Similar pairs that the guard took away.
    pub guarded: u64,
}

impl std::ops::Add<&OverlapCounts> for OverlapCounts {
    type Output = OverlapCounts;

    fn add(self, other: &OverlapCounts) -> OverlapCounts {
        OverlapCounts {
            tuples: self.tuples + other.tuples,
            chunks: self.chunks + other.chunks,
            template_chunks: self.template_chunks + other.template_chunks,
            template_tuples: self.template_tuples + other.template_tuples,
            frequent_chunks: self.frequent_chunks + other.frequent_chunks,
            frequent_tuples: self.frequent_tuples + other.frequent_tuples,
            emitted: self.emitted + other.emitted,
            left: self.left + other.left,
            similar: self.similar + other.similar,
            guarded: self.guarded + other.guarded,
        }
    }
}
