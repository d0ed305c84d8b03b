//! Cluster growing: connected components of the trivial cluster graph (TCG) become similar clusters of collections.
//!
//! In: one [`Component`] of the TCG. Out: its [`SimilarCluster`]s.
//!
//! Growth starts at the trivial cluster on the most hosts. Ties go to the one with the fewest pages, because a second
//! page on a host is more likely a neighbour than a copy, then to the one most linked from other hosts (\[CSG00\]
//! section 3.1: "a more natural entry point"). Each of its pages founds a collection. Along an edge Ri -> Rj of the
//! TCG, every collection takes the page of Rj that its page of Ri links to; against an edge, the page of Ri that links
//! to its page of Rj. Pages and collections are matched one to one, those with more links first ([`super::matching`]),
//! then those on one host. Unmatched pages found collections of their own if the condition allows collections to differ
//! (`Extended`), and break the merge if it does not (`Exact`). Each cluster found is then checked against Definition 5
//! ([`super::collection`]).
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
use super::matching::{Candidate, one_to_one};
use crate::ids::{HostId, Rank};
use crate::job::{Clusters, MergeCondition};

/// A page of a trivial cluster that takes part in growth. Rows order by component, cluster, page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct ClusterPage {
    /// Component of the TCG: the smallest trivial cluster in it.
    pub component: Rank,
    /// Trivial cluster of the page.
    pub cluster: Rank,
    /// The page itself.
    pub page: Rank,
    /// Host of the page.
    pub host: HostId,
    /// Links to it from pages of other hosts.
    pub links_from_elsewhere: u32,
}

/// A component of the TCG; all slices ascending and without duplicates.
#[derive(Debug, Clone, Copy)]
pub struct Component<'a> {
    /// All pages of its trivial clusters, by cluster, then page.
    pub pages: &'a [ClusterPage],
    /// Edges (Ri, Rj) of the TCG.
    pub edges: &'a [(Rank, Rank)],
    /// Links between its pages.
    pub links: &'a [(Rank, Rank)],
}

/// One component while it grows: pages, clusters and collections by dense numbers.
struct Growth<'a> {
    pages: &'a [ClusterPage],
    /// Where each cluster's pages start in `pages`; one more at the end.
    starts: Vec<u32>,
    /// For every page, the pages it links to; below, the pages that link to it.
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    /// Page ranks with their place in `pages`, ascending.
    position: Vec<(Rank, u32)>,
    collection_of: Vec<Option<u32>>,
    /// Host of each collection, that of the page that founded it.
    host_of: Vec<HostId>,
    settings: &'a Clusters,
}

/// Grows the similar clusters of one component.
pub fn grow(component: &Component<'_>, settings: &Clusters) -> Vec<SimilarCluster> {
    let pages = component.pages;
    let clusters: Vec<&[ClusterPage]> = pages.chunk_by(|x, y| x.cluster == y.cluster).collect();
    let mut starts = vec![0];
    for cluster in &clusters {
        starts.push(starts[starts.len() - 1] + cluster.len() as u32);
    }
    let mut position: Vec<(Rank, u32)> = (0..).zip(pages).map(|(at, page)| (page.page, at)).collect();
    position.sort_unstable();
    let (mut out, mut into) = (vec![Vec::new(); pages.len()], vec![Vec::new(); pages.len()]);
    for (src, dst) in component.links {
        let (src, dst) = (position_of(&position, *src), position_of(&position, *dst));
        out[src as usize].push(dst);
        into[dst as usize].push(src);
    }
    let number = |cluster: Rank| clusters.partition_point(|c| c[0].cluster < cluster);
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
    let mut placed = vec![false; clusters.len()];
    let mut found = Vec::new();
    for start in order {
        // A cluster that an earlier start has reached is placed already; it founds nothing of its own.
        if placed[start] {
            continue;
        }
        let first_collection = growth.host_of.len() as u32;
        growth.found_collections(start);
        placed[start] = true;
        let mut queue = VecDeque::from([start]);
        while let Some(ri) = queue.pop_front() {
            for (&rj, forward) in
                edges_out[ri].iter().map(|rj| (rj, true)).chain(edges_in[ri].iter().map(|rj| (rj, false)))
            {
                // A join that fails under `Exact` leaves rj to be tried along another edge, or to be a start later.
                if !placed[rj] && growth.join(ri, rj, forward) {
                    placed[rj] = true;
                    queue.push_back(rj);
                }
            }
        }
        found.extend(growth.similar_cluster(first_collection));
    }
    found
}

impl Growth<'_> {
    fn range(&self, cluster: usize) -> std::ops::Range<u32> {
        self.starts[cluster]..self.starts[cluster + 1]
    }

    /// Founds a collection for every page of `cluster` that has none.
    fn found_collections(&mut self, cluster: usize) {
        for page in self.range(cluster) {
            if self.collection_of[page as usize].is_none() {
                self.collection_of[page as usize] = Some(self.host_of.len() as u32);
                self.host_of.push(self.pages[page as usize].host);
            }
        }
    }

    /// Gives the pages of `rj` to the collections of the pages of `ri` that they are linked with; returns false if that
    /// breaks the merge. `forward` follows links from `ri` to `rj`.
    fn join(&mut self, ri: usize, rj: usize, forward: bool) -> bool {
        let mut candidates = Vec::new();
        let first = self.range(rj).start;
        for page in self.range(rj) {
            let neighbours = if forward { &self.into[page as usize] } else { &self.out[page as usize] };
            for &neighbour in neighbours.iter().filter(|neighbour| self.range(ri).contains(neighbour)) {
                let Some(collection) = self.collection_of[neighbour as usize] else { continue };
                if !self.settings.single_site || self.host_of[collection as usize] == self.pages[page as usize].host {
                    let same_host = self.host_of[collection as usize] == self.pages[page as usize].host;
                    let links = 2 * self.links_with(page, collection) + u32::from(same_host);
                    candidates.push(Candidate { left: collection, right: page - first, links });
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
        if !forward {
            self.found_collections(rj);
        }
        true
    }

    /// Number of links, in either direction, between a page and the pages a collection has so far.
    fn links_with(&self, page: u32, collection: u32) -> u32 {
        let neighbours = self.out[page as usize].iter().chain(&self.into[page as usize]);
        neighbours.filter(|&&n| self.collection_of[n as usize] == Some(collection)).count() as u32
    }

    /// The collections from number `first` on, checked; `None` if fewer than two are left.
    fn similar_cluster(&self, first: u32) -> Option<SimilarCluster> {
        let mut collections = vec![PageCollection::default(); self.host_of.len() - first as usize];
        for (page, collection) in self.pages.iter().zip(&self.collection_of) {
            if let Some(number) = collection.filter(|number| *number >= first) {
                collections[(number - first) as usize].members.push((page.cluster, page.page));
            }
        }
        let links = |page: Rank| {
            let at = self.at(page);
            let own = self.collection_of[at];
            self.into[at].iter().filter(move |&&src| self.collection_of[src as usize] == own).map(|&src| {
                let src = &self.pages[src as usize];
                (src.cluster, src.page)
            })
        };
        let mut found = take_out_what_fails(collections, links, self.settings)?;
        for collection in &mut found.collections {
            let root = collection.members.iter().map(|&(_, page)| page).max_by_key(|&page| {
                let inside = links(page).filter(|parent| collection.members.binary_search(parent).is_ok()).count();
                (self.pages[self.at(page)].links_from_elsewhere, inside, Reverse(page))
            });
            collection.root = root.expect("a collection has a page");
            collection.host = self.pages[self.at(collection.root)].host;
            let linked = collection.members.iter().map(|member| self.pages[self.at(member.1)].links_from_elsewhere);
            collection.links_from_elsewhere = linked.map(u64::from).sum();
        }
        Some(found)
    }

    fn at(&self, page: Rank) -> usize {
        position_of(&self.position, page) as usize
    }
}

fn position_of(position: &[(Rank, u32)], page: Rank) -> u32 {
    position[position.partition_point(|&(rank, _)| rank < page)].1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::collection::{is_similar_cluster, parents_in};
    use super::super::link_summary::{ClusterLink, link_summary};
    use super::super::merge::may_merge;
    use super::super::union_find::UnionFind;
    use super::*;
    use crate::job::Job;

    /// Runs section 3 on a small web graph: `labels[page]` is its trivial cluster, `hosts[page]` its host.
    fn similar_clusters(
        labels: &[u32],
        hosts: &[u32],
        links: &[(u32, u32)],
        settings: &Clusters,
    ) -> Vec<SimilarCluster> {
        let size = |cluster| labels.iter().filter(|&&label| label == cluster).count() as u32;
        let counts = |&(src, dst): &(u32, u32)| {
            let (ri, rj) = (labels[src as usize], labels[dst as usize]);
            let one_site = !settings.single_site || hosts[src as usize] == hosts[dst as usize];
            let copied = size(ri) > 1 && (size(rj) > 1 || !settings.single_site);
            (ri != rj && copied && one_site).then_some(ClusterLink { src_cluster: ri, dst_cluster: rj, src, dst })
        };
        let mut rows: Vec<ClusterLink> = links.iter().filter_map(counts).collect();
        let mut edges: Vec<(u32, u32)> = link_summary(&mut rows, size)
            .iter()
            .filter(|row| may_merge(row, settings.merge))
            .map(|row| (row.src_cluster, row.dst_cluster))
            .collect();
        edges.sort_unstable();
        let mut components = UnionFind::new(labels.len());
        edges.iter().for_each(|&(ri, rj)| _ = components.union(ri, rj));
        let component = components.labels();
        let mut found = Vec::new();
        for id in 0..labels.len() as u32 {
            let merges = component.iter().filter(|&&c| c == id).count() > 1;
            let member = |page: u32| merges && component[labels[page as usize] as usize] == id;
            let mut pages: Vec<ClusterPage> = (0..labels.len() as u32)
                .filter(|&page| member(page))
                .map(|page| ClusterPage {
                    component: id,
                    cluster: labels[page as usize],
                    page,
                    host: hosts[page as usize],
                    links_from_elsewhere: 0,
                })
                .collect();
            pages.sort_unstable();
            let mut inside: Vec<_> = links.iter().copied().filter(|&(src, dst)| member(src) && member(dst)).collect();
            inside.sort_unstable();
            let edges: Vec<_> = edges.iter().copied().filter(|(ri, _)| component[*ri as usize] == id).collect();
            found.extend(grow(&Component { pages: &pages, edges: &edges, links: &inside }, settings));
        }
        found
    }

    fn exact() -> Clusters {
        Clusters { merge: MergeCondition::Exact, min_size: 2, ..Job::default().clusters }
    }

    fn sizes(found: &[SimilarCluster]) -> Vec<(usize, usize)> {
        let mut sizes: Vec<_> =
            found.iter().map(|cluster| (cluster.collections.len(), cluster.collections[0].members.len())).collect();
        sizes.sort_unstable();
        sizes
    }

    /// Three copies of a tree a -> b -> {c, d}, as \[CSG00\] Figure 6 has them; t stands on two of the hosts, unlinked
    /// from the third, and s and q are linked with nothing that merges.
    #[test]
    fn figure_6_trivial_clusters_a_b_c_d_grow_into_one() {
        let labels = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 12, 12];
        let hosts = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 1];
        let mut links: Vec<(u32, u32)> =
            (0..3).flat_map(|h| [(0, 1), (1, 2), (1, 3)].map(|(x, y)| (x + 4 * h, y + 4 * h))).collect();
        links.extend([(0, 12), (4, 13)]);
        let found = similar_clusters(&labels, &hosts, &links, &exact());
        assert_eq!(sizes(&found), [(3, 4)]);
        assert_eq!(found[0].collections[1].members, [(0, 4), (1, 5), (2, 6), (3, 7)]);
    }

    /// \[CSG00\] Figures 4 and 5: of the clusters possible in one graph, growth prefers cardinality over collection size.
    #[test]
    fn figure_5_the_cluster_of_larger_cardinality_is_found() {
        // p -> q -> r on three hosts; on two of them r -> s -> t follows.
        let labels = [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2];
        let hosts = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2];
        let links = [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6), (6, 7), (7, 8), (8, 9), (10, 11), (11, 12)];
        assert_eq!(sizes(&similar_clusters(&labels, &hosts, &links, &exact())), [(2, 2), (3, 3)]);
    }

    /// \[CSG00\] Figure 7: a and b link to each other; growth may start at either, and finds the two pages of each site.
    #[test]
    fn figure_7_a_cycle_of_two_trivial_clusters_is_one_cluster() {
        let (labels, hosts) = ([0, 1, 0, 1], [0, 0, 1, 1]);
        let links = [(0, 1), (1, 0), (2, 3), (3, 2)];
        assert_eq!(sizes(&similar_clusters(&labels, &hosts, &links, &exact())), [(2, 2)]);
    }

    /// \[CSG00\] section 2.2: a page whose counterpart differs breaks a collection in two.
    #[test]
    fn a_break_point_splits_a_collection() {
        // p -> q -> r -> s on both hosts, but the second q differs (cluster 5).
        let (labels, hosts) = ([0, 1, 2, 3, 0, 5, 2, 3], [0, 0, 0, 0, 1, 1, 1, 1]);
        let links = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)];
        assert_eq!(sizes(&similar_clusters(&labels, &hosts, &links, &exact())), [(2, 2)]);
    }

    /// \[CSG00\] Figure 10: a partial mirror carries a, b, c and links to d and e, which only the first site has. The
    /// extended condition gives them to the first site's collection.
    #[test]
    fn figure_10_pages_that_are_not_mirrored_extend_the_collection_they_stand_with() {
        let (labels, hosts) = ([0, 1, 2, 3, 4, 0, 1, 2], [0, 0, 0, 0, 0, 1, 1, 1]);
        let links = [(0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (6, 3), (7, 4)];
        let free = Clusters { single_site: false, ..exact() };
        let found = similar_clusters(&labels, &hosts, &links, &free);
        assert_eq!(sizes(&found), [(2, 3)]);
        let extended = Clusters { merge: MergeCondition::Extended, ..free };
        let found = similar_clusters(&labels, &hosts, &links, &extended);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].collections[0].members, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
        assert_eq!(found[0].collections[1].members, [(0, 5), (1, 6), (2, 7)]);
    }

    #[test]
    fn collections_across_sites_are_found_only_when_they_are_free() {
        let (labels, hosts) = ([0, 1, 0, 1], [0, 1, 2, 3]);
        let links = [(0, 1), (2, 3)];
        assert_eq!(sizes(&similar_clusters(&labels, &hosts, &links, &exact())), []);
        let free = Clusters { single_site: false, ..exact() };
        assert_eq!(sizes(&similar_clusters(&labels, &hosts, &links, &free)), [(2, 2)]);
    }

    proptest! {
        #[test]
        fn every_cluster_grown_on_any_graph_meets_definition_5(
            labels in prop::collection::vec(0u32..5, 14),
            hosts in prop::collection::vec(0u32..3, 14),
            links in prop::collection::btree_set((0u32..14, 0u32..14), 0..50),
            merge in prop::sample::select(vec![MergeCondition::Exact, MergeCondition::Extended]),
            single_site: bool,
        ) {
            let labels: Vec<u32> =
                labels.iter().map(|l| labels.iter().position(|m| m == l).unwrap() as u32).collect();
            let links: Vec<_> = links.into_iter().filter(|(x, y)| x != y).collect();
            let settings = Clusters { merge, single_site, min_size: 1, ..exact() };
            let found = similar_clusters(&labels, &hosts, &links, &settings);
            let mut seen = std::collections::BTreeSet::new();
            for cluster in &found {
                prop_assert!(cluster.collections.len() > 1);
                for collection in &cluster.collections {
                    prop_assert!(collection.members.iter().all(|&(_, page)| seen.insert(page)), "a page in two collections");
                    let site = |page: u32| hosts[page as usize];
                    prop_assert!(!single_site || collection.members.iter().all(|m| site(m.1) == collection.host));
                }
                let parents = |collection: &PageCollection, page| parents_in(collection, page, &links, &labels);
                prop_assert!(is_similar_cluster(&cluster.collections, parents, merge));
            }
        }
    }
}
