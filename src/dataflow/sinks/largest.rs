//! Largest findings, for the summary.

use serde::{Deserialize, Serialize};

use super::collection_rows::CollectionRow;
use crate::shuffle::directory::Directory;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, HostId, Page, doc_id};
use webtwin_engine::Net;

/// Finding as it appears in `summary.json`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LargestFinding {
    /// Number of hosts with a copy, by which \[CSG00\] Table 2 ranks.
    pub hosts: u32,
    /// Number of servers among these hosts: hosts that are not aliases of each other.
    pub servers: u32,
    /// Number of copies: collections of a similar cluster, or pages of a trivial cluster.
    pub copies: u32,
    /// Number of pages of its largest collection; 1 for a trivial cluster.
    pub size: u32,
    /// Root of the collection that is kept, or the page that is kept.
    #[serde(with = "webtwin_base::ids::as_text")]
    pub doc_id: DocId,
    /// URL of this page.
    pub url: String,
}

/// Number of findings that are shown of each kind.
pub const MAX_FINDINGS: usize = 20;

/// Returns the largest findings of all workers, of several kinds: most hosts first, then largest
/// size, most copies, and the smaller doc id. Takes one round.
pub fn largest<const N: usize>(
    net: &mut Net<'_>,
    own_findings: [Vec<LargestFinding>; N],
) -> Result<[Vec<LargestFinding>; N]> {
    let top = |mut findings: Vec<LargestFinding>| {
        findings
            .sort_unstable_by(|x, y| (y.hosts, y.size, y.copies, x.doc_id).cmp(&(x.hosts, x.size, x.copies, y.doc_id)));
        findings.truncate(MAX_FINDINGS);
        findings
    };
    let all_findings = net.all_gather("largest findings", own_findings.map(top).to_vec())?;
    Ok(std::array::from_fn(|kind| {
        top(all_findings.iter().flat_map(|of_worker| of_worker[kind].iter().cloned()).collect())
    }))
}

/// Returns the similar clusters of some rows as findings (\[CSG00\] Table 2).
///
/// `server` has for every host the smallest host of its server.
pub fn similar_clusters_of(rows: &[CollectionRow], directory: &Directory, server: &[HostId]) -> Vec<LargestFinding> {
    rows.chunk_by(|x, y| x.similar_cluster == y.similar_cluster)
        .map(|collections| {
            let kept_collection = collections.iter().find(|row| row.kept).unwrap_or(&collections[0]);
            let (hosts, servers) = hosts_and_servers(collections.iter().map(|row| row.root), directory, server);
            LargestFinding {
                hosts,
                servers,
                copies: collections.len() as u32,
                size: collections.iter().map(|row| row.size).max().expect("a chunk is not empty"),
                doc_id: doc_id(&kept_collection.root_url),
                url: kept_collection.root_url.clone(),
            }
        })
        .collect()
}

/// Returns the numbers of hosts and of servers that some pages are on. `server` has for every host
/// the smallest host of its server.
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
