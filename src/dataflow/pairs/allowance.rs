//! Memory budget of all-pairs overlap on one worker, and the number of passes in which rows are
//! built within it.

use webtwin_base::error::Error;
use webtwin_base::error::Result;
use webtwin_core::overlap::planner::{pass_bits, required_disk_bytes};
use webtwin_spill::{BLOCK_BYTES, MemoryPool, PARTITION_BYTES, TRANSIT_BYTES, partition_bits};

use crate::shuffle::memory::too_little;

/// Minimum bytes of a worker with many rows, so that it spills in blocks that are large compared
/// with the cost of a seek.
const MIN_BYTES: u64 = 64 << 20;

/// Bytes that one worker may fill with rows, a run log and pairs.
pub(crate) struct Allowance {
    /// Bytes for rows, and later for pairs.
    pub(crate) buckets: u64,
    /// Bytes for the run log.
    pub(crate) run_log: u64,
    /// Number of passes in which rows are built, as a power of two.
    pub(crate) pass_bits: u32,
    /// Bytes of the process that no worker may fill.
    fixed: u64,
    workers: u64,
    /// Bytes that the process may hold.
    of_process: u64,
    pool: MemoryPool,
}

impl Allowance {
    /// Computes what each worker may fill of the pool, with `row_bytes` bytes of rows of `pages`
    /// pages. `disk_bytes` is the disk space of every process. With `has_chunks`, chunks of pages
    /// are counted, too.
    ///
    /// # Errors
    /// Returns [`Error::MemoryLimit`], [`Error::DiskLimit`] or [`Error::DiskFull`] with the number
    /// of bytes that are needed.
    pub(crate) fn compute(
        pool: &MemoryPool,
        pages: usize,
        row_bytes: u64,
        disk_bytes: u64,
        has_chunks: bool,
    ) -> Result<Allowance> {
        if !pool.is_bounded() {
            let unlimited = u64::MAX;
            return Ok(Allowance {
                buckets: unlimited,
                run_log: unlimited,
                pass_bits: 0,
                fixed: 0,
                workers: 1,
                of_process: 0,
                pool: pool.clone(),
            });
        }
        let workers = pool.workers as usize;
        let fixed = fixed_bytes(pages, workers, row_bytes, has_chunks);
        let min_bytes = required_bytes(pages, workers, row_bytes, has_chunks);
        let memory_bytes = pool.memory_bytes.max(min_bytes.min(pool.foreseen_bytes));
        // Bytes that the process holds already.
        let held_bytes = pool.bounds.memory_bytes.saturating_sub(memory_bytes);
        let process_bytes = held_bytes + memory_bytes;
        if memory_bytes < min_bytes {
            return Err(too_little(
                "all-pairs overlap, in addition to the pages read".into(),
                held_bytes + min_bytes,
                process_bytes,
            ));
        }
        let worker_bytes = (memory_bytes - fixed) / pool.workers;
        let buckets = worker_bytes / 10 * 7;
        let (fixed, workers) = (held_bytes + fixed, pool.workers);
        let (rows, in_memory) = (workers * row_bytes, workers * buckets);
        let Some(pass_bits) = pass_bits(rows, in_memory, disk_bytes) else {
            let purpose = "rows of FPrint-DocID that do not fit in memory";
            return Err(pool.too_much_to_spill(purpose, required_disk_bytes(rows, in_memory)));
        };
        Ok(Allowance {
            buckets,
            run_log: worker_bytes / 10 * 3,
            pass_bits,
            fixed,
            workers,
            of_process: process_bytes,
            pool: pool.clone(),
        })
    }

    /// Returns the budget with `bytes` more bytes for buckets.
    pub(crate) fn with_more(self, bytes: u64) -> Allowance {
        Allowance { buckets: self.buckets.saturating_add(bytes), ..self }
    }

    /// Returns the memory pool of buckets.
    pub(crate) fn for_buckets(&self) -> MemoryPool {
        self.pool.limited(self.buckets)
    }

    /// Returns the memory pool of the run log.
    pub(crate) fn for_run_log(&self) -> MemoryPool {
        self.pool.limited(self.run_log)
    }

    /// Creates the error for a worker that needs `bytes` bytes of buckets. The error reports what
    /// the process would need.
    pub(crate) fn too_little_for_buckets(&self, purpose: String, bytes: u64) -> Error {
        // Seven tenths of a worker's share are for buckets.
        let needed_bytes = self.fixed + self.workers * 10 * bytes.div_ceil(7);
        too_little(purpose, needed_bytes, self.of_process)
    }
}

/// Returns the bytes of a process that cannot be spilled, for the given numbers of pages and
/// workers and the bytes of rows of each worker.
fn fixed_bytes(pages: usize, workers: usize, row_bytes: u64, has_chunks: bool) -> u64 {
    let (pages, workers) = (pages as u64, workers as u64);
    // Shared chunks, twice, and chunks, whose counts are freed while their sums over all processes
    // are made. Pages that wait to be counted take a quarter of a byte for all pages and each kind
    // of count, and more if there are many workers.
    let (a_page, kinds) = if has_chunks { (7, 2) } else { (2, 1) };
    let waiting = kinds * workers.div_ceil(16);
    let blocks = (BLOCK_BYTES as u64 * 2) << partition_bits::<u8>(row_bytes);
    let a_worker = (2 * row_bytes).min(TRANSIT_BYTES) + row_bytes.min(4 * PARTITION_BYTES) + row_bytes.min(blocks);
    pages * a_page + pages / 4 * (waiting + 1) + workers * a_worker
}

/// Returns the minimum bytes of a process. A run with less memory is refused.
pub(crate) fn required_bytes(pages: usize, workers: usize, row_bytes: u64, has_chunks: bool) -> u64 {
    fixed_bytes(pages, workers, row_bytes, has_chunks) + workers as u64 * (row_bytes / 8).min(MIN_BYTES)
}

#[cfg(test)]
mod tests {
    use webtwin_spill::ProcessBounds;

    use super::*;

    #[test]
    fn rejection_counts_memory_that_the_process_already_holds() {
        let bounds = ProcessBounds { memory_bytes: 60_000_000, disk_bytes: 1000, disk_is_set: true };
        let pool = MemoryPool {
            memory_bytes: 12_000_000,
            foreseen_bytes: 0,
            workers: 2,
            disk_bytes: 500,
            bounds,
            ..MemoryPool::default()
        };
        let allowance = |pool: &MemoryPool| Allowance::compute(pool, 1_000_000, 1 << 20, u64::MAX, true);
        let min_bytes = required_bytes(1_000_000, 2, 1 << 20, true);
        assert!(min_bytes > pool.memory_bytes);
        let Err(error) = allowance(&pool) else { panic!() };
        let Error::MemoryLimit { needed_bytes, allowed_bytes, setting, .. } = error else { panic!("{error}") };
        assert_eq!((needed_bytes, allowed_bytes), (48_000_000 + min_bytes, 60_000_000));
        assert_eq!(setting, "effort.memory_bytes");
        // The reported number is sufficient.
        assert!(allowance(&MemoryPool { memory_bytes: min_bytes, disk_bytes: 0, ..pool.clone() }).is_ok());
        // A smaller pool also suffices if the estimate allows for it, although the process holds
        // more.
        assert!(allowance(&MemoryPool { foreseen_bytes: min_bytes, disk_bytes: 0, ..pool }).is_ok());
    }
}
