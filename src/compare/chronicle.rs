//! History of crawl results: adds one result after the other, classifies the change of each
//! collection, and keeps the observations that later crawls need.

use std::collections::{BTreeMap, BTreeSet};

use super::carried_over::carry_over;
use super::collections::{self, Collection, CollectionMember, CrawlCollections, MILLION};
use super::fates::{CollectionFacts, Fate, fate};
use super::history::History;
use super::lag::{PastCrawl, lags};
use super::lives::{Fact, Version};
use super::rates::Visits;
use super::revisit::HostRelation;
use super::saved::{EndedMirrors, SavedComparison};
use super::{kept, visits};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, doc_id};
use webtwin_job::{AvoidancePolicy, Recrawl};
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Maximum number of intervals that are stored separately for the change rate of a host or
/// collection.
const INTERVALS: usize = 16;

/// Minimum fraction of a mirror's texts that must be texts of the leading collection in any crawl
/// that the history keeps; a mirror below it has drifted. For a mirror that never shared texts, the
/// fraction is the mean resemblance to the kept pages. With less than half, the mirror differs more
/// than it agrees.
pub(super) const MIN_COMMON_FRACTION: f64 = 0.5;

/// Number of crawls whose collection pages a history keeps, including the newest. The lag of a
/// mirror and reverted texts are searched in these crawls. Each crawl adds 32 bytes to the file for
/// each page of a collection.
pub(super) const VERSIONS: u32 = 4;

/// Number of consecutive crawls without a match after which a collection has died; until then it is
/// missing. The number is above one, because a host is often down for a single crawl. The content
/// of a history depends on this number.
pub(super) const PATIENCE: u8 = 2;

/// Fraction of a collection's pages whose text must differ for the collection to count as changed:
/// one page in ten, as for probes.
const CHANGED_FRACTION: f64 = 0.1;

/// Change of a collection in one crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MirrorChange {
    /// Classification of the change.
    pub fate: Fate,
    /// Previous version; `None` if the collection was born.
    pub old: Option<Version>,
    /// Current version; `None` if the crawl has no match.
    pub new: Option<Version>,
    /// Measurements from which the classification follows.
    pub seen: CollectionFacts,
    /// Number of pages that both versions have; for a move, of texts or places.
    pub shared: u32,
    /// Number of common pages with an equal text; for a move, of texts that both versions have.
    pub same_text: u32,
    /// Number of common pages with another text.
    pub changed: u32,
    /// First version of the collection's line.
    pub line: Version,
}

/// History of crawl results and the observations stored with it.
pub struct Chronicle {
    history: History,
    /// Line of each collection, by crawl. Only crawls whose pages are kept.
    lines: BTreeMap<u32, Vec<Version>>,
    /// Attempt that wrote each result, by crawl.
    results: BTreeMap<u32, String>,
    hosts: BTreeMap<String, Vec<(u32, Visits)>>,
    ended_mirrors: EndedMirrors,
    /// Pages requested as probes after each crawl, ascending.
    probes: BTreeMap<u32, Vec<DocId>>,
    settings: Recrawl,
}

impl Chronicle {
    /// Creates a history without crawls.
    pub fn new(settings: &Recrawl) -> Chronicle {
        Chronicle {
            history: History::new(PATIENCE),
            lines: BTreeMap::new(),
            results: BTreeMap::new(),
            hosts: BTreeMap::new(),
            ended_mirrors: BTreeMap::new(),
            probes: BTreeMap::new(),
            settings: settings.clone(),
        }
    }

    /// Restores the history that a comparison saved, in the state that it had when `result` was the
    /// newest crawl; later crawls are retracted. `name` names the history in messages.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the history does not have that result, or if the build that
    /// wrote it has another `PATIENCE` or keeps the pages of fewer crawls.
    pub fn restore(name: &str, mut comparison: SavedComparison, result: &str, settings: &Recrawl) -> Result<Chronicle> {
        if comparison.patience != PATIENCE || comparison.versions < VERSIONS {
            let (patience, versions) = (comparison.patience, comparison.versions);
            return Err(Error::Usage(format!(
                "{name}: the history counts a collection as dead after {patience} crawls and keeps the pages of \
                 {versions} crawls, but this build has {PATIENCE} and {VERSIONS}; compare the results without --history"
            )));
        }
        let newest = comparison.results.iter().find(|one| one.1 == result).map(|one| *one.0);
        let newest = newest.ok_or_else(|| {
            Error::Usage(format!(
                "{name}: has no crawl with the attempt {result}; name the history of the older result"
            ))
        })?;
        comparison.results.retain(|&crawl, _| crawl <= newest);
        comparison.crawls.retain(|&crawl, _| crawl <= newest);
        comparison.pairs.retain(|&(_, later), _| later <= newest);
        comparison.ended.retain(|&(crawl, _), _| crawl <= newest);
        comparison.asked.retain(|&crawl, _| crawl <= newest);
        for visits in comparison.hosts.values_mut() {
            visits.retain(|&(crawl, _)| crawl <= newest);
        }
        comparison.hosts.retain(|_, visits| !visits.is_empty());
        let (history, facts) = History::from_crawls(comparison.patience, comparison.crawls, comparison.pairs);
        let mut chronicle = Chronicle {
            history,
            lines: BTreeMap::new(),
            results: comparison.results,
            hosts: comparison.hosts,
            ended_mirrors: comparison.ended,
            probes: comparison.asked,
            settings: settings.clone(),
        };
        chronicle.note_lines(facts.iter().map(|change| &change.0));
        Ok(chronicle)
    }

    /// Returns the state that the next comparison needs.
    pub fn save(mut self) -> SavedComparison {
        // Keeps one crawl more than the next comparison needs, so that this comparison can be
        // repeated.
        let n_crawls = VERSIONS as usize + 1;
        self.history.forget_all_but(n_crawls);
        SavedComparison {
            patience: PATIENCE,
            versions: VERSIONS,
            results: self.results,
            crawls: self.history.crawls().clone(),
            pairs: self.history.pairs().clone(),
            hosts: self.hosts,
            ended: self.ended_mirrors,
            asked: self.probes,
        }
    }

    /// Stores the pages that the crawler is asked to fetch as probes after the newest crawl.
    pub fn add_probes(&mut self, urls: impl Iterator<Item = String>) {
        let Some((&number, _)) = self.crawls().last_key_value() else { return };
        let pages: BTreeSet<DocId> = urls.map(|url| doc_id(&url)).collect();
        self.probes.insert(number, pages.into_iter().collect());
    }

    /// True if the history has the result of an attempt.
    pub fn has_attempt(&self, attempt: &str) -> bool {
        self.results.values().any(|one| one == attempt)
    }

    /// Returns the crawls by number.
    pub fn crawls(&self) -> &BTreeMap<u32, CrawlCollections> {
        self.history.crawls()
    }

    /// Returns a collection of a crawl.
    pub fn collection(&self, version: Version) -> &Collection {
        &self.crawls()[&version.crawl].collections[version.collection as usize]
    }

    /// Returns the line of a version, whose crawl's pages must be kept.
    pub fn line(&self, version: Version) -> Version {
        self.lines[&version.crawl][version.collection as usize]
    }

    /// Returns the visits to hosts.
    pub fn hosts(&self) -> &BTreeMap<String, Vec<(u32, Visits)>> {
        &self.hosts
    }

    /// Returns, by kind, the numbers of intervals and of ends of mirrors that no longer exist.
    pub fn ended_mirrors(&self) -> BTreeMap<HostRelation, (u32, u32)> {
        let mut totals: BTreeMap<HostRelation, (i64, i64)> = BTreeMap::new();
        for (&(_, kind), &(intervals, ends)) in &self.ended_mirrors {
            let sum = totals.entry(kind).or_default();
            (sum.0, sum.1) = (sum.0 + intervals, sum.1 + ends);
        }
        totals.into_iter().map(|(kind, sum)| (kind, (sum.0.max(0) as u32, sum.1.max(0) as u32))).collect()
    }

    /// Adds a result. `previous_run` is the previous result if it can still be read; changes of the
    /// pages of hosts are counted against it.
    ///
    /// Returns the change of each collection, those that need most attention first. All collections
    /// of the first crawl are born.
    ///
    /// # Errors
    /// Returns any error of the tables and of [`History::append`].
    pub fn add(
        &mut self,
        run: &FinishedRun,
        previous_run: Option<&FinishedRun>,
        workers: usize,
    ) -> Result<Vec<MirrorChange>> {
        let mut crawl = collections::crawl(run)?;
        let last = self.crawls().last_key_value().map(|(number, _)| *number);
        if let (true, Some(last)) = (self.settings.obeys(), last) {
            let requested = (
                self.probes.get(&last).map_or(&[][..], Vec::as_slice),
                self.settings.avoided == AvoidancePolicy::Probed,
            );
            carry_over(&self.crawls()[&last], &mut crawl, run, requested)?;
        }
        // The interval is not positive if crawls have no times or were added in another order; then
        // they are not counted as visits.
        let interval = last.map_or(0, |last| crawl.time - self.crawls()[&last].time);
        let number = self.history.next();
        self.results.insert(number, run.manifest.attempt.clone());
        let changes = self.history.append(crawl)?;
        let facts: Vec<Fact> = changes.into_iter().filter(|change| change.1 > 0).map(|change| change.0).collect();
        self.note_lines(facts.iter());
        self.note_lags(number);
        let standing_counts = self.count_standing(&facts, run)?;
        let kept_copies = match previous_run {
            Some(previous_run) => kept::with_unseen_copies(&self.crawls()[&number], previous_run, run)?,
            None => BTreeMap::new(),
        };
        let mut change_list: Vec<MirrorChange> =
            facts.iter().filter_map(|&fact| self.change_list(fact, number, (&standing_counts, &kept_copies))).collect();
        change_list.sort_unstable_by_key(|change_list| (change_list.fate, change_list.new, change_list.old));
        self.remember(&change_list, number, interval);
        if let Some(previous_run) = previous_run.filter(|_| interval > 0) {
            for (host, visits_seen) in visits::of_hosts(previous_run, run, interval, workers)? {
                visits::add(self.hosts.entry(host).or_default(), number, visits_seen, INTERVALS);
            }
        }
        Ok(change_list)
    }

    /// Stores the lines of all versions whose crawl's pages are kept.
    fn note_lines<'a>(&mut self, facts: impl Iterator<Item = &'a Fact>) {
        for fact in facts {
            let &Fact::Line { of: version, line } = fact else { continue };
            let count = self.history.crawls()[&version.crawl].collections.len();
            // No step reads the line of a forgotten version.
            if count == 0 {
                continue;
            }
            self.lines.entry(version.crawl).or_insert_with(|| vec![version; count])[version.collection as usize] = line;
        }
    }

    /// Stores for each collection of the newest crawl if it leads, and its lag.
    fn note_lags(&mut self, number: u32) {
        let no_lines = Vec::new();
        let past_crawl = |(number, crawl)| PastCrawl { crawl, lines: self.lines.get(number).unwrap_or(&no_lines) };
        let newest: Vec<PastCrawl<'_>> =
            self.history.crawls().iter().rev().take(VERSIONS as usize).map(past_crawl).collect();
        let (lags, leaders) = lags(newest[0], &newest[1..]);
        let crawl = self.history.notes(number);
        for ((collection, lag), is_leader) in crawl.collections.iter_mut().zip(lags).zip(leaders) {
            // A collection whose pages were not fetched appears to be behind only for that reason.
            let is_known = 2 * collection.looked_at > collection.size;
            (collection.lag, collection.leads) = (lag.filter(|_| is_known), is_leader);
        }
    }

    /// Counts the pages that the crawl has of each missing collection.
    fn count_standing(&self, facts: &[Fact], run: &FinishedRun) -> Result<BTreeMap<Version, u32>> {
        let mut candidates: Vec<(DocId, Version)> = Vec::new();
        for fact in facts {
            if let &Fact::Missing { old, .. } = fact {
                let pages = self.crawls()[&old.crawl].members_of(old.collection);
                candidates.extend(pages.iter().map(|page| (page.doc_id, old)));
            }
        }
        candidates.sort_unstable();
        let mut standing_counts: BTreeMap<Version, u32> = BTreeMap::new();
        if candidates.is_empty() {
            return Ok(standing_counts);
        }
        scan(run, "pages", &["doc_id"], &mut |part| {
            for doc_id in part.u64("doc_id")? {
                let start = candidates.partition_point(|row| row.0 < *doc_id);
                for (_, old) in candidates[start..].iter().take_while(|row| row.0 == *doc_id) {
                    *standing_counts.entry(*old).or_default() += 1;
                }
            }
            Ok(())
        })?;
        Ok(standing_counts)
    }

    fn change_list(
        &self,
        fact: Fact,
        number: u32,
        (standing_counts, kept_copies): (&BTreeMap<Version, u32>, &BTreeMap<u32, kept::CommonCollectionPages>),
    ) -> Option<MirrorChange> {
        let has_drifted =
            |old: Version, new: Version| match kept_copies.get(&new.collection).filter(|_| new.crawl == number) {
                Some(pages) => pages.have_drifted(MIN_COMMON_FRACTION),
                None => has_drifted(self.collection(old), self.collection(new), MIN_COMMON_FRACTION),
            };
        let crawls_behind = |of: &Collection| of.lag.map(|lag| lag.crawls);
        let facts_of = |old: Option<Version>, new: Option<Version>| {
            let (old_one, new_one) = (old.map(|old| self.collection(old)), new.map(|new| self.collection(new)));
            CollectionFacts {
                sizes: (old_one.map_or(0, |one| one.size), new_one.map_or(0, |one| one.size)),
                kept: old_one.is_some_and(|one| one.keep),
                stays: old_one.zip(new_one).is_some_and(|(old, new)| old.prefix == new.prefix),
                standing: old.and_then(|old| standing_counts.get(&old)).copied().unwrap_or(0),
                drifted: old.zip(new).is_some_and(|(old, new)| has_drifted(old, new)),
                behind: (old_one.and_then(crawls_behind), new_one.and_then(crawls_behind)),
            }
        };
        let (fate, old, new, facts_seen) = fate(fact, number, facts_of)?;
        let n_shared = match fact {
            Fact::Lives { shared: n_shared, .. }
            | Fact::Split { shared: n_shared, .. }
            | Fact::Joined { shared: n_shared, .. } => n_shared,
            _ => facts_seen.standing,
        };
        let pages = |version: Version| self.crawls()[&version.crawl].members_of(version.collection);
        let (n_same_texts, n_changed) = match (old, new) {
            (Some(old), Some(new)) if fate == Fate::Moved => (equal_texts(pages(old), pages(new)), 0),
            (Some(old), Some(new)) => compare_members(pages(old), pages(new)),
            _ => (0, 0),
        };
        let line = self.line(match fact {
            Fact::Joined { old, .. } => old,
            _ => new.or(old).expect("a fact of a crawl has a version"),
        });
        Some(MirrorChange {
            fate,
            old,
            new,
            seen: facts_seen,
            shared: n_shared,
            same_text: n_same_texts,
            changed: n_changed,
            line,
        })
    }

    /// Copies the observations of each collection to its current version, and adds those of ended
    /// collections to the totals of their kind.
    fn remember(&mut self, change_list: &[MirrorChange], number: u32, interval: i64) {
        let crawls: Vec<u32> = self.crawls().keys().copied().collect();
        let place = |crawl: u32| crawls.binary_search(&crawl).expect("it is a crawl of the history");
        for change_list in change_list {
            let Some(old) = change_list.old else { continue };
            let previous = self.collection(old).clone();
            let distance = (place(number) - place(old.crawl)) as u32;
            let is_mirror = previous.resemblance.is_some();
            // The collection ended: no collection continues it, or one that continues another
            // collection.
            let Some(new) = change_list.new.filter(|_| change_list.fate != Fate::Joined) else {
                if is_mirror && distance == 1 {
                    self.book((number, previous.kind), &previous, 1);
                }
                continue;
            };
            if change_list.fate == Fate::Split {
                continue;
            }
            if is_mirror && distance > 1 {
                // The mirror is back. Its intervals are counted with its own version again, not
                // with its kind.
                self.book((number, previous.kind), &previous, -1);
            }
            let ended_lives = u32::from(distance > 1 || change_list.fate.is_end());
            let note = &mut self.history.notes(number).collections[new.collection as usize];
            let has_old_captures = 0 < note.fetched && note.fetched <= previous.fetched;
            if has_old_captures && note.unseen == 0 && interval > 0 {
                note.unseen = previous.unseen + distance;
            }
            // A collection that was not fetched is not known to be alive. Once it is fetched, it
            // has lived in all crawls between.
            let gap = if note.unseen > 0 { (0, 0) } else { (previous.unseen + distance, ended_lives) };
            note.seen = (previous.seen.0 + gap.0, previous.seen.1 + gap.1);
            note.visits = previous.visits;
            let pages = change_list.same_text + change_list.changed;
            if change_list.fate != Fate::Moved && pages > 0 && note.unseen == 0 && interval > 0 {
                let is_changed = f64::from(change_list.changed) > CHANGED_FRACTION * f64::from(pages);
                let visit = Visits { interval, visits: 1, changed: u64::from(is_changed) };
                visits::add(&mut note.visits, number, visit, INTERVALS);
            }
        }
    }
}

impl Chronicle {
    /// Adds the intervals and ends of a mirror to the totals of its kind, `times` times; -1
    /// subtracts them. The entry belongs to the crawl that revealed the end, so it disappears if
    /// that crawl is retracted.
    fn book(&mut self, key: (u32, HostRelation), collection: &Collection, times: i64) {
        let sum = self.ended_mirrors.entry(key).or_default();
        sum.0 += times * i64::from(collection.seen.0 + collection.unseen + 1);
        sum.1 += times * i64::from(collection.seen.1 + 1);
    }
}

/// True if a collection has drifted: the fraction of its texts that the leading collection has, or
/// had in a kept crawl, was at least `threshold` and is now below it. For a collection that never
/// shared texts, for example because its name is on each page, the resemblance to the kept pages is
/// compared with `threshold` in the same way.
fn has_drifted(old: &Collection, new: &Collection, threshold: f64) -> bool {
    if 2 * new.looked_at <= new.size {
        return false;
    }
    let is_copy = |of: &Collection| of.lag.map_or(0.0, |lag| f64::from(lag.shared) / f64::from(lag.texts)) >= threshold;
    let is_alike = |of: &Collection| of.resemblance.is_none_or(|parts| f64::from(parts) >= threshold * MILLION as f64);
    match (is_copy(old), is_copy(new)) {
        (_, true) => false,
        (true, false) => true,
        (false, false) => is_alike(old) && !is_alike(new),
    }
}

/// Counts the pages that both versions have: those with equal text and those with another text.
/// Both lists ascend by page.
fn compare_members(old: &[CollectionMember], new: &[CollectionMember]) -> (u32, u32) {
    let (mut n_same, mut n_changed) = (0, 0);
    for page in new {
        if let Ok(row) = old.binary_search_by_key(&page.doc_id, |page| page.doc_id) {
            *(if old[row].text == page.text { &mut n_same } else { &mut n_changed }) += 1;
        }
    }
    (n_same, n_changed)
}

/// Counts the distinct texts that both lists have.
fn equal_texts(old: &[CollectionMember], new: &[CollectionMember]) -> u32 {
    let texts = |pages: &[CollectionMember]| pages.iter().map(|page| page.text).collect::<BTreeSet<u64>>();
    texts(old).intersection(&texts(new)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::super::lag::Lag;
    use super::*;

    #[test]
    fn diverging_mirror_has_drifted_once_and_lagging_mirror_has_not() {
        let collection_with = |n_shared, resemblance| Collection {
            lag: Some(Lag { crawls: 2, shared: n_shared, texts: 10 }),
            resemblance: Some(resemblance),
            size: 10,
            looked_at: 10,
            ..Collection::default()
        };
        // An old version, which hardly resembles the new one.
        assert!(!has_drifted(&collection_with(10, 900_000), &collection_with(10, 300_000), 0.5));
        assert!(has_drifted(&collection_with(6, 900_000), &collection_with(2, 800_000), 0.5));
        assert!(!has_drifted(&collection_with(2, 900_000), &collection_with(1, 800_000), 0.5));
        // A collection that was not fetched has not drifted.
        assert!(!has_drifted(
            &collection_with(6, 900_000),
            &Collection { looked_at: 5, ..collection_with(2, 800_000) },
            0.5
        ));
        // Its name is on each page.
        assert!(has_drifted(&collection_with(0, 900_000), &collection_with(0, 400_000), 0.5));
        assert!(!has_drifted(&collection_with(0, 400_000), &collection_with(0, 300_000), 0.5));
    }

    #[test]
    fn rejects_history_of_a_build_that_retains_other_crawls() {
        let (settings, results) = (Recrawl::default(), BTreeMap::from([(0, "a".to_string())]));
        let history = SavedComparison { patience: PATIENCE, versions: VERSIONS, results, ..SavedComparison::default() };
        assert!(Chronicle::restore("h", history.clone(), "a", &settings).is_ok());
        for other_history in
            [SavedComparison { patience: 3, ..history.clone() }, SavedComparison { versions: 2, ..history }]
        {
            let error = Chronicle::restore("h", other_history, "a", &settings).err().unwrap();
            assert!(error.exit_code() == 2 && error.to_string().contains("this build has 2 and 4"), "{error}");
        }
    }
}
