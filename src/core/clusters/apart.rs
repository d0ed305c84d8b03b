//! Division of trivial clusters that contain pages which a person marked as distinct.
//!
//! Pairs join clusters in order of strength, strongest first, except pairs that would put two such
//! pages into one cluster. So a chain between two such pages breaks at its weakest link, and every
//! other page stays with the pages that it resembles most. A pair is refused if its pages end up in
//! different clusters. Each refused pair, added alone, would bring two pages together that must be
//! apart.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::union_find::UnionFind;
use super::weakest_links::{EXACT, Edge, number, pages};
use webtwin_base::ids::Page;

/// Returns the pairs (smaller page, larger page) among `edges` that must not join clusters,
/// ascending. No cluster of the remaining pairs contains both pages of a pair in `separate`, which
/// must not pair a page with itself. Among equally strong edges those with smaller pages come
/// first.
///
/// # Cost
/// A sort of the edges. Each page of `separate` moves to another set at most log2 n times.
///
/// # Examples
/// Pages 0, 1 and 2 are a chain. A person has marked its ends as distinct, so the chain breaks at
/// the weaker pair.
/// ```
/// use webtwin_base::ids::{ClusterId, Page};
/// use webtwin_core::clusters::apart::refused_pairs;
/// use webtwin_core::clusters::weakest_links::Edge;
///
/// let edge = |a, b, strength| Edge { cluster: ClusterId(0), a: Page(a), b: Page(b), strength };
/// let chain = [edge(0, 1, 40), edge(1, 2, 90)];
/// assert_eq!(refused_pairs(&chain, &[(Page(0), Page(2))]), [(Page(0), Page(1))]);
/// ```
pub fn refused_pairs(edges: &[Edge], separate: &[(Page, Page)]) -> Vec<(Page, Page)> {
    let mut edges = edges.to_vec();
    edges.sort_unstable_by_key(|edge| (Reverse(edge.strength), edge.a, edge.b));
    let pages = pages(&edges);
    let mut sets = UnionFind::new(pages.len());
    // Indices of the pairs in `separate` of which a set has one page, by the root of the set.
    let mut torn: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); pages.len()];
    for (pair, &(x, y)) in separate.iter().enumerate() {
        for page in [x, y] {
            if let Ok(at) = pages.binary_search(&page) {
                torn[at].insert(pair);
            }
        }
    }
    for edge in &edges {
        let (a, b) = (sets.find(number(&pages, edge.a)), sets.find(number(&pages, edge.b)));
        if a != b && torn[a as usize].is_disjoint(&torn[b as usize]) {
            sets.union(a, b);
            // The smaller set of indices moves, which bounds the moves of each index by log2 n.
            let mut pair_sets = [a, b].map(|root| std::mem::take(&mut torn[root as usize]));
            pair_sets.sort_unstable_by_key(BTreeSet::len);
            let [smaller, mut larger] = pair_sets;
            larger.extend(smaller);
            torn[sets.find(a) as usize] = larger;
        }
    }
    let mut refused_pairs: Vec<(Page, Page)> = edges.iter().map(|edge| (edge.a, edge.b)).collect();
    refused_pairs.retain(|&(a, b)| sets.find(number(&pages, a)) != sets.find(number(&pages, b)));
    refused_pairs.sort_unstable();
    refused_pairs.dedup();
    refused_pairs
}

/// Removes from `separate` the pairs of pages that edges of equal texts join.
///
/// # Cost
/// A sort of the pages with such edges.
pub fn without_copies(edges: &[Edge], separate: &mut Vec<(Page, Page)>) {
    let copies: Vec<Edge> = edges.iter().filter(|edge| edge.strength == EXACT).copied().collect();
    let pages = pages(&copies);
    let mut sets = UnionFind::new(pages.len());
    for edge in &copies {
        sets.union(number(&pages, edge.a), number(&pages, edge.b));
    }
    let mut set = |page: Page| pages.binary_search(&page).ok().map(|at| sets.find(at as u32));
    separate.retain(|&(x, y)| set(x).is_none() || set(x) != set(y));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_base::ids::ClusterId;

    fn edge((a, b, strength): (u32, u32, u32)) -> Edge {
        Edge { cluster: ClusterId(0), a: Page(a), b: Page(b), strength }
    }

    fn pages_of(&(x, y): &(u32, u32)) -> (Page, Page) {
        (Page(x), Page(y))
    }

    /// Reference: labels of pages, changed one by one, with every pair in `separate` compared for
    /// every edge.
    fn plainly(edges: &[Edge], separate: &[(Page, Page)], pages: usize) -> Vec<(Page, Page)> {
        let mut edges = edges.to_vec();
        edges.sort_by_key(|edge| (Reverse(edge.strength), edge.a, edge.b));
        let mut label: Vec<Page> = Page::first(pages).collect();
        for edge in &edges {
            let (from, to) = (label[edge.b], label[edge.a]);
            let joined_labels: Vec<Page> = label.iter().map(|&of| if of == from { to } else { of }).collect();
            if separate.iter().all(|&(x, y)| joined_labels[x] != joined_labels[y]) {
                label = joined_labels;
            }
        }
        let apart_now = edges.iter().filter(|edge| label[edge.a] != label[edge.b]);
        apart_now.map(|edge| (edge.a, edge.b)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn a_chain_breaks_at_its_weakest_link() {
        let chain = [(0, 1, 9), (1, 2, 3), (2, 3, EXACT), (3, 4, 8)].map(edge);
        let refused_with =
            |apart: &[(u32, u32)]| refused_pairs(&chain, &apart.iter().map(pages_of).collect::<Vec<_>>());
        assert_eq!(refused_with(&[(0, 4)]), [(1, 2)].map(|pair| pages_of(&pair)));
        assert_eq!(refused_with(&[(4, 0), (3, 2)]), [(2, 3)].map(|pair| pages_of(&pair)));
        assert!(refused_with(&[(0, 9), (8, 9)]).is_empty());
    }

    #[test]
    fn copies_are_joined_by_equal_texts_and_by_nothing_else() {
        let edges = [(0, 1, EXACT), (0, 2, EXACT), (2, 3, EXACT - 1), (4, 5, EXACT), (5, 6, 1)].map(edge);
        let mut separate: Vec<_> = [(1, 2), (2, 3), (0, 4), (5, 6), (7, 8), (4, 5)].iter().map(pages_of).collect();
        without_copies(&edges, &mut separate);
        assert_eq!(separate, [(2, 3), (0, 4), (5, 6), (7, 8)].map(|pair| pages_of(&pair)));
        // So no pair of equal text is refused because of the other edges.
        let refused_pairs = refused_pairs(&edges, &separate);
        assert_eq!(refused_pairs, [(2, 3), (5, 6)].map(|pair| pages_of(&pair)));
    }

    proptest! {
        #[test]
        fn refused_edges_equal_a_check_of_all_pairs(
            edges in prop::collection::vec((0u32..9, 1u32..9, 0u32..4), 0..30),
            apart in prop::collection::vec((0u32..9, 1u32..9), 0..6),
        ) {
            let other = |page: u32, by: u32| (page + by) % 9;
            let edges: Vec<Edge> = edges.into_iter().filter(|&(a, by, _)| other(a, by) != a)
                .map(|(a, by, strength)| edge((a.min(other(a, by)), a.max(other(a, by)), strength))).collect();
            let separate: Vec<(Page, Page)> = apart.into_iter().map(|(x, by)| pages_of(&(x, other(x, by)))).collect();
            prop_assume!(separate.iter().all(|(x, y)| x != y));
            prop_assert_eq!(refused_pairs(&edges, &separate), plainly(&edges, &separate, 9));
        }
    }
}
