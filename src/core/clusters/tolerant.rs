//! Tolerant growth: similar clusters of collections that lack pages, double some, or fall into
//! parts.
//!
//! Collections C1, ..., Cn of one host each form a *tolerant similar cluster* if
//!
//! 1. **one to one**: a page is in at most one collection, and no collection has two pages of one
//!    trivial cluster;
//! 2. **similar pages**: each Ci but the largest has at least three of its trivial clusters, and
//!    three in ten, in common with one larger Cj (if two have the same size, the one with the
//!    smaller first page counts as larger);
//! 3. **similar links**: each page p of a Ci is linked, in either direction, with a page q of Ci in
//!    the same way as a page p' of another Cj is with a page q' of Cj, where p and p' are of one
//!    trivial cluster, and so are q and q';
//! 4. they are on `clusters.min_hosts` hosts or more: a host that has a collection twice has a
//!    double rather than a mirror. Doubles are found, and one of them is kept whole, but they are
//!    not reported.
//!
//! So any collection may lack a page (Definition 5 requires equal sizes), and links must agree with
//! those of one other collection, not of all: with growing cardinality some version always differs.
//! Pages without a copy anywhere may belong to a collection, too; they are recorded separately
//! ([`super::nearby`]).
//!
//! Growth finds such clusters in six steps:
//!
//! 1. *pieces*: on each host pages are joined along links between trivial clusters with s >= |Ri| /
//!    3 and d >= |Rj| / 3, both at least 2 ([`super::pieces::grow_pieces`]). Links that few of the
//!    copies have, such as those from the home pages of two hosts to collections that both mirror,
//!    join nothing;
//! 2. *mirrors*: every trivial cluster points to the largest piece that has one of its pages. A
//!    piece is a copy of the larger piece that most of its pages point to, if their number
//!    satisfies condition 2 ([`larger_copy`]). Copies of copies are one similar cluster;
//! 3. *segments*: pieces of one host and similar cluster with a link or a break point between them
//!    are joined ([`super::pieces::join_pieces`]), and mirrors are found again;
//! 4. *things*: collections that a host carries next to each other are separated
//!    (`src/core/clusters/separate.rs`);
//! 5. *check*: pages and collections that fail the definition are taken out until all that remain
//!    satisfy it ([`verified`]);
//! 6. *nearby pages* are attached according to `clusters.attach` ([`super::nearby::nearby_pages`]).
//!
//! Steps 1, 3 and 6 process one host at a time, steps 4 and 5 one similar cluster. Step 2 needs 12
//! bytes per page of all pieces. So no memory grows with the components of the TCG, which may be a
//! single giant under this condition.
//!
//! # Cost
//! Sorts of pages and links. Step 5 scans the links of a similar cluster once for each round in
//! which something is taken out: two or three rounds on the crawls tried, in the worst case as many
//! as it has pieces.
//!
//! # Source
//! A second phase (break points, collections of different sizes, pages not mapped, nearby pages) is
//! announced in \[CSG00\] sections 2.2 and 6, which do not define it. The rule is our own; its
//! numbers were chosen on 22 manuals of the real crawl.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use bytemuck::{Pod, Zeroable};

use super::collection::{PageCollection, SimilarCluster};
use super::ground::ClusterPlaces;
use super::link_summary::{ClusterLink, link_summary};
use super::merge::may_merge;
use super::nearby::nearby_pages;
use super::pieces::{HostLinks, PieceMember, by_place, grow_pieces, join_pieces};
use super::separate::separate;
use super::union_find::{UnionFind, sizes};
use webtwin_base::ids::{ClusterId, HostId, Number, Page, PieceId, SimilarClusterId};
use webtwin_job::{ClusterSettings, MergeCondition};

/// Minimum number of trivial clusters that a collection shares with a larger one.
const MIN_SHARED: usize = 3;

/// Minimum fraction of a collection's pages that it shares with a larger one, in tenths.
const SHARED_TENTHS: usize = 3;

/// A page of a piece. Rows order by similar cluster, piece, trivial cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct PiecePage {
    /// Similar cluster of the piece.
    pub similar_cluster: SimilarClusterId,
    /// Piece of the page, named by its smallest page.
    pub piece: PieceId,
    /// Trivial cluster of the page.
    pub cluster: ClusterId,
    /// The page.
    pub page: Page,
    /// Host of the page.
    pub host: HostId,
    /// Number of links to the page from pages of other hosts.
    pub links_from_elsewhere: u32,
}

/// Returns a key that orders pieces by size. Of two pieces with equal sizes, the one with the
/// smaller name is larger.
pub fn by_size(size: usize, piece: PieceId) -> (usize, Reverse<PieceId>) {
    (size, Reverse(piece))
}

/// Returns the largest piece with a page of each trivial cluster. `pages` are (trivial cluster,
/// piece).
pub fn largest_pieces(
    clusters: usize,
    pages: impl Iterator<Item = (ClusterId, PieceId)>,
    size: impl Fn(PieceId) -> usize,
) -> Vec<PieceId> {
    let mut largest = vec![PieceId::NONE; clusters];
    for (cluster, piece) in pages {
        let largest_piece = &mut largest[cluster];
        if *largest_piece == PieceId::NONE
            || by_size(size(piece), piece) > by_size(size(*largest_piece), *largest_piece)
        {
            *largest_piece = piece;
        }
    }
    largest
}

/// Returns the larger piece that most pages of `piece` point to (ties: the largest), or `None` if
/// too few do. `pointed_to` has the target of each page, which may be `piece` itself.
pub fn larger_copy(piece: PieceId, pointed_to: &mut [PieceId], size: impl Fn(PieceId) -> usize) -> Option<PieceId> {
    pointed_to.sort_unstable();
    let larger = pointed_to.chunk_by(|x, y| x == y).filter(|pages| pages[0] != piece);
    let best_copy = larger.max_by_key(|pages| (pages.len(), by_size(size(pages[0]), pages[0])))?;
    let enough = best_copy.len() >= MIN_SHARED.min(size(piece)) && 10 * best_copy.len() >= SHARED_TENTHS * size(piece);
    enough.then_some(best_copy[0])
}

/// Checks the pieces of one similar cluster. Returns the remaining tolerant similar clusters, one
/// for each separate collection that the pieces carry. `pages` must ascend. `links` are within
/// pieces, as indices of pages, ascending by source.
pub fn verified(pages: &[PiecePage], links: &[[u32; 2]], settings: &ClusterSettings) -> Vec<SimilarCluster> {
    let ground = ClusterPlaces::new(pages, links);
    let (labels, count) = separate(&ground);
    if count == 1 {
        return verified_thing(&ground, settings).into_iter().collect();
    }
    let component_of = |place: u32| labels[ground.cluster[place as usize] as usize];
    let mut components = vec![(Vec::new(), Vec::new()); count];
    let mut places = Vec::with_capacity(pages.len());
    for (place, page) in (0..).zip(pages) {
        let component_places = &mut components[component_of(place) as usize].0;
        places.push(component_places.len() as u32);
        component_places.push(*page);
    }
    for &[src, dst] in links.iter().filter(|link| component_of(link[0]) == component_of(link[1])) {
        components[component_of(src) as usize].1.push([places[src as usize], places[dst as usize]]);
    }
    components
        .into_iter()
        .filter_map(|(pages, links)| verified_thing(&ClusterPlaces::new(&pages, &links), settings))
        .collect()
}

/// Checks the pieces of one separated collection.
fn verified_thing(ground: &ClusterPlaces, settings: &ClusterSettings) -> Option<SimilarCluster> {
    let pages = ground.pages;
    let mut stays = vec![true; pages.len()];
    // Taking out a page may remove the only link of another page, or leave a piece with too few
    // pages to be a copy. So both conditions are applied until nothing changes. Pages are only ever
    // removed, so the loop ends.
    loop {
        let mut next = linked_alike(ground, &stays);
        next.iter_mut().zip(&stays).for_each(|(next, stays)| *next &= stays);
        keep_copies(ground, &mut next, MIN_SHARED.max(settings.min_size as usize));
        if next == stays {
            break;
        }
        stays = next;
    }
    let mut links_into = vec![0u32; pages.len()];
    for link in ground.links.iter().filter(|link| stays[link[0] as usize]) {
        links_into[link[1] as usize] += 1;
    }
    let (mut collections, mut removed_pages) = (Vec::new(), 0);
    for piece in ground.starts.windows(2) {
        let left = || (piece[0]..piece[1]).filter(|&at| stays[at]);
        let root = left().max_by_key(|&at| (pages[at].links_from_elsewhere, links_into[at], Reverse(pages[at].page)));
        if let Some(root) = root {
            let mut members: Vec<(ClusterId, Page)> = left().map(|at| (pages[at].cluster, pages[at].page)).collect();
            members.shrink_to_fit();
            removed_pages += (piece[1] - piece[0] - members.len()) as u32;
            collections.push(PageCollection {
                members,
                nearby: Vec::new(),
                root: pages[root].page,
                links_from_elsewhere: left().map(|at| u64::from(pages[at].links_from_elsewhere)).sum(),
                host: pages[root].host,
            });
        }
    }
    // All pages of a piece are on one host, so the host of the root is the host of the collection.
    let mut hosts: Vec<HostId> = collections.iter().map(|collection| collection.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let double = hosts.len() < settings.min_hosts as usize;
    collections.sort_by_cached_key(PageCollection::first_page);
    (collections.len() > 1).then_some(SimilarCluster { collections, taken_out: removed_pages, double })
}

/// Marks the pages that stay and have a link that another piece has, too.
fn linked_alike(ground: &ClusterPlaces, stays: &[bool]) -> Vec<bool> {
    let mut is_linked_alike = vec![false; stays.len()];
    let piece = |link: &[u32; 2]| ground.piece[link[0] as usize];
    let way = |link: &[u32; 2]| usize::from(ground.cluster[link[0] as usize] < ground.cluster[link[1] as usize]);
    for links_of_pair in ground.links_by_clusters() {
        let staying = || links_of_pair.iter().filter(|link| stays[link[0] as usize] && stays[link[1] as usize]);
        // For each direction: the first piece that has such a link, and true if another piece has
        // it, too.
        let mut first_pieces: [Option<(u32, bool)>; 2] = [None; 2];
        for link in staying() {
            let (first, has_other) = first_pieces[way(link)].get_or_insert((piece(link), false));
            *has_other |= *first != piece(link);
        }
        for link in staying().filter(|link| first_pieces[way(link)].is_some_and(|(_, others)| others)) {
            is_linked_alike[link[0] as usize] = true;
            is_linked_alike[link[1] as usize] = true;
        }
    }
    is_linked_alike
}

/// Removes pieces with fewer than `min_size` pages, and pieces that are not copies of a larger one.
fn keep_copies(ground: &ClusterPlaces, stays: &mut [bool], min_size: usize) {
    // Pieces are numbered in the order of their first remaining pages, because these name the
    // collections.
    let mut pieces: Vec<(Page, Vec<usize>)> = Vec::new();
    for piece in ground.starts.windows(2) {
        let left: Vec<usize> = (piece[0]..piece[1]).filter(|&at| stays[at]).collect();
        match left.iter().map(|&at| ground.pages[at].page).min() {
            Some(first) if left.len() >= min_size => pieces.push((first, left)),
            _ => left.iter().for_each(|&at| stays[at] = false),
        }
    }
    pieces.sort_unstable_by_key(|piece| piece.0);
    let size = |piece: PieceId| pieces[piece.index()].1.len();
    let numbered = || (0..).map(PieceId).zip(&pieces);
    let cluster_at = |at: usize| ClusterId(ground.cluster[at]);
    let pages = numbered().flat_map(|(piece, (_, left))| left.iter().map(move |&at| (cluster_at(at), piece)));
    let largest = largest_pieces(ground.clusters, pages, size);
    let overall_largest = numbered().map(|(piece, _)| piece).max_by_key(|&piece| by_size(size(piece), piece));
    let mut pointed_to: Vec<PieceId> = Vec::new();
    for (piece, (_, left)) in numbered() {
        pointed_to.clear();
        pointed_to.extend(left.iter().map(|&at| largest[cluster_at(at)]));
        if Some(piece) != overall_largest && larger_copy(piece, &mut pointed_to, size).is_none() {
            left.iter().for_each(|&at| stays[at] = false);
        }
    }
}

/// Runs all steps on whole tables: the reference for the dataflow. `labels[page]` is the trivial
/// cluster of a page, `hosts[page]` its host.
///
/// # Examples
/// Two sites with the pages p, q and r, of which the second site has a page more (\[CSG00\], Figure
/// 3(a)).
/// ```
/// use webtwin_base::ids::{ClusterId, HostId, Page};
/// use webtwin_core::clusters::tolerant::similar_clusters;
/// use webtwin_job::Job;
///
/// let labels = [0, 1, 2, 0, 1, 2, 6].map(ClusterId);
/// let hosts = [0, 0, 0, 1, 1, 1, 1].map(HostId);
/// let links = [(0, 1), (0, 2), (3, 4), (3, 5), (3, 6)].map(|(x, y)| (Page(x), Page(y)));
///
/// let found = similar_clusters(&labels, &hosts, &links, &Job::default().clusters);
/// assert_eq!(found.len(), 1);
/// let [small, large] = &found[0].collections[..] else { panic!("two collections") };
/// assert_eq!((small.members.len(), large.members.len()), (3, 3));
/// assert_eq!(large.nearby, [Page(6)]);
/// ```
pub fn similar_clusters(
    labels: &[ClusterId],
    hosts: &[HostId],
    links: &[(Page, Page)],
    settings: &ClusterSettings,
) -> Vec<SimilarCluster> {
    let sizes = sizes(labels);
    let cluster = |page: Page| labels[page];
    let has_copies = |page: Page| sizes[cluster(page)] > 1;
    let host = |page: Page| hosts[page];
    let is_within_host = |&&(src, dst): &&(Page, Page)| src != dst && host(src) == host(dst);
    let inner_links: Vec<(Page, Page)> = links.iter().filter(is_within_host).copied().collect();
    let counts = |&&(src, dst): &&(Page, Page)| has_copies(src) && has_copies(dst) && cluster(src) != cluster(dst);
    let mut between: Vec<ClusterLink> = inner_links
        .iter()
        .filter(counts)
        .map(|&(src, dst)| ClusterLink { src_cluster: cluster(src), dst_cluster: cluster(dst), src, dst })
        .collect();
    let rows = link_summary(&mut between, |cluster| sizes[cluster]);
    let between = between.chunk_by(|x, y| (x.src_cluster, x.dst_cluster) == (y.src_cluster, y.dst_cluster));
    let mut merging: BTreeMap<HostId, Vec<(Page, Page)>> = BTreeMap::new();
    for (_, links) in rows.iter().zip(between).filter(|(row, _)| may_merge(row, MergeCondition::Tolerant)) {
        links.iter().for_each(|link| merging.entry(host(link.src)).or_default().push((link.src, link.dst)));
    }

    // A page that no link joins is a piece of its own.
    let mut pieces: Vec<PieceId> = Page::first(labels.len()).map(PieceId::from_smallest).collect();
    for links in merging.values() {
        let (linked, ends) = by_place(links);
        let links = HostLinks { pages: &linked, ends: &ends };
        grow_pieces(&links, cluster).into_iter().for_each(|(page, piece)| pieces[page] = piece);
    }
    // Segments are joined only within one similar cluster, so mirrors must be known before. They
    // are computed again after, because a joined piece may be a copy of another piece than its
    // parts were.
    let similar = mirrors(labels, &sizes, &pieces);
    let mut links_of: BTreeMap<HostId, Vec<(Page, Page)>> = BTreeMap::new();
    inner_links.iter().for_each(|&link| links_of.entry(host(link.0)).or_default().push(link));
    let mut members_of: BTreeMap<HostId, Vec<PieceMember>> = BTreeMap::new();
    for page in Page::first(labels.len()).filter(|&page| has_copies(page)) {
        members_of.entry(host(page)).or_default().push((pieces[page], cluster(page), page));
    }
    for (host, mut members) in members_of {
        members.sort_unstable();
        let links = links_of.get(&host).map_or(&[][..], |links| links);
        let renamed = join_pieces(&members, links, |piece| similar[piece]);
        renamed.into_iter().for_each(|(page, piece)| pieces[page] = piece);
    }
    let similar = mirrors(labels, &sizes, &pieces);

    let mut links_from_elsewhere = vec![0; labels.len()];
    for link in links.iter().filter(|link| host(link.0) != host(link.1)) {
        links_from_elsewhere[link.1] += 1;
    }
    let mut pages: Vec<PiecePage> = Page::first(labels.len())
        .filter(|&page| has_copies(page))
        .map(|page| PiecePage {
            similar_cluster: similar[pieces[page]],
            piece: pieces[page],
            cluster: cluster(page),
            page,
            host: host(page),
            links_from_elsewhere: links_from_elsewhere[page],
        })
        .collect();
    pages.sort_unstable();
    let mut within: BTreeMap<SimilarClusterId, Vec<(Page, Page)>> = BTreeMap::new();
    for &(src, dst) in inner_links.iter().filter(|link| counts(link) && pieces[link.0] == pieces[link.1]) {
        within.entry(similar[pieces[src]]).or_default().push((src, dst));
    }
    let mut similar: Vec<SimilarCluster> = pages
        .chunk_by(|x, y| x.similar_cluster == y.similar_cluster)
        .flat_map(|pages| {
            let place: BTreeMap<Page, u32> = pages.iter().map(|page| page.page).zip(0..).collect();
            let links = within.get(&pages[0].similar_cluster).map_or(&[][..], |links| links);
            let mut links: Vec<[u32; 2]> = links.iter().map(|(src, dst)| [place[src], place[dst]]).collect();
            links.sort_unstable();
            verified(pages, &links, settings)
        })
        .collect();
    similar.sort_unstable_by_key(SimilarCluster::id);

    // Doubles are not reported, so nothing is attached to them.
    let mut collection_of: HashMap<Page, Page> = HashMap::new();
    for collection in similar.iter().filter(|cluster| !cluster.double).flat_map(|cluster| &cluster.collections) {
        collection_of.extend(collection.members.iter().map(|member| (member.1, collection.first_page())));
    }
    let near = nearby_pages(&inner_links, |page| collection_of.get(&page).copied(), settings.attach);
    let mut nearby: HashMap<Page, Vec<Page>> = HashMap::new();
    near.into_iter().for_each(|(page, collection)| nearby.entry(collection).or_default().push(page));
    for collection in similar.iter_mut().flat_map(|cluster| &mut cluster.collections) {
        collection.nearby = nearby.remove(&collection.first_page()).unwrap_or_default();
    }
    similar
}

/// Returns the name of the similar cluster of every piece (step 2).
fn mirrors(labels: &[ClusterId], sizes_of_clusters: &[u32], pieces: &[PieceId]) -> Vec<SimilarClusterId> {
    let sizes = sizes(pieces);
    let size = |piece: PieceId| sizes[piece] as usize;
    let copied_pages = || (0..labels.len()).filter(|&page| sizes_of_clusters[labels[page]] > 1);
    let largest = largest_pieces(labels.len(), copied_pages().map(|page| (labels[page], pieces[page])), size);
    let mut pointed_to: BTreeMap<PieceId, Vec<PieceId>> = BTreeMap::new();
    for page in copied_pages() {
        pointed_to.entry(pieces[page]).or_default().push(largest[labels[page]]);
    }
    let mut sets = UnionFind::new(labels.len());
    for (piece, mut pointed_to) in pointed_to {
        if let Some(larger) = larger_copy(piece, &mut pointed_to, size) {
            sets.union(piece.0, larger.0);
        }
    }
    bytemuck::cast_vec(sets.labels())
}

#[cfg(test)]
mod tests;
