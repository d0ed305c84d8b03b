//! Bytes of memory of the largest process of a run, and bytes that it spills.
//!
//! A process holds its share of the pages with their chunks and links, the data derived from these,
//! and data about every page of the crawl that all processes share. The shared data does not become
//! smaller with more machines, so it limits the size of a run.

use super::Machines;
use super::sample::CrawlCounts;
use super::volume::{Volume, on_the_way};
use webtwin_dataflow::memory_estimate::{
    FEATURE_BYTES, GROWN_OTHER_PAGE_BYTES, MemoryEstimate, RunSize, bytes_of_tables, long_bytes,
};
use webtwin_dataflow::pairs::minhash_pairs;
use webtwin_dataflow::shuffle::memory::{IDLE_WORKER_BYTES, PEER_BYTES, at_rest};
use webtwin_job::{Job, JobKind, Measure};

/// Maximum bytes of a worker in blocks that are being filled for other workers, in transit, or kept
/// for reuse.
const WORKER_BYTES: u64 = 17 << 20;

/// Bytes of the connections of a process to other processes, independent of their number: buffers
/// in use or kept for reuse.
const CONNECTIONS: u64 = 8 << 20;

/// Bytes of a page in every process while clusters grow, if memory is not limited: its row of the
/// directory, its clusters, sizes, places and counts. Measured.
const PAGE_PROCESS_BYTES: u64 = 33;

/// Bytes of a page in the lists for crawlers, if memory is not limited. Measured.
const PAGE_LIST_BYTES: u64 = 100;

/// Bytes of a page in the process that collects a table of all pages for a file: rows that others
/// send, and rows that are encoded. Measured.
const PAGE_FILE_BYTES: u64 = 450;

/// Additional bytes for each byte of a long URL or title in a file, if memory is not limited.
/// Measured.
const LONG_BYTES_IN_FILE: u64 = 2;

/// Number of pages whose rows fill a file.
const PAGES_OF_FILE: u64 = 400_000;

/// Bytes of an idle process without connections.
pub const PROCESS_BYTES: u64 = 25 << 20;

/// Bytes of a page while captures are deduplicated, and of a document while tables are built.
const PAGE_DEDUPLICATION_BYTES: u64 = 400;

/// Bytes of a page in every process while the directory is built.
const DIRECTORY_ROW_BYTES: u64 = 28;

/// Bytes of a link in every process of a study, which holds all links in both directions.
const LINK_PROCESS_BYTES: u64 = 20;

/// Bytes of a document in every process of a study.
const DOCUMENT_PROCESS_BYTES: u64 = 60;

/// Returns the estimate of the data that one of the processes owns.
fn own_estimate(counts: &CrawlCounts, machines: &Machines) -> MemoryEstimate {
    counts.held.map(|n| n.div_ceil(machines.count as u64))
}

fn run_size(counts: &CrawlCounts, machines: &Machines) -> RunSize {
    RunSize { all_pages: counts.held.pages, workers: machines.workers, processes: machines.count }
}

/// Returns the bytes of the largest process, within the limit if there is one and if tables can be
/// built within it; and the minimum bytes of a run.
pub fn of_process(job: &Job, counts: &CrawlCounts, volume: &Volume, machines: &Machines) -> (u64, u64) {
    let (own_data, workers) = (own_estimate(counts, machines), machines.workers);
    let others = if machines.count > 1 { CONNECTIONS + PEER_BYTES * (machines.count as u64 - 1) } else { 0 };
    let blocks = WORKER_BYTES.min(volume.exchanged_bytes / machines.peers()) * workers as u64;
    let blocks = blocks.max(IDLE_WORKER_BYTES * workers.saturating_sub(2) as u64);
    let all_pages = counts.held.pages;
    let links = counts.links_within.div_ceil(machines.count as u64);
    let (least, keys) = required_bytes(job, counts, machines);
    // Bytes in addition to the local pages: of data that is spilled if memory is limited, and of
    // data that is not. Then the bytes of the local pages that remain after pairs are found, and
    // bytes that are always needed.
    let local_pages = own_data.local_pages_bytes();
    let (spillable, fixed, left, always) = match job.kind {
        JobKind::Fingerprints => {
            (0, 0, local_pages, PAGE_DEDUPLICATION_BYTES * own_data.pages + DIRECTORY_ROW_BYTES * all_pages)
        }
        JobKind::Study => {
            let web = LINK_PROCESS_BYTES * counts.links_within + DOCUMENT_PROCESS_BYTES * all_pages;
            (own_data.bytes_besides_local_pages(job), web, local_pages, PAGE_DEDUPLICATION_BYTES * own_data.pages)
        }
        _ => {
            // A single process has no pages of other processes. Any process may collect the largest
            // table; the first process is one of them.
            let others_pages = all_pages - own_data.pages;
            let others_in_file = others_pages.min(PAGES_OF_FILE);
            let long = LONG_BYTES_IN_FILE * long_bytes(own_data.pages, own_data.captures) / own_data.pages.max(1);
            let message = match job.effort.memory_bytes {
                0 => {
                    // The first process has the first range of the lists, maybe the only one.
                    let lists = PAGE_LIST_BYTES * others_pages;
                    let ranges = lists / job.output.export_bytes + 1;
                    let own_lists = lists / ranges * ranges.div_ceil(machines.count as u64);
                    PAGE_PROCESS_BYTES * others_pages + own_lists + (PAGE_FILE_BYTES + long) * others_in_file
                }
                _ => GROWN_OTHER_PAGE_BYTES * others_pages,
            };
            let by_measure = match job.similar.by {
                Measure::Signatures => 64 * u64::from(job.signatures.vectors.dims) * own_data.pages,
                Measure::Hamming => 84 * own_data.pages,
                Measure::Given => 0,
                Measure::Minhash => keys,
                Measure::Overlap | Measure::Both => own_data.bytes_besides_local_pages(job),
            };
            let by_measure = by_measure.max(FEATURE_BYTES * own_data.features);
            let found = bytes_of_tables(&own_data, all_pages, links, workers, job.effort.memory_bytes > 0);
            (by_measure, found, MemoryEstimate { resolved: links, ..own_data }.settled_bytes(), message)
        }
    };
    let base = PROCESS_BYTES + blocks + others + always;
    let max_bytes = (base + (local_pages + spillable).max(left + fixed)).max(least);
    match job.effort.memory_bytes {
        0 => (max_bytes, least),
        allowed => (max_bytes.min(allowed.max(base + own_data.min_local_pages_bytes(workers) + fixed)), least),
    }
}

/// Returns the minimum bytes of a run, and the bytes of keys of bands, of one process.
pub fn required_bytes(job: &Job, counts: &CrawlCounts, machines: &Machines) -> (u64, u64) {
    let own_data = own_estimate(counts, machines);
    if job.kind == JobKind::Fingerprints {
        let deduplication_bytes = PAGE_DEDUPLICATION_BYTES * own_data.pages + DIRECTORY_ROW_BYTES * counts.held.pages;
        return (at_rest(machines.workers) + own_data.min_local_pages_bytes(machines.workers) + deduplication_bytes, 0);
    }
    let least = own_data.required_bytes(run_size(counts, machines));
    match job.similar.by {
        Measure::Minhash => {
            let run = run_size(counts, machines);
            let (of_keys, keys) = minhash_pairs::required_of_process(&own_data, run, &job.minhash);
            (least.max(of_keys), keys)
        }
        _ => (least, 0),
    }
}

/// Returns the bytes of spill files that the largest process has at the same time: the maximum, and
/// the minimum if the disk is too small for more.
pub fn spilled_at_once(job: &Job, counts: &CrawlCounts, machines: &Machines) -> [u64; 2] {
    let allowed = job.effort.memory_bytes;
    if allowed == 0 || job.kind == JobKind::Fingerprints {
        return [0; 2];
    }
    let links = counts.links_within.div_ceil(machines.count as u64);
    own_estimate(counts, machines).on_disk_at_once(job, run_size(counts, machines), links, allowed)
}

/// Returns the bytes that all processes write to spill files.
pub fn spilled_bytes(job: &Job, counts: &CrawlCounts, machines: &Machines) -> u64 {
    let allowed = job.effort.memory_bytes;
    if allowed == 0 || job.kind == JobKind::Fingerprints {
        return 0;
    }
    let (least, keys) = required_bytes(job, counts, machines);
    let keys = keys.saturating_sub(allowed.saturating_sub(least) / 4);
    let rows = own_estimate(counts, machines).spilled_bytes(job, run_size(counts, machines), allowed);
    // About as many bytes as are sent wait on disk, because each step spills the data that the next
    // steps do not read, independent of the limit. Measured.
    let parked_bytes = if job.kind == JobKind::Study { 0 } else { on_the_way(job, counts) };
    machines.count as u64 * (rows + keys) + parked_bytes
}
