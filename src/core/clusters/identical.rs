//! Identical collections (\[CSG00\] Definitions 3 and 7): collections that are similar and have the
//! same text page for page, with the same links between their pages.
//!
//! A collection has at most one page of a trivial cluster, so the clusters determine the mapping of
//! pages, and no mapping has to be searched. Two collections are identical if their
//! [`CollectionContent`] is equal.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use webtwin_base::ids::{ClusterId, Page};

/// Sum of the hashes of a collection's pages and of the links between them, which is all that
/// Definition 3 compares. Partial sums add up, so each worker can sum its own pages and links. The
/// sums have 128 bits, so equal sums of different contents are too unlikely to occur in any crawl.
///
/// # Examples
/// ```
/// use webtwin_base::ids::{ClusterId, Page};
/// use webtwin_core::clusters::identical::CollectionContent;
///
/// // Two pages with a link, given in two orders.
/// let (mut one, mut other) = (CollectionContent::default(), CollectionContent::default());
/// one.page(ClusterId(0), Page(0));
/// one.page(ClusterId(1), Page(1));
/// one.link(ClusterId(0), ClusterId(1));
/// other.link(ClusterId(0), ClusterId(1));
/// other.page(ClusterId(1), Page(1));
/// other.page(ClusterId(0), Page(0));
/// assert_eq!(one, other);
///
/// other.link(ClusterId(1), ClusterId(0));
/// assert_ne!(one, other);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CollectionContent([u64; 2]);

impl CollectionContent {
    /// Adds a page of the given trivial cluster. `text` is the smallest of all pages that have the
    /// same text.
    pub fn page(&mut self, cluster: ClusterId, text: Page) {
        self.add([0, cluster.smallest().0, text.0]);
    }

    /// Adds a link between pages of the given trivial clusters.
    pub fn link(&mut self, from: ClusterId, to: ClusterId) {
        self.add([1, from.smallest().0, to.smallest().0]);
    }

    fn add(&mut self, words: [u32; 3]) {
        *self += CollectionContent::from_sum(xxh3_128(bytemuck::cast_slice(&words.map(u32::to_le))));
    }

    fn from_sum(sum: u128) -> CollectionContent {
        CollectionContent([(sum >> 64) as u64, sum as u64])
    }

    fn sum(self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

impl AddAssign for CollectionContent {
    fn add_assign(&mut self, other: CollectionContent) {
        *self = CollectionContent::from_sum(self.sum().wrapping_add(other.sum()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// True if Definition 3 holds as the paper states it: equal numbers of pages, and a mapping of
    /// each page to one with the same text, such that two pages are linked exactly if the pages
    /// they map to are.
    fn are_identical(pages: [&[(ClusterId, Page)]; 2], texts: &[Page], links: &[(Page, Page)]) -> bool {
        let [own_members, other_members] = pages;
        let mapped = |page: Page| {
            let cluster = own_members.iter().find(|member| member.1 == page)?.0;
            Some(other_members.iter().find(|member| member.0 == cluster)?.1)
        };
        let within = |pages: &[(ClusterId, Page)]| -> BTreeSet<(Page, Page)> {
            let is_in = |page: Page| pages.iter().any(|member| member.1 == page);
            links.iter().copied().filter(|&(from, to)| is_in(from) && is_in(to)).collect()
        };
        let same_text = |&(_, page): &(ClusterId, Page)| mapped(page).is_some_and(|other| texts[other] == texts[page]);
        let mapped_links: Option<BTreeSet<_>> =
            within(own_members).into_iter().map(|(from, to)| Some((mapped(from)?, mapped(to)?))).collect();
        own_members.len() == other_members.len()
            && own_members.iter().all(same_text)
            && mapped_links == Some(within(other_members))
    }

    proptest! {
        #[test]
        fn contents_are_equal_where_collections_are_identical(
            // Two collections of up to four pages, of clusters 0 to 3 and two texts each, with some
            // links.
            members in prop::collection::vec((any::<[bool; 2]>(), any::<[bool; 2]>()), 4),
            links in prop::collection::btree_set((0u32..8, 0u32..8), 0..6),
            mirrored: bool,
        ) {
            let page = |collection: usize, cluster: usize| Page((4 * collection + cluster) as u32);
            let mut links: BTreeSet<(Page, Page)> = links.into_iter().map(|(from, to)| (Page(from), Page(to))).collect();
            if mirrored {
                links.retain(|link| link.0.0 < 4 && link.1.0 < 4);
                links.extend(links.clone().into_iter().map(|(from, to)| (Page(from.0 + 4), Page(to.0 + 4))));
            }
            let links: Vec<(Page, Page)> = links.into_iter().collect();
            // Each page has the text of the first page of its cluster, or a text of its own.
            let mut texts: Vec<Page> = (0..8).map(Page).collect();
            let mut collections = [Vec::new(), Vec::new()];
            for (cluster, (is_there, is_same)) in members.iter().enumerate() {
                for collection in 0..2 {
                    if is_there[collection] || mirrored {
                        collections[collection].push((ClusterId(cluster as u32), page(collection, cluster)));
                    }
                }
                if is_same[0] || is_same[1] {
                    texts[page(1, cluster)] = page(0, cluster);
                }
            }
            let contents = [0, 1].map(|collection: usize| {
                let mut content = CollectionContent::default();
                let cluster = |page: Page| collections[collection].iter().find(|member| member.1 == page).map(|member| member.0);
                collections[collection].iter().for_each(|&(cluster, page)| content.page(cluster, texts[page]));
                for &(from, to) in &links {
                    if let (Some(from), Some(to)) = (cluster(from), cluster(to)) {
                        content.link(from, to);
                    }
                }
                content
            });
            let identical = are_identical([&collections[0], &collections[1]], &texts, &links);
            prop_assert_eq!(contents[0] == contents[1], identical);
        }
    }

    #[test]
    fn partial_sums_add_up_in_any_order() {
        let (mut whole, mut part, mut other) =
            (CollectionContent::default(), CollectionContent::default(), CollectionContent::default());
        whole.page(ClusterId(1), Page(1));
        whole.link(ClusterId(1), ClusterId(2));
        part.link(ClusterId(1), ClusterId(2));
        other.page(ClusterId(1), Page(1));
        part += other;
        assert_eq!(whole, part);
        part.link(ClusterId(2), ClusterId(1));
        assert_ne!(whole, part);
    }
}
