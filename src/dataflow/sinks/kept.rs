//! Choice of the copies that are kept, and the rows of collections: the last step with a checkpoint
//! before tables.
//!
//! Its input are trivial clusters, similar clusters and links. Its output is [`Kept`], from which
//! tables, exports and the summary are built.

use serde::{Deserialize, Serialize};

use super::avoid::{self, Chosen, Linked};
use super::collection_rows::{CollectionRow, MemberRow};
use super::contents::Told;
use super::kept_before::{self, KeptBefore};
use super::pins::{self, PinCounts};
use super::report;
use super::substitutes;
use super::verdict::Verdict;
use super::ways::{Ways, WaysThrough};
use crate::clusters::places;
use crate::clusters::trivial::Trivial;
use crate::pairs::kinds::Kind;
use crate::pairs::similar::Similar;
use crate::run;
use crate::shuffle::page_set::page_set;
use crate::steps::Step;
use crate::web::Web;
use webtwin_base::error::Result;
use webtwin_base::ids::ClusterId;
use webtwin_core::applications::keep::Keeping;
use webtwin_core::clusters::collection::SimilarCluster;
use webtwin_core::clusters::union_find::sizes;
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;
use webtwin_job::{Attach, MergeCondition};
use webtwin_results::Run;
use webtwin_results::decisions::Decisions;
use webtwin_spill::Column;

/// Bytes for each page that the step takes in each process to choose among copies, even if
/// everything else is on disk ([`super::avoid`], [`super::ways`]).
const A_PAGE: u64 = 24;

/// Step that chooses the copies that are kept, and builds the rows of collections.
pub const KEEPING: Step = Step { name: "keeping", bytes_a_page: A_PAGE, bytes_an_own_page: 0 };

/// Input of the step in addition to the web of the crawl.
pub struct Given<'a> {
    /// Trivial cluster of every page.
    pub labels: &'a [ClusterId],
    /// Similar pages, among them exact pairs and pages that others rightly declare canonical.
    pub similar: &'a Similar,
    /// Decisions that users made about pages.
    pub decisions: &'a Decisions,
    /// Result that `keep.sticky` names.
    pub earlier: Option<&'a Run>,
}

/// Result of the step. Rows are those of this worker. Counts are the same on every worker unless
/// stated otherwise.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    /// Verdicts on the pages of trivial clusters, ascending, at the owner of the cluster's smallest
    /// page.
    pub verdicts: Column<Verdict>,
    /// Collections, ascending, at the owner of their similar cluster's smallest page.
    pub collections: Vec<CollectionRow>,
    /// Pages of collections, ascending, at the owner of their similar cluster's smallest page.
    pub members: Column<MemberRow>,
    /// Pages that were attached to a collection by their place.
    pub attached: u64,
    /// Pages removed from the similar clusters of this worker.
    pub taken_out: u64,
    /// Effect of the avoid list on the paths of a crawler that obeys it.
    pub ways: Ways,
    /// Outcome for the pages that the earlier result kept.
    pub kept_before: Option<KeptBefore>,
    /// Outcome for the pages that a person has pinned.
    pub pins: Option<PinCounts>,
}

impl Kept {
    /// Decides which pages are kept, and builds the rows of collections. `similar_clusters` are at
    /// the owners of their names, by key. Releases the chunks of the local pages, and the numbers
    /// of links from other hosts.
    ///
    /// # Errors
    /// Returns any error of [`kept_before::read`]. Returns
    /// [`webtwin_base::error::Error::MemoryLimit`] or a similar error if memory or disk space does
    /// not suffice.
    pub fn of(
        run: &mut run::Run<'_, '_>,
        web: &mut Web,
        similar_clusters: Vec<SimilarCluster>,
        given: &Given<'_>,
    ) -> Result<Kept> {
        let originals =
            page_set(run.net, "canonical pages", given.similar.originals.clone(), web.crawl.directory.len())?;
        let kept = run.recorded(web, KEEPING, |run| keep(run, web, similar_clusters, given, &originals))?;
        // Also after the step was restored: no later step reads them.
        run.shelf.fprints.clear();
        web.from_elsewhere = Column::default();
        let (members, verdicts) = (kept.members.onto(&run.net.memory)?, kept.verdicts.onto(&run.net.memory)?);
        Ok(Kept { members, verdicts, ..kept })
    }
}

fn keep(
    run: &mut run::Run<'_, '_>,
    web: &Web,
    mut similar_clusters: Vec<SimilarCluster>,
    given: &Given<'_>,
    originals: &PageSet,
) -> Result<Kept> {
    let &Given { labels, decisions, .. } = given;
    let Web { crawl, links, from_elsewhere, links_to_host } = web;
    let run::Run { net, job, shelf, earlier, .. } = run;
    let mut attached = 0;
    if job.clusters.merge == MergeCondition::Tolerant && job.clusters.attach == Attach::Nearby {
        attached = places::attach(net, crawl, links, labels, &mut similar_clusters)?;
    }

    let keeping = Keeping::new(&job.keep);
    let seeds = avoid::seeds(&job.keep);
    let memory_is_bounded = job.effort.memory_bytes > 0;
    let gathered = |net: &mut Net<'_>| WaysThrough::gather(net, crawl, links, from_elsewhere, &seeds);
    let mut through = gathered(net)?;
    let depths = through.depths(net, crawl)?;
    // If memory is limited, crawl paths are dropped to free memory for copies, and gathered again
    // afterwards.
    let through = (!memory_is_bounded).then_some(through);
    let linked = Linked { from_elsewhere, depths: &depths, links_to_host };
    let memory = kept_before::read(net, crawl, &job.keep, given.earlier)?;
    let pinned = pins::pages(crawl, &decisions.pins)?;
    let first_earlier_source = earlier.as_ref().map_or(u32::MAX, |earlier| earlier.first_source);
    let chosen = Chosen { kept_before: &memory.pages, pinned: &pinned, originals, seeds: &seeds, first_earlier_source };
    let sizes = net.once_per_process(|| sizes(labels))?;
    let copies = avoid::copies(net, crawl, Trivial { labels, sizes: &sizes }, &keeping, &linked, &chosen)?;
    drop((depths, sizes));
    let judged = avoid::judge(net, &copies, &similar_clusters, links_to_host, &keeping)?;
    let mut verdicts = avoid::verdicts(net, crawl, copies, &judged, &keeping, job.keep.min_resemblance > 0.0)?;
    substitutes::compare(net, crawl, shelf, labels, &mut verdicts, job.keep.min_resemblance, &keeping)?;
    let gathered = |net: &mut Net<'_>| through.map_or_else(|| gathered(net), Ok);
    let ways = avoid::clear_ways(net, crawl, labels, &mut verdicts, gathered)?;
    let kept_before = memory.outcome(net, &verdicts)?;
    let pins = pins::outcome(net, crawl, !job.keep.pins.is_empty(), &decisions.pins, &verdicts)?;
    let told = Told { labels, links, exact_pairs: given.similar.pairs.of(Kind::Exact) };
    let (collections, members) = report::rows(net, crawl, &judged, told)?;
    let told_of = similar_clusters.iter().filter(|cluster| !cluster.double);
    let taken_out = told_of.map(|cluster| u64::from(cluster.taken_out)).sum();
    Ok(Kept { verdicts, collections, members, attached, taken_out, ways, kept_before, pins })
}
