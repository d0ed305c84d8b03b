//! Tables of similar pairs at the scale of the papers: the input of trivial clusters.
//!
//! 48 % of the pages are in clusters, and all pairs of these are in the table: about 8.5 pairs per page, 200 million
//! for 24 million. Any part of the table can be made without the others.
//!
//! # Source
//! \[SGM98\] section 3 for the share of pages without a replica.
//!
//! # Deviations
//! - The papers do not publish how many pairs they found; the sizes of clusters are chosen for that number of pairs.

use std::ops::Range;

use super::groups::Groups;
use webtwin_base::ids::{Page, splitmix64};
use webtwin_core::overlap::SimilarPair;
use webtwin_synth::random::key;

/// (Pages per cluster, pages of all such clusters per thousand).
const CLASSES: [(u32, u32); 6] = [(1, 520), (2, 150), (5, 100), (20, 130), (100, 60), (200, 40)];

/// A made-up table of similar pairs.
#[derive(Debug, Clone)]
pub struct PairTable {
    groups: Groups,
    seed: u64,
}

impl PairTable {
    /// Plans the table; another seed gives another table.
    pub fn new(pages: u32, seed: u64) -> PairTable {
        PairTable { groups: Groups::new(pages, key(seed, &[4]), CLASSES.into_iter()), seed }
    }

    /// Numbers of the pages of part `part` of `parts`.
    pub fn part(&self, part: usize, parts: usize) -> Range<u32> {
        let start = |part: usize| (u64::from(self.groups.pages()) * part as u64 / parts as u64) as u32;
        start(part)..start(part + 1)
    }

    /// The pairs whose smaller page is in a range: by that page, its partners in no particular order; `value` is 25 to 56.
    ///
    /// # Cost
    /// About 20 ns for each two pages of a cluster, in either order.
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

    /// Number of a page's cluster: equal exactly for pages in one cluster.
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
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        whole.extend(table.pairs(0..50_000));
        (0..7).for_each(|part| parts.extend(table.pairs(table.part(part, 7))));
        assert_eq!(whole, parts);
        assert!((8.0..9.0).contains(&(whole.len() as f64 / 50_000.0)), "{} pairs", whole.len());
        assert!(whole.iter().all(|pair| pair.a < pair.b && table.cluster(pair.a) == table.cluster(pair.b)));
        whole.sort_unstable();
        whole.dedup_by_key(|pair| (pair.a, pair.b));
        assert_eq!(whole.len(), parts.len());
    }
}
