//! Comparison of trivial clusters with groups of copies of one page.

use super::truth::{CommonPages, KnownPage};
use super::undecided::PageKinds;
use super::{ClusterRow, Ratio};
use webtwin_base::ids::DocId;

/// Counts of pairs of known pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownPairCounts {
    /// Number of pairs in one trivial cluster.
    pub predicted: u64,
    /// Number of pairs of target pages with equal target and page.
    pub actual: u64,
    /// Number of pairs that are both predicted and actual.
    pub hits: u64,
    /// Number of predicted pairs that are not hits, but have the same bytes or an equivalent
    /// relation (`undecided.rs`).
    pub accidental: u64,
    /// Number of other predicted pairs for which the truth leaves open whether they are hits.
    pub open: u64,
}

impl KnownPairCounts {
    /// Returns the number of predicted pairs that are hits or errors.
    pub fn decided(&self) -> u64 {
        self.predicted - self.accidental - self.open
    }

    /// Returns the fraction of true pairs among the predicted pairs that are neither accidental nor
    /// open.
    pub fn precision(&self) -> Ratio {
        Ratio { part: self.hits, whole: self.decided() }
    }

    /// Returns the fraction of predicted pairs among the true pairs.
    pub fn recall(&self) -> Ratio {
        Ratio { part: self.hits, whole: self.actual }
    }
}

/// Counts of trivial clusters, and of groups of copies of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterCounts {
    /// Number of clusters of at least two known pages.
    pub clusters: u64,
    /// Number of clusters whose known pages are all copies of one page.
    pub pure: u64,
    /// Number of groups of at least two copies of one page.
    pub groups: u64,
    /// Number of groups that are in one cluster.
    pub whole: u64,
}

/// Returns the cluster of each known page. If a page is in several, returns the smallest.
pub(super) fn cluster_of(common_pages: &CommonPages, rows: &[ClusterRow]) -> Vec<Option<DocId>> {
    let mut page_clusters = vec![None; common_pages.pages.len()];
    for row in rows {
        if let Some(&place) = common_pages.place.get(&row.doc_id) {
            let smallest = page_clusters[place].map_or(row.cluster, |other: DocId| other.min(row.cluster));
            page_clusters[place] = Some(smallest);
        }
    }
    page_clusters
}

/// Counts pairs and clusters by the sizes of groups.
pub(super) fn count(
    common_pages: &CommonPages,
    undecided: &PageKinds,
    page_clusters: &[Option<DocId>],
) -> (KnownPairCounts, ClusterCounts) {
    let (mut pairs, mut counts) = (KnownPairCounts::default(), ClusterCounts::default());
    let mut rows: Vec<(Option<u32>, Option<DocId>)> = common_pages
        .pages
        .iter()
        .zip(page_clusters)
        .map(|(page, &cluster)| (page.target_page.map(|target_page| target_page.name), cluster))
        .collect();

    rows.sort_unstable();
    for copies in rows.chunk_by(|a, b| a.0 == b.0).filter(|copies| copies[0].0.is_some()) {
        pairs.actual += pairs_of(copies);
        counts.groups += u64::from(copies.len() > 1);
        counts.whole +=
            u64::from(copies.len() > 1 && copies[0].1.is_some() && copies[0].1 == copies[copies.len() - 1].1);
    }

    rows.retain(|(_, cluster)| cluster.is_some());
    rows.sort_unstable_by_key(|&(name, cluster)| (cluster, name));
    for cluster in rows.chunk_by(|a, b| a.1 == b.1) {
        pairs.predicted += pairs_of(cluster);
        counts.clusters += u64::from(cluster.len() > 1);
        for copies in cluster.chunk_by(|a, b| a.0 == b.0).filter(|copies| copies[0].0.is_some()) {
            pairs.hits += pairs_of(copies);
            counts.pure += u64::from(copies.len() > 1 && copies.len() == cluster.len());
        }
    }
    (pairs.accidental, pairs.open) = count_undecided(undecided, page_clusters, pairs.hits);
    (pairs, counts)
}

/// Counts the accidental and the open pairs among the predicted pairs, of which `hits` are true.
fn count_undecided(undecided: &PageKinds, page_clusters: &[Option<DocId>], hits: u64) -> (u64, u64) {
    let clustered = page_clusters.iter().enumerate().filter_map(|(at, cluster)| Some(((*cluster)?, at)));
    let mut rows: Vec<(DocId, usize)> = clustered.collect();
    rows.sort_unstable();
    let counts = rows.chunk_by(|x, y| x.0 == y.0).map(|cluster| undecided.count(cluster.iter().map(|row| row.1)));
    let (n_same, open) = counts.fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
    (n_same - hits, open)
}

/// Returns the fraction of predicted pairs among the true pairs whose pages are both `in_class`,
/// counted by the sizes of groups.
pub(super) fn recall_within(
    common_pages: &CommonPages,
    page_clusters: &[Option<DocId>],
    in_class: impl Fn(&KnownPage) -> bool,
) -> Ratio {
    let pages = common_pages.pages.iter().zip(page_clusters).filter(|(page, _)| in_class(page));
    let named_pages = pages.filter_map(|(page, &cluster)| Some((page.target_page?.name, cluster)));
    let mut rows: Vec<(u32, Option<DocId>)> = named_pages.collect();
    rows.sort_unstable();
    let mut recall = Ratio::default();
    for copies in rows.chunk_by(|a, b| a.0 == b.0) {
        recall.whole += pairs_of(copies);
        let joined_copies = copies.chunk_by(|a, b| a.1 == b.1).filter(|together| together[0].1.is_some());
        recall.part += joined_copies.map(pairs_of).sum::<u64>();
    }
    recall
}

/// Returns the fraction of predicted pairs among the true pairs with at least one page `in_class`.
pub(super) fn recall_with(
    common_pages: &CommonPages,
    page_clusters: &[Option<DocId>],
    in_class: impl Fn(&KnownPage) -> bool,
) -> Ratio {
    let all_pairs = recall_within(common_pages, page_clusters, |_| true);
    let pairs_without = recall_within(common_pages, page_clusters, |page| !in_class(page));
    Ratio { part: all_pairs.part - pairs_without.part, whole: all_pairs.whole - pairs_without.whole }
}

fn pairs_of<T>(group: &[T]) -> u64 {
    let size = group.len() as u64;
    size * (size - 1) / 2
}

/// Returns for each known page whether it is in the cluster of the same page of the primary copy.
/// Returns `None` if there is no such page, or if the page itself belongs to the primary copy.
pub(super) fn differs_from_primary(common_pages: &CommonPages, page_clusters: &[Option<DocId>]) -> Vec<Option<bool>> {
    let mut primary = std::collections::HashMap::new();
    let is_primary = |copy: u32| common_pages.copies[copy as usize].is_primary;
    for (page, &cluster) in common_pages.pages.iter().zip(page_clusters) {
        if let Some(target_page) = page.target_page.filter(|of| is_primary(of.copy)) {
            primary.entry(target_page.name).or_insert(cluster);
        }
    }
    let primary_differs = |(page, cluster): (&KnownPage, &Option<DocId>)| {
        let target_page = page.target_page.filter(|of| !is_primary(of.copy))?;
        primary.get(&target_page.name).map(|primary| cluster.is_some() && cluster == primary)
    };
    common_pages.pages.iter().zip(page_clusters).map(primary_differs).collect()
}
