//! `FPrint-DocID` becomes `Overlap`: which pages share enough chunks to be similar.
//!
//! In: [`FPrintDocId`] rows, one for each distinct chunk of each page. Out: [`SimilarPair`]s.
//!
//! The papers call two pages similar when they share F >= T fingerprints. On real pages that fails twice: short pages
//! can never share T chunks, and long ones share that much site furniture. So a chunk counts only if it is neither
//! furniture ([`filter`]) nor all over the crawl, and F is also compared with the number of chunks of the larger page
//! ([`is_pairwise_similar`]). A guard then decides which pairs may join clusters: none that puts two neighbours on one
//! host together ([`neighbours`]), only each page's best match on the other's host ([`guard`]), or only pairs with the
//! cluster's centre ([`centre`]). Once collections are known, pairs without any around them must share more ([`alone`]). Each of these is a setting; without them the paper's definition remains.
//!
//! # Source
//! \[SGM98\] section 2 for the table and F >= T, 2.1 for the sort-based approach.
//!
//! # Deviations
//! - F >= T throughout, as in the definition; section 2.1 step 4 says "more than T".
//! - The number of chunks of a page that F is compared with leaves out the chunks that do not count.

pub mod alone;
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
pub mod sample;
pub mod servers;
pub mod sort_based;
pub mod views;

use std::cmp::Ordering;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use webtwin_base::ids::{FPrint, Page};
use webtwin_job::Overlap;

/// A row of `FPrint-DocID`: 12 bytes. Rows order by fingerprint, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FPrintDocId {
    fprint_high: u32,
    fprint_low: u32,
    /// The page that has the chunk.
    pub doc: Page,
}

impl FPrintDocId {
    /// Makes a row.
    pub fn new(fprint: FPrint, doc: Page) -> FPrintDocId {
        FPrintDocId { fprint_high: (fprint >> 32) as u32, fprint_low: fprint as u32, doc }
    }

    /// Fingerprint of the chunk.
    pub fn fprint(&self) -> FPrint {
        u64::from(self.fprint_high) << 32 | u64::from(self.fprint_low)
    }

    /// The row as a number that sorts as rows do.
    pub fn key(&self) -> u128 {
        u128::from(self.fprint()) << 32 | u128::from(self.doc.0)
    }
}

/// Two pages found similar by one measure; `a < b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct SimilarPair {
    /// The smaller page.
    pub a: Page,
    /// The larger page.
    pub b: Page,
    /// F, the fingerprints shared; for simhashes, the bits in which they differ; for signatures, their distance in
    /// billionths; for shingles, their resemblance in millionths; 0 for exact copies; what was given of given pairs.
    pub value: u32,
}

/// |A ∩ B| and |A ∪ B| of two sets, each ascending. One pass over both.
pub fn in_common(a: &[u64], b: &[u64]) -> (usize, usize) {
    let (mut x, mut y, mut common) = (0, 0, 0);
    while x < a.len() && y < b.len() {
        match a[x].cmp(&b[y]) {
            Ordering::Less => x += 1,
            Ordering::Greater => y += 1,
            Ordering::Equal => (x, y, common) = (x + 1, y + 1, common + 1),
        }
    }
    (common, a.len() + b.len() - common)
}

/// A share from a job file in millionths, because comparisons are made in whole numbers.
fn millionths(share: f64) -> u64 {
    (share * 1e6).round() as u64
}

/// The test *ST* of \[CSG00\] Def. 4 by shared chunks: F >= T, and F >= share x (chunks of the larger page + doubt).
pub fn is_pairwise_similar(shared: u32, left_chunks: u32, right_chunks: u32, settings: &Overlap) -> bool {
    let larger = u64::from(left_chunks.max(right_chunks)) + u64::from(settings.doubt);
    shared >= settings.min_shared && u64::from(shared) * 1_000_000 >= millionths(settings.min_resemblance) * larger
}

/// True if `shared` chunks are a tenth of all `chunks` of the smaller page. Pages of one host that share fewer are similar only by what
/// the filters have left of them.
pub fn is_covered(shared: u32, chunks: u32) -> bool {
    u64::from(shared) * 10 >= u64::from(chunks)
}
