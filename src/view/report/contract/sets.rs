//! What a report says of sets of similar pages, and of two pages side by side.

use std::collections::BTreeMap;

use serde::Serialize;

use webtwin_base::ids::as_text;

/// Sets of similar pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sets {
    /// All sets.
    pub all: u64,
    /// Sets whose links were looked at: all, or a sample by their ids if they are too many to hold.
    pub looked_at: u64,
    /// Pairs of pages by measure.
    pub pairs: BTreeMap<String, u64>,
    /// The sets with the weakest links, weakest first; then the largest.
    pub shown: Vec<PageSet>,
    /// Of these, how many are shown for their weak links.
    pub weakest: u64,
}

/// A set of similar pages: a trivial cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageSet {
    /// The cluster.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Its pages.
    pub pages: u64,
    /// Hosts of the members that are shown.
    pub hosts: u64,
    /// Members: those that stay, the ends of the weakest links, then others, by id.
    pub members: Vec<Member>,
    /// Links of a maximum spanning tree, weakest first: all of them if all members are shown, the weakest otherwise.
    pub links: Vec<Link>,
}

/// A page of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The page.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Its URL.
    pub url: String,
    /// Its title; empty if it has none.
    pub title: String,
    /// Its host.
    pub host: String,
    /// Its role, as in the table `clusters`.
    pub role: String,
    /// Length of its text, in bytes.
    pub text_bytes: u64,
    /// Chunks of its text.
    pub chunks: u64,
}

/// A link of the spanning tree of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Number of a member of those shown.
    pub a: usize,
    /// Number of another.
    pub b: usize,
    /// How alike they are.
    pub by: By,
    /// Pages on either side of it: without this pair, and others as weak, the set falls apart into these.
    pub sides: [u64; 2],
}

/// A pair of the table `pairs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct By {
    /// The measure.
    pub measure: Measure,
    /// As the table says.
    pub value: u32,
}

/// A measure of similarity, as the table `pairs` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Equal text.
    Exact,
    /// Views of one page: resemblance of their own chunks, in millionths.
    Views,
    /// Notices that there is nothing: resemblance of all chunks, in millionths.
    Placeholder,
    /// One page calls the other canonical: resemblance of all chunks, in millionths.
    Declared,
    /// Chunks shared.
    Overlap,
    /// Bits in which simhashes differ.
    Hamming,
    /// Distance of signatures, in billionths.
    Signatures,
    /// Resemblance of sets of shingles, in millionths.
    Minhash,
    /// What something else has found: higher for pages that are more alike.
    Given,
    /// Agreement of links and texts of pages in mirrored collections, in millionths.
    Context,
}

impl Measure {
    /// The measure that the column `pairs.measure` names so.
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

/// Pairs of pages, looked at closely.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Compare {
    /// The pairs.
    pub shown: Vec<Compared>,
}

/// Two pages side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Why this pair is shown, in words.
    pub why: String,
    /// The two pages.
    pub pages: [Member; 2],
    /// Whether they are in one set.
    pub together: bool,
    /// Whether their texts are equal.
    pub same_text: bool,
    /// Bits in which their simhashes differ, if both have one.
    pub bits: Option<u32>,
    /// The way from one to the other along the spanning tree of their set; empty if they are apart or it was not looked at.
    pub chain: Vec<Step>,
    /// Chunks that are on both; none if the texts could not be read again.
    pub shared: Option<Shared>,
    /// The texts side by side.
    pub diff: Vec<Row>,
    /// Why the texts are not there, if they are not.
    pub unread: String,
}

/// A step of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The page that it leads to.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Its URL; empty if it was not looked up.
    pub url: String,
    /// Its host, as above.
    pub host: String,
    /// How alike that page is to the one before.
    pub by: By,
}

/// Chunks on two pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shared {
    /// Distinct chunks on both.
    pub both: u64,
    /// Distinct chunks of each.
    pub of: [u64; 2],
    /// Some of those on both, in the order of the first page.
    pub some: Vec<Chunk>,
}

/// A chunk on both pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chunk {
    /// Its text, cut short.
    pub text: String,
    /// Pages of the crawl that have it; none if the result has no table `fprint_docid`.
    pub pages: Option<u64>,
}

/// A row of two texts side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Row {
    /// A line of both.
    Same(String),
    /// Equal lines that are left out.
    Equal(u64),
    /// Lines that are not shown because there are too many.
    More(u64),
    /// A line of one that became a line of the other; one may be missing.
    Changed {
        /// Of the first page.
        left: Option<Vec<Words>>,
        /// Of the second.
        right: Option<Vec<Words>>,
    },
}

/// Words of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Words {
    /// The words, with what is between them.
    pub text: String,
    /// Whether the other line lacks them.
    pub changed: bool,
}
