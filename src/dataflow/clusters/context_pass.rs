//! The context pass: adds pairs that only collections support, and removes weak pairs that no
//! collection supports.

use super::context_pairs::{ContextPassCounts, is_asked_for, look};
use super::grown::GrowthResult;
use super::places::PagePositions;
use super::trivial::TrivialClusters;
use super::unsupported;
use crate::pairs::guards::Context;
use crate::pairs::kinds::PairKind;
use crate::pairs::similar::SimilarPages;
use crate::run::WorkerRun;
use crate::steps::RunStep;
use crate::web::WorkerWeb;
use webtwin_base::error::Result;

/// Bytes for each page that the pass takes in each process, even if everything else is on disk
/// ([`super::context_pairs`]).
const PAGE_BYTES: u64 = 17;

/// Step that finds pairs which only collections support.
pub const CONTEXT: RunStep = RunStep { name: "second-look", bytes_a_page: PAGE_BYTES, bytes_an_own_page: 0 };

/// Changes the similar pairs according to the collections that they grew to, if the job requests
/// it.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub fn context_pass(
    run: &mut WorkerRun<'_, '_>,
    web: &WorkerWeb,
    trivial: &TrivialClusters,
    collections: &GrowthResult,
    similar: &mut SimilarPages,
) -> Result<ContextPassCounts> {
    if !is_asked_for(run.job) {
        return Ok(ContextPassCounts::default());
    }
    let (crawl, links, pairs) = (&web.crawl, &web.links, &mut similar.pairs);
    let places = PagePositions::new(run.net, &collections.similar_clusters, crawl.directory.len())?;
    let context = Context { crawl, joined_pairs: &pairs.between_sites(), links };
    let (context_pairs, mut counts) =
        run.recorded(web, CONTEXT, |run| look(run.net, run.local_pages, trivial, &places, &context))?;
    pairs.put(PairKind::Context, run.spill_column(context_pairs)?);
    let mut overlap = pairs.take(PairKind::Overlap);
    let context = Context { crawl, joined_pairs: &[pairs.column(PairKind::Exact)], links };
    counts.alone =
        unsupported::drop_unsupported(run.net, &mut overlap, &std::mem::take(&mut similar.weak), &places, &context)?;
    pairs.put(PairKind::Overlap, overlap);
    Ok(counts)
}
