//! Guard on transitivity by centres: a page joins only through a pair with the centre of the
//! cluster, so no chain is longer than two pairs.
//!
//! Pages are processed in ascending order. A page that is similar to a centre becomes its member;
//! if it is similar to several centres, it joins the one it resembles most. Any other page becomes
//! a centre. So a cluster is a centre and pages similar to it, and no two centres are similar.
//! \[SGM98\] section 2.2 calls the smallest of a set of exact copies a centre in the same way.
//!
//! A page depends only on the smaller pages that it is paired with. [`decide`] decides every page
//! whose smaller pages are decided. Doc ids are hashes, so the order is random and few rounds are
//! needed: O(log² pages) with high probability.
//!
//! # Source
//! Blelloch, Fineman and Shun, *Greedy sequential maximal independent set and matching are parallel
//! on average* (2012), for the number of rounds.

use super::SimilarPair;
use super::prune::PageSet;
use webtwin_base::ids::Page;

/// Calls `decided(page, is_member)` for every page that can be decided. `pairs` holds all pairs of
/// some larger pages, ordered by the larger page. `waiting` are the undecided pages, `members` the
/// pages that have joined a centre.
///
/// # Examples
/// Page 1 resembles page 0, and page 2 resembles page 1. The first round makes page 1 a member of
/// centre 0. Page 2 must wait for that decision; the second round makes it a centre.
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::SimilarPair;
/// use webtwin_core::overlap::centre::decide;
/// use webtwin_core::overlap::prune::PageSet;
///
/// let pairs = [(0, 1), (1, 2)].map(|(a, b)| SimilarPair { a: Page(a), b: Page(b), value: 9 });
/// let set = |pages: &[u32]| PageSet::new(3, |page| pages.contains(&page.0));
/// let round = |waiting: &[u32], members: &[u32]| {
///     let mut decisions = Vec::new();
///     decide(&pairs, &set(waiting), &set(members), |page, is_member| {
///         decisions.push((page.0, is_member));
///     });
///     decisions
/// };
/// assert_eq!(round(&[1, 2], &[]), [(1, true)]);
/// assert_eq!(round(&[2], &[1]), [(2, false)]);
/// ```
pub fn decide(pairs: &[SimilarPair], waiting: &PageSet, members: &PageSet, mut decided: impl FnMut(Page, bool)) {
    for page_pairs in pairs.chunk_by(|x, y| x.b == y.b).filter(|of_page| waiting.contains(of_page[0].b)) {
        let is_centre = |page: Page| !waiting.contains(page) && !members.contains(page);
        if page_pairs.iter().any(|pair| is_centre(pair.a)) {
            decided(page_pairs[0].b, true);
        } else if page_pairs.iter().all(|pair| members.contains(pair.a)) {
            decided(page_pairs[0].b, false);
        }
    }
}

/// Keeps one pair for each member: its pair with the centre that it resembles most (ties: the
/// smaller centre). `pairs` holds all pairs of some larger pages, ordered by the larger page.
/// `larger(a, b)` is the number of chunks of the larger page.
pub fn keep_best(pairs: &mut Vec<SimilarPair>, members: &PageSet, larger: impl Fn(Page, Page) -> u32) {
    let mut best = Vec::new();
    for page_pairs in pairs.chunk_by(|x, y| x.b == y.b).filter(|of_page| members.contains(of_page[0].b)) {
        let centres = page_pairs.iter().filter(|pair| !members.contains(pair.a));
        best.extend(centres.max_by(|x, y| {
            let part =
                |of: &SimilarPair, other: &SimilarPair| u64::from(of.value) * u64::from(larger(other.a, other.b));
            part(x, y).cmp(&part(y, x)).then(y.a.cmp(&x.a))
        }));
    }
    *pairs = best;
}
