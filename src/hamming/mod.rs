//! Pages become simhashes, and the Hamming distance problem: which of them differ in at most k bits?
//!
//! # Source
//! \[MJS07\] sections 2 and 3.

pub mod pairs;
pub mod recipe;
pub mod self_join;
pub mod simhash;
