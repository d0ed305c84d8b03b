//! What a crawl did to each collection, in a word.

use super::lives::{Fact, Version};
use super::matching::Evidence;

/// What became of a collection, what asks for attention first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// Two crawls in a row had nothing of it.
    Died,
    /// This crawl has nothing of it.
    Missing,
    /// Its pages are there, but too few of them have what its original has or had; or what they
    /// had, of one that is kept and whose copies were not looked at.
    Drifted,
    /// Its texts or places are those of a collection that stood elsewhere.
    Moved,
    /// It is part of a collection that continues another one.
    Joined,
    /// It was part of a collection that another one continues.
    Split,
    /// No crawl that counts had anything of it.
    Born,
    /// It was behind, and is no more.
    CaughtUp,
    /// It has more than eleven pages for ten.
    Grew,
    /// It had more than eleven pages for ten.
    Shrank,
    /// The one that was kept: its pages are there, but it has no mirror any more.
    Alone,
    /// None of these.
    Lives,
}

impl Fate {
    /// All fates, in their order.
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

    /// Its name in tables.
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

    /// Whether a mirror is one no more, for a crawler that skips it.
    pub fn is_end(self) -> bool {
        matches!(self, Fate::Died | Fate::Missing | Fate::Drifted | Fate::Moved | Fate::Joined)
    }
}

/// What is known of a collection beside the fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Pages before and now.
    pub sizes: (u32, u32),
    /// Whether it was the one that is kept.
    pub kept: bool,
    /// Pages of it, as it was, that the new crawl has.
    pub standing: u32,
    /// Whether it has the same prefix.
    pub stays: bool,
    /// Whether it has gone its own way since.
    pub drifted: bool,
    /// Crawls it was behind, before and now.
    pub behind: (Option<u32>, Option<u32>),
}

/// A fact about a crawl with its versions, earlier and later, in a word; `None` if it is about another crawl or a line.
pub fn fate(
    fact: Fact,
    crawl: u32,
    seen: impl Fn(Option<Version>, Option<Version>) -> Seen,
) -> Option<(Fate, Option<Version>, Option<Version>, Seen)> {
    let (word, old, new) = match fact {
        Fact::Born { new } => (Fate::Born, None, Some(new)),
        Fact::Split { new, old, .. } => (Fate::Split, Some(old), Some(new)),
        Fact::Joined { new, old, .. } => (Fate::Joined, Some(old), Some(new)),
        Fact::Lives { new, old, by: Evidence::Pages | Evidence::Address, .. } => (Fate::Lives, Some(old), Some(new)),
        Fact::Lives { new, old, .. } => (Fate::Moved, Some(old), Some(new)),
        Fact::Missing { old, crawl: of, died } if of == crawl => {
            (if died { Fate::Died } else { Fate::Missing }, Some(old), None)
        }
        Fact::Missing { .. } | Fact::Line { .. } => return None,
    };
    if new.is_some_and(|new| new.crawl != crawl) {
        return None;
    }
    let seen = seen(old, new);
    let (before, now) = seen.sizes;
    // All its files were renamed where it stands.
    let word = if word == Fate::Moved && seen.stays { Fate::Lives } else { word };
    let word = match word {
        // Three in ten, as for a match.
        Fate::Died | Fate::Missing if 10 * seen.standing >= 3 * before => match seen.kept {
            true => Fate::Alone,
            false => Fate::Drifted,
        },
        Fate::Lives if seen.drifted => Fate::Drifted,
        Fate::Lives if seen.behind.0.is_some_and(|behind| behind > 0) && seen.behind.1 == Some(0) => Fate::CaughtUp,
        Fate::Lives if u64::from(now) * 10 > u64::from(before) * 11 => Fate::Grew,
        Fate::Lives if u64::from(before) * 10 > u64::from(now) * 11 => Fate::Shrank,
        word => word,
    };
    Some((word, old, new, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_from_facts_and_sizes() {
        let (old, new) = (Version { crawl: 3, collection: 0 }, Version { crawl: 4, collection: 1 });
        let lives = |by| Fact::Lives { new, old, by, shared: 5 };
        let told = |fact, seen: Seen| fate(fact, 4, |_, _| seen).map(|one| one.0);
        let sizes = |before, now| Seen { sizes: (before, now), ..Seen::default() };
        assert_eq!(told(lives(Evidence::Pages), sizes(10, 11)), Some(Fate::Lives));
        assert_eq!(told(lives(Evidence::Pages), sizes(10, 12)), Some(Fate::Grew));
        assert_eq!(told(lives(Evidence::Pages), sizes(12, 10)), Some(Fate::Shrank));
        assert_eq!(told(lives(Evidence::Texts), sizes(12, 10)), Some(Fate::Moved));
        let behind = Seen { behind: (Some(2), Some(0)), ..sizes(10, 20) };
        assert_eq!(told(lives(Evidence::Pages), behind), Some(Fate::CaughtUp));
        assert_eq!(told(lives(Evidence::Pages), Seen { drifted: true, ..sizes(10, 10) }), Some(Fate::Drifted));
        assert_eq!(told(lives(Evidence::Texts), Seen { stays: true, ..sizes(10, 10) }), Some(Fate::Lives));
        // All of it was renamed where it stands.
        assert_eq!(told(lives(Evidence::Address), sizes(10, 20)), Some(Fate::Grew));
        let missing = |crawl, died| Fact::Missing { old, crawl, died };
        assert_eq!(told(missing(4, false), sizes(10, 0)), Some(Fate::Missing));
        assert_eq!(told(missing(4, true), sizes(10, 0)), Some(Fate::Died));
        // A collection no more, but its pages are there.
        assert_eq!(told(missing(4, false), Seen { standing: 3, ..sizes(10, 0) }), Some(Fate::Drifted));
        let kept = Seen { standing: 3, kept: true, ..sizes(10, 0) };
        assert_eq!(told(missing(4, true), kept), Some(Fate::Alone));
        assert_eq!(told(missing(5, true), sizes(10, 0)), None);
        assert_eq!(told(Fact::Line { of: new, line: old }, sizes(0, 0)), None);
        let elsewhen = Version { crawl: 5, ..new };
        assert_eq!(told(Fact::Born { new: elsewhen }, sizes(0, 0)), None);
    }
}
