//! [`find`]: the `replicas` job between reading and writing, in the order of the papers.
//!
//! No step decides what a row *means*; each step calls a stage for that. Every step leaves its rows
//! with the workers that own them, in an order that does not depend on the number of workers.

use std::mem::{replace, take};

use itertools::Itertools;

use super::clusters::context_pass::{CONTEXT, context_pass};
use super::clusters::giant_clusters::giants;
use super::clusters::grown::{GROWTH, GrowthResult, SECOND_GROWTH};
use super::clusters::servers::ServerOverlap;
use super::clusters::trivial::TrivialClusters;
use super::pairs::similar::{GIVEN, HAMMING, MINHASH, OVERLAP, SIGNATURES, SimilarPages, VIEWS};
use super::pairs::{apart, editions};
use super::reading::least_pages::LeastPages;
use super::run::WorkerRun;
use super::shuffle::components::components;
use super::sinks::found::{ClusterResults, ReplicaTables};
use super::sinks::kept::{KEEPING, KeepInput, KeepResult};
use super::sinks::kept_before;
use super::sinks::skip_lists::SkipListRows;
use super::steps::RunStep;
use super::web::{WorkerWeb, settle};
use webtwin_base::error::Result;
use webtwin_core::overlap::SimilarPair;
use webtwin_results::decisions::Decisions;
use webtwin_spill::SpillColumn;

/// Steps that write a checkpoint.
const CHECKPOINT_STEPS: [RunStep; 10] =
    [VIEWS, OVERLAP, HAMMING, SIGNATURES, MINHASH, GIVEN, GROWTH, CONTEXT, SECOND_GROWTH, KEEPING];

/// Finds near-replica pages and mirrored collections among the local pages of all workers.
///
/// `floors[item]` is the offset from which the records of a work item are valid. A crawl with fewer
/// pages than `floor` is refused.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::MemoryLimit`] or a similar error if memory or disk space
/// does not suffice. Returns any error of the inputs that contain decisions and earlier results,
/// and an error if the run has ended.
pub fn find(run: &mut WorkerRun<'_, '_>, floors: &[u64], floor: Option<&LeastPages>) -> Result<ReplicaTables> {
    let decisions = Decisions::read(run.job)?;
    // Captures become pages with links. Pages with equal texts are folded into their centre [SGM98
    // 2.2].
    let (mut web, exact) = settle(run, floors, floor)?;
    let previous_run = kept_before::open(&run.job.keep)?;
    let attempt = previous_run.as_ref().map(|run| run.manifest.attempt.clone());
    run.begin_steps(&web, attempt.as_deref(), &CHECKPOINT_STEPS)?;

    // Two pages are similar if any test finds them similar [CSG00 Definition 4].
    let mut similar = SimilarPages::pages(run, &web, exact)?;
    let mut separation = apart::part(run.net, &web.crawl, &decisions.apart, &mut similar.pairs)?;
    let mut editions = editions::part(run, &web, &mut similar.pairs)?;

    // TRIVIAL(cluster, page), LinkSummary, TCG, similar clusters [CSG00 3]. A collection supports
    // its pages one by one, so pairs of URLs of one page within a site join only afterwards.
    let mut trivial = trivial_clusters(run, &web, &similar.pairs.between_sites())?;
    let mut collections = GrowthResult::grow(run, &web, GROWTH, &trivial, None)?;
    let context = context_pass(run, &web, &trivial, &collections, &mut similar)?;
    if context.has_changed_pairs() || similar.counts.views.total() > 0 {
        separation.and_then(apart::part(run.net, &web.crawl, &decisions.apart, &mut similar.pairs)?);
        editions.and_then(editions::part(run, &web, &mut similar.pairs)?);
        let previous = replace(&mut trivial, trivial_clusters(run, &web, &similar.pairs.all())?);
        let unchanged = collections.left(run.net, previous, &trivial.labels)?;
        collections = GrowthResult::grow(run, &web, SECOND_GROWTH, &trivial, unchanged)?;
    }

    // Overlap of servers [SGM98 3], the copy to keep, and the pages that a crawler may skip [CSG00
    // 5.1].
    let servers = ServerOverlap::find(run, &web, &trivial)?;
    let giants = giants(run.net, &web.crawl, &trivial, &similar.pairs)?;
    let similar_clusters = take(&mut collections.similar_clusters);
    let input =
        KeepInput { trivial: &trivial, similar: &similar, decisions: &decisions, previous_run: previous_run.as_ref() };
    let decided = KeepResult::decide(run, &mut web, similar_clusters, &input)?;
    let skip = SkipListRows::build(run, &web, &trivial.labels, &decided)?;
    let clustered = ClusterResults { trivial, collections, context, separation, editions, servers, giants };
    ReplicaTables::build(run, web, similar, clustered, decided, skip, attempt)
}

/// Returns the trivial clusters: the connected components of the given pairs of this worker and of
/// all other workers.
fn trivial_clusters(
    run: &mut WorkerRun<'_, '_>,
    web: &WorkerWeb,
    pairs: &[&SpillColumn<SimilarPair>],
) -> Result<TrivialClusters> {
    let edges = || pairs.iter().flat_map(|pairs| pairs.rows()).map_ok(|pair| (pair.a, pair.b));
    let labels = components(run.net, "trivial clusters", web.crawl.directory.len(), edges)?;
    TrivialClusters::new(run.net, labels)
}
