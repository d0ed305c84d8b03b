//! The memory that is enough for a job by its measure, and room for the steps after reading, within the bound of
//! `effort.memory_bytes`.

use crate::memory_estimate::MemoryEstimate;
use crate::pairs::minhash_pairs;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::memory::too_little;
use webtwin_base::error::Result;
use webtwin_base::heap::give_back_what_is_free;
use webtwin_engine::Net;
use webtwin_job::{Job, JobKind, Measure};

/// Bytes that are enough for a job by its measure on `all_pages`, in one of so many processes of so many workers, of which it holds
/// `held`.
pub fn enough_bytes(held: &MemoryEstimate, job: &Job, all_pages: u64, workers: usize, processes: usize) -> u64 {
    let enough = held.least_bytes(all_pages, workers);
    match job.similar.by {
        Measure::Minhash if job.kind != JobKind::Study => {
            let of_keys = minhash_pairs::least_of_process(held, all_pages, &job.minhash, workers, processes).0;
            enough.max(minhash_pairs::enough_bytes(of_keys))
        }
        _ => enough,
    }
}

/// Makes room for the steps after reading, where memory has a bound: lists that have none go to disk. One round if there is a bound.
///
/// # Errors
/// [`webtwin_base::error::Error::MemoryLimit`] on all workers when a process has less memory than it needs at least, with a number that is enough for the
/// steps after, too; those of the disk.
pub fn make_room(net: &mut Net<'_>, what: &str, shelf: &mut WorkerPages, job: &Job) -> Result<()> {
    let (workers, allowed) = (net.workers_per_process(), job.effort.memory_bytes);
    if allowed == 0 {
        return Ok(());
    }
    let all = net.all_gather("memory", MemoryEstimate::on(shelf))?;
    let all_pages: u64 = all.iter().map(|worker| worker.pages).sum();
    let processes: Vec<MemoryEstimate> = all.chunks(workers).map(MemoryEstimate::sum).collect();
    let most = |bytes: &dyn Fn(&MemoryEstimate) -> u64| processes.iter().map(bytes).max().unwrap_or(0);
    if most(&|process| process.found_bytes(all_pages, workers)) > allowed {
        let enough = most(&|process| enough_bytes(process, job, all_pages, workers, net.processes()));
        return Err(too_little(what.into(), enough, allowed));
    }
    let room = match shelf.sets {
        None => processes[net.process()].room_for_lists(all_pages, workers, allowed),
        // Sets take what there is for keys of theirs, and leave chunks to the disk.
        Some(_) => 0,
    };
    shelf.hold_lists_at_most(room / workers as u64)?;
    give_back_what_is_free();
    Ok(())
}
