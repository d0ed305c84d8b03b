//! The crawls of a history: appended, replaced or retracted, each an edit of the [`Lifelines`].

use std::collections::{BTreeMap, BTreeSet};

use super::collections::Crawl;
use super::lifelines::{Edit, Lifelines};
use super::lives::{Fact, Offer, Version};
use super::matching::{Candidate, candidates};
use webtwin_base::error::{Error, Result};

/// What two crawls have in common that are at most `patience` apart: the collections that are open, with the later crawl.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pair {
    /// Crawls between them, and one more.
    pub distance: u8,
    /// Ascending.
    pub candidates: Vec<Candidate>,
}

/// Crawls by number, and what became of their collections.
pub struct History {
    patience: u8,
    crawls: BTreeMap<u32, Crawl>,
    pairs: BTreeMap<(u32, u32), Pair>,
    lifelines: Lifelines,
}

/// Facts that came to be (+1) or are no more (-1), ascending.
pub type Changes = Vec<(Fact, i32)>;

impl History {
    /// A history without crawls. A collection has died once `patience` crawls in a row have nothing of it; at least 1.
    pub fn new(patience: u8) -> History {
        let patience = patience.max(1);
        History { patience, crawls: BTreeMap::new(), pairs: BTreeMap::new(), lifelines: Lifelines::new(patience) }
    }

    /// A history of crawls whose pairs are known; returns its facts, too.
    ///
    /// # Cost
    /// One edit of the dataflow for all of them.
    pub fn of(patience: u8, crawls: BTreeMap<u32, Crawl>, pairs: BTreeMap<(u32, u32), Pair>) -> (History, Changes) {
        let mut history = History::new(patience);
        let mut edit = Edit::default();
        crawls.iter().for_each(|(&number, crawl)| versions(&mut edit, number, crawl, 1));
        pairs.iter().for_each(|(&between, pair)| offers(&mut edit, between, pair, 1));
        (history.crawls, history.pairs) = (crawls, pairs);
        let facts = history.lifelines.edit(edit);
        (history, facts)
    }

    /// The crawls, by number.
    pub fn crawls(&self) -> &BTreeMap<u32, Crawl> {
        &self.crawls
    }

    /// A crawl, to note something about its collections; what they are matched by stays as it is.
    pub fn notes(&mut self, number: u32) -> &mut Crawl {
        self.crawls.get_mut(&number).expect("it is a crawl of the history")
    }

    /// What crawls have in common, by their numbers.
    pub fn pairs(&self) -> &BTreeMap<(u32, u32), Pair> {
        &self.pairs
    }

    /// The number that the next crawl gets.
    pub fn next(&self) -> u32 {
        self.crawls.last_key_value().map_or(0, |(number, _)| number + 1)
    }

    /// Puts a crawl behind all others.
    ///
    /// # Errors
    /// As [`History::replace`].
    pub fn append(&mut self, crawl: Crawl) -> Result<Changes> {
        self.change(self.next(), Some(crawl))
    }

    /// Puts a crawl in the place of another one, or where one was retracted.
    ///
    /// # Errors
    /// [`Error::Usage`] if the pages of a crawl are needed that the history has forgotten.
    ///
    /// # Cost
    /// Matches the crawl with those at most `patience` before and behind it; and the edit.
    pub fn replace(&mut self, number: u32, crawl: Crawl) -> Result<Changes> {
        self.change(number, Some(crawl))
    }

    /// Takes a crawl out; those before and behind it become neighbours.
    ///
    /// # Errors
    /// As [`History::replace`].
    pub fn retract(&mut self, number: u32) -> Result<Changes> {
        self.change(number, None)
    }

    /// Forgets the collections and pages of all crawls but the last few; what became of them stays known.
    pub fn forget_all_but(&mut self, last: usize) {
        let old = self.crawls.len().saturating_sub(last);
        for crawl in self.crawls.values_mut().take(old) {
            crawl.forgotten += crawl.collections.len() as u32;
            (crawl.collections, crawl.members) = (Vec::new(), Vec::new());
        }
    }

    fn change(&mut self, number: u32, crawl: Option<Crawl>) -> Result<Changes> {
        let is_retracted = crawl.is_none();
        let mut numbers: Vec<u32> = self.crawls.keys().copied().filter(|&one| one != number || !is_retracted).collect();
        if !is_retracted && !numbers.contains(&number) {
            numbers.push(number);
            numbers.sort_unstable();
        }
        let wanted = steps(&numbers, self.patience);
        let stays = |&(earlier, later): &(u32, u32), pair: &Pair| {
            let spans = (earlier..=later).contains(&number);
            !spans && wanted.get(&(earlier, later)) == Some(&pair.distance)
        };
        // Asked before anything changes.
        let known = |between: &(u32, u32)| self.pairs.get(between).is_some_and(|pair| stays(between, pair));
        for between in wanted.keys().filter(|between| !known(between)) {
            for one in [between.0, between.1].into_iter().filter(|&one| one != number) {
                self.pages_of(one)?;
            }
        }

        let mut edit = Edit::default();
        let before = match crawl {
            Some(crawl) => {
                versions(&mut edit, number, &crawl, 1);
                self.crawls.insert(number, crawl)
            }
            None => self.crawls.remove(&number),
        };
        before.into_iter().for_each(|crawl| versions(&mut edit, number, &crawl, -1));
        self.pairs.retain(|between, pair| {
            let stays = stays(between, pair);
            if !stays {
                offers(&mut edit, *between, pair, -1);
            }
            stays
        });
        // Of one crawl the nearest pair comes first, and takes collections that the next ones must not have, of either crawl.
        let mut nearest_first: Vec<(u8, (u32, u32))> =
            wanted.iter().map(|(&pair, &distance)| (distance, pair)).collect();
        nearest_first.sort_unstable();
        for (distance, (earlier, later)) in nearest_first {
            if self.pairs.contains_key(&(earlier, later)) {
                continue;
            }
            let nearer = self.pairs.range((earlier, 0)..(earlier, later));
            let taken: BTreeSet<u32> = nearer.flat_map(|(_, pair)| pair.candidates.iter().map(|one| one.old)).collect();
            let open = self.crawls[&earlier].only(|old| !taken.contains(&old));
            let between = (earlier + 1..later).filter_map(|one| self.pairs.get(&(one, later)));
            let claimed = between.flat_map(|pair| pair.candidates.iter().map(|one| one.new)).collect();
            let pair = Pair { distance, candidates: candidates(&open, &self.crawls[&later], &claimed) };
            offers(&mut edit, (earlier, later), &pair, 1);
            self.pairs.insert((earlier, later), pair);
        }
        Ok(self.lifelines.edit(edit))
    }

    /// Checks that the pages of a crawl are known.
    fn pages_of(&self, number: u32) -> Result<()> {
        let crawl = &self.crawls[&number];
        match crawl.forgotten > 0 {
            true => Err(Error::Usage(format!(
                "the history keeps no pages of crawl {number} any more, so crawls beside it cannot be replaced or retracted; compare the results themselves"
            ))),
            false => Ok(()),
        }
    }
}

/// Of crawls with these numbers, ascending, those that are at most `patience` apart, and how far.
fn steps(numbers: &[u32], patience: u8) -> BTreeMap<(u32, u32), u8> {
    let steps = numbers.iter().enumerate().flat_map(|(at, &earlier)| {
        (1..=patience).zip(&numbers[at + 1..]).map(move |(distance, &later)| ((earlier, later), distance))
    });
    steps.collect()
}

/// The rows of a crawl's collections.
fn versions(edit: &mut Edit, crawl: u32, of: &Crawl, times: i32) {
    let versions = (0..of.forgotten + of.collections.len() as u32).map(|collection| Version { crawl, collection });
    edit.versions.extend(versions.map(|version| (version, times)));
}

/// The rows of a pair: its step, and its offers.
fn offers(edit: &mut Edit, (earlier, later): (u32, u32), pair: &Pair, times: i32) {
    edit.steps.push(((earlier, later, pair.distance), times));
    let row = |candidate: &Candidate| {
        let old = Version { crawl: earlier, collection: candidate.old };
        ((old, Offer::of(*candidate, pair.distance, later)), times)
    };
    edit.offers.extend(pair.candidates.iter().map(row));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::collections::{Collection, Member};
    use super::super::lives::lives;
    use super::*;

    /// What is done to a history.
    #[derive(Debug, Clone)]
    enum Step {
        Append(Crawl),
        Replace(prop::sample::Index, Crawl),
        Retract(prop::sample::Index),
    }

    /// Few pages, texts and places, so that collections have many of them in common with many.
    fn crawl() -> impl Strategy<Value = Crawl> {
        prop::collection::btree_map(0u64..14, (0u32..5, 0u64..6, 0u64..4), 0..14).prop_map(|pages| {
            let mut members: Vec<Member> = pages
                .into_iter()
                .map(|(doc_id, (collection, text, place))| Member { collection, doc_id, text, place })
                .collect();
            members.sort_unstable();
            // Collections without pages are none.
            let mut there: Vec<u32> = members.iter().map(|member| member.collection).collect();
            there.dedup();
            let collections = there.iter().map(|&collection| Collection {
                id: u64::from(collection),
                similar_cluster: u64::from(collection / 3),
                prefix: (collection / 2).to_string(),
                size: members.iter().filter(|member| member.collection == collection).count() as u32,
                ..Collection::default()
            });
            let collections = collections.collect();
            for member in &mut members {
                member.collection = there.binary_search(&member.collection).unwrap() as u32;
            }
            Crawl { time: 0, forgotten: 0, collections, members }
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => crawl().prop_map(Step::Append),
            2 => (any::<prop::sample::Index>(), crawl()).prop_map(|(which, crawl)| Step::Replace(which, crawl)),
            1 => any::<prop::sample::Index>().prop_map(Step::Retract),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn whatever_is_appended_replaced_and_retracted_facts_are_those_of_the_plain_rules(
            steps in prop::collection::vec(step(), 1..9), last in crawl(), patience in 1u8..4
        ) {
            let mut history = History::new(patience);
            let mut facts: BTreeMap<Fact, i32> = BTreeMap::new();
            for step in steps {
                let numbers: Vec<u32> = history.crawls().keys().copied().collect();
                let changes = match step {
                    Step::Append(crawl) => history.append(crawl),
                    Step::Replace(which, crawl) if !numbers.is_empty() => {
                        history.replace(*which.get(&numbers), crawl)
                    }
                    Step::Retract(which) if !numbers.is_empty() => history.retract(*which.get(&numbers)),
                    _ => continue,
                };
                for (fact, times) in changes.unwrap() {
                    *facts.entry(fact).or_default() += times;
                }
                facts.retain(|_, times| *times != 0);
                prop_assert!(facts.values().all(|&times| times == 1));
                let crawls: Vec<(u32, &Crawl)> = history.crawls().iter().map(|(&number, crawl)| (number, crawl)).collect();
                let have: Vec<Fact> = facts.keys().copied().collect();
                prop_assert_eq!(&have, &lives(&crawls, patience));
            }
            // Taken up again from what is saved, it is the same; so it is if most is forgotten, and goes on from there.
            history.forget_all_but(usize::from(patience));
            let (mut taken_up, again) = History::of(patience, history.crawls().clone(), history.pairs().clone());
            prop_assert_eq!(again, facts.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(taken_up.append(last.clone()).unwrap(), history.append(last).unwrap());
        }
    }
}
