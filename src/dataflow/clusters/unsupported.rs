//! Removes weak pairs that are not supported by any collection
//! ([`webtwin_core::overlap::unsupported`]), after collections are known.
//!
//! A page that is in no collection counts as surrounded by the collections of its host, because
//! growth reaches no page without links, however near the page is to a collection
//! ([`webtwin_core::clusters::places`]). Each page of a pair represents all pages with the same
//! text. So the exact copies of the pages of weak pairs are broadcast to all processes.
//!
//! # Memory
//! Takes 8 bytes for each page of collections, a bit for each page and a byte for each host. Takes
//! 4 bytes for each page of a weak pair, and 8 for each exact copy of such a page, in each process.

use std::sync::Arc;

use super::places::PagePositions;
use crate::pairs::guards::Context;
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Number, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::unsupported::{TextContext, is_unsupported};
use webtwin_engine::Net;
use webtwin_spill::SpillColumn;

/// Removes those of this worker's `weak` pairs that are unsupported from its `pairs`. Returns the
/// number of pairs that all workers have removed.
///
/// Both lists are ascending; a weak pair may already be missing in `pairs`. `places` are the places
/// of pages in the collections that the pairs grew to, and `context.joined_pairs` are this worker's
/// exact copies.
///
/// # Errors
/// Returns any error of the disk, on which pairs may be, and an error if the run has ended.
pub(crate) fn drop_unsupported(
    net: &mut Net<'_>,
    pairs: &mut SpillColumn<SimilarPair>,
    weak: &[SimilarPair],
    places: &PagePositions,
    context: &Context<'_>,
) -> Result<u64> {
    let hosts = &context.crawl.directory.hosts;
    let copies = copies(net, weak, context)?;
    // Each worker of a process gathers the similar clusters of some hosts.
    let workers = net.workers_per_process();
    let worker = net.index() % workers;
    let own_pages = Page::first(hosts.len()).filter(|&page| hosts[page].index() % workers == worker);
    let mut rows: Vec<(HostId, Page)> =
        own_pages.filter_map(|page| Some((hosts[page], places.position(page)?.1))).collect();
    rows.sort_unstable();
    rows.dedup();
    let rows_by_worker = net.gather_in_process(rows)?;
    let context_of = |page: Page| {
        let from = copies.partition_point(|copy| copy[0] < page);
        let identical_pages = copies[from..].iter().take_while(|copy| copy[0] == page).map(|copy| copy[1]);
        TextContext::gather(std::iter::once(page).chain(identical_pages).flat_map(|page| {
            let host = hosts[page];
            let own_cluster = places.position(page).map(|(_, similar_cluster)| similar_cluster);
            let host_rows = &rows_by_worker[host.index() % workers];
            let from = host_rows.partition_point(|row| row.0 < host);
            let clusters_on_host =
                host_rows[from..].iter().take_while(move |row| row.0 == host && own_cluster.is_none()).map(|row| row.1);
            let candidates = std::iter::once(own_cluster).chain(clusters_on_host.map(Some));
            candidates.map(|similar_cluster| (host, context.links.lead_from(host), similar_cluster)).collect::<Vec<_>>()
        }))
    };
    let previous_count = pairs.len() as u64;
    let mut unsupported =
        weak.iter().filter(|pair| is_unsupported(&context_of(pair.a), &context_of(pair.b))).peekable();
    pairs.retain_mut(|pair| {
        while unsupported.next_if(|weak| *weak < pair).is_some() {}
        unsupported.next_if_eq(&&*pair).is_none()
    })?;
    Ok(net.all_sum("unsupported pairs", [previous_count - pairs.len() as u64])?[0])
}

/// Returns (page, exact copy) for the pages of all workers' weak pairs, ascending.
fn copies(net: &mut Net<'_>, weak: &[SimilarPair], context: &Context<'_>) -> Result<Arc<Vec<[Page; 2]>>> {
    let mut own_pages: Vec<Page> = weak.iter().flat_map(|pair| [pair.a, pair.b]).collect();
    own_pages.sort_unstable();
    own_pages.dedup();
    let shared_pages = net.broadcast("pages of unsupported pairs", own_pages)?;
    let page_set = net.once_per_process(|| {
        let mut pages = PageSet::new(context.crawl.directory.hosts.len(), |_| false);
        shared_pages.iter().for_each(|&page| pages.insert(page));
        pages
    })?;
    let mut exact: Vec<[Page; 2]> = Vec::new();
    for block in context.joined_pairs.iter().flat_map(|pairs| pairs.blocks()) {
        exact.extend(block?.iter().filter(|pair| page_set.contains(pair.a)).map(|pair| [pair.a, pair.b]));
    }
    let shared_copies = net.broadcast("copies of pages of unsupported pairs", exact)?;
    net.once_per_process(|| {
        let mut sorted_copies = shared_copies.to_vec();
        sorted_copies.sort_unstable();
        sorted_copies
    })
}
