//! `webtwin index RUN --output IDX`: builds an index of a run.

use std::path::PathBuf;
use std::time::Instant;

use super::{quantity, signals};
use webtwin_base::console::tell;
use webtwin_base::error::Result;
use webtwin_storage::location::Location;
use webtwin_view::lookup::build::{RANGE_ROWS, Settings, build};
use webtwin_view::report::figures;

const EXAMPLES: &str = "\
Examples:
  webtwin index out/ --output idx/
  webtwin index out/ --output idx/ --chunks --simhashes
  webtwin index out/ --output idx/ --text
  webtwin index run-7/ --in-force diff-7/ --output idx/    # a crawl that obeyed the list
  webtwin lookup idx/ < urls.txt > answers.txt
  webtwin serve idx/";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of a run: path or URL
    run: String,
    /// Folder of the comparison whose newer result RUN is, path or URL: answer by the list in
    /// force, and not by that of RUN alone
    #[arg(long, value_name = "URL")]
    in_force: Option<String>,
    /// Folder for the index: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    /// Also index the chunks of texts, so that texts can be compared with pages as the job does; reads the input again if the run
    /// has no table fprint_docid
    #[arg(long)]
    chunks: bool,
    /// Also index texts by their words, for `webtwin search`; reads the input again. Needs a build with the feature `search`
    #[arg(long)]
    text: bool,
    /// Also index simhashes, so that those within k bits are found; K when not given is that of the job (hamming.k)
    #[arg(long, value_name = "K", num_args = 0..=1)]
    simhashes: Option<Option<u32>>,
    /// Memory for rows on their way; beyond it, --spill is used. Doc ids take 8 bytes a page beside it
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "512MiB", help_heading = "Effort")]
    memory: u64,
    /// Folder on a local disk for what does not fit in memory [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    spill: Option<PathBuf>,
    /// Threads; all cores when not given
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let settings = Settings {
        run: args.run,
        in_force: args.in_force,
        output: args.output,
        chunks: args.chunks,
        text: args.text,
        simhashes: args.simhashes,
        workers: super::threads(args.workers),
        memory_bytes: args.memory,
        spill: super::spill(args.spill)?,
        range_rows: RANGE_ROWS,
    };
    let work = signals::StoppableWork::writing(Location::parse(&settings.output)?);
    let began = Instant::now();
    let manifest = build(&settings).map_err(|error| work.explain(error))?;
    let count = |name: &str| manifest.counts.get(name).copied().unwrap_or_default();
    let bytes = manifest.files.iter().map(|file| file.bytes).sum();
    if settings.in_force.is_some() {
        tell(format_args!("{} pages more stand on the list in force", count("standing")));
    }
    tell(format_args!(
        "{} pages, {} prefixes, {} collections: {} in {:.1} s: {}",
        count("pages"),
        count("prefixes"),
        count("collections"),
        figures::bytes(bytes),
        began.elapsed().as_secs_f64(),
        settings.output
    ));
    tell(format_args!("next: webtwin lookup {} < urls.txt", settings.output));
    Ok(())
}
