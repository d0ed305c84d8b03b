//! Rounds of a run, and the bytes that its workers send each other.
//!
//! Most rows are sent to one owner, wherever they come from. Of n workers, n - 1 are other workers
//! than the sender, so (n - 1) / n of these rows are sent to another worker. Some data is
//! broadcast, so that its bytes grow with the number of processes: shared data about every page
//! (its doc id, host, trivial cluster, counts of chunks), and in a few places a list that is short
//! if the web is small.

use super::Machines;
use super::sample::CrawlCounts;
use webtwin_core::overlap::rows::{Row32, Row64};
use webtwin_dataflow::clusters::{context_pairs, tolerant};
use webtwin_dataflow::memory_estimate::FEATURE_BYTES;
use webtwin_dataflow::pairs::minhash_pairs;
use webtwin_dataflow::shuffle::{components, page_counts};
use webtwin_job::{Job, JobKind, Measure};
use webtwin_spill::PARTITION_BYTES;

/// Bytes of a capture, with its URL and title.
const CAPTURE_BYTES: u64 = 264;

/// Bytes of the reply with the number of a page.
const NUMBER_BYTES: u64 = 16;

/// Bytes of a page in all texts that are derived from it and written: lists by host, the avoid
/// list, rows of tables that share a file. Measured.
const PAGE_WRITTEN_BYTES: u64 = 720;

/// Bytes of a page in all other data that is derived from it. Measured.
const PAGE_DERIVED_BYTES: u64 = 85;

/// Bytes of a page in the data of the context pass. Measured.
const PAGE_CONTEXT_BYTES: u64 = 135;

/// Bytes of a document of a study: in its row of the table, and (next constant) in all other data.
/// Measured.
const DOCUMENT_WRITTEN_BYTES: u64 = 120;
const DOCUMENT_BYTES: u64 = 110;

/// Bytes of a link between two pages while links are resolved.
const LINK_BYTES: u64 = 8;

/// Bytes of a link between two pages in LinkSummary, growth, and hosts. Measured.
const LINK_GROWTH_BYTES: u64 = 37;

/// Bytes of a link between two pages in the growth after the context pass. Measured.
const LINK_CONTEXT_BYTES: u64 = 31;

/// Bytes per chunk for the comparison of chunks of similar pages. Five of eight chunks belong to
/// such pages. Measured.
const CHUNK_COMPARED_BYTES: u64 = 4;

/// Bytes of a pair of pages, counted once for each chunk that they share.
const PAIR_BYTES: u64 = 8;

/// Bytes of a component of a signature that is sent from a child to a worker with its parents.
const CHILD_VALUE_BYTES: u64 = 24;

/// Bytes per shingle for the sets of shingles that are fetched. The sets of pages with candidates
/// are fetched by each worker that requests them. Measured.
const SHINGLE_FETCHED_BYTES: u64 = 2;

/// Bytes of a page that are sent to each other process: its row of the directory, its clusters,
/// counts of its chunks. Measured.
const PAGE_SENT_BYTES: u64 = 52;

/// Bytes of a page that the first process distributes to the other processes, which broadcast them:
/// labels of clusters, which the first process computes. Measured.
const PAGE_DISTRIBUTED_BYTES: u64 = 43;

/// Bytes of a document that the first process of a study distributes.
const DOCUMENT_DISTRIBUTED_BYTES: u64 = 9;

/// Bytes of a page that are sent to each other process if only the directory is broadcast.
const DIRECTORY_ROW_BYTES: u64 = 12;

/// Additional rounds in which long lists of counts of pages are added up, half of those of
/// all-pairs overlap. Measured.
const SUMS: u64 = 6;

/// Additional rounds of several processes, with and without a context pass: if all lists are short;
/// if pieces of collections are found by the owners of hosts; and if forests are merged, too. The
/// last constant applies to each doubling of processes. Measured.
const BETWEEN_PROCESSES: [u64; 2] = [17, 8];
const PIECES_BY_OWNERS: [u64; 2] = [33, 20];
const MERGED_FORESTS: [u64; 2] = [23, 22];
const MERGES: [u64; 2] = [10, 0];

/// Bytes of a page that is sent to the owner of its place, and (next constant) additional rounds if
/// there are many such rows. Measured.
const PAGE_PLACE_BYTES: u64 = 60;
const PARTITIONED_ROW: u64 = 8;

/// Traffic of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Bytes of rows that workers send each other; of texts only those between processes.
    pub exchanged_bytes: u64,
    /// Part of these bytes that is sent between processes.
    pub sent_bytes: u64,
    /// Maximum of the sent bytes of one process.
    pub most_sent_bytes: u64,
    /// Number of times that all workers wait for messages of all others.
    pub rounds: u64,
}

impl Volume {
    /// Computes the traffic from three kinds of data. The first kind are bytes of rows that go to
    /// any worker with equal probability: of numbers, and of texts, which are passed without a copy
    /// within a process. The second kind (`message`) is sent to each other process. The third kind
    /// (`dealt_bytes`) is distributed by the first process to all processes.
    pub fn new(
        ([numbers, texts], message, dealt_bytes): ([u64; 2], u64, u64),
        rounds: u64,
        machines: &Machines,
    ) -> Volume {
        let share_of_others =
            |all: u64| move |bytes: u64| (u128::from(bytes) * u128::from(all - 1) / u128::from(all)) as u64;
        let processes = machines.count as u64;
        let sent_between = share_of_others(processes)(numbers + texts);
        let (sent_each, dealt_bytes) = (message * (processes - 1), share_of_others(processes)(dealt_bytes));
        Volume {
            exchanged_bytes: share_of_others(machines.peers())(numbers)
                + share_of_others(processes)(texts)
                + sent_each
                + dealt_bytes,
            sent_bytes: sent_between + sent_each + dealt_bytes,
            most_sent_bytes: (sent_between + sent_each) / processes + dealt_bytes,
            rounds,
        }
    }
}

/// Predicts the traffic of a job that reads a crawl.
pub fn of_crawl(job: &Job, counts: &CrawlCounts, machines: &Machines) -> Volume {
    let estimate = &counts.held;
    let row = if job.chunks.bits <= 32 { size_of::<Row32>() } else { size_of::<Row64>() } as u64;
    // Pages that cannot share T chunks with any other page are removed before pairs are generated.
    let pairs = (u128::from(estimate.pairs) * u128::from(counts.heavy_thousandths) / 1000) as u64;
    let overlap = row * estimate.tuples + PAIR_BYTES * pairs;
    let (settled_bytes, captures) = (NUMBER_BYTES * estimate.pages, CAPTURE_BYTES * estimate.pages);
    let (to_owners, message, dealt_bytes) = match job.kind {
        JobKind::Fingerprints => {
            // Within a process, one worker collects the broadcast data.
            let message = DIRECTORY_ROW_BYTES * estimate.pages;
            ([settled_bytes + captures + message, 0], message, 0)
        }
        JobKind::Study => {
            let links = LINK_BYTES * counts.links_within;
            let texts = DOCUMENT_WRITTEN_BYTES * estimate.pages;
            let numbers = settled_bytes + captures + DOCUMENT_BYTES * estimate.pages + links + overlap;
            (
                [numbers, texts],
                STUDY_DOCUMENT_SENT_BYTES * estimate.pages + links,
                DOCUMENT_DISTRIBUTED_BYTES * estimate.pages,
            )
        }
        _ => {
            let found_bytes = derived_bytes(job, counts);
            let measure = measure_bytes(job, counts, overlap, machines);
            let texts = PAGE_WRITTEN_BYTES * estimate.pages;
            // Features are sent to where they are counted over the crawl, and back to where the
            // features of a page are collected.
            let features = 2 * FEATURE_BYTES * estimate.features;
            (
                [settled_bytes + captures + found_bytes + measure + features, texts],
                PAGE_SENT_BYTES * estimate.pages,
                PAGE_DISTRIBUTED_BYTES * estimate.pages,
            )
        }
    };
    Volume::new((to_owners, message, dealt_bytes), rounds(job, counts, machines), machines)
}

/// Returns the bytes of pages and links that are sent to be joined after pairs are found, including
/// rows that stay at their worker.
fn derived_bytes(job: &Job, counts: &CrawlCounts) -> u64 {
    let (pages, links) = (counts.held.pages, counts.links_within);
    let context_costs = match context_pairs::is_asked_for(job) {
        true => PAGE_CONTEXT_BYTES * pages + LINK_CONTEXT_BYTES * links,
        false => 0,
    };
    PAGE_DERIVED_BYTES * pages + (LINK_BYTES + LINK_GROWTH_BYTES) * links + context_costs
}

/// Returns the bytes that the main job sends to be joined after pairs are found, with captures and
/// with texts that are written.
pub(super) fn on_the_way(job: &Job, counts: &CrawlCounts) -> u64 {
    derived_bytes(job, counts) + (CAPTURE_BYTES + PAGE_WRITTEN_BYTES) * counts.held.pages
}

/// Bytes of a document that are sent to each other process of a study.
const STUDY_DOCUMENT_SENT_BYTES: u64 = 60;

fn measure_bytes(job: &Job, counts: &CrawlCounts, overlap: u64, machines: &Machines) -> u64 {
    let estimate = &counts.held;
    // The context pass fetches chunks, and so does the comparison of pages to skip with the pages
    // that are kept.
    let compared_bytes = CHUNK_COMPARED_BYTES * estimate.tuples;
    match job.similar.by {
        Measure::Overlap | Measure::Both => overlap + compared_bytes,
        // A simhash with its page; then the near simhashes.
        Measure::Hamming => 16 * estimate.pages,
        Measure::Signatures => {
            let dims = u64::from(job.signatures.vectors.dims);
            // Bounds of a projection; and the two signatures, to the slab of a page and to the
            // slabs that it visits.
            let points = 8 * dims * estimate.pages + (16 * dims + 30) * estimate.pages;
            let asked_bytes = children_asked(estimate.pages, counts.links_within, machines.peers());
            points + CHILD_VALUE_BYTES * dims * u64::from(job.signatures.vectors.depth) * asked_bytes
        }
        // The number of given pairs is not known.
        Measure::Given => 0,
        Measure::Minhash => {
            minhash_pairs::keys_bytes(estimate.pages, &job.minhash)
                + SHINGLE_FETCHED_BYTES * estimate.shingles
                + compared_bytes
        }
    }
}

/// Returns the number of children whose signatures workers request, each counted once per worker,
/// if every page is the child of a link with equal probability.
fn children_asked(pages: u64, links: u64, workers: u64) -> u64 {
    let links_per_worker = links as f64 / (pages * workers).max(1) as f64;
    (pages as f64 * workers as f64 * (1.0 - (-links_per_worker).exp())) as u64
}

/// Rounds in which given pairs are read, matched with pages and guarded.
const GIVEN_PAIR_ROUNDS: u64 = 6;

/// Returns the number of times that all workers wait for each other. It is the sum of the rounds of
/// the steps that every job of a kind has, which are measured; of the rounds in which long lists
/// with a count for each page are added up part by part; and of the rounds in which the forests of
/// processes are merged and labels are distributed.
fn rounds(job: &Job, counts: &CrawlCounts, machines: &Machines) -> u64 {
    let pages = counts.held.pages;
    let steps = match (job.kind, job.similar.by) {
        (JobKind::Fingerprints, _) => return 17,
        (JobKind::Study, _) => 39,
        (_, Measure::Hamming) => 91,
        (_, Measure::Signatures) => 96,
        (_, Measure::Minhash) => 99,
        (_, Measure::Given) => 81,
        (_, Measure::Overlap) if context_pairs::is_asked_for(job) => 134,
        (_, Measure::Both) if context_pairs::is_asked_for(job) => 143,
        (_, Measure::Overlap) => 88,
        (_, Measure::Both) => 97,
    };
    let steps = steps + if job.pairs.from.is_empty() { 0 } else { GIVEN_PAIR_ROUNDS };
    let steps = steps + if job.simhash.features.idf && job.simhash.bits > 0 { 6 } else { 0 };
    // If the rows of pages by place do not fit into one partition, their number is exchanged before
    // they are sent.
    let are_many = PAGE_PLACE_BYTES * pages / machines.peers() > PARTITION_BYTES;
    let message = if are_many && context_pairs::is_asked_for(job) { PARTITIONED_ROW } else { 0 };
    let (sum_count, counters) = match (job.kind, job.similar.by) {
        // The workers of a process count together, but those of a study by themselves.
        (JobKind::Study, _) => (1, machines.peers() as usize),
        (_, Measure::Overlap | Measure::Both) => (2, machines.count),
        _ => (0, 1),
    };
    let is_long = !page_counts::is_short(pages as usize * size_of::<u32>(), counters);
    let sum_rounds = if counters > 1 && is_long { SUMS * sum_count } else { 0 };
    let without_context = usize::from(!context_pairs::is_asked_for(job));
    let merge_rounds = match machines.count {
        1 => 0,
        processes if tolerant::are_few(pages as usize, processes) => BETWEEN_PROCESSES[without_context],
        processes if components::are_shared(pages as usize, processes) => PIECES_BY_OWNERS[without_context],
        processes => {
            MERGED_FORESTS[without_context] + MERGES[without_context] * u64::from(processes.next_power_of_two().ilog2())
        }
    };
    steps + message + sum_rounds + merge_rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(count: usize, workers: usize) -> Machines {
        Machines { count, workers, network: 1e9, disk: 1e9, latency: 0.0 }
    }

    #[test]
    fn single_process_sends_nothing_and_broadcasts_reach_every_other_process() {
        let single_machine = Volume::new(([800, 200], 10, 4), 5, &machines(1, 1));
        assert_eq!(
            (single_machine.exchanged_bytes, single_machine.sent_bytes, single_machine.most_sent_bytes),
            (0, 0, 0)
        );
        let threads = Volume::new(([800, 200], 10, 4), 5, &machines(1, 4));
        assert_eq!((threads.exchanged_bytes, threads.sent_bytes), (600, 0));
        let four = Volume::new(([800, 200], 10, 4), 5, &machines(4, 2));
        // Seven of eight workers are other workers, and three of four processes are other
        // processes. Ten bytes are sent to three processes. The first process distributes four
        // bytes.
        assert_eq!((four.exchanged_bytes, four.sent_bytes), (700 + 150 + 30 + 3, 750 + 30 + 3));
        assert_eq!(four.most_sent_bytes, (750 + 30) / 4 + 3);
    }

    #[test]
    fn worker_requests_each_child_once() {
        assert_eq!(children_asked(1000, 1_000_000, 1), 1000);
        let few_children = children_asked(1000, 10, 1);
        assert!((9..=10).contains(&few_children), "{few_children}");
        assert!(children_asked(1000, 10_000, 8) > children_asked(1000, 10_000, 4));
    }
}
