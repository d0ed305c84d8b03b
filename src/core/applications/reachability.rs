//! Reachability: the crawl paths on which a crawler reaches pages, and the skipped pages that it
//! must visit so that no page is cut off.
//!
//! A crawler starts at entry points and follows links. A list of pages to skip cuts off a page if
//! every path to it leads through a skipped page. [`WebPart::settle`] finds for every page the path
//! with the fewest skipped pages on it, and of these the shortest. If a page that stays has skipped
//! pages on its best path, these pages are visited after all. So
//!
//! > every page that stays, and that some path leads to, has a path without a skipped page.
//!
//! This is ensured for three kinds of crawlers, one after the other, each with fewer entry points
//! or links than the one before ([`PASSES`](super::entry_points::PASSES)). A page that a later pass visits has a path of its
//! own, from entry points that the earlier passes have too, so no pass invalidates the result of
//! another.
//!
//! A part has all pages of some hosts; links to hosts of other parts are [`Crossing`]s. The links
//! of a part are stored separately, so that they can be spilled while the links of other parts are
//! followed.
//!
//! # Cost
//! A pass reads each link once for every time that a better path to its source is found, and orders
//! pages by a heap.
//!
//! # Memory
//! 13 bytes a page, and 4 more from [`WebPart::look_back`] on. The links take 8 bytes a page, 4 a
//! link within the part and 8 a link to another part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytemuck::{Pod, Zeroable};

use super::entry_points::{LINKED_FROM_ELSEWHERE, LinkScope, NOT_LINKED, WebPage, mark_roots};
use super::part_links::{Local, PartLinks, local};
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Page};

/// Flag, stored with the entry point kinds, of a page that is skipped.
const SKIP: u8 = 1 << 7;
/// Flag of a page whose links have not been followed since a better path to it was found.
const WAITING_FLAG: u8 = 1 << 6;
/// Flag of a page that [`WebPart::go_back`] has visited.
const SEEN_FLAG: u8 = 1 << 5;

/// Cost of a path to a page. The high half is the number of skipped pages on it, including the page
/// itself; the low half is the number of links.
type Cost = u64;

/// Cost of a page that no path leads to.
const NO_WAY: Cost = Cost::MAX;

/// Cost of a skipped page on the path.
const SKIP_COST: Cost = 1 << 32;

/// A link to a page of another part, with the cost of the best path to its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Crossing {
    /// Cost of the best path to `src`.
    cost: Cost,
    /// Page that has the link.
    pub src: Page,
    /// Linked page of the other part.
    pub dst: Page,
}

/// Pages of some hosts, and the best paths to them.
///
/// # Examples
/// The root of a host links to page 1, and page 1 to page 2. Page 3 links to itself only.
/// ```
/// use webtwin_base::ids::{HostId, Page};
/// use webtwin_core::applications::entry_points::{LinkScope, ROOT, WebPage};
/// use webtwin_core::applications::part_links::PartLinks;
/// use webtwin_core::applications::reachability::WebPart;
///
/// let page = |(page, path_length)| WebPage {
///     page: Page(page),
///     host: HostId(0),
///     path_length,
///     entry: 0,
/// };
/// let mut part = WebPart::new(&mut [(0, 1), (1, 5), (2, 9), (3, 9)].map(page));
/// let mut links = [[0, 1], [1, 2], [3, 3]].map(|link| link.map(Page));
/// let words = part.link(&mut links, |_| HostId(0))?;
/// part.start(ROOT);
/// part.settle(PartLinks::from_words(&words), LinkScope::WithinHosts);
/// let depths: Vec<Option<u32>> = part.depths().map(|(_, depth)| depth).collect();
/// assert_eq!(depths, [Some(0), Some(1), Some(2), None]);
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct WebPart {
    /// Pages of the part, ascending.
    pages: Vec<Page>,
    /// Entry point kinds of each page, and its flags.
    kinds: Vec<u8>,
    cost: Vec<Cost>,
    /// Page before each page on its best path. Empty until [`WebPart::look_back`].
    from: Vec<Page>,
    /// True if there are pages whose links must be followed.
    waits: bool,
}

impl WebPart {
    /// Creates the part of some hosts from all their pages, in any order.
    pub fn new(web: &mut [WebPage]) -> WebPart {
        web.sort_unstable();
        mark_roots(web);
        let kinds = |page: &WebPage| match page.entry & LINKED_FROM_ELSEWHERE {
            0 => (page.entry | NOT_LINKED) as u8,
            _ => page.entry as u8,
        };
        WebPart {
            pages: web.iter().map(|page| page.page).collect(),
            kinds: web.iter().map(kinds).collect(),
            cost: vec![NO_WAY; web.len()],
            from: Vec::new(),
            waits: false,
        }
    }

    /// Indexes the links from pages of the part, which must be complete but may be in any order.
    /// Returns them as the words of [`PartLinks`]. `host` returns the host of any page of the
    /// crawl.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::TooManyRows`] if there are 2^32 or more links.
    pub fn link(&mut self, links: &mut [[Page; 2]], host: impl Fn(Page) -> HostId) -> Result<Vec<u32>> {
        let WebPart { pages, kinds, .. } = self;
        PartLinks::to_words(pages, links, host, |target| kinds[target as usize] &= !(NOT_LINKED as u8))
    }

    /// Marks a page of this part as skipped.
    pub fn skip(&mut self, page: Page) {
        let local = self.local(page);
        self.kinds[local as usize] |= SKIP;
    }

    /// Removes all paths, and starts new ones at entry points of the given kinds.
    pub fn start(&mut self, entry: u32) {
        self.cost.fill(NO_WAY);
        self.from = Vec::new();
        self.kinds.iter_mut().for_each(|kinds| *kinds &= !(WAITING_FLAG | SEEN_FLAG));
        for local in 0..self.pages.len() as Local {
            if self.is_entry(local, entry) {
                self.improve(local, self.toll(local));
            }
        }
    }

    /// True if better paths have been found since links were followed.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Follows links until no better path is found within this part. If `scope` includes links to
    /// other parts, returns these links from pages to which a better path was found.
    pub fn settle(&mut self, links: PartLinks<'_>, scope: LinkScope) -> Vec<Crossing> {
        self.waits = false;
        let mut heap = BinaryHeap::new();
        for (local, kinds) in (0..).zip(&mut self.kinds).filter(|(_, kinds)| **kinds & WAITING_FLAG != 0) {
            *kinds &= !WAITING_FLAG;
            heap.push(Reverse((self.cost[local as usize], local)));
        }
        let mut crossing = Vec::new();
        while let Some(Reverse((cost, local))) = heap.pop() {
            if cost > self.cost[local as usize] {
                continue;
            }
            for &target in links.followed(local, scope) {
                let cost = cost + 1 + self.toll(target);
                if cost < self.cost[target as usize] {
                    self.cost[target as usize] = cost;
                    heap.push(Reverse((cost, target)));
                }
            }
            if scope == LinkScope::AllLinks {
                crossing.push(local);
            }
        }
        crossing.sort_unstable();
        crossing.dedup();
        let leaving = crossing.into_iter().flat_map(|src| links.leaving(src).map(move |dst| (src, dst)));
        leaving.map(|(src, dst)| self.crossing(src, dst)).collect()
    }

    /// Returns all links to other parts from pages that a path leads to.
    pub fn crossings(&self, links: PartLinks<'_>) -> Vec<Crossing> {
        let crossing_links = links.all_leaving().filter(|&(src, _)| self.cost[src as usize] != NO_WAY);
        crossing_links.map(|(src, dst)| self.crossing(src, dst)).collect()
    }

    fn crossing(&self, src: Local, dst: Page) -> Crossing {
        Crossing { cost: self.cost[src as usize], src: self.pages[src as usize], dst }
    }

    /// Extends paths by a link from another part.
    pub fn arrive(&mut self, link: &Crossing) {
        let local = self.local(link.dst);
        self.improve(local, link.cost + 1 + self.toll(local));
    }

    /// Prepares for recording the page before each page, once all paths are found.
    pub fn look_back(&mut self) {
        self.from = vec![Page::NONE; self.pages.len()];
    }

    /// Records for every page the smallest page before it on a best path, once all paths are found.
    /// Links from other parts must be added by [`WebPart::trace_over`].
    pub fn trace(&mut self, links: PartLinks<'_>, scope: LinkScope) {
        for src in 0..self.pages.len() {
            if self.cost[src] == NO_WAY {
                continue;
            }
            for &target in links.followed(src as Local, scope) {
                self.lies_before(self.pages[src], self.cost[src], target);
            }
        }
    }

    /// Records a link from another part if it is on a best path.
    pub fn trace_over(&mut self, link: &Crossing) {
        self.lies_before(link.src, link.cost, self.local(link.dst));
    }

    fn lies_before(&mut self, src: Page, cost: Cost, dst: Local) {
        if cost + 1 + self.toll(dst) == self.cost[dst as usize] {
            let from = &mut self.from[dst as usize];
            *from = (*from).min(src);
        }
    }

    /// Returns the pages that stay and have skipped pages on their best path.
    pub fn cut_off(&self) -> Vec<Page> {
        let cut_off =
            |&at: &usize| self.cost[at] != NO_WAY && self.cost[at] >= SKIP_COST && !self.is_skipped(at as Local);
        (0..self.pages.len()).filter(cut_off).map(|at| self.pages[at]).collect()
    }

    /// Follows the best path to a page backwards, until no skipped page is before the current page
    /// or the page was visited earlier. Adds the skipped pages to `visit`. If the path continues in
    /// another part, returns the page where it does.
    pub fn go_back(&mut self, page: Page, visit: &mut Vec<Page>) -> Option<Page> {
        let mut page = page;
        while let Ok(at) = self.pages.binary_search(&page) {
            let has_been = self.kinds[at] & SEEN_FLAG != 0;
            self.kinds[at] |= SEEN_FLAG;
            if has_been || self.cost[at] < SKIP_COST {
                return None;
            }
            if self.is_skipped(at as Local) {
                visit.push(page);
            }
            // An entry point has no page before it, unless the path over other pages is better.
            page = if self.cost[at] == self.toll(at as Local) { Page::NONE } else { self.from[at] };
            if page == Page::NONE {
                return None;
            }
        }
        Some(page)
    }

    /// Marks a page of this part as not skipped.
    pub fn visit(&mut self, page: Page) {
        let local = self.local(page);
        self.kinds[local as usize] &= !SKIP;
    }

    /// Returns the number of links on the best path to each page, ascending by page, or `None` if
    /// no path leads to it.
    pub fn depths(&self) -> impl Iterator<Item = (Page, Option<u32>)> + '_ {
        let depth = |cost: Cost| (cost != NO_WAY).then_some(cost as u32);
        self.pages.iter().zip(&self.cost).map(move |(&page, &cost)| (page, depth(cost)))
    }

    /// Returns the number of entry points of some kinds.
    pub fn entries(&self, entry: u32) -> u64 {
        self.kinds.iter().filter(|&&kinds| u32::from(kinds) & entry != 0).count() as u64
    }

    /// Returns the number of pages of this part.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// True if the part has no page.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    fn local(&self, page: Page) -> Local {
        local(&self.pages, page)
    }

    fn is_entry(&self, page: Local, entry: u32) -> bool {
        u32::from(self.kinds[page as usize]) & entry != 0
    }

    fn is_skipped(&self, page: Local) -> bool {
        self.kinds[page as usize] & SKIP != 0
    }

    fn toll(&self, page: Local) -> Cost {
        Cost::from(self.is_skipped(page)) * SKIP_COST
    }

    fn improve(&mut self, page: Local, cost: Cost) {
        if cost < self.cost[page as usize] {
            self.cost[page as usize] = cost;
            self.kinds[page as usize] |= WAITING_FLAG;
            self.waits = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::applications::entry_points::{PASSES, ROOT, SEED};

    /// Removes the pages that cut others off from a list of skipped pages, pass by pass, in one or
    /// more parts; `part_of` returns the part of a host.
    fn repaired_in_parts(
        web: &[WebPage],
        links: &[[Page; 2]],
        skip: &[Page],
        (count, part_of): (usize, impl Fn(HostId) -> usize),
    ) -> BTreeSet<Page> {
        let host = |page: Page| web[page.0 as usize].host;
        let part_of_page = |page: Page| part_of(host(page));
        let (mut parts, mut words) = (Vec::new(), Vec::new());
        for number in 0..count {
            let mut pages: Vec<WebPage> = web.iter().filter(|page| part_of(page.host) == number).copied().collect();
            let mut part = WebPart::new(&mut pages);
            let mut part_links: Vec<[Page; 2]> =
                links.iter().rev().filter(|link| part_of_page(link[0]) == number).copied().collect();
            words.push(part.link(&mut part_links, host).unwrap());
            parts.push(part);
        }
        let links = |number: usize| PartLinks::from_words(&words[number]);
        skip.iter().for_each(|&page| parts[part_of_page(page)].skip(page));
        for (entry, scope) in PASSES {
            parts.iter_mut().for_each(|part| part.start(entry));
            while let Some(number) = parts.iter().position(WebPart::waits) {
                let leaving = parts[number].settle(links(number), scope);
                leaving.iter().for_each(|link| parts[part_of_page(link.dst)].arrive(link));
            }
            parts.iter_mut().for_each(WebPart::look_back);
            for number in 0..count {
                parts[number].trace(links(number), scope);
                if scope == LinkScope::AllLinks {
                    let crossings = parts[number].crossings(links(number));
                    crossings.iter().for_each(|link| parts[part_of_page(link.dst)].trace_over(link));
                }
            }
            let (mut pages_back, mut visit): (Vec<Page>, _) =
                (parts.iter().flat_map(WebPart::cut_off).collect(), Vec::new());
            while !pages_back.is_empty() {
                pages_back = pages_back
                    .into_iter()
                    .filter_map(|page| parts[part_of_page(page)].go_back(page, &mut visit))
                    .collect();
            }
            visit.iter().for_each(|&page| parts[part_of_page(page)].visit(page));
        }
        let skipped = |page: &Page| {
            let part = &parts[part_of_page(*page)];
            part.is_skipped(part.local(*page))
        };
        Page::first(web.len()).filter(skipped).collect()
    }

    /// Repairs the list with all hosts in one part.
    fn repaired(web: &[WebPage], links: &[[Page; 2]], skip: &[Page]) -> BTreeSet<Page> {
        repaired_in_parts(web, links, skip, (1, |_| 0))
    }

    /// Returns the pages that a crawler visits, by breadth-first search.
    fn visited(
        entries: &BTreeSet<Page>,
        links: &[[Page; 2]],
        follows: impl Fn(Page, Page) -> bool,
        skip: &BTreeSet<Page>,
    ) -> BTreeSet<Page> {
        let mut reachable: BTreeSet<Page> = entries.difference(skip).copied().collect();
        loop {
            let next = links.iter().filter(|link| reachable.contains(&link[0]) && follows(link[0], link[1]));
            let new: Vec<Page> =
                next.map(|link| link[1]).filter(|page| !skip.contains(page) && !reachable.contains(page)).collect();
            if new.is_empty() {
                return reachable;
            }
            reachable.extend(new);
        }
    }

    fn pages<C: FromIterator<Page>>(numbers: impl IntoIterator<Item = u32>) -> C {
        numbers.into_iter().map(Page).collect()
    }

    fn page(page: u32, host: u32, path_length: u32) -> WebPage {
        WebPage { page: Page(page), host: HostId(host), path_length, entry: 0 }
    }

    #[test]
    fn only_entry_is_visited_and_pages_behind_it_stay_skipped() {
        // 0 / -> 1 /index.html -> 2, 3, both skipped as is 1; 3 -> 4.
        let web = [page(0, 0, 1), page(1, 0, 11), page(2, 0, 5), page(3, 0, 5), page(4, 0, 5)];
        let links = [[0, 1], [1, 2], [1, 3], [3, 4]].map(|link| link.map(Page));
        assert_eq!(repaired(&web, &links, &[1, 2, 3].map(Page)), pages([2]));
        assert_eq!(repaired(&web, &links, &[1, 2, 3, 4].map(Page)), pages([1, 2, 3, 4]));
    }

    #[test]
    fn path_through_fewer_skipped_pages_is_visited() {
        let web: Vec<WebPage> = (0..5).map(|number| page(number, 0, 1 + number)).collect();
        let links = [[0, 3], [3, 4], [0, 1], [1, 2], [2, 4]].map(|link| link.map(Page));
        assert_eq!(repaired(&web, &links, &[1, 2, 3].map(Page)), pages([1, 2]));
    }

    #[test]
    fn a_mirror_that_is_skipped_as_a_whole_stays_skipped() {
        let web = [page(0, 0, 1), page(1, 0, 9), page(2, 1, 1), page(3, 1, 9)];
        let links = [[0, 1], [2, 3], [0, 2]].map(|link| link.map(Page));
        assert_eq!(repaired(&web, &links, &[2, 3].map(Page)), pages([2, 3]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_kept_page_becomes_unreachable_from_any_kind_of_entry_point(
            hosts in prop::collection::vec(0u32..3, 1..14),
            links in prop::collection::btree_set((0u32..14, 0u32..14), 0..40),
            skip in prop::collection::btree_set(0u32..14, 0..14),
            seeds in prop::collection::btree_set(0u32..14, 0..2),
        ) {
            let count = hosts.len() as u32;
            let links = links.into_iter().filter(|link| link.0 < count && link.1 < count);
            let links: Vec<[Page; 2]> = links.map(|(src, dst)| [Page(src), Page(dst)]).collect();
            let skip: BTreeSet<Page> = pages(skip.into_iter().filter(|&page| page < count && !seeds.contains(&page)));
            let host = |page: Page| hosts[page];
            let elsewhere = |page: Page| links.iter().any(|link| link[1] == page && host(link[0]) != host(page));
            let web: Vec<WebPage> = (0..count).map(|number| WebPage {
                entry: if elsewhere(Page(number)) { LINKED_FROM_ELSEWHERE } else { 0 }
                    | if seeds.contains(&number) { SEED } else { 0 },
                ..page(number, host(Page(number)), 2 + number % 5)
            }).collect();
            let skipped: Vec<Page> = skip.iter().copied().collect();
            let left = repaired(&web, &links, &skipped);
            prop_assert!(left.is_subset(&skip));
            let repair_in_parts = |count: usize| {
                repaired_in_parts(&web, &links, &skipped, (count, move |host: HostId| host.0 as usize % count))
            };
            prop_assert_eq!((repair_in_parts(2), repair_in_parts(3)), (left.clone(), left.clone()));

            let mut roots = web;
            mark_roots(&mut roots);
            let pages_of_kind = |kind: u32| -> BTreeSet<Page> {
                roots.iter().filter(|page| page.entry & kind != 0).map(|page| page.page).collect()
            };
            let is_linked = |page: Page| links.iter().any(|link| link[1] == page && link[0] != page);
            let not_linked: BTreeSet<Page> = Page::first(hosts.len()).filter(|&page| !is_linked(page)).collect();
            let narrow: BTreeSet<Page> = pages_of_kind(ROOT | SEED);
            let middle: BTreeSet<Page> = narrow.union(&not_linked).copied().collect();
            let wide: BTreeSet<Page> = middle.union(&pages_of_kind(LINKED_FROM_ELSEWHERE)).copied().collect();
            for (entries, stays) in [(&wide, false), (&wide, true), (&middle, false), (&narrow, true)] {
                let follows = |src: Page, dst: Page| !stays || host(src) == host(dst);
                let reachable_before = visited(entries, &links, follows, &BTreeSet::new());
                let reachable_after = visited(entries, &links, follows, &left);
                let cut_off: Vec<_> = reachable_before.difference(&left).filter(|page| !reachable_after.contains(page)).collect();
                prop_assert!(cut_off.is_empty(), "{cut_off:?}");
            }
        }
    }
}
