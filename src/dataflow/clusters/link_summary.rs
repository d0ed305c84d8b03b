//! `LinkSummary` ([`crate::clusters::link_summary`]) over all workers, and the links along which trivial clusters may merge.

use std::sync::Arc;

use crate::clusters::link_summary::{ClusterLink, LinkSummary, link_summary};
use crate::clusters::merge::may_merge;
use crate::dataflow::clusters::links::Links;
use crate::dataflow::shuffle::hash_partitions::HashPartitions;
use crate::dataflow::shuffle::memory_budget::MemoryBudget;
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{ClusterId, HostId, Page};
use crate::job::{Clusters, MergeCondition};
use crate::overlap::prune::PageSet;
use crate::storage::spill::BLOCK_BYTES;

/// Links of a block.
const BLOCK_LINKS: usize = BLOCK_BYTES / size_of::<(Page, Page)>();

/// Links between pages of one host whose trivial clusters may merge. They come while the rows that they are found among go, and
/// lie in blocks of the same size, so that they take the memory which these give back.
#[derive(Debug, Clone, Default)]
pub struct MergingLinks {
    blocks: Vec<Vec<(Page, Page)>>,
}

impl MergingLinks {
    /// Adds links.
    pub fn extend(&mut self, links: impl IntoIterator<Item = (Page, Page)>) {
        for link in links {
            match self.blocks.last_mut() {
                Some(block) if block.len() < BLOCK_LINKS => block.push(link),
                _ => {
                    let mut block = Vec::with_capacity(BLOCK_LINKS);
                    block.push(link);
                    self.blocks.push(block);
                }
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = (Page, Page)> + '_ {
        self.blocks.iter().flatten().copied()
    }

    /// Each of them, block by block, which give their memory back.
    pub fn drain(self) -> impl Iterator<Item = (Page, Page)> {
        self.blocks.into_iter().flatten()
    }
}

/// What was found between trivial clusters before some of them changed.
pub struct Before {
    /// Rows, this worker's share.
    rows: Vec<LinkSummary>,
    /// The links that merge, likewise.
    merging: MergingLinks,
    /// Smallest pages of the trivial clusters that have other pages than before.
    changed: Arc<PageSet>,
}

impl Before {
    /// What was found of the clusters of `labels[0]`, for those of `labels[1]`.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn new(
        net: &mut Net<'_>,
        (rows, merging): (Vec<LinkSummary>, MergingLinks),
        labels: [&[ClusterId]; 2],
    ) -> Result<Before> {
        let changed = net.once(|| {
            let mut changed = PageSet::new(labels[0].len(), |_| false);
            for (before, now) in labels[0].iter().zip(labels[1]).filter(|(before, now)| before != now) {
                [before, now].into_iter().for_each(|cluster| changed.insert(cluster.smallest()));
            }
            changed
        })?;
        Ok(Before { rows, merging, changed })
    }

    /// Whether a trivial cluster has the pages that it had.
    fn stays(&self, cluster: ClusterId) -> bool {
        !self.changed.contains(cluster.smallest())
    }

    /// Adds the rows of clusters that stay, and the links that merge these.
    fn add_to(&self, labels: &[ClusterId], rows: &mut Vec<LinkSummary>, merging: &mut MergingLinks) {
        rows.extend(self.rows.iter().filter(|row| self.stays(row.src_cluster) && self.stays(row.dst_cluster)));
        merging.extend(self.merging.iter().filter(|&(src, dst)| self.stays(labels[src]) && self.stays(labels[dst])));
    }
}

/// `LinkSummary`, this worker's share of the rows, in no particular order; and the links of those that may merge if growth is
/// tolerant. `links` are this worker's, with the hosts of all pages.
///
/// Where something was found before, only links from or to clusters that have changed are counted.
///
/// # Errors
/// As [`summary`].
pub fn of_clusters(
    net: &mut Net<'_>,
    (links, hosts): (&Links, &[HostId]),
    (labels, sizes): (&[ClusterId], &[u32]),
    before: Option<Before>,
    settings: &Clusters,
    room: &MemoryBudget,
) -> Result<(Vec<LinkSummary>, MergingLinks)> {
    let is_anew = |&(src, dst): &(Page, Page)| {
        before.as_ref().is_none_or(|before| !before.stays(labels[src]) || !before.stays(labels[dst]))
    };
    let anew = || links.iter().filter(is_anew);
    let count = if before.is_some() { anew().count() } else { links.len() };
    let (mut rows, mut merging) = (Vec::new(), MergingLinks::default());
    let each = |row, between: &[ClusterLink]| {
        rows.push(row);
        if settings.merge == MergeCondition::Tolerant && may_merge(&row, settings.merge) {
            merging.extend(between.iter().map(|link| (link.src, link.dst)));
        }
    };
    summary(net, (count, anew()), hosts, (labels, sizes), settings.single_site, room, each)?;
    if let Some(before) = before {
        before.add_to(labels, &mut rows, &mut merging);
    }
    Ok((rows, merging))
}

/// `LinkSummary` from all trivial clusters of two pages or more; `each` gets the rows of the cluster pairs that this worker
/// owns, each once, in an order of their own, and the links that a row counts.
///
/// `links` come from this worker's pages, at most `count` of them; where one link between two clusters is given, all are.
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
    (count, links): (usize, impl Iterator<Item = (Page, Page)>),
    hosts: &[HostId],
    (labels, sizes): (&[ClusterId], &[u32]),
    single_site: bool,
    room: &MemoryBudget,
    mut each: impl FnMut(LinkSummary, &[ClusterLink]),
) -> Result<()> {
    let rows = links.filter(|&(src, dst)| {
        let (ri, rj) = (labels[src], labels[dst]);
        let counts = ri != rj && sizes[ri] > 1 && (sizes[rj] > 1 || !single_site);
        counts && (!single_site || hosts[src] == hosts[dst])
    });
    let clusters = |&[src, dst]: &[Page; 2]| u64::from(labels[src]) << 32 | u64::from(labels[dst]);
    let rows = rows.map(<[Page; 2]>::from);
    let mut shares = HashPartitions::laid_down(net, "LinkSummary", count as u64, rows, clusters, room)?;
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
