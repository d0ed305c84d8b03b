//! The Hamming distance problem: which fingerprints differ from a given one in at most k bits?
//!
//! # Source
//! \[MJS07\] section 3.

pub mod close_pairs;
pub mod coding;
pub mod conditions;
pub mod design;
pub mod fingerprint_file;
pub mod huge;
pub mod kernels;
pub mod online;
pub mod permutation;
pub mod permuted_table;
pub mod query_tables;
pub mod sample;
pub mod scan;
pub mod sections;
