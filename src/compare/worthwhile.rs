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
    pub of: Version,
    /// Reason for the visit.
    pub why: &'static str,
    /// Observations of the collection.
    pub relation: Relation,
    /// Value of the visit.
    pub worth: VisitValue,
    /// True if the visit is within the budget.
    pub chosen: bool,
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
    let all = (0..crawl.collections.len() as u32).map(|collection| Version { crawl: number, collection });
    let may_be_skipped = |of: &Version| chronicle.collection(*of).skipped > 0 && !chronicle.collection(*of).keep;
    let skipped: Vec<Version> = all.filter(may_be_skipped).collect();
    let relation = |of: &Version| {
        let one = chronicle.collection(*of);
        let (intervals, ends) = one.seen;
        Relation { kind: one.kind, intervals, ends, skipped: one.skipped, age: one.unseen + 1 }
    };
    let relations: Vec<Relation> = skipped.iter().map(relation).collect();
    let pools = chronicle.ended().into_iter();
    // Relations that ended contribute to the hazard of their kind, but not to visits.
    let past: Vec<Relation> =
        pools.map(|(kind, (intervals, ends))| Relation { kind, intervals, ends, skipped: 0, age: 1 }).collect();
    let policy = policy(settings);
    let worths = worth(&relations, &past, &policy);
    let order = order(&worths);
    let chosen = within(settings.budget, &worths, &order);
    let leaders = changed_leaders(&crawl.collections, number);
    let mut urls = urls(chronicle, (&skipped, &worths), lists)?;
    let visit = |at: usize| {
        let (of, one) = (skipped[at], chronicle.collection(skipped[at]));
        let leader_changed = leaders.get(&one.similar_cluster) == Some(&true);
        CollectionVisit {
            of,
            why: why(one, fates.get(&of).copied(), leader_changed),
            relation: relations[at],
            worth: worths[at],
            chosen: chosen[at],
            urls: std::mem::take(&mut urls[at]),
        }
    };
    Ok(order.iter().copied().map(visit).collect())
}

/// Maps each similar cluster to true if its leading collection changed in a crawl.
fn changed_leaders(collections: &[Collection], crawl: u32) -> BTreeMap<DocId, bool> {
    let leaders = collections.iter().filter(|collection| collection.leads);
    let changed = |one: &Collection| one.visits.last().is_some_and(|visit| visit.0 == crawl && visit.1.changed > 0);
    leaders.map(|one| (one.similar_cluster, changed(one))).collect()
}

fn why(of: &Collection, fate: Option<Fate>, leader_changed: bool) -> &'static str {
    match fate {
        _ if of.unseen > 0 => "unseen",
        Some(Fate::Born | Fate::Split | Fate::Moved) => "new_mirror",
        Some(Fate::Drifted) => "drifted",
        _ if of.lag.is_some_and(|lag| lag.crawls > 0) => "stale",
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
    (of, worths): (&[Version], &[VisitValue]),
    lists: AvoidHistory<'_>,
) -> Result<Vec<Vec<String>>> {
    let mut place: BTreeMap<DocId, usize> = BTreeMap::new();
    for (at, version) in of.iter().enumerate() {
        let members = chronicle.crawls()[&version.crawl].members_of(version.collection);
        place.extend(members.iter().map(|member| (member.doc_id, at)));
    }
    let mut listed: Vec<BTreeSet<DocId>> = vec![BTreeSet::new(); of.len()];
    for list in lists {
        list(&mut |doc_id, _| {
            if let Some(&at) = place.get(&doc_id) {
                listed[at].insert(doc_id);
            }
        })?;
        place.retain(|_, &mut at| listed[at].len() < chronicle.collection(of[at]).skipped as usize);
    }
    drop(place);
    let mut drawn: BTreeMap<DocId, (usize, Option<String>)> = BTreeMap::new();
    for (at, pages) in listed.into_iter().enumerate() {
        let pages: Vec<DocId> = pages.into_iter().collect();
        let pages = draw(&pages, worths[at].probes, u64::from(of[at].crawl));
        drawn.extend(pages.into_iter().map(|page| (page, (at, None))));
    }
    for list in lists {
        list(&mut |doc_id, url| {
            if let Some((_, found)) = drawn.get_mut(&doc_id) {
                *found = Some(url.to_string());
            }
        })?;
    }
    let mut urls: Vec<Vec<String>> = vec![Vec::new(); of.len()];
    for (at, url) in drawn.into_values() {
        urls[at].extend(url);
    }
    urls.iter_mut().for_each(|urls| urls.sort_unstable());
    Ok(urls)
}

/// Draws pages to fetch that are in no collection, with the remaining budget; ascending by URL.
/// Candidates are on earlier lists, are in no current collection and in none that has `ended`, and
/// were not fetched for the newest crawl. Another crawl draws other pages, so that each page is
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
    (visits, ended): (&[CollectionVisit], &[DocId]),
    lists: AvoidHistory<'_>,
    new: &FinishedRun,
    settings: &Recrawl,
) -> Result<Vec<String>> {
    let spent: u64 = visits.iter().filter(|visit| visit.chosen).map(|visit| visit.urls.len() as u64).sum();
    let left = settings.budget.saturating_sub(spent);
    // A mirror is drawn from first, so single pages receive only what its visits leave of the
    // budget.
    let newest = chronicle.crawls().last_key_value().filter(|_| settings.obeys() && left > 0);
    let Some((&number, crawl)) = newest else { return Ok(Vec::new()) };
    let mut standing: BTreeSet<DocId> = BTreeSet::new();
    lists[1](&mut |doc_id, _| _ = standing.insert(doc_id))?;
    lists[0](&mut |doc_id, _| _ = standing.remove(&doc_id))?;
    crawl.members.iter().map(|page| &page.doc_id).chain(ended).for_each(|page| _ = standing.remove(page));
    scan(new, "pages", &["doc_id"], &mut |part| {
        part.u64("doc_id")?.iter().for_each(|page| _ = standing.remove(page));
        Ok(())
    })?;
    let standing: Vec<DocId> = standing.into_iter().collect();
    let drawn = draw(&standing, left.min(u64::from(u32::MAX)) as u32, u64::from(number));
    let drawn: BTreeSet<DocId> = drawn.into_iter().collect();
    let mut urls: BTreeSet<String> = BTreeSet::new();
    lists[1](&mut |doc_id, url| {
        if drawn.contains(&doc_id) {
            urls.insert(url.to_string());
        }
    })?;
    Ok(urls.into_iter().collect())
}

/// Renders the pages within the budget in the formats of crawlers. `singles` are pages outside of
/// collections and come last.
pub fn exports(
    chronicle: &Chronicle,
    visits: &[CollectionVisit],
    singles: &[String],
    settings: &Recrawl,
) -> Vec<(String, Vec<u8>)> {
    let crawls: Vec<i64> = chronicle.crawls().values().rev().take(2).map(|crawl| crawl.time).collect();
    // A single crawl, or crawls without times, have no interval; a week is an arbitrary default.
    let interval = match crawls[..] {
        [now, before] if now > before => (now - before) as f64,
        _ => 7.0 * 86_400.0,
    };
    let (mut plain, mut nutch, mut scrapy) = (String::new(), String::new(), String::new());
    let mut put = |url: &str, score: f64, seconds: u64| {
        plain += &format!("{url}\n");
        nutch += &format!("{url}\tnutch.score={score}\tnutch.fetchInterval={seconds}\n");
        let priority = (score * 1000.0).round() as i64;
        scrapy += &format!("{}\n", json!({ "url": url, "priority": priority }));
    };
    for visit in visits.iter().filter(|visit| visit.chosen) {
        // The interval ends when the probability that the mirror has ended reaches the fraction
        // that probes can detect.
        let intervals = -(-settings.probe_share).ln_1p() / visit.worth.hazard;
        let seconds = (interval * intervals.clamp(1.0, 1000.0)).round() as u64;
        visit.urls.iter().for_each(|url| put(url, visit.worth.priority, seconds));
    }
    singles.iter().for_each(|url| put(url, 0.0, interval as u64));
    [("revisit.txt", plain), ("revisit-nutch.txt", nutch), ("revisit-scrapy.jsonl", scrapy)]
        .map(|(name, text)| (format!("exports/{name}"), text.into_bytes()))
        .into()
}
