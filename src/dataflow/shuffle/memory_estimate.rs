//! What a run holds in memory, as a function of what it has counted; the bound of `effort.memory_bytes`, and `plan`.
//!
//! The peak is while rows are grouped or pairs are counted: the shelf is there with the table, or with the tape and the pairs.
//! Table, tape and pairs go to disk where a bound is set ([`crate::dataflow::pairs::overlap_join`]); the shelf does not.

use serde::Serialize;

use crate::applications::ways::WebPart;
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::memory_budget::{self, Bounds, MemoryBudget};
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::overlap::rows::{Row32, Row64};
use crate::storage::spill::{SPILL, TAPE_BLOCK_BYTES, free_bytes};

/// Bytes of a page's row, its strings, number and directory entry.
const A_PAGE: u64 = 360;

/// Bytes of counts a page while pairs are found, by one worker.
const A_PAGE_OF_COUNTS: u64 = 12;

/// Bytes of a program that has nothing to do yet: code, stores, blocks on their way between two workers.
pub const AT_REST: u64 = 36 << 20;

/// Bytes of a shingle; in memory only where no bound is set, and beyond a block of them.
const A_SHINGLE: u64 = 4;

/// Bytes of a pair of pages.
const A_PAIR: u64 = 8;

/// Bytes of a row of `FPrint-DocID` on its way to be grouped.
fn row_bytes(job: &Job) -> u64 {
    if job.chunks.bits <= 32 { size_of::<Row32>() as u64 } else { size_of::<Row64>() as u64 }
}

/// Numbers of what a process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MemoryEstimate {
    /// Pages.
    pub pages: u64,
    /// Rows of `FPrint-DocID`: distinct chunks of pages.
    pub tuples: u64,
    /// Distinct features of pages, where simhashes wait for the crawl.
    pub features: u64,
    /// Shingles in the sets of pages, where pages are compared by these.
    pub shingles: u64,
    /// Links, within the crawl and out of it.
    pub links: u64,
    /// Pairs of pages, once for each chunk they share.
    pub pairs: u64,
}

impl MemoryEstimate {
    /// Bytes beside the shelves at the peak where no bound is set, all in memory: the rows of the table, their tape
    /// (three rows in four are taken to have a chunk that another page has too), and the pairs, for which the rows make way.
    pub fn beside_shelf_bytes(&self, job: &Job) -> u64 {
        (row_bytes(job) * self.tuples).max(A_PAIR * self.pairs) + 3 * self.tuples + A_SHINGLE * self.shingles
    }

    /// Bytes without which there is no run of `all_pages`: what cannot be spilled, with the widest rows and counts of chunks.
    pub fn least_bytes(&self, all_pages: u64, workers: usize) -> u64 {
        let rows = size_of::<Row64>() as u64 * self.tuples / workers as u64;
        AT_REST + self.shelf_bytes() + memory_budget::least_bytes(all_pages as usize, workers, rows, true)
    }

    /// Bytes that stay in memory whatever is spilled, as far as they grow with what is read: the shelf, and some counts a page.
    pub fn peak_bytes(&self) -> u64 {
        AT_REST + self.shelf_bytes() + A_PAGE_OF_COUNTS * self.pages
    }

    /// Bytes on disk within a bound of so many: rows, tape and pairs that have no room, one after the other.
    pub fn spilled_bytes(&self, job: &Job, all_pages: u64, workers: usize, allowed: u64) -> u64 {
        let room = allowed.saturating_sub(self.least_bytes(all_pages, workers));
        let beyond = |bytes: u64, tenths: u64| if allowed == 0 { 0 } else { bytes.saturating_sub(room / 10 * tenths) };
        let sets = if allowed == 0 { 0 } else { A_SHINGLE * self.shingles };
        let rows = beyond(row_bytes(job) * self.tuples, 7) + beyond(3 * self.tuples, 3);
        sets + rows + beyond(A_PAIR * self.pairs, 7)
    }

    /// Bytes at the peak of a process whose `workers` each hold this.
    pub fn peak_bytes_of(&self, workers: usize) -> u64 {
        AT_REST + workers as u64 * (self.peak_bytes() - AT_REST)
    }

    /// What `all` work items hold when `done` of them hold this.
    pub fn times(&self, all: usize, done: usize) -> MemoryEstimate {
        let of = |n: u64| (u128::from(n) * all as u128 / done.max(1) as u128) as u64;
        let MemoryEstimate { pages, tuples, features, shingles, links, pairs } = *self;
        MemoryEstimate {
            pages: of(pages),
            tuples: of(tuples),
            features: of(features),
            shingles: of(shingles),
            links: of(links),
            pairs: of(pairs),
        }
    }

    /// Bytes on the shelves of a worker.
    pub fn shelf_bytes(&self) -> u64 {
        8 * (self.tuples + self.links)
            + 10 * self.features
            + A_PAGE * self.pages
            + (A_SHINGLE * self.shingles).min(TAPE_BLOCK_BYTES as u64)
    }

    /// What is on a shelf.
    pub fn on(shelf: &WorkerPages) -> MemoryEstimate {
        let (pages, tuples) = (shelf.exact.len() as u64, shelf.fprints.items());
        MemoryEstimate {
            pages,
            tuples,
            features: shelf.features.items(),
            shingles: shelf.sets.as_ref().map_or(0, |sets| sets.items()),
            links: shelf.links.items(),
            pairs: 0,
        }
    }
}

/// Bytes that the largest process holds on its shelves, and at rest.
///
/// # Errors
/// Only when the run has ended.
pub fn held_bytes(net: &mut Net<'_>, mine: MemoryEstimate) -> Result<u64> {
    Ok(of_largest_process(net, mine.shelf_bytes())? + AT_REST)
}

/// The most bytes of a process, whose workers each bring theirs.
fn of_largest_process(net: &mut Net<'_>, mine: u64) -> Result<u64> {
    let workers = net.workers_per_process();
    let all: Vec<u64> = net.all_gather("memory", mine)?;
    Ok(all.chunks(workers).map(|process| process.iter().sum()).max().unwrap_or(0))
}

/// What a step may use: the memory that is left where each worker holds `mine`, and the disk.
///
/// # Errors
/// Only when the run has ended.
pub fn room(net: &mut Net<'_>, mine: MemoryEstimate, job: &Job) -> Result<MemoryBudget> {
    Ok(room_beside(held_bytes(net, mine)?, job))
}

/// What a process may use beside the `held` bytes that it has.
pub fn room_beside(held: u64, job: &Job) -> MemoryBudget {
    let memory_bytes = match job.effort.memory_bytes {
        0 => 0,
        allowed => allowed.saturating_sub(held).max(1),
    };
    let spill = match job.effort.spill.as_str() {
        "" => std::env::temp_dir(),
        folder => folder.into(),
    };
    let disk_bytes = match job.effort.disk_bytes {
        // A folder that cannot be asked is named when something is to be written there.
        0 => free_bytes(&spill, SPILL).unwrap_or(0),
        allowed => allowed,
    };
    let bounds = Bounds { memory_bytes: job.effort.memory_bytes, disk_bytes, disk_is_set: job.effort.disk_bytes > 0 };
    MemoryBudget { memory_bytes, spill, disk_bytes, method: None, bounds }
}

/// Refuses to go on when the largest process has less memory than it needs at least (0: no bound), before it does.
///
/// # Errors
/// [`Error::MemoryLimit`] on all workers, with the number that would fit.
pub fn hold_against_bound(net: &mut Net<'_>, what: &str, mine: MemoryEstimate, allowed_bytes: u64) -> Result<()> {
    hold_bytes_against_bound(net, what, mine.peak_bytes() - AT_REST, allowed_bytes)
}

/// As [`hold_against_bound`], for the main job: what it is told to need is enough for the steps after, too.
///
/// # Errors
/// [`Error::MemoryLimit`] on all workers, with the number that would fit.
pub fn hold_run_against_bound(net: &mut Net<'_>, mine: MemoryEstimate, allowed_bytes: u64) -> Result<()> {
    let held = of_largest_process(net, mine.peak_bytes() - AT_REST)?;
    if allowed_bytes == 0 || held + AT_REST <= allowed_bytes {
        return Ok(());
    }
    let workers = net.workers_per_process();
    let pages = of_largest_process(net, mine.pages)?;
    let rows = of_largest_process(net, size_of::<Row64>() as u64 * mine.tuples)? / workers as u64;
    let ways = of_largest_process(net, WebPart::bytes(mine.pages, mine.links))?;
    let after = memory_budget::least_bytes(pages as usize, workers, rows, true).max(ways);
    Err(too_little("pages and chunks, and the steps after".into(), held + after + AT_REST, allowed_bytes))
}

/// Refuses to hold `held` bytes in this process when it may use fewer (0: no bound), beside what it needs at rest.
///
/// # Errors
/// [`Error::MemoryLimit`], with the number that would fit.
pub fn refuse_beyond_bound(what: &str, held: u64, allowed_bytes: u64) -> Result<()> {
    let needed_bytes = held + AT_REST;
    if allowed_bytes > 0 && needed_bytes > allowed_bytes {
        return Err(too_little(what.into(), needed_bytes, allowed_bytes));
    }
    Ok(())
}

/// As [`hold_against_bound`], for work that holds something else: `mine` bytes in this worker, or this worker's share of what
/// its process holds once.
///
/// # Errors
/// [`Error::MemoryLimit`] on all workers, with the number that would fit.
pub fn hold_bytes_against_bound(net: &mut Net<'_>, what: &str, mine: u64, allowed_bytes: u64) -> Result<()> {
    refuse_beyond_bound(what, of_largest_process(net, mine)?, allowed_bytes)
}

/// The refusal of a job that needs another bound.
pub fn too_little(what: String, needed_bytes: u64, allowed_bytes: u64) -> Error {
    Error::MemoryLimit { what, needed_bytes, allowed_bytes, setting: "effort.memory_bytes".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_needs_at_rest_counts_once_whatever_its_workers() {
        assert_eq!(MemoryEstimate::default().peak_bytes_of(64), AT_REST);
        let held = MemoryEstimate { pages: 1000, tuples: 5000, links: 700, ..MemoryEstimate::default() };
        assert_eq!(held.peak_bytes_of(1), held.peak_bytes());
        assert_eq!(held.peak_bytes_of(3), AT_REST + 3 * (held.peak_bytes() - AT_REST));
        let all = held.times(30, 3);
        assert_eq!((all.pages, all.tuples, all.links), (10_000, 50_000, 7_000));
        assert_eq!(all.peak_bytes_of(2) - AT_REST, 10 * (held.peak_bytes_of(2) - AT_REST));
    }
}
