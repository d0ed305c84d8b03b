//! Carries collections over that a crawl did not fetch because it obeyed the avoid list.
//!
//! The inputs are the previous crawl with its collections, and the newer crawl as read from its
//! result. The result lacks skipped pages, and has only the probes of a probed mirror. The output
//! is the newer crawl with the skipped collections as they were last seen.

use std::collections::{BTreeMap, BTreeSet};

use super::chronicle::MIN_COMMON_FRACTION;
use super::collections::{Collection, CollectionMember, CrawlCollections};
use super::parts;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, doc_id};
use webtwin_results::FinishedRun;
use webtwin_results::rejected::url_in;
use webtwin_results::scan::scan;

/// Adds the collections of `last` to `crawl` that were skipped, entirely or except for a few pages,
/// because their pages were on the avoid list.
///
/// A skipped collection is carried over as it was last seen. The kept collections of its similar
/// cluster were fetched, but lost their mirrors because those were skipped; they are carried over
/// with their current texts. Pages that the crawl recorded but did not keep are left out. So are
/// pages in `requested`, which were requested as probes, if the crawl requested them (`is_listed`,
/// or inferred) and does not have them.
///
/// A skipped collection is not carried over in two cases: if more of its requested pages are absent
/// than present, or if, of its present probes, a fraction below [`MIN_COMMON_FRACTION`] is on the
/// avoid list again or has the same text as before.
pub(super) fn carry_over(
    last: &CrawlCollections,
    crawl: &mut CrawlCollections,
    run: &FinishedRun,
    (requested, is_listed): (&[DocId], bool),
) -> Result<()> {
    let status = Fetched::read(last, run, (requested, is_listed))?;
    let is_skipped: Vec<bool> = (0..last.collections.len() as u32).map(|at| status.is_skipped(at)).collect();
    let clusters = super::lag::clusters(last).into_iter().map(|of| of.1);
    let skipped_clusters: Vec<Vec<u32>> =
        clusters.filter(|cluster| cluster.iter().any(|&at| is_skipped[at as usize])).collect();
    let skipped_pages = skipped_clusters.iter().flatten().flat_map(|&at| last.members_of(at));
    let collections: BTreeMap<DocId, u32> = skipped_pages.map(|page| (page.doc_id, page.collection)).collect();
    let family_of = |at: u32| last.collections[at as usize].similar_cluster;
    let clusters_before: BTreeMap<DocId, DocId> =
        collections.iter().map(|(&page, &at)| (page, family_of(at))).collect();
    let families = parts::families(crawl, &clusters_before);
    drop_probed(last, &collections, &is_skipped, crawl);
    parts::join(crawl, &families, &clusters_before);
    let in_collections: BTreeSet<DocId> = crawl.members.iter().map(|page| page.doc_id).collect();
    for collection in skipped_clusters.into_iter().flatten() {
        let is_skipped = is_skipped[collection as usize];
        let has_ended = status.may_be_skipped(collection) && !is_skipped;
        if has_ended {
            continue;
        }
        let pages = status.carried_pages(collection, is_skipped);
        if pages.is_empty() || pages.iter().any(|page| in_collections.contains(&page.doc_id)) {
            continue;
        }
        let number = crawl.collections.len() as u32;
        crawl.collections.push(status.as_it_is(collection, &pages, is_skipped));
        crawl.members.extend(pages.into_iter().map(|page| CollectionMember { collection: number, ..page }));
    }
    crawl.sort();
    Ok(())
}

/// Pages of the previous crawl's collections, as the newer crawl has them.
struct Fetched<'a> {
    last: &'a CrawlCollections,
    /// Text and fetch time of each page of a collection; `None` if the page was not fetched.
    now: BTreeMap<DocId, Option<(u64, i64)>>,
    /// Pages of the collections that are on the crawl's own avoid list.
    listed_pages: BTreeSet<DocId>,
    /// Pages that were requested and are absent.
    missing_pages: BTreeSet<DocId>,
    /// Pages that the crawler was asked to fetch as probes, ascending.
    requested_pages: &'a [DocId],
}

impl<'a> Fetched<'a> {
    fn read(last: &'a CrawlCollections, run: &FinishedRun, requested: (&'a [DocId], bool)) -> Result<Fetched<'a>> {
        let mut now: BTreeMap<DocId, Option<(u64, i64)>> =
            last.members.iter().map(|page| (page.doc_id, None)).collect();
        scan(run, "pages", &["doc_id", "exact", "fetch_time"], &mut |part| {
            let contents = part.u64("exact")?.iter().zip(part.time("fetch_time")?);
            for (doc_id, (text, time)) in part.u64("doc_id")?.iter().zip(contents) {
                if let Some(now) = now.get_mut(doc_id) {
                    *now = Some((*text, *time));
                }
            }
            Ok(())
        })?;
        let mut listed_pages: BTreeSet<DocId> = BTreeSet::new();
        scan(run, "avoid", &["doc_id"], &mut |part| {
            listed_pages.extend(part.u64("doc_id")?.iter().filter(|page| now.contains_key(page)));
            Ok(())
        })?;
        let missing_pages = sought_in_vain(run, requested, |page| now.get(&page).is_some_and(Option::is_some))?;
        Ok(Fetched { last, now, listed_pages, missing_pages, requested_pages: requested.0 })
    }

    fn of(&self, collection: u32) -> &'a Collection {
        &self.last.collections[collection as usize]
    }

    fn pages(&self, collection: u32) -> &'a [CollectionMember] {
        self.last.members_of(collection)
    }

    fn is_there(&self, page: &CollectionMember) -> bool {
        self.now[&page.doc_id].is_some()
    }

    fn was_asked(&self, page: &CollectionMember) -> bool {
        self.requested_pages.binary_search(&page.doc_id).is_ok()
    }

    fn is_listed(&self, page: &CollectionMember) -> bool {
        self.listed_pages.contains(&page.doc_id)
    }

    fn missing(&self, collection: u32) -> u32 {
        self.pages(collection).iter().filter(|page| !self.is_there(page)).count() as u32
    }

    /// True if most requested pages are present and most present probes still are copies.
    fn lives(&self, collection: u32) -> bool {
        let in_vain =
            self.pages(collection).iter().filter(|page| self.missing_pages.contains(&page.doc_id)).count() as u32;
        let n_present = self.pages(collection).len() as u32 - self.missing(collection);
        let probes = || self.pages(collection).iter().filter(|page| self.was_asked(page) && self.is_there(page));
        // A probe with an unchanged text is as close to its original as it was; or the original
        // changed and the mirror did not follow.
        let has_same_text = |page: &CollectionMember| self.now[&page.doc_id].is_some_and(|now| now.0 == page.text);
        let copies = probes().filter(|page| self.is_listed(page) || has_same_text(page)).count();
        in_vain <= n_present && copies as f64 >= MIN_COMMON_FRACTION * probes().count() as f64
    }

    /// True if most of the collection is on the list and some pages were not fetched.
    fn may_be_skipped(&self, collection: u32) -> bool {
        2 * self.of(collection).skipped > self.of(collection).size && 0 < self.missing(collection)
    }

    /// True if the collection was skipped: at least half of its pages that are not on the list were
    /// fetched, and it lives. All other fetched pages are probes.
    fn is_skipped(&self, collection: u32) -> bool {
        let collection_facts = self.of(collection);
        let open = collection_facts.size.saturating_sub(collection_facts.skipped);
        self.may_be_skipped(collection)
            && 2 * self.missing(collection).saturating_sub(collection_facts.skipped) <= open
            && self.lives(collection)
    }

    /// True if pages that were not fetched still belong to the collection: it was skipped, or it
    /// lives and lacks no more pages than the list has.
    fn is_standing(&self, collection: u32, is_skipped: bool) -> bool {
        is_skipped || self.missing(collection) <= self.of(collection).skipped && self.lives(collection)
    }

    /// Returns the pages with which the collection is carried over, with their current texts.
    fn carried_pages(&self, collection: u32, is_skipped: bool) -> Vec<CollectionMember> {
        let is_standing = self.is_standing(collection, is_skipped);
        let is_included =
            |page: &&CollectionMember| self.is_there(page) || is_standing && !self.missing_pages.contains(&page.doc_id);
        let text = |page: &CollectionMember| self.now[&page.doc_id].map_or(page.text, |now| now.0);
        self.pages(collection)
            .iter()
            .filter(is_included)
            .map(|page| CollectionMember { text: text(page), ..*page })
            .collect()
    }

    /// Builds the collection as it is now, with the given pages.
    fn as_it_is(&self, collection: u32, pages: &[CollectionMember], is_skipped: bool) -> Collection {
        let previous = self.of(collection);
        let present_pages = || pages.iter().filter(|page| self.is_there(page));
        // Pages of a mirror that are not on the list are fetched in each crawl, so they are no
        // evidence for the pages on the list.
        let is_complete = previous.keep || previous.skipped == 0 || !self.is_standing(collection, is_skipped);
        let is_seen = present_pages().any(|page| is_complete || self.was_asked(page) || self.is_listed(page));
        // Counts the pages that stay on the list and those that this crawl added to it. The next
        // crawl need not fetch either.
        let n_skipped = pages.iter().filter(|page| !self.is_there(page) || self.is_listed(page)).count() as u32;
        Collection {
            size: pages.len() as u32,
            looked_at: present_pages().count() as u32,
            skipped: n_skipped,
            // A collection most of whose pages are skipped is not the kept one; another one is.
            keep: previous.keep && 2 * n_skipped as usize <= pages.len(),
            fetched: present_pages()
                .filter_map(|page| self.now[&page.doc_id])
                .map(|now| now.1)
                .max()
                .unwrap_or(previous.fetched),
            unseen: if is_seen { 0 } else { previous.unseen + 1 },
            lag: None,
            leads: false,
            seen: (0, 0),
            visits: Vec::new(),
            ..previous.clone()
        }
    }
}

/// Removes collections of `crawl` that consist of probes only. These are the collections without
/// pages outside `known_pages`, which maps pages of the previous crawl's similar clusters to their
/// collections, and the collections most of whose pages belong to collections that `is_skipped`
/// marks: a mirror of which few pages were fetched shares only those with its original. A
/// collection with nine in ten pages of a previous collection was fetched, and stays.
fn drop_probed(
    last: &CrawlCollections,
    known_pages: &BTreeMap<DocId, u32>,
    is_skipped: &[bool],
    crawl: &mut CrawlCollections,
) {
    let is_probed = |collection: u32| {
        let pages = crawl.members_of(collection);
        let mut cluster_counts: BTreeMap<u32, u32> = BTreeMap::new();
        pages
            .iter()
            .filter_map(|page| known_pages.get(&page.doc_id))
            .for_each(|&before| *cluster_counts.entry(before).or_default() += 1);
        let is_whole =
            cluster_counts.iter().any(|(&before, &count)| 10 * count >= 9 * last.collections[before as usize].size);
        let n_skipped: u32 =
            cluster_counts.iter().filter(|(before, _)| is_skipped[**before as usize]).map(|(_, count)| count).sum();
        let total: u32 = cluster_counts.values().sum();
        !is_whole && (2 * n_skipped as usize > pages.len() || total as usize == pages.len())
    };
    let is_unprobed: Vec<bool> = (0..crawl.collections.len() as u32).map(|at| !is_probed(at)).collect();
    let mut next = 0;
    let numbers: Vec<Option<u32>> = is_unprobed
        .iter()
        .map(|&is_unprobed| {
            next += u32::from(is_unprobed);
            is_unprobed.then(|| next - 1)
        })
        .collect();
    let mut flags = is_unprobed.iter();
    crawl.collections.retain(|_| flags.next() == Some(&true));
    crawl.members.retain_mut(|page| {
        let number = numbers[page.collection as usize];
        page.collection = number.unwrap_or(page.collection);
        number.is_some()
    });
}

/// Returns the pages that the crawl requested and does not have. These are the pages of records
/// that were not kept, and pages in `requested` if the crawl requested them: `is_listed` states
/// that it did, or at least half of them have a page or a record. (A host that is down leaves no
/// record.)
fn sought_in_vain(
    run: &FinishedRun,
    (requested, is_listed): (&[DocId], bool),
    is_there: impl Fn(DocId) -> bool,
) -> Result<BTreeSet<DocId>> {
    let mut missing_pages: BTreeSet<DocId> = BTreeSet::new();
    scan(run, "rejected", &["detail"], &mut |part| {
        let urls = part.text("detail")?.iter().filter_map(url_in);
        missing_pages.extend(urls.map(|url| doc_id(url.as_str())).filter(|&page| !is_there(page)));
        Ok(())
    })?;
    let absent: Vec<DocId> = requested.iter().copied().filter(|&page| !is_there(page)).collect();
    let n_answered = requested.len() - absent.iter().filter(|page| !missing_pages.contains(page)).count();
    if is_listed || 2 * n_answered >= requested.len() {
        missing_pages.extend(absent);
    }
    Ok(missing_pages)
}
