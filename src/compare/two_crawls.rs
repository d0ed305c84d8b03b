//! The results of two crawls compared: what became of pages, sites and the avoid list.
//!
//! ```text
//!  pages, old ─┐ first pass                            ┌─ votes for sites ─▶ sites.rs ─┐
//!              ├─ gather.rs ──▶ candidates by path ────┤                               ├─▶ pages that moved ─┐
//!  pages, new ─┘    │                                  └─ by text, moved.rs ───────────┘   moves.rs          │
//!                   └─▶ hashes ──▶ overlap.rs                                                                │
//!  pages, avoid of both, rejected ── second pass, range by range, changes.rs ◀───────────────────────────────┘
//! ```
//!
//! Two finished results are all that is needed: a doc id is the hash of a URL, so tables of two crawls are merged by it. Both
//! passes read them in ranges of doc ids, which threads take in turn and which are written in order.
//!
//! A comparison is a function of the two results and the settings: when old and new change places, `new` and `gone`,
//! `moved_from` and `moved_to`, `added` and `removed` do, and nothing else.
//!
//! # Memory
//! A range of both results a thread; 200 bytes for each site, and 100 for it in each thread; `memory_bytes` for pages that one
//! crawl has and hashes, whose rest goes to the local disk; a file of each table as it is written, and a row group of one a thread.
//! Nothing grows with the crawl but the sites, the lists of `exports.rs` and `servers.rs`, and what `url_rules.rs` looks at again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;

use super::avoid::{self, COLUMNS};
use super::chronicle::VERSIONS;
use super::gather::{self, PageColumns};
use super::many_crawls::{self, Before};
use super::past_texts::{Past, PastTexts, SavedPast};
use super::same_settings::{Comparable, comparable};
use super::standing::Standing;
use super::stood::{self, Stood};
use super::writer::Writer;
use super::{Summary, changes, exports, matrix, moves, overlap, refused, servers, sites, texts, url_rules};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_job::Recrawl;
use webtwin_results::Run;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_results::url_rules::CHANGED;
use webtwin_spill::MemoryPool;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::Manifest;
use webtwin_storage::output;
use webtwin_storage::table::Table;

/// Most rows of both results in a range of doc ids, about, unless [`Settings::range_rows`] says otherwise.
const RANGE_ROWS: u64 = 1 << 18;

/// Bytes that a row of a range takes while it is judged, about.
const A_ROW: u64 = 512;

/// Rows of both results that each of so many threads merges at a time, so that they have room in so many bytes beside what grows with
/// the crawl; 4096 at least.
pub fn range_rows(memory_bytes: u64, workers: usize) -> u64 {
    (memory_bytes / workers as u64 / A_ROW).clamp(1 << 12, RANGE_ROWS)
}

/// The most ranges: what each thread holds open grows with them.
const RANGES: u32 = 512;

/// What is compared, and how much may be used for it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder of the older result.
    pub old: String,
    /// Folder of the newer one.
    pub new: String,
    /// Crawls before the older one.
    pub past: Past,
    /// Folder for the comparison.
    pub output: String,
    /// What counts as what.
    pub recrawl: Recrawl,
    /// Threads.
    pub workers: usize,
    /// Bytes for what grows with the crawl.
    pub memory_bytes: u64,
    /// Where the rest of it goes.
    pub spill: PathBuf,
    /// Rows of both results that are merged at a time, about: [`range_rows`].
    pub range_rows: u64,
}

/// Two results that can be compared.
pub struct Comparison {
    /// The older result.
    pub old: Run,
    /// The newer one.
    pub new: Run,
    /// What counts as what.
    pub recrawl: Recrawl,
    /// What they have in common.
    pub comparable: Comparable,
    /// Threads.
    pub workers: usize,
    /// Memory for what grows with the crawl, and where the rest of it goes.
    pub pool: MemoryPool,
    /// Ranges of doc ids.
    pub ranges: Ranges,
    pub(super) pages: [RangedTable; 2],
    pub(super) avoid: Option<[RangedTable; 2]>,
    /// What stood beside the older list; `None` where lists are not compared, and where nothing is known of it.
    pub(super) stood: Option<Stood>,
    /// [`Past::list_is_lost`].
    pub(super) list_is_lost: bool,
    /// The comparison that knows the rules in force before the newer crawl.
    pub(super) saved: Option<SavedPast>,
    /// Texts of crawls before the older one; `None` where results of different settings are compared.
    pub(super) past: Option<PastTexts>,
    began: Instant,
}

impl Comparison {
    /// Opens two results and those before them, and checks the files that are going to be read.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Usage`] naming a setting by which they differ; [`webtwin_base::error::Error::Input`] if one is no result of
    /// a crawl, or not as it was written.
    pub fn open(settings: &Settings) -> Result<Comparison> {
        let began = Instant::now();
        let (old, new) = (Run::open(&settings.old)?, Run::open(&settings.new)?);
        let comparable = comparable(&old, &new, settings.recrawl.across_settings)?;
        let ranges = Ranges::of(old.rows("pages") + new.rows("pages"), settings.range_rows, RANGES);
        let find = |run: &Run, table: &str| RangedTable::find(run, table, ("doc_id", 64), ranges, settings.workers);
        let pages = [&old, &new].map(|run| find(run, "pages"));
        let [pages_old, pages_new] = pages;
        let pages = [pages_old?, pages_new?].map(|table| table.expect("both results have pages, as has been checked"));
        let avoid = match comparable.settings {
            true => find(&old, "avoid")?.zip(find(&new, "avoid")?).map(|(old, new)| [old, new]),
            false => None,
        };
        let stood = match avoid {
            Some(_) => Stood::open(&settings.past, ranges, settings.workers)?,
            None => None,
        };
        let past = comparable.settings.then(|| PastTexts::open(&settings.past, VERSIONS, ranges, settings.workers));
        let past = past.transpose()?;
        let pool = MemoryPool::new(settings.memory_bytes, &settings.spill, "--spill");
        let (recrawl, workers) = (settings.recrawl.clone(), settings.workers);
        Ok(Comparison {
            old,
            new,
            recrawl,
            comparable,
            workers,
            pool,
            ranges,
            pages,
            avoid,
            stood,
            list_is_lost: settings.past.list_is_lost,
            saved: settings.past.saved.clone(),
            past,
            began,
        })
    }

    /// Rows of a range of `pages` in both results.
    pub(super) fn pages(&self, range: usize) -> Result<[Table; 2]> {
        let [old, new] = [0, 1].map(|side| self.pages[side].read(range, &PageColumns::NAMES));
        Ok([old?, new?])
    }

    /// Rows of a range of the list in force before the newer crawl, and of that of its result; none where they are not compared.
    pub(super) fn avoid(&self, range: usize) -> Result<[Table; 2]> {
        let Some([_, new]) = &self.avoid else { return Ok([avoid::none(), avoid::none()]) };
        Ok([self.in_force(range)?, new.read(range, &COLUMNS)?])
    }

    /// Rows of a range of the list in force before the newer crawl: those of the older result, and what stood beside it.
    pub(super) fn in_force(&self, range: usize) -> Result<Table> {
        let Some([old, _]) = &self.avoid else { return Ok(avoid::none()) };
        let mut in_force = old.read(range, &COLUMNS)?;
        if let Some(stood) = &self.stood {
            in_force.append(stood.read(range)?)?;
            in_force = stood::by_page(&in_force)?;
        }
        Ok(in_force)
    }

    /// Calls something for each page of the list in force before the newer crawl, with its URL.
    ///
    /// # Errors
    /// As [`RangedTable::read`].
    pub fn each_in_force(&self, with: &mut dyn FnMut(DocId, &str)) -> Result<()> {
        for range in 0..self.ranges.count() {
            let in_force = self.in_force(range)?;
            in_force.u64("doc_id")?.iter().zip(in_force.text("url")?).for_each(|(&doc_id, url)| with(doc_id, url));
        }
        Ok(())
    }

    /// Rows of a range of pages that stood beside the older list.
    pub(super) fn stood(&self, range: usize) -> Result<Table> {
        self.stood.as_ref().map_or_else(|| Ok(avoid::none()), |stood| stood.read(range))
    }

    /// Whether avoid lists are compared.
    pub(super) fn has_avoid(&self) -> bool {
        self.avoid.is_some()
    }

    /// Compares pages, sites, avoid lists and pairs of servers, and writes their tables. Nothing stands on the list for pages of
    /// collections that have `ended`, ascending.
    ///
    /// # Errors
    /// Those of tables, stores and the disk; [`webtwin_base::error::Error::Invariant`] if counts do not add up.
    ///
    /// # Cost
    /// The tables `pages` are read twice, others once.
    pub fn compare(&self, ended: &[DocId], writer: &mut Writer) -> Result<Summary> {
        let gathered = gather::gather(self)?;
        let overlaps = overlap::overlaps(self, &gathered)?;
        let moves = moves::find(self, &gathered)?;
        let seen = refused::seen(self, &gathered.sites)?;
        let texts = self.recrawl.texts.then(|| texts::read(self)).transpose()?;
        let mut sites = gathered.sites;
        let numbers = sites.numbers();
        let standing = Standing::of(self, ended)?;
        let (seen, texts) = ((&seen, &numbers), texts.as_ref());
        let (counts, judged) = changes::changes(self, &moves, &gathered.notes, seen, texts, standing.as_ref(), writer)?;
        // Pages of sites were counted in the first pass, what became of them in the second.
        sites.add(&numbers, &judged);
        let table = sites::table(&sites, &moves.sites);
        writer.add("hosts_changed", table.clone())?;
        let cells: Vec<_> = overlaps.iter().map(|&(unit, overlap)| ([1, 0], unit, overlap)).collect();
        writer.add("crawl_overlap", overlap::table(&cells))?;
        let mut exports = Vec::new();
        let mut more = BTreeMap::new();
        if self.comparable.settings {
            writer.add("server_pairs_changed", servers::changes(&self.old, &self.new)?)?;
            let (rules, counts) = url_rules::write(self, writer)?;
            exports = exports::write(self, standing.as_ref(), &rules, writer)?;
            more.insert(CHANGED.into(), json!(counts));
        }
        let mut summary = Summary::new(self, &counts, &sites, table.text("what")?, overlaps, exports);
        summary.more = more;
        Ok(summary)
    }

    /// Makes what has been written a result.
    ///
    /// # Errors
    /// As [`Writer::commit`].
    pub fn commit(&self, settings: &Settings, summary: &Summary, writer: Writer) -> Result<()> {
        // What the answer depends on: both results, by their files, the settings, and options of the command line.
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
        let of = |url: &str, run: &Run| json!({ "url": url, "attempt": run.manifest.attempt, "digest": run.manifest.digest });
        let job = json!({
            "kind": "diff",
            "old": of(&settings.old, &self.old),
            "new": of(&settings.new, &self.new),
            "recrawl": &self.recrawl,
            "options": &options,
            "beside": &summary.beside,
            "patch": summary.patch,
        });
        let seconds = (self.began.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
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

/// The files of a result by path, with their checksums.
fn files(run: &Run) -> BTreeMap<&str, &str> {
    run.manifest.files.iter().map(|file| (file.path.as_str(), file.xxh3.as_str())).collect()
}

/// Compares two results and writes the comparison: their pages and, if it is told what came `before` them, their collections.
/// Those are compared only if the settings of the results are equal: under other settings they are others.
///
/// # Errors
/// Those of [`Comparison::open`], [`Comparison::compare`] and [`many_crawls::compare`];
/// [`webtwin_base::error::Error::LostCommit`] when there is a result already.
pub fn diff(settings: &Settings, before: Option<Before>) -> Result<Summary> {
    let folder = Location::parse(&settings.output)?;
    output::prepare(&folder)?;
    let comparison = Comparison::open(settings)?;
    let before = before.filter(|_| comparison.comparable.settings);
    let collections = before.map(|before| many_crawls::compare(before, &comparison)).transpose()?;
    let mut writer = Writer::new(&folder)?;
    let ended = collections.as_ref().map_or(&[][..], |found| &found.ended);
    let mut summary = comparison.compare(ended, &mut writer)?;
    if let Some(found) = collections {
        found.add(&mut writer, &mut summary)?;
    }
    if comparison.comparable.settings && !settings.past.results.is_empty() {
        let cells = matrix::matrix(&comparison, &settings.past.results)?;
        writer.add("crawl_overlap", overlap::table(&cells))?;
    }
    comparison.commit(settings, &summary, writer)?;
    Ok(summary)
}
