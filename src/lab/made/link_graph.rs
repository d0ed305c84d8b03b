//! Link graphs at the scale of the papers: mirrored collections among other sites, with the truth
//! about them.
//!
//! Each copy of a collection is on a host of its own and has the pages and inner links of the
//! original. Trivial clusters are therefore known, and the merge condition holds between those of
//! one collection. A collection is a tree with four branches per page: every page links to its
//! parent, its children, the previous page, the entry page, and some other pages; one page in eight
//! links to another host. Other pages are grouped as twelve per host. There are about 8.3 links per
//! page, 200 million for 24 million pages. The links of a page are a function of the parameters and
//! the page.
//!
//! # Source
//! \[CSG00\] Table 2 for the five widely replicated collections; section 5.1 for collections on one
//! site each.
//!
//! # Deviations
//! - Figure 12 is missing from our copy of the paper, so the sizes of the other collections are our
//!   choice.
//! - A graph of fewer than four million pages does not contain the five, which would be a quarter
//!   of its pages.

use super::groups::GroupAssignment;
use webtwin_base::ids::{HostId, Page, splitmix64};
use webtwin_synth::random::{Stream, key};

/// Collections of one shape.
#[derive(Debug, Clone, Copy)]
struct Collections {
    cardinality: u32,
    size: u32,
    /// Number of pages of all such collections, per thousand; 0 for a single similar cluster.
    share: u32,
}

const fn collections(cardinality: u32, size: u32, share: u32) -> Collections {
    Collections { cardinality, size, share }
}

/// Shapes of collections. The first shape is that of single pages.
const CLASSES: [Collections; 8] = [
    collections(1, 1, 640),
    collections(2, 6, 80),
    collections(2, 40, 80),
    collections(2, 400, 60),
    collections(3, 12, 40),
    collections(4, 100, 40),
    collections(8, 25, 30),
    collections(20, 60, 30),
];

/// The five widely replicated collections of \[CSG00\] Table 2.
const POPULAR_COLLECTIONS: [Collections; 5] = [
    collections(360, 1052, 0),
    collections(143, 1359, 0),
    collections(125, 115, 0),
    collections(59, 552, 0),
    collections(49, 498, 0),
];

/// Minimum number of pages of a graph that contains these five.
const MIN_LARGE_PAGES: u32 = 4_000_000;

/// Number of pages per host without collections.
const SITE: u32 = 12;

/// A synthetic web graph that is computed on demand.
#[derive(Debug, Clone)]
pub struct LinkGraph {
    groups: GroupAssignment,
    /// First slot of each popular collection, and the end of the last one.
    popular: Vec<u32>,
    seed: u64,
}

/// Place of a page in the graph.
#[derive(Debug, Clone, Copy)]
struct Spot {
    /// First slot of its similar cluster or site.
    first: u32,
    cardinality: u32,
    size: u32,
    /// Number of the copy that contains the page.
    copy: u32,
    /// Number of the page within the collection.
    page: u32,
}

impl LinkGraph {
    /// Plans the graph. Different seeds yield different graphs.
    pub fn new(pages: u32, seed: u64) -> LinkGraph {
        // The five collections replace the last slots, which are those of single pages.
        let five: u32 = POPULAR_COLLECTIONS.iter().map(|class| class.cardinality * class.size).sum();
        let mut popular = vec![if pages < MIN_LARGE_PAGES { pages } else { pages - five }];
        if pages >= MIN_LARGE_PAGES {
            for class in POPULAR_COLLECTIONS {
                popular.push(popular[popular.len() - 1] + class.cardinality * class.size);
            }
        }
        let classes = CLASSES.iter().map(|class| (class.cardinality * class.size, class.share));
        LinkGraph { groups: GroupAssignment::new(pages, key(seed, &[6]), classes), popular, seed }
    }

    /// Returns the number of pages in the graph.
    pub fn pages(&self) -> u32 {
        self.groups.pages()
    }

    /// Returns the trivial cluster of a page, which is equal exactly for copies of each other.
    pub fn trivial_cluster(&self, doc: Page) -> u32 {
        let spot = self.spot(self.groups.slot(doc));
        spot.first + spot.page
    }

    /// Returns the similar cluster of a page. It is equal for pages in collections that are copies
    /// of each other, and for pages of one site without copies.
    pub fn similar_cluster(&self, doc: Page) -> u32 {
        self.spot(self.groups.slot(doc)).first
    }

    /// Returns the number of copies of a page, including the page itself.
    pub fn cardinality(&self, doc: Page) -> u32 {
        self.spot(self.groups.slot(doc)).cardinality
    }

    /// Returns the host of a page. The numbers of hosts are those of slots and not dense.
    pub fn host(&self, doc: Page) -> HostId {
        let spot = self.spot(self.groups.slot(doc));
        HostId(spot.first + spot.copy * spot.size)
    }

    /// Writes the pages to which a page links into `links`, ascending, without repetitions and
    /// without the page itself.
    ///
    /// # Cost
    /// About 50 ns per link, most of it for the bijection of pages.
    pub fn links(&self, doc: Page, links: &mut Vec<Page>) {
        let slot = self.groups.slot(doc);
        let spot = self.spot(slot);
        let page = u64::from(spot.page);
        let mut numbers = Stream::new(key(self.seed, &[7, u64::from(spot.first), page]));
        let base = spot.first + spot.copy * spot.size;
        links.clear();
        let size = u64::from(spot.size);
        let children = (4 * page + 1..=4 * page + 4).filter(|&child| child < size);
        let near_pages = [0, page.saturating_sub(1), page.saturating_sub(1) / 4];
        let earlier_pages = (0..9u64.min(size * 3 / 4)).map(|_| numbers.below(size));
        links.extend(children.chain(near_pages).chain(earlier_pages).map(|page| self.groups.doc(base + page as u32)));
        // The slot decides, so copies of a page differ in their links to other hosts.
        if splitmix64(u64::from(slot)).is_multiple_of(8) {
            let distant_page = Page(splitmix64(self.seed ^ u64::from(slot) << 20) as u32 % self.pages());
            if self.host(distant_page) != HostId(base) {
                links.push(distant_page);
            }
        }
        links.sort_unstable();
        links.dedup();
        links.retain(|&link| link != doc);
    }

    fn spot(&self, slot: u32) -> Spot {
        if slot >= self.popular[0] {
            let group = self.popular.partition_point(|&start| start <= slot) - 1;
            let Collections { cardinality, size, .. } = POPULAR_COLLECTIONS[group];
            let first = self.popular[group];
            return Spot { first, cardinality, size, copy: (slot - first) / size, page: (slot - first) % size };
        }
        let place = self.groups.place(slot);
        let Collections { cardinality, size, .. } = CLASSES[place.class];
        if cardinality == 1 {
            let first = slot / SITE * SITE;
            // A site ends where collections, or the five popular ones, begin.
            let first = if self.groups.place(first).class == 0 { first } else { self.groups.first_single() };
            let size = SITE.min(self.popular[0] - first).min(first / SITE * SITE + SITE - first);
            return Spot { first, cardinality, size, copy: 0, page: slot - first };
        }
        Spot { first: place.first, cardinality, size, copy: place.member / size, page: place.member % size }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn links_a_page_are_about_eight_and_a_third() {
        let graph = LinkGraph::new(100_000, 1);
        let mut links = Vec::new();
        let total: usize = Page::first(100_000)
            .map(|doc| {
                graph.links(doc, &mut links);
                assert!(links.iter().all(|&link| link < Page(100_000) && link != doc));
                links.len()
            })
            .sum();
        assert!((7.9..8.8).contains(&(total as f64 / 1e5)), "{total} links");
    }

    #[test]
    fn copies_of_a_page_link_to_copies_of_the_same_pages() {
        let graph = LinkGraph::new(50_000, 1);
        let mut copies: BTreeMap<u32, Vec<Page>> = BTreeMap::new();
        Page::first(50_000).for_each(|doc| copies.entry(graph.trivial_cluster(doc)).or_default().push(doc));
        let mut links = Vec::new();
        for docs in copies.values() {
            let mut page_links: Vec<Vec<u32>> = Vec::new();
            for &doc in docs {
                assert_eq!(graph.cardinality(doc) as usize, docs.len());
                graph.links(doc, &mut links);
                let host = graph.host(doc);
                let mut clusters: Vec<u32> = links
                    .iter()
                    .filter(|&&link| graph.host(link) == host)
                    .map(|&link| graph.trivial_cluster(link))
                    .collect();
                clusters.sort_unstable();
                page_links.push(clusters);
            }
            assert!(page_links.windows(2).all(|copies| copies[0] == copies[1]));
            let mut hosts: Vec<HostId> = docs.iter().map(|&doc| graph.host(doc)).collect();
            hosts.sort_unstable();
            hosts.dedup();
            assert_eq!(hosts.len(), docs.len());
        }
    }

    /// \[CSG00\] Table 2.
    #[test]
    fn a_large_graph_has_the_five_popular_collections() {
        let graph = LinkGraph::new(MIN_LARGE_PAGES, 1);
        let mut pages: BTreeMap<u32, u32> = BTreeMap::new();
        Page::first(MIN_LARGE_PAGES as usize).for_each(|doc| *pages.entry(graph.cardinality(doc)).or_default() += 1);
        for (cardinality, size) in [(360, 1052), (143, 1359), (125, 115), (59, 552), (49, 498)] {
            assert_eq!(pages[&cardinality], cardinality * size);
        }
    }
}
