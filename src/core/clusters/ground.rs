//! Pages and links of one similar cluster, with pieces and trivial clusters numbered from 0.
//!
//! The check of a similar cluster ([`super::tolerant::verified`]) needs the pieces that have the
//! same link, and the trivial clusters of each piece. Numbers without gaps allow arrays in place of
//! maps, and counting sorts for the links.

use super::tolerant::PiecePage;
use webtwin_base::ids::ClusterId;

/// Pages of one similar cluster by index, and links between these indices.
#[derive(Debug)]
pub(super) struct ClusterPlaces<'a> {
    /// Pages, ascending.
    pub(super) pages: &'a [PiecePage],
    /// Number of the trivial cluster of each page, in the order of trivial clusters.
    pub(super) cluster: Vec<u32>,
    /// Number of trivial clusters.
    pub(super) clusters: usize,
    /// Number of the piece of each page, ascending.
    pub(super) piece: Vec<u32>,
    /// First page of each piece, and the number of pages at the end.
    pub(super) starts: Vec<usize>,
    /// Links within pieces. Links between the same two trivial clusters, in either direction, are
    /// next to each other, ascending by piece.
    pub(super) links: Vec<[u32; 2]>,
}

impl<'a> ClusterPlaces<'a> {
    /// Numbers the pages and links of a similar cluster. `pages` must ascend. `links` are links
    /// within pieces, as indices of pages, ascending by source.
    ///
    /// # Cost
    /// A sort of the trivial clusters of the pages; each link is moved twice.
    pub(super) fn new(pages: &'a [PiecePage], links: &[[u32; 2]]) -> ClusterPlaces<'a> {
        let mut clusters: Vec<ClusterId> = pages.iter().map(|page| page.cluster).collect();
        clusters.sort_unstable();
        clusters.dedup();
        let number = |page: &PiecePage| clusters.partition_point(|&cluster| cluster < page.cluster) as u32;
        let cluster: Vec<u32> = pages.iter().map(number).collect();
        let (mut piece, mut starts) = (Vec::with_capacity(pages.len()), vec![0]);
        for piece_pages in pages.chunk_by(|x, y| x.piece == y.piece) {
            piece.resize(piece.len() + piece_pages.len(), starts.len() as u32 - 1);
            starts.push(piece.len());
        }
        let mut ground = ClusterPlaces { pages, cluster, clusters: clusters.len(), piece, starts, links: Vec::new() };
        // Two stable counting sorts: by the larger number, then by the smaller one.
        let by_larger = sorted_by_key(links, ground.clusters, |link| ground.ends(link).1);
        ground.links = sorted_by_key(&by_larger, ground.clusters, |link| ground.ends(link).0);
        ground
    }

    /// Returns the trivial clusters at the ends of a link, the smaller number first.
    pub(super) fn ends(&self, [src, dst]: [u32; 2]) -> (u32, u32) {
        let (x, y) = (self.cluster[src as usize], self.cluster[dst as usize]);
        (x.min(y), x.max(y))
    }

    /// Yields groups of links that run between the same two trivial clusters.
    pub(super) fn links_by_clusters(&self) -> impl Iterator<Item = &[[u32; 2]]> {
        self.links.chunk_by(|&x, &y| self.ends(x) == self.ends(y))
    }

    /// Returns the number of pieces in which each trivial cluster has pages.
    pub(super) fn copies(&self) -> Vec<u32> {
        let mut copies = vec![0; self.clusters];
        for piece_bounds in self.starts.windows(2) {
            let clusters = &self.cluster[piece_bounds[0]..piece_bounds[1]];
            clusters.chunk_by(|x, y| x == y).for_each(|alike| copies[alike[0] as usize] += 1);
        }
        copies
    }
}

/// Sorts links stably by a key below `keys`, by counting.
fn sorted_by_key(links: &[[u32; 2]], keys: usize, key: impl Fn([u32; 2]) -> u32) -> Vec<[u32; 2]> {
    let mut next = vec![0u32; keys + 1];
    links.iter().for_each(|&link| next[key(link) as usize + 1] += 1);
    (0..keys).for_each(|at| next[at + 1] += next[at]);
    let mut sorted_links = vec![[0; 2]; links.len()];
    for &link in links {
        let next = &mut next[key(link) as usize];
        sorted_links[*next as usize] = link;
        *next += 1;
    }
    sorted_links
}
