//! Number of pairs in the chunks of a sample of pages, from which a plan extrapolates to a crawl
//! that is not read yet.

use super::FPrintDocId;
use super::count_pairs::pair_key;
use super::planner::{heavy_thousandths, pilot_rate};
use super::prune::PageSet;
use super::runs::pairs_of;
use super::sort_based::counting_runs;
use webtwin_base::ids::{HostId, Page, splitmix64};
use webtwin_job::OverlapSettings;

/// Counts of the pairs of a sample, one for each chunk that two pages share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePairs {
    /// Number of pairs of two pages of one work item.
    pub within: u64,
    /// Number of pairs of two pages of different work items.
    pub across_items: u64,
    /// Fraction of the pairs, in thousandths, whose pages share T chunks.
    pub heavy_thousandths: u64,
}

impl SamplePairs {
    /// Extrapolates the number of pairs across work items from `sampled` items to all `items`.
    /// Assumes that any two items have as many pairs as any two of the sample.
    ///
    /// # Examples
    /// ```
    /// use webtwin_core::overlap::sample::SamplePairs;
    ///
    /// // Three sampled work items are three pairs of items, with 20 pairs of pages each. A hundred
    /// // items are 4,950 pairs of items.
    /// let sample = SamplePairs { within: 500, across_items: 60, heavy_thousandths: 100 };
    /// assert_eq!(sample.across_all(3, 100), 99_000);
    /// ```
    pub fn across_all(&self, sampled: usize, items: usize) -> u64 {
        let twos = |n: usize| (n as u128 * n.saturating_sub(1) as u128).max(1);
        (u128::from(self.across_items) * twos(items) / twos(sampled)) as u64
    }
}

/// Counts the pairs in the chunks of a sample. Leaves out chunks that do not count and exact
/// copies; the filter still counts exact copies.
///
/// `fprint_docid` is ascending and duplicate-free. `hosts[doc]` is the host of a page. `item(doc)`
/// is its work item, which must not descend as `doc` ascends.
///
/// # Cost
/// Memory for the rows of shared chunks, and for up to about four million pairs, from which the
/// fraction of heavy pairs is estimated ([`pilot_rate`]).
pub fn sample_pairs(
    fprint_docid: &[FPrintDocId],
    hosts: &[HostId],
    copies: &PageSet,
    item: impl Fn(Page) -> u32,
    settings: &OverlapSettings,
) -> SamplePairs {
    let runs: Vec<Vec<Page>> = counting_runs(fprint_docid, hosts, settings)
        .filter_map(|mut docs| {
            copies.leave_out(&mut docs);
            (docs.len() > 1).then_some(docs)
        })
        .collect();
    let pairs: u64 = runs.iter().map(|docs| pairs_of(docs)).sum();
    let within = runs.iter().flat_map(|docs| docs.chunk_by(|&x, &y| item(x) == item(y))).map(pairs_of).sum();
    let rate = pilot_rate(pairs);
    let mut pilot = Vec::new();
    for docs in &runs {
        for (at, &doc) in docs.iter().enumerate().filter(|(_, doc)| splitmix64(u64::from(**doc)).is_multiple_of(rate)) {
            pilot.extend(docs[at + 1..].iter().map(|&other| pair_key(doc, other)));
        }
    }
    let heavy_thousandths = heavy_thousandths(&mut pilot, settings.min_shared);
    SamplePairs { within, across_items: pairs - within, heavy_thousandths }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sort_based::similar_pairs;
    use super::*;

    fn page() -> impl Strategy<Value = Page> {
        (0u32..24).prop_map(Page)
    }

    proptest! {
        #[test]
        fn pair_counts_equal_the_shared_chunks_of_the_sort_based_table(
            rows in prop::collection::btree_set((0u64..30, page()), 0..300),
            hosts in prop::collection::vec((0u32..4).prop_map(HostId), 24),
            copies in prop::collection::btree_set(page(), 0..6),
            (min_shared, template_pages, max_documents) in (1u32..6, 0u32..4, prop::sample::select(vec![0u32, 9])),
        ) {
            let table: Vec<_> = rows.into_iter().map(|(fprint, doc)| FPrintDocId::new(fprint, doc)).collect();
            let all_shared = OverlapSettings { template_pages, max_documents, ..OverlapSettings::of_papers(1) };
            let shared = similar_pairs(&table, &hosts, &copies.iter().copied().collect::<Vec<_>>(), &all_shared);
            let item = |doc: Page| doc.0 / 5;
            let total: u64 = shared.iter().map(|pair| u64::from(pair.value)).sum();
            let sum = |is_counted: &dyn Fn(&crate::overlap::SimilarPair) -> bool| {
                shared.iter().filter(|pair| is_counted(pair)).map(|pair| u64::from(pair.value)).sum::<u64>()
            };
            let within = sum(&|pair| item(pair.a) == item(pair.b));
            let heavy = sum(&|pair| pair.value >= min_shared);
            let expected =
                SamplePairs { within, across_items: total - within, heavy_thousandths: heavy * 1000 / total.max(1) };
            let copies = PageSet::new(24, |page| copies.contains(&page));
            let settings = OverlapSettings { min_shared, ..all_shared };
            prop_assert_eq!(sample_pairs(&table, &hosts, &copies, item, &settings), expected);
        }
    }

    #[test]
    fn two_of_four_items_determine_the_pairs_of_all_four() {
        let sample_of = |items: u32| {
            // One page per item, and one chunk on all pages.
            let table: Vec<_> = Page::first(items as usize).map(|doc| FPrintDocId::new(7, doc)).collect();
            let no_copies = PageSet::new(items as usize, |_| false);
            sample_pairs(
                &table,
                &vec![HostId(0); items as usize],
                &no_copies,
                |doc| doc.0,
                &OverlapSettings::of_papers(1),
            )
        };
        assert_eq!((sample_of(2).across_items, sample_of(4).across_items), (1, 6));
        assert_eq!(sample_of(2).across_all(2, 4), 6);
        assert_eq!(sample_of(1).across_all(1, 4), 0);
    }
}
