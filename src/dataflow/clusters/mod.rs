//! Pairs and links become trivial clusters, similar clusters, and what is told of servers and giant clusters.

pub(crate) mod alone;
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
pub mod second_look;
pub mod servers;
pub mod tolerant;
pub mod trivial;
