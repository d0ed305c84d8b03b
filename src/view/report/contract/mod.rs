//! Content of a report: `report.json`, from which the HTML page is generated.
//!
//! Ids are strings of decimal digits, as in all JSON output of this program. A list that is the top
//! of a longer one comes with the length of the longer one.

mod corpus;
mod mirrors;
mod parts;
mod run;
mod sets;
mod skip;

use std::collections::BTreeMap;

use serde::Serialize;

pub use corpus::{Duplicate, ReportedCluster, ReportedClusters, ReportedRecord};
pub use mirrors::{HostPair, HostReport, MirrorCopy, MirrorGroup, MirrorReport, ReportedHost};
pub use parts::{Bars, LabeledCount, TableCell, TablePreview, Tile, ViewPart};
pub use run::{Machine, RejectingInput, RunFacts, Stage};
pub use sets::{
    Compare, DiffRow, DiffWords, MeasuredValue, PageComparison, ReportedMeasure, ReportedStep, SetMember, SetReport,
    SharedText, SharedTexts, SimilarSet, SpanningLink,
};
pub use skip::{ExportFile, ReportedPrefix, SkipReport, UrlRule};

/// Format number of `report.json`.
pub const FORMAT: u32 = 1;

/// Report of a result with pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultReport {
    /// Value of [`FORMAT`].
    pub format: u32,
    /// Kind of the job: `replicas`, `signatures` or `batch`.
    pub kind: String,
    /// Digest of the job.
    pub digest: String,
    /// Inputs of the job, as named in the job.
    pub inputs: Vec<String>,
    /// Main figures.
    pub overview: Overview,
    /// Collections and their mirrors.
    pub mirrors: MirrorReport,
    /// Hosts and the pages that they share.
    pub hosts: HostReport,
    /// Sets of similar pages: trivial clusters.
    pub sets: SetReport,
    /// Pairs of pages side by side.
    pub compare: Compare,
    /// Exports for crawlers.
    pub skip: SkipReport,
    /// Provenance of the figures.
    pub run: RunFacts,
    /// Changes since an earlier run, and the figures of an evaluation, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ViewPart>,
}

/// Report of a result without pages of its own: a study, a join of fingerprints, a comparison of
/// two crawls, a deduplicated corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultOutline {
    /// Value of [`FORMAT`].
    pub format: u32,
    /// Kind of the job: `study`, `hamming`, `diff`, `dedup`.
    pub kind: String,
    /// Digest of the job.
    pub digest: String,
    /// Inputs of the job, as named in the job. For a comparison both results, the older one first.
    pub inputs: Vec<String>,
    /// Findings, one view each.
    pub parts: Vec<ViewPart>,
    /// Duplicates of a corpus by cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ReportedClusters>,
    /// Provenance of the figures.
    pub run: RunFacts,
}

/// Number of pages and their size as fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Amount {
    /// Number of pages.
    pub pages: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Numbers of pages by their number of replicas, including the page itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplicaHistogram {
    /// Range of numbers of replicas, for example `5-9`.
    pub replicas: String,
    /// Number of pages with that many pages of equal text.
    pub exact: u64,
    /// Number of pages in sets of that size.
    pub similar: u64,
}

/// Main figures of a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Overview {
    /// Pages of the crawl.
    pub crawl: Amount,
    /// Pages of the crawl that a crawler may skip.
    pub skip: Amount,
    /// Pages that may be skipped by reason: `exact`, `collection`, `similar`.
    pub by_reason: BTreeMap<String, Amount>,
    /// Number of records read.
    pub records: u64,
    /// Number of hosts.
    pub hosts: u64,
    /// Number of links between the pages.
    pub links: u64,
    /// Number of sets of at least two similar pages.
    pub sets: u64,
    /// Number of similar clusters: originals with their mirrors.
    pub originals: u64,
    /// Number of collections in similar clusters.
    pub collections: u64,
    /// Number of pages in these collections.
    pub pages_in_collections: u64,
    /// Number of URL prefixes to skip.
    pub prefixes: u64,
    /// Pages by number of replicas, in ascending order of that number.
    pub replication: Vec<ReplicaHistogram>,
    /// Surplus pages by the cause of the copy, each page once.
    pub surplus: Vec<LabeledCount>,
    /// Counts of the steps from text to pairs, for the measure of the job.
    pub text_to_pairs: Vec<LabeledCount>,
}
