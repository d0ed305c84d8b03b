//! Every setting of a job, with its default and whether it changes *the answer* or only *the effort*.
//!
//! The defaults are here and nowhere else; a test compares `jobs/README.md` with them.

mod clusters;
mod input;
mod measures;
mod recrawl;

pub use clusters::*;
pub use input::*;
pub use measures::*;
pub use recrawl::*;
use serde::{Deserialize, Serialize};

use super::shingling::Shingling;

/// A job with every setting resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Which kind of result the job computes.
    pub kind: JobKind,
    /// Where the crawl is and how it is read.
    pub input: Input,
    /// Which URLs stand for others, so that links to them count as links to those.
    pub links: Links,
    /// Where the result is written.
    pub output: Output,
    /// How text is cut into chunks.
    pub chunks: Chunks,
    /// By which measure pages are similar.
    pub similar: Similar,
    /// When two pages share enough chunks.
    pub overlap: Overlap,
    /// When two simhashes are near.
    pub hamming: Hamming,
    /// What a page's simhash is made of.
    pub simhash: Simhash,
    /// How a fingerprint file is made.
    pub fingerprints: Fingerprints,
    /// What a page's signatures are, and when they collide.
    pub signatures: Signatures,
    /// When the shingles of two pages resemble each other.
    pub minhash: Minhash,
    /// Which pages must not come together, whatever the measure says.
    #[serde(default)]
    pub pairs: Pairs,
    /// Which fingerprints are joined with which.
    pub batch: Batch,
    /// When two servers overlap.
    pub servers: Servers,
    /// How similar pages grow to collections.
    pub clusters: Clusters,
    /// Which of several copies stays.
    pub keep: Keep,
    /// Which evidence a URL rule must have.
    #[serde(default)]
    pub url_rules: UrlRules,
    /// How duplicates are studied.
    pub study: Study,
    /// What a scheduled job goes on from, and how the results of two crawls are compared.
    #[serde(default)]
    pub recrawl: Recrawl,
    /// Settings that change how much work is done at once, but never the answer.
    pub effort: Effort,
}

/// What a job computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// Pages to similar pages, trivial clusters, collections and the avoid list.
    Replicas,
    /// Pages, or ready-made fingerprints, to a fingerprint file.
    Fingerprints,
    /// Fingerprint file and queries to near pairs.
    Hamming,
    /// As [`JobKind::Replicas`], with similar pages by signatures.
    Signatures,
    /// Pages to duplicates, near-duplicates and where they occur.
    Study,
    /// As [`JobKind::Replicas`], of the live inputs of a state; what the state holds of them is not read again.
    Recrawl,
}

/// Where the result goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Folder, as a local path or a store URL.
    pub url: String,
    /// Virtual partitions, a power of two up to 4096: the most files a table can have.
    pub partitions: u32,
    /// Whether to write the `fprint_docid` table: one row per distinct chunk of each page.
    pub fprint_docid: bool,
}

/// Settings that do not change the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Bytes of input per work item, at least 65536.
    pub shard_bytes: u64,
    /// Bytes of memory a process may use, by estimate; 0 sets no limit.
    pub memory_bytes: u64,
    /// Folder on a local disk for rows that do not fit in memory; empty for the system's temporary folder.
    pub spill: String,
    /// Whether to record finished work items, and not to read again those that an interrupted run recorded.
    pub resume: bool,
    /// Folder on a local disk for these records; empty for the folder of the result.
    pub records: String,
    /// Bytes of files that a process may have in `spill` at once; 0 allows all that is free.
    pub disk_bytes: u64,
}

impl Job {
    /// True if views of one page are looked for.
    pub fn with_views(&self) -> bool {
        let by_chunks = matches!(self.similar.by, Measure::Overlap | Measure::Both);
        self.kind == JobKind::Replicas && by_chunks && self.overlap.views > 0.0
    }

    /// Whether pages are compared by sets of shingles.
    pub fn by_shingles(&self) -> bool {
        self.kind == JobKind::Replicas && self.similar.by == Measure::Minhash
    }
}

impl Default for Job {
    fn default() -> Self {
        Job {
            kind: JobKind::Replicas,
            input: Input::default(),
            links: Links { redirects: true, refresh: true, canonical: false },
            output: Output { url: String::new(), partitions: 16, fprint_docid: false },
            chunks: Chunks { unit: Unit::Lines, count: 1, sliding: false, wrap: 80, bits: 64, min_text: 64 },
            overlap: Overlap {
                min_shared: 1,
                min_resemblance: 0.35,
                min_resemblance_alone: 0.5,
                doubt: 2,
                views: 0.8,
                template_pages: 6,
                max_documents: 1000,
                guard: Guard::Neighbours,
            },
            similar: Similar { by: Measure::Overlap },
            hamming: Hamming { k: 3, guard: Guard::MutualBest },
            simhash: Simhash {
                bits: 64,
                phrase: 3,
                stop_words: "none".into(),
                stemming: "none".into(),
                weights: Weights::Count,
                idf: false,
                min_features: 8,
            },
            signatures: Signatures {
                dims: 5,
                seed: 1,
                stop_words: "none".into(),
                stemming: "none".into(),
                weights: Weights::Count,
                unit_length: false,
                min_terms: 8,
                children: Children::Sum,
                damping: 0.001,
                iterations: 3,
                rp_tolerance: 0.0001,
                hm_tolerance: 0.0001,
                guard: Guard::MutualBest,
                max_pairs: 50_000_000,
            },
            minhash: Minhash {
                shingle: Shingling::Words(5),
                threshold: 0.8,
                permutations: 128,
                bands: 0,
                rows: 0,
                max_documents: 200,
                guard: Guard::Neighbours,
            },
            pairs: Pairs::default(),
            fingerprints: Fingerprints { from: Vec::new(), coder: Coder::EliasFano },
            batch: Batch { fingerprints: String::new(), queries: Vec::new(), groups: false, max_pairs: 1_000_000_000 },
            servers: Servers { min_shared: 10, nearly_all: 0.9, max_hosts: 500 },
            clusters: Clusters {
                merge: MergeCondition::Tolerant,
                single_site: true,
                min_size: 2,
                min_hosts: 2,
                attach: Attach::Nearby,
            },
            keep: Keep {
                prefer: Vec::new(),
                by: KeepBy::Links,
                sticky: String::new(),
                pins: String::new(),
                pins_sha256: String::new(),
                seeds: Vec::new(),
                min_resemblance: 0.5,
                prefix_scope: PrefixScope::Collection,
            },
            url_rules: UrlRules::default(),
            study: Study { min_characters: 450, rest: true, steps: 50, seed: String::new(), reference: String::new() },
            recrawl: Recrawl::default(),
            effort: Effort {
                shard_bytes: 8 << 20,
                memory_bytes: 0,
                spill: String::new(),
                disk_bytes: 0,
                resume: false,
                records: String::new(),
            },
        }
    }
}
