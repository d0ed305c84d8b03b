//! Memory budget of a process, and the disk for the data beyond it.

use std::path::{Path, PathBuf};

use webtwin_base::error::{Error, Result};
use webtwin_base::heap::release_free_memory;

use super::disk::{Disk, SPILL, disk_too_small};
use super::partitions::BLOCK_BYTES;

/// Maximum bytes of a worker's rows that are in transit to or from other workers.
pub const TRANSIT_BYTES: u64 = 16 << 20;

/// Size of a partition that is sorted as a whole, in bytes. Together with its scratch it fits a
/// core's part of the cache.
pub const PARTITION_BYTES: u64 = 4 << 20;

/// Maximum number of partitions of a worker, as a power of two. Their open blocks take 64 MiB.
const MAX_PARTITION_BITS: u32 = 10;

/// Memory that containers may fill together, and the folder on a local disk for data that does not
/// fit.
///
/// A pool is a promise and not a counter: a container takes its whole budget when it is created. If
/// several containers live at the same time, each must be created from a [part](MemoryPool::part).
#[derive(Debug, Clone)]
pub struct MemoryPool {
    /// Memory of the process in addition to what it already holds, in bytes; [`u64::MAX`] if it is
    /// unbounded.
    pub memory_bytes: u64,
    /// Memory that a step may use if it cannot work with less, in bytes. It was estimated when the
    /// run was admitted, and applies although the process may hold more by now.
    pub foreseen_bytes: u64,
    /// Number of workers that share the pool.
    pub workers: u64,
    /// Folder for data that does not fit.
    pub folder: PathBuf,
    /// Setting or option that names the folder.
    pub setting: &'static str,
    /// Disk space that the process may use for it, in bytes; 0 for no limit.
    pub disk_bytes: u64,
    /// Limits of the whole process, for messages.
    pub bounds: ProcessBounds,
}

/// Limits of a process in total. All are zero if none is set.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessBounds {
    /// Value of `effort.memory_bytes`.
    pub memory_bytes: u64,
    /// Value of `effort.disk_bytes`, or the free space of the device.
    pub disk_bytes: u64,
    /// True if `disk_bytes` is the value of `effort.disk_bytes`.
    pub disk_is_set: bool,
}

/// Guard that returns freed memory to the system on drop. It must be the last field of a structure
/// with much memory, because fields are dropped in order.
#[derive(Debug)]
pub struct ReleaseOnDrop(bool);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        if self.0 {
            release_free_memory();
        }
    }
}

/// Creates an unbounded pool: everything stays in memory.
impl Default for MemoryPool {
    fn default() -> MemoryPool {
        MemoryPool::new(u64::MAX, &std::env::temp_dir(), SPILL)
    }
}

impl MemoryPool {
    /// Creates a pool of `memory_bytes` for one worker. `setting` names the folder. The size of the
    /// spill files is limited only by the device.
    pub fn new(memory_bytes: u64, folder: &Path, setting: &'static str) -> MemoryPool {
        MemoryPool {
            memory_bytes,
            foreseen_bytes: memory_bytes,
            workers: 1,
            folder: folder.to_path_buf(),
            setting,
            disk_bytes: 0,
            bounds: ProcessBounds::default(),
        }
    }

    /// True if memory is bounded.
    pub fn is_bounded(&self) -> bool {
        self.memory_bytes < u64::MAX
    }

    /// Returns the number of bytes that a worker may fill; [`u64::MAX`] if memory is unbounded.
    pub fn of_worker(&self) -> u64 {
        if self.is_bounded() { self.memory_bytes / self.workers } else { u64::MAX }
    }

    /// Returns one of `parts` equal parts of the pool.
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

    /// Returns a pool of `bytes` for each worker, with the same disk.
    #[must_use]
    pub fn limited(&self, bytes: u64) -> MemoryPool {
        MemoryPool { memory_bytes: bytes.saturating_mul(self.workers), ..self.clone() }
    }

    /// Returns a pool for a container that keeps nothing in memory if memory is bounded.
    #[must_use]
    pub fn on_disk(&self) -> MemoryPool {
        if self.is_bounded() { self.limited(0) } else { self.clone() }
    }

    /// Returns the pool for the full blocks of each of `kinds` kinds of rows, with `2^bits`
    /// partitions each, that other workers fill. It is a worker's budget minus the open blocks, the
    /// rows in transit to the worker, and one partition that is read together with the scratch to
    /// sort it.
    #[must_use]
    pub fn for_partitions(&self, kinds: u64, bits: u32) -> MemoryPool {
        let part = self.part(kinds);
        if !self.is_bounded() {
            return part;
        }
        let fixed_bytes = kinds * ((BLOCK_BYTES as u64) << bits) + TRANSIT_BYTES + 2 * PARTITION_BYTES;
        part.limited(self.of_worker().saturating_sub(fixed_bytes) / kinds)
    }

    /// Returns the disk space that a process may use in bytes; [`u64::MAX`] if there is no limit.
    pub fn max_disk_bytes(&self) -> u64 {
        if self.disk_bytes == 0 { u64::MAX } else { self.disk_bytes }
    }

    /// Returns a guard that returns freed memory to the system on drop, if memory is bounded.
    pub fn release_on_drop(&self) -> ReleaseOnDrop {
        ReleaseOnDrop(self.is_bounded())
    }

    /// Returns the error that a process cannot write `bytes` more bytes to its disk.
    pub fn too_much_to_spill(&self, content: &str, bytes: u64) -> Error {
        let ProcessBounds { disk_bytes, disk_is_set, .. } = self.bounds;
        let needed_bytes = bytes + disk_bytes.saturating_sub(self.disk_bytes);
        disk_too_small(content, &self.folder, needed_bytes, disk_bytes.max(self.disk_bytes), disk_is_set)
    }

    /// Checks that files can be created in the folder, before there is data to write. Leaves no
    /// file behind.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the folder does not exist or is not writable.
    pub fn look(&self) -> Result<()> {
        self.disk().look()
    }

    /// Returns the disk of the process, or a worker's part of the free space if no limit is set.
    pub(crate) fn disk(&self) -> Disk {
        let ProcessBounds { disk_bytes, disk_is_set, .. } = self.bounds;
        if disk_is_set {
            return Disk::of_process(&self.folder, self.setting, disk_bytes);
        }
        // At least 1, because 0 would mean no limit.
        let share = (self.disk_bytes / self.workers).max(self.disk_bytes.min(1));
        Disk::share(&self.folder, self.setting, share, disk_bytes.max(self.disk_bytes), false)
    }
}

/// Returns the number of partitions for `rows` rows of a worker, as a power of two.
pub fn partition_bits<T>(rows: u64) -> u32 {
    (rows * size_of::<T>() as u64 / PARTITION_BYTES + 1).next_power_of_two().trailing_zeros().min(MAX_PARTITION_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_bound_is_bounded_and_part_of_no_bound_is_unbounded() {
        let pool = MemoryPool { workers: 2, ..MemoryPool::new(1000, Path::new("/spill"), SPILL) };
        assert_eq!((pool.of_worker(), pool.part(4).of_worker(), pool.limited(7).of_worker()), (500, 125, 7));
        assert_eq!((pool.part(4000).memory_bytes, pool.for_partitions(2, 3).of_worker()), (1, 0));
        let pool = MemoryPool::default();
        assert!(!pool.part(3).is_bounded() && !pool.for_partitions(2, 3).is_bounded());
    }

    #[test]
    fn rejection_names_the_whole_disk_budget() {
        let bounds = ProcessBounds { memory_bytes: 0, disk_bytes: 1000, disk_is_set: true };
        let pool = MemoryPool { disk_bytes: 500, bounds, ..MemoryPool::default() };
        let error = pool.too_much_to_spill("rows", 4096);
        assert!(matches!(error, Error::DiskLimit { needed_bytes: 4596, allowed_bytes: 1000, .. }), "{error}");
    }
}
