//! The command line of `webtwin-lab`: one file per command.

use clap::{Parser, Subcommand};

use super::{evaluate, reproduce, synth};
use webtwin_base::build_info::version;
use webtwin_base::error::Result;
use webtwin_cli::program::{Program, StderrArgs};

/// Measures webtwin: runs against the truth about their crawls, and the published tables and
/// figures.
#[derive(Debug, Parser)]
#[command(name = "webtwin-lab", version = version(), max_term_width = 110, after_help = EXAMPLES)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    stderr: StderrArgs,
}

const EXAMPLES: &str = "\
Examples:
  webtwin-lab synth --pages 2000 --seed 1 --output crawl/
  webtwin-lab evaluate out/ --truth crawl/truth.tsv --bands
  webtwin-lab reproduce --list
  webtwin-lab reproduce mjs07-example-3-1
  webtwin-lab reproduce mjs07-batch --cluster cluster-config/two-processes.toml --process 0";

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes a synthetic crawl with planted replicas, and the truth about it
    Synth(synth::Args),
    /// Compares a run with a truth table: precision and recall of pairs, clusters and collections
    Evaluate(evaluate::Args),
    /// Reproduces a published table or figure, with our figures next to those of the paper
    Reproduce(reproduce::Args),
}

impl Program for CommandLine {
    fn stderr(&self) -> &StderrArgs {
        &self.stderr
    }

    fn run(self) -> Result<()> {
        match self.command {
            Command::Synth(args) => synth::run(args),
            Command::Evaluate(args) => evaluate::run(args),
            Command::Reproduce(args) => reproduce::run(args),
        }
    }
}
