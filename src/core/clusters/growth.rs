//! Cluster growing: turns connected components of the trivial cluster graph (TCG) into similar
//! clusters of collections.
//!
//! Input: one [`Component`] of the TCG. Output: its [`SimilarCluster`]s.
//!
//! Growth starts at the trivial cluster on the most hosts. Ties go to the one with the fewest
//! pages, because a second page on a host is more likely a neighbour than a copy, then to the one
//! with the most links from other hosts (\[CSG00\] section 3.1: "a more natural entry point"). Each
//! of its pages founds a collection. Along an edge Ri -> Rj of the TCG, every collection takes the
//! page of Rj that its page of Ri links to; against an edge, the page of Ri that links to its page
//! of Rj. Pages and collections are matched one to one. Matches with more links come first
//! ([`super::matching`]), then those on one host. Unmatched pages found collections of their own if
//! the condition allows collections to differ (`Extended`), and break the merge if it does not
//! (`Exact`). With `clusters.min_size = 1` a trivial cluster that nothing joins is a similar
//! cluster of collections of one page (Figure 3c). Each resulting cluster is then checked against
//! Definition 5 ([`super::collection`]).
//!
//! # Cost
//! Linear in the component's pages, links and edges, except for sorts and rare augmenting paths.
//!
//! # Source
//! \[CSG00\] Algorithm 3.1 step 5, Figures 6 and 7; section 5.1 for collections at a single site.

use std::cmp::Reverse;
use std::collections::VecDeque;

use bytemuck::{Pod, Zeroable};

use super::collection::{PageCollection, SimilarCluster, take_out_what_fails};
use super::link_summary::{cluster_links, link_summary};
use super::matching::{CandidateMatch, one_to_one};
use super::merge::may_merge;
use super::union_find::{UnionFind, sizes};
use webtwin_base::ids::{ClusterId, ComponentId, HostId, Page};
use webtwin_job::{ClusterSettings, MergeCondition};

/// A page of a trivial cluster that takes part in growth. Rows order by component, cluster, page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct ClusterPage {
    /// Component of the TCG: the smallest trivial cluster in it.
    pub component: ComponentId,
    /// Trivial cluster of the page.
    pub cluster: ClusterId,
    /// The page.
    pub page: Page,
    /// Host of the page.
    pub host: HostId,
    /// Number of links to the page from pages of other hosts.
    pub links_from_elsewhere: u32,
}

/// A component of the TCG. All slices must be ascending and without duplicates.
#[derive(Debug, Clone, Copy)]
pub struct Component<'a> {
    /// All pages of the trivial clusters of the component, by cluster, then page.
    pub pages: &'a [ClusterPage],
    /// Edges (Ri, Rj) of the TCG.
    pub edges: &'a [(ClusterId, ClusterId)],
    /// Links between pages of the component.
    pub links: &'a [(Page, Page)],
}

/// State of one growing component, with pages, clusters and collections by dense numbers.
struct Growth<'a> {
    pages: &'a [ClusterPage],
    /// Start of each cluster's pages in `pages`, followed by the number of pages.
    starts: Vec<u32>,
    /// Pages that each page links to, and in `into` the pages that link to each page.
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    /// Pages with their index in `pages`, ascending.
    position: Vec<(Page, u32)>,
    collection_of: Vec<Option<u32>>,
    /// Host of each collection, which is the host of the page that founded it.
    host_of: Vec<HostId>,
    settings: &'a ClusterSettings,
}

/// Grows the similar clusters of one component.
pub fn grow(component: &Component<'_>, settings: &ClusterSettings) -> Vec<SimilarCluster> {
    let pages = component.pages;
    let clusters: Vec<&[ClusterPage]> = pages.chunk_by(|x, y| x.cluster == y.cluster).collect();
    let mut starts = vec![0];
    for cluster in &clusters {
        starts.push(starts[starts.len() - 1] + cluster.len() as u32);
    }
    let mut position: Vec<(Page, u32)> = (0..).zip(pages).map(|(at, page)| (page.page, at)).collect();
    position.sort_unstable();
    let (mut out, mut into) = (vec![Vec::new(); pages.len()], vec![Vec::new(); pages.len()]);
    for (src, dst) in component.links {
        let (src, dst) = (position_of(&position, *src), position_of(&position, *dst));
        out[src as usize].push(dst);
        into[dst as usize].push(src);
    }
    let number = |cluster: ClusterId| clusters.partition_point(|c| c[0].cluster < cluster);
    let (mut edges_out, mut edges_in) = (vec![Vec::new(); clusters.len()], vec![Vec::new(); clusters.len()]);
    for &(ri, rj) in component.edges {
        edges_out[number(ri)].push(number(rj));
        edges_in[number(rj)].push(number(ri));
    }
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    let linked = |cluster: usize| -> u64 { clusters[cluster].iter().map(|p| u64::from(p.links_from_elsewhere)).sum() };
    let hosts = |cluster: usize| {
        let mut hosts: Vec<HostId> = clusters[cluster].iter().map(|page| page.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.len()
    };
    order.sort_by_cached_key(|&c| (Reverse(hosts(c)), clusters[c].len(), Reverse(linked(c)), c));

    let collection_of = vec![None; pages.len()];
    let mut growth = Growth { pages, starts, out, into, position, collection_of, host_of: Vec::new(), settings };
    let mut is_placed = vec![false; clusters.len()];
    let mut similar = Vec::new();
    for start in order {
        // A cluster that an earlier start has reached is placed already and founds no collections.
        if is_placed[start] {
            continue;
        }
        let first_collection = growth.host_of.len() as u32;
        growth.found_collections(start);
        is_placed[start] = true;
        let mut queue = VecDeque::from([start]);
        while let Some(ri) = queue.pop_front() {
            for (&rj, forward) in
                edges_out[ri].iter().map(|rj| (rj, true)).chain(edges_in[ri].iter().map(|rj| (rj, false)))
            {
                // If a join fails under `Exact`, rj may still be joined along another edge, or
                // become a start later.
                if !is_placed[rj] && growth.join(ri, rj, forward) {
                    is_placed[rj] = true;
                    queue.push_back(rj);
                }
            }
        }
        similar.extend(growth.similar_cluster(first_collection));
    }
    similar
}

impl Growth<'_> {
    fn range(&self, cluster: usize) -> std::ops::Range<u32> {
        self.starts[cluster]..self.starts[cluster + 1]
    }

    /// Founds a collection for every page of `cluster` that is in no collection.
    fn found_collections(&mut self, cluster: usize) {
        for page in self.range(cluster) {
            if self.collection_of[page as usize].is_none() {
                self.collection_of[page as usize] = Some(self.host_of.len() as u32);
                self.host_of.push(self.pages[page as usize].host);
            }
        }
    }

    /// Assigns the pages of `rj` to the collections whose pages of `ri` they are linked with.
    /// Returns false if that breaks the merge. If `forward`, the links run from `ri` to `rj`.
    fn join(&mut self, ri: usize, rj: usize, forward: bool) -> bool {
        let mut candidates = Vec::new();
        let first = self.range(rj).start;
        for page in self.range(rj) {
            let neighbours = if forward { &self.into[page as usize] } else { &self.out[page as usize] };
            for &neighbour in neighbours.iter().filter(|neighbour| self.range(ri).contains(neighbour)) {
                let Some(collection) = self.collection_of[neighbour as usize] else { continue };
                if !self.settings.single_site || self.host_of[collection as usize] == self.pages[page as usize].host {
                    let same_host = self.host_of[collection as usize] == self.pages[page as usize].host;
                    // Doubling the links makes the host decide ties only.
                    let links = 2 * self.links_with(page, collection) + u32::from(same_host);
                    candidates.push(CandidateMatch { left: collection, right: page - first, links });
                }
            }
        }
        let mut collections: Vec<u32> = candidates.iter().map(|c| c.left).collect();
        collections.sort_unstable();
        collections.dedup();
        for candidate in &mut candidates {
            candidate.left = collections.partition_point(|&c| c < candidate.left) as u32;
        }
        let matched = one_to_one(&mut candidates);
        if matched.is_empty() || (self.settings.merge == MergeCondition::Exact && matched.len() < self.range(rj).len())
        {
            return false;
        }
        for (left, right) in matched {
            self.collection_of[(first + right) as usize] = Some(collections[left as usize]);
        }
        // Against an edge, `rj` may have more pages than `ri` under `Extended`. The unmatched pages
        // found collections that lack the page of `ri`.
        if !forward {
            self.found_collections(rj);
        }
        true
    }

    /// Returns the number of links, in either direction, between a page and the pages that a
    /// collection has so far.
    fn links_with(&self, page: u32, collection: u32) -> u32 {
        let neighbours = self.out[page as usize].iter().chain(&self.into[page as usize]);
        neighbours.filter(|&&n| self.collection_of[n as usize] == Some(collection)).count() as u32
    }

    /// Returns the checked collections with numbers from `first`, or `None` if fewer than two
    /// remain.
    fn similar_cluster(&self, first: u32) -> Option<SimilarCluster> {
        let mut collections = vec![PageCollection::default(); self.host_of.len() - first as usize];
        for (page, collection) in self.pages.iter().zip(&self.collection_of) {
            if let Some(number) = collection.filter(|number| *number >= first) {
                collections[(number - first) as usize].members.push((page.cluster, page.page));
            }
        }
        let links = |page: Page| {
            let at = self.at(page);
            let own_collection = self.collection_of[at];
            self.into[at].iter().filter(move |&&src| self.collection_of[src as usize] == own_collection).map(|&src| {
                let src = &self.pages[src as usize];
                (src.cluster, src.page)
            })
        };
        let mut similar_cluster = take_out_what_fails(collections, links, self.settings)?;
        for collection in &mut similar_cluster.collections {
            let root = collection.members.iter().map(|&(_, page)| page).max_by_key(|&page| {
                let inner_links = links(page).filter(|parent| collection.members.binary_search(parent).is_ok()).count();
                (self.pages[self.at(page)].links_from_elsewhere, inner_links, Reverse(page))
            });
            collection.root = root.expect("a collection has a page");
            collection.host = self.pages[self.at(collection.root)].host;
            let linked = collection.members.iter().map(|member| self.pages[self.at(member.1)].links_from_elsewhere);
            collection.links_from_elsewhere = linked.map(u64::from).sum();
        }
        Some(similar_cluster)
    }

    fn at(&self, page: Page) -> usize {
        position_of(&self.position, page) as usize
    }
}

fn position_of(position: &[(Page, u32)], page: Page) -> u32 {
    position[position.partition_point(|&(other, _)| other < page)].1
}

/// Runs Algorithm 3.1 on TRIVIAL and LINK: the reference for the dataflow.
///
/// `labels[page]` is the trivial cluster of a page, `hosts[page]` its host. `links` must be
/// ascending and without duplicates or links from a page to itself. Similar clusters are returned
/// ascending by smallest page.
///
/// # Examples
/// Figure 6 of \[CSG00\], reduced to two sites: a links to b, and b to c and d.
/// ```
/// use webtwin_base::ids::{ClusterId, HostId, Page};
/// use webtwin_core::clusters::growth::similar_clusters;
/// use webtwin_job::{ClusterSettings, Job, MergeCondition::Exact};
///
/// // Pages 0 to 3 are a, b, c, d of the first site, and pages 4 to 7 their copies.
/// let labels = [0, 1, 2, 3, 0, 1, 2, 3].map(ClusterId);
/// let hosts = [0, 0, 0, 0, 1, 1, 1, 1].map(HostId);
/// let links = [(0, 1), (1, 2), (1, 3), (4, 5), (5, 6), (5, 7)].map(|(x, y)| (Page(x), Page(y)));
///
/// let settings = ClusterSettings { merge: Exact, ..Job::default().clusters };
/// let found = similar_clusters(&labels, &hosts, &links, &settings);
/// assert_eq!((found.len(), found[0].collections.len()), (1, 2));
/// let copy = &found[0].collections[1];
/// assert_eq!(copy.host, HostId(1));
/// assert_eq!(copy.page_of(ClusterId(2)), Some(Page(6)));
/// ```
pub fn similar_clusters(
    labels: &[ClusterId],
    hosts: &[HostId],
    links: &[(Page, Page)],
    settings: &ClusterSettings,
) -> Vec<SimilarCluster> {
    let pages_of = sizes(labels);
    let mut between = cluster_links(labels, hosts, links, settings.single_site);
    let rows = link_summary(&mut between, |cluster| pages_of[cluster]);
    let merging = rows.iter().filter(|row| may_merge(row, settings.merge));
    let edges: Vec<(ClusterId, ClusterId)> = merging.map(|row| (row.src_cluster, row.dst_cluster)).collect();
    let mut components = UnionFind::new(labels.len());
    edges.iter().for_each(|&(ri, rj)| _ = components.union(ri.0, rj.0));
    let component: Vec<ComponentId> = bytemuck::cast_vec(components.labels());
    let component_of = |page: Page| component[labels[page]];
    let merged = sizes(&component);

    let mut links_from_elsewhere = vec![0; labels.len()];
    for link in links.iter().filter(|link| hosts[link.0] != hosts[link.1]) {
        links_from_elsewhere[link.1] += 1;
    }
    let mut pages: Vec<ClusterPage> = Page::first(labels.len())
        .filter(|&page| {
            let is_duplicated = settings.min_size == 1 && pages_of[labels[page]] > 1;
            merged[component_of(page)] > 1 || is_duplicated
        })
        .map(|page| ClusterPage {
            component: component_of(page),
            cluster: labels[page],
            page,
            host: hosts[page],
            links_from_elsewhere: links_from_elsewhere[page],
        })
        .collect();
    pages.sort_unstable();
    let mut similar = Vec::new();
    for pages in pages.chunk_by(|x, y| x.component == y.component) {
        let is_here = |page: Page| component_of(page) == pages[0].component;
        let links: Vec<_> = links.iter().copied().filter(|&(src, dst)| is_here(src) && is_here(dst)).collect();
        let edges: Vec<_> = edges.iter().copied().filter(|&(ri, _)| component[ri] == pages[0].component).collect();
        similar.extend(grow(&Component { pages, edges: &edges, links: &links }, settings));
    }
    similar.sort_unstable_by_key(SimilarCluster::id);
    similar
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::collection::is_similar_cluster;
    use super::*;
    use webtwin_job::Job;

    fn exact() -> ClusterSettings {
        ClusterSettings { merge: MergeCondition::Exact, min_size: 2, ..Job::default().clusters }
    }

    #[test]
    fn collections_across_sites_are_found_only_when_they_are_free() {
        let (labels, hosts) = ([0, 1, 0, 1].map(ClusterId), [0, 1, 2, 3].map(HostId));
        let links = [(Page(0), Page(1)), (Page(2), Page(3))];
        assert!(similar_clusters(&labels, &hosts, &links, &exact()).is_empty());
        let free = ClusterSettings { single_site: false, ..exact() };
        let similar = similar_clusters(&labels, &hosts, &links, &free);
        let members = |at: usize| {
            similar[0].collections[at].members.iter().map(|&(cluster, page)| (cluster.0, page.0)).collect::<Vec<_>>()
        };
        assert_eq!([members(0), members(1)], [[(0, 0), (1, 1)], [(0, 2), (1, 3)]]);
    }

    fn page() -> impl Strategy<Value = Page> {
        (0u32..14).prop_map(Page)
    }

    proptest! {
        #[test]
        fn every_cluster_grown_on_any_graph_meets_definition_5(
            labels in prop::collection::vec(0u32..5, 14),
            hosts in prop::collection::vec((0u32..3).prop_map(HostId), 14),
            links in prop::collection::btree_set((page(), page()), 0..50),
            merge in prop::sample::select(vec![MergeCondition::Exact, MergeCondition::Extended]),
            single_site: bool,
        ) {
            let labels: Vec<ClusterId> =
                labels.iter().map(|l| ClusterId(labels.iter().position(|m| m == l).unwrap() as u32)).collect();
            let links: Vec<_> = links.into_iter().filter(|(x, y)| x != y).collect();
            let settings = ClusterSettings { merge, single_site, min_size: 1, ..exact() };
            let similar = similar_clusters(&labels, &hosts, &links, &settings);
            let mut pages_seen = std::collections::BTreeSet::new();
            for cluster in &similar {
                prop_assert!(cluster.collections.len() > 1);
                for collection in &cluster.collections {
                    prop_assert!(collection.members.iter().all(|&(_, page)| pages_seen.insert(page)), "a page in two collections");
                    prop_assert!(!single_site || collection.members.iter().all(|m| hosts[m.1] == collection.host));
                }
                prop_assert!(is_similar_cluster(&cluster.collections, &labels, &links, merge));
            }
        }
    }
}
