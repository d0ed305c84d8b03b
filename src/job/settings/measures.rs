//! Settings of measures: chunks, simhashes, signatures and shingles of pages, and the guards of
//! similar pairs.

use serde::{Deserialize, Serialize};

use crate::as_text;
use crate::shingling::Shingling;

/// Creation of F, a file of fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Existing fingerprints to use instead of those of a crawl's pages. Empty for a crawl.
    pub from: Vec<String>,
}

/// Batch of queries that is joined with a fingerprint file (\[MJS07\] section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchSettings {
    /// F: folder of a fingerprint file.
    pub fingerprints: String,
    /// Q: locations of the queries. Empty to join F with itself.
    pub queries: Vec<String>,
    /// Folders of the results whose runs read the pages of F, newest last.
    #[serde(default)]
    pub results: Vec<String>,
    /// True if documents are written by group instead of pair by pair.
    pub groups: bool,
    /// Maximum number of pairs. A run with more is rejected after counting, before any pair is
    /// produced.
    pub max_pairs: u64,
}

/// Unit that chunks consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// The whole text as one unit.
    Document,
    /// Lines, wrapped at `wrap` columns.
    Lines,
    /// Sentences, which end at a full stop or after 150 characters (\[PBZ06\] section 3).
    Sentences,
    /// Paragraphs: text between empty lines.
    Paragraphs,
    /// Words, separated by white space.
    Words,
    /// Three consecutive sentences, without overlap (\[PBZ06\] Def. 1).
    ShingleParagraphs,
}

/// Division of text into chunks. It has a recipe name ([`ChunkSettings::recipe`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkSettings {
    /// Unit that chunks consist of.
    pub unit: Unit,
    /// Number of units per chunk; always 1 for documents and shingle paragraphs.
    pub count: u32,
    /// True if a chunk starts at every unit, instead of every `count` units.
    pub sliding: bool,
    /// Column at which lines are wrapped, at least 16; 0 for no wrapping. Ignored by other units.
    pub wrap: u32,
    /// Width of a fingerprint in bits: 64, or the papers' 32.
    pub bits: u32,
    /// Minimum text of a page in bytes. Shorter pages are copies only of pages with identical
    /// bytes.
    pub min_text: u32,
}

/// Guard against chaining, which decides which similar pairs may join clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Every similar pair joins clusters, as in \[CSG00\].
    None,
    /// A pair joins clusters only if each page is the other's best match on the other's host.
    MutualBest,
    /// A page joins only through its best pair with the cluster's centre.
    Centre,
    /// Pairs join clusters in order of resemblance, except those that would put neighbours into one
    /// cluster. Neighbours are pages of one host that have the same links within the host, or both
    /// have none there. Pages of a host without any links are not neighbours.
    #[serde(alias = "auto")]
    Neighbours,
}

impl Guard {
    /// Returns the name in settings and messages.
    pub fn name(self) -> &'static str {
        ["none", "mutual-best", "centre", "neighbours"][self as usize]
    }
}

/// Externally known pairs of pages: similar pairs, and pairs that must not be joined, regardless of
/// the measure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairSettings {
    /// Tables of pairs or labels of similar pages, in addition to the pairs of the measure. Empty
    /// for none.
    #[serde(default)]
    pub from: Vec<String>,
    /// SHA-256 of the contents of these tables, in hexadecimal. Set when the job is created.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from_sha256: String,
    /// File with pairs of pages that are never in the same trivial cluster. Empty for none.
    pub apart: String,
    /// SHA-256 of the content of `apart`, in hexadecimal. Set when the job is created.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub apart_sha256: String,
}

/// Source of similar pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Pairs that share enough chunks ([`OverlapSettings`]).
    Overlap,
    /// Pairs whose simhashes differ in few bits ([`Hamming`]).
    Hamming,
    /// Both pairs that share chunks and pairs of simhashes.
    Both,
    /// Pairs whose signatures collide ([`super::Signatures`]).
    Signatures,
    /// Pairs whose sets of shingles resemble each other ([`Minhash`]).
    Minhash,
    /// Only the pairs that are given ([`PairSettings::from`]).
    Given,
}

/// Measure of similarity, and guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimilarityMeasures {
    /// Measure that yields similar pairs.
    pub by: Measure,
    /// Guard that decides which similar pairs may join clusters.
    #[serde(default = "SimilarityMeasures::default_guard")]
    pub guard: Guard,
}

impl SimilarityMeasures {
    fn default_guard() -> Guard {
        Guard::Neighbours
    }
}

/// Condition for near simhashes (\[MJS07\] section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hamming {
    /// Maximum number of bits in which the simhashes differ, below 64.
    pub k: u32,
    /// Guard of similar pairs: [`Guard::None`] or [`Guard::MutualBest`], derived from
    /// `similar.guard`.
    #[serde(skip)]
    pub guard: Guard,
}

impl Default for Hamming {
    fn default() -> Self {
        Hamming { k: 3, guard: Guard::MutualBest }
    }
}

/// Condition for resembling sets of shingles, and selection of the pages that are compared
/// (`minhash`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Minhash {
    /// Definition of the shingles of a text.
    #[serde(with = "as_text")]
    pub shingle: Shingling,
    /// Minimum resemblance of similar pages, 0.01 to 1: the fraction of the distinct shingles of
    /// two pages that both have.
    pub threshold: f64,
    /// Number of minima in a signature, if `bands` and `rows` are chosen automatically. With 128, a
    /// pair at a threshold of 0.8 is found with a probability of 99 percent.
    #[serde(skip)]
    pub permutations: u32,
    /// Number of bands of a signature. 0 to choose bands and rows by threshold and permutations.
    #[serde(skip)]
    pub bands: u32,
    /// Number of rows of a band. 0 to choose both.
    #[serde(skip)]
    pub rows: u32,
    /// Maximum number of pages with the same key of a band that are all compared with each other.
    /// Of more pages, each is compared only with the smallest, which bounds the work for templates.
    #[serde(skip)]
    pub max_documents: u32,
    /// Guard of similar pairs, derived from `similar.guard`.
    #[serde(skip)]
    pub guard: Guard,
}

impl Default for Minhash {
    fn default() -> Self {
        Minhash {
            shingle: Shingling::Words(5),
            threshold: 0.8,
            permutations: 128,
            bands: 0,
            rows: 0,
            max_documents: 200,
            guard: Guard::Neighbours,
        }
    }
}

/// Condition for pages that share enough chunks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverlapSettings {
    /// T: minimum number of fingerprints that similar pages share.
    pub min_shared: u32,
    /// Minimum number of shared fingerprints as a fraction of those of the larger page, 0 to 1. 0
    /// disables the condition.
    pub min_resemblance: f64,
    /// Minimum fraction as in `min_resemblance`, for pages on two hosts with links that are not in
    /// collections of one similar cluster. Applies to tolerant growth with the guard by neighbours.
    /// 0 disables the condition.
    pub min_resemblance_alone: f64,
    /// Number of chunks added to those of the larger page for the resemblance, so that pages of few
    /// chunks must agree better than long ones.
    #[serde(skip)]
    pub doubt: u32,
    /// Minimum resemblance of two texts with the same title on one host that are views of one page,
    /// 0.01 to 1. 0 disables the search for views.
    pub views: f64,
    /// Maximum number of pages of one host on which a chunk counts. A more frequent chunk is
    /// boilerplate of the site and is ignored everywhere. 0 disables the filter.
    pub template_pages: u32,
    /// Maximum number of pages of the crawl on which a chunk counts. 0 disables the limit.
    pub max_documents: u32,
    /// Guard of similar pairs, derived from `similar.guard`.
    #[serde(skip)]
    pub guard: Guard,
}

impl Default for OverlapSettings {
    fn default() -> Self {
        OverlapSettings {
            min_shared: 1,
            min_resemblance: 0.35,
            min_resemblance_alone: 0.5,
            doubt: 2,
            views: 0.8,
            template_pages: 6,
            max_documents: 1000,
            guard: Guard::Neighbours,
        }
    }
}

impl OverlapSettings {
    /// Returns the papers' condition: T shared chunks of any kind, regardless of the lengths of the
    /// pages.
    pub const fn of_papers(min_shared: u32) -> OverlapSettings {
        OverlapSettings {
            min_shared,
            min_resemblance: 0.0,
            min_resemblance_alone: 0.0,
            doubt: 0,
            views: 0.0,
            template_pages: 0,
            max_documents: 0,
            guard: Guard::None,
        }
    }
}
