//! The Hamming distance problem: which fingerprints differ from a given one in at most k bits?
//!
//! # Source
//! \[MJS07\] section 3.
