//! Tables of similar pairs at the scale of the papers: the input of trivial clusters.
//!
//! 48 % of the pages are in clusters, and the table contains all pairs of each cluster: about 8.5
//! pairs per page, 200 million for 24 million pages. Any part of the table can be made
//! independently.
//!
//! # Source
//! \[SGM98\] section 3 for the fraction of pages without a replica.
//!
//! # Deviations
//! - The papers do not publish the number of pairs. The sizes of clusters are chosen to yield this
//!   number.

use std::ops::Range;

use super::groups::GroupAssignment;
use webtwin_base::ids::{Page, splitmix64};
use webtwin_core::overlap::SimilarPair;
use webtwin_synth::random::key;

/// Classes of clusters: number of pages per cluster, and number of pages of all such clusters per
/// thousand.
const CLASSES: [(u32, u32); 6] = [(1, 520), (2, 150), (5, 100), (20, 130), (100, 60), (200, 40)];

/// A synthetic table of similar pairs.
#[derive(Debug, Clone)]
pub struct PairTable {
    groups: GroupAssignment,
    seed: u64,
}

impl PairTable {
    /// Plans the table. Different seeds yield different tables.
    pub fn new(pages: u32, seed: u64) -> PairTable {
        PairTable { groups: GroupAssignment::new(pages, key(seed, &[4]), CLASSES.into_iter()), seed }
    }

    /// Returns the numbers of the pages in share `part` of `parts`.
    pub fn part(&self, part: usize, parts: usize) -> Range<u32> {
        let start = |part: usize| (u64::from(self.groups.pages()) * part as u64 / parts as u64) as u32;
        start(part)..start(part + 1)
    }

    /// Returns the pairs whose smaller page is in a range, ordered by that page, with its partners
    /// in no particular order. `value` is 25 to 56.
    ///
    /// # Cost
    /// About 20 ns for each ordered pair of pages in a cluster.
    pub fn pairs(&self, pages: Range<u32>) -> impl Iterator<Item = SimilarPair> + '_ {
        pages.map(Page).flat_map(move |a| {
            let place = self.groups.place(self.groups.slot(a));
            let slots = place.first..place.first + self.groups.size(place.class);
            slots.map(|slot| self.groups.doc(slot)).filter(move |&b| b > a).map(move |b| {
                let value = 25 + splitmix64(self.seed ^ u64::from(a) << 32 ^ u64::from(b)) as u32 % 32;
                SimilarPair { a, b, value }
            })
        })
    }

    /// Returns the number of the cluster of a page, which is equal exactly for pages in one
    /// cluster.
    pub fn cluster(&self, doc: Page) -> u32 {
        self.groups.place(self.groups.slot(doc)).first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_pairs_of_the_whole_which_join_the_planted_clusters() {
        let table = PairTable::new(50_000, 2);
        let (mut complete, mut parts) = (Vec::new(), Vec::new());
        complete.extend(table.pairs(0..50_000));
        (0..7).for_each(|part| parts.extend(table.pairs(table.part(part, 7))));
        assert_eq!(complete, parts);
        assert!((8.0..9.0).contains(&(complete.len() as f64 / 50_000.0)), "{} pairs", complete.len());
        assert!(complete.iter().all(|pair| pair.a < pair.b && table.cluster(pair.a) == table.cluster(pair.b)));
        complete.sort_unstable();
        complete.dedup_by_key(|pair| (pair.a, pair.b));
        assert_eq!(complete.len(), parts.len());
    }
}
