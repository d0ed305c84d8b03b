//! `webtwin run`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::progress::{Log, Watcher};
use super::{JobArgs, WorkerArgs, plan};
use crate::dataflow;
use crate::dataflow::hamming::build::{self, Ready};
use crate::dataflow::ingest::Queue;
use crate::dataflow::resume::Resume;
use crate::dataflow::summary::Summary;
use crate::engine::{Cluster, run as run_on};
use crate::error::{Error, Result};
use crate::hamming::fingerprint_file;
use crate::job::{Digest, Job, Kind};
use crate::pages::work_items::Work;
use crate::results::{Run, compared};
use crate::storage::location::Location;
use crate::storage::manifest;
use crate::storage::records::Records;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    workers: WorkerArgs,
    /// Record finished work items on a local disk, and do not read again those that a run of this job has recorded before
    /// it was interrupted; the result is the same. The records go once it is committed. As effort.resume=true
    #[arg(long, help_heading = "Effort")]
    resume: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let mut job = args.job.resolve()?;
    job.effort.resume |= args.resume;
    execute(job, &args.workers)
}

/// Runs a job of any kind.
pub(super) fn execute(job: Job, workers: &WorkerArgs) -> Result<()> {
    if job.output.url.is_empty() {
        return Err(Error::Usage("no output: give --output or output.url, for example --output out/".into()));
    }
    let at = workers.resolve()?;
    let folder = Location::parse(&job.output.url)?;
    records_folder(&job, &folder)?;
    let name = if job.kind == Kind::Fingerprints { fingerprint_file::NAME } else { manifest::NAME };
    if folder.join(name)?.exists()? {
        return Err(Error::LostCommit(folder.name().to_string()));
    }
    match job.kind {
        Kind::Replicas | Kind::Signatures => replicas(job, at, workers.log, folder),
        Kind::Fingerprints => fingerprints(job, at, workers.log, folder),
        Kind::Hamming => hamming(job, at, workers.log, folder),
        Kind::Study => study(job, at, workers.log, folder),
    }
}

fn replicas(job: Job, (cluster, process): (Cluster, usize), log: Log, folder: Location) -> Result<()> {
    plan::refuse_what_cannot_fit(&job, cluster.workers, cluster.processes())?;
    let queue = queue(&job, &folder)?;
    let digest = Digest::of(&job).0;
    let inputs = job.input.urls.clone();
    let shared = (job, Arc::clone(&queue), folder.clone());
    let summaries = reading(&queue, log, || {
        run_on(&cluster, process, digest, move |net| dataflow::replicas::run(net, &shared.0, &shared.1, &shared.2))
    })?;
    if process == 0
        && let Some(summary) = summaries.first()
    {
        report(summary, folder.name());
        if let [url] = &inputs[..]
            && url.starts_with("synth://")
        {
            tell_truth(url, &folder)?;
        }
    }
    Ok(())
}

/// Where the records of a job's work items are, if it is to be resumed: in the folder of the result unless said otherwise.
fn records_folder(job: &Job, folder: &Location) -> Result<Option<PathBuf>> {
    let reads = matches!(job.kind, Kind::Replicas | Kind::Signatures | Kind::Study)
        || job.kind == Kind::Fingerprints && job.fingerprints.from.is_empty();
    if !job.effort.resume {
        return Ok(None);
    }
    if !reads {
        return Err(Error::Usage("--resume: this job reads no crawl, so there is nothing to resume".into()));
    }
    let root = match job.effort.records.as_str() {
        "" => folder.clone(),
        given => Location::parse(given)?,
    };
    let Some(root) = root.path() else {
        return Err(Error::Usage(format!("--resume needs a local disk, not {root}: give --set effort.records=DIR")));
    };
    // Readers of Parquet folders pass over names that begin with an underscore.
    Ok(Some(root.join(format!("_records-{}", &Digest::of(job).hex()[..16]))))
}

/// The work of a job that reads a crawl; with the records of an earlier run, where it is to be resumed.
fn queue(job: &Job, folder: &Location) -> Result<Arc<Queue>> {
    let work = Work::plan(&job.input, job.effort.shard_bytes)?;
    let Some(folder) = records_folder(job, folder)? else { return Ok(Queue::new(work)) };
    let records = Records::open(&folder, Digest::of(job).0, crate::build::VERSION, work.keys())?;
    let ignored = records.ignored.told().map_or(String::new(), |told| format!("; ignored: {told}"));
    eprintln!("resume: {} of {} work items are recorded{ignored}", records.found(), work.items.len());
    Ok(Queue::resuming(work, Some(Resume::new(records))))
}

/// Does a job that reads a crawl, under the eyes of who waits for it; once it is done its records go.
fn reading<T>(queue: &Queue, log: Log, run: impl FnOnce() -> Result<Vec<T>>) -> Result<Vec<T>> {
    let watcher = Watcher::start(queue.progress.clone(), log);
    let done = run();
    drop(watcher);
    end_of_reading(queue);
    let done = done?;
    remove_records(queue);
    Ok(done)
}

/// Says what the records came to in this process, if there are any.
fn end_of_reading(queue: &Queue) {
    let Some(resume) = &queue.resume else { return };
    let ignored = resume.records.ignored.told().map_or(String::new(), |told| format!("; ignored: {told}"));
    let (taken_up, recorded) = (resume.taken_up.load(Ordering::Relaxed), resume.recorded.load(Ordering::Relaxed));
    eprintln!("resume: {taken_up} work items taken from records, {recorded} recorded{ignored}");
    if resume.gave_up.load(Ordering::Relaxed) {
        eprintln!("resume: recording ended early, for {} cannot be written", resume.records.folder().display());
    }
}

/// Removes the records of a run that is committed: nobody needs them any more.
fn remove_records(queue: &Queue) {
    if let Some(resume) = &queue.resume {
        resume.records.remove();
    }
}

fn fingerprints(job: Job, (cluster, process): (Cluster, usize), log: Log, folder: Location) -> Result<()> {
    let digest = Digest::of(&job).0;
    let out = folder.clone();
    let manifests = if job.fingerprints.from.is_empty() {
        let queue = queue(&job, &folder)?;
        let shared = Arc::clone(&queue);
        reading(&queue, log, || {
            run_on(&cluster, process, digest, move |net| build::from_crawl(net, &job, &shared, &out))
        })?
    } else {
        let ready = Ready::find(&job)?;
        let _watcher = Watcher::start(ready.progress.clone(), log);
        run_on(&cluster, process, digest, move |net| build::from_fingerprints(net, &job, &ready, &out))?
    };
    if process == 0
        && let Some(set) = manifests.first()
    {
        let bytes: u64 = set.chunks.iter().map(|chunk| chunk.bytes).sum();
        eprintln!("{} fingerprints of {} bits ({}) in {} chunks", set.count, set.f, set.recipe, set.chunks.len());
        eprintln!("{:.1} MB with their doc ids: {}", bytes as f64 / 1e6, folder.name());
    }
    Ok(())
}

fn hamming(job: Job, (cluster, process): (Cluster, usize), log: Log, folder: Location) -> Result<()> {
    let work = Arc::new(dataflow::hamming::Work::find(&job)?);
    let digest = Digest::of(&job).0;
    let (k, groups) = (job.hamming.k, job.batch.groups);
    let watcher = Watcher::start(work.progress.clone(), log);
    let out = folder.clone();
    let summaries = run_on(&cluster, process, digest, move |net| dataflow::hamming::run(net, &job, &work, &out));
    drop(watcher);
    let summaries = summaries?;
    if process == 0
        && let Some(summary) = summaries.first()
    {
        eprintln!(
            "{} documents, {} queries ({} distinct)",
            summary.documents, summary.queries, summary.distinct_queries
        );
        eprintln!("{} pairs of fingerprints within {k} bits: {} pairs of documents", summary.near, summary.pairs);
        for (distance, pairs) in &summary.pairs_by_distance {
            eprintln!("  {distance} bits: {pairs}");
        }
        if groups {
            eprintln!("in {} groups", summary.groups);
        }
        eprintln!("results: {}", folder.name());
    }
    Ok(())
}

fn study(job: Job, (cluster, process): (Cluster, usize), log: Log, folder: Location) -> Result<()> {
    let queue = queue(&job, &folder)?;
    let digest = Digest::of(&job).0;
    let shared = (job, Arc::clone(&queue), folder.clone());
    let summaries = reading(&queue, log, || {
        run_on(&cluster, process, digest, move |net| dataflow::study::run(net, &shared.0, &shared.1, &shared.2))
    })?;
    if process == 0
        && let Some(summary) = summaries.first()
    {
        report_study(summary, folder.name());
    }
    Ok(())
}

/// What a person wants to know of a study first, on stderr.
fn report_study(summary: &dataflow::study::Summary, folder: &str) {
    let (tables, web) = (&summary.tables, &summary.web);
    eprintln!("{} records read: {} pages, {} documents", summary.records.read, web.pages, tables.complete.documents);
    let parts =
        [("complete", &tables.complete), ("connected", &tables.connected), ("disconnected", &tables.disconnected)];
    for (name, part) in parts {
        eprintln!(
            "  {name:<12} {:>9} documents, {:>8} clusters, {:>8} duplicates ({:.1} %), {:>9} useful",
            part.documents, part.clusters, part.duplicates, part.duplicates_percent, part.useful
        );
    }
    for near in &tables.near {
        eprintln!(
            "  near-duplicates at {} %: {} ({:.1} %)",
            near.percent, near.near_duplicates, near.near_duplicates_percent
        );
    }
    for estimate in &summary.estimates_by_reference {
        eprintln!(
            "  from {} % of the steps: {:.1} % duplicates expected, {:.1} % are",
            estimate.percent,
            estimate.expected(),
            estimate.real()
        );
    }
    eprintln!("a crawl from {} reaches {} pages", web.seed, web.connected);
    eprintln!("results: {folder}");
}

/// Holds a run on a made-up crawl against the truth, which is known without a file.
fn tell_truth(url: &str, folder: &Location) -> Result<()> {
    let report = compared::report(&Run::open(folder.name())?, compared::planted(url)?)?;
    eprintln!("held against what was planted in the crawl:");
    let told = ["pair precision", "pair recall", "targets", "targets found", "problem share", "coverage"];
    for row in report.rows().iter().filter(|row| told.contains(&row.what.as_str())) {
        eprintln!("  {:<16} {}", row.what, row.ours.map_or("-".into(), |ours| format!("{ours:.3}")));
    }
    Ok(())
}

/// What a person wants to know first, on stderr.
fn report(summary: &Summary, folder: &str) {
    let rejected: u64 = summary.records.rejected.values().sum();
    eprintln!("{} records read: {} pages kept, {rejected} rejected", summary.records.read, summary.records.kept);
    eprintln!("{} hosts, {} links between the pages", summary.hosts, summary.links);
    eprintln!(
        "{} sets of similar pages; {} mirrored collections in {} similar clusters",
        summary.trivial_clusters, summary.collections, summary.similar_clusters
    );
    eprintln!(
        "a crawler may skip {} pages ({:.1} %) and {:.1} MB ({:.1} %)",
        summary.skip.pages,
        100.0 * summary.skip_share_of_pages,
        summary.skip.bytes as f64 / 1e6,
        100.0 * summary.skip_share_of_bytes
    );
    // A set that holds a hundredth of all pages is more often a chain than a page with that many copies.
    for giant in
        summary.giant_trivial_clusters.iter().filter(|giant| u64::from(giant.pages) * 100 >= summary.pages.pages)
    {
        eprintln!("  {} pages on {} hosts are one set of similar pages: {}", giant.pages, giant.hosts, giant.url);
        let weak = giant.bridges.first().map(|weak| ("hangs on one pair", weak));
        if let Some((how, weak)) = weak.or(giant.splits.as_ref().map(|weak| ("falls apart above a pair", weak))) {
            eprintln!(
                "    it {how} of value {}, {} pages off: {} and {}",
                weak.strength, weak.cuts_off, weak.a, weak.b
            );
        }
    }
    for largest in summary.largest_similar_clusters.iter().take(5) {
        eprintln!("  on {:>4} hosts: {:>5} pages  {}", largest.hosts, largest.size, largest.url);
    }
    eprintln!("results: {folder}");
}
