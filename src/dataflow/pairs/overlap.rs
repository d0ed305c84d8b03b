//! Overlap table of a crawl: passes the rows of the local pages to [`crate::pairs::overlap_join`],
//! and applies the guard to the resulting pairs.

use crate::clusters::context_pairs;
use crate::clusters::links::WorkerLinks;
use crate::memory_estimate::MemoryEstimate;
use crate::pairs::counts::OverlapCounts;
use crate::pairs::exact::copies;
use crate::pairs::guards::{Context, GUARD_PAGE_BYTES, keep};
use crate::pairs::overlap_before::{self, NextRunShares, PageDigests, PriorRun};
use crate::pairs::overlap_join::{self, AllPairs};
use crate::pairs::overlap_merge::{self, MergeInput, MergeOutcome};
use crate::pairs::overlap_work::OverlapPages;
use crate::reading::captures::Crawl;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::memory::{agree, for_each_page};
use crate::shuffle::page_counts::sums_of;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::is_covered;
use webtwin_core::overlap::rows::{Row32, Row64};
use webtwin_core::overlap::unsupported::has_low_resemblance;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_spill::SpillColumn;

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
/// unsupported ([`webtwin_core::overlap::unsupported`]), ascending, if there is a context pass.
///
/// # Errors
/// Returns any error of [`overlap_join::similar_pairs`].
pub fn similar_pairs(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    crawl: &Crawl,
    exact_pairs: &SpillColumn<SimilarPair>,
    links: &WorkerLinks,
    job: &Job,
    prior_run: Option<&PriorRun<'_>>,
) -> Result<(Vec<SimilarPair>, Vec<SimilarPair>, OverlapCounts)> {
    let hosts = &crawl.directory.hosts;
    let is_copy = copies(net, exact_pairs, hosts.len())?;
    let estimate = MemoryEstimate::with(local_pages, &crawl.pages, Some(links));
    agree(net, estimate.local_pages_bytes(), 0, &job.effort)?;
    let pages = OverlapPages { count: hosts.len(), hosts, copies: &is_copy };

    let mut pairs = Vec::new();
    let digests = prior_run.map(|_| PageDigests::new(net, local_pages, crawl)).transpose()?;
    let merged = match (prior_run, &digests) {
        (Some(prior), Some(digests)) => {
            let merge_input = MergeInput { prior_run: prior, job, local_pages, crawl, is_copy: &is_copy, digests };
            merged(net, &merge_input, |pair| pairs.push(pair))?
        }
        _ => None,
    };
    let all_pairs = match merged {
        Some(all) => all,
        None => from_scratch(net, local_pages, &pages, job, |pair| pairs.push(pair))?,
    };
    if let (Some(prior), Some(digests)) = (prior_run, &digests) {
        let (chunks, counts) = (&all_pairs.chunks[..], &all_pairs.work.counts);
        let next_shares = NextRunShares { crawl, digests, is_copy: &is_copy, chunks, pairs: &pairs, counts };
        // An error is reported at the end of the run.
        let _ = overlap_before::leave(net, prior.shares, job, &next_shares);
    }
    let mut counts = all_pairs.work.counts.clone();
    if job.with_views() {
        let mut own_counts: Vec<(Page, u32)> =
            local_pages.kept().map(|(slot, page)| (page, local_pages.fprints.size(slot) as u32)).collect();
        own_counts.sort_unstable();
        let is_within_host = |pair: &SimilarPair| hosts[pair.a] == hosts[pair.b];
        let mut weak_pages: Vec<Page> =
            pairs.iter().filter(|pair| is_within_host(pair)).flat_map(|pair| [pair.a, pair.b]).collect();
        weak_pages.sort_unstable();
        weak_pages.dedup();
        let weak_page_counts = sums_of(net, "chunks of pages of pairs", hosts.len(), &own_counts, &weak_pages)?;
        drop(own_counts);
        let chunks_of = |page: Page| weak_pages.binary_search(&page).map_or(0, |at| weak_page_counts[at]);
        let previous_count = pairs.len();
        pairs.retain(|pair| !is_within_host(pair) || is_covered(pair.value, chunks_of(pair.a).min(chunks_of(pair.b))));
        counts.similar -= (previous_count - pairs.len()) as u64;
    }
    let chunks = &all_pairs.chunks;
    if !chunks.is_empty() {
        let is_emptied = |&(slot, page): &(usize, Page)| {
            chunks[page] == 0 && local_pages.fprints.size(slot) > 0 && !is_copy.contains(page)
        };
        counts.emptied = local_pages.kept().filter(is_emptied).count() as u64;
    }
    let larger = |a: Page, b: Page| chunks[a].max(chunks[b]);
    agree(net, estimate.local_pages_bytes(), for_each_page(net, GUARD_PAGE_BYTES, hosts.len()), &job.effort)?;
    let context = Context { crawl, joined_pairs: &[exact_pairs], links };
    let refused_pairs = keep(net, job.overlap.guard, &mut pairs, &all_pairs, &context, larger, job.overlap.doubt)?;
    if net.index() == 0 {
        counts.guarded = refused_pairs;
    }
    let has_low_resemblance =
        |pair: &&SimilarPair| has_low_resemblance(pair.value, chunks[pair.a], chunks[pair.b], &job.overlap);
    // Without a context pass the weak pairs are not used, and chunks may not have been counted.
    let has_context_pass = context_pairs::is_asked_for(job);
    let weak = pairs.iter().filter(|pair| has_context_pass && has_low_resemblance(pair)).copied().collect();
    Ok((pairs, weak, counts))
}

/// Updates the pairs of the previous run for the pages that have changed, before the guard. Returns
/// `None` if the pairs must be found from scratch; `emit` has not been called then.
fn merged(net: &mut Net<'_>, input: &MergeInput<'_>, emit: impl FnMut(SimilarPair)) -> Result<Option<AllPairs>> {
    let (rows, pages) = (input.local_pages.fprints.items(), input.crawl.directory.len() as u64);
    let fits = size_of::<Row64>() as u64 * rows + 64 * pages < net.memory.memory_bytes;
    if net.all_sum("memory to merge in", [u64::from(fits)])? != [net.peers() as u64] {
        return Ok(None);
    }
    let notify = input.prior_run.notify;
    match overlap_merge::similar_pairs(net, input, emit)? {
        MergeOutcome::Merged(merged, recounted) => {
            notify(format!("similar pairs are reused from the state, except those of {recounted} pages"));
            return Ok(Some(*merged));
        }
        MergeOutcome::Unavailable(Some(why)) => notify(format!("similar pairs are found from scratch: {why}")),
        MergeOutcome::Unavailable(None) => {}
    }
    Ok(None)
}

/// Finds the pairs of all rows, before the guard.
fn from_scratch(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    pages: &OverlapPages<'_>,
    job: &Job,
    emit: impl FnMut(SimilarPair),
) -> Result<AllPairs> {
    let sources = || {
        let (mut slots, mut fprints_of) = (local_pages.kept(), local_pages.fprints.reader());
        move |send: &mut dyn FnMut(FPrint, Page)| {
            let mut sent_rows = 0;
            for (slot, page) in slots.by_ref() {
                let fprints = fprints_of.get(slot)?;
                fprints.iter().for_each(|&fprint| send(fprint, page));
                sent_rows += fprints.len();
                if sent_rows >= 1 << 15 {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    };
    let rows = local_pages.fprints.items();
    if job.chunks.bits <= 32 {
        overlap_join::similar_pairs::<Row32, _>(net, rows, sources, pages, &job.overlap, None, emit)
    } else {
        overlap_join::similar_pairs::<Row64, _>(net, rows, sources, pages, &job.overlap, None, emit)
    }
}
