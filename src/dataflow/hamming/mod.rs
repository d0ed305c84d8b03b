//! The `hamming` job from end to end on one worker: F and Q in, near pairs or groups out (\[MJS07\] section 3.3).
//!
//! Each of the two joins is one dataflow. With Q (`batch`) pieces of F are sharded over the workers; each probes tables that are
//! built from Q once in each process; pairs meet at the workers that merge them, and go to the parts of their table, which
//! are written. Without Q ([`self_join`]) the fingerprints of F are joined with each other. Groups (`groups`) are made of what is
//! near when all of it is known.

mod batch;
pub mod build;
mod chunks;
mod documents;
mod groups;
mod merge;
mod scan;
pub mod self_join;
mod tally;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use timely::dataflow::operators::Exchange;
use timely::dataflow::operators::vec::ToStream;

use self::merge::{Member, NearPair, Output, Told, Written, merge_and_write};
use self::scan::Queries;
use crate::reading::work_queue::WorkQueue;
use crate::sinks::write::{Staged, attempt, commit, or_discard, put_part, put_summary};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::splitmix64;
use webtwin_base::progress::{Laps, Progress};
use webtwin_core::hamming::design::k_below;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_results::fingerprints::{FingerprintSet, Sources};
use webtwin_storage::location::Location;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;

/// What a run joins, as one process sees it.
pub struct HammingWork {
    /// F.
    pub set: FingerprintSet,
    /// Q, which may have no rows; none when F is joined with itself.
    pub queries: Option<Sources>,
    queries_read: WorkQueue,
    pieces_read: WorkQueue,
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

/// Runs the job; every worker returns the same summary once the result is committed.
///
/// # Errors
/// Any of [`Error`], the same on all workers; then there is no result.
pub fn run(net: &mut Net<'_>, job: &Job, work: &Arc<HammingWork>, folder: &Location) -> Result<Summary> {
    let mut laps = Laps::start();
    // The first worker to come says so for all of its process.
    let _ = work.progress.traffic.set(net.traffic());
    same_set(net, work)?;
    let mut summary = Summary {
        digest: webtwin_job::Digest::of(job).hex(),
        documents: work.set.manifest.count,
        ..Summary::default()
    };
    let attempt = attempt(net, folder)?;
    let files = or_discard(net, &attempt, |net| join(net, job, work, &attempt, &mut summary, &mut laps))?;
    laps.lap("3 write");
    let counts = [
        ("documents", summary.documents),
        ("queries", summary.queries),
        ("near", summary.near),
        ("pairs", summary.pairs),
        ("groups", summary.groups),
    ];
    let recipes = [("fingerprints", work.set.manifest.recipe.clone())];
    commit(net, job, &counts, &recipes, laps, Staged { attempt, files, earlier: None, taken_up: Vec::new() })?;
    Ok(summary)
}

/// Joins F with Q, or with itself, and stages what comes out; returns the files of all workers.
fn join(
    net: &mut Net<'_>,
    job: &Job,
    work: &Arc<HammingWork>,
    attempt: &Attempt,
    summary: &mut Summary,
    laps: &mut Laps,
) -> Result<Vec<FileEntry>> {
    let output = Output::new(attempt, u64::from(job.output.partitions));
    let (queries, tally) = match (&work.queries, job.batch.groups) {
        (Some(_), false) => {
            let (queries, tally) = batch::pairs(net, job, work, &output)?;
            (Some(queries), tally)
        }
        (Some(_), true) => {
            let (near, (queries, tally)) = batch::near_rows(net, job, work)?;
            let members = groups::of_queries(net, work, built(&queries)?, &near)?;
            write_groups(net, members, &output)?;
            (Some(queries), tally)
        }
        (None, false) => (None, self_join::pairs(net, job, work, &output)?),
        (None, true) => {
            let (near, tally) = self_join::near(net, job, work)?;
            let members = groups::of_set(net, work, &near)?;
            write_groups(net, members, &output)?;
            (None, tally)
        }
    };
    laps.lap(if queries.is_some() { "2 scan" } else { "2 join" });
    if let Some(queries) = queries {
        let queries = &built(&queries)?.postings;
        (summary.queries, summary.distinct_queries) = (queries.documents() as u64, queries.fingerprints().len() as u64);
    }
    tally.finish(net, job, work, summary)?;
    work.progress.enter("writing");
    finish(net, job, &output, attempt, summary)
}

/// The queries of a batch that was run.
fn built(queries: &OnceLock<Queries>) -> Result<&Queries> {
    queries.get().ok_or_else(|| Error::Invariant("a batch has ended without tables of its queries".into()))
}

/// Brings members to the parts of their table and writes these.
fn write_groups(net: &mut Net<'_>, members: Vec<Member>, output: &Output) -> Result<()> {
    net.dataflow(|scope, failures| {
        let members = members.to_stream(scope);
        merge_and_write(members.exchange(|member| splitmix64(member.id())), output, failures);
    })
}

/// Takes what was told into the summary, and writes that and a table without rows if there are none; returns all files.
fn finish(
    net: &mut Net<'_>,
    job: &Job,
    output: &Output,
    attempt: &Attempt,
    summary: &mut Summary,
) -> Result<Vec<FileEntry>> {
    let Written { mut files, counts } = output.take();
    let [parts] = net.all_sum("parts", [files.len() as u64])?;
    let (name, empty) =
        if job.batch.groups { (Member::TABLE, Member::table(&[])) } else { (NearPair::TABLE, NearPair::table(&[])) };
    if net.index() == 0 && parts == 0 {
        files.push(put_part(attempt, name, 0, &empty)?);
    }
    let mut told: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, rows) in net.all_gather("rows told", counts)?.into_iter().flatten() {
        *told.entry(number).or_default() += rows;
    }
    if job.batch.groups {
        summary.groups = told.values().sum();
    } else {
        (summary.pairs, summary.pairs_by_distance) = (told.values().sum(), told);
    }
    put_summary(net, attempt, files, &serde_json::to_string_pretty(summary).expect("plain values"))
}

/// Fails unless all processes see the same F and Q.
fn same_set(net: &mut Net<'_>, work: &HammingWork) -> Result<()> {
    let mine = (
        net.process() as u64,
        xxhash_rust::xxh3::xxh3_64(&work.set.manifest.to_json()),
        work.queries.as_ref().map(|queries| queries.items.len() as u64),
    );
    let all = net.all_gather("inputs", mine)?;
    match all.iter().find(|other| (other.1, other.2) != (all[0].1, all[0].2)) {
        None => Ok(()),
        Some(other) => Err(Error::Input {
            input: format!("of process {}", other.0),
            reason:
                "another fingerprint file or other queries than those of process 0; all processes must see the same"
                    .into(),
        }),
    }
}
