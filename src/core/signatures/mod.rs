//! Signatures of pages, and which of them collide: the random projection of a page's words (RP), and the same
//! projection propagated along links, the hyperlink map (HM).
//!
//! In: the text of pages, and the links between them. Out: an [`RpSignature`] and an HM signature per page, each of K
//! numbers from 0 to [`ONE`], and the pairs of pages for which both are near.
//!
//! | file | what it does | section |
//! |---|---|---|
//! | `random_projection.rs` | text to `ΠD`, and that to an RP signature by the smallest and largest values of the crawl | 2.1 |
//! | `hyperlink_map.rs` | equation (1): the signatures of children are passed up to their parents | 2.2 |
//! | `collide.rs` | all pairs within (C, D) | 3 |
//!
//! # Source
//! \[DDGMP03\], whose section 2 says "HP" and "dumping" where it means HM and damping.
//!
//! # Deviations
//! - Π is not stored: its entries are hashes of term and dimension ([`random_projection::Projection`]) in 65,535ths, so
//!   that sums are whole numbers and do not depend on the order of addition.
//! - "Normalizing the vectors ... to have each component in \[0,1\]": ours are divided by the largest value of that
//!   component in the crawl. The paper does not say whether it takes that or the largest of all components.
//! - The paper counts words. Here the weight of a term may also be logarithmic or 1 (`weights:` in `signatures.recipe`), the bag may
//!   be scaled to unit length (`unit-length`), and a page with very few terms has no signature.
//! - A page of the crawl without a signature is a child that adds nothing; a page outside the crawl is no child.
//! - Signatures are whole numbers of [`ONE`] parts, so that collisions do not depend on rounding.
//! - *Similar* is a property of pairs. The paper speaks of lists of colliding documents.
//!
//! # How well they work
//! On the real crawl of `scripts/real-crawl` (the pages of 22 of its 33 targets, and all pages of no target; 137,386
//! true pairs): break-even of precision and recall of pairs, without guard or clustering, at the best D of RP alone and
//! at the best (C, D) of RP + HM (forty steps per decade):
//!
//! | weights | K | RP alone | + HM, sum, γ = .001, 3 iterations | + HM, mean, γ = 1, 5 iterations |
//! |---|---|---|---|---|
//! | count, the paper's and the default | 5 | .201 | .237 | .253 |
//! | the same | 16 | .280 | .280 | .304 |
//! | log, unit length | 5 | .321 | .323 | .375 |
//! | the same | 8 | .450 | .458 | .481 |
//! | the same, the preset `signatures` | 16 | .502 | .502 | .521 |
//! | the same | 32 | .503 | .503 | .527 |
//! | once, unit length | 8 | .312 | .312 | .340 |
//! | the same | 32 | .348 | .348 | .395 |
//!
//! So HM adds what the paper says it adds, some three points, if K is as small as the paper's, and less if RP says
//! more. The level is not the paper's (.90 and .93), which judged 100 documents that have a replica, and counted
//! documents, not pairs. Here most copies are other versions, and the pages of one manual share most of their words.
//! Counted as the paper counts, with K = 5 and plain counts: .821 by RP alone and .828 with HM, mostly because most
//! pages here have a replica.

pub mod collide;
pub mod hyperlink_map;
pub mod random_projection;

/// The value 1 of signatures and tolerances.
pub const ONE: u64 = 1_000_000_000_000;

/// RP signature of a page: K numbers from 0 to [`ONE`].
pub type RpSignature = Vec<u64>;

/// A tolerance from a job file, in parts of [`ONE`].
pub fn parts(tolerance: f64) -> u64 {
    (tolerance * ONE as f64).round() as u64
}

/// A number of parts of [`ONE`] as a number from 0 to 1, as in tables.
pub fn number(part: u64) -> f64 {
    part as f64 / ONE as f64
}

/// Distance in the maximum norm, in parts of [`ONE`].
pub fn distance(x: &[u64], y: &[u64]) -> u64 {
    x.iter().zip(y).map(|(x, y)| x.abs_diff(*y)).max().unwrap_or(0)
}
