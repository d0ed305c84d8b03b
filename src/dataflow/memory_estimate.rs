//! Estimates the memory that a run needs from the numbers that it has counted. The limit of
//! `effort.memory_bytes` and the command `plan` use these estimates.
//!
//! The peak occurs while rows are grouped or pairs are counted: the local pages are in memory
//! together with the table, or with the run log and the pairs. If memory is limited, table, run log
//! and pairs are spilled to disk ([`crate::pairs::overlap_join`]), and so are the lists of the
//! local pages ([`webtwin_spill::SpillLists`]) and the links between pages. A fixed-size row for
//! each page always stays in memory.
//!
//! An estimate only decides if a run may continue. The budget of a step is the limit minus the
//! resident set of the process ([`crate::shuffle::memory::agree`]), because the amount of results
//! for each page differs from crawl to crawl.

use serde::{Deserialize, Serialize};

use crate::clusters::links::WorkerLinks;
use crate::pairs::allowance;
use crate::reading::capture_rows::CaptureRows;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::memory::{PEER_BYTES, at_rest};
use webtwin_base::build_info;
use webtwin_core::overlap::rows::{Row32, Row64};
use webtwin_job::{Job, Measure};
use webtwin_spill::RUN_LOG_BLOCK_BYTES;

/// Size of a run of which a process is a part.
#[derive(Debug, Clone, Copy)]
pub struct RunSize {
    /// Number of pages of the run.
    pub all_pages: u64,
    /// Number of workers of each process.
    pub workers: usize,
    /// Number of processes.
    pub processes: usize,
}

/// Bytes of a page in addition to its capture, if memory is limited: the ends of its lists, its
/// number and its host. Measured.
const PAGE_BYTES: u64 = 28;

/// Maximum bytes of captures, chunks and features that a worker keeps in memory even if everything
/// is spilled: blocks that are being filled.
const MIN_LIST_BYTES: u64 = 5 << 20;

/// Bytes of a feature of a page while it is sent to the worker that counts the feature over the
/// crawl.
pub const FEATURE_BYTES: u64 = 16;

/// Maximum bytes of features that a worker keeps in memory even if everything is spilled: blocks
/// that are being filled, and blocks that arrive.
const MIN_FEATURE_BYTES: u64 = 40 << 20;

/// Bytes of lists on disk that one checksum in memory covers.
const BYTES_PER_CHECKSUM: u64 = 4096;

/// Bytes for each page that a process owns, in addition to its local pages, after collections have
/// been found, if memory is limited. Measured, like the constants below.
const RESULT_PAGE_BYTES: u64 = 34;

/// Bytes of a link between pages: its target.
const LINK_BYTES: u64 = 4;

/// Bytes for each page after collections have been found, if memory is not limited. Nothing is
/// freed for the computation of crawl paths then.
const UNBOUNDED_PAGE_BYTES: u64 = 127;
const UNBOUNDED_LINK_BYTES: u64 = 10;

/// Bytes of a page of another process that a process always holds after reading, if memory is
/// limited: its host.
const OTHER_PAGE_BYTES: u64 = 4;

/// Bytes of a page of another process after reading, at most, if memory is limited. They are 12
/// while links are resolved and tables are built: its host and doc id. While clusters grow they are
/// 5 for a page without copies, and up to 16 for a page that has copies and is in a collection: its
/// host, its trivial cluster, the size of that, its collection, and components that are being
/// found.
pub const GROWN_OTHER_PAGE_BYTES: u64 = 16;

/// Bytes of a page on disk, in addition to its capture, chunks and links, while clusters grow and
/// copies are selected, if memory is limited. Measured.
const DISK_PAGE_BYTES: u64 = 175;

/// Bytes for each page while tables are built, for small tables.
const TABLE_PAGE_BYTES: u64 = 1300;

/// Bytes that a worker takes to build a file of a table, if memory is limited. The constant below
/// is the bytes for each worker while another one builds a file. Measured.
pub const TABLE_FILE_BYTES: u64 = 50 << 20;
const AWAITED_FILE_BYTES: u64 = 10 << 20;

/// Bytes of a capture with a URL and a title of common length; and bytes for each further byte
/// while tables are built, in which the URL occurs several times. Measured.
const COMMON_CAPTURE_BYTES: u64 = 240;
const BYTES_PER_LONG_BYTE: u64 = 5;

/// Maximum bytes for long URLs and titles while tables are built, with and without a memory limit:
/// pieces of tables have a limit in bytes. Measured.
const LONG_BYTES_WITHIN_LIMIT: u64 = 40 << 20;
const LONG_BYTES: u64 = 80 << 20;

/// Returns the bytes of the captures of all pages, if `captures` are those of `pages` of them.
pub fn in_proportion(captures: u64, all_pages: u64, pages: u64) -> u64 {
    (u128::from(captures) * u128::from(all_pages) / u128::from(pages.max(1))) as u64
}

/// Returns the bytes of captures beyond those that have URLs and titles of common length.
pub fn long_bytes(pages: u64, captures: u64) -> u64 {
    captures.saturating_sub(COMMON_CAPTURE_BYTES * pages)
}

/// Returns the bytes that a process with `pages` pages takes to build tables, in addition to the
/// results that it holds. `captures` are the bytes of the captures of these pages. Measured.
fn making_bytes(pages: u64, captures: u64, workers: usize, is_bounded: bool) -> u64 {
    let long = BYTES_PER_LONG_BYTE * long_bytes(pages, captures);
    let (max_bytes, long) = match is_bounded {
        // Workers take turns if the budget does not suffice for all of them.
        true => (TABLE_FILE_BYTES + AWAITED_FILE_BYTES * workers as u64, long.min(LONG_BYTES_WITHIN_LIMIT)),
        false => (((16 << 20) + 520 * pages).min((150 << 20) * workers as u64), long.min(LONG_BYTES * workers as u64)),
    };
    (TABLE_PAGE_BYTES * pages).min(max_bytes) + long
}

/// Returns the bytes that are missing within the limit `allowed` to build tables, in addition to
/// what a process with the given number of workers holds. `pages` and `captures` are the pages of
/// the run and the bytes of their captures.
pub fn lacking_to_make_tables(pages: u64, captures: u64, workers: usize, allowed: u64) -> u64 {
    (build_info::memory_bytes() + making_bytes(pages, captures, workers, true)).saturating_sub(allowed)
}

/// Returns the bytes that a process takes in addition to its local pages after collections have
/// been found and while tables are built. With a memory limit the two phases follow one another.
/// `own` are the pages and captures of the process, and `links` are the links between them. A file
/// may contain pages of other processes, out of `all_pages`.
pub fn bytes_of_tables(own: &MemoryEstimate, all_pages: u64, links: u64, workers: usize, is_bounded: bool) -> u64 {
    let &MemoryEstimate { pages, captures, .. } = own;
    match is_bounded {
        true => making_bytes(all_pages, in_proportion(captures, all_pages, pages), workers, true)
            .max(RESULT_PAGE_BYTES * pages),
        false => {
            UNBOUNDED_PAGE_BYTES * pages + UNBOUNDED_LINK_BYTES * links + making_bytes(pages, captures, workers, false)
        }
    }
}

/// Bytes of counts for each page while pairs are found.
const COUNTS_PAGE_BYTES: u64 = 8;

/// Bytes of a shingle. Shingles beyond one block are in memory only if memory is not limited.
const SHINGLE_BYTES: u64 = 4;

/// Bytes of a pair of pages.
const PAIR_BYTES: u64 = 8;

/// Returns the bytes of a row of `FPrint-DocID` while rows are grouped.
fn row_bytes(job: &Job) -> u64 {
    if job.chunks.bits <= 32 { size_of::<Row32>() as u64 } else { size_of::<Row64>() as u64 }
}

/// Sizes of the data that a process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEstimate {
    /// Number of pages.
    pub pages: u64,
    /// Bytes of the captures of these pages.
    pub captures: u64,
    /// Rows of `FPrint-DocID`: distinct chunks of pages.
    pub tuples: u64,
    /// Distinct features of pages, if simhashes need weights of the whole crawl.
    pub features: u64,
    /// Shingles in the sets of pages, if pages are compared by shingles.
    pub shingles: u64,
    /// Links within the crawl and out of it.
    pub links: u64,
    /// Links between pages, after they have been resolved.
    #[serde(skip)]
    pub resolved: u64,
    /// Pairs of pages, counted once for each chunk that the two pages share.
    pub pairs: u64,
    /// Bytes of captures, chunks, features and links that are already on disk.
    #[serde(skip)]
    pub on_disk: u64,
}

impl MemoryEstimate {
    /// Returns the bytes in addition to the local pages at the peak, if memory is not limited and
    /// everything is in memory. They are the rows of the table, their run log (three rows in four
    /// are assumed to have a chunk that another page has, too), and the pairs. The rows are freed
    /// before the pairs are built.
    pub fn bytes_besides_local_pages(&self, job: &Job) -> u64 {
        (row_bytes(job) * self.tuples).max(PAIR_BYTES * self.pairs) + 3 * self.tuples + SHINGLE_BYTES * self.shingles
    }

    /// Returns the minimum bytes of a process of a run: the data that cannot be spilled, with the
    /// widest rows and the counts of chunks.
    pub fn required_bytes(&self, run: RunSize) -> u64 {
        let RunSize { all_pages, workers, .. } = run;
        let rows = size_of::<Row64>() as u64 * self.tuples / workers as u64;
        let counting = allowance::required_bytes(all_pages as usize, workers, rows, true);
        let other_page_bytes = OTHER_PAGE_BYTES * all_pages.saturating_sub(self.pages);
        (at_rest(workers) + self.min_local_pages_bytes(workers) + counting + other_page_bytes)
            .max(self.found_bytes(run))
    }

    /// Returns the bytes after collections have been found and while tables are built, if memory is
    /// limited. Every link counts as a link between pages.
    pub(crate) fn found_bytes(&self, run: RunSize) -> u64 {
        let RunSize { all_pages, workers, processes } = run;
        let local_pages = at_rest(workers) + self.min_local_pages_bytes(workers);
        let other_page_bytes = GROWN_OTHER_PAGE_BYTES * all_pages.saturating_sub(self.pages);
        let connections = PEER_BYTES * processes.saturating_sub(1) as u64;
        local_pages + other_page_bytes + connections + bytes_of_tables(self, all_pages, self.links, workers, true)
    }

    /// Returns the bytes that stay in memory in a process with the given number of workers even if
    /// everything is spilled. Only terms that grow with the input are included: pages, links, and
    /// some counts for each page.
    pub fn peak_bytes(&self, workers: usize) -> u64 {
        at_rest(workers) + self.min_local_pages_bytes(workers) + COUNTS_PAGE_BYTES * self.pages
    }

    /// Returns the bytes that are spilled to disk within the memory limit `allowed`: rows, run log
    /// and pairs that exceed the budget, which are on disk one after the other.
    pub fn spilled_bytes(&self, job: &Job, run: RunSize, allowed: u64) -> u64 {
        if allowed == 0 {
            return 0;
        }
        let [rows, pairs] = self.made_on_disk(job, allowed.saturating_sub(self.required_bytes(run)));
        let list_budget = self.budget_for_lists(run, allowed);
        SHINGLE_BYTES * self.shingles + self.list_bytes().saturating_sub(list_budget) + rows + pairs
    }

    /// Returns the bytes of rows with their run log, and of pairs, that are spilled if the budget
    /// for them is `budget`.
    fn made_on_disk(&self, job: &Job, budget: u64) -> [u64; 2] {
        let excess = |bytes: u64, tenths: u64| bytes.saturating_sub(budget / 10 * tenths);
        let rows = excess(row_bytes(job) * self.tuples, 7) + excess(3 * self.tuples, 3);
        [rows, excess(PAIR_BYTES * self.pairs, 7)]
    }

    /// Returns the bytes on disk at the same time, within the memory limit `allowed`, of a process
    /// whose pages have `links` links to pages. The first number is the maximum. The second is the
    /// minimum, which applies if the disk is too small and rows and pairs are built in passes.
    pub fn on_disk_at_once(&self, job: &Job, run: RunSize, links: u64, allowed: u64) -> [u64; 2] {
        let [rows, pairs] = self.made_on_disk(job, allowed.saturating_sub(self.required_bytes(run)));
        let list_budget = self.budget_for_lists(run, allowed);
        let reading_bytes = (self.list_bytes() + SHINGLE_BYTES * self.shingles).saturating_sub(list_budget);
        let deduplicated = MemoryEstimate { links: 0, resolved: links, ..*self };
        let deduplicated_bytes =
            (deduplicated.list_bytes() + SHINGLE_BYTES * self.shingles).saturating_sub(list_budget);
        let making_bytes = match job.similar.by {
            Measure::Overlap | Measure::Both => rows.max(pairs),
            _ => 0,
        };
        let min_bytes =
            reading_bytes.max(deduplicated_bytes + (DISK_PAGE_BYTES * self.pages).max(FEATURE_BYTES * self.features));
        [min_bytes.max(deduplicated_bytes + making_bytes), min_bytes]
    }

    /// Returns the sum over several workers.
    pub(crate) fn sum(workers: &[MemoryEstimate]) -> MemoryEstimate {
        workers.iter().fold(MemoryEstimate::default(), |sum, worker| MemoryEstimate {
            pages: sum.pages + worker.pages,
            captures: sum.captures + worker.captures,
            tuples: sum.tuples + worker.tuples,
            features: sum.features + worker.features,
            shingles: sum.shingles + worker.shingles,
            links: sum.links + worker.links,
            resolved: sum.resolved + worker.resolved,
            pairs: sum.pairs + worker.pairs,
            on_disk: sum.on_disk + worker.on_disk,
        })
    }

    /// Applies `scale` to each number.
    pub fn map(&self, scale: impl Fn(u64) -> u64) -> MemoryEstimate {
        let MemoryEstimate {
            pages,
            captures,
            tuples,
            features,
            shingles,
            links,
            resolved: resolved_links,
            pairs,
            on_disk,
        } = *self;
        MemoryEstimate {
            pages: scale(pages),
            captures: scale(captures),
            tuples: scale(tuples),
            features: scale(features),
            shingles: scale(shingles),
            links: scale(links),
            resolved: scale(resolved_links),
            pairs: scale(pairs),
            on_disk: scale(on_disk),
        }
    }

    /// Extrapolates to `whole` work items from `part` work items, which hold `self`.
    pub fn times(&self, whole: usize, part: usize) -> MemoryEstimate {
        self.map(|n| (u128::from(n) * whole as u128 / part.max(1) as u128) as u64)
    }

    /// Returns the bytes of the local pages of a worker that are in memory.
    pub fn local_pages_bytes(&self) -> u64 {
        self.row_bytes() + self.list_bytes().saturating_sub(self.on_disk) + self.on_disk / BYTES_PER_CHECKSUM * 8
    }

    /// Returns the bytes of the local pages that remain when tables are built: pages, their
    /// captures, and links between pages.
    pub fn settled_bytes(&self) -> u64 {
        self.row_bytes() + self.captures + LINK_BYTES * self.resolved
    }

    /// Returns the bytes of pages in addition to their captures, and of the block of shingle sets.
    fn row_bytes(&self) -> u64 {
        PAGE_BYTES * self.pages + (SHINGLE_BYTES * self.shingles).min(RUN_LOG_BLOCK_BYTES as u64)
    }

    /// Returns the bytes of captures, chunks, features and links, in memory and on disk.
    fn list_bytes(&self) -> u64 {
        self.captures + 8 * (self.tuples + self.links) + LINK_BYTES * self.resolved + 10 * self.features
    }

    /// Returns the bytes of the local pages of the given number of workers that stay in memory even
    /// if everything is spilled.
    pub fn min_local_pages_bytes(&self, workers: usize) -> u64 {
        let lists = self.captures + 8 * self.tuples + 10 * self.features;
        let min_lists = (MIN_LIST_BYTES * workers as u64).min(lists) + self.features_least_bytes(workers);
        self.row_bytes() + min_lists + lists / BYTES_PER_CHECKSUM * 8
    }

    /// Returns the bytes that features take while they are counted over the crawl, even if
    /// everything is spilled.
    pub(crate) fn features_least_bytes(&self, workers: usize) -> u64 {
        (FEATURE_BYTES * self.features).min(MIN_FEATURE_BYTES * workers as u64)
    }

    /// Returns the bytes of lists that may stay in the memory of a process with these local pages:
    /// half of the memory beyond the minimum of the steps after reading. The other half is for rows
    /// of chunks.
    pub fn budget_for_lists(&self, run: RunSize, allowed: u64) -> u64 {
        allowed.saturating_sub(self.required_bytes(run)) / 2
    }

    /// Measures the local pages of a worker.
    pub fn on(local_pages: &WorkerPages) -> MemoryEstimate {
        let (pages, tuples) = (local_pages.slots() as u64, local_pages.fprints.items());
        MemoryEstimate {
            pages,
            captures: 8 * local_pages.captures.words(),
            tuples,
            features: local_pages.features.items(),
            shingles: local_pages.sets.as_ref().map_or(0, |sets| sets.items()),
            links: local_pages.links.items(),
            resolved: 0,
            pairs: 0,
            on_disk: local_pages.spilled_bytes(),
        }
    }

    /// Measures the local pages of a worker after its captures have become the pages of a crawl.
    /// `pages` are the pages that this worker owns, and `links` are their links, if they are known.
    pub fn with(local_pages: &WorkerPages, pages: &CaptureRows, links: Option<&WorkerLinks>) -> MemoryEstimate {
        let local_estimate = MemoryEstimate::on(local_pages);
        MemoryEstimate {
            captures: 8 * pages.words(),
            resolved: links.map_or(0, |links| links.len() as u64),
            on_disk: local_estimate.on_disk + pages.spilled_bytes() + links.map_or(0, WorkerLinks::spilled_bytes),
            ..local_estimate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shuffle::memory::IDLE_WORKER_BYTES;

    #[test]
    fn base_memory_of_a_process_counts_once_with_any_workers() {
        assert_eq!(MemoryEstimate::default().peak_bytes(64), at_rest(2) + 62 * IDLE_WORKER_BYTES);
        let (tuples, links) = (10 * BYTES_PER_CHECKSUM, BYTES_PER_CHECKSUM);
        let estimate = MemoryEstimate { pages: 1000, tuples, links, ..MemoryEstimate::default() };
        assert_eq!(estimate.times(3, 1).peak_bytes(3) - at_rest(3), 3 * (estimate.peak_bytes(1) - at_rest(1)));
        let scaled = estimate.times(30, 3);
        assert_eq!((scaled.pages, scaled.tuples, scaled.links), (10_000, 10 * tuples, 10 * links));
        assert_eq!(scaled.peak_bytes(2) - at_rest(2), 10 * (estimate.peak_bytes(2) - at_rest(2)));
    }

    #[test]
    fn memory_of_a_run_grows_with_pages_and_hardly_with_chunks() {
        let small_crawl =
            MemoryEstimate { pages: 1_000_000, tuples: 10 << 20, links: 5_000_000, ..MemoryEstimate::default() };
        let large_crawl = MemoryEstimate { tuples: 110 << 20, features: 50 << 20, ..small_crawl };
        // One checksum of 8 bytes for each 4,096 bytes of lists; and features that are being sent.
        let lists = (8 * 100 + 10 * 50) << 20;
        assert_eq!(
            large_crawl.peak_bytes(2) - small_crawl.peak_bytes(2),
            lists / BYTES_PER_CHECKSUM * 8 + 2 * MIN_FEATURE_BYTES
        );
        assert_eq!(large_crawl.local_pages_bytes() - small_crawl.local_pages_bytes(), lists);
        let spilled = MemoryEstimate { on_disk: lists, ..large_crawl };
        assert_eq!(spilled.local_pages_bytes() - small_crawl.local_pages_bytes(), lists / BYTES_PER_CHECKSUM * 8);
        // Lists stay in memory unless something else needs the memory.
        let run = RunSize { all_pages: 1_000_000, workers: 2, processes: 1 };
        let needed_bytes = large_crawl.peak_bytes(2).max(large_crawl.required_bytes(run));
        assert_eq!(large_crawl.budget_for_lists(run, needed_bytes), 0);
        assert!(large_crawl.budget_for_lists(run, 20 * needed_bytes) > lists);
    }
}
