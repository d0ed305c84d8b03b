//! What a report says: `report.json`, of which the HTML page is a function.
//!
//! Ids are strings of decimal digits, as in every JSON of this program. Where a list is the top of a longer one, the number of
//! all stands beside it.

mod corpus;
mod mirrors;
mod parts;
mod run;
mod sets;
mod skip;

use std::collections::BTreeMap;

use serde::Serialize;

pub use corpus::{Cluster, Clusters, Duplicate, Record};
pub use mirrors::{Host, HostPair, Hosts, Mirror, MirrorCopy, Mirrors};
pub use parts::{Bars, Cell, Count, Part, Rows, Tile};
pub use run::{Machine, Rejected, RunFacts, Stage};
pub use sets::{By, Chunk, Compare, Compared, Link, Measure, Member, PageSet, Row, Sets, Shared, Step, Words};
pub use skip::{Export, Prefix, SkipLists, UrlRule};

/// Format of `report.json`.
pub const FORMAT: u32 = 1;

/// A report of one result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Kind of the job: `replicas` or `signatures`.
    pub kind: String,
    /// Digest of the job.
    pub digest: String,
    /// Inputs of the job, as it names them.
    pub inputs: Vec<String>,
    /// What was found, in figures.
    pub overview: Overview,
    /// Collections and their mirrors.
    pub mirrors: Mirrors,
    /// Hosts and what they share.
    pub hosts: Hosts,
    /// Sets of similar pages: trivial clusters.
    pub sets: Sets,
    /// Pairs of pages, looked at closely.
    pub compare: Compare,
    /// What crawlers are given.
    pub skip: SkipLists,
    /// Where the figures come from.
    pub run: RunFacts,
    /// What has changed since an earlier run, and what an evaluation says, where they are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A report of a result that has no pages of its own to look at: a study, fingerprints joined, a comparison of two crawls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outline {
    /// [`FORMAT`].
    pub format: u32,
    /// Kind of the job: `study`, `hamming`, `diff`, `dedup`.
    pub kind: String,
    /// Digest of the job.
    pub digest: String,
    /// Inputs of the job, as it names them; of a comparison both results, the older one first.
    pub inputs: Vec<String>,
    /// What was found.
    pub parts: Vec<Part>,
    /// Duplicates of a corpus, cluster by cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Clusters>,
    /// Where the figures come from.
    pub run: RunFacts,
}

/// Pages and their bytes as fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Amount {
    /// Pages.
    pub pages: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Pages by the number of replicas they have, themselves included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replicas {
    /// For example `5-9`.
    pub replicas: String,
    /// Pages with so many of equal text.
    pub exact: u64,
    /// Pages in sets of so many.
    pub similar: u64,
}

/// What was found, in figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Overview {
    /// Pages kept.
    pub crawl: Amount,
    /// Of these, what a crawler may skip.
    pub skip: Amount,
    /// The same by reason: `exact`, `collection`, `similar`.
    pub by_reason: BTreeMap<String, Amount>,
    /// Records read.
    pub records: u64,
    /// Hosts.
    pub hosts: u64,
    /// Links between the pages.
    pub links: u64,
    /// Sets of two similar pages or more.
    pub sets: u64,
    /// Similar clusters: originals with their mirrors.
    pub originals: u64,
    /// Collections in these.
    pub collections: u64,
    /// Pages in these.
    pub pages_in_collections: u64,
    /// URL prefixes to skip.
    pub prefixes: u64,
    /// Pages by number of replicas, fewest first.
    pub replication: Vec<Replicas>,
    /// Why pages have copies: surplus pages, each once.
    pub surplus: Vec<Count>,
    /// From text to pairs, by the measures that the job used.
    pub text_to_pairs: Vec<Count>,
}
