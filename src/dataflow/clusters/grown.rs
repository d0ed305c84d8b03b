//! Growth as a step: from trivial clusters to `LinkSummary` and similar clusters, by the condition that a job sets.

use std::sync::Arc;

use super::link_summary::{self, Before, MergingLinks};
use super::links::Links;
use super::{growth, second_look, tolerant};
use crate::clusters::collection::SimilarCluster;
use crate::clusters::link_summary::LinkSummary;
use crate::clusters::merge::may_merge;
use crate::clusters::union_find::sizes;
use crate::dataflow::shuffle::directory::Directory;
use crate::dataflow::shuffle::memory_budget::MemoryBudget;
use crate::dataflow::steps::{self, Step, Steps};
use crate::engine::Net;
use crate::error::Result;
use crate::ids::ClusterId;
use crate::job::{Clusters, Job, MergeCondition};
use crate::storage::aside::Aside;

/// What growth sees of the crawl beside trivial clusters.
pub struct Web<'a> {
    /// Hosts and owners of all pages.
    pub directory: &'a Directory,
    /// Links from this worker's pages.
    pub links: &'a Links,
    /// Links from other hosts to this worker's pages, in their order.
    pub from_elsewhere: &'a Aside<u32>,
}

/// What trivial clusters grew to.
pub struct Grown {
    /// Pages of every trivial cluster.
    pub sizes: Arc<Vec<u32>>,
    /// Rows of `LinkSummary`, this worker's share.
    pub link_summary: Aside<LinkSummary>,
    /// Similar clusters, with the owners of their names by key.
    pub similar_clusters: Vec<SimilarCluster>,
    /// The links that merged, for growth after a second look; none where the rest is from a record.
    merging: Option<Arc<MergingLinks>>,
}

impl Grown {
    /// What holds on for the clusters of `labels[1]`, if they were those of `labels[0]`; the rest is dropped.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn left(self, net: &mut Net<'_>, labels: [&[ClusterId]; 2]) -> Result<Option<Before>> {
        let Grown { link_summary, merging, .. } = self;
        merging.map(|merging| Before::new(net, (link_summary, merging), labels)).transpose()
    }
}

impl Web<'_> {
    /// Grows the trivial clusters of `labels`, of some of which is known what was `before`. The step is recorded.
    ///
    /// # Errors
    /// Those of [`link_summary::of_clusters`], [`tolerant::similar_clusters`] and [`growth::similar_clusters`].
    pub fn grow(
        &self,
        net: &mut Net<'_>,
        (steps, step): (&mut Steps<'_>, Step),
        labels: &[ClusterId],
        before: Option<Before>,
        job: &Job,
        room: &MemoryBudget,
    ) -> Result<Grown> {
        let sizes = net.once(|| sizes(labels))?;
        let keeps = second_look::is_asked_for(job) && step == steps::GROWTH;
        let mut kept = None;
        let (link_summary, similar_clusters) = steps.step(net, step, |net| {
            let links = (self.links, &self.directory.hosts[..]);
            let (link_summary, merging) =
                link_summary::of_clusters(net, links, (labels, &sizes), before, &job.clusters, room)?;
            kept = keeps.then(|| Arc::clone(&merging));
            let edges = edges_of(&link_summary, job.clusters.merge)?;
            let similar_clusters = self.collections(net, (labels, &sizes), (edges, merging), &job.clusters, room)?;
            Ok((link_summary, similar_clusters))
        })?;
        // One that was taken from a record is in memory.
        let link_summary = link_summary.onto(room.disk_if_bounded(net).as_ref())?;
        Ok(Grown { sizes, link_summary, similar_clusters, merging: kept })
    }

    /// This worker's similar clusters.
    fn collections(
        &self,
        net: &mut Net<'_>,
        (labels, sizes): (&[ClusterId], &[u32]),
        (edges, merging): (Vec<(ClusterId, ClusterId)>, Arc<MergingLinks>),
        settings: &Clusters,
        room: &MemoryBudget,
    ) -> Result<Vec<SimilarCluster>> {
        let &Web { directory, links, from_elsewhere } = self;
        match settings.merge {
            MergeCondition::Tolerant => {
                let clusters = (labels, sizes);
                tolerant::similar_clusters(net, directory, clusters, merging, (links, from_elsewhere), settings, room)
            }
            MergeCondition::Exact | MergeCondition::Extended => {
                growth::similar_clusters(net, directory, labels, (links, from_elsewhere), edges, settings, room)
            }
        }
    }
}

/// The edges of the TCG among rows of `LinkSummary`; none where growth is tolerant, which goes by links.
fn edges_of(link_summary: &Aside<LinkSummary>, merge: MergeCondition) -> Result<Vec<(ClusterId, ClusterId)>> {
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
