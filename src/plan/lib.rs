//! What a run will read, hold, exchange, spill and take, on how many machines: predicted, before it is made.
//!
//! | file | what it tells |
//! |---|---|
//! | `sample` | what a crawl holds, from a part of it that is read |
//! | `volume` | rounds, and bytes exchanged and spilled, by what a crawl holds |
//! | `memory` | bytes of memory of a process |
//! | `time` | processor seconds by stage, and time on machines |
//! | `fingerprints` | jobs on fingerprint files, which read no crawl |
//!
//! A prediction is a sum of counts times constants. Constants that follow from a row's size are named for the row; the others
//! are measured, and `scripts/runs/README.md` has the runs that they come from and how far off they
//! are on others.

pub mod fingerprints;
pub mod memory;
pub mod sample;
pub mod time;
pub mod volume;

use std::collections::BTreeMap;

use serde::Serialize;

use sample::Counts;
use webtwin_job::{Job, JobKind};

/// Where a run is to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machines {
    /// Machines, of which each has one process.
    pub count: usize,
    /// Workers of each process.
    pub workers: usize,
    /// Bytes a second that a machine can send, and as many receive.
    pub network: f64,
    /// Bytes a second that a machine reads of its input, and reads or writes of spill files.
    pub disk: f64,
    /// Seconds that a message takes from one machine to another, and half of what a round takes.
    pub latency: f64,
}

impl Machines {
    /// Workers of all machines.
    pub fn peers(&self) -> u64 {
        (self.count * self.workers) as u64
    }
}

/// What a run will take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Costs {
    /// Bytes of input that all machines read together.
    pub read_bytes: u64,
    /// Bytes of rows that workers send each other, of texts only those between processes.
    pub exchanged_bytes: u64,
    /// Those of them between processes.
    pub sent_bytes: u64,
    /// Of these, the most that one process sends: the first, which tells all others what they all need.
    pub most_sent_bytes: u64,
    /// Bytes written to spill files, of all processes.
    pub spilled_bytes: u64,
    /// Bytes of spill files that the largest process has at once, at most.
    pub spilled_at_once_bytes: u64,
    /// The same where the disk has no room for more: rows and pairs are made in passes then.
    pub spilled_at_once_bytes_least: u64,
    /// Times that all workers wait for messages of all others.
    pub rounds: u64,
    /// Bytes of memory of the largest process, within the bound if there is one and tables can be made within it.
    pub memory_bytes: u64,
    /// With a smaller bound than this there is no run.
    pub memory_bytes_least: u64,
    /// Bytes of the result.
    pub disk_bytes: u64,
    /// Processor seconds of all processes, by stage as manifests name them.
    pub cpu_seconds: BTreeMap<&'static str, f64>,
    /// Seconds by the clock, likewise.
    pub seconds: BTreeMap<&'static str, f64>,
}

/// Bytes of all tables per page, compressed, measured on the real crawl.
const A_PAGE_OF_TABLES: u64 = 240;

/// The same per link.
const A_LINK_OF_TABLES: u64 = 4;

/// Bytes of a document in the table of a study.
const A_DOCUMENT_OF_TABLES: u64 = 60;

/// What a job that reads a crawl will take, where the crawl holds so much.
pub fn of_crawl(job: &Job, counts: &Counts, machines: &Machines) -> Costs {
    let volume = volume::of_crawl(job, counts, machines);
    let (memory_bytes, memory_bytes_least) = memory::of_process(job, counts, &volume, machines);
    let spilled_bytes = memory::spilled_bytes(job, counts, machines);
    let [spilled_at_once_bytes, spilled_at_once_bytes_least] = memory::spilled_at_once(job, counts, machines);
    let cpu_seconds = time::cpu_seconds(job, counts, (&volume, spilled_bytes), machines);
    let seconds = time::seconds(counts.read_bytes, &volume, spilled_bytes, &cpu_seconds, machines);
    Costs {
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

/// Bytes of the result of a job that reads a crawl.
pub fn result_bytes(job: &Job, counts: &Counts) -> u64 {
    match job.kind {
        JobKind::Study => A_DOCUMENT_OF_TABLES * counts.held.pages,
        JobKind::Fingerprints => fingerprints::file_bytes(counts.held.pages, job.simhash.bits),
        _ => A_PAGE_OF_TABLES * counts.held.pages + A_LINK_OF_TABLES * counts.held.links,
    }
}
