//! Finds near-replica pages and mirrored collections in a web crawl.
//!
//! The modules follow the data; each folder is named for what it yields.
//!
//! Citation keys: \[SGM98\] Shivakumar, Garcia-Molina, *Finding near-replicas of documents on the web*;
//! \[CSG00\] Cho, Shivakumar, Garcia-Molina, *Finding replicated web collections*;
//! \[MJS07\] Manku, Jain, Das Sarma, *Detecting near-duplicates for web crawling*;
//! \[DDGMP03\] Di Iorio, Diligenti, Gori, Maggini, Pucci, *Detecting near-replicas on the web by content and hyperlink analysis*;
//! \[PBZ06\] Pereira, Baeza-Yates, Ziviani, *Where and how duplicates occur in the web*.

pub mod error;
pub mod ids;

// Crawl input: records, pages, their text and links, canonical URLs.
pub mod pages;

// A crawl made on the fly, and the truth about it.
pub mod synth;

// A run against the truth: precision and recall of pairs, clusters and collections.
pub mod evaluate;
