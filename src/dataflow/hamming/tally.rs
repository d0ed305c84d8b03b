//! Counts of the pairs of documents that near fingerprints stand for. They are counted before they
//! are generated. If there are more than the job allows, the rest is still counted, but no more
//! pairs are generated.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use super::rows::NearPair;
use super::work::{HammingSummary, HammingWork};
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::rows::NearRuns;
use webtwin_engine::Net;
use webtwin_job::Job;

/// Bytes of a pair on disk, where it is merged and in the result.
const PAIR_BYTES: u64 = size_of::<NearPair>() as u64 + 22;

/// Count of a process, shared by its workers.
#[derive(Debug)]
pub(super) struct ProcessTally {
    limit: u64,
    totals: Mutex<MatchTotals>,
}

/// Numbers that have been counted.
#[derive(Debug, Default)]
struct MatchTotals {
    near: u64,
    pairs: u64,
    by_distance: BTreeMap<u32, u64>,
}

impl ProcessTally {
    /// Creates an empty count with the limit of a job.
    pub(super) fn new(job: &Job) -> ProcessTally {
        let limit = if job.batch.groups { 0 } else { job.batch.max_pairs };
        ProcessTally { limit, totals: Mutex::default() }
    }

    /// Counts `near` pairs of distinct fingerprints, and the pairs of documents that they stand
    /// for, as (distance, pairs). Returns true if the pairs must be generated.
    pub(super) fn add(&self, near: u64, coming: impl Iterator<Item = (u32, u64)>) -> bool {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.near += near;
        for (distance, pairs) in coming {
            totals.pairs += pairs;
            *totals.by_distance.entry(distance).or_default() += pairs;
        }
        totals.pairs <= self.limit
    }

    /// Counts near runs of F, like [`ProcessTally::add`].
    pub(super) fn add_runs(&self, near: &[NearRuns]) -> bool {
        let pair_runs = near.iter().filter(|near| !near.is_one()).count();
        self.add(pair_runs as u64, near.iter().map(|near| (near.distance, near.pairs())))
    }

    /// Adds up the counts of all processes, and refuses more pairs than the job allows.
    ///
    /// # Errors
    /// Returns [`Error::TooManyPairs`] with the number of pairs, on all workers.
    pub(super) fn finish(
        &self,
        net: &mut Net<'_>,
        job: &Job,
        work: &HammingWork,
        summary: &mut HammingSummary,
    ) -> Result<()> {
        let own_counts = {
            let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
            (totals.near, totals.by_distance.clone())
        };
        // All workers of a process share one count, so only one of them is added.
        let workers = net.workers_per_process();
        for (near, by_distance) in net.all_gather("counts", own_counts)?.into_iter().step_by(workers) {
            summary.near += near;
            for (distance, pairs) in by_distance {
                *summary.pairs_by_distance.entry(distance).or_default() += pairs;
            }
        }
        summary.pairs = summary.pairs_by_distance.values().sum();
        work.progress.coming.store(summary.pairs, Ordering::Relaxed);
        if job.batch.groups {
            return Ok(());
        }
        if summary.pairs > job.batch.max_pairs {
            return Err(Error::TooManyPairs {
                what: format!("pairs of documents are near ({} of distinct fingerprints)", summary.near),
                found: summary.pairs,
                pair_bytes: PAIR_BYTES,
                limit: format!("batch.max_pairs allows {}", job.batch.max_pairs),
                remedy: format!(
                    "set batch.groups=true for one row for each document, or batch.max_pairs to {} or more",
                    summary.pairs
                ),
            });
        }
        Ok(())
    }
}
