//! The context pass: adds pairs that only collections support, and removes weak pairs that no
//! collection supports.

use super::alone;
use super::grown::Grown;
use super::places::Places;
use super::second_look::{SecondLook, is_asked_for, look};
use crate::pairs::guards::Context;
use crate::pairs::kinds::Kind;
use crate::pairs::similar::Similar;
use crate::run::Run;
use crate::steps::Step;
use crate::web::Web;
use webtwin_base::error::Result;
use webtwin_base::ids::ClusterId;

/// Bytes for each page that the pass takes in each process, even if everything else is on disk
/// ([`super::second_look`]).
const A_PAGE: u64 = 20;

/// Step that finds pairs which only collections support.
pub const CONTEXT: Step = Step { name: "second-look", bytes_a_page: A_PAGE, bytes_an_own_page: 0 };

/// Changes the similar pairs according to the collections that they grew to, if the job requests
/// it. `labels` are the trivial clusters of all pages.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub fn context_pass(
    run: &mut Run<'_, '_>,
    web: &Web,
    labels: &[ClusterId],
    grown: &Grown,
    similar: &mut Similar,
) -> Result<SecondLook> {
    if !is_asked_for(run.job) {
        return Ok(SecondLook::default());
    }
    let (crawl, links, pairs) = (&web.crawl, &web.links, &mut similar.pairs);
    let places = Places::new(run.net, &grown.similar_clusters, crawl.directory.len())?;
    let context = Context { crawl, joined: &pairs.between_sites(), links };
    let (found, mut counts) = run.recorded(web, CONTEXT, |run| look(run.net, run.shelf, labels, &places, &context))?;
    pairs.put(Kind::Context, run.set_aside(found)?);
    let mut overlap = pairs.take(Kind::Overlap);
    let context = Context { crawl, joined: &[pairs.of(Kind::Exact)], links };
    counts.alone = alone::take_back(run.net, &mut overlap, &std::mem::take(&mut similar.weak), &places, &context)?;
    pairs.put(Kind::Overlap, overlap);
    Ok(counts)
}
