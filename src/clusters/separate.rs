//! Several things on one host are several collections, though the host's own pages link to all of them.
//!
//! Where a host carries two manuals, its home page may join them in one piece; the copies of either manual on other hosts are
//! then copies of that piece, and all of them one similar cluster. Here such a cluster is taken apart: its trivial clusters are
//! joined along links, those that most copies have first, and two sets of them are kept apart if some piece has one of
//! them without the other, and some piece the other without the one. Links that more than two in three of the copies have
//! join in any case, so that two hosts that lack different chapters do not take a manual apart.
//!
//! # Cost
//! A sort of the links of a similar cluster, and for each pair of sets that a link runs between, the pieces of both.
//!
//! # Source
//! \[CSG00\] Definition 8 asks that collections of a cluster are pairwise similar; how growth should see to it where hosts carry
//! several, it leaves open. The rule is ours.

use std::collections::HashSet;

use super::tolerant::{PieceLink, PiecePage};
use super::union_find::UnionFind;

/// Fewest trivial clusters of a set that a piece must have to have it.
const LEAST: u32 = 3;

/// A set of trivial clusters that belong together.
#[derive(Debug, Clone, Default)]
struct Set {
    /// Its trivial clusters.
    size: u32,
    /// How many of them each piece has, ascending by piece, without zeros.
    pieces: Vec<(u32, u32)>,
}

impl Set {
    /// Whether some piece has this set, and less than a tenth of the other, or fewer than [`LEAST`].
    fn stands_without(&self, other: &Set) -> bool {
        let mut rest = &other.pieces[..];
        self.pieces.iter().filter(|(_, count)| *count >= LEAST && 10 * count >= 3 * self.size).any(|&(piece, _)| {
            rest = &rest[rest.partition_point(|of| of.0 < piece)..];
            let of_other = rest.first().filter(|of| of.0 == piece).map_or(0, |of| of.1);
            of_other < LEAST || 10 * of_other < other.size
        })
    }

    fn join(&mut self, other: Set) {
        self.size += other.size;
        let mut all = std::mem::take(&mut self.pieces);
        all.extend(other.pieces);
        all.sort_unstable();
        for (piece, count) in all {
            match self.pieces.last_mut() {
                Some(last) if last.0 == piece => last.1 += count,
                _ => self.pieces.push((piece, count)),
            }
        }
    }
}

/// A link between two trivial clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    /// Pieces that have it.
    pieces: u64,
    /// Pages of the larger trivial cluster.
    copies: u64,
    ends: (u32, u32),
}

/// For every page of one similar cluster the number of the thing it belongs to, from 0, and how many there are.
///
/// `pages` ascend by piece; `links`, in any order, run within pieces.
pub(super) fn separate(pages: &[PiecePage], links: &[PieceLink]) -> (Vec<u32>, usize) {
    let mut clusters: Vec<_> = pages.iter().map(|page| page.cluster).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let of_page: Vec<u32> =
        pages.iter().map(|page| clusters.partition_point(|&cluster| cluster < page.cluster) as u32).collect();
    let mut sets = vec![Set { size: 1, pieces: Vec::new() }; clusters.len()];
    let mut starts = vec![0; pages.len()];
    for at in 0..pages.len() {
        starts[at] = if at > 0 && pages[at].piece == pages[at - 1].piece { starts[at - 1] } else { at as u32 };
        // Pages of one trivial cluster in one piece are a double, which the check takes out.
        let of_cluster = &mut sets[of_page[at] as usize].pieces;
        if of_cluster.last().is_none_or(|last| last.0 != starts[at]) {
            of_cluster.push((starts[at], 1));
        }
    }
    let mut joined = UnionFind::new(clusters.len());
    // By names and sizes: what was apart from a set may not be from a larger one.
    let mut apart: HashSet<[u32; 4]> = HashSet::new();
    for edge in edges(links, &of_page, &starts, &sets) {
        let (x, y) = (joined.find(edge.ends.0), joined.find(edge.ends.1));
        let (x, y) = (x.min(y), x.max(y));
        let pair = [x, y, sets[x as usize].size, sets[y as usize].size];
        if x == y || apart.contains(&pair) {
            continue;
        }
        let of_most = 3 * edge.pieces > 2 * edge.copies;
        let stand_alone = || {
            let (x, y) = (&sets[x as usize], &sets[y as usize]);
            x.stands_without(y) && y.stands_without(x)
        };
        if of_most || !stand_alone() {
            joined.union(x, y);
            let other = std::mem::take(&mut sets[y as usize]);
            sets[x as usize].join(other);
        } else {
            apart.insert(pair);
        }
    }
    let labels = joined.labels();
    let mut number = vec![u32::MAX; clusters.len()];
    let mut count = 0;
    for &label in &labels {
        let number = &mut number[label as usize];
        if *number == u32::MAX {
            *number = count;
            count += 1;
        }
    }
    (of_page.iter().map(|&cluster| number[labels[cluster as usize] as usize]).collect(), count as usize)
}

/// Links between trivial clusters in either direction, each once, those that most copies have first.
fn edges(links: &[PieceLink], of_page: &[u32], starts: &[u32], sets: &[Set]) -> Vec<Edge> {
    let ends = |link: &PieceLink| {
        let (x, y) = (of_page[link.src as usize], of_page[link.dst as usize]);
        (x.min(y), x.max(y), starts[link.src as usize])
    };
    let mut rows: Vec<(u32, u32, u32)> = links.iter().map(ends).filter(|row| row.0 != row.1).collect();
    rows.sort_unstable();
    rows.dedup();
    let of_ends = rows.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1));
    let mut edges: Vec<Edge> = of_ends
        .map(|rows| {
            let copies = |cluster: u32| sets[cluster as usize].pieces.len();
            let copies = copies(rows[0].0).max(copies(rows[0].1)) as u64;
            Edge { pieces: rows.len() as u64, copies, ends: (rows[0].0, rows[0].1) }
        })
        .collect();
    edges.sort_unstable_by(|x, y| (y.pieces * x.copies).cmp(&(x.pieces * y.copies)).then(x.ends.cmp(&y.ends)));
    edges
}
