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
/// pages in `asked`, which were requested as probes, if the crawl requested them (`is_listed`, or
/// inferred) and does not have them.
///
/// A skipped collection is not carried over in two cases: if more of its requested pages are absent
/// than present, or if, of its present probes, a fraction below [`MIN_COMMON_FRACTION`] is on the
/// avoid list again or has the same text as before.
pub(super) fn carry_over(
    last: &CrawlCollections,
    crawl: &mut CrawlCollections,
    run: &FinishedRun,
    (asked, is_listed): (&[DocId], bool),
) -> Result<()> {
    let fetched = Fetched::read(last, run, (asked, is_listed))?;
    let is_skipped: Vec<bool> = (0..last.collections.len() as u32).map(|at| fetched.is_skipped(at)).collect();
    let clusters = super::lag::clusters(last).into_iter().map(|of| of.1);
    let of_skipped: Vec<Vec<u32>> =
        clusters.filter(|cluster| cluster.iter().any(|&at| is_skipped[at as usize])).collect();
    let of_clusters = of_skipped.iter().flatten().flat_map(|&at| last.members_of(at));
    let known: BTreeMap<DocId, u32> = of_clusters.map(|page| (page.doc_id, page.collection)).collect();
    let family_of = |at: u32| last.collections[at as usize].similar_cluster;
    let clusters_before: BTreeMap<DocId, DocId> = known.iter().map(|(&page, &at)| (page, family_of(at))).collect();
    let families = parts::families(crawl, &clusters_before);
    drop_probed(last, &known, &is_skipped, crawl);
    parts::join(crawl, &families, &clusters_before);
    let in_collections: BTreeSet<DocId> = crawl.members.iter().map(|page| page.doc_id).collect();
    for at in of_skipped.into_iter().flatten() {
        let is_skipped = is_skipped[at as usize];
        let has_ended = fetched.may_be_skipped(at) && !is_skipped;
        if has_ended {
            continue;
        }
        let pages = fetched.carried(at, is_skipped);
        if pages.is_empty() || pages.iter().any(|page| in_collections.contains(&page.doc_id)) {
            continue;
        }
        let number = crawl.collections.len() as u32;
        crawl.collections.push(fetched.as_it_is(at, &pages, is_skipped));
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
    listed: BTreeSet<DocId>,
    /// Pages that were requested and are absent.
    sought: BTreeSet<DocId>,
    /// Pages that the crawler was asked to fetch as probes, ascending.
    asked: &'a [DocId],
}

impl<'a> Fetched<'a> {
    fn read(last: &'a CrawlCollections, run: &FinishedRun, asked: (&'a [DocId], bool)) -> Result<Fetched<'a>> {
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
        let mut listed: BTreeSet<DocId> = BTreeSet::new();
        scan(run, "avoid", &["doc_id"], &mut |part| {
            listed.extend(part.u64("doc_id")?.iter().filter(|page| now.contains_key(page)));
            Ok(())
        })?;
        let sought = sought_in_vain(run, asked, |page| now.get(&page).is_some_and(Option::is_some))?;
        Ok(Fetched { last, now, listed, sought, asked: asked.0 })
    }

    fn of(&self, at: u32) -> &'a Collection {
        &self.last.collections[at as usize]
    }

    fn pages(&self, at: u32) -> &'a [CollectionMember] {
        self.last.members_of(at)
    }

    fn is_there(&self, page: &CollectionMember) -> bool {
        self.now[&page.doc_id].is_some()
    }

    fn was_asked(&self, page: &CollectionMember) -> bool {
        self.asked.binary_search(&page.doc_id).is_ok()
    }

    fn is_listed(&self, page: &CollectionMember) -> bool {
        self.listed.contains(&page.doc_id)
    }

    fn missing(&self, at: u32) -> u32 {
        self.pages(at).iter().filter(|page| !self.is_there(page)).count() as u32
    }

    /// True if most requested pages are present and most present probes still are copies.
    fn lives(&self, at: u32) -> bool {
        let in_vain = self.pages(at).iter().filter(|page| self.sought.contains(&page.doc_id)).count() as u32;
        let found = self.pages(at).len() as u32 - self.missing(at);
        let probes = || self.pages(at).iter().filter(|page| self.was_asked(page) && self.is_there(page));
        // A probe with an unchanged text is as close to its original as it was; or the original
        // changed and the mirror did not follow.
        let has_same_text = |page: &CollectionMember| self.now[&page.doc_id].is_some_and(|now| now.0 == page.text);
        let copies = probes().filter(|page| self.is_listed(page) || has_same_text(page)).count();
        in_vain <= found && copies as f64 >= MIN_COMMON_FRACTION * probes().count() as f64
    }

    /// True if most of the collection is on the list and some pages were not fetched.
    fn may_be_skipped(&self, at: u32) -> bool {
        2 * self.of(at).skipped > self.of(at).size && 0 < self.missing(at)
    }

    /// True if the collection was skipped: at least half of its pages that are not on the list were
    /// fetched, and it lives. All other fetched pages are probes.
    fn is_skipped(&self, at: u32) -> bool {
        let of = self.of(at);
        let open = of.size.saturating_sub(of.skipped);
        self.may_be_skipped(at) && 2 * self.missing(at).saturating_sub(of.skipped) <= open && self.lives(at)
    }

    /// True if pages that were not fetched still belong to the collection: it was skipped, or it
    /// lives and lacks no more pages than the list has.
    fn stands(&self, at: u32, is_skipped: bool) -> bool {
        is_skipped || self.missing(at) <= self.of(at).skipped && self.lives(at)
    }

    /// Returns the pages with which the collection is carried over, with their current texts.
    fn carried(&self, at: u32, is_skipped: bool) -> Vec<CollectionMember> {
        let stands = self.stands(at, is_skipped);
        let there = |page: &&CollectionMember| self.is_there(page) || stands && !self.sought.contains(&page.doc_id);
        let text = |page: &CollectionMember| self.now[&page.doc_id].map_or(page.text, |now| now.0);
        self.pages(at).iter().filter(there).map(|page| CollectionMember { text: text(page), ..*page }).collect()
    }

    /// Builds the collection as it is now, with the given pages.
    fn as_it_is(&self, at: u32, pages: &[CollectionMember], is_skipped: bool) -> Collection {
        let before = self.of(at);
        let there = || pages.iter().filter(|page| self.is_there(page));
        // Pages of a mirror that are not on the list are fetched in each crawl, so they are no
        // evidence for the pages on the list.
        let is_complete = before.keep || before.skipped == 0 || !self.stands(at, is_skipped);
        let is_seen = there().any(|page| is_complete || self.was_asked(page) || self.is_listed(page));
        // Counts the pages that stay on the list and those that this crawl added to it. The next
        // crawl need not fetch either.
        let skipped = pages.iter().filter(|page| !self.is_there(page) || self.is_listed(page)).count() as u32;
        Collection {
            size: pages.len() as u32,
            looked_at: there().count() as u32,
            skipped,
            // A collection most of whose pages are skipped is not the kept one; another one is.
            keep: before.keep && 2 * skipped as usize <= pages.len(),
            fetched: there().filter_map(|page| self.now[&page.doc_id]).map(|now| now.1).max().unwrap_or(before.fetched),
            unseen: if is_seen { 0 } else { before.unseen + 1 },
            lag: None,
            leads: false,
            seen: (0, 0),
            visits: Vec::new(),
            ..before.clone()
        }
    }
}

/// Removes collections of `crawl` that consist of probes only. These are the collections without
/// pages outside `known`, which maps pages of the previous crawl's similar clusters to their
/// collections, and the collections most of whose pages belong to collections that `is_skipped`
/// marks: a mirror of which few pages were fetched shares only those with its original. A
/// collection with nine in ten pages of a previous collection was fetched, and stays.
fn drop_probed(
    last: &CrawlCollections,
    known: &BTreeMap<DocId, u32>,
    is_skipped: &[bool],
    crawl: &mut CrawlCollections,
) {
    let is_probed = |at: u32| {
        let pages = crawl.members_of(at);
        let mut of: BTreeMap<u32, u32> = BTreeMap::new();
        pages.iter().filter_map(|page| known.get(&page.doc_id)).for_each(|&before| *of.entry(before).or_default() += 1);
        let is_whole = of.iter().any(|(&before, &count)| 10 * count >= 9 * last.collections[before as usize].size);
        let skipped: u32 = of.iter().filter(|(before, _)| is_skipped[**before as usize]).map(|(_, count)| count).sum();
        let all: u32 = of.values().sum();
        !is_whole && (2 * skipped as usize > pages.len() || all as usize == pages.len())
    };
    let stays: Vec<bool> = (0..crawl.collections.len() as u32).map(|at| !is_probed(at)).collect();
    let mut next = 0;
    let numbers: Vec<Option<u32>> = stays
        .iter()
        .map(|&stays| {
            next += u32::from(stays);
            stays.then(|| next - 1)
        })
        .collect();
    let mut kept = stays.iter();
    crawl.collections.retain(|_| kept.next() == Some(&true));
    crawl.members.retain_mut(|page| {
        let number = numbers[page.collection as usize];
        page.collection = number.unwrap_or(page.collection);
        number.is_some()
    });
}

/// Returns the pages that the crawl requested and does not have. These are the pages of records
/// that were not kept, and pages in `asked` if the crawl requested them: `is_listed` states that it
/// did, or at least half of them have a page or a record. (A host that is down leaves no record.)
fn sought_in_vain(
    run: &FinishedRun,
    (asked, is_listed): (&[DocId], bool),
    is_there: impl Fn(DocId) -> bool,
) -> Result<BTreeSet<DocId>> {
    let mut sought: BTreeSet<DocId> = BTreeSet::new();
    scan(run, "rejected", &["detail"], &mut |part| {
        let urls = part.text("detail")?.iter().filter_map(url_in);
        sought.extend(urls.map(|url| doc_id(url.as_str())).filter(|&page| !is_there(page)));
        Ok(())
    })?;
    let gone: Vec<DocId> = asked.iter().copied().filter(|&page| !is_there(page)).collect();
    let answered = asked.len() - gone.iter().filter(|page| !sought.contains(page)).count();
    if is_listed || 2 * answered >= asked.len() {
        sought.extend(gone);
    }
    Ok(sought)
}
