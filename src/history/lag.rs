//! How far a mirror is behind: which crawl of the collection that leads had the texts it has now.
//!
//! Of each similar cluster one collection *leads*: it has most of the texts that no crawl kept had before and that another
//! collection has, too (what only one has is its own, not news). Links choose which collection is kept, and that one may well be
//! a stale mirror.
//!
//! What the leader had in a crawl before is what its own line had there or, where the line is younger, what the leader of that
//! time had. A mirror's lag is the distance to the crawl with which it shares most texts, the newest of equals. So a mirror
//! with pages of its own, or with part of the pages, has the lag of those that it did copy.
//!
//! # Deviations
//! Texts are compared whole. A mirror that writes its name on each page shares none, and has no lag that we know of.

use std::cmp::Reverse;

use super::lives::Version;
use super::{Crawl, Member};
use crate::ids::DocId;

/// A crawl as the lag of a later one sees it.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    /// The crawl, with its pages and leaders.
    pub crawl: &'a Crawl,
    /// The line of each of its collections.
    pub lines: &'a [Version],
}

/// How far a collection is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Lag {
    /// Crawls between the one whose texts it has and the newest one: 0 if it is up to date.
    pub crawls: u32,
    /// Its texts that the leader had then.
    pub shared: u32,
    /// Its texts.
    pub texts: u32,
}

/// The lag of each collection of a crawl, and which of them lead. `None` where no crawl kept has any of its texts.
///
/// `now` is the newest crawl, `before` those before it, newest first.
///
/// # Cost
/// A sort of the texts of each crawl, and for each collection a merge with each crawl.
pub fn lags(now: Past<'_>, before: &[Past<'_>]) -> (Vec<Option<Lag>>, Vec<bool>) {
    let count = now.crawl.collections.len();
    let (mut lags, mut leads) = (vec![None; count], vec![false; count]);
    let families: Vec<Families> = before.iter().map(Families::of).collect();
    for (_, cluster) in clusters(now.crawl) {
        let texts: Vec<Vec<u64>> = cluster.iter().map(|&at| texts(now.crawl.members_of(at))).collect();
        let lines = || cluster.iter().map(|&at| now.lines[at as usize]);
        let ancestors: Vec<&[u32]> = families.iter().map(|families| families.ancestors(lines())).collect();
        let leader = leader(now, &cluster, &texts, before, &ancestors);
        leads[cluster[leader] as usize] = true;
        let line = now.lines[cluster[leader] as usize];
        let mut fronts: Vec<Vec<u64>> = vec![texts[leader].clone()];
        for (past, ancestors) in before.iter().zip(&ancestors) {
            let of_line = ancestors.iter().find(|&&at| past.lines[at as usize] == line);
            let leader = of_line.or_else(|| ancestors.iter().find(|&&at| past.crawl.collections[at as usize].leads));
            fronts.push(leader.map_or(Vec::new(), |&at| self::texts(past.crawl.members_of(at))));
        }
        for (at, texts) in cluster.iter().zip(&texts) {
            lags[*at as usize] = lag(texts, &fronts);
        }
    }
    (lags, leads)
}

/// How far some texts are behind: `fronts` are the leader's texts, newest crawl first; all ascend and are distinct.
pub fn lag(texts: &[u64], fronts: &[Vec<u64>]) -> Option<Lag> {
    let shared = fronts.iter().map(|front| both(texts, front));
    let (crawls, shared) = (0..).zip(shared).max_by_key(|&(crawls, shared)| (shared, Reverse(crawls)))?;
    (shared > 0).then_some(Lag { crawls, shared, texts: texts.len() as u32 })
}

/// The collections of each similar cluster, ascending.
pub fn clusters(crawl: &Crawl) -> Vec<(DocId, Vec<u32>)> {
    let mut of: Vec<(DocId, u32)> =
        (0..).zip(&crawl.collections).map(|(at, collection)| (collection.similar_cluster, at)).collect();
    of.sort_unstable();
    of.chunk_by(|x, y| x.0 == y.0).map(|rows| (rows[0].0, rows.iter().map(|row| row.1).collect())).collect()
}

/// The distinct texts of pages, ascending.
fn texts(members: &[Member]) -> Vec<u64> {
    let mut texts: Vec<u64> = members.iter().map(|member| member.text).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// How many values two ascending lists of distinct ones have both.
fn both(x: &[u64], y: &[u64]) -> u32 {
    let mut rest = y;
    let mut both = 0;
    for value in x {
        rest = &rest[rest.partition_point(|other| other < value)..];
        both += u32::from(rest.first() == Some(value));
    }
    both
}

/// The similar clusters of an earlier crawl, and in which of them each line was.
struct Families {
    clusters: Vec<Vec<u32>>,
    /// Lines with their places in `clusters`, ascending.
    lines: Vec<(Version, usize)>,
}

impl Families {
    fn of(past: &Past<'_>) -> Families {
        let clusters: Vec<Vec<u32>> = clusters(past.crawl).into_iter().map(|cluster| cluster.1).collect();
        let lines = clusters.iter().enumerate();
        let mut lines: Vec<(Version, usize)> =
            lines.flat_map(|(place, of)| of.iter().map(move |&at| (past.lines[at as usize], place))).collect();
        lines.sort_unstable();
        Families { clusters, lines }
    }

    /// The similar cluster from which most of some lines come, of equals the smaller; none if none does.
    fn ancestors(&self, lines: impl Iterator<Item = Version>) -> &[u32] {
        let place = |line| self.lines.binary_search_by_key(&line, |row| row.0).ok().map(|at| self.lines[at].1);
        let mut places: Vec<usize> = lines.filter_map(place).collect();
        places.sort_unstable();
        let most = places.chunk_by(|x, y| x == y).min_by_key(|places| Reverse(places.len()));
        most.map_or(&[], |places| &self.clusters[places[0]])
    }
}

/// The place in `cluster` of the collection that leads; of equals the one that did before, the one that is kept, the one with
/// more texts, the smaller.
fn leader(now: Past<'_>, cluster: &[u32], of: &[Vec<u64>], before: &[Past<'_>], ancestors: &[&[u32]]) -> usize {
    let pages = |(past, ancestors): (&Past<'_>, &&[u32])| -> Vec<u64> {
        ancestors.iter().flat_map(|&at| past.crawl.members_of(at)).map(|member| member.text).collect()
    };
    let mut known: Vec<u64> = before.iter().zip(ancestors).flat_map(pages).collect();
    known.sort_unstable();
    let mut news: Vec<u64> = of.iter().flatten().copied().filter(|text| known.binary_search(text).is_err()).collect();
    news.sort_unstable();
    let news: Vec<u64> = news.chunk_by(|x, y| x == y).filter(|with| with.len() > 1).map(|with| with[0]).collect();
    let led_before = |at: u32| {
        let first = before.iter().zip(ancestors).find(|(_, ancestors)| !ancestors.is_empty());
        first.is_some_and(|(past, ancestors)| {
            let led = ancestors.iter().find(|&&at| past.crawl.collections[at as usize].leads);
            led.is_some_and(|&led| past.lines[led as usize] == now.lines[at as usize])
        })
    };
    let rank = |&place: &usize| {
        let at = cluster[place];
        let keep = now.crawl.collections[at as usize].keep;
        (both(&of[place], &news), led_before(at), keep, of[place].len(), Reverse(at))
    };
    (0..cluster.len()).max_by_key(rank).expect("a similar cluster has collections")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::history::Collection;

    fn crawl(of: &[(bool, &[u64])]) -> Crawl {
        let collection =
            |&(keep, texts): &(bool, &[u64])| Collection { keep, size: texts.len() as u32, ..Collection::default() };
        let members = (0u32..).zip(of).flat_map(|(collection, (_, texts))| {
            texts.iter().map(move |&text| Member { collection, doc_id: text, text, place: 0 })
        });
        Crawl { time: 0, forgotten: 0, collections: of.iter().map(collection).collect(), members: members.collect() }
    }

    fn lines(count: u32) -> Vec<Version> {
        (0..count).map(|collection| Version { crawl: 0, collection }).collect()
    }

    #[test]
    fn a_stale_mirror_that_is_kept_does_not_lead_and_what_is_ones_own_is_no_news() {
        let lines = lines(4);
        // The last one writes pages of its own.
        let first = crawl(&[(true, &[1, 2, 3]), (false, &[1, 2, 3]), (false, &[1, 2, 3]), (false, &[1, 7, 8])]);
        let (lags_before, leads) = lags(Past { crawl: &first, lines: &lines }, &[]);
        assert_eq!(leads, [true, false, false, false]);
        assert!(lags_before.iter().all(|lag| lag.unwrap().crawls == 0));
        let mut first = first;
        first.collections[0].leads = true;
        let second = crawl(&[(true, &[1, 2, 3]), (false, &[1, 5, 6]), (false, &[1, 5, 6]), (false, &[9, 10, 11])]);
        let before = [Past { crawl: &first, lines: &lines }];
        let (lags, leads) = lags(Past { crawl: &second, lines: &lines }, &before);
        assert_eq!(leads, [false, true, false, false]);
        let crawls: Vec<Option<u32>> = lags.iter().map(|lag| lag.map(|lag| lag.crawls)).collect();
        assert_eq!(crawls, [Some(1), Some(0), Some(0), None]);
        assert_eq!(lags[0], Some(Lag { crawls: 1, shared: 3, texts: 3 }));
    }

    proptest! {
        #[test]
        fn lag_is_the_nearest_crawl_with_most_texts(
            texts in prop::collection::btree_set(0u64..12, 0..8),
            fronts in prop::collection::vec(prop::collection::btree_set(0u64..12, 0..8), 1..5)
        ) {
            let list = |set: &BTreeSet<u64>| set.iter().copied().collect::<Vec<u64>>();
            let mut want = None;
            for (crawls, front) in (0..).zip(&fronts) {
                let shared = texts.intersection(front).count() as u32;
                if shared > want.map_or(0, |lag: Lag| lag.shared) {
                    want = Some(Lag { crawls, shared, texts: texts.len() as u32 });
                }
            }
            prop_assert_eq!(lag(&list(&texts), &fronts.iter().map(list).collect::<Vec<_>>()), want);
        }
    }
}
