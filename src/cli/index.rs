//! `webtwin index RUN --output IDX`: builds an index of a run.

use std::path::PathBuf;
use std::time::Instant;

use super::{quantity, signals};
use webtwin_base::console::notify;
use webtwin_base::error::Result;
use webtwin_storage::location::Location;
use webtwin_view::lookup::build::{BuildSettings, RANGE_ROWS, build};
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
    /// Folder of the comparison whose newer result is RUN, path or URL: answers follow the avoid
    /// list in force instead of that of RUN alone
    #[arg(long, value_name = "URL")]
    in_force: Option<String>,
    /// Folder for the index: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    /// Also index the chunks of texts, so that texts can be compared with pages as the job does;
    /// reads the input again if the run has no table fprint_docid
    #[arg(long)]
    chunks: bool,
    /// Also index texts by their words, for `webtwin search`; reads the input again, and needs a
    /// build with the feature `search`
    #[arg(long)]
    text: bool,
    /// Also index simhashes, so that those within K bits are found [default of K: the job's setting
    /// hamming.k]
    #[arg(long, value_name = "K", num_args = 0..=1)]
    simhashes: Option<Option<u32>>,
    /// Memory for rows; the excess is spilled to the folder of --spill. Doc ids take 8 bytes a page
    /// in addition
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "512MiB", help_heading = "Effort")]
    memory: u64,
    /// Folder on a local disk for spilled data [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    spill: Option<PathBuf>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let settings = BuildSettings {
        run: args.run,
        active_rules: args.in_force,
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
    let start = Instant::now();
    let manifest = build(&settings).map_err(|error| work.explain(error))?;
    let count = |name: &str| manifest.counts.get(name).copied().unwrap_or_default();
    let bytes = manifest.files.iter().map(|file| file.bytes).sum();
    if settings.active_rules.is_some() {
        notify(format_args!("{} more pages are on the avoid list in force", count("standing")));
    }
    notify(format_args!(
        "indexed {} pages, {} prefixes and {} collections: {} in {:.1} s: {}",
        count("pages"),
        count("prefixes"),
        count("collections"),
        figures::bytes(bytes),
        start.elapsed().as_secs_f64(),
        settings.output
    ));
    notify(format_args!("next: webtwin lookup {} < urls.txt", settings.output));
    Ok(())
}
