//! `LinkSummary`: counts of the links from one trivial cluster to another.
//!
//! Input: links between pages of two trivial clusters. Output: one row for each ordered pair (Ri,
//! Rj), i != j, with a link:
//!
//! | field | meaning                                              | unit  |
//! |-------|------------------------------------------------------|-------|
//! | `a`   | \|Ri\|, pages in the source cluster                  | pages |
//! | `b`   | \|Rj\|, pages in the destination cluster             | pages |
//! | `s`   | pages of Ri with a link to at least one page of Rj   | pages |
//! | `d`   | pages of Rj with a link from at least one page of Ri | pages |
//!
//! Always `1 <= s <= a` and `1 <= d <= b`.
//!
//! # Source
//! \[CSG00\] section 3.1 for s and d, Figure 8 for the joins, Algorithm 3.1 steps 1-3 for their
//! use.
//!
//! # Deviations
//! - The figure is missing from our copy of the paper. `a` and `b` are inferred from step 3 (a = s
//!   = d = b) and the merge condition |Ri| = s = d = |Rj|.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::union_find::sizes;
use webtwin_base::ids::{ClusterId, HostId, Page};

/// A link between pages of two trivial clusters. Rows order by clusters, then pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct ClusterLink {
    /// Trivial cluster of the page that has the link.
    pub src_cluster: ClusterId,
    /// Trivial cluster of the page that the link leads to.
    pub dst_cluster: ClusterId,
    /// Page that has the link.
    pub src: Page,
    /// Page that the link leads to.
    pub dst: Page,
}

/// A row of `LinkSummary`. Rows order by source, then destination cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct LinkSummary {
    /// Ri, the cluster that links.
    pub src_cluster: ClusterId,
    /// Rj, the cluster that is linked to.
    pub dst_cluster: ClusterId,
    /// |Ri|, the number of pages of the source cluster.
    pub a: u32,
    /// |Rj|, the number of pages of the destination cluster.
    pub b: u32,
    /// Number of pages of Ri with a link to Rj.
    pub s: u32,
    /// Number of pages of Rj with a link from Ri.
    pub d: u32,
}

/// Counts the links of every ordered pair of clusters; `pages(cluster)` is |R|.
///
/// Returns rows in ascending order. Sorts `links`; a link that occurs twice counts once.
///
/// # Cost
/// One sort of the links, and one of the destinations within each pair of clusters.
///
/// # Examples
/// Two of the three pages of cluster 0 link to cluster 3, and two of the three pages of cluster 3
/// have such a link.
/// ```
/// use webtwin_base::ids::{ClusterId, HostId, Page};
/// use webtwin_core::clusters::link_summary::{cluster_links, link_summary};
///
/// let labels = [0, 0, 0, 3, 3, 3].map(ClusterId);
/// let links = [(0, 3), (0, 4), (1, 4)].map(|(src, dst)| (Page(src), Page(dst)));
/// let mut links = cluster_links(&labels, &[HostId(0); 6], &links, false);
///
/// let [row] = link_summary(&mut links, |_| 3)[..] else { panic!("one pair of clusters") };
/// assert_eq!((row.src_cluster, row.dst_cluster), (ClusterId(0), ClusterId(3)));
/// assert_eq!((row.a, row.b, row.s, row.d), (3, 3, 2, 2));
/// ```
pub fn link_summary(links: &mut [ClusterLink], pages: impl Fn(ClusterId) -> u32) -> Vec<LinkSummary> {
    // Sorts by the key of the rows first, as a single number. The second sort then has few links
    // between two clusters.
    let pair_key = |x: u32, y: u32| u64::from(x) << 32 | u64::from(y);
    links.sort_unstable_by_key(|link| pair_key(link.src_cluster.0, link.dst_cluster.0));
    let mut destinations = Vec::new();
    links
        .chunk_by_mut(|x, y| (x.src_cluster, x.dst_cluster) == (y.src_cluster, y.dst_cluster))
        .map(|between| {
            between.sort_unstable_by_key(|link| pair_key(link.src.0, link.dst.0));
            let ClusterLink { src_cluster, dst_cluster, .. } = between[0];
            destinations.clear();
            destinations.extend(between.iter().map(|link| link.dst));
            destinations.sort_unstable();
            destinations.dedup();
            LinkSummary {
                src_cluster,
                dst_cluster,
                a: pages(src_cluster),
                b: pages(dst_cluster),
                s: between.chunk_by(|x, y| x.src == y.src).count() as u32,
                d: destinations.len() as u32,
            }
        })
        .collect()
}

/// Returns the links that `LinkSummary` counts: links from a trivial cluster of two or more pages
/// to another cluster. With `single_site`, both pages must be on one host, and the target must have
/// copies, too.
///
/// `labels[page]` is the trivial cluster of a page, `hosts[page]` its host. The result has the
/// order of `links`.
///
/// # Examples
/// ```
/// use webtwin_base::ids::{ClusterId, HostId, Page};
/// use webtwin_core::clusters::link_summary::cluster_links;
///
/// // Pages 0 and 1 are copies, and so are 2 and 3. Page 4 has no copy.
/// let labels = [0, 0, 2, 2, 4].map(ClusterId);
/// let hosts = [0, 1, 0, 1, 0].map(HostId);
/// let links = [(0, 2), (0, 3), (0, 4), (4, 0)].map(|(src, dst)| (Page(src), Page(dst)));
/// let count = |single_site| cluster_links(&labels, &hosts, &links, single_site).len();
/// assert_eq!((count(false), count(true)), (3, 1));
/// ```
pub fn cluster_links(
    labels: &[ClusterId],
    hosts: &[HostId],
    links: &[(Page, Page)],
    single_site: bool,
) -> Vec<ClusterLink> {
    let sizes = sizes(labels);
    let has_copies = |cluster: ClusterId| sizes[cluster] > 1;
    let link = |&(src, dst): &(Page, Page)| {
        let (src_cluster, dst_cluster) = (labels[src], labels[dst]);
        let is_same_host = hosts[src] == hosts[dst] && has_copies(dst_cluster);
        let counts = src_cluster != dst_cluster && has_copies(src_cluster) && (is_same_host || !single_site);
        counts.then_some(ClusterLink { src_cluster, dst_cluster, src, dst })
    };
    links.iter().filter_map(link).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn page() -> impl Strategy<Value = Page> {
        (0u32..12).prop_map(Page)
    }

    proptest! {
        #[test]
        fn counts_equal_nested_loops_over_clusters_and_pages(
            links in prop::collection::btree_set((page(), page()), 0..60)
        ) {
            let cluster = |page: Page| ClusterId(page.0 / 3 * 3);
            let mut rows: Vec<ClusterLink> = links
                .iter()
                .filter(|(src, dst)| cluster(*src) != cluster(*dst))
                .map(|&(src, dst)| ClusterLink { src_cluster: cluster(src), dst_cluster: cluster(dst), src, dst })
                .rev()
                .collect();
            let mut expected = Vec::new();
            for i in (0..12).step_by(3).map(ClusterId) {
                for j in (0..12).step_by(3).map(ClusterId).filter(|&j| j != i) {
                    let between: Vec<_> =
                        links.iter().filter(|(src, dst)| cluster(*src) == i && cluster(*dst) == j).collect();
                    let s = between.iter().map(|link| link.0).collect::<BTreeSet<_>>().len() as u32;
                    let d = between.iter().map(|link| link.1).collect::<BTreeSet<_>>().len() as u32;
                    if s > 0 {
                        expected.push(LinkSummary { src_cluster: i, dst_cluster: j, a: 3, b: 3, s, d });
                    }
                }
            }
            prop_assert_eq!(link_summary(&mut rows, |_| 3), expected);
        }
    }
}
