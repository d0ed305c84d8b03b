//! Separation of the collections that one host carries next to each other, although its own pages
//! link to all of them.
//!
//! If a host carries two manuals, its home page may join them in one piece. The copies of either
//! manual on other hosts are then copies of that piece, and all of them are one similar cluster.
//! This module splits such a cluster. Its trivial clusters are joined along links, starting with
//! the links that the most copies have. Two sets of trivial clusters are kept apart if some piece
//! has the first set without the second, and some piece the second without the first. Links that
//! more than two in three of the copies have always join, so that two hosts that lack different
//! chapters do not split a manual.
//!
//! # Cost
//! A scan of the links of a similar cluster. For the links that at most two in three of the copies
//! have, a sort, and for each pair of sets that such a link runs between, a scan of the pieces of
//! both.
//!
//! # Source
//! \[CSG00\] Definition 8 requires that the collections of a cluster are pairwise similar. It does
//! not define how growth should ensure this for hosts that carry several collections. The rule is
//! our own.

use std::collections::HashSet;

use super::ground::ClusterPlaces;
use super::union_find::UnionFind;

/// Minimum number of trivial clusters of a set in a piece for the piece to have the set.
const MIN_CLUSTERS: u32 = 3;

/// A set of trivial clusters that belong together.
#[derive(Debug, Clone, Default)]
struct Set {
    /// Number of trivial clusters of the set.
    size: u32,
    /// Number of the set's trivial clusters in each piece, ascending by piece, without zeros.
    pieces: Vec<(u32, u32)>,
}

impl Set {
    /// True if some piece has this set without the other one: at least three tenths and
    /// [`MIN_CLUSTERS`] trivial clusters of this set, and less than a tenth or fewer than
    /// [`MIN_CLUSTERS`] of the other.
    fn stands_without(&self, other: &Set) -> bool {
        let mut remaining = &other.pieces[..];
        self.pieces.iter().filter(|(_, count)| *count >= MIN_CLUSTERS && 10 * count >= 3 * self.size).any(
            |&(piece, _)| {
                remaining = &remaining[remaining.partition_point(|of| of.0 < piece)..];
                let other_count = remaining.first().filter(|of| of.0 == piece).map_or(0, |of| of.1);
                other_count < MIN_CLUSTERS || 10 * other_count < other.size
            },
        )
    }

    fn join(&mut self, other: Set) {
        self.size += other.size;
        let mut merged = std::mem::take(&mut self.pieces);
        merged.extend(other.pieces);
        // `merged` consists of two sorted runs, which a stable sort merges.
        merged.sort();
        for (piece, count) in merged {
            match self.pieces.last_mut() {
                Some(last) if last.0 == piece => last.1 += count,
                _ => self.pieces.push((piece, count)),
            }
        }
    }
}

/// A link between two trivial clusters that at most two in three of their copies have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    /// Number of pieces that have the link.
    pieces: u64,
    /// Number of pieces that have the more widespread of the two trivial clusters.
    copies: u64,
    ends: (u32, u32),
}

/// Numbers the sets of trivial clusters of one similar cluster that belong together. Returns the
/// number of each trivial cluster's set, from 0 in the order of trivial clusters, and the number of
/// sets.
pub(super) fn separate(ground: &ClusterPlaces) -> (Vec<u32>, usize) {
    let mut union = UnionFind::new(ground.clusters);
    let mut edges = Vec::new();
    let copies = ground.copies();
    for links_of_pair in ground.links_by_clusters() {
        let ends = ground.ends(links_of_pair[0]);
        if ends.0 == ends.1 {
            continue;
        }
        let piece = |link: &[u32; 2]| ground.piece[link[0] as usize];
        let pieces = links_of_pair.chunk_by(|x, y| piece(x) == piece(y)).count() as u64;
        let copies = u64::from(copies[ends.0 as usize].max(copies[ends.1 as usize]));
        if 3 * pieces > 2 * copies {
            union.union(ends.0, ends.1);
        } else {
            edges.push(Edge { pieces, copies, ends });
        }
    }
    // The remaining edges are few, and mostly within sets that are already joined.
    edges.retain(|edge| union.find(edge.ends.0) != union.find(edge.ends.1));
    if !edges.is_empty() {
        edges.sort_unstable_by(|x, y| (y.pieces * x.copies).cmp(&(x.pieces * y.copies)).then(x.ends.cmp(&y.ends)));
        join_what_never_stands_alone(ground, &edges, &mut union);
    }
    let mut components = union.labels();
    let mut number = vec![u32::MAX; ground.clusters];
    let mut count = 0;
    for component in &mut components {
        let number = &mut number[*component as usize];
        if *number == u32::MAX {
            *number = count;
            count += 1;
        }
        *component = *number;
    }
    (components, count as usize)
}

/// Joins sets of trivial clusters along links, in the given order, unless each of the two occurs in
/// some piece without the other.
fn join_what_never_stands_alone(ground: &ClusterPlaces, edges: &[Edge], union: &mut UnionFind) {
    let mut sets = vec![Set::default(); ground.clusters];
    (0..ground.clusters as u32).for_each(|cluster| sets[union.find(cluster) as usize].size += 1);
    let mut last = None;
    for (&piece, &cluster) in ground.piece.iter().zip(&ground.cluster) {
        // Pages of one trivial cluster in one piece are a double, which the check takes out.
        if last.replace((piece, cluster)) != Some((piece, cluster)) {
            let set_pieces = &mut sets[union.find(cluster) as usize].pieces;
            match set_pieces.last_mut() {
                Some(last) if last.0 == piece => last.1 += 1,
                _ => set_pieces.push((piece, 1)),
            }
        }
    }
    // Pairs of sets that are apart, by names and sizes: sets that were apart may not be apart once
    // one of them is larger.
    let mut kept_apart: HashSet<[u32; 4]> = HashSet::new();
    for edge in edges {
        let (x, y) = (union.find(edge.ends.0), union.find(edge.ends.1));
        let (x, y) = (x.min(y), x.max(y));
        let pair = [x, y, sets[x as usize].size, sets[y as usize].size];
        if x == y || kept_apart.contains(&pair) {
            continue;
        }
        let (first, other) = (&sets[x as usize], &sets[y as usize]);
        if first.stands_without(other) && other.stands_without(first) {
            kept_apart.insert(pair);
        } else {
            union.union(x, y);
            let other = std::mem::take(&mut sets[y as usize]);
            sets[x as usize].join(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::clusters::tolerant::PiecePage;
    use webtwin_base::ids::{ClusterId, HostId, Page, PieceId, SimilarClusterId};

    /// Applies the rule as documented: all links in one order, and sets that are counted again each
    /// time.
    fn plainly(pages: &[PiecePage], links: &[[u32; 2]]) -> BTreeMap<ClusterId, ClusterId> {
        let at = |place: u32| &pages[place as usize];
        let mut edges: BTreeMap<[ClusterId; 2], Vec<PieceId>> = BTreeMap::new();
        for &[src, dst] in links {
            let (x, y) = (at(src).cluster, at(dst).cluster);
            edges.entry([x.min(y), x.max(y)]).or_default().push(at(src).piece);
        }
        let distinct = |pieces: &mut Vec<PieceId>| {
            pieces.sort_unstable();
            pieces.dedup();
            pieces.len()
        };
        let copies = |cluster: ClusterId| {
            distinct(&mut pages.iter().filter(|page| page.cluster == cluster).map(|page| page.piece).collect())
        };
        let mut order: Vec<_> = edges
            .into_iter()
            .map(|([x, y], mut pieces)| (distinct(&mut pieces), copies(x).max(copies(y)), [x, y]))
            .collect();
        order.sort_by(|x, y| (y.0 * x.1).cmp(&(x.0 * y.1)).then(x.2.cmp(&y.2)));
        let mut set: BTreeMap<ClusterId, ClusterId> = pages.iter().map(|page| (page.cluster, page.cluster)).collect();
        for (pieces, copies, [x, y]) in order {
            let (x, y) = (set[&x], set[&y]);
            let size = |of: ClusterId| set.values().filter(|&&set| set == of).count();
            let count = |cluster_id: ClusterId, piece: PieceId| {
                let mut clusters: Vec<ClusterId> =
                    pages.iter().filter(|page| page.piece == piece).map(|page| page.cluster).collect();
                clusters.dedup();
                clusters.iter().filter(|cluster| set[cluster] == cluster_id).count()
            };
            let stands_without = |x: ClusterId, y: ClusterId| {
                pages.iter().map(|page| page.piece).any(|piece| {
                    let is_substantial = count(x, piece) >= 3 && 10 * count(x, piece) >= 3 * size(x);
                    is_substantial && (count(y, piece) < 3 || 10 * count(y, piece) < size(y))
                })
            };
            if 3 * pieces > 2 * copies || !(stands_without(x, y) && stands_without(y, x)) {
                set.values_mut().filter(|set| **set == x.max(y)).for_each(|set| *set = x.min(y));
            }
        }
        set
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn separated_sets_equal_the_rule(
            has in prop::collection::vec((0u32..5, 0u32..14), 8..60),
            links in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..80),
        ) {
            let page = |(at, (piece, cluster)): (u32, (u32, u32))| PiecePage {
                similar_cluster: SimilarClusterId(0),
                piece: PieceId(piece),
                cluster: ClusterId(cluster),
                page: Page(at),
                host: HostId(piece),
                links_from_elsewhere: 0,
            };
            let mut pages: Vec<PiecePage> = (0..).zip(has).map(page).collect();
            pages.sort_unstable();
            let place = |index: prop::sample::Index| index.index(pages.len()) as u32;
            let mut links: Vec<[u32; 2]> = links.into_iter().map(|(x, y)| [place(x), place(y)]).collect();
            let at = |place: u32| &pages[place as usize];
            links.retain(|&[x, y]| at(x).piece == at(y).piece && at(x).cluster != at(y).cluster);
            links.sort_unstable();
            links.dedup();
            let expected = plainly(&pages, &links);
            let (components, count) = separate(&ClusterPlaces::new(&pages, &links));
            let mut first: Vec<ClusterId> = Vec::new();
            for (&set, &component) in expected.values().zip(&components) {
                first.resize(first.len().max(component as usize + 1), set);
                prop_assert_eq!(first[component as usize], set);
            }
            prop_assert_eq!(first.len(), count);
            first.dedup();
            prop_assert_eq!(first.len(), count);
        }
    }
}
