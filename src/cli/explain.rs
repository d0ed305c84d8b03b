//! `webtwin explain RUN URL URL`, `webtwin explain NEW URL --against OLD`, and
//! `webtwin explain CORPUS RECORD RECORD`.

use serde::Serialize;

use webtwin_base::console::print;
use webtwin_base::error::{Error, Result};
use webtwin_core::explain::{captures, describe, duplicates};
use webtwin_dedup::explained::RecordPairQuery as AskedRecords;
use webtwin_results::FinishedRun;
use webtwin_results::captured::CapturePair;
use webtwin_results::explained::PagePairTables;

const EXAMPLES: &str = "\
Examples:
  webtwin explain out/ http://a.example/page http://b.example/page
  webtwin explain june/ http://a.example/page --against may/
  webtwin explain clean/ doc-17 doc-4711                           # records by id
  webtwin explain clean/ corpus/a.jsonl:0 corpus/b.jsonl.zst:12    # records by file and row, as in the table removed";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of a run, or of a corpus that `webtwin dedup` wrote
    run: String,
    /// URL of a page of the run, or a record of the corpus: its id or FILE:ROW
    url_a: String,
    /// URL of another page of the run, or another record
    #[arg(required_unless_present = "against", conflicts_with = "against")]
    url_b: Option<String>,
    /// Result of an older crawl: shows how the page has changed since, instead of comparing two
    /// pages
    #[arg(long, value_name = "OLD", conflicts_with = "read_crawl")]
    against: Option<String>,
    /// Read all pages again, not only those of the two hosts, to determine exactly which chunks
    /// count; not needed if the run has output.fprint_docid
    #[arg(long)]
    read_crawl: bool,
    /// Maximum number of chunks and lines of difference to print; 0 prints all
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print one JSON object with everything, instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let run = FinishedRun::open(&args.run)?;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    if run.manifest.job["kind"] == "dedup" {
        return records(&run, &args, limit);
    }
    if let Some(old) = &args.against {
        let captures = CapturePair::read(&FinishedRun::open(old)?, &run, &args.url_a)?;
        let explanation = captures.captures();
        return print_explanation(&args, &explanation, || captures::describe(&explanation, limit));
    }
    let url_b = args.url_b.as_deref().expect("the command line asks for it");
    let mut tables = PagePairTables::read(&run, [&args.url_a, url_b], args.read_crawl)?;
    let explanation = tables.explain()?;
    print_explanation(&args, &explanation, || describe(&explanation, limit))
}

/// Explains two records of a corpus.
fn records(run: &FinishedRun, args: &Args, limit: usize) -> Result<()> {
    let Some(record_b) = args.url_b.as_deref().filter(|_| !args.read_crawl) else {
        return Err(Error::Usage(format!(
            "{}: is a corpus, but --against and --read-crawl need a run with pages; leave them out",
            args.run
        )));
    };
    let records = AskedRecords::read(run, [&args.url_a, record_b])?;
    let explanation = records.explain();
    print_explanation(args, &explanation, || duplicates::describe(&explanation, limit))
}

/// Prints an explanation as JSON or as text.
fn print_explanation(args: &Args, explanation: &impl Serialize, words: impl FnOnce() -> String) -> Result<()> {
    let text = match args.json {
        true => serde_json::to_string(explanation).expect("an explanation is plain values") + "\n",
        false => words(),
    };
    print(|out| write!(out, "{text}"))
}
