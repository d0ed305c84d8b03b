//! Collections with their root's URL, and the largest findings for the summary.

use serde::{Deserialize, Serialize};

use crate::dataflow::reading::captures::Crawl;
use crate::dataflow::shuffle::directory::Directory;
use crate::dataflow::sinks::avoid::Judged;
use crate::engine::{Net, Owners};
use crate::error::Result;
use crate::ids::{ClusterId, DocId, HostId, Page, SimilarClusterId};

/// A row of the `collections` table. Orders by similar cluster, then collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CollectionRow {
    /// Smallest page of the similar cluster.
    pub similar_cluster: SimilarClusterId,
    /// Smallest page of the collection.
    pub collection: Page,
    /// Collections in the similar cluster.
    pub cardinality: u32,
    /// Pages in the collection, those attached to it among them.
    pub size: u32,
    /// Its root page.
    pub root: Page,
    /// URL of the root.
    pub root_url: String,
    /// Whether it is the collection that is kept of its cluster.
    pub kept: bool,
}

/// A row of the `members` table. Orders by similar cluster, collection, trivial cluster, page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct MemberRow {
    /// Smallest page of the similar cluster.
    pub similar_cluster: SimilarClusterId,
    /// Smallest page of the collection.
    pub collection: Page,
    /// Trivial cluster of the page; [`ATTACHED`] for a page that was attached.
    pub cluster: ClusterId,
    /// The page.
    pub page: Page,
}

/// Stands for the trivial cluster of a page that belongs to a collection without a counterpart.
pub const ATTACHED: ClusterId = ClusterId::NONE;

/// Collections and members, each with the owner of its similar cluster's smallest page, ascending.
///
/// Three exchanges: collections by way of their root (which knows its URL), and members.
pub fn rows(net: &mut Net<'_>, crawl: &Crawl, judged: &Judged<'_>) -> Result<(Vec<CollectionRow>, Vec<MemberRow>)> {
    let directory = crawl.directory.clone();
    let mut collections = Vec::new();
    let mut members = Vec::new();
    let of_all = judged.similar_clusters.iter().zip(&judged.kept);
    for (similar, &kept) in of_all.filter(|(similar, _)| !similar.double) {
        let id = similar.id();
        for (number, collection) in similar.collections.iter().enumerate() {
            let smallest = collection.first_page();
            let row = CollectionRow {
                similar_cluster: id,
                collection: smallest,
                cardinality: similar.collections.len() as u32,
                size: (collection.members.len() + collection.nearby.len()) as u32,
                root: collection.root,
                root_url: String::new(),
                kept: number == kept,
            };
            collections.push((directory.owner(collection.root), row));
            let attached = collection.nearby.iter().map(|&page| (ATTACHED, page));
            members.extend(collection.members.iter().copied().chain(attached).map(|(cluster, page)| MemberRow {
                similar_cluster: id,
                collection: smallest,
                cluster,
                page,
            }));
        }
    }
    let named = net.exchange_rows("roots", collections)?.into_iter().map(|mut row| {
        row.root_url = crawl.page(row.root).url.clone();
        (directory.owner(row.similar_cluster.smallest()), row)
    });
    let mut collections = net.exchange_rows("collections", named)?;
    collections.sort_unstable();

    let mut owned = net.exchange_all("members", members, |row| directory.owner(row.similar_cluster.smallest()))?;
    owned.sort_unstable();
    Ok((collections, owned))
}

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
    pub doc_id: DocId,
    /// Its URL.
    pub url: String,
}

/// Findings shown of each kind.
pub const SHOWN: usize = 20;

/// The largest of all workers' findings: most hosts first, then size, copies, and the smaller doc id.
pub fn largest(net: &mut Net<'_>, name: &'static str, mine: Vec<Largest>) -> Result<Vec<Largest>> {
    let top = |mut all: Vec<Largest>| {
        all.sort_unstable_by(|x, y| (y.hosts, y.size, y.copies, x.doc_id).cmp(&(x.hosts, x.size, x.copies, y.doc_id)));
        all.truncate(SHOWN);
        all
    };
    let all = net.all_gather(name, top(mine))?;
    Ok(top(all.into_iter().flatten().collect()))
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
                doc_id: directory.doc_ids[kept.root as usize],
                url: kept.root_url.clone(),
            }
        })
        .collect()
}

/// Hosts that some pages stand on, and servers; `server` has for every host the smallest of its server.
pub fn hosts_and_servers(pages: impl Iterator<Item = Page>, directory: &Directory, server: &[HostId]) -> (u32, u32) {
    let mut hosts: Vec<HostId> = pages.map(|page| directory.hosts[page as usize]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let count = hosts.len() as u32;
    hosts.iter_mut().for_each(|host| *host = server[*host]);
    hosts.sort_unstable();
    hosts.dedup();
    (count, hosts.len() as u32)
}
