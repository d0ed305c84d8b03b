//! Section 5.1: a second crawl that avoids the pages on the avoid list of the first.
//!
//! The web is a synthetic crawl of seven fifths of `scale` pages, because the second crawl of the
//! paper has 35 million pages and the first one 25 million. The first crawl fetches five sevenths
//! of these pages. The second one fetches every page, except those that the list of the first crawl
//! names or that begin with a prefix on it. That is the behaviour of a crawler with
//! `exports/urls.txt` and `exports/prefixes.txt`. A last crawl without a list shows the second
//! crawl for comparison.
//!
//! # Deviations
//! The paper does not describe the pages that only its second crawl has. There are therefore two
//! variants: one with new hosts, whose mirrors no list can contain, and one with new pages on all
//! hosts, which prefixes cover.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};

use super::super::source::{MeasuredRun, run_job};
use super::super::{FigureRow, Options, figure, row_against_published};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::doc_id;
use webtwin_dataflow::sinks::summary::Bar;
use webtwin_job::resolve;
use webtwin_results::compared::canonical;
use webtwin_synth::{Params, Synth, SynthPage};

const JOB: &str = include_str!("../../../jobs/repro/csg00-second-crawl.toml");

/// Avoid list of a run: the pages that an obedient crawler does not fetch.
struct List {
    urls: HashSet<String>,
    prefixes: Vec<String>,
}

impl List {
    fn of(run: &MeasuredRun) -> Result<List> {
        let lines = |path: &str| -> Result<Vec<String>> {
            let entry = run.manifest.files.iter().find(|file| file.path == path);
            let entry = entry
                .ok_or_else(|| Error::input(run.folder.name(), format!("has no {path}; run again with this build")))?;
            let text = run.manifest.read_file(&run.folder, entry)?;
            Ok(String::from_utf8_lossy(&text).lines().map(str::to_string).collect())
        };
        let mut prefixes = lines("exports/prefixes.txt")?;
        prefixes.sort_unstable();
        Ok(List { urls: lines("exports/urls.txt")?.into_iter().collect(), prefixes })
    }

    /// True if the list contains a canonical URL. Prefixes of a list do not contain each other, so
    /// only the last prefix at or before the URL can match.
    fn names(&self, url: &str) -> bool {
        let n_not_after = self.prefixes.partition_point(|prefix| prefix.as_str() <= url);
        self.urls.contains(url) || n_not_after > 0 && url.starts_with(&self.prefixes[n_not_after - 1])
    }
}

/// Runs the job on the pages of the web for which `is_fetched` is true.
fn crawl(
    options: &Options,
    web: &Synth,
    name: &str,
    is_fetched: impl Fn(&SynthPage, &str) -> bool,
) -> Result<MeasuredRun> {
    let path = options.work.join(format!("{name}.jsonl"));
    let failed = |cause: std::io::Error| Error::storage(path.display().to_string(), cause);
    let mut output = BufWriter::new(File::create(&path).map_err(failed)?);
    for page in web.pages(0..web.len()) {
        if is_fetched(&page, canonical(name, &page.url)?.as_str()) {
            let html = String::from_utf8_lossy(&page.html);
            let line = serde_json::json!({"url": page.url, "html": html, "fetch_time": page.fetch_time});
            writeln!(output, "{line}").map_err(failed)?;
        }
    }
    output.flush().map_err(failed)?;
    drop(output);
    let result = options.work.join(name).display().to_string();
    let value = |text: &str| serde_json::Value::from(text);
    let sets =
        [format!("input.urls=[{}]", value(&path.display().to_string())), format!("output.url={}", value(&result))];
    run_job(options, resolve("jobs/repro/csg00-second-crawl.toml", JOB, &sets)?)?;
    MeasuredRun::read(&result)
}

fn pages_of(run: &MeasuredRun) -> f64 {
    run.summary.pages.pages as f64
}

/// Returns the percentage of pages that have a replica.
fn replicated(bars: &[Bar]) -> f64 {
    bars.iter().filter(|bar| bar.replicas != "1").map(|bar| 100.0 * bar.share).sum()
}

fn n_similar(run: &MeasuredRun) -> f64 {
    replicated(&run.summary.replication_similar)
}

fn exact(run: &MeasuredRun) -> f64 {
    replicated(&run.summary.replication_exact)
}

/// Compares the replicas in the second crawl with and without a list.
pub(super) fn second_crawl(options: &Options) -> Result<Vec<FigureRow>> {
    if options.input.is_some() {
        return Err(Error::Usage("csg00-second-crawl makes its own crawls; leave out --input".into()));
    }
    let pages = options.scale * 7 / 5;
    let web = Synth::new(&Params { pages, ..Params::default() })?;
    let host = |page: &SynthPage| page.url.split('/').nth(2).unwrap_or_default().to_string();
    let mut rows = Vec::new();
    for (name, grows_by) in
        [("new hosts", &host as &dyn Fn(&SynthPage) -> String), ("new pages", &|page| page.url.clone())]
    {
        let job_name = |crawl: &str| format!("{crawl} {name}").replace(' ', "-");
        let first = crawl(options, &web, &job_name("first"), |page, _| doc_id(&grows_by(page)) % 7 < 5)?;
        let list = List::of(&first)?;
        let second = crawl(options, &web, &job_name("second"), |_, url| !list.names(url))?;
        let label_of = |what: &str| format!("{name}: {what}");
        rows.extend([
            figure(&label_of("first crawl"), pages_of(&first), "pages"),
            figure(&label_of("on its list"), first.summary.skip.pages as f64, "pages"),
            row_against_published(&label_of("similar in the first crawl"), n_similar(&first), 48.0, "%"),
            figure(&label_of("with an exact copy in the first crawl"), exact(&first), "%"),
            figure(&label_of("second crawl"), pages_of(&second), "pages"),
            row_against_published(&label_of("similar in the second crawl"), n_similar(&second), 13.0, "%"),
            row_against_published(&label_of("with an exact copy in the second crawl"), exact(&second), 8.0, "%"),
        ]);
    }
    let without_list = crawl(options, &web, "without", |_, _| true)?;
    rows.extend([
        figure("second crawl without a list", pages_of(&without_list), "pages"),
        figure("similar in it", n_similar(&without_list), "%"),
        figure("with an exact copy in it", exact(&without_list), "%"),
    ]);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_matches_its_urls_and_prefixes() {
        let strings = |of: &[&str]| of.iter().map(|url| url.to_string()).collect::<Vec<String>>();
        let list = List {
            urls: HashSet::from(["http://a.example/one".to_string()]),
            prefixes: strings(&["http://a.example/pub/", "http://b.example/m/"]),
        };
        for (url, is_listed) in [
            ("http://a.example/one", true),
            ("http://a.example/one.html", false),
            ("http://a.example/pub/x", true),
            ("http://a.example/pub/", true),
            ("http://a.example/puc/", false),
            ("http://b.example/m/z", true),
            ("http://b.example/", false),
            ("http://0.example/", false),
        ] {
            assert_eq!(list.names(url), is_listed, "{url}");
        }
    }
}
