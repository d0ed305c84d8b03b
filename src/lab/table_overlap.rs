//! Measurement of the overlap on generated tables, for comparison with the times of the papers and
//! of other programs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::made::peer_tuples;
use super::made::tables::{SyntheticTable, TableParams};
use webtwin_base::build_info::peak_memory_bytes;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::rows::{FPrintRow, KeyShares, Row32, Row64};
use webtwin_dataflow::pairs::overlap_join::{AllPairs, similar_pairs};
use webtwin_dataflow::pairs::overlap_work::{OverlapPages, OverlapWork};
use webtwin_engine::{ClusterLayout, Net, run};
use webtwin_job::OverlapSettings;
use webtwin_spill::{MemoryPool, SPILL};

/// Number of bytes that an idle process holds, including memory that its allocator does not return.
const IDLE_BYTES: u64 = 64 << 20;

/// Resources that a measurement may use.
#[derive(Debug, Clone)]
pub(crate) struct MeasurementLimits {
    /// Number of worker threads of the only process.
    pub workers: usize,
    /// Memory budget of the process in bytes; 0 for no limit.
    pub memory_bytes: u64,
    /// Folder for spilled data.
    pub spill: std::path::PathBuf,
}

/// Result of a measurement.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Measured {
    /// Number of pages.
    pub pages: u64,
    /// Number of pages that are exact copies of others. They are removed before pairs are made.
    pub exact_copies: u64,
    /// Number of rows of `FPrint-DocID`.
    pub rows: u64,
    /// Number of distinct chunks.
    pub chunks: u64,
    /// Number of pairs that the chunks make.
    pub emitted: u64,
    /// Number of pages left after pruning.
    pub left_pages: u64,
    /// Number of rows left after pruning.
    pub left_rows: u64,
    /// Number of pairs left after pruning.
    pub left_pairs: u64,
    /// Number of these pairs that were counted exactly.
    pub sent: u64,
    /// Number of similar pairs.
    pub similar: u64,
    /// Sum over similar pairs of a x 1,000,003 + b x 10,007 + F. It does not depend on the order of
    /// pairs.
    pub checksum: u64,
    /// Seconds of each stage, of its slowest worker.
    pub stages: Vec<(&'static str, f64)>,
    /// Seconds from the first row to the last pair.
    pub seconds: f64,
    /// Peak memory of the process, in bytes.
    pub peak_memory_bytes: u64,
    /// Number of bytes that all workers wrote to disk.
    pub spilled_bytes: u64,
    /// Method by which pairs were counted, with the reason.
    pub why: String,
}

/// Removes the exact copies of a synthetic table and finds all pairs of the rest with F >= T of its
/// chunking (\[SGM98\] section 2.2, steps 1 to 3; Table 1). The time includes the making of the
/// rows.
///
/// # Errors
/// Returns any error of [`SyntheticTable::new`] and [`similar_pairs`].
pub(crate) fn overlap_of_table(params: TableParams, limits: &MeasurementLimits) -> Result<Measured> {
    let table = Arc::new(SyntheticTable::new(params)?);
    let settings = OverlapSettings::of_papers(params.chunking.threshold());
    let rows_a_page = params.chunking.rows_per_thousand().div_ceil(1000);
    measure(params.pages, params.bits, settings, limits, move |net| {
        let page_range = table.part(net.index(), net.peers());
        let copies = exact_copies(net, &table, page_range.clone())?;
        let (table, rows) = (Arc::clone(&table), page_range.len() as u64 * rows_a_page);
        let sources = move || {
            let (table, mut next, last) = (Arc::clone(&table), page_range.start, page_range.end);
            let source = move |send: &mut dyn FnMut(FPrint, Page)| {
                let end = (next + 1500).min(last);
                table.rows(next..end, |row| send(row.fprint(), row.doc));
                next = end;
                Ok(next < last)
            };
            Box::new(source) as Source
        };
        Ok(Part { copies, rows, sources: Box::new(sources) })
    })
}

/// Writes the table of [`peer_tuples`] in the format of other programs: fingerprint and document of
/// each row, 4 bytes each, little-endian. Returns the number of rows.
///
/// # Errors
/// Returns [`Error::Storage`] if the file cannot be written.
pub(crate) fn write_peer_table(docs: u32, path: &Path) -> Result<u64> {
    let failed = |cause| Error::storage(path.display().to_string(), cause);
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
    let (mut count, mut result) = (0, Ok(()));
    peer_tuples::rows(docs, |fprint, doc| {
        count += 1;
        if result.is_ok() {
            result = file.write_all(&(u64::from(doc) << 32 | u64::from(fprint)).to_le_bytes());
        }
    });
    result.and_then(|()| file.flush()).map_err(failed)?;
    Ok(count)
}

/// Reads a file of [`write_peer_table`] and finds all pairs of its documents with F >=
/// `min_shared`.
///
/// # Errors
/// Returns [`Error::Input`] if the file cannot be read, and any error of [`similar_pairs`].
pub(crate) fn overlap_of_peer_table(
    path: &Path,
    docs: u32,
    min_shared: u32,
    limits: &MeasurementLimits,
) -> Result<Measured> {
    let failed = |cause: std::io::Error| Error::input(path.display().to_string(), cause);
    let file = Arc::new(File::open(path).map_err(failed)?);
    let rows = file.metadata().map_err(failed)?.len() / 8;
    let path = path.display().to_string();
    measure(docs, 32, OverlapSettings::of_papers(min_shared), limits, move |net| {
        let start = |part: usize| rows * part as u64 / net.peers() as u64;
        let (first, end) = (start(net.index()), start(net.index() + 1));
        let (file, path) = (Arc::clone(&file), path.clone());
        let sources = move || {
            let (file, path, mut next) = (Arc::clone(&file), path.clone(), first);
            let mut block = vec![0u8; 8 << 15];
            let source = move |send: &mut dyn FnMut(FPrint, Page)| {
                let take = (end - next).min(1 << 15);
                let bytes = &mut block[..take as usize * 8];
                file.read_exact_at(bytes, next * 8).map_err(|cause| Error::input(path.as_str(), cause))?;
                for row in bytes.chunks_exact(8) {
                    let row = u64::from_le_bytes(row.try_into().expect("chunks of 8"));
                    send(row & 0xffff_ffff, Page((row >> 32) as u32));
                }
                next += take;
                Ok(next < end)
            };
            Box::new(source) as Source
        };
        let copies = PageSet::new(docs as usize, |_| false);
        Ok(Part { copies, rows: end - first, sources: Box::new(sources) })
    })
}

/// Source of rows in the form that [`similar_pairs`] requires. Each call passes some rows and
/// returns true if there are more.
type Source = Box<dyn FnMut(&mut dyn FnMut(FPrint, Page)) -> Result<bool>>;

/// Input of one worker.
struct Part {
    copies: PageSet,
    rows: u64,
    sources: Box<dyn FnMut() -> Source>,
}

/// Makes the memory pool of `workers` workers, which share `memory_bytes` (0: no limit) and spill
/// to `folder`.
pub(crate) fn pool(memory_bytes: u64, workers: usize, folder: &Path) -> MemoryPool {
    let memory_bytes = if memory_bytes == 0 { u64::MAX } else { memory_bytes };
    MemoryPool { foreseen_bytes: 0, workers: workers as u64, ..MemoryPool::new(memory_bytes, folder, SPILL) }
}

fn measure(
    pages: u32,
    bits: u32,
    settings: OverlapSettings,
    limits: &MeasurementLimits,
    part: impl Fn(&mut Net) -> Result<Part> + Send + Sync + 'static,
) -> Result<Measured> {
    let memory_bytes = match limits.memory_bytes {
        0 => 0,
        // The pool covers neither the idle process nor the set of exact copies of each worker.
        bytes => bytes.saturating_sub(IDLE_BYTES + u64::from(pages) / 8 * limits.workers as u64).max(1),
    };
    let pool = pool(memory_bytes, limits.workers, &limits.spill);
    let started = Instant::now();
    let parts = run(&ClusterLayout::local(limits.workers), 0, [0; 32], move |net| {
        net.memory = pool.clone();
        let start = Instant::now();
        let Part { copies, rows, sources } = part(net)?;
        let exact = start.elapsed().as_secs_f64();
        let mut worker_part = Of { exact_copies: copies.count(), ..Of::default() };
        let pages = OverlapPages { count: pages as usize, hosts: &[], copies: &copies };
        let count_pair = |SimilarPair { a, b, value }| {
            let sum = u64::from(a) * 1_000_003 + u64::from(b) * 10_007 + u64::from(value);
            worker_part.checksum = worker_part.checksum.wrapping_add(sum);
        };
        let find_pairs = if bits <= 32 { pairs::<Row32> } else { pairs::<Row64> };
        let AllPairs { mut work, .. } = find_pairs(net, rows, sources, &pages, &settings, Box::new(count_pair))?;
        work.seconds.insert(0, ("exact copies", exact));
        worker_part.work = work;
        Ok(worker_part)
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let sum = |of: fn(&OverlapWork) -> u64| parts.iter().map(|part| of(&part.work)).sum();
    let slowest_part = |stage: usize| parts.iter().map(|part| part.work.seconds[stage].1).fold(0.0, f64::max);
    let first = &parts[0].work;
    Ok(Measured {
        pages: u64::from(pages),
        exact_copies: parts[0].exact_copies,
        rows: sum(|work| work.counts.tuples),
        chunks: sum(|work| work.counts.chunks),
        emitted: sum(|work| work.counts.emitted),
        left_pages: first.core_pages,
        left_rows: sum(|work| work.core_rows),
        left_pairs: sum(|work| work.core_pairs),
        sent: sum(|work| work.pairs_sent),
        similar: sum(|work| work.counts.similar),
        checksum: parts.iter().fold(0, |sum, part| sum.wrapping_add(part.checksum)),
        stages: first.seconds.iter().enumerate().map(|(stage, (name, _))| (*name, slowest_part(stage))).collect(),
        seconds,
        peak_memory_bytes: peak_memory_bytes(),
        spilled_bytes: sum(|work| work.spilled_bytes),
        why: first.reason.clone(),
    })
}

/// Findings of one worker.
#[derive(Default)]
struct Of {
    exact_copies: u64,
    checksum: u64,
    work: OverlapWork,
}

fn pairs<R: FPrintRow>(
    net: &mut Net<'_>,
    rows: u64,
    sources: Box<dyn FnMut() -> Source>,
    pages: &OverlapPages<'_>,
    settings: &OverlapSettings,
    sink: Box<dyn FnMut(SimilarPair) + '_>,
) -> Result<AllPairs> {
    similar_pairs::<R, _>(net, rows, sources, pages, settings, None, sink)
}

/// Returns all pages but the first of each set of exact copies. Every worker contributes its pages.
fn exact_copies(net: &mut Net<'_>, table: &SyntheticTable, page_range: Range<u32>) -> Result<PageSet> {
    let shares = KeyShares::new(net.peers(), 0);
    let mut copies = PageSet::new(table.pages() as usize, |_| false);
    // The fingerprints are processed in parts, so that at most about 16 million rows are in memory.
    let parts = u64::from(table.pages()).div_ceil(16_000_000);
    for part in 0..parts {
        let rows = page_range.clone().map(Page).filter_map(|doc| {
            let exact = table.exact(doc);
            (exact % parts == part).then_some([exact as u32, (exact >> 32) as u32, doc.0])
        });
        let mut rows = net.exchange("exact", rows, |row| shares.owner(u64::from(row[1]) << 32))?;
        rows.sort_unstable();
        let copy = |rows: &[[u32; 3]]| (rows[0][..2] == rows[1][..2]).then_some(Page(rows[1][2]));
        let copied_pages = rows.windows(2).filter_map(copy).collect();
        drop(rows);
        net.broadcast("copies", copied_pages)?.iter().for_each(|&doc| copies.insert(doc));
    }
    Ok(copies)
}
