//! Guard on transitivity by links: no similar pair joins two clusters if one has a page and the
//! other a *neighbour* of that page.
//!
//! Neighbours are pages of one host that link to the same pages of that host. A copy has its own
//! place in the web, because the links of a mirror lead to pages of the mirror; two chapters of one
//! manual are in the same place. However much the chapters resemble each other, a trivial cluster
//! that holds both holds two different pages: the chain that joins them, chapter 1 here to chapter
//! 2 there, contains a false pair. So pairs are processed in order of resemblance, the highest
//! first, and each pair joins the clusters of its pages unless a page of one has a neighbour in the
//! other. The false pair comes after the true ones, when their clusters are already joined, and is
//! refused. The two pages of the false pair need not be judged by themselves.
//!
//! The [`KEPT_TARGETS`] targets with the smallest hashes represent all links of a page. So two
//! pages are more likely to be treated as neighbours the more targets they share. Pages that share
//! only a few targets, such as the home page, are seldom treated as neighbours. Pages without links
//! on their host are all in one place, so each is a neighbour of the others. The exception is a
//! host without any links, such as the synthetic host of a corpus of texts: there, links carry no
//! evidence, and no page has a neighbour. Exact copies count as one page, wherever they are.
//!
//! Editions of one manual on one host, one in each language, have links of their own, so no page of
//! one edition is a neighbour of a page of the other. Where a chapter is not translated, both
//! editions have the same text. Editions can be distinguished because they occur together: another
//! host has both, too. Two clusters that both have pages on each of [`MIN_COMMON_HOSTS`] hosts hold
//! two pages that are mirrored side by side, and they stay apart. Versions differ from editions in
//! this respect: one host may have an old version next to the new one, while each of its mirrors
//! has only one of them.
//!
//! Clusters grow within connected components of similar pages, so components are independent of
//! each other.
//!
//! # Source
//! \[DDGMP03\] take agreeing links as evidence of replicas; here identical links are evidence
//! against. The order is that of Kruskal (1956), the sample that of Broder, *On the resemblance and
//! containment of documents* (1997).

use std::collections::HashSet;
use std::hash::Hash;

use bytemuck::{Pod, Zeroable};

use super::SimilarPair;
use crate::clusters::union_find::UnionFind;
use webtwin_base::ids::{HostId, Number, Page, splitmix64};

/// Minimum number of common hosts at which two clusters stay apart.
pub const MIN_COMMON_HOSTS: usize = 2;

/// Number of link targets kept per page.
pub const KEPT_TARGETS: usize = 4;

/// A page with a sample of its link targets on its own host: 20 bytes. Rows order by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct LinkSample {
    /// Page that has the links.
    pub page: Page,
    targets: [Page; KEPT_TARGETS],
}

impl LinkSample {
    /// Creates a row from a page and all pages of its host that it links to.
    pub fn new(page: Page, targets: impl Iterator<Item = Page>) -> LinkSample {
        // One slot more than is kept, so that a target can be inserted before the last one is
        // dropped.
        let mut smallest = [(u64::MAX, Page::NONE); KEPT_TARGETS + 1];
        for target in targets {
            let hash = splitmix64(u64::from(target));
            let at = smallest[..KEPT_TARGETS].partition_point(|one| one.0 < hash);
            if at < KEPT_TARGETS && smallest[at].1 != target {
                smallest[at..].rotate_right(1);
                smallest[at] = (hash, target);
            }
        }
        LinkSample { page, targets: std::array::from_fn(|at| smallest[at].1) }
    }

    /// Returns the places of a page, which it shares with its neighbours only: its targets, or its
    /// host if it has no targets and the host has links.
    fn places(&self, hosts: &[HostId], has_links: impl Fn(HostId) -> bool) -> impl Iterator<Item = u64> + '_ {
        let host = hosts[self.page];
        let nowhere = (self.targets[0] == Page::NONE && has_links(host)).then(|| 1 << 32 | u64::from(host.number()));
        self.targets.iter().filter(|&&target| target != Page::NONE).map(|&target| u64::from(target)).chain(nowhere)
    }
}

/// Keeps the pairs whose pages end up in one cluster, ascending.
///
/// `pairs` and the (centre, copy) `exact_pairs` are all pairs of some components; `pages` are the
/// pages of these components, ascending. `hosts[page]` is the host of a page. `has_links(host)` is
/// true if pages of the host without links there are neighbours of each other. `larger(a, b)` is
/// the number of chunks that F of a pair is divided by. Ties in resemblance go to the smaller
/// pages.
///
/// # Cost
/// A sort of the pairs. Each place of a page, and its host, moves at most log2(pages) times. Memory
/// is 16 bytes per pair, about 250 per page, and 16 for each two clusters that are kept apart. Each
/// refusal also costs a scan of the places and hosts of the smaller cluster.
///
/// # Examples
/// Pages 0 and 1 are neighbours, because both link to page 3 of their host. Page 2 of another host
/// resembles both, and must not put them into one cluster. So it joins the page it resembles most.
/// ```
/// use webtwin_base::ids::{HostId, Page};
/// use webtwin_core::overlap::SimilarPair;
/// use webtwin_core::overlap::neighbours::{LinkSample, keep_apart};
///
/// let pair = |a, b, value| SimilarPair { a: Page(a), b: Page(b), value };
/// let mut pairs = vec![pair(0, 2, 6), pair(1, 2, 9)];
/// let links = [(0, vec![Page(3)]), (1, vec![Page(3)]), (2, vec![])];
/// let pages = links.map(|(page, targets)| LinkSample::new(Page(page), targets.into_iter()));
/// let hosts = [0, 0, 1, 0].map(HostId);
/// keep_apart(&mut pairs, &[], &pages, &hosts, |_| false, |_, _| 10);
/// assert_eq!(pairs, [pair(1, 2, 9)]);
/// ```
pub fn keep_apart(
    pairs: &mut Vec<SimilarPair>,
    exact_pairs: &[SimilarPair],
    pages: &[LinkSample],
    hosts: &[HostId],
    has_links: impl Fn(HostId) -> bool,
    larger: impl Fn(Page, Page) -> u32,
) {
    let place = |page: Page| pages.partition_point(|linked| linked.page < page) as u32;
    let mut clusters = UnionFind::new(pages.len());
    let mut places: Vec<HashSet<u64>> = pages.iter().map(|linked| linked.places(hosts, &has_links).collect()).collect();
    let mut hosts_of: Vec<HashSet<HostId>> =
        pages.iter().map(|linked| HashSet::from([hosts[linked.page.index()]])).collect();
    // Clusters only gain places and hosts, so two clusters that were kept apart once stay apart
    // while they grow.
    let mut refused_pairs: HashSet<(u32, u32)> = HashSet::new();
    let mut join = |a: Page, b: Page, is_unconditional: bool| {
        let (x, y) = (clusters.find(place(a)), clusters.find(place(b)));
        let (first, second) = (x.min(y), x.max(y));
        if x == y || (!is_unconditional && refused_pairs.contains(&(first, second))) {
            return;
        }
        let (first_at, second_at) = (first as usize, second as usize);
        let neighbours = || in_both(&places[first_at], &places[second_at]).next().is_some();
        let side_by_side = || in_both(&hosts_of[first_at], &hosts_of[second_at]).nth(MIN_COMMON_HOSTS - 1).is_some();
        if !is_unconditional && (neighbours() || side_by_side()) {
            refused_pairs.insert((first, second));
            return;
        }
        clusters.union(x, y);
        move_all(&mut places, first_at, second_at);
        move_all(&mut hosts_of, first_at, second_at);
    };
    // Exact copies are one page, so the guard does not apply to them.
    exact_pairs.iter().for_each(|pair| join(pair.a, pair.b, true));
    let mut by_resemblance: Vec<(SimilarPair, u32)> =
        pairs.iter().map(|pair| (*pair, larger(pair.a, pair.b))).collect();
    by_resemblance.sort_unstable_by(|(x, larger_x), (y, larger_y)| {
        let part = |pair: &SimilarPair, other: u32| u64::from(pair.value) * u64::from(other);
        // Compares the fractions value / larger by cross multiplication, without floating point.
        part(y, *larger_x).cmp(&part(x, *larger_y)).then(x.cmp(y))
    });
    by_resemblance.iter().for_each(|(pair, _)| join(pair.a, pair.b, false));
    // A pair that joined nothing also stays, if other pairs had joined its clusters before.
    pairs.retain(|pair| clusters.find(place(pair.a)) == clusters.find(place(pair.b)));
    pairs.sort_unstable();
}

/// Returns the intersection of two sets, by looking up the elements of the smaller one in the
/// larger one.
fn in_both<'a, T: Eq + Hash>(x: &'a HashSet<T>, y: &'a HashSet<T>) -> impl Iterator<Item = &'a T> {
    let (smaller, larger) = if x.len() < y.len() { (x, y) } else { (y, x) };
    smaller.iter().filter(|one| larger.contains(one))
}

/// Moves all elements of set `from` to set `to`. The smaller set is always the one that moves.
fn move_all<T: Eq + Hash>(sets: &mut [HashSet<T>], to: usize, from: usize) {
    let mut moved = std::mem::take(&mut sets[from]);
    if moved.len() > sets[to].len() {
        std::mem::swap(&mut moved, &mut sets[to]);
    }
    sets[to].extend(moved);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Computes clusters as sets of pages, comparing every pair of pages.
    fn by_definition(
        pairs: &[SimilarPair],
        exact_pairs: &[SimilarPair],
        pages: &[LinkSample],
        hosts: &[HostId],
        has_links: impl Fn(HostId) -> bool,
        larger: impl Fn(Page, Page) -> u32,
    ) -> Vec<SimilarPair> {
        let neighbours = |p: Page, q: Page| {
            let targets = |page: Page| pages.iter().find(|linked| linked.page == page).unwrap().targets;
            let linked = |page: Page| targets(page).into_iter().filter(|&target| target != Page::NONE);
            let same_host = hosts[p] == hosts[q];
            let both_nowhere = linked(p).count() == 0 && linked(q).count() == 0 && has_links(hosts[p]);
            same_host && (both_nowhere || linked(p).any(|target| linked(q).any(|other| target == other)))
        };
        let mut clusters: Vec<BTreeSet<Page>> = pages.iter().map(|linked| BTreeSet::from([linked.page])).collect();
        let mut ordered = pairs.to_vec();
        ordered.sort_by(|x, y| {
            let resemblance = |pair: &SimilarPair| f64::from(pair.value) / f64::from(larger(pair.a, pair.b));
            resemblance(y).total_cmp(&resemblance(x)).then(x.cmp(y))
        });
        for (pair, exact) in exact_pairs.iter().map(|pair| (pair, true)).chain(ordered.iter().map(|pair| (pair, false)))
        {
            let cluster_of = |page: Page| clusters.iter().position(|cluster| cluster.contains(&page)).unwrap();
            let (x, y) = (cluster_of(pair.a), cluster_of(pair.b));
            let has_neighbours = clusters[x].iter().any(|&p| clusters[y].iter().any(|&q| neighbours(p, q)));
            let hosts_of = |cluster: usize| clusters[cluster].iter().map(|&p| hosts[p]).collect::<BTreeSet<_>>();
            let side_by_side = hosts_of(x).intersection(&hosts_of(y)).count() >= MIN_COMMON_HOSTS;
            if x != y && (exact || !(has_neighbours || side_by_side)) {
                let union: BTreeSet<Page> = clusters[x].union(&clusters[y]).copied().collect();
                clusters[x] = union;
                clusters.remove(y);
            }
        }
        let is_joined = |pair: &&SimilarPair| clusters.iter().any(|c| c.contains(&pair.a) && c.contains(&pair.b));
        let mut kept_pairs: Vec<SimilarPair> = pairs.iter().filter(is_joined).copied().collect();
        kept_pairs.sort_unstable();
        kept_pairs
    }

    proptest! {
        #[test]
        fn clusters_equal_the_definition(
            similar in prop::collection::btree_map((0u32..14, 0u32..14), 1u32..6, 0..40),
            exact in prop::collection::btree_set((0u32..14, 0u32..14), 0..3),
            links in prop::collection::vec(prop::collection::vec(0u32..30, 0..7), 14),
            hosts in prop::collection::vec((0u32..5).prop_map(HostId), 14),
            with_links in prop::collection::vec(any::<bool>(), 5),
        ) {
            let pair = |a: u32, b: u32, value| SimilarPair { a: Page(a.min(b)), b: Page(a.max(b)), value };
            let mut pairs: Vec<_> = similar.iter().filter(|((a, b), _)| a < b).map(|(&(a, b), &f)| pair(a, b, f)).collect();
            let exact: Vec<_> = exact.iter().filter(|(a, b)| a != b).map(|&(a, b)| pair(a, b, 0)).collect();
            // A target belongs to one host only.
            let target = |page: Page, number: u32| Page(100 * (hosts[page].0 + 1) + number);
            let linked = |page: Page| LinkSample::new(page, links[page].iter().map(|&number| target(page, number)));
            let pages: Vec<_> = Page::first(14).map(linked).collect();
            let larger = |a: Page, b: Page| 6 + (a.0 + b.0) % 3;
            let has_links = |host: HostId| with_links[host.index()];
            let expected = by_definition(&pairs, &exact, &pages, &hosts, has_links, larger);
            keep_apart(&mut pairs, &exact, &pages, &hosts, has_links, larger);
            prop_assert_eq!(pairs, expected);
        }
    }

    #[test]
    fn two_chapters_of_two_mirrors_stay_two_clusters() {
        // Chapters 0 and 1 of one mirror link to its index 10, chapters 2 and 3 of the other to its
        // index 20.
        let pages = [(0, 10), (1, 10), (2, 20), (3, 20)]
            .map(|(page, index)| LinkSample::new(Page(page), [Page(index)].into_iter()));
        let pair = |a, b, value| SimilarPair { a: Page(a), b: Page(b), value };
        let mut pairs = vec![pair(0, 1, 7), pair(0, 2, 9), pair(0, 3, 8), pair(1, 2, 8), pair(1, 3, 9), pair(2, 3, 7)];
        keep_apart(&mut pairs, &[], &pages, &[0, 0, 1, 1].map(HostId), |_| true, |_, _| 10);
        assert_eq!(pairs, [pair(0, 2, 9), pair(1, 3, 9)]);
    }

    #[test]
    fn editions_that_are_mirrored_side_by_side_stay_apart_and_versions_do_not() {
        // Pages 0 and 1 of one host, 2 and 3 of the other, 4 alone on a third; every page links to
        // an index of its own.
        let pages: Vec<_> = (0..5).map(|page| LinkSample::new(Page(page), [Page(10 + page)].into_iter())).collect();
        let pair = |a, b, value| SimilarPair { a: Page(a), b: Page(b), value };
        let kept_pairs = |mut pairs: Vec<SimilarPair>| {
            keep_apart(&mut pairs, &[], &pages, &[0, 0, 1, 1, 2].map(HostId), |_| true, |_, _| 10);
            pairs
        };
        let editions = [pair(0, 2, 9), pair(1, 3, 9)];
        assert_eq!(kept_pairs([&editions[..], &[pair(0, 1, 8), pair(0, 3, 8), pair(2, 3, 8)]].concat()), editions);
        let versions = [pair(0, 1, 8), pair(0, 2, 9), pair(1, 4, 9)];
        assert_eq!(kept_pairs(versions.to_vec()), versions);
    }

    #[test]
    fn smallest_hashes_represent_all_links() {
        let targets = |page, links: &[Page]| BTreeSet::from(LinkSample::new(Page(page), links.iter().copied()).targets);
        let pages: Vec<Page> = Page::first(40).collect();
        let smallest = targets(7, &pages);
        assert_eq!(smallest.len(), KEPT_TARGETS);
        let repeated: Vec<Page> = pages.iter().rev().copied().chain([Page(3)]).collect();
        assert_eq!(targets(8, &repeated), smallest);
        assert_eq!(targets(9, &smallest.iter().copied().collect::<Vec<_>>()), smallest);
        assert_eq!(targets(9, &[]), BTreeSet::from([Page::NONE]));
    }
}
