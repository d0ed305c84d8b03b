//! Finds near-replica pages and mirrored collections in a web crawl.
//!
//! The modules follow the data; each folder is named for what it yields.
//!
//! Citation keys: \[SGM98\] Shivakumar, Garcia-Molina, *Finding near-replicas of documents on the web*;
//! \[CSG00\] Cho, Shivakumar, Garcia-Molina, *Finding replicated web collections*;
//! \[MJS07\] Manku, Jain, Das Sarma, *Detecting near-duplicates for web crawling*;
//! \[DDGMP03\] Di Iorio, Diligenti, Gori, Maggini, Pucci, *Detecting near-replicas on the web by content and hyperlink analysis*;
//! \[PBZ06\] Pereira, Baeza-Yates, Ziviani, *Where and how duplicates occur in the web*.
//!
//! The folders of `src/` are compiled as several crates (`crates/`), so that a change rebuilds only what needs it; this one
//! has the command line, and shows the others as one.

pub use webtwin_base::{
    build, by_hash, console, error, heap, huge, ids, leftovers, open_files, progress, read_at, threads,
};

// The road: crawl input becomes pages with text and links; beside it, a crawl made on the fly, with the truth about it.
pub use webtwin_pages::{pages, synth};

// Text becomes terms and weighted features, or chunks and their fingerprints; fingerprints, features or signatures become
// pairs of similar pages; pairs and links become trivial clusters and collections, and these what people take home. Or pages
// are studied: where and how they are duplicates.
pub use webtwin_stages::{
    applications, chunks, clusters, hamming, minhash, overlap, signatures, study, text, url_rules,
};

// A finished run read again, compared with a truth, and why two of its pages are together or apart.
pub use webtwin_results::{evaluate, explain, results};

// An archive that keeps payloads once, and what it was made of.
pub use webtwin_results::archive;

// A corpus of texts, the same without its duplicates.
pub use webtwin_dedup::dedup;

// Collections over many crawls, mirrors that lag, and what to visit again.
pub use webtwin_history::history;
// Two crawls compared.
pub use webtwin_recrawl::recrawl;
// A finished run as an index of look-ups, searched by words, and over HTTP.
#[cfg(feature = "search")]
pub use webtwin_search::search;
pub use webtwin_serve::lookup;
#[cfg(feature = "serve")]
pub use webtwin_serve::serve;

// A result made to be looked at.
pub use webtwin_report::report;

// The papers' published tables and figures, computed again.
pub use webtwin_reproduce::reproduce;

// The helper process that reads documents made for paper.
pub use webtwin_printed::printed;

// Machinery: what to compute, the wiring, bytes, and the engine that runs it on one or more processes;
pub use webtwin_base::job;
pub use webtwin_dataflow::dataflow;
pub use webtwin_engine::engine;
pub use webtwin_storage::storage;

// what a run will take, predicted,
pub mod plan;
// and the command line.
pub mod cli;
