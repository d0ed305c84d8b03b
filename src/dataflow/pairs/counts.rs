//! What is counted on the way to the Overlap table.

use serde::{Deserialize, Serialize};

use crate::overlap::filter::Verdict;

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
    /// Pairs that are similar.
    pub similar: u64,
    /// Similar pairs that the guard took away.
    pub guarded: u64,
}

impl OverlapCounts {
    /// Counts a chunk on so many pages, of which `centres` are no exact copies.
    pub fn add_chunk(&mut self, verdict: Verdict, pages: usize, centres: usize) {
        let (pages, centres) = (pages as u64, centres as u64);
        self.tuples += pages;
        self.chunks += 1;
        match verdict {
            Verdict::Counts => self.emitted += centres * centres.saturating_sub(1) / 2,
            Verdict::Template => {
                self.template_chunks += 1;
                self.template_tuples += pages;
            }
            Verdict::Frequent => {
                self.frequent_chunks += 1;
                self.frequent_tuples += pages;
            }
        }
    }

    /// Adds what chunks come to now, and takes away what they came to before.
    pub fn change(&mut self, now: &OverlapCounts, before: &OverlapCounts) {
        let sum = &*self + now;
        *self = OverlapCounts {
            tuples: sum.tuples - before.tuples,
            chunks: sum.chunks - before.chunks,
            template_chunks: sum.template_chunks - before.template_chunks,
            template_tuples: sum.template_tuples - before.template_tuples,
            frequent_chunks: sum.frequent_chunks - before.frequent_chunks,
            frequent_tuples: sum.frequent_tuples - before.frequent_tuples,
            emitted: sum.emitted - before.emitted,
            similar: sum.similar,
            guarded: sum.guarded,
        };
    }
}

impl std::ops::Add<&OverlapCounts> for &OverlapCounts {
    type Output = OverlapCounts;

    fn add(self, other: &OverlapCounts) -> OverlapCounts {
        self.clone() + other
    }
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
            similar: self.similar + other.similar,
            guarded: self.guarded + other.guarded,
        }
    }
}
