//! Comparison of two crawl results: changes of pages, of sites and of the avoid list.
//!
//! ```text
//!  pages, old ─┐ first pass                            ┌─ votes for sites ─▶ sites.rs ─┐
//!              ├─ gather.rs ──▶ candidates by path ────┤                               ├─▶ pages that moved ─┐
//!  pages, new ─┘    │                                  └─ by text, moved.rs ───────────┘   moves.rs          │
//!                   └─▶ hashes ──▶ overlap.rs                                                                │
//!  pages, avoid of both, rejected ── second pass, range by range, changes.rs ◀───────────────────────────────┘
//! ```
//!
//! The comparison needs only two finished results. A doc id is the hash of a URL, so the tables of
//! two crawls can be merged by doc id. Both passes read the tables in ranges of doc ids. Threads
//! process the ranges in parallel, and rows are written in the order of the ranges.
//!
//! A comparison is a pure function of the two results and the settings. If old and new are
//! exchanged, then `new` and `gone`, `moved_from` and `moved_to`, `added` and `removed` are
//! exchanged, and nothing else changes.
//!
//! # Memory
//! Each thread holds one range of both results. A site takes 200 bytes, and another 100 bytes in
//! each thread. `memory_bytes` bounds the pages that only one crawl has and the hashes; the
//! remainder is spilled to the local disk. The writer holds one file of each table and, per thread,
//! one row group of a table. Nothing grows with the crawl except the sites, the lists of
//! `exports.rs` and `servers.rs`, and the pages that `url_rules.rs` examines again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;

use super::avoid::{self, COLUMNS};
use super::chronicle::VERSIONS;
use super::gather::{self, PageColumns};
use super::many_crawls::{self, PriorCrawls};
use super::past_texts::{PastIntervals, PastTexts, SavedPast};
use super::same_settings::{Comparable, comparable};
use super::standing::AvoidListInForce;
use super::stood::{self, FormerEntries};
use super::writer::ResultWriter;
use super::{CompareSummary, changes, exports, matrix, moves, overlap, refused, servers, sites, texts, url_rules};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_job::Recrawl;
use webtwin_results::FinishedRun;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_results::url_rules::CHANGED;
use webtwin_spill::MemoryPool;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::Manifest;
use webtwin_storage::output;
use webtwin_storage::table::Table;

/// Approximate maximum number of rows of both results in a range of doc ids, unless
/// [`CompareSettings::range_rows`] sets another.
const RANGE_ROWS: u64 = 1 << 18;

/// Approximate number of bytes that one row of a range takes while it is compared.
const ROW_BYTES: u64 = 512;

/// Returns the number of rows of both results that each of `workers` threads may merge at a time,
/// such that all threads stay within `memory_bytes`, not counting what grows with the crawl. The
/// minimum is 4096.
pub fn range_rows(memory_bytes: u64, workers: usize) -> u64 {
    (memory_bytes / workers as u64 / ROW_BYTES).clamp(1 << 12, RANGE_ROWS)
}

/// Maximum number of ranges. The memory of open readers in each thread grows with this number.
const RANGES: u32 = 512;

/// Inputs, output and resource limits of a comparison.
#[derive(Debug, Clone)]
pub struct CompareSettings {
    /// Folder of the older result.
    pub old: String,
    /// Folder of the newer one.
    pub new: String,
    /// Crawls before the older result.
    pub past: PastIntervals,
    /// Folder that receives the comparison.
    pub output: String,
    /// Thresholds and options that classify changes.
    pub recrawl: Recrawl,
    /// Number of threads.
    pub workers: usize,
    /// Memory budget for data that grows with the crawl, in bytes.
    pub memory_bytes: u64,
    /// Folder for data beyond that budget.
    pub spill: PathBuf,
    /// Approximate number of rows of both results that are merged at a time; see [`range_rows`].
    pub range_rows: u64,
}

/// Two results that can be compared.
pub struct ComparableResults {
    /// The older result.
    pub old: FinishedRun,
    /// The newer one.
    pub new: FinishedRun,
    /// Thresholds and options that classify changes.
    pub recrawl: Recrawl,
    /// Properties that the two results have in common.
    pub comparable: Comparable,
    /// Number of threads.
    pub workers: usize,
    /// Memory budget for data that grows with the crawl, and the spill folder.
    pub pool: MemoryPool,
    /// Ranges of doc ids.
    pub ranges: Ranges,
    pub(super) pages: [RangedTable; 2],
    pub(super) avoid: Option<[RangedTable; 2]>,
    /// Pages that earlier comparisons kept in force next to the older list. `None` if lists are not
    /// compared or no such pages are known.
    pub(super) stood: Option<FormerEntries>,
    /// True if the older list is lost; see [`PastIntervals::list_is_lost`].
    pub(super) list_is_lost: bool,
    /// Earlier comparison that holds the URL rules in force before the newer crawl.
    pub(super) saved: Option<SavedPast>,
    /// Texts of the crawls before the older one. `None` if the results have different settings.
    pub(super) past: Option<PastTexts>,
    start: Instant,
}

impl ComparableResults {
    /// Opens the two results and the earlier ones, and checks the files that will be read.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Usage`] naming the setting in which the results
    /// differ, and [`webtwin_base::error::Error::Input`] if a folder is not a crawl result or its
    /// files differ from what was written.
    pub fn open(settings: &CompareSettings) -> Result<ComparableResults> {
        let start = Instant::now();
        let (old, new) = (FinishedRun::open(&settings.old)?, FinishedRun::open(&settings.new)?);
        let comparable = comparable(&old, &new, settings.recrawl.across_settings)?;
        let ranges = Ranges::new(old.rows("pages") + new.rows("pages"), settings.range_rows, RANGES);
        let find =
            |run: &FinishedRun, table: &str| RangedTable::find(run, table, ("doc_id", 64), ranges, settings.workers);
        let pages = [&old, &new].map(|run| find(run, "pages"));
        let [pages_old, pages_new] = pages;
        let pages = [pages_old?, pages_new?].map(|table| table.expect("both results have pages, as has been checked"));
        let avoid = match comparable.settings {
            true => find(&old, "avoid")?.zip(find(&new, "avoid")?).map(|(old, new)| [old, new]),
            false => None,
        };
        let former_entries = match avoid {
            Some(_) => FormerEntries::open(&settings.past, ranges, settings.workers)?,
            None => None,
        };
        let past_texts =
            comparable.settings.then(|| PastTexts::open(&settings.past, VERSIONS, ranges, settings.workers));
        let past_texts = past_texts.transpose()?;
        let pool = MemoryPool::new(settings.memory_bytes, &settings.spill, "--spill");
        let (recrawl, workers) = (settings.recrawl.clone(), settings.workers);
        Ok(ComparableResults {
            old,
            new,
            recrawl,
            comparable,
            workers,
            pool,
            ranges,
            pages,
            avoid,
            stood: former_entries,
            list_is_lost: settings.past.list_is_lost,
            saved: settings.past.comparison.clone(),
            past: past_texts,
            start,
        })
    }

    /// Reads the rows of one range of `pages` from both results.
    pub(super) fn pages(&self, range: usize) -> Result<[Table; 2]> {
        let [old, new] = [0, 1].map(|side| self.pages[side].read(range, &PageColumns::NAMES));
        Ok([old?, new?])
    }

    /// Reads one range of the list in force before the newer crawl, and of the newer result's own
    /// list. Both tables are empty if lists are not compared.
    pub(super) fn avoid(&self, range: usize) -> Result<[Table; 2]> {
        let Some([_, new]) = &self.avoid else { return Ok([avoid::none(), avoid::none()]) };
        Ok([self.in_force(range)?, new.read(range, &COLUMNS)?])
    }

    /// Reads one range of the list in force before the newer crawl: rows of the older result and
    /// the rows that stood next to it.
    pub(super) fn in_force(&self, range: usize) -> Result<Table> {
        let Some([old, _]) = &self.avoid else { return Ok(avoid::none()) };
        let mut rows_in_force = old.read(range, &COLUMNS)?;
        if let Some(former_entries) = &self.stood {
            rows_in_force.append(former_entries.read(range)?)?;
            rows_in_force = stood::by_page(&rows_in_force)?;
        }
        Ok(rows_in_force)
    }

    /// Calls `visit` for each page of the list in force before the newer crawl, with the page's
    /// URL.
    ///
    /// # Errors
    /// Returns any error of [`RangedTable::read`].
    pub fn each_in_force(&self, visit: &mut dyn FnMut(DocId, &str)) -> Result<()> {
        for range in 0..self.ranges.count() {
            let rows_in_force = self.in_force(range)?;
            rows_in_force
                .u64("doc_id")?
                .iter()
                .zip(rows_in_force.text("url")?)
                .for_each(|(&doc_id, url)| visit(doc_id, url));
        }
        Ok(())
    }

    /// Reads one range of the pages that stood next to the older list.
    pub(super) fn stood(&self, range: usize) -> Result<Table> {
        self.stood.as_ref().map_or_else(|| Ok(avoid::none()), |stood| stood.read(range))
    }

    /// True if avoid lists are compared.
    pub(super) fn has_avoid(&self) -> bool {
        self.avoid.is_some()
    }

    /// Compares pages, sites, avoid lists and pairs of servers, and writes their tables. Pages of
    /// the collections in `ended_mirrors`, which ascend, leave the list.
    ///
    /// # Errors
    /// Returns any error of the tables, the stores and the disk, and
    /// [`webtwin_base::error::Error::Invariant`] if counts do not add up.
    ///
    /// # Cost
    /// The tables `pages` are read twice, all other tables once.
    pub fn compare(&self, ended_mirrors: &[DocId], writer: &mut ResultWriter) -> Result<CompareSummary> {
        let first_pass = gather::gather(self)?;
        let overlaps = overlap::overlaps(self, &first_pass)?;
        let page_moves = moves::find(self, &first_pass)?;
        let seen_urls = refused::read_seen(self, &first_pass.sites)?;
        let texts = self.recrawl.texts.then(|| texts::read(self)).transpose()?;
        let mut sites = first_pass.sites;
        let numbers = sites.numbers();
        let avoid_list = AvoidListInForce::collect(self, ended_mirrors)?;
        let (seen_urls, texts) = ((&seen_urls, &numbers), texts.as_ref());
        let (counts, judged_sites) =
            changes::changes(self, &page_moves, &first_pass.notes, seen_urls, texts, avoid_list.as_ref(), writer)?;
        // The first pass counted the pages of each site, the second pass their changes.
        sites.add(&numbers, &judged_sites);
        let table = sites::table(&sites, &page_moves.sites);
        writer.add("hosts_changed", table.clone())?;
        let cells: Vec<_> = overlaps.iter().map(|&(unit, overlap)| ([1, 0], unit, overlap)).collect();
        writer.add("crawl_overlap", overlap::table(&cells))?;
        let mut exports = Vec::new();
        let mut columns = BTreeMap::new();
        if self.comparable.settings {
            writer.add("server_pairs_changed", servers::changes(&self.old, &self.new)?)?;
            let (rules, counts) = url_rules::write(self, writer)?;
            exports = exports::write(self, avoid_list.as_ref(), &rules, writer)?;
            columns.insert(CHANGED.into(), json!(counts));
        }
        let mut summary = CompareSummary::new(self, &counts, &sites, table.text("what")?, overlaps, exports);
        summary.more = columns;
        Ok(summary)
    }

    /// Publishes the written tables as a result.
    ///
    /// # Errors
    /// Returns any error of [`ResultWriter::commit`].
    pub fn commit(&self, settings: &CompareSettings, summary: &CompareSummary, writer: ResultWriter) -> Result<()> {
        // The digest covers everything that the answer depends on: the files of both results, the
        // settings, and the options of the command line.
        let Recrawl { texts, across_settings, budget, .. } = self.recrawl;
        let options = json!({ "texts": texts, "across_settings": across_settings, "budget": budget });
        let answer = json!({
            "kind": "diff",
            "old": files(&self.old),
            "new": files(&self.new),
            "recrawl": &self.recrawl,
            "options": &options,
            "beside": &summary.beside,
            "patch": summary.patch,
        });
        let digest = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(answer.to_string().as_bytes()));
        let to_json = |url: &str, run: &FinishedRun| json!({ "url": url, "attempt": run.manifest.attempt, "digest": run.manifest.digest });
        let job = json!({
            "kind": "diff",
            "old": to_json(&settings.old, &self.old),
            "new": to_json(&settings.new, &self.new),
            "recrawl": &self.recrawl,
            "options": &options,
            "beside": &summary.beside,
            "patch": summary.patch,
        });
        let seconds = (self.start.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
        let manifest = Manifest {
            digest,
            recipes: self.new.manifest.recipes.clone(),
            workers: self.workers as u64,
            counts: summary.pages.iter().map(|(what, n)| (what.to_string(), *n)).collect(),
            seconds: BTreeMap::from([("diff".into(), seconds)]),
            ..Manifest::new(writer.attempt(), job)
        };
        writer.commit(summary, manifest)
    }
}

/// Returns the checksums of a result's files by path.
fn files(run: &FinishedRun) -> BTreeMap<&str, &str> {
    run.manifest.files.iter().map(|file| (file.path.as_str(), file.xxh3.as_str())).collect()
}

/// Compares the pages of two results and, if `prior` names earlier crawls, their collections;
/// writes the comparison. Collections are compared only if the settings of the two results are
/// equal, because other settings yield other collections.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::LostCommit`] if the output folder already has a result,
/// and any error of [`ComparableResults::open`], [`ComparableResults::compare`] and
/// [`many_crawls::compare`].
pub fn diff(settings: &CompareSettings, prior: Option<PriorCrawls>) -> Result<CompareSummary> {
    let folder = Location::parse(&settings.output)?;
    output::prepare(&folder)?;
    let comparison = ComparableResults::open(settings)?;
    let prior = prior.filter(|_| comparison.comparable.settings);
    let collections = prior.map(|before| many_crawls::compare(before, &comparison)).transpose()?;
    let mut writer = ResultWriter::new(&folder)?;
    let ended_mirrors = collections.as_ref().map_or(&[][..], |found| &found.ended_pages);
    let mut summary = comparison.compare(ended_mirrors, &mut writer)?;
    if let Some(comparison) = collections {
        comparison.add(&mut writer, &mut summary)?;
    }
    if comparison.comparable.settings && !settings.past.results.is_empty() {
        let cells = matrix::matrix(&comparison, &settings.past.results)?;
        writer.add("crawl_overlap", overlap::table(&cells))?;
    }
    comparison.commit(settings, &summary, writer)?;
    Ok(summary)
}
