//! `FPrint-DocID` becomes `Overlap`: which pages share enough chunks to be similar.
//!
//! In: [`FPrintDocId`] rows, one for each chunk of each page (each chunk once a page). Out: [`SimilarPair`]s.
//!
//! The papers call two pages similar when they share F >= T fingerprints. On real pages that fails twice: short pages
//! can never share T chunks, and long ones share that much site furniture. So a chunk counts only if it is neither
//! furniture ([`filter`]) nor all over the crawl, F is also held against the chunks of the larger page
//! ([`is_pairwise_similar`]), and a pair joins two clusters only if no page of one stands beside a page of the other in one
//! collection ([`neighbours`]), or if neither page has a better match on the other's host ([`guard`]), or only through a pair
//! with the cluster's centre ([`centre`]). Each is a setting; without them what is left is the paper's definition.
//!
//! # Source
//! \[SGM98\] section 2 for the table and F >= T, 2.1 for the sort-based approach.
//!
//! # Deviations
//! - F >= T throughout, as in the definition; section 2.1 step 4 says "more than T".
//! - The number of chunks of a page, against which F is held, leaves out the chunks that do not count.

pub mod centre;
pub mod coarse_count;
pub mod count_pairs;
pub mod filter;
pub mod guard;
pub mod neighbours;
pub mod planner;
pub mod prune;
pub mod rows;
pub mod runs;
pub mod servers;
pub mod sort_based;

use bytemuck::{Pod, Zeroable};

use crate::ids::{FPrint, Rank};
use crate::job::Overlap;

/// A row of `FPrint-DocID`: 12 bytes. Rows order by fingerprint, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FPrintDocId {
    fprint_high: u32,
    fprint_low: u32,
    /// The page.
    pub doc: Rank,
}

impl FPrintDocId {
    /// A row.
    pub fn new(fprint: FPrint, doc: Rank) -> FPrintDocId {
        FPrintDocId { fprint_high: (fprint >> 32) as u32, fprint_low: fprint as u32, doc }
    }

    /// The chunk's fingerprint.
    pub fn fprint(&self) -> FPrint {
        u64::from(self.fprint_high) << 32 | u64::from(self.fprint_low)
    }

    /// The row as a number in which rows order.
    pub fn key(&self) -> u128 {
        u128::from(self.fprint()) << 32 | u128::from(self.doc)
    }
}

/// Two pages found similar by one measure; `a < b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct SimilarPair {
    /// The smaller page.
    pub a: Rank,
    /// The larger page.
    pub b: Rank,
    /// F, the fingerprints shared; for simhashes the bits in which they differ; 0 for exact copies.
    pub value: u32,
}

/// Parts of a million that a share given in a job file stands for; comparisons are made in whole numbers.
fn millionths(share: f64) -> u64 {
    (share * 1e6).round() as u64
}

/// The test *ST* of \[CSG00\] Def. 4 by shared chunks: F >= T, and F >= share x (chunks of the larger page + doubt).
pub fn is_pairwise_similar(shared: u32, left_chunks: u32, right_chunks: u32, settings: &Overlap) -> bool {
    let larger = u64::from(left_chunks.max(right_chunks)) + u64::from(settings.doubt);
    shared >= settings.min_shared && u64::from(shared) * 1_000_000 >= millionths(settings.min_resemblance) * larger
}
