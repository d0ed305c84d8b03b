//! Lifelines of collections over all crawls: the rules, and a plain implementation that applies
//! them crawl by crawl.
//!
//! A collection of a crawl is *open* until a later crawl has a match for it, for at most `patience`
//! crawls. At each crawl:
//!
//! 1. The best match of an open collection is the one with the most reliable evidence.
//!    Ties go to the one that shares more, then to the smaller one.
//! 2. The best match of a new collection is the open collection with the most reliable evidence.
//!    Ties go to the collection seen last, then to the one that shares more, then to the smaller
//!    one.
//! 3. Two collections that are each other's best match are one collection, which *lives*. A new
//!    collection whose best match lives on in another has *split* off. An open collection whose
//!    best match continues another one has *joined* it. A new collection without a match is *born*.
//! 4. An open collection without a match is *missing*. After `patience` crawls it has *died*.
//!
//! Facts about a crawl never depend on later crawls. A *line* is a sequence of versions that live
//! on in each other. Its name is the first version, which was born or split off.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::collections::CrawlCollections;
use super::matching::{CollectionMatch, MatchEvidence, candidates};

/// Collection of one crawl of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// Number of the crawl in the history.
    pub crawl: u32,
    /// Index of the collection in that crawl.
    pub collection: u32,
}

/// Change of a collection, or its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fact {
    /// No earlier collection matches it.
    Born {
        /// The collection.
        new: Version,
    },
    /// Two versions of one collection.
    Lives {
        /// The version in the later crawl.
        new: Version,
        /// The previous version.
        old: Version,
        /// Evidence of the match.
        by: MatchEvidence,
        /// Number of shared items.
        shared: u32,
    },
    /// The earlier collection that matches it best lives on in another collection.
    Split {
        /// The collection.
        new: Version,
        /// The earlier collection.
        old: Version,
        /// Number of shared items.
        shared: u32,
    },
    /// The later collection that matches it best continues another collection.
    Joined {
        /// The later collection.
        new: Version,
        /// The earlier collection.
        old: Version,
        /// Number of shared items.
        shared: u32,
    },
    /// A crawl has no match of the collection.
    Missing {
        /// The last version.
        old: Version,
        /// The crawl without a match.
        crawl: u32,
        /// True if `patience` crawls in a row have no match.
        died: bool,
    },
    /// The line of a version.
    Line {
        /// The version.
        of: Version,
        /// The first version of the line.
        line: Version,
    },
}

/// A match of two versions, ordered by the preference of the earlier version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Offer {
    /// Difference of the two positions in the history; 1 for adjacent crawls.
    pub distance: u8,
    /// Evidence of the match.
    pub by: MatchEvidence,
    /// Number of shared items.
    pub shared: Reverse<u32>,
    /// The later version.
    pub new: Version,
}

/// The match of an [`Offer`] as the later version sees it, ordered by the preference of the later
/// version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MatchBid {
    /// Evidence of the match.
    pub by: MatchEvidence,
    /// Difference of the two positions in the history; 1 for adjacent crawls.
    pub distance: u8,
    /// Number of shared items.
    pub shared: Reverse<u32>,
    /// The earlier version.
    pub old: Version,
    /// True if the earlier version prefers this match to all others.
    pub is_best: bool,
}

impl Offer {
    /// Converts a candidate into an offer of a later crawl to the earlier version.
    pub fn from_candidate(candidate: CollectionMatch, distance: u8, crawl: u32) -> Offer {
        let new = Version { crawl, collection: candidate.new };
        Offer { distance, by: candidate.by, shared: Reverse(candidate.shared), new }
    }

    /// Converts the offer into the later version's view of it.
    pub fn bid(self, old: Version, is_best: bool) -> MatchBid {
        MatchBid { by: self.by, distance: self.distance, shared: self.shared, old, is_best }
    }
}

/// Derives the facts about a version from the bids for it. `bids` ascend and come from open
/// versions. The facts have no [`Fact::Line`].
pub fn facts_of(new: Version, bids: impl Iterator<Item = MatchBid>) -> Vec<Fact> {
    let mut facts = Vec::new();
    for bid in bids {
        let (old, is_best, n_shared) = (bid.old, bid.by, bid.shared.0);
        match (facts.is_empty(), bid.is_best) {
            (true, true) => facts.push(Fact::Lives { new, old, by: is_best, shared: n_shared }),
            (true, false) => facts.push(Fact::Split { new, old, shared: n_shared }),
            (false, true) => facts.push(Fact::Joined { new, old, shared: n_shared }),
            (false, false) => {}
        }
    }
    if facts.is_empty() {
        facts.push(Fact::Born { new });
    }
    facts
}

/// Computes all facts about the collections of the given crawls, ascending. `crawls` have ascending
/// numbers.
///
/// # Cost
/// Matches each crawl with the open collections of the `patience` crawls before it. Starts again
/// from the first crawl whenever a crawl changes; [`crate::many_crawls`] does not.
pub fn lives(crawls: &[(u32, &CrawlCollections)], patience: u8) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut lines: BTreeMap<Version, Version> = BTreeMap::new();
    let mut open: BTreeSet<Version> = BTreeSet::new();
    for (index, &(number, crawl)) in crawls.iter().enumerate() {
        let mut bids: BTreeMap<Version, Vec<MatchBid>> = BTreeMap::new();
        let mut claimed = BTreeSet::new();
        // The nearest earlier crawl comes first, because it claims the collections that it matches.
        for (distance, &(older_number, older_crawl)) in (1..=patience).zip(crawls[..index].iter().rev()) {
            let is_open = |collection| open.contains(&Version { crawl: older_number, collection });
            let mut offers: BTreeMap<Version, Vec<Offer>> = BTreeMap::new();
            let matches = candidates(&older_crawl.only(is_open), crawl, &claimed);
            // Farther crawls may match these collections by pages only.
            claimed.extend(matches.iter().map(|candidate| candidate.new));
            for candidate in matches {
                let old = Version { crawl: older_number, collection: candidate.old };
                offers.entry(old).or_default().push(Offer::from_candidate(candidate, distance, number));
            }
            for old in
                (0..older_crawl.collections.len() as u32).map(|collection| Version { crawl: older_number, collection })
            {
                if !open.contains(&old) {
                    continue;
                }
                let Some(offers) = offers.get_mut(&old) else {
                    facts.push(Fact::Missing { old, crawl: number, died: distance == patience });
                    continue;
                };
                offers.sort_unstable();
                for (rank, offer) in offers.iter().enumerate() {
                    bids.entry(offer.new).or_default().push(offer.bid(old, rank == 0));
                }
                open.remove(&old);
            }
        }
        for new in (0..crawl.collections.len() as u32).map(|collection| Version { crawl: number, collection }) {
            let mut bids = bids.remove(&new).unwrap_or_default();
            bids.sort_unstable();
            let new_facts = facts_of(new, bids.into_iter());
            let line = match new_facts[0] {
                Fact::Lives { old, .. } => lines[&old],
                _ => new,
            };
            lines.insert(new, line);
            facts.push(Fact::Line { of: new, line });
            facts.extend(new_facts);
            open.insert(new);
        }
    }
    facts.sort_unstable();
    facts
}
