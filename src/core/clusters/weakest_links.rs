//! Weakest links of a giant trivial cluster: its bridges, and the pair at which it splits.
//!
//! Single link chains clusters: one false pair joins two clusters permanently. A *bridge* is a pair
//! whose removal would split its cluster. A cluster without bridges still falls apart when T is
//! raised. If all pairs are added strongest first, the last one that joins two large parts is the
//! *split*.
//!
//! Only few of the pairs are needed. [`thin`] keeps a strongest spanning forest, and a spanning
//! forest of the remaining pairs: at most two pairs per page. A pair is a bridge of the kept pairs
//! exactly if it is a bridge of all pairs, and the first forest is that of all pairs. Both also
//! hold for pairs that are thinned in parts, combined, and thinned again.
//!
//! # Source
//! Nagamochi and Ibaraki, *A linear-time algorithm for finding a sparse k-connected spanning
//! subgraph* (1992), k = 2.

use std::cmp::Reverse;

use bytemuck::{Pod, Zeroable};

use super::union_find::UnionFind;
use webtwin_base::ids::{ClusterId, Page};

/// A pair within a cluster. If two pairs have the same pages, the stronger counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Edge {
    /// Trivial cluster of both pages.
    pub cluster: ClusterId,
    /// The smaller page of the pair.
    pub a: Page,
    /// The larger page of the pair.
    pub b: Page,
    /// Strength of the pair, higher for pages that are more alike; [`EXACT`] for equal texts.
    pub strength: u32,
}

/// Strength of a pair of exact copies, which is never reported as a weak link.
pub const EXACT: u32 = u32::MAX;

/// A pair, and the number of pages that its removal cuts off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutEdge {
    /// Pair whose removal splits the cluster.
    pub edge: Edge,
    /// Number of pages of the smaller part after the split.
    pub cuts_off: u32,
}

/// Maximum number of bridges listed per cluster.
const MAX_BRIDGES: usize = 3;

/// Keeps the pairs of two spanning forests, at most two pairs per page, strongest first.
///
/// # Cost
/// A sort, and two union-find look-ups per pair.
pub fn thin(edges: &mut Vec<Edge>) {
    edges.sort_unstable_by_key(|edge| (edge.a, edge.b, Reverse(edge.strength)));
    edges.dedup_by_key(|edge| (edge.a, edge.b));
    edges.sort_unstable_by_key(|edge| (Reverse(edge.strength), edge.a, edge.b));
    let pages = pages(edges);
    let (mut first, mut second) = (UnionFind::new(pages.len()), UnionFind::new(pages.len()));
    // In the first forest alone every pair would be a bridge. The second forest keeps a cycle
    // through each pair that is not one.
    edges.retain(|edge| {
        let (a, b) = (number(&pages, edge.a), number(&pages, edge.b));
        first.union(a, b) || second.union(a, b)
    });
}

/// Returns the pages of the edges, ascending.
pub(super) fn pages(edges: &[Edge]) -> Vec<Page> {
    let mut pages: Vec<Page> = edges.iter().flat_map(|edge| [edge.a, edge.b]).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

/// Returns the index of a page in the result of [`pages`].
pub(super) fn number(pages: &[Page], page: Page) -> u32 {
    pages.binary_search(&page).expect("all pages were listed") as u32
}

/// Returns the weakest bridges of one cluster, and the pair at which it splits, if there is one.
/// `edges` are all pairs of the cluster, or those that [`thin`] kept.
///
/// Parts of less than a hundredth of the cluster, and parts of one page, are ignored, because
/// clusters have many leaves that a single pair connects. Bridges are ordered weakest first; ties:
/// the pair that cuts off more pages.
///
/// # Examples
/// Two triangles of strong pairs, which one weak pair joins.
/// ```
/// use webtwin_base::ids::{ClusterId, Page};
/// use webtwin_core::clusters::weakest_links::{Edge, weakest};
///
/// let edge = |a, b, strength| Edge { cluster: ClusterId(0), a: Page(a), b: Page(b), strength };
/// let triangle = |x| [edge(x, x + 1, 90), edge(x, x + 2, 90), edge(x + 1, x + 2, 90)];
/// let edges = [&triangle(0)[..], &triangle(3), &[edge(2, 3, 10)]].concat();
///
/// let (bridges, split) = weakest(&edges);
/// assert_eq!(bridges.len(), 1);
/// assert_eq!((bridges[0].edge, bridges[0].cuts_off), (edge(2, 3, 10), 3));
/// assert_eq!(split, Some(bridges[0]));
/// ```
pub fn weakest(edges: &[Edge]) -> (Vec<CutEdge>, Option<CutEdge>) {
    let mut edges = edges.to_vec();
    thin(&mut edges);
    let pages = pages(&edges);
    let min_size = (pages.len() / 100).max(2) as u32;
    let is_significant = |cut: &CutEdge| cut.cuts_off >= min_size && cut.edge.strength != EXACT;
    let mut bridges = bridges(&edges, &pages);
    bridges.retain(is_significant);
    bridges.sort_unstable_by_key(|cut| (cut.edge.strength, Reverse(cut.cuts_off), cut.edge.a, cut.edge.b));
    bridges.truncate(MAX_BRIDGES);
    (bridges, splits(&edges, &pages).into_iter().rfind(is_significant))
}

/// Returns every pair that joined two parts, strongest first, with the size of the smaller part.
/// `edges` must be ordered strongest first.
fn splits(edges: &[Edge], pages: &[Page]) -> Vec<CutEdge> {
    let mut sets = UnionFind::new(pages.len());
    let mut sizes = vec![1u32; pages.len()];
    let mut cuts = Vec::new();
    for &edge in edges {
        let (a, b) = (sets.find(number(pages, edge.a)), sets.find(number(pages, edge.b)));
        if sets.union(a, b) {
            cuts.push(CutEdge { edge, cuts_off: sizes[a as usize].min(sizes[b as usize]) });
            sizes[a.min(b) as usize] += sizes[a.max(b) as usize];
        }
    }
    cuts
}

/// Finds all bridges of a connected graph without parallel edges, by depth-first search (low
/// points).
fn bridges(edges: &[Edge], pages: &[Page]) -> Vec<CutEdge> {
    let mut neighbours: Vec<Vec<(u32, u32)>> = vec![Vec::new(); pages.len()];
    for (at, edge) in edges.iter().enumerate() {
        let (a, b) = (number(pages, edge.a), number(pages, edge.b));
        neighbours[a as usize].push((b, at as u32));
        neighbours[b as usize].push((a, at as u32));
    }
    // Order of the first visit, from 1; order of the earliest page reached from the subtree; size
    // of the subtree.
    let (mut order, mut low, mut subtree_sizes) =
        (vec![0u32; pages.len()], vec![0u32; pages.len()], vec![1u32; pages.len()]);
    let mut cuts = Vec::new();
    // The search keeps its own stack, because a cluster may be deeper than the stack of a thread.
    let mut path: Vec<(u32, u32, usize)> = Vec::new();
    let mut visit_count = 0;
    if !pages.is_empty() {
        path.push((0, u32::MAX, 0));
    }
    while let Some((page, came_by, next)) = path.last_mut() {
        let (at, came_by) = (*page as usize, *came_by);
        if *next == 0 {
            visit_count += 1;
            (order[at], low[at]) = (visit_count, visit_count);
        }
        if let Some(&(to, edge_index)) = neighbours[at].get(*next) {
            *next += 1;
            // The edge back to the parent closes no cycle.
            if edge_index == came_by {
                continue;
            }
            match order[to as usize] {
                0 => path.push((to, edge_index, 0)),
                seen => low[at] = low[at].min(seen),
            }
            continue;
        }
        path.pop();
        if let Some(&(parent, ..)) = path.last() {
            let parent = parent as usize;
            low[parent] = low[parent].min(low[at]);
            subtree_sizes[parent] += subtree_sizes[at];
            // No page in the subtree of `at` reaches its parent or an earlier page except by this
            // edge.
            if low[at] > order[parent] {
                let cuts_off = subtree_sizes[at].min(pages.len() as u32 - subtree_sizes[at]);
                cuts.push(CutEdge { edge: edges[came_by as usize], cuts_off });
            }
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edge(a: u32, b: u32, strength: u32) -> Edge {
        Edge { cluster: ClusterId(0), a: Page(a.min(b)), b: Page(a.max(b)), strength }
    }

    /// Generates a connected graph: a random tree and some more edges.
    fn graph() -> impl Strategy<Value = Vec<Edge>> {
        let tree = prop::collection::vec((any::<u32>(), 1u32..6), 1..14);
        (tree, prop::collection::vec((0u32..14, 0u32..14, 1u32..6), 0..8)).prop_map(|(tree, extra_edges)| {
            let pages = tree.len() as u32 + 1;
            let mut edges: Vec<Edge> =
                tree.iter().zip(1..).map(|(&(parent, strength), page)| edge(page, parent % page, strength)).collect();
            edges.extend(
                extra_edges
                    .iter()
                    .filter(|(a, b, _)| a % pages != b % pages)
                    .map(|&(a, b, s)| edge(a % pages, b % pages, s)),
            );
            edges
        })
    }

    /// Returns the smallest page of each page's connected part.
    fn parts(pages: usize, edges: impl Iterator<Item = Edge>) -> Vec<Page> {
        let mut sets = UnionFind::new(pages);
        edges.for_each(|edge| _ = sets.union(edge.a.0, edge.b.0));
        bytemuck::cast_vec(sets.labels())
    }

    proptest! {
        #[test]
        fn a_bridge_is_a_pair_whose_removal_splits_the_cluster(edges in graph()) {
            let pages = pages(&edges);
            let mut expected: Vec<(Page, Page, u32)> = Vec::new();
            for edge in &edges {
                let left = edges.iter().filter(|other| (other.a, other.b) != (edge.a, edge.b));
                let parts = parts(pages.len(), left.copied());
                let cut_off = parts.iter().filter(|&&part| part != Page(0)).count();
                if cut_off > 0 {
                    expected.push((edge.a, edge.b, cut_off.min(pages.len() - cut_off) as u32));
                }
            }
            expected.sort_unstable();
            expected.dedup();
            for thinned in [1, 2, 3] {
                // Thinned in parts, combined, and thinned again.
                let mut kept_edges: Vec<Edge> = Vec::new();
                for part in edges.chunks(edges.len().div_ceil(thinned)) {
                    let mut part = part.to_vec();
                    thin(&mut part);
                    kept_edges.extend(part);
                }
                thin(&mut kept_edges);
                prop_assert!(kept_edges.len() <= 2 * (pages.len() - 1));
                let mut actual: Vec<_> =
                    bridges(&kept_edges, &pages).iter().map(|cut| (cut.edge.a, cut.edge.b, cut.cuts_off)).collect();
                actual.sort_unstable();
                prop_assert_eq!(&actual, &expected);
            }
        }

        #[test]
        fn below_the_strength_of_the_split_no_large_parts_are_joined(edges in graph()) {
            // No two pairs are equally strong, so the order of adding is that of strength.
            let distinct = |(at, edge): (usize, &Edge)| Edge { strength: edge.strength * 100 + at as u32, ..*edge };
            let edges: Vec<Edge> = edges.iter().enumerate().map(distinct).collect();
            let pages = pages(&edges);
            let (_, split) = weakest(&edges);
            // The largest T at which all pages except parts of one page are connected.
            let is_joined_at = |min_strength: u32| {
                let parts = parts(pages.len(), edges.iter().copied().filter(|edge| edge.strength >= min_strength));
                let mut sizes = vec![0; pages.len()];
                parts.iter().for_each(|&part| sizes[part] += 1);
                sizes.iter().filter(|size| **size >= 2).count() <= 1
            };
            if let Some(split) = split {
                prop_assert!(split.cuts_off >= 2 && !is_joined_at(split.edge.strength + 1));
                prop_assert!(is_joined_at(split.edge.strength));
            }
        }
    }

    #[test]
    fn two_cliques_on_one_weak_pair_split_there() {
        let clique = |from: u32| (from..from + 5).flat_map(move |a| (a + 1..from + 5).map(move |b| edge(a, b, 9)));
        let mut edges: Vec<Edge> = clique(0).chain(clique(5)).collect();
        edges.push(edge(3, 7, 2));
        let cut = CutEdge { edge: edge(3, 7, 2), cuts_off: 5 };
        assert_eq!(weakest(&edges), (vec![cut], Some(cut)));
        // A second weak pair: there is no bridge, but the cluster still falls apart when T is
        // raised.
        edges.push(edge(4, 8, 3));
        let cut = CutEdge { edge: edge(4, 8, 3), cuts_off: 5 };
        assert_eq!(weakest(&edges), (vec![], Some(cut)));
    }
}
