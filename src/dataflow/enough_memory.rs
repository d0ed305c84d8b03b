//! Computes the memory that a job needs in total, and spills lists to free memory for the steps
//! after reading, within the limit of `effort.memory_bytes`.

use crate::memory_estimate::{MemoryEstimate, RunSize};
use crate::pairs::minhash_pairs;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::memory::too_little;
use webtwin_base::error::Result;
use webtwin_base::heap::release_free_memory;
use webtwin_engine::Net;
use webtwin_job::{Job, JobKind, Measure};

/// Returns the number of bytes that one process of a run needs for a job, given the similarity
/// measure of the job. `estimate` describes what the process holds.
pub fn enough_bytes(estimate: &MemoryEstimate, job: &Job, run: RunSize) -> u64 {
    let enough = estimate.required_bytes(run);
    match job.similar.by {
        Measure::Minhash if job.kind != JobKind::Study => {
            let key_bytes = minhash_pairs::required_of_process(estimate, run, &job.minhash).0;
            enough.max(minhash_pairs::enough_bytes(key_bytes))
        }
        _ => enough,
    }
}

/// Spills the lists that exceed the budget before the steps after reading, if `effort.memory_bytes`
/// limits memory. Takes one collective round if there is a limit, and none otherwise.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::MemoryLimit`] on all workers if a process has less memory
/// than its minimum. The error then reports a number of bytes that also suffices for the steps that
/// follow. Returns any error of the disk.
pub fn reserve_memory(net: &mut Net<'_>, purpose: &str, local_pages: &mut WorkerPages, job: &Job) -> Result<()> {
    let (workers, allowed) = (net.workers_per_process(), job.effort.memory_bytes);
    if allowed == 0 {
        return Ok(());
    }
    let estimates = net.all_gather("memory", MemoryEstimate::on(local_pages))?;
    let all_pages: u64 = estimates.iter().map(|worker| worker.pages).sum();
    let processes: Vec<MemoryEstimate> = estimates.chunks(workers).map(MemoryEstimate::sum).collect();
    let peak = |bytes: &dyn Fn(&MemoryEstimate) -> u64| processes.iter().map(bytes).max().unwrap_or(0);
    let run = RunSize { all_pages, workers, processes: net.processes() };
    if peak(&|process| process.found_bytes(run)) > allowed {
        let enough = peak(&|process| enough_bytes(process, job, run));
        return Err(too_little(purpose.into(), enough, allowed));
    }
    let budget = match local_pages.sets {
        None => processes[net.process()].budget_for_lists(run, allowed),
        // Keys of shingle sets need all free memory, so chunks are spilled.
        Some(_) => 0,
    };
    local_pages.hold_lists_at_most(budget / workers as u64)?;
    release_free_memory();
    Ok(())
}
