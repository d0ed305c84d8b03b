//! Tolerant growth: similar clusters of collections that lack pages, double some, or fall into parts.
//!
//! Collections C1, ..., Cn of one host each form a *tolerant similar cluster* if
//!
//! 1. **one to one**: a page is in at most one collection, and no collection has two pages of one trivial cluster;
//! 2. **similar pages**: each Ci but the largest has at least three of its trivial clusters, and three in ten, in
//!    common with one larger Cj (if two have the same size, the one with the smaller first page counts as larger);
//! 3. **similar links**: each page p of a Ci is linked, in either direction, with a page q of Ci as a page p' of
//!    another Cj is with a page q' of Cj, where p and p' are of one trivial cluster, and so are q and q';
//! 4. they stand on `clusters.min_hosts` hosts or more: a host that has something twice has a double rather than a
//!    mirror. Doubles are found, and one of them is kept whole, but they are not told of.
//!
//! So any collection may lack a page (Definition 5 requires equal sizes), and links must agree with those of one other
//! collection, not of all: with growing cardinality some version always differs. Pages without a copy anywhere may
//! belong to a collection, too; they are told apart ([`super::nearby`]).
//!
//! Growth finds such clusters in six steps:
//!
//! 1. *pieces*: on each host pages are joined along links between trivial clusters with s >= |Ri| / 3 and d >= |Rj| /
//!    3, neither being 1 ([`super::pieces::grow_pieces`]). Links that few of the copies have, such as those from the
//!    home pages of two hosts to what both mirror, join nothing;
//! 2. *mirrors*: every trivial cluster points to the largest piece with a page of it. A piece is a copy of the larger
//!    piece that most of its pages point to, if they are as many as condition 2 requires ([`larger_copy`]). Copies of
//!    copies are one similar cluster;
//! 3. *segments*: pieces of one host and similar cluster with a link or a break point between them are joined
//!    ([`super::pieces::join_pieces`]), and mirrors are found again;
//! 4. *things*: what a host carries beside each other is taken apart (`src/clusters/separate.rs`);
//! 5. *check*: what fails the definition is taken out, page by page and collection by collection, until nothing does
//!    ([`verified`]);
//! 6. *nearby pages* are attached as `clusters.attach` says ([`super::nearby::nearby_pages`]).
//!
//! Steps 1, 3 and 6 look at one host at a time, steps 4 and 5 at one similar cluster; step 2 needs 12 bytes per page of all
//! pieces. So no memory grows with the components of the TCG, which may be a single giant under this condition.
//!
//! # Cost
//! Sorts of pages and links. Step 5 looks at the links of a similar cluster once more for each round in which something
//! is taken out: two or three rounds on the crawls tried, at worst as many as it has pieces.
//!
//! # Source
//! A second phase (break points, collections of different sizes, pages not mapped, nearby pages) is announced in
//! \[CSG00\] sections 2.2 and 6, which leave open how. The rule is ours; its numbers were chosen on 22 manuals of the
//! real crawl.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use bytemuck::{Pod, Zeroable};

use super::collection::{PageCollection, SimilarCluster};
use super::ground::Ground;
use super::link_summary::{ClusterLink, link_summary};
use super::merge::may_merge;
use super::nearby::nearby_pages;
use super::pieces::{HostLinks, PieceMember, by_place, grow_pieces, join_pieces};
use super::separate::separate;
use super::union_find::{UnionFind, sizes};
use crate::ids::{ClusterId, HostId, Number, Page, PieceId, SimilarClusterId};
use crate::job::{Clusters, MergeCondition};

/// Fewest trivial clusters that a collection shares with a larger one.
const LEAST_SHARED: usize = 3;

/// The same as a share of its pages, in tenths.
const SHARED_TENTHS: usize = 3;

/// A page of a piece. Rows order by similar cluster, piece, trivial cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct PiecePage {
    /// Similar cluster of its piece.
    pub similar_cluster: SimilarClusterId,
    /// Its piece: the smallest page of it.
    pub piece: PieceId,
    /// Trivial cluster of the page.
    pub cluster: ClusterId,
    /// The page itself.
    pub page: Page,
    /// Host of the page.
    pub host: HostId,
    /// Links to it from pages of other hosts.
    pub links_from_elsewhere: u32,
}

/// Orders pieces by size; ties: the one with the smaller name is larger.
fn by_size(size: usize, piece: PieceId) -> (usize, Reverse<PieceId>) {
    (size, Reverse(piece))
}

/// For every trivial cluster, the largest piece with a page of it; `pages` are (trivial cluster, piece).
pub fn largest_pieces(
    clusters: usize,
    pages: impl Iterator<Item = (ClusterId, PieceId)>,
    size: impl Fn(PieceId) -> usize,
) -> Vec<PieceId> {
    let mut largest = vec![PieceId::NONE; clusters];
    for (cluster, piece) in pages {
        let so_far = &mut largest[cluster];
        if *so_far == PieceId::NONE || by_size(size(piece), piece) > by_size(size(*so_far), *so_far) {
            *so_far = piece;
        }
    }
    largest
}

/// Returns the larger piece that most of this piece's pages point to (ties: the largest), or `None` if too few do.
/// `pointed_to` has the target of each page, which may be `piece` itself.
pub fn larger_copy(piece: PieceId, pointed_to: &mut [PieceId], size: impl Fn(PieceId) -> usize) -> Option<PieceId> {
    pointed_to.sort_unstable();
    let larger = pointed_to.chunk_by(|x, y| x == y).filter(|pages| pages[0] != piece);
    let most = larger.max_by_key(|pages| (pages.len(), by_size(size(pages[0]), pages[0])))?;
    let enough = most.len() >= LEAST_SHARED.min(size(piece)) && 10 * most.len() >= SHARED_TENTHS * size(piece);
    enough.then_some(most[0])
}

/// What remains of the pieces of one similar cluster as tolerant similar clusters, one for each thing that they carry; `pages`
/// ascend, `links` run within pieces, by the places of pages, ascending by source.
pub fn verified(pages: &[PiecePage], links: &[[u32; 2]], settings: &Clusters) -> Vec<SimilarCluster> {
    let ground = Ground::new(pages, links);
    let (thing, count) = separate(&ground);
    if count == 1 {
        return verified_thing(&ground, settings).into_iter().collect();
    }
    let thing = |place: u32| thing[ground.cluster[place as usize] as usize];
    let mut things = vec![(Vec::new(), Vec::new()); count];
    let mut places = Vec::with_capacity(pages.len());
    for (place, page) in (0..).zip(pages) {
        let of_thing = &mut things[thing(place) as usize].0;
        places.push(of_thing.len() as u32);
        of_thing.push(*page);
    }
    for &[src, dst] in links.iter().filter(|link| thing(link[0]) == thing(link[1])) {
        things[thing(src) as usize].1.push([places[src as usize], places[dst as usize]]);
    }
    things.into_iter().filter_map(|(pages, links)| verified_thing(&Ground::new(&pages, &links), settings)).collect()
}

/// The same for one thing.
fn verified_thing(ground: &Ground, settings: &Clusters) -> Option<SimilarCluster> {
    let pages = ground.pages;
    let mut stays = vec![true; pages.len()];
    // Taking out a page may cost another its only link, or its piece the pages to be a copy, so both conditions are
    // applied until nothing changes. Pages only ever leave, so it ends.
    loop {
        let mut next = linked_alike(ground, &stays);
        next.iter_mut().zip(&stays).for_each(|(next, stays)| *next &= stays);
        keep_copies(ground, &mut next, LEAST_SHARED.max(settings.min_size as usize));
        if next == stays {
            break;
        }
        stays = next;
    }
    let mut links_into = vec![0u32; pages.len()];
    for link in ground.links.iter().filter(|link| stays[link[0] as usize]) {
        links_into[link[1] as usize] += 1;
    }
    let (mut collections, mut taken_out) = (Vec::new(), 0);
    for piece in ground.starts.windows(2) {
        let left = || (piece[0]..piece[1]).filter(|&at| stays[at]);
        let root = left().max_by_key(|&at| (pages[at].links_from_elsewhere, links_into[at], Reverse(pages[at].page)));
        if let Some(root) = root {
            let mut members: Vec<(ClusterId, Page)> = left().map(|at| (pages[at].cluster, pages[at].page)).collect();
            members.shrink_to_fit();
            taken_out += (piece[1] - piece[0] - members.len()) as u32;
            collections.push(PageCollection {
                members,
                nearby: Vec::new(),
                root: pages[root].page,
                links_from_elsewhere: left().map(|at| u64::from(pages[at].links_from_elsewhere)).sum(),
                host: pages[root].host,
            });
        }
    }
    // A piece stands on one host.
    let mut hosts: Vec<HostId> = collections.iter().map(|collection| collection.host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let double = hosts.len() < settings.min_hosts as usize;
    collections.sort_by_cached_key(PageCollection::first_page);
    (collections.len() > 1).then_some(SimilarCluster { collections, taken_out, double })
}

/// Marks the pages that stay and have a link that another piece has, too.
fn linked_alike(ground: &Ground, stays: &[bool]) -> Vec<bool> {
    let mut alike = vec![false; stays.len()];
    let piece = |link: &[u32; 2]| ground.piece[link[0] as usize];
    let way = |link: &[u32; 2]| usize::from(ground.cluster[link[0] as usize] < ground.cluster[link[1] as usize]);
    for same in ground.links_by_clusters() {
        let staying = || same.iter().filter(|link| stays[link[0] as usize] && stays[link[1] as usize]);
        // The first piece that has such a link in either direction, and whether another one has it.
        let mut had: [Option<(u32, bool)>; 2] = [None; 2];
        for link in staying() {
            let (first, others) = had[way(link)].get_or_insert((piece(link), false));
            *others |= *first != piece(link);
        }
        for link in staying().filter(|link| had[way(link)].is_some_and(|(_, others)| others)) {
            alike[link[0] as usize] = true;
            alike[link[1] as usize] = true;
        }
    }
    alike
}

/// Takes out pieces with fewer than `least` pages, and those that are not copies of a larger one.
fn keep_copies(ground: &Ground, stays: &mut [bool], least: usize) {
    // Pieces are numbered in the order of their first pages that stay, as collections are named.
    let mut pieces: Vec<(Page, Vec<usize>)> = Vec::new();
    for piece in ground.starts.windows(2) {
        let left: Vec<usize> = (piece[0]..piece[1]).filter(|&at| stays[at]).collect();
        match left.iter().map(|&at| ground.pages[at].page).min() {
            Some(first) if left.len() >= least => pieces.push((first, left)),
            _ => left.iter().for_each(|&at| stays[at] = false),
        }
    }
    pieces.sort_unstable_by_key(|piece| piece.0);
    let size = |piece: PieceId| pieces[piece.index()].1.len();
    let numbered = || (0..).map(PieceId).zip(&pieces);
    let of_cluster = |at: usize| ClusterId(ground.cluster[at]);
    let pages = numbered().flat_map(|(piece, (_, left))| left.iter().map(move |&at| (of_cluster(at), piece)));
    let largest = largest_pieces(ground.clusters, pages, size);
    let of_all = numbered().map(|(piece, _)| piece).max_by_key(|&piece| by_size(size(piece), piece));
    let mut pointed_to: Vec<PieceId> = Vec::new();
    for (piece, (_, left)) in numbered() {
        pointed_to.clear();
        pointed_to.extend(left.iter().map(|&at| largest[of_cluster(at)]));
        if Some(piece) != of_all && larger_copy(piece, &mut pointed_to, size).is_none() {
            left.iter().for_each(|&at| stays[at] = false);
        }
    }
}

/// All steps in one place: the reference for the wiring. `labels[page]` is its trivial cluster, `hosts[page]` its host.
pub fn similar_clusters(
    labels: &[ClusterId],
    hosts: &[HostId],
    links: &[(Page, Page)],
    settings: &Clusters,
) -> Vec<SimilarCluster> {
    let sizes = sizes(labels);
    let cluster = |page: Page| labels[page];
    let has_copies = |page: Page| sizes[cluster(page)] > 1;
    let host = |page: Page| hosts[page];
    let on_one_host = |&&(src, dst): &&(Page, Page)| src != dst && host(src) == host(dst);
    let inside: Vec<(Page, Page)> = links.iter().filter(on_one_host).copied().collect();
    let counts = |&&(src, dst): &&(Page, Page)| has_copies(src) && has_copies(dst) && cluster(src) != cluster(dst);
    let mut between: Vec<ClusterLink> = inside
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

    let mut pieces: Vec<PieceId> = Page::first(labels.len()).map(PieceId::of).collect();
    for links in merging.values() {
        let (linked, ends) = by_place(links);
        let links = HostLinks { pages: &linked, ends: &ends };
        grow_pieces(&links, cluster).into_iter().for_each(|(page, piece)| pieces[page] = piece);
    }
    // Segments are joined only within one similar cluster, so mirrors must be known before, and again after, because
    // a joined piece may be a copy of another one than its parts were.
    let similar = mirrors(labels, &sizes, &pieces);
    let mut links_of: BTreeMap<HostId, Vec<(Page, Page)>> = BTreeMap::new();
    inside.iter().for_each(|&link| links_of.entry(host(link.0)).or_default().push(link));
    let mut members_of: BTreeMap<HostId, Vec<PieceMember>> = BTreeMap::new();
    for page in Page::first(labels.len()).filter(|&page| has_copies(page)) {
        members_of.entry(host(page)).or_default().push((pieces[page], cluster(page), page));
    }
    for (host, mut members) in members_of {
        members.sort_unstable();
        let links = links_of.get(&host).map_or(&[][..], |links| links);
        let joined = join_pieces(&members, links, |piece| similar[piece]);
        joined.into_iter().for_each(|(page, piece)| pieces[page] = piece);
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
    for &(src, dst) in inside.iter().filter(|link| counts(link) && pieces[link.0] == pieces[link.1]) {
        within.entry(similar[pieces[src]]).or_default().push((src, dst));
    }
    let mut found: Vec<SimilarCluster> = pages
        .chunk_by(|x, y| x.similar_cluster == y.similar_cluster)
        .flat_map(|pages| {
            let place: BTreeMap<Page, u32> = pages.iter().map(|page| page.page).zip(0..).collect();
            let links = within.get(&pages[0].similar_cluster).map_or(&[][..], |links| links);
            let mut links: Vec<[u32; 2]> = links.iter().map(|(src, dst)| [place[src], place[dst]]).collect();
            links.sort_unstable();
            verified(pages, &links, settings)
        })
        .collect();
    found.sort_unstable_by_key(SimilarCluster::id);

    let mut collection_of: HashMap<Page, Page> = HashMap::new();
    for collection in found.iter().filter(|cluster| !cluster.double).flat_map(|cluster| &cluster.collections) {
        collection_of.extend(collection.members.iter().map(|member| (member.1, collection.first_page())));
    }
    let near = nearby_pages(&inside, |page| collection_of.get(&page).copied(), settings.attach);
    let mut nearby: HashMap<Page, Vec<Page>> = HashMap::new();
    near.into_iter().for_each(|(page, collection)| nearby.entry(collection).or_default().push(page));
    for collection in found.iter_mut().flat_map(|cluster| &mut cluster.collections) {
        collection.nearby = nearby.remove(&collection.first_page()).unwrap_or_default();
    }
    found
}

/// Step 2: the similar cluster of every piece, by name.
fn mirrors(labels: &[ClusterId], sizes_of_clusters: &[u32], pieces: &[PieceId]) -> Vec<SimilarClusterId> {
    let sizes = sizes(pieces);
    let size = |piece: PieceId| sizes[piece] as usize;
    let with_copies = || (0..labels.len()).filter(|&page| sizes_of_clusters[labels[page]] > 1);
    let largest = largest_pieces(labels.len(), with_copies().map(|page| (labels[page], pieces[page])), size);
    let mut pointed_to: BTreeMap<PieceId, Vec<PieceId>> = BTreeMap::new();
    for page in with_copies() {
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
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::job::Attach;

    const SETTINGS: Clusters = Clusters {
        merge: MergeCondition::Tolerant,
        single_site: true,
        min_size: 2,
        min_hosts: 2,
        attach: Attach::None,
    };

    /// A crawl of hosts, each given as the trivial clusters of its pages and the links between them by their places.
    #[derive(Default)]
    struct Drawn {
        names: Vec<char>,
        hosts: Vec<HostId>,
        links: Vec<(Page, Page)>,
    }

    impl Drawn {
        /// Adds a host; upper-case pages have no copy. A link is written "ab", by the first pages of these names.
        fn host(mut self, pages: &str, links: &str) -> Drawn {
            let (first, host) = (self.names.len(), self.hosts.last().map_or(HostId(0), |host| HostId(host.0 + 1)));
            self.names.extend(pages.chars());
            self.hosts.resize(self.names.len(), host);
            let place = |name: char| Page::from_index(first + pages.chars().position(|page| page == name).unwrap());
            self.links.extend(links.split(' ').map(|link| {
                let mut ends = link.chars();
                (place(ends.next().unwrap()), place(ends.next().unwrap()))
            }));
            self
        }

        /// Collections by their pages' names, attached ones behind a plus.
        fn grown(&self, settings: &Clusters) -> Vec<Vec<String>> {
            let label = |at: usize| {
                let alike = |other: &char| other.is_lowercase() && *other == self.names[at];
                ClusterId(self.names.iter().position(alike).unwrap_or(at) as u32)
            };
            let labels: Vec<ClusterId> = (0..self.names.len()).map(label).collect();
            let name = |page: &Page| self.names[*page];
            let text = |collection: &PageCollection| {
                let mut members: Vec<char> = collection.members.iter().map(|member| name(&member.1)).collect();
                members.sort_unstable();
                let mut text: String = members.into_iter().collect();
                if !collection.nearby.is_empty() {
                    text.push('+');
                    text.extend(collection.nearby.iter().map(name));
                }
                text
            };
            let found = similar_clusters(&labels, &self.hosts, &self.links, settings);
            let told = found.iter().filter(|cluster| !cluster.double);
            told.map(|cluster| cluster.collections.iter().map(text).collect()).collect()
        }
    }

    fn attaching(attach: Attach) -> Clusters {
        Clusters { attach, ..SETTINGS }
    }

    const TREE: &str = "ab ac bd ce";

    #[test]
    fn a_page_missing_in_one_mirror_is_missing_there_only() {
        let crawl = Drawn::default().host("abcde", TREE).host("abcde", TREE).host("abce", "ab ac ce");
        assert_eq!(crawl.grown(&SETTINGS), [["abcde", "abcde", "abce"]]);
    }

    #[test]
    fn of_a_page_doubled_inside_one_mirror_the_closer_linked_is_in_the_collection() {
        // The second host has d twice: x stands for the double, which only b links to.
        let mut crawl = Drawn::default().host("abcde", TREE).host("axbcde", "ab ac bd ce cd bx");
        crawl.names[6] = 'd';
        assert_eq!(crawl.grown(&SETTINGS), [["abcde", "abcde"]]);
        assert_eq!(crawl.grown(&attaching(Attach::Nearby)), [["abcde", "abcde+d"]]);
    }

    #[test]
    fn two_versions_on_one_host_are_two_collections_each_in_one_piece() {
        let mut crawl = Drawn::default().host("abcde", TREE).host("abcdevwxyz", "ab ac bd ce vw vx wy xz av");
        for (at, name) in (10..).zip("abcde".chars()) {
            crawl.names[at] = name;
        }
        assert_eq!(crawl.grown(&SETTINGS), [["abcde", "abcde", "abcde"]]);
    }

    #[test]
    fn home_pages_of_two_hosts_do_not_join_what_is_mirrored_elsewhere_too() {
        // h links to two manuals, which stand on five hosts more each.
        let both = "ab ac cb vw vx xw ha hv";
        let mut crawl = Drawn::default().host("habcvwx", both).host("habcvwx", both);
        for _ in 0..5 {
            crawl = crawl.host("abc", "ab ac cb").host("vwx", "vw vx xw");
        }
        assert_eq!(crawl.grown(&SETTINGS), [vec!["abc"; 7], vec!["vwx"; 7]]);
    }

    #[test]
    fn two_manuals_that_two_hosts_carry_are_two_similar_clusters() {
        // As above, but so few copies that the home pages join them; and all of them have the licence l.
        let both = "ab ac cb vw vx xw ha hv bl wl al vl";
        let mut crawl = Drawn::default().host("habcvwxl", both).host("habcvwxl", both);
        for _ in 0..2 {
            crawl = crawl.host("abcl", "ab ac cb bl al").host("vwxl", "vw vx xw wl vl");
        }
        assert_eq!(crawl.grown(&SETTINGS), [["abchl", "abchl", "abcl", "abcl"], ["vwx", "vwx", "vwx", "vwx"]]);
    }

    #[test]
    fn versions_that_drift_are_one_similar_cluster_though_the_first_and_last_share_little() {
        // Each version has six of the pages in a row, all linked from the contents t.
        let mut crawl = Drawn::default();
        for first in 0..5 {
            let pages: String = "abcdefghijklmno".chars().skip(2 * first).take(6).collect();
            let links: Vec<String> = pages.chars().map(|page| format!("t{page}")).collect();
            crawl = crawl.host(&format!("t{pages}"), &links.join(" "));
        }
        assert_eq!(crawl.grown(&SETTINGS).len(), 1);
    }

    #[test]
    fn what_one_host_has_twice_is_a_mirror_only_if_asked_for() {
        let mut crawl = Drawn::default().host("abcdevwxyz", "ab ac bd ce vw vx wy xz");
        for (at, name) in (5..).zip("abcde".chars()) {
            crawl.names[at] = name;
        }
        assert!(crawl.grown(&SETTINGS).is_empty());
        assert_eq!(crawl.grown(&Clusters { min_hosts: 1, ..SETTINGS }), [["abcde", "abcde"]]);
    }

    /// The definition at the head of this file, point by point.
    fn meets_the_definition(
        cluster: &SimilarCluster,
        links: &BTreeSet<(Page, Page)>,
        hosts: &[HostId],
        min_hosts: usize,
    ) -> Result<(), String> {
        let all = &cluster.collections;
        let mut pages = BTreeSet::new();
        for collection in all {
            for member in &collection.members {
                let one_host = hosts[member.1] == collection.host;
                let alike = collection.members.iter().filter(|other| other.0 == member.0).count();
                if !pages.insert(member.1) || !one_host || alike > 1 {
                    return Err(format!("1: {member:?} of {collection:?}"));
                }
                let linked = collection.members.iter().any(|other| {
                    all.iter().filter(|copy| *copy != collection).any(|copy| {
                        let (Some(p), Some(q)) = (copy.page_of(member.0), copy.page_of(other.0)) else { return false };
                        let both = |x: (Page, Page), y: (Page, Page)| links.contains(&x) && links.contains(&y);
                        both((member.1, other.1), (p, q)) || both((other.1, member.1), (q, p))
                    })
                });
                if !linked {
                    return Err(format!("3: {member:?} of {collection:?}"));
                }
            }
            let larger = |copy: &&PageCollection| {
                by_size(copy.members.len(), PieceId::of(copy.first_page()))
                    > by_size(collection.members.len(), PieceId::of(collection.first_page()))
            };
            let shared = |copy: &PageCollection| {
                collection.members.iter().filter(|member| copy.page_of(member.0).is_some()).count()
            };
            let copy = |copy: &PageCollection| shared(copy) >= 3 && 10 * shared(copy) >= 3 * collection.members.len();
            if all.iter().filter(larger).count() > 0 && !all.iter().filter(larger).any(copy) {
                return Err(format!("2: {collection:?}"));
            }
        }
        let on: BTreeSet<HostId> = all.iter().map(|collection| collection.host).collect();
        if on.len() < min_hosts || all.len() < 2 { Err("4".into()) } else { Ok(()) }
    }

    /// Links of a tree whose root is page `first`, to each page after it from one before.
    fn links_of(tree: &[prop::sample::Index], first: usize) -> impl Iterator<Item = (Page, Page)> + '_ {
        let link = move |parent: usize, page: usize| (Page::from_index(first + parent), Page::from_index(first + page));
        tree.iter().zip(1..).map(move |(parent, page)| link(parent.index(page), page))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn every_cluster_grown_on_any_graph_meets_the_definition(
            labels in prop::collection::vec(0u32..7, 24),
            hosts in prop::collection::vec((0u32..3).prop_map(HostId), 24),
            links in prop::collection::btree_set(((0u32..24).prop_map(Page), (0u32..24).prop_map(Page)), 0..160),
            min_hosts in 1u32..3,
        ) {
            let label = |l: &u32| ClusterId(labels.iter().position(|m| m == l).unwrap() as u32);
            let labels: Vec<ClusterId> = labels.iter().map(label).collect();
            let given: Vec<_> = links.iter().copied().collect();
            let found = similar_clusters(&labels, &hosts, &given, &Clusters { min_hosts, ..SETTINGS });
            let mut seen = BTreeSet::new();
            for cluster in &found {
                let members = cluster.collections.iter().flat_map(|collection| &collection.members);
                prop_assert!(members.into_iter().all(|member| seen.insert(member.1)), "a page in two collections");
                let min_hosts = if cluster.double { 1 } else { min_hosts as usize };
                prop_assert_eq!(meets_the_definition(cluster, &links, &hosts, min_hosts), Ok(()));
            }
        }

        /// Two random trees on some hosts together, below a home page, and on others alone.
        #[test]
        fn what_stands_alone_elsewhere_is_told_apart(
            trees in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 5..9), 2),
            (both, alone) in (1u32..5).prop_flat_map(|alone| (1..2 * alone + 1, Just(alone))),
        ) {
            let (mut labels, mut hosts, mut links) = (vec![], vec![], vec![]);
            let carried = (0..both).map(|_| &[0, 1][..]).chain((0..2 * alone).map(|n| if n < alone { &[0][..] } else { &[1] }));
            for (host, carried) in (0..).zip(carried) {
                let home = Page::from_index(labels.len());
                labels.push(if carried.len() > 1 { 99 } else { 1000 + host });
                for &tree in carried {
                    let first = labels.len();
                    labels.extend((0..=trees[tree].len() as u32).map(|page| 100 * (tree as u32 + 1) + page));
                    links.push((home, Page::from_index(first)));
                    links.extend(links_of(&trees[tree], first));
                }
                hosts.resize(labels.len(), HostId(host));
            }
            let label = |l: &u32| ClusterId(labels.iter().position(|m| m == l).unwrap() as u32);
            let names: Vec<ClusterId> = labels.iter().map(label).collect();
            let found = similar_clusters(&names, &hosts, &links, &SETTINGS);
            prop_assert_eq!(found.len(), 2);
            for cluster in &found {
                prop_assert_eq!(cluster.collections.len() as u32, both + alone);
                let members = cluster.collections.iter().flat_map(|collection| &collection.members);
                let trees: BTreeSet<u32> = members.map(|member| labels[member.1] / 100).filter(|tree| *tree > 0).collect();
                prop_assert_eq!(trees.len(), 1);
            }
        }

        /// Copies of one random graph, each without some pages: growth gives back what hangs together in two of them.
        #[test]
        fn planted_versions_are_found(
            tree in prop::collection::vec(any::<prop::sample::Index>(), 12),
            lost in prop::collection::vec(prop::collection::btree_set(1u32..13, 0..2), 2..5),
        ) {
            let (mut labels, mut hosts, mut links) = (vec![], vec![], vec![]);
            for (host, lost) in (0..).zip(&lost) {
                let first = labels.len();
                let changed = 100 + first as u32;
                labels.extend((0..13u32).map(|page| if lost.contains(&page) { changed + page } else { page }));
                hosts.extend([HostId(host); 13]);
                links.extend(links_of(&tree, first));
            }
            let label = |l: &u32| ClusterId(labels.iter().position(|m| m == l).unwrap() as u32);
            let labels: Vec<ClusterId> = labels.iter().map(label).collect();
            let found = similar_clusters(&labels, &hosts, &links, &Clusters { attach: Attach::Nearby, ..SETTINGS });
            for collection in found.iter().flat_map(|cluster| &cluster.collections) {
                prop_assert!(collection.members.iter().all(|member| hosts[member.1] == collection.host));
            }
            let whole = lost.iter().filter(|lost| lost.is_empty()).count();
            if whole > 1 {
                let full = found.iter().flat_map(|cluster| &cluster.collections).filter(|c| c.members.len() == 13).count();
                prop_assert!(full >= whole, "{full} of {whole}");
            }
        }
    }
}
