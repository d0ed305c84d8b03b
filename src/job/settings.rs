//! Every setting of a job, with its default and whether it changes *the answer* or only *the effort*.
//!
//! The defaults are here and nowhere else; a test compares `jobs/README.md` with them.

use serde::{Deserialize, Serialize};

use super::shingling::Shingling;

/// A job with every setting resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Which kind of result the job computes.
    pub kind: JobKind,
    /// Where the crawl is and how it is read.
    pub input: Input,
    /// Which URLs stand for others, so that links to them count as links to those.
    pub links: Links,
    /// Where the result is written.
    pub output: Output,
    /// How text is cut into chunks.
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
    /// When the shingles of two pages resemble each other.
    pub minhash: Minhash,
    /// Which pages must not come together, whatever the measure says.
    #[serde(default)]
    pub pairs: Pairs,
    /// Which fingerprints are joined with which.
    pub batch: Batch,
    /// When two servers overlap.
    pub servers: Servers,
    /// How similar pages grow to collections.
    pub clusters: Clusters,
    /// Which of several copies stays.
    pub keep: Keep,
    /// How duplicates are studied.
    pub study: Study,
    /// What a scheduled job goes on from, and how the results of two crawls are compared.
    #[serde(default)]
    pub recrawl: Recrawl,
    /// Settings that change how much work is done at once, but never the answer.
    pub effort: Effort,
}

/// What a scheduled job goes on from (`kind = "recrawl"`), and how the results of two crawls are compared (`webtwin diff`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recrawl {
    /// Folder of the state: path or store URL.
    pub state: String,
    /// Inputs that join those that are live in the state.
    pub add: Vec<String>,
    /// Live inputs, or files of theirs, that leave.
    pub retract: Vec<String>,
    /// Live inputs, or files of theirs, that are read again though name, length and version are as they were.
    pub replace: Vec<String>,
    /// Whether copies stay that the result of the state's newest generation kept, as if it were `keep.sticky`.
    pub sticky: bool,
    /// Folder for the comparison with the result before; empty for none.
    pub diff: String,
    /// The result to compare with; empty for that of the state's newest generation.
    pub against: String,
    /// Generations that the state keeps, the newest among them.
    pub keep_generations: u32,
    /// Share of pages, of their chunks, or of the pairs these make, beyond which similar pairs are found from scratch, 0 to 1.
    pub max_change: f64,
    /// Share of the pages that the run before had, 0 to 1, without which a crawl is refused.
    pub least_pages: f64,
    /// Bits of the simhash in which a page whose text has changed may differ to be `near`.
    pub near_bits: u32,
    /// Bits beyond which it is `rewritten`.
    pub rewritten_bits: u32,
    /// Whether the texts of changed pages are read again, which then decide instead of simhashes.
    pub texts: bool,
    /// Resemblance of the texts from which on a page is `near`, 0 to 1.
    pub near: f64,
    /// Resemblance below which it is `rewritten`, 0 to 1.
    pub rewritten: f64,
    /// Share of the pages that a site lost which another must have gained under the same paths to be the same site, moved.
    pub site_moved: f64,
    /// Whether gone pages that were on the old crawl's avoid list are taken for skipped on purpose.
    pub avoided: bool,
    /// Whether the crawler also fetched the pages that the comparison before asked for, so that those it has nothing of are gone.
    pub probed: bool,
    /// Whether pages that stayed the same have rows, too.
    pub all_pages: bool,
    /// Whether results of different settings are compared all the same, by their pages only.
    pub across_settings: bool,
    /// Crawls in a row that must have nothing of a collection for it to have died; until then it is missing.
    pub patience: u32,
    /// Crawls whose pages a history keeps, the newest included: those that a mirror can be told to lag behind.
    pub versions: u32,
    /// Share of a collection's pages that must have another text for the collection to have changed, 0 to 1.
    pub changed_share: f64,
    /// Mean resemblance to the pages that are kept below which a mirror has drifted, 0 to 1.
    pub drift: f64,
    /// Confidence in the answer of the pages probed of a collection, above 0 and below 1.
    pub confidence: f64,
    /// Share of a collection's pages that must have changed to be noticed with that confidence, above 0 and below 1.
    pub probe_share: f64,
    /// Intervals between crawls that the pooled hazard counts for against a mirror's own.
    pub prior_intervals: f64,
    /// Pages that may be fetched to probe collections on the avoid list.
    pub budget: u64,
}

impl Default for Recrawl {
    fn default() -> Self {
        Recrawl {
            state: String::new(),
            add: Vec::new(),
            retract: Vec::new(),
            replace: Vec::new(),
            sticky: false,
            diff: String::new(),
            against: String::new(),
            keep_generations: 2,
            max_change: 0.25,
            least_pages: 0.5,
            near_bits: 6,
            rewritten_bits: 18,
            texts: false,
            near: 0.9,
            rewritten: 0.35,
            site_moved: 0.5,
            avoided: false,
            probed: false,
            all_pages: false,
            across_settings: false,
            patience: 2,
            versions: 4,
            changed_share: 0.1,
            drift: 0.5,
            confidence: 0.95,
            probe_share: 0.1,
            prior_intervals: 4.0,
            budget: 1000,
        }
    }
}

/// How F, a file of fingerprints, is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Ready-made fingerprints to use instead of those of a crawl's pages; empty for a crawl.
    pub from: Vec<String>,
    /// How the fingerprints are encoded.
    pub coder: Coder,
}

/// How the fingerprints of a file or table are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coder {
    /// Low bits in place, high bits in unary (`hamming::coding::elias_fano`).
    EliasFano,
    /// Position of the first differing bit in a Huffman code, then the bits below it (`hamming::coding::huffman`).
    Huffman,
    /// Eight bytes each.
    Raw,
}

impl Coder {
    /// Every coder; the place of one in this list is its number in files.
    pub const ALL: [Coder; 3] = [Coder::EliasFano, Coder::Huffman, Coder::Raw];

    /// Number in files.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Name in settings and manifests.
    pub fn name(self) -> &'static str {
        ["elias-fano", "huffman", "raw"][self as usize]
    }
}

/// The batch of queries that a fingerprint file is joined with (\[MJS07\] section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// F: folder of a fingerprint file.
    pub fingerprints: String,
    /// Q: where the queries are; empty to join F with itself.
    pub queries: Vec<String>,
    /// Whether to write documents by group instead of pair by pair.
    pub groups: bool,
    /// Pairs above which a run is refused, once they are counted; none is made beyond them.
    pub max_pairs: u64,
}

/// What a job computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// Pages to similar pages, trivial clusters, collections and the avoid list.
    Replicas,
    /// Pages, or ready-made fingerprints, to a fingerprint file.
    Fingerprints,
    /// Fingerprint file and queries to near pairs.
    Hamming,
    /// As [`JobKind::Replicas`], with similar pages by signatures.
    Signatures,
    /// Pages to duplicates, near-duplicates and where they occur.
    Study,
    /// As [`JobKind::Replicas`], of the live inputs of a state; what the state holds of them is not read again.
    Recrawl,
}

/// Where the crawl is and how it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// URLs, paths, globs, `@LIST` files, or one `synth://` URL.
    pub urls: Vec<String>,
    /// Inputs of earlier crawls, as `urls`: revisit records find their originals there, and nothing else of them is a page.
    #[serde(default)]
    pub originals: Vec<String>,
    /// URL under which the files of a folder of HTML appear.
    pub base: String,
    /// Largest share of damaged records in one input, 0 to 1.
    pub max_bad: f64,
    /// Field names of JSONL and Parquet rows.
    pub fields: Fields,
    /// Whether digests in WARC records are checked.
    pub digests: Digests,
    /// Whether PDF documents are pages.
    pub pdf: Printed,
    /// Whether PostScript documents are pages.
    pub postscript: Printed,
    /// Limits of a single record.
    pub limits: Limits,
}

impl Default for Input {
    fn default() -> Self {
        Input {
            urls: Vec::new(),
            originals: Vec::new(),
            base: "http://localhost/".into(),
            max_bad: 0.01,
            fields: Fields::default(),
            digests: Digests::Ignore,
            pdf: Printed::Text,
            postscript: Printed::Text,
            limits: Limits::default(),
        }
    }
}

/// What is done with the digests that WARC records give of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Digests {
    /// A page whose digests do not fit is kept and counted as mended (`digest_mismatch`).
    Check,
    /// Nothing.
    Ignore,
    /// Where a record gives none of its payload, it is computed; no setting, for only a run knows when it is of use.
    #[serde(skip)]
    Compute,
}

/// What is done with documents of a format made for paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Printed {
    /// Their text is a page.
    Text,
    /// They are no pages (`not_text`).
    Skip,
}

/// Field or column names of JSONL and Parquet rows; the first name of each list that exists counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    /// Names of the field with the URL.
    pub url: Vec<String>,
    /// Names of the field with the HTML.
    pub html: Vec<String>,
    /// Names of the field with the text, used if there is no HTML.
    pub text: Vec<String>,
    /// Names of the field with the fetch time.
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

/// Bounds that keep a hostile record from costing more than a fixed time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Largest record payload, bytes, before and after each decoding.
    pub record_bytes: u64,
    /// Largest head (WARC or HTTP), bytes.
    pub head_bytes: u64,
    /// Largest ratio of decoded to encoded bytes, once 1 MiB has been decoded.
    pub ratio: u64,
    /// Content encodings that may be stacked.
    pub encodings: u32,
    /// Links kept of one page; the rest is dropped and the page marked `too_many_links`.
    pub links: u32,
    /// Processor time that a PDF or PostScript document may take to become text, seconds.
    pub printed_seconds: u64,
    /// Memory that it may take, bytes of address space.
    pub printed_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            record_bytes: 16 << 20,
            head_bytes: 64 << 10,
            ratio: 1000,
            encodings: 3,
            links: 10_000,
            printed_seconds: 10,
            printed_bytes: 1 << 30,
        }
    }
}

/// Which URLs stand for others: a link to one of them counts as a link to the page that it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// URLs whose record is a redirect (301, 302, 303, 307, 308).
    pub redirects: bool,
    /// Pages with `<meta http-equiv=refresh>` that lead to another URL within 10 seconds.
    pub refresh: bool,
    /// Pages with `<link rel=canonical>` that name another URL.
    pub canonical: bool,
}

/// Where the result goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Folder, as a local path or a store URL.
    pub url: String,
    /// Virtual partitions, a power of two up to 4096: the most files a table can have.
    pub partitions: u32,
    /// Whether to write the `fprint_docid` table: one row per distinct chunk of each page.
    pub fprint_docid: bool,
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
    #[serde(default)]
    pub pins_sha256: String,
    /// URLs that a crawler starts with: it visits them whatever copies they have.
    pub seeds: Vec<String>,
    /// Least resemblance of a page to the one that stays in its place, from 0 to 1; a page with less stays, too.
    pub min_resemblance: f64,
}

/// Which pages must not come together, whatever the measure says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// File of pairs of pages that are never in one trivial cluster. Empty for none.
    pub apart: String,
    /// SHA-256 of what `apart` holds, in hexadecimal; filled in when the job is made.
    pub apart_sha256: String,
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Servers {
    /// T: fewest pages that two overlapping servers share.
    pub min_shared: u32,
    /// Share of the smaller server's pages that counts as nearly all of them, 0 to 1.
    pub nearly_all: f64,
    /// A page on more hosts than this does not pair servers.
    pub max_hosts: u32,
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
    /// Pairs whose signatures collide ([`Signatures`]).
    Signatures,
    /// Pairs whose sets of shingles resemble each other ([`Minhash`]).
    Minhash,
}

/// By which measure pages are similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Similar {
    /// The measure that yields similar pairs.
    pub by: Measure,
}

/// When two simhashes are near (\[MJS07\] section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hamming {
    /// Bits in which the simhashes may differ, below 64.
    pub k: u32,
    /// Which similar pairs may join clusters.
    pub guard: Guard,
}

/// How the weight of a feature grows with its count n on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// The weight is n.
    Count,
    /// The weight is 1 + log2 n.
    Log,
    /// The weight is 1.
    Once,
}

/// What a page's simhash is made of; together a recipe with a name ([`Simhash::recipe`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simhash {
    /// f: width of a simhash in bits, 1 to 64; 0 makes no simhashes.
    pub bits: u32,
    /// Terms per feature: 1 for single terms, up to 16 for phrases.
    pub phrase: u32,
    /// Language (ISO 639-1) whose stop words are left out, or `none`.
    pub stop_words: String,
    /// Language (ISO 639-1) by which words are stemmed, or `none`.
    pub stemming: String,
    /// How the weight of a feature grows with its count.
    pub weights: Weights,
    /// Whether features weigh less the more pages of the crawl they are on.
    pub idf: bool,
    /// A page with fewer features has no simhash.
    pub min_features: u32,
}

/// How the signatures of the pages that a page links to are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Children {
    /// Their sum, as in \[DDGMP03\].
    Sum,
    /// Their mean, which is ours.
    Mean,
}

/// What a page's RP and HM signatures are, and when those of two pages collide (\[DDGMP03\]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signatures {
    /// K: components of each signature, 1 to 64.
    pub dims: u32,
    /// Seed of the random projection.
    pub seed: u32,
    /// Language (ISO 639-1) whose stop words are left out, or `none`.
    pub stop_words: String,
    /// Language (ISO 639-1) by which words are stemmed, or `none`.
    pub stemming: String,
    /// How the weight of a term grows with its count on a page.
    pub weights: Weights,
    /// Whether a page's bag of terms is scaled to unit length, so that long pages spread no wider than short ones.
    pub unit_length: bool,
    /// A page with fewer terms has no signatures.
    pub min_terms: u32,
    /// How the signatures of a page's children are combined.
    pub children: Children,
    /// γ: share of the combined signatures that is passed up to the page, 0 to 1.
    pub damping: f64,
    /// Depth of links that an HM signature covers, up to 8.
    pub iterations: u32,
    /// D: RP signatures collide if they differ by less than this in every component, 0 to 1.
    pub rp_tolerance: f64,
    /// C: the same for HM signatures; 1 leaves the decision to RP.
    pub hm_tolerance: f64,
    /// Which similar pairs may join clusters.
    pub guard: Guard,
    /// More pairs than this are refused, once counted and before any is made.
    pub max_pairs: u64,
}

/// When the shingles of two pages resemble each other, and which pages are compared (`minhash`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Minhash {
    /// What the shingles of a text are.
    pub shingle: Shingling,
    /// Least resemblance of similar pages, 0.01 to 1: of the shingles of either page, the share that both have.
    pub threshold: f64,
    /// Minima in a signature where `bands` and `rows` are chosen, 1 to 4096.
    pub permutations: u32,
    /// Bands of a signature; 0 to choose bands and rows by threshold and permutations.
    pub bands: u32,
    /// Rows of a band; 0 to choose both.
    pub rows: u32,
    /// Of more pages with one key of a band, each is compared with the smallest only.
    pub max_documents: u32,
    /// Which similar pairs may join clusters.
    pub guard: Guard,
}

/// When two pages share enough chunks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
    pub doubt: u32,
    /// A chunk on more pages of one host than this is site furniture and counts nowhere; 0 turns the filter off.
    pub template_pages: u32,
    /// A chunk on more pages of the crawl than this does not count; 0 turns the limit off.
    pub max_documents: u32,
    /// Which similar pairs may join clusters.
    pub guard: Guard,
}

impl Overlap {
    /// What the papers count as similar: T shared chunks of any kind, however long the pages are.
    pub const fn of_papers(min_shared: u32) -> Overlap {
        Overlap {
            min_shared,
            min_resemblance: 0.0,
            min_resemblance_alone: 0.0,
            doubt: 0,
            template_pages: 0,
            max_documents: 0,
            guard: Guard::None,
        }
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
pub struct Study {
    /// A document has more characters of text than this.
    pub min_characters: u32,
    /// Whether one or two last sentences form a shingle paragraph, too.
    pub rest: bool,
    /// m: number of subcollections, and of steps of the algorithm.
    pub steps: u32,
    /// URL of the page from which a crawl is simulated; empty for a page of the largest strongly connected component.
    pub seed: String,
    /// Folder of an earlier study whose growth estimates the duplicates of this one; empty for no such estimate.
    pub reference: String,
}

/// Settings that do not change the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Bytes of input per work item, at least 65536.
    pub shard_bytes: u64,
    /// Bytes of memory a process may use, by estimate; 0 sets no limit.
    pub memory_bytes: u64,
    /// Folder on a local disk for rows that do not fit in memory; empty for the system's temporary folder.
    pub spill: String,
    /// Whether to record finished work items, and not to read again those that an interrupted run recorded.
    pub resume: bool,
    /// Folder on a local disk for these records; empty for the folder of the result.
    pub records: String,
    /// Bytes a process may write to `spill`; 0 allows all that is free.
    pub disk_bytes: u64,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            kind: JobKind::Replicas,
            input: Input::default(),
            links: Links { redirects: true, refresh: true, canonical: false },
            output: Output { url: String::new(), partitions: 16, fprint_docid: false },
            chunks: Chunks { unit: Unit::Lines, count: 1, sliding: false, wrap: 80, bits: 64, min_text: 64 },
            overlap: Overlap {
                min_shared: 1,
                min_resemblance: 0.35,
                min_resemblance_alone: 0.5,
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
            minhash: Minhash {
                shingle: Shingling::Words(5),
                threshold: 0.8,
                permutations: 128,
                bands: 0,
                rows: 0,
                max_documents: 200,
                guard: Guard::Neighbours,
            },
            pairs: Pairs::default(),
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
            keep: Keep {
                prefer: Vec::new(),
                by: KeepBy::Links,
                sticky: String::new(),
                pins: String::new(),
                pins_sha256: String::new(),
                seeds: Vec::new(),
                min_resemblance: 0.0,
            },
            study: Study { min_characters: 450, rest: true, steps: 50, seed: String::new(), reference: String::new() },
            recrawl: Recrawl::default(),
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
