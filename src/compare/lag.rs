//! Lag of mirrors: the number of crawls since the leading collection had the texts that a mirror
//! has now.
//!
//! One collection of each similar cluster *leads*. Consider the texts that appeared on pages of the
//! cluster since the previous crawl. The leader is the collection that had most of these texts
//! before all others, or together with the first, while another collection has them now. (A text of
//! a single collection is its own, and no evidence.) Being kept is no evidence of
//! leading: links select the kept collection, and it may well be a stale mirror.
//!
//! The leader's texts in an earlier crawl are those of its own line. If the line is younger, they
//! are those of the leader at that time. The lag of a mirror is the distance to the crawl with
//! which it shares most texts; ties go to the newest. So a mirror with pages of its own, or with a
//! part of the pages, has the lag of the pages that it did copy. A mirror that was behind, and
//! whose texts are those of the previous crawl, is one crawl further behind, unless the leader now
//! has at least as many of these texts again.
//!
//! # Deviations
//! Texts are compared as a whole. A mirror that writes its name on each page shares no text, so its
//! lag is unknown.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::collections::{CollectionMember, CrawlCollections};
use super::lives::Version;
use webtwin_base::ids::DocId;

/// Earlier crawl as input of a lag.
#[derive(Debug, Clone, Copy)]
pub struct PastCrawl<'a> {
    /// Crawl with its pages and leaders.
    pub crawl: &'a CrawlCollections,
    /// Line of each collection of the crawl.
    pub lines: &'a [Version],
}

/// Lag of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Lag {
    /// Number of crawls between the crawl whose texts it has and the newest one; 0 if it is up to
    /// date.
    pub crawls: u32,
    /// Number of its texts that the leader had in that crawl.
    pub shared: u32,
    /// Number of its texts.
    pub texts: u32,
}

/// Computes the lag of each collection of a crawl, and marks the collections that lead. The lag is
/// `None` if no kept crawl has any of the texts.
///
/// `now` is the newest crawl. `previous_crawls` are the crawls before it, newest first.
///
/// # Cost
/// Sorts the texts of each crawl and the pages of the last one. Merges each collection with each
/// crawl.
pub fn lags(now: PastCrawl<'_>, previous_crawls: &[PastCrawl<'_>]) -> (Vec<Option<Lag>>, Vec<bool>) {
    let count = now.crawl.collections.len();
    let (mut lags, mut leaders) = (vec![None; count], vec![false; count]);
    let families: Vec<Families> = previous_crawls.iter().map(Families::of).collect();
    let last = previous_crawls.first().map(LastCrawl::of);
    for (_, cluster) in clusters(now.crawl) {
        let texts: Vec<Vec<u64>> = cluster.iter().map(|&at| texts(now.crawl.members_of(at))).collect();
        let lines = || cluster.iter().map(|&at| now.lines[at as usize]);
        let ancestors: Vec<&[u32]> = families.iter().map(|families| families.ancestors(lines())).collect();
        let all_ancestors: Vec<Vec<u32>> = families.iter().map(|families| families.all_ancestors(lines())).collect();
        let new_texts = new_texts(now, &cluster, last.as_ref());
        let leader = leader(now, &cluster, (&texts, &new_texts), previous_crawls, &all_ancestors);
        leaders[cluster[leader] as usize] = true;
        let line = now.lines[cluster[leader] as usize];
        let mut fronts: Vec<Vec<u64>> = vec![texts[leader].clone()];
        for (past_crawl, ancestors) in previous_crawls.iter().zip(&ancestors) {
            let ancestor = ancestors.iter().find(|&&at| past_crawl.lines[at as usize] == line);
            let leader =
                ancestor.or_else(|| ancestors.iter().find(|&&at| past_crawl.crawl.collections[at as usize].leads));
            fronts.push(leader.map_or(Vec::new(), |&at| self::texts(past_crawl.crawl.members_of(at))));
        }
        for (collection, texts) in cluster.iter().zip(&texts) {
            // A mirror with unchanged texts falls behind by one more crawl.
            let old = last.as_ref().and_then(|last| last.unchanged(now.lines[*collection as usize], texts));
            let further = old.filter(|old| old.crawls > 0 && count_common(texts, &fronts[0]) < old.shared);
            // The crawl that the mirror copied may be older than all kept crawls.
            lags[*collection as usize] = match further {
                Some(old) => Some(Lag { crawls: old.crawls + 1, ..old }),
                None => lag(texts, &fronts),
            };
        }
    }
    (lags, leaders)
}

/// Previous crawl, indexed by pages and lines.
struct LastCrawl<'a> {
    crawl: &'a CrawlCollections,
    /// Pages with their texts, ascending.
    pages: Vec<(DocId, u64)>,
    /// Lines with their collections, ascending.
    lines: Vec<(Version, u32)>,
}

impl LastCrawl<'_> {
    fn of<'a>(past_crawl: &PastCrawl<'a>) -> LastCrawl<'a> {
        let mut pages: Vec<(DocId, u64)> =
            past_crawl.crawl.members.iter().map(|page| (page.doc_id, page.text)).collect();
        pages.sort_unstable();
        let mut lines: Vec<(Version, u32)> = past_crawl.lines.iter().copied().zip(0..).collect();
        lines.sort_unstable();
        LastCrawl { crawl: past_crawl.crawl, pages, lines }
    }

    /// Returns the lag of a line in that crawl if it had exactly these texts.
    fn unchanged(&self, line: Version, texts: &[u64]) -> Option<Lag> {
        let row = self.lines.binary_search_by_key(&line, |row| row.0).ok()?;
        let row = self.lines[row].1;
        let lag = self.crawl.collections.get(row as usize)?.lag?;
        (self::texts(self.crawl.members_of(row)) == texts).then_some(lag)
    }
}

/// Returns the distinct texts that appeared on pages of some collections since the previous crawl,
/// ascending. Without a previous crawl it returns all texts.
fn new_texts(now: PastCrawl<'_>, cluster: &[u32], last: Option<&LastCrawl<'_>>) -> Vec<u64> {
    let members = cluster.iter().flat_map(|&at| now.crawl.members_of(at));
    let is_new =
        |page: &&CollectionMember| last.is_none_or(|last| last.pages.binary_search(&(page.doc_id, page.text)).is_err());
    let mut texts: Vec<u64> = members.filter(is_new).map(|page| page.text).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Computes the lag of some texts. `fronts` are the leader's texts, newest crawl first. All lists
/// are distinct and ascend.
pub fn lag(texts: &[u64], fronts: &[Vec<u64>]) -> Option<Lag> {
    let overlaps = fronts.iter().map(|front| count_common(texts, front));
    let (crawls, n_shared) = (0..).zip(overlaps).max_by_key(|&(crawls, shared)| (shared, Reverse(crawls)))?;
    (n_shared > 0).then_some(Lag { crawls, shared: n_shared, texts: texts.len() as u32 })
}

/// Returns the collections of each similar cluster, ascending.
pub fn clusters(crawl: &CrawlCollections) -> Vec<(DocId, Vec<u32>)> {
    let mut clusters_of_collections: Vec<(DocId, u32)> =
        (0..).zip(&crawl.collections).map(|(at, collection)| (collection.similar_cluster, at)).collect();
    clusters_of_collections.sort_unstable();
    clusters_of_collections
        .chunk_by(|x, y| x.0 == y.0)
        .map(|rows| (rows[0].0, rows.iter().map(|row| row.1).collect()))
        .collect()
}

/// Returns the distinct texts of pages, ascending.
fn texts(members: &[CollectionMember]) -> Vec<u64> {
    let mut texts: Vec<u64> = members.iter().map(|member| member.text).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Counts the common values of two lists, which are distinct and ascend.
fn count_common(x: &[u64], y: &[u64]) -> u32 {
    let mut rest = y;
    let mut count = 0;
    for value in x {
        rest = &rest[rest.partition_point(|other| other < value)..];
        count += u32::from(rest.first() == Some(value));
    }
    count
}

/// Similar clusters of an earlier crawl, and the cluster of each line.
struct Families {
    clusters: Vec<Vec<u32>>,
    /// Lines with their index in `clusters`, ascending.
    lines: Vec<(Version, usize)>,
}

impl Families {
    fn of(past_crawl: &PastCrawl<'_>) -> Families {
        let clusters: Vec<Vec<u32>> = clusters(past_crawl.crawl).into_iter().map(|cluster| cluster.1).collect();
        let lines = clusters.iter().enumerate();
        let mut lines: Vec<(Version, usize)> =
            lines.flat_map(|(place, of)| of.iter().map(move |&at| (past_crawl.lines[at as usize], place))).collect();
        lines.sort_unstable();
        Families { clusters, lines }
    }

    /// Returns the index of the similar cluster of each line, ascending, with repetitions.
    fn places(&self, lines: impl Iterator<Item = Version>) -> Vec<usize> {
        let place = |line| self.lines.binary_search_by_key(&line, |row| row.0).ok().map(|at| self.lines[at].1);
        let mut places: Vec<usize> = lines.filter_map(place).collect();
        places.sort_unstable();
        places
    }

    /// Returns the collections of all similar clusters that had any of the lines.
    fn all_ancestors(&self, lines: impl Iterator<Item = Version>) -> Vec<u32> {
        let mut places = self.places(lines);
        places.dedup();
        places.into_iter().flat_map(|place| self.clusters[place].iter().copied()).collect()
    }

    /// Returns the collections of the similar cluster that had most of the lines; ties go to the
    /// smaller cluster. Empty if no cluster had any.
    fn ancestors(&self, lines: impl Iterator<Item = Version>) -> &[u32] {
        let places = self.places(lines);
        let longest = places.chunk_by(|x, y| x == y).min_by_key(|places| Reverse(places.len()));
        longest.map_or(&[], |places| &self.clusters[places[0]])
    }
}

/// Returns the index in `cluster` of the collection that leads. Ties go to the collection that led
/// before, then to the kept one, then to the one with more texts, then to the smaller one.
/// `cluster_texts` has the texts of each collection, `new_texts` those that appeared since the
/// previous crawl.
fn leader(
    now: PastCrawl<'_>,
    cluster: &[u32],
    (cluster_texts, new_texts): (&[Vec<u64>], &[u64]),
    previous_crawls: &[PastCrawl<'_>],
    ancestors: &[Vec<u32>],
) -> usize {
    let line_of = |at: u32| now.lines[at as usize];
    let lines: Vec<Version> = cluster.iter().map(|&at| line_of(at)).collect();
    let has_now =
        lines.iter().zip(cluster_texts).flat_map(|(&line, texts)| texts.iter().map(move |&text| (text, 0, line)));
    let texts_before =
        (1..).zip(previous_crawls.iter().zip(ancestors)).flat_map(|(crawls_ago, (past_crawl, ancestors))| {
            let members =
                ancestors.iter().flat_map(move |&at| past_crawl.crawl.members_of(at).iter().map(move |one| (one, at)));
            members.map(move |(member, at)| (member.text, crawls_ago, past_crawl.lines[at as usize]))
        });
    let is_of_news = |row: &(u64, u32, Version)| new_texts.binary_search(&row.0).is_ok();
    let scores = count_firsts(has_now.chain(texts_before).filter(is_of_news).collect());
    let led_before = |collection: u32| {
        let first = previous_crawls.iter().zip(ancestors).find(|(_, ancestors)| !ancestors.is_empty());
        first.is_some_and(|(past_crawl, ancestors)| {
            let mut former_leaders = ancestors.iter().filter(|&&at| past_crawl.crawl.collections[at as usize].leads);
            former_leaders.any(|&led| past_crawl.lines[led as usize] == line_of(collection))
        })
    };
    let rank = |&place: &usize| {
        let collection = cluster[place];
        let keep = now.crawl.collections[collection as usize].keep;
        let first = scores.get(&lines[place]).copied().unwrap_or(0);
        (first, led_before(collection), keep, cluster_texts[place].len(), Reverse(collection))
    };
    (0..cluster.len()).max_by_key(rank).expect("a similar cluster has collections")
}

/// Counts for each line the texts that it was among the first to have, and that another line has
/// now. Rows are a text, the number of crawls since the line had it, and the line.
fn count_firsts(mut texts_before: Vec<(u64, u32, Version)>) -> HashMap<Version, u32> {
    texts_before.sort_unstable_by_key(|&(text, ago, line)| (text, Reverse(ago), line));
    texts_before.dedup();
    let mut scores = HashMap::new();
    for rows in texts_before.chunk_by(|x, y| x.0 == y.0) {
        let now = &rows[rows.partition_point(|row| row.1 > 0)..];
        let is_elsewhere = |line: Version| now.iter().take(2).any(|row| row.2 != line);
        let first = rows.iter().take_while(|row| row.1 == rows[0].1).map(|row| row.2);
        first.filter(|&line| is_elsewhere(line)).for_each(|line| *scores.entry(line).or_default() += 1);
    }
    scores
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::collections::Collection;

    fn crawl(collections: &[(bool, &[u64])]) -> CrawlCollections {
        let collection =
            |&(keep, texts): &(bool, &[u64])| Collection { keep, size: texts.len() as u32, ..Collection::default() };
        let members = (0u32..).zip(collections).flat_map(|(collection, (_, texts))| {
            let pages = (u64::from(collection) * 100..).zip(texts.iter());
            pages.map(move |(doc_id, &text)| CollectionMember { collection, doc_id, text, place: 0 })
        });
        CrawlCollections {
            time: 0,
            forgotten: 0,
            collections: collections.iter().map(collection).collect(),
            members: members.collect(),
        }
    }

    fn lines(count: u32) -> Vec<Version> {
        (0..count).map(|collection| Version { crawl: 0, collection }).collect()
    }

    #[test]
    fn kept_stale_mirror_does_not_lead_and_unique_pages_are_not_news() {
        let lines = lines(4);
        // The last collection writes pages of its own.
        let first = crawl(&[(true, &[1, 2, 3]), (false, &[1, 2, 3]), (false, &[1, 2, 3]), (false, &[1, 7, 8])]);
        let (lags_before, leaders) = lags(PastCrawl { crawl: &first, lines: &lines }, &[]);
        assert_eq!(leaders, [true, false, false, false]);
        assert!(lags_before.iter().all(|lag| lag.unwrap().crawls == 0));
        let mut first = first;
        first.collections[0].leads = true;
        let second = crawl(&[(true, &[1, 2, 3]), (false, &[1, 5, 6]), (false, &[1, 5, 6]), (false, &[9, 10, 11])]);
        let previous_crawls = [PastCrawl { crawl: &first, lines: &lines }];
        let (lags, leaders) = lags(PastCrawl { crawl: &second, lines: &lines }, &previous_crawls);
        assert_eq!(leaders, [false, true, false, false]);
        let crawls: Vec<Option<u32>> = lags.iter().map(|lag| lag.map(|lag| lag.crawls)).collect();
        assert_eq!(crawls, [Some(1), Some(0), Some(0), None]);
        assert_eq!(lags[0], Some(Lag { crawls: 1, shared: 3, texts: 3 }));
    }

    #[test]
    fn frozen_mirror_lags_more_unless_the_leader_reverts() {
        let lines = lines(2);
        // In an older crawl, which is not kept, the first collection had the texts that the second
        // one still has.
        let mut previous = crawl(&[(true, &[1, 2, 7, 8]), (false, &[1, 2, 3, 4])]);
        previous.collections[0].leads = true;
        previous.collections[1].lag = Some(Lag { crawls: 2, shared: 4, texts: 4 });
        let lag = |now: &[u64], frozen_texts: &[u64]| {
            let now = crawl(&[(true, now), (false, frozen_texts)]);
            lags(PastCrawl { crawl: &now, lines: &lines }, &[PastCrawl { crawl: &previous, lines: &lines }]).0[1]
        };
        assert_eq!(lag(&[1, 2, 9, 10], &[1, 2, 3, 4]), Some(Lag { crawls: 3, shared: 4, texts: 4 }));
        assert_eq!(lag(&[1, 2, 3, 4], &[1, 2, 3, 4]).unwrap().crawls, 0);
        assert_eq!(lag(&[1, 2, 9, 10], &[1, 2, 9, 10]).unwrap().crawls, 0);
    }

    #[test]
    fn joining_collections_are_not_news_to_each_other() {
        // The kept collection continues the line of its first part, its mirror the line of its
        // second part.
        let version_of = |crawl, collection| Version { crawl, collection };
        let (old, now) = (
            [version_of(0, 0), version_of(0, 1), version_of(0, 2), version_of(0, 3)],
            [version_of(0, 0), version_of(0, 3)],
        );
        let mut previous = crawl(&[(true, &[1, 2]), (true, &[3, 4]), (false, &[1, 2]), (false, &[3, 4])]);
        previous.collections[0].leads = true;
        [1, 3].into_iter().for_each(|at: usize| previous.collections[at].similar_cluster = 1);
        for (number, page) in previous.members.iter_mut().enumerate() {
            page.doc_id = number as u64;
        }
        let mut joined_crawl = crawl(&[(true, &[1, 2, 3, 4]), (false, &[1, 2, 3, 4])]);
        for (number, page) in joined_crawl.members.iter_mut().enumerate() {
            page.doc_id = number as u64;
        }
        let leaders =
            lags(PastCrawl { crawl: &joined_crawl, lines: &now }, &[PastCrawl { crawl: &previous, lines: &old }]).1;
        assert_eq!(leaders, [true, false]);
    }

    #[test]
    fn only_up_to_date_original_leads_its_kept_mirrors() {
        let lines = lines(3);
        // The first two copy the texts that the last one had in the previous crawl. Links lead to
        // the first, which is kept.
        let first = crawl(&[(true, &[1, 2, 3]), (false, &[1, 2, 3]), (false, &[4, 5, 6])]);
        let second = crawl(&[(true, &[4, 5, 6]), (false, &[4, 5, 6]), (false, &[7, 8, 9])]);
        let previous_crawls = [PastCrawl { crawl: &first, lines: &lines }];
        let (lags, leaders) = lags(PastCrawl { crawl: &second, lines: &lines }, &previous_crawls);
        assert_eq!(leaders, [false, false, true]);
        assert_eq!(lags.iter().map(|lag| lag.unwrap().crawls).collect::<Vec<_>>(), [1, 1, 0]);
    }

    proptest! {
        #[test]
        fn first_appearances_are_counted_by_the_rule(
            rows in prop::collection::vec((0u64..4, 0u32..4, 0u32..4), 0..40)
        ) {
            let had: BTreeSet<(u64, u32, u32)> = rows.into_iter().collect();
            let has = |text, ago, line| had.contains(&(text, ago, line));
            let score = |line: u32| (0..4).filter(|&text| {
                let oldest = (0..4).rev().find(|&ago| (0..4).any(|any| has(text, ago, any)));
                let elsewhere = (0..4).any(|other| other != line && has(text, 0, other));
                elsewhere && oldest.is_some_and(|ago| has(text, ago, line))
            }).count() as u32;
            let of = |collection| Version { crawl: 0, collection };
            let plain = (0..4).map(|line| (of(line), score(line))).filter(|one| one.1 > 0).collect();
            prop_assert_eq!(count_firsts(had.iter().map(|&(text, ago, line)| (text, ago, of(line))).collect()), plain);
        }
        #[test]
        fn lag_is_the_distance_to_the_nearest_crawl_with_most_texts(
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
