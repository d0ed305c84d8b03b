//! What a run holds in memory, as a function of what it has counted; the bound of `effort.memory_bytes`, and `plan`.
//!
//! The peak is while rows are grouped or pairs are counted: the shelf is there with the table, or with the tape and the pairs.
//! Table, tape and pairs go to disk where a bound is set ([`crate::pairs::overlap_join`]), and so do the lists of the
//! shelf ([`webtwin_spill::Lists`]) and links between pages. What does not is a row for each page.
//!
//! An estimate decides whether a run is let go on. What a step may use then is what the bound leaves beside the resident set of the
//! process ([`crate::shuffle::memory::agree`]), for what has been found of pages differs from crawl to crawl.

use serde::{Deserialize, Serialize};

use crate::clusters::links::Links;
use crate::pairs::allowance;
use crate::reading::capture_rows::CaptureRows;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::memory::at_rest;
use webtwin_base::build_info;
use webtwin_core::overlap::rows::{Row32, Row64};
use webtwin_job::{Job, Measure};
use webtwin_spill::TAPE_BLOCK_BYTES;

/// Bytes of a page beside its capture, within a bound: where its lists end, its number and its host. Measured.
const A_PAGE: u64 = 28;

/// Most bytes of captures, chunks and features that a worker has in memory whatever is spilled: blocks that are being filled.
const LISTS_LEAST: u64 = 5 << 20;

/// Bytes of a feature of a page on its way to where those of the crawl are counted.
pub const A_FEATURE: u64 = 16;

/// Most bytes of these that a worker has in memory whatever is spilled: blocks that are being filled here, and those that arrive.
const FEATURES_LEAST: u64 = 40 << 20;

/// Bytes of lists on disk for one of their checksums in memory.
const A_CHECKSUM: u64 = 4096;

/// Bytes of a page of its own that a process holds beside its shelves, within a bound, when collections have been found. Measured, as
/// those below.
const A_PAGE_FOUND: u64 = 34;

/// Bytes of a link between pages: its target.
const A_LINK: u64 = 4;

/// The same where no bound is set, of a page and of a link: nothing makes way for the ways through the crawl.
const A_PAGE_HELD: u64 = 127;
const A_LINK_HELD: u64 = 10;

/// Bytes of a page on disk within a bound, beside its capture, chunks and links, while clusters grow and copies are kept. Measured.
const A_PAGE_ON_DISK: u64 = 175;

/// Bytes of a page while tables are made, as long as they are small.
const A_PAGE_MADE: u64 = 1300;

/// Bytes that a worker takes to make a file of a table within a bound, and while others do. Measured.
pub const A_FILE_MADE: u64 = 50 << 20;
const A_FILE_AWAITED: u64 = 10 << 20;

/// Bytes that a process with so many pages takes to make tables, beside what it has found. Measured.
fn making_bytes(pages: u64, workers: usize, is_bounded: bool) -> u64 {
    let most = match is_bounded {
        // Workers take turns where there is no room for all of them.
        true => A_FILE_MADE + A_FILE_AWAITED * workers as u64,
        false => ((16 << 20) + 520 * pages).min((150 << 20) * workers as u64),
    };
    (A_PAGE_MADE * pages).min(most)
}

/// Bytes that a process of so many workers lacks, within a bound of so many, to make the tables of so many pages beside what it holds.
pub fn lacking_to_make_tables(pages: u64, workers: usize, allowed: u64) -> u64 {
    (build_info::memory_bytes() + making_bytes(pages, workers, true)).saturating_sub(allowed)
}

/// Bytes beside its shelves of a process with so many pages and links between them when collections have been found and tables are
/// made: within a bound one after the other. A file may have pages of others, of `all_pages`.
pub fn beside_shelf_when_found(pages: u64, all_pages: u64, links: u64, workers: usize, is_bounded: bool) -> u64 {
    match is_bounded {
        true => making_bytes(all_pages, workers, true).max(A_PAGE_FOUND * pages),
        false => A_PAGE_HELD * pages + A_LINK_HELD * links + making_bytes(pages, workers, false),
    }
}

/// Bytes of counts a page while pairs are found, by one worker.
const A_PAGE_OF_COUNTS: u64 = 12;

/// Bytes of a shingle; in memory only where no bound is set, and beyond a block of them.
const A_SHINGLE: u64 = 4;

/// Bytes of a pair of pages.
const A_PAIR: u64 = 8;

/// Bytes of a row of `FPrint-DocID` on its way to be grouped.
fn row_bytes(job: &Job) -> u64 {
    if job.chunks.bits <= 32 { size_of::<Row32>() as u64 } else { size_of::<Row64>() as u64 }
}

/// Numbers of what a process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEstimate {
    /// Pages.
    pub pages: u64,
    /// Bytes of their captures.
    pub captures: u64,
    /// Rows of `FPrint-DocID`: distinct chunks of pages.
    pub tuples: u64,
    /// Distinct features of pages, where simhashes wait for the crawl.
    pub features: u64,
    /// Shingles in the sets of pages, where pages are compared by these.
    pub shingles: u64,
    /// Links, within the crawl and out of it.
    pub links: u64,
    /// Links between pages, once they are known.
    #[serde(skip)]
    pub resolved: u64,
    /// Pairs of pages, once for each chunk they share.
    pub pairs: u64,
    /// Bytes of captures, chunks, features and links that are on disk already.
    #[serde(skip)]
    pub on_disk: u64,
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
        let counting = allowance::least_bytes(all_pages as usize, workers, rows, true);
        (at_rest(workers) + self.least_shelf_bytes(workers) + counting).max(self.found_bytes(all_pages, workers))
    }

    /// Bytes when collections have been found and tables are made within a bound, with every link as one between pages.
    pub(crate) fn found_bytes(&self, all_pages: u64, workers: usize) -> u64 {
        let shelf = at_rest(workers) + self.least_shelf_bytes(workers);
        shelf + beside_shelf_when_found(self.pages, all_pages, self.links, workers, true)
    }

    /// Bytes that stay in memory in a process whose workers hold this together, whatever is spilled, as far as they grow with what
    /// is read: pages, links, and some counts a page.
    pub fn peak_bytes(&self, workers: usize) -> u64 {
        at_rest(workers) + self.least_shelf_bytes(workers) + A_PAGE_OF_COUNTS * self.pages
    }

    /// Bytes on disk within a bound of so many: rows, tape and pairs that have no room, one after the other.
    pub fn spilled_bytes(&self, job: &Job, all_pages: u64, workers: usize, allowed: u64) -> u64 {
        if allowed == 0 {
            return 0;
        }
        let [rows, pairs] = self.made_on_disk(job, allowed.saturating_sub(self.least_bytes(all_pages, workers)));
        let of_lists = self.room_for_lists(all_pages, workers, allowed);
        A_SHINGLE * self.shingles + self.list_bytes().saturating_sub(of_lists) + rows + pairs
    }

    /// Bytes of rows with their tape, and of pairs, that go to disk where there is so much room for them.
    fn made_on_disk(&self, job: &Job, room: u64) -> [u64; 2] {
        let beyond = |bytes: u64, tenths: u64| bytes.saturating_sub(room / 10 * tenths);
        let rows = beyond(row_bytes(job) * self.tuples, 7) + beyond(3 * self.tuples, 3);
        [rows, beyond(A_PAIR * self.pairs, 7)]
    }

    /// Bytes on disk at once, within a bound of so many, in a process with so many links between its pages and others: at most; and at
    /// least, where the disk has no room and rows and pairs are made in passes.
    pub fn on_disk_at_once(&self, job: &Job, all_pages: u64, links: u64, workers: usize, allowed: u64) -> [u64; 2] {
        let [rows, pairs] = self.made_on_disk(job, allowed.saturating_sub(self.least_bytes(all_pages, workers)));
        let of_lists = self.room_for_lists(all_pages, workers, allowed);
        let read = (self.list_bytes() + A_SHINGLE * self.shingles).saturating_sub(of_lists);
        let settled = MemoryEstimate { links: 0, resolved: links, ..*self };
        let settled = (settled.list_bytes() + A_SHINGLE * self.shingles).saturating_sub(of_lists);
        let made = match job.similar.by {
            Measure::Overlap | Measure::Both => rows.max(pairs),
            _ => 0,
        };
        let least = read.max(settled + (A_PAGE_ON_DISK * self.pages).max(A_FEATURE * self.features));
        [least.max(settled + made), least]
    }

    /// What several workers hold together.
    pub(crate) fn sum(workers: &[MemoryEstimate]) -> MemoryEstimate {
        workers.iter().fold(MemoryEstimate::default(), |sum, of| MemoryEstimate {
            pages: sum.pages + of.pages,
            captures: sum.captures + of.captures,
            tuples: sum.tuples + of.tuples,
            features: sum.features + of.features,
            shingles: sum.shingles + of.shingles,
            links: sum.links + of.links,
            resolved: sum.resolved + of.resolved,
            pairs: sum.pairs + of.pairs,
            on_disk: sum.on_disk + of.on_disk,
        })
    }

    /// What `of` makes of each number.
    pub fn map(&self, of: impl Fn(u64) -> u64) -> MemoryEstimate {
        let MemoryEstimate { pages, captures, tuples, features, shingles, links, resolved, pairs, on_disk } = *self;
        MemoryEstimate {
            pages: of(pages),
            captures: of(captures),
            tuples: of(tuples),
            features: of(features),
            shingles: of(shingles),
            links: of(links),
            resolved: of(resolved),
            pairs: of(pairs),
            on_disk: of(on_disk),
        }
    }

    /// What `all` work items hold when `done` of them hold this.
    pub fn times(&self, all: usize, done: usize) -> MemoryEstimate {
        self.map(|n| (u128::from(n) * all as u128 / done.max(1) as u128) as u64)
    }

    /// Bytes on the shelves of a worker, in memory.
    pub fn shelf_bytes(&self) -> u64 {
        self.row_bytes() + self.list_bytes().saturating_sub(self.on_disk) + self.on_disk / A_CHECKSUM * 8
    }

    /// Bytes that are left of what is on the shelves when tables are made: pages, their captures, and links between pages.
    pub fn settled_bytes(&self) -> u64 {
        self.row_bytes() + self.captures + A_LINK * self.resolved
    }

    /// Bytes of pages beside their captures, and of the block of sets.
    fn row_bytes(&self) -> u64 {
        A_PAGE * self.pages + (A_SHINGLE * self.shingles).min(TAPE_BLOCK_BYTES as u64)
    }

    /// Bytes of captures, chunks, features and links, wherever they are.
    fn list_bytes(&self) -> u64 {
        self.captures + 8 * (self.tuples + self.links) + A_LINK * self.resolved + 10 * self.features
    }

    /// Bytes on the shelves of so many workers whatever is spilled.
    pub fn least_shelf_bytes(&self, workers: usize) -> u64 {
        let lists = self.captures + 8 * self.tuples + 10 * self.features;
        let least = (LISTS_LEAST * workers as u64).min(lists) + self.features_least_bytes(workers);
        self.row_bytes() + least + lists / A_CHECKSUM * 8
    }

    /// Bytes that features take while those of the crawl are counted, whatever is spilled.
    pub(crate) fn features_least_bytes(&self, workers: usize) -> u64 {
        (A_FEATURE * self.features).min(FEATURES_LEAST * workers as u64)
    }

    /// Bytes of lists that may stay in the memory of a process with this on its shelves: half of what no step after reading needs
    /// at least, for rows of chunks can use the other half.
    pub fn room_for_lists(&self, all_pages: u64, workers: usize, allowed: u64) -> u64 {
        allowed.saturating_sub(self.least_bytes(all_pages, workers)) / 2
    }

    /// What is on a shelf.
    pub fn on(shelf: &WorkerPages) -> MemoryEstimate {
        let (pages, tuples) = (shelf.slots() as u64, shelf.fprints.items());
        MemoryEstimate {
            pages,
            captures: 8 * shelf.captures.words(),
            tuples,
            features: shelf.features.items(),
            shingles: shelf.sets.as_ref().map_or(0, |sets| sets.items()),
            links: shelf.links.items(),
            resolved: 0,
            pairs: 0,
            on_disk: shelf.spilled_bytes(),
        }
    }

    /// What is on a shelf whose captures are settled as the pages of a crawl, of which this worker holds `pages` and, if they are
    /// known, `links`.
    pub fn with(shelf: &WorkerPages, pages: &CaptureRows, links: Option<&Links>) -> MemoryEstimate {
        let on_shelf = MemoryEstimate::on(shelf);
        MemoryEstimate {
            captures: 8 * pages.words(),
            resolved: links.map_or(0, |links| links.len() as u64),
            on_disk: on_shelf.on_disk + pages.spilled_bytes() + links.map_or(0, Links::spilled_bytes),
            ..on_shelf
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shuffle::memory::A_WORKER_AT_REST;

    #[test]
    fn what_a_process_needs_at_rest_counts_once_whatever_its_workers() {
        assert_eq!(MemoryEstimate::default().peak_bytes(64), at_rest(2) + 62 * A_WORKER_AT_REST);
        let (tuples, links) = (10 * A_CHECKSUM, A_CHECKSUM);
        let held = MemoryEstimate { pages: 1000, tuples, links, ..MemoryEstimate::default() };
        assert_eq!(held.times(3, 1).peak_bytes(3) - at_rest(3), 3 * (held.peak_bytes(1) - at_rest(1)));
        let all = held.times(30, 3);
        assert_eq!((all.pages, all.tuples, all.links), (10_000, 10 * tuples, 10 * links));
        assert_eq!(all.peak_bytes(2) - at_rest(2), 10 * (held.peak_bytes(2) - at_rest(2)));
    }

    #[test]
    fn what_a_run_needs_grows_with_pages_and_hardly_with_chunks() {
        let few = MemoryEstimate { pages: 1_000_000, tuples: 10 << 20, links: 5_000_000, ..MemoryEstimate::default() };
        let many = MemoryEstimate { tuples: 110 << 20, features: 50 << 20, ..few };
        // A byte for 512 bytes of lists, for checksums; and features on their way.
        let lists = (8 * 100 + 10 * 50) << 20;
        assert_eq!(many.peak_bytes(2) - few.peak_bytes(2), lists / A_CHECKSUM * 8 + 2 * FEATURES_LEAST);
        assert_eq!(many.shelf_bytes() - few.shelf_bytes(), lists);
        let spilled = MemoryEstimate { on_disk: lists, ..many };
        assert_eq!(spilled.shelf_bytes() - few.shelf_bytes(), lists / A_CHECKSUM * 8);
        // Lists stay where nothing else needs the room, and go where it does.
        let needed = many.peak_bytes(2).max(many.least_bytes(1_000_000, 2));
        assert_eq!(many.room_for_lists(1_000_000, 2, needed), 0);
        assert!(many.room_for_lists(1_000_000, 2, 20 * needed) > lists);
    }
}
