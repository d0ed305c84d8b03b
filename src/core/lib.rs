//! Algorithms of the papers as plain functions over slices, independent of threads, files and
//! networks.

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
