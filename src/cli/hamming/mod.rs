//! `webtwin hamming`: the Hamming distance problem on its own (\[MJS07\] section 3).

mod index;
mod plan;
mod query;

use clap::{Args, Subcommand};

use super::{JobArgs, WorkerArgs, run::execute};
use webtwin_base::error::Result;
use webtwin_job::JobKind;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Shows table designs, and predicts memory, time and disk; reads and writes nothing
    Plan(plan::Args),
    /// Builds a fingerprint file (F) from a crawl or from ready-made fingerprints
    Build(BuildArgs),
    /// Builds the index for online queries, in the folder of a fingerprint file
    Index(index::Args),
    /// Finds the fingerprints of a fingerprint file that are near the given ones, by its index
    Query(query::Args),
    /// Joins a fingerprint file (F) with a batch of queries (Q), or with itself
    Batch(BatchArgs),
}

#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Ready-made fingerprints instead of a crawl: folder of a run, fingerprint file, .u64 file or
    /// text; may be given again
    #[arg(long = "from", value_name = "URL", conflicts_with = "inputs")]
    from: Vec<String>,
    #[command(flatten)]
    workers: WorkerArgs,
}

#[derive(Debug, Args)]
pub(super) struct BatchArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Folder of a fingerprint file (F)
    #[arg(long, value_name = "URL")]
    fingerprints: Option<String>,
    /// Queries (Q): fingerprint file, folder of a run, .u64 file or text; may be given again
    /// [default: F is joined with itself]
    #[arg(long, value_name = "URL")]
    queries: Vec<String>,
    /// Number of bits in which fingerprints may differ (k)
    #[arg(long, value_name = "BITS")]
    k: Option<u32>,
    /// Print documents by group instead of pair by pair
    #[arg(long)]
    groups: bool,
    #[command(flatten)]
    workers: WorkerArgs,
}

pub(super) fn run(command: Command) -> Result<()> {
    match command {
        Command::Plan(args) => plan::run(args),
        Command::Index(args) => index::run(args),
        Command::Query(args) => query::run(args),
        Command::Build(args) => {
            let mut job = args.job.resolve()?;
            job.kind = JobKind::Fingerprints;
            if !args.from.is_empty() {
                job.fingerprints.from = args.from;
            }
            execute(job, &args.workers)
        }
        Command::Batch(args) => {
            let mut job_args = args.job;
            // Checked against the same range as in a job file.
            job_args.sets.extend(args.k.map(|k| format!("hamming.k={k}")));
            let mut job = job_args.resolve()?;
            job.kind = JobKind::Hamming;
            if let Some(fingerprints) = args.fingerprints {
                job.batch.fingerprints = fingerprints;
            }
            if !args.queries.is_empty() {
                job.batch.queries = args.queries;
            }
            job.batch.groups |= args.groups;
            execute(job, &args.workers)
        }
    }
}
