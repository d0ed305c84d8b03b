//! Pages that a crawl reaches by following links, and their places in the bow tie.
//!
//! The core is the largest strongly connected component (of equally large ones, the one with the
//! smallest page). A page outside the core is *in* if the core can be reached from it, and *out* if
//! it can be reached from the core. Any other page is a *tube* if it is on a path from an in page
//! to an out page, a *tendril* if it is connected with these pages when the direction of links is
//! ignored, and otherwise *disconnected*.
//!
//! # Source
//! \[PBZ06\] section 4.1: "we developed a simple algorithm to simulate a Web crawler following
//! links (navigational and external links)"; with a seed in the core this reaches core and out. The
//! classes are those of Broder et al., *Graph structure in the web*, which it cites.

use serde::{Deserialize, Serialize};

use crate::clusters::union_find::UnionFind;
use crate::overlap::prune::PageSet;
use webtwin_base::ids::{Number, Page};

/// Links of all pages, grouped by source.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::study::bow_tie::WebGraph;
///
/// let links = [[0, 1], [1, 2], [2, 1]].map(|link| link.map(Page));
/// let graph = WebGraph::new(4, &links, false);
/// assert_eq!(graph.core(), [1, 2].map(Page));
/// let reached = graph.reachable_from([Page(0)].into_iter());
/// assert!(reached.contains(Page(2)) && !reached.contains(Page(3)));
/// ```
#[derive(Debug)]
pub struct WebGraph {
    starts: Vec<u32>,
    targets: Vec<Page>,
}

impl WebGraph {
    /// Creates the graph of the given links, in any order; fewer than 2^32. If `backwards`,
    /// reverses each link.
    pub fn new(pages: usize, links: &[[Page; 2]], backwards: bool) -> WebGraph {
        let (from, to) = if backwards { (1, 0) } else { (0, 1) };
        let mut starts = vec![0u32; pages + 1];
        links.iter().for_each(|link| starts[link[from].index() + 1] += 1);
        // While targets are written, starts[p + 1] is the next free slot of page p; afterwards it
        // is the end of p.
        let mut start_of_page = 0;
        for start in &mut starts[1..] {
            start_of_page += std::mem::replace(start, start_of_page);
        }
        let mut targets = vec![Page::NONE; links.len()];
        for link in links {
            let at = &mut starts[link[from].index() + 1];
            targets[*at as usize] = link[to];
            *at += 1;
        }
        WebGraph { starts, targets }
    }

    fn pages(&self) -> usize {
        self.starts.len() - 1
    }

    fn targets(&self, page: Page) -> &[Page] {
        &self.targets[self.starts[page] as usize..self.starts[page.index() + 1] as usize]
    }

    /// Returns the pages that can be reached from the given pages, as by a crawl that follows
    /// links.
    pub fn reachable_from(&self, from: impl Iterator<Item = Page>) -> PageSet {
        let mut reachable = PageSet::new(self.pages(), |_| false);
        let mut waiting: Vec<Page> = from.collect();
        waiting.iter().for_each(|&page| reachable.insert(page));
        while let Some(page) = waiting.pop() {
            for &target in self.targets(page) {
                if !reachable.contains(target) {
                    reachable.insert(target);
                    waiting.push(target);
                }
            }
        }
        reachable
    }

    /// Computes strongly connected components: for every page a number that all pages of its
    /// component share (Tarjan's algorithm, with an explicit stack).
    fn components(&self) -> Vec<u32> {
        const UNSEEN: u32 = u32::MAX;
        let pages = self.pages();
        let (mut order, mut low) = (vec![UNSEEN; pages], vec![0u32; pages]);
        let mut component = vec![UNSEEN; pages];
        let (mut visit_count, mut components) = (0, 0);
        let (mut open, mut path): (Vec<Page>, Vec<(Page, u32)>) = (Vec::new(), Vec::new());
        for root in Page::first(pages) {
            if order[root] != UNSEEN {
                continue;
            }
            path.push((root, 0));
            while let Some(&mut (page, ref mut next)) = path.last_mut() {
                // A page is entered once; later iterations continue with its next target.
                if *next == 0 && order[page] == UNSEEN {
                    (order[page], low[page]) = (visit_count, visit_count);
                    visit_count += 1;
                    open.push(page);
                }
                if let Some(&target) = self.targets(page).get(*next as usize) {
                    *next += 1;
                    if order[target] == UNSEEN {
                        path.push((target, 0));
                    } else if component[target] == UNSEEN {
                        low[page] = low[page].min(order[target]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    low[parent] = low[parent].min(low[page]);
                }
                // No page of the subtree reaches an earlier open page, so the pages above it on the
                // stack are a component.
                if low[page] == order[page] {
                    while let Some(member) = open.pop() {
                        component[member] = components;
                        if member == page {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        component
    }

    /// Returns the pages of the largest strongly connected component, ascending.
    pub fn core(&self) -> Vec<Page> {
        let component = self.components();
        let mut sizes = vec![0u32; component.len()];
        component.iter().for_each(|&number| sizes[number as usize] += 1);
        let max_size = sizes.iter().max().copied().unwrap_or(0);
        let core = component.iter().find(|&&number| sizes[number as usize] == max_size);
        Page::first(component.len()).filter(|&page| core == Some(&component[page])).collect()
    }
}

/// Place of a page in the bow tie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BowTiePlace {
    /// The page is in the largest strongly connected component.
    Core,
    /// The core can be reached from the page.
    In,
    /// The page can be reached from the core.
    Out,
    /// The page is on a path from an in page to an out page that does not pass through the core.
    Tube,
    /// The page is connected with the bow tie in another way.
    Tendril,
    /// The page is not connected with the bow tie.
    Disconnected,
}

impl BowTiePlace {
    /// Returns the value in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            BowTiePlace::Core => "core",
            BowTiePlace::In => "in",
            BowTiePlace::Out => "out",
            BowTiePlace::Tube => "tube",
            BowTiePlace::Tendril => "tendril",
            BowTiePlace::Disconnected => "disconnected",
        }
    }
}

/// Returns the place of every page; `core` must not be empty.
///
/// # Cost
/// Six passes over the links.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::study::bow_tie::{BowTiePlace, WebGraph, bow_tie};
///
/// // 2 -> 0 <-> 1 -> 3; nothing links to or from 4.
/// let links = [[0, 1], [1, 0], [2, 0], [1, 3]].map(|link| link.map(Page));
/// let [forwards, backwards] = [false, true].map(|backwards| WebGraph::new(5, &links, backwards));
/// let places = bow_tie(&links, &forwards, &backwards, &forwards.core());
/// let names: Vec<&str> = places.into_iter().map(BowTiePlace::as_str).collect();
/// assert_eq!(names, ["core", "core", "in", "out", "disconnected"]);
/// ```
pub fn bow_tie(links: &[[Page; 2]], forwards: &WebGraph, backwards: &WebGraph, core: &[Page]) -> Vec<BowTiePlace> {
    let pages = forwards.pages();
    let is_core = {
        let mut set = PageSet::new(pages, |_| false);
        core.iter().for_each(|&page| set.insert(page));
        set
    };
    let core_descendants = forwards.reachable_from(core.iter().copied());
    let core_ancestors = backwards.reachable_from(core.iter().copied());
    let all_pages = || Page::first(pages);
    let in_descendants =
        forwards.reachable_from(all_pages().filter(|&page| core_ancestors.contains(page) && !is_core.contains(page)));
    let out_ancestors = backwards
        .reachable_from(all_pages().filter(|&page| core_descendants.contains(page) && !is_core.contains(page)));
    let mut sets = UnionFind::new(pages);
    links.iter().for_each(|link| _ = sets.union(link[0].0, link[1].0));
    let hangs_together = core.first().map(|&page| sets.find(page.0));
    let mut place = |page: Page| match page {
        _ if is_core.contains(page) => BowTiePlace::Core,
        _ if core_ancestors.contains(page) => BowTiePlace::In,
        _ if core_descendants.contains(page) => BowTiePlace::Out,
        _ if in_descendants.contains(page) && out_ancestors.contains(page) => BowTiePlace::Tube,
        _ if Some(sets.find(page.0)) == hangs_together => BowTiePlace::Tendril,
        _ => BowTiePlace::Disconnected,
    };
    all_pages().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 0, 1, 2 core; 3 in; 4 out; 5 tube from 3 to 4; 6 tendril from 3; 7 links to 6; 8, 9
    /// disconnected.
    #[test]
    fn bow_tie_has_all_components() {
        let links =
            [[0, 1], [1, 2], [2, 0], [3, 0], [2, 4], [3, 5], [5, 4], [3, 6], [7, 6], [8, 9]].map(|link| link.map(Page));
        let (forwards, backwards) = (WebGraph::new(10, &links, false), WebGraph::new(10, &links, true));
        let core = forwards.core();
        assert_eq!(core, [0, 1, 2].map(Page));
        use BowTiePlace::*;
        let expected = [Core, Core, Core, In, Out, Tube, Tendril, Tendril, Disconnected, Disconnected];
        assert_eq!(bow_tie(&links, &forwards, &backwards, &core), expected);
        let reachable = forwards.reachable_from([Page(1)].into_iter());
        let reachable_pages: Vec<Page> = Page::first(10).filter(|&page| reachable.contains(page)).collect();
        assert_eq!(reachable_pages, [0, 1, 2, 4].map(Page));
    }

    #[test]
    fn a_crawl_without_links_has_a_core_of_its_first_page() {
        let graph = WebGraph::new(3, &[], false);
        assert_eq!(graph.core(), [Page(0)]);
        assert_eq!(WebGraph::new(0, &[], false).core(), [] as [Page; 0]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let links: Vec<[Page; 2]> = (0..200_001).map(|page| [Page(page), Page((page + 1) % 200_001)]).collect();
        assert_eq!(WebGraph::new(200_001, &links, false).core().len(), 200_001);
    }

    proptest! {
        #[test]
        fn the_core_is_the_largest_set_of_pages_that_reach_each_other(
            links in prop::collection::vec(prop::array::uniform2((0u32..12).prop_map(Page)), 0..30)
        ) {
            let forwards = WebGraph::new(12, &links, false);
            let mut reach = [[false; 12]; 12];
            (0..12).for_each(|page| reach[page][page] = true);
            for [a, b] in &links {
                reach[*a][*b] = true;
            }
            for via in 0..12 {
                for a in 0..12 {
                    for b in 0..12 {
                        reach[a][b] |= reach[a][via] && reach[via][b];
                    }
                }
            }
            let component_of = |a: Page| Page::first(12).filter(|&b| reach[a][b] && reach[b][a]).collect::<Vec<_>>();
            let max_size = Page::first(12).map(|a| component_of(a).len()).max().unwrap();
            let core = component_of(Page::first(12).find(|&a| component_of(a).len() == max_size).unwrap());
            prop_assert_eq!(&forwards.core(), &core);
            let places = bow_tie(&links, &forwards, &WebGraph::new(12, &links, true), &core);
            for page in Page::first(12) {
                let (from, to) = (reach[core[0]][page], reach[page][core[0]]);
                let place = places[page];
                prop_assert_eq!(place == BowTiePlace::Core, from && to);
                prop_assert_eq!(place == BowTiePlace::Out, from && !to);
                prop_assert_eq!(place == BowTiePlace::In, to && !from);
            }
        }
    }
}
