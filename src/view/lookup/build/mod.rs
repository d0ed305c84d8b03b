//! Builds an index from a finished run.
//!
//! ```text
//!  pages ── doc ids ─▶ ranks ──┬─ clusters, collections, members ─▶ lists of ranks; what they say of a page, by rank ─┐
//!                              └─ avoid ──────────────────────────────────────────────────────────────────────────────┤
//!  pages again, range by range ─▶ rows, contents, URLs, origins ◀──────────────────────────────────────────────────────┘
//!                              ├─ words of titles and URLs ─▶ names of clusters and mirrors; hosts
//!                              └─ hashes of texts ─▶ texts, and which pages are exact copies
//!  pages' texts read again, each once ─▶ words, and the pages of each text
//!  fprint_docid, or the pages' texts read again ─▶ chunks that count, with the pages that have them
//! ```
//!
//! The same run yields the same bytes: rows are written in the order of their keys, independent of
//! threads.
//!
//! # Memory
//! 8 bytes a page for doc ids, 12 bytes for a trivial cluster and 48 for a collection. With texts
//! 40 bytes a page more, and the complete table `pages`. With chunks 8 bytes a page more for host
//! and count. With simhashes 16 bytes a page more, and the memory of
//! [`webtwin_core::hamming::online::Builder`]. Other data that grows with the crawl is bounded by
//! [`BuildSettings::memory_bytes`] and spilled to the local disk beyond that.

mod chunks;
mod lists;
mod pages;
mod sets;
mod staged;
mod standing;
#[cfg(feature = "search")]
mod texts;
mod unknown;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use xxhash_rust::xxh3::xxh3_128;

use self::staged::StagedIndex;
use super::about::{FORMAT, IndexSubject, RunInfo};
use super::index::STANDING_COLUMN;
use webtwin_base::build_info::lacks;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_core::hamming::design::choose::{candidates, choose};
use webtwin_core::hamming::design::k_below;
use webtwin_core::hamming::design::machine::ProbeCosts;
use webtwin_core::hamming::online::{self, Builder};
use webtwin_job::JobKind;
use webtwin_results::FinishedRun;
use webtwin_results::ranges::{RangedTable, Ranges};
use webtwin_spill::MemoryPool;
use webtwin_storage::location::{Location, seen_from_anywhere, working_folder};
use webtwin_storage::manifest::{FileEntry, Manifest};
use webtwin_storage::output;

/// Approximate number of rows of a range of doc ids.
pub const RANGE_ROWS: u64 = 1 << 17;

/// Maximum number of ranges. Each range keeps a block of rows open.
const RANGES: u32 = 1024;

/// Returns the message for a build without search.
pub fn no_search() -> String {
    lacks("cannot search", "search")
}

/// Inputs, output and resource limits of an index build.
#[derive(Debug, Clone)]
pub struct BuildSettings {
    /// Folder of the run.
    pub run: String,
    /// Folder of the comparison whose list is in force. `None` for the run's own list.
    pub active_rules: Option<String>,
    /// Folder that receives the index.
    pub output: String,
    /// True to store chunks, so that texts can be compared with pages by shared chunks.
    pub chunks: bool,
    /// `Some` to store simhashes, so that texts can be compared with pages by them. The inner value
    /// is the maximum Hamming distance k; `None` for the job's.
    pub simhashes: Option<Option<u32>>,
    /// True to store texts, so that pages can be found by words. Requires the cargo feature
    /// `search`.
    pub text: bool,
    /// Number of threads.
    pub workers: usize,
    /// Memory budget in bytes for data that can be spilled.
    pub memory_bytes: u64,
    /// Folder for spilled data.
    pub spill: PathBuf,
    /// Approximate number of rows that are read at a time; see [`RANGE_ROWS`].
    pub range_rows: u64,
}

/// Shared state of all steps.
struct Making<'s> {
    settings: &'s BuildSettings,
    run: FinishedRun,
    /// Comparison whose list is in force.
    comparison: Option<FinishedRun>,
    ranges: Ranges,
    pages: RangedTable,
    pool: MemoryPool,
    /// Doc ids, ascending. The index of a doc id is the rank of its page.
    doc_ids: Vec<DocId>,
}

impl Making<'_> {
    fn rank(&self, page: DocId) -> Result<u32> {
        let missing = |_| {
            Error::input(
                self.run.folder.name(),
                format!("a table refers to page {page}, which the table pages lacks; run the job again"),
            )
        };
        self.doc_ids.binary_search(&page).map(|rank| rank as u32).map_err(missing)
    }

    /// Opens a table of the run that is sorted by `key`. Returns `None` if the run does not have
    /// it.
    fn table(&self, name: &str, key: &str) -> Result<Option<RangedTable>> {
        self.table_of(&self.run, name, key)
    }

    /// Opens a table of another result in the same ranges.
    fn table_of(&self, run: &FinishedRun, name: &str, key: &str) -> Result<Option<RangedTable>> {
        RangedTable::find(run, name, (key, 64), self.ranges, self.settings.workers)
    }

    /// Returns the result whose list is in force.
    fn lister(&self) -> &FinishedRun {
        self.comparison.as_ref().unwrap_or(&self.run)
    }
}

/// Builds the index and returns its manifest.
///
/// # Errors
/// Returns [`Error::Usage`] for a run of another kind, or if texts are requested without the
/// feature `search`. Returns [`Error::Input`] if a table or input has changed, and
/// [`Error::LostCommit`] if the folder already has a result. Also returns any error of disk and
/// store.
///
/// # Cost
/// Reads the tables `pages`, `clusters`, `collections`, `members`, `avoid` and `rejected`, `pages`
/// twice. With chunks it also reads `fprint_docid`; without that table it reads the whole input,
/// and holds the table `pages` in memory.
pub fn build(settings: &BuildSettings) -> Result<Manifest> {
    let start_time = Instant::now();
    if settings.text && !cfg!(feature = "search") {
        return Err(Error::Usage(no_search()));
    }
    let folder = Location::parse(&settings.output)?;
    output::prepare(&folder)?;
    let run = FinishedRun::open(&settings.run)?;
    let job = match run.manifest.job["kind"].as_str() {
        Some("replicas") => run.job()?,
        kind => {
            let kind = kind.unwrap_or("another kind");
            return Err(Error::Usage(format!(
                "{}: the result is of kind {kind}, but an index needs one of kind replicas",
                run.folder
            )));
        }
    };
    debug_assert_eq!(job.kind, JobKind::Replicas);
    let comparison = settings.active_rules.as_ref().map(|url| standing::open(url, &run)).transpose()?;
    let rows = run.rows("pages");
    // Ranks have 32 bits, and the largest value means no page.
    if rows >= u64::from(u32::MAX) {
        return Err(Error::TooManyRows { what: "pages".into(), found: rows, allowed: u64::from(u32::MAX) - 1 });
    }
    let ranges = Ranges::new(rows, settings.range_rows, RANGES);
    let pages = RangedTable::find(&run, "pages", ("doc_id", 64), ranges, settings.workers)?
        .ok_or_else(|| Error::input(run.folder.name(), "the result has no table pages; run the job again"))?;
    let pool = MemoryPool::new(settings.memory_bytes, &settings.spill, "--spill");
    let mut making =
        Making { settings, run, comparison, ranges, pages, pool, doc_ids: Vec::with_capacity(rows as usize) };
    for range in 0..ranges.count() {
        making.doc_ids.extend_from_slice(making.pages.read(range, &["doc_id"])?.u64("doc_id")?);
    }
    // Ranks require that doc ids are distinct.
    if !making.doc_ids.is_sorted_by(|x, y| x < y) {
        let message = "two pages have the same doc_id; name a result that webtwin wrote";
        return Err(Error::input(making.run.folder.name(), message));
    }

    let mut index_files = StagedIndex::new(&folder)?;
    let mut words = sets::WordNumbers::default();
    // Sets are written first, because the row of a page has the numbers of its sets.
    let said_by = sets::write(&making, &mut words, &mut index_files)?;
    let summary =
        pages::write(&making, said_by.facts, (&said_by.places, &said_by.roots), &mut words, &mut index_files)?;
    if let Some(comparison) = &making.comparison {
        standing::write(&making, comparison, &mut words, &mut index_files)?;
    }
    unknown::rejected(&making, &mut words, &mut index_files)?;
    #[cfg(feature = "search")]
    let texts = match settings.text {
        true => Some(texts::write(&making, &job, &summary.rows, &said_by.collections, &mut index_files)?),
        false => None,
    };
    #[cfg(not(feature = "search"))]
    let texts = None;
    if settings.chunks {
        chunks::write(&making, &job, &summary.is_copy, &mut index_files)?;
    }
    let simhash_k = match settings.simhashes {
        None => None,
        Some(k) => Some(simhashes(
            k_below(job.simhash.bits.max(1), k.unwrap_or(job.hamming.k))?,
            &making,
            summary.simhashes,
            &mut index_files,
        )?),
    };

    let run = &making.run;
    let subject = IndexSubject {
        kind: "index".into(),
        format: FORMAT,
        run: RunInfo {
            url: seen_from_anywhere(&settings.run, &working_folder()),
            result: result_hash(run, making.comparison.as_ref()),
            digest: run.manifest.digest.clone(),
            job,
            recipes: run.manifest.recipes.clone(),
        },
        pages: making.doc_ids.len() as u64,
        words: words.words,
        strings: std::mem::take(&mut index_files.strings),
        columns: std::mem::take(&mut index_files.columns),
        simhash_k,
        in_force: settings.active_rules.as_ref().map(|url| seen_from_anywhere(url, &working_folder())),
        texts,
    };
    let seconds = (start_time.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
    let mut counts = vec![
        ("pages", subject.pages),
        ("prefixes", subject.strings["prefixes"]),
        ("collections", subject.columns["collections"].rows),
    ];
    counts.extend(subject.columns.get(STANDING_COLUMN).map(|column| (STANDING_COLUMN, column.rows)));
    let manifest = Manifest {
        digest: subject.run.digest.clone(),
        recipes: run.manifest.recipes.clone(),
        workers: settings.workers as u64,
        counts: counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect(),
        seconds: BTreeMap::from([("index".into(), seconds)]),
        ..Manifest::new(index_files.attempt.id(), serde_json::to_value(&subject).expect("it is plain values"))
    };
    index_files.commit(manifest)
}

/// Hashes the paths and checksums of the files of a result and of a comparison.
fn result_hash(run: &FinishedRun, comparison: Option<&FinishedRun>) -> String {
    let lines_of = |run: &FinishedRun| {
        let line = |file: &FileEntry| format!("{} {}\n", file.path, file.xxh3);
        let mut lines: Vec<String> = run.manifest.files.iter().map(line).collect();
        lines.sort_unstable();
        lines
    };
    let lines = [Some(run), comparison].into_iter().flatten().map(lines_of).collect::<Vec<_>>().concat();
    format!("{:032x}", xxh3_128(lines.concat().as_bytes()))
}

/// Writes the tables of simhashes like `webtwin hamming index`. The choice of the design uses fixed
/// costs, so that it does not depend on the machine.
fn simhashes(k: u32, making: &Making<'_>, mut rows: Vec<(u64, DocId)>, index_files: &mut StagedIndex) -> Result<u32> {
    let job = making.run.job()?;
    let recipe = match making.run.manifest.recipes.get("simhash") {
        Some(recipe) if job.simhash.bits > 0 => recipe.clone(),
        _ => {
            let folder = &making.run.folder;
            return Err(Error::Usage(format!(
                "--simhashes: the pages of {folder} have no simhashes; run the job with simhash.bits, or leave the \
                 option out"
            )));
        }
    };
    rows.sort_unstable();
    let designs = candidates(rows.len() as u64, job.simhash.bits, k, &ProbeCosts::TYPICAL);
    let design = &designs[choose(&designs, None)?].design;
    let (fingerprints, doc_ids) = rows.into_iter().unzip();
    let (mut builder, doc_ids) = Builder::new(design, &recipe, fingerprints, Some(doc_ids))?;
    let mut next = doc_ids;
    while let Some(table) = next.take().or_else(|| builder.next_table()) {
        let parts: Vec<&[u8]> = table.parts.iter().map(Vec::as_slice).collect();
        index_files.put(&table.name, &parts)?;
    }
    index_files.put(online::NAME, &[&builder.finish().to_json()])?;
    Ok(k)
}
