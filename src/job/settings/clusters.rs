//! How similar pages grow to collections, which copy stays, which URL rules they make, and what is studied.

use serde::{Deserialize, Serialize};

/// Which of several copies stays, and what else a crawler visits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Keep {
    /// Globs over URLs: copies that match the first stay before those that match the second, and these before all others.
    pub prefer: Vec<String>,
    /// What decides among copies that are preferred alike.
    pub by: KeepBy,
    /// Folder of an earlier result: copies that it kept stay before all others that are preferred alike. Empty for none.
    #[serde(default)]
    pub sticky: String,
    /// File of copies that stay before all others. Empty for none.
    #[serde(default)]
    pub pins: String,
    /// SHA-256 of what `pins` holds, in hexadecimal; filled in when the job is made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pins_sha256: String,
    /// URLs that a crawler starts with: it visits them whatever copies they have.
    pub seeds: Vec<String>,
    /// Minimum fraction, from 0 to 1, of a skipped page's text that the page which stays in its place contains. A page with less,
    /// or in another language, stays, too. With 0 neither counts.
    pub min_resemblance: f64,
}

/// What decides which of several copies stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeepBy {
    /// Links from other hosts: to the page, then to its host.
    Links,
    /// The latest fetch time.
    Newest,
    /// The earliest fetch time that is known.
    Oldest,
    /// The longest text.
    Longest,
    /// The shortest URL.
    ShortestUrl,
    /// The smallest doc id.
    SmallestId,
}

impl KeepBy {
    /// Name in settings and in the column `avoid.lost_by`.
    pub fn name(self) -> &'static str {
        ["links", "newest", "oldest", "longest", "shortest-url", "smallest-id"][self as usize]
    }
}

/// When two servers overlap (\[SGM98\] section 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Servers {
    /// T: fewest pages that two overlapping servers share; fewer are pages that many servers have.
    pub min_shared: u32,
    /// Fraction of the smaller server's pages that counts as nearly all of them, 0 to 1, and makes two servers aliases or mirrors.
    pub nearly_all: f64,
    /// A page on more hosts than this does not pair servers, which bounds the pairs.
    pub max_hosts: u32,
}

impl Default for Servers {
    fn default() -> Self {
        Servers { min_shared: 10, nearly_all: 0.9, max_hosts: 500 }
    }
}

/// When two trivial clusters may be joined (\[CSG00\] sections 3.1 and 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeCondition {
    /// |Ri| = s = d = |Rj|.
    Exact,
    /// |Ri| = s >= d = |Rj|: mirrors that link to pages they do not carry.
    Extended,
    /// 3s >= |Ri|, 3d >= |Rj|, and neither is 1: versions that lack pages, double some, or fall into parts.
    Tolerant,
}

/// What is attached to tolerant collections beyond the pages that have copies (`clusters::nearby`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attach {
    /// Nothing is attached.
    None,
    /// Pages between pages of the collection.
    BreakPoints,
    /// Pages that are linked mostly with pages of the collection, in either direction, and those with a copy in the same place
    /// of another collection.
    Nearby,
}

/// How similar pages grow to collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clusters {
    /// Which trivial clusters may be joined.
    pub merge: MergeCondition,
    /// Whether a collection must stand on one host.
    pub single_site: bool,
    /// Pages of the smallest collection reported.
    pub min_size: u32,
    /// Fewest hosts of a tolerant similar cluster; with 1, copies within one host count as mirrors, too.
    pub min_hosts: u32,
    /// What is attached to tolerant collections beyond pages that have copies.
    pub attach: Attach,
}

/// How duplicates are studied (\[PBZ06\]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Study {
    /// A document has more characters of text than this (section 4 of the paper).
    #[serde(skip)]
    pub min_characters: u32,
    /// True if one or two last sentences form a shingle paragraph, too; by the letter of Definition 1 they do not, so that texts that
    /// differ only there would be duplicates.
    #[serde(skip)]
    pub rest: bool,
    /// m: number of subcollections, and of steps of the algorithm.
    pub steps: u32,
    /// URL of the page from which a crawl is simulated; empty for a page of the largest strongly connected component.
    pub seed: String,
    /// Folder of an earlier study whose growth estimates the duplicates of this one; empty for no such estimate.
    pub reference: String,
}

impl Default for Study {
    fn default() -> Self {
        Study { min_characters: 450, rest: true, steps: 50, seed: String::new(), reference: String::new() }
    }
}
