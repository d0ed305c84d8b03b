//! Predicts the costs of a run before it starts: input, memory, traffic, spill files and time, for
//! a given number of machines.
//!
//! | file | prediction |
//! |---|---|
//! | `sample` | size of a crawl, from a sample that is read |
//! | `volume` | rounds, and bytes exchanged and spilled, from the size of the crawl |
//! | `memory` | bytes of memory of a process |
//! | `time` | processor seconds by stage, and time on machines |
//! | `fingerprints` | jobs on fingerprint files, which read no crawl |
//!
//! A prediction is a sum of counts multiplied by constants. Constants that follow from the size of
//! a row are named after the row. The other constants are measured; `scripts/runs/README.md` lists
//! the runs that they come from, and their errors on other runs.

pub mod fingerprints;
pub mod memory;
pub mod sample;
pub mod time;
pub mod volume;

use std::collections::BTreeMap;

use serde::Serialize;

use sample::CrawlCounts;
use webtwin_job::{Job, JobKind};

/// Machines on which a run is planned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machines {
    /// Number of machines, each with one process.
    pub count: usize,
    /// Number of workers of each process.
    pub workers: usize,
    /// Bytes per second that a machine can send, and at the same time receive.
    pub network: f64,
    /// Bytes per second that a machine reads of its input, and reads or writes of spill files.
    pub disk: f64,
    /// Seconds that a message takes from one machine to another; half of the time of a round.
    pub latency: f64,
}

impl Machines {
    /// Returns the number of workers of all machines.
    pub fn peers(&self) -> u64 {
        (self.count * self.workers) as u64
    }
}

/// Predicted costs of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictedCosts {
    /// Bytes of input that all machines read together.
    pub read_bytes: u64,
    /// Bytes of rows that workers send each other; of texts only those between processes.
    pub exchanged_bytes: u64,
    /// Part of the exchanged bytes that is sent between processes.
    pub sent_bytes: u64,
    /// Maximum bytes that one process sends to others. It is the first process, which sends shared
    /// data to all others.
    pub most_sent_bytes: u64,
    /// Bytes written to spill files, of all processes.
    pub spilled_bytes: u64,
    /// Maximum bytes of spill files that the largest process has at the same time.
    pub spilled_at_once_bytes: u64,
    /// Bytes of spill files of the largest process at the same time if the disk is too small for
    /// more. Rows and pairs are then built in passes.
    pub spilled_at_once_bytes_least: u64,
    /// Number of times that all workers wait for messages of all others.
    pub rounds: u64,
    /// Bytes of memory of the largest process, within the limit if there is one and if tables can
    /// be built within it.
    pub memory_bytes: u64,
    /// Minimum memory limit. A run with a smaller limit is refused.
    pub memory_bytes_least: u64,
    /// Bytes of the result.
    pub disk_bytes: u64,
    /// Processor seconds of all processes, by stage as named in manifests.
    pub cpu_seconds: BTreeMap<&'static str, f64>,
    /// Wall-clock seconds, by stage as named in manifests.
    pub seconds: BTreeMap<&'static str, f64>,
}

/// Bytes of all tables per page, compressed. Measured on the real crawl.
const TABLE_PAGE_BYTES: u64 = 240;

/// Bytes of all tables per link, compressed. Measured on the real crawl.
const TABLE_LINK_BYTES: u64 = 4;

/// Bytes of a document in the table of a study.
const TABLE_DOCUMENT_BYTES: u64 = 60;

/// Predicts the costs of a job that reads a crawl with the given counts.
pub fn of_crawl(job: &Job, counts: &CrawlCounts, machines: &Machines) -> PredictedCosts {
    let volume = volume::of_crawl(job, counts, machines);
    let (memory_bytes, memory_bytes_least) = memory::of_process(job, counts, &volume, machines);
    let spilled_bytes = memory::spilled_bytes(job, counts, machines);
    let [spilled_at_once_bytes, spilled_at_once_bytes_least] = memory::spilled_at_once(job, counts, machines);
    let cpu_seconds = time::cpu_seconds(job, counts, (&volume, spilled_bytes), machines);
    let seconds = time::seconds(counts.read_bytes, &volume, spilled_bytes, &cpu_seconds, machines);
    PredictedCosts {
        read_bytes: counts.read_bytes,
        exchanged_bytes: volume.exchanged_bytes,
        sent_bytes: volume.sent_bytes,
        most_sent_bytes: volume.most_sent_bytes,
        spilled_bytes,
        spilled_at_once_bytes,
        spilled_at_once_bytes_least,
        rounds: volume.rounds,
        memory_bytes,
        memory_bytes_least,
        disk_bytes: result_bytes(job, counts),
        cpu_seconds,
        seconds,
    }
}

/// Returns the bytes of the result of a job that reads a crawl.
pub fn result_bytes(job: &Job, counts: &CrawlCounts) -> u64 {
    match job.kind {
        JobKind::Study => TABLE_DOCUMENT_BYTES * counts.held.pages,
        JobKind::Fingerprints => fingerprints::file_bytes(counts.held.pages, job.simhash.bits),
        _ => TABLE_PAGE_BYTES * counts.held.pages + TABLE_LINK_BYTES * counts.held.links,
    }
}
