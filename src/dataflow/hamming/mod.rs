//! Runs the `hamming` job on one worker: reads F and Q, and writes near pairs or groups (\[MJS07\]
//! section 3.3).
//!
//! Each of the two joins is one dataflow. With Q (`batch`), pieces of F are distributed over the
//! workers. Each worker probes tables that are built from Q once in each process. Pairs are sent to
//! the workers that merge them (`merge`), and from there to the writers of the parts of their table
//! (`parts`). Both stages keep within a memory limit by spilling to the local disk. Without Q
//! ([`self_join`]), the fingerprints of F are joined with each other. Groups (`groups`) are
//! computed after all near fingerprints are known.

mod batch;
pub mod build;
mod chunks;
mod documents;
mod groups;
mod merge;
mod pace;
mod parts;
mod rows;
mod scan;
pub mod self_join;
mod tally;
pub mod work;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use timely::dataflow::operators::Exchange;
use timely::dataflow::operators::vec::ToStream;

use self::merge::{merge, pool_of_sorter};
use self::parts::{PartWriter, WrittenTable, write};
pub(crate) use self::rows::NearPair;
use self::rows::{GroupMember, ResultRow};
use self::scan::Queries;
use self::work::{HammingSummary, HammingWork};
use crate::sinks::stage::{StagedFiles, attempt, commit, or_discard, put_part, put_summary};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::splitmix64;
use webtwin_base::progress::StageTimes;
use webtwin_core::hamming::rows::FingerprintRow;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_spill::SpillColumn;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::output::Attempt;

/// Runs the job. Every worker returns the same summary after the result is committed.
///
/// # Errors
/// Returns any [`Error`], the same on all workers; no result exists then.
pub fn run(net: &mut Net<'_>, job: &Job, work: &Arc<HammingWork>, folder: &Location) -> Result<HammingSummary> {
    let mut stage_times = StageTimes::start();
    // The first worker that arrives sets the traffic for all workers of its process.
    let _ = work.progress.traffic.set(net.traffic());
    same_set(net, work)?;
    let mut summary = HammingSummary {
        digest: webtwin_job::JobDigest::from_job(job).hex(),
        documents: work.set.manifest.count,
        ..HammingSummary::default()
    };
    let attempt = attempt(net, folder)?;
    let files = or_discard(net, &attempt, |net| join(net, job, work, &attempt, &mut summary, &mut stage_times))?;
    stage_times.end_stage("3 write");
    let counts = [
        ("documents", summary.documents),
        ("queries", summary.queries),
        ("near", summary.near),
        ("pairs", summary.pairs),
        ("groups", summary.groups),
    ];
    let recipes = [("fingerprints", work.set.manifest.recipe.clone())];
    commit(net, job, &counts, &recipes, stage_times, StagedFiles::new(attempt, files))?;
    Ok(summary)
}

/// Joins F with Q, or with itself, and stages the results. Returns the files of all workers.
fn join(
    net: &mut Net<'_>,
    job: &Job,
    work: &Arc<HammingWork>,
    attempt: &Attempt,
    summary: &mut HammingSummary,
    stage_times: &mut StageTimes,
) -> Result<Vec<FileEntry>> {
    let output = PartWriter::new(attempt, u64::from(job.output.partitions));
    let (queries, tally) = match (&work.queries, job.batch.groups) {
        (Some(_), false) => {
            let (queries, tally) = batch::pairs(net, job, work, &output)?;
            (Some(queries), tally)
        }
        (Some(_), true) => {
            let (near, (queries, tally)) = batch::near_rows(net, job, work)?;
            let members = groups::of_queries(net, work, built_tables(&queries)?, &near)?;
            write_groups(net, job, members, &output)?;
            (Some(queries), tally)
        }
        (None, false) => (None, self_join::pairs(net, job, work, &output)?),
        (None, true) => {
            let (near, tally) = self_join::near(net, job, work)?;
            let members = groups::of_set(net, work, &near)?;
            write_groups(net, job, members, &output)?;
            (None, tally)
        }
    };
    stage_times.end_stage(if queries.is_some() { "2 scan" } else { "2 join" });
    if let Some(queries) = queries {
        let queries = &built_tables(&queries)?.postings;
        (summary.queries, summary.distinct_queries) = (queries.documents() as u64, queries.fingerprints().len() as u64);
    }
    tally.finish(net, job, work, summary)?;
    work.progress.enter("writing");
    finish(net, job, &output, attempt, summary)
}

/// Finds the pairs of a document of F (`a`) and one of `queries` (`b`), which are the queries of
/// this worker. Returns the pairs that are merged at this worker, ascending, with their distances,
/// and the counts.
///
/// # Errors
/// Returns any error of [`batch::near_pairs`], and [`Error::TooManyPairs`].
pub(crate) fn near_pairs(
    net: &mut Net<'_>,
    job: &Job,
    work: &Arc<HammingWork>,
    queries: Vec<FingerprintRow>,
) -> Result<(SpillColumn<NearPair>, HammingSummary)> {
    let (pairs, (queries, tally)) = batch::near_pairs(net, job, work, queries)?;
    let mut summary =
        HammingSummary { queries: built_tables(&queries)?.postings.documents() as u64, ..HammingSummary::default() };
    tally.finish(net, job, work, &mut summary)?;
    Ok((pairs, summary))
}

/// Returns the queries of a batch that has run.
fn built_tables(queries: &OnceLock<Queries>) -> Result<&Queries> {
    queries.get().ok_or_else(|| Error::Invariant("a batch has ended without tables of its queries".into()))
}

/// Sends members to the writers of the parts of their table, which write them.
fn write_groups(net: &mut Net<'_>, job: &Job, members: Vec<GroupMember>, output: &PartWriter) -> Result<()> {
    let pool = pool_of_sorter(0, net.workers_per_process(), &job.effort);
    net.dataflow(|scope, failures| {
        let members = members.to_stream(scope).exchange(|member| splitmix64(member.id()));
        let sorter = move || pool.clone();
        write(merge(members, sorter.clone(), failures), output, sorter, failures);
    })
}

/// Adds the counts of rows to the summary, and writes the summary. Writes a table without rows if
/// there are no rows. Returns all files.
fn finish(
    net: &mut Net<'_>,
    job: &Job,
    output: &PartWriter,
    attempt: &Attempt,
    summary: &mut HammingSummary,
) -> Result<Vec<FileEntry>> {
    let WrittenTable { mut files, counts } = output.take();
    let [parts] = net.all_sum("parts", [files.len() as u64])?;
    let (name, empty) = if job.batch.groups {
        (GroupMember::TABLE, GroupMember::table(&[]))
    } else {
        (NearPair::TABLE, NearPair::table(&[]))
    };
    if net.index() == 0 && parts == 0 {
        files.push(put_part(attempt, name, 0, &empty)?);
    }
    let mut message: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, rows) in net.all_gather("rows written", counts)?.into_iter().flatten() {
        *message.entry(number).or_default() += rows;
    }
    if job.batch.groups {
        summary.groups = message.values().sum();
    } else {
        (summary.pairs, summary.pairs_by_distance) = (message.values().sum(), message);
    }
    put_summary(net, attempt, files, &serde_json::to_string_pretty(summary).expect("plain values"))
}

/// Fails unless all processes see the same F and Q.
pub(crate) fn same_set(net: &mut Net<'_>, work: &HammingWork) -> Result<()> {
    let own_inputs = (
        net.process() as u64,
        xxhash_rust::xxh3::xxh3_64(&work.set.manifest.to_json()),
        work.queries.as_ref().map(|queries| queries.items.len() as u64),
    );
    let all_inputs = net.all_gather("inputs", own_inputs)?;
    match all_inputs.iter().find(|other| (other.1, other.2) != (all_inputs[0].1, all_inputs[0].2)) {
        None => Ok(()),
        Some(other) => Err(Error::Input {
            input: format!("of process {}", other.0),
            reason: "the fingerprint file or the queries differ from those of process 0; give all processes the same"
                .into(),
        }),
    }
}
