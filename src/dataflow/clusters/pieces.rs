//! Pieces ([`webtwin_core::clusters::pieces`]), which are at the owners of their hosts. A piece has
//! pages of one host only.

use itertools::Itertools;

use bytemuck::{Pod, Zeroable};

use super::host_links::{LinksByHost, PagePlaces};
use super::link_summary::MergingLinks;
use super::mirrors::SimilarPieces;
use super::tolerant::KnownWeb;
use crate::shuffle::hash_partitions::{HashPartitions, rows_and_links};
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Number, Page, PieceId};
use webtwin_core::clusters::pieces::{PieceMember, grow_pieces, join_pieces};
use webtwin_core::clusters::union_find::UnionFind;
use webtwin_engine::Net;

/// Page that has copies, and its piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PieceRow {
    pub(super) page: Page,
    pub(super) piece: PieceId,
    /// Number of pages of the piece.
    pub(super) size: u32,
}

/// Pieces on the hosts of a worker: all pages of these hosts that have copies, by host. Pages of a
/// piece are mostly adjacent.
pub(super) struct Pieces {
    pub(super) rows: HashPartitions<PieceRow>,
}

impl Pieces {
    /// Grows pieces along this worker's links between clusters that may merge. Takes one exchange.
    ///
    /// # Errors
    /// Returns any error of [`rows_and_links`].
    pub(super) fn grow(net: &mut Net<'_>, web: &KnownWeb<'_>, merging: &MergingLinks) -> Result<Pieces> {
        let pages = web.directory.owned(net.index()).filter(|&page| web.has_copies(page));
        let pages = (pages, |&page: &Page| web.host(page));
        let links = (merging.blocks().flatten_ok().map_ok(<(Page, Page)>::from), |source: Page| web.host(source));
        let (mut pages, mut links) = rows_and_links(net, "pages and links that merge", web.alike(), pages, links)?;
        let mut pieces = Pieces { rows: HashPartitions::empty(net, web.alike()) };
        let (mut places, mut by_host) = (PagePlaces::new(), LinksByHost::new(&web.directory.hosts));
        let (mut share_pages, mut link_rows) = (Vec::new(), Vec::new());
        for share in 0..pages.count() {
            net.check()?;
            pages.take(share, &mut share_pages)?;
            links.take(share, &mut link_rows)?;
            share_pages.sort_by_cached_key(|&page| (web.host(page), page));
            let members = grow_on_hosts(web, &share_pages, &link_rows, &mut places, &mut by_host);
            pieces.put(share, &members)?;
        }
        Ok(pieces)
    }

    /// Joins pieces of one similar cluster that are on the same host. `paired_pieces` are these
    /// pieces, `similar` returns their similar clusters, and `links` are this worker's links that
    /// may join some of them. Takes one exchange.
    ///
    /// # Errors
    /// Returns any error of [`HashPartitions::alike`].
    pub(super) fn join(
        &mut self,
        net: &mut Net<'_>,
        web: &KnownWeb<'_>,
        similar: &SimilarPieces,
        paired_pieces: &[PieceId],
        links: impl Iterator<Item = Result<[Page; 2]>>,
    ) -> Result<()> {
        let host = |link: &[Page; 2]| web.host(link[0]);
        let mut links = HashPartitions::alike(net, "links between pieces", web.alike(), links, host)?;
        let mut by_host = LinksByHost::new(&web.directory.hosts);
        let (mut piece_rows, mut link_rows) = (Vec::new(), Vec::new());
        for share in 0..links.count() {
            net.check()?;
            links.take(share, &mut link_rows)?;
            if link_rows.is_empty() {
                continue;
            }
            self.rows.take(share, &mut piece_rows)?;
            let mut members: Vec<PieceMember> =
                piece_rows.iter().map(|row| (row.piece, web.cluster(row.page), row.page)).collect();
            // Members of pieces that may be joined, by host.
            let host_of = |&(piece, _, _): &PieceMember| web.host(piece.smallest());
            let is_paired = |member: &&PieceMember| paired_pieces.binary_search(&member.0).is_ok();
            let mut candidates: Vec<PieceMember> = members.iter().filter(is_paired).copied().collect();
            candidates.sort_by_cached_key(|member| (host_of(member), *member));
            let mut new_names: Vec<(Page, PieceId)> = Vec::new();
            by_host.for_each_host(&link_rows, |host, links| {
                let first = candidates.partition_point(|member| host_of(member) < host);
                let count = candidates[first..].iter().take_while(|member| host_of(member) == host).count();
                let similar_cluster = |piece| similar.similar_cluster(piece).expect("it is beside another one");
                new_names.extend(join_pieces(&candidates[first..][..count], &links.pairs(), similar_cluster));
            });
            rename(&mut members, new_names);
            self.put(share, &members)?;
        }
        Ok(())
    }

    /// Adds pages of some hosts to their partition. Pages of a piece must be adjacent.
    fn put(&mut self, share: usize, members: &[PieceMember]) -> Result<()> {
        for piece in members.chunk_by(|x, y| x.0 == y.0) {
            let size = piece.len() as u32;
            piece.iter().try_for_each(|&(piece, _, page)| self.rows.push(share, PieceRow { page, piece, size }))?;
        }
        Ok(())
    }
}

/// Returns the pieces of some hosts, ascending. `pages` are the pages of these hosts by host, and
/// `links` are the links between clusters that may merge.
fn grow_on_hosts(
    web: &KnownWeb<'_>,
    pages: &[Page],
    links: &[[Page; 2]],
    places: &mut PagePlaces,
    by_host: &mut LinksByHost<'_>,
) -> Vec<PieceMember> {
    places.put(pages.iter().copied());
    let mut union = UnionFind::new(pages.len());
    links.iter().for_each(|&[src, dst]| _ = union.union(places.place(src), places.place(dst)));
    let component = union.labels().into_iter().map(|first| PieceId::from_smallest(pages[first.index()]));
    let mut members: Vec<PieceMember> =
        component.zip(pages).map(|(piece, &page)| (piece, web.cluster(page), page)).collect();
    members.sort_unstable();
    // Pages that links connect are a piece unless two of them are in the same trivial cluster. On a
    // host with such pages, all pieces are grown page by page.
    let doubled = members.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
    let mut contested: Vec<HostId> = doubled.map(|pair| web.host(pair[0].2)).collect();
    contested.sort_unstable();
    contested.dedup();
    if !contested.is_empty() {
        let is_contested = |link: &&[Page; 2]| contested.binary_search(&web.host(link[0])).is_ok();
        let links: Vec<[Page; 2]> = links.iter().filter(is_contested).copied().collect();
        let mut grown_pieces = Vec::new();
        by_host.for_each_host(&links, |_, links| grown_pieces.extend(grow_pieces(links, |page| web.cluster(page))));
        rename(&mut members, grown_pieces);
    }
    members
}

/// Assigns other pieces to some of the members, and sorts all members.
fn rename(members: &mut [PieceMember], mut pieces: Vec<(Page, PieceId)>) {
    pieces.sort_unstable();
    for member in members.iter_mut() {
        if let Ok(at) = pieces.binary_search_by_key(&member.2, |row| row.0) {
            member.0 = pieces[at].1;
        }
    }
    members.sort_unstable();
}
