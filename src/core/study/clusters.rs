//! Clusters of duplicates within a collection, and the growth of their number from step to step of
//! the m-step algorithm.
//!
//! The steps of the algorithm need not be executed. Documents of one multiset are all joined in the
//! step of the first of them, and a match (d, e) joins in the step of e if any document of d's
//! multiset is still in C. So clusters and growth follow from the multisets, their first and last
//! documents, and the few matches between them.
//!
//! # Source
//! \[PBZ06\] section 3; section 4.2 and Figure 5 for the growth. The steps themselves:
//! [`super::steps`].

use serde::{Deserialize, Serialize};

use super::matches::DocumentMatch;
use crate::clusters::union_find::UnionFind;
use webtwin_base::ids::Page;

/// Totals after a step: a point of \[PBZ06\] Figure 5.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthStep {
    /// Number of documents in the subcollections so far.
    pub documents: u64,
    /// Number of clusters found.
    pub clusters: u64,
    /// Number of duplicates found: clustered documents, without one document of each cluster.
    pub duplicates: u64,
}

/// Clusters of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyClusters {
    /// First document of the cluster of each page. A unique document, and a page that is not a
    /// document of the collection, is its own label.
    pub labels: Vec<Page>,
    /// Totals after each step.
    pub growth: Vec<GrowthStep>,
}

/// Returns the step whose subcollection contains document `position` of `count`.
pub fn step_of(position: u64, count: u64, steps: u32) -> u32 {
    (position * u64::from(steps) / count) as u32
}

/// Number that marks the absence of a document.
const NONE: u32 = u32::MAX;

/// Documents of one multiset within the collection.
#[derive(Clone, Copy)]
struct EqualTexts {
    /// Step of the first document.
    first: u32,
    /// Step of the last document.
    last: u32,
    /// Number of documents.
    size: u32,
    /// Step in which the documents are joined.
    join_step: u32,
}

/// Finds the clusters of the documents for which `is_counted` is true, ascending, with the result
/// of `steps` steps.
///
/// `same_text[page]` is the smallest page of its multiset; `matches` are between such pages.
///
/// # Cost
/// A few passes over the pages; 24 bytes a page.
///
/// # Examples
/// Pages 0, 2 and 3 have the same paragraphs. The first of two steps finds all three, because it
/// searches the whole collection for the documents of its half.
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::study::clusters::{GrowthStep, clusters};
///
/// let same = [0, 1, 0, 0].map(Page);
/// let found = clusters(&same, &[], |_| true, 2);
/// assert_eq!(found.labels, same);
/// assert_eq!(found.growth[0], GrowthStep { documents: 2, clusters: 1, duplicates: 2 });
/// assert_eq!(found.growth[1], GrowthStep { documents: 4, clusters: 1, duplicates: 2 });
/// ```
pub fn clusters(
    same_text: &[Page],
    matches: &[DocumentMatch],
    is_counted: impl Fn(Page) -> bool,
    steps: u32,
) -> StudyClusters {
    let pages = || Page::first(same_text.len()).filter(|&page| is_counted(page));
    let count = pages().count() as u64;
    let mut groups = vec![EqualTexts { first: NONE, last: 0, size: 0, join_step: NONE }; same_text.len()];
    let mut growth = vec![GrowthStep::default(); steps as usize];
    for (page, position) in pages().zip(0..) {
        let step = step_of(position, count, steps);
        growth[step as usize].documents += 1;
        let group = &mut groups[same_text[page]];
        group.first = group.first.min(step);
        (group.join_step, group.last) = (group.first, step);
        group.size += 1;
    }
    // Matches that a step finds, ordered by step.
    let mut joins: Vec<(u32, Page, Page)> = Vec::new();
    for &DocumentMatch { document, within } in matches {
        let at = groups[within].first;
        let compared = &mut groups[document];
        // A match is found only if a document of d's multiset is still in C at the step of e.
        if at != NONE && compared.size > 0 && compared.last >= at {
            compared.join_step = compared.join_step.min(at);
            joins.push((at, document, within));
        }
    }
    joins.sort_unstable();
    // Numbers of clusters and duplicates that each step adds. The number of clusters may decrease.
    let mut additions = vec![(0i64, 0u64); steps as usize];
    for group in groups.iter().filter(|alike| alike.size > 1) {
        let (clusters, duplicates) = &mut additions[group.join_step as usize];
        *clusters += 1;
        *duplicates += u64::from(group.size) - 1;
    }
    let mut sets = UnionFind::new(same_text.len());
    for (at, document, within) in joins {
        let (x, y) = (sets.find(document.0), sets.find(within.0));
        if sets.union(x, y) {
            let (x_size, y_size) = (groups[x as usize].size, groups[y as usize].size);
            let (clusters, duplicates) = &mut additions[at as usize];
            *clusters += 1 - i64::from(x_size > 1) - i64::from(y_size > 1);
            *duplicates += 1;
            groups[x.min(y) as usize].size = x_size + y_size;
        }
    }
    let mut sum = GrowthStep::default();
    for (step, (clusters, duplicates)) in growth.iter_mut().zip(additions) {
        sum.documents += step.documents;
        sum.clusters = sum.clusters.checked_add_signed(clusters).expect("only clusters that were found are joined");
        sum.duplicates += duplicates;
        *step = sum;
    }
    drop(groups);
    let mut labels: Vec<Page> = Page::first(same_text.len()).collect();
    let mut first = vec![Page::NONE; same_text.len()];
    for page in pages() {
        let first = &mut first[sets.find(same_text[page].0) as usize];
        *first = page.min(*first);
        labels[page] = *first;
    }
    StudyClusters { labels, growth }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::matches::matches;
    use super::super::paragraphs::mark;
    use super::super::steps::by_steps;
    use super::*;
    use webtwin_base::ids::splitmix64;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn clusters_and_their_growth_equal_the_steps(
            texts in prop::collection::vec((prop::collection::vec(0u64..4, 1..5), 0u8..4), 1..40), steps in 1u32..12
        ) {
            let marks = |text: &[u64]| {
                let mut marks: Vec<u64> = text.iter().map(|&name| splitmix64(name)).collect();
                mark(&mut marks);
                marks
            };
            let mut first: BTreeMap<Vec<u64>, Page> = BTreeMap::new();
            let same_text: Vec<Page> = Page::first(texts.len())
                .map(|page| *first.entry(marks(&texts[page].0)).or_insert(page))
                .collect();
            let mut centres: Vec<(Page, Vec<u64>)> = first.into_iter().map(|(marks, page)| (page, marks)).collect();
            centres.sort_unstable();
            let is_counted = |page: Page| texts[page].1 > 0;
            let actual = clusters(&same_text, &matches(&centres), is_counted, steps);

            let pages: Vec<Page> = Page::first(texts.len()).filter(|&page| is_counted(page)).collect();
            let documents: Vec<Vec<u64>> = pages.iter().map(|&page| texts[page].0.clone()).collect();
            let expected = by_steps(&documents, steps);
            if !pages.is_empty() {
                prop_assert_eq!(actual.growth, expected.growth);
            }
            for (&page, label) in pages.iter().zip(expected.labels) {
                prop_assert_eq!(actual.labels[page], pages[label]);
            }
        }
    }
}
