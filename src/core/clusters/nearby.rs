//! Nearby pages: pages that have no copy, or could not be placed, but still belong to a collection.
//!
//! A page in no collection belongs to a collection of its host
//!
//! * as a *break point*, if more than half of the pages of the host that it links to belong to the
//!   collection, and so do more than half of those that link to it (a short segment between two
//!   parts);
//! * as a *nearby page*, if more than half of the pages of the host that it is linked with, in
//!   either direction, belong to the collection.
//!
//! Pages attached in this way count for the pages linked with them. No page can belong to two
//! collections. The order in which pages are processed does not matter, because a page's links with
//! a collection only ever increase.
//!
//! # Source
//! \[CSG00\] sections 2.2 (the page s of Figure 3a, q and t of Figure 3c) and 6: "extend clusters
//! by adding nearby pages". The paper does not define which pages are nearby.

use std::collections::HashMap;

use webtwin_base::ids::Page;
use webtwin_job::AttachmentRule;

/// Bits of a link direction: `LINK_OUT` for links out of a page, `LINK_IN`, the next bit, for links
/// to the page.
const LINK_OUT: u8 = 1;
const LINK_IN: u8 = 2;

/// Returns the pages that belong to collections without being members, ascending, each with its
/// collection.
///
/// `links` are within hosts, in any order, and may lack links between members. `collection` returns
/// the collection of a member.
///
/// # Cost
/// A sort of the links, then two scans of them.
///
/// # Examples
/// Figure 3(a) of \[CSG00\]: p links to q, r and s, and s has no copy.
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::clusters::nearby::nearby_pages;
/// use webtwin_job::AttachmentRule;
///
/// let links = [(0, 1), (0, 2), (0, 3)].map(|(src, dst)| (Page(src), Page(dst)));
/// // Pages 0 to 2 are in a collection whose first page is page 0.
/// let collection = |page: Page| (page.0 < 3).then_some(Page(0));
/// assert_eq!(nearby_pages(&links, collection, AttachmentRule::Nearby), [(Page(3), Page(0))]);
/// assert_eq!(nearby_pages(&links, collection, AttachmentRule::None), []);
/// ```
pub fn nearby_pages(
    links: &[(Page, Page)],
    collection: impl Fn(Page) -> Option<Page>,
    attach: AttachmentRule,
) -> Vec<(Page, Page)> {
    let mut ways: Vec<(Page, Page, u8)> =
        links.iter().flat_map(|&(x, y)| [(x, y, LINK_OUT), (y, x, LINK_IN)]).collect();
    ways.sort_unstable();
    let linked: Vec<(Page, Page, u8)> = ways
        .chunk_by(|x, y| (x.0, x.1) == (y.0, y.1))
        .filter(|ways| ways[0].0 != ways[0].1)
        .map(|ways| (ways[0].0, ways[0].1, ways.iter().fold(0, |either, way| either | way.2)))
        .collect();
    let pages: Vec<&[(Page, Page, u8)]> = linked.chunk_by(|x, y| x.0 == y.0).collect();
    let at = |page: Page| pages.partition_point(|rows| rows[0].0 < page);
    let totals: Vec<LinkCounts> =
        pages.iter().map(|rows| rows.iter().fold(LinkCounts::default(), |all, row| all.and(row.2))).collect();
    let is_majority = |count: &LinkCounts, total: &LinkCounts| match attach {
        AttachmentRule::None => false,
        AttachmentRule::BreakPoints => 2 * count.out > total.out && 2 * count.into > total.into,
        AttachmentRule::Nearby => 2 * count.either > total.either,
    };

    let mut near: HashMap<Page, Page> = HashMap::new();
    let mut counts: HashMap<(Page, Page), LinkCounts> = HashMap::new();
    // Spreads from the members outwards. A page is tested again only when one of its neighbours
    // gains a collection, so each link is counted once in each direction.
    let collection_pages = pages.iter().filter_map(|rows| Some((rows[0].0, collection(rows[0].0)?)));
    let mut frontier: Vec<(Page, Page)> = collection_pages.collect();
    while let Some((page, collection_id)) = frontier.pop() {
        for &(_, other, ways) in pages[at(page)] {
            if collection(other).is_some() || near.contains_key(&other) {
                continue;
            }
            let count = counts.entry((other, collection_id)).or_default();
            // A link out of this page is a link into the other one, so the direction bits swap.
            *count = count.and(ways >> 1 | (ways & LINK_OUT) << 1);
            if is_majority(count, &totals[at(other)]) {
                near.insert(other, collection_id);
                frontier.push((other, collection_id));
            }
        }
    }
    let mut near: Vec<(Page, Page)> = near.into_iter().collect();
    near.sort_unstable();
    near
}

/// Numbers of the pages that a page links to, that link to it, and that do either.
#[derive(Debug, Clone, Copy, Default)]
struct LinkCounts {
    out: usize,
    into: usize,
    either: usize,
}

impl LinkCounts {
    /// Returns the counts with one more page, linked in the given directions.
    fn and(self, ways: u8) -> LinkCounts {
        LinkCounts {
            out: self.out + usize::from(ways & LINK_OUT != 0),
            into: self.into + usize::from(ways & LINK_IN != 0),
            either: self.either + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Applies the definition page by page until nothing changes.
    fn reference(links: &[(Page, Page)], collections: &[Option<Page>], attach: AttachmentRule) -> Vec<(Page, Page)> {
        let out = |x: Page| links.iter().filter(|link| link.0 == x && link.1 != x).map(|link| link.1).collect();
        let into = |x: Page| links.iter().filter(|link| link.1 == x && link.0 != x).map(|link| link.0).collect();
        let mut near: BTreeMap<Page, Page> = BTreeMap::new();
        for _ in collections {
            for page in Page::first(collections.len()).filter(|&page| collections[page].is_none()) {
                for collection in Page::first(3) {
                    let belongs =
                        |other: &&Page| collections[**other].or(near.get(*other).copied()) == Some(collection);
                    let is_majority = |pages: &BTreeSet<Page>| 2 * pages.iter().filter(belongs).count() > pages.len();
                    let (out, into): (BTreeSet<Page>, BTreeSet<Page>) = (out(page), into(page));
                    let belongs = match attach {
                        AttachmentRule::None => false,
                        AttachmentRule::BreakPoints => is_majority(&out) && is_majority(&into),
                        AttachmentRule::Nearby => is_majority(&out.union(&into).copied().collect()),
                    };
                    if belongs {
                        near.insert(page, collection);
                    }
                }
            }
        }
        near.into_iter().collect()
    }

    fn page(bound: u32) -> impl Strategy<Value = Page> {
        (0..bound).prop_map(Page)
    }

    proptest! {
        #[test]
        fn nearby_pages_equal_the_definition_in_any_order(
            links in prop::collection::vec((page(12), page(12)), 0..40),
            collections in prop::collection::vec(prop::option::of(page(3)), 12),
            attach in prop::sample::select(vec![AttachmentRule::None, AttachmentRule::BreakPoints, AttachmentRule::Nearby]),
        ) {
            let near_pages = nearby_pages(&links, |page| collections[page], attach);
            prop_assert_eq!(&near_pages, &reference(&links, &collections, attach));
            let backwards: Vec<_> = links.iter().rev().copied().collect();
            prop_assert_eq!(&near_pages, &nearby_pages(&backwards, |page| collections[page], attach));
            // Links between members attach nothing.
            let is_member = |page: Page| collections[page].is_some();
            let outside_links: Vec<_> = links.iter().filter(|link| !is_member(link.0) || !is_member(link.1)).copied().collect();
            prop_assert_eq!(near_pages, nearby_pages(&outside_links, |page| collections[page], attach));
        }
    }

    #[test]
    fn a_page_that_belongs_to_the_rest_of_the_site_is_not_near() {
        // h is the home page of the host: it links to a page of the collection, and to two that are
        // not in it.
        let [p, h, x, y] = [0, 1, 2, 3].map(Page);
        let (links, collection_of) = ([(h, p), (h, x), (h, y), (x, y)], |page| (page == p).then_some(Page(7)));
        assert_eq!(nearby_pages(&links, collection_of, AttachmentRule::Nearby), []);
    }
}
