//! `LinkSummary` ([`webtwin_core::clusters::link_summary`]) over all workers, and the links along which trivial clusters may merge.

use std::sync::Arc;

use itertools::Itertools;

use crate::clusters::links::Links;
use crate::clusters::trivial::Trivial;
use crate::shuffle::hash_partitions::HashPartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, HostId, Page};
use webtwin_core::clusters::link_summary::{ClusterLink, LinkSummary, link_summary};
use webtwin_core::clusters::merge::may_merge;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;
use webtwin_job::{Clusters, MergeCondition};
use webtwin_spill::{Array, Column};

/// Links between pages of one host whose trivial clusters may merge: in memory, or on the local disk where that has a bound.
#[derive(Debug)]
pub struct MergingLinks {
    links: Array<[Page; 2]>,
    /// Where those of a row are put together.
    room: Vec<[Page; 2]>,
}

impl MergingLinks {
    /// None yet. Where memory has a bound, the disk takes all of them.
    fn new(net: &Net<'_>) -> MergingLinks {
        MergingLinks { links: Array::new(&net.memory.on_disk()), room: Vec::new() }
    }

    /// Adds links.
    fn extend(&mut self, links: impl IntoIterator<Item = [Page; 2]>) -> Result<()> {
        self.room.clear();
        self.room.extend(links);
        self.links.push(&self.room).map(drop)
    }

    /// Each of them, some at a time.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Vec<[Page; 2]>>> + '_ {
        self.links.blocks()
    }
}

/// What was found between trivial clusters before some of them changed.
pub struct Before {
    /// Rows, this worker's share.
    rows: Column<LinkSummary>,
    /// The links that merge, likewise.
    merging: Arc<MergingLinks>,
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
        rows: Column<LinkSummary>,
        merging: Arc<MergingLinks>,
        labels: [&[ClusterId]; 2],
    ) -> Result<Before> {
        let changed = net.once_per_process(|| {
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
    fn add_to(&self, labels: &[ClusterId], rows: &mut Column<LinkSummary>, merging: &mut MergingLinks) -> Result<()> {
        for block in self.rows.blocks() {
            let block = block?;
            let stay = block.iter().filter(|row| self.stays(row.src_cluster) && self.stays(row.dst_cluster));
            stay.copied().try_for_each(|row| rows.push(row))?;
        }
        let stays = |link: &[Page; 2]| link.iter().all(|&page| self.stays(labels[page]));
        self.merging.blocks().try_for_each(|block| merging.extend(block?.into_iter().filter(stays)))
    }
}

/// `LinkSummary`, this worker's share of the rows, in no particular order; and the links of those that may merge if growth is
/// tolerant. `links` are this worker's, `hosts` those of all pages.
///
/// Where something was found before, only links from or to clusters that have changed are counted.
///
/// # Errors
/// As [`summary`].
pub fn of_clusters(
    net: &mut Net<'_>,
    links: &Links,
    hosts: &[HostId],
    trivial: Trivial<'_>,
    before: Option<Before>,
    settings: &Clusters,
) -> Result<(Column<LinkSummary>, Arc<MergingLinks>)> {
    let labels = trivial.labels;
    let is_anew = |&(src, dst): &(Page, Page)| {
        before.as_ref().is_none_or(|before| !before.stays(labels[src]) || !before.stays(labels[dst]))
    };
    let count = match &before {
        None => links.len(),
        Some(_) => {
            links.blocks().map(|block| Ok(block?.iter().filter(|link| is_anew(link)).count())).sum::<Result<_>>()?
        }
    };
    let (mut rows, mut merging) = (Column::new(&net.memory), MergingLinks::new(net));
    let each = |row, between: &[ClusterLink]| {
        rows.push(row)?;
        if settings.merge == MergeCondition::Tolerant && may_merge(&row, settings.merge) {
            merging.extend(between.iter().map(|link| [link.src, link.dst]))?;
        }
        Ok(())
    };
    let anew = links.blocks().flatten_ok().filter_ok(is_anew);
    summary(net, count, anew, hosts, trivial, settings.single_site, each)?;
    if let Some(before) = before {
        before.add_to(labels, &mut rows, &mut merging)?;
    }
    Ok((rows, Arc::new(merging)))
}

/// `LinkSummary` from all trivial clusters of two pages or more; `each` gets the rows of the cluster pairs that this worker
/// owns, each once, in an order of their own, and the links that a row counts.
///
/// `links` come from this worker's pages, at most `count` of them; where one link between two clusters is given, all are.
/// With `single_site` only links within a host
/// count, and none to a page without copies: copies that all link to it on their own host are no mirrors. One exchange.
///
/// # Errors
/// [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] when the disk does not take what has no
/// room in memory; those of `each`; or when the run has ended.
///
/// # Memory
/// 8 bytes for each link that counts, or what the step has memory for; 20 more for those of some megabytes' worth at a time.
pub fn summary(
    net: &mut Net<'_>,
    count: usize,
    links: impl Iterator<Item = Result<(Page, Page)>>,
    hosts: &[HostId],
    Trivial { labels, sizes }: Trivial<'_>,
    single_site: bool,
    mut each: impl FnMut(LinkSummary, &[ClusterLink]) -> Result<()>,
) -> Result<()> {
    let rows = links.filter_ok(|&(src, dst)| {
        let (ri, rj) = (labels[src], labels[dst]);
        let counts = ri != rj && sizes[ri] > 1 && (sizes[rj] > 1 || !single_site);
        counts && (!single_site || hosts[src] == hosts[dst])
    });
    let clusters = |&[src, dst]: &[Page; 2]| u64::from(labels[src]) << 32 | u64::from(labels[dst]);
    let rows = rows.map_ok(<[Page; 2]>::from);
    let mut shares = HashPartitions::new(net, "LinkSummary", count as u64, rows, clusters)?;
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
        rows.into_iter().zip(links).try_for_each(|(row, links)| each(row, links))?;
    }
    Ok(())
}
