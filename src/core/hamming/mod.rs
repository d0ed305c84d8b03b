//! Fingerprints of whole pages that differ in few bits if the pages are similar, and the Hamming
//! distance problem: find the fingerprints that differ from a given one in at most k bits.
//!
//! # Source
//! \[MJS07\]: section 2 for simhash, 3 for the Hamming distance problem.

pub mod checked;
pub mod close_pairs;
pub mod coding;
pub mod conditions;
pub mod design;
pub mod fingerprint_file;
pub mod kernels;
pub mod online;
pub mod pairs;
pub mod permutation;
pub mod permuted_table;
pub mod postings;
pub mod query_tables;
pub mod recipe;
pub mod rows;
pub mod scan;
pub mod sections;
pub mod simhash;
pub mod spread;
