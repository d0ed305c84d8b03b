//! `webtwin diff OLD NEW`: compares results of crawls.

use std::path::PathBuf;
use std::time::Instant;

use super::{quantity, signals};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_compare::CompareSummary;
use webtwin_compare::many_crawls::PriorCrawls;
use webtwin_compare::past_texts::PastIntervals;
use webtwin_compare::saved;
use webtwin_compare::two_crawls::{CompareSettings, diff, range_rows};
use webtwin_job::{Job, Recrawl};
use webtwin_results::FinishedRun;
use webtwin_storage::location::Location;

/// Default memory budget for pages that only one crawl has, in bytes.
const MEMORY_BYTES: u64 = 256 << 20;

const EXAMPLES: &str = "\
Examples:
  webtwin diff may/ june/ --output may-june/
  webtwin show may-june/pages_changed --columns what,url,other_url
  webtwin show may-june/mirrors_changed --columns what,prefix,size_old,size_new,lag_crawls,lag_days
  webtwin show may-june/hosts_changed --sort -gone --columns what,site,other_site,gone,new
  webtwin diff june/ july/ --history may-june/ --output june-july/
  webtwin diff may/ june/ july/ --output june-july/ --budget 5000
  webtwin diff s3://bucket/may s3://bucket/june --output s3://bucket/may-june --texts
  webtwin explain june/ http://a.example/page --against may/";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Results of crawls, oldest first: paths or URLs. The last two are compared; those before them
    /// are history
    #[arg(value_name = "RESULT", required = true, num_args = 2..)]
    results: Vec<String>,
    /// Earlier comparison whose newer result is the older one of this comparison: its history is
    /// continued
    #[arg(long, value_name = "URL")]
    history: Option<String>,
    /// Number of pages that may be fetched to probe mirrors on the avoid list
    #[arg(long, value_name = "PAGES", default_value_t = Recrawl::default().budget)]
    budget: u64,
    /// Fraction of a mirror's pages that must have changed for probes to notice it, at a confidence
    /// of 95 %
    #[arg(long, value_name = "FRACTION", value_parser = quantity::part, default_value_t = Recrawl::default().probe_share)]
    probe_share: f64,
    /// Folder for the comparison: path or URL
    #[arg(long, value_name = "URL")]
    output: String,
    /// Read the texts of changed pages again, from the inputs of both results, and compare them by
    /// the chunks that they share
    #[arg(long)]
    texts: bool,
    /// Compare results of different settings, by pages and sites only
    #[arg(long)]
    across_settings: bool,
    /// Setting of [recrawl], as recrawl.KEY=VALUE; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Memory for pages that only one crawl has; the excess is spilled to the folder of --spill
    #[arg(long, value_name = "BYTES", value_parser = quantity::quantity, default_value = "256MiB", help_heading = "Effort")]
    memory: u64,
    /// Folder on a local disk for spilled data [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Effort")]
    spill: Option<PathBuf>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
}

impl Args {
    fn settings(&self) -> Result<CompareSettings> {
        if let Some(other_setting) = self.sets.iter().find(|set| !set.trim_start().starts_with("recrawl.")) {
            let message =
                "only settings of recrawl are accepted, as recrawl.KEY=VALUE; the two results have all others";
            return Err(Error::Usage(format!("--set {other_setting}: {message}")));
        }
        let mut recrawl = webtwin_job::resolve("--set", "", &self.sets)?.recrawl;
        (recrawl.texts, recrawl.across_settings) = (self.texts, self.across_settings);
        (recrawl.budget, recrawl.probe_share) = (self.budget, self.probe_share);
        let [.., old, new] = &self.results[..] else { unreachable!("two are required") };
        let workers = super::threads(self.workers);
        Ok(CompareSettings {
            old: old.clone(),
            new: new.clone(),
            past: PastIntervals::default(),
            output: self.output.clone(),
            recrawl,
            workers,
            memory_bytes: self.memory,
            spill: super::spill(self.spill.clone())?,
            range_rows: range_rows(self.memory, workers),
        })
    }
}

pub(super) fn run(args: Args) -> Result<()> {
    let mut settings = args.settings()?;
    for folder in args.results.iter().chain(&args.history) {
        refuse_within("--output", &settings.output, folder)?;
    }
    let work = signals::StoppableWork::writing(Location::parse(&settings.output)?);
    let start = Instant::now();
    let earlier = &args.results[..args.results.len() - 2];
    let prior = PriorCrawls::open(earlier, args.history.as_deref(), &settings.new)?;
    settings.past = prior.past(&settings.old)?;
    let summary = diff(&settings, Some(prior)).map_err(|error| work.explain(error))?;
    report(&settings, &summary, start.elapsed().as_secs_f64());
    Ok(())
}

/// Refuses an output folder that equals another folder or lies within it, where its files would be
/// foreign.
///
/// # Errors
/// Returns [`Error::Usage`] if the folder is refused.
pub(super) fn refuse_within(option: &str, url: &str, folder: &str) -> Result<()> {
    match Location::parse(url)?.is_within(&Location::parse(folder)?) {
        true => Err(Error::Usage(format!("{option} {url}: is inside the folder {folder}; choose a separate folder"))),
        false => Ok(()),
    }
}

/// Returns the comparison `url` if it exists and has a history.
///
/// # Errors
/// Returns [`Error::Storage`] if a store does not answer.
pub(super) fn with_history(url: &str) -> Result<Option<&str>> {
    let has_history = |run: FinishedRun| run.manifest.files.iter().any(|file| file.path == saved::NAME);
    match FinishedRun::open(url) {
        Err(Error::Input { .. }) => Ok(None),
        run => Ok(has_history(run?).then_some(url)),
    }
}

/// Compares the result of a scheduled job with the previous one, and continues the history of the
/// comparison `history`. No patches are written if the list that the crawler has is unknown.
///
/// # Errors
/// Returns any error of [`diff`].
pub(super) fn scheduled(
    job: &Job,
    old: &str,
    (history, list_is_lost): (Option<&str>, bool),
    workers: usize,
) -> Result<()> {
    let spill = &job.effort.spill;
    let prior = PriorCrawls::open(&[], history, &job.output.url)?;
    let settings = CompareSettings {
        old: old.into(),
        new: job.output.url.clone(),
        past: PastIntervals { list_is_lost, ..prior.past(old)? },
        output: job.recrawl.diff.clone(),
        recrawl: job.recrawl.clone(),
        workers,
        memory_bytes: MEMORY_BYTES,
        spill: if spill.is_empty() { std::env::temp_dir() } else { spill.into() },
        range_rows: range_rows(MEMORY_BYTES, workers),
    };
    let start = Instant::now();
    let summary = diff(&settings, Some(prior))?;
    report(&settings, &summary, start.elapsed().as_secs_f64());
    if list_is_lost {
        let folder = Location::parse(&settings.output)?.join("exports")?;
        notify(format_args!(
            "no patch of the avoid list was written, because the previous comparison is missing; \
             give the crawler the whole list in {folder}"
        ));
    }
    Ok(())
}

/// Reports the totals on stderr.
fn report(settings: &CompareSettings, summary: &CompareSummary, seconds: f64) {
    let CompareSummary { pages_old, pages_new, .. } = summary;
    if summary.is_backwards {
        let CompareSettings { old, new, .. } = settings;
        notify(format_args!(
            "warning: {new} was fetched before {old}, so there are no rates of change; name the \
             older result first"
        ));
    }
    let list = |counts: &mut dyn Iterator<Item = (String, u64)>| {
        counts.filter(|one| one.1 > 0).map(|(what, n)| format!("{n} {what}")).collect::<Vec<_>>().join(", ")
    };
    let pages = list(&mut summary.pages.iter().map(|(what, n)| (what.to_string(), *n)));
    notify(format_args!("{pages_old} pages in the older crawl, {pages_new} in the newer: {pages}"));
    for (label, counts) in [
        ("gone", list(&mut summary.gone.iter().map(|(why, n)| (why.clone(), *n)))),
        ("sites", list(&mut summary.sites_changed.iter().map(|(what, n)| (what.clone(), *n)))),
        ("avoid list", list(&mut summary.avoid_changed.iter().map(|(what, n)| (what.to_string(), *n)))),
        (
            "collections",
            list(&mut counts_of(summary, "mirrors").map(|(what, n)| (what.replace("lives", "live on"), n))),
        ),
        (
            "mirrors",
            list(&mut counts_of(summary, "crawls_behind").map(
                |(crawls_behind, n)| match crawls_behind.parse::<u32>() {
                    Ok(0) => ("up to date".into(), n),
                    Ok(1) => ("late by 1 crawl".into(), n),
                    Ok(crawls) => (format!("late by {crawls} crawls"), n),
                    Err(_) => (crawls_behind, n),
                },
            )),
        ),
    ] {
        if !counts.is_empty() {
            notify(format_args!("{label}: {counts}"));
        }
    }
    notify(format_args!("compared in {seconds:.1} s: {}", settings.output));
    notify(format_args!("next: webtwin show {} pages_changed --columns what,url,other_url", settings.output));
}

/// Returns counts by name that another step has added to the summary.
fn counts_of(summary: &CompareSummary, name: &str) -> impl Iterator<Item = (String, u64)> {
    let counts = summary.more.get(name).and_then(|counts| counts.as_object()).cloned().unwrap_or_default();
    counts.into_iter().map(|(what, n)| (what, n.as_u64().unwrap_or(0)))
}
