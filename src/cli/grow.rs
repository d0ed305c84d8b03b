//! `webtwin grow`: grows similar clusters in any graph with known similar nodes (CSG00
//! section 6).

use super::{JobArgs, WorkerArgs, run::execute};
use webtwin_base::error::Result;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Table TRIVIAL, the labels of nodes: columns `label` (or `cluster`, `rid`) and `node` (or
    /// `page`, `pid`, `doc_id`, `url`); or a run, whose table `clusters` is read. May be given
    /// again
    #[arg(long, value_name = "URL", required = true)]
    trivial: Vec<String>,
    /// Table LINK, the links between these nodes: columns `src` and `dst`; or a run, whose table
    /// `links` is read. May be given again
    #[arg(long, value_name = "URL", required = true)]
    links: Vec<String>,
    /// Folder for the result: path or URL
    #[arg(long, value_name = "URL")]
    output: Option<String>,
    /// Setting, as KEY=VALUE; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    workers: WorkerArgs,
}

const EXAMPLES: &str = "\
Tables are Parquet, CSV or TSV with a header line, or JSON lines. They are named by paths, URLs, globs or folders.

Examples:
  webtwin grow --trivial labels.csv --links links.parquet --output out/
  webtwin grow --trivial labels.csv --links run/ --output out/ --set clusters.merge=extended";

pub(super) fn run(args: Args) -> Result<()> {
    let mut sets = vec!["preset=grow".into(), format!("pairs.from={}", serde_json::json!(args.trivial))];
    sets.extend(args.sets);
    let job =
        JobArgs { job: None, inputs: args.links, originals: Vec::new(), output: args.output, max_bad: None, sets };
    execute(job.resolve()?, &args.workers)
}
