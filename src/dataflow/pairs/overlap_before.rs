//! Intermediate results of a run on the way to similar pairs, which the next run of a schedule
//! updates (`overlap_merge`).
//!
//! A share contains the data that one worker owns: its pages, each with a digest of its rows, and
//! its similar pairs, before the guard. Shares can be read by any number of workers, provided that
//! the settings are the same.

use bincode::Options;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::pairs::counts::OverlapCounts;
use crate::reading::capture::codec;
use crate::reading::captures::{Crawl, host_key};
use crate::reading::item_record::SavedPage;
use crate::reading::resume::Resume;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, Number, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::{Net, Owners};
use webtwin_job::{Job, PAIRING};
use webtwin_storage::records::SavedShares;

/// Callback that receives the rows of one page after another.
pub type RowForwarder<'a> = &'a mut dyn FnMut(&[FPrint]);

/// Results of the previous run.
pub struct PriorRun<'a> {
    /// Shares that the workers of the previous run wrote; this run writes its own there, too.
    pub shares: &'a dyn SavedShares,
    /// Passes on the rows of pages that the previous run had and that are not among the local pages
    /// of this run. Each worker receives a part of them.
    pub each_page: &'a dyn Fn(RowForwarder<'_>),
    /// Callback that receives a description of the outcome, for display.
    pub notify: &'a dyn Fn(String),
    /// Maximum fraction of pages, rows or pairs that may have changed. Beyond it all pairs are
    /// found from scratch.
    pub max_change: f64,
}

impl PriorRun<'_> {
    /// True if the changed fraction exceeds the maximum.
    pub(super) fn is_beyond(&self, changed_count: u64, total: u64) -> bool {
        changed_count as f64 > self.max_change * total as f64
    }
}

/// Page of the previous run. Ordered by doc id.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, bytemuck::Pod, bytemuck::Zeroable,
)]
#[repr(C)]
pub(super) struct PriorPage {
    pub doc_id: DocId,
    /// Digest of the rows of the page.
    pub rows: u64,
    /// Hash of the name of the page's host.
    pub host: u64,
    /// Number of the page in that run.
    pub number: Page,
    /// Number of counting chunks, or [`COPY`].
    pub chunks: u32,
}

/// Marks an exact copy, whose chunks do not count.
pub(super) const COPY: u32 = u32::MAX;

/// Results of one worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Share {
    pub counts: OverlapCounts,
    pub pages: Vec<PriorPage>,
    /// Similar pairs, with the page numbers of that run.
    pub pairs: Vec<SimilarPair>,
}

/// Digests of the chunks of pages.
pub(crate) struct PageDigests {
    /// Digests by slot of this worker's local pages.
    pub(super) of_slots: Vec<u64>,
    /// Digests of the pages that this worker owns, ascending by page.
    pub(super) of_pages: Vec<u64>,
}

/// Returns the digest of a page's rows.
pub(super) fn digest(fprints: &[FPrint]) -> u64 {
    xxh3_64(bytemuck::cast_slice(fprints))
}

/// Returns the name of the step in the checkpoints of a state. It identifies the chunking and the
/// settings of similar pairs.
pub(super) fn step(job: &Job) -> String {
    let settings = serde_json::to_vec(&(PAIRING, &job.overlap, job.chunks.bits)).expect("settings are plain values");
    format!("overlap-{:016x}", xxh3_64(&settings))
}

impl PageDigests {
    /// Computes the digests of all pages. Takes one exchange.
    ///
    /// # Errors
    /// Returns any error of the disk, on which chunks may be, and an error if the run has ended.
    pub(crate) fn new(net: &mut Net<'_>, local_pages: &WorkerPages, crawl: &Crawl) -> Result<PageDigests> {
        let mut fprints = local_pages.fprints.reader();
        let slot_digests = (0..local_pages.fprints.slots())
            .map(|slot| Ok(digest(fprints.get(slot)?)))
            .collect::<Result<Vec<u64>>>()?;
        let rows = local_pages
            .kept()
            .map(|(slot, page)| [page.0, slot_digests[slot] as u32, (slot_digests[slot] >> 32) as u32]);
        let mut owned = net.exchange("digests of pages", rows, |row| crawl.directory.owner(Page(row[0])))?;
        owned.sort_unstable();
        let page_digests = owned.into_iter().map(|[_, low, high]| u64::from(high) << 32 | u64::from(low)).collect();
        Ok(PageDigests { of_slots: slot_digests, of_pages: page_digests })
    }
}

/// Results of a worker that are left for the next run.
pub(crate) struct NextRunShares<'a> {
    /// Pages of the worker. Their digests are in the next field.
    pub crawl: &'a Crawl,
    pub digests: &'a PageDigests,
    /// Pages that are exact copies of other pages.
    pub is_copy: &'a PageSet,
    /// Number of counting chunks of every page, if chunks are counted.
    pub chunks: &'a [u32],
    /// Similar pairs before the guard.
    pub pairs: &'a [SimilarPair],
    pub counts: &'a OverlapCounts,
}

/// Writes the results of this worker for the next run.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Storage`], which is also reported at the end of the run.
pub(crate) fn leave(
    net: &Net<'_>,
    shares: &dyn SavedShares,
    job: &Job,
    &NextRunShares { crawl, digests, is_copy, chunks, pairs, counts }: &NextRunShares<'_>,
) -> Result<()> {
    let mut rows = digests.of_pages.iter();
    let pages = crawl.pages.map(|row| {
        let chunks = chunks.get(row.page.index()).copied().unwrap_or(0);
        PriorPage {
            doc_id: row.doc_id,
            rows: *rows.next().expect("a digest for each page"),
            host: host_key(row.url()),
            number: row.page,
            chunks: if is_copy.contains(row.page) { COPY } else { chunks },
        }
    });
    let share = Share { counts: counts.clone(), pages: pages.collect::<Result<_>>()?, pairs: pairs.to_vec() };
    let bytes = codec().serialize(&share).expect("plain values go into memory");
    shares.write(&step(job), (net.index(), net.peers()), &bytes)
}

/// Reads the shares of the previous run that are assigned to this worker, and merges them. Returns
/// `None` if one is damaged.
pub(super) fn read(net: &Net<'_>, shares: &dyn SavedShares, job: &Job) -> Option<Share> {
    let step = step(job);
    let mut combined = Share { counts: OverlapCounts::default(), pages: Vec::new(), pairs: Vec::new() };
    for worker in (net.index()..shares.count(&step)).step_by(net.peers()) {
        let share: Share = codec().deserialize(&shares.read(&step, worker)?).ok()?;
        combined.counts = combined.counts + &share.counts;
        combined.pages.extend(share.pages);
        combined.pairs.extend(share.pairs);
    }
    Some(combined)
}

/// Passes on the rows of pages in checkpoints that no work item of this run restores. Worker
/// `index` of `workers` receives its part of these pages.
pub(crate) fn each_left_page(
    resume: &Resume,
    memory_is_bounded: bool,
    index: usize,
    workers: usize,
    forward: RowForwarder<'_>,
) {
    let known_pages = resume.known_pages(memory_is_bounded);
    known_pages
        .parts()
        .skip(index)
        .step_by(workers)
        .filter_map(SavedPage::decode)
        .for_each(|page| forward(page.fprints()));
}
