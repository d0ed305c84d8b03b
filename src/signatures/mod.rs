//! Signatures of pages, and which of them collide: the random projection of what a page says (RP), and the hyperlink map of
//! the pages it links to (HM).
//!
//! In: the text of pages, and the links between them. Out: one [`RpSignature`] and one HM signature a page, each of K
//! numbers from 0 to [`ONE`], and the pairs of pages for which both are near.
//!
//! | file | what it does | section |
//! |---|---|---|
//! | `random_projection.rs` | text to `ΠD`, and that to an RP signature by the smallest and largest values of the crawl | 2.1 |
//! | `hyperlink_map.rs` | equation (1): the signatures of children come up to their parents | 2.2 |
//! | `collide.rs` | all pairs within (C, D) | 3 |
//!
//! # Source
//! \[DDGMP03\], whose section 2 has "HP" and "dumping" where it means HM and damping.
//!
//! # Deviations
//! - Π is not stored: its entries are a hash of term and dimension ([`random_projection::Projection`]), and they are
//!   65,535ths, so that sums are whole numbers and no order of addition changes them.
//! - "Normalizing the vectors ... to have each component in \[0,1\]": ours are divided by the largest value of that
//!   component in the crawl. The paper does not say whether it takes that or the largest of all components.
//! - The paper counts words. Here the weight of a term may also be logarithmic or 1 (`signatures.weights`), the bag may be
//!   brought to unit length (`signatures.unit_length`), and a page with very few terms has no signature.
//! - A page of the crawl without a signature is a child that adds nothing; a page outside the crawl is no child.
//! - Signatures are whole numbers of [`ONE`] parts, so that which pages collide does not depend on rounding.
//! - Which pages are *similar* is said of pairs. The paper speaks of lists of colliding documents.

pub mod collide;
pub mod hyperlink_map;
pub mod random_projection;

/// What 1 is in signatures and tolerances.
pub const ONE: u64 = 1_000_000_000_000;

/// RP signature of a page: K numbers from 0 to [`ONE`].
pub type RpSignature = Vec<u64>;

/// A tolerance given in a job file, in parts of [`ONE`].
pub fn parts(tolerance: f64) -> u64 {
    (tolerance * ONE as f64).round() as u64
}

/// A part of [`ONE`] as a number from 0 to 1, as tables have it.
pub fn number(part: u64) -> f64 {
    part as f64 / ONE as f64
}

/// Distance in the maximum norm.
pub fn distance(x: &[u64], y: &[u64]) -> u64 {
    x.iter().zip(y).map(|(x, y)| x.abs_diff(*y)).max().unwrap_or(0)
}
