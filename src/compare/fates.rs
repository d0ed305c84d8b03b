//! Classification of a collection's change in one crawl.

use super::lives::{Fact, Version};
use super::matching::MatchEvidence;

/// Change of a collection in one crawl. Changes that need most attention come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// `patience` crawls in a row have no match of the collection.
    Died,
    /// This crawl has no match of the collection.
    Missing,
    /// The collection's pages still exist, but too few of them resemble, or once resembled, the
    /// pages of the collection's original. For a collection that is kept and whose copies were not
    /// fetched: too few of its pages have their previous texts.
    Drifted,
    /// Its texts or places are now those of a collection at another prefix.
    Moved,
    /// It became part of a collection that continues another one.
    Joined,
    /// It was part of a collection that another one continues.
    Split,
    /// No crawl within `patience` has a match of the collection.
    Born,
    /// It was behind its original and is up to date now.
    CaughtUp,
    /// It has more than 11 pages for every 10 that it had.
    Grew,
    /// It had more than 11 pages for every 10 that it has.
    Shrank,
    /// It is the collection that was kept. Its pages still exist, but it has no mirror any more.
    Alone,
    /// None of the other changes.
    Lives,
}

impl Fate {
    /// All variants, in the order of their declaration.
    pub const ALL: [Fate; 12] = [
        Fate::Died,
        Fate::Missing,
        Fate::Drifted,
        Fate::Moved,
        Fate::Joined,
        Fate::Split,
        Fate::Born,
        Fate::CaughtUp,
        Fate::Grew,
        Fate::Shrank,
        Fate::Alone,
        Fate::Lives,
    ];

    /// Returns the value in tables.
    pub fn word(self) -> &'static str {
        match self {
            Fate::Died => "died",
            Fate::Missing => "missing",
            Fate::Drifted => "drifted",
            Fate::Moved => "moved",
            Fate::Joined => "joined",
            Fate::Split => "split",
            Fate::Born => "born",
            Fate::CaughtUp => "caught_up",
            Fate::Grew => "grew",
            Fate::Shrank => "shrank",
            Fate::Alone => "alone",
            Fate::Lives => "lives",
        }
    }

    /// True if a crawler that skips the mirror must no longer treat it as a mirror.
    pub fn is_end(self) -> bool {
        matches!(self, Fate::Died | Fate::Missing | Fate::Drifted | Fate::Moved | Fate::Joined)
    }
}

/// Measurements of a collection in addition to its fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CollectionFacts {
    /// Number of pages before and now.
    pub sizes: (u32, u32),
    /// True if the collection was the one that is kept.
    pub kept: bool,
    /// Number of its previous pages that the new crawl has.
    pub standing: u32,
    /// True if its prefix did not change.
    pub stays: bool,
    /// True if its content has diverged from its original since.
    pub drifted: bool,
    /// Number of crawls that it was behind its original, before and now.
    pub behind: (Option<u32>, Option<u32>),
}

/// Classifies a fact about `crawl`, and returns it with the earlier and the later version. Returns
/// `None` for a fact about another crawl and for a [`Fact::Line`].
pub fn fate(
    fact: Fact,
    crawl: u32,
    facts_of: impl Fn(Option<Version>, Option<Version>) -> CollectionFacts,
) -> Option<(Fate, Option<Version>, Option<Version>, CollectionFacts)> {
    let (word, old, new) = match fact {
        Fact::Born { new } => (Fate::Born, None, Some(new)),
        Fact::Split { new, old, .. } => (Fate::Split, Some(old), Some(new)),
        Fact::Joined { new, old, .. } => (Fate::Joined, Some(old), Some(new)),
        Fact::Lives { new, old, by: MatchEvidence::Pages | MatchEvidence::Address, .. } => {
            (Fate::Lives, Some(old), Some(new))
        }
        Fact::Lives { new, old, .. } => (Fate::Moved, Some(old), Some(new)),
        Fact::Missing { old, crawl: fact_crawl, died: has_died } if fact_crawl == crawl => {
            (if has_died { Fate::Died } else { Fate::Missing }, Some(old), None)
        }
        Fact::Missing { .. } | Fact::Line { .. } => return None,
    };
    if new.is_some_and(|new| new.crawl != crawl) {
        return None;
    }
    let facts = facts_of(old, new);
    let (old_size, now) = facts.sizes;
    // All files of the collection were renamed, but it did not move.
    let word = if word == Fate::Moved && facts.stays { Fate::Lives } else { word };
    let word = match word {
        // Three in ten, as for a match.
        Fate::Died | Fate::Missing if 10 * facts.standing >= 3 * old_size => match facts.kept {
            true => Fate::Alone,
            false => Fate::Drifted,
        },
        Fate::Lives if facts.drifted => Fate::Drifted,
        Fate::Lives if facts.behind.0.is_some_and(|behind| behind > 0) && facts.behind.1 == Some(0) => Fate::CaughtUp,
        Fate::Lives if u64::from(now) * 10 > u64::from(old_size) * 11 => Fate::Grew,
        Fate::Lives if u64::from(old_size) * 10 > u64::from(now) * 11 => Fate::Shrank,
        word => word,
    };
    Some((word, old, new, facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_follow_from_facts_and_sizes() {
        let (old, new) = (Version { crawl: 3, collection: 0 }, Version { crawl: 4, collection: 1 });
        let lives = |by| Fact::Lives { new, old, by, shared: 5 };
        let message = |fact, seen: CollectionFacts| fate(fact, 4, |_, _| seen).map(|one| one.0);
        let sizes = |before, now| CollectionFacts { sizes: (before, now), ..CollectionFacts::default() };
        assert_eq!(message(lives(MatchEvidence::Pages), sizes(10, 11)), Some(Fate::Lives));
        assert_eq!(message(lives(MatchEvidence::Pages), sizes(10, 12)), Some(Fate::Grew));
        assert_eq!(message(lives(MatchEvidence::Pages), sizes(12, 10)), Some(Fate::Shrank));
        assert_eq!(message(lives(MatchEvidence::Texts), sizes(12, 10)), Some(Fate::Moved));
        let crawls_behind = CollectionFacts { behind: (Some(2), Some(0)), ..sizes(10, 20) };
        assert_eq!(message(lives(MatchEvidence::Pages), crawls_behind), Some(Fate::CaughtUp));
        assert_eq!(
            message(lives(MatchEvidence::Pages), CollectionFacts { drifted: true, ..sizes(10, 10) }),
            Some(Fate::Drifted)
        );
        assert_eq!(
            message(lives(MatchEvidence::Texts), CollectionFacts { stays: true, ..sizes(10, 10) }),
            Some(Fate::Lives)
        );
        // All pages were renamed without a move.
        assert_eq!(message(lives(MatchEvidence::Address), sizes(10, 20)), Some(Fate::Grew));
        let missing = |crawl, died| Fact::Missing { old, crawl, died };
        assert_eq!(message(missing(4, false), sizes(10, 0)), Some(Fate::Missing));
        assert_eq!(message(missing(4, true), sizes(10, 0)), Some(Fate::Died));
        // It is no longer a collection, but its pages exist.
        assert_eq!(message(missing(4, false), CollectionFacts { standing: 3, ..sizes(10, 0) }), Some(Fate::Drifted));
        let kept_facts = CollectionFacts { standing: 3, kept: true, ..sizes(10, 0) };
        assert_eq!(message(missing(4, true), kept_facts), Some(Fate::Alone));
        assert_eq!(message(missing(5, true), sizes(10, 0)), None);
        assert_eq!(message(Fact::Line { of: new, line: old }, sizes(0, 0)), None);
        let other_version = Version { crawl: 5, ..new };
        assert_eq!(message(Fact::Born { new: other_version }, sizes(0, 0)), None);
    }
}
