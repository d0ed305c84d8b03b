//! `webtwin-lab reproduce NAME`.

use std::path::PathBuf;

use webtwin_base::console::print;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;
use webtwin_evaluate::table;

use super::{Options, entries, find};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a published table or figure, or of a figure of our own
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List all names, with a description
    #[arg(long)]
    list: bool,
    /// Main size, or `full` for the published one; by default one that ends within a minute
    #[arg(long, value_name = "N")]
    scale: Option<String>,
    /// A run's folder, for reproductions on real data
    #[arg(long, value_name = "URL")]
    input: Option<String>,
    /// The truth about its crawl, for reproductions that need one: a TSV as for `webtwin-lab evaluate`
    #[arg(long, value_name = "FILE", requires = "input")]
    truth: Option<PathBuf>,
    /// Folder for figures (SVG) and their data (TSV)
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Folder for temporary files, removed at the end; by default the system's temporary folder
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    work: Option<PathBuf>,
    /// Worker threads; by default all cores
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    if args.list {
        let all = entries();
        let width = all.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        return print(|out| {
            all.iter().try_for_each(|entry| {
                writeln!(
                    out,
                    "{:<width$}  {}; scale {}, full {} ({})",
                    entry.name, entry.about, entry.scale, entry.full, entry.unit
                )
            })
        });
    }
    let entry = find(args.name.as_deref().unwrap_or_default())?;
    let scale = match args.scale.as_deref() {
        None => entry.scale,
        Some("full") => entry.full,
        Some(scale) => scale
            .replace('_', "")
            .parse()
            .ok()
            .filter(|scale| *scale > 0)
            .ok_or_else(|| Error::Usage(format!("--scale {scale}: give a number of {}, or full", entry.unit)))?,
    };
    let work = args.work.unwrap_or_else(std::env::temp_dir).join(format!("webtwin-reproduce-{}", std::process::id()));
    let work = Temporary::at(work);
    std::fs::create_dir_all(work.path()).map_err(|cause| Error::storage(work.path().display().to_string(), cause))?;
    let options = Options {
        scale,
        input: args.input,
        truth: args.truth,
        work: work.path().to_path_buf(),
        output: args.output,
        workers: webtwin_cli::threads(args.workers),
    };
    let rows = (entry.run)(&options)?;
    if args.json {
        let object = serde_json::json!({
            "name": entry.name, "scale": scale, "machine": webtwin_base::build_info::machine(),
            "build": webtwin_base::build_info::version(), "rows": rows,
        });
        print(|out| writeln!(out, "{object}"))
    } else {
        let machine = webtwin_base::build_info::machine();
        print(|out| {
            writeln!(out, "{}: {}\nscale {scale} ({}), {machine}", entry.name, entry.about, entry.unit)?;
            write!(out, "{}", table(&rows))
        })
    }
}
