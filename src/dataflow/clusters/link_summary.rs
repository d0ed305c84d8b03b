//! Computes `LinkSummary` ([`webtwin_core::clusters::link_summary`]) over all workers, and the
//! links along which trivial clusters may merge.

use std::sync::Arc;

use itertools::Itertools;

use crate::clusters::links::WorkerLinks;
use crate::clusters::trivial::TrivialClusters;
use crate::shuffle::hash_partitions::HashPartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, HostId, Page};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::link_summary::{ClusterLink, LinkSummary, link_summary};
use webtwin_core::clusters::merge::may_merge;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;
use webtwin_job::{ClusterSettings, MergeCondition};
use webtwin_spill::{Array, SpillColumn};

/// Links between pages of one host whose trivial clusters may merge. They are in memory, or on the
/// local disk if memory is limited.
#[derive(Debug)]
pub struct MergingLinks {
    links: Array<[Page; 2]>,
    /// Scratch for the links of one row.
    scratch: Vec<[Page; 2]>,
}

impl MergingLinks {
    /// Creates an empty list. If memory is limited, all links are written to disk.
    fn new(net: &Net<'_>) -> MergingLinks {
        MergingLinks { links: Array::new(&net.memory.on_disk()), scratch: Vec::new() }
    }

    /// Adds links.
    fn extend(&mut self, links: impl IntoIterator<Item = [Page; 2]>) -> Result<()> {
        self.scratch.clear();
        self.scratch.extend(links);
        self.links.push(&self.scratch).map(drop)
    }

    /// Returns the links, block by block.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Vec<[Page; 2]>>> + '_ {
        self.links.blocks()
    }
}

/// Results between trivial clusters before some of these clusters changed.
pub struct PriorLinks {
    /// Rows of this worker.
    rows: SpillColumn<LinkSummary>,
    /// Links of this worker along which clusters may merge.
    merging: Arc<MergingLinks>,
    /// Smallest pages of the trivial clusters whose pages have changed.
    changed_clusters: Arc<PageSet>,
}

impl PriorLinks {
    /// Prepares the results for the trivial clusters of `previous` for reuse with the clusters of
    /// `labels`.
    ///
    /// # Errors
    /// Returns an error only if the run has ended.
    pub fn new(
        net: &mut Net<'_>,
        rows: SpillColumn<LinkSummary>,
        merging: Arc<MergingLinks>,
        previous: &SetLabels<ClusterId>,
        labels: &SetLabels<ClusterId>,
    ) -> Result<PriorLinks> {
        let changed_clusters = net.once_per_process(|| {
            let mut cluster_set = PageSet::new(labels.members(), |_| false);
            for (of_page, other) in [(previous, labels), (labels, previous)] {
                for (page, cluster) in of_page.joined().filter(|&(page, cluster)| other.label(page) != cluster) {
                    [cluster, other.label(page)].into_iter().for_each(|cluster| cluster_set.insert(cluster.smallest()));
                }
            }
            cluster_set
        })?;
        Ok(PriorLinks { rows, merging, changed_clusters })
    }

    /// True if a trivial cluster has the same pages as before.
    fn stays(&self, cluster: ClusterId) -> bool {
        !self.changed_clusters.contains(cluster.smallest())
    }

    /// Adds the rows of unchanged clusters, and the links along which these may merge.
    fn add_to(
        &self,
        labels: &SetLabels<ClusterId>,
        rows: &mut SpillColumn<LinkSummary>,
        merging: &mut MergingLinks,
    ) -> Result<()> {
        for block in self.rows.blocks() {
            let block = block?;
            let stay = block.iter().filter(|row| self.stays(row.src_cluster) && self.stays(row.dst_cluster));
            stay.copied().try_for_each(|row| rows.push(row))?;
        }
        let stays = |link: &[Page; 2]| link.iter().all(|&page| self.stays(labels.label(page)));
        self.merging.blocks().try_for_each(|block| merging.extend(block?.into_iter().filter(stays)))
    }
}

/// Computes `LinkSummary`. Returns this worker's rows in no particular order, and, if growth is
/// tolerant, the links of the rows whose clusters may merge. `links` are this worker's links, and
/// `hosts` are the hosts of all pages.
///
/// If there are earlier results, only links from or to changed clusters are counted.
///
/// # Errors
/// Returns any error of [`summary`].
pub fn of_clusters(
    net: &mut Net<'_>,
    links: &WorkerLinks,
    hosts: &[HostId],
    trivial: &TrivialClusters,
    prior_links: Option<PriorLinks>,
    settings: &ClusterSettings,
) -> Result<(SpillColumn<LinkSummary>, Arc<MergingLinks>)> {
    let labels = &*trivial.labels;
    let is_recounted = |&(src, dst): &(Page, Page)| {
        prior_links.as_ref().is_none_or(|before| !before.stays(labels.label(src)) || !before.stays(labels.label(dst)))
    };
    let count = match &prior_links {
        None => links.len(),
        Some(_) => links
            .blocks()
            .map(|block| Ok(block?.iter().filter(|link| is_recounted(link)).count()))
            .sum::<Result<_>>()?,
    };
    let (mut rows, mut merging) = (SpillColumn::new(&net.memory), MergingLinks::new(net));
    let visit = |row, between: &[ClusterLink]| {
        rows.push(row)?;
        if settings.merge == MergeCondition::Tolerant && may_merge(&row, settings.merge) {
            merging.extend(between.iter().map(|link| [link.src, link.dst]))?;
        }
        Ok(())
    };
    let recounted = links.blocks().flatten_ok().filter_ok(is_recounted);
    summary(net, count, recounted, hosts, trivial, settings.single_site, visit)?;
    if let Some(prior) = prior_links {
        prior.add_to(labels, &mut rows, &mut merging)?;
    }
    Ok((rows, Arc::new(merging)))
}

/// Computes `LinkSummary` from all trivial clusters of two or more pages. `visit` receives the rows
/// of the cluster pairs that this worker owns, each once and in no particular order, and the links
/// that a row counts.
///
/// `links` come from this worker's pages, at most `count` of them. If one link between two clusters
/// is given, all links between them must be given. With `single_site` only links within a host
/// count, and links to a page without copies do not: copies that all link to such a page on their
/// own host are not mirrors. Takes one exchange.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`] if
/// links beyond the memory budget do not fit on the disk. Returns any error of `visit`, and an
/// error if the run has ended.
///
/// # Memory
/// Takes 8 bytes for each link that counts, or the budget of the step if it is smaller, and 20 more
/// for each link of one partition of some megabytes.
pub fn summary(
    net: &mut Net<'_>,
    count: usize,
    links: impl Iterator<Item = Result<(Page, Page)>>,
    hosts: &[HostId],
    TrivialClusters { labels, sizes }: &TrivialClusters,
    single_site: bool,
    mut visit: impl FnMut(LinkSummary, &[ClusterLink]) -> Result<()>,
) -> Result<()> {
    let rows = links.filter_ok(|&(src, dst)| {
        let has_copies = labels.is_joined(src) && (labels.is_joined(dst) || !single_site);
        has_copies && labels.label(src) != labels.label(dst) && (!single_site || hosts[src] == hosts[dst])
    });
    let clusters = |&[src, dst]: &[Page; 2]| u64::from(labels.label(src)) << 32 | u64::from(labels.label(dst));
    let rows = rows.map_ok(<[Page; 2]>::from);
    let mut shares = HashPartitions::new(net, "LinkSummary", count as u64, rows, clusters)?;
    let (mut share_rows, mut between) = (Vec::new(), Vec::new());
    for number in 0..shares.count() {
        net.check()?;
        shares.take(number, &mut share_rows)?;
        between.clear();
        between.extend(share_rows.iter().map(|&[src, dst]| {
            let (src_cluster, dst_cluster) = (labels.label(src), labels.label(dst));
            ClusterLink { src_cluster, dst_cluster, src, dst }
        }));
        let rows = link_summary(&mut between, |cluster| sizes.size(cluster));
        let links = between.chunk_by(|x, y| (x.src_cluster, x.dst_cluster) == (y.src_cluster, y.dst_cluster));
        rows.into_iter().zip(links).try_for_each(|(row, links)| visit(row, links))?;
    }
    Ok(())
}
