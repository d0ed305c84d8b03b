//! Processor seconds of a run by stage, and the time that it takes on machines.
//!
//! ```text
//! processor seconds = reading: those of the sample, or a rate by page
//!                     finding: rates by chunk, pair, link and page; by page sent to a process, by byte sent
//!                     writing: a rate by page
//!                     finding and writing: rates by byte spilled
//! seconds of a stage = processor seconds / workers
//!                    + bytes that the busiest machine reads, spills twice (out and in) / its disk
//!                    + bytes that the busiest machine sends / its network
//!                    + rounds × two messages
//! ```
//!
//! The model assumes no overlap of reading, sending and computing, which makes the sum an upper
//! bound if machines do these at the same time. It also assumes that no worker waits for the
//! slowest one, which makes the sum a lower bound. The rates are those of one machine
//! (`scripts/runs/README.md`). Only the rate of reading is measured again whenever a sample is
//! read.

use std::collections::BTreeMap;

use super::Machines;
use super::sample::CrawlCounts;
use super::volume::Volume;
use webtwin_dataflow::clusters::context_pairs;
use webtwin_job::{Job, JobKind, Measure};

/// Name of the first stage, as in manifests.
pub const READ: &str = "1 read";
/// Name of the second stage.
pub const FIND: &str = "2 find";
/// Name of the last stage.
pub const WRITE: &str = "3 write";

/// Microseconds to read a page of HTML, without a sample: 32 kB of HTML in 5.7 kB of WARC.gz each.
const READ_PAGE: f64 = 215.0;

/// Microseconds of a page in all steps of finding that are not counted by chunk, pair or link.
const FIND_PAGE: f64 = 3.5;

/// Microseconds of a page in the context pass, and in the growth after it.
const FIND_PAGE_AGAIN: f64 = 1.75;

/// Microseconds to send, sort and compare a chunk.
const FIND_CHUNK: f64 = 0.14;

/// Microseconds to send and count a pair.
const FIND_PAIR: f64 = 0.028;

/// Microseconds of a link between two pages in link resolution, LinkSummary and growth.
const FIND_LINK: f64 = 0.25;

/// Microseconds of a link between two pages in the growth after the context pass.
const FIND_LINK_AGAIN: f64 = 0.18;

/// Microseconds to join the simhash of a page with all others.
const FIND_SIMHASH: f64 = 3.0;

/// Microseconds of a feature of a page, if features are weighted by their frequency in the crawl.
const FIND_FEATURE: f64 = 0.12;

/// Microseconds that each process except the first takes for a page, for the data that every
/// process holds about every page.
const SEND_PAGE: f64 = 0.5;

/// Microseconds of a byte that is sent to another process, at both ends.
const SEND_BYTE: f64 = 0.0031;

/// Microseconds of a byte that is spilled: to write it, read it again, and sort it piece by piece.
/// Fitted to 1,000,000, 10,000,000 and 100,000,000 pages, where finding took 6, 6.5 and 9 to 10
/// nanoseconds beyond the rates above.
const SPILL_BYTE: f64 = 0.0075;

/// Microseconds to hash a shingle for bands and compare it.
const FIND_SHINGLE: f64 = 0.03;

/// Microseconds of a component of a page's signatures, for each depth of links.
const FIND_COMPONENT: f64 = 0.25;

/// Microseconds to write a page.
const WRITE_PAGE: f64 = 6.0;

/// Additional microseconds of writing for each byte that is spilled: captures and rows are read
/// again.
const WRITE_SPILLED_BYTE: f64 = 0.0012;

/// Microseconds to write a document of a study.
const WRITE_DOCUMENT: f64 = 1.5;

/// Returns the processor seconds of all processes, by stage.
pub fn cpu_seconds(
    job: &Job,
    counts: &CrawlCounts,
    (volume, spilled_bytes): (&Volume, u64),
    machines: &Machines,
) -> BTreeMap<&'static str, f64> {
    let estimate = &counts.held;
    let us = |n: u64, each: f64| n as f64 * each / 1e6;
    let read = if counts.read_cpu_seconds > 0.0 { counts.read_cpu_seconds } else { us(estimate.pages, READ_PAGE) };
    let overlap = us(estimate.tuples, FIND_CHUNK) + us(estimate.pairs, FIND_PAIR);
    let message = us(estimate.pages * (machines.count as u64 - 1), SEND_PAGE) + us(volume.sent_bytes, SEND_BYTE);
    let (find, write) = match job.kind {
        JobKind::Fingerprints => (us(estimate.pages, 2.0), us(estimate.pages, 1.0)),
        JobKind::Study => (overlap + us(counts.links_within, FIND_LINK) + message, us(estimate.pages, WRITE_DOCUMENT)),
        _ => {
            let measure = match job.similar.by {
                Measure::Overlap | Measure::Both => overlap,
                Measure::Hamming => us(estimate.pages, FIND_SIMHASH),
                Measure::Given => 0.0,
                Measure::Signatures => {
                    let components = u64::from(job.signatures.vectors.dims * (1 + job.signatures.vectors.depth));
                    us(estimate.pages * components, FIND_COMPONENT)
                }
                Measure::Minhash => us(estimate.shingles, FIND_SHINGLE),
            };
            let context_costs = match context_pairs::is_asked_for(job) {
                true => us(estimate.pages, FIND_PAGE_AGAIN) + us(counts.links_within, FIND_LINK_AGAIN),
                false => 0.0,
            };
            let weighed = us(estimate.features, FIND_FEATURE);
            let find = us(estimate.pages, FIND_PAGE)
                + us(counts.links_within, FIND_LINK)
                + context_costs
                + weighed
                + measure
                + message;
            (find, us(estimate.pages, WRITE_PAGE))
        }
    };
    let (find, write) = (find + us(spilled_bytes, SPILL_BYTE), write + us(spilled_bytes, WRITE_SPILLED_BYTE));
    BTreeMap::from([(READ, read), (FIND, find), (WRITE, write)])
}

/// Returns the wall-clock seconds of each stage.
pub fn seconds(
    read_bytes: u64,
    volume: &Volume,
    spilled_bytes: u64,
    cpu_seconds: &BTreeMap<&'static str, f64>,
    machines: &Machines,
) -> BTreeMap<&'static str, f64> {
    let n_machines = machines.count as f64;
    let seconds_of = |stage| cpu_seconds.get(stage).copied().unwrap_or(0.0) / machines.peers() as f64;
    let from_disk = |bytes: u64| bytes as f64 / n_machines / machines.disk;
    let send_seconds = volume.most_sent_bytes as f64 / machines.network;
    let wait_seconds = if machines.count > 1 { volume.rounds as f64 * 2.0 * machines.latency } else { 0.0 };
    BTreeMap::from([
        (READ, seconds_of(READ) + from_disk(read_bytes)),
        (FIND, seconds_of(FIND) + from_disk(2 * spilled_bytes) + send_seconds + wait_seconds),
        (WRITE, seconds_of(WRITE)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_machines_halve_the_processor_time_and_the_first_sends_more() {
        let cpu = BTreeMap::from([(READ, 100.0), (FIND, 60.0), (WRITE, 8.0)]);
        let seconds_of = |count| {
            let machines = Machines { count, workers: 2, network: 1e6, disk: 1e6, latency: 0.01 };
            let volume = Volume::new(([8_000_000, 0], 1_000_000, 1_000_000), 100, &machines);
            seconds(4_000_000, &volume, 2_000_000, &cpu, &machines)
        };
        let (single_machine, double) = (seconds_of(1), seconds_of(2));
        // On a single machine nothing is sent, and no messages are awaited. Spilled bytes are
        // written and read.
        assert_eq!((single_machine[READ], single_machine[FIND], single_machine[WRITE]), (50.0 + 4.0, 30.0 + 4.0, 4.0));
        // Each of two machines sends 2 MB of 8 MB, and the first one 1 MB more.
        assert_eq!((double[READ], double[FIND], double[WRITE]), (25.0 + 2.0, 15.0 + 2.0 + 3.0 + 2.0, 2.0));
    }
}
