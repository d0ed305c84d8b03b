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
    /// Shows table designs, and predicts memory, time and disk; touches nothing
    Plan(plan::Args),
    /// Makes F, a fingerprint file, from a crawl or from ready-made fingerprints
    Build(BuildArgs),
    /// Makes the index for online queries, in F's folder
    Index(index::Args),
    /// Finds the fingerprints of F that are near these, online
    Query(query::Args),
    /// Joins F with a batch of queries, or with itself
    Batch(BatchArgs),
}

#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Ready-made fingerprints instead of a crawl: a run's folder, a fingerprint file, .u64, or text; may be given again
    #[arg(long = "from", value_name = "URL", conflicts_with = "inputs")]
    from: Vec<String>,
    #[command(flatten)]
    workers: WorkerArgs,
}

#[derive(Debug, Args)]
pub(super) struct BatchArgs {
    #[command(flatten)]
    job: JobArgs,
    /// F: folder of a fingerprint file
    #[arg(long, value_name = "URL")]
    fingerprints: Option<String>,
    /// Q: a fingerprint file, a run's folder, .u64, or text; may be given again; without any, F is joined with itself
    #[arg(long, value_name = "URL")]
    queries: Vec<String>,
    /// k: bits in which fingerprints may differ
    #[arg(long, value_name = "BITS")]
    k: Option<u32>,
    /// Documents by group instead of pair by pair
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
            let mut given = args.job;
            // Checked against the same range as in a job file.
            given.sets.extend(args.k.map(|k| format!("hamming.k={k}")));
            let mut job = given.resolve()?;
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
