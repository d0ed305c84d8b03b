//! `webtwin diff OLD NEW`.

use std::path::PathBuf;
use std::time::Instant;

use super::{quantity, signals};
use crate::console::tell;
use crate::error::{Error, Result};
use crate::recrawl::{RANGE_ROWS, Settings, Summary, diff};
use crate::storage::location::Location;

const EXAMPLES: &str = "\
Examples:
  webtwin diff may/ june/ --output may-june/
  webtwin show may-june/pages_changed --columns what,url,other_url
  webtwin show may-june/hosts_changed --sort -gone --columns what,site,other_site,gone,new
  webtwin diff s3://bucket/may s3://bucket/june --output s3://bucket/may-june --texts
  webtwin explain june/ http://a.example/page --against may/";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Result of the older crawl: path or URL
    #[arg(value_name = "OLD")]
    old: String,
    /// Result of the newer crawl
    #[arg(value_name = "NEW")]
    new: String,
    /// Folder for the comparison: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    /// Read the texts of changed pages again, from the inputs of both results, and judge by what they have in common
    #[arg(long)]
    texts: bool,
    /// A setting of [recrawl], as recrawl.KEY=VALUE; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Memory for pages that only one crawl has; beyond it, --spill is used
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "256MiB", help_heading = "Effort")]
    memory: u64,
    /// Folder on a local disk for what does not fit in memory [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    spill: Option<PathBuf>,
    /// Threads; all cores when not given
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
}

impl Args {
    fn settings(self) -> Result<Settings> {
        if let Some(other) = self.sets.iter().find(|set| !set.trim_start().starts_with("recrawl.")) {
            let what =
                "the other settings are those of the two results; diff has those of recrawl, as recrawl.KEY=VALUE";
            return Err(Error::Usage(format!("--set {other}: {what}")));
        }
        let mut recrawl = crate::job::resolve("--set", "", &self.sets)?.recrawl;
        recrawl.texts |= self.texts;
        Ok(Settings {
            old: self.old,
            new: self.new,
            output: self.output,
            recrawl,
            workers: super::threads(self.workers),
            memory_bytes: self.memory,
            spill: self.spill.unwrap_or_else(std::env::temp_dir),
            range_rows: RANGE_ROWS,
        })
    }
}

pub(super) fn run(args: Args) -> Result<()> {
    let settings = args.settings()?;
    let work = signals::StoppableWork::writing(Location::parse(&settings.output)?);
    let began = Instant::now();
    let summary = diff(&settings, |_, _, _| Ok(())).map_err(|error| work.explain(error))?;
    report(&settings, &summary, began.elapsed().as_secs_f64());
    Ok(())
}

/// Reports the totals on stderr.
fn report(settings: &Settings, summary: &Summary, seconds: f64) {
    let Summary { pages_old, pages_new, .. } = summary;
    let list = |counts: &mut dyn Iterator<Item = (String, u64)>| {
        counts.filter(|one| one.1 > 0).map(|(what, n)| format!("{n} {what}")).collect::<Vec<_>>().join(", ")
    };
    let pages = list(&mut summary.pages.iter().map(|(what, n)| (what.to_string(), *n)));
    tell(format_args!("{pages_old} pages, then {pages_new}: {pages}"));
    for (what, counts) in [
        ("gone", list(&mut summary.gone.iter().map(|(why, n)| (why.clone(), *n)))),
        ("sites", list(&mut summary.sites_changed.iter().map(|(what, n)| (what.clone(), *n)))),
        ("avoid list", list(&mut summary.avoid_changed.iter().map(|(what, n)| (what.to_string(), *n)))),
    ] {
        if !counts.is_empty() {
            tell(format_args!("{what}: {counts}"));
        }
    }
    tell(format_args!("compared in {seconds:.1} s: {}", settings.output));
    tell(format_args!("next: webtwin show {} pages_changed --columns what,url,other_url", settings.output));
}
