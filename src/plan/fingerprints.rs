//! Costs of jobs on fingerprint files: F built from ready-made fingerprints, F joined with a batch
//! Q, and F joined with itself.
//!
//! The memory, traffic and time of these jobs follow from the number of fingerprints, which is
//! known without reading them. The number of pairs in the result of a join is not predicted,
//! because it depends on the distances between fingerprints.

use std::collections::BTreeMap;

use super::memory::PROCESS_BYTES;
use super::{Machines, PredictedCosts};
use webtwin_base::error::Result;
use webtwin_core::hamming::close_pairs::Joiner;
use webtwin_core::hamming::design::batch::{BatchCost, bits_on_disk, bytes_on_disk};
use webtwin_core::hamming::design::width_mask;
use webtwin_core::hamming::kernels::Level;
use webtwin_core::hamming::rows::FingerprintRow;
use webtwin_dataflow::hamming::build;
use webtwin_dataflow::hamming::work::HammingWork;
use webtwin_dataflow::shuffle::memory::at_rest;
use webtwin_job::Job;
use webtwin_results::fingerprints::Sources;
use webtwin_spill::RowSorter;

/// Numbers of rows of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct FingerprintCounts {
    /// Fingerprints of F.
    pub fingerprints: u64,
    /// Queries of Q.
    pub queries: u64,
}

/// Bytes of a row of F in transit: fingerprint and document.
const ROW_BYTES: u64 = size_of::<FingerprintRow>() as u64;

/// Rounds of a build: counts of rows, rows to their writers, list of chunks, end. Measured.
const BUILD_ROUNDS: u64 = 7;

/// Rounds of a join: comparison of inputs, join, list of tables, end. Measured.
const JOIN_ROUNDS: u64 = 11;

/// Nanoseconds to read, partition, sort and encode a fingerprint, including the kernel's time.
const BUILD_NS: f64 = 110.0;

/// Nanoseconds to join a fingerprint with all others.
const SELF_JOIN_NS: f64 = 300.0;

/// Nanoseconds of a query in each process, mostly to build the tables.
const QUERY_NS: f64 = 500.0;

/// Nanoseconds of a fingerprint of F if there are no tables for k.
const PARTITIONED_NS: f64 = 300.0;

/// Returns the bytes of F on disk, with doc ids.
pub fn file_bytes(fingerprints: u64, f: u32) -> u64 {
    bytes_on_disk(fingerprints, f)
}

/// Predicts the costs of building F from ready-made fingerprints.
///
/// # Errors
/// Returns any error of [`Sources::find`] and [`Sources::rows`].
pub fn of_build(job: &Job, machines: &Machines) -> Result<(FingerprintCounts, PredictedCosts)> {
    let sources = Sources::find(&job.fingerprints.from)?;
    let count = sources.rows()?;
    let f = sources.made.map_or(job.simhash.bits, |made| made.0);
    let (processes, workers) = (machines.count as u64, machines.workers as u64);
    let build::ProcessHoldings { buckets, writing } = build::holdings(count, processes, workers);
    let memory_limit = if job.effort.memory_bytes == 0 { u64::MAX } else { job.effort.memory_bytes / 2 };
    let memory_bytes = PROCESS_BYTES + buckets.min(memory_limit) + writing;
    let sent_bytes = (u128::from(ROW_BYTES * count) * u128::from(processes - 1) / u128::from(processes)) as u64;
    let spilled_bytes = buckets.saturating_sub(memory_limit) * processes;
    let costs = PredictedCosts {
        read_bytes: 8 * count,
        exchanged_bytes: sent_bytes,
        sent_bytes,
        most_sent_bytes: sent_bytes / processes,
        spilled_bytes,
        spilled_at_once_bytes: spilled_bytes / processes,
        spilled_at_once_bytes_least: spilled_bytes / processes,
        rounds: BUILD_ROUNDS,
        memory_bytes,
        memory_bytes_least: at_rest(machines.workers) + writing,
        disk_bytes: file_bytes(count, f),
        cpu_seconds: BTreeMap::from([("build", count as f64 * BUILD_NS / 1e9)]),
        seconds: BTreeMap::new(),
    };
    Ok((FingerprintCounts { fingerprints: count, queries: 0 }, with_seconds(costs, machines)))
}

/// Predicts the costs of joining F with Q, or with itself, without the pairs of the result.
///
/// # Errors
/// Returns any error of [`HammingWork::find`] and [`Sources::rows`].
pub fn of_join(job: &Job, machines: &Machines) -> Result<(FingerprintCounts, PredictedCosts)> {
    let work = HammingWork::find(job)?;
    let fingerprints = work.set.manifest.count;
    let queries = work.queries.as_ref().map(Sources::rows).transpose()?;
    let (processes, workers) = (machines.count as u64, machines.workers as u64);
    let set = &work.set.manifest;
    let own_rows = fingerprints.div_ceil(processes);
    let (held_bytes, checked_bytes, sent_rows, stage, cpu_ns) = match queries {
        // Each process has the tables of all queries, which are broadcast.
        Some(queries) => {
            let batch = BatchCost::predict(queries as usize, job.hamming.k);
            let tables = batch.map_or(0, |batch| batch.table_bytes);
            let ns = batch.map_or(PARTITIONED_NS, |batch| batch.ns_a_fingerprint);
            let held_bytes = tables + QUERY_BYTES * queries + workers * PIECE_BYTES;
            let cpu_ns = fingerprints as f64 * ns + (queries * processes) as f64 * QUERY_NS;
            let checked_bytes = held_bytes + workers * (MAX_PIECE_BYTES - PIECE_BYTES + SORTER);
            (held_bytes, checked_bytes, ROW_BYTES * queries * (processes - 1), "2 scan", cpu_ns)
        }
        None => {
            let other_rows = fingerprints / processes * (processes - 1);
            let joiner = Joiner::new(job.hamming.k, Level::best());
            let passes = joiner.groups(fingerprints as usize, width_mask(set.f)).len().max(1) as u64;
            let cpu_ns = fingerprints as f64 * SELF_JOIN_NS;
            // The run compares more with its limit than it holds if the workers have equal shares.
            (
                JOIN_BYTES * own_rows,
                MAX_JOIN_BYTES * own_rows + 2 * workers * SORTER,
                RUN_BYTES * other_rows * passes,
                "2 join",
                cpu_ns,
            )
        }
    };
    let costs = PredictedCosts {
        read_bytes: (bits_on_disk(fingerprints, set.f) / 8.0 * fingerprints as f64) as u64,
        exchanged_bytes: 0,
        sent_bytes: sent_rows,
        most_sent_bytes: sent_rows / processes,
        spilled_bytes: 0,
        spilled_at_once_bytes: 0,
        spilled_at_once_bytes_least: 0,
        rounds: JOIN_ROUNDS,
        memory_bytes: PROCESS_BYTES + held_bytes,
        memory_bytes_least: at_rest(machines.workers) + checked_bytes,
        disk_bytes: 0,
        cpu_seconds: BTreeMap::from([(stage, cpu_ns / 1e9)]),
        seconds: BTreeMap::new(),
    };
    Ok((FingerprintCounts { fingerprints, queries: queries.unwrap_or(0) }, with_seconds(costs, machines)))
}

/// Bytes of a query in addition to its tables while these are built: row, document, and the places
/// of both.
const QUERY_BYTES: u64 = 64;

/// Bytes of a piece of F that a worker scans.
const PIECE_BYTES: u64 = 16 << 20;

/// Bytes of the longest piece of F, for which a run with a memory limit reserves memory.
const MAX_PIECE_BYTES: u64 = 48 << 20;

/// Minimum bytes of a sorter of pairs.
const SORTER: u64 = RowSorter::<FingerprintRow>::MIN_BYTES;

/// Bytes of a fingerprint while all fingerprints are joined with each other.
const JOIN_BYTES: u64 = 56;

/// Bytes of a fingerprint if all fingerprints are sent to one worker.
const MAX_JOIN_BYTES: u64 = 72;

/// Bytes of a fingerprint in transit in a pass of the join of F with itself.
const RUN_BYTES: u64 = 24;

fn with_seconds(mut costs: PredictedCosts, machines: &Machines) -> PredictedCosts {
    let moved_seconds = (costs.read_bytes + 2 * costs.spilled_bytes) as f64 / machines.count as f64 / machines.disk;
    let send_seconds = costs.most_sent_bytes as f64 / machines.network;
    let wait_seconds = if machines.count > 1 { costs.rounds as f64 * 2.0 * machines.latency } else { 0.0 };
    let stage_seconds = |(stage, cpu): (&&'static str, &f64)| {
        (*stage, cpu / machines.peers() as f64 + moved_seconds + send_seconds + wait_seconds)
    };
    costs.seconds = costs.cpu_seconds.iter().map(stage_seconds).collect();
    costs
}
