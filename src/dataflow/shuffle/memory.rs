//! Memory budget of the steps of a run. All workers agree on it before each step, within
//! `effort.memory_bytes`.

use webtwin_base::build_info;
use webtwin_base::error::{Error, Result};
use webtwin_base::heap::release_free_memory;
use webtwin_engine::Net;
use webtwin_job::Effort;
use webtwin_spill::{MemoryPool, ProcessBounds, SPILL, free_bytes, taken_bytes};

/// Bytes of an idle process with up to two workers: code, stores, and blocks in transit between the
/// workers.
const IDLE_PROCESS_BYTES: u64 = 36 << 20;

/// Bytes of each further worker of an idle process. Measured.
pub const IDLE_WORKER_BYTES: u64 = 7 << 20;

/// Bytes of the connection to each other process, and of rows sent to it and received from it.
/// Measured.
pub const PEER_BYTES: u64 = 3 << 19;

/// Bytes that the connection to each other process takes while a step sends and receives, in
/// addition to what the process holds before the step. Measured.
const PEER_TRANSIT_BYTES: u64 = 2 << 20;

/// Returns the bytes of an idle process with the given number of workers.
pub fn at_rest(workers: usize) -> u64 {
    IDLE_PROCESS_BYTES + IDLE_WORKER_BYTES * workers.saturating_sub(2) as u64
}

/// Returns a worker's share of the bytes that its process needs if each page of the crawl takes
/// `bytes` bytes.
pub fn for_each_page(net: &Net<'_>, bytes: u64, pages: usize) -> u64 {
    bytes * pages as u64 / net.workers_per_process() as u64
}

/// Agrees with all workers on the memory budget of the next step, and on the disk space for it. The
/// budget is the limit minus what the process holds, what its connections take in transit, and what
/// the step cannot spill. What a process holds is the larger of the operating system's figure and
/// the sum of `own_bytes` over its workers; `unspillable` is what the step cannot spill on this
/// worker. Takes one round if memory is limited, and one if disk space is limited.
///
/// # Errors
/// Returns an error only if the run has ended.
pub fn agree(net: &mut Net<'_>, own_bytes: u64, unspillable: u64, effort: &Effort) -> Result<()> {
    if effort.memory_bytes == 0 {
        net.memory = remaining_budget(net, 0, effort);
        return Ok(());
    }
    release_free_memory();
    let workers = net.workers_per_process();
    let worker_bytes = net.all_gather("memory", ([own_bytes, unspillable], build_info::memory_bytes()))?;
    let (mut held_bytes, mut foreseen) = (0, 0);
    for process in worker_bytes.chunks(workers) {
        let sum = |kind: usize| process.iter().map(|worker| worker.0[kind]).sum::<u64>();
        let (by_estimate, needs) = (sum(0) + at_rest(workers), sum(1));
        let message = process.iter().map(|worker| worker.1).max().unwrap_or(0);
        foreseen = foreseen.max(by_estimate + needs);
        // The system reports the memory of the whole process to each worker, so one report counts.
        // The estimate counts instead if it is larger, because reserved memory may not be in use
        // yet.
        held_bytes = held_bytes.max(by_estimate.max(message) + needs);
    }
    let transit = PEER_TRANSIT_BYTES * (net.processes() as u64 - 1);
    let mut pool = remaining_budget(net, held_bytes + transit, effort);
    pool.foreseen_bytes = effort.memory_bytes.saturating_sub(foreseen + transit);
    if pool.bounds.disk_is_set {
        // All workers have left the previous step, and its files are deleted.
        let on_disk = net.all_reduce("disk", taken_bytes(), u64::max)?;
        pool.disk_bytes = pool.disk_bytes.saturating_sub(on_disk).max(1);
    }
    net.memory = pool;
    Ok(())
}

/// Returns the budget of the workers of a process that already holds `held_bytes` bytes.
pub fn remaining_budget(net: &Net<'_>, held_bytes: u64, effort: &Effort) -> MemoryPool {
    MemoryPool { workers: net.workers_per_process() as u64, ..of_process(held_bytes, effort) }
}

/// Returns the budget of a process that already holds `held_bytes` bytes.
pub fn of_process(held_bytes: u64, effort: &Effort) -> MemoryPool {
    let memory_bytes = match effort.memory_bytes {
        0 => u64::MAX,
        allowed => allowed.saturating_sub(held_bytes).max(1),
    };
    let folder = match effort.spill.as_str() {
        "" => std::env::temp_dir(),
        folder => folder.into(),
    };
    let disk_bytes = match effort.disk_bytes {
        // If the free space of a folder cannot be determined, the first write to the folder reports
        // it.
        0 => free_bytes(&folder, SPILL).unwrap_or(0),
        allowed => allowed,
    };
    let bounds = ProcessBounds { memory_bytes: effort.memory_bytes, disk_bytes, disk_is_set: effort.disk_bytes > 0 };
    MemoryPool { disk_bytes, bounds, ..MemoryPool::new(memory_bytes, &folder, SPILL) }
}

/// Returns the bytes of the largest process. `own_bytes` are the bytes of this worker. Takes one
/// round.
///
/// # Errors
/// Returns an error only if the run has ended.
pub fn of_largest_process(net: &mut Net<'_>, own_bytes: u64) -> Result<u64> {
    let workers = net.workers_per_process();
    let worker_bytes = net.all_gather("memory", own_bytes)?;
    Ok(worker_bytes.chunks(workers).map(|process| process.iter().sum()).max().unwrap_or(0))
}

/// Fails if this process with the given number of workers would exceed the limit `allowed_bytes`
/// when it holds `held_bytes` bytes in addition to what it needs at rest. 0 means no limit.
///
/// # Errors
/// Returns [`Error::MemoryLimit`] with the number of bytes that would suffice.
pub fn refuse_beyond_bound(purpose: &str, held_bytes: u64, workers: usize, allowed_bytes: u64) -> Result<()> {
    let needed_bytes = held_bytes + at_rest(workers);
    if allowed_bytes > 0 && needed_bytes > allowed_bytes {
        return Err(too_little(purpose.into(), needed_bytes, allowed_bytes));
    }
    Ok(())
}

/// Fails if a process would exceed the limit `allowed_bytes`. `own_bytes` are the bytes of this
/// worker, with its share of the data that the process holds once. Takes one round if memory is
/// limited.
///
/// # Errors
/// Returns [`Error::MemoryLimit`] on all workers, with the number of bytes that would suffice.
pub fn check_bytes_against_bound(net: &mut Net<'_>, purpose: &str, own_bytes: u64, allowed_bytes: u64) -> Result<()> {
    if allowed_bytes == 0 {
        return Ok(());
    }
    let held_bytes = of_largest_process(net, own_bytes)?;
    refuse_beyond_bound(purpose, held_bytes, net.workers_per_process(), allowed_bytes)
}

/// Creates the error for a job that needs a higher memory limit.
pub fn too_little(purpose: String, needed_bytes: u64, allowed_bytes: u64) -> Error {
    Error::MemoryLimit { what: purpose, needed_bytes, allowed_bytes, setting: "effort.memory_bytes".into() }
}
