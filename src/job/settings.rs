//! Every setting of a job, with its default and whether it changes *the answer* or only *the effort*.
//!
//! The defaults stand here and nowhere else; `jobs/README.md` is checked against them by a test.

use serde::{Deserialize, Serialize};

use crate::hamming::coding::Coder;
use crate::pages::record::Limits;

/// A job with every setting resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What is computed.
    pub kind: Kind,
    /// Where the crawl is and how it is read.
    pub input: Input,
    /// Where the result goes.
    pub output: Output,
    /// How text is cut in chunks.
    pub chunks: Chunks,
    /// By which measure pages are similar.
    pub similar: Similar,
    /// When two pages share enough chunks.
    pub overlap: Overlap,
    /// When two simhashes are near.
    pub hamming: Hamming,
    /// What a page's simhash is made of.
    pub simhash: Simhash,
    /// How a fingerprint file is made.
    pub fingerprints: Fingerprints,
    /// What a page's signatures are, and when they collide.
    pub signatures: Signatures,
    /// What is joined with what.
    pub batch: Batch,
    /// When two servers overlap.
    pub servers: Servers,
    /// How similar pages grow to collections.
    pub clusters: Clusters,
    /// How duplicates are studied.
    pub study: Study,
    /// Settings that change how much work is done at once, never the answer.
    pub effort: Effort,
}

/// How F, a file of fingerprints, is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Ready-made fingerprints, instead of those of the pages of a crawl.
    pub from: Vec<String>,
    /// How they are written.
    pub coder: Coder,
}

/// The batch of queries that a fingerprint file is joined with (\[MJS07\] section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// F: folder of a fingerprint file.
    pub fingerprints: String,
    /// Q: where the queries are; none for F with itself.
    pub queries: Vec<String>,
    /// Whether documents are told by group, instead of pair by pair.
    pub groups: bool,
    /// Pairs above which a run is refused, once they are counted; none is made beyond them.
    pub max_pairs: u64,
}

/// What a job computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Pages to similar pages, trivial clusters, collections and the avoid list.
    Replicas,
    /// Pages, or ready-made fingerprints, to a fingerprint file.
    Fingerprints,
    /// Fingerprint file and queries to near pairs.
    Hamming,
    /// As [`Kind::Replicas`], with similar pages by signatures.
    Signatures,
    /// Pages to duplicates, near-duplicates and where they occur.
    Study,
}

/// Where the crawl is and how it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// URLs, paths, globs, `@LIST` files, or one `synth://` URL.
    pub urls: Vec<String>,
    /// URL under which the files of a directory of HTML are taken to stand.
    pub base: String,
    /// Largest share of bad records in one file.
    pub max_bad: f64,
    /// Field names of JSONL and Parquet rows, first match wins.
    pub fields: Fields,
    /// Bounds on a single record.
    pub limits: Limits,
}

/// Field or column names of JSONL and Parquet rows; of each list the first one present counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    /// The page's URL.
    pub url: Vec<String>,
    /// Its HTML.
    pub html: Vec<String>,
    /// Its text, where there is no HTML.
    pub text: Vec<String>,
    /// When it was fetched.
    pub time: Vec<String>,
}

impl Default for Fields {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Fields {
            url: names(&["url", "uri"]),
            html: names(&["html"]),
            text: names(&["text", "content"]),
            time: names(&["fetch_time", "date", "timestamp"]),
        }
    }
}

/// Where the result goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Folder, as a path or a store URL.
    pub url: String,
    /// Virtual partitions, a power of two; each table has at most one file a partition.
    pub partitions: u32,
    /// Whether the `fprint_docid` table is written; it has a row for every chunk of every page.
    pub fprint_docid: bool,
}

/// What a chunk is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// The whole text.
    Document,
    /// Lines of text.
    Lines,
    /// Sentences: up to a full stop, or 150 characters (\[PBZ06\] section 3).
    Sentences,
    /// Paragraphs: text between empty lines.
    Paragraphs,
    /// Words between white space.
    Words,
    /// Three sentences without overlap (\[PBZ06\] Def. 1).
    ShingleParagraphs,
}

/// How text is cut in chunks; together a named recipe, see [`crate::chunks::Recipe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunks {
    /// What is counted.
    pub unit: Unit,
    /// Units a chunk; for documents and shingle paragraphs it has no meaning and is 1.
    pub count: u32,
    /// Whether a chunk starts at every unit, instead of every `count` units.
    pub sliding: bool,
    /// Columns at which lines are wrapped before they are counted; 0 leaves them as they are. Other units have no columns.
    pub wrap: u32,
    /// Width of a fingerprint: 64, or the papers' 32.
    pub bits: u32,
    /// A page with less text than this, in bytes, says too little: only pages of the same bytes are its copies.
    pub min_text: u32,
}

/// What keeps single-link clusters from chaining.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Every similar pair joins its clusters, as in \[CSG00\].
    None,
    /// A pair joins only if each page is the other's best match on the other's host.
    MutualBest,
    /// A page joins only through its best pair with the cluster's centre.
    Centre,
    /// Pairs join in order of resemblance, but none that would put neighbours in one cluster: pages of one host that link to
    /// the same pages there, or both to none.
    Neighbours,
}

/// When two servers overlap (\[SGM98\] section 1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Servers {
    /// T: pages that two servers must share.
    pub min_shared: u32,
    /// The part of the smaller server's pages that is nearly all of them.
    pub nearly_all: f64,
    /// A page on more hosts than this pairs no servers.
    pub max_hosts: u32,
}

/// Where similar pairs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Shared chunks ([`Overlap`]).
    Overlap,
    /// Simhashes within a few bits ([`Hamming`]).
    Hamming,
    /// Pairs of either.
    Both,
    /// Colliding signatures ([`Signatures`]).
    Signatures,
}

/// By which measure pages are similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Similar {
    /// The measure.
    pub by: Measure,
}

/// When two simhashes are near (\[MJS07\] section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hamming {
    /// Bits in which they may differ.
    pub k: u32,
    /// What keeps clusters from chaining.
    pub guard: Guard,
}

/// How the weight of a feature grows with the times it stands on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// It is that number.
    Count,
    /// It is 1 + log2 of that number.
    Log,
    /// It is 1.
    Once,
}

/// What a page's simhash is made of; together a named recipe, see [`crate::hamming::recipe::Recipe`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simhash {
    /// f: width of a simhash, 1 to 64; 0 for no simhash at all.
    pub bits: u32,
    /// Terms a feature: 1 for single terms, more for phrases.
    pub phrase: u32,
    /// Language whose stop words do not count, or `none`.
    pub stop_words: String,
    /// Language by which words are stemmed, or `none`.
    pub stemming: String,
    /// How the weight of a feature grows with its count.
    pub weights: Weights,
    /// Whether features weigh less the more pages of the crawl they are on.
    pub idf: bool,
    /// A page with fewer features says too little to have a simhash.
    pub min_features: u32,
}

/// What comes of the signatures of the pages that a page links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Children {
    /// Their sum, as in \[DDGMP03\].
    Sum,
    /// Their mean.
    Mean,
}

/// What a page's RP and HM signatures are, and when those of two pages collide (\[DDGMP03\]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signatures {
    /// K: components of each.
    pub dims: u32,
    /// Another seed is another random projection.
    pub seed: u32,
    /// Language whose stop words do not count, or `none`.
    pub stop_words: String,
    /// Language by which words are stemmed, or `none`.
    pub stemming: String,
    /// How the weight of a term grows with its count.
    pub weights: Weights,
    /// Whether the bag of terms is brought to unit length, so that long pages have no more room than short ones.
    pub unit_length: bool,
    /// A page with fewer terms says too little to have signatures.
    pub min_terms: u32,
    /// What comes of its children's signatures,
    pub children: Children,
    /// and γ, the part of that which comes up to a page.
    pub damping: f64,
    /// Links down which a page's HM signature sees.
    pub iterations: u32,
    /// D: RP signatures collide if no component differs by this.
    pub rp_tolerance: f64,
    /// C: the same for HM signatures; 1 leaves it to RP.
    pub hm_tolerance: f64,
    /// What keeps clusters from chaining.
    pub guard: Guard,
    /// Pairs above which a run is refused once they are counted, before they are made.
    pub max_pairs: u64,
}

/// When two pages share enough chunks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// T: fingerprints two pages must share at least.
    pub min_shared: u32,
    /// Shared fingerprints as a share of those of the larger page, at least; 0 turns it off.
    pub min_resemblance: f64,
    /// Chunks that are added to those of the larger page for this, all of them different: so few chunks must agree better
    /// than many to be believed.
    pub doubt: u32,
    /// A chunk on more pages of one host than this is site furniture and does not count there; 0 turns the filter off.
    pub template_pages: u32,
    /// A chunk on more pages than this does not count; 0 turns the limit off.
    pub max_documents: u32,
    /// What keeps clusters from chaining.
    pub guard: Guard,
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

/// What is attached to tolerant collections beyond the pages that have copies ([`crate::clusters::nearby`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attach {
    /// Nothing.
    None,
    /// Pages that stand between pages of the collection.
    BreakPoints,
    /// Pages that are linked mostly with pages of the collection.
    Nearby,
}

/// How similar pages grow to collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clusters {
    /// Which trivial clusters may be joined.
    pub merge: MergeCondition,
    /// Whether a collection must stand on one host, as crawling needs it.
    pub single_site: bool,
    /// Pages of the smallest collection that is reported.
    pub min_size: u32,
    /// Hosts that a tolerant similar cluster must stand on: with 1, what one host has twice is a mirror, too.
    pub min_hosts: u32,
    /// What is attached to tolerant collections.
    pub attach: Attach,
}

/// How duplicates are studied (\[PBZ06\]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Study {
    /// A document has more characters than this.
    pub min_characters: u32,
    /// Whether one or two last sentences are a shingle paragraph too.
    pub rest: bool,
    /// m: subcollections, and steps of the algorithm.
    pub steps: u32,
    /// URL of the page from which a crawl is simulated; none for one in the largest strongly connected component.
    pub seed: String,
    /// Folder of an earlier study, by whose growth the duplicates of this one are estimated; none for no such estimate.
    pub reference: String,
}

/// Settings of effort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Bytes of input that one work item covers.
    pub shard_bytes: u64,
    /// Memory a process may use, in bytes; 0 sets no bound.
    pub memory_bytes: u64,
    /// Folder on a local disk for rows that do not fit in memory; empty for the system's temporary folder.
    pub spill: String,
    /// Whether finished work items are recorded, and those an interrupted run has recorded are not read again.
    pub resume: bool,
    /// Folder on a local disk for these records; empty for the folder of the result.
    pub records: String,
    /// Bytes that a process may write there; 0 for all that is free.
    pub disk_bytes: u64,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            kind: Kind::Replicas,
            input: Input {
                urls: Vec::new(),
                base: "http://localhost/".into(),
                max_bad: 0.01,
                fields: Fields::default(),
                limits: Limits::default(),
            },
            output: Output { url: String::new(), partitions: 16, fprint_docid: false },
            chunks: Chunks { unit: Unit::Lines, count: 1, sliding: false, wrap: 80, bits: 64, min_text: 64 },
            overlap: Overlap {
                min_shared: 1,
                min_resemblance: 0.35,
                doubt: 2,
                template_pages: 6,
                max_documents: 1000,
                guard: Guard::Neighbours,
            },
            similar: Similar { by: Measure::Overlap },
            hamming: Hamming { k: 3, guard: Guard::MutualBest },
            simhash: Simhash {
                bits: 64,
                phrase: 3,
                stop_words: "none".into(),
                stemming: "none".into(),
                weights: Weights::Count,
                idf: false,
                min_features: 8,
            },
            signatures: Signatures {
                dims: 5,
                seed: 1,
                stop_words: "none".into(),
                stemming: "none".into(),
                weights: Weights::Count,
                unit_length: false,
                min_terms: 8,
                children: Children::Sum,
                damping: 0.001,
                iterations: 3,
                rp_tolerance: 0.0001,
                hm_tolerance: 0.0001,
                guard: Guard::MutualBest,
                max_pairs: 50_000_000,
            },
            fingerprints: Fingerprints { from: Vec::new(), coder: Coder::EliasFano },
            batch: Batch { fingerprints: String::new(), queries: Vec::new(), groups: false, max_pairs: 1_000_000_000 },
            servers: Servers { min_shared: 10, nearly_all: 0.9, max_hosts: 500 },
            clusters: Clusters {
                merge: MergeCondition::Tolerant,
                single_site: true,
                min_size: 2,
                min_hosts: 2,
                attach: Attach::Nearby,
            },
            study: Study { min_characters: 450, rest: true, steps: 50, seed: String::new(), reference: String::new() },
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
