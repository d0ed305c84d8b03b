//! Pieces: the units that tolerant growth joins on one host, first along links that merge, then
//! across short segments.
//!
//! A *piece* is a set of pages of one host with at most one page of each trivial cluster. Its name
//! is its smallest page.
//!
//! # Source
//! \[CSG00\] Algorithm 3.1 step 5 for growth; sections 2.2 and 6 for the second phase that "tries
//! to combine similar collections that are connected via short segments", which the paper leaves
//! open.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::union_find::UnionFind;
use webtwin_base::ids::{ClusterId, Page, PieceId, SimilarClusterId};

/// Inverse of the maximum doubled fraction: when two pieces are joined, at most one of this number
/// of pages of the smaller piece may be doubled in the larger.
const DOUBLED_DIVISOR: usize = 5;

/// Links between pages of one host.
#[derive(Debug, Clone, Copy)]
pub struct HostLinks<'a> {
    /// Pages that have links, ascending.
    pub pages: &'a [Page],
    /// Indices in `pages` of the source and target of each link.
    pub ends: &'a [[u32; 2]],
}

impl HostLinks<'_> {
    /// Returns source and target of each link as pages.
    pub fn pairs(&self) -> Vec<(Page, Page)> {
        self.ends.iter().map(|ends| ends.map(|at| self.pages[at as usize]).into()).collect()
    }
}

/// Returns the pages of links, and the indices of their ends, in the form of [`HostLinks`].
pub fn by_place(links: &[(Page, Page)]) -> (Vec<Page>, Vec<[u32; 2]>) {
    let mut pages: Vec<Page> = links.iter().flat_map(|&(src, dst)| [src, dst]).collect();
    pages.sort_unstable();
    pages.dedup();
    let at = |page: Page| pages.partition_point(|&other| other < page) as u32;
    let ends = links.iter().map(|&(src, dst)| [at(src), at(dst)]).collect();
    (pages, ends)
}

/// Grows pieces on one host. Returns `(page, piece)`, ascending.
///
/// `links` are the links between pages in trivial clusters that may merge. `cluster` returns the
/// trivial cluster of a page.
///
/// 1. Start at the trivial cluster with the fewest linked pages on the host, because a second page
///    is more likely a version or a double (ties: most linked, then smallest). Each of its pages
///    that is in no piece founds one.
/// 2. Repeat: of all unassigned pages with a link, in either direction, to a piece of this round,
///    take the page whose cluster has the fewest pages on the host (ties: most links with the
///    piece, then smaller page, then older piece); add it to the piece, unless the piece has a page
///    of its cluster.
/// 3. When no neighbour is left, start again from the next cluster.
///
/// So a component of the host's pages that has no two pages of one trivial cluster is a piece in
/// any order. Only the other components, which are *contested*, are grown page by page.
///
/// # Cost
/// A union-find over the links; for the links of contested components, links times log links.
///
/// # Examples
/// A host has pages of the trivial clusters 10, 11 and 12, which links connect, and elsewhere
/// copies of the first two.
/// ```
/// use webtwin_base::ids::{ClusterId, Page, PieceId};
/// use webtwin_core::clusters::pieces::{HostLinks, by_place, grow_pieces};
///
/// let clusters = [10, 11, 12, 10, 11].map(ClusterId);
/// let links = [(0, 1), (1, 2), (3, 4)].map(|(src, dst)| (Page(src), Page(dst)));
/// let (pages, ends) = by_place(&links);
/// let pieces = grow_pieces(&HostLinks { pages: &pages, ends: &ends }, |page| clusters[page]);
/// let of: Vec<PieceId> = pieces.into_iter().map(|(_, piece)| piece).collect();
/// assert_eq!(of, [0, 0, 0, 3, 3].map(PieceId));
/// ```
pub fn grow_pieces(links: &HostLinks<'_>, cluster: impl Fn(Page) -> ClusterId) -> Vec<(Page, PieceId)> {
    let HostLinks { pages, ends } = *links;
    let mut union = UnionFind::new(pages.len());
    ends.iter().for_each(|&[src, dst]| _ = union.union(src, dst));
    let component = union.labels();
    let clusters: Vec<ClusterId> = pages.iter().map(|&page| cluster(page)).collect();
    let host = Host { component: &component, clusters: &clusters, ends };
    let contested = host.contested();
    let piece_of = if contested.contains(&true) { host.grow(&contested) } else { Vec::new() };
    let mut names: HashMap<u32, PieceId> = HashMap::new();
    let piece = |place: usize| match contested[component[place] as usize] {
        false => PieceId::from_smallest(pages[component[place] as usize]),
        true => *names.entry(piece_of[place]).or_insert(PieceId::from_smallest(pages[place])),
    };
    let pieces: Vec<PieceId> = (0..pages.len()).map(piece).collect();
    pages.iter().copied().zip(pieces).collect()
}

/// The linked pages of a host, by index in ascending order.
struct Host<'a> {
    /// Component of each page, named by its smallest index.
    component: &'a [u32],
    /// Trivial cluster of each page.
    clusters: &'a [ClusterId],
    /// Source and target of each link, as indices.
    ends: &'a [[u32; 2]],
}

impl Host<'_> {
    /// Marks the components in which two pages are of one trivial cluster.
    fn contested(&self) -> Vec<bool> {
        let mut rows: Vec<(u32, ClusterId)> =
            self.component.iter().copied().zip(self.clusters.iter().copied()).collect();
        rows.sort_unstable();
        let mut contested = vec![false; self.component.len()];
        rows.windows(2).filter(|pair| pair[0] == pair[1]).for_each(|pair| contested[pair[0].0 as usize] = true);
        contested
    }

    /// Returns the number of the piece of each page in a contested component, and [`NO_PIECE`] for
    /// all other pages.
    fn grow(&self, contested: &[bool]) -> Vec<u32> {
        let pages = self.clusters.len();
        let is_contested = |page: u32| contested[self.component[page as usize] as usize];
        let mut degree = vec![0usize; pages];
        let mut linked: Vec<Vec<u32>> = vec![Vec::new(); pages];
        for &[src, dst] in self.ends {
            degree[src as usize] += 1;
            degree[dst as usize] += 1;
            if is_contested(src) {
                linked[src as usize].push(dst);
                linked[dst as usize].push(src);
            }
        }
        let mut by_cluster: Vec<u32> = (0..pages as u32).collect();
        by_cluster.sort_unstable_by_key(|&page| (self.clusters[page as usize], page));
        let is_same_cluster = |x: &u32, y: &u32| self.clusters[*x as usize] == self.clusters[*y as usize];
        let mut starts: Vec<&[u32]> = by_cluster.chunk_by(is_same_cluster).collect();
        let mut doubles = vec![0; pages];
        starts.iter().for_each(|alike| alike.iter().for_each(|&page| doubles[page as usize] = alike.len() as u32));
        starts.retain(|alike| alike.iter().any(|&page| is_contested(page)));
        let degree = |alike: &[u32]| alike.iter().map(|&page| degree[page as usize]).sum::<usize>();
        starts.sort_by_cached_key(|alike| (alike.len(), Reverse(degree(alike))));

        let mut piece_of = vec![NO_PIECE; pages];
        // Clusters that each piece has. Holds only trivial clusters with several pages on this
        // host, because no other cluster can be doubled.
        let mut assigned: HashSet<(u32, ClusterId)> = HashSet::new();
        let mut links_with: HashMap<(u32, u32), u32> = HashMap::new();
        let mut next = BinaryHeap::new();
        // Used if a round has one piece: pages to add to it without a queue, and pages that other
        // pages of the piece have just been linked with.
        let (mut free, mut nearer, mut is_nearer) = (Vec::new(), Vec::new(), vec![false; pages]);
        let mut pieces = 0;
        for start in starts {
            let first = pieces;
            for &page in start.iter().filter(|&&page| is_contested(page) && piece_of[page as usize] == NO_PIECE) {
                next.push(Candidate { doubles: Reverse(0), links: 0, page: Reverse(page), piece: Reverse(pieces) });
                pieces += 1;
            }
            // With one piece, pages without a double come before all others and are never refused,
            // so their order does not matter.
            let one_piece = pieces - first == 1;
            loop {
                let (page, piece) = if let Some(page) = free.pop() {
                    (page, first)
                } else {
                    for page in nearer.drain(..) {
                        is_nearer[page as usize] = false;
                        let (doubles, links) = (Reverse(doubles[page as usize]), links_with[&(page, first)]);
                        next.push(Candidate { doubles, links, page: Reverse(page), piece: Reverse(first) });
                    }
                    let Some(Candidate { page: Reverse(page), piece: Reverse(piece), .. }) = next.pop() else { break };
                    (page, piece)
                };
                // The heap may hold a page many times, with fewer links than it has now. The first
                // entry popped is the best one, and later entries find the page assigned.
                if piece_of[page as usize] != NO_PIECE
                    || doubles[page as usize] > 1 && !assigned.insert((piece, self.clusters[page as usize]))
                {
                    continue;
                }
                piece_of[page as usize] = piece;
                for &other in linked[page as usize].iter().filter(|&&other| piece_of[other as usize] == NO_PIECE) {
                    if one_piece && doubles[other as usize] == 1 {
                        free.push(other);
                        continue;
                    }
                    let links = links_with.entry((other, piece)).or_insert(0);
                    *links += 1;
                    if !one_piece {
                        let doubles = Reverse(doubles[other as usize]);
                        next.push(Candidate { doubles, links: *links, page: Reverse(other), piece: Reverse(piece) });
                    } else if !std::mem::replace(&mut is_nearer[other as usize], true) {
                        nearer.push(other);
                    }
                }
            }
        }
        piece_of
    }
}

/// Marks a page that is in no piece.
const NO_PIECE: u32 = u32::MAX;

/// A page that may be added to a piece. The greatest candidate is added first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Number of pages of its trivial cluster on the host.
    doubles: Reverse<u32>,
    /// Number of links between the page and the piece.
    links: u32,
    page: Reverse<u32>,
    piece: Reverse<u32>,
}

/// A page of a piece, as (piece, trivial cluster, page). Rows order by piece, then trivial cluster.
pub type PieceMember = (PieceId, ClusterId, Page);

/// Joins pieces of one host that belong together. Returns `(page, piece)` for all pages of
/// `members`, ascending.
///
/// `members` are all pages of the pieces that may be joined, ascending. `links` are links between
/// pages of the host, in any order. A page of `links` that is not among the members is in no piece.
/// `similar(piece)` is the similar cluster of a piece.
///
/// Two pieces of one similar cluster are joined if a link runs between them, or if both are linked,
/// in either direction, with the same page that is in no piece: a break point. If the join doubles
/// pages, the doubled pages of the smaller piece become pieces of their own; if more than one in
/// five would be doubled, the two pieces are versions and are not joined. Larger pieces come first.
///
/// # Cost
/// Links times log links. For each two linked pieces that are not joined yet, a scan of the pages
/// of the smaller one.
pub fn join_pieces(
    members: &[PieceMember],
    links: &[(Page, Page)],
    similar: impl Fn(PieceId) -> SimilarClusterId,
) -> Vec<(Page, PieceId)> {
    let pieces: Vec<&[PieceMember]> = members.chunk_by(|x, y| x.0 == y.0).collect();
    let mut number: Vec<(Page, u32)> =
        (0..).zip(&pieces).flat_map(|(number, pages)| pages.iter().map(move |page| (page.2, number))).collect();
    number.sort_unstable();
    let larger = |piece: u32| (pieces[piece as usize].len(), Reverse(piece));
    let membership = |page: Page| {
        let at = number.binary_search_by_key(&page, |row| row.0).ok()?;
        let piece = number[at].1;
        Some((similar(pieces[piece as usize][0].0), piece))
    };

    let mut pairs: Vec<(u32, u32)> = Vec::new();
    let mut candidates: Vec<(Page, SimilarClusterId, u32)> = Vec::new();
    for &(x, y) in links {
        match (membership(x), membership(y)) {
            (Some(x), Some(y)) if x.0 == y.0 => pairs.push((x.1, y.1)),
            (Some(x), None) => candidates.push((y, x.0, x.1)),
            (None, Some(y)) => candidates.push((x, y.0, y.1)),
            _ => {}
        }
    }
    candidates.sort_unstable();
    // All pieces around one break point must be joined. Pairing each with the largest of them
    // needs fewer pairs than pairing every two of them.
    for break_point_rows in candidates.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)) {
        let pieces = break_point_rows.iter().map(|row| row.2);
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

    let mut union = UnionFind::new(pieces.len());
    let mut clusters: Vec<HashSet<ClusterId>> =
        pieces.iter().map(|pages| pages.iter().map(|page| page.1).collect()).collect();
    for (x, y) in pairs {
        let (x, y) = (union.find(x), union.find(y));
        if x == y {
            continue;
        }
        let (larger, smaller) = if clusters[x as usize].len() < clusters[y as usize].len() { (y, x) } else { (x, y) };
        // The test is on the current clusters: pages of earlier joins count, too.
        let smaller_clusters = &clusters[smaller as usize];
        let doubled = smaller_clusters.iter().filter(|cluster| clusters[larger as usize].contains(cluster)).count();
        if DOUBLED_DIVISOR * doubled <= smaller_clusters.len() {
            union.union(x, y);
            let smaller_clusters = std::mem::take(&mut clusters[smaller as usize]);
            let mut larger_clusters = std::mem::take(&mut clusters[larger as usize]);
            larger_clusters.extend(smaller_clusters);
            clusters[x.min(y) as usize] = larger_clusters;
        }
    }
    // If joined pieces double a page, the page of the largest piece stays.
    let mut order: Vec<u32> = (0..pieces.len() as u32).collect();
    order.sort_unstable_by_key(|&piece| Reverse(larger(piece)));
    let mut assigned: HashSet<(u32, ClusterId)> = HashSet::new();
    let mut next = pieces.len() as u32;
    let mut renamed = Vec::new();
    for piece in order {
        let root = union.find(piece);
        for &(_, cluster, page) in pieces[piece as usize] {
            renamed.push(if assigned.insert((root, cluster)) { (page, root) } else { (page, next) });
            next += 1;
        }
    }
    renamed.sort_unstable();
    // Pages ascend, so the first page found of a new piece is its smallest.
    let mut names: HashMap<u32, PieceId> = HashMap::new();
    renamed
        .into_iter()
        .map(|(page, piece)| (page, *names.entry(piece).or_insert(PieceId::from_smallest(page))))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Applies the rule as documented, scanning all pages for each page that is placed.
    fn reference(links: &[(Page, Page)], cluster: &[ClusterId]) -> Vec<(Page, PieceId)> {
        let pages: BTreeSet<Page> = links.iter().flat_map(|&(src, dst)| [src, dst]).collect();
        let cluster_pages = |of: ClusterId| pages.iter().filter(move |&&page| cluster[page] == of);
        let degree = |page: &Page| links.iter().filter(|&&(src, dst)| src == *page || dst == *page).count();
        let mut starts: Vec<ClusterId> = pages.iter().map(|&page| cluster[page]).collect();
        starts
            .sort_by_key(|&of| (cluster_pages(of).count(), Reverse(cluster_pages(of).map(degree).sum::<usize>()), of));
        starts.dedup();
        let mut pieces: Vec<BTreeSet<Page>> = Vec::new();
        for start in starts {
            let first = pieces.len();
            let is_placed = |pieces: &[BTreeSet<Page>], page: &Page| pieces.iter().any(|piece| piece.contains(page));
            let founders: Vec<Page> = cluster_pages(start).copied().filter(|page| !is_placed(&pieces, page)).collect();
            pieces.extend(founders.into_iter().map(|page| BTreeSet::from([page])));
            loop {
                let links_with = |page: Page, piece: &BTreeSet<Page>| {
                    let is_between = |&&(src, dst): &&(Page, Page)| {
                        src == page && piece.contains(&dst) || dst == page && piece.contains(&src)
                    };
                    links.iter().filter(is_between).count()
                };
                let candidates = pages.iter().filter(|page| !is_placed(&pieces, page)).flat_map(|&page| {
                    let own_cluster = cluster[page];
                    let free = move |piece: &BTreeSet<Page>| piece.iter().all(|&other| cluster[other] != own_cluster);
                    let near = pieces.iter().enumerate().skip(first).filter(move |(_, piece)| free(piece));
                    near.map(move |(at, piece)| (links_with(page, piece), page, at)).filter(|(links, ..)| *links > 0)
                });
                let best = candidates.max_by_key(|&(links, page, at)| {
                    (Reverse(cluster_pages(cluster[page]).count()), links, Reverse(page), Reverse(at))
                });
                let Some((_, page, at)) = best else { break };
                pieces[at].insert(page);
            }
        }
        let name = |piece: &BTreeSet<Page>| PieceId::from_smallest(*piece.first().unwrap());
        let mut rows: Vec<(Page, PieceId)> =
            pieces.iter().flat_map(|piece| piece.iter().map(move |&page| (page, name(piece)))).collect();
        rows.sort_unstable();
        rows
    }

    fn page(bound: u32) -> impl Strategy<Value = Page> {
        (0..bound).prop_map(Page)
    }

    proptest! {
        #[test]
        fn fragments_grow_by_the_rule(
            cluster in prop::collection::vec((0u32..6).prop_map(ClusterId), 12),
            links in prop::collection::btree_set((page(12), page(12)), 1..40),
        ) {
            let links: Vec<_> = links.into_iter().filter(|(x, y)| cluster[*x] != cluster[*y]).collect();
            let (pages, mut ends) = by_place(&links);
            let expected = reference(&links, &cluster);
            prop_assert_eq!(grow_pieces(&HostLinks { pages: &pages, ends: &ends }, |page| cluster[page]), expected.clone());
            ends.reverse();
            prop_assert_eq!(grow_pieces(&HostLinks { pages: &pages, ends: &ends }, |page| cluster[page]), expected);
        }

        #[test]
        fn joined_fragments_have_one_page_per_trivial_cluster_and_no_new_pages(
            cluster in prop::collection::vec((0u32..12).prop_map(ClusterId), 16),
            piece in prop::collection::vec((0u32..5).prop_map(PieceId), 16),
            similar in prop::collection::vec((0u32..2).prop_map(SimilarClusterId), 5),
            links in prop::collection::vec((page(16), page(16)), 1..40),
        ) {
            // Pages whose piece already has a page of their trivial cluster are in no piece.
            let is_same = |x: Page, y: Page| (piece[x], cluster[x]) == (piece[y], cluster[y]);
            let doubled = |page: Page| Page::first(16).any(|other| other < page && is_same(other, page));
            let mut members: Vec<PieceMember> = Page::first(16)
                .filter(|&page| !doubled(page))
                .map(|page| (piece[page], cluster[page], page))
                .collect();
            members.sort_unstable();
            let joined_rows = join_pieces(&members, &links, |piece| similar[piece]);
            let mut joined_pages: BTreeMap<PieceId, Vec<Page>> = BTreeMap::new();
            joined_rows.iter().for_each(|&(page, piece)| joined_pages.entry(piece).or_default().push(page));
            for (name, pages) in &joined_pages {
                prop_assert_eq!(name.smallest(), *pages.iter().min().unwrap());
                let clusters: BTreeSet<ClusterId> = pages.iter().map(|&page| cluster[page]).collect();
                prop_assert_eq!(clusters.len(), pages.len());
                let similar: BTreeSet<SimilarClusterId> = pages.iter().map(|&page| similar[piece[page]]).collect();
                prop_assert_eq!(similar.len(), 1);
            }
            let mut pages: Vec<Page> = members.iter().map(|member| member.2).collect();
            pages.sort_unstable();
            prop_assert_eq!(joined_rows.iter().map(|row| row.0).collect::<Vec<_>>(), pages);
            // If no other piece of its similar cluster is here, a piece may be left out, provided
            // that its pages are not looked up.
            let has_others = |of: PieceId| members.iter().any(|row| row.0 != of && similar[row.0] == similar[of]);
            let relevant_members: Vec<PieceMember> = members.iter().filter(|row| has_others(row.0)).copied().collect();
            let is_left_out = |page: Page| !doubled(page) && !has_others(piece[page]);
            let relevant_links: Vec<(Page, Page)> =
                links.iter().filter(|link| !is_left_out(link.0) && !is_left_out(link.1)).copied().collect();
            let expected: Vec<(Page, PieceId)> = joined_rows.into_iter().filter(|row| !is_left_out(row.0)).collect();
            prop_assert_eq!(join_pieces(&relevant_members, &relevant_links, |piece| similar[piece]), expected);
        }
    }

    #[test]
    fn fragments_are_joined_by_a_link_or_a_page_between_unless_they_are_versions() {
        // Pieces {0, 1, 2} and {3, 4}; page 9 is in no piece.
        let piece_count = |extra_links: &[(u32, u32)], cluster: fn(u32) -> u32| {
            let links = [&[(0, 1), (1, 2), (3, 4)], extra_links].concat();
            let links: Vec<_> = links.into_iter().map(|(src, dst)| (Page(src), Page(dst))).collect();
            let member = |page: u32| (PieceId(page / 3 * 3), ClusterId(cluster(page)), Page(page));
            let mut members: Vec<PieceMember> = (0..5).map(member).collect();
            members.sort_unstable();
            join_pieces(&members, &links, |_| SimilarClusterId(7)).iter().filter(|row| row.1 == PieceId(0)).count()
        };
        assert_eq!(piece_count(&[], |page| page), 3);
        assert_eq!(piece_count(&[(2, 3)], |page| page), 5);
        assert_eq!(piece_count(&[(2, 9), (9, 3)], |page| page), 5);
        // 3 and 4 are doubles of 0 and 1.
        assert_eq!(piece_count(&[(2, 3)], |page| page % 3), 3);
    }
}
