//! Comparison of live clusters with the clusters of a run over the same pages. The run is the
//! reference.

use std::collections::HashMap;

use serde::Serialize;

use webtwin_base::ids::DocId;

/// Numbers of page pairs that are in one cluster: in the live index, in a run, and in both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Agreement {
    /// Number of pages that are both in the live index and in the run. Only these pages form pairs.
    pub pages: u64,
    /// Number of pairs of pages that are in one live cluster.
    pub live_pairs: u64,
    /// Number of pairs of pages that are in one cluster of the run.
    pub run_pairs: u64,
    /// Number of pairs of pages that are in one live cluster and in one cluster of the run.
    pub common_pairs: u64,
    /// Fraction of the live pairs that are also pairs of the run; 1 if there are no live pairs.
    pub precision: f64,
    /// Fraction of the pairs of the run that are also live pairs; 1 if the run has no pairs.
    pub recall: f64,
}

impl Agreement {
    /// Compares live clusters with the clusters of a run. Both map a page to its cluster; in `run`,
    /// a page without copies is its own cluster.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use webtwin_live::Agreement;
    ///
    /// let run = HashMap::from([(1, 1), (2, 1), (3, 1), (4, 4)]);
    /// let agreement = Agreement::measure([(1, 1), (2, 1), (3, 3), (4, 3), (9, 9)], &run);
    /// assert_eq!((agreement.pages, agreement.live_pairs), (4, 2));
    /// assert_eq!((agreement.run_pairs, agreement.common_pairs), (3, 1));
    /// ```
    ///
    /// # Cost
    /// Linear in the number of pages.
    pub fn measure(live: impl IntoIterator<Item = (DocId, DocId)>, run: &HashMap<DocId, DocId>) -> Agreement {
        let cluster_pairs = live.into_iter().filter_map(|(page, cluster)| Some((cluster, *run.get(&page)?)));
        let mut counts: HashMap<(DocId, DocId), u64> = HashMap::new();
        cluster_pairs.for_each(|clusters| *counts.entry(clusters).or_default() += 1);
        let pairs =
            |counts: &mut dyn Iterator<Item = u64>| -> u64 { counts.map(|pages| pages * (pages - 1) / 2).sum() };
        let sum_by = |cluster: fn(&(DocId, DocId)) -> DocId| {
            let mut sums: HashMap<DocId, u64> = HashMap::new();
            counts.iter().for_each(|(clusters, pages)| *sums.entry(cluster(clusters)).or_default() += pages);
            pairs(&mut sums.into_values())
        };
        let (live_pairs, run_pairs) = (sum_by(|clusters| clusters.0), sum_by(|clusters| clusters.1));
        let common_pairs = pairs(&mut counts.values().copied());
        let share = |of: u64| if of == 0 { 1.0 } else { common_pairs as f64 / of as f64 };
        Agreement {
            pages: counts.values().sum(),
            live_pairs,
            run_pairs,
            common_pairs,
            precision: share(live_pairs),
            recall: share(run_pairs),
        }
    }
}
