//! Pieces: what tolerant growth joins on one host, first along links that merge, then across short segments.
//!
//! A *piece* is a set of pages of one host with at most one page of each trivial cluster. It is named by its smallest page.
//!
//! # Source
//! \[CSG00\] Algorithm 3.1 step 5 for growth; sections 2.2 and 6 for the second phase that "tries to combine similar
//! collections that are connected via short segments", which the paper leaves open.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::union_find::UnionFind;
use crate::ids::{ClusterId, Page, PieceId, SimilarClusterId};

/// When two pieces are joined, at most one in this many pages of the smaller may be doubled in the larger.
const DOUBLED: usize = 5;

/// Grows pieces on one host: `(page, piece)`, ascending.
///
/// `links` are links between pages of the host in trivial clusters that may merge; `cluster` returns a page's trivial
/// cluster.
///
/// 1. Start at the trivial cluster with the fewest linked pages on the host, because a second one is rather a version
///    or a double (ties: most linked, then smallest). Each of its pages that is in no piece founds one.
/// 2. Repeat: of all unassigned pages with a link, in either direction, to a piece of this round, take the page whose
///    cluster has the fewest pages here (ties: most links with the piece, then smaller page, then older piece); add it
///    to the piece, unless the piece has a page of its cluster.
/// 3. When no neighbour is left, start again from the next cluster.
///
/// # Cost
/// Links times log links.
pub fn grow_pieces(links: &[(Page, Page)], cluster: impl Fn(Page) -> ClusterId) -> Vec<(Page, PieceId)> {
    let mut pages: Vec<Page> = links.iter().flat_map(|&(src, dst)| [src, dst]).collect();
    pages.sort_unstable();
    pages.dedup();
    let at = |page: Page| pages.partition_point(|&other| other < page);
    let mut linked: Vec<Vec<u32>> = vec![Vec::new(); pages.len()];
    for &(src, dst) in links {
        let (src, dst) = (at(src), at(dst));
        linked[src].push(dst as u32);
        linked[dst].push(src as u32);
    }
    let clusters: Vec<ClusterId> = pages.iter().map(|&page| cluster(page)).collect();
    let mut by_cluster: Vec<u32> = (0..pages.len() as u32).collect();
    by_cluster.sort_unstable_by_key(|&page| (clusters[page as usize], page));
    let mut starts: Vec<&[u32]> = by_cluster.chunk_by(|&x, &y| clusters[x as usize] == clusters[y as usize]).collect();
    let mut doubles = vec![0; pages.len()];
    starts.iter().for_each(|alike| alike.iter().for_each(|&page| doubles[page as usize] = alike.len()));
    let degree = |pages: &[u32]| pages.iter().map(|&page| linked[page as usize].len()).sum::<usize>();
    starts.sort_by_cached_key(|pages| (pages.len(), Reverse(degree(pages))));

    let mut piece_of: Vec<Option<u32>> = vec![None; pages.len()];
    let mut has: HashSet<(u32, ClusterId)> = HashSet::new();
    let mut pieces = 0;
    for start in starts {
        let mut links_with: HashMap<(u32, u32), u32> = HashMap::new();
        let mut next = BinaryHeap::new();
        for &page in start.iter().filter(|&&page| piece_of[page as usize].is_none()) {
            next.push((Reverse(0), 0, Reverse(page), Reverse(pieces)));
            pieces += 1;
        }
        // The heap may hold a page many times, with fewer links than it has now; the first entry popped is the best
        // one, and the others find the page taken.
        while let Some((_, _, Reverse(page), Reverse(piece))) = next.pop() {
            if piece_of[page as usize].is_some() || !has.insert((piece, clusters[page as usize])) {
                continue;
            }
            piece_of[page as usize] = Some(piece);
            for &other in linked[page as usize].iter().filter(|&&other| piece_of[other as usize].is_none()) {
                let links = links_with.entry((other, piece)).or_insert(0);
                *links += 1;
                next.push((Reverse(doubles[other as usize]), *links, Reverse(other), Reverse(piece)));
            }
        }
    }
    let pieced = pages
        .iter()
        .zip(piece_of)
        .map(|(&page, piece)| (page, piece.expect("every page has its turn to found a piece")));
    named(pieced)
}

/// Joins pieces of one host that belong together: `(page, piece)` for the pages of `links` that are in a piece, ascending.
///
/// `links` are links between any pages of the host, in any order. `piece(page)` is `(piece, similar cluster, trivial
/// cluster)` of a page in a piece.
///
/// Two pieces of one similar cluster are joined if a link runs between them, or if both are linked, in either
/// direction, with the same page in no piece: a break point. If that doubles pages, those of the smaller piece stay
/// behind as a piece of their own; if more than one in five would be doubled, the two are versions and stay apart.
/// Larger pieces come first.
///
/// # Cost
/// Links times log links, and for each two linked pieces that are not joined yet, the pages of the smaller one.
pub fn join_pieces(
    links: &[(Page, Page)],
    piece: impl Fn(Page) -> Option<(PieceId, SimilarClusterId, ClusterId)>,
) -> Vec<(Page, PieceId)> {
    let mut pages: Vec<Page> = links.iter().flat_map(|&(src, dst)| [src, dst]).collect();
    pages.sort_unstable();
    pages.dedup();
    // Pages of pieces by piece, then trivial cluster.
    let mut pieced: Vec<(PieceId, ClusterId, Page)> =
        pages.iter().filter_map(|&page| piece(page).map(|(piece, _, cluster)| (piece, cluster, page))).collect();
    pieced.sort_unstable();
    let pieces: Vec<&[(PieceId, ClusterId, Page)]> = pieced.chunk_by(|x, y| x.0 == y.0).collect();
    let number = |piece: PieceId| pieces.partition_point(|pages| pages[0].0 < piece) as u32;
    let larger = |piece: u32| (pieces[piece as usize].len(), Reverse(piece));
    let of = |page: Page| piece(page).map(|(piece, similar, _)| (similar, number(piece)));

    let mut pairs: Vec<(u32, u32)> = Vec::new();
    let mut beside: Vec<(Page, SimilarClusterId, u32)> = Vec::new();
    for &(x, y) in links {
        match (of(x), of(y)) {
            (Some(x), Some(y)) if x.0 == y.0 => pairs.push((x.1, y.1)),
            (Some(x), None) => beside.push((y, x.0, x.1)),
            (None, Some(y)) => beside.push((x, y.0, y.1)),
            _ => {}
        }
    }
    beside.sort_unstable();
    // All pieces around one break point are to be joined; pairs with the largest of them say that in fewer pairs
    // than every two of them.
    for of_break_point in beside.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)) {
        let pieces = of_break_point.iter().map(|row| row.2);
        let largest = pieces.clone().max_by_key(|&piece| larger(piece)).expect("a chunk is not empty");
        pairs.extend(pieces.map(|piece| (piece, largest)));
    }
    let mut pairs: Vec<(u32, u32)> = pairs
        .into_iter()
        .filter(|(x, y)| x != y)
        .map(|(x, y)| if larger(x) > larger(y) { (x, y) } else { (y, x) })
        .collect();
    pairs.sort_unstable_by_key(|&(large, small)| (Reverse(larger(small)), Reverse(larger(large))));
    pairs.dedup();

    let mut joined = UnionFind::new(pieces.len());
    let mut clusters: Vec<HashSet<ClusterId>> =
        pieces.iter().map(|pages| pages.iter().map(|page| page.1).collect()).collect();
    for (x, y) in pairs {
        let (x, y) = (joined.find(x), joined.find(y));
        if x == y {
            continue;
        }
        let (large, small) = if clusters[x as usize].len() < clusters[y as usize].len() { (y, x) } else { (x, y) };
        // The test is on clusters as they are now: what was joined before counts, too.
        let of_small = &clusters[small as usize];
        let doubled = of_small.iter().filter(|cluster| clusters[large as usize].contains(cluster)).count();
        if DOUBLED * doubled <= of_small.len() {
            joined.union(x, y);
            let of_small = std::mem::take(&mut clusters[small as usize]);
            let mut of_large = std::mem::take(&mut clusters[large as usize]);
            of_large.extend(of_small);
            clusters[x.min(y) as usize] = of_large;
        }
    }
    // Where joined pieces double a page, the page of the largest piece stays.
    let mut order: Vec<u32> = (0..pieces.len() as u32).collect();
    order.sort_unstable_by_key(|&piece| Reverse(larger(piece)));
    let mut has: HashSet<(u32, ClusterId)> = HashSet::new();
    let mut next = pieces.len() as u32;
    let mut found = Vec::new();
    for piece in order {
        let of = joined.find(piece);
        for &(_, cluster, page) in pieces[piece as usize] {
            found.push(if has.insert((of, cluster)) { (page, of) } else { (page, next) });
            next += 1;
        }
    }
    found.sort_unstable();
    named(found.into_iter())
}

/// Names pieces by their smallest page; `pages` come ascending.
fn named(pages: impl Iterator<Item = (Page, u32)>) -> Vec<(Page, PieceId)> {
    let mut names: HashMap<u32, PieceId> = HashMap::new();
    pages.map(|(page, piece)| (page, *names.entry(piece).or_insert(PieceId::of(page)))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// The rule as it is written, looking at all pages for each that is placed.
    fn reference(links: &[(Page, Page)], cluster: &[ClusterId]) -> Vec<(Page, PieceId)> {
        let pages: BTreeSet<Page> = links.iter().flat_map(|&(src, dst)| [src, dst]).collect();
        let alike = |of: ClusterId| pages.iter().filter(move |&&page| cluster[page] == of);
        let degree = |page: &Page| links.iter().filter(|&&(src, dst)| src == *page || dst == *page).count();
        let mut starts: Vec<ClusterId> = pages.iter().map(|&page| cluster[page]).collect();
        starts.sort_by_key(|&of| (alike(of).count(), Reverse(alike(of).map(degree).sum::<usize>()), of));
        starts.dedup();
        let mut pieces: Vec<BTreeSet<Page>> = Vec::new();
        for start in starts {
            let first = pieces.len();
            let placed = |pieces: &[BTreeSet<Page>], page: &Page| pieces.iter().any(|piece| piece.contains(page));
            let founders: Vec<Page> = alike(start).copied().filter(|page| !placed(&pieces, page)).collect();
            pieces.extend(founders.into_iter().map(|page| BTreeSet::from([page])));
            loop {
                let links_with = |page: Page, piece: &BTreeSet<Page>| {
                    let with = |&&(src, dst): &&(Page, Page)| {
                        src == page && piece.contains(&dst) || dst == page && piece.contains(&src)
                    };
                    links.iter().filter(with).count()
                };
                let candidates = pages.iter().filter(|page| !placed(&pieces, page)).flat_map(|&page| {
                    let own = cluster[page];
                    let free = move |piece: &BTreeSet<Page>| piece.iter().all(|&other| cluster[other] != own);
                    let near = pieces.iter().enumerate().skip(first).filter(move |(_, piece)| free(piece));
                    near.map(move |(at, piece)| (links_with(page, piece), page, at)).filter(|(links, ..)| *links > 0)
                });
                let best = candidates.max_by_key(|&(links, page, at)| {
                    (Reverse(alike(cluster[page]).count()), links, Reverse(page), Reverse(at))
                });
                let Some((_, page, at)) = best else { break };
                pieces[at].insert(page);
            }
        }
        let name = |piece: &BTreeSet<Page>| PieceId::of(*piece.first().unwrap());
        let mut found: Vec<(Page, PieceId)> =
            pieces.iter().flat_map(|piece| piece.iter().map(move |&page| (page, name(piece)))).collect();
        found.sort_unstable();
        found
    }

    fn page(below: u32) -> impl Strategy<Value = Page> {
        (0..below).prop_map(Page)
    }

    proptest! {
        #[test]
        fn pieces_grow_as_the_rule_says(
            cluster in prop::collection::vec((0u32..6).prop_map(ClusterId), 12),
            links in prop::collection::btree_set((page(12), page(12)), 1..40),
        ) {
            let links: Vec<_> = links.into_iter().filter(|(x, y)| cluster[*x] != cluster[*y]).collect();
            prop_assert_eq!(grow_pieces(&links, |page| cluster[page]), reference(&links, &cluster));
        }

        #[test]
        fn joined_pieces_have_one_page_of_a_trivial_cluster_and_only_what_they_had(
            cluster in prop::collection::vec((0u32..12).prop_map(ClusterId), 16),
            piece in prop::collection::vec((0u32..5).prop_map(PieceId), 16),
            similar in prop::collection::vec((0u32..2).prop_map(SimilarClusterId), 5),
            links in prop::collection::vec((page(16), page(16)), 1..40),
        ) {
            // Pages whose trivial cluster their piece has already are in no piece.
            let alike = |x: Page, y: Page| (piece[x], cluster[x]) == (piece[y], cluster[y]);
            let doubled = |page: Page| Page::first(16).any(|other| other < page && alike(other, page));
            let of = |page: Page| (!doubled(page)).then(|| (piece[page], similar[piece[page]], cluster[page]));
            let mut joined: BTreeMap<PieceId, Vec<Page>> = BTreeMap::new();
            join_pieces(&links, of).into_iter().for_each(|(page, piece)| joined.entry(piece).or_default().push(page));
            for (name, pages) in &joined {
                prop_assert_eq!(name.smallest(), *pages.iter().min().unwrap());
                let clusters: BTreeSet<ClusterId> = pages.iter().map(|&page| cluster[page]).collect();
                prop_assert_eq!(clusters.len(), pages.len());
                let similar: BTreeSet<SimilarClusterId> = pages.iter().map(|&page| of(page).unwrap().1).collect();
                prop_assert_eq!(similar.len(), 1);
            }
            let mut pages: Vec<Page> = joined.into_values().flatten().collect();
            pages.sort_unstable();
            let linked: BTreeSet<Page> = links.iter().flat_map(|&(x, y)| [x, y]).filter(|&page| of(page).is_some()).collect();
            prop_assert_eq!(pages, linked.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn pieces_are_joined_by_a_link_or_a_page_between_unless_they_are_versions() {
        // Pieces {0, 1, 2} and {3, 4}, and 9 in none.
        type Piece = (PieceId, SimilarClusterId, ClusterId);
        let joined = |more: &[(u32, u32)], cluster: fn(u32) -> u32| {
            let links = [&[(0, 1), (1, 2), (3, 4)], more].concat();
            let links: Vec<_> = links.into_iter().map(|(src, dst)| (Page(src), Page(dst))).collect();
            let piece = |Page(page): Page| -> Option<Piece> {
                (page < 9).then_some((PieceId(page / 3 * 3), SimilarClusterId(7), ClusterId(cluster(page))))
            };
            join_pieces(&links, piece).iter().filter(|row| row.1 == PieceId(0)).count()
        };
        assert_eq!(joined(&[], |page| page), 3);
        assert_eq!(joined(&[(2, 3)], |page| page), 5);
        assert_eq!(joined(&[(2, 9), (9, 3)], |page| page), 5);
        // 3 and 4 are doubles of 0 and 1.
        assert_eq!(joined(&[(2, 3)], |page| page % 3), 3);
    }
}
