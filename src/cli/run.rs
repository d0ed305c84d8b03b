//! `webtwin run`.

use std::path::PathBuf;
use std::sync::Arc;

use super::progress::{Log, Watcher};
use super::{JobArgs, evaluate};
use crate::dataflow::ingest::Queue;
use crate::dataflow::replicas;
use crate::dataflow::summary::Summary;
use crate::engine::{Cluster, run as run_on};
use crate::error::{Error, Result};
use crate::job::Digest;
use crate::pages::work_items::Work;
use crate::storage::location::Location;
use crate::storage::manifest;
use crate::synth::Synth;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Worker threads of a run in one process; all cores when not given
    #[arg(long, value_name = "N", conflicts_with = "cluster", help_heading = "Effort",
        value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// How progress is told on stderr
    #[arg(long, value_enum, default_value = "text")]
    log: Log,
    /// Cluster file: the processes of a run and where they are
    #[arg(long, value_name = "FILE", requires = "process", help_heading = "Cluster")]
    cluster: Option<PathBuf>,
    /// Number of this process in the cluster file, from 0
    #[arg(long, value_name = "N", requires = "cluster", help_heading = "Cluster")]
    process: Option<usize>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let job = args.job.resolve()?;
    if job.output.url.is_empty() {
        return Err(Error::Usage("no output: give --output or output.url, for example --output out/".into()));
    }
    let cluster = match &args.cluster {
        Some(path) => Cluster::load(path)?,
        None => Cluster::local(match args.workers {
            Some(workers) => usize::from(workers),
            None => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        }),
    };
    let process = args.process.unwrap_or(0);
    cluster.check_process(process)?;
    let folder = Location::parse(&job.output.url)?;
    if folder.join(manifest::NAME)?.exists()? {
        return Err(Error::LostCommit(folder.name().to_string()));
    }
    let queue = Queue::new(Work::plan(&job.input, job.effort.shard_bytes)?);
    let digest = Digest::of(&job).0;
    let inputs = job.input.urls.clone();
    let watcher = Watcher::start(queue.clone(), args.log);
    let shared = (Arc::new(job), queue, folder.clone());
    let summaries = run_on(&cluster, process, digest, move |net| replicas::run(net, &shared.0, &shared.1, &shared.2));
    drop(watcher);
    let summaries = summaries?;
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

/// Holds a run on a made-up crawl against the truth, which is known without a file.
fn tell_truth(url: &str, folder: &Location) -> Result<()> {
    let mut truth = Vec::new();
    Synth::parse(url)?.truth_tsv(&mut truth).map_err(|cause| Error::storage(url, cause))?;
    let report = evaluate::evaluate_run(folder, url, &String::from_utf8_lossy(&truth))?;
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
    for largest in summary.largest_similar_clusters.iter().take(5) {
        eprintln!("  on {:>4} hosts: {:>5} pages  {}", largest.hosts, largest.size, largest.url);
    }
    eprintln!("results: {folder}");
}
