//! Results of crawls, added to a history one after the other: what became of each collection, and what the history remembers of it.

use std::collections::{BTreeMap, BTreeSet};

use super::carried_over::carry_over;
use super::collections::{self, Collection, Crawl, MILLION, Member};
use super::fates::{Fate, Seen, fate};
use super::history::History;
use super::lag::{Past, lags};
use super::lives::{Fact, Version};
use super::rates::Visits;
use super::revisit::Kind;
use super::saved::{Ended, Saved};
use super::{kept, visits};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, doc_id};
use webtwin_job::{Avoided, Recrawl};
use webtwin_results::Run;
use webtwin_results::scan::scan;

/// Intervals that are kept apart for the rates of a host or collection.
const INTERVALS: usize = 16;

/// Fraction of a mirror's texts that must be those of the collection that leads, in any crawl that the history keeps, or the mirror has
/// drifted; of a mirror that never had them, mean resemblance to the pages kept. With less than half it is more another thing than a copy.
pub(super) const DRIFT: f64 = 0.5;

/// Crawls whose pages of collections a history keeps, the newest included: a mirror's lag is looked for in these, and so are texts that
/// pages have again. Each crawl adds 32 bytes for each page of a collection to the file.
pub(super) const VERSIONS: u32 = 4;

/// Crawls in a row that must have nothing of a collection for it to have died; until then it is missing. A host that is down for one
/// crawl is common. What a history holds depends on it.
pub(super) const PATIENCE: u8 = 2;

/// Fraction of a collection's pages that must have another text for the collection to have changed: one page in ten, as for probes.
const CHANGED: f64 = 0.1;

/// What became of a collection with a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// In a word.
    pub fate: Fate,
    /// Its version before; `None` if it was born.
    pub old: Option<Version>,
    /// Its version now; `None` if the crawl has nothing of it.
    pub new: Option<Version>,
    /// What the word follows from.
    pub seen: Seen,
    /// Pages that both have; of a move its texts or places.
    pub shared: u32,
    /// Of the pages that both have, those with equal text; of a move the texts that both have.
    pub same_text: u32,
    /// Pages that both have with another text.
    pub changed: u32,
    /// The first version of its line.
    pub line: Version,
}

/// A history of results, and the notes beside it.
pub struct Chronicle {
    history: History,
    /// The line of each collection, of the crawls whose pages are kept.
    lines: BTreeMap<u32, Vec<Version>>,
    /// The attempts that made the results.
    results: BTreeMap<u32, String>,
    hosts: BTreeMap<String, Vec<(u32, Visits)>>,
    ended: Ended,
    /// Pages that were to be fetched as probes after each crawl, ascending.
    asked: BTreeMap<u32, Vec<DocId>>,
    settings: Recrawl,
}

impl Chronicle {
    /// One without crawls.
    pub fn new(settings: &Recrawl) -> Chronicle {
        Chronicle {
            history: History::new(PATIENCE),
            lines: BTreeMap::new(),
            results: BTreeMap::new(),
            hosts: BTreeMap::new(),
            ended: BTreeMap::new(),
            asked: BTreeMap::new(),
            settings: settings.clone(),
        }
    }

    /// Takes up what a comparison saved, `name` in messages, as it was when `result` was the newest crawl: later ones are retracted.
    ///
    /// # Errors
    /// [`Error::Usage`] if it does not have that result, or was made by a build that waits for another number of crawls before a
    /// collection has died, or keeps the pages of fewer crawls.
    pub fn take_up(name: &str, mut saved: Saved, result: &str, settings: &Recrawl) -> Result<Chronicle> {
        if saved.patience != PATIENCE || saved.versions < VERSIONS {
            let (patience, versions) = (saved.patience, saved.versions);
            return Err(Error::Usage(format!(
                "{name}: a collection has died after {patience} crawls there, and the pages of {versions} crawls are kept, but this build \
                 has {PATIENCE} and {VERSIONS}; compare the results themselves"
            )));
        }
        let newest = saved.results.iter().find(|one| one.1 == result).map(|one| *one.0);
        let newest = newest.ok_or_else(|| {
            Error::Usage(format!(
                "{name}: knows no crawl with the attempt {result}; is it the history of the older result?"
            ))
        })?;
        saved.results.retain(|&crawl, _| crawl <= newest);
        saved.crawls.retain(|&crawl, _| crawl <= newest);
        saved.pairs.retain(|&(_, later), _| later <= newest);
        saved.ended.retain(|&(crawl, _), _| crawl <= newest);
        saved.asked.retain(|&crawl, _| crawl <= newest);
        for visits in saved.hosts.values_mut() {
            visits.retain(|&(crawl, _)| crawl <= newest);
        }
        saved.hosts.retain(|_, visits| !visits.is_empty());
        let (history, facts) = History::of(saved.patience, saved.crawls, saved.pairs);
        let mut chronicle = Chronicle {
            history,
            lines: BTreeMap::new(),
            results: saved.results,
            hosts: saved.hosts,
            ended: saved.ended,
            asked: saved.asked,
            settings: settings.clone(),
        };
        chronicle.note_lines(facts.iter().map(|change| &change.0));
        Ok(chronicle)
    }

    /// What the next comparison has to know.
    pub fn save(mut self) -> Saved {
        // One more than the next comparison needs, so that this one can be made again.
        let kept = VERSIONS as usize + 1;
        self.history.forget_all_but(kept);
        Saved {
            patience: PATIENCE,
            versions: VERSIONS,
            results: self.results,
            crawls: self.history.crawls().clone(),
            pairs: self.history.pairs().clone(),
            hosts: self.hosts,
            ended: self.ended,
            asked: self.asked,
        }
    }

    /// Notes the pages that the crawler is asked to fetch as probes of what the newest crawl has.
    pub fn ask(&mut self, urls: impl Iterator<Item = String>) {
        let Some((&number, _)) = self.crawls().last_key_value() else { return };
        let pages: BTreeSet<DocId> = urls.map(|url| doc_id(&url)).collect();
        self.asked.insert(number, pages.into_iter().collect());
    }

    /// Whether a result is in it.
    pub fn has(&self, attempt: &str) -> bool {
        self.results.values().any(|one| one == attempt)
    }

    /// The crawls, by number.
    pub fn crawls(&self) -> &BTreeMap<u32, Crawl> {
        self.history.crawls()
    }

    /// A collection of a crawl.
    pub fn collection(&self, version: Version) -> &Collection {
        &self.crawls()[&version.crawl].collections[version.collection as usize]
    }

    /// The line of a version of a crawl whose pages are kept.
    pub fn line(&self, version: Version) -> Version {
        self.lines[&version.crawl][version.collection as usize]
    }

    /// Visits to hosts.
    pub fn hosts(&self) -> &BTreeMap<String, Vec<(u32, Visits)>> {
        &self.hosts
    }

    /// Intervals and ends of mirrors that are no more, by kind.
    pub fn ended(&self) -> BTreeMap<Kind, (u32, u32)> {
        let mut all: BTreeMap<Kind, (i64, i64)> = BTreeMap::new();
        for (&(_, kind), &(intervals, ends)) in &self.ended {
            let sum = all.entry(kind).or_default();
            (sum.0, sum.1) = (sum.0 + intervals, sum.1 + ends);
        }
        all.into_iter().map(|(kind, sum)| (kind, (sum.0.max(0) as u32, sum.1.max(0) as u32))).collect()
    }

    /// Adds a result; `before` is the one before it, if that can still be read, for what changed on the pages of hosts.
    ///
    /// Returns what became of each collection, what asks for attention first; of the first crawl all collections are born.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn add(&mut self, run: &Run, before: Option<&Run>, workers: usize) -> Result<Vec<Told>> {
        let mut crawl = collections::crawl(run)?;
        let last = self.crawls().last_key_value().map(|(number, _)| *number);
        if let (true, Some(last)) = (self.settings.obeys(), last) {
            let asked =
                (self.asked.get(&last).map_or(&[][..], Vec::as_slice), self.settings.avoided == Avoided::Probed);
            carry_over(&self.crawls()[&last], &mut crawl, run, asked)?;
        }
        // Crawls without times, or in another order than theirs, are no visits.
        let interval = last.map_or(0, |last| crawl.time - self.crawls()[&last].time);
        let number = self.history.next();
        self.results.insert(number, run.manifest.attempt.clone());
        let changes = self.history.append(crawl)?;
        let facts: Vec<Fact> = changes.into_iter().filter(|change| change.1 > 0).map(|change| change.0).collect();
        self.note_lines(facts.iter());
        self.note_lags(number);
        let standing = self.standing(&facts, run)?;
        let kept = match before {
            Some(before) => kept::with_unseen_copies(&self.crawls()[&number], before, run)?,
            None => BTreeMap::new(),
        };
        let mut told: Vec<Told> =
            facts.iter().filter_map(|&fact| self.told(fact, number, (&standing, &kept))).collect();
        told.sort_unstable_by_key(|told| (told.fate, told.new, told.old));
        self.remember(&told, number, interval);
        if let Some(before) = before.filter(|_| interval > 0) {
            for (host, seen) in visits::of_hosts(before, run, interval, workers)? {
                visits::add(self.hosts.entry(host).or_default(), number, seen, INTERVALS);
            }
        }
        Ok(told)
    }

    /// Notes the lines of all versions of the crawls whose pages are known.
    fn note_lines<'a>(&mut self, facts: impl Iterator<Item = &'a Fact>) {
        for fact in facts {
            let &Fact::Line { of, line } = fact else { continue };
            let count = self.history.crawls()[&of.crawl].collections.len();
            // Of one that is forgotten nobody asks.
            if count == 0 {
                continue;
            }
            self.lines.entry(of.crawl).or_insert_with(|| vec![of; count])[of.collection as usize] = line;
        }
    }

    /// Notes for each collection of the newest crawl whether it leads, and how far it is behind.
    fn note_lags(&mut self, number: u32) {
        let none = Vec::new();
        let past = |(number, crawl)| Past { crawl, lines: self.lines.get(number).unwrap_or(&none) };
        let newest: Vec<Past<'_>> = self.history.crawls().iter().rev().take(VERSIONS as usize).map(past).collect();
        let (lags, leads) = lags(newest[0], &newest[1..]);
        let crawl = self.history.notes(number);
        for ((collection, lag), leads) in crawl.collections.iter_mut().zip(lags).zip(leads) {
            // What was not looked at is behind only because nobody did.
            let is_known = 2 * collection.looked_at > collection.size;
            (collection.lag, collection.leads) = (lag.filter(|_| is_known), leads);
        }
    }

    /// Pages that the crawl has of each collection that is missing.
    fn standing(&self, facts: &[Fact], run: &Run) -> Result<BTreeMap<Version, u32>> {
        let mut wanted: Vec<(DocId, Version)> = Vec::new();
        for fact in facts {
            if let &Fact::Missing { old, .. } = fact {
                let pages = self.crawls()[&old.crawl].members_of(old.collection);
                wanted.extend(pages.iter().map(|page| (page.doc_id, old)));
            }
        }
        wanted.sort_unstable();
        let mut standing: BTreeMap<Version, u32> = BTreeMap::new();
        if wanted.is_empty() {
            return Ok(standing);
        }
        scan(run, "pages", &["doc_id"], &mut |part| {
            for doc_id in part.u64("doc_id")? {
                let start = wanted.partition_point(|row| row.0 < *doc_id);
                for (_, old) in wanted[start..].iter().take_while(|row| row.0 == *doc_id) {
                    *standing.entry(*old).or_default() += 1;
                }
            }
            Ok(())
        })?;
        Ok(standing)
    }

    fn told(
        &self,
        fact: Fact,
        number: u32,
        (standing, kept): (&BTreeMap<Version, u32>, &BTreeMap<u32, kept::Pages>),
    ) -> Option<Told> {
        let drifted = |old: Version, new: Version| match kept.get(&new.collection).filter(|_| new.crawl == number) {
            Some(pages) => pages.have_drifted(DRIFT),
            None => has_drifted(self.collection(old), self.collection(new), DRIFT),
        };
        let behind = |of: &Collection| of.lag.map(|lag| lag.crawls);
        let seen = |old: Option<Version>, new: Option<Version>| {
            let (old_one, new_one) = (old.map(|old| self.collection(old)), new.map(|new| self.collection(new)));
            Seen {
                sizes: (old_one.map_or(0, |one| one.size), new_one.map_or(0, |one| one.size)),
                kept: old_one.is_some_and(|one| one.keep),
                stays: old_one.zip(new_one).is_some_and(|(old, new)| old.prefix == new.prefix),
                standing: old.and_then(|old| standing.get(&old)).copied().unwrap_or(0),
                drifted: old.zip(new).is_some_and(|(old, new)| drifted(old, new)),
                behind: (old_one.and_then(behind), new_one.and_then(behind)),
            }
        };
        let (fate, old, new, seen) = fate(fact, number, seen)?;
        let shared = match fact {
            Fact::Lives { shared, .. } | Fact::Split { shared, .. } | Fact::Joined { shared, .. } => shared,
            _ => seen.standing,
        };
        let pages = |version: Version| self.crawls()[&version.crawl].members_of(version.collection);
        let (same_text, changed) = match (old, new) {
            (Some(old), Some(new)) if fate == Fate::Moved => (equal_texts(pages(old), pages(new)), 0),
            (Some(old), Some(new)) => compared(pages(old), pages(new)),
            _ => (0, 0),
        };
        let line = self.line(match fact {
            Fact::Joined { old, .. } => old,
            _ => new.or(old).expect("a fact of a crawl has a version"),
        });
        Some(Told { fate, old, new, seen, shared, same_text, changed, line })
    }

    /// Hands what is remembered of each collection on to its version now, and of those that ended to the pool of their kind.
    fn remember(&mut self, told: &[Told], number: u32, interval: i64) {
        let crawls: Vec<u32> = self.crawls().keys().copied().collect();
        let place = |crawl: u32| crawls.binary_search(&crawl).expect("it is a crawl of the history");
        for told in told {
            let Some(old) = told.old else { continue };
            let before = self.collection(old).clone();
            let apart = (place(number) - place(old.crawl)) as u32;
            let is_mirror = before.resemblance.is_some();
            // Another collection goes on there, or none.
            let Some(new) = told.new.filter(|_| told.fate != Fate::Joined) else {
                if is_mirror && apart == 1 {
                    self.book((number, before.kind), &before, 1);
                }
                continue;
            };
            if told.fate == Fate::Split {
                continue;
            }
            if is_mirror && apart > 1 {
                // It is back, and speaks for itself again.
                self.book((number, before.kind), &before, -1);
            }
            let ended = u32::from(apart > 1 || told.fate.is_end());
            let one = &mut self.history.notes(number).collections[new.collection as usize];
            let has_old_captures = 0 < one.fetched && one.fetched <= before.fetched;
            if has_old_captures && one.unseen == 0 && interval > 0 {
                one.unseen = before.unseen + apart;
            }
            // Who was not looked at has not been seen to live on; once it is, it has all the while.
            let seen = if one.unseen > 0 { (0, 0) } else { (before.unseen + apart, ended) };
            one.seen = (before.seen.0 + seen.0, before.seen.1 + seen.1);
            one.visits = before.visits;
            let pages = told.same_text + told.changed;
            if told.fate != Fate::Moved && pages > 0 && one.unseen == 0 && interval > 0 {
                let changed = f64::from(told.changed) > CHANGED * f64::from(pages);
                let visit = Visits { interval, visits: 1, changed: u64::from(changed) };
                visits::add(&mut one.visits, number, visit, INTERVALS);
            }
        }
    }
}

impl Chronicle {
    /// Adds intervals and ends of a mirror that is no more to those of its kind, or takes them off; at the crawl that tells, so that they go
    /// when that is retracted.
    fn book(&mut self, at: (u32, Kind), one: &Collection, times: i64) {
        let sum = self.ended.entry(at).or_default();
        sum.0 += times * i64::from(one.seen.0 + one.unseen + 1);
        sum.1 += times * i64::from(one.seen.1 + 1);
    }
}

/// Whether a collection has gone its own way: less than `least` of its texts are, or were in a crawl kept, those of the one that
/// leads, and before it was more. Of one that never had them, as it writes its name on each page, the resemblance to the pages kept
/// says it in the same way.
fn has_drifted(old: &Collection, new: &Collection, least: f64) -> bool {
    if 2 * new.looked_at <= new.size {
        return false;
    }
    let copied = |of: &Collection| of.lag.map_or(0.0, |lag| f64::from(lag.shared) / f64::from(lag.texts)) >= least;
    let alike = |of: &Collection| of.resemblance.is_none_or(|parts| f64::from(parts) >= least * MILLION as f64);
    match (copied(old), copied(new)) {
        (_, true) => false,
        (true, false) => true,
        (false, false) => alike(old) && !alike(new),
    }
}

/// Of the pages that both have, those with equal and with other text; both ascend by page.
fn compared(old: &[Member], new: &[Member]) -> (u32, u32) {
    let (mut same, mut changed) = (0, 0);
    for page in new {
        if let Ok(at) = old.binary_search_by_key(&page.doc_id, |page| page.doc_id) {
            *(if old[at].text == page.text { &mut same } else { &mut changed }) += 1;
        }
    }
    (same, changed)
}

/// Distinct texts that both have.
fn equal_texts(old: &[Member], new: &[Member]) -> u32 {
    let texts = |pages: &[Member]| pages.iter().map(|page| page.text).collect::<BTreeSet<u64>>();
    texts(old).intersection(&texts(new)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::super::lag::Lag;
    use super::*;

    #[test]
    fn who_goes_its_own_way_has_drifted_once_and_who_is_behind_has_not() {
        let of = |shared, resemblance| Collection {
            lag: Some(Lag { crawls: 2, shared, texts: 10 }),
            resemblance: Some(resemblance),
            size: 10,
            looked_at: 10,
            ..Collection::default()
        };
        // An old version, which resembles the new one little.
        assert!(!has_drifted(&of(10, 900_000), &of(10, 300_000), 0.5));
        assert!(has_drifted(&of(6, 900_000), &of(2, 800_000), 0.5));
        assert!(!has_drifted(&of(2, 900_000), &of(1, 800_000), 0.5));
        // Who was not looked at has gone nowhere.
        assert!(!has_drifted(&of(6, 900_000), &Collection { looked_at: 5, ..of(2, 800_000) }, 0.5));
        // Its name is on each page.
        assert!(has_drifted(&of(0, 900_000), &of(0, 400_000), 0.5));
        assert!(!has_drifted(&of(0, 400_000), &of(0, 300_000), 0.5));
    }

    #[test]
    fn a_history_of_a_build_that_keeps_other_crawls_is_refused() {
        let (settings, results) = (Recrawl::default(), BTreeMap::from([(0, "a".to_string())]));
        let saved = Saved { patience: PATIENCE, versions: VERSIONS, results, ..Saved::default() };
        assert!(Chronicle::take_up("h", saved.clone(), "a", &settings).is_ok());
        for other in [Saved { patience: 3, ..saved.clone() }, Saved { versions: 2, ..saved }] {
            let error = Chronicle::take_up("h", other, "a", &settings).err().unwrap();
            assert!(error.exit_code() == 2 && error.to_string().contains("this build has 2 and 4"), "{error}");
        }
    }
}
