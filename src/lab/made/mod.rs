//! What the reproductions compute on, because the papers' crawls are not published: tables, links, marks and fingerprints
//! drawn with the distributions that the papers give, without pages.
//!
//! The same parameters give the same data everywhere. Except for [`peer_tuples`], any part can be made without the others, by
//! any worker.

pub mod duplicates;
pub mod fingerprints;
mod groups;
pub mod link_graph;
pub mod peer_tuples;
pub mod similar_pairs;
pub mod tables;
