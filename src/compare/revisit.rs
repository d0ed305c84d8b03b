//! Which pages of the avoid list are worth a visit, because the collection that they stand in may be a mirror no more.
//!
//! A crawler that skips a mirror learns nothing of it. What it loses are the pages skipped after the mirror has died, moved,
//! drifted or joined another one; so what counts is not how often a page changes but how likely the *relation* ends: its
//! hazard in an interval between crawls. Few crawls have been seen of any mirror, so its own ends are mixed with those of all
//! mirrors of its kind: (ends + p b) / (intervals + b), p the ends of the kind by its intervals, b is 4 intervals.
//!
//! A mirror's pages change together, so a few of them tell: if none of 29 has changed, less than one page in ten has with a
//! confidence of 95 % ([`probes`]). They are drawn by hash, so all runs draw the same.
//!
//! Priority is the pages that are probably skipped wrongly by the next crawl, for each page to be fetched:
//! size x (1 - e^(-hazard x age)) / probes, where age counts the intervals from the last time its pages were fetched to then.
//!
//! # Source
//! \[CSG00\] section 5.1 for the purpose: "periodically revisit what are thought to be replicated collections to see if they have
//! changed and need to be removed from the avoid list". Cho, Garcia-Molina: *Effective page refresh policies for web crawlers*
//! for the form; what they do for the rate of change of a page is done here for the end of a relation.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::rates::six_digits;

/// How two hosts of a mirror and its original are related, which decides with whom it is pooled: `server_pairs.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
pub enum Kind {
    /// One server with two names.
    Alias,
    /// A whole copy.
    #[default]
    Mirror,
    /// They share a part.
    Part,
}

impl Kind {
    /// Its word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Alias => "alias",
            Kind::Mirror => "mirror",
            Kind::Part => "part",
        }
    }

    /// The kind with a word.
    pub fn of(word: &str) -> Kind {
        match word {
            "alias" => Kind::Alias,
            "part" => Kind::Part,
            _ => Kind::Mirror,
        }
    }
}

/// What has been seen of a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    /// With whom it is pooled.
    pub kind: Kind,
    /// Intervals between crawls over which it was seen.
    pub intervals: u32,
    /// Those at whose end it was a mirror no more.
    pub ends: u32,
    /// Pages of it that a crawler skips.
    pub skipped: u32,
    /// Intervals since its pages were fetched, the one to the next crawl included: at least 1.
    pub age: u32,
}

/// What a visit is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worth {
    /// Chance that the relation ends in an interval.
    pub hazard: f64,
    /// Pages to fetch for an answer.
    pub probes: u32,
    /// Pages probably skipped wrongly, for each page fetched.
    pub priority: f64,
}

/// What decides how much is fetched of a mirror, and how much its own past counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Confidence in an answer, below 1.
    pub confidence: f64,
    /// Share of the pages that must have changed to be noticed with that confidence.
    pub share: f64,
    /// Intervals that the pool counts for.
    pub prior_intervals: f64,
}

/// Pages to fetch so that, if none of them has changed, less than `share` of all has with this confidence; all if there are fewer.
pub fn probes(policy: &Policy, pages: u32) -> u32 {
    let enough = ((1.0 - policy.confidence).ln() / (1.0 - policy.share).ln()).ceil();
    pages.min(enough.max(1.0) as u32)
}

/// What a visit to each of some mirrors is worth, in their order. `past` are relations that are no more, which count for the
/// pool.
///
/// # Cost
/// Linear.
pub fn worth(now: &[Relation], past: &[Relation], policy: &Policy) -> Vec<Worth> {
    let mut pools: BTreeMap<Kind, (u32, u32)> = BTreeMap::new();
    for relation in now.iter().chain(past) {
        let (ends, intervals) = pools.entry(relation.kind).or_default();
        *ends += relation.ends;
        *intervals += relation.intervals;
    }
    let of = |relation: &Relation| {
        // Half an end in one interval more, so that a kind without an end so far is not thought to have none.
        let (ends, intervals) = pools.get(&relation.kind).copied().unwrap_or_default();
        let pool = (f64::from(ends) + 0.5) / (f64::from(intervals) + 1.0);
        let seen = f64::from(relation.intervals) + policy.prior_intervals;
        let hazard = if seen > 0.0 { (f64::from(relation.ends) + pool * policy.prior_intervals) / seen } else { pool };
        let probes = probes(policy, relation.skipped);
        let ended = -(-hazard * f64::from(relation.age)).exp_m1();
        let priority = f64::from(relation.skipped) * ended / f64::from(probes.max(1));
        Worth { hazard: six_digits(hazard), probes, priority: six_digits(priority) }
    };
    now.iter().map(of).collect()
}

/// The order of priority: the most valuable first, of equals the smaller place.
pub fn order(worth: &[Worth]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..worth.len()).collect();
    order.sort_by(|&x, &y| worth[y].priority.total_cmp(&worth[x].priority).then(x.cmp(&y)));
    order
}

/// Which of the visits a budget of pages allows, in the order of priority: each that still fits, so that a large one does not keep
/// small ones out.
pub fn within(budget: u64, worth: &[Worth], order: &[usize]) -> Vec<bool> {
    let mut chosen = vec![false; worth.len()];
    let mut left = budget;
    for &at in order {
        let cost = u64::from(worth[at].probes);
        if cost > 0 && cost <= left {
            chosen[at] = true;
            left -= cost;
        }
    }
    chosen
}

/// Draws the pages to fetch of a collection, ascending by a hash of their ids and `salt`; other crawls, with other salts, draw
/// others.
pub fn draw(pages: &[u64], probes: u32, salt: u64) -> Vec<u64> {
    let hash = |page: &u64| xxh3_64(&[page.to_le_bytes(), salt.to_le_bytes()].concat());
    let mut drawn: Vec<(u64, u64)> = pages.iter().map(|page| (hash(page), *page)).collect();
    drawn.sort_unstable_by_key(|&(hash, page)| (hash, Reverse(page)));
    drawn.truncate(probes as usize);
    drawn.into_iter().map(|row| row.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy { confidence: 0.95, share: 0.1, prior_intervals: 4.0 };

    #[test]
    fn twenty_nine_pages_tell_a_tenth_with_95_percent() {
        assert_eq!(probes(&POLICY, 1000), 29);
        assert_eq!(probes(&Policy { share: 0.2, ..POLICY }, 1000), 14);
        assert_eq!(probes(&POLICY, 12), 12);
        assert_eq!(probes(&POLICY, 0), 0);
    }

    fn relation(intervals: u32, ends: u32, skipped: u32, age: u32) -> Relation {
        Relation { kind: Kind::Mirror, intervals, ends, skipped, age }
    }

    #[test]
    fn hazard_is_between_a_mirrors_own_and_that_of_its_kind() {
        let past = [relation(95, 9, 0, 1)];
        // With the two below: 10 ends and a half in 105 intervals and one.
        let now = [relation(4, 1, 290, 1), relation(5, 0, 290, 1)];
        let pool = (10.0 + 0.5) / (104.0 + 1.0);
        let found = worth(&now, &past, &POLICY);
        assert_eq!(found[0].hazard, six_digits((1.0 + 4.0 * pool) / 8.0));
        assert_eq!(found[1].hazard, six_digits(4.0 * pool / 9.0));
        assert_eq!(found[0].priority, six_digits(10.0 * (1.0 - (-(1.0 + 4.0 * pool) / 8.0f64).exp())));
        // Another kind knows nothing of that.
        let alone = [Relation { kind: Kind::Alias, ..now[1] }];
        assert_eq!(worth(&alone, &past, &POLICY)[0].hazard, six_digits(4.0 * 0.5 / 6.0 / 9.0));
    }

    #[test]
    fn what_was_not_seen_for_long_and_is_large_comes_first_within_the_budget() {
        let now = [relation(5, 0, 100, 1), relation(5, 0, 100, 6), relation(5, 0, 1000, 1), relation(5, 0, 3, 1)];
        let found = worth(&now, &[], &POLICY);
        let order = order(&found);
        assert_eq!(order, [2, 1, 0, 3]);
        assert_eq!(within(29 + 4, &found, &order), [false, false, true, true]);
        assert_eq!(within(0, &found, &order), [false; 4]);
        assert_eq!(within(u64::MAX, &found, &order), [true; 4]);
    }

    #[test]
    fn what_is_drawn_is_the_same_in_any_order_and_another_next_time() {
        let pages: Vec<u64> = (0..100).collect();
        let backwards: Vec<u64> = (0..100).rev().collect();
        assert_eq!(draw(&pages, 29, 1), draw(&backwards, 29, 1));
        assert_ne!(draw(&pages, 29, 1), draw(&pages, 29, 2));
        assert_eq!(draw(&pages, 200, 1).len(), 100);
    }
}
