//! What a process may hold in memory, and what takes the rest.

use std::path::{Path, PathBuf};

use webtwin_base::error::{Error, Result};
use webtwin_base::heap::give_back_what_is_free;

use super::disk::{Disk, SPILL, no_room_on_disk};
use super::partitions::BLOCK_BYTES;

/// Bytes of rows of a worker that are on their way to others, or from them.
pub const ON_THE_WAY: u64 = 16 << 20;

/// Bytes of a partition that is sorted at once: within a core's share of the cache, with its scratch.
pub const PARTITION_BYTES: u64 = 4 << 20;

/// Most partitions of a worker, as a power of two: their open blocks take 64 MiB.
const MOST_PARTITION_BITS: u32 = 10;

/// The memory that containers may fill together, and the folder on a local disk for what does not fit.
///
/// A pool is a promise, not a counter: a container takes its share when it is made. Whoever makes several that live at the same
/// time makes each from a [part](MemoryPool::part).
#[derive(Debug, Clone)]
pub struct MemoryPool {
    /// Memory of the process beyond what it holds already; [`u64::MAX`] where it has no bound.
    pub memory_bytes: u64,
    /// What may be used of it where that is needed at least: by what was foreseen when the run was let go on, though the process
    /// holds more by now.
    pub foreseen_bytes: u64,
    /// Workers that share it.
    pub workers: u64,
    /// Folder for what does not fit.
    pub folder: PathBuf,
    /// The setting or option that names the folder.
    pub setting: &'static str,
    /// Disk that the process may use for it; 0 sets no bound.
    pub disk_bytes: u64,
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

/// Gives the system what has been freed when it is dropped: the last field of what holds much.
#[derive(Debug)]
pub struct GiveBack(bool);

impl Drop for GiveBack {
    fn drop(&mut self) {
        if self.0 {
            give_back_what_is_free();
        }
    }
}

/// No bound: everything stays in memory.
impl Default for MemoryPool {
    fn default() -> MemoryPool {
        MemoryPool::new(u64::MAX, &std::env::temp_dir(), SPILL)
    }
}

impl MemoryPool {
    /// So many bytes of one worker, and a folder that `setting` names and whose device alone bounds what is written.
    pub fn new(memory_bytes: u64, folder: &Path, setting: &'static str) -> MemoryPool {
        MemoryPool {
            memory_bytes,
            foreseen_bytes: memory_bytes,
            workers: 1,
            folder: folder.to_path_buf(),
            setting,
            disk_bytes: 0,
            bounds: Bounds::default(),
        }
    }

    /// Whether memory has a bound.
    pub fn is_bounded(&self) -> bool {
        self.memory_bytes < u64::MAX
    }

    /// Bytes that a worker may fill; [`u64::MAX`] where there is no bound.
    pub fn of_worker(&self) -> u64 {
        if self.is_bounded() { self.memory_bytes / self.workers } else { u64::MAX }
    }

    /// One of equal parts.
    #[must_use]
    pub fn part(&self, parts: u64) -> MemoryPool {
        let part = |bytes: u64| if bytes == u64::MAX { bytes } else { (bytes / parts).max(1) };
        MemoryPool {
            memory_bytes: part(self.memory_bytes),
            foreseen_bytes: part(self.foreseen_bytes),
            disk_bytes: if self.disk_bytes == 0 { 0 } else { (self.disk_bytes / parts).max(1) },
            ..self.clone()
        }
    }

    /// So many bytes of a worker, with the same disk.
    #[must_use]
    pub fn limited(&self, bytes: u64) -> MemoryPool {
        MemoryPool { memory_bytes: bytes.saturating_mul(self.workers), ..self.clone() }
    }

    /// The same for a container that leaves the memory to others: nothing, where it has a bound.
    #[must_use]
    pub fn on_disk(&self) -> MemoryPool {
        if self.is_bounded() { self.limited(0) } else { self.clone() }
    }

    /// What a worker may fill with full blocks of each of `kinds` kinds of rows in `2^bits` partitions each, into which others send
    /// them: its share beside their open blocks, rows on their way to it, and a partition that is read with as much again to put
    /// it in order.
    #[must_use]
    pub fn for_partitions(&self, kinds: u64, bits: u32) -> MemoryPool {
        let part = self.part(kinds);
        if !self.is_bounded() {
            return part;
        }
        let beside = kinds * ((BLOCK_BYTES as u64) << bits) + ON_THE_WAY + 2 * PARTITION_BYTES;
        part.limited(self.of_worker().saturating_sub(beside) / kinds)
    }

    /// The disk that a process may use; [`u64::MAX`] where there is no bound.
    pub fn most_disk_bytes(&self) -> u64 {
        if self.disk_bytes == 0 { u64::MAX } else { self.disk_bytes }
    }

    /// Gives the system what has been freed, as soon as what is returned is dropped, where memory has a bound.
    pub fn give_back(&self) -> GiveBack {
        GiveBack(self.is_bounded())
    }

    /// The refusal to write so many bytes of a process to its disk, beside what is there.
    pub fn too_much_to_spill(&self, what: &str, bytes: u64) -> Error {
        let Bounds { disk_bytes, disk_is_set, .. } = self.bounds;
        let needed_bytes = bytes + disk_bytes.saturating_sub(self.disk_bytes);
        no_room_on_disk(what, &self.folder, needed_bytes, disk_bytes.max(self.disk_bytes), disk_is_set)
    }

    /// Looks whether files can be made in the folder, before there is something to write. Nothing is left behind.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such folder, or it may not be written.
    pub fn look(&self) -> Result<()> {
        self.disk().look()
    }

    /// The disk of the process, or a worker's share of it where nobody has set a bound.
    pub(crate) fn disk(&self) -> Disk {
        let Bounds { disk_bytes, disk_is_set, .. } = self.bounds;
        if disk_is_set {
            return Disk::of_process(&self.folder, self.setting, disk_bytes);
        }
        // A share of nothing would be no bound.
        let share = (self.disk_bytes / self.workers).max(self.disk_bytes.min(1));
        Disk::share(&self.folder, self.setting, share, disk_bytes.max(self.disk_bytes), false)
    }
}

/// Partitions for so many rows of a worker, as a power of two.
pub fn partition_bits<T>(rows: u64) -> u32 {
    (rows * size_of::<T>() as u64 / PARTITION_BYTES + 1).next_power_of_two().trailing_zeros().min(MOST_PARTITION_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_bound_is_one_and_a_part_of_none_is_none() {
        let pool = MemoryPool { workers: 2, ..MemoryPool::new(1000, Path::new("/spill"), SPILL) };
        assert_eq!((pool.of_worker(), pool.part(4).of_worker(), pool.limited(7).of_worker()), (500, 125, 7));
        assert_eq!((pool.part(4000).memory_bytes, pool.for_partitions(2, 3).of_worker()), (1, 0));
        let pool = MemoryPool::default();
        assert!(!pool.part(3).is_bounded() && !pool.for_partitions(2, 3).is_bounded());
    }

    #[test]
    fn a_refusal_names_the_whole_bound_of_the_disk() {
        let bounds = Bounds { memory_bytes: 0, disk_bytes: 1000, disk_is_set: true };
        let pool = MemoryPool { disk_bytes: 500, bounds, ..MemoryPool::default() };
        let refused = pool.too_much_to_spill("rows", 4096);
        assert!(matches!(refused, Error::DiskLimit { needed_bytes: 4596, allowed_bytes: 1000, .. }), "{refused}");
    }
}
