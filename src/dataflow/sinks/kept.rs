//! Choice of the copies that are kept, and the rows of collections: the last step with a checkpoint
//! before tables.
//!
//! Its input are trivial clusters, similar clusters and links. Its output is [`KeepResult`], from
//! which tables, exports and the summary are built.

use serde::{Deserialize, Serialize};

use super::avoid::{self, ChosenPages, PageLinks};
use super::collection_rows::{CollectionRow, MemberRow};
use super::contents::PageFacts;
use super::kept_before::{self, KeepChanges};
use super::pins::{self, PinCounts};
use super::reachability::{Reachability, ReachabilityCounts};
use super::report;
use super::substitutes;
use super::verdict::PageVerdict;
use crate::clusters::places;
use crate::clusters::trivial::TrivialClusters;
use crate::pairs::kinds::PairKind;
use crate::pairs::similar::SimilarPages;
use crate::run;
use crate::shuffle::page_set::page_set;
use crate::steps::RunStep;
use crate::web::WorkerWeb;
use webtwin_base::error::Result;
use webtwin_core::applications::keep::Keeping;
use webtwin_core::clusters::collection::SimilarCluster;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;
use webtwin_job::{AttachmentRule, MergeCondition};
use webtwin_results::FinishedRun;
use webtwin_results::decisions::Decisions;
use webtwin_spill::SpillColumn;

/// Bytes for each page that the step takes in each process to choose among copies, even if
/// everything else is on disk ([`super::avoid`], [`super::reachability`]).
const PAGE_BYTES: u64 = 21;

/// Step that chooses the copies that are kept, and builds the rows of collections.
pub const KEEPING: RunStep = RunStep { name: "keeping", bytes_a_page: PAGE_BYTES, bytes_an_own_page: 0 };

/// Input of the step in addition to the web of the crawl.
pub struct KeepInput<'a> {
    /// Trivial clusters.
    pub trivial: &'a TrivialClusters,
    /// Similar pages, among them exact pairs and pages that others rightly declare canonical.
    pub similar: &'a SimilarPages,
    /// Decisions that users made about pages.
    pub decisions: &'a Decisions,
    /// Result that `keep.sticky` names.
    pub previous_run: Option<&'a FinishedRun>,
}

/// Result of the step. Rows are those of this worker. Counts are the same on every worker unless
/// stated otherwise.
#[derive(Serialize, Deserialize)]
pub struct KeepResult {
    /// Verdicts on the pages of trivial clusters, ascending, at the owner of the cluster's smallest
    /// page.
    pub verdicts: SpillColumn<PageVerdict>,
    /// Collections, ascending, at the owner of their similar cluster's smallest page.
    pub collections: Vec<CollectionRow>,
    /// Pages of collections, ascending, at the owner of their similar cluster's smallest page.
    pub members: SpillColumn<MemberRow>,
    /// Pages that were attached to a collection by their place.
    pub attached: u64,
    /// Pages removed from the similar clusters of this worker.
    pub taken_out: u64,
    /// Effect of the avoid list on the paths of a crawler that obeys it.
    pub ways: ReachabilityCounts,
    /// Outcome for the pages that the earlier result kept.
    pub kept_before: Option<KeepChanges>,
    /// Outcome for the pages that a person has pinned.
    pub pins: Option<PinCounts>,
}

impl KeepResult {
    /// Decides which pages are kept, and builds the rows of collections. `similar_clusters` are at
    /// the owners of their names, by key. Releases the chunks of the local pages, and the numbers
    /// of links from other hosts.
    ///
    /// # Errors
    /// Returns any error of [`kept_before::read`]. Returns
    /// [`webtwin_base::error::Error::MemoryLimit`] or a similar error if memory or disk space does
    /// not suffice.
    pub fn decide(
        run: &mut run::WorkerRun<'_, '_>,
        web: &mut WorkerWeb,
        similar_clusters: Vec<SimilarCluster>,
        input: &KeepInput<'_>,
    ) -> Result<KeepResult> {
        let originals =
            page_set(run.net, "canonical pages", input.similar.originals.clone(), web.crawl.directory.len())?;
        let result = run.recorded(web, KEEPING, |run| keep(run, web, similar_clusters, input, &originals))?;
        // Also after the step was restored: no later step reads them.
        run.local_pages.fprints.clear();
        web.incoming_links = SpillColumn::default();
        let (members, verdicts) = (result.members.onto(&run.net.memory)?, result.verdicts.onto(&run.net.memory)?);
        Ok(KeepResult { members, verdicts, ..result })
    }
}

fn keep(
    run: &mut run::WorkerRun<'_, '_>,
    web: &WorkerWeb,
    mut similar_clusters: Vec<SimilarCluster>,
    input: &KeepInput<'_>,
    originals: &PageSet,
) -> Result<KeepResult> {
    let &KeepInput { trivial, decisions, .. } = input;
    let labels = &*trivial.labels;
    let WorkerWeb { crawl, links, incoming_links, links_to_host } = web;
    let run::WorkerRun { net, job, local_pages, earlier_pairs, .. } = run;
    let mut attached = 0;
    if job.clusters.merge == MergeCondition::Tolerant && job.clusters.attach == AttachmentRule::Nearby {
        attached = places::attach(net, crawl, links, labels, &mut similar_clusters)?;
    }

    let keeping = Keeping::new(&job.keep);
    let seeds = avoid::seeds(&job.keep);
    let memory_is_bounded = job.effort.memory_bytes > 0;
    let gather_reachability = |net: &mut Net<'_>| Reachability::gather(net, crawl, links, incoming_links, &seeds);
    let mut through = gather_reachability(net)?;
    let depths = through.depths(net, crawl)?;
    // If memory is limited, crawl paths are dropped to free memory for copies, and gathered again
    // afterwards.
    let through = (!memory_is_bounded).then_some(through);
    let linked = PageLinks { incoming_links, depths: &depths, links_to_host };
    let memory = kept_before::read(net, crawl, &job.keep, input.previous_run)?;
    let pinned_pages = pins::pages(crawl, &decisions.pins)?;
    let first_earlier_source = earlier_pairs.as_ref().map_or(u32::MAX, |earlier| earlier.first_source);
    let chosen_pages = ChosenPages {
        previously_kept: &memory.pages,
        pinned_pages: &pinned_pages,
        originals,
        seeds: &seeds,
        first_earlier_source,
    };
    let copies = avoid::copies(net, crawl, trivial, &keeping, &linked, &chosen_pages)?;
    drop(depths);
    let judged_clusters = avoid::judge(net, &copies, &similar_clusters, links_to_host, &keeping)?;
    let mut verdicts = avoid::verdicts(net, crawl, copies, &judged_clusters, &keeping, job.keep.min_resemblance > 0.0)?;
    substitutes::compare(net, crawl, local_pages, labels, &mut verdicts, job.keep.min_resemblance, &keeping)?;
    let reuse_or_gather = |net: &mut Net<'_>| through.map_or_else(|| gather_reachability(net), Ok);
    let ways = avoid::keep_reachable(net, crawl, labels, &mut verdicts, reuse_or_gather)?;
    let keep_changes = memory.outcome(net, &verdicts)?;
    let pins = pins::outcome(net, crawl, !job.keep.pins.is_empty(), &decisions.pins, &verdicts)?;
    let facts = PageFacts { labels, links, exact_pairs: input.similar.pairs.column(PairKind::Exact) };
    let (collections, members) = report::rows(net, crawl, &judged_clusters, facts)?;
    let single_clusters = similar_clusters.iter().filter(|cluster| !cluster.double);
    let removed_pages = single_clusters.map(|cluster| u64::from(cluster.taken_out)).sum();
    Ok(KeepResult {
        verdicts,
        collections,
        members,
        attached,
        taken_out: removed_pages,
        ways,
        kept_before: keep_changes,
        pins,
    })
}
