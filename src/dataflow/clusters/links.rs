//! LINK(src, dst): the links within the crawl, and how they run between trivial clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::clusters::link_summary::{ClusterLink, LinkSummary, link_summary};
use crate::dataflow::clusters::redirects::Redirects;
use crate::dataflow::reading::captures::Crawl;
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::directory::Directory;
use crate::dataflow::shuffle::hash_partitions::HashPartitions;
use crate::dataflow::shuffle::memory_budget::MemoryBudget;
use crate::engine::{Net, Owners};
use crate::error::Result;
use crate::ids::{ClusterId, HostId, Number, Page};

/// A page on its way to where collections grow, with the links to it from other hosts: 8 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct LinkedPage {
    pub page: Page,
    pub links_from_elsewhere: u32,
}

/// Resolves the links on all shelves; they lie, ascending and each once, with the owner of their source page.
///
/// One exchange, and those of [`Redirects::gather`]. Links that lead out of the crawl are dropped.
pub fn resolve(net: &mut Net<'_>, shelf: &mut WorkerPages, crawl: &Crawl) -> Result<Vec<(Page, Page)>> {
    let directory = crawl.directory.clone();
    let redirects = Redirects::gather(net, shelf, &directory)?;
    let (mut slots, mut links_of) = (shelf.kept(), shelf.links.reader());
    let source = |send: &mut dyn FnMut([Page; 2])| {
        let mut looked_up = 0;
        for (slot, src) in slots.by_ref() {
            let targets = links_of.get(slot)?;
            for &target in targets {
                redirects.pages(target, &directory, |dst| {
                    if dst != src {
                        send([src, dst]);
                    }
                });
            }
            looked_up += targets.len() + 1;
            if looked_up >= 1 << 15 {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut links: Vec<(Page, Page)> = Vec::new();
    let directory = crawl.directory.clone();
    net.exchange_from(
        "LINK",
        source,
        move |link| directory.owner(link[0]),
        |rows: &[[Page; 2]]| {
            links.extend(rows.iter().map(|&[src, dst]| (src, dst)));
            Ok(())
        },
    )?;
    drop(slots);
    links.sort_unstable_by_key(|&(src, dst)| u64::from(src) << 32 | u64::from(dst));
    links.dedup();
    shelf.links.clear();
    Ok(links)
}

/// Links to each of this worker's pages from pages of other hosts, in the order of its pages. One exchange.
pub fn from_elsewhere(
    net: &mut Net<'_>,
    links: impl Iterator<Item = (Page, Page)>,
    directory: &Directory,
) -> Result<Vec<u32>> {
    let hosts = &directory.hosts;
    let rows = links.filter(|&(src, dst)| hosts[src] != hosts[dst]).map(|link| link.1);
    let mut counts = vec![0u32; directory.owned(net.index()).count()];
    net.exchange(
        "links from elsewhere",
        rows,
        |dst| directory.owner(*dst),
        |targets: &[Page]| {
            targets.iter().for_each(|&target| counts[directory.place(target)] += 1);
            Ok(())
        },
    )?;
    Ok(counts)
}

/// Links to the pages of each host from pages of other hosts, by host, in every process. One exchange.
pub fn to_hosts(net: &mut Net<'_>, from_elsewhere: &[u32], crawl: &Crawl) -> Result<Arc<Vec<u32>>> {
    let hosts = &crawl.directory.hosts;
    let mut mine: BTreeMap<HostId, u32> = BTreeMap::new();
    let pages = crawl.directory.owned(net.index());
    for (page, links) in pages.zip(from_elsewhere).filter(|(_, links)| **links > 0) {
        *mine.entry(hosts[page]).or_default() += links;
    }
    let rows = net.share("links to hosts", mine.into_iter().map(|(host, links)| [host.number(), links]).collect())?;
    net.once(|| {
        let mut sums = vec![0u32; hosts.iter().max().map_or(0, |host| host.index() + 1)];
        rows.iter().for_each(|&[host, links]| sums[host as usize] = sums[host as usize].saturating_add(links));
        sums
    })
}

/// `LinkSummary` from all trivial clusters of two pages or more; `each` gets the rows of the cluster pairs that this worker
/// owns, each once, in an order of their own, and the links that a row counts.
///
/// `labels[page]` is a page's trivial cluster, `sizes[cluster]` its pages. With `single_site` only links within a host
/// count, and none to a page without copies: copies that all link to it on their own host are no mirrors. One exchange.
///
/// # Errors
/// [`crate::error::Error::DiskLimit`] or [`crate::error::Error::DiskFull`] when the disk does not take what `room` has no
/// memory for; or when the run has ended.
///
/// # Memory
/// 8 bytes for each link that counts, or what `room` allows; 20 more for those of some megabytes' worth at a time.
pub fn summary(
    net: &mut Net<'_>,
    links: impl ExactSizeIterator<Item = (Page, Page)>,
    hosts: &[HostId],
    (labels, sizes): (&[ClusterId], &[u32]),
    single_site: bool,
    room: &MemoryBudget,
    mut each: impl FnMut(LinkSummary, &[ClusterLink]),
) -> Result<()> {
    let count = links.len() as u64;
    let rows = links.filter(|&(src, dst)| {
        let (ri, rj) = (labels[src], labels[dst]);
        let counts = ri != rj && sizes[ri] > 1 && (sizes[rj] > 1 || !single_site);
        counts && (!single_site || hosts[src] == hosts[dst])
    });
    let clusters = |&[src, dst]: &[Page; 2]| u64::from(labels[src]) << 32 | u64::from(labels[dst]);
    let rows = rows.map(<[Page; 2]>::from);
    let mut shares = HashPartitions::laid_down(net, "LinkSummary", count, rows, clusters, room)?;
    let (mut some, mut between) = (Vec::new(), Vec::new());
    for number in 0..shares.count() {
        net.check()?;
        shares.take(number, &mut some)?;
        between.clear();
        between.extend(some.iter().map(|&[src, dst]| {
            let (src_cluster, dst_cluster) = (labels[src], labels[dst]);
            ClusterLink { src_cluster, dst_cluster, src, dst }
        }));
        let rows = link_summary(&mut between, |cluster| sizes[cluster]);
        let links = between.chunk_by(|x, y| (x.src_cluster, x.dst_cluster) == (y.src_cluster, y.dst_cluster));
        rows.into_iter().zip(links).for_each(|(row, links)| each(row, links));
    }
    Ok(())
}
