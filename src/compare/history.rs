//! Crawls of a history. Appending, replacing or retracting a crawl is an edit of the [`Lifelines`].

use std::collections::{BTreeMap, BTreeSet};

use super::collections::CrawlCollections;
use super::lifelines::{Lifelines, RowEdit};
use super::lives::{Fact, Offer, Version};
use super::matching::{CollectionMatch, candidates};
use webtwin_base::error::{Error, Result};

/// Matches of two crawls that are at most `patience` apart: the open collections of the earlier
/// crawl with those of the later one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CrawlPairFacts {
    /// Difference of the two positions in the history; 1 for adjacent crawls.
    pub distance: u8,
    /// Matches, ascending.
    pub candidates: Vec<CollectionMatch>,
}

/// Crawls by number, and the facts about their collections.
pub struct History {
    patience: u8,
    crawls: BTreeMap<u32, CrawlCollections>,
    pairs: BTreeMap<(u32, u32), CrawlPairFacts>,
    lifelines: Lifelines,
}

/// Facts that are added (+1) or removed (-1), ascending.
pub type FactChanges = Vec<(Fact, i32)>;

impl History {
    /// Creates a history without crawls. A collection has died after `patience` consecutive crawls
    /// without a match; the minimum is 1.
    pub fn new(patience: u8) -> History {
        let patience = patience.max(1);
        History { patience, crawls: BTreeMap::new(), pairs: BTreeMap::new(), lifelines: Lifelines::new(patience) }
    }

    /// Creates a history of crawls whose pairs are known, and returns it with its facts.
    ///
    /// # Cost
    /// A single edit of the dataflow for all crawls.
    pub fn from_crawls(
        patience: u8,
        crawls: BTreeMap<u32, CrawlCollections>,
        pairs: BTreeMap<(u32, u32), CrawlPairFacts>,
    ) -> (History, FactChanges) {
        let mut history = History::new(patience);
        let mut edit = RowEdit::default();
        crawls.iter().for_each(|(&number, crawl)| versions(&mut edit, number, crawl, 1));
        pairs.iter().for_each(|(&between, pair)| offers(&mut edit, between, pair, 1));
        (history.crawls, history.pairs) = (crawls, pairs);
        let facts = history.lifelines.edit(edit);
        (history, facts)
    }

    /// Returns the crawls by number.
    pub fn crawls(&self) -> &BTreeMap<u32, CrawlCollections> {
        &self.crawls
    }

    /// Borrows a crawl mutably, to store observations about its collections. The caller must not
    /// change what collections are matched by.
    pub fn notes(&mut self, number: u32) -> &mut CrawlCollections {
        self.crawls.get_mut(&number).expect("it is a crawl of the history")
    }

    /// Returns the matches of crawls, by the numbers of the two crawls.
    pub fn pairs(&self) -> &BTreeMap<(u32, u32), CrawlPairFacts> {
        &self.pairs
    }

    /// Returns the number that the next crawl gets.
    pub fn next(&self) -> u32 {
        self.crawls.last_key_value().map_or(0, |(number, _)| number + 1)
    }

    /// Appends a crawl after all others.
    ///
    /// # Errors
    /// Returns any error of [`History::replace`].
    pub fn append(&mut self, crawl: CrawlCollections) -> Result<FactChanges> {
        self.change(self.next(), Some(crawl))
    }

    /// Replaces a crawl, or inserts one with the number of a retracted crawl.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the edit needs the pages of a crawl that the history has
    /// forgotten.
    ///
    /// # Cost
    /// Matches the crawl with the crawls at most `patience` before and after it; and the edit of
    /// the dataflow.
    pub fn replace(&mut self, number: u32, crawl: CrawlCollections) -> Result<FactChanges> {
        self.change(number, Some(crawl))
    }

    /// Removes a crawl. The crawls before and after it become adjacent.
    ///
    /// # Errors
    /// Returns any error of [`History::replace`].
    pub fn retract(&mut self, number: u32) -> Result<FactChanges> {
        self.change(number, None)
    }

    /// Drops the collections and pages of all crawls except the given number of last ones. The
    /// facts about them remain.
    pub fn forget_all_but(&mut self, last: usize) {
        let old = self.crawls.len().saturating_sub(last);
        for crawl in self.crawls.values_mut().take(old) {
            crawl.forgotten += crawl.collections.len() as u32;
            (crawl.collections, crawl.members) = (Vec::new(), Vec::new());
        }
    }

    fn change(&mut self, number: u32, crawl: Option<CrawlCollections>) -> Result<FactChanges> {
        let is_retracted = crawl.is_none();
        let mut numbers: Vec<u32> = self.crawls.keys().copied().filter(|&one| one != number || !is_retracted).collect();
        if !is_retracted && !numbers.contains(&number) {
            numbers.push(number);
            numbers.sort_unstable();
        }
        let pairs_needed = steps(&numbers, self.patience);
        let is_current = |&(earlier, newer): &(u32, u32), pair: &CrawlPairFacts| {
            let spans = (earlier..=newer).contains(&number);
            !spans && pairs_needed.get(&(earlier, newer)) == Some(&pair.distance)
        };
        // All checks precede the first change, so that an error leaves the history intact.
        let is_known = |between: &(u32, u32)| self.pairs.get(between).is_some_and(|pair| is_current(between, pair));
        for pair_key in pairs_needed.keys().filter(|between| !is_known(between)) {
            for crawl_number in [pair_key.0, pair_key.1].into_iter().filter(|&one| one != number) {
                self.pages_of(crawl_number)?;
            }
        }

        let mut edit = RowEdit::default();
        let previous = match crawl {
            Some(crawl) => {
                versions(&mut edit, number, &crawl, 1);
                self.crawls.insert(number, crawl)
            }
            None => self.crawls.remove(&number),
        };
        previous.into_iter().for_each(|crawl| versions(&mut edit, number, &crawl, -1));
        self.pairs.retain(|pair_key, pair| {
            let is_current = is_current(pair_key, pair);
            if !is_current {
                offers(&mut edit, *pair_key, pair, -1);
            }
            is_current
        });
        // The nearest pair of a crawl comes first. Farther pairs must not match its old collections
        // again, and match its new collections by pages only.
        let mut nearest_first: Vec<(u8, (u32, u32))> =
            pairs_needed.iter().map(|(&pair, &distance)| (distance, pair)).collect();
        nearest_first.sort_unstable();
        for (distance, (earlier, newer)) in nearest_first {
            if self.pairs.contains_key(&(earlier, newer)) {
                continue;
            }
            let nearer = self.pairs.range((earlier, 0)..(earlier, newer));
            let matched_collections: BTreeSet<u32> =
                nearer.flat_map(|(_, pair)| pair.candidates.iter().map(|one| one.old)).collect();
            let open = self.crawls[&earlier].only(|old| !matched_collections.contains(&old));
            let intermediate = (earlier + 1..newer).filter_map(|one| self.pairs.get(&(one, newer)));
            let claimed = intermediate.flat_map(|pair| pair.candidates.iter().map(|one| one.new)).collect();
            let pair = CrawlPairFacts { distance, candidates: candidates(&open, &self.crawls[&newer], &claimed) };
            offers(&mut edit, (earlier, newer), &pair, 1);
            self.pairs.insert((earlier, newer), pair);
        }
        Ok(self.lifelines.edit(edit))
    }

    /// Checks that the history has the pages of a crawl.
    fn pages_of(&self, number: u32) -> Result<()> {
        let crawl = &self.crawls[&number];
        match crawl.forgotten > 0 {
            true => Err(Error::Usage(format!(
                "the history no longer has the pages of crawl {number}, so crawls next to it cannot be replaced or \
                 retracted; compare the results without --history"
            ))),
            false => Ok(()),
        }
    }
}

/// Returns the pairs of the given ascending numbers that are at most `patience` positions apart,
/// with their distance.
fn steps(numbers: &[u32], patience: u8) -> BTreeMap<(u32, u32), u8> {
    let steps = numbers.iter().enumerate().flat_map(|(position, &earlier)| {
        (1..=patience).zip(&numbers[position + 1..]).map(move |(distance, &later)| ((earlier, later), distance))
    });
    steps.collect()
}

/// Adds the rows of a crawl's collections to an edit.
fn versions(edit: &mut RowEdit, crawl: u32, collections: &CrawlCollections, times: i32) {
    let versions = (0..collections.forgotten + collections.collections.len() as u32)
        .map(|collection| Version { crawl, collection });
    edit.versions.extend(versions.map(|version| (version, times)));
}

/// Adds the rows of a pair to an edit: its step and its offers.
fn offers(edit: &mut RowEdit, (earlier, newer): (u32, u32), pair: &CrawlPairFacts, times: i32) {
    edit.steps.push(((earlier, newer, pair.distance), times));
    let row = |candidate: &CollectionMatch| {
        let old = Version { crawl: earlier, collection: candidate.old };
        ((old, Offer::from_candidate(*candidate, pair.distance, newer)), times)
    };
    edit.offers.extend(pair.candidates.iter().map(row));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::collections::{Collection, CollectionMember};
    use super::super::lives::lives;
    use super::*;

    /// Edit of a history in a test.
    #[derive(Debug, Clone)]
    enum Step {
        Append(CrawlCollections),
        Replace(prop::sample::Index, CrawlCollections),
        Retract(prop::sample::Index),
    }

    /// Generates crawls with few pages, texts and places, so that collections share many of them.
    fn crawl() -> impl Strategy<Value = CrawlCollections> {
        prop::collection::btree_map(0u64..14, (0u32..5, 0u64..6, 0u64..4), 0..14).prop_map(|pages| {
            let mut members: Vec<CollectionMember> = pages
                .into_iter()
                .map(|(doc_id, (collection, text, place))| CollectionMember { collection, doc_id, text, place })
                .collect();
            members.sort_unstable();
            // Removes collections without pages, which a crawl cannot have.
            let mut present_collections: Vec<u32> = members.iter().map(|member| member.collection).collect();
            present_collections.dedup();
            let collections = present_collections.iter().map(|&collection| Collection {
                id: u64::from(collection),
                similar_cluster: u64::from(collection / 3),
                prefix: (collection / 2).to_string(),
                size: members.iter().filter(|member| member.collection == collection).count() as u32,
                ..Collection::default()
            });
            let collections = collections.collect();
            for member in &mut members {
                member.collection = present_collections.binary_search(&member.collection).unwrap() as u32;
            }
            CrawlCollections { time: 0, forgotten: 0, collections, members }
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
        fn facts_equal_the_plain_rules_after_any_appends_replacements_and_retractions(
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
                let crawls: Vec<(u32, &CrawlCollections)> = history.crawls().iter().map(|(&number, crawl)| (number, crawl)).collect();
                let have: Vec<Fact> = facts.keys().copied().collect();
                prop_assert_eq!(&have, &lives(&crawls, patience));
            }
            // Restored from its saved state, a history has the same facts. After forgetting most
            // crawls it also continues in the same way.
            history.forget_all_but(usize::from(patience));
            let (mut taken_up, again) = History::from_crawls(patience, history.crawls().clone(), history.pairs().clone());
            prop_assert_eq!(again, facts.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(taken_up.append(last.clone()).unwrap(), history.append(last).unwrap());
        }
    }
}
