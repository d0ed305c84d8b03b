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
    both: u32,
    /// Number of pages whose simhashes differ in more bits than those of a page that was not
    /// rewritten may.
    rewritten: u32,
}

impl CommonCollectionPages {
    /// True if the fraction of pages that were not rewritten is below `least`.
    pub(super) fn have_drifted(self, least: f64) -> bool {
        f64::from(self.both - self.rewritten) < least * f64::from(self.both)
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
    let mut found: BTreeMap<u32, CommonCollectionPages> =
        kept(crawl).into_iter().map(|at| (at, CommonCollectionPages::default())).collect();
    let mut pages: BTreeMap<DocId, (u32, Option<u64>)> = BTreeMap::new();
    for &at in found.keys() {
        pages.extend(crawl.members_of(at).iter().map(|page| (page.doc_id, (at, None))));
    }
    if pages.is_empty() {
        return Ok(found);
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
            if let Some(&(at, was)) = pages.get(doc_id) {
                let differ = was.zip(simhash).map_or(0, |(was, is)| (was ^ is).count_ones());
                let of = found.get_mut(&at).expect("its pages are those of these collections");
                (of.both, of.rewritten) = (of.both + 1, of.rewritten + u32::from(differ > REWRITTEN_BITS));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns the indices of the collections that are kept and have copies, all of them unseen.
fn kept(crawl: &CrawlCollections) -> Vec<u32> {
    let of = |at: &u32| &crawl.collections[*at as usize];
    let mut kept = Vec::new();
    for (_, cluster) in clusters(crawl) {
        let (keeps, copies): (Vec<u32>, Vec<u32>) = cluster.iter().partition(|at| of(at).keep);
        if !copies.is_empty() && copies.iter().all(|at| of(at).unseen > 0) {
            kept.extend(keeps);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::collections::Collection;
    use super::*;

    #[test]
    fn only_kept_mirrors_with_unseen_copies_are_compared_with_themselves() {
        let one = |similar_cluster, keep, unseen| Collection { similar_cluster, keep, unseen, ..Collection::default() };
        let collections = vec![
            one(1, true, 0),
            one(1, false, 2),
            one(1, false, 1),
            one(2, true, 0),
            one(2, false, 0),
            one(2, false, 1),
            one(3, true, 0),
        ];
        assert_eq!(kept(&CrawlCollections { collections, ..CrawlCollections::default() }), [0]);
    }

    #[test]
    fn less_than_the_share_that_is_not_rewritten_is_a_drift() {
        let of = |both, rewritten| CommonCollectionPages { both, rewritten }.have_drifted(0.5);
        assert_eq!([of(10, 5), of(10, 6), of(0, 0), of(1, 1)], [false, true, false, true]);
    }
}
