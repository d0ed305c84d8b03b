//! LINK(src, dst): the links within the crawl, and how they run between trivial clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::captures::Crawl;
use super::shelf::Shelf;
use crate::clusters::link_summary::{ClusterLink, LinkSummary, link_summary};
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{HostId, Rank, mix};

/// Resolves the links on all shelves; they lie, ascending and each once, with the owner of their source page.
///
/// One exchange. Links that lead out of the crawl are dropped.
pub fn resolve(net: &mut Net<'_>, shelf: &mut Shelf, crawl: &Crawl) -> Result<Vec<(Rank, Rank)>> {
    let directory = crawl.directory.clone();
    let mut slots = shelf.kept();
    let source = |send: &mut dyn FnMut([Rank; 2])| {
        let mut looked_up = 0;
        for (slot, src) in slots.by_ref() {
            let targets = shelf.links.get(slot);
            let inside = targets.iter().filter_map(|&target| directory.rank(target));
            inside.filter(|&dst| dst != src).for_each(|dst| send([src, dst]));
            looked_up += targets.len() + 1;
            if looked_up >= 1 << 15 {
                return true;
            }
        }
        false
    };
    let mut links: Vec<(Rank, Rank)> = Vec::new();
    let directory = crawl.directory.clone();
    net.exchange(
        "LINK",
        source,
        move |link| directory.owner(link[0]),
        |rows: &[[Rank; 2]]| links.extend(rows.iter().map(|&[src, dst]| (src, dst))),
    )?;
    drop(slots);
    links.sort_unstable();
    links.dedup();
    shelf.links.clear();
    Ok(links)
}

/// Links to each of this worker's pages from pages of other hosts, in the order of `crawl.pages`. One exchange.
pub fn from_elsewhere(net: &mut Net<'_>, links: &[(Rank, Rank)], crawl: &Crawl) -> Result<Vec<u32>> {
    let directory = crawl.directory.clone();
    let mut rows = links
        .iter()
        .filter(|&&(src, dst)| crawl.directory.hosts[src as usize] != crawl.directory.hosts[dst as usize])
        .map(|link| link.1);
    let source = |send: &mut dyn FnMut(Rank)| rows.by_ref().take(1 << 15).map(send).count() > 0;
    let mut counts = vec![0u32; crawl.pages.len()];
    net.exchange(
        "links from elsewhere",
        source,
        move |dst| directory.owner(*dst),
        |targets: &[Rank]| {
            for target in targets {
                let at = crawl.pages.partition_point(|(rank, _)| rank < target);
                counts[at] += 1;
            }
        },
    )?;
    Ok(counts)
}

/// Links to the pages of each host from pages of other hosts, by host, in every process. One exchange.
pub fn to_hosts(net: &mut Net<'_>, from_elsewhere: &[u32], crawl: &Crawl) -> Result<Arc<Vec<u32>>> {
    let hosts = &crawl.directory.hosts;
    let mut mine: BTreeMap<HostId, u32> = BTreeMap::new();
    for ((rank, _), links) in crawl.pages.iter().zip(from_elsewhere).filter(|(_, links)| **links > 0) {
        *mine.entry(hosts[*rank as usize]).or_default() += links;
    }
    let rows = net.share("links to hosts", mine.into_iter().map(|(host, links)| [host, links]).collect())?;
    net.once(|| {
        let mut sums = vec![0u32; hosts.iter().max().map_or(0, |host| *host as usize + 1)];
        rows.iter().for_each(|&[host, links]| sums[host as usize] = sums[host as usize].saturating_add(links));
        sums
    })
}

/// `LinkSummary` from all trivial clusters of two pages or more; rows lie, ascending, with the owner of the cluster pair.
///
/// `labels[page]` is a page's trivial cluster, `sizes[cluster]` its pages. With `single_site` only links within a host
/// count, and none to a page without copies: copies that all link to it on their own host are no mirrors. One exchange.
pub fn summary(
    net: &mut Net<'_>,
    links: &[(Rank, Rank)],
    crawl: &Crawl,
    labels: &[Rank],
    sizes: &[u32],
    single_site: bool,
) -> Result<Vec<LinkSummary>> {
    let hosts = &crawl.directory.hosts;
    let peers = net.peers() as u64;
    let rows = links.iter().filter_map(|&(src, dst)| {
        let (ri, rj) = (labels[src as usize], labels[dst as usize]);
        let counts = ri != rj && sizes[ri as usize] > 1 && (sizes[rj as usize] > 1 || !single_site);
        let one_site = !single_site || hosts[src as usize] == hosts[dst as usize];
        (counts && one_site).then_some(ClusterLink { src_cluster: ri, dst_cluster: rj, src, dst })
    });
    let to = |row: &ClusterLink| (mix(u64::from(row.src_cluster) << 32 | u64::from(row.dst_cluster)) % peers) as usize;
    let mut between = net.exchange_all("LinkSummary", rows, to)?;
    Ok(link_summary(&mut between, |cluster| sizes[cluster as usize]))
}
