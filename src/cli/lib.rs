//! Command line of `webtwin`, one file per command, and the start-up code of all programs of the
//! workspace.

mod archive;
mod check;
mod completions;
mod dedup;
mod diff;
mod earlier_crawls;
mod explain;
mod grow;
mod hamming;
mod index;
#[cfg(feature = "serve")]
mod live;
mod lookup;
mod manual;
mod outcome;
mod plan;
mod print_text;
pub mod program;
mod progress;
mod quantity;
#[cfg(feature = "serve")]
mod read_ahead;
mod records;
mod recrawl;
mod report;
mod retries;
mod run;
#[cfg(feature = "search")]
mod search;
#[cfg(feature = "serve")]
mod serve;
mod show;
mod signals;
mod state;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use webtwin_base::error::{Error, Result};
use webtwin_engine::{ClusterLayout, Launcher, cluster_file};
use webtwin_job::Job;
use webtwin_results::{decisions, foreign};
use webtwin_spill::MemoryPool;

// Used by the expansion of [`program!`].
#[doc(hidden)]
pub use {git_version::git_version, webtwin_base::heap};

use program::{Program, StderrArgs};

/// Finds what the web says twice: near-replica pages, mirrored collections and the hosts that carry
/// them.
#[derive(Debug, Parser)]
#[command(name = "webtwin", version = webtwin_base::build_info::version(), max_term_width = 110, after_help = EXAMPLES)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    stderr: StderrArgs,
}

const EXAMPLES: &str = "\
Examples:
  webtwin run --input 'crawl/*.warc.gz' --output out/
  webtwin run --input 'synth://?pages=2000&seed=1' --output out/
  webtwin run --job jobs/replicas.toml --input s3://bucket/crawl/ --output s3://bucket/twins --set overlap.min_resemblance=0.7
  webtwin run --job jobs/replicas.toml --input crawl/ --output out/ --cluster cluster-config/two-processes.toml --process 0
  webtwin report out/
  webtwin show out/collections --limit 20
  webtwin diff may/ june/ --output may-june/
  webtwin dedup 'corpus/*.jsonl.zst' --output clean/
  webtwin explain out/ http://a.example/page http://b.example/page
  webtwin hamming build --input 'crawl/*.warc.gz' --output f/ && webtwin hamming batch --fingerprints f/ --output near/
  webtwin hamming index --fingerprints f/ && webtwin hamming query --fingerprints f/ 0123456789abcdef
  (cd out && duckdb -init views.sql)";

#[derive(Debug, Subcommand)]
enum Command {
    /// Finds similar pages, mirrored collections and an avoid list in a crawl, or runs another kind
    /// of job
    Run(run::Args),
    /// Validates a job file and a cluster file, and prints the job with all settings; reads no
    /// input
    Check(check::Args),
    /// Predicts rows, pairs, memory, disk and time of a run from a sample of its input; writes
    /// nothing
    Plan(plan::Args),
    /// Removes exact copies and near-duplicates from a corpus of texts
    Dedup(dedup::Args),
    /// Compares the results of two crawls: changes of pages, sites, mirrors and the avoid list
    Diff(diff::Args),
    /// Writes a report of a result as one HTML file that opens without a network
    Report(report::Args),
    /// Prints a table of a result
    Show(show::Args),
    /// Explains why two pages of a run are in one trivial cluster or not, or two records of a
    /// corpus are duplicates or not
    Explain(explain::Args),
    /// Builds an index of a run, to look up single URLs and texts
    Index(index::Args),
    /// Looks up URLs from stdin in an index: prints fetch, skip, unknown or reject, and the page
    /// that stays
    Lookup(lookup::Args),
    /// Searches the texts of an index by words, with mirrored collections and copies rolled up to
    /// one result each
    #[cfg(feature = "search")]
    Search(search::Args),
    /// Searches the texts of an index by words; not in this build, which lacks the cargo feature
    /// `search`
    #[cfg(not(feature = "search"))]
    #[command(override_usage = "webtwin search INDEX WORDS...", after_help = webtwin_view::lookup::build::no_search())]
    Search {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<String>,
    },
    /// Serves an index over HTTP: look-ups, near-duplicates of texts, sets of copies
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    /// Serves an index over HTTP; not in this build, which lacks the cargo feature `serve`
    #[cfg(not(feature = "serve"))]
    #[command(override_usage = "webtwin serve INDEX", after_help = no_server())]
    Serve {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<String>,
    },
    /// Serves a live index over HTTP: takes pages as they are fetched, and advises the crawler
    /// which copies to skip
    #[cfg(feature = "serve")]
    Live(live::Args),
    /// Serves a live index over HTTP; not in this build, which lacks the cargo feature `serve`
    #[cfg(not(feature = "serve"))]
    #[command(override_usage = "webtwin live DIR", after_help = no_server())]
    Live {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<String>,
    },
    /// Grows similar clusters in any graph with labels of similar nodes
    Grow(grow::Args),
    /// Solves the Hamming distance problem: table designs, fingerprint files, online and batch
    /// queries
    #[command(subcommand)]
    Hamming(hamming::Command),
    /// Shows, checks and prunes the state of scheduled runs (`webtwin run --state`)
    #[command(subcommand)]
    State(state::Command),
    /// Archives WARC files with each payload stored once: copies become revisit records
    Archive(archive::ArchiveArgs),
    /// Restores the WARC files of an archive
    Restore(archive::RestoreArgs),
    /// Prints completions for a shell
    Completions(completions::Args),
    /// Writes manual pages, for packages
    #[command(hide = true)]
    Manual(manual::Args),
}

/// Arguments that say what to compute.
#[derive(Debug, Args)]
#[command(next_help_heading = "Job")]
struct JobArgs {
    /// Job file (TOML) [default: the job `replicas` with the settings that `webtwin check` prints]
    #[arg(long, value_name = "FILE")]
    job: Option<PathBuf>,
    /// Input: path, URL, glob, folder, @LIST or synth://?pages=N&seed=S; may be given again
    #[arg(long = "input", value_name = "URL")]
    inputs: Vec<String>,
    /// Input of an earlier crawl in which revisit records find their originals; its pages are
    /// not part of this run. May be given again
    #[arg(long, value_name = "URL")]
    originals: Vec<String>,
    /// Folder for the result: path or URL
    #[arg(long, value_name = "URL")]
    output: Option<String>,
    /// Maximum fraction of damaged records in one input before the run fails [default: the setting
    /// input.max_bad]
    #[arg(long, value_name = "SHARE")]
    max_bad: Option<f64>,
    /// Setting that overrides the job file, as KEY=VALUE; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

impl JobArgs {
    /// Resolves the job: defaults, then the job file, then `--set`, then `--input` and `--output`.
    fn resolve(&self) -> Result<Job> {
        let (file, text) = match &self.job {
            None => ("--set".to_string(), String::new()),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|cause| Error::Usage(format!("job file {}: {cause}; check --job", path.display())))?;
                (format!("job file {}", path.display()), text)
            }
        };
        let mut sets = self.sets.clone();
        sets.extend(self.max_bad.map(|share| format!("input.max_bad={share:?}")));
        let mut job = webtwin_job::resolve(&file, &text, &sets)?;
        if !self.inputs.is_empty() {
            job.input.urls = self.inputs.clone();
        }
        if !self.originals.is_empty() {
            job.input.originals = self.originals.clone();
        }
        if let Some(output) = &self.output {
            job.output.url = output.clone();
        }
        decisions::bind(&mut job)?;
        foreign::bind(&mut job)?;
        Ok(job)
    }
}

/// Arguments that say where to compute it.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Number of worker threads of a run in one process [default: all cores]
    #[arg(long, value_name = "N", conflicts_with = "cluster", help_heading = "Effort",
        value_parser = clap::value_parser!(u16).range(1..=cluster_file::MAX_WORKERS as i64))]
    workers: Option<u16>,
    /// Cluster file, with the processes of a run and their addresses; `slurm` or `kubernetes` reads
    /// them from the environment
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub cluster: Option<PathBuf>,
    /// Number of this process in the cluster file, from 0
    #[arg(long, value_name = "N", requires = "cluster", help_heading = "Cluster")]
    process: Option<usize>,
}

impl WorkerArgs {
    /// Returns the cluster and the number of this process in it. Without arguments it is a single
    /// process with all cores of this machine.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if arguments and environment do not determine the number of this
    /// process, and any error of [`ClusterLayout::load`].
    pub fn resolve(&self) -> Result<(ClusterLayout, usize)> {
        let Some(cluster) = &self.cluster else { return Ok((ClusterLayout::local(threads(self.workers)), 0)) };
        match (launcher(cluster), self.process) {
            (Some(launcher), None) => launcher.cluster(|name| std::env::var(name).ok()),
            (None, Some(process)) => {
                let cluster = ClusterLayout::load(cluster)?;
                cluster.check_process(process).map(|()| (cluster, process))
            }
            (Some(_), Some(_)) => Err(Error::Usage(format!(
                "--process is set by the environment with --cluster {}; leave it out",
                cluster.display()
            ))),
            (None, None) => Err(Error::Usage(format!(
                "--cluster {}: the number of this process is missing; add --process N, its position \
                 in that file from 0",
                cluster.display()
            ))),
        }
    }
}

/// Returns the launcher that describes the cluster if no file does: `slurm` is a launcher,
/// `./slurm` a file.
fn launcher(cluster: &Path) -> Option<Launcher> {
    cluster.to_str().and_then(Launcher::named)
}

/// Returns the requested number of threads, by default all cores of this machine.
fn threads(requested: Option<u16>) -> usize {
    requested.map_or_else(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()), usize::from)
}

/// Returns the spill folder: the requested one, which must exist, or the system's temporary folder.
fn spill(requested: Option<PathBuf>) -> Result<PathBuf> {
    let Some(folder) = requested else { return Ok(std::env::temp_dir()) };
    MemoryPool::new(0, &folder, "--spill").look()?;
    Ok(folder)
}

/// Returns the message for a build without a server.
#[cfg(not(feature = "serve"))]
fn no_server() -> String {
    webtwin_base::build_info::lacks("cannot serve", "serve")
}

impl Program for CommandLine {
    fn stderr(&self) -> &StderrArgs {
        &self.stderr
    }

    fn run(self) -> Result<()> {
        match self.command {
            Command::Run(args) => run::run(args),
            Command::Check(args) => check::run(args),
            Command::Plan(args) => plan::run(args),
            Command::Dedup(args) => dedup::run(args),
            Command::Diff(args) => diff::run(args),
            Command::Report(args) => report::run(args),
            Command::Show(args) => show::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Index(args) => index::run(args),
            Command::Lookup(args) => lookup::run(args),
            #[cfg(feature = "search")]
            Command::Search(args) => search::run(args),
            #[cfg(not(feature = "search"))]
            Command::Search { .. } => Err(Error::Usage(webtwin_view::lookup::build::no_search())),
            #[cfg(feature = "serve")]
            Command::Serve(args) => serve::run(args),
            #[cfg(not(feature = "serve"))]
            Command::Serve { .. } | Command::Live { .. } => Err(Error::Usage(no_server())),
            #[cfg(feature = "serve")]
            Command::Live(args) => live::run(args),
            Command::Grow(args) => grow::run(args),
            Command::Hamming(command) => hamming::run(command),
            Command::State(command) => state::run(command),
            Command::Archive(args) => archive::archive(args),
            Command::Restore(args) => archive::restore(args),
            Command::Completions(args) => completions::run(args),
            Command::Manual(args) => manual::run(args),
        }
    }
}
