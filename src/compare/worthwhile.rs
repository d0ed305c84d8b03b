//! Collections on the avoid list that a crawler should visit, the pages to fetch, and exports of
//! these pages for crawlers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::chronicle::{Chronicle, MirrorChange};
use super::collections::Collection;
use super::fates::Fate;
use super::lives::Version;
use super::revisit::{Policy, Relation, VisitValue, draw, order, within, worth};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_job::Recrawl;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Collection to visit.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectionVisit {
    /// Version of the collection in the newest crawl.
    pub version: Version,
    /// Reason for the visit.
    pub why: &'static str,
    /// Observations of the collection.
    pub relation: Relation,
    /// Value of the visit.
    pub value: VisitValue,
    /// True if the visit is within the budget.
    pub is_chosen: bool,
    /// Pages to fetch.
    pub urls: Vec<String>,
}

/// Confidence with which the probes of a collection represent all its pages. With the default
/// settings it leads to 29 probes a collection.
const CONFIDENCE: f64 = 0.95;

/// Weight of the hazard of all mirrors of a kind against a mirror's own, in intervals between
/// crawls. After a month of weekly crawls, the mirror's own observations outweigh those of the
/// others.
const PRIOR_INTERVALS: f64 = 4.0;

/// Returns the policy for the settings.
fn policy(settings: &Recrawl) -> Policy {
    Policy { confidence: CONFIDENCE, share: settings.probe_share, prior_intervals: PRIOR_INTERVALS }
}

/// Calls a function for each page of an avoid list, with its URL. A page that is listed twice is
/// passed twice.
pub type ListVisitor<'a> = dyn Fn(&mut dyn FnMut(DocId, &str)) -> Result<()> + 'a;

/// Avoid list of the newest crawl, and the lists of earlier crawls.
pub type AvoidHistory<'a> = [&'a ListVisitor<'a>; 2];

/// Returns all collections of the newest crawl that are not kept and have pages on the avoid list,
/// the most valuable first.
///
/// # Errors
/// Returns any error of the lists.
///
/// # Cost
/// Reads the lists twice. Holds the doc ids of collection pages on the lists in memory.
pub fn visits_worthwhile(
    chronicle: &Chronicle,
    changes: &[MirrorChange],
    lists: AvoidHistory<'_>,
    settings: &Recrawl,
) -> Result<Vec<CollectionVisit>> {
    let Some((&number, crawl)) = chronicle.crawls().last_key_value() else { return Ok(Vec::new()) };
    // A joined collection has no version of its own: the new version continues another collection.
    let fates: BTreeMap<Version, Fate> = changes
        .iter()
        .filter(|changes| changes.fate != Fate::Joined)
        .filter_map(|changes| Some((changes.new?, changes.fate)))
        .collect();
    let versions = (0..crawl.collections.len() as u32).map(|collection| Version { crawl: number, collection });
    let may_be_skipped = |of: &Version| chronicle.collection(*of).skipped > 0 && !chronicle.collection(*of).keep;
    let skipped_versions: Vec<Version> = versions.filter(may_be_skipped).collect();
    let relation = |version: &Version| {
        let collection = chronicle.collection(*version);
        let (intervals, ends) = collection.seen;
        Relation { kind: collection.kind, intervals, ends, n_skipped: collection.skipped, age: collection.unseen + 1 }
    };
    let relations: Vec<Relation> = skipped_versions.iter().map(relation).collect();
    let pools = chronicle.ended_mirrors().into_iter();
    // Relations that ended contribute to the hazard of their kind, but not to visits.
    let past: Vec<Relation> =
        pools.map(|(kind, (intervals, ends))| Relation { kind, intervals, ends, n_skipped: 0, age: 1 }).collect();
    let policy = policy(settings);
    let worths = worth(&relations, &past, &policy);
    let order = order(&worths);
    let is_chosen = within(settings.budget, &worths, &order);
    let leaders = changed_leaders(&crawl.collections, number);
    let mut urls = urls(chronicle, (&skipped_versions, &worths), lists)?;
    let visit = |number: usize| {
        let (version, collection) = (skipped_versions[number], chronicle.collection(skipped_versions[number]));
        let leader_changed = leaders.get(&collection.similar_cluster) == Some(&true);
        CollectionVisit {
            version,
            why: why(collection, fates.get(&version).copied(), leader_changed),
            relation: relations[number],
            value: worths[number],
            is_chosen: is_chosen[number],
            urls: std::mem::take(&mut urls[number]),
        }
    };
    Ok(order.iter().copied().map(visit).collect())
}

/// Maps each similar cluster to true if its leading collection changed in a crawl.
fn changed_leaders(collections: &[Collection], crawl: u32) -> BTreeMap<DocId, bool> {
    let leaders = collections.iter().filter(|collection| collection.leads);
    let has_changed = |one: &Collection| one.visits.last().is_some_and(|visit| visit.0 == crawl && visit.1.changed > 0);
    leaders.map(|one| (one.similar_cluster, has_changed(one))).collect()
}

fn why(collection: &Collection, fate: Option<Fate>, leader_changed: bool) -> &'static str {
    match fate {
        _ if collection.unseen > 0 => "unseen",
        Some(Fate::Born | Fate::Split | Fate::Moved) => "new_mirror",
        Some(Fate::Drifted) => "drifted",
        _ if collection.lag.is_some_and(|lag| lag.crawls > 0) => "stale",
        Some(Fate::Grew) => "grew",
        _ if leader_changed => "original_changed",
        _ => "probe_due",
    }
}

/// Draws the pages to fetch of each collection, as many as its visit has probes. The draw is from
/// the pages on the newest crawl's list. If that list lacks skipped pages of the collection, the
/// pages on earlier lists are added.
fn urls(
    chronicle: &Chronicle,
    (version_list, worths): (&[Version], &[VisitValue]),
    lists: AvoidHistory<'_>,
) -> Result<Vec<Vec<String>>> {
    let mut place: BTreeMap<DocId, usize> = BTreeMap::new();
    for (number, version) in version_list.iter().enumerate() {
        let members = chronicle.crawls()[&version.crawl].members_of(version.collection);
        place.extend(members.iter().map(|member| (member.doc_id, number)));
    }
    let mut listed_pages: Vec<BTreeSet<DocId>> = vec![BTreeSet::new(); version_list.len()];
    for list in lists {
        list(&mut |doc_id, _| {
            if let Some(&number) = place.get(&doc_id) {
                listed_pages[number].insert(doc_id);
            }
        })?;
        place.retain(|_, &mut at| listed_pages[at].len() < chronicle.collection(version_list[at]).skipped as usize);
    }
    drop(place);
    let mut samples: BTreeMap<DocId, (usize, Option<String>)> = BTreeMap::new();
    for (number, pages) in listed_pages.into_iter().enumerate() {
        let pages: Vec<DocId> = pages.into_iter().collect();
        let pages = draw(&pages, worths[number].probes, u64::from(version_list[number].crawl));
        samples.extend(pages.into_iter().map(|page| (page, (number, None))));
    }
    for list in lists {
        list(&mut |doc_id, url| {
            if let Some((_, url_slot)) = samples.get_mut(&doc_id) {
                *url_slot = Some(url.to_string());
            }
        })?;
    }
    let mut urls: Vec<Vec<String>> = vec![Vec::new(); version_list.len()];
    for (number, url) in samples.into_values() {
        urls[number].extend(url);
    }
    urls.iter_mut().for_each(|urls| urls.sort_unstable());
    Ok(urls)
}

/// Draws pages to fetch that are in no collection, with the remaining budget; ascending by URL.
/// Candidates are on earlier lists, are in no current collection and in none of `ended_mirrors`,
/// and were not fetched for the newest crawl. Another crawl draws other pages, so that each page is
/// drawn eventually.
///
/// # Errors
/// Returns any error of the lists and of the tables of `new`, the newest crawl.
///
/// # Cost
/// Reads the lists once more, and the doc ids of the crawl. Holds the doc ids of the standing pages
/// in memory.
pub fn singles(
    chronicle: &Chronicle,
    (visits, ended_mirrors): (&[CollectionVisit], &[DocId]),
    lists: AvoidHistory<'_>,
    new: &FinishedRun,
    settings: &Recrawl,
) -> Result<Vec<String>> {
    let n_spent: u64 = visits.iter().filter(|visit| visit.is_chosen).map(|visit| visit.urls.len() as u64).sum();
    let left = settings.budget.saturating_sub(n_spent);
    // A mirror is drawn from first, so single pages receive only what its visits leave of the
    // budget.
    let newest = chronicle.crawls().last_key_value().filter(|_| settings.obeys() && left > 0);
    let Some((&number, crawl)) = newest else { return Ok(Vec::new()) };
    let mut standing_pages: BTreeSet<DocId> = BTreeSet::new();
    lists[1](&mut |doc_id, _| _ = standing_pages.insert(doc_id))?;
    lists[0](&mut |doc_id, _| _ = standing_pages.remove(&doc_id))?;
    crawl.members.iter().map(|page| &page.doc_id).chain(ended_mirrors).for_each(|page| _ = standing_pages.remove(page));
    scan(new, "pages", &["doc_id"], &mut |part| {
        part.u64("doc_id")?.iter().for_each(|page| _ = standing_pages.remove(page));
        Ok(())
    })?;
    let standing_pages: Vec<DocId> = standing_pages.into_iter().collect();
    let sampled = draw(&standing_pages, left.min(u64::from(u32::MAX)) as u32, u64::from(number));
    let sampled: BTreeSet<DocId> = sampled.into_iter().collect();
    let mut urls: BTreeSet<String> = BTreeSet::new();
    lists[1](&mut |doc_id, url| {
        if sampled.contains(&doc_id) {
            urls.insert(url.to_string());
        }
    })?;
    Ok(urls.into_iter().collect())
}

/// Renders the pages within the budget in the formats of crawlers. `single_urls` are pages outside
/// of collections and come last.
pub fn exports(
    chronicle: &Chronicle,
    visits: &[CollectionVisit],
    single_urls: &[String],
    settings: &Recrawl,
) -> Vec<(String, Vec<u8>)> {
    let crawls: Vec<i64> = chronicle.crawls().values().rev().take(2).map(|crawl| crawl.time).collect();
    // A single crawl, or crawls without times, have no interval; a week is an arbitrary default.
    let interval = match crawls[..] {
        [now, previous_time] if now > previous_time => (now - previous_time) as f64,
        _ => 7.0 * 86_400.0,
    };
    let (mut plain_list, mut nutch, mut scrapy) = (String::new(), String::new(), String::new());
    let mut put_url = |url: &str, score: f64, seconds: u64| {
        plain_list += &format!("{url}\n");
        nutch += &format!("{url}\tnutch.score={score}\tnutch.fetchInterval={seconds}\n");
        let rank = (score * 1000.0).round() as i64;
        scrapy += &format!("{}\n", json!({ "url": url, "priority": rank }));
    };
    for visit in visits.iter().filter(|visit| visit.is_chosen) {
        // The interval ends when the probability that the mirror has ended reaches the fraction
        // that probes can detect.
        let intervals = -(-settings.probe_share).ln_1p() / visit.value.hazard;
        let seconds = (interval * intervals.clamp(1.0, 1000.0)).round() as u64;
        visit.urls.iter().for_each(|url| put_url(url, visit.value.priority, seconds));
    }
    single_urls.iter().for_each(|url| put_url(url, 0.0, interval as u64));
    [("revisit.txt", plain_list), ("revisit-nutch.txt", nutch), ("revisit-scrapy.jsonl", scrapy)]
        .map(|(name, text)| (format!("exports/{name}"), text.into_bytes()))
        .into()
}
