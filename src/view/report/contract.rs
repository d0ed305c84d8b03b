//! What a report says: `report.json`, of which the HTML page is a function.
//!
//! Ids are strings of decimal digits, as in every JSON of this program. Where a list is the top of a longer one, the number of
//! all stands beside it.

use std::collections::BTreeMap;

use serde::Serialize;

use webtwin_base::ids::as_text;

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

/// Clusters of duplicates in a corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clusters {
    /// The largest ones, the largest first.
    pub shown: Vec<Cluster>,
    /// How many there are in all.
    pub all: u64,
}

/// A record that stays, and those that are removed in its favour.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// The record that stays.
    pub kept: Record,
    /// Number of removed records.
    pub removed: u64,
    /// The same by reason: `exact`, `near`, `against`.
    pub removed_by: BTreeMap<String, u64>,
    /// Removed records that are least like it, the least first.
    pub members: Vec<Duplicate>,
    /// The text that stays next to that of the first member; empty if both are equal or were not read.
    pub diff: Vec<Row>,
    /// Why the texts could not be read again; empty if they could, or were not wanted.
    pub unread: String,
}

/// Name and place of a record of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Its id.
    pub id: String,
    /// File with it.
    pub file: String,
    /// Its row there, from 0.
    pub row: u64,
}

/// A record that is removed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Duplicate {
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// `exact`, `near` or `against`.
    pub why: String,
    /// Resemblance to the record that stays.
    pub similarity: f64,
}

/// A view in plain parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Its id in the page.
    pub id: &'static str,
    /// Its name among the views.
    pub name: &'static str,
    /// What it says in one sentence.
    pub headline: String,
    /// What it is about.
    pub lead: String,
    /// Figures.
    pub tiles: Vec<Tile>,
    /// Counts as bars.
    pub charts: Vec<Bars>,
    /// Tables, or the tops of longer ones.
    pub tables: Vec<Rows>,
}

/// A figure and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tile {
    /// The figure, as it is shown.
    pub figure: String,
    /// What it is.
    pub what: String,
}

/// Counts as bars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bars {
    /// What is counted.
    pub heading: String,
    /// The question that it answers.
    pub ask: String,
    /// The bars, in the order in which they are shown.
    pub bars: Vec<Count>,
}

/// A table, or the top of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rows {
    /// What its rows are.
    pub heading: String,
    /// Names of the columns.
    pub heads: Vec<&'static str>,
    /// The rows that are shown.
    pub rows: Vec<Vec<Cell>>,
    /// How many there are in all.
    pub all: u64,
    /// The table of the result that has all of them; empty for none.
    pub table: String,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A count.
    Count(u64),
    /// A figure, as it is shown.
    Number(String),
    /// Words, or a name that was crawled.
    Text(String),
    /// A URL that was crawled.
    Url(String),
}

/// Pages and their bytes as fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Amount {
    /// Pages.
    pub pages: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A count and what it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// What is counted, in words.
    pub what: String,
    /// How many.
    pub count: u64,
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

/// Originals with their mirrors.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mirrors {
    /// All of them in the result.
    pub all: u64,
    /// Those with the most pages in copies that are not kept; the most that may be skipped first.
    pub shown: Vec<Mirror>,
}

/// An original with its mirrors: a similar cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mirror {
    /// The similar cluster.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Title of the root page of the copy that is kept; empty if it has none.
    pub title: String,
    /// Language of that page, as in `pages.language`; empty if it is unknown.
    pub language: String,
    /// Root page of the copy that is kept.
    pub url: String,
    /// Its copies, the one that is kept among them.
    pub copies: u64,
    /// Hosts with a copy.
    pub hosts: u64,
    /// Pages of the largest copy.
    pub largest: u64,
    /// Pages of all copies.
    pub pages: u64,
    /// Pages of the copies that are not kept.
    pub surplus: u64,
    /// Pages of all copies that may be skipped, and their bytes; none where there are too many pages to look at.
    pub skip: Option<Amount>,
    /// Mean fraction of the text of these pages that the pages which stay contain (`avoid.contained`), in thousandths; none
    /// where no page may be skipped.
    pub contained: Option<u32>,
    /// The copy that is kept, then the largest.
    pub shown: Vec<MirrorCopy>,
}

/// A collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MirrorCopy {
    /// The collection.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Where it stands.
    pub host: String,
    /// Its root page.
    pub url: String,
    /// What the URLs of all its pages begin with.
    pub prefix: String,
    /// Pages in it.
    pub size: u64,
    /// Whether it is the copy that is kept.
    pub keep: bool,
    /// Links to its pages from other hosts, by which one is kept unless the job says otherwise; none if the result does not tell.
    pub links_from_elsewhere: Option<u64>,
}

/// Hosts and what they share.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hosts {
    /// All hosts.
    pub all: u64,
    /// Those with the most pages to skip, most first.
    pub shown: Vec<Host>,
    /// Pairs of hosts by kind: `alias`, `mirror`, `part`.
    pub pairs: BTreeMap<String, u64>,
    /// The pairs that share the most pages, most first.
    pub shown_pairs: Vec<HostPair>,
    /// Hosts of the matrix, those that are alike beside each other.
    pub matrix_hosts: Vec<String>,
    /// Pairs among them.
    pub matrix: Vec<HostPair>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Its pages.
    pub crawl: Amount,
    /// Of these, what may be skipped.
    pub skip: Amount,
}

/// Two hosts that share pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostPair {
    /// Name of one host.
    pub a: String,
    /// Name of the other.
    pub b: String,
    /// Pages of each that have their own copy on the other.
    pub shared: u64,
    /// Of these, those with equal text under equal paths.
    pub same_path: u64,
    /// Pages of the first.
    pub pages_a: u64,
    /// Pages of the second.
    pub pages_b: u64,
    /// `alias`, `mirror` or `part`.
    pub kind: String,
}

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

/// What crawlers are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SkipLists {
    /// Prefixes with the most pages, most first.
    pub prefixes: Vec<Prefix>,
    /// The files in `exports/`, with their first lines.
    pub exports: Vec<Export>,
    /// URL rules that save the most pages, most first.
    pub rules: Vec<UrlRule>,
    /// All of them.
    pub all_rules: u64,
    /// Pages that they save together.
    pub saved_by_rules: u64,
}

/// A URL rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UrlRule {
    /// For which URLs.
    pub scope: String,
    /// Kind of its edit, what this changes, and what it puts in its place.
    pub kind: String,
    /// See above.
    pub pattern: String,
    /// See above.
    pub replacement: String,
    /// Pages that are copies of the page whose URL they get.
    pub support: u64,
    /// Pages that are none.
    pub violations: u64,
    /// Pages of the crawl that it would have saved.
    pub saved: u64,
}

/// A URL prefix under which all crawled pages may be skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prefix {
    /// The prefix.
    pub prefix: String,
    /// Crawled pages under it, and their bytes.
    pub covers: Amount,
}

/// A file in `exports/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Export {
    /// Its path in the result.
    pub path: String,
    /// Its length, in bytes.
    pub bytes: u64,
    /// Its first lines that say something.
    pub head: Vec<String>,
}

/// Where the figures come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunFacts {
    /// Records read.
    pub read: u64,
    /// Records kept as pages, or of a corpus in it.
    pub kept: u64,
    /// Records of a corpus that were removed, or annotated, as duplicates; none for a job that reads pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u64>,
    /// Records not kept, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Pages kept though something in them was mended, by reason.
    pub mended: BTreeMap<String, u64>,
    /// Inputs that end within a record.
    pub torn: u64,
    /// Inputs with records that were not kept.
    pub inputs_with_rejected: u64,
    /// The inputs with the most of them, most first.
    pub rejected_by_input: Vec<Rejected>,
    /// Text that was left out, and why.
    pub left_out: Vec<Count>,
    /// Settings that are not the default: dotted name, value as JSON.
    pub settings: BTreeMap<String, String>,
    /// Recipes behind ids and fingerprints.
    pub recipes: BTreeMap<String, String>,
    /// Rows of each table.
    pub tables: BTreeMap<String, u64>,
    /// What only this run of the job knows; none if it was not asked for.
    pub machine: Option<Machine>,
}

/// An input with records that were not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// The input.
    pub source: String,
    /// Records not kept, by reason.
    pub by_reason: BTreeMap<String, u64>,
}

/// What differs from run to run of the same job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// The folder of the result.
    pub folder: String,
    /// Version and commit of the program that wrote it.
    pub build: String,
    /// Workers.
    pub workers: u64,
    /// Stages in order, with their seconds.
    pub seconds: Vec<Stage>,
    /// Peak memory of process 0, in bytes.
    pub peak_memory_bytes: u64,
    /// Folder in which it was started.
    pub started_in: String,
    /// Files of the result, and their bytes.
    pub files: u64,
    /// See above.
    pub bytes: u64,
}

/// A stage of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Its name.
    pub stage: String,
    /// Seconds it took.
    pub seconds: f64,
}
