//! Precision and recall of colliding signatures for a whole grid of tolerances, computed by one
//! join.

use webtwin_core::signatures::collide::{Points, collisions};
use webtwin_core::signatures::{distance, parts};

/// Number of tolerances per decade of the grid.
const TOLERANCES_PER_DECADE: i32 = 8;

/// Maximum number of pairs examined per true pair. Looser tolerances give too many pairs to be of
/// interest.
const PAIRS_PER_TRUE_PAIR: u64 = 50;

/// A page with its signatures and its name.
pub(super) struct Page {
    /// Components of the RP signature, followed by those of the HM signature.
    pub point: Vec<u64>,
    /// Name that is equal for copies of each other; `None` for a page without a target.
    pub name: Option<u32>,
}

/// Precision and recall at one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quality {
    /// Fraction of true objects among the returned ones.
    pub precision: f64,
    /// Fraction of returned objects among the true ones.
    pub recall: f64,
}

impl Quality {
    fn of(hits: u64, n_returned: u64, actual: u64) -> Quality {
        let share = |whole: u64| if whole == 0 { 0.0 } else { hits as f64 / whole as f64 };
        Quality { precision: if n_returned == 0 { 1.0 } else { share(n_returned) }, recall: share(actual) }
    }

    /// Returns the value at the break-even point of a curve, where precision and recall are equal.
    /// On a grid, this is the value at the nearest point.
    pub(super) fn break_even(&self) -> f64 {
        self.precision.min(self.recall)
    }
}

/// Quality at one (C, D), counted in two ways.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CurvePoint {
    /// Quality of pairs: a pair is true if its pages are copies of one page.
    pub pairs: Quality,
    /// Quality of documents, as in the paper: a document is returned if it collides with another,
    /// and true if it has a replica.
    pub documents: Quality,
}

/// Quality for each D and each C of [`Curves::tolerances`].
pub(super) struct Curves {
    /// Values of C and D, ascending to 1.
    pub tolerances: Vec<f64>,
    /// One row per examined D, with one cell per C. The last cell of a row is that of RP alone.
    pub cells: Vec<Vec<CurvePoint>>,
    /// Number of pairs of copies.
    pub true_pairs: u64,
}

impl Curves {
    /// Measures `pages`, whose signatures have `dims` components each.
    ///
    /// # Cost
    /// One join for each D, of which all but the last only count. Memory of one byte per page and
    /// D.
    pub(super) fn new(pages: &[Page], dims: usize) -> Curves {
        let tolerances: Vec<f64> = (0..=10 * TOLERANCES_PER_DECADE)
            .rev()
            .map(|step| 10f64.powf(f64::from(-step) / f64::from(TOLERANCES_PER_DECADE)))
            .collect();
        let bounds: Vec<u64> = tolerances.iter().map(|&tolerance| parts(tolerance)).collect();
        let step = |distance: u64| bounds.partition_point(|&bound| bound <= distance);
        let steps = tolerances.len();

        let mut points = Points::new(dims);
        pages.iter().for_each(|page| points.push(&page.point[..dims]));
        let mut replicas = std::collections::BTreeMap::new();
        pages.iter().filter_map(|page| page.name).for_each(|name| *replicas.entry(name).or_insert(0u64) += 1);
        let true_pairs = replicas.values().map(|n| n * (n - 1) / 2).sum::<u64>();
        let replica_flags: Vec<bool> =
            pages.iter().map(|page| page.name.is_some_and(|name| replicas[&name] > 1)).collect();

        let max_pairs = PAIRS_PER_TRUE_PAIR * true_pairs.max(1000);
        let count = |bound: u64| {
            let mut pairs = 0;
            collisions(&points, points.len(), &vec![bound; dims], |block| pairs += block.count());
            pairs
        };
        // Counting a block costs nothing per pair, so D is widened until there are too many pairs
        // to enumerate.
        let n_bounds = bounds.iter().take_while(|&&bound| count(bound) <= max_pairs).count().max(1);

        // `pairs` has the numbers of wrong and right pairs by the first step of D and of C at which
        // they collide. `n_returned` has the first step of C by page and D.
        let mut pairs = vec![[0u64; 2]; n_bounds * (steps + 1)];
        let mut n_returned = vec![u8::MAX; n_bounds * pages.len()];
        collisions(&points, points.len(), &vec![bounds[n_bounds - 1]; dims], |block| {
            block.for_each_pair(|x, y| {
                let (x, y) = (x as usize, y as usize);
                let (first, second) = (&pages[x], &pages[y]);
                let rp = step(distance(&first.point[..dims], &second.point[..dims]));
                let hm = step(distance(&first.point[dims..], &second.point[dims..]));
                let right = first.name.is_some() && first.name == second.name;
                pairs[rp * (steps + 1) + hm][usize::from(right)] += 1;
                for page in [x, y] {
                    let first = &mut n_returned[page * n_bounds + rp];
                    *first = (*first).min(hm as u8);
                }
            });
        });

        let documents_with_replica = replica_flags.iter().filter(|has| **has).count() as u64;
        let (mut pairs_by_hm, mut first_hm) = (vec![[0u64; 2]; steps], vec![usize::MAX; pages.len()]);
        let cells = (0..n_bounds).map(|rp| {
            let mut documents_by_hm = vec![[0u64; 2]; steps];
            for (page, first) in first_hm.iter_mut().enumerate() {
                *first = (*first).min(usize::from(n_returned[page * n_bounds + rp]));
                if *first < steps {
                    documents_by_hm[*first][usize::from(replica_flags[page])] += 1;
                }
            }
            // Sums along C within a row, in addition to the sums along D in `pairs_by_hm`, are
            // prefix sums over the grid.
            let (mut sum_pairs, mut sum_documents) = ([0; 2], [0; 2]);
            let row = (0..steps).map(|hm| {
                for right in 0..2 {
                    pairs_by_hm[hm][right] += pairs[rp * (steps + 1) + hm][right];
                    sum_pairs[right] += pairs_by_hm[hm][right];
                    sum_documents[right] += documents_by_hm[hm][right];
                }
                let quality = |[wrong, right]: [u64; 2], actual| Quality::of(right, wrong + right, actual);
                CurvePoint {
                    pairs: quality(sum_pairs, true_pairs),
                    documents: quality(sum_documents, documents_with_replica),
                }
            });
            row.collect()
        });
        let cells = cells.collect();
        Curves { tolerances, cells, true_pairs }
    }

    /// Returns the steps (D, C) of the best break-even point: with C = 1 for RP alone, or with any
    /// C.
    pub(super) fn best(&self, quality_of: fn(&CurvePoint) -> Quality, is_single: bool) -> (usize, usize) {
        let last = self.tolerances.len() - 1;
        let cells = (0..self.cells.len()).flat_map(|rp| (0..=last).map(move |hm| (rp, hm)));
        let best = cells.filter(|&(_, hm)| !is_single || hm == last).max_by(|&(rp, hm), &(other_rp, other_hm)| {
            let break_even_at = |rp: usize, hm: usize| quality_of(&self.cells[rp][hm]).break_even();
            break_even_at(rp, hm).total_cmp(&break_even_at(other_rp, other_hm))
        });
        best.expect("at least one D is looked at")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_base::ids::splitmix64;

    #[test]
    fn every_cell_equals_what_its_tolerances_return() {
        let near_value = |seed: u64, dim: u64| {
            400_000_000_000
                + splitmix64(seed % 20 * 7 + dim) % 100_000_000_000
                + splitmix64(seed * 3 + dim) % 40_000_000
        };
        let pages: Vec<Page> = (0..60)
            .map(|seed| Page {
                point: (0..4).map(|dim| near_value(seed, dim)).collect(),
                name: (seed % 7 > 0).then_some((seed % 20) as u32),
            })
            .collect();
        let curves = Curves::new(&pages, 2);
        let true_pair = |x: usize, y: usize| pages[x].name.is_some() && pages[x].name == pages[y].name;
        let all_pairs: Vec<(usize, usize)> = (0..60).flat_map(|x| (x + 1..60).map(move |y| (x, y))).collect();
        let replicated: Vec<bool> =
            (0..60).map(|x| all_pairs.iter().any(|&(a, b)| (a == x || b == x) && true_pair(a, b))).collect();
        assert_eq!(curves.true_pairs as usize, all_pairs.iter().filter(|pair| true_pair(pair.0, pair.1)).count());
        assert_eq!(curves.cells.len(), curves.tolerances.len());
        for (rp, row) in curves.cells.iter().enumerate() {
            for (hm, cell) in row.iter().enumerate() {
                let (d, c) = (parts(curves.tolerances[rp]), parts(curves.tolerances[hm]));
                let collide = |x: usize, y: usize| {
                    let (x, y) = (&pages[x].point, &pages[y].point);
                    distance(&x[..2], &y[..2]) < d && distance(&x[2..], &y[2..]) < c
                };
                let pairs: Vec<_> = all_pairs.iter().filter(|pair| collide(pair.0, pair.1)).collect();
                let right = pairs.iter().filter(|pair| true_pair(pair.0, pair.1)).count() as u64;
                assert_eq!(cell.pairs, Quality::of(right, pairs.len() as u64, curves.true_pairs));
                let returned_docs: Vec<usize> =
                    (0..60).filter(|&x| pairs.iter().any(|pair| pair.0 == x || pair.1 == x)).collect();
                let right = returned_docs.iter().filter(|&&x| replicated[x]).count() as u64;
                let actual = replicated.iter().filter(|has| **has).count() as u64;
                assert_eq!(cell.documents, Quality::of(right, returned_docs.len() as u64, actual));
            }
        }
    }
}
