//! The `recrawl` job: [`replicas`] over the live inputs of a state, of which only what is new is read; then the next generation.
//!
//! No rule of the job looks at history, so its result has the bytes of a run from scratch. The result is committed first: a
//! crash between the two commits leaves a good result, and a state that is one generation behind.
//!
//! The crawl before is there for originals (`input.originals`): revisit records of the new one find their content in its
//! records. Of these the next generation keeps those of files that a page has its content from, or by way of which it was found; and,
//! where the crawl has revisits at all, those of the whole crawl before, until another one begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::replicas;
use crate::reading::ingest::Queue;
use crate::reading::least_pages::LeastPages;
use crate::sinks::summary::Summary;
use webtwin_base::error::{Error, Result};
use webtwin_engine::Net;
use webtwin_job::{Digest, Job};
use webtwin_pages::helper;
use webtwin_storage::location::Location;
use webtwin_storage::state::{Generation, Pages, State, StateRecords};

/// What becomes of a state when a run has ended well.
#[derive(Debug, Clone)]
pub struct Next {
    /// The state.
    pub state: State,
    /// Its records, which the queue reads and adds to.
    pub records: Arc<StateRecords>,
    /// The next generation, but for its files and its job.
    pub generation: Generation,
    /// What the state says of the job, and nobody asked for by name.
    pub implied: Implied,
    /// Files of the generation's crawl before this one that are there.
    pub files_before: BTreeSet<String>,
    /// What the crawl is held against, if it is.
    pub least: Option<LeastPages>,
}

/// What the state says of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Implied {
    /// Its inputs of earlier crawls: those of the run before.
    pub originals: bool,
    /// The result whose copies stay: that of the run before.
    pub sticky: bool,
}

impl Implied {
    /// Digest of the job as it was asked for: the same where only the run before is another.
    pub fn digest(self, job: &Job) -> String {
        let mut job = job.clone();
        if self.sticky {
            job.keep.sticky = "the result before".into();
        }
        Digest::of(&job).hex()
    }
}

/// Runs the job; every worker returns the same summary once the result and the generation are committed.
///
/// # Errors
/// As [`replicas::run`], [`Error::TooFewPages`] among them. [`Error::Handshake`] when processes have seen different generations; [`Error::LostGeneration`]
/// when another run has made this one, and [`Error::Storage`] when it cannot be written: then the result stands and the state is
/// as it was.
pub fn run(net: &mut Net<'_>, job: &Job, queue: &Queue, folder: &Location, next: &Next) -> Result<Summary> {
    let seen = net.all_gather("generations", (next.generation.number, next.least.clone()))?;
    if let Some(other) = seen.iter().find(|other| other.0 != seen[0].0) {
        let (first, other) = (seen[0].0 - 1, other.0 - 1);
        return Err(Error::Handshake(format!(
            "processes go on from generations {first} and {other} of {}; start all of them again",
            next.state.folder()
        )));
    }
    // It changes no answer, and so no digest, but whether there is an answer.
    let least = seen[0].1.as_ref();
    let are_implied = next.implied.originals;
    let speaks = net.is_keeper();
    let done = replicas::run_and_tell_originals(net, job, queue, folder, are_implied, least);
    let (summary, needed) = done.inspect_err(|error| {
        if speaks && matches!(error, Error::TooFewPages { .. }) {
            next.records.discard();
        }
    })?;
    let mine = if speaks { next.records.written() } else { Vec::new() };
    let found = if speaks { next.records.found_now() } else { Vec::new() };
    let mut found: Vec<_> = net.all_gather("what was found", found)?.into_iter().flatten().collect();
    found.sort_unstable_by(|x, y| x.records[0].key.cmp(&y.records[0].key));
    let failed = if speaks { next.records.failed() } else { None };
    let written: Vec<_> = net.all_gather("files of the state", mine)?.into_iter().flatten().collect();
    if let Some(cause) = net.all_gather("state", failed)?.into_iter().flatten().next() {
        return Err(Error::storage(
            next.state.folder().name(),
            format!("{cause}; the result stands, the state is as it was"),
        ));
    }
    if net.index() == 0 {
        let ghostscript = helper::ghostscript().map(str::to_owned);
        let work = &queue.work;
        let crawl_before = match needed.has_revisits {
            true => next.generation.crawl_before.clone(),
            false => Vec::new(),
        };
        // Files: an archive of several inputs is looked through as a whole the next time.
        let is_kept = |file: &str| {
            needed.files.binary_search_by(|name| name.as_str().cmp(file)).is_ok()
                || needed.has_revisits && next.files_before.contains(file)
        };
        let serves = |input: u32| !work.is_original(input) || !are_implied || is_kept(work.file_of(input));
        let files = next.records.next(written, |item| serves(work.items[item].input));
        let mut job = job.clone();
        if are_implied {
            // As the next run will ask for them.
            job.input.originals.retain(|original| crawl_before.contains(original));
            job.input.originals.extend(needed.files.iter().cloned());
            job.input.originals.sort_unstable();
            job.input.originals.dedup();
        }
        let job = next.implied.digest(&job);
        let originals = needed.files;
        let pages = Some(Pages { kept: summary.records.kept, skip: summary.skip.pages });
        let generation =
            Generation { job, pages, ghostscript, files, originals, crawl_before, found, ..next.generation.clone() };
        next.state.commit(&generation)?;
    }
    Ok(summary)
}
