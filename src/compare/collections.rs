//! Collections of one crawl, and how they are read from the tables of its result.
//!
//! The id of a collection is its smallest page, which may appear and disappear. So collections of
//! two crawls are matched by their content, never by their ids.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::lag::Lag;
use super::rates::{DAY, Visits};
use super::revisit::HostRelation;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_core::applications::keep::{CopyRole, VisitReason};
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Collection of one crawl.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Collection {
    /// Smallest doc id of its pages.
    pub id: DocId,
    /// Smallest doc id of the pages of the collection and its mirrors.
    pub similar_cluster: DocId,
    /// True if it is the collection that is kept.
    pub keep: bool,
    /// Host of the collection.
    pub host: String,
    /// Common prefix of the URLs of its pages.
    pub prefix: String,
    /// URL of the page that is most linked from other hosts.
    pub root_url: String,
    /// Number of pages.
    pub size: u32,
    /// True if it led its similar cluster; see [`crate::lag`].
    pub leads: bool,
    /// Lag behind the collection that led. `None` if no kept crawl of that collection has any of
    /// its texts.
    pub lag: Option<Lag>,
    /// Number of its pages that the crawl fetched. It is below `size` if other pages were skipped
    /// because they are on the avoid list.
    pub looked_at: u32,
    /// Newest fetch time of its pages.
    pub fetched: i64,
    /// Number of crawls since any page of it was fetched; for a mirror, any page on the avoid list.
    /// It is above 0 if these pages were skipped, or if the crawl has the captures of an earlier
    /// crawl.
    pub unseen: u32,
    /// Number of its pages that are on the avoid list.
    pub skipped: u32,
    /// Mean resemblance of its pages to the pages kept for them, in millionths. A page without a
    /// copy, or unlike the kept one, counts as 0, and one that must be visited anyway does not
    /// count; 1 if no page counts. `None` for the collection that is kept.
    pub resemblance: Option<u32>,
    /// Relation of its host to the host of the kept collection.
    pub kind: HostRelation,
    /// Number of intervals between crawls over which its line was observed, and number of those at
    /// whose end it was no longer a mirror.
    pub seen: (u32, u32),
    /// One visit for each interval, with the crawl at its end: did the collection change? Its pages
    /// count as one unit, because they change together.
    pub visits: Vec<(u32, Visits)>,
}

/// Page of a collection. Rows order by collection, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CollectionMember {
    /// Index of its collection in [`CrawlCollections::collections`].
    pub collection: u32,
    /// Doc id of the page.
    pub doc_id: DocId,
    /// Hash of its text.
    pub text: u64,
    /// Hash of its URL relative to the collection's prefix: equal for a page and its copy in a
    /// mirror with the same names.
    pub place: u64,
}

/// Collections of one crawl and their pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CrawlCollections {
    /// Time of the crawl in seconds since 1970: the newest fetch time of its pages, without a few
    /// outliers.
    pub time: i64,
    /// Number of collections whose data the history has dropped: all or none of the crawl's.
    pub forgotten: u32,
    /// Collections, ascending by id.
    pub collections: Vec<Collection>,
    /// Pages of the collections, ascending. A page is in at most one collection.
    pub members: Vec<CollectionMember>,
}

impl CrawlCollections {
    /// Returns a copy of the crawl with the pages of the wanted collections only.
    pub(super) fn only(&self, is_included: impl Fn(u32) -> bool) -> CrawlCollections {
        let members = self.members.iter().copied().filter(|member| is_included(member.collection)).collect();
        CrawlCollections { time: self.time, forgotten: self.forgotten, collections: self.collections.clone(), members }
    }

    /// Sorts collections and members after additions in another order.
    pub(super) fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.collections.len() as u32).collect();
        order.sort_by_key(|&at| self.collections[at as usize].id);
        let mut place = vec![0; order.len()];
        (0..).zip(&order).for_each(|(new, &old)| place[old as usize] = new);
        self.collections.sort_by_key(|collection| collection.id);
        self.members.iter_mut().for_each(|member| member.collection = place[member.collection as usize]);
        self.members.sort_unstable();
    }

    /// Returns the pages of one collection.
    ///
    /// # Cost
    /// Two binary searches.
    pub fn members_of(&self, collection: u32) -> &[CollectionMember] {
        let start = self.members.partition_point(|member| member.collection < collection);
        let end = self.members.partition_point(|member| member.collection <= collection);
        &self.members[start..end]
    }
}

/// The value 1 of a fraction in millionths.
pub const MILLION: u64 = 1_000_000;

/// Reads the collections of a result with their pages.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a file is missing or differs from the manifest,
/// or if a table lacks a column.
///
/// # Cost
/// Reads the table `pages` once. Holds the pages of collections in memory.
pub fn crawl(run: &FinishedRun) -> Result<CrawlCollections> {
    let mut collections = collections(run)?;
    let ids: Vec<DocId> = collections.iter().map(|collection| collection.id).collect();
    let mut members = Vec::new();
    scan(run, "members", &["collection", "doc_id"], &mut |part| {
        for (collection, &doc_id) in part.u64("collection")?.iter().zip(part.u64("doc_id")?) {
            if let Ok(number) = ids.binary_search(collection) {
                members.push(CollectionMember { collection: number as u32, doc_id, text: 0, place: 0 });
            }
        }
        Ok(())
    })?;
    // A page belongs to at most one collection, even if a table repeats it.
    members.sort_unstable_by_key(|member| member.doc_id);
    members.dedup_by_key(|member| member.doc_id);

    let mut days: BTreeMap<i64, Day> = BTreeMap::new();
    scan(run, "pages", &["doc_id", "url", "fetch_time", "exact"], &mut |part| {
        let (urls, texts, times) = (part.text("url")?, part.u64("exact")?, part.time("fetch_time")?);
        for (row, doc_id) in part.u64("doc_id")?.iter().enumerate() {
            let day = days.entry(times[row].div_euclid(DAY)).or_default();
            (day.pages, day.newest) = (day.pages + 1, day.newest.max(times[row]));
            if let Ok(number) = members.binary_search_by_key(doc_id, |member| member.doc_id) {
                let collection = &mut collections[members[number].collection as usize];
                collection.fetched = collection.fetched.max(times[row]);
                let prefix = &collection.prefix;
                let place = urls[row].strip_prefix(prefix.as_str()).unwrap_or(&urls[row]);
                (members[number].text, members[number].place) = (texts[row], xxh3_64(place.as_bytes()));
            }
        }
        Ok(())
    })?;
    for member in &members {
        let collection = &mut collections[member.collection as usize];
        (collection.size, collection.looked_at) = (collection.size + 1, collection.looked_at + 1);
    }

    // Sums are in whole millionths, so that they do not depend on the order of rows.
    let mut similarities = vec![0u64; collections.len()];
    scan(run, "avoid", &["doc_id", "resemblance"], &mut |part| {
        for (doc_id, resemblance) in part.u64("doc_id")?.iter().zip(part.f64("resemblance")?) {
            if let Ok(number) = members.binary_search_by_key(doc_id, |member| member.doc_id) {
                let collection = members[number].collection as usize;
                collections[collection].skipped += 1;
                similarities[collection] += (resemblance * MILLION as f64).round() as u64;
            }
        }
        Ok(())
    })?;
    // A page that is visited although it has a copy, for its links or as a seed, was not compared.
    let mut n_not_compared = vec![0u32; collections.len()];
    let not_compared = [VisitReason::Way, VisitReason::Must].map(|reason| CopyRole::Visit(reason).as_str());
    scan(run, "clusters", &["doc_id", "role"], &mut |part| {
        for (doc_id, role) in part.u64("doc_id")?.iter().zip(part.text("role")?.iter()) {
            if not_compared.contains(&role)
                && let Ok(number) = members.binary_search_by_key(doc_id, |member| member.doc_id)
            {
                n_not_compared[members[number].collection as usize] += 1;
            }
        }
        Ok(())
    })?;
    for ((collection, similarity), n_not_compared) in collections.iter_mut().zip(similarities).zip(n_not_compared) {
        let mean = similarity.checked_div(u64::from(collection.size.saturating_sub(n_not_compared))).unwrap_or(MILLION);
        collection.resemblance = (!collection.keep).then_some(mean as u32);
    }
    members.sort_unstable();
    Ok(CrawlCollections { time: crawl_time(&days), forgotten: 0, collections, members })
}

/// Pages fetched on one day.
#[derive(Default)]
struct Day {
    pages: u64,
    /// Newest fetch time.
    newest: i64,
}

/// Returns the time of a crawl: the newest time of the last day such that at least a thousandth of
/// the pages were fetched on or after it. So a few pages with a date in the future have no effect.
fn crawl_time(days: &BTreeMap<i64, Day>) -> i64 {
    let min_pages = days.values().map(|day| day.pages).sum::<u64>().div_ceil(1000);
    let mut n_newer = 0;
    let reached_day = days.values().rev().find(|day| {
        n_newer += day.pages;
        n_newer >= min_pages
    });
    reached_day.map_or(0, |day| day.newest)
}

/// Reads the collections of a result, ascending by id, with the relation of each host to the host
/// of the kept collection.
fn collections(run: &FinishedRun) -> Result<Vec<Collection>> {
    let mut collections = Vec::new();
    let columns = ["similar_cluster", "collection", "host", "root_url", "prefix", "keep"];
    scan(run, "collections", &columns, &mut |part| {
        let (clusters, ids, keep_flags) = (part.u64("similar_cluster")?, part.u64("collection")?, part.bool("keep")?);
        let (hosts, roots, prefixes) = (part.text("host")?, part.text("root_url")?, part.text("prefix")?);
        collections.extend((0..part.rows()).map(|row| Collection {
            id: ids[row],
            similar_cluster: clusters[row],
            keep: keep_flags[row],
            host: hosts[row].to_string(),
            prefix: prefixes[row].to_string(),
            root_url: roots[row].to_string(),
            ..Collection::default()
        }));
        Ok(())
    })?;
    collections.sort_unstable_by_key(|collection| collection.id);

    let mut kinds: BTreeMap<(String, String), HostRelation> = BTreeMap::new();
    scan(run, "server_pairs", &["host_a", "host_b", "kind"], &mut |part| {
        let (a, b, words) = (part.text("host_a")?, part.text("host_b")?, part.text("kind")?);
        for (row, word) in words.iter().enumerate() {
            kinds.insert((a[row].to_string(), b[row].to_string()), HostRelation::from_word(word));
        }
        Ok(())
    })?;
    let kept_hosts = collections.iter().filter(|one| one.keep).map(|one| (one.similar_cluster, one.host.clone()));
    let kept_hosts: BTreeMap<DocId, String> = kept_hosts.collect();
    for collection in collections.iter_mut() {
        let Some(keep) = kept_hosts.get(&collection.similar_cluster) else { continue };
        let pair = (collection.host.clone(), keep.clone());
        let relation = (keep.clone(), collection.host.clone());
        collection.kind = kinds.get(&pair).or_else(|| kinds.get(&relation)).copied().unwrap_or_default();
    }
    Ok(collections)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(pages: &[(i64, u64)]) -> BTreeMap<i64, Day> {
        pages.iter().map(|&(day, pages)| (day, Day { pages, newest: day * DAY + 7 })).collect()
    }

    #[test]
    fn crawl_date_is_the_first_permille_and_ignores_a_few_future_dates() {
        assert_eq!(crawl_time(&days(&[])), 0);
        assert_eq!(crawl_time(&days(&[(5, 1)])), 5 * DAY + 7);
        assert_eq!(crawl_time(&days(&[(5, 900), (6, 98), (47_000, 1)])), 47_000 * DAY + 7);
        assert_eq!(crawl_time(&days(&[(5, 1900), (6, 99), (47_000, 1)])), 6 * DAY + 7);
        // A segment of a hundred pages that was fetched again is not negligible.
        assert_eq!(crawl_time(&days(&[(5, 99_000), (6, 1_000)])), 6 * DAY + 7);
    }
}
