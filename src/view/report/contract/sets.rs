//! Sets of similar pages, and pages side by side, in a report.

use std::collections::BTreeMap;

use serde::Serialize;

use webtwin_base::ids::as_text;

/// Sets of similar pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SetReport {
    /// Number of all sets.
    pub all: u64,
    /// Number of sets whose links were examined: all, or a sample by id if they are too many to
    /// hold in memory.
    pub looked_at: u64,
    /// Number of pairs of pages by measure.
    pub pairs: BTreeMap<String, u64>,
    /// Sets with the weakest links, the weakest first; then the largest sets.
    pub shown: Vec<SimilarSet>,
    /// Number of these sets that are included for their weak links.
    pub weakest: u64,
}

/// Set of similar pages: a trivial cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimilarSet {
    /// Id of the cluster.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Number of pages.
    pub pages: u64,
    /// Number of hosts of the members in `members`.
    pub hosts: u64,
    /// Members: first the kept ones, then the ends of the weakest links, then others by id.
    pub members: Vec<SetMember>,
    /// Links of a maximum spanning tree, the weakest first: all links if `members` has all members,
    /// else the weakest.
    pub links: Vec<SpanningLink>,
}

/// Page of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetMember {
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
pub struct SpanningLink {
    /// Index of one end in the set's `members`.
    pub a: usize,
    /// Index of the other end in `members`.
    pub b: usize,
    /// Similarity of the two pages.
    pub by: MeasuredValue,
    /// Number of pages on either side: without this pair, and all that are as weak, the set is
    /// split into these.
    pub sides: [u64; 2],
}

/// Measure and value of a pair of the table `pairs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MeasuredValue {
    /// Measure of similarity.
    pub measure: ReportedMeasure,
    /// Value in the table.
    pub value: u32,
}

/// Measure of similarity, as named in the table `pairs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedMeasure {
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

impl ReportedMeasure {
    /// Parses a value of the column `pairs.measure`.
    pub fn parse(word: &str) -> Option<ReportedMeasure> {
        Some(match word {
            "exact" => ReportedMeasure::Exact,
            "views" => ReportedMeasure::Views,
            "placeholder" => ReportedMeasure::Placeholder,
            "declared" => ReportedMeasure::Declared,
            "overlap" => ReportedMeasure::Overlap,
            "hamming" => ReportedMeasure::Hamming,
            "signatures" => ReportedMeasure::Signatures,
            "minhash" => ReportedMeasure::Minhash,
            "given" => ReportedMeasure::Given,
            "context" => ReportedMeasure::Context,
            _ => return None,
        })
    }
}

/// Pairs of pages side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Compare {
    /// The pairs.
    pub shown: Vec<PageComparison>,
}

/// Two pages side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageComparison {
    /// Reason why this pair was selected.
    pub why: String,
    /// The two pages.
    pub pages: [SetMember; 2],
    /// True if they are in one set.
    pub together: bool,
    /// True if their texts are equal.
    pub same_text: bool,
    /// Hamming distance of the simhashes, if both have one.
    pub bits: Option<u32>,
    /// Path from one page to the other along the spanning tree of their set. Empty if they are in
    /// different sets or the set was not examined.
    pub chain: Vec<ReportedStep>,
    /// Common chunks; `None` if the texts could not be read again.
    pub shared: Option<SharedTexts>,
    /// The texts side by side.
    pub diff: Vec<DiffRow>,
    /// Reason why the texts are missing, if they are.
    pub unread: String,
}

/// Step of a path between two pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedStep {
    /// Page that the step leads to.
    #[serde(with = "as_text")]
    pub id: u64,
    /// URL of that page; empty if it was not looked up.
    pub url: String,
    /// Host of that page; empty if it was not looked up.
    pub host: String,
    /// Similarity of that page and the previous one.
    pub by: MeasuredValue,
}

/// Chunks of two pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedTexts {
    /// Number of distinct chunks on both pages.
    pub both: u64,
    /// Number of distinct chunks of each page.
    pub of: [u64; 2],
    /// First common chunks, in the order of the first page.
    pub some: Vec<SharedText>,
}

/// Chunk that is on both pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedText {
    /// Shortened text of the chunk.
    pub text: String,
    /// Number of pages of the crawl with the chunk. `None` if the result has no table
    /// `fprint_docid`.
    pub pages: Option<u64>,
}

/// Row of two texts side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffRow {
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
        left: Option<Vec<DiffWords>>,
        /// Line of the second page.
        right: Option<Vec<DiffWords>>,
    },
}

/// Words of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffWords {
    /// The words with the characters between them.
    pub text: String,
    /// True if the other line lacks them.
    pub changed: bool,
}
