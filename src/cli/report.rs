//! `webtwin report RUN`.

use crate::console::{print, tell};
use crate::error::Result;
use crate::report::{Wanted, page, read};
use crate::results::Run;
use crate::storage::location::Location;

const EXAMPLES: &str = "\
Examples:
  webtwin report out/                              report.html, to be opened in a browser
  webtwin report out/ --output s3://bucket/report.html
  webtwin report out/ --json --output - | jq .overview.skip";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of a run
    run: String,
    /// File to write, which is replaced: path or URL, or - for stdout; report.html or report.json in this folder when not given
    #[arg(long, value_name = "FILE")]
    output: Option<String>,
    /// What the report says as JSON, instead of a page
    #[arg(long)]
    json: bool,
    /// Most pairs of pages to show side by side; they are read again from the input of the run, if it is still there
    #[arg(long, value_name = "N", default_value_t = Wanted::default().pairs)]
    pairs: usize,
    /// Leave out what differs from run to run of the same job: times, memory, folders, build
    #[arg(long)]
    no_run_facts: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let run = Run::open(&args.run)?;
    let report = read(&run, &Wanted { pairs: args.pairs, machine: !args.no_run_facts })?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&report).expect("a report is plain values") + "\n",
        false => page(&report),
    };
    let output = args.output.unwrap_or_else(|| if args.json { "report.json" } else { "report.html" }.into());
    if output == "-" {
        return print(|out| out.write_all(text.as_bytes()));
    }
    Location::parse(&output)?.put(text.as_bytes())?;
    tell(format_args!("report: {output}"));
    Ok(())
}
