//! Input of a `hamming` job, and the summary of its results.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::reading::work_queue::WorkQueue;
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::Progress;
use webtwin_core::hamming::design::k_below;
use webtwin_job::Job;
use webtwin_results::fingerprints::{FingerprintSet, Sources};

/// Input of a run, as one process opens it.
pub struct HammingWork {
    /// Fingerprints of F.
    pub set: FingerprintSet,
    /// Sources of Q, which may have no rows. `None` if F is joined with itself.
    pub queries: Option<Sources>,
    /// Queue of the items of queries.
    pub(super) queries_read: WorkQueue,
    /// Queue of the pieces of F.
    pub(super) pieces_read: WorkQueue,
    /// Progress, for display.
    pub progress: Arc<Progress>,
}

impl HammingWork {
    /// Finds F and Q of a job.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if F or Q is missing, or if their recipes differ. Returns
    /// [`Error::Usage`] if the job names no F, or if all fingerprints are within k bits of each
    /// other.
    pub fn find(job: &Job) -> Result<HammingWork> {
        if job.batch.fingerprints.is_empty() {
            return Err(Error::Usage(
                "no fingerprint file: set batch.fingerprints to the folder that `webtwin hamming build` made".into(),
            ));
        }
        let set = FingerprintSet::open(&job.batch.fingerprints)?;
        k_below(set.manifest.f, job.hamming.k)?;
        let urls = &job.batch.queries;
        let queries = if urls.is_empty() { None } else { Some(Sources::find(urls)?) };
        let kind_of_set = (set.manifest.f, set.manifest.recipe.clone());
        match queries.as_ref().and_then(|queries| queries.made.as_ref()) {
            Some((f, recipe)) if (*f, recipe) != (kind_of_set.0, &kind_of_set.1) => {
                let reason = format!(
                    "its fingerprints are {recipe} ({f} bits), but those of F are {} ({} bits); build both with the \
                    same recipe",
                    kind_of_set.1, kind_of_set.0
                );
                return Err(Error::input(urls.join(", "), reason));
            }
            _ => {}
        }
        let progress = Arc::new(Progress::new(set.manifest.count));
        Ok(HammingWork {
            set,
            queries,
            queries_read: WorkQueue::default(),
            pieces_read: WorkQueue::default(),
            progress,
        })
    }
}

/// Results of a `hamming` run; content of its `summary.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HammingSummary {
    /// Digest of the job.
    pub digest: String,
    /// Number of documents of F.
    pub documents: u64,
    /// Number of queries of Q; 0 if Q was empty, or if F was joined with itself.
    pub queries: u64,
    /// Number of distinct fingerprints of these queries.
    pub distinct_queries: u64,
    /// Pairs of distinct fingerprints that are near.
    pub near: u64,
    /// Pairs of documents in the result, each once at its smallest distance, without pairs of a
    /// document with itself. If the result has groups, the number of pairs that they stand for,
    /// which are pairs of rows if a document has several rows.
    pub pairs: u64,
    /// Pairs of documents by distance.
    pub pairs_by_distance: BTreeMap<u32, u64>,
    /// Groups of documents in the result; 0 if the result has pairs.
    pub groups: u64,
}
