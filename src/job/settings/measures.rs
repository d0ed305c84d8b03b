//! What pages are compared by: chunks, simhashes, signatures, shingles; and which similar pairs may join clusters.

use serde::{Deserialize, Serialize};

use crate::as_text;
use crate::shingling::Shingling;

/// How F, a file of fingerprints, is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Ready-made fingerprints to use instead of those of a crawl's pages; empty for a crawl.
    pub from: Vec<String>,
}

/// The batch of queries that a fingerprint file is joined with (\[MJS07\] section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// F: folder of a fingerprint file.
    pub fingerprints: String,
    /// Q: where the queries are; empty to join F with itself.
    pub queries: Vec<String>,
    /// Folders of the results that have read the pages of F, the newest last.
    #[serde(default)]
    pub results: Vec<String>,
    /// Whether to write documents by group instead of pair by pair.
    pub groups: bool,
    /// Pairs above which a run is refused, once they are counted; none is made beyond them.
    pub max_pairs: u64,
}

/// The unit that chunks consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// The whole text is one unit.
    Document,
    /// Lines, wrapped at `wrap` columns.
    Lines,
    /// Sentences, which end at a full stop or after 150 characters (\[PBZ06\] section 3).
    Sentences,
    /// Paragraphs: text between empty lines.
    Paragraphs,
    /// Words, separated by white space.
    Words,
    /// Three sentences without overlap (\[PBZ06\] Def. 1).
    ShingleParagraphs,
}

/// How text is cut in chunks; together a recipe with a name ([`Chunks::recipe`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunks {
    /// The unit that chunks consist of.
    pub unit: Unit,
    /// Units per chunk; always 1 for documents and shingle paragraphs.
    pub count: u32,
    /// Whether a chunk starts at every unit, instead of every `count` units.
    pub sliding: bool,
    /// Columns at which lines are wrapped, at least 16; 0 does not wrap. Other units ignore it.
    pub wrap: u32,
    /// Width of a fingerprint in bits: 64, or the papers' 32.
    pub bits: u32,
    /// A page with less text than this, in bytes, has only pages with the same bytes as copies.
    pub min_text: u32,
}

/// A guard against chains: decides which similar pairs may join clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Every similar pair joins clusters, as in \[CSG00\].
    None,
    /// A pair joins clusters only if each page is the other's best match on the other's host.
    MutualBest,
    /// A page joins only through its best pair with the cluster's centre.
    Centre,
    /// Pairs join clusters in order of resemblance, but none that would put neighbours into one cluster: pages of one
    /// host that have the same links there, or both none. Pages of a host that links to nothing are no neighbours.
    #[serde(alias = "auto")]
    Neighbours,
}

impl Guard {
    /// Name in settings and messages.
    pub fn name(self) -> &'static str {
        ["none", "mutual-best", "centre", "neighbours"][self as usize]
    }
}

/// Pairs of pages that are known from elsewhere: similar ones, and those that must not come together, whatever the measure says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// Tables of pairs or labels of similar pages, which are added to those that the measure finds. None by default.
    #[serde(default)]
    pub from: Vec<String>,
    /// SHA-256 of what these hold, in hexadecimal; filled in when the job is made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from_sha256: String,
    /// File of pairs of pages that are never in one trivial cluster. Empty for none.
    pub apart: String,
    /// SHA-256 of what `apart` holds, in hexadecimal; filled in when the job is made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub apart_sha256: String,
}

/// Where similar pairs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Pairs that share enough chunks ([`Overlap`]).
    Overlap,
    /// Pairs whose simhashes differ in few bits ([`Hamming`]).
    Hamming,
    /// Pairs of shared chunks, and pairs of simhashes.
    Both,
    /// Pairs whose signatures collide ([`super::Signatures`]).
    Signatures,
    /// Pairs whose sets of shingles resemble each other ([`Minhash`]).
    Minhash,
    /// None but the pairs that are given ([`Pairs::from`]).
    Given,
}

/// By which measure pages are similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Similar {
    /// The measure that yields similar pairs.
    pub by: Measure,
    /// Which similar pairs may join clusters.
    #[serde(default = "Similar::default_guard")]
    pub guard: Guard,
}

impl Similar {
    fn default_guard() -> Guard {
        Guard::Neighbours
    }
}

/// When two simhashes are near (\[MJS07\] section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hamming {
    /// Bits in which the simhashes may differ, below 64.
    pub k: u32,
    /// Which similar pairs may join clusters: [`Guard::None`] or [`Guard::MutualBest`], by `similar.guard`.
    #[serde(skip)]
    pub guard: Guard,
}

impl Default for Hamming {
    fn default() -> Self {
        Hamming { k: 3, guard: Guard::MutualBest }
    }
}

/// When the shingles of two pages resemble each other, and which pages are compared (`minhash`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Minhash {
    /// What the shingles of a text are.
    #[serde(with = "as_text")]
    pub shingle: Shingling,
    /// Least resemblance of similar pages, 0.01 to 1: of the shingles of either page, the fraction that both have.
    pub threshold: f64,
    /// Minima in a signature where `bands` and `rows` are chosen: with 128 a pair at a threshold of 0.8 is found 99 times in 100.
    #[serde(skip)]
    pub permutations: u32,
    /// Bands of a signature; 0 to choose bands and rows by threshold and permutations.
    #[serde(skip)]
    pub bands: u32,
    /// Rows of a band; 0 to choose both.
    #[serde(skip)]
    pub rows: u32,
    /// Of more pages with one key of a band, each is compared with the smallest only, which bounds the work for templates.
    #[serde(skip)]
    pub max_documents: u32,
    /// Which similar pairs may join clusters, by `similar.guard`.
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

/// When two pages share enough chunks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overlap {
    /// T: fewest fingerprints that similar pages share.
    pub min_shared: u32,
    /// Smallest share of the larger page's fingerprints that similar pages share, 0 to 1; 0 turns this off.
    pub min_resemblance: f64,
    /// The same for pages on two hosts with links that are not in collections of one similar cluster, under tolerant growth and the
    /// guard by neighbours; 0 turns this off.
    pub min_resemblance_alone: f64,
    /// Chunks added to those of the larger page for that comparison, so that pages of few chunks must agree better than
    /// long ones.
    #[serde(skip)]
    pub doubt: u32,
    /// Least resemblance of two texts of one host with one title that are views of one page, 0.01 to 1; 0 looks for no views.
    pub views: f64,
    /// A chunk on more pages of one host than this is site furniture and counts nowhere; 0 turns the filter off.
    pub template_pages: u32,
    /// A chunk on more pages of the crawl than this does not count; 0 turns the limit off.
    pub max_documents: u32,
    /// Which similar pairs may join clusters, by `similar.guard`.
    #[serde(skip)]
    pub guard: Guard,
}

impl Default for Overlap {
    fn default() -> Self {
        Overlap {
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

impl Overlap {
    /// What the papers count as similar: T shared chunks of any kind, however long the pages are.
    pub const fn of_papers(min_shared: u32) -> Overlap {
        Overlap {
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
