//! Tolerant growth ([`webtwin_core::clusters::tolerant`]) over all workers: host by host, then
//! similar cluster by similar cluster.
//!
//! Pages that have copies, and links between clusters that may merge, are sent to the owner of
//! their host, which grows the pieces of the host (`pieces.rs`). Pieces are compared at the owners
//! of trivial clusters (`mirrors.rs`), which report to the owner of a host the similar clusters of
//! its pieces. That owner joins pieces of one similar cluster on the same host; for this, links
//! between such pieces or near them are sent, too. Then the owner of each page receives the page's
//! piece and similar cluster, and sends the page and its links within the piece to the owner of the
//! similar cluster, which verifies it. Finally links of pages near collections are sent to the
//! owners of their hosts ([`nearby_pages`]).
//!
//! # Memory
//! Takes 3 bits for each page in each process. Takes 8 bytes for each of a process's own pages that
//! have copies, and 8 for each piece that has copies. Takes 12 for each such page and 8 for each
//! link between clusters that may merge if memory is not limited. Takes 12 for each link within
//! pieces, or the budget of the step if it is smaller. Takes about 40 bytes for each link of one
//! partition, which has some megabytes of links, or is one host or one similar cluster.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;

use super::mirrors::SimilarPieces;
use super::pieces::{PieceRow, Pieces};
use crate::clusters::host_links::{NO_INDEX, PagePlaces, links_of, on_each_host};
use crate::clusters::link_summary::MergingLinks;
use crate::clusters::links::WorkerLinks;
use crate::shuffle::directory::Directory;
use crate::shuffle::gather::by_number;
use crate::shuffle::hash_partitions::{CommonPartitions, two_alike};
use crate::shuffle::page_counts::is_short;
use crate::shuffle::page_set::page_set;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, HostId, Number, Page, PieceId, SimilarClusterId};
use webtwin_core::clusters::collection::{PageCollection, SimilarCluster};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::nearby::nearby_pages;
use webtwin_core::clusters::tolerant::{PiecePage, verified};
use webtwin_core::overlap::prune::{PageSet, Ranks};
use webtwin_engine::{Net, Owners};
use webtwin_job::{AttachmentRule, ClusterSettings};
use webtwin_spill::{SpillColumn, partition_bits};

/// Properties of pages that every process has.
pub(super) struct KnownWeb<'a> {
    pub(super) directory: &'a Directory,
    /// Trivial cluster of every page.
    labels: &'a SetLabels<ClusterId>,
    /// Number of partitions for the links of this worker, as a power of two.
    bits: u32,
    /// True if there are so few pages that the pieces of all workers are broadcast: one round
    /// instead of five.
    is_broadcast: bool,
}

/// Pieces and similar clusters of those pages of a process that have copies.
struct OwnPieces {
    pages: Ranks,
    /// Piece and similar cluster of each page; [`Page::NONE`] if the piece has no copy.
    piece_pairs: Vec<[Page; 2]>,
}

impl OwnPieces {
    /// Creates an empty map for the pages of the given workers of a process.
    fn new(web: &KnownWeb<'_>, workers: Range<usize>) -> OwnPieces {
        let mut page_set = PageSet::new(web.directory.len(), |_| false);
        let pages = workers.flat_map(|worker| web.directory.owned(worker));
        pages.filter(|&page| web.has_copies(page)).for_each(|page| page_set.insert(page));
        let pages = Ranks::new(page_set);
        let piece_pairs = vec![[Page::NONE; 2]; pages.count()];
        OwnPieces { pages, piece_pairs }
    }

    /// Sets piece and similar cluster of a page, if the page belongs to the process.
    fn put(&mut self, &[page, piece, similar_cluster]: &[Page; 3]) {
        if let Some(rank) = self.pages.rank(page) {
            self.piece_pairs[rank] = [piece, similar_cluster];
        }
    }

    /// Returns piece and similar cluster of a page of the process, if its piece has copies.
    fn pieces_of(&self, page: Page) -> Option<(PieceId, SimilarClusterId)> {
        let [piece, similar_cluster] = self.piece_pairs[self.pages.rank(page)?];
        (piece != Page::NONE).then_some((PieceId::from_smallest(piece), SimilarClusterId(similar_cluster.number())))
    }

    /// True if a page belongs to the process and has copies.
    fn has(&self, page: Page) -> bool {
        self.pages.rank(page).is_some()
    }
}

/// Result of the comparison of pieces.
struct MirroredPieces {
    similar: Arc<SimilarPieces>,
    /// Pieces on hosts of this worker with another piece of their similar cluster on the same host,
    /// ascending.
    paired_pieces: Vec<PieceId>,
    /// Number of such pieces, of all workers.
    count: u64,
    own_pieces: Arc<OwnPieces>,
}

/// Number of links in a row of [`LinksWithin`].
const LINKS_OF_A_ROW: usize = 6;

/// Links from a page to pages that may be in the same piece, padded with [`Page::NONE`].
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct LinksWithin {
    similar_cluster: SimilarClusterId,
    src: Page,
    dst: [Page; LINKS_OF_A_ROW],
}

impl LinksWithin {
    fn new(similar_cluster: SimilarClusterId, src: Page, targets: &[Page]) -> LinksWithin {
        let mut dst = [Page::NONE; LINKS_OF_A_ROW];
        dst[..targets.len()].copy_from_slice(targets);
        LinksWithin { similar_cluster, src, dst }
    }

    fn links(&self) -> impl Iterator<Item = [Page; 2]> + '_ {
        self.dst.iter().filter(|&&dst| dst != Page::NONE).map(|&dst| [self.src, dst])
    }
}

/// Grows all similar clusters. They are at the owners of the names of their largest pieces by key,
/// ascending by smallest page.
///
/// `merging` are this worker's links between clusters that may merge, and `links` are the links
/// from its pages. `incoming_links` counts the links from other hosts to its pages, in the order of
/// the pages.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] if
/// data beyond the memory budget does not fit on the disk, and an error if the run has ended.
pub fn similar_clusters(
    net: &mut Net<'_>,
    directory: &Directory,
    labels: &SetLabels<ClusterId>,
    merging: Arc<MergingLinks>,
    links: &WorkerLinks,
    incoming_links: &SpillColumn<u32>,
    settings: &ClusterSettings,
) -> Result<Vec<SimilarCluster>> {
    let bits = partition_bits::<[Page; 2]>(links.len() as u64);
    let is_broadcast = are_few(labels.members(), net.processes());
    KnownWeb { directory, labels, bits, is_broadcast }.similar_clusters(net, merging, links, incoming_links, settings)
}

/// Returns true if the pieces of the given number of pages are broadcast.
pub fn are_few(pages: usize, processes: usize) -> bool {
    is_short(pages * size_of::<PieceRow>(), processes)
}

impl KnownWeb<'_> {
    fn similar_clusters(
        &self,
        net: &mut Net<'_>,
        merging: Arc<MergingLinks>,
        links: &WorkerLinks,
        incoming_links: &SpillColumn<u32>,
        settings: &ClusterSettings,
    ) -> Result<Vec<SimilarCluster>> {
        let pieces = Pieces::grow(net, self, &merging)?;
        drop(merging);
        let pieces = self.join_pieces_of(net, pieces, links)?;
        let mut similar_clusters = self.verified(net, &pieces, links, incoming_links, settings)?;
        drop(pieces);
        if settings.attach != AttachmentRule::None {
            self.attach(net, &mut similar_clusters, links, settings.attach)?;
        }
        Ok(similar_clusters)
    }

    pub(super) fn cluster(&self, page: Page) -> ClusterId {
        self.labels.label(page)
    }

    pub(super) fn has_copies(&self, page: Page) -> bool {
        self.labels.is_joined(page)
    }

    pub(super) fn host(&self, page: Page) -> HostId {
        self.directory.hosts[page]
    }

    /// Returns the partitioning of rows by host and by trivial cluster.
    pub(super) fn alike(&self) -> CommonPartitions {
        CommonPartitions { bits: self.bits, kinds: 3 }
    }

    /// Returns the number of hosts.
    fn hosts(&self) -> usize {
        self.directory.hosts.iter().max().map_or(0, |host| host.index() + 1)
    }

    /// Joins pieces of one similar cluster that are on the same host. Returns piece and similar
    /// cluster of the pages of this process afterwards.
    fn join_pieces_of(&self, net: &mut Net<'_>, mut pieces: Pieces, links: &WorkerLinks) -> Result<Arc<OwnPieces>> {
        let MirroredPieces { similar, paired_pieces, count, own_pieces } = self.mirrored(net, &pieces)?;
        if count == 0 {
            return Ok(own_pieces);
        }
        let mut pages = Vec::new();
        for row in pieces.rows.iter() {
            let row = row?;
            pages.extend(paired_pieces.binary_search(&row.piece).is_ok().then_some(row.page));
        }
        let paired_pages = page_set(net, "neighbouring pieces", pages, self.directory.len())?;
        // Two kinds of links may join pieces: from one piece to another, or between a piece and a
        // page that is in no piece.
        let may_join = |&(x, y): &(Page, Page)| match (paired_pages.contains(x), paired_pages.contains(y)) {
            (true, true) => {
                let is_apart =
                    own_pieces.pieces_of(x).zip(own_pieces.pieces_of(y)).map(|(x, y)| x.0 != y.0 && x.1 == y.1);
                is_apart.unwrap_or(true) && self.host(x) == self.host(y)
            }
            (true, false) => !self.has_copies(y) && self.host(x) == self.host(y),
            (false, true) => !self.has_copies(x) && self.host(x) == self.host(y),
            (false, false) => false,
        };
        let between = links.blocks().flatten_ok().filter_ok(may_join).map_ok(<[Page; 2]>::from);
        pieces.join(net, self, &similar, &paired_pieces, between)?;
        drop((similar, paired_pieces, paired_pages, own_pieces));
        // A joined piece may be a copy of another piece than its parts were.
        Ok(self.mirrored(net, &pieces)?.own_pieces)
    }

    /// Finds the similar clusters of the pieces, and sends piece and similar cluster of every page
    /// to the process of its owner.
    fn mirrored(&self, net: &mut Net<'_>, pieces: &Pieces) -> Result<MirroredPieces> {
        let workers = net.workers_per_process();
        let first = net.process() * workers;
        let empty_pieces = || OwnPieces::new(self, first..first + workers);
        if self.is_broadcast {
            let all_rows = net.broadcast("pieces", pieces.rows.iter().collect::<Result<_>>()?)?;
            let similar = net.once_per_process(|| SimilarPieces::of_all(self, &all_rows))?;
            let own_pieces = net.once_per_process(|| {
                let mut worker_pieces = empty_pieces();
                all_rows.iter().copied().filter_map(similar.of_pages()).for_each(|row| worker_pieces.put(&row));
                worker_pieces
            })?;
            let paired_pieces = similar.pair_each_other(self);
            return Ok(MirroredPieces { count: paired_pieces.len() as u64, paired_pieces, similar, own_pieces });
        }
        let similar = Arc::new(SimilarPieces::find(net, self, pieces)?);
        let paired_pieces = similar.pair_each_other(self);
        let mut kept_pieces = net.is_keeper().then(empty_pieces);
        let rows = pieces.rows.iter().filter_map_ok(similar.of_pages());
        let keeper = |page: Page| self.directory.owner(page) / workers * workers;
        let put_rows = |rows: &[[Page; 3]]| {
            let keeper_pieces = kept_pieces.as_mut().expect("rows go to keepers");
            rows.iter().for_each(|row| keeper_pieces.put(row));
            Ok(())
        };
        let count = paired_pieces.len() as u64;
        let counts = net.exchange_with_reports("pieces of pages", count, rows, |row| keeper(row[0]), put_rows)?;
        let own_pieces = net.once_per_process(|| kept_pieces.expect("the keeper has begun it"))?;
        Ok(MirroredPieces { similar, paired_pieces, count: counts.iter().sum(), own_pieces })
    }

    /// Returns the similar clusters that meet the definition. Takes one exchange.
    fn verified(
        &self,
        net: &mut Net<'_>,
        pieces: &OwnPieces,
        links: &WorkerLinks,
        incoming_links: &SpillColumn<u32>,
        settings: &ClusterSettings,
    ) -> Result<Vec<SimilarCluster>> {
        let owned = self.directory.owned(net.index()).zip(incoming_links.rows());
        let pages = owned.filter_map(|(page, links)| {
            let (piece, similar_cluster) = pieces.pieces_of(page)?;
            let (cluster, host) = (self.cluster(page), self.host(page));
            let row =
                |links_from_elsewhere| PiecePage { similar_cluster, piece, cluster, page, host, links_from_elsewhere };
            Some(links.map(row))
        });
        let pages = (pages, |row: &PiecePage| row.similar_cluster);
        let (mut reader, mut targets) = (links.reader(), Vec::new());
        let rows_of = |src: Page| -> Result<Vec<LinksWithin>> {
            let Some((piece, similar_cluster)) = pieces.pieces_of(src) else { return Ok(Vec::new()) };
            let may_be_within = |dst: Page| match pieces.pieces_of(dst) {
                Some((other, _)) => src != dst && other == piece,
                // The piece of a page of another process is not known here, but at the receiver.
                None => !pieces.has(dst) && self.has_copies(dst) && self.host(src) == self.host(dst),
            };
            targets.clear();
            targets.extend(reader.targets(src)?.iter().copied().filter(|&dst| may_be_within(dst)));
            Ok(targets.chunks(LINKS_OF_A_ROW).map(|some| LinksWithin::new(similar_cluster, src, some)).collect())
        };
        let rows = self.directory.owned(net.index()).map(rows_of).flatten_ok();
        let links = (rows, |row: &LinksWithin| row.similar_cluster);
        let partitioning = CommonPartitions { bits: self.bits, kinds: 2 };
        let (mut pages, mut within) = two_alike(net, "pages and links of pieces", partitioning, pages, links)?;

        let (mut places, mut similar_clusters) = (PagePlaces::new(), Vec::new());
        let (mut page_rows, mut link_rows, mut inner_links, mut links) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut ends, mut group_links) = (Vec::new(), Vec::new());
        for share in 0..pages.count() {
            net.check()?;
            pages.take(share, &mut page_rows)?;
            page_rows.sort_unstable();
            // Links are stored by index among the pages of the partition, so that the links of a
            // similar cluster are a range of them.
            places.put(page_rows.iter().map(|row| row.page));
            within.take(share, &mut link_rows)?;
            let piece_at = |place: u32| (place != NO_INDEX).then(|| page_rows[place.index()].piece);
            let place_links =
                link_rows.iter().flat_map(LinksWithin::links).map(|link| link.map(|page| places.place(page)));
            inner_links.clear();
            inner_links.extend(place_links.filter(|&[src, dst]| piece_at(src) == piece_at(dst)));
            by_number(&inner_links, |link: &[u32; 2]| link[0], |link| *link, page_rows.len(), &mut ends, &mut links);
            let mut first = 0;
            for pages in page_rows.chunk_by(|x, y| x.similar_cluster == y.similar_cluster) {
                let last = first + pages.len();
                links_of(&links, &ends, first..last, &mut group_links);
                first = last;
                similar_clusters.extend(verified(pages, &group_links, settings));
            }
        }
        similar_clusters.sort_by_cached_key(SimilarCluster::id);
        Ok(similar_clusters)
    }

    /// Attaches nearby pages to collections. The owner of a host finds the nearby pages, and is
    /// sent those of the host's pages that are in collections. The set of pages in collections is
    /// broadcast.
    fn attach(
        &self,
        net: &mut Net<'_>,
        similar_clusters: &mut [SimilarCluster],
        links: &WorkerLinks,
        attach: AttachmentRule,
    ) -> Result<()> {
        let own_index = net.index() as u32;
        let collections =
            || similar_clusters.iter().filter(|cluster| !cluster.double).flat_map(|cluster| &cluster.collections);
        let rows = collections().flat_map(|collection| {
            let first = collection.first_page();
            collection.members.iter().map(move |member| [member.1.0, first.0, own_index])
        });
        let pages = rows.clone().map(|row| Page(row[0]));
        let members = page_set(net, "pages of collections", pages, self.labels.members())?;
        let partly = net.once_per_process(|| self.hosts_partly_in(&members))?;
        if !partly.contains(&true) {
            return Ok(());
        }
        // Links between members attach no pages.
        let may_attach =
            |&(src, dst): &(Page, Page)| partly[self.host(src)] && !(members.contains(src) && members.contains(dst));
        let (links, hosts) = (links.blocks().flatten_ok().filter_ok(may_attach), &self.directory.hosts);
        let rows = (rows.filter(|row| partly[self.host(Page(row[0]))]), |row: &[u32; 3]| Page(row[0]));
        let near = on_each_host(net, "links near collections", self.bits, hosts, links, rows, |links, members| {
            let row_of = |page: Page| members.binary_search_by_key(&page.0, |row| row[0]).ok().map(|at| members[at]);
            let near = nearby_pages(&links.pairs(), |page| Some(Page(row_of(page)?[1])), attach);
            // All pages of a collection are on one host, so its first page is among these members.
            let worker = |of: Page| row_of(of).expect("it is a member")[2];
            near.into_iter().map(|(page, of)| [page.0, of.0, worker(of)]).collect()
        })?;
        let near = net.exchange("nearby pages", near, |row| row[2] as usize)?;
        let mut collections: HashMap<u32, &mut PageCollection> = similar_clusters
            .iter_mut()
            .flat_map(|cluster| &mut cluster.collections)
            .map(|collection| (collection.first_page().0, collection))
            .collect();
        for [page, collection_id, _] in near {
            collections.get_mut(&collection_id).expect("it came from here").nearby.push(Page(page));
        }
        collections.into_values().for_each(|collection| collection.nearby.sort_unstable());
        Ok(())
    }

    /// Returns, for each host, true if some of its pages are members and some are not.
    fn hosts_partly_in(&self, members: &PageSet) -> Vec<bool> {
        let (mut has_member, mut has_other) = (vec![false; self.hosts()], vec![false; self.hosts()]);
        for (page, &host) in Page::first(self.labels.members()).zip(&self.directory.hosts) {
            if members.contains(page) { has_member[host] = true } else { has_other[host] = true }
        }
        has_member.iter_mut().zip(has_other).for_each(|(some, others)| *some &= others);
        has_member
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clusters::trivial::TrivialClusters;
    use crate::clusters::{link_summary, links};
    use crate::shuffle::directory::TablePartitions;
    use webtwin_core::clusters::tolerant::similar_clusters;
    use webtwin_engine::{ClusterLayout, run};
    use webtwin_job::MergeCondition;

    /// Copies of one site, some of them on the same host, with pages left out or without copies,
    /// and with additional links.
    fn pages() -> impl Strategy<Value = (Vec<(HostId, u32)>, Vec<[prop::sample::Index; 2]>)> {
        let site = prop::collection::vec(prop::option::weighted(0.85, 0u32..3), 6..12);
        let copies = prop::collection::vec((0u32..4, 0usize..12, any::<bool>()), 2..6);
        let links = prop::collection::vec(any::<[prop::sample::Index; 2]>(), 0..12);
        (site, copies, links).prop_map(|(site, copies, links)| {
            let mut pages = Vec::new();
            for (copy, (host, omitted, other)) in (0u32..).zip(copies) {
                let names = (0u32..).zip(&site).filter(|(at, _)| *at as usize != omitted);
                // Also copies of another site, and pages without copies.
                let name = |(at, kind): (u32, &Option<u32>)| match kind {
                    Some(0) if other => 100 + at,
                    Some(_) => at,
                    None => 1000 + 100 * copy + at,
                };
                pages.extend(names.map(|page| (HostId(host), name(page))));
            }
            (pages, links)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn growth_by_host_owners_equals_growth_on_one_worker(
            (pages, more) in pages(), min_hosts in 1u32..3, workers in 1usize..4, is_broadcast: bool,
            attach in prop::sample::select(vec![AttachmentRule::None, AttachmentRule::BreakPoints, AttachmentRule::Nearby]),
        ) {
            let settings = ClusterSettings { merge: MergeCondition::Tolerant, single_site: true, min_size: 2, min_hosts, attach };
            let hosts: Vec<HostId> = pages.iter().map(|page| page.0).collect();
            let first = |name: u32| pages.iter().position(|page| page.1 == name).expect("it is the name of a page");
            let clusters: Vec<ClusterId> = pages.iter().map(|page| ClusterId(first(page.1) as u32)).collect();
            // Each page links to the next two pages of its host, and some pages link elsewhere.
            let near = (0..pages.len()).flat_map(|at| [[at, at + 1], [at, at + 2]]);
            let near = near.filter(|&[src, dst]| dst < pages.len() && pages[src].0 == pages[dst].0);
            let extra_links = more.iter().map(|ends| ends.map(|end| end.index(pages.len())));
            let mut all_links: Vec<(Page, Page)> = near.chain(extra_links).map(|ends| ends.map(Page::from_index).into()).collect();
            all_links.sort_unstable();
            all_links.dedup();
            let labels = Arc::new(SetLabels::from_list(&clusters));
            let expected = similar_clusters(&clusters, &hosts, &all_links, &settings);
            let parts = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| {
                let directory = Arc::new(Directory::even(hosts.clone(), TablePartitions::new(8, net.peers())));
                let targets_of = |page: Page, targets: &mut Vec<Page>| {
                    targets.extend(all_links.iter().filter(|link| link.0 == page).map(|link| link.1));
                };
                let out = WorkerLinks::new(net, Arc::clone(&directory), targets_of)?;
                let incoming_links = links::count_incoming(net, &out)?;
                let trivial = TrivialClusters::new(net, Arc::clone(&labels))?;
                let (_, merging) = link_summary::of_clusters(net, &out, &hosts, &trivial, None, &settings)?;
                let web = KnownWeb { directory: &directory, labels: &labels, bits: 1, is_broadcast };
                web.similar_clusters(net, merging, &out, &incoming_links, &settings)
            });
            let mut similar_clusters = parts.unwrap().concat();
            similar_clusters.sort_unstable_by_key(SimilarCluster::id);
            prop_assert_eq!(similar_clusters, expected);
        }
    }
}
