//! Growth as a step: from trivial clusters to `LinkSummary` and similar clusters, by the condition that a job sets.

use std::sync::Arc;

use super::link_summary::{self, Before, MergingLinks};
use super::trivial::Trivial;
use super::{growth, second_look, tolerant};
use crate::run::Run;
use crate::steps::Step;
use crate::web::Web;
use webtwin_base::error::Result;
use webtwin_base::ids::ClusterId;
use webtwin_core::clusters::collection::SimilarCluster;
use webtwin_core::clusters::link_summary::LinkSummary;
use webtwin_core::clusters::merge::may_merge;
use webtwin_core::clusters::union_find::sizes;
use webtwin_engine::Net;
use webtwin_job::MergeCondition;
use webtwin_spill::Column;

/// Bytes a page that growth takes in each process, whatever is on disk: sizes of clusters, and components of the TCG
/// where growth is not tolerant ([`growth`]).
const A_PAGE: u64 = 12;

/// Bytes of a page of its own that it takes in each process: piece and similar cluster ([`tolerant`]).
const AN_OWN_PAGE: u64 = 8;

/// `LinkSummary` and similar clusters.
pub const GROWTH: Step = Step { name: "growth", bytes_a_page: A_PAGE, bytes_an_own_page: AN_OWN_PAGE };

/// The same once more, with the pairs of the context pass.
pub const SECOND_GROWTH: Step = Step { name: "second-growth", bytes_a_page: A_PAGE, bytes_an_own_page: AN_OWN_PAGE };

/// What trivial clusters grew to.
pub struct Grown {
    /// Pages of every trivial cluster.
    pub sizes: Arc<Vec<u32>>,
    /// Rows of `LinkSummary`, this worker's share.
    pub link_summary: Column<LinkSummary>,
    /// Similar clusters, with the owners of their names by key.
    pub similar_clusters: Vec<SimilarCluster>,
    /// The links that merged, for growth after a second look; none where the rest is from a record.
    merging: Option<Arc<MergingLinks>>,
}

impl Grown {
    /// Grows the trivial clusters of `labels`, of some of which is known what was `before`.
    ///
    /// # Errors
    /// Those of [`link_summary::of_clusters`], [`tolerant::similar_clusters`] and [`growth::similar_clusters`].
    pub fn of(
        run: &mut Run<'_, '_>,
        web: &Web,
        step: Step,
        labels: &[ClusterId],
        before: Option<Before>,
    ) -> Result<Grown> {
        let sizes = run.net.once_per_process(|| sizes(labels))?;
        let keeps = second_look::is_asked_for(run.job) && step == GROWTH;
        let mut kept = None;
        let (link_summary, similar_clusters) = run.recorded(web, step, |run| {
            let (trivial, hosts) = (Trivial { labels, sizes: &sizes }, &web.crawl.directory.hosts);
            let (link_summary, merging) =
                link_summary::of_clusters(run.net, &web.links, hosts, trivial, before, &run.job.clusters)?;
            kept = keeps.then(|| Arc::clone(&merging));
            let edges = edges_of(&link_summary, run.job.clusters.merge)?;
            let similar_clusters = collections(run, web, trivial, edges, merging)?;
            Ok((link_summary, similar_clusters))
        })?;
        // One that was restored is in memory.
        let link_summary = link_summary.onto(&run.net.memory)?;
        Ok(Grown { sizes, link_summary, similar_clusters, merging: kept })
    }

    /// What holds on for the clusters of `labels`, if they were those of `previous`; the rest is dropped.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn left(
        self,
        net: &mut Net<'_>,
        previous: Arc<Vec<ClusterId>>,
        labels: &[ClusterId],
    ) -> Result<Option<Before>> {
        let Grown { link_summary, merging, .. } = self;
        merging.map(|merging| Before::new(net, link_summary, merging, [&previous, labels])).transpose()
    }
}

/// This worker's similar clusters.
fn collections(
    run: &mut Run<'_, '_>,
    web: &Web,
    trivial: Trivial<'_>,
    edges: Vec<(ClusterId, ClusterId)>,
    merging: Arc<MergingLinks>,
) -> Result<Vec<SimilarCluster>> {
    let Web { crawl, links, from_elsewhere, .. } = web;
    let (net, directory, settings) = (&mut *run.net, &crawl.directory, &run.job.clusters);
    match settings.merge {
        MergeCondition::Tolerant => {
            tolerant::similar_clusters(net, directory, trivial, merging, links, from_elsewhere, settings)
        }
        MergeCondition::Exact | MergeCondition::Extended => {
            growth::similar_clusters(net, directory, trivial.labels, links, from_elsewhere, edges, settings)
        }
    }
}

/// The edges of the TCG among rows of `LinkSummary`; none where growth is tolerant, which goes by links.
pub(crate) fn edges_of(
    link_summary: &Column<LinkSummary>,
    merge: MergeCondition,
) -> Result<Vec<(ClusterId, ClusterId)>> {
    let mut edges = Vec::new();
    if merge == MergeCondition::Tolerant {
        return Ok(edges);
    }
    for block in link_summary.blocks() {
        let block = block?;
        let merging = block.iter().filter(|row| may_merge(row, merge));
        edges.extend(merging.map(|row| (row.src_cluster, row.dst_cluster)));
    }
    Ok(edges)
}
