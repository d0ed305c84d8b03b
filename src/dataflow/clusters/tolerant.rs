//! Tolerant growth ([`crate::clusters::tolerant`]) over all workers: host by host, then similar cluster by similar cluster.
//!
//! Links that merge, then all links within hosts, go to the owner of their host, who grows and joins pieces; pages and
//! links of pieces to the owner of their similar cluster, who checks it; links within hosts once more to the owner of the host,
//! who looks for nearby pages. Each step lays rows in shares ([`HashPartitions`]). What pieces and mirrors there are, every
//! process is told by union-find ([`components`]).
//!
//! # Memory
//! 16 bytes a page in each process, 4 more in each worker while components are found; 8 bytes a link, or what the room for
//! them allows; some 60 bytes for each link of one share, which has some megabytes of links or is one host, or one similar
//! cluster.

use std::collections::HashMap;
use std::sync::Arc;

use crate::clusters::collection::{PageCollection, SimilarCluster};
use crate::clusters::nearby::nearby_pages;
use crate::clusters::pieces::{grow_pieces, join_pieces};
use crate::clusters::tolerant::{PiecePage, larger_copy, largest_pieces, verified};
use crate::clusters::union_find::sizes;
use crate::dataflow::clusters::links::LinkedPage;
use crate::dataflow::shuffle::components::components;
use crate::dataflow::shuffle::directory::Directory;
use crate::dataflow::shuffle::gather::Gather;
use crate::dataflow::shuffle::hash_partitions::HashPartitions;
use crate::dataflow::shuffle::memory_budget::{MemoryBudget, bucket_bits};
use crate::engine::{Net, Owners};
use crate::error::Result;
use crate::ids::{ClusterId, Number, Page, PieceId, SimilarClusterId};
use crate::job::{Attach, Clusters};

/// What every process knows of the pages.
struct Web<'a> {
    directory: &'a Directory,
    /// Trivial cluster of every page.
    labels: &'a [ClusterId],
    /// Pages of every trivial cluster.
    cluster_sizes: &'a [u32],
}

/// Pieces, by name.
struct Pieces {
    /// Piece of every page.
    of: Arc<Vec<PieceId>>,
    /// Similar cluster of every piece.
    similar_cluster: Arc<Vec<SimilarClusterId>>,
}

/// Grows all similar clusters; they lie with the owners of their names by key, ascending by smallest page.
///
/// `merging` are links between pages of trivial clusters that may merge, this worker's share; `links` yields those from its
/// pages each time it is called, and `from_elsewhere` counts the links from other hosts to its pages, in their order.
///
/// # Errors
/// [`crate::error::Error::DiskLimit`] or [`crate::error::Error::DiskFull`] when the disk does not take what `room` has no
/// memory for; or when the run has ended.
pub fn similar_clusters<I: ExactSizeIterator<Item = (Page, Page)>>(
    net: &mut Net<'_>,
    directory: &Directory,
    (labels, cluster_sizes): (&[ClusterId], &[u32]),
    merging: Vec<(Page, Page)>,
    (links, from_elsewhere): (impl Fn() -> I, &[u32]),
    settings: &Clusters,
    room: &MemoryBudget,
) -> Result<Vec<SimilarCluster>> {
    // A piece is joined with its pages by way of the smallest.
    let smallest = |(page, piece): (Page, PieceId)| (page, piece.smallest());
    let web = Web { directory, labels, cluster_sizes };
    let merging = merging.into_iter();
    let grown =
        web.on_each_host(net, "links that merge", merging, room, |links| grow_pieces(links, |page| web.cluster(page)))?;
    let of = components(net, "pieces", directory.len(), grown.into_iter().map(smallest))?;
    let pieces = Pieces { similar_cluster: web.mirrors(net, &of)?, of };

    let joined = web.on_each_host(net, "links within hosts", links(), room, |links| {
        join_pieces(links, |page| {
            let piece = pieces.of[page];
            web.has_copies(page).then(|| (piece, pieces.similar_cluster[piece], web.cluster(page)))
        })
    })?;
    let of = components(net, "joined pieces", directory.len(), joined.into_iter().map(smallest))?;
    let pieces = Pieces { similar_cluster: web.mirrors(net, &of)?, of };

    let mut found = web.verified(net, &pieces, (links(), from_elsewhere), settings, room)?;
    drop(pieces);
    if settings.attach != Attach::None {
        web.attach(net, &mut found, links(), settings.attach, room)?;
    }
    Ok(found)
}

impl Web<'_> {
    fn cluster(&self, page: Page) -> ClusterId {
        self.labels[page]
    }

    fn has_copies(&self, page: Page) -> bool {
        self.cluster_sizes[self.cluster(page)] > 1
    }

    fn on_one_host(&self, (src, dst): (Page, Page)) -> bool {
        self.directory.hosts[src] == self.directory.hosts[dst]
    }

    /// Gives the links within each host to `each`, and returns what it makes of them. One exchange.
    fn on_each_host<Group>(
        &self,
        net: &mut Net<'_>,
        name: &str,
        links: impl ExactSizeIterator<Item = (Page, Page)>,
        room: &MemoryBudget,
        mut each: impl FnMut(&[(Page, Page)]) -> Vec<(Page, Group)>,
    ) -> Result<Vec<(Page, Group)>> {
        let hosts = &self.directory.hosts;
        let count = links.len() as u64;
        let rows = links.filter(|&link| self.on_one_host(link)).map(<[Page; 2]>::from);
        let key = |row: &[Page; 2]| hosts[row[0]];
        let mut shares = HashPartitions::laid_down(net, name, count, rows, key, room)?;
        let (mut some, mut by_source, mut gather) = (Vec::new(), Vec::new(), Gather::default());
        let (mut links, mut made) = (Vec::new(), Vec::new());
        for share in 0..shares.count() {
            net.check()?;
            shares.take(share, &mut some)?;
            gather.by_key(&some, |row| (hosts[row[0]], row[0]), &mut by_source);
            for of_host in by_source.chunk_by(|x, y| hosts[x[0]] == hosts[y[0]]) {
                links.clear();
                links.extend(of_host.iter().map(|&[src, dst]| (src, dst)));
                // Mostly they are in order by now.
                links.sort_unstable();
                links.dedup();
                made.extend(each(&links));
            }
        }
        Ok(made)
    }

    /// The similar cluster of every piece: each worker looks for the larger copies of the pieces whose first page it owns.
    fn mirrors(&self, net: &mut Net<'_>, piece_of: &[PieceId]) -> Result<Arc<Vec<SimilarClusterId>>> {
        let sizes = net.once(|| sizes(piece_of))?;
        let size = |piece: PieceId| sizes[piece] as usize;
        let with_copies = || Page::first(self.labels.len()).filter(|&page| self.has_copies(page));
        let piece = |page: Page| piece_of[page];
        let pages = with_copies().map(|page| (self.cluster(page), piece(page)));
        let largest = net.once(|| largest_pieces(self.labels.len(), pages, size))?;
        let me = net.index();
        let mine = with_copies().filter(|&page| self.directory.owner(piece(page).smallest()) == me);
        let mut rows: Vec<(PieceId, PieceId)> = mine.map(|page| (piece(page), largest[self.cluster(page)])).collect();
        rows.sort_unstable();
        let mut pointed_to = Vec::new();
        let copies = rows.chunk_by(|x, y| x.0 == y.0).filter_map(|of_piece| {
            pointed_to.clear();
            pointed_to.extend(of_piece.iter().map(|row| row.1));
            let piece = of_piece[0].0;
            larger_copy(piece, &mut pointed_to, size).map(|larger| (piece, larger))
        });
        components(net, "mirrors", self.labels.len(), copies)
    }

    /// The similar clusters that meet the definition. Two exchanges.
    fn verified(
        &self,
        net: &mut Net<'_>,
        pieces: &Pieces,
        (links, from_elsewhere): (impl ExactSizeIterator<Item = (Page, Page)>, &[u32]),
        settings: &Clusters,
        room: &MemoryBudget,
    ) -> Result<Vec<SimilarCluster>> {
        let piece = |page: Page| pieces.of[page];
        let similar_cluster = |page: Page| pieces.similar_cluster[piece(page)];
        let many = net.once(|| {
            let mut many = vec![false; pieces.of.len()];
            let copies = pieces.similar_cluster.iter().enumerate().filter(|&(piece, of)| piece != of.index());
            copies.for_each(|(_, &of)| many[of] = true);
            many
        })?;
        let mirrored = |page: Page| self.has_copies(page) && many[similar_cluster(page)];
        let room = room.parted(2);
        let [all] = net.sum("links", [links.len() as u64])?;
        let bits = bucket_bits(all / net.peers() as u64 * 8);
        let owned = self.directory.owned(net.index()).zip(from_elsewhere);
        let rows = owned
            .filter(|(page, _)| mirrored(*page))
            .map(|(page, &links_from_elsewhere)| LinkedPage { page, links_from_elsewhere });
        let key = |row: &LinkedPage| similar_cluster(row.page);
        let mut pages = HashPartitions::with_bits(net, "pages of pieces", bits, rows, key, &room)?;
        let rows = links.filter(|&(src, dst)| piece(src) == piece(dst) && src != dst && mirrored(src));
        let rows = rows.map(<[Page; 2]>::from);
        let key = |row: &[Page; 2]| similar_cluster(row[0]);
        let mut within = HashPartitions::with_bits(net, "links of pieces", bits, rows, key, &room)?;

        let mut found = Vec::new();
        let (mut some, mut some_links, mut here, mut links) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut gather, mut own) = (Gather::default(), Vec::new());
        for share in 0..pages.count() {
            net.check()?;
            pages.take(share, &mut some)?;
            here.clear();
            here.extend(some.iter().map(|&LinkedPage { page, links_from_elsewhere }| PiecePage {
                similar_cluster: similar_cluster(page),
                piece: piece(page),
                cluster: self.cluster(page),
                page,
                host: self.directory.hosts[page],
                links_from_elsewhere,
            }));
            here.sort_unstable();
            within.take(share, &mut some_links)?;
            gather.by_key(&some_links, |row| (similar_cluster(row[0]), row[0]), &mut links);
            let mut next = 0;
            for pages in here.chunk_by(|x, y| x.similar_cluster == y.similar_cluster) {
                let of = pages[0].similar_cluster;
                let of_this = links[next..].iter().take_while(|link| similar_cluster(link[0]) == of);
                own.clear();
                own.extend(of_this.map(|&[src, dst]| (src, dst)));
                next += own.len();
                own.sort_unstable();
                found.extend(verified(pages, &own, settings));
            }
        }
        found.sort_unstable_by_key(SimilarCluster::id);
        Ok(found)
    }

    /// Attaches nearby pages to collections, wherever these lie. One exchange; what is near what is shared with all.
    fn attach(
        &self,
        net: &mut Net<'_>,
        found: &mut [SimilarCluster],
        links: impl ExactSizeIterator<Item = (Page, Page)>,
        attach: Attach,
        room: &MemoryBudget,
    ) -> Result<()> {
        let rows: Vec<[Page; 2]> = found
            .iter()
            .filter(|cluster| !cluster.double)
            .flat_map(|cluster| &cluster.collections)
            .flat_map(|collection| {
                let first = collection.first_page();
                collection.members.iter().map(move |member| [member.1, first])
            })
            .collect();
        let rows = net.share("pages of collections", rows)?;
        let collection = net.once(|| {
            let mut collection = vec![Page::NONE; self.labels.len()];
            rows.iter().for_each(|&[page, of]| collection[page] = of);
            collection
        })?;
        drop(rows);
        let of = |page: Page| Some(collection[page]).filter(|&of| of != Page::NONE);
        let near =
            self.on_each_host(net, "links near collections", links, room, |links| nearby_pages(links, of, attach))?;
        let near = net.share("nearby pages", near.into_iter().map(|(page, of)| [page, of]).collect())?;
        let mut collections: HashMap<Page, &mut PageCollection> = found
            .iter_mut()
            .flat_map(|cluster| &mut cluster.collections)
            .map(|collection| (collection.first_page(), collection))
            .collect();
        for &[page, of] in near.iter() {
            if let Some(collection) = collections.get_mut(&of) {
                collection.nearby.push(page);
            }
        }
        collections.into_values().for_each(|collection| collection.nearby.sort_unstable());
        Ok(())
    }
}
