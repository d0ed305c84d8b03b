//! What became of each collection over all crawls: the rules, and the plain way to follow them, crawl by crawl.
//!
//! A collection of a crawl is *open* until a later crawl has something in common with it, for at most `patience` crawls.
//! At each crawl
//!
//! 1. an open collection's best match is the one with which it shares more by the surest evidence, of equals the smaller;
//! 2. a collection's best match is the open one with the surest evidence, of equals the one seen last, then the one with which
//!    it shares more, then the smaller;
//! 3. two that are each other's best are one, which *lives*. A collection whose best lives on in another has *split* off; an open
//!    one whose best goes on another has *joined* it; one that nothing open matches is *born*;
//! 4. an open one that nothing matches is *missing*, and after `patience` crawls it has *died*.
//!
//! What is said of a crawl never depends on later ones. A *line* is what lives follow each other in, named by the one that was
//! born or split off.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::collections::Crawl;
use super::matching::{Candidate, Evidence, candidates};

/// A collection of one crawl of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// The crawl, by its number in the history.
    pub crawl: u32,
    /// The collection, by its place in that crawl.
    pub collection: u32,
}

/// Something that became of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fact {
    /// Nothing before matches it.
    Born {
        /// The collection.
        new: Version,
    },
    /// Two versions of one collection.
    Lives {
        /// The version of the later crawl.
        new: Version,
        /// The last version before.
        old: Version,
        /// What shows it.
        by: Evidence,
        /// How much they share.
        shared: u32,
    },
    /// Most of what it has of collections before is of one that lives on in another.
    Split {
        /// The collection.
        new: Version,
        /// The one before.
        old: Version,
        /// What they share.
        shared: u32,
    },
    /// Most of what is left of it is in a collection that continues another one.
    Joined {
        /// That collection.
        new: Version,
        /// The one before.
        old: Version,
        /// What they share.
        shared: u32,
    },
    /// Nothing of a crawl matches it.
    Missing {
        /// Its last version.
        old: Version,
        /// The crawl that does not have it.
        crawl: u32,
        /// Whether `patience` crawls in a row had nothing of it.
        died: bool,
    },
    /// The line that a version is in.
    Line {
        /// The version.
        of: Version,
        /// The first version of its line.
        line: Version,
    },
}

/// Two versions that have enough in common, in the order in which the earlier one prefers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Offer {
    /// Crawls between them, and one more.
    pub distance: u8,
    /// What shows it.
    pub by: Evidence,
    /// How much they share.
    pub shared: Reverse<u32>,
    /// The later version.
    pub new: Version,
}

/// The other side of an [`Offer`], in the order in which the later version prefers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bid {
    /// What shows it.
    pub by: Evidence,
    /// Crawls between them, and one more.
    pub distance: u8,
    /// How much they share.
    pub shared: Reverse<u32>,
    /// The earlier version.
    pub old: Version,
    /// Whether there is none that the earlier version prefers.
    pub is_best: bool,
}

impl Offer {
    /// A candidate as an offer of a later crawl to the earlier version.
    pub fn of(candidate: Candidate, distance: u8, crawl: u32) -> Offer {
        let new = Version { crawl, collection: candidate.new };
        Offer { distance, by: candidate.by, shared: Reverse(candidate.shared), new }
    }

    /// The offer seen from the later version.
    pub fn bid(self, old: Version, is_best: bool) -> Bid {
        Bid { by: self.by, distance: self.distance, shared: self.shared, old, is_best }
    }
}

/// What follows for a version from the bids for it, which ascend and are of open versions; lines are not among it.
pub fn facts_of(new: Version, bids: impl Iterator<Item = Bid>) -> Vec<Fact> {
    let mut facts = Vec::new();
    for bid in bids {
        let (old, by, shared) = (bid.old, bid.by, bid.shared.0);
        match (facts.is_empty(), bid.is_best) {
            (true, true) => facts.push(Fact::Lives { new, old, by, shared }),
            (true, false) => facts.push(Fact::Split { new, old, shared }),
            (false, true) => facts.push(Fact::Joined { new, old, shared }),
            (false, false) => {}
        }
    }
    if facts.is_empty() {
        facts.push(Fact::Born { new });
    }
    facts
}

/// All that became of the collections of some crawls, ascending. `crawls` come with their numbers, which ascend.
///
/// # Cost
/// Matches each crawl with the open collections of `patience` crawls before. It begins with the first crawl whenever any of them
/// changes, which [`crate::many_crawls`] does not.
pub fn lives(crawls: &[(u32, &Crawl)], patience: u8) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut lines: BTreeMap<Version, Version> = BTreeMap::new();
    let mut open: BTreeSet<Version> = BTreeSet::new();
    for (at, &(number, crawl)) in crawls.iter().enumerate() {
        let mut bids: BTreeMap<Version, Vec<Bid>> = BTreeMap::new();
        let mut claimed = BTreeSet::new();
        for (distance, &(before, older)) in (1..=patience).zip(crawls[..at].iter().rev()) {
            let is_open = |collection| open.contains(&Version { crawl: before, collection });
            let mut offers: BTreeMap<Version, Vec<Offer>> = BTreeMap::new();
            let found = candidates(&older.only(is_open), crawl, &claimed);
            claimed.extend(found.iter().map(|candidate| candidate.new));
            for candidate in found {
                let old = Version { crawl: before, collection: candidate.old };
                offers.entry(old).or_default().push(Offer::of(candidate, distance, number));
            }
            for old in (0..older.collections.len() as u32).map(|collection| Version { crawl: before, collection }) {
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
            let found = facts_of(new, bids.into_iter());
            let line = match found[0] {
                Fact::Lives { old, .. } => lines[&old],
                _ => new,
            };
            lines.insert(new, line);
            facts.push(Fact::Line { of: new, line });
            facts.extend(found);
            open.insert(new);
        }
    }
    facts.sort_unstable();
    facts
}
