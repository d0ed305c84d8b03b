//! Matching of collections of two crawls by pages, texts, places, addresses or families.
//!
//! | evidence | shared by the two collections | searched among |
//! |---|---|---|
//! | [`MatchEvidence::Pages`] | pages, by doc id, that is by URL | all collections |
//! | [`MatchEvidence::Texts`] | texts: a mirror that moves without a change keeps its texts | those without a match by pages |
//! | [`MatchEvidence::Places`] | URLs relative to the prefixes, if other collections of their similar clusters match: a mirror that moves and is updated at the same time keeps its file names and its family | those still without a match |
//! | [`MatchEvidence::Address`] | the prefix, which no other collection of either crawl has: all pages were renamed | those still without a match |
//! | [`MatchEvidence::Family`] | only the similar cluster, all of whose other collections are matched: the collection moved and all its pages were renamed | those still without a match |
//!
//! Two collections match if they share at least three in ten of the smaller one's items. All counts
//! are of distinct items. By pages a collection may have several matches, because it was split or
//! joined with another; [`super::lives`] decides which of them continues it. Mirrors of one crawl
//! share most of their texts and places. So by these a collection has at most one match: pairs that
//! share most come first, and ties go to the smaller collection. The output is therefore reliable
//! about *that* two mirrors moved, but not about which of them moved where. A mirror that dies
//! while another is born looks like a mirror that moved.
//!
//! # Cost
//! Three sorts of the pages, and memory for the pairs of collections that share an item.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::collections::{CollectionMember, CrawlCollections};
use webtwin_base::ids::DocId;

/// Minimum number of shared items, for every ten items of the smaller collection.
const MIN_SHARED_OF_TEN: u64 = 3;

/// Maximum number of collections of one crawl that may have a text or place. A text or place of
/// more collections (among those without a match by pages) does not distinguish collections and is
/// ignored.
const COMMON: usize = 100;

/// Kind of evidence that two collections match. More reliable kinds come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum MatchEvidence {
    /// Pages at the same URLs.
    Pages,
    /// Pages with equal texts.
    Texts,
    /// Pages at equal places relative to their prefixes, within one family.
    Places,
    /// An equal prefix.
    Address,
    /// Only the similar cluster, which has no other collection without a match.
    Family,
}

/// Two collections that match. Rows order by old collection, then by new collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct CollectionMatch {
    /// Collection of the older crawl, by its index there.
    pub old: u32,
    /// Collection of the newer crawl, by its index there.
    pub new: u32,
    /// Evidence of the match.
    pub by: MatchEvidence,
    /// Number of shared items.
    pub shared: u32,
}

/// Finds the pairs of collections of two crawls that match, ascending. Collections of `new` in
/// `claimed` match a crawl between the two and are compared by pages only: they continue a more
/// recent collection, and are full of the texts of mirrors that died.
pub fn candidates(old: &CrawlCollections, new: &CrawlCollections, claimed: &BTreeSet<u32>) -> Vec<CollectionMatch> {
    let mut matches = Vec::new();
    let pages = [old, new].map(|crawl| rows(crawl, |_, page| page.doc_id, &[]));
    matches.extend(sharing(MatchEvidence::Pages, &pages[0], &pages[1], usize::MAX));
    let rest = mark_matched(old, new, &matches, claimed);
    let texts = [rows(old, |_, page| page.text, &rest[0]), rows(new, |_, page| page.text, &rest[1])];
    // Collections move together with their family. So places count only between a similar cluster
    // and the cluster that has most of its texts and pages.
    matches.extend(one_to_one(sharing(MatchEvidence::Texts, &texts[0], &texts[1], COMMON)));

    let cluster_in = |crawl: &CrawlCollections, at: u32| crawl.collections[at as usize].similar_cluster;
    let family_key = |c: &CollectionMatch| ((cluster_in(old, c.old), cluster_in(new, c.new)), u64::from(c.shared));
    let successors = most_shared(matches.iter().map(family_key).collect());
    let successor = |cluster: DocId| successors.get(&cluster).copied();
    let rest = mark_matched(old, new, &matches, claimed);
    let places = rows(old, |at, page| (cluster_in(old, at), page.place), &rest[0]).into_iter();
    let mut places: Vec<((DocId, u64), u32)> =
        places.filter_map(|((cluster, place), at)| successor(cluster).map(|cluster| ((cluster, place), at))).collect();
    places.sort_unstable();
    let new_places = rows(new, |at, page| (cluster_in(new, at), page.place), &rest[1]);
    matches.extend(one_to_one(sharing(MatchEvidence::Places, &places, &new_places, COMMON)));

    let rest = mark_matched(old, new, &matches, claimed);
    matches.extend(sharing(MatchEvidence::Address, &addresses(old, &rest[0]), &addresses(new, &rest[1]), 1));

    // The matches by place and address may have added a successor.
    let successors = most_shared(matches.iter().map(family_key).collect());
    let rest = mark_matched(old, new, &matches, claimed);
    let left = |crawl: &CrawlCollections, side: usize, family: &dyn Fn(DocId) -> Option<DocId>| {
        let unmatched = (0..crawl.collections.len() as u32).filter(|&at| !rest[side][at as usize]);
        let with_pages = unmatched.filter(|&at| !crawl.members_of(at).is_empty());
        let mut left: Vec<(DocId, u32)> =
            with_pages.filter_map(|at| Some((family(cluster_in(crawl, at))?, at))).collect();
        left.sort_unstable();
        left
    };
    let (old_rest, new_rest) = (left(old, 0, &|cluster| successors.get(&cluster).copied()), left(new, 1, &Some));
    let family_pairs = sharing(MatchEvidence::Family, &old_rest, &new_rest, 1);
    matches.extend(family_pairs.into_iter().map(|pair| CollectionMatch { shared: 0, ..pair }));
    matches.sort_unstable();
    matches
}

/// Returns the prefixes that only one collection of a crawl has, ascending. Collections without
/// pages and those of `excluded` are left out.
fn addresses<'a>(crawl: &'a CrawlCollections, excluded: &[bool]) -> Vec<(&'a str, u32)> {
    let mut prefixes: Vec<(&str, u32)> =
        (0..).zip(&crawl.collections).map(|(at, collection)| (collection.prefix.as_str(), at)).collect();
    prefixes.sort_unstable();
    let unique = prefixes.chunk_by(|x, y| x.0 == y.0).filter(|with| with.len() == 1).map(|with| with[0]);
    unique.filter(|&(_, at)| !excluded[at as usize] && !crawl.members_of(at).is_empty()).collect()
}

/// Selects pairs of which no two have a collection in common. Pairs that share most come first;
/// ties go to the smaller collection.
fn one_to_one(mut pairs: Vec<CollectionMatch>) -> Vec<CollectionMatch> {
    pairs.sort_unstable_by_key(|pair| (Reverse(pair.shared), pair.old, pair.new));
    let (mut old, mut new) = (BTreeSet::new(), BTreeSet::new());
    pairs.retain(|pair| {
        let is_free = !old.contains(&pair.old) && !new.contains(&pair.new);
        if is_free {
            old.insert(pair.old);
            new.insert(pair.new);
        }
        is_free
    });
    pairs
}

/// Maps each similar cluster of the older crawl to the one of the newer crawl with which its
/// collections share most. Ties go to the smaller cluster.
fn most_shared(mut rows: Vec<((DocId, DocId), u64)>) -> BTreeMap<DocId, DocId> {
    rows.sort_unstable();
    let mut sums: Vec<((DocId, DocId), u64)> =
        rows.chunk_by(|x, y| x.0 == y.0).map(|of_pair| (of_pair[0].0, of_pair.iter().map(|row| row.1).sum())).collect();
    sums.sort_unstable_by_key(|&((old, new), shared)| (old, Reverse(shared), new));
    sums.dedup_by_key(|row| row.0.0);
    sums.into_iter().map(|row| row.0).collect()
}

/// Marks the collections of each crawl that are in a pair or claimed.
fn mark_matched(
    old: &CrawlCollections,
    new: &CrawlCollections,
    matches: &[CollectionMatch],
    claimed: &BTreeSet<u32>,
) -> [Vec<bool>; 2] {
    let mut is_matched = [old, new].map(|crawl| vec![false; crawl.collections.len()]);
    claimed.iter().for_each(|&new| is_matched[1][new as usize] = true);
    for candidate in matches {
        is_matched[0][candidate.old as usize] = true;
        is_matched[1][candidate.new as usize] = true;
    }
    is_matched
}

/// Returns the distinct items of each collection, ascending, except those of the collections in
/// `excluded`.
fn rows<K: Ord>(
    crawl: &CrawlCollections,
    key: impl Fn(u32, &CollectionMember) -> K,
    excluded: &[bool],
) -> Vec<(K, u32)> {
    let left = |at: u32| !excluded.get(at as usize).copied().unwrap_or(false);
    let members = crawl.members.iter().filter(|member| left(member.collection));
    let mut rows: Vec<(K, u32)> = members.map(|member| (key(member.collection, member), member.collection)).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Returns the pairs of collections that share enough of the items in `old` and `new`, which ascend
/// and are distinct. Items of more than `min_common` collections of a crawl are ignored.
fn sharing<K: Ord + Copy>(
    evidence: MatchEvidence,
    old: &[(K, u32)],
    new: &[(K, u32)],
    min_common: usize,
) -> Vec<CollectionMatch> {
    let distinctive = |rows: &[(K, u32)]| -> Vec<(K, u32)> {
        rows.chunk_by(|x, y| x.0 == y.0).filter(|with| with.len() <= min_common).flatten().copied().collect()
    };
    let (old, new) = (distinctive(old), distinctive(new));
    let mut pairs = Vec::new();
    let mut rest = &new[..];
    for old_rows in old.chunk_by(|x, y| x.0 == y.0) {
        rest = &rest[rest.partition_point(|row| row.0 < old_rows[0].0)..];
        let new_rows = &rest[..rest.partition_point(|row| row.0 == old_rows[0].0)];
        pairs.extend(old_rows.iter().flat_map(|(_, old)| new_rows.iter().map(move |(_, new)| (*old, *new))));
    }
    pairs.sort_unstable();
    let (sizes_old, sizes_new) = (counts(&old), counts(&new));
    let candidate = |pair: &[(u32, u32)]| CollectionMatch {
        old: pair[0].0,
        new: pair[0].1,
        by: evidence,
        shared: pair.len() as u32,
    };
    let is_enough = |pair: &CollectionMatch| {
        let smaller = sizes_old[pair.old as usize].min(sizes_new[pair.new as usize]);
        10 * u64::from(pair.shared) >= MIN_SHARED_OF_TEN * u64::from(smaller)
    };
    pairs.chunk_by(|x, y| x == y).map(candidate).filter(is_enough).collect()
}

/// Counts the rows of each collection.
fn counts<K>(rows: &[(K, u32)]) -> Vec<u32> {
    let mut counts = vec![0; rows.iter().map(|row| row.1 as usize + 1).max().unwrap_or(0)];
    rows.iter().for_each(|row| counts[row.1 as usize] += 1);
    counts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::collections::Collection;
    use super::super::lives::{Fact, Version, lives};
    use super::*;

    /// Test collection: its similar cluster, its prefix, and the doc id, text and place of each
    /// page.
    type Made<'a> = (DocId, &'a str, &'a [(u64, u64, u64)]);

    fn crawl(mirrors: &[Made<'_>]) -> CrawlCollections {
        let collection = |&(similar_cluster, prefix, pages): &Made<'_>| Collection {
            similar_cluster,
            prefix: prefix.into(),
            size: pages.len() as u32,
            ..Collection::default()
        };
        let members = (0u32..).zip(mirrors).flat_map(|(collection, mirror)| {
            mirror.2.iter().map(move |&(doc_id, text, place)| CollectionMember { collection, doc_id, text, place })
        });
        let mut members: Vec<CollectionMember> = members.collect();
        members.sort_unstable();
        CrawlCollections { time: 0, forgotten: 0, collections: mirrors.iter().map(collection).collect(), members }
    }

    fn pairs(old: &CrawlCollections, new: &CrawlCollections) -> Vec<(u32, u32, MatchEvidence, u32)> {
        candidates(old, new, &BTreeSet::new()).iter().map(|pair| (pair.old, pair.new, pair.by, pair.shared)).collect()
    }

    #[test]
    fn strongest_evidence_counts_and_three_in_ten_suffice() {
        // Pages 1 to 10 stay as three of many. Texts move to another URL. File names stay with
        // other texts. An address stays. The last collection of each family remains.
        let ten: Vec<(u64, u64, u64)> = (1..=10).map(|n| (n, 100 + n, n)).collect();
        let three: Vec<(u64, u64, u64)> =
            (1..=3).map(|n| (n, 200 + n, n)).chain((51..=70).map(|n| (n, 200 + n, n))).collect();
        let old = crawl(&[
            (1, "a", &ten),
            (1, "b", &[(20, 1, 1), (21, 2, 2)]),
            (1, "c", &[(30, 3, 5), (31, 4, 6)]),
            (9, "d", &[(40, 5, 7), (41, 6, 8)]),
            (9, "e", &[(45, 7, 7)]),
        ]);
        let new = crawl(&[
            (2, "x", &three),
            (2, "y", &[(80, 1, 9), (81, 2, 8)]),
            (2, "z", &[(82, 13, 5), (83, 14, 6)]),
            (3, "d", &[(84, 15, 17), (85, 16, 18)]),
            (3, "f", &[(86, 17, 7)]),
        ]);
        use MatchEvidence::{Address, Family, Pages, Places, Texts};
        let want = [(0, 0, Pages, 3), (1, 1, Texts, 2), (2, 2, Places, 2), (3, 3, Address, 1), (4, 4, Family, 0)];
        assert_eq!(pairs(&old, &new), want);
        // Two in ten are not enough.
        let two_texts = crawl(&[(2, "x", &three[1..])]);
        assert_eq!(pairs(&old, &two_texts), []);
    }

    #[test]
    fn each_moved_mirror_has_one_match() {
        let pages = |from: u64| [(from, 1, 1), (from + 1, 2, 2), (from + 2, 3, 3)];
        let (a, b, x, y) = (pages(10), pages(20), pages(30), pages(40));
        let old = crawl(&[(1, "a", &a), (1, "b", &b)]);
        let new = crawl(&[(2, "x", &x), (2, "y", &y)]);
        assert_eq!(pairs(&old, &new), [(0, 0, MatchEvidence::Texts, 3), (1, 1, MatchEvidence::Texts, 3)]);
    }

    #[test]
    fn dead_mirror_has_not_joined_another_that_has_all_its_texts() {
        let pages = |from: u64, text: u64| [(from, text, 1), (from + 1, text + 1, 2), (from + 2, text + 2, 3)];
        let (a, b, a_later) = (pages(10, 1), pages(20, 1), pages(10, 5));
        let both_mirrors = crawl(&[(1, "a", &a), (1, "b", &b)]);
        for later_crawl in [crawl(&[(1, "a", &a)]), crawl(&[(1, "a", &a_later)])] {
            let facts = lives(&[(0, &both_mirrors), (1, &later_crawl), (2, &later_crawl)], 2);
            let old = Version { crawl: 0, collection: 1 };
            for (crawl, has_died) in [(1, false), (2, true)] {
                assert!(facts.contains(&Fact::Missing { old, crawl, died: has_died }), "{facts:?}");
            }
            assert!(!facts.iter().any(|fact| matches!(fact, Fact::Joined { .. })), "{facts:?}");
        }
        // By pages a collection can join another: two became one while one of them was missing.
        let merged_crawl = crawl(&[(1, "a", &[a, b].concat())]);
        let claimed = BTreeSet::from([0]);
        assert_eq!(candidates(&crawl(&[(1, "b", &b)]), &merged_crawl, &claimed).len(), 1);
        assert_eq!(candidates(&crawl(&[(1, "b", &b)]), &crawl(&[(1, "a", &a)]), &claimed), []);
    }

    #[test]
    fn last_member_of_a_renamed_family_is_the_remaining_one() {
        let old = crawl(&[(1, "a", &[(1, 1, 1)]), (1, "b", &[(2, 2, 2)]), (1, "c", &[(3, 3, 3)])]);
        let new = crawl(&[(2, "a", &[(11, 11, 11)]), (2, "b", &[(12, 12, 12)]), (2, "x", &[(13, 13, 13)])]);
        use MatchEvidence::{Address, Family};
        assert_eq!(pairs(&old, &new), [(0, 0, Address, 1), (1, 1, Address, 1), (2, 2, Family, 0)]);
        // If two remain, the match is ambiguous.
        let two_renamed = crawl(&[(2, "a", &[(11, 11, 11)]), (2, "x", &[(12, 12, 12)]), (2, "y", &[(13, 13, 13)])]);
        assert_eq!(pairs(&old, &two_renamed), [(0, 0, Address, 1)]);
    }

    #[test]
    fn texts_of_too_many_sites_are_no_evidence() {
        let pages: Vec<[(u64, u64, u64); 1]> = (0..=COMMON as u64).map(|n| [(n, 7, n)]).collect();
        let mirrors: Vec<Made<'_>> = pages.iter().map(|page| (1, "", &page[..])).collect();
        assert_eq!(pairs(&crawl(&mirrors), &crawl(&[(1, "x", &[(5000, 7, 1)])])), []);
        assert_eq!(pairs(&crawl(&mirrors[1..]), &crawl(&[(1, "x", &[(5000, 7, 1)])])).len(), 1);
    }

    proptest! {
        #[test]
        fn sharing_pairs_equal_nested_loops(
            old in prop::collection::btree_set((0u64..12, 0u32..4), 0..30),
            new in prop::collection::btree_set((0u64..12, 0u32..4), 0..30), common in 1usize..5
        ) {
            let things = |of: &BTreeSet<(u64, u32)>, at: u32| -> BTreeSet<u64> {
                let with = |thing: u64| of.iter().filter(|row| row.0 == thing).count();
                of.iter().filter(|row| row.1 == at && with(row.0) <= common).map(|row| row.0).collect()
            };
            let mut want = Vec::new();
            for (x, y) in (0..4).flat_map(|x| (0..4).map(move |y| (x, y))) {
                let (a, b) = (things(&old, x), things(&new, y));
                let shared = a.intersection(&b).count();
                if shared > 0 && 10 * shared >= 3 * a.len().min(b.len()) {
                    want.push(CollectionMatch { old: x, new: y, by: MatchEvidence::Texts, shared: shared as u32 });
                }
            }
            let list = |of: &BTreeSet<(u64, u32)>| of.iter().copied().collect::<Vec<_>>();
            prop_assert_eq!(sharing(MatchEvidence::Texts, &list(&old), &list(&new), common), want);
        }
    }
}
