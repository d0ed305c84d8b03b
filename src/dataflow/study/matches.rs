//! Matches between different multisets ([`webtwin_core::study::matches`]): documents with repeated
//! paragraphs are broadcast, and each worker looks for them in its own documents.

use std::sync::Arc;

use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::page_counts::sum;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::study::matches::{DocumentMatch, RepeatingDocuments, push_repeating};
use webtwin_engine::Net;

/// Returns all matches between pages that are the smallest of their multiset, ascending, in every
/// process.
///
/// # Errors
/// Returns any error of the disk, on which marks may be.
///
/// # Cost
/// Each process holds the shingle paragraphs of the documents with repetitions. Takes three passes
/// over the local pages.
pub(super) fn matches(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    same_multiset: &[Page],
) -> Result<Arc<Vec<DocumentMatch>>> {
    let centres =
        || local_pages.kept().filter(|&(slot, page)| local_pages.exact[slot] != 0 && same_multiset[page] == page);
    let mut list = Vec::new();
    let mut marks = local_pages.fprints.reader();
    for (slot, page) in centres() {
        push_repeating(page, marks.get(slot)?, &mut list);
    }
    let list = net.broadcast("documents with repeated paragraphs", list)?;
    let repeating = net.once_per_process(|| RepeatingDocuments::new(&list))?;
    drop(list);
    let mut counts = vec![0; repeating.keys()];
    for (slot, _) in centres() {
        repeating.count(marks.get(slot)?, &mut counts);
    }
    let counts = sum(net, "documents of a paragraph", &counts)?;
    let probes = net.once_per_process(|| repeating.probes(&counts))?;
    let mut own_matches = Vec::new();
    for (slot, page) in centres() {
        repeating.within(&probes, page, marks.get(slot)?, |one| own_matches.push(one));
    }
    let shared_matches = net.broadcast("matches", own_matches)?;
    net.once_per_process(|| {
        let mut sorted_matches = shared_matches.to_vec();
        sorted_matches.sort_unstable();
        sorted_matches
    })
}
