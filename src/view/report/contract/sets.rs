//! Sets of similar pages, and pages side by side, in a report.

use std::collections::BTreeMap;

use serde::Serialize;

use webtwin_base::ids::as_text;

/// Sets of similar pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sets {
    /// Number of all sets.
    pub all: u64,
    /// Number of sets whose links were examined: all, or a sample by id if they are too many to
    /// hold in memory.
    pub looked_at: u64,
    /// Number of pairs of pages by measure.
    pub pairs: BTreeMap<String, u64>,
    /// Sets with the weakest links, the weakest first; then the largest sets.
    pub shown: Vec<PageSet>,
    /// Number of these sets that are included for their weak links.
    pub weakest: u64,
}

/// Set of similar pages: a trivial cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageSet {
    /// Id of the cluster.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Number of pages.
    pub pages: u64,
    /// Number of hosts of the members in `members`.
    pub hosts: u64,
    /// Members: first the kept ones, then the ends of the weakest links, then others by id.
    pub members: Vec<Member>,
    /// Links of a maximum spanning tree, the weakest first: all links if `members` has all members,
    /// else the weakest.
    pub links: Vec<Link>,
}

/// Page of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Doc id of the page.
    #[serde(with = "as_text")]
    pub id: u64,
    /// URL of the page.
    pub url: String,
    /// Title of the page; empty if it has none.
    pub title: String,
    /// Host of the page.
    pub host: String,
    /// Role of the page, as in the table `clusters`.
    pub role: String,
    /// Length of its text, in bytes.
    pub text_bytes: u64,
    /// Number of chunks of its text.
    pub chunks: u64,
}

/// Link of the spanning tree of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Index of one end in the set's `members`.
    pub a: usize,
    /// Index of the other end in `members`.
    pub b: usize,
    /// Similarity of the two pages.
    pub by: By,
    /// Number of pages on either side: without this pair, and all that are as weak, the set is
    /// split into these.
    pub sides: [u64; 2],
}

/// Measure and value of a pair of the table `pairs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct By {
    /// Measure of similarity.
    pub measure: Measure,
    /// Value in the table.
    pub value: u32,
}

/// Measure of similarity, as named in the table `pairs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Equal text.
    Exact,
    /// Views of one page: resemblance of their own chunks, in millionths.
    Views,
    /// Placeholder pages for missing content: resemblance of all chunks, in millionths.
    Placeholder,
    /// One page declares the other as canonical: resemblance of all chunks, in millionths.
    Declared,
    /// Number of shared chunks.
    Overlap,
    /// Hamming distance of the simhashes.
    Hamming,
    /// Distance of signatures, in billionths.
    Signatures,
    /// Resemblance of sets of shingles, in millionths.
    Minhash,
    /// Value given by an external source: higher for more similar pages.
    Given,
    /// Agreement of links and texts of pages in mirrored collections, in millionths.
    Context,
}

impl Measure {
    /// Parses a value of the column `pairs.measure`.
    pub fn parse(word: &str) -> Option<Measure> {
        Some(match word {
            "exact" => Measure::Exact,
            "views" => Measure::Views,
            "placeholder" => Measure::Placeholder,
            "declared" => Measure::Declared,
            "overlap" => Measure::Overlap,
            "hamming" => Measure::Hamming,
            "signatures" => Measure::Signatures,
            "minhash" => Measure::Minhash,
            "given" => Measure::Given,
            "context" => Measure::Context,
            _ => return None,
        })
    }
}

/// Pairs of pages side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Compare {
    /// The pairs.
    pub shown: Vec<Compared>,
}

/// Two pages side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Reason why this pair was selected.
    pub why: String,
    /// The two pages.
    pub pages: [Member; 2],
    /// True if they are in one set.
    pub together: bool,
    /// True if their texts are equal.
    pub same_text: bool,
    /// Hamming distance of the simhashes, if both have one.
    pub bits: Option<u32>,
    /// Path from one page to the other along the spanning tree of their set. Empty if they are in
    /// different sets or the set was not examined.
    pub chain: Vec<Step>,
    /// Common chunks; `None` if the texts could not be read again.
    pub shared: Option<Shared>,
    /// The texts side by side.
    pub diff: Vec<Row>,
    /// Reason why the texts are missing, if they are.
    pub unread: String,
}

/// Step of a path between two pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Page that the step leads to.
    #[serde(with = "as_text")]
    pub id: u64,
    /// URL of that page; empty if it was not looked up.
    pub url: String,
    /// Host of that page; empty if it was not looked up.
    pub host: String,
    /// Similarity of that page and the previous one.
    pub by: By,
}

/// Chunks of two pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shared {
    /// Number of distinct chunks on both pages.
    pub both: u64,
    /// Number of distinct chunks of each page.
    pub of: [u64; 2],
    /// First common chunks, in the order of the first page.
    pub some: Vec<Chunk>,
}

/// Chunk that is on both pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chunk {
    /// Shortened text of the chunk.
    pub text: String,
    /// Number of pages of the crawl with the chunk. `None` if the result has no table
    /// `fprint_docid`.
    pub pages: Option<u64>,
}

/// Row of two texts side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Row {
    /// Line of both texts.
    Same(String),
    /// Number of equal lines that are omitted.
    Equal(u64),
    /// Number of rows that are omitted because there are too many.
    More(u64),
    /// Line of one text that corresponds to a different line of the other. One of the two may be
    /// missing.
    Changed {
        /// Line of the first page.
        left: Option<Vec<Words>>,
        /// Line of the second page.
        right: Option<Vec<Words>>,
    },
}

/// Words of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Words {
    /// The words with the characters between them.
    pub text: String,
    /// True if the other line lacks them.
    pub changed: bool,
}
