//! The `recrawl` job: runs [`replicas`] over the live inputs of a state, reads only new inputs, and
//! then commits the next generation.
//!
//! No rule of the job depends on history, so its result has the same bytes as a run from scratch.
//! The result is committed first: a crash between the two commits leaves a valid result, and a
//! state that is one generation behind.
//!
//! The previous crawl is kept for originals (`input.originals`): revisit records of the new crawl
//! find their content in its records. The next generation keeps the records of those files in which
//! a page has its content, or through which that content was found. If the crawl has any revisits,
//! the next generation also keeps the records of the whole previous crawl, until another crawl
//! begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::replicas;
use crate::reading::ingest::Queue;
use crate::reading::least_pages::LeastPages;
use crate::sinks::summary::RunSummary;
use webtwin_base::error::{Error, Result};
use webtwin_engine::Net;
use webtwin_job::{Job, JobDigest};
use webtwin_pages::helper;
use webtwin_storage::location::Location;
use webtwin_storage::state::{Generation, JobState, PageTotals, StateRecords};

/// Next generation of a state, which is committed after a run has ended successfully.
#[derive(Debug, Clone)]
pub struct StateUpdate {
    /// State that the run continues.
    pub state: JobState,
    /// Records of the state, which the queue reads and adds to.
    pub records: Arc<StateRecords>,
    /// Next generation, still without its files and its job.
    pub generation: Generation,
    /// Settings that the state implies and that the user did not name.
    pub implied: StateDefaults,
    /// Files of the generation's previous crawl that still exist.
    pub files_before: BTreeSet<String>,
    /// Minimum number of pages that the crawl must have, if there is one.
    pub min_pages: Option<LeastPages>,
}

/// Settings of a job that the state implies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateDefaults {
    /// True if the inputs of earlier crawls are implied: they are the inputs of the previous run.
    pub originals: bool,
    /// True if the result whose copies stay is implied: it is the result of the previous run.
    pub sticky: bool,
}

impl StateDefaults {
    /// Returns the digest of the job as the user requested it. Two jobs that differ only in the
    /// previous run have the same digest.
    pub fn digest(self, job: &Job) -> String {
        let mut job = job.clone();
        if self.sticky {
            job.keep.sticky = "the result before".into();
        }
        JobDigest::from_job(&job).hex()
    }
}

/// Runs the job. Every worker returns the same summary after the result and the generation are
/// committed.
///
/// # Errors
/// Returns any error of [`replicas::run`], [`Error::TooFewPages`] among them. Returns
/// [`Error::Handshake`] if processes opened different generations. Returns
/// [`Error::LostGeneration`] if another run has committed this generation, and [`Error::Storage`]
/// if it cannot be written. In the last two cases the result exists and the state is unchanged.
pub fn run(net: &mut Net<'_>, job: &Job, queue: &Queue, folder: &Location, next: &StateUpdate) -> Result<RunSummary> {
    let generations = net.all_gather("generations", (next.generation.number, next.min_pages.clone()))?;
    if let Some(other) = generations.iter().find(|other| other.0 != generations[0].0) {
        let (first, other) = (generations[0].0 - 1, other.0 - 1);
        return Err(Error::Handshake(format!(
            "processes continue from different generations of {}, {first} and {other}; start all processes again",
            next.state.folder()
        )));
    }
    // The minimum is no part of the digest: it changes no result, only if there is a result.
    let floor = generations[0].1.as_ref();
    let are_implied = next.implied.originals;
    let speaks = net.is_keeper();
    let outcome = replicas::run_listing_originals(net, job, queue, folder, are_implied, floor);
    let (summary, needed_originals) = outcome.inspect_err(|error| {
        if speaks && matches!(error, Error::TooFewPages { .. }) {
            next.records.discard();
        }
    })?;
    // Only one worker of each process reports: records are shared by the process.
    let own_files = if speaks { next.records.written() } else { Vec::new() };
    let own_results = if speaks { next.records.found_now() } else { Vec::new() };
    let mut results: Vec<_> = net.all_gather("found items", own_results)?.into_iter().flatten().collect();
    results.sort_unstable_by(|x, y| x.records[0].key.cmp(&y.records[0].key));
    let own_failure = if speaks { next.records.failed() } else { None };
    let written: Vec<_> = net.all_gather("files of the state", own_files)?.into_iter().flatten().collect();
    if let Some(cause) = net.all_gather("state", own_failure)?.into_iter().flatten().next() {
        return Err(Error::storage(
            next.state.folder().name(),
            format!("{cause}; the result is valid, and the state is unchanged"),
        ));
    }
    if net.index() == 0 {
        let ghostscript = helper::ghostscript().map(str::to_owned);
        let work = &queue.work;
        let crawl_before = match needed_originals.has_revisits {
            true => next.generation.crawl_before.clone(),
            false => Vec::new(),
        };
        // Records are kept by file: an archive with several inputs is read as a whole the next
        // time.
        let is_kept = |file: &str| {
            needed_originals.files.binary_search_by(|name| name.as_str().cmp(file)).is_ok()
                || needed_originals.has_revisits && next.files_before.contains(file)
        };
        let serves = |input: u32| !work.is_original(input) || !are_implied || is_kept(work.file_of(input));
        let files = next.records.next(written, |item| serves(work.items[item].input));
        let mut job = job.clone();
        if are_implied {
            // The next run will request these originals.
            job.input.originals.retain(|original| crawl_before.contains(original));
            job.input.originals.extend(needed_originals.files.iter().cloned());
            job.input.originals.sort_unstable();
            job.input.originals.dedup();
        }
        let job = next.implied.digest(&job);
        let originals = needed_originals.files;
        let pages = Some(PageTotals { kept: summary.records.kept, skip: summary.skip.pages });
        let generation = Generation {
            job,
            pages,
            ghostscript,
            files,
            originals,
            crawl_before,
            found: results,
            ..next.generation.clone()
        };
        next.state.commit(&generation)?;
    }
    Ok(summary)
}
