//! The largest findings, for the summary.

use serde::{Deserialize, Serialize};

use super::collection_rows::CollectionRow;
use crate::shuffle::directory::Directory;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, HostId, Page, doc_id};
use webtwin_engine::Net;

/// One of the largest findings, as `summary.json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Largest {
    /// Hosts that carry it, by which \[CSG00\] Table 2 ranks.
    pub hosts: u32,
    /// Servers among these: hosts that are no aliases of each other.
    pub servers: u32,
    /// Copies: collections of a similar cluster, pages of a trivial one.
    pub copies: u32,
    /// Pages of its largest collection; 1 for a trivial cluster.
    pub size: u32,
    /// The root that is kept, or the page that is kept.
    #[serde(with = "webtwin_base::ids::as_text")]
    pub doc_id: DocId,
    /// Its URL.
    pub url: String,
}

/// Findings shown of each kind.
pub const SHOWN: usize = 20;

/// The largest of all workers' findings, of several kinds: most hosts first, then size, copies, and the smaller doc id. One round.
pub fn largest<const N: usize>(net: &mut Net<'_>, mine: [Vec<Largest>; N]) -> Result<[Vec<Largest>; N]> {
    let top = |mut all: Vec<Largest>| {
        all.sort_unstable_by(|x, y| (y.hosts, y.size, y.copies, x.doc_id).cmp(&(x.hosts, x.size, x.copies, y.doc_id)));
        all.truncate(SHOWN);
        all
    };
    let all = net.all_gather("largest findings", mine.map(top).to_vec())?;
    Ok(std::array::from_fn(|kind| top(all.iter().flat_map(|of_worker| of_worker[kind].iter().cloned()).collect())))
}

/// The similar clusters of some rows, as findings (\[CSG00\] Table 2).
///
/// `server` has for every host the smallest of its server.
pub fn similar_clusters_of(rows: &[CollectionRow], directory: &Directory, server: &[HostId]) -> Vec<Largest> {
    rows.chunk_by(|x, y| x.similar_cluster == y.similar_cluster)
        .map(|collections| {
            let kept = collections.iter().find(|row| row.kept).unwrap_or(&collections[0]);
            let (hosts, servers) = hosts_and_servers(collections.iter().map(|row| row.root), directory, server);
            Largest {
                hosts,
                servers,
                copies: collections.len() as u32,
                size: collections.iter().map(|row| row.size).max().expect("a chunk is not empty"),
                doc_id: doc_id(&kept.root_url),
                url: kept.root_url.clone(),
            }
        })
        .collect()
}

/// Hosts that some pages stand on, and servers; `server` has for every host the smallest of its server.
pub fn hosts_and_servers(pages: impl Iterator<Item = Page>, directory: &Directory, server: &[HostId]) -> (u32, u32) {
    let mut hosts: Vec<HostId> = pages.map(|page| directory.hosts[page]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let count = hosts.len() as u32;
    hosts.iter_mut().for_each(|host| *host = server[*host]);
    hosts.sort_unstable();
    hosts.dedup();
    (count, hosts.len() as u32)
}
