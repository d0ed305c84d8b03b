//! The papers: plain functions over slices, which know nothing of threads, files or networks.

pub mod applications;
pub mod chunks;
pub mod clusters;
pub mod explain;
pub mod hamming;
pub mod minhash;
pub mod overlap;
pub mod signatures;
pub mod study;
pub mod text;
pub mod url_rules;
