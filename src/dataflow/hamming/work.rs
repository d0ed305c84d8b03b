//! What a `hamming` job joins, and what it tells of that.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::reading::work_queue::WorkQueue;
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::Progress;
use webtwin_core::hamming::design::k_below;
use webtwin_job::Job;
use webtwin_results::fingerprints::{FingerprintSet, Sources};

/// What a run joins, as one process sees it.
pub struct HammingWork {
    /// F.
    pub set: FingerprintSet,
    /// Q, which may have no rows; none when F is joined with itself.
    pub queries: Option<Sources>,
    /// Queries that a worker has taken.
    pub(super) queries_read: WorkQueue,
    /// Pieces of F, likewise.
    pub(super) pieces_read: WorkQueue,
    /// For people who watch.
    pub progress: Arc<Progress>,
}

impl HammingWork {
    /// Finds F and Q of a job.
    ///
    /// # Errors
    /// [`Error::Input`] when one is missing, or when they are of different recipes; [`Error::Usage`] when the job names none, or
    /// when all fingerprints are within k bits of each other.
    pub fn find(job: &Job) -> Result<HammingWork> {
        if job.batch.fingerprints.is_empty() {
            return Err(Error::Usage(
                "no fingerprint file: give batch.fingerprints, the folder that `webtwin hamming build` made".into(),
            ));
        }
        let set = FingerprintSet::open(&job.batch.fingerprints)?;
        k_below(set.manifest.f, job.hamming.k)?;
        let urls = &job.batch.queries;
        let queries = if urls.is_empty() { None } else { Some(Sources::find(urls)?) };
        let made = (set.manifest.f, set.manifest.recipe.clone());
        match queries.as_ref().and_then(|queries| queries.made.as_ref()) {
            Some((f, recipe)) if (*f, recipe) != (made.0, &made.1) => {
                let reason = format!(
                    "its fingerprints are {recipe} ({f} bits), but those of F are {} ({} bits)",
                    made.1, made.0
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

/// What was found; `summary.json` of a `hamming` run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Digest of the job.
    pub digest: String,
    /// Documents of F.
    pub documents: u64,
    /// Queries of Q; 0 when Q was empty, and when F was joined with itself.
    pub queries: u64,
    /// Distinct fingerprints among them.
    pub distinct_queries: u64,
    /// Pairs of distinct fingerprints that are near.
    pub near: u64,
    /// Pairs of documents that are told, each once at its smallest distance, none of a document with itself. Where groups are
    /// told, the pairs that they stand for: of rows, should a document stand on several.
    pub pairs: u64,
    /// The same by distance.
    pub pairs_by_distance: BTreeMap<u32, u64>,
    /// Groups of documents that are told; 0 when pairs are.
    pub groups: u64,
}
