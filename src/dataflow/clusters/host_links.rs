//! Links within hosts, host by host, by the places of pages: for what a host's pages and links decide alone.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use itertools::Itertools;

use crate::shuffle::gather::by_number;
use crate::shuffle::hash_partitions::{Alike, HashPartitions};
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Number, Page};
use webtwin_core::clusters::pieces::HostLinks;
use webtwin_engine::Net;

/// Where pages lie in the share of rows that a worker looks at. The workers of a process have one table, for a page is in one share
/// of one worker.
#[derive(Debug, Clone)]
pub(super) struct PagePlaces(Arc<Vec<AtomicU32>>);

/// The place of a page that is in no share.
const NOWHERE: u32 = u32::MAX;

impl PagePlaces {
    /// Of so many pages, all of them nowhere.
    pub(super) fn new(net: &mut Net<'_>, pages: usize) -> Result<PagePlaces> {
        Ok(PagePlaces(net.once_per_process(|| (0..pages).map(|_| AtomicU32::new(NOWHERE)).collect())?))
    }

    pub(super) fn of(&self, page: Page) -> u32 {
        self.0[page.index()].load(Relaxed)
    }

    /// Puts pages at ascending places.
    pub(super) fn put(&self, pages: impl Iterator<Item = Page>) {
        (0..).zip(pages).for_each(|(place, page)| self.set(page, place));
    }

    /// Puts pages nowhere.
    pub(super) fn take_away(&self, pages: impl Iterator<Item = Page>) {
        pages.for_each(|page| self.set(page, NOWHERE));
    }

    fn set(&self, page: Page, place: u32) {
        self.0[page.index()].store(place, Relaxed);
    }

    /// Puts the pages of links at places, by host and then ascending; returns them in that order.
    fn put_ends(&self, links: &[[Page; 2]], hosts: &[HostId], pages: &mut Vec<Page>) {
        pages.clear();
        for &page in links.iter().flatten() {
            if self.of(page) == NOWHERE {
                self.set(page, 0);
                pages.push(page);
            }
        }
        pages.sort_unstable_by_key(|&page| (hosts[page], page));
        self.put(pages.iter().copied());
    }
}

/// Gives the links within each host to `each`, and returns what it makes of them; links to other hosts are passed over. One
/// exchange, in `2^bits` shares.
///
/// # Errors
/// As [`HashPartitions::alike`].
pub(super) fn on_each_host<Group>(
    net: &mut Net<'_>,
    name: &str,
    bits: u32,
    links: impl Iterator<Item = Result<(Page, Page)>>,
    hosts: &[HostId],
    places: &PagePlaces,
    mut each: impl FnMut(&HostLinks<'_>) -> Vec<(Page, Group)>,
) -> Result<Vec<(Page, Group)>> {
    let rows = links.filter_ok(|&(src, dst)| hosts[src] == hosts[dst]).map_ok(<[Page; 2]>::from);
    let mut shares = HashPartitions::alike(net, name, Alike { bits, kinds: 1 }, rows, |row: &[Page; 2]| hosts[row[0]])?;
    let (mut some, mut pages, mut made) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ends, mut links, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut some)?;
        places.put_ends(&some, hosts, &mut pages);
        by_source(&some, places, pages.len(), &mut ends, &mut links);
        let mut first = 0;
        for pages in pages.chunk_by(|&x, &y| hosts[x] == hosts[y]) {
            let last = first + pages.len();
            links_of(&links, &ends, first..last, &mut own);
            made.extend(each(&HostLinks { pages, ends: &own }));
            first = last;
        }
        places.take_away(pages.iter().copied());
    }
    Ok(made)
}

/// Replaces the content of `into` by the places of links' pages, which are below `count`, ascending by source, and that of `ends`
/// by where the links of each place end.
pub(super) fn by_source(
    links: &[[Page; 2]],
    places: &PagePlaces,
    count: usize,
    ends: &mut Vec<u32>,
    into: &mut Vec<[u32; 2]>,
) {
    let by_place = |link: &[Page; 2]| link.map(|page| places.of(page));
    by_number(links, |link: &[Page; 2]| places.of(link[0]), by_place, count, ends, into);
}

/// Replaces the content of `own` by the links from some places, as [`by_source`] has laid them, counted from the first.
pub(super) fn links_of(links: &[[u32; 2]], ends: &[u32], places: std::ops::Range<usize>, own: &mut Vec<[u32; 2]>) {
    let start = if places.start == 0 { 0 } else { ends[places.start - 1] as usize };
    let end = if places.is_empty() { start } else { ends[places.end - 1] as usize };
    own.clear();
    own.extend(links[start..end].iter().map(|link| link.map(|at| at - places.start as u32)));
}
