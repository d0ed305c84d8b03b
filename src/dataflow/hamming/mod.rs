//! The `hamming` job from end to end on one worker: F and Q in, near pairs or groups out (\[MJS07\] section 3.3).
//!
//! Q goes to every process once and its workers share the tables that are built from it. Pieces of F, at most half
//! a chunk, are pulled by the workers, as the paper's mappers are given theirs; a worker scans a piece and keeps what is near
//! (`scan`). Without Q
//! the fingerprints of F are joined with each other ([`all_pairs`]). Then it is known how many pairs of documents that
//! makes; only then are they made (`pairs`), or the documents put in groups (`groups`).

pub mod all_pairs;
pub mod build;
mod chunks;
mod groups;
mod pairs;
mod scan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::memory::hold_bytes_against_bound;
use super::progress::{Laps, Progress};
use super::tables::Part;
use super::turns::Turns;
use super::write::{commit, put_tables};
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::hamming::design::k_below;
use crate::hamming::postings::Postings;
use crate::job::Job;
use crate::storage::fingerprints::{FingerprintSet, Sources};
use crate::storage::location::Location;
use crate::storage::table::Table;

/// What a run joins, as one process sees it.
pub struct Work {
    /// F.
    pub set: FingerprintSet,
    /// Q, which may have no rows; none when F is joined with itself.
    pub queries: Option<Sources>,
    queries_read: Turns,
    pieces_read: Turns,
    /// For people who watch.
    pub progress: Arc<Progress>,
}

impl Work {
    /// Finds F and Q of a job.
    ///
    /// # Errors
    /// [`Error::Input`] when one is missing, or when they are of different recipes; [`Error::Usage`] when the job names none, or
    /// when all fingerprints are within k bits of each other.
    pub fn find(job: &Job) -> Result<Work> {
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
        Ok(Work { set, queries, queries_read: Turns::default(), pieces_read: Turns::default(), progress })
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
pub fn run(net: &mut Net<'_>, job: &Job, work: &Work, folder: &Location) -> Result<Summary> {
    let mut laps = Laps::start();
    let allowed = job.effort.memory_bytes;
    same_set(net, work)?;
    let queries = queries(net, work)?;
    laps.lap("1 queries");
    work.progress.enter("scanning");
    let mut summary = Summary {
        digest: crate::job::Digest::of(job).hex(),
        documents: work.set.manifest.count,
        queries: queries.as_ref().map_or(0, |queries| queries.documents() as u64),
        distinct_queries: queries.as_ref().map_or(0, |queries| queries.fingerprints().len() as u64),
        ..Summary::default()
    };
    let tables = match queries {
        Some(queries) => {
            let share = scan::bytes(&queries, job.hamming.k) / net.workers_per_process() as u64;
            hold_bytes_against_bound(net, "queries and their tables", share + scan::PIECE_BYTES, allowed)?;
            let near = scan::near(net, job, work, &queries)?;
            laps.lap("2 scan");
            let tally = near.iter().map(|near| (near.distance, near.pairs(&queries)));
            let pairs = count(net, job, work, &mut summary, near.len(), tally)?;
            hold_bytes_against_bound(net, "near pairs", share + 20 * near.len() as u64 + 48 * pairs, allowed)?;
            if job.batch.groups {
                groups::of_queries(net, job, work, &queries, near)?
            } else {
                pairs::with_queries(net, job, work, &queries, near)?
            }
        }
        None => {
            let found = all_pairs::of_set(net, job, work)?;
            laps.lap("2 join");
            let pairs = count(net, job, work, &mut summary, found.near.len(), found.tally())?;
            hold_bytes_against_bound(net, "near pairs", found.bytes() + 48 * pairs, allowed)?;
            if job.batch.groups { groups::of_set(net, job, found)? } else { pairs::of_set(net, job, found)? }
        }
    };
    summary.groups = net.all_gather("groups", tables.groups)?.iter().sum();
    if let Some(told) = tables.pairs_by_distance {
        summary.pairs_by_distance = BTreeMap::new();
        for (distance, pairs) in net.all_gather("pairs told", told)?.into_iter().flatten() {
            *summary.pairs_by_distance.entry(distance).or_default() += pairs;
        }
        summary.pairs = summary.pairs_by_distance.values().sum();
    }
    work.progress.enter("writing");
    let files = put_tables(net, folder, tables.parts, &serde_json::to_string_pretty(&summary).expect("plain values"))?;
    laps.lap("3 write");
    let counts = [
        ("documents", summary.documents),
        ("queries", summary.queries),
        ("near", summary.near),
        ("pairs", summary.pairs),
        ("groups", summary.groups),
    ];
    let recipes = [("fingerprints", work.set.manifest.recipe.clone())];
    commit(net, job, folder, &counts, &recipes, laps.seconds, files)?;
    Ok(summary)
}

/// Parts of the table that a run writes, and how many groups or pairs are in them.
struct Tables {
    parts: Vec<Part>,
    groups: u64,
    pairs_by_distance: Option<BTreeMap<u32, u64>>,
}

/// Brings rows to the owners of their first columns' ranges, ascending and the first of those whose first `key` columns are
/// equal, and makes parts of table `name` of them.
fn parts(
    net: &mut Net<'_>,
    job: &Job,
    name: &'static str,
    rows: Vec<[u64; 3]>,
    key: usize,
    table: fn(&[[u64; 3]]) -> Table,
) -> Result<(Vec<[u64; 3]>, Vec<Part>)> {
    let largest = rows.iter().map(|row| row[0]).max().unwrap_or(0);
    let largest = net.all_gather("largest", largest)?.into_iter().max().unwrap_or(0);
    let (partitions, peers) = (u128::from(job.output.partitions), net.peers());
    // Equal ranges of the ids that occur.
    let partition = move |row: &[u64; 3]| (u128::from(row[0]) * partitions / (u128::from(largest) + 1)) as usize;
    let mut rows = net.exchange_all(name, rows, |row| partition(row) % peers)?;
    rows.sort_unstable();
    rows.dedup_by(|x, y| x[..key] == y[..key]);
    let of_part = rows.chunk_by(|x, y| partition(x) == partition(y));
    let mut parts: Vec<Part> = of_part.map(|rows| (name, partition(&rows[0]), table(rows))).collect();
    let any = net.all_gather("parts", parts.len() as u64)?.iter().any(|parts| *parts > 0);
    if net.index() == 0 && !any {
        parts.push((name, 0, table(&[])));
    }
    Ok((rows, parts))
}

/// Fails unless all processes see the same F and Q.
fn same_set(net: &mut Net<'_>, work: &Work) -> Result<()> {
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

/// Q, once in each process; `None` when F is joined with itself.
fn queries(net: &mut Net<'_>, work: &Work) -> Result<Option<Arc<Postings>>> {
    let Some(sources) = &work.queries else { return Ok(None) };
    let f = work.set.manifest.f;
    let read = || {
        let mut rows: Vec<[u64; 2]> = Vec::new();
        while let Some(item) = sources.items.get(work.queries_read.next(net)) {
            rows.extend(item.read(f)?.into_iter().map(|(fingerprint, document)| [fingerprint, document]));
        }
        Ok(rows)
    };
    let mine = read();
    let mine = mine?;
    let all = net.share("queries", mine)?;
    Ok(Some(net.once(|| Postings::new(all.iter().map(|&[fingerprint, document]| (fingerprint, document)).collect()))?))
}

/// Adds up what is near, tells how many pairs of documents are coming, and refuses more than the job allows; returns how
/// many of those to be made are this worker's.
fn count(
    net: &mut Net<'_>,
    job: &Job,
    work: &Work,
    summary: &mut Summary,
    near: usize,
    tally: impl Iterator<Item = (u32, u64)>,
) -> Result<u64> {
    let mut mine: BTreeMap<u32, u64> = BTreeMap::new();
    tally.for_each(|(distance, pairs)| *mine.entry(distance).or_default() += pairs);
    let own: u64 = mine.values().sum();
    for (near, part) in net.all_gather("counts", (near as u64, mine))? {
        summary.near += near;
        for (distance, pairs) in part {
            *summary.pairs_by_distance.entry(distance).or_default() += pairs;
        }
    }
    summary.pairs = summary.pairs_by_distance.values().sum();
    work.progress.coming.store(summary.pairs, Ordering::Relaxed);
    if !job.batch.groups && summary.pairs > job.batch.max_pairs {
        return Err(Error::Space {
            what: format!(
                "{} pairs of documents are near ({} of distinct fingerprints), more than batch.max_pairs; batch.groups=true tells them in one row a document. What they take, at 24 bytes a pair,",
                summary.pairs, summary.near
            ),
            needed_bytes: 24 * summary.pairs,
            allowed_bytes: 24 * job.batch.max_pairs,
        });
    }
    work.progress.enter(if job.batch.groups { "grouping" } else { "pairing" });
    Ok(if job.batch.groups { 0 } else { own })
}
