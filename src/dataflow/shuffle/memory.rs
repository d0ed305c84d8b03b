//! What the steps of a run may hold: all workers agree on it before each step, within `effort.memory_bytes`.

use webtwin_base::build_info;
use webtwin_base::error::{Error, Result};
use webtwin_base::heap::give_back_what_is_free;
use webtwin_engine::Net;
use webtwin_job::Effort;
use webtwin_spill::{Bounds, MemoryPool, SPILL, free_bytes, taken_bytes};

/// Bytes of a program that has nothing to do yet: code, stores, blocks on their way between two workers.
const AT_REST: u64 = 36 << 20;

/// Bytes of each further worker. Measured.
pub const A_WORKER_AT_REST: u64 = 7 << 20;

/// Bytes of a process with so many workers that has nothing to do yet.
pub fn at_rest(workers: usize) -> u64 {
    AT_REST + A_WORKER_AT_REST * workers.saturating_sub(2) as u64
}

/// A worker's share of so many bytes for each page of the crawl in its process.
pub fn for_each_page(net: &Net<'_>, bytes: u64, pages: usize) -> u64 {
    bytes * pages as u64 / net.workers_per_process() as u64
}

/// Agrees with all workers on the memory of the next step: what is left beside what its process holds, by the system's word or where
/// each worker holds `mine` bytes, and beside `unspillable` bytes of each worker that the step cannot spill; and on the disk that
/// is left beside what is there. One round where memory has a bound, and one where the disk has.
///
/// # Errors
/// Only when the run has ended.
pub fn agree(net: &mut Net<'_>, mine: u64, unspillable: u64, effort: &Effort) -> Result<()> {
    if effort.memory_bytes == 0 {
        net.memory = beside(net, 0, effort);
        return Ok(());
    }
    give_back_what_is_free();
    let workers = net.workers_per_process();
    let all = net.all_gather("memory", ([mine, unspillable], build_info::memory_bytes()))?;
    let (mut held, mut foreseen) = (0, 0);
    for process in all.chunks(workers) {
        let sum = |kind: usize| process.iter().map(|worker| worker.0[kind]).sum::<u64>();
        let (by_estimate, needs) = (sum(0) + at_rest(workers), sum(1));
        let told = process.iter().map(|worker| worker.1).max().unwrap_or(0);
        foreseen = foreseen.max(by_estimate + needs);
        held = held.max(by_estimate.max(told) + needs);
    }
    let mut pool = beside(net, held, effort);
    pool.foreseen_bytes = effort.memory_bytes.saturating_sub(foreseen);
    if pool.bounds.disk_is_set {
        // All workers have left the step before, and what it had on disk is gone.
        let on_disk = net.all_reduce("disk", taken_bytes(), u64::max)?;
        pool.disk_bytes = pool.disk_bytes.saturating_sub(on_disk).max(1);
    }
    net.memory = pool;
    Ok(())
}

/// What the workers of a process may fill beside the `held` bytes that it has.
pub fn beside(net: &Net<'_>, held: u64, effort: &Effort) -> MemoryPool {
    MemoryPool { workers: net.workers_per_process() as u64, ..of_process(held, effort) }
}

/// What a process may fill beside the `held` bytes that it has.
pub fn of_process(held: u64, effort: &Effort) -> MemoryPool {
    let memory_bytes = match effort.memory_bytes {
        0 => u64::MAX,
        allowed => allowed.saturating_sub(held).max(1),
    };
    let folder = match effort.spill.as_str() {
        "" => std::env::temp_dir(),
        folder => folder.into(),
    };
    let disk_bytes = match effort.disk_bytes {
        // A folder that cannot be asked is named when something is to be written there.
        0 => free_bytes(&folder, SPILL).unwrap_or(0),
        allowed => allowed,
    };
    let bounds = Bounds { memory_bytes: effort.memory_bytes, disk_bytes, disk_is_set: effort.disk_bytes > 0 };
    MemoryPool { disk_bytes, bounds, ..MemoryPool::new(memory_bytes, &folder, SPILL) }
}

/// The most bytes that a process holds, of which its workers each bring theirs. One round.
///
/// # Errors
/// Only when the run has ended.
pub fn of_largest_process(net: &mut Net<'_>, mine: u64) -> Result<u64> {
    let workers = net.workers_per_process();
    let all = net.all_gather("memory", mine)?;
    Ok(all.chunks(workers).map(|process| process.iter().sum()).max().unwrap_or(0))
}

/// Refuses to hold `held` bytes in this process of so many workers when it may use fewer (0: no bound), beside what it needs at rest.
///
/// # Errors
/// [`Error::MemoryLimit`], with the number that would fit.
pub fn refuse_beyond_bound(what: &str, held: u64, workers: usize, allowed_bytes: u64) -> Result<()> {
    let needed_bytes = held + at_rest(workers);
    if allowed_bytes > 0 && needed_bytes > allowed_bytes {
        return Err(too_little(what.into(), needed_bytes, allowed_bytes));
    }
    Ok(())
}

/// Refuses to go on when a process would hold more than it may: `mine` bytes in this worker, or this worker's share of what its
/// process holds once. One round where memory has a bound.
///
/// # Errors
/// [`Error::MemoryLimit`] on all workers, with the number that would fit.
pub fn hold_bytes_against_bound(net: &mut Net<'_>, what: &str, mine: u64, allowed_bytes: u64) -> Result<()> {
    if allowed_bytes == 0 {
        return Ok(());
    }
    let held = of_largest_process(net, mine)?;
    refuse_beyond_bound(what, held, net.workers_per_process(), allowed_bytes)
}

/// The refusal of a job that needs another bound.
pub fn too_little(what: String, needed_bytes: u64, allowed_bytes: u64) -> Error {
    Error::MemoryLimit { what, needed_bytes, allowed_bytes, setting: "effort.memory_bytes".into() }
}
