//! Near-duplicates (\[PBZ06\] Definition 5): all pairs of different multisets that share at least
//! half of their marks.

use std::sync::Arc;

use crate::pairs::overlap_join::similar_pairs;
use crate::pairs::overlap_work::OverlapPages;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::components::components;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::union_find::UnionFind;
use webtwin_core::overlap::SimilarPair;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::rows::Row64;
use webtwin_core::study::report::{NEAR_PERCENTAGES, NearColumn, near as row, nearness};
use webtwin_engine::Net;
use webtwin_job::OverlapSettings;

/// Returns the settings with which all pairs of documents are found that share at least half of
/// their marks.
pub fn overlap_settings() -> OverlapSettings {
    OverlapSettings { min_resemblance: f64::from(NEAR_PERCENTAGES[2]) / 100.0, ..OverlapSettings::of_papers(1) }
}

/// Returns the columns of Table 3, each with the documents that have a near-duplicate at its level.
/// `lengths` are the numbers of shingle paragraphs of the pages, `same_multiset[page]` is the
/// smallest page with the same multiset, and `clusters[page]` is the first page of its cluster by
/// the paper's rule.
///
/// # Errors
/// Returns any error of [`similar_pairs`].
pub(super) fn near(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    lengths: &[u32],
    same_multiset: &[Page],
    clusters: &[Page],
    documents: &PageSet,
) -> Result<[Arc<(NearColumn, PageSet)>; 3]> {
    let pages = same_multiset.len();
    let copies = net.once_per_process(|| PageSet::new(pages, |page| same_multiset[page] != page))?;
    let mut sets: [UnionFind; 3] = std::array::from_fn(|_| UnionFind::new(pages));
    if net.index() == 0 {
        for (&first, page) in clusters.iter().zip(0..) {
            sets.iter_mut().for_each(|sets| _ = sets.union(first.0, page));
        }
    }
    let copies = &*copies;
    let sources = || {
        let (mut slots, mut marks_of) = (local_pages.kept(), local_pages.fprints.reader());
        move |send: &mut dyn FnMut(FPrint, Page)| {
            let mut sent_rows = 0;
            for (slot, page) in slots.by_ref().filter(|&(_, page)| !copies.contains(page)) {
                let marks = marks_of.get(slot)?;
                marks.iter().for_each(|&mark| send(mark, page));
                sent_rows += marks.len() + 1;
                if sent_rows >= 1 << 15 {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    };
    let settings = overlap_settings();
    let emit = |SimilarPair { a, b, value }| {
        let level = nearness(value, lengths[a].max(lengths[b])).unwrap_or(NEAR_PERCENTAGES.len());
        sets[level..].iter_mut().for_each(|sets| _ = sets.union(a.0, b.0));
    };
    let overlap_pages = OverlapPages { count: pages, hosts: &[], copies };
    similar_pairs::<Row64, _>(net, local_pages.fprints.items(), sources, &overlap_pages, &settings, None, emit)?;
    let [pages_at_90, pages_at_70, pages_at_50] = sets;
    let mut column = |sets: &UnionFind, percent| -> Result<Arc<(NearColumn, PageSet)>> {
        let labels: Arc<SetLabels<Page>> = components(net, "near-duplicates", pages, || sets.forest().map(Ok))?;
        net.once_per_process(|| row(&labels.to_list(), documents, percent))
    };
    Ok([
        column(&pages_at_90, NEAR_PERCENTAGES[0])?,
        column(&pages_at_70, NEAR_PERCENTAGES[1])?,
        column(&pages_at_50, NEAR_PERCENTAGES[2])?,
    ])
}
