//! Settings of collections, of the copies to keep, and of studies.

use serde::{Deserialize, Serialize};

/// Choice of the copy that is kept among several, and of pages that a crawler visits in any case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeepSettings {
    /// Globs over URLs in order of preference. A copy that matches an earlier glob is preferred to
    /// one that matches a later glob, and both are preferred to all others.
    pub prefer: Vec<String>,
    /// Criterion among equally preferred copies.
    pub by: KeepBy,
    /// Folder of an earlier result. Copies that it kept win against all other equally preferred
    /// copies. Empty for none.
    #[serde(default)]
    pub sticky: String,
    /// File with copies that win against all others. Empty for none.
    #[serde(default)]
    pub pins: String,
    /// SHA-256 of the content of `pins`, in hexadecimal. Set when the job is created.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pins_sha256: String,
    /// Start URLs of a crawler, which it visits regardless of their copies.
    pub seeds: Vec<String>,
    /// Minimum fraction, 0 to 1, of a skipped page's text that the page kept in its place must
    /// contain. A page below it, or in another language, is also kept. With 0 neither condition
    /// applies.
    pub min_resemblance: f64,
}

/// Criterion that decides which of several copies is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepBy {
    /// Links from other hosts, to the page and then to its host.
    Links,
    /// Latest fetch time.
    Newest,
    /// Earliest known fetch time.
    Oldest,
    /// Longest text.
    Longest,
    /// Shortest URL.
    ShortestUrl,
    /// Smallest doc id.
    SmallestId,
}

impl KeepBy {
    /// Returns the name in settings and in the column `avoid.lost_by`.
    pub fn name(self) -> &'static str {
        ["links", "newest", "oldest", "longest", "shortest-url", "smallest-id"][self as usize]
    }
}

/// Conditions for overlapping servers (\[SGM98\] section 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Servers {
    /// T: minimum number of pages that two overlapping servers share. Fewer shared pages are common
    /// to many servers.
    pub min_shared: u32,
    /// Fraction of the smaller server's pages, 0 to 1, that counts as nearly all of them and makes
    /// two servers aliases or mirrors.
    pub nearly_all: f64,
    /// Maximum number of hosts of a page that pairs servers. It limits the number of pairs.
    pub max_hosts: u32,
}

impl Default for Servers {
    fn default() -> Self {
        Servers { min_shared: 10, nearly_all: 0.9, max_hosts: 500 }
    }
}

/// Condition for joining two trivial clusters (\[CSG00\] sections 3.1 and 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeCondition {
    /// |Ri| = s = d = |Rj|.
    Exact,
    /// |Ri| = s >= d = |Rj|: mirrors that link to pages they do not carry.
    Extended,
    /// 3s >= |Ri|, 3d >= |Rj|, and neither is 1: versions that lack pages, have some of them twice,
    /// or are split into parts.
    Tolerant,
}

/// Pages that are attached to tolerant collections in addition to the pages that have copies
/// (`clusters::nearby`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttachmentRule {
    /// No pages.
    None,
    /// Pages between pages of the collection.
    BreakPoints,
    /// Pages that are linked mostly with pages of the collection, in either direction, and pages
    /// with a copy in the same position of another collection.
    Nearby,
}

/// Growth of similar pages to collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSettings {
    /// Condition for joining two trivial clusters.
    pub merge: MergeCondition,
    /// True if a collection must be on one host.
    pub single_site: bool,
    /// Minimum number of pages of a reported collection.
    pub min_size: u32,
    /// Minimum number of hosts of a tolerant similar cluster. With 1, copies within one host count
    /// as mirrors, too.
    pub min_hosts: u32,
    /// Pages attached to tolerant collections in addition to pages that have copies.
    pub attach: AttachmentRule,
}

/// Parameters of a study of duplicates (\[PBZ06\]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Study {
    /// Minimum number of characters of a document's text, exclusive (section 4 of the paper).
    #[serde(skip)]
    pub min_characters: u32,
    /// True if one or two last sentences also form a shingle paragraph. By the letter of Definition
    /// 1 they do not, and then texts that differ only there would be duplicates.
    #[serde(skip)]
    pub rest: bool,
    /// m: number of subcollections, and of steps of the algorithm.
    pub steps: u32,
    /// URL of the page from which a crawl is simulated. Empty for a page of the largest strongly
    /// connected component.
    pub seed: String,
    /// Folder of an earlier study, whose growth is used to estimate the duplicates of this one.
    /// Empty for no estimate.
    pub reference: String,
}

impl Default for Study {
    fn default() -> Self {
        Study { min_characters: 450, rest: true, steps: 50, seed: String::new(), reference: String::new() }
    }
}
