//! What a step may hold in memory and write to disk, and how it cuts its rows in buckets by that.

use std::path::PathBuf;

use crate::shuffle::memory_estimate::too_little;
use webtwin_base::error::{Error, Result};
use webtwin_base::heap::give_back_what_is_free;
use webtwin_core::overlap::planner::{Method, least_disk_bytes, pass_bits};
use webtwin_engine::Net;
use webtwin_storage::spill::BLOCK_BYTES;
use webtwin_storage::spill_file::{Disk, no_room_on_disk};

/// Bytes of a bucket that is sorted at once: within a core's share of the cache, with its scratch.
pub const BUCKET_BYTES: u64 = 4 << 20;

/// Most buckets of a worker, as a power of two: their open blocks take 64 MiB.
const MOST_BUCKET_BITS: u32 = 10;

/// Bytes of a worker that are on their way to others, or from them.
const ON_THE_WAY: u64 = 16 << 20;

/// Bytes that a worker with many rows needs so that what it spills is written in pieces worth a seek.
const LEAST_BYTES: u64 = 64 << 20;

/// What may be used.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    /// Memory of a process beyond what it holds already; 0 sets no bound.
    pub memory_bytes: u64,
    /// What a step may take of it that needs that at least: by what was foreseen when the run was let go on, though the process holds
    /// more.
    pub foreseen_bytes: u64,
    /// Folder for what does not fit.
    pub spill: PathBuf,
    /// Disk that a process may use for it; 0 sets no bound.
    pub disk_bytes: u64,
    /// A way of counting that is taken without asking the planner.
    pub method: Option<Method>,
    /// What this is a part of, for refusals.
    pub bounds: Bounds,
}

/// What a process may use in all; all zero where nobody has set a bound.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds {
    /// `effort.memory_bytes`.
    pub memory_bytes: u64,
    /// `effort.disk_bytes`, or what is free on the device.
    pub disk_bytes: u64,
    /// Whether it is the former.
    pub disk_is_set: bool,
}

/// Bytes that one worker may fill with rows, a tape and pairs.
pub(crate) struct WorkerBudget {
    /// For rows, and later for pairs.
    pub(crate) buckets: u64,
    /// For a tape.
    pub(crate) tape: u64,
    /// Passes in which rows are made, as a power of two.
    pub(crate) pass_bits: u32,
    /// Bytes of the process that are no worker's to fill.
    pub(crate) fixed: u64,
    pub(crate) workers: u64,
    /// Bytes that the process may hold.
    pub(crate) of_process: u64,
}

impl WorkerBudget {
    /// The refusal for want of so many bytes of buckets in one worker; it tells what the process would need.
    pub(crate) fn too_little_for_buckets(&self, what: String, bytes: u64) -> Error {
        // Seven tenths of a worker's share are for buckets.
        let needed_bytes = self.fixed + self.workers * 10 * bytes.div_ceil(7);
        too_little(what, needed_bytes, self.of_process)
    }
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

impl MemoryBudget {
    /// The disk of the process, or a worker's share of it where nobody has set a bound.
    pub fn disk(&self, net: &Net<'_>) -> Disk {
        let Bounds { disk_bytes, disk_is_set, .. } = self.bounds;
        if disk_is_set {
            return Disk::of_process(&self.spill, disk_bytes);
        }
        // A share of nothing would be no bound.
        let share = (self.disk_bytes / net.workers_per_process() as u64).max(self.disk_bytes.min(1));
        Disk::share(&self.spill, share, disk_bytes.max(self.disk_bytes), false)
    }

    /// The same where memory has a bound.
    pub fn disk_if_bounded(&self, net: &Net<'_>) -> Option<Disk> {
        (self.memory_bytes > 0).then(|| self.disk(net))
    }

    /// A worker's share of the memory; more than there can be where there is no bound.
    pub fn of_worker(&self, net: &Net<'_>) -> u64 {
        if self.memory_bytes == 0 { u64::MAX } else { self.memory_bytes / net.workers_per_process() as u64 }
    }

    /// Bytes of full blocks that a worker may hold of each of so many kinds of rows in so many buckets: of its share beside their open
    /// blocks, rows on their way to it, and a bucket that is read with as much again to put it in order.
    pub fn of_buckets(&self, net: &Net<'_>, kinds: u64, count: usize) -> u64 {
        if self.memory_bytes == 0 {
            return u64::MAX;
        }
        let beside = kinds * (count * BLOCK_BYTES) as u64 + ON_THE_WAY + 2 * BUCKET_BYTES;
        self.of_worker(net).saturating_sub(beside) / kinds
    }

    /// Gives the system what the step before has freed, where memory has a bound.
    pub fn give_back(&self) {
        if self.memory_bytes > 0 {
            give_back_what_is_free();
        }
    }

    /// One of equal parts.
    pub fn parted(&self, parts: u64) -> MemoryBudget {
        let part = |bytes: u64| if bytes == 0 { 0 } else { (bytes / parts).max(1) };
        let [memory_bytes, foreseen_bytes] = [self.memory_bytes, self.foreseen_bytes].map(part);
        MemoryBudget { memory_bytes, foreseen_bytes, disk_bytes: part(self.disk_bytes), ..self.clone() }
    }

    /// What each worker may fill, or the refusal that names the need; `disk_bytes` is what every process may use of its disk.
    pub(crate) fn allowance(
        &self,
        workers: usize,
        pages: usize,
        (row_bytes, disk_bytes): (u64, u64),
        with_chunks: bool,
    ) -> Result<WorkerBudget> {
        if self.memory_bytes == 0 {
            let all = u64::MAX;
            return Ok(WorkerBudget { buckets: all, tape: all, pass_bits: 0, fixed: 0, workers: 1, of_process: 0 });
        }
        let fixed = fixed_bytes(pages, workers, row_bytes, with_chunks);
        let least = least_bytes(pages, workers, row_bytes, with_chunks);
        let memory_bytes = self.memory_bytes.max(least.min(self.foreseen_bytes));
        // What the process holds already.
        let held = self.bounds.memory_bytes.saturating_sub(memory_bytes);
        let of_process = held + memory_bytes;
        if memory_bytes < least {
            return Err(too_little("all-pairs overlap, beside what has been read".into(), held + least, of_process));
        }
        let each = (memory_bytes - fixed) / workers as u64;
        let buckets = each / 10 * 7;
        let (fixed, workers) = (held + fixed, workers as u64);
        let (rows, in_memory) = (workers * row_bytes, workers * buckets);
        let Some(pass_bits) = pass_bits(rows, in_memory, disk_bytes) else {
            let what = "rows of FPrint-DocID that do not fit in memory";
            return Err(self.too_much_to_spill(what, least_disk_bytes(rows, in_memory)));
        };
        Ok(WorkerBudget { buckets, tape: each / 10 * 3, pass_bits, fixed, workers, of_process })
    }

    /// The disk that a process may use; more than there can be where there is no bound.
    pub(crate) fn most_disk_bytes(&self) -> u64 {
        if self.disk_bytes == 0 { u64::MAX } else { self.disk_bytes }
    }

    /// The refusal to write so many bytes of a process to its disk, beside what is there.
    pub(crate) fn too_much_to_spill(&self, what: &str, bytes: u64) -> Error {
        let Bounds { disk_bytes, disk_is_set, .. } = self.bounds;
        let needed_bytes = bytes + disk_bytes.saturating_sub(self.disk_bytes);
        no_room_on_disk(what, &self.spill, needed_bytes, disk_bytes.max(self.disk_bytes), disk_is_set)
    }
}

/// Buckets for so many bytes, as a power of two.
pub fn bucket_bits(bytes: u64) -> u32 {
    (bytes / BUCKET_BYTES + 1).next_power_of_two().trailing_zeros().min(MOST_BUCKET_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_what_the_process_holds_already() {
        let bounds = Bounds { memory_bytes: 60_000_000, disk_bytes: 1000, disk_is_set: true };
        let (memory_bytes, foreseen_bytes) = (12_000_000, 0);
        let room = MemoryBudget {
            memory_bytes,
            foreseen_bytes,
            spill: "/spill".into(),
            disk_bytes: 500,
            method: None,
            bounds,
        };
        let least = least_bytes(1_000_000, 2, 1 << 20, true);
        assert!(least > room.memory_bytes);
        let Err(refused) = room.allowance(2, 1_000_000, (1 << 20, u64::MAX), true) else { panic!() };
        let Error::MemoryLimit { needed_bytes, allowed_bytes, setting, .. } = refused else { panic!("{refused}") };
        assert_eq!((needed_bytes, allowed_bytes), (48_000_000 + least, 60_000_000));
        assert_eq!(setting, "effort.memory_bytes");
        // With that number the room has what it takes; and of the disk the whole bound is named, not a part of it.
        let enough = MemoryBudget { memory_bytes: least, disk_bytes: 0, ..room.clone() };
        assert!(enough.allowance(2, 1_000_000, (1 << 20, u64::MAX), true).is_ok());
        // So it has where that was foreseen, though it holds more.
        assert!(
            MemoryBudget { foreseen_bytes: least, disk_bytes: 0, ..room.clone() }
                .allowance(2, 1_000_000, (1 << 20, u64::MAX), true)
                .is_ok()
        );
        let refused = room.too_much_to_spill("rows", 4096);
        assert!(matches!(refused, Error::DiskLimit { needed_bytes: 4596, allowed_bytes: 1000, .. }), "{refused}");
    }
}
