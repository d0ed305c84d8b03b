//! Synthetic inputs of the reproductions, because the crawls of the papers are not published:
//! tables, links, marks and fingerprints with the distributions in the papers, without pages.
//!
//! The same parameters yield the same data on every machine. Except for [`peer_tuples`], each part
//! of the data can be made independently of the others, on any worker.

pub mod duplicates;
pub mod fingerprints;
mod groups;
pub mod link_graph;
pub mod peer_tuples;
pub mod similar_pairs;
pub mod tables;
