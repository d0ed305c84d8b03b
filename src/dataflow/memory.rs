//! What a run holds in memory, as a function of what it has counted; the bound of `effort.memory_bytes`, and `plan`.
//!
//! The peak is while pairs are counted: the shelf, the chunks that count and the pairs they make are there together.

use serde::Serialize;

use super::all_pairs::Room;
use super::shelf::Shelf;
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::storage::spill::free_bytes;

/// Bytes of a page's row, its strings, ranks and directory entry.
const A_PAGE: u64 = 360;

/// Bytes of a program that has nothing to do yet: code, stores, blocks on their way between two workers.
const AT_REST: u64 = 48 << 20;

/// Bytes of a growing list, on average.
fn growing(bytes: u64) -> u64 {
    bytes + bytes / 2
}

/// Numbers of what a process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Pages.
    pub pages: u64,
    /// Rows of `FPrint-DocID`: distinct chunks of pages.
    pub tuples: u64,
    /// Distinct features of pages, where simhashes wait for the crawl.
    pub features: u64,
    /// Links, within the crawl and out of it.
    pub links: u64,
    /// Pairs of pages, once for each chunk they share.
    pub pairs: u64,
}

impl Held {
    /// Bytes at the peak: 8 a chunk and a link on the shelf, 10 a feature, 12 a row of the table, 8 a pair; growing lists hold up to twice
    /// that for a moment, half of it on average.
    pub fn peak_bytes(&self) -> u64 {
        AT_REST + self.shelf_bytes() + growing(12 * self.tuples).max(12 * self.tuples + growing(8 * self.pairs))
    }

    fn shelf_bytes(&self) -> u64 {
        growing(8 * (self.tuples + self.links) + 10 * self.features) + A_PAGE * self.pages
    }

    /// What is on a shelf.
    pub fn on(shelf: &Shelf) -> Held {
        let (pages, tuples) = (shelf.exact.len() as u64, shelf.fprints.items() as u64);
        Held { pages, tuples, features: shelf.features.items() as u64, links: shelf.links.items() as u64, pairs: 0 }
    }
}

/// Bytes that the largest process holds on its shelves, and at rest.
///
/// # Errors
/// Only when the run has ended.
pub fn held_bytes(net: &mut Net<'_>, mine: Held) -> Result<u64> {
    let workers = net.workers_per_process();
    let all: Vec<u64> = net.all_gather("memory", mine.shelf_bytes())?;
    Ok(all.chunks(workers).map(|process| process.iter().sum::<u64>()).max().unwrap_or(0) + AT_REST)
}

/// What a step may use: the memory that is left where each worker holds `mine`, and the disk.
///
/// # Errors
/// Only when the run has ended.
pub fn room(net: &mut Net<'_>, mine: Held, job: &Job) -> Result<Room> {
    let held = held_bytes(net, mine)?;
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
        0 => free_bytes(&spill).unwrap_or(0),
        allowed => allowed,
    };
    Ok(Room { memory_bytes, spill, disk_bytes, method: None })
}

/// Refuses to go on when the largest process would hold more than `allowed_bytes` (0: no bound), before it does.
///
/// # Errors
/// [`Error::Space`] on all workers, with the number that would fit.
pub fn hold_against_bound(net: &mut Net<'_>, what: &str, mine: Held, allowed_bytes: u64) -> Result<()> {
    let workers = net.workers_per_process();
    let all: Vec<u64> = net.all_gather("memory", mine.peak_bytes() - AT_REST)?;
    let needed_bytes = all.chunks(workers).map(|process| process.iter().sum::<u64>()).max().unwrap_or(0) + AT_REST;
    if allowed_bytes > 0 && needed_bytes > allowed_bytes {
        return Err(Error::Space { what: format!("{what} in the memory of a process"), needed_bytes, allowed_bytes });
    }
    Ok(())
}
