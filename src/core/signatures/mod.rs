//! Signatures of pages, and the pairs that collide: the random projection of a page's words (RP),
//! and the same projection propagated along links, the hyperlink map (HM).
//!
//! Input: the text of pages, and the links between them. Output: an [`RpSignature`] and an HM
//! signature per page, each of K numbers from 0 to [`ONE`], and the pairs of pages for which both
//! signatures are near.
//!
//! | file | content | section |
//! |---|---|---|
//! | `random_projection.rs` | projection of a text to `ΠD`, and of that to an RP signature by the smallest and largest values of the crawl | 2.1 |
//! | `hyperlink_map.rs` | equation (1): the signatures of children are passed up to their parents | 2.2 |
//! | `collide.rs` | all pairs within (C, D) | 3 |
//!
//! # Source
//! \[DDGMP03\], whose section 2 has "HP" and "dumping" where it means HM and damping.
//!
//! # Deviations
//! - Π is not stored: its entries are hashes of term and dimension
//!   ([`random_projection::Projection`]) in 65,535ths, so that sums are whole numbers and do not
//!   depend on the order of addition.
//! - "Normalizing the vectors ... to have each component in \[0,1\]": here vectors are divided by
//!   the largest value of that component in the crawl. The paper does not define whether it uses
//!   that value or the largest of all components.
//! - The paper counts words. Here the weight of a term may also be logarithmic or 1 (`weights:` in
//!   `signatures.recipe`), the bag may be scaled to unit length (`unit-length`), and a page with
//!   very few terms has no signature.
//! - A page of the crawl without a signature is a child that adds nothing; a page outside the crawl
//!   is not a child.
//! - Signatures are whole numbers of [`ONE`] parts, so that collisions do not depend on rounding.
//! - *Similar* is a property of pairs. The paper uses lists of colliding documents.
//!
//! # Quality
//! On the real crawl of `scripts/real-crawl` (the pages of 22 of its 33 targets, and all pages of
//! no target; 137,386 true pairs): break-even of precision and recall of pairs, without guard or
//! clustering, at the best D of RP alone and at the best (C, D) of RP + HM (forty steps per
//! decade):
//!
//! | weights | K | RP alone | + HM, sum, γ = .001, 3 iterations | + HM, mean, γ = 1, 5 iterations |
//! |---|---|---|---|---|
//! | count, the paper's and the default | 5 | .201 | .237 | .253 |
//! | count, the paper's and the default | 16 | .280 | .280 | .304 |
//! | log, unit length | 5 | .321 | .323 | .375 |
//! | log, unit length | 8 | .450 | .458 | .481 |
//! | log, unit length, the preset `signatures` | 16 | .502 | .502 | .521 |
//! | log, unit length | 32 | .503 | .503 | .527 |
//! | once, unit length | 8 | .312 | .312 | .340 |
//! | once, unit length | 32 | .348 | .348 | .395 |
//!
//! So HM has the effect that the paper reports, some three points, if K is as small as the paper's,
//! and less effect if RP is more informative. The level is not the paper's (.90 and .93). The paper
//! evaluated 100 documents that have a replica, and counted documents, not pairs. Here most copies
//! are other versions, and the pages of one manual share most of their words. Counted in the way of
//! the paper, with K = 5 and plain counts: .821 by RP alone and .828 with HM, mostly because most
//! pages here have a replica.

pub mod collide;
pub mod hyperlink_map;
pub mod random_projection;

/// The value 1 of signatures and tolerances.
pub const ONE: u64 = 1_000_000_000_000;

/// RP signature of a page: K numbers from 0 to [`ONE`].
pub type RpSignature = Vec<u64>;

/// Converts a tolerance from a job file to parts of [`ONE`].
pub fn parts(tolerance: f64) -> u64 {
    (tolerance * ONE as f64).round() as u64
}

/// Converts a number of parts of [`ONE`] to a number from 0 to 1, as in tables.
pub fn number(part: u64) -> f64 {
    part as f64 / ONE as f64
}

/// Returns the distance in the maximum norm, in parts of [`ONE`].
///
/// # Examples
/// ```
/// use webtwin_core::signatures::distance;
///
/// assert_eq!(distance(&[5, 9, 2], &[4, 1, 2]), 8);
/// ```
pub fn distance(x: &[u64], y: &[u64]) -> u64 {
    x.iter().zip(y).map(|(x, y)| x.abs_diff(*y)).max().unwrap_or(0)
}
