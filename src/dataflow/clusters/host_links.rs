//! Links within hosts, host by host, with pages replaced by their indices. For computations that
//! need only the pages and links of one host.

use bytemuck::Pod;
use itertools::Itertools;

use crate::shuffle::gather::by_number;
use crate::shuffle::hash_partitions::{CommonPartitions, rows_and_links};
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Page};
use webtwin_core::clusters::pieces::HostLinks;
use webtwin_engine::Net;

/// Indices of pages among the pages of one partition of rows: a hash table with open addressing,
/// which is reused for one partition after the other.
#[derive(Debug)]
pub(super) struct PagePlaces {
    /// Pages with their indices. At most half of the slots are taken.
    slots: Vec<[u32; 2]>,
    used_slots: usize,
}

/// Mark of an empty slot, and the index of a page that is not in the table.
pub(super) const NO_INDEX: u32 = u32::MAX;

impl PagePlaces {
    pub(super) fn new() -> PagePlaces {
        PagePlaces { slots: vec![[NO_INDEX; 2]; 1 << 10], used_slots: 0 }
    }

    /// Returns the index of a page, or [`NO_INDEX`].
    pub(super) fn place(&self, page: Page) -> u32 {
        self.slots[self.slot(page)][1]
    }

    /// Replaces the content: numbers the given pages from 0.
    pub(super) fn put(&mut self, pages: impl Iterator<Item = Page>) {
        self.clear();
        self.add(pages);
    }

    fn add(&mut self, pages: impl Iterator<Item = Page>) {
        for (place, page) in (0..).zip(pages) {
            self.set(page, place);
        }
    }

    fn clear(&mut self) {
        self.slots.fill([NO_INDEX; 2]);
        self.used_slots = 0;
    }

    /// Returns the slot of a page, or the empty slot in which it would be stored.
    #[inline]
    fn slot(&self, page: Page) -> usize {
        let bits = self.slots.len().trailing_zeros();
        let mut at = (page.0.wrapping_mul(0x9e37_79b9) >> (32 - bits)) as usize;
        while ![page.0, NO_INDEX].contains(&self.slots[at][0]) {
            at = (at + 1) % self.slots.len();
        }
        at
    }

    /// Sets the index of a page. Returns true if the page was not in the table.
    fn set(&mut self, page: Page, place: u32) -> bool {
        let at = self.slot(page);
        let is_new = self.slots[at][0] == NO_INDEX;
        self.slots[at] = [page.0, place];
        self.used_slots += usize::from(is_new);
        if 2 * self.used_slots > self.slots.len() {
            let larger_slots = vec![[NO_INDEX; 2]; 2 * self.slots.len()];
            let slots = std::mem::replace(&mut self.slots, larger_slots);
            for slot in slots.into_iter().filter(|slot| slot[0] != NO_INDEX) {
                let at = self.slot(Page(slot[0]));
                self.slots[at] = slot;
            }
        }
        is_new
    }

    /// Numbers the pages of links, ordered by host and page. Replaces the content of `pages` by
    /// these pages in that order.
    fn put_ends(&mut self, links: &[[Page; 2]], hosts: &[HostId], pages: &mut Vec<Page>) {
        self.clear();
        pages.clear();
        pages.extend(links.iter().flatten().filter(|page| self.set(**page, 0)));
        pages.sort_by_cached_key(|&page| (hosts[page], page));
        self.add(pages.iter().copied());
    }
}

/// Grouping of links within hosts by host; reused from call to call for its buffers.
pub(super) struct LinksByHost<'a> {
    hosts: &'a [HostId],
    places: PagePlaces,
    pages: Vec<Page>,
    ends: Vec<u32>,
    links: Vec<[u32; 2]>,
}

impl LinksByHost<'_> {
    /// Creates the grouping for pages with the given hosts.
    pub(super) fn new(hosts: &[HostId]) -> LinksByHost<'_> {
        LinksByHost { hosts, places: PagePlaces::new(), pages: Vec::new(), ends: Vec::new(), links: Vec::new() }
    }

    /// Calls `visit` with the links of each host.
    pub(super) fn for_each_host(&mut self, links: &[[Page; 2]], mut visit: impl FnMut(HostId, &HostLinks<'_>)) {
        let LinksByHost { hosts, places, pages, ends, links: links_by_source } = self;
        places.put_ends(links, hosts, pages);
        by_source(links, places, pages.len(), ends, links_by_source);
        let (mut first, mut host_links) = (0, Vec::new());
        for pages in pages.chunk_by(|&x, &y| hosts[x] == hosts[y]) {
            let last = first + pages.len();
            links_of(links_by_source, ends, first..last, &mut host_links);
            first = last;
            visit(hosts[pages[0]], &HostLinks { pages, ends: &host_links });
        }
    }
}

/// Calls `row_maker` with the links within each host and the rows of pages of the host, ascending
/// by page. Returns the values that it returns. Links to other hosts are ignored, and so are rows
/// of hosts without links. Takes one exchange, in `2^bits` partitions.
///
/// # Errors
/// Returns any error of [`rows_and_links`].
pub(super) fn on_each_host<Row: Pod + Send, Made>(
    net: &mut Net<'_>,
    name: &str,
    bits: u32,
    hosts: &[HostId],
    links: impl Iterator<Item = Result<(Page, Page)>>,
    (rows, page): (impl Iterator<Item = Row>, impl Fn(&Row) -> Page),
    mut row_maker: impl FnMut(&HostLinks<'_>, &[Row]) -> Vec<Made>,
) -> Result<Vec<Made>> {
    let host = |page: Page| hosts[page];
    let links = links.filter_ok(|&(src, dst)| host(src) == host(dst));
    let rows = (rows.map(Ok), |row: &Row| host(page(row)));
    let partitioning = CommonPartitions { bits, kinds: 2 };
    let (mut all_rows, mut all_links) = rows_and_links(net, name, partitioning, rows, (links, host))?;
    let mut by_host = LinksByHost::new(hosts);
    let (mut link_rows, mut share_rows, mut made_rows) = (Vec::new(), Vec::new(), Vec::new());
    for share in 0..all_links.count() {
        net.check()?;
        all_links.take(share, &mut link_rows)?;
        all_rows.take(share, &mut share_rows)?;
        share_rows.sort_unstable_by_key(|row| (host(page(row)), page(row)));
        by_host.for_each_host(&link_rows, |current_host, links| {
            let begin = share_rows.partition_point(|row| host(page(row)) < current_host);
            let rows = share_rows[begin..].iter().take_while(|row| host(page(row)) == current_host).count();
            made_rows.extend(row_maker(links, &share_rows[begin..begin + rows]));
        });
    }
    Ok(made_rows)
}

/// Replaces the content of `into` by links as pairs of page indices, ascending by source, and the
/// content of `ends` by the end of the links of each index. Indices are below `count`.
pub(super) fn by_source(
    links: &[[Page; 2]],
    places: &PagePlaces,
    count: usize,
    ends: &mut Vec<u32>,
    into: &mut Vec<[u32; 2]>,
) {
    let by_place = |link: &[Page; 2]| link.map(|page| places.place(page));
    by_number(links, |link: &[Page; 2]| places.place(link[0]), by_place, count, ends, into);
}

/// Replaces the content of `group_links` by the links from a range of indices, as [`by_source`] has
/// ordered them. Their indices are relative to the start of the range.
pub(super) fn links_of(
    links: &[[u32; 2]],
    ends: &[u32],
    places: std::ops::Range<usize>,
    group_links: &mut Vec<[u32; 2]>,
) {
    let start = if places.start == 0 { 0 } else { ends[places.start - 1] as usize };
    let end = if places.is_empty() { start } else { ends[places.end - 1] as usize };
    group_links.clear();
    group_links.extend(links[start..end].iter().map(|link| link.map(|at| at - places.start as u32)));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_are_found_at_their_last_position(
            shares in prop::collection::vec(prop::collection::btree_set(0u32..9000, 0..3000), 1..4)
        ) {
            let mut places = PagePlaces::new();
            for pages in shares {
                places.put(pages.iter().rev().map(|&page| Page(page)));
                let expected: BTreeMap<u32, u32> = pages.iter().rev().copied().zip(0..).collect();
                prop_assert!((0..9000).all(|page| places.place(Page(page)) == *expected.get(&page).unwrap_or(&NO_INDEX)));
            }
        }
    }
}
