//! Finds the pieces that are copies of larger pieces, and their similar clusters.
//!
//! Every trivial cluster points to the largest piece that has one of its pages. The owner of the
//! cluster finds this piece and sends it to the owners of the hosts of the other pieces. A piece is
//! a copy of the larger piece to which most of its pages point ([`larger_copy`]). Copies of copies
//! form trees. A similar cluster is such a tree, and is named by its root ([`roots`]).
//!
//! # Memory
//! Takes 8 bytes for each piece that has copies.

use super::pieces::{PieceRow, Pieces};
use super::tolerant::KnownWeb;
use crate::shuffle::hash_partitions::HashPartitions;
use crate::shuffle::roots::{parent, roots, roots_here};
use bytemuck::{Pod, Zeroable};
use itertools::Itertools;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, Number, Page, PieceId, SimilarClusterId};
use webtwin_core::clusters::tolerant::{by_size, larger_copy};
use webtwin_engine::{HashOwners, Net, Owners};

/// Pieces on a worker's hosts that have copies. Each is stored as its smallest page, with the
/// largest piece of its similar cluster, in ascending order.
pub(super) struct SimilarPieces(Vec<[Page; 2]>);

/// Piece with a page of a trivial cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct ClusterPiece {
    cluster: ClusterId,
    piece: PieceId,
    size: u32,
}

/// Piece with a page of a trivial cluster that points to a larger piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct LargerPiece {
    piece: PieceId,
    larger: PieceId,
    size: u32,
    larger_size: u32,
}

impl SimilarPieces {
    /// Finds the similar cluster of every piece. Takes two exchanges, and the exchanges of
    /// [`roots`].
    ///
    /// # Errors
    /// Returns any error of [`HashPartitions::alike`].
    pub(super) fn find(net: &mut Net<'_>, web: &KnownWeb<'_>, pieces: &Pieces) -> Result<SimilarPieces> {
        let cluster_row = |PieceRow { page, piece, size }| ClusterPiece { cluster: web.cluster(page), piece, size };
        let rows = pieces.rows.iter().map_ok(cluster_row);
        let cluster = |row: &ClusterPiece| row.cluster;
        let mut by_cluster = HashPartitions::alike(net, "pieces by cluster", web.alike(), rows, cluster)?;
        let host = |row: &LargerPiece| web.host(row.piece.smallest());
        let mut cluster_rows = Vec::new();
        let rows = (0..by_cluster.count()).map(|share| {
            by_cluster.take(share, &mut cluster_rows)?;
            Ok(larger_pieces(&mut cluster_rows))
        });
        let mut by_host = HashPartitions::alike(net, "larger pieces", web.alike(), rows.flatten_ok(), host)?;
        drop(by_cluster);

        let (mut host_rows, mut copies) = (Vec::new(), Vec::new());
        for share in 0..by_host.count() {
            net.check()?;
            by_host.take(share, &mut host_rows)?;
            copies.extend(copies_of_larger(&mut host_rows));
        }
        drop(by_host);
        let owners = HashOwners::new(net);
        roots(net, "mirrors", copies, |piece| owners.owner(web.host(piece))).map(SimilarPieces)
    }

    /// Finds the similar cluster of every piece, given the pieces of all workers.
    pub(super) fn of_all(web: &KnownWeb<'_>, rows: &[PieceRow]) -> SimilarPieces {
        let cluster_row =
            |&PieceRow { page, piece, size }: &PieceRow| ClusterPiece { cluster: web.cluster(page), piece, size };
        let mut larger = larger_pieces(&mut rows.iter().map(cluster_row).collect::<Vec<_>>());
        SimilarPieces(roots_here(copies_of_larger(&mut larger)))
    }

    /// Returns the similar cluster of a piece that has copies.
    pub(super) fn similar_cluster(&self, piece: PieceId) -> Option<SimilarClusterId> {
        parent(&self.0, piece.smallest()).map(|largest| SimilarClusterId(largest.number()))
    }

    /// Returns a function that maps a page to its piece, as the smallest page of the piece, and to
    /// its similar cluster, if the piece has copies. It is fast if rows of a piece are adjacent.
    pub(super) fn of_pages(&self) -> impl FnMut(PieceRow) -> Option<[Page; 3]> + '_ {
        let mut last = (PieceId::NONE, None);
        move |PieceRow { page, piece, .. }| {
            if piece != last.0 {
                last = (piece, self.similar_cluster(piece));
            }
            last.1.map(|similar_cluster| [page, piece.smallest(), Page(similar_cluster.number())])
        }
    }

    /// Returns the pieces that have another piece of their similar cluster on their host,
    /// ascending.
    pub(super) fn pair_each_other(&self, web: &KnownWeb<'_>) -> Vec<PieceId> {
        let mut rows: Vec<_> = self.0.iter().map(|&[piece, largest]| (largest, web.host(piece), piece)).collect();
        rows.sort_unstable();
        let shared_places = rows.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)).filter(|here| here.len() > 1);
        let mut piece_ids: Vec<PieceId> = shared_places.flatten().map(|row| PieceId::from_smallest(row.2)).collect();
        piece_ids.sort_unstable();
        piece_ids
    }
}

/// Returns the pieces of some trivial clusters except the largest piece of each cluster.
fn larger_pieces(rows: &mut [ClusterPiece]) -> Vec<LargerPiece> {
    rows.sort_unstable();
    let clusters = rows.chunk_by(|x, y| x.cluster == y.cluster);
    let larger_in_cluster = |rows: &[ClusterPiece]| {
        let largest = rows.iter().max_by_key(|row| by_size(row.size as usize, row.piece));
        let &ClusterPiece { piece: larger, size: larger_size, .. } = largest.expect("a chunk is not empty");
        let smaller_pieces = rows.iter().filter(move |row| row.piece != larger);
        smaller_pieces
            .map(|&ClusterPiece { piece, size, .. }| LargerPiece { piece, larger, size, larger_size })
            .collect::<Vec<_>>()
    };
    clusters.flat_map(larger_in_cluster).collect()
}

/// Returns the pieces that are copies of a larger piece, each with that piece.
fn copies_of_larger(rows: &mut [LargerPiece]) -> Vec<[Page; 2]> {
    rows.sort_unstable();
    let mut pointed_to = Vec::new();
    let copy_of = |rows: &[LargerPiece]| {
        let piece = rows[0].piece;
        pointed_to.clear();
        pointed_to.extend(rows.iter().map(|row| row.larger));
        let size = |wanted_piece: PieceId| match wanted_piece == piece {
            true => rows[0].size as usize,
            false => rows[rows.partition_point(|row| row.larger < wanted_piece)].larger_size as usize,
        };
        larger_copy(piece, &mut pointed_to, size).map(|larger| [piece.smallest(), larger.smallest()])
    };
    rows.chunk_by(|x, y| x.piece == y.piece).filter_map(copy_of).collect()
}
