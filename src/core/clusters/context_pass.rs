//! Context pass inside mirrors: finds pages that can only be recognized as copies by their
//! collections.
//!
//! Input: pages and links of the collections of a similar cluster. Output: [`CandidatePair`] pairs,
//! and of the compared candidates those that are copies ([`one_to_one`]).
//!
//! A version that was rewritten, or a page of three lines, shares too little text to be found by
//! its text. But two collections that have many trivial clusters in common indicate which page of
//! the one should match which page of the other: the one that links to, and is linked from, copies
//! of the same pages. So for each two collections that have [`COMMON`] of the smaller one's pages
//! in common, the pages of one without a copy in the other are compared by
//!
//! * their links, in both directions, to pages with a copy in the other collection: the weight of
//!   the links that both pages have, divided by the weight of the links that either has. Links to
//!   the pages of a menu have a small weight.
//! * their text: the number of chunks, including boilerplate, that both pages have, divided by the
//!   number that either has. Pages without text are alike.
//!
//! Links alone would match a page with its translation, which has the same place in its edition;
//! text alone is what failed before. So each measure must reach a minimum ([`LINKS`], [`TEXT`]),
//! and the sum of both must reach [`MIN_SUM`]. The match must be one to one with a margin
//! ([`MARGIN`]): each page must be the best match of the other, and better than any second one by
//! the margin. And both pages must have the same name, that is, the last segment of the path in
//! lower case and without its file extension. An equal name makes no pair, but this condition keeps
//! pages apart that were moved within a collection.
//!
//! # Source
//! \[DDGMP03\]: links confirm content. Bhattacharya and Getoor, *Collective entity resolution in
//! relational data* (2007), for using results as evidence. The thresholds are our own, chosen on
//! the two crawls of `scripts/real-crawl`.

use std::cmp::Reverse;

use bytemuck::{Pod, Zeroable};

use webtwin_base::ids::{ClusterId, Number, Page};

/// Value of the fraction 1, in millionths.
pub const MILLION: u32 = 1_000_000;
/// Minimum fraction of the smaller collection's pages that have copies in the other, in millionths.
pub const COMMON: u32 = 400_000;
/// Minimum number of trivial clusters that two collections have in common.
pub const MIN_COMMON: usize = 3;
/// Minimum agreement of links, in millionths.
pub const LINKS: u32 = 500_000;
/// Minimum agreement of texts, in millionths.
pub const TEXT: u32 = 150_000;
/// Minimum sum of both agreements, in millionths.
pub const MIN_SUM: u32 = 950_000;
/// Minimum difference between a match and any other match of either page, in millionths.
pub const MARGIN: u32 = 100_000;
/// Maximum number of pages of one name with a common link for the link to propose them. A link of
/// more pages is part of a menu.
const MAX_SAME_NAME: usize = 64;
/// Number of pages of candidates that a worker processes at a time.
const CANDIDATE_PAGES: usize = 1 << 20;

/// A page of a collection. Rows order by collection, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContextPage {
    /// First page of the collection, which names it.
    pub collection: Page,
    /// The page.
    pub page: Page,
    /// Trivial cluster of the page.
    pub cluster: ClusterId,
    /// Hash of the page's name.
    pub name: u64,
}

/// Two pages of one name that may be copies; `a < b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct CandidatePair {
    /// The smaller page.
    pub a: Page,
    /// The larger page.
    pub b: Page,
    /// First pages of the collections of `a` and `b`.
    pub collections: [Page; 2],
    /// Agreement of the links of the two pages, in millionths.
    pub links: u32,
}

/// Returns the name of a page: the last segment of its URL's path without its file extension, with
/// the query, all in lower case.
///
/// # Examples
/// ```
/// use webtwin_core::clusters::context_pass::name;
///
/// assert_eq!(name("http://a.example/manual/Intro.html"), "intro?");
/// assert_eq!(name("http://b.example/old/intro.php?page=2"), "intro?page=2");
/// ```
pub fn name(url: &str) -> String {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest).split_once('/').map_or("", |(_, path)| path);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let segment = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    let stem = segment.rsplit_once('.').map_or(segment, |(stem, _)| stem);
    format!("{stem}?{query}").to_lowercase()
}

/// A link of a page to or from another page of its collection: twice the number of that page's
/// trivial cluster, plus 1 if the link leads from that page. Numbers are those of the trivial
/// clusters of a similar cluster, ascending.
type Link = u32;

/// Returns the weight of a link that `pages` pages have: 2^16 divided by the square of the number
/// of binary digits of `pages`.
fn weight(pages: u32) -> u64 {
    let digits = u64::from(u32::BITS - pages.leading_zeros());
    (1 << 16) / (digits * digits).max(1)
}

/// Returns the pairs to compare among the pages of one similar cluster, ascending.
///
/// `pages` must ascend. `links` are the links within collections, as indices of pages, in any
/// order.
///
/// # Cost
/// Two scans of the links. For each two collections that mirror each other, a sort of the links of
/// each page without a copy. For each link of such a page, up to 64 other pages, each of which
/// costs a scan of the links of both.
pub fn candidates(pages: &[ContextPage], links: &[[u32; 2]]) -> Vec<CandidatePair> {
    let (numbers, clusters) = numbers_of_clusters(pages);
    let mut collections: Vec<Collection<'_>> = Vec::new();
    let mut first = 0;
    for pages in pages.chunk_by(|x, y| x.collection == y.collection) {
        let numbers = &numbers[first..first + pages.len()];
        let mut clusters = numbers.to_vec();
        clusters.sort_unstable();
        clusters.dedup();
        collections.push(Collection { first, pages, numbers, clusters });
        first += pages.len();
    }
    let links_of = LinksOf::new(&numbers, links, &collections, clusters);
    let mut pairs = Vec::new();
    let (mut is_common, mut link_counts) = (vec![false; clusters], vec![0; 2 * clusters]);
    for (at, left) in collections.iter().enumerate() {
        for right in &collections[at + 1..] {
            let common = in_both(&left.clusters, &right.clusters);
            let min_common = left.pages.len().min(right.pages.len()) as u64 * u64::from(COMMON);
            if common.len() >= MIN_COMMON && common.len() as u64 * u64::from(MILLION) >= min_common {
                common.iter().for_each(|&cluster| is_common[cluster as usize] = true);
                let unmatched = [left, right].map(|of| of.unmatched_pages(&is_common, &links_of));
                pairs.extend(agreeing(unmatched, &mut link_counts));
                common.iter().for_each(|&cluster| is_common[cluster as usize] = false);
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Numbers the trivial clusters of pages. Returns the number of each page's cluster, and the number
/// of clusters.
fn numbers_of_clusters(pages: &[ContextPage]) -> (Vec<u32>, usize) {
    let mut by_cluster: Vec<(ClusterId, u32)> = pages.iter().map(|seen| seen.cluster).zip(0..).collect();
    by_cluster.sort_unstable();
    let mut numbers = vec![0; pages.len()];
    let mut clusters = 0;
    for cluster_rows in by_cluster.chunk_by(|x, y| x.0 == y.0) {
        cluster_rows.iter().for_each(|&(_, page)| numbers[page as usize] = clusters);
        clusters += 1;
    }
    (numbers, clusters as usize)
}

/// Returns the intersection of two ascending lists.
fn in_both(x: &[u32], y: &[u32]) -> Vec<u32> {
    let mut y = y.iter().peekable();
    let is_in = |link: &&u32| {
        while y.next_if(|other| other < link).is_some() {}
        y.peek() == Some(link)
    };
    x.iter().filter(is_in).copied().collect()
}

/// The pages of a collection.
struct Collection<'a> {
    /// Index of the collection's first page among the pages of all collections.
    first: usize,
    pages: &'a [ContextPage],
    /// Numbers of the trivial clusters of the pages.
    numbers: &'a [u32],
    /// Distinct numbers of the trivial clusters, ascending.
    clusters: Vec<u32>,
}

/// Links of the pages that have no copy in at least one of the collections, grouped by page.
struct LinksOf {
    /// End of the links of each page in `links`.
    ends: Vec<usize>,
    links: Vec<Link>,
}

impl LinksOf {
    /// Groups links by page. `numbers` are the numbers of the trivial clusters of pages; there are
    /// `clusters` of them.
    fn new(numbers: &[u32], links: &[[u32; 2]], collections: &[Collection<'_>], clusters: usize) -> LinksOf {
        let mut collections_with = vec![0; clusters];
        for &cluster in collections.iter().flat_map(|of| &of.clusters) {
            collections_with[cluster as usize] += 1;
        }
        let is_asked = |at: u32| (collections_with[numbers[at as usize] as usize] as usize) < collections.len();
        let is_context: Vec<bool> = (0..numbers.len() as u32).map(is_asked).collect();
        let between = || links.iter().filter(|[from, to]| from != to);
        let mut ends = vec![0; numbers.len()];
        for at in between().flatten().filter(|at| is_context[**at as usize]) {
            ends[*at as usize] += 1;
        }
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut links_of = vec![0; total];
        let mut put_link = |at: u32, link| {
            if is_context[at as usize] {
                links_of[ends[at as usize]] = link;
                ends[at as usize] += 1;
            }
        };
        for &[from, to] in between() {
            put_link(from, 2 * numbers[to as usize]);
            put_link(to, 2 * numbers[from as usize] + 1);
        }
        LinksOf { ends, links: links_of }
    }

    /// Returns the links of a page, given its index, in no order. Links to several pages of a
    /// cluster occur more than once.
    fn links_of_page(&self, page: usize) -> &[Link] {
        &self.links[if page == 0 { 0 } else { self.ends[page - 1] }..self.ends[page]]
    }
}

/// A page of one collection without a copy in another, with its links to pages that have a copy,
/// ascending.
struct UnmatchedContext<'a> {
    page: &'a ContextPage,
    links: Vec<Link>,
    /// Weight of each link, and in `weight` their sum.
    weights: Vec<u64>,
    weight: u64,
}

impl<'a> Collection<'a> {
    /// Returns all pages of the collection without a copy, with weights that are not set yet.
    /// `is_common` is true for the trivial clusters that both collections have.
    fn unmatched_pages(&self, is_common: &[bool], links_of: &LinksOf) -> Vec<UnmatchedContext<'a>> {
        let unmatched = self.numbers.iter().enumerate().filter(|(_, number)| !is_common[**number as usize]);
        let linked_pages = unmatched.map(|(at, _)| {
            let links = links_of.links_of_page(self.first + at).iter().filter(|&&link| is_common[link as usize / 2]);
            let mut links: Vec<Link> = links.copied().collect();
            links.sort_unstable();
            links.dedup();
            UnmatchedContext { page: &self.pages[at], links, weights: Vec::new(), weight: 0 }
        });
        linked_pages.filter(|page| !page.links.is_empty()).collect()
    }
}

/// Computes the weights of links from the number of pages that have each link. `link_counts` must
/// be all zero, and is all zero on return.
fn weigh(pages: &mut [UnmatchedContext<'_>], link_counts: &mut [u32]) {
    pages.iter().flat_map(|page| &page.links).for_each(|&link| link_counts[link as usize] += 1);
    for page in &mut *pages {
        page.weights = page.links.iter().map(|&link| weight(link_counts[link as usize])).collect();
        page.weight = page.weights.iter().sum();
    }
    pages.iter().flat_map(|page| &page.links).for_each(|&link| link_counts[link as usize] = 0);
}

/// Returns the pairs of pages of two collections whose links agree.
fn agreeing([left, right]: [Vec<UnmatchedContext<'_>>; 2], link_counts: &mut [u32]) -> Vec<CandidatePair> {
    let lefts = left.len();
    let mut pages: Vec<UnmatchedContext<'_>> = left.into_iter().chain(right).collect();
    weigh(&mut pages, link_counts);
    let (left, right) = pages.split_at(lefts);
    // Rows (name, link, page) of the right collection. A left page is compared only with pages that
    // share its name and a link, not with all pages.
    let mut rows_by_name: Vec<(u64, Link, u32)> = Vec::new();
    for (page, at) in right.iter().zip(0..) {
        rows_by_name.extend(page.links.iter().map(|&link| (page.page.name, link, at)));
    }
    rows_by_name.sort_unstable();
    let mut last_inspected = vec![usize::MAX; right.len()];
    let mut pairs = Vec::new();
    for (at, page) in left.iter().enumerate() {
        let from = rows_by_name.partition_point(|one| one.0 < page.page.name);
        let mut same_name = &rows_by_name[from..];
        for &link in &page.links {
            same_name = &same_name[same_name.partition_point(|one| (one.0, one.1) < (page.page.name, link))..];
            let matching = same_name.iter().take_while(|one| (one.0, one.1) == (page.page.name, link));
            // More than MOST pages share this link, so it is a menu's and would propose arbitrary
            // pairs.
            if matching.clone().nth(MAX_SAME_NAME).is_some() {
                continue;
            }
            for &(_, _, other) in matching {
                let other = other as usize;
                if std::mem::replace(&mut last_inspected[other], at) == at {
                    continue;
                }
                let links = agreement(page, &right[other]);
                if links >= LINKS {
                    let (x, y) = (page.page, right[other].page);
                    let (x, y) = if x.page < y.page { (x, y) } else { (y, x) };
                    pairs.push(CandidatePair {
                        a: x.page,
                        b: y.page,
                        collections: [x.collection, y.collection],
                        links,
                    });
                }
            }
            // No right page with this name has this link or a greater one.
            if same_name.first().is_none_or(|one| one.0 != page.page.name) {
                break;
            }
        }
    }
    pairs
}

/// Returns the weight of the links that two pages have in common, divided by the weight of all
/// their links, in millionths.
fn agreement(x: &UnmatchedContext<'_>, y: &UnmatchedContext<'_>) -> u32 {
    let mut other_links = y.links.iter().peekable();
    let is_in_both = |(link, _): &(&Link, &u64)| {
        while other_links.next_if(|other| other < link).is_some() {}
        other_links.peek() == Some(link)
    };
    let common: u64 = x.links.iter().zip(&x.weights).filter(is_in_both).map(|(_, weight)| weight).sum();
    share(common, x.weight + y.weight - common)
}

/// Returns a part of a whole in millionths, rounded down, and [`MILLION`] if the whole is 0.
pub fn share(part: u64, whole: u64) -> u32 {
    if whole == 0 { MILLION } else { (u128::from(part) * u128::from(MILLION) / u128::from(whole)) as u32 }
}

/// Returns the indices of candidates that are the best by far for one of their pages, in no
/// particular order. A candidate is the best by far if it exceeds by [`MARGIN`] all other
/// candidates of that page in the same other collection. An index occurs twice if this is true for
/// both pages. Considers the pages of worker `index` among `peers` workers. `texts` has the
/// agreement of the texts of each candidate.
///
/// # Cost
/// A sort of the worker's pages. Memory: 16 bytes for each of about a million pages at a time, and
/// 4 for each candidate returned.
pub fn best_by_far(candidates: &[CandidatePair], texts: &[u32], (index, peers): (usize, usize)) -> Vec<u32> {
    best_by_far_in((2 * candidates.len() / peers).div_ceil(CANDIDATE_PAGES).max(1), candidates, texts, (index, peers))
}

/// Computes the result of [`best_by_far`] with the pages processed in `parts` parts.
fn best_by_far_in(
    parts: usize,
    candidates: &[CandidatePair],
    texts: &[u32],
    (index, peers): (usize, usize),
) -> Vec<u32> {
    let mut winners = Vec::new();
    let mut sides: Vec<(Page, Page, Reverse<u32>, u32)> = Vec::new();
    for part in 0..parts {
        let is_here = |page: Page| page.index() % (parts * peers) == part * peers + index;
        sides.clear();
        for ((at, candidate), text) in (0..).zip(candidates).zip(texts) {
            let sides_of_pair = [(candidate.a, candidate.collections[1]), (candidate.b, candidate.collections[0])];
            let page_sides = sides_of_pair.into_iter().filter(|&(page, _)| is_here(page));
            sides.extend(page_sides.map(|(page, collection)| (page, collection, Reverse(candidate.links + text), at)));
        }
        sides.sort_unstable();
        for side in sides.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)) {
            let (Reverse(best), second) = (side[0].2, side.get(1).map_or(0, |side| side.2.0));
            winners.extend((best - second >= MARGIN).then_some(side[0].3));
        }
    }
    winners
}

/// Returns the candidates that are copies of each other, with the mean of both agreements in
/// millionths. `texts` has the agreement of the texts of each candidate, and `best` the results of
/// all workers ([`best_by_far`]).
///
/// # Cost
/// Linear. Memory: a byte for each candidate.
pub fn one_to_one(candidates: &[CandidatePair], texts: &[u32], best: &[u32]) -> Vec<(CandidatePair, u32)> {
    // Number of pages (0 to 2) for which each candidate is the best by far.
    let mut best_of = vec![0u8; candidates.len()];
    best.iter().for_each(|&at| best_of[at as usize] += 1);
    let totals =
        candidates.iter().zip(texts).zip(best_of).map(|((of, &text), best_of)| (of, text, of.links + text, best_of));
    let accepted = totals.filter(|&(_, text, sum, best_of)| text >= TEXT && sum >= MIN_SUM && best_of == 2);
    accepted.map(|(of, _, sum, _)| (*of, sum / 2)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A link by the trivial cluster at its other end, and true if it leads from there.
    type Link = (ClusterId, bool);

    /// Computes pairs by definition, comparing every pair of pages.
    fn by_definition(pages: &[ContextPage], links: &[(Page, Page)]) -> Vec<CandidatePair> {
        let clusters = |collection: Page| -> BTreeSet<ClusterId> {
            pages.iter().filter(|seen| seen.collection == collection).map(|seen| seen.cluster).collect()
        };
        let size = |collection: Page| pages.iter().filter(|seen| seen.collection == collection).count();
        let cluster = |page: Page| pages.iter().find(|seen| seen.page == page).map(|seen| seen.cluster);
        let mut pairs = Vec::new();
        for x in pages {
            for y in pages.iter().filter(|y| x.page < y.page && x.collection != y.collection && x.name == y.name) {
                let (clusters_of_x, clusters_of_y) = (clusters(x.collection), clusters(y.collection));
                let common: BTreeSet<ClusterId> = clusters_of_x.intersection(&clusters_of_y).copied().collect();
                let smaller = size(x.collection).min(size(y.collection));
                let mirrored = common.len() >= 3 && 10 * common.len() >= 4 * smaller;
                if !mirrored || common.contains(&x.cluster) || common.contains(&y.cluster) {
                    continue;
                }
                let links_of = |page: Page| -> BTreeSet<Link> {
                    let to = links.iter().filter(|link| link.0 == page && link.1 != page).map(|link| (link.1, false));
                    let from = links.iter().filter(|link| link.1 == page && link.0 != page).map(|link| (link.0, true));
                    let named_links = to.chain(from).filter_map(|(other, is_in)| Some((cluster(other)?, is_in)));
                    named_links.filter(|link| common.contains(&link.0)).collect()
                };
                let weigh = |links: BTreeSet<Link>| -> u64 {
                    let pages_of_pair =
                        pages.iter().filter(|seen| [x.collection, y.collection].contains(&seen.collection));
                    let unmatched = pages_of_pair.filter(|seen| !common.contains(&seen.cluster));
                    let link_sets: Vec<BTreeSet<Link>> = unmatched.map(|seen| links_of(seen.page)).collect();
                    let frequency = |link: &Link| link_sets.iter().filter(|links| links.contains(link)).count();
                    links.iter().map(|link| 65536 / (frequency(link).ilog2() as u64 + 1).pow(2)).sum()
                };
                let (links_of_x, links_of_y) = (links_of(x.page), links_of(y.page));
                let part = weigh(links_of_x.intersection(&links_of_y).copied().collect());
                let whole = weigh(links_of_x.union(&links_of_y).copied().collect());
                if part > 0 && 2 * part >= whole {
                    let links = (1_000_000 * part / whole) as u32;
                    pairs.push(CandidatePair {
                        a: x.page,
                        b: y.page,
                        collections: [x.collection, y.collection],
                        links,
                    });
                }
            }
        }
        pairs.sort_unstable();
        pairs
    }

    proptest! {
        #[test]
        fn candidates_are_those_of_the_definition(
            clusters in prop::collection::vec(0u32..9, 24), names in prop::collection::vec(0u64..3, 24),
            links in prop::collection::btree_set((0u32..8, 0u32..8, 0u32..3), 0..60),
        ) {
            let page_seen = |page: u32| ContextPage {
                collection: Page(page / 8 * 8), page: Page(page), cluster: ClusterId(clusters[page as usize]), name: names[page as usize]
            };
            let pages: Vec<ContextPage> = (0..24).map(page_seen).collect();
            let links: Vec<(Page, Page)> = links.iter().map(|&(src, dst, of)| (Page(8 * of + src), Page(8 * of + dst))).collect();
            // The index of a page is its number.
            let places: Vec<[u32; 2]> = links.iter().rev().map(|(src, dst)| [src.0, dst.0]).collect();
            prop_assert_eq!(candidates(&pages, &places), by_definition(&pages, &links));
        }

        #[test]
        fn matches_are_one_to_one_and_better_than_any_other(
            pairs in prop::collection::btree_map((0u32..6, 6u32..12), (5u32..=10, 0u32..=10), 0..20)
        ) {
            let candidate = |(&(a, b), &(links, _)): (&(u32, u32), &(u32, u32))| CandidatePair {
                a: Page(a), b: Page(b), collections: [Page(0), Page(6)], links: links * 100_000
            };
            let candidates: Vec<CandidatePair> = pairs.iter().map(candidate).collect();
            let texts: Vec<u32> = pairs.values().map(|&(_, text)| text * 100_000).collect();
            let sum = |at: usize| candidates[at].links + texts[at];
            let meet = |x: &CandidatePair, y: &CandidatePair| x.a == y.a || x.b == y.b;
            let accepted = (0..candidates.len()).filter(|&at| {
                let rivals = (0..candidates.len()).filter(|&other| other != at && meet(&candidates[at], &candidates[other]));
                texts[at] >= 150_000 && sum(at) >= 950_000 && rivals.clone().all(|other| sum(at) >= sum(other) + 100_000)
            });
            let expected: Vec<_> = accepted.map(|at| (candidates[at], sum(at) / 2)).collect();
            for (parts, peers) in [(1, 1), (3, 1), (1, 3), (2, 2)] {
                let best: Vec<u32> =
                    (0..peers).flat_map(|index| best_by_far_in(parts, &candidates, &texts, (index, peers))).collect();
                prop_assert_eq!(&one_to_one(&candidates, &texts, &best), &expected);
            }
        }
    }

    #[test]
    fn name_is_the_last_segment_without_case_and_ending() {
        assert_eq!(name("http://a.example/doc/Class.HTML"), "class?");
        assert_eq!(name("http://b.example/old/1.2/class.htm"), "class?");
        assert_eq!(name("http://b.example/dir/"), "dir?");
        assert_eq!(name("http://b.example/"), "?");
        assert_eq!(name("http://b.example/view.php?Page=2.1"), "view?page=2.1");
    }

    #[test]
    fn a_rewritten_page_is_found_and_its_translation_is_not() {
        let candidate = CandidatePair { a: Page(1), b: Page(2), collections: [Page(0), Page(2)], links: 1_000_000 };
        let copies = |text| one_to_one(&[candidate], &[text], &best_by_far(&[candidate], &[text], (0, 1)));
        assert_eq!(copies(200_000), [(candidate, 600_000)]);
        assert_eq!(copies(100_000), []);
    }
}
