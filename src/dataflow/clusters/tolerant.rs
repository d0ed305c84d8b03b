//! Tolerant growth ([`webtwin_core::clusters::tolerant`]) over all workers: host by host, then similar cluster by similar cluster.
//!
//! Most of it needs no rows of a host in one place. Links that merge are joined by union-find ([`components`]), and what it joins
//! is a piece unless it has two pages of a trivial cluster; links within pieces have nothing to join, and links between members
//! of collections nothing to attach. So three times only links of some hosts go to the owners of these, in shares
//! (`on_each_host`): those that merge on hosts with contested pieces ([`grow_pieces`]), those between the pieces of one
//! similar cluster on a host or beside them ([`join_pieces`]), and those of pages near collections ([`nearby_pages`]). Pages and
//! links of pieces go to the owner of their similar cluster, who checks it.
//!
//! # Memory
//! 16 bytes a page in each process; 8 for each of some million pages with copies; 8 bytes
//! a link that merges where there is no bound, and 8 a link within pieces, or what the step has memory for; some 40 bytes for each link of one share, which
//! has some megabytes of links or is one host, or one similar cluster.

use std::collections::HashMap;
use std::sync::Arc;

use itertools::Itertools;

use crate::clusters::host_links::{PagePlaces, by_source, links_of, on_each_host};
use crate::clusters::link_summary::MergingLinks;
use crate::clusters::links::{LinkedPage, Links};
use crate::clusters::trivial::Trivial;
use crate::shuffle::components::components;
use crate::shuffle::directory::Directory;
use crate::shuffle::groups::broadcast_groups;
use crate::shuffle::hash_partitions::two_alike;
use crate::shuffle::page_set::page_set;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, HostId, Number, Page, PieceId, SimilarClusterId};
use webtwin_core::clusters::collection::{PageCollection, SimilarCluster};
use webtwin_core::clusters::nearby::nearby_pages;
use webtwin_core::clusters::pieces::{PieceMember, grow_pieces, join_pieces};
use webtwin_core::clusters::tolerant::{PiecePage, larger_copy, largest_pieces, verified};
use webtwin_core::clusters::union_find::sizes;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;
use webtwin_job::{Attach, Clusters};
use webtwin_spill::{Column, partition_bits};

/// What every process knows of the pages.
struct Web<'a> {
    directory: &'a Directory,
    /// Trivial cluster of every page.
    labels: &'a [ClusterId],
    /// The pages that have copies.
    copied: Arc<PageSet>,
    /// Shares for as many links as this worker has, as a power of two.
    bits: u32,
}

/// Pages with copies that a worker looks at in one go when it compares pieces.
const PAGES_AT_ONCE: u64 = 4 << 20;

/// Pieces, by name.
struct Pieces {
    /// Piece of every page.
    of: Arc<Vec<PieceId>>,
    /// Similar cluster of every piece.
    similar_cluster: Arc<Vec<SimilarClusterId>>,
}

/// Grows all similar clusters; they lie with the owners of their names by key, ascending by smallest page.
///
/// `merging` is this worker's share of the links that merge; `links` are those from its pages, and `from_elsewhere` counts the links
/// from other hosts to its pages, in their order.
///
/// # Errors
/// [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] when the disk does not take what has no
/// room in memory; or when the run has ended.
pub fn similar_clusters(
    net: &mut Net<'_>,
    directory: &Directory,
    Trivial { labels, sizes }: Trivial<'_>,
    merging: Arc<MergingLinks>,
    links: &Links,
    from_elsewhere: &Column<u32>,
    settings: &Clusters,
) -> Result<Vec<SimilarCluster>> {
    let copied = net.once_per_process(|| PageSet::new(labels.len(), |page| sizes[labels[page]] > 1))?;
    let bits = partition_bits::<[Page; 2]>(links.len() as u64);
    let web = Web { directory, labels, copied, bits };
    let pieces = web.grown(net, merging)?;
    let pieces = web.joined(net, pieces, links)?;
    let mut found = web.verified(net, &pieces, links, from_elsewhere, settings)?;
    drop(pieces);
    if settings.attach != Attach::None {
        web.attach(net, &mut found, links, settings.attach)?;
    }
    Ok(found)
}

impl Web<'_> {
    fn cluster(&self, page: Page) -> ClusterId {
        self.labels[page]
    }

    fn has_copies(&self, page: Page) -> bool {
        self.copied.contains(page)
    }

    fn host(&self, page: Page) -> HostId {
        self.directory.hosts[page]
    }

    /// The pieces that links join, and their mirrors. On a host with a contested piece all pieces are grown page by page.
    fn grown(&self, net: &mut Net<'_>, merging: Arc<MergingLinks>) -> Result<Pieces> {
        let of =
            components(net, "pieces", self.labels.len(), merging.blocks().flatten_ok().map_ok(<(Page, Page)>::from))?;
        let mut hosts: Vec<HostId> = Vec::new();
        for rows in self.clusters_of_pieces(net, &of) {
            let doubled = rows.windows(2).filter(|pair| pair[0] == pair[1]);
            hosts.extend(doubled.map(|pair| self.host(pair[0].0.smallest())));
        }
        let hosts = net.broadcast("hosts with contested pieces", hosts)?;
        if hosts.is_empty() {
            return self.mirrored(net, of);
        }
        let mut contested = vec![false; self.hosts()];
        hosts.iter().for_each(|&host| contested[host] = true);
        let of_contested = |link: &(Page, Page)| contested[self.host(link.0)];
        let links = merging.blocks().flatten_ok().map_ok(<(Page, Page)>::from).filter_ok(of_contested);
        let none = (std::iter::empty::<Page>(), |page: &Page| *page);
        let hosts = &self.directory.hosts;
        let grown = on_each_host(net, "links that merge", self.bits, hosts, links, none, |links, _| {
            grow_pieces(links, |page| self.cluster(page))
        })?;
        self.renamed(net, of, grown)
    }

    /// Number of hosts.
    fn hosts(&self) -> usize {
        self.directory.hosts.iter().max().map_or(0, |host| host.index() + 1)
    }

    /// The pieces and their mirrors where these pages, this worker's share, are in other ones than before.
    fn renamed(&self, net: &mut Net<'_>, of: Arc<Vec<PieceId>>, mut pages: Vec<(Page, PieceId)>) -> Result<Pieces> {
        pages.sort_unstable_by_key(|&(page, piece)| (piece, page));
        // A piece is its smallest page.
        let pieces = pages.chunk_by(|x, y| x.1 == y.1);
        let groups = pieces.map(|pages| ([pages[0].1.smallest()], pages.iter().map(|row| row.0)));
        let (of, piece) = (net.take_back(of)?, |_: &mut Vec<PieceId>, [smallest]: [Page; 1]| smallest.0);
        let put = |of: &mut Vec<PieceId>, piece, page| of[page] = PieceId(piece);
        let of = broadcast_groups(net, "pieces", groups, || of.expect("it has taken it back"), piece, put)?;
        self.mirrored(net, of)
    }

    /// The pieces that this worker compares with others, some at a time, with their trivial clusters, ascending.
    fn clusters_of_pieces<'p>(
        &'p self,
        net: &Net<'_>,
        of: &'p [PieceId],
    ) -> impl Iterator<Item = Vec<(PieceId, ClusterId)>> + 'p {
        let (me, peers) = (net.index(), net.peers());
        let times = (self.copied.count() / peers as u64).div_ceil(PAGES_AT_ONCE).max(1) as usize;
        (0..times).map(move |time| {
            let pages = Page::first(self.labels.len()).filter(|&page| self.has_copies(page));
            let mine = pages.filter(|&page| of[page].index() % (times * peers) == time * peers + me);
            let mut rows: Vec<(PieceId, ClusterId)> = mine.map(|page| (of[page], self.cluster(page))).collect();
            rows.sort_unstable();
            rows
        })
    }

    /// The similar cluster of every piece: each worker looks for the larger copies of its pieces.
    fn mirrored(&self, net: &mut Net<'_>, of: Arc<Vec<PieceId>>) -> Result<Pieces> {
        let sizes = net.once_per_process(|| sizes(&of))?;
        let size = |piece: PieceId| sizes[piece] as usize;
        let pages = Page::first(self.labels.len()).filter(|&page| self.has_copies(page));
        let largest = net.once_per_process(|| {
            largest_pieces(self.labels.len(), pages.map(|page| (self.cluster(page), of[page])), size)
        })?;
        let mut pointed_to = Vec::new();
        let mut larger = |of_piece: &[(PieceId, ClusterId)]| {
            pointed_to.clear();
            pointed_to.extend(of_piece.iter().map(|row| largest[row.1]));
            let piece = of_piece[0].0;
            larger_copy(piece, &mut pointed_to, size).map(|larger| (piece, larger))
        };
        let mut copies = Vec::new();
        for rows in self.clusters_of_pieces(net, &of) {
            copies.extend(rows.chunk_by(|x, y| x.0 == y.0).filter_map(&mut larger));
        }
        drop((largest, sizes));
        let similar_cluster = components(net, "mirrors", self.labels.len(), copies.into_iter().map(Ok))?;
        Ok(Pieces { similar_cluster, of })
    }

    /// The same after pieces were joined that lie beside each other on a host and are of one similar cluster. One exchange.
    fn joined(&self, net: &mut Net<'_>, pieces: Pieces, links: &Links) -> Result<Pieces> {
        let beside = self.beside_each_other(net, &pieces)?;
        if beside.count() == 0 {
            return Ok(pieces);
        }
        let piece = |page: Page| pieces.of[page];
        let is_beside = |page: Page| beside.contains(piece(page).smallest());
        let pages = self.directory.owned(net.index()).filter(|&page| self.has_copies(page) && is_beside(page));
        let members = pages.map(|page| (piece(page), self.cluster(page), page));
        let members =
            (members.map(|(piece, cluster, page)| [piece.number(), cluster.number(), page.0]), |row: &[u32; 3]| {
                Page(row[2])
            });
        // What joins pieces: links from one to another, or between one and a page in none.
        let joins = |&(x, y): &(Page, Page)| match (self.has_copies(x), self.has_copies(y)) {
            (true, true) => {
                piece(x) != piece(y) && pieces.similar_cluster[piece(x)] == pieces.similar_cluster[piece(y)]
            }
            (true, false) => is_beside(x),
            (false, true) => is_beside(y),
            (false, false) => false,
        };
        let (links, hosts) = (links.blocks().flatten_ok().filter_ok(joins), &self.directory.hosts);
        let joined = on_each_host(net, "links between pieces", self.bits, hosts, links, members, |links, members| {
            let mut here: Vec<PieceMember> = members
                .iter()
                .map(|&[piece, cluster, page]| (PieceId(piece), ClusterId(cluster), Page(page)))
                .collect();
            here.sort_unstable();
            join_pieces(&here, &links.pairs(), |piece| pieces.similar_cluster[piece])
        })?;
        // Where pieces are compared anew is where growth holds most.
        let Pieces { of, similar_cluster } = pieces;
        drop(similar_cluster);
        self.renamed(net, of, joined)
    }

    /// The pieces, as their smallest pages, that have another piece of their similar cluster on their host. The workers of a process look
    /// at some similar clusters each.
    fn beside_each_other(&self, net: &mut Net<'_>, pieces: &Pieces) -> Result<Arc<PageSet>> {
        let workers = net.workers_per_process();
        let worker = net.index() % workers;
        let all = Page::first(self.labels.len()).filter(|&page| self.has_copies(page));
        let smallest = all.filter(|&page| pieces.of[page].smallest() == page);
        let rows = smallest.map(|page| (pieces.similar_cluster[pieces.of[page]], self.host(page), page));
        let mut rows: Vec<(SimilarClusterId, HostId, Page)> =
            rows.filter(|row| row.0.index() % workers == worker).collect();
        rows.sort_unstable();
        let several = rows.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)).filter(|here| here.len() > 1);
        let beside = several.flatten().map(|row| row.2).collect::<Vec<Page>>();
        drop(rows);
        let beside = net.gather_in_process(beside)?;
        net.once_per_process(|| {
            let mut pages = PageSet::new(self.labels.len(), |_| false);
            beside.iter().flat_map(|some| some.iter()).for_each(|&page| pages.insert(page));
            pages
        })
    }

    /// The similar clusters that meet the definition. One exchange.
    fn verified(
        &self,
        net: &mut Net<'_>,
        pieces: &Pieces,
        links: &Links,
        from_elsewhere: &Column<u32>,
        settings: &Clusters,
    ) -> Result<Vec<SimilarCluster>> {
        let mut places = PagePlaces::new();
        let piece = |page: Page| pieces.of[page];
        let similar_cluster = |page: Page| pieces.similar_cluster[piece(page)];
        let mirrored = net.once_per_process(|| {
            let mut several = PageSet::new(self.labels.len(), |_| false);
            let copies = (0..).map(PieceId).zip(pieces.similar_cluster.iter());
            copies
                .filter(|(piece, of)| piece.smallest() != of.smallest())
                .for_each(|(_, of)| several.insert(of.smallest()));
            PageSet::new(self.labels.len(), |page| {
                self.has_copies(page) && several.contains(similar_cluster(page).smallest())
            })
        })?;
        let owned = self.directory.owned(net.index()).zip(from_elsewhere.rows());
        let pages = owned
            .filter(|(page, _)| mirrored.contains(*page))
            .map(|(page, links)| links.map(|links_from_elsewhere| LinkedPage { page, links_from_elsewhere }));
        let is_within = |&(src, dst): &(Page, Page)| mirrored.contains(src) && piece(src) == piece(dst) && src != dst;
        let name = "pages and links of pieces";
        let pages = (pages, |row: &LinkedPage| similar_cluster(row.page));
        let links = links.blocks().flatten_ok().filter_ok(is_within).map_ok(<[Page; 2]>::from);
        let links = (links, |row: &[Page; 2]| similar_cluster(row[0]));
        let (mut pages, mut within) = two_alike(net, name, self.bits, pages, links)?;

        let mut found = Vec::new();
        let (mut some, mut some_links, mut here, mut links) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut ends, mut own) = (Vec::new(), Vec::new());
        for share in 0..pages.count() {
            net.check()?;
            pages.take(share, &mut some)?;
            here.clear();
            here.extend(some.iter().map(|&LinkedPage { page, links_from_elsewhere }| PiecePage {
                similar_cluster: similar_cluster(page),
                piece: piece(page),
                cluster: self.cluster(page),
                page,
                host: self.host(page),
                links_from_elsewhere,
            }));
            here.sort_unstable();
            places.put(here.iter().map(|row| row.page));
            within.take(share, &mut some_links)?;
            by_source(&some_links, &places, here.len(), &mut ends, &mut links);
            let mut first = 0;
            for pages in here.chunk_by(|x, y| x.similar_cluster == y.similar_cluster) {
                let last = first + pages.len();
                links_of(&links, &ends, first..last, &mut own);
                first = last;
                found.extend(verified(pages, &own, settings));
            }
        }
        found.sort_by_cached_key(SimilarCluster::id);
        Ok(found)
    }

    /// Attaches nearby pages to collections, wherever these lie: what is near is found with the owner of the host, who is told which of its
    /// pages are in collections. Every process knows which pages are.
    fn attach(&self, net: &mut Net<'_>, found: &mut [SimilarCluster], links: &Links, attach: Attach) -> Result<()> {
        let me = net.index() as u32;
        let collections = || found.iter().filter(|cluster| !cluster.double).flat_map(|cluster| &cluster.collections);
        let rows = collections().flat_map(|collection| {
            let first = collection.first_page();
            collection.members.iter().map(move |member| [member.1.0, first.0, me])
        });
        let pages = rows.clone().map(|row| Page(row[0]));
        let members = page_set(net, "pages of collections", pages, self.labels.len())?;
        let partly = net.once_per_process(|| self.hosts_partly_in(&members))?;
        if !partly.contains(&true) {
            return Ok(());
        }
        // Links between members attach nothing.
        let may_attach =
            |&(src, dst): &(Page, Page)| partly[self.host(src)] && !(members.contains(src) && members.contains(dst));
        let (links, hosts) = (links.blocks().flatten_ok().filter_ok(may_attach), &self.directory.hosts);
        let rows = (rows.filter(|row| partly[self.host(Page(row[0]))]), |row: &[u32; 3]| Page(row[0]));
        let near = on_each_host(net, "links near collections", self.bits, hosts, links, rows, |links, members| {
            let row_of = |page: Page| members.binary_search_by_key(&page.0, |row| row[0]).ok().map(|at| members[at]);
            let near = nearby_pages(&links.pairs(), |page| Some(Page(row_of(page)?[1])), attach);
            // A collection is on one host, and its first page is one of it.
            let worker = |of: Page| row_of(of).expect("it is a member")[2];
            near.into_iter().map(|(page, of)| [page.0, of.0, worker(of)]).collect()
        })?;
        let near = net.exchange("nearby pages", near, |row| row[2] as usize)?;
        let mut collections: HashMap<u32, &mut PageCollection> = found
            .iter_mut()
            .flat_map(|cluster| &mut cluster.collections)
            .map(|collection| (collection.first_page().0, collection))
            .collect();
        for [page, of, _] in near {
            collections.get_mut(&of).expect("it came from here").nearby.push(Page(page));
        }
        collections.into_values().for_each(|collection| collection.nearby.sort_unstable());
        Ok(())
    }

    /// For each host whether some of its pages are members and some are not.
    fn hosts_partly_in(&self, members: &PageSet) -> Vec<bool> {
        let (mut some, mut others) = (vec![false; self.hosts()], vec![false; self.hosts()]);
        for (page, &host) in Page::first(self.labels.len()).zip(&self.directory.hosts) {
            if members.contains(page) { some[host] = true } else { others[host] = true }
        }
        some.iter_mut().zip(others).for_each(|(some, others)| *some &= others);
        some
    }
}
