//! Resemblance of each page to skip and the page that is kept: how many of their distinct chunks
//! they have in common.
//!
//! The pairs are broadcast to all processes. Two pages that the same process has read are compared
//! in place. For other pairs, chunks are sent to the owner of the kept page, in partitions. Chunks
//! of short pages are sent, too, if the kept page is on disk and has few copies: to read such pages
//! one by one in random order would take longer. The results are sent to the workers that need
//! them.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;
use serde::{Deserialize, Serialize};

use crate::reading::worker_pages::{NOT_KEPT, WorkerPages};
use crate::shuffle::gather::Gather;
use crate::shuffle::hash_partitions::HashPartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::overlap::in_common;
use webtwin_core::overlap::prune::{PageSet, Ranks};
use webtwin_engine::Net;
use webtwin_spill::{ListReader, SpillLists};

/// Number of distinct chunks that a page and its kept page have in common, number of distinct
/// chunks of both together (\[SGM98\] section 2.1), and number of distinct chunks of the page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Resemblance {
    common: u32,
    all: u32,
    own: u32,
}

impl Resemblance {
    /// Resemblance of pages with equal texts.
    pub const EQUAL_TEXTS: Resemblance = Resemblance { common: 1, all: 1, own: 1 };

    /// Compares the chunks of a page with those of the kept page. Both lists must be ascending and
    /// without repetitions.
    fn of(page: &[FPrint], keep: &[FPrint]) -> Resemblance {
        let (common, union) = in_common(page, keep);
        Resemblance { common: common as u32, all: union as u32, own: page.len() as u32 }
    }

    /// True if the page has text and nothing of the text of the kept page is known: it has none, or
    /// is a page of F, of which a batch has the simhash alone.
    pub fn is_unknown(self) -> bool {
        self.own > 0 && self.all == self.own && self.common == 0
    }

    /// Returns the fraction of the page's chunks that the kept page contains, from 0 to 1, rounded
    /// to six places. Returns 1 for a page without chunks, because nothing of it is lost.
    pub fn containment(self) -> f64 {
        if self.own == 0 { 1.0 } else { share(self.common.into(), self.own.into()) }
    }

    /// Returns the resemblance from 0 to 1, rounded to six places so that it prints the same
    /// everywhere. Returns 0 for pages without chunks.
    pub fn share(self) -> f64 {
        share(self.common.into(), self.all.into())
    }
}

/// Returns a fraction, rounded to six places so that it prints the same everywhere.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 1e6 / whole as f64).round() / 1e6 }
}

/// Some chunks of a page that is compared, ascending. If there are fewer, the last one is repeated.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Row {
    keep: Page,
    page: Page,
    fprints: [FPrint; ROWS_PER_BATCH],
}

const ROWS_PER_BATCH: usize = 3;

/// Maximum number of chunks of two pages of one process that are compared in a partition. The next
/// constant is the maximum number of copies of the kept page. Together they take a megabyte in the
/// partition.
const SHORT_CHUNKS: usize = 1024;
const FEW_COPIES: u8 = 64;

impl Row {
    fn of([keep, page]: [Page; 2], fprints: &[FPrint]) -> Row {
        Row { keep, page, fprints: std::array::from_fn(|at| fprints[at.min(fprints.len() - 1)]) }
    }
}

/// Result in transit.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CountedPair {
    page: Page,
    resemblance: Resemblance,
}

/// Chunks of the local pages of a process, for comparison.
pub struct PageChunks(Vec<Arc<LocalPages>>);

impl PageChunks {
    /// Moves chunks and page numbers out of the local pages of this process. Takes one round.
    ///
    /// # Errors
    /// Returns an error if the run has ended.
    pub fn take(net: &mut Net<'_>, local_pages: &mut WorkerPages) -> Result<PageChunks> {
        let own_pages = LocalPages {
            fprints: std::mem::take(&mut local_pages.fprints),
            pages: std::mem::take(&mut local_pages.pages),
        };
        Ok(PageChunks(net.gather_in_process(own_pages)?))
    }
}

/// Chunks of one worker's local pages.
struct LocalPages {
    fprints: SpillLists<u64>,
    /// Page in each slot.
    pages: Vec<Page>,
}

/// Place of a page within its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    /// Number of the worker within the process.
    worker: u32,
    slot: u32,
}

/// Mark of a page of another process.
const NO_SPOT: Spot = Spot { worker: u32::MAX, slot: u32::MAX };

/// Properties of the pages to compare, in one process.
struct Comparisons {
    /// Pages to skip that are compared, and the pages that are kept for them.
    pages: Ranks,
    /// Kept page of each of these pages; a kept page has itself.
    keep_of: Vec<Page>,
    /// Places of the pages of this process.
    spots: Vec<Spot>,
    /// Pages of this process whose chunks are sent to be compared in a partition.
    leave: PageSet,
}

impl Comparisons {
    fn of(pairs: &[[Page; 2]], pages: usize, workers: &[Arc<LocalPages>]) -> Comparisons {
        let mut compared = PageSet::new(pages, |_| false);
        pairs.iter().flatten().for_each(|&page| compared.insert(page));
        let ranks = Ranks::new(compared);
        let rank = |page: Page| ranks.rank(page).expect("pages of pairs are compared");
        let mut keep_of = vec![Page::NONE; ranks.count()];
        for &[page, keep] in pairs {
            keep_of[rank(page)] = keep;
            keep_of[rank(keep)] = keep;
        }
        let mut spots = vec![NO_SPOT; ranks.count()];
        for (worker, local_pages) in (0..).zip(workers) {
            for (slot, &page) in (0..).zip(&local_pages.pages).filter(|(_, page)| **page != NOT_KEPT) {
                if let Some(rank) = ranks.rank(page) {
                    spots[rank] = Spot { worker, slot };
                }
            }
        }
        let mut leave = PageSet::new(pages, |_| false);
        // Counts saturate at 255, which is more than [`FEW_COPIES`] and so suffices for the
        // comparison below.
        let mut copies = vec![0u8; ranks.count()];
        for &[_, keep] in pairs {
            let copies = &mut copies[rank(keep)];
            *copies = copies.saturating_add(1);
        }
        let lists = |spot: Spot| (&workers[spot.worker as usize].fprints, spot.slot as usize);
        let is_short = |spot| {
            let (lists, slot) = lists(spot);
            lists.size(slot) <= SHORT_CHUNKS
        };
        for &[page, keep] in pairs {
            match [page, keep].map(|page| spots[rank(page)]) {
                [NO_SPOT, NO_SPOT] => {}
                [_, NO_SPOT] => leave.insert(page),
                [NO_SPOT, _] => leave.insert(keep),
                [page_spot, keep_spot] => {
                    let (lists, slot) = lists(keep_spot);
                    let are_few = copies[rank(keep)] <= FEW_COPIES && is_short(page_spot) && is_short(keep_spot);
                    if are_few && !lists.is_in_memory(slot) {
                        leave.insert(page);
                        leave.insert(keep);
                    }
                }
            }
        }
        Comparisons { pages: ranks, keep_of, spots, leave }
    }

    /// Returns the page that is kept for a page, if the page is compared.
    fn keep_of(&self, page: Page) -> Option<Page> {
        Some(self.keep_of[self.pages.rank(page)?])
    }

    /// Returns the place of a page of this process, if the page is compared.
    fn spot(&self, page: Page) -> Option<Spot> {
        Some(self.spots[self.pages.rank(page)?]).filter(|&spot| spot != NO_SPOT)
    }
}

/// Compares pages with their kept pages, given as `[page, keep]` by any worker. The resemblance of
/// each page is sent to the worker `asks(page)`; results are ordered by page. Pages without chunks
/// are left out. `pages` is the number of all pages.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] if
/// chunks beyond the memory budget do not fit on the disk, and an error if the run has ended.
///
/// # Memory
/// Takes 3 bits for each page in each process, and 21 bytes for each page that is compared or kept
/// for one. Takes 11 bytes (32 for a single chunk) for each chunk of the pages that are compared in
/// partitions, or the budget of the step if it is smaller.
pub fn with_kept(
    net: &mut Net<'_>,
    PageChunks(workers): &PageChunks,
    pages: usize,
    pairs: Vec<[Page; 2]>,
    asks: impl Fn(Page) -> usize,
) -> Result<Vec<(Page, Resemblance)>> {
    let pairs = net.broadcast("pages to compare", pairs)?;
    let comparisons = net.once_per_process(|| Comparisons::of(&pairs, pages, workers))?;
    drop(pairs);
    let worker = (net.index() % net.workers_per_process()) as u32;
    let LocalPages { fprints, pages } = &*workers[worker as usize];
    let kept_pages = || (0..).zip(pages).filter(|(_, page)| **page != NOT_KEPT);
    let compared_pages = || kept_pages().filter_map(|(slot, &page)| Some((slot, page, comparisons.keep_of(page)?)));
    let mut page_reader = fprints.reader();
    let mut keep_readers: Vec<ListReader<'_, u64>> =
        workers.iter().map(|local_pages| local_pages.fprints.reader()).collect();
    let mut counts = Vec::new();
    for (slot, page, keep) in compared_pages().filter(|&(_, page, keep)| keep != page) {
        let is_here = !comparisons.leave.contains(page) && fprints.size(slot) > 0;
        if let Some(keep_spot) = comparisons.spot(keep).filter(|_| is_here) {
            let keep_chunks = keep_readers[keep_spot.worker as usize].get(keep_spot.slot as usize)?;
            counts.push(CountedPair { page, resemblance: Resemblance::of(page_reader.get(slot)?, keep_chunks) });
        }
    }
    if net.processes() > 1 || comparisons.leave.count() > 0 {
        let leaving = || compared_pages().filter(|&(_, page, _)| comparisons.leave.contains(page));
        let count = leaving().map(|(slot, ..)| fprints.size(slot).div_ceil(ROWS_PER_BATCH) as u64).sum();
        let rows = leaving().map(|(slot, page, keep)| -> Result<Vec<Row>> {
            Ok(page_reader.get(slot)?.chunks(ROWS_PER_BATCH).map(|some| Row::of([keep, page], some)).collect())
        });
        in_shares(net, rows.flatten_ok(), count, &mut counts)?;
    }
    let received = net.exchange("resemblance", counts, |row| asks(row.page))?;
    let mut resemblances: Vec<_> = received.into_iter().map(|row| (row.page, row.resemblance)).collect();
    resemblances.sort_unstable();
    Ok(resemblances)
}

/// Compares pages whose chunks are sent to partitions. Takes one exchange.
fn in_shares(
    net: &mut Net<'_>,
    rows: impl Iterator<Item = Result<Row>>,
    count: u64,
    counts: &mut Vec<CountedPair>,
) -> Result<()> {
    let mut shares = HashPartitions::new(net, "chunks to compare", count, rows, |row| u64::from(row.keep))?;
    let mut share_rows = Vec::new();
    let (mut gather, mut rows) = (Gather::default(), Vec::new());
    let (mut keep_chunks, mut chunks) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut share_rows)?;
        // The kept page comes first.
        gather.by_key(&share_rows, |row: &Row| (row.keep, row.page != row.keep, row.page), &mut rows);
        for compared in rows.chunk_by(|x, y| x.keep == y.keep) {
            keep_chunks.clear();
            for rows in compared.chunk_by(|x, y| x.page == y.page) {
                chunks.clear();
                chunks.extend(rows.iter().flat_map(|row| row.fprints));
                // Chunks are in order unless blocks of another process came between.
                chunks.sort_unstable();
                chunks.dedup();
                if rows[0].page == rows[0].keep {
                    std::mem::swap(&mut keep_chunks, &mut chunks);
                } else {
                    counts
                        .push(CountedPair { page: rows[0].page, resemblance: Resemblance::of(&chunks, &keep_chunks) });
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn resemblance_equals_that_of_the_sets(
            x in prop::collection::btree_set(0u64..20, 0..20), y in prop::collection::btree_set(0u64..20, 0..20)
        ) {
            let list = |set: &BTreeSet<u64>| set.iter().copied().collect::<Vec<_>>();
            let resemblance = Resemblance::of(&list(&x), &list(&y));
            prop_assert_eq!(resemblance.common as usize, x.intersection(&y).count());
            prop_assert_eq!(resemblance.all as usize, x.union(&y).count());
            prop_assert_eq!(resemblance.own as usize, x.len());
        }
    }
}
