//! Growth, sharded by component: everything a component needs meets at one worker, and components grow independently.
//!
//! Three exchanges: pages, links and TCG edges to the owner of their component.
//!
//! # Memory
//! A worker holds the components it owns: 20 bytes a page and 12 a link of clusters that merge.

use super::captures::Crawl;
use super::components::components;
use crate::clusters::collection::SimilarCluster;
use crate::clusters::growth::{ClusterPage, Component, grow};
use crate::clusters::link_summary::LinkSummary;
use crate::clusters::merge::may_merge;
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{Rank, mix};
use crate::job::Clusters;

/// Grows all similar clusters; they lie with the owners of their components, ascending by smallest page.
///
/// `from_elsewhere` counts the links from other hosts to the pages of `crawl.pages`.
pub fn similar_clusters(
    net: &mut Net<'_>,
    crawl: &Crawl,
    labels: &[Rank],
    links: &[(Rank, Rank)],
    from_elsewhere: &[u32],
    summaries: &[LinkSummary],
    settings: &Clusters,
) -> Result<Vec<SimilarCluster>> {
    let edges: Vec<(Rank, Rank)> = summaries
        .iter()
        .filter(|row| may_merge(row, settings.merge))
        .map(|row| (row.src_cluster, row.dst_cluster))
        .collect();
    let component = components(net, "components of the TCG", crawl.directory.len(), edges.iter().copied())?;
    let merges = net.once(|| {
        let mut merges = vec![false; component.len()];
        for (cluster, &least) in component.iter().enumerate() {
            if cluster as Rank != least {
                merges[cluster] = true;
                merges[least as usize] = true;
            }
        }
        merges
    })?;
    let component_of = |page: Rank| {
        let cluster = labels[page as usize];
        merges[cluster as usize].then(|| component[cluster as usize])
    };
    let peers = net.peers() as u64;
    let owner = move |component: Rank| (mix(u64::from(component)) % peers) as usize;

    let rows = crawl.pages.iter().zip(from_elsewhere).filter_map(|((page, _), &links_from_elsewhere)| {
        let (page, host) = (*page, crawl.directory.hosts[*page as usize]);
        let cluster = labels[page as usize];
        component_of(page).map(|component| ClusterPage { component, cluster, page, host, links_from_elsewhere })
    });
    let mut pages = net.exchange_all("pages of components", rows, |row: &ClusterPage| owner(row.component))?;
    pages.sort_unstable();

    let rows = links.iter().filter_map(|&(src, dst)| {
        let component = component_of(src)?;
        (component_of(dst) == Some(component)).then_some([component, src, dst])
    });
    let inside = to_owners(net, "links of components", rows, owner)?;
    let rows = edges.iter().map(|&(ri, rj)| [component[ri as usize], ri, rj]);
    let edges = to_owners(net, "edges of the TCG", rows, owner)?;

    let (mut next_link, mut next_edge) = (0, 0);
    let mut found = Vec::new();
    for pages in pages.chunk_by(|x, y| x.component == y.component) {
        let links = rows_of(&inside, pages[0].component, &mut next_link);
        let edges = rows_of(&edges, pages[0].component, &mut next_edge);
        found.extend(grow(&Component { pages, edges: &edges, links: &links }, settings));
    }
    found.sort_unstable_by_key(SimilarCluster::id);
    Ok(found)
}

fn to_owners(
    net: &mut Net<'_>,
    name: &'static str,
    rows: impl Iterator<Item = [Rank; 3]>,
    owner: impl Fn(Rank) -> usize,
) -> Result<Vec<[Rank; 3]>> {
    let mut owned = net.exchange_all(name, rows, |row| owner(row[0]))?;
    owned.sort_unstable();
    owned.dedup();
    Ok(owned)
}

/// The rows of one component, from `next` on, where components are asked for in ascending order.
fn rows_of(rows: &[[Rank; 3]], component: Rank, next: &mut usize) -> Vec<(Rank, Rank)> {
    let skipped = rows[*next..].iter().take_while(|row| row[0] < component).count();
    let own = rows[*next + skipped..].iter().take_while(|row| row[0] == component);
    let own: Vec<(Rank, Rank)> = own.map(|row| (row[1], row[2])).collect();
    *next += skipped + own.len();
    own
}
