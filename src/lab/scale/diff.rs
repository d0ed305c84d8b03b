//! Comparison of two results of many pages, as in `webtwin diff`.
//!
//! The synthetic tables resemble those of a crawl. Four pages of five stay, and a third of these
//! has other text. One of ten is removed and one of ten is new; a third of the new ones has the
//! text of a removed one. A quarter is on the avoid list, in which one row of ten has changed.

use super::super::measure::{forget_peak_memory, processor_seconds, seconds};
use super::super::{FigureRow, Options, figure};
use super::scaled;
use webtwin_base::build_info::peak_memory_bytes;
use webtwin_base::error::Result;
use webtwin_base::ids::splitmix64;
use webtwin_compare::past_texts::PastIntervals;
use webtwin_compare::two_crawls::{CompareSettings, diff, range_rows};
use webtwin_compare::writer::ResultWriter;
use webtwin_job::{Job, Recrawl};
use webtwin_storage::location::Location;
use webtwin_storage::manifest::Manifest;
use webtwin_storage::table::{Table, TableColumn};
use webtwin_storage::texts::StringTable;

/// Number of rows that are made at a time.
const ROWS: u64 = 1 << 16;

/// Number of pages of a site.
const SITE: u64 = 200;

/// Target seconds and gigabytes of memory, for 24 million pages on two cores.
const REACH: (f64, f64) = (60.0, 1.074);

/// Measures the comparison of two synthetic results.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let pages = options.scale;
    let path = |name: &str| options.work.join(name).display().to_string();
    for (name, is_new) in [("old", false), ("new", true)] {
        write_result(&Location::parse(&path(name))?, pages, is_new)?;
    }
    let settings = CompareSettings {
        old: path("old"),
        new: path("new"),
        past: PastIntervals::default(),
        output: path("diff"),
        recrawl: Recrawl::default(),
        workers: options.workers,
        memory_bytes: 256 << 20,
        spill: options.work.clone(),
        range_rows: range_rows(256 << 20, options.workers),
    };
    forget_peak_memory();
    let cpu_before = processor_seconds();
    let (clock_seconds, summary) = seconds(|| diff(&settings, None));
    let (cpu_used, summary) = (processor_seconds() - cpu_before, summary?);
    let rows = (summary.pages_old + summary.pages_new) as f64;
    let memory = peak_memory_bytes() as f64 / 1e9;
    let count = |what: &str| summary.pages[what] as f64;
    Ok(vec![
        figure("two results compared, by the clock", clock_seconds, "s").at_most(scaled(pages, REACH.0)),
        figure("processor time", cpu_used, "s"),
        figure("rows of pages", rows / clock_seconds / 1e6, "million a second"),
        figure("peak memory", memory, "GB").at_most(REACH.1),
        figure("pages with other text", count("near") + count("changed") + count("rewritten"), "pages"),
        figure("pages that moved", count("moved_from"), "pages"),
    ])
}

/// Writes a synthetic result of about `pages` pages.
fn write_result(folder: &Location, pages: u64, is_new: bool) -> Result<()> {
    let mut writer = ResultWriter::new(folder)?;
    // Of ten pages one is only in the old crawl, and one only in the new crawl.
    let (n_all, not_here) = (pages * 10 / 9, if is_new { 0 } else { 5 });
    let step = u64::MAX / n_all;
    for first in (0..n_all).step_by(ROWS as usize) {
        let numbers: Vec<u64> = (first..n_all.min(first + ROWS)).filter(|n| n % 10 != not_here).collect();
        let is_changed = |n: u64| is_new && splitmix64(n).is_multiple_of(3);
        // One new page of three has the text of a removed page.
        let shown_number = |n: u64| if n % 10 == 5 && splitmix64(n ^ 3).is_multiple_of(3) { n - 5 } else { n };
        let text = |n: u64| splitmix64(shown_number(n) ^ if is_changed(n) { 1 << 60 } else { 0 });
        let url = |n: u64| {
            format!("http://www.site{}.example/some/folder/page-{}.html", splitmix64(n) % (n_all / SITE + 1), n)
        };
        let surt = |n: u64| format!("example,site{})/some/folder/page-{}.html", splitmix64(n) % (n_all / SITE + 1), n);
        let ids = |value: &dyn Fn(u64) -> u64| TableColumn::Id(numbers.iter().map(|&n| value(n)).collect());
        let texts = |value: &dyn Fn(u64) -> String| TableColumn::Text(numbers.iter().map(|&n| value(n)).collect());
        let flips = |n: u64| if is_changed(n) { splitmix64(n ^ 7) & splitmix64(n ^ 8) & splitmix64(n ^ 9) } else { 0 };
        let table = Table::new([
            ("doc_id", ids(&|n| n * step)),
            ("url", texts(&url)),
            ("surt", texts(&surt)),
            ("fetch_time", TableColumn::Time(numbers.iter().map(|n| 1_700_000_000 + *n as i64 % 9000).collect())),
            ("body", ids(&|n| text(n) ^ 1)),
            ("text_bytes", TableColumn::Count(numbers.iter().map(|n| 1000 + n % 5000).collect())),
            ("chunks", TableColumn::U32(numbers.iter().map(|n| 20 + (n % 90) as u32).collect())),
            ("exact", ids(&text)),
            ("simhash", ids(&|n| splitmix64(shown_number(n)) ^ flips(n))),
            ("has_simhash", TableColumn::Bool(vec![true; numbers.len()])),
            ("source", texts(&|n| format!("crawl-{:05}.warc.gz", n % 100))),
            ("offset", TableColumn::Count(numbers.iter().map(|n| n * 5000).collect())),
        ]);
        writer.add("pages", table)?;
        let skipped_numbers: Vec<u64> =
            numbers.iter().copied().filter(|n| n % 4 == u64::from(is_new && n % 10 == 7)).collect();
        let avoid = Table::new([
            ("doc_id", TableColumn::Id(skipped_numbers.iter().map(|n| n * step).collect())),
            ("url", TableColumn::Text(skipped_numbers.iter().map(|&n| url(n)).collect())),
            ("keep_doc_id", TableColumn::Id(skipped_numbers.iter().map(|n| (n / 2) * step).collect())),
            ("keep_url", TableColumn::Text(skipped_numbers.iter().map(|&n| url(n / 2)).collect())),
            ("why", TableColumn::Text(skipped_numbers.iter().map(|_| "exact".to_string()).collect())),
        ]);
        writer.add("avoid", avoid)?;
    }
    let no_numbers = || TableColumn::U32(Vec::new());
    let (ids, names) = (|| TableColumn::Id(Vec::new()), || TableColumn::Text(StringTable::new()));
    let hosts = [("a", ids()), ("b", ids()), ("host_a", names()), ("host_b", names()), ("kind", names())];
    let counts =
        [("shared", no_numbers()), ("pages_a", no_numbers()), ("pages_b", no_numbers()), ("same_path", no_numbers())];
    let mut servers = Table::new(hosts);
    servers.columns.extend(Table::new(counts).columns);
    writer.add("server_pairs", servers)?;
    writer.add("rejected", Table::new([("reason", names()), ("detail", names())]))?;
    let job = Job::default();
    let manifest = Manifest {
        recipes: [("simhash".to_string(), job.simhash.recipe())].into(),
        ..Manifest::new(writer.attempt(), serde_json::to_value(&job).expect("a job is plain values"))
    };
    writer.commit(&"made up", manifest)
}
