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

// Machinery: runs a program on all workers of a cluster and moves rows between them.
pub mod engine;
