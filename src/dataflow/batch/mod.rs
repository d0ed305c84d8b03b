//! Runs the `batch` job on one worker: finds the pages and collections of a new crawl that earlier
//! crawls have, too, with their places, and the pages that a crawler may skip for that reason.
//!
//! ```text
//! read Q ─▶ to every process ─▶ tables of Q ─▶ probe pieces of F ─▶ exchange by pair ─▶ sort, deduplicate
//!                                                                                             │
//! collections ◀─ components ◀─ merge condition ◀─ LinkSummary ◀─ LINK with labels ◀─ components ◀─┘
//! ```
//!
//! Q is the new crawl. F contains the fingerprints of all pages of earlier crawls (\[MJS07\]
//! section 3.3). The first line of the diagram is one dataflow of timely operators
//! (`hamming::batch`), because F is larger than memory and is streamed. The second line starts
//! after the last pair has arrived, because any pair may still join two components. It therefore
//! consists of the steps of the main job ([`crate::find`]), which run on the web of Q and of the
//! pages of F that are near a page of Q (`earlier`). The work of these steps is bounded by the size
//! of Q.

mod earlier;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::earlier::PagesOfF;
use super::find::find;
use super::replicas::{self, CrawlInput, RunResult, read_crawl};
use super::run::{EarlierPairs, WorkerRun};
use super::shuffle::directory::TablePartitions;
use crate::hamming::build::UNKNOWN_RECIPE;
use crate::hamming::work::HammingWork;
use crate::hamming::{near_pairs, same_set};
use crate::reading::capture_rows::CaptureRows;
use crate::reading::captures;
use crate::reading::ingest::Queue;
use crate::sinks::summary::RunSummary;
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::StageTimes;
use webtwin_core::hamming::rows::FingerprintRow;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_storage::location::Location;

/// F and the earlier results that its pages come from, as one process opens them.
pub struct BatchWork {
    /// Fingerprints of all pages of earlier crawls (F).
    pub fingerprints: Arc<HammingWork>,
    /// Results that contain the pages of F, the newest last.
    pub results: Vec<webtwin_results::FinishedRun>,
}

impl BatchWork {
    /// Opens F and the earlier results of a job.
    ///
    /// # Errors
    /// Returns any error of [`HammingWork::find`], and [`Error::Usage`] if the job names no
    /// results. Returns [`Error::Input`] if a result is missing, if F has no doc ids, or if the
    /// recipe of its fingerprints differs from the recipe of the job.
    pub fn find(job: &Job) -> Result<BatchWork> {
        let fingerprints = HammingWork::find(job)?;
        let manifest = &fingerprints.set.manifest;
        let recipe = job.simhash.recipe();
        if manifest.f != job.simhash.bits || ![recipe.as_str(), UNKNOWN_RECIPE].contains(&manifest.recipe.as_str()) {
            let reason = format!(
                "its fingerprints are {} ({} bits), but the job makes {recipe} ({} bits); set simhash.recipe \
                 and simhash.bits as when F was built",
                manifest.recipe, manifest.f, job.simhash.bits
            );
            return Err(Error::input(&job.batch.fingerprints, reason));
        }
        if !fingerprints.set.doc_ids {
            return Err(Error::input(
                &job.batch.fingerprints,
                "its fingerprints have no doc ids, which a batch needs to find pages; build it from crawls or results",
            ));
        }
        if job.batch.results.is_empty() {
            return Err(Error::Usage(
                "no earlier results: set batch.results to the folders of the runs that read the pages of F".into(),
            ));
        }
        let results =
            job.batch.results.iter().map(|url| webtwin_results::FinishedRun::open(url)).collect::<Result<Vec<_>>>()?;
        for run in &results {
            if ["pages", "links"].iter().any(|table| run.manifest.table(table).next().is_none()) {
                return Err(Error::input(
                    run.folder.name(),
                    "has no tables pages and links; set batch.results to results of `webtwin run`",
                ));
            }
        }
        Ok(BatchWork { fingerprints: Arc::new(fingerprints), results })
    }
}

/// Counts of a batch over all workers. They are part of `summary.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchCounts {
    /// Documents of F.
    pub documents: u64,
    /// Pages of Q that have a simhash.
    pub queries: u64,
    /// Pairs of a distinct fingerprint of F and a distinct fingerprint of Q that are near.
    pub near: u64,
    /// Pairs of a document of F and a page of Q.
    pub pairs: u64,
    /// Pairs whose document of F is also a page of Q. They are dropped, because the page of the
    /// newer crawl replaces the document.
    pub superseded: u64,
    /// Pages of F that are near a page of Q and are in no earlier result.
    pub unknown_pages: u64,
    /// Pages of F that are near a page of Q and are in an earlier result.
    pub earlier_pages: u64,
}

/// Runs the job. Every worker returns the same summary after the result is committed.
///
/// # Errors
/// Returns any [`Error`], the same on all workers; no result exists then.
pub fn run(net: &mut Net<'_>, job: &Job, queue: &Queue, work: &BatchWork, folder: &Location) -> Result<RunSummary> {
    let mut stage_times = StageTimes::start();
    same_set(net, &work.fingerprints)?;
    same_results(net, &work.results)?;
    let CrawlInput { mut local_pages, mut floors, ghostscript, .. } = read_crawl(net, job, queue)?;
    stage_times.end_stage("1 read");

    queue.progress.enter("scanning");
    let partitions = TablePartitions::new(job.output.partitions, net.peers());
    let addresses = local_pages.addresses.clone();
    let new = captures::settle(net, &mut local_pages, &floors, partitions)?;
    // The steps number pages again, now with the pages of F next to those of Q.
    (local_pages.captures, local_pages.addresses) = (new.pages, addresses);
    let (pairs, join_counts) = near_pairs(net, job, &work.fingerprints, queries(&local_pages.captures)?)?;
    stage_times.end_stage("2 scan");

    queue.progress.enter("finding");
    let first_source = queue.work.inputs.len() as u32;
    let pages_of_f = PagesOfF { results: &work.results, first_source, item: floors.len() as u32 };
    let earlier_counts = pages_of_f.put_near_pages(net, &new.directory, partitions, pairs, &mut local_pages)?;
    floors.push(0);
    let mut step_job = job.clone();
    // Tables of earlier results have no chunks, which a comparison of texts would need.
    step_job.keep.min_resemblance = 0.0;
    let mut steps = WorkerRun::new(net, &step_job, &mut local_pages, queue.resume.as_ref());
    steps.earlier_pairs = Some(EarlierPairs { pairs: earlier_counts.pairs, first_source });
    let mut tables = find(&mut steps, &floors, None)?;
    tables.crawl.overlapping = new.overlapping;
    tables.summary.batch = Some(BatchCounts {
        documents: work.fingerprints.set.manifest.count,
        queries: join_counts.queries,
        near: join_counts.near,
        pairs: join_counts.pairs,
        superseded: earlier_counts.superseded,
        unknown_pages: earlier_counts.unknown_pages,
        earlier_pages: earlier_counts.pages,
    });
    stage_times.end_stage("3 find");

    queue.progress.enter("writing");
    let sources = queue.work.inputs.iter().cloned().chain(earlier_counts.sources).collect();
    replicas::write(
        net,
        job,
        queue,
        folder,
        RunResult { tables, local_pages, sources, ghostscript, stage: "4 write" },
        stage_times,
    )
}

/// Returns the fingerprints of this worker's pages.
fn queries(pages: &CaptureRows) -> Result<Vec<FingerprintRow>> {
    let mut rows = Vec::new();
    pages.for_each(|page| {
        let row = |fingerprint| FingerprintRow { fingerprint, document: page.doc_id };
        rows.extend(page.simhash().map(row));
    })?;
    Ok(rows)
}

/// Fails unless all processes opened the same earlier results.
fn same_results(net: &mut Net<'_>, results: &[webtwin_results::FinishedRun]) -> Result<()> {
    let attempts: Vec<String> = results.iter().map(|run| run.manifest.attempt.clone()).collect();
    let attempts_seen = net.all_gather("earlier results", attempts)?;
    match attempts_seen.iter().position(|other| *other != attempts_seen[0]) {
        None => Ok(()),
        Some(worker) => Err(Error::Handshake(format!(
            "worker {worker} reads other results in batch.results than worker 0; share the same folders among all \
            processes"
        ))),
    }
}
