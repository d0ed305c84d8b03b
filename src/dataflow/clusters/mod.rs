//! Trivial clusters and similar clusters from pairs and links, and the overlap of servers and giant
//! clusters.

pub mod context_pairs;
pub mod context_pass;
pub mod giant_clusters;
pub mod grown;
pub mod growth;
mod host_links;
pub mod link_summary;
pub mod links;
mod mirrors;
mod pieces;
pub mod places;
pub mod redirects;
pub mod servers;
pub mod tolerant;
pub mod trivial;
pub(crate) mod unsupported;
