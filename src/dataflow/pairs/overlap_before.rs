//! What one run has found on the way to similar pairs, for the next run of a schedule to change (`overlap_merge`).
//!
//! A share is what one worker owns: its pages, each with a digest of its rows, and its similar pairs, before the guard. It
//! serves any number of workers, as long as the settings are the same.

use bincode::Options;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::pairs::counts::OverlapCounts;
use crate::reading::capture::codec;
use crate::reading::captures::{Crawl, host_key};
use crate::reading::item_record::PageRecord;
use crate::reading::resume::Resume;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, Number, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::{Net, Owners};
use webtwin_job::{Job, PAIRING};
use webtwin_storage::records::Shares;

/// Takes the rows of one page after another.
pub type HandOn<'a> = &'a mut dyn FnMut(&[FPrint]);

/// What there is of the run before.
pub struct Before<'a> {
    /// What its workers have found, and a place for more.
    pub shares: &'a dyn Shares,
    /// Hands on the rows of pages that it had and that are on no shelf of this run, a share of them for each worker.
    pub each_page: &'a dyn Fn(HandOn<'_>),
    /// Hears what came of it, for people.
    pub tell: &'a dyn Fn(String),
    /// Where a larger fraction of pages, rows or pairs has changed, all is found from scratch.
    pub max_change: f64,
}

impl Before<'_> {
    /// Whether too many have changed.
    pub(super) fn is_beyond(&self, changed: u64, all: u64) -> bool {
        changed as f64 > self.max_change * all as f64
    }
}

/// A page of the run before. Rows order by doc id.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, bytemuck::Pod, bytemuck::Zeroable,
)]
#[repr(C)]
pub(super) struct PageBefore {
    pub doc_id: DocId,
    /// Digest of its rows.
    pub rows: u64,
    /// Hash of its host's name.
    pub host: u64,
    /// Its number in that run.
    pub number: Page,
    /// Chunks that count, or [`COPY`].
    pub chunks: u32,
}

/// In place of the chunks of an exact copy, of which none counts.
pub(super) const COPY: u32 = u32::MAX;

/// What one worker has found.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Share {
    pub counts: OverlapCounts,
    pub pages: Vec<PageBefore>,
    /// Similar pairs, of pages by their numbers in that run.
    pub pairs: Vec<SimilarPair>,
}

/// The digests of what pages say, as chunks.
pub(crate) struct Digests {
    /// By slot of this worker's shelf.
    pub(super) of_slots: Vec<u64>,
    /// Of the pages that this worker owns, ascending by page.
    pub(super) of_pages: Vec<u64>,
}

/// Digest of a page's rows.
pub(super) fn digest(fprints: &[FPrint]) -> u64 {
    xxh3_64(bytemuck::cast_slice(fprints))
}

/// Name of the step in the records of a state: similar pairs by chunks of such a kind, with such settings.
pub(super) fn step(job: &Job) -> String {
    let settings = serde_json::to_vec(&(PAIRING, &job.overlap, job.chunks.bits)).expect("settings are plain values");
    format!("overlap-{:016x}", xxh3_64(&settings))
}

impl Digests {
    /// Those of all pages. One exchange.
    ///
    /// # Errors
    /// Those of the disk that holds chunks; or when the run has ended.
    pub(crate) fn new(net: &mut Net<'_>, shelf: &WorkerPages, crawl: &Crawl) -> Result<Digests> {
        let mut fprints = shelf.fprints.reader();
        let of_slots =
            (0..shelf.fprints.slots()).map(|slot| Ok(digest(fprints.get(slot)?))).collect::<Result<Vec<u64>>>()?;
        let rows = shelf.kept().map(|(slot, page)| [page.0, of_slots[slot] as u32, (of_slots[slot] >> 32) as u32]);
        let mut owned = net.exchange("digests of pages", rows, |row| crawl.directory.owner(Page(row[0])))?;
        owned.sort_unstable();
        let of_pages = owned.into_iter().map(|[_, low, high]| u64::from(high) << 32 | u64::from(low)).collect();
        Ok(Digests { of_slots, of_pages })
    }
}

/// What a worker has found for the next run.
pub(crate) struct Leaving<'a> {
    /// Its pages, and their digests.
    pub crawl: &'a Crawl,
    pub digests: &'a Digests,
    /// Exact copies of other pages.
    pub is_copy: &'a PageSet,
    /// Chunks that count of every page, where they matter.
    pub chunks: &'a [u32],
    /// Similar pairs before the guard.
    pub pairs: &'a [SimilarPair],
    pub counts: &'a OverlapCounts,
}

/// Leaves what this worker has found to the next run.
///
/// # Errors
/// [`webtwin_base::error::Error::Storage`], which the end of the run tells.
pub(crate) fn leave(
    net: &Net<'_>,
    shares: &dyn Shares,
    job: &Job,
    &Leaving { crawl, digests, is_copy, chunks, pairs, counts }: &Leaving<'_>,
) -> Result<()> {
    let mut rows = digests.of_pages.iter();
    let pages = crawl.pages.map(|row| {
        let chunks = chunks.get(row.page.index()).copied().unwrap_or(0);
        PageBefore {
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

/// The shares of the run before that fall to this worker, as one; `None` when one is damaged.
pub(super) fn read(net: &Net<'_>, shares: &dyn Shares, job: &Job) -> Option<Share> {
    let step = step(job);
    let mut all = Share { counts: OverlapCounts::default(), pages: Vec::new(), pairs: Vec::new() };
    for worker in (net.index()..shares.count(&step)).step_by(net.peers()) {
        let share: Share = codec().deserialize(&shares.read(&step, worker)?).ok()?;
        all.counts = all.counts + &share.counts;
        all.pages.extend(share.pages);
        all.pairs.extend(share.pairs);
    }
    Some(all)
}

/// Hands on the rows of pages in records that no item of this run takes up; of worker `index` of so many.
pub(crate) fn each_left_page(
    resume: &Resume,
    memory_is_bounded: bool,
    index: usize,
    workers: usize,
    hand_on: HandOn<'_>,
) {
    let known = resume.known_pages(memory_is_bounded);
    known.parts().skip(index).step_by(workers).filter_map(PageRecord::decode).for_each(|page| hand_on(page.fprints()));
}
