//! Tables of the paper, from clusters, matches and the reached pages.
//!
//! # Source
//! \[PBZ06\] Tables 2 to 6, Figures 2 to 5, Definitions 3 to 5.
//!
//! # Deviations
//! - Table 3 counts near-duplicates as Table 2 counts duplicates: of each set that pairs join, all
//!   documents but one. (By the letter of Definition 5 the original duplicated documents would be
//!   near-duplicates of their duplicates, and the table's figures would be larger by the clusters
//!   of Table 2.) The number of documents that have another one at that nearness is given in
//!   addition.
//! - "This percentage is related to the number of shingle paragraphs of both documents": here it is
//!   the number of occurrences of paragraphs that two documents share, divided by the number of
//!   paragraphs of the longer one.
//! - Near-duplicates are counted exactly, and include the duplicates, as "slightly greater than the
//!   percentage of duplicates" (section 4.1) implies: the duplicates that the m steps find,
//!   including false matches. A false match that the steps never search, because its document left
//!   C before the other's step, makes no near-duplicate either; so Table 3 depends on m as Table 2
//!   does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::clusters::{GrowthStep, StudyClusters, clusters};
use super::estimate::{Estimate, PERCENTS, estimate};
use super::matches::DocumentMatch;
use crate::overlap::prune::PageSet;
use webtwin_base::ids::Page;

/// Minimum percentages of Table 3.
pub const NEAR_PERCENTAGES: [u32; 3] = [90, 70, 50];

/// Returns the index of the first percentage of [`NEAR_PERCENTAGES`] that two documents reach, or
/// `None` if they reach none. `paragraphs` is the number of paragraphs of the longer one.
///
/// # Examples
/// ```
/// use webtwin_core::study::report::{NEAR_PERCENTAGES, nearness};
///
/// let percent = |shared| nearness(shared, 10).map(|at| NEAR_PERCENTAGES[at]);
/// assert_eq!([9, 8, 4].map(percent), [Some(90), Some(70), None]);
/// ```
pub fn nearness(shared: u32, paragraphs: u32) -> Option<usize> {
    NEAR_PERCENTAGES.iter().position(|&percent| u64::from(shared) * 100 >= u64::from(percent) * u64::from(paragraphs))
}

/// Clusters and duplicates of a collection: a row of Table 2.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterTotals {
    /// Number of documents.
    pub documents: u64,
    /// Number of clusters, each with one original duplicated document.
    pub clusters: u64,
    /// Number of duplicates.
    pub duplicates: u64,
    /// Percentage of documents that are duplicates.
    pub duplicates_percent: f64,
    /// Number of documents in no cluster.
    pub unique: u64,
    /// Number of unique and original documents.
    pub useful: u64,
    /// Number of clusters by the multiset rule, without false matches.
    pub clusters_by_multiset: u64,
    /// Number of duplicates by the multiset rule.
    pub duplicates_by_multiset: u64,
    /// Number of clusters by their number of documents: Figures 2 to 4.
    pub documents_per_cluster: BTreeMap<u64, u64>,
    /// Totals after each step: Figure 5.
    pub growth: Vec<GrowthStep>,
}

/// A number of documents or clusters, and the part of them in the connected part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectedCounts {
    /// Total number.
    pub all: u64,
    /// Number in the connected part.
    pub connected: u64,
    /// Percentage in the connected part.
    pub percent: f64,
}

/// A column of Table 3.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NearColumn {
    /// Minimum percentage of paragraphs shared, of the longer document.
    pub percent: u32,
    /// Number of documents that pairs of this nearness join to others, without one document of each
    /// set.
    pub near_duplicates: u64,
    /// Percentage of documents that are near-duplicates.
    pub near_duplicates_percent: f64,
    /// Number of documents that have another one of this nearness.
    pub with_another: u64,
}

/// The tables of a study.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tables {
    /// Table 2, and the first column of Table 4.
    pub complete: ClusterTotals,
    /// Table 4: clusters within the part that the crawl reaches.
    pub connected: ClusterTotals,
    /// Table 4: clusters within the part that the crawl does not reach.
    pub disconnected: ClusterTotals,
    /// Table 5: clusters of the complete collection with a document in the connected part.
    pub clusters_in_connected: ConnectedCounts,
    /// Table 6: unique documents of the complete collection.
    pub unique_in_connected: ConnectedCounts,
    /// Unique and original documents together.
    pub useful_in_connected: ConnectedCounts,
    /// Columns of Table 3.
    pub near: Vec<NearColumn>,
    /// Section 4.2: one half of the documents (every second one), estimated by the growth in the
    /// other half.
    pub estimates_by_other_half: Vec<Estimate>,
}

/// Input of the tables: pages, their documents, and matches.
pub struct Findings<'a> {
    /// Smallest page of the multiset of each page. A page that is not a document is its own.
    pub same_text: &'a [Page],
    /// Matches between such pages.
    pub matches: &'a [DocumentMatch],
    /// Pages that are documents.
    pub documents: &'a PageSet,
    /// Pages that a crawl reaches.
    pub reachable: &'a PageSet,
    /// m, the number of steps.
    pub steps: u32,
}

/// Returns a fraction as a percentage, rounded to four places so that it prints the same
/// everywhere.
///
/// # Examples
/// ```
/// use webtwin_core::study::report::percent;
///
/// // Duplicates of the collection of 2003 in Table 2, "38.9".
/// assert_eq!(percent(804_338, 2_067_278), 38.9081);
/// ```
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 1e6 / whole as f64).round() / 1e4 }
}

fn of_all(total: u64, connected: u64) -> ConnectedCounts {
    ConnectedCounts { all: total, connected, percent: percent(connected, total) }
}

/// Computes all tables except Table 3, and the clusters of the complete collection.
///
/// # Cost
/// Some passes over the pages for each of five collections.
pub fn tables(findings: &Findings<'_>) -> (Tables, StudyClusters) {
    let Findings { same_text, matches, documents, reachable, steps } = *findings;
    let is_document = |page: Page| documents.contains(page);
    let part = |of: &dyn Fn(Page) -> bool| part(same_text, matches, of, steps);
    let (complete, all_clusters) = part(&is_document);
    let (connected, _) = part(&|page| is_document(page) && reachable.contains(page));
    let (disconnected, _) = part(&|page| is_document(page) && !reachable.contains(page));

    let mut sizes = vec![0u32; same_text.len()];
    let mut connected_clusters = PageSet::new(same_text.len(), |_| false);
    for page in Page::first(same_text.len()).filter(|&page| is_document(page)) {
        let cluster = all_clusters.labels[page];
        sizes[cluster] += 1;
        if reachable.contains(page) {
            connected_clusters.insert(cluster);
        }
    }
    let count = |is_counted: fn(u32) -> bool| {
        let clusters = Page::first(sizes.len()).filter(|&page| is_counted(sizes[page]));
        clusters.filter(|&cluster| connected_clusters.contains(cluster)).count() as u64
    };
    let (clusters, unique) = (count(|size| size > 1), count(|size| size == 1));

    let halves = [0, 1]
        .map(|odd| self::clusters(same_text, matches, |page| is_document(page) && page.0 % 2 == odd, steps).growth);
    let estimates = PERCENTS.iter().filter_map(|&percent| estimate(&halves[0], &halves[1], percent)).collect();
    let tables = Tables {
        clusters_in_connected: of_all(complete.clusters, clusters),
        unique_in_connected: of_all(complete.unique, unique),
        useful_in_connected: of_all(complete.useful, clusters + unique),
        complete,
        connected,
        disconnected,
        near: Vec::new(),
        estimates_by_other_half: estimates,
    };
    (tables, all_clusters)
}

fn part(
    same_text: &[Page],
    matches: &[DocumentMatch],
    is_counted: &dyn Fn(Page) -> bool,
    steps: u32,
) -> (ClusterTotals, StudyClusters) {
    let cluster_counts = clusters(same_text, matches, is_counted, steps);
    let by_multiset = clusters(same_text, &[], is_counted, 1).growth[0];
    let mut sizes = vec![0u64; same_text.len()];
    Page::first(same_text.len())
        .filter(|&page| is_counted(page))
        .for_each(|page| sizes[cluster_counts.labels[page]] += 1);
    let mut documents_per_cluster = BTreeMap::new();
    for size in sizes.into_iter().filter(|&size| size > 1) {
        *documents_per_cluster.entry(size).or_default() += 1;
    }
    let GrowthStep { documents, clusters, duplicates } = cluster_counts.growth.last().copied().unwrap_or_default();
    let part = ClusterTotals {
        documents,
        clusters,
        duplicates,
        duplicates_percent: percent(duplicates, documents),
        unique: documents - clusters - duplicates,
        useful: documents - duplicates,
        clusters_by_multiset: by_multiset.clusters,
        duplicates_by_multiset: by_multiset.duplicates,
        documents_per_cluster,
        growth: cluster_counts.growth.clone(),
    };
    (part, cluster_counts)
}

/// Computes a column of Table 3, and the documents that have another one of this nearness.
/// `labels[page]` is the smallest page that pairs of at least `percent_shared` join a page to.
pub fn near(labels: &[Page], documents: &PageSet, percent_shared: u32) -> (NearColumn, PageSet) {
    let mut sizes = vec![0u64; labels.len()];
    let pages = Page::first(labels.len()).filter(|&page| documents.contains(page));
    pages.for_each(|page| sizes[labels[page]] += 1);
    let matched_pages = PageSet::new(labels.len(), |page| sizes[labels[page]] > 1);
    let sets = sizes.iter().filter(|&&size| size > 1).count() as u64;
    let near_duplicates = matched_pages.count() - sets;
    let row = NearColumn {
        percent: percent_shared,
        near_duplicates,
        near_duplicates_percent: percent(near_duplicates, documents.count()),
        with_another: matched_pages.count(),
    };
    (row, matched_pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_not_documents_are_not_counted() {
        let same_text = [0, 0, 2, 2, 4].map(Page);
        let documents = PageSet::new(5, |page| page < Page(3));
        let findings =
            Findings { same_text: &same_text, matches: &[], documents: &documents, reachable: &documents, steps: 3 };
        let (tables, clusters) = tables(&findings);
        assert_eq!(clusters.labels, [0, 0, 2, 3, 4].map(Page));
        let complete = &tables.complete;
        assert_eq!(
            (complete.documents, complete.clusters, complete.duplicates, complete.unique, complete.useful),
            (3, 1, 1, 1, 2)
        );
        let (near, matched_pages) = near(&clusters.labels, &documents, 90);
        assert_eq!((near.near_duplicates, near.with_another), (1, 2));
        assert!(matched_pages.contains(Page(1)) && !matched_pages.contains(Page(2)));
    }

    #[test]
    fn nearness_is_the_highest_percentage_reached_in_whole_numbers() {
        assert_eq!(nearness(9, 10), Some(0));
        assert_eq!((nearness(8, 10), nearness(7, 10)), (Some(1), Some(1)));
        assert_eq!((nearness(1, 2), nearness(4, 9), nearness(0, 1)), (Some(2), None, None));
    }
}
