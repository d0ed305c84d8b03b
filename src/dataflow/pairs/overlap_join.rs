//! All-pairs overlap in bounded memory: converts `FPrint-DocID` rows in any order into similar
//! pairs.
//!
//! 1. Rows are sent to the owners of their fingerprints, which partition them into buckets. Buckets
//!    spill to disk beyond the memory budget. If the disk does not suffice either, steps 1 and 2
//!    run in several passes.
//! 2. Each bucket is sorted. A counting chunk on two or more pages becomes a run in a run log.
//! 3. Pages that cannot be in a similar pair are removed ([`prune`]), in a few rounds over the run
//!    log.
//! 4. The counting method is chosen ([`planner`]). For coarse counting, the run log is first
//!    scanned for heavy buckets.
//! 5. Pairs are sent to the owners of their smaller page, which partition them into buckets of
//!    pages. If the disk does not suffice, steps 5 and 6 run in several passes.
//! 6. The pairs of each bucket are counted, and the similar ones are emitted.
//!
//! Only counts for each page must stay in memory, which the workers of a process share: two bytes
//! for each page, or seven if resemblance matters.

use std::sync::Arc;
use std::time::Instant;

use super::allowance::Allowance;
use crate::pairs::candidates::{PageStripes, by_pair, heavy_buckets, sample_heavy_share};
use crate::pairs::chunk_runs::{PrunedRuns, RunBuilder, group, partitioned, pruned};
use crate::pairs::counts::OverlapCounts;
use crate::pairs::overlap_work::{OverlapPages, OverlapWork};
use crate::pairs::pair_buckets::PairCounter;
use crate::shuffle::page_counts::{pages_by_sum_of_processes, sum_of_processes};
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::overlap::chunk_counts::{ChunkCounter, ChunkCounts};
use webtwin_core::overlap::planner::{self, CountingMethod, Load, MAX_PASS_BITS, pass_bits, required_disk_bytes};
use webtwin_core::overlap::prune;
use webtwin_core::overlap::rows::{FPrintRow, KeyShares};
use webtwin_core::overlap::{SimilarPair, is_pairwise_similar};
use webtwin_engine::{Net, Owners};
use webtwin_job::{Guard, OverlapSettings};
use webtwin_spill::{Partitions, RunLog, partition_bits};

/// Maximum number of pruning rounds. Later rounds are not expected to remove much.
const MAX_ROUNDS: usize = 6;

/// Result after all pairs have been emitted.
pub struct AllPairs {
    /// Counts and timings of the work.
    pub work: OverlapWork,
    /// Number of counting chunks of every page. Empty if neither resemblance nor the guard needs
    /// it.
    pub chunks: Arc<Vec<u32>>,
    stripes: PageStripes,
}

impl AllPairs {
    pub(super) fn new(work: OverlapWork, chunks: Arc<Vec<u32>>, stripes: PageStripes) -> AllPairs {
        AllPairs { work, chunks, stripes }
    }
}

/// A pair is at the owner of its smaller page.
impl Owners<Page> for AllPairs {
    fn owner(&self, smaller: Page) -> usize {
        self.stripes.owner(smaller)
    }
}

/// Returns true if the number of counting chunks is needed for every page.
pub fn with_chunks(settings: &OverlapSettings) -> bool {
    settings.min_resemblance > 0.0 || settings.guard != Guard::None
}

/// Finds the similar pairs of a duplicate-free `FPrint-DocID` table, of which each worker provides
/// a part.
///
/// `sources` creates a source of all rows, once for each pass over them. A source passes rows to
/// its argument, and is called again while it returns true, as in [`Net::exchange_from`]. `rows` is
/// the approximate number of rows on this worker. `emit` receives the pairs that this worker owns,
/// ascending and without repetitions; all pairs of a smaller page are at one worker. Pairs are
/// counted by `method`, or by the method that the planner chooses. The guard
/// ([`webtwin_core::overlap::guard`]) is not applied.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::MemoryLimit`] before anything is read if the memory does
/// not suffice for the data that cannot be spilled. Returns
/// [`webtwin_base::error::Error::DiskLimit`] or `DiskFull` if the disk does not suffice for the
/// rest. Also fails if the run has ended.
///
/// # Cost
/// Sends, partitions, sorts and scans each row once. Sends, partitions and counts each pair that
/// remains after pruning. If the disk cannot store all rows or all pairs at the same time, the
/// sources or the runs are read once for each pass.
pub fn similar_pairs<R: FPrintRow, S: FnMut(&mut dyn FnMut(FPrint, Page)) -> Result<bool>>(
    net: &mut Net<'_>,
    rows: u64,
    mut sources: impl FnMut() -> S,
    pages: &OverlapPages<'_>,
    settings: &OverlapSettings,
    method: Option<CountingMethod>,
    mut emit: impl FnMut(SimilarPair),
) -> Result<AllPairs> {
    let with_chunks = with_chunks(settings);
    // All workers use the smallest disk, so that they make the same choice.
    let pool = net.memory.clone();
    let own_load = (rows, pool.max_disk_bytes());
    let (rows, disk_bytes) = net.all_reduce("number of rows", own_load, |x, y| (x.0 + y.0, x.1.min(y.1)))?;
    let row_bytes = rows / net.peers() as u64 * size_of::<R>() as u64;
    let allowance = Allowance::compute(&pool, pages.count, row_bytes, disk_bytes, with_chunks)?;
    let mut work = OverlapWork::default();
    let mut clock = Clock(Instant::now());

    let bits = partition_bits::<u8>(row_bytes >> allowance.pass_bits);
    let shares = KeyShares::new(net.peers(), bits).in_passes(allowance.pass_bits);
    let shared_counts = net.once_per_process(|| ChunkCounts::new(pages.count))?;
    let chunk_counts = net.once_per_process(|| ChunkCounts::new(if with_chunks { pages.count } else { 0 }))?;
    let workers = net.workers_per_process();
    let mut runs = RunBuilder {
        run_log: RunLog::new(&allowance.for_run_log()),
        shared: ChunkCounter::new(Arc::clone(&shared_counts), workers),
        chunks: with_chunks.then(|| ChunkCounter::new(Arc::clone(&chunk_counts), workers)),
        counts: OverlapCounts::default(),
    };
    for pass in 0..1 << allowance.pass_bits {
        let mut table: Partitions<R> = partitioned(net, shares, bits, pass, sources(), &allowance)?;
        clock.stage(&mut work, "exchange rows");
        group(net, &mut table, shares, pages, settings, &allowance, &mut runs)?;
        work.spilled_bytes += table.spilled_bytes();
        drop(table);
        clock.stage(&mut work, "sort rows");
    }
    runs.run_log.finish()?;

    let RunBuilder { mut run_log, mut shared, mut chunks, counts } = runs;
    work.counts = counts;
    shared.flush();
    chunks.iter_mut().for_each(ChunkCounter::flush);
    drop(chunks);
    let chunks = sum_of_processes(net, "chunks a page", chunk_counts)?;
    let chunks_of = |page: Page| if with_chunks { chunks[page] } else { 0 };
    let mut rows_left: u64 = u64::MAX;
    loop {
        let may_be_similar = |page, shared| prune::may_be_similar(shared, chunks_of(page), settings);
        let core = pages_by_sum_of_processes(net, "shared chunks a page", &shared_counts, may_be_similar)?;
        work.rounds += 1;
        let PrunedRuns { run_log: next, rows, pairs, longest } =
            pruned(&mut run_log, &core, &mut shared, &allowance.for_run_log())?;
        work.spilled_bytes += run_log.spilled_bytes();
        run_log = next;
        (work.core_rows, work.core_pairs, work.core_pages) = (rows, pairs, core.count());
        let (total_rows, longest) = net.all_reduce("rows left", (rows, longest), |x, y| (x.0 + y.0, x.1.max(y.1)))?;
        work.longest = longest;
        // A round that removes less than a sixteenth of the rows does not repay the cost of the
        // next round.
        if total_rows >= rows_left / 16 * 15 || work.rounds as usize == MAX_ROUNDS {
            break;
        }
        rows_left = total_rows;
    }
    drop((shared, shared_counts));
    clock.stage(&mut work, "prune");

    // Pairs may use half of the memory that the run log does not need. The other half is for
    // similar pairs, which are emitted while the buckets are still in memory.
    let spare = allowance.run_log.saturating_sub(run_log.held_bytes()) / 2;
    let allowance = allowance.with_more(spare);
    // The run log stays on disk while pairs are spilled, so its bytes are not available for them.
    let run_log_bytes = run_log.spilled_bytes() * net.workers_per_process() as u64;
    let disk_bytes = disk_bytes.saturating_sub(run_log_bytes);
    let mut load = load(net, work.core_pairs, settings, &allowance, disk_bytes)?;
    if method.is_none() && planner::pilot_decides(&load) {
        load.heavy_thousandths =
            sample_heavy_share(net, &run_log, planner::pilot_rate(load.pairs), settings.min_shared)?;
    }
    let requested_method = method;
    let (method, reason) = match requested_method {
        Some(method) => (method, "as requested".to_string()),
        None => planner::choose(&load),
    };
    work.reason = reason;
    let (bytes, in_memory) = (load.bytes(method), load.memory_bytes());
    let pass_bits = match pass_bits(bytes, in_memory, load.disk_bytes) {
        Some(bits) => bits,
        None if requested_method.is_none() && method == CountingMethod::SortBased => {
            let (pairs, longest) = (load.pairs, work.longest);
            let purpose = format!(
                "{pairs} pairs of pages, with one chunk on {longest} pages (a smaller overlap.max_documents \
                excludes such chunks)"
            );
            let pair_bytes = required_disk_bytes(bytes, in_memory).div_ceil(net.processes() as u64);
            return Err(pool.too_much_to_spill(&purpose, run_log_bytes + pair_bytes));
        }
        None => MAX_PASS_BITS,
    };
    let heavy = match method {
        CountingMethod::SortBased => None,
        CountingMethod::CoarseCount(layout) => Some(heavy_buckets(net, &run_log, layout, settings.min_shared)?),
    };
    clock.stage(&mut work, "coarse count");

    let stripes = PageStripes::new(pages.count, net.peers(), &load, pass_bits);
    work.spilled_bytes += run_log.spilled_bytes();
    let mut run_log = Some((run_log, heavy));
    let mut similar = 0;
    let judge = |a, b, value| {
        if !with_chunks || is_pairwise_similar(value, chunks[a], chunks[b], settings) {
            similar += 1;
            emit(SimilarPair { a, b, value });
        }
    };
    let mut counter = PairCounter::new(settings.min_shared, pages.count, allowance.for_buckets(), judge);
    let mut passes = stripes.passes(1 << pass_bits).peekable();
    while let Some(pass_buckets) = passes.next() {
        // The run log is freed before the last pass is counted, because no later pass reads it.
        let (runs, heavy) = run_log.as_ref().expect("it is there until the last pass");
        counter.release();
        let mut pairs = by_pair(net, runs, heavy.as_deref(), stripes, pass_buckets.clone(), &allowance, &mut work)?;
        if passes.peek().is_none() {
            run_log = None;
        }
        clock.stage(&mut work, "emit pairs");
        for (number, worker_bucket) in pass_buckets.enumerate() {
            net.check()?;
            counter.count(&mut pairs, number, stripes.pages(net.index(), worker_bucket, pages.count))?;
        }
        work.spilled_bytes += pairs.spilled_bytes();
        clock.stage(&mut work, "count pairs");
    }
    work.spilled_bytes += counter.spilled_bytes;
    work.counts.similar = similar;
    Ok(AllPairs { work, chunks, stripes })
}

struct Clock(Instant);

impl Clock {
    /// Adds the elapsed time to a stage, which may already have time from earlier passes.
    fn stage(&mut self, work: &mut OverlapWork, name: &'static str) {
        let seconds = self.0.elapsed().as_secs_f64();
        match work.seconds.iter_mut().find(|stage| stage.0 == name) {
            Some(stage) => stage.1 += seconds,
            None => work.seconds.push((name, seconds)),
        }
        self.0 = Instant::now();
    }
}

fn load(
    net: &mut Net<'_>,
    pairs: u64,
    settings: &OverlapSettings,
    allowance: &Allowance,
    disk_bytes: u64,
) -> Result<Load> {
    // The minimum over all workers, so that they make the same choice.
    let own_load = (pairs, allowance.buckets, disk_bytes);
    let (pairs, worker_bytes, disk_bytes) =
        net.all_reduce("number of pairs", own_load, |x, y| (x.0 + y.0, x.1.min(y.1), x.2.min(y.2)))?;
    let disk_bytes = disk_bytes.saturating_mul(net.processes() as u64);
    Ok(Load {
        pairs,
        heavy_thousandths: 0,
        min_shared: settings.min_shared,
        worker_bytes,
        workers: net.peers() as u64,
        disk_bytes,
    })
}
