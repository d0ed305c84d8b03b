//! What a step may hold in memory and write to disk, and how it cuts its rows in buckets by that.

use std::path::PathBuf;

use crate::engine::Net;
use crate::error::{Error, Result};
use crate::overlap::planner::Method;
use crate::storage::spill::{BLOCK_BYTES, Disk};

/// Bytes of a bucket that is sorted at once: within a core's share of the cache, with its scratch.
pub(super) const BUCKET_BYTES: u64 = 4 << 20;

/// Most buckets of a worker, as a power of two: their open blocks take 64 MiB.
const MOST_BUCKET_BITS: u32 = 10;

/// Bytes of a worker that are on their way to others, or from them.
const ON_THE_WAY: u64 = 40 << 20;

/// Bytes that a worker with many rows needs so that what it spills is written in pieces worth a seek.
const LEAST_BYTES: u64 = 64 << 20;

/// What may be used.
#[derive(Debug, Clone)]
pub struct Room {
    /// Memory of a process beyond what it holds already; 0 sets no bound.
    pub memory_bytes: u64,
    /// Folder for what does not fit.
    pub spill: PathBuf,
    /// Disk that a process may use for it; 0 sets no bound.
    pub disk_bytes: u64,
    /// A way of counting that is taken without asking the planner.
    pub method: Option<Method>,
}

/// Bytes that one worker may fill with rows, a tape and pairs.
pub(super) struct Allowance {
    /// For rows, and later for pairs.
    pub(super) buckets: u64,
    /// For a tape.
    pub(super) tape: u64,
}

/// Bytes of a process that cannot be spilled, for so many pages, and bytes of rows of each worker.
pub fn fixed_bytes(pages: usize, workers: usize, row_bytes: u64, with_chunks: bool) -> u64 {
    let (pages, workers) = (pages as u64, workers as u64);
    let a_page = if with_chunks { 6 * workers + 5 } else { 2 * workers + 1 };
    let blocks = (BLOCK_BYTES as u64 * 2) << bucket_bits(row_bytes);
    let a_worker = (2 * row_bytes).min(ON_THE_WAY) + row_bytes.min(4 * BUCKET_BYTES) + row_bytes.min(blocks);
    pages * a_page + pages / 4 * (workers + 1) + workers * a_worker
}

/// The least memory of a process: with less there is no run.
pub fn least_bytes(pages: usize, workers: usize, row_bytes: u64, with_chunks: bool) -> u64 {
    fixed_bytes(pages, workers, row_bytes, with_chunks) + workers as u64 * (row_bytes / 8).min(LEAST_BYTES)
}

impl Room {
    /// A worker's share of the disk.
    pub fn disk(&self, net: &Net<'_>) -> Disk {
        Disk::new(&self.spill, self.disk_bytes / net.workers_per_process() as u64)
    }

    /// A worker's share of the memory; more than there can be where there is no bound.
    pub fn of_worker(&self, net: &Net<'_>) -> u64 {
        if self.memory_bytes == 0 { u64::MAX } else { self.memory_bytes / net.workers_per_process() as u64 }
    }

    /// One of equal parts.
    pub fn parted(&self, parts: u64) -> Room {
        let part = |bytes: u64| if bytes == 0 { 0 } else { (bytes / parts).max(1) };
        Room { memory_bytes: part(self.memory_bytes), disk_bytes: part(self.disk_bytes), ..self.clone() }
    }

    /// What each worker may fill, or the refusal that names the need.
    pub(super) fn allowance(
        &self,
        workers: usize,
        pages: usize,
        row_bytes: u64,
        with_chunks: bool,
    ) -> Result<Allowance> {
        if self.memory_bytes == 0 {
            return Ok(Allowance { buckets: u64::MAX, tape: u64::MAX });
        }
        let fixed = fixed_bytes(pages, workers, row_bytes, with_chunks);
        let least = least_bytes(pages, workers, row_bytes, with_chunks);
        if self.memory_bytes < least {
            return Err(Error::Space {
                what: "all-pairs overlap in the memory of a process".into(),
                needed_bytes: least,
                allowed_bytes: self.memory_bytes,
            });
        }
        let each = (self.memory_bytes - fixed) / workers as u64;
        let allowance = Allowance { buckets: each / 10 * 7, tape: each / 10 * 3 };
        let spilled = workers as u64 * row_bytes.saturating_sub(allowance.buckets);
        if self.disk_bytes > 0 && spilled > self.disk_bytes {
            return Err(Error::Space {
                what: format!("what does not fit in memory, spilled to {} (effort.spill),", self.spill.display()),
                needed_bytes: spilled,
                allowed_bytes: self.disk_bytes,
            });
        }
        Ok(allowance)
    }
}

/// Buckets for so many bytes, as a power of two.
pub fn bucket_bits(bytes: u64) -> u32 {
    (bytes / BUCKET_BYTES + 1).next_power_of_two().trailing_zeros().min(MOST_BUCKET_BITS)
}
