//! The `recrawl` job: [`replicas`] over the live inputs of a state, of which only what is new is read; then the next generation.
//!
//! No rule of the job looks at history, so its result has the bytes of a run from scratch. The result is committed first: a
//! crash between the two commits leaves a good result, and a state that is one generation behind.
//!
//! The crawl before is there for originals (`input.originals`): revisit records of the new one find their content in its
//! records. Of these the next generation keeps those of files that a page has its content from.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::replicas;
use crate::dataflow::reading::ingest::Queue;
use crate::dataflow::sinks::summary::Summary;
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::pages::helper;
use crate::storage::location::Location;
use crate::storage::state::{Generation, State, StateRecords};

/// What becomes of a state when a run has ended well.
#[derive(Debug, Clone)]
pub struct Next {
    /// The state.
    pub state: State,
    /// Its records, which the queue reads and adds to.
    pub records: Arc<StateRecords>,
    /// The next generation, but for its files.
    pub generation: Generation,
}

/// Runs the job; every worker returns the same summary once the result and the generation are committed.
///
/// # Errors
/// As [`replicas::run`]. [`Error::Handshake`] when processes have seen different generations; [`Error::LostCommit`] when
/// another run has made this one, and [`Error::Storage`] when it cannot be written: then the result stands and the state is
/// as it was.
pub fn run(net: &mut Net<'_>, job: &Job, queue: &Queue, folder: &Location, next: &Next) -> Result<Summary> {
    let number = next.generation.number;
    let seen = net.all_gather("generations", number)?;
    if let Some(other) = seen.iter().find(|other| **other != seen[0]) {
        let (first, other) = (seen[0] - 1, other - 1);
        return Err(Error::Handshake(format!(
            "processes go on from generations {first} and {other} of {}; start all of them again",
            next.state.folder()
        )));
    }
    let (summary, originals) = replicas::run_and_tell_originals(net, job, queue, folder)?;
    let speaks = net.index().is_multiple_of(net.workers_per_process());
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
        let serves = |input: u32| !work.is_original(input) || originals.contains(&input);
        let files = next.records.next(written, |item| serves(work.items[item].input));
        let files_of: BTreeSet<String> = originals.iter().map(|&input| work.file_of(input).to_string()).collect();
        let originals = files_of.into_iter().collect();
        next.state.commit(&Generation { ghostscript, files, originals, found, ..next.generation.clone() })?;
    }
    Ok(summary)
}
