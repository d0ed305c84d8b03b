//! MinHash with locality-sensitive hashing: finds texts that resemble each other without comparing
//! every pair.
//!
//! Input: texts, in the order in which they are kept. Output: for each text, the first kept text
//! before it that it resembles, if there is one.
//!
//! ```text
//!  text ──▶ set of shingles ──▶ signature ──▶ keys of bands ──▶ texts that share a key ──▶ verified ──▶ star cover
//!           shingles.rs         signature.rs   bands.rs          candidates.rs          resemblance.rs  star_cover.rs
//! ```
//!
//! This is the algorithm of `webtwin dedup`. The main job keeps no text in favour of another. There
//! every two texts that share a key are compared, within bounds (`pairs.rs`), and each pair that
//! reaches the threshold is similar.
//!
//! The *resemblance* of two texts is the fraction of their shingles that both have: |A ∩ B| / |A ∪
//! B|. Two texts have the same minimum under a random order of all shingles with exactly that
//! probability, so the fraction of equal minima estimates it. Here the minima only propose
//! candidates; the sets themselves decide whether a candidate is similar.
//!
//! # Source
//! Broder, *On the resemblance and containment of documents* (1997): shingles, resemblance, minima
//! under permutations. Leskovec, Rajaraman, Ullman, *Mining of massive datasets*, chapter 3: bands
//! and rows.
//!
//! # Deviations
//! - Shingles are represented by hashes of 32 bits. Two sets of n shingles share n² / 2³² by
//!   chance, one in 4,000 times for n = 1,000. Except for this effect a resemblance is exact.
//! - A permutation is x ↦ (x ⊕ a) · b modulo 2³² with odd b, for 32-bit hashes that are well
//!   spread. It maps no two hashes to one.

pub mod bands;
pub mod candidates;
pub mod pairs;
pub mod resemblance;
pub mod shingles;
pub mod signature;
pub mod star_cover;
