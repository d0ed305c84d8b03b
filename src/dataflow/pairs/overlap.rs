//! Overlap table of a crawl: passes the rows of the local pages to [`crate::pairs::overlap_join`],
//! and applies the guard to the resulting pairs.

use crate::clusters::links::Links;
use crate::clusters::second_look;
use crate::memory_estimate::MemoryEstimate;
use crate::pairs::counts::OverlapCounts;
use crate::pairs::exact::copies;
use crate::pairs::guards::{Context, GUARD_A_PAGE, keep};
use crate::pairs::overlap_before::{self, Before, Digests, Leaving};
use crate::pairs::overlap_join::{self, AllPairs};
use crate::pairs::overlap_merge::{self, Given, Outcome};
use crate::pairs::overlap_work::Pages;
use crate::reading::captures::Crawl;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::memory::{agree, for_each_page};
use crate::shuffle::page_counts::sum;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::alone::is_weak;
use webtwin_core::overlap::is_covered;
use webtwin_core::overlap::rows::{Row32, Row64};
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_spill::Column;

/// Finds the similar pairs among the centres of all workers' local pages. `exact_pairs` are this
/// worker's (centre, copy) pairs, and `links` are the links from its pages. Two pages of one host
/// must also share a large enough part of all their chunks ([`is_covered`]).
///
/// Boilerplate is detected on all pages, and exact copies are left out only afterwards. Otherwise
/// mirrors would hide boilerplate: the pages of one site, each folded into a copy on another host,
/// would no longer be on one host.
///
/// The pairs are ascending on each worker. Unless the guard is `centre`, all pairs of a smaller
/// page are at one worker. The second list contains those of the pairs that are too weak to stand
/// unsupported ([`webtwin_core::overlap::alone`]), ascending, if there is a context pass.
///
/// # Errors
/// Returns any error of [`overlap_join::similar_pairs`].
pub fn similar_pairs(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    crawl: &Crawl,
    exact_pairs: &Column<SimilarPair>,
    links: &Links,
    job: &Job,
    before: Option<&Before<'_>>,
) -> Result<(Vec<SimilarPair>, Vec<SimilarPair>, OverlapCounts)> {
    let hosts = &crawl.directory.hosts;
    let is_copy = copies(net, exact_pairs, hosts.len())?;
    let held = MemoryEstimate::with(shelf, &crawl.pages, Some(links));
    agree(net, held.shelf_bytes(), 0, &job.effort)?;
    let pages = Pages { count: hosts.len(), hosts, copies: &is_copy };

    let mut pairs = Vec::new();
    let digests = before.map(|_| Digests::new(net, shelf, crawl)).transpose()?;
    let merged = match (before, &digests) {
        (Some(before), Some(digests)) => {
            let given = Given { before, job, shelf, crawl, is_copy: &is_copy, digests };
            merged(net, &given, |pair| pairs.push(pair))?
        }
        _ => None,
    };
    let all = match merged {
        Some(all) => all,
        None => from_scratch(net, shelf, &pages, job, |pair| pairs.push(pair))?,
    };
    if let (Some(before), Some(digests)) = (before, &digests) {
        let (chunks, counts) = (&all.chunks[..], &all.work.counts);
        let found = Leaving { crawl, digests, is_copy: &is_copy, chunks, pairs: &pairs, counts };
        // An error is reported at the end of the run.
        let _ = overlap_before::leave(net, before.shares, job, &found);
    }
    let mut counts = all.work.counts.clone();
    if job.with_views() {
        let mut of_all = vec![0u32; hosts.len()];
        shelf.kept().for_each(|(slot, page)| of_all[page] = shelf.fprints.size(slot) as u32);
        let of_all = sum(net, "chunks of every page", &of_all)?;
        let before = pairs.len();
        pairs.retain(|pair| {
            hosts[pair.a] != hosts[pair.b] || is_covered(pair.value, of_all[pair.a].min(of_all[pair.b]))
        });
        counts.similar -= (before - pairs.len()) as u64;
    }
    let chunks = &all.chunks;
    if !chunks.is_empty() {
        let is_emptied = |&(slot, page): &(usize, Page)| {
            chunks[page] == 0 && shelf.fprints.size(slot) > 0 && !is_copy.contains(page)
        };
        counts.emptied = shelf.kept().filter(is_emptied).count() as u64;
    }
    let larger = |a: Page, b: Page| chunks[a].max(chunks[b]);
    agree(net, held.shelf_bytes(), for_each_page(net, GUARD_A_PAGE, hosts.len()), &job.effort)?;
    let context = Context { crawl, joined: &[exact_pairs], links };
    let refused = keep(net, job.overlap.guard, &mut pairs, &all, &context, larger, job.overlap.doubt)?;
    if net.index() == 0 {
        counts.guarded = refused;
    }
    let is_weak = |pair: &&SimilarPair| is_weak(pair.value, chunks[pair.a], chunks[pair.b], &job.overlap);
    // Without a context pass the weak pairs are not used, and chunks may not have been counted.
    let asked = second_look::is_asked_for(job);
    let weak = pairs.iter().filter(|pair| asked && is_weak(pair)).copied().collect();
    Ok((pairs, weak, counts))
}

/// Updates the pairs of the previous run for the pages that have changed, before the guard. Returns
/// `None` if the pairs must be found from scratch; `found` has not been called then.
fn merged(net: &mut Net<'_>, given: &Given<'_>, found: impl FnMut(SimilarPair)) -> Result<Option<AllPairs>> {
    let (rows, pages) = (given.shelf.fprints.items(), given.crawl.directory.len() as u64);
    let fits = size_of::<Row64>() as u64 * rows + 64 * pages < net.memory.memory_bytes;
    if net.all_sum("memory to merge in", [u64::from(fits)])? != [net.peers() as u64] {
        return Ok(None);
    }
    let tell = given.before.tell;
    match overlap_merge::similar_pairs(net, given, found)? {
        Outcome::Merged(merged, anew) => {
            tell(format!("similar pairs are taken over, but for those of {anew} pages"));
            return Ok(Some(*merged));
        }
        Outcome::None(Some(why)) => tell(format!("similar pairs are found from scratch: {why}")),
        Outcome::None(None) => {}
    }
    Ok(None)
}

/// Finds the pairs of all rows, before the guard.
fn from_scratch(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    pages: &Pages<'_>,
    job: &Job,
    found: impl FnMut(SimilarPair),
) -> Result<AllPairs> {
    let sources = || {
        let (mut slots, mut fprints_of) = (shelf.kept(), shelf.fprints.reader());
        move |send: &mut dyn FnMut(FPrint, Page)| {
            let mut sent = 0;
            for (slot, page) in slots.by_ref() {
                let fprints = fprints_of.get(slot)?;
                fprints.iter().for_each(|&fprint| send(fprint, page));
                sent += fprints.len();
                if sent >= 1 << 15 {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    };
    let rows = shelf.fprints.items();
    if job.chunks.bits <= 32 {
        overlap_join::similar_pairs::<Row32, _>(net, rows, sources, pages, &job.overlap, None, found)
    } else {
        overlap_join::similar_pairs::<Row64, _>(net, rows, sources, pages, &job.overlap, None, found)
    }
}
