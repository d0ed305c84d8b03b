//! Growth as a step: from trivial clusters to `LinkSummary` and similar clusters, by the merge
//! condition of the job.

use std::sync::Arc;

use super::link_summary::{self, MergingLinks, PriorLinks};
use super::trivial::TrivialClusters;
use super::{context_pairs, growth, tolerant};
use crate::run::WorkerRun;
use crate::steps::RunStep;
use crate::web::WorkerWeb;
use webtwin_base::error::Result;
use webtwin_base::ids::ClusterId;
use webtwin_core::clusters::collection::SimilarCluster;
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::link_summary::LinkSummary;
use webtwin_core::clusters::merge::may_merge;
use webtwin_engine::Net;
use webtwin_job::MergeCondition;
use webtwin_spill::SpillColumn;

/// Bytes for each page that growth takes in each process, even if everything else is on disk: sizes
/// of clusters, and components of the TCG unless growth is tolerant ([`growth`]).
const PAGE_BYTES: u64 = 9;

/// Bytes that growth takes in addition for each page that the process owns: piece and similar
/// cluster ([`tolerant`]).
const OWN_PAGE_BYTES: u64 = 8;

/// Step that computes `LinkSummary` and similar clusters.
pub const GROWTH: RunStep = RunStep { name: "growth", bytes_a_page: PAGE_BYTES, bytes_an_own_page: OWN_PAGE_BYTES };

/// Step that repeats growth with the pairs of the context pass.
pub const SECOND_GROWTH: RunStep =
    RunStep { name: "second-growth", bytes_a_page: PAGE_BYTES, bytes_an_own_page: OWN_PAGE_BYTES };

/// Result of the growth of trivial clusters.
pub struct GrowthResult {
    /// Rows of `LinkSummary` of this worker.
    pub link_summary: SpillColumn<LinkSummary>,
    /// Similar clusters, each at the owner of its name by key.
    pub similar_clusters: Vec<SimilarCluster>,
    /// Links along which clusters may merge, for growth after a context pass. `None` if the rest
    /// was restored from a checkpoint.
    merging: Option<Arc<MergingLinks>>,
}

impl GrowthResult {
    /// Grows trivial clusters. `prior_links` contains earlier results for clusters that have not
    /// changed.
    ///
    /// # Errors
    /// Returns any error of [`link_summary::of_clusters`], [`tolerant::similar_clusters`] and
    /// [`growth::similar_clusters`].
    pub fn grow(
        run: &mut WorkerRun<'_, '_>,
        web: &WorkerWeb,
        step: RunStep,
        trivial: &TrivialClusters,
        prior_links: Option<PriorLinks>,
    ) -> Result<GrowthResult> {
        let keeps = context_pairs::is_asked_for(run.job) && step == GROWTH;
        let mut kept_merging = None;
        let (link_summary, similar_clusters) = run.recorded(web, step, |run| {
            let hosts = &web.crawl.directory.hosts;
            let (link_summary, merging) =
                link_summary::of_clusters(run.net, &web.links, hosts, trivial, prior_links, &run.job.clusters)?;
            kept_merging = keeps.then(|| Arc::clone(&merging));
            let edges = edges_of(&link_summary, run.job.clusters.merge)?;
            let similar_clusters = collections(run, web, trivial, edges, merging)?;
            Ok((link_summary, similar_clusters))
        })?;
        // A restored column is in memory and may have to be spilled.
        let link_summary = link_summary.onto(&run.net.memory)?;
        Ok(GrowthResult { link_summary, similar_clusters, merging: kept_merging })
    }

    /// Returns the results that remain valid when the trivial clusters change from `previous` to
    /// `labels`. The rest is dropped.
    ///
    /// # Errors
    /// Returns an error only if the run has ended.
    pub fn left(
        self,
        net: &mut Net<'_>,
        previous: TrivialClusters,
        labels: &SetLabels<ClusterId>,
    ) -> Result<Option<PriorLinks>> {
        let GrowthResult { link_summary, merging, .. } = self;
        merging.map(|merging| PriorLinks::new(net, link_summary, merging, &previous.labels, labels)).transpose()
    }
}

/// Finds this worker's similar clusters.
fn collections(
    run: &mut WorkerRun<'_, '_>,
    web: &WorkerWeb,
    trivial: &TrivialClusters,
    edges: Vec<(ClusterId, ClusterId)>,
    merging: Arc<MergingLinks>,
) -> Result<Vec<SimilarCluster>> {
    let WorkerWeb { crawl, links, incoming_links, .. } = web;
    let (net, directory, settings) = (&mut *run.net, &crawl.directory, &run.job.clusters);
    match settings.merge {
        MergeCondition::Tolerant => {
            tolerant::similar_clusters(net, directory, &trivial.labels, merging, links, incoming_links, settings)
        }
        MergeCondition::Exact | MergeCondition::Extended => {
            growth::similar_clusters(net, directory, &trivial.labels, links, incoming_links, edges, settings)
        }
    }
}

/// Returns the edges of the TCG among rows of `LinkSummary`. There are none if growth is tolerant,
/// which uses links instead.
pub(crate) fn edges_of(
    link_summary: &SpillColumn<LinkSummary>,
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
