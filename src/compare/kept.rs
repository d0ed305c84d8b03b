//! Drift of kept collections none of whose copies was fetched: a crawler that obeys the list
//! fetches the kept collection and skips its copies.
//!
//! In such a similar cluster the leader, and the origin of texts, are those of the crawl that last
//! fetched the copies. So the collection is compared with its own previous version: while its pages
//! are not rewritten, they still agree with the unfetched copies.

use std::collections::BTreeMap;

use super::collections::CrawlCollections;
use super::lag::clusters;
use super::pages::REWRITTEN_BITS;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Counts of the pages of a collection that two results have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CommonCollectionPages {
    /// Number of such pages.
    n_common: u32,
    /// Number of pages whose simhashes differ in more bits than those of a page that was not
    /// rewritten may.
    n_rewritten: u32,
}

impl CommonCollectionPages {
    /// True if the fraction of pages that were not rewritten is below `threshold`.
    pub(super) fn have_drifted(self, threshold: f64) -> bool {
        f64::from(self.n_common - self.n_rewritten) < threshold * f64::from(self.n_common)
    }
}

/// Finds the collections of a crawl that are kept and have copies, all of them unseen, by their
/// index. Counts their pages that both results have, and those that were rewritten between the two:
/// their simhashes differ in more than [`REWRITTEN_BITS`] bits.
///
/// # Errors
/// Returns any error of the tables `pages`.
///
/// # Cost
/// Reads three columns of both tables, if there are such collections.
pub(super) fn with_unseen_copies(
    crawl: &CrawlCollections,
    old: &FinishedRun,
    new: &FinishedRun,
) -> Result<BTreeMap<u32, CommonCollectionPages>> {
    let mut common_pages: BTreeMap<u32, CommonCollectionPages> =
        kept_collections(crawl).into_iter().map(|at| (at, CommonCollectionPages::default())).collect();
    let mut pages: BTreeMap<DocId, (u32, Option<u64>)> = BTreeMap::new();
    for &collection in common_pages.keys() {
        pages.extend(crawl.members_of(collection).iter().map(|page| (page.doc_id, (collection, None))));
    }
    if pages.is_empty() {
        return Ok(common_pages);
    }
    let columns = ["doc_id", "simhash", "has_simhash"];
    scan(old, "pages", &columns, &mut |part| {
        for (doc_id, simhash) in part.u64("doc_id")?.iter().zip(part.u64_where("simhash", "has_simhash")?) {
            if let Some(page) = pages.get_mut(doc_id) {
                page.1 = simhash;
            }
        }
        Ok(())
    })?;
    scan(new, "pages", &columns, &mut |part| {
        for (doc_id, simhash) in part.u64("doc_id")?.iter().zip(part.u64_where("simhash", "has_simhash")?) {
            if let Some(&(collection, old_simhash)) = pages.get(doc_id) {
                let n_bits = old_simhash.zip(simhash).map_or(0, |(was, is)| (was ^ is).count_ones());
                let page_counts = common_pages.get_mut(&collection).expect("its pages are those of these collections");
                (page_counts.n_common, page_counts.n_rewritten) =
                    (page_counts.n_common + 1, page_counts.n_rewritten + u32::from(n_bits > REWRITTEN_BITS));
            }
        }
        Ok(())
    })?;
    Ok(common_pages)
}

/// Returns the indices of the collections that are kept and have copies, all of them unseen.
fn kept_collections(crawl: &CrawlCollections) -> Vec<u32> {
    let collection = |at: &u32| &crawl.collections[*at as usize];
    let mut kept_collections = Vec::new();
    for (_, cluster) in clusters(crawl) {
        let (kept_copies, copies): (Vec<u32>, Vec<u32>) = cluster.iter().partition(|at| collection(at).keep);
        if !copies.is_empty() && copies.iter().all(|at| collection(at).unseen > 0) {
            kept_collections.extend(kept_copies);
        }
    }
    kept_collections
}

#[cfg(test)]
mod tests {
    use super::super::collections::Collection;
    use super::*;

    #[test]
    fn only_kept_mirrors_with_unseen_copies_are_compared_with_themselves() {
        let collection =
            |similar_cluster, keep, unseen| Collection { similar_cluster, keep, unseen, ..Collection::default() };
        let collections = vec![
            collection(1, true, 0),
            collection(1, false, 2),
            collection(1, false, 1),
            collection(2, true, 0),
            collection(2, false, 0),
            collection(2, false, 1),
            collection(3, true, 0),
        ];
        assert_eq!(kept_collections(&CrawlCollections { collections, ..CrawlCollections::default() }), [0]);
    }

    #[test]
    fn less_than_the_share_that_is_not_rewritten_is_a_drift() {
        let has_drifted =
            |both, rewritten| CommonCollectionPages { n_common: both, n_rewritten: rewritten }.have_drifted(0.5);
        assert_eq!(
            [has_drifted(10, 5), has_drifted(10, 6), has_drifted(0, 0), has_drifted(1, 1)],
            [false, true, false, true]
        );
    }
}
