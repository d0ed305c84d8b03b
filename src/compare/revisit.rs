//! Priorities for visits to pages of the avoid list, whose collection may no longer be a mirror.
//!
//! A crawler that skips a mirror has no evidence about it. The loss is the pages that are skipped
//! after the mirror has died, moved, drifted or joined another one. So the relevant quantity is not
//! how often a page changes but how likely the *relation* ends: its hazard in an interval between
//! crawls. Each mirror has been observed over few crawls. So its own ends are combined with those
//! of all mirrors of its kind: (ends + p b) / (intervals + b), where p is the ends of the kind
//! divided by its intervals, and b is 4 intervals.
//!
//! The pages of a mirror change together, so a sample of them suffices: if none of 29 has changed,
//! less than one page in ten has, with a confidence of 95 % ([`probes`]). The sample is drawn by
//! hash, so all runs draw the same pages.
//!
//! The priority is the expected number of pages that the next crawl skips wrongly, divided by the
//! pages to be fetched: size x (1 - e^(-hazard x age)) / probes, where age is the number of
//! intervals from the last fetch of its pages to the next crawl.
//!
//! # Source
//! \[CSG00\] section 5.1 for the purpose: "periodically revisit what are thought to be replicated
//! collections to see if they have changed and need to be removed from the avoid list". Cho,
//! Garcia-Molina: *Effective page refresh policies for web crawlers* for the form; their model of
//! the change rate of a page is applied here to the end of a relation.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::rates::six_digits;

/// Relation of the hosts of a mirror and its original, `server_pairs.kind`. Mirrors are pooled by
/// kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
pub enum HostRelation {
    /// One server with two names.
    Alias,
    /// A complete copy.
    #[default]
    Mirror,
    /// The hosts share a part of their pages.
    Part,
}

impl HostRelation {
    /// Returns the value in tables.
    pub fn word(self) -> &'static str {
        match self {
            HostRelation::Alias => "alias",
            HostRelation::Mirror => "mirror",
            HostRelation::Part => "part",
        }
    }

    /// Returns the kind of a value in tables.
    pub fn from_word(word: &str) -> HostRelation {
        match word {
            "alias" => HostRelation::Alias,
            "part" => HostRelation::Part,
            _ => HostRelation::Mirror,
        }
    }
}

/// Observations of a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    /// Pool of the mirror.
    pub kind: HostRelation,
    /// Number of intervals between crawls over which the mirror was observed.
    pub intervals: u32,
    /// Number of intervals at whose end it was no longer a mirror.
    pub ends: u32,
    /// Number of its pages that a crawler skips.
    pub n_skipped: u32,
    /// Number of intervals since its pages were fetched, including the one to the next crawl; at
    /// least 1.
    pub age: u32,
}

/// Value of a visit to a mirror.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VisitValue {
    /// Probability that the relation ends in an interval.
    pub hazard: f64,
    /// Number of pages to fetch for an answer.
    pub probes: u32,
    /// Expected number of pages skipped wrongly, for each page fetched.
    pub priority: f64,
}

/// Parameters of the sample size and of the hazard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Confidence in an answer, below 1.
    pub confidence: f64,
    /// Minimum fraction of changed pages that is detected with that confidence.
    pub share: f64,
    /// Weight of the pool, in intervals.
    pub prior_intervals: f64,
}

/// Returns the number of pages to fetch such that, if none of them has changed, less than the
/// fraction `share` of all pages has, with the policy's confidence. Returns `pages` if that is
/// smaller.
pub fn probes(policy: &Policy, pages: u32) -> u32 {
    let n_needed = ((1.0 - policy.confidence).ln() / (1.0 - policy.share).ln()).ceil();
    pages.min(n_needed.max(1.0) as u32)
}

/// Computes the value of a visit to each of the mirrors `now`, in their order. `earlier_relations`
/// are relations that no longer exist; they contribute to the pools.
///
/// # Cost
/// Linear.
pub fn worth(now: &[Relation], earlier_relations: &[Relation], policy: &Policy) -> Vec<VisitValue> {
    let mut pools: BTreeMap<HostRelation, (u32, u32)> = BTreeMap::new();
    for relation in now.iter().chain(earlier_relations) {
        let (ends, intervals) = pools.entry(relation.kind).or_default();
        *ends += relation.ends;
        *intervals += relation.intervals;
    }
    let kind_sums = |relation: &Relation| {
        // Adds half an end in one more interval, so that a kind without an end so far has a hazard
        // above 0.
        let (ends, intervals) = pools.get(&relation.kind).copied().unwrap_or_default();
        let pool = (f64::from(ends) + 0.5) / (f64::from(intervals) + 1.0);
        let n_intervals = f64::from(relation.intervals) + policy.prior_intervals;
        let hazard = if n_intervals > 0.0 {
            (f64::from(relation.ends) + pool * policy.prior_intervals) / n_intervals
        } else {
            pool
        };
        let probes = probes(policy, relation.n_skipped);
        let end_probability = -(-hazard * f64::from(relation.age)).exp_m1();
        let value = f64::from(relation.n_skipped) * end_probability / f64::from(probes.max(1));
        VisitValue { hazard: six_digits(hazard), probes, priority: six_digits(value) }
    };
    now.iter().map(kind_sums).collect()
}

/// Returns the indices by falling priority; ties go to the smaller index.
pub fn order(values: &[VisitValue]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&x, &y| values[y].priority.total_cmp(&values[x].priority).then(x.cmp(&y)));
    order
}

/// Selects the visits that a budget of pages allows, in the order of priority. Each visit that
/// still fits is selected, so that a large one does not exclude small ones.
pub fn within(budget: u64, values: &[VisitValue], order: &[usize]) -> Vec<bool> {
    let mut is_chosen = vec![false; values.len()];
    let mut left = budget;
    for &number in order {
        let cost = u64::from(values[number].probes);
        if cost > 0 && cost <= left {
            is_chosen[number] = true;
            left -= cost;
        }
    }
    is_chosen
}

/// Draws the pages of a collection to fetch, ascending by a hash of doc id and `salt`. Other salts,
/// of other crawls, draw other pages.
pub fn draw(pages: &[u64], probes: u32, salt: u64) -> Vec<u64> {
    let hash = |page: &u64| xxh3_64(&[page.to_le_bytes(), salt.to_le_bytes()].concat());
    let mut hashed: Vec<(u64, u64)> = pages.iter().map(|page| (hash(page), *page)).collect();
    hashed.sort_unstable_by_key(|&(hash, page)| (hash, Reverse(page)));
    hashed.truncate(probes as usize);
    hashed.into_iter().map(|row| row.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy { confidence: 0.95, share: 0.1, prior_intervals: 4.0 };

    #[test]
    fn twenty_nine_pages_show_one_tenth_with_95_percent_confidence() {
        assert_eq!(probes(&POLICY, 1000), 29);
        assert_eq!(probes(&Policy { share: 0.2, ..POLICY }, 1000), 14);
        assert_eq!(probes(&POLICY, 12), 12);
        assert_eq!(probes(&POLICY, 0), 0);
    }

    fn relation(intervals: u32, ends: u32, n_skipped: u32, age: u32) -> Relation {
        Relation { kind: HostRelation::Mirror, intervals, ends, n_skipped, age }
    }

    #[test]
    fn hazard_is_between_the_rates_of_the_mirror_and_of_its_kind() {
        let earlier_relations = [relation(95, 9, 0, 1)];
        // With the two below: 10 ends plus a half in 105 intervals plus one.
        let now = [relation(4, 1, 290, 1), relation(5, 0, 290, 1)];
        let pool = (10.0 + 0.5) / (104.0 + 1.0);
        let values = worth(&now, &earlier_relations, &POLICY);
        assert_eq!(values[0].hazard, six_digits((1.0 + 4.0 * pool) / 8.0));
        assert_eq!(values[1].hazard, six_digits(4.0 * pool / 9.0));
        assert_eq!(values[0].priority, six_digits(10.0 * (1.0 - (-(1.0 + 4.0 * pool) / 8.0f64).exp())));
        // The ends of one kind do not affect another kind.
        let single_relation = [Relation { kind: HostRelation::Alias, ..now[1] }];
        assert_eq!(worth(&single_relation, &earlier_relations, &POLICY)[0].hazard, six_digits(4.0 * 0.5 / 6.0 / 9.0));
    }

    #[test]
    fn long_unseen_large_mirrors_come_first_within_the_budget() {
        let now = [relation(5, 0, 100, 1), relation(5, 0, 100, 6), relation(5, 0, 1000, 1), relation(5, 0, 3, 1)];
        let values = worth(&now, &[], &POLICY);
        let order = order(&values);
        assert_eq!(order, [2, 1, 0, 3]);
        assert_eq!(within(29 + 4, &values, &order), [false, false, true, true]);
        assert_eq!(within(0, &values, &order), [false; 4]);
        assert_eq!(within(u64::MAX, &values, &order), [true; 4]);
    }

    #[test]
    fn sample_is_the_same_in_any_order_and_differs_next_time() {
        let pages: Vec<u64> = (0..100).collect();
        let reversed: Vec<u64> = (0..100).rev().collect();
        assert_eq!(draw(&pages, 29, 1), draw(&reversed, 29, 1));
        assert_ne!(draw(&pages, 29, 1), draw(&pages, 29, 2));
        assert_eq!(draw(&pages, 200, 1).len(), 100);
    }
}
