//! Finds near-replica pages and mirrored collections in a web crawl.
//!
//! The modules follow the data; each folder is named for what it yields.
//!
//! Citation keys: \[SGM98\] Shivakumar, Garcia-Molina, *Finding near-replicas of documents on the web*;
//! \[CSG00\] Cho, Shivakumar, Garcia-Molina, *Finding replicated web collections*;
//! \[MJS07\] Manku, Jain, Das Sarma, *Detecting near-duplicates for web crawling*;
//! \[DDGMP03\] Di Iorio, Diligenti, Gori, Maggini, Pucci, *Detecting near-replicas on the web by content and hyperlink analysis*;
//! \[PBZ06\] Pereira, Baeza-Yates, Ziviani, *Where and how duplicates occur in the web*.

pub mod build;
pub mod console;
pub mod error;
pub mod ids;
pub mod leftovers;
pub mod read_at;

// The road: crawl input becomes pages with text and links,
pub mod pages;

// text becomes terms and weighted features,
pub mod text;

// or chunks and their fingerprints,
pub mod chunks;

// fingerprints become pairs of similar pages,
pub mod overlap;

// or features become simhashes, and those within a few bits of each other do,
pub mod hamming;

// or a bag of words and the links of a page become its signatures, and those that collide do,
pub mod signatures;

// pairs and links become trivial clusters and collections,
pub mod clusters;

// and these become what people take home.
pub mod applications;

// Or pages are studied: where and how they are duplicates.
pub mod study;

// Beside the road: a crawl made on the fly, with the truth about it.
pub mod synth;

// A run compared with a truth, and why two of its pages are together or apart.
pub mod evaluate;
pub mod explain;

// The papers' published tables and figures, computed again.
pub mod reproduce;

// Machinery: what to compute,
pub mod job;

// the wiring, one file for each step,
pub mod dataflow;

// bytes: files, stores, tables,
pub mod storage;

// a finished run read again,
pub mod results;

// the engine that runs it on one or more processes,
pub mod engine;

// and the command line.
pub mod cli;
