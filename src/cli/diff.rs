//! `webtwin diff OLD NEW`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::{quantity, signals};
use webtwin_base::console::tell;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_compare::history::chronicle::Chronicle;
use webtwin_compare::history::compare::{self, Compared};
use webtwin_compare::history::saved::{self, Saved};
use webtwin_compare::recrawl::overlap::{self, Overlap};
use webtwin_compare::recrawl::past_texts::{Past, SavedPast};
use webtwin_compare::recrawl::same_settings::{comparable, will_be_comparable};
use webtwin_compare::recrawl::writer::Writer;
use webtwin_compare::recrawl::{Comparison, Settings, Summary, diff, range_rows};
use webtwin_job::Job;
use webtwin_results::Run;
use webtwin_storage::location::Location;

/// Memory for pages that only one crawl has, unless told.
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
    /// Results of crawls, oldest first: paths or URLs. The last two are compared; those before them are history
    #[arg(value_name = "RESULT", required = true, num_args = 2..)]
    results: Vec<String>,
    /// The comparison whose newer result is the older one of this: what it knew of crawls before is taken up
    #[arg(long, value_name = "URL")]
    history: Option<String>,
    /// Pages that may be fetched to probe mirrors on the avoid list [default: recrawl.budget]
    #[arg(long, value_name = "PAGES")]
    budget: Option<u64>,
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
    fn settings(&self) -> Result<Settings> {
        if let Some(other) = self.sets.iter().find(|set| !set.trim_start().starts_with("recrawl.")) {
            let what =
                "the other settings are those of the two results; diff has those of recrawl, as recrawl.KEY=VALUE";
            return Err(Error::Usage(format!("--set {other}: {what}")));
        }
        let mut recrawl = webtwin_job::resolve("--set", "", &self.sets)?.recrawl;
        recrawl.texts |= self.texts;
        recrawl.budget = self.budget.unwrap_or(recrawl.budget);
        let [.., old, new] = &self.results[..] else { unreachable!("two are required") };
        let workers = super::threads(self.workers);
        Ok(Settings {
            old: old.clone(),
            new: new.clone(),
            past: Past::default(),
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
    let began = Instant::now();
    let earlier = &args.results[..args.results.len() - 2];
    let before = Before::open(earlier, args.history.as_deref(), &settings.new)?;
    settings.past = before.past(&settings.old)?;
    let ended = |of: &Comparison| collections(before, of);
    let summary = diff(&settings, ended, add).map_err(|error| work.explain(error))?;
    report(&settings, &summary, began.elapsed().as_secs_f64());
    Ok(())
}

/// Refuses a folder to write to that is another one, or lies in it, where it would be a file that is not of that.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn refuse_within(option: &str, url: &str, folder: &str) -> Result<()> {
    match Location::parse(url)?.is_within(&Location::parse(folder)?) {
        true => Err(Error::Usage(format!("{option} {url}: it lies in {folder}; give it a folder of its own"))),
        false => Ok(()),
    }
}

/// The comparison of that name, if it is there and has a history.
///
/// # Errors
/// [`Error::Storage`] when a store does not tell.
pub(super) fn with_history(url: &str) -> Result<Option<&str>> {
    let knows = |run: Run| run.manifest.files.iter().any(|file| file.path == saved::NAME);
    match Run::open(url) {
        Err(Error::Input { .. }) => Ok(None),
        run => Ok(knows(run?).then_some(url)),
    }
}

/// Refuses before a scheduled job what would make its comparison with the result `old` fail after it: other settings, and a history
/// that does not know that result or was made with other ones. A result that is not there is not looked at.
///
/// # Errors
/// [`Error::Usage`] with what differs; those of a history that is damaged.
pub(super) fn refuse_what_will_differ(job: &Job, old: &str, history: Option<&str>) -> Result<()> {
    let Ok(old) = Run::open(old) else { return Ok(()) };
    will_be_comparable(&old, job)?;
    if let Some(url) = history.filter(|_| !job.recrawl.across_settings) {
        let History { name, saved, .. } = History::open(url, &old.manifest.recipes)?;
        Chronicle::take_up(&name, saved, &old.manifest.attempt, &job.recrawl)?;
    }
    Ok(())
}

/// Compares the result of a scheduled job with that before it. What the comparison `history` knew of earlier crawls is taken up.
/// There is no patch if nobody knows the list that the crawler had.
pub(super) fn scheduled(
    job: &Job,
    old: &str,
    (history, list_is_lost): (Option<&str>, bool),
    workers: usize,
) -> Result<()> {
    let spill = &job.effort.spill;
    let before = Before::open(&[], history, &job.output.url)?;
    let settings = Settings {
        old: old.into(),
        new: job.output.url.clone(),
        past: Past { list_is_lost, ..before.past(old)? },
        output: job.recrawl.diff.clone(),
        recrawl: job.recrawl.clone(),
        workers,
        memory_bytes: MEMORY_BYTES,
        spill: if spill.is_empty() { std::env::temp_dir() } else { spill.into() },
        range_rows: range_rows(MEMORY_BYTES, workers),
    };
    let began = Instant::now();
    let ended = |of: &Comparison| collections(before, of);
    let summary = diff(&settings, ended, add)?;
    report(&settings, &summary, began.elapsed().as_secs_f64());
    if list_is_lost {
        let folder = Location::parse(&settings.output)?.join("exports")?;
        tell(format_args!(
            "no patch, for the comparison before is missing: the crawler takes the whole list, {folder}"
        ));
    }
    Ok(())
}

/// What became of collections, and what that depends on beside the results.
struct Found {
    compared: Compared,
    beside: BTreeMap<String, Value>,
}

/// Looks what became of collections, if results of equal settings are compared: under other settings they are others. Returns the pages
/// of those that have ended, too.
fn collections(before: Before, of: &Comparison) -> Result<(Vec<DocId>, Option<Found>)> {
    if !of.comparable.settings {
        return Ok((Vec::new(), None));
    }
    let Before { earlier, history } = before;
    for run in &earlier {
        comparable(run, &of.new, false)?;
    }
    let attempts: Vec<&str> = earlier.iter().map(|run| run.manifest.attempt.as_str()).collect();
    let mut beside = BTreeMap::from([("earlier".to_string(), json!(attempts))]);
    let mut saved = None;
    if let Some(History { url, name, checksum, saved: history }) = history {
        beside.insert("history".into(), json!({ "url": url, "xxh3": checksum }));
        saved = Some((name, history));
    }
    let each_in_force = |with: &mut dyn FnMut(DocId, &str)| of.each_in_force(with);
    let before = compare::Before { earlier: &earlier, old: &of.old, saved, each_in_force: &each_in_force };
    let mut compared = compare::compare(before, &of.new, &of.recrawl, of.workers)?;
    if compared.is_backwards {
        let [new, old] = [&of.new, &of.old].map(|run| run.folder.name());
        tell(format_args!("{new} was fetched before {old}: there are no intervals, and so no rates"));
    }
    let ended = std::mem::take(&mut compared.ended);
    Ok((ended, Some(Found { compared, beside })))
}

/// Adds what became of collections to a comparison.
fn add(found: Option<Found>, writer: &mut Writer, summary: &mut Summary) -> Result<()> {
    let Some(Found { compared, beside }) = found else { return Ok(()) };
    summary.beside.extend(beside);
    for (name, table) in compared.tables {
        writer.add(name, table)?;
    }
    for (path, bytes) in compared.files {
        writer.file(&path, bytes)?;
    }
    let [old, new, both] = compared.collections;
    let collections = Overlap { old, new, both };
    writer.add("crawl_overlap", overlap::table(&[([1, 0], "collection", collections)]))?;
    summary.overlap.insert("collection", collections);
    summary.more.extend(compared.summary);
    Ok(())
}

/// What is known of the crawls before the older one.
struct Before {
    /// Their results as far as they were named, oldest first.
    earlier: Vec<Run>,
    history: Option<History>,
}

/// What an earlier comparison knows of crawls.
struct History {
    /// Its folder.
    url: String,
    /// The file of it, for messages.
    name: String,
    /// Checksum of that file.
    checksum: String,
    saved: Saved,
}

impl Before {
    /// Opens results and an earlier comparison; `new` is the newest result.
    fn open(earlier: &[String], history: Option<&str>, new: &str) -> Result<Before> {
        let earlier = earlier.iter().map(|url| Run::open(url)).collect::<Result<_>>()?;
        let open = |url| History::open(url, &Run::open(new)?.manifest.recipes);
        Ok(Before { earlier, history: history.map(open).transpose()? })
    }

    /// Where texts of those crawls are.
    fn past(&self, old: &str) -> Result<Past> {
        let results: Vec<String> = self.earlier.iter().rev().map(|run| run.folder.name().to_string()).collect();
        let Some(History { url, saved, .. }) = &self.history else {
            return Ok(Past { results, ..Past::default() });
        };
        let old = Run::open(old)?;
        let number = |run: &Run| saved.results.iter().find(|one| *one.1 == run.manifest.attempt).map(|one| *one.0);
        let known = [&old].into_iter().chain(self.earlier.iter().rev()).map(number);
        let newest = known.enumerate().find_map(|(at, number)| Some((at, number?)));
        let saved = newest.map(|(at, number)| {
            let later = saved.results.range(number + 1..).count() as u32;
            SavedPast { comparison: url.clone(), newest: at as u32 + 1, later }
        });
        Ok(Past { results, saved, ..Past::default() })
    }
}

impl History {
    fn open(url: &str, recipes: &BTreeMap<String, String>) -> Result<History> {
        let comparison = Run::open(url)?;
        let name = comparison.folder.join(saved::NAME)?.name().to_string();
        let file = comparison.manifest.files.iter().find(|file| file.path == saved::NAME);
        let file = file.ok_or_else(|| {
            let what = "has no history: it is no comparison, or one across settings; name the results themselves";
            Error::Usage(format!("--history {url}: {what}"))
        })?;
        let bytes = comparison.manifest.read_file(&comparison.folder, file)?;
        let saved = Saved::decode(&name, &bytes, recipes)?;
        Ok(History { url: url.to_string(), name, checksum: file.xxh3.clone(), saved })
    }
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
        ("collections", list(&mut counts_of(summary, "mirrors"))),
        (
            "mirrors",
            list(&mut counts_of(summary, "crawls_behind").map(|(behind, n)| match behind.parse::<u32>() {
                Ok(1) => ("1 crawl behind".into(), n),
                Ok(crawls) => (format!("{crawls} crawls behind"), n),
                Err(_) => (behind, n),
            })),
        ),
    ] {
        if !counts.is_empty() {
            tell(format_args!("{what}: {counts}"));
        }
    }
    tell(format_args!("compared in {seconds:.1} s: {}", settings.output));
    tell(format_args!("next: webtwin show {} pages_changed --columns what,url,other_url", settings.output));
}

/// Counts by name from a part of the summary that another step has added.
fn counts_of(summary: &Summary, name: &str) -> impl Iterator<Item = (String, u64)> {
    let counts = summary.more.get(name).and_then(|counts| counts.as_object()).cloned().unwrap_or_default();
    counts.into_iter().map(|(what, n)| (what, n.as_u64().unwrap_or(0)))
}
