//! `webtwin explain RUN URL URL`.

use crate::console::print;
use crate::error::Result;
use crate::explain::tell;
use crate::results::Run;
use crate::results::explained::Asked;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a run
    run: String,
    /// URL of a page of the run
    url_a: String,
    /// URL of another page of the run
    url_b: String,
    /// Read all pages again, not only those of the two hosts, to know for certain which chunks count; not needed if the
    /// run has output.fprint_docid
    #[arg(long)]
    read_crawl: bool,
    /// Chunks and lines of difference to print; 0 prints all
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// One JSON object with everything, instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let run = Run::open(&args.run)?;
    let mut asked = Asked::read(&run, [&args.url_a, &args.url_b], args.read_crawl)?;
    let said = asked.explain()?;
    if args.json {
        let object = serde_json::to_string(&said).expect("an explanation is plain values");
        print(|out| writeln!(out, "{object}"))
    } else {
        let text = tell(&said, if args.limit == 0 { usize::MAX } else { args.limit });
        print(|out| write!(out, "{text}"))
    }
}
