//! \[MJS07\]: the Hamming distance problem.

mod batch;
mod build;
mod chunk;
mod compression;
mod designs;
mod distribution;
mod files;
pub mod huffman;
mod online;
mod precision;
mod self_join;
mod self_join_of_files;

use super::{Experiment, ExperimentRun};

/// Returns the entries for the tables and figures of the paper, and for our benchmarks of the same
/// problem.
pub fn entries() -> Vec<Experiment> {
    vec![
        Experiment {
            name: "mjs07-example-3-1",
            about: "designs of 20, 16, 10 and 4 tables for 2^34 fingerprints, and coverings (MJS07 Example 3.1)",
            unit: "fingerprints",
            scale: 1 << 34,
            full: 1 << 34,
            run: ExperimentRun::Alone(designs::example_3_1),
        },
        Experiment {
            name: "mjs07-compression",
            about: "size and decoding speed of a chunk of 2^33 fingerprints by each coder (MJS07 section 3.2)",
            unit: "fingerprints in a chunk",
            scale: 1 << 23,
            full: 1 << 23,
            run: ExperimentRun::Alone(compression::run),
        },
        Experiment {
            name: "mjs07-batch",
            about: "F against a million queries, k = 3, from compressed chunks on disk (MJS07 sections 3.3 and 4.3)",
            unit: "fingerprints of F",
            scale: 1 << 27,
            full: 1 << 33,
            run: ExperimentRun::OnCluster(batch::run),
        },
        Experiment {
            name: "mjs07-figure1",
            about: "precision and recall of pairs within k = 1 to 10 bits (MJS07 Figure 1); --input RUN --truth FILE for a real \
                    crawl",
            unit: "pages of a made-up crawl, without --input",
            scale: 10_000,
            full: 8_000_000_000,
            run: ExperimentRun::Alone(precision::figure_1),
        },
        Experiment {
            name: "mjs07-figure2a",
            about: "leading 1-bits of the differences of successive simhashes (MJS07 Figure 2(a)); --input RUN for \
                a real crawl",
            unit: "pages of a made-up crawl, without --input",
            scale: 20_000,
            full: 20_000,
            run: ExperimentRun::Alone(distribution::figure_2a),
        },
        Experiment {
            name: "mjs07-figure2b",
            about: "simhashes in 128 buckets (MJS07 Figure 2(b)); --input RUN for a real crawl",
            unit: "pages of a made-up crawl, without --input",
            scale: 20_000,
            full: 20_000,
            run: ExperimentRun::Alone(distribution::figure_2b),
        },
        Experiment {
            name: "bench-hamming-build",
            about: "F made of raw fingerprints, by one worker and by two, and with little memory: read, sort, write",
            unit: "fingerprints",
            scale: 1 << 24,
            full: 1 << 27,
            run: ExperimentRun::Alone(build::run),
        },
        Experiment {
            name: "bench-hamming-chunk",
            about: "one chunk of F against a million queries, k = 3: read, join, write, on one core and on two",
            unit: "fingerprints in a chunk",
            scale: 1 << 23,
            full: 1 << 23,
            run: ExperimentRun::Alone(chunk::run),
        },
        Experiment {
            name: "bench-hamming-clustered",
            about: "one chunk of clustered fingerprints against a million queries, k = 3: time for each reported pair",
            unit: "fingerprints in a chunk",
            scale: 1 << 23,
            full: 1 << 23,
            run: ExperimentRun::Alone(chunk::clustered),
        },
        Experiment {
            name: "bench-hamming-memory",
            about: "memory of a million queries, without the chunk and the pairs found",
            unit: "fingerprints in a chunk",
            scale: 1 << 23,
            full: 1 << 23,
            run: ExperimentRun::Alone(chunk::memory),
        },
        Experiment {
            name: "bench-hamming-selfjoin",
            about: "fingerprints joined with themselves, k = 3, on one core",
            unit: "fingerprints",
            scale: 10_000_000,
            full: 100_000_000,
            run: ExperimentRun::Alone(self_join::run),
        },
        Experiment {
            name: "bench-hamming-selfjoin-files",
            about: "F made of a raw file and joined with itself, k = 3, by all workers, from disk to disk",
            unit: "fingerprints",
            scale: 10_000_000,
            full: 100_000_000,
            run: ExperimentRun::OnCluster(self_join_of_files::run),
        },
        Experiment {
            name: "bench-hamming-online",
            about: "online queries, k = 3, exact, on one core (MJS07 section 3.1)",
            unit: "fingerprints",
            scale: 10_000_000,
            full: 100_000_000,
            run: ExperimentRun::Alone(online::run),
        },
    ]
}

/// k of all reproductions in this module, in bits.
const K: u32 = 3;

/// Number of queries of a batch, as in the paper.
const QUERIES: usize = 1_000_000;
