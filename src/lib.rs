//! Finds near-replica pages and mirrored collections in a web crawl.
//!
//! The modules are in the order of the data flow; each folder is named after its output.
//!
//! Citation keys:
//!
//! - \[SGM98\] Shivakumar, Garcia-Molina, *Finding near-replicas of documents on the web*
//! - \[CSG00\] Cho, Shivakumar, Garcia-Molina, *Finding replicated web collections*
//! - \[MJS07\] Manku, Jain, Das Sarma, *Detecting near-duplicates for web crawling*
//! - \[DDGMP03\] Di Iorio, Diligenti, Gori, Maggini, Pucci, *Detecting near-replicas on the web by
//!   content and hyperlink analysis*
//! - \[PBZ06\] Pereira, Baeza-Yates, Ziviani, *Where and how duplicates occur in the web*
//!
//! Each folder of `src/` is a crate; this crate re-exports them as one library. The command line is
//! in `src/cli`.

// Foundation: identifiers, errors, job files.
pub use webtwin_base::{
    build_info, by_hash, console, error, exit_codes, heap, huge, ids, leftovers, open_files, progress, read_at, threads,
};
pub use webtwin_job as job;

// Input: pages with text and links from a crawl; and a synthetic crawl with its ground truth.
pub use webtwin_pages as pages;
pub use webtwin_printed as printed;
pub use webtwin_synth as synth;

// The papers: text becomes terms and weighted features, or chunks and their fingerprints.
// Fingerprints, features or signatures become pairs of similar pages. Pairs and links become
// trivial clusters and collections, and these become avoid lists, exports and URL rules.
pub use webtwin_core::{
    applications, chunks, clusters, explain, hamming, minhash, overlap, signatures, study, text, url_rules,
};

// Execution on the workers of one or more processes, and storage.
pub use webtwin_dataflow as dataflow;
pub use webtwin_engine as engine;
pub use webtwin_spill as spill;
pub use webtwin_storage as storage;

// Finished runs: reading, evaluation, archives, comparison with other crawls, presentation.
pub use webtwin_archive as archive;
pub use webtwin_compare as compare;
pub use webtwin_evaluate as evaluate;
#[cfg(feature = "serve")]
pub use webtwin_http as http;
pub use webtwin_results as results;
#[cfg(feature = "serve")]
pub use webtwin_view::serve;
pub use webtwin_view::{lookup, report, search};

// Deduplication of text corpora, the live index, predictions of a run's costs, the command line.
pub use webtwin_cli as cli;
pub use webtwin_dedup as dedup;
pub use webtwin_live as live;
pub use webtwin_plan as plan;
