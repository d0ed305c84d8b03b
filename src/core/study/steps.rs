//! The m-step algorithm as in the paper, with one hash table a step: the reference for
//! [`super::clusters`].
//!
//! # Source
//! \[PBZ06\] section 3 and Figure 1.
//!
//! # Deviations
//! "If one of the documents of the pair was previously inserted into a given cluster, then the
//! other document of the pair is inserted into the same cluster": if both were inserted before, the
//! two clusters become one.

use std::collections::{HashMap, HashSet};

use super::clusters::{GrowthStep, StudyClusters, step_of};
use crate::clusters::union_find::UnionFind;
use webtwin_base::ids::{FPrint, Page};

/// Finds the clusters of documents in `steps` steps. Each document is given by its shingle
/// paragraphs in any order.
///
/// # Cost
/// Each document is looked up once a step.
///
/// # Examples
/// The result depends on the order of the documents: "eded" is found in "bedf", but "bedf" is not
/// found in "eded".
/// ```
/// use webtwin_core::study::steps::by_steps;
///
/// let duplicates = |documents: [&str; 2]| {
///     let documents = documents.map(|letters| letters.bytes().map(u64::from).collect());
///     by_steps(&documents, 2).growth[1].duplicates
/// };
/// assert_eq!(duplicates(["bedf", "eded"]), 1);
/// assert_eq!(duplicates(["eded", "bedf"]), 0);
/// ```
pub fn by_steps(documents: &[Vec<FPrint>], steps: u32) -> StudyClusters {
    let count = documents.len() as u64;
    let mut sets = UnionFind::new(documents.len());
    let mut growth = Vec::new();
    let mut start = 0;
    for step in 0..steps {
        let end = (0..documents.len()).find(|&at| step_of(at as u64, count, steps) > step).unwrap_or(documents.len());
        let mut table: HashMap<FPrint, Vec<usize>> = HashMap::new();
        for (within, document) in documents.iter().enumerate().take(end).skip(start) {
            let different: HashSet<FPrint> = document.iter().copied().collect();
            different.into_iter().for_each(|paragraph| table.entry(paragraph).or_default().push(within));
        }
        for (at, document) in documents.iter().enumerate().skip(start) {
            let mut hit_counts: HashMap<usize, usize> = HashMap::new();
            let hits = document.iter().filter_map(|paragraph| table.get(paragraph)).flatten();
            hits.for_each(|&within| *hit_counts.entry(within).or_default() += 1);
            for (within, hits) in hit_counts {
                if within != at && hits == document.len() && document.len() == documents[within].len() {
                    sets.union(at as u32, within as u32);
                }
            }
        }
        let labels = sets.clone().labels();
        let mut sizes = vec![0u64; labels.len()];
        labels.iter().for_each(|&label| sizes[label as usize] += 1);
        let clustered = sizes.iter().filter(|&&size| size > 1);
        growth.push(GrowthStep {
            documents: end as u64,
            clusters: clustered.clone().count() as u64,
            duplicates: clustered.map(|size| size - 1).sum(),
        });
        start = end;
    }
    let labels: Vec<Page> = bytemuck::cast_vec(sets.labels());
    StudyClusters { labels, growth }
}
