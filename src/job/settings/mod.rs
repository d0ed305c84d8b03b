//! All settings of a job with their defaults. A setting changes either *the result* or only *the
//! effort*.
//!
//! The defaults are defined only here; a test compares `docs/settings.md` with them. A field that
//! serde skips is not a setting. It is an option of the command line, or a parameter of a step with
//! the same value in all jobs, which only tests change.

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
pub use former::FORMER_SETTINGS;
pub use input::*;
pub use measures::*;
pub use recrawl::*;
use serde::{Deserialize, Serialize};
pub use signatures::*;

/// Job with all settings resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Kind of result that the job computes.
    pub kind: JobKind,
    /// Location and reading of the crawl.
    pub input: InputSettings,
    /// URLs that lead to other pages, so that links to them count as links to those pages.
    pub links: LinkSettings,
    /// Location of the result.
    pub output: OutputSettings,
    /// Division of text into chunks.
    pub chunks: ChunkSettings,
    /// Measure of similarity.
    pub similar: SimilarityMeasures,
    /// Condition for pages that share enough chunks.
    pub overlap: OverlapSettings,
    /// Condition for near simhashes.
    pub hamming: Hamming,
    /// Definition of a page's simhash.
    pub simhash: Simhash,
    /// Creation of a fingerprint file.
    pub fingerprints: Fingerprints,
    /// Definition of a page's signatures, and condition for their collision.
    pub signatures: Signatures,
    /// Condition for resembling sets of shingles.
    pub minhash: Minhash,
    /// Externally known pairs of pages.
    #[serde(default)]
    pub pairs: PairSettings,
    /// Fingerprints that are joined with each other.
    pub batch: BatchSettings,
    /// Conditions for overlapping servers.
    #[serde(skip)]
    pub servers: Servers,
    /// Growth of similar pages to collections.
    pub clusters: ClusterSettings,
    /// Choice of the copy that is kept.
    pub keep: KeepSettings,
    /// Parameters of a study of duplicates.
    pub study: Study,
    /// State of a scheduled job, and comparison of the results of two crawls.
    #[serde(default)]
    pub recrawl: Recrawl,
    /// Settings that change the amount of work done at a time, but never the result.
    pub effort: Effort,
}

/// Kind of result that a job computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// From pages to similar pages, trivial clusters, collections and the avoid list.
    Replicas,
    /// From pages, or existing fingerprints, to a fingerprint file.
    Fingerprints,
    /// From a fingerprint file and queries to near pairs.
    Hamming,
    /// Result of [`JobKind::Replicas`] for a new crawl and the copies that earlier crawls have of
    /// its pages. Similar pages are found by a fingerprint file.
    Batch,
    /// Result of [`JobKind::Replicas`], with similar pages by signatures.
    Signatures,
    /// From pages to duplicates, near-duplicates and their locations.
    Study,
    /// From tables of labels (`pairs.from`) and of links (`input.urls`) of any graph to similar
    /// clusters.
    Grow,
    /// Result of [`JobKind::Replicas`] for the live inputs of a state. Inputs with records in the
    /// state are not read again.
    Recrawl,
}

/// Location and form of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSettings {
    /// Folder, as a local path or a store URL.
    pub url: String,
    /// Number of virtual partitions, a power of two up to 4096. It is the maximum number of files
    /// of a table.
    pub partitions: u32,
    /// True if the `fprint_docid` table is written, with one row for each distinct chunk of each
    /// page.
    pub fprint_docid: bool,
    /// Approximate size of the parts of larger lists for crawlers, in bytes, at least 4096.
    pub export_bytes: u64,
}

/// Settings that do not change the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Size of the input of a work item in bytes, at least 65536.
    pub shard_bytes: u64,
    /// Maximum estimated memory of a process in bytes. 0 for no limit.
    pub memory_bytes: u64,
    /// Folder on a local disk for rows that do not fit in memory; empty for the system's temporary
    /// folder.
    pub spill: String,
    /// True if records of finished work items are written, and items with records of an interrupted
    /// run are not read again.
    #[serde(skip)]
    pub resume: bool,
    /// Folder on a local disk for these records. Empty for the folder of the result.
    #[serde(skip)]
    pub records: String,
    /// Maximum size of the files of a process in `spill` at a time, in bytes. 0 for all free space.
    pub disk_bytes: u64,
}

impl Job {
    /// Reads the settings of a finished run.
    ///
    /// # Errors
    /// Returns a message that describes the setting that cannot be read, or the former setting
    /// whose value this build does not support.
    pub fn of_run(settings: &serde_json::Value) -> Result<Job, String> {
        if let Some((name, value)) = former::unknown_value(settings) {
            return Err(format!("{name} was {value}, which this build no longer supports"));
        }
        let mut settings = settings.clone();
        if let Some(settings) = settings.as_object_mut() {
            // Results do not depend on these settings.
            settings.remove("recrawl");
        }
        let mut job: Job = serde_json::from_value(settings).map_err(|cause| cause.to_string())?;
        job.settle();
        Ok(job)
    }

    /// Derives the parameters that follow from other settings.
    pub(crate) fn settle(&mut self) {
        let guard = self.similar.guard;
        (self.overlap.guard, self.minhash.guard) = (guard, guard);
        // The other guards need all pairs, but the search for near simhashes and signatures does
        // not produce all of them.
        let nearest_guard = if guard == Guard::None { Guard::None } else { Guard::MutualBest };
        (self.hamming.guard, self.signatures.guard) = (nearest_guard, nearest_guard);
    }

    /// True if the job searches for views of one page.
    pub fn with_views(&self) -> bool {
        let by_chunks = matches!(self.similar.by, Measure::Overlap | Measure::Both);
        self.kind == JobKind::Replicas && by_chunks && self.overlap.views > 0.0
    }

    /// True if pages are compared by sets of shingles.
    pub fn by_shingles(&self) -> bool {
        self.kind == JobKind::Replicas && self.similar.by == Measure::Minhash
    }
}

impl Default for Job {
    fn default() -> Self {
        Job {
            kind: JobKind::Replicas,
            input: InputSettings::default(),
            links: LinkSettings::default(),
            output: OutputSettings { url: String::new(), partitions: 16, fprint_docid: false, export_bytes: 1 << 30 },
            chunks: ChunkSettings { unit: Unit::Lines, count: 1, sliding: false, wrap: 80, bits: 64, min_text: 64 },
            overlap: OverlapSettings::default(),
            similar: SimilarityMeasures { by: Measure::Overlap, guard: Guard::Neighbours },
            hamming: Hamming::default(),
            simhash: Simhash::default(),
            signatures: Signatures::default(),
            minhash: Minhash::default(),
            pairs: PairSettings::default(),
            fingerprints: Fingerprints { from: Vec::new() },
            batch: BatchSettings {
                fingerprints: String::new(),
                queries: Vec::new(),
                results: Vec::new(),
                groups: false,
                max_pairs: 1_000_000_000,
            },
            servers: Servers::default(),
            clusters: ClusterSettings {
                merge: MergeCondition::Tolerant,
                single_site: true,
                min_size: 2,
                min_hosts: 2,
                attach: AttachmentRule::Nearby,
            },
            keep: KeepSettings {
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
