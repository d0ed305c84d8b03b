//! Step from `FPrint-DocID` to `OverlapSettings`: finds pages that share enough chunks to be
//! similar.
//!
//! Input: [`FPrintDocId`] rows, one for each distinct chunk of each page. Output: [`SimilarPair`]s.
//!
//! The papers call two pages similar if they share F >= T fingerprints. On real pages this
//! definition fails in two ways: short pages can never share T chunks, and long pages of one site
//! share T chunks of boilerplate. Therefore a chunk counts only if it is neither boilerplate
//! ([`filter`]) nor frequent in the whole crawl, and F is also compared with the number of chunks
//! of the larger page ([`is_pairwise_similar`]). A guard then decides which pairs may join
//! clusters. The guards are: no pair that puts two neighbours on one host together
//! ([`neighbours`]), only each page's best match on the other page's host ([`guard`]), or only
//! pairs with the centre of the cluster ([`centre`]). Once collections are known, pairs that no
//! collection supports must share more chunks ([`unsupported`]). Each of these rules is a setting;
//! without them the definition of the paper remains.
//!
//! # Source
//! \[SGM98\] section 2 for the table and F >= T, section 2.1 for the sort-based approach.
//!
//! # Deviations
//! - The test is F >= T throughout, as in the definition. Section 2.1 step 4 has "more than T".
//! - F is compared with the number of chunks of a page that count. Chunks that do not count are
//!   left out of this number.

pub mod centre;
pub mod chunk_counts;
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
pub mod unsupported;
pub mod views;

use std::cmp::Ordering;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use webtwin_base::ids::{FPrint, Page};
use webtwin_job::OverlapSettings;

/// A row of `FPrint-DocID`: 12 bytes. Rows order by fingerprint, then page.
///
/// # Examples
/// Sorted rows have the pages of one chunk next to each other.
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::FPrintDocId;
///
/// let rows = [(9, 0), (7, 1), (7, 0)];
/// let mut table = rows.map(|(fprint, doc)| FPrintDocId::new(fprint, Page(doc)));
/// table.sort_unstable_by_key(FPrintDocId::key);
/// assert_eq!(table.map(|row| (row.fprint(), row.doc.0)), [(7, 0), (7, 1), (9, 0)]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FPrintDocId {
    fprint_high: u32,
    fprint_low: u32,
    /// The page that has the chunk.
    pub doc: Page,
}

impl FPrintDocId {
    /// Creates a row.
    pub fn new(fprint: FPrint, doc: Page) -> FPrintDocId {
        FPrintDocId { fprint_high: (fprint >> 32) as u32, fprint_low: fprint as u32, doc }
    }

    /// Returns the fingerprint of the chunk.
    pub fn fprint(&self) -> FPrint {
        u64::from(self.fprint_high) << 32 | u64::from(self.fprint_low)
    }

    /// Returns the row as a number that sorts as rows do.
    pub fn key(&self) -> u128 {
        u128::from(self.fprint()) << 32 | u128::from(self.doc.0)
    }
}

/// Two pages that one measure found similar; `a < b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct SimilarPair {
    /// The smaller page.
    pub a: Page,
    /// The larger page.
    pub b: Page,
    /// Value of the measure. Its meaning depends on the measure: F, the number of shared
    /// fingerprints, for chunks; the number of differing bits for simhashes; the distance in
    /// billionths for signatures; the resemblance in millionths for shingles; 0 for exact copies;
    /// the given value for given pairs.
    pub value: u32,
}

/// Returns |A ∩ B| and |A ∪ B| of two ascending sets, in one pass over both.
///
/// # Examples
/// ```
/// use webtwin_core::overlap::in_common;
///
/// assert_eq!(in_common(&[1, 3, 5], &[3, 4, 5]), (2, 4));
/// ```
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

/// Converts a fraction from a job file to millionths, because comparisons are made in whole
/// numbers.
fn millionths(share: f64) -> u64 {
    (share * 1e6).round() as u64
}

/// True if two pages pass the test *ST* of \[CSG00\] Def. 4 by shared chunks: F >= T, and F >=
/// fraction x (chunks of the larger page + doubt).
///
/// # Examples
/// ```
/// use webtwin_core::overlap::is_pairwise_similar;
/// use webtwin_job::OverlapSettings;
///
/// // The papers only ask for T = 10 shared chunks, however long the pages are.
/// let papers = OverlapSettings::of_papers(10);
/// assert!(is_pairwise_similar(10, 12, 500, &papers));
///
/// // The 10 chunks must also be a third of the larger page.
/// let third = OverlapSettings { min_resemblance: 1.0 / 3.0, ..papers };
/// assert!(is_pairwise_similar(10, 12, 30, &third));
/// assert!(!is_pairwise_similar(10, 12, 500, &third));
/// ```
pub fn is_pairwise_similar(shared: u32, left_chunks: u32, right_chunks: u32, settings: &OverlapSettings) -> bool {
    let larger = u64::from(left_chunks.max(right_chunks)) + u64::from(settings.doubt);
    shared >= settings.min_shared && u64::from(shared) * 1_000_000 >= millionths(settings.min_resemblance) * larger
}

/// True if `shared` is at least a tenth of `chunks`, the number of all chunks of the smaller page.
/// Pages of one host that share a smaller fraction are similar only by the chunks that the filters
/// have left.
pub fn is_covered(shared: u32, chunks: u32) -> bool {
    u64::from(shared) * 10 >= u64::from(chunks)
}
