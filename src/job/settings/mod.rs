//! Every setting of a job, with its default and whether it changes *the answer* or only *the effort*.
//!
//! The defaults are here and nowhere else; a test compares `docs/settings.md` with them. A field that serde skips is no setting
//! but an option of the command line, or a parameter of a step that is the same in all jobs: only tests have other values.

mod clusters;
mod described;
mod features;
mod former;
mod input;
mod measures;
mod recipe_text;
mod recrawl;
mod signatures;

pub use clusters::*;
pub use described::{DESCRIPTIONS, Effect, settings_table};
pub use features::*;
pub use former::FORMER;
pub use input::*;
pub use measures::*;
pub use recrawl::*;
use serde::{Deserialize, Serialize};
pub use signatures::*;

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
    /// Pairs of pages that are known from elsewhere.
    #[serde(default)]
    pub pairs: Pairs,
    /// Which fingerprints are joined with which.
    pub batch: Batch,
    /// When two servers overlap.
    #[serde(skip)]
    pub servers: Servers,
    /// How similar pages grow to collections.
    pub clusters: Clusters,
    /// Which of several copies stays.
    pub keep: Keep,
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
    /// As [`JobKind::Replicas`], of a new crawl and what earlier ones have of it: similar pages by a fingerprint file.
    Batch,
    /// As [`JobKind::Replicas`], with similar pages by signatures.
    Signatures,
    /// Pages to duplicates, near-duplicates and where they occur.
    Study,
    /// Tables of labels (`pairs.from`) and of links (`input.urls`) of any graph to similar clusters.
    Grow,
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
    /// True if finished work items are recorded, and those that an interrupted run recorded are not read again.
    #[serde(skip)]
    pub resume: bool,
    /// Folder on a local disk for these records; empty for the folder of the result.
    #[serde(skip)]
    pub records: String,
    /// Bytes of files that a process may have in `spill` at once; 0 allows all that is free.
    pub disk_bytes: u64,
}

impl Job {
    /// Reads the settings of a finished run.
    ///
    /// # Errors
    /// Says what in them does not read, or which former setting has a value that this build does not have.
    pub fn of_run(settings: &serde_json::Value) -> Result<Job, String> {
        if let Some((name, value)) = former::unknown_value(settings) {
            return Err(format!("{name} was {value}, and is no setting any more"));
        }
        let mut settings = settings.clone();
        if let Some(settings) = settings.as_object_mut() {
            // No result depends on it.
            settings.remove("recrawl");
        }
        let mut job: Job = serde_json::from_value(settings).map_err(|cause| cause.to_string())?;
        job.settle();
        Ok(job)
    }

    /// Applies settings that stand for several parameters.
    pub(crate) fn settle(&mut self) {
        let guard = self.similar.guard;
        (self.overlap.guard, self.minhash.guard) = (guard, guard);
        // Of near simhashes and signatures not all pairs are made, as the other guards need.
        let of_nearest = if guard == Guard::None { Guard::None } else { Guard::MutualBest };
        (self.hamming.guard, self.signatures.guard) = (of_nearest, of_nearest);
    }

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
            links: Links::default(),
            output: Output { url: String::new(), partitions: 16, fprint_docid: false },
            chunks: Chunks { unit: Unit::Lines, count: 1, sliding: false, wrap: 80, bits: 64, min_text: 64 },
            overlap: Overlap::default(),
            similar: Similar { by: Measure::Overlap, guard: Guard::Neighbours },
            hamming: Hamming::default(),
            simhash: Simhash::default(),
            signatures: Signatures::default(),
            minhash: Minhash::default(),
            pairs: Pairs::default(),
            fingerprints: Fingerprints { from: Vec::new() },
            batch: Batch {
                fingerprints: String::new(),
                queries: Vec::new(),
                results: Vec::new(),
                groups: false,
                max_pairs: 1_000_000_000,
            },
            servers: Servers::default(),
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
            },
            study: Study::default(),
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
