//! Which collections of two crawls have enough in common to be one: by pages, or else by texts, or else by places.
//!
//! | evidence | two collections share | looked for among |
//! |---|---|---|
//! | [`Evidence::Pages`] | pages, by doc id, that is by URL | all |
//! | [`Evidence::Texts`] | texts: who moves without a change takes them along | those without the first |
//! | [`Evidence::Places`] | URLs behind their prefixes, if other collections of their similar clusters have something in common: who moves and is brought up to date at once keeps its file names, and its family | those without the first two |
//!
//! Enough is three in ten of what the smaller one has. All counts are of distinct things, so mirrors of one crawl, which are
//! full of equal texts, compete: who of them is whose successor is decided in [`super::lives`].
//!
//! # Cost
//! Three sorts of the pages, and the pairs of collections that have something in common.

use super::Crawl;
use crate::ids::DocId;

/// Of ten things that the smaller collection has, so many must be shared.
const OF_TEN: u64 = 3;

/// A text or place that more collections of one crawl have, among those without a match by pages, tells nobody from anybody.
const COMMON: usize = 100;

/// What two collections have in common; the surer comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Evidence {
    /// Pages at the same URLs.
    Pages,
    /// Pages with the same text.
    Texts,
    /// Pages at the same places below their prefixes, within one family.
    Places,
}

/// Two collections that have enough in common. Rows order by old, then new collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Candidate {
    /// A collection of the older crawl, by its place there.
    pub old: u32,
    /// A collection of the newer crawl.
    pub new: u32,
    /// What they share.
    pub by: Evidence,
    /// How much of it.
    pub shared: u32,
}

/// Finds the pairs of collections of two crawls that have enough in common, ascending.
pub fn candidates(old: &Crawl, new: &Crawl) -> Vec<Candidate> {
    let mut found = Vec::new();
    add(&mut found, Evidence::Pages, rows(old, |_, m| m.doc_id, &[]), rows(new, |_, m| m.doc_id, &[]), usize::MAX);
    let rest = (matched(old, &found, |c| c.old), matched(new, &found, |c| c.new));
    add(&mut found, Evidence::Texts, rows(old, |_, m| m.text, &rest.0), rows(new, |_, m| m.text, &rest.1), COMMON);

    let cluster_of = |crawl: &Crawl, at: u32| crawl.collections[at as usize].similar_cluster;
    let of_family = |c: &Candidate| ((cluster_of(old, c.old), cluster_of(new, c.new)), u64::from(c.shared));
    let successors = most_shared(found.iter().map(of_family).collect());
    let rest = (matched(old, &found, |c| c.old), matched(new, &found, |c| c.new));
    let places = rows(old, |at, m| (cluster_of(old, at), m.place), &rest.0);
    let successor = |cluster: DocId| {
        let at = successors.binary_search_by_key(&cluster, |family| family.0);
        at.ok().map(|at| successors[at].1)
    };
    let mut places: Vec<((DocId, u64), u32)> = places
        .into_iter()
        .filter_map(|((cluster, place), at)| successor(cluster).map(|cluster| ((cluster, place), at)))
        .collect();
    places.sort_unstable();
    let new_places = rows(new, |at, m| (cluster_of(new, at), m.place), &rest.1);
    add(&mut found, Evidence::Places, places, new_places, COMMON);
    found.sort_unstable();
    found
}

/// For each similar cluster of the older crawl the one of the newer crawl with which its collections share most, ascending;
/// of equals the smaller.
fn most_shared(mut rows: Vec<((DocId, DocId), u64)>) -> Vec<(DocId, DocId)> {
    rows.sort_unstable();
    let mut sums: Vec<((DocId, DocId), u64)> =
        rows.chunk_by(|x, y| x.0 == y.0).map(|of_pair| (of_pair[0].0, of_pair.iter().map(|row| row.1).sum())).collect();
    sums.sort_unstable_by_key(|&((old, new), shared)| (old, std::cmp::Reverse(shared), new));
    sums.dedup_by_key(|row| row.0.0);
    sums.into_iter().map(|row| row.0).collect()
}

/// Which collections of a crawl are in a pair.
fn matched(crawl: &Crawl, found: &[Candidate], side: impl Fn(&Candidate) -> u32) -> Vec<bool> {
    let mut matched = vec![false; crawl.collections.len()];
    found.iter().for_each(|candidate| matched[side(candidate) as usize] = true);
    matched
}

/// The distinct things that each collection has, but those of `without`; ascending.
fn rows<K: Ord>(crawl: &Crawl, key: impl Fn(u32, &super::Member) -> K, without: &[bool]) -> Vec<(K, u32)> {
    let left = |at: u32| !without.get(at as usize).copied().unwrap_or(false);
    let members = crawl.members.iter().filter(|member| left(member.collection));
    let mut rows: Vec<(K, u32)> = members.map(|member| (key(member.collection, member), member.collection)).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Adds the pairs that share enough of the things in `old` and `new`, which ascend and are distinct. What more than `common`
/// collections of a crawl have counts for none.
fn add<K: Ord + Copy>(found: &mut Vec<Candidate>, by: Evidence, old: Vec<(K, u32)>, new: Vec<(K, u32)>, common: usize) {
    let telling = |rows: Vec<(K, u32)>| -> Vec<(K, u32)> {
        rows.chunk_by(|x, y| x.0 == y.0).filter(|with| with.len() <= common).flatten().copied().collect()
    };
    let (old, new) = (telling(old), telling(new));
    let mut pairs = Vec::new();
    let mut rest = &new[..];
    for with in old.chunk_by(|x, y| x.0 == y.0) {
        rest = &rest[rest.partition_point(|row| row.0 < with[0].0)..];
        let also = &rest[..rest.partition_point(|row| row.0 == with[0].0)];
        pairs.extend(with.iter().flat_map(|(_, old)| also.iter().map(move |(_, new)| (*old, *new))));
    }
    pairs.sort_unstable();
    let (sizes_old, sizes_new) = (counts(&old), counts(&new));
    for pair in pairs.chunk_by(|x, y| x == y) {
        let ((old, new), shared) = (pair[0], pair.len() as u32);
        let smaller = sizes_old[old as usize].min(sizes_new[new as usize]);
        if 10 * u64::from(shared) >= OF_TEN * u64::from(smaller) {
            found.push(Candidate { old, new, by, shared });
        }
    }
}

/// Rows of each collection.
fn counts<K>(rows: &[(K, u32)]) -> Vec<u32> {
    let mut counts = vec![0; rows.iter().map(|row| row.1 as usize + 1).max().unwrap_or(0)];
    rows.iter().for_each(|row| counts[row.1 as usize] += 1);
    counts
}
