//! Look-ups in an index of many synthetic pages on one core, and comparison of texts with many
//! pages by shared chunks.
//!
//! Half of the queried URLs were crawled, in random order. A quarter of those may be skipped.

use super::super::measure::{core_seconds, forget_peak_memory, median, seconds};
use super::super::{FigureRow, Options, figure};
use webtwin_base::build_info::peak_memory_bytes;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, doc_id, splitmix64};
use webtwin_compare::writer::ResultWriter;
use webtwin_job::Job;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::Manifest;
use webtwin_storage::table::{Table, TableColumn};
use webtwin_view::lookup::LookupIndex;
use webtwin_view::lookup::answer::{LineForm, LookupSession, answer_lines};
use webtwin_view::lookup::build::{BuildSettings, RANGE_ROWS, build};
use webtwin_view::lookup::chunks::compare;

/// Number of rows that are made at a time.
const ROWS: usize = 1 << 16;

/// Number of pages of a site.
const SITE: u64 = 200;

/// Number of queried URLs, and number of URLs in a batch.
const QUERIED_URLS: u64 = 1_000_000;
const BATCH: u64 = 1000;

/// Target rate of URLs per second on one core. A server must reach 400,000 with `POST
/// /v1/pages.txt`.
const REACH: f64 = 500_000.0;

/// Number of chunks of a page, and number of pages of a family, whose pages share most chunks.
const CHUNKS: u64 = 40;
const FAMILY: u64 = 4;

/// Number of texts that are compared.
const TEXTS: u64 = 5000;

/// Target median of the seconds of a comparison.
const NEAR_REACH: f64 = 1e-3;

fn url(n: u64, pages: u64) -> String {
    let site = splitmix64(n / SITE) % (pages / SITE + 1);
    format!("http://www.site{site}.example/some/folder/of-{}/page-{n}.html", n % 7)
}

/// Measures look-ups in an index of `scale` pages. The index is kept in `--output` if that is
/// given.
pub(super) fn look_ups(options: &Options) -> Result<Vec<FigureRow>> {
    let pages = options.scale;
    let run = options.work.join("run").display().to_string();
    write_result(&Location::parse(&run)?, pages, false)?;
    let index = options.output.as_ref().unwrap_or(&options.work).join("idx").display().to_string();
    forget_peak_memory();
    let (making, manifest) = seconds(|| build(&settings(options, &run, &index, false)));
    let bytes: u64 = manifest?.files.iter().map(|file| file.bytes).sum();
    let peak = peak_memory_bytes() as f64 / 1e9;
    let (opening, index_opened) = seconds(|| LookupIndex::open(&index));
    let index_opened = index_opened?;
    let batches: Vec<String> = (0..QUERIED_URLS / BATCH)
        .map(|batch| {
            let url_number = |at: u64| splitmix64(batch * BATCH + at) % (2 * pages);
            (0..BATCH).map(|at| url(url_number(at), pages) + "\n").collect()
        })
        .collect();
    let mut asker = LookupSession::new(&index_opened, None);
    let mut answers = String::new();
    let mut pass = || -> Result<f64> {
        let (duration, result) = core_seconds(|| {
            batches.iter().try_for_each(|lines| {
                answers.clear();
                answer_lines(&mut asker, lines, LineForm::default(), &mut answers).map(drop)
            })
        });
        result.map(|()| QUERIED_URLS as f64 / duration)
    };
    // The first pass reads the mapped files, and checks them.
    let first = pass()?;
    let rates: Vec<f64> = (0..5).map(|_| pass()).collect::<Result<_>>()?;
    let mut n_skipped = 0;
    for batch in &batches[..10] {
        answers.clear();
        answer_lines(&mut LookupSession::new(&index_opened, None), batch, LineForm::default(), &mut answers)?;
        n_skipped += answers.lines().filter(|line| line.starts_with("skip\t")).count();
    }
    Ok(vec![
        figure("index made, by the clock", making, "s"),
        figure("peak memory", peak, "GB"),
        figure("bytes of the index", bytes as f64 / pages as f64, "bytes a page"),
        figure("index opened", opening * 1000.0, "ms").at_most(100.0),
        figure("URLs a second on a core, first pass", first, "URLs/s"),
        figure("URLs a second on a core", median(rates), "URLs/s").at_least(REACH),
        figure("of 10,000 URLs asked for, skipped", n_skipped as f64, "URLs"),
    ])
}

/// Measures the comparison of texts with `scale` pages by shared chunks.
pub(super) fn near(options: &Options) -> Result<Vec<FigureRow>> {
    let pages = options.scale;
    let run = options.work.join("run").display().to_string();
    write_result(&Location::parse(&run)?, pages, true)?;
    let index = options.output.as_ref().unwrap_or(&options.work).join("idx").display().to_string();
    let (making, manifest) = seconds(|| build(&settings(options, &run, &index, true)));
    let bytes: u64 = manifest?.files.iter().filter(|file| file.path.starts_with("chunks")).map(|file| file.bytes).sum();
    let lookup_index = LookupIndex::open(&index)?;
    let overlap = &lookup_index.about.run.job.overlap;
    let (mut times, mut n_similar) = (Vec::new(), 0);
    for text in 0..TEXTS {
        // The text is a page of the crawl in which three chunks are replaced.
        let page = splitmix64(text ^ 77) % pages;
        let mut fprints: Vec<u64> =
            (0..CHUNKS).map(|at| if at < 3 { splitmix64((text << 8) | at) } else { chunk(page, at) }).collect();
        fprints.sort_unstable();
        let (duration, comparison) = seconds(|| compare(&lookup_index, &fprints, overlap));
        n_similar += usize::from(comparison?.is_some_and(|compared| compared.near.len() as u64 >= FAMILY));
        times.push(duration);
    }
    times.sort_unstable_by(f64::total_cmp);
    let quantile = |share: f64| times[(share * (times.len() - 1) as f64) as usize] * 1e6;
    Ok(vec![
        figure("index with chunks made, by the clock", making, "s"),
        figure("bytes of chunks", bytes as f64 / pages as f64, "bytes a page"),
        figure("a text compared, median", quantile(0.5), "us").at_most(NEAR_REACH * 1e6),
        figure("a text compared, 99 of 100", quantile(0.99), "us"),
        figure("texts whose whole family was found", n_similar as f64 / TEXTS as f64, "share").at_least(1.0),
    ])
}

fn settings(options: &Options, run: &str, index: &str, chunks: bool) -> BuildSettings {
    BuildSettings {
        active_rules: None,
        run: run.into(),
        output: index.into(),
        chunks,
        text: false,
        simhashes: None,
        workers: options.workers,
        memory_bytes: 512 << 20,
        spill: options.work.clone(),
        range_rows: RANGE_ROWS,
    }
}

/// Returns a chunk of a page. All but four chunks are common to its family.
fn chunk(page: u64, number: u64) -> u64 {
    let chunk_owner = if number < CHUNKS - 4 { (page / FAMILY) | (1 << 60) } else { page };
    splitmix64((chunk_owner << 8) | number)
}

/// Writes a synthetic result of `pages` pages, of which a quarter may be skipped in favour of the
/// page before them.
fn write_result(folder: &Location, pages: u64, chunks: bool) -> Result<()> {
    let mut writer = ResultWriter::new(folder)?;
    let mut rows: Vec<(DocId, u64)> = (0..pages).map(|n| (doc_id(&url(n, pages)), n)).collect();
    // The table `pages` of a result is sorted by doc id.
    rows.sort_unstable();
    let is_skipped = |n: u64| n % 4 == 1;
    for batch in rows.chunks(ROWS) {
        let ids = |value: &dyn Fn(u64) -> u64| TableColumn::Id(batch.iter().map(|row| value(row.1)).collect());
        let texts = |value: &dyn Fn(u64) -> String| TableColumn::Text(batch.iter().map(|row| value(row.1)).collect());
        // A copy has the text of the page before it, unless texts are compared by chunks.
        let text = |n: u64| splitmix64(if is_skipped(n) && !chunks { n - 1 } else { n } | (1 << 61));
        let host = |n: u64| url(n, pages).split('/').nth(2).unwrap_or_default().to_string();
        writer.add(
            "pages",
            Table::new([
                ("doc_id", TableColumn::Id(batch.iter().map(|row| row.0).collect())),
                ("url", texts(&|n| url(n, pages))),
                ("host", texts(&host)),
                ("title", texts(&|n| format!("Page {n} of {}", host(n)))),
                (
                    "fetch_time",
                    TableColumn::Time(batch.iter().map(|row| 1_700_000_000 + row.1 as i64 % 9000).collect()),
                ),
                ("exact", ids(&text)),
                ("simhash", ids(&text)),
                ("has_simhash", TableColumn::Bool(vec![true; batch.len()])),
            ]),
        )?;
        let skipped_rows: Vec<(DocId, u64)> = batch.iter().copied().filter(|row| is_skipped(row.1)).collect();
        writer.add(
            "avoid",
            Table::new([
                ("doc_id", TableColumn::Id(skipped_rows.iter().map(|row| row.0).collect())),
                (
                    "keep_doc_id",
                    TableColumn::Id(skipped_rows.iter().map(|row| doc_id(&url(row.1 - 1, pages))).collect()),
                ),
                ("why", TableColumn::Text(skipped_rows.iter().map(|_| "exact".to_string()).collect())),
            ]),
        )?;
    }
    let pair = |&(id, n): &(DocId, u64)| (doc_id(&url(n - 1, pages)), id);
    let mut pairs: Vec<(DocId, DocId)> = rows.iter().filter(|row| is_skipped(row.1)).map(pair).collect();
    pairs.iter_mut().for_each(|pair| *pair = (pair.0.min(pair.1), pair.0.max(pair.1)));
    pairs.sort_unstable();
    for batch in pairs.chunks(ROWS) {
        writer.add(
            "clusters",
            Table::new([
                ("cluster", TableColumn::Id(batch.iter().flat_map(|pair| [pair.0; 2]).collect())),
                ("doc_id", TableColumn::Id(batch.iter().flat_map(|pair| [pair.0, pair.1]).collect())),
                ("role", TableColumn::Text(batch.iter().flat_map(|_| ["keep", "exact"].map(String::from)).collect())),
            ]),
        )?;
    }
    if chunks {
        let mut table: Vec<(u64, DocId)> =
            rows.iter().flat_map(|&(id, n)| (0..CHUNKS).map(move |at| (chunk(n, at), id))).collect();
        table.sort_unstable();
        for batch in table.chunks(ROWS) {
            let fprints = TableColumn::Id(batch.iter().map(|row| row.0).collect());
            let ids = TableColumn::Id(batch.iter().map(|row| row.1).collect());
            writer.add("fprint_docid", Table::new([("fprint", fprints), ("doc_id", ids)]))?;
        }
    }
    writer.file(
        "exports/prefixes.txt",
        (0..1000).map(|n| format!("http://www.mirror{n}.example/pub/\n")).collect::<String>(),
    )?;
    let job = Job::default();
    let manifest = Manifest {
        recipes: [("simhash".to_string(), job.simhash.recipe())].into(),
        ..Manifest::new(writer.attempt(), serde_json::to_value(&job).expect("a job is plain values"))
    };
    writer.commit(&"made up", manifest)
}
