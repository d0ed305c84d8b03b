//! Roll-up of matching pages into one result for each group.

use std::cmp::Reverse;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

/// Value for no collection.
pub const NONE: u32 = u32::MAX;

/// Page of a text, 20 bytes. Pages are numbered in the order that breaks ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PageOfText {
    /// Number of the page.
    pub page: u32,
    /// Group of the page. Pages with equal groups are one result.
    pub group: u32,
    /// Collection of the page, or [`NONE`].
    pub collection: u32,
    /// Origin of the page's URL.
    pub origin: u32,
    /// 1 if the page is kept, else 0.
    pub keep: u32,
}

/// Page that matches a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageHit {
    /// Group of the page.
    pub group: u32,
    /// Collection of the page, or [`NONE`].
    pub collection: u32,
    /// Number of the page.
    pub page: u32,
    /// Number of the page's text.
    pub text: u32,
    /// Score of the text; higher is better.
    pub score: f32,
    /// True if the page is kept.
    pub is_kept: bool,
}

/// Group of matching pages.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchGroup {
    /// Page that represents the group: the best kept page, or else the best page.
    pub best: PageHit,
    /// Best score of any member.
    pub score: f32,
    /// Range of the members in all hits. They are ordered by collection and page.
    pub members: Range<usize>,
}

/// All matching pages and their best groups.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupedMatches {
    /// Matching pages, by group, collection and page.
    pub hits: Vec<PageHit>,
    /// Number of all groups.
    pub groups: usize,
    /// Best groups, by falling score; ties go to the group whose representative has the smaller
    /// number.
    pub best: Vec<MatchGroup>,
}

/// Groups all hits and orders the `limit` best groups.
///
/// # Cost
/// Sorts the hits and the requested groups. 24 bytes a hit and 48 bytes a group.
pub fn roll_up(mut hits: Vec<PageHit>, limit: usize) -> GroupedMatches {
    hits.sort_unstable_by_key(|hit| (hit.group, hit.collection, hit.page));
    let mut best = Vec::new();
    let mut start = 0;
    for members in hits.chunk_by(|x, y| x.group == y.group) {
        let better = |x: &&PageHit, y: &&PageHit| {
            let key = |hit: &PageHit| (hit.is_kept, order(hit.score), Reverse(hit.page));
            key(x).cmp(&key(y))
        };
        let representative = *members.iter().max_by(better).expect("a chunk has members");
        let score = members.iter().map(|hit| hit.score).max_by(f32::total_cmp).expect("a chunk has members");
        best.push(MatchGroup { best: representative, score, members: start..start + members.len() });
        start += members.len();
    }
    let groups = best.len();
    let key = |group: &MatchGroup| (Reverse(order(group.score)), group.best.page);
    if limit < best.len() {
        best.select_nth_unstable_by_key(limit, key);
        best.truncate(limit);
    }
    best.sort_unstable_by_key(key);
    GroupedMatches { hits, groups, best }
}

/// Returns a number with the same order as a score, which must not be negative.
fn order(score: f32) -> u32 {
    debug_assert!(score >= 0.0);
    score.to_bits()
}

/// Splits the members of a group by collection, ascending. [`NONE`] comes last.
pub fn by_collection(members: &[PageHit]) -> impl Iterator<Item = (u32, &[PageHit])> {
    members.chunk_by(|x, y| x.collection == y.collection).map(|some| (some[0].collection, some))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Literal implementation of the definition.
    fn expected_groups(hits: &[PageHit]) -> Vec<(u32, u32, f32, Vec<u32>)> {
        let mut groups: BTreeMap<u32, Vec<PageHit>> = BTreeMap::new();
        hits.iter().for_each(|&hit| groups.entry(hit.group).or_default().push(hit));
        let mut hits_of_chunk = Vec::new();
        for (number, members) in groups {
            let candidates: Vec<&PageHit> = match members.iter().any(|hit| hit.is_kept) {
                true => members.iter().filter(|hit| hit.is_kept).collect(),
                false => members.iter().collect(),
            };
            let top = candidates.iter().map(|hit| hit.score).fold(0.0, f32::max);
            let page = candidates.iter().filter(|hit| hit.score == top).map(|hit| hit.page).min().unwrap();
            let score = members.iter().map(|hit| hit.score).fold(0.0, f32::max);
            let mut pages: Vec<u32> = members.iter().map(|hit| hit.page).collect();
            pages.sort_unstable();
            hits_of_chunk.push((number, page, score, pages));
        }
        hits_of_chunk.sort_by(|x, y| y.2.partial_cmp(&x.2).unwrap().then(x.1.cmp(&y.1)));
        hits_of_chunk
    }

    proptest! {
        #[test]
        fn groups_counts_and_order_equal_the_definition(
            made in prop::collection::vec((0u32..12, 0u32..4, 0u8..5, any::<bool>()), 0..80), most in 0usize..15
        ) {
            let hits: Vec<PageHit> = made.into_iter().zip(0..).map(|((group, collection, score, is_kept), page)| PageHit {
                group, collection, page: 7919 * page % 80, text: page, score: f32::from(score) / 4.0, is_kept,
            }).collect();
            let want = expected_groups(&hits);
            let found = roll_up(hits.clone(), most);
            prop_assert_eq!((found.hits.len(), found.groups), (hits.len(), want.len()));
            let shape = |group: &MatchGroup| {
                let members = &found.hits[group.members.clone()];
                assert_eq!(by_collection(members).map(|one| one.1.len()).sum::<usize>(), members.len());
                assert!(by_collection(members).is_sorted_by(|x, y| x.0 < y.0));
                let mut pages: Vec<u32> = members.iter().map(|hit| hit.page).collect();
                pages.sort_unstable();
                (group.best.group, group.best.page, group.score, pages)
            };
            prop_assert_eq!(found.best.iter().map(shape).collect::<Vec<_>>(), &want[..most.min(want.len())]);
        }
    }
}
