//! LINK(src, dst): the links within the crawl.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;

use crate::clusters::redirects::Redirects;
use crate::reading::captures::Crawl;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::directory::Directory;
use crate::shuffle::gather::by_number;
use crate::shuffle::page_ranges::PageRanges;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{HostId, Number, Page};
use webtwin_engine::{Net, Owners};
use webtwin_spill::{Array, ArrayReader, SpillColumn};

/// Links from a worker's pages, ascending and without repetitions.
///
/// # Memory
/// Takes 4 bytes for each page, and 4 for each link that is not on disk; 1 for each host in each
/// process.
#[derive(Debug)]
pub struct WorkerLinks {
    directory: Arc<Directory>,
    worker: usize,
    /// End of the targets of each page.
    ends: Vec<u32>,
    targets: Array<Page>,
    /// True for each host with a page that links to a page of the crawl.
    linking: Arc<Vec<bool>>,
    /// True if a page of any worker names its editions in other languages.
    pub name_editions: bool,
}

impl WorkerLinks {
    /// Creates an empty list for the pages of a worker.
    fn empty(directory: Arc<Directory>, worker: usize, targets: Array<Page>) -> WorkerLinks {
        let ends = Vec::with_capacity(directory.owned(worker).count());
        WorkerLinks { directory, worker, ends, targets, linking: Arc::default(), name_editions: false }
    }

    /// Creates the links that `targets_of` returns for each page of this worker, in any order.
    /// Takes one round.
    ///
    /// # Errors
    /// Returns [`Error::TooManyRows`] if there are 2^32 or more links, and an error if the run has
    /// ended.
    pub fn new(
        net: &mut Net<'_>,
        directory: Arc<Directory>,
        targets_of: impl FnMut(Page, &mut Vec<Page>),
    ) -> Result<WorkerLinks> {
        WorkerLinks::of_worker(directory, net.index(), targets_of)?.message(net)
    }

    fn of_worker(
        directory: Arc<Directory>,
        worker: usize,
        mut targets_of: impl FnMut(Page, &mut Vec<Page>),
    ) -> Result<WorkerLinks> {
        let mut links = WorkerLinks::empty(Arc::clone(&directory), worker, Array::default());
        let mut targets = Vec::new();
        for page in directory.owned(worker) {
            targets.clear();
            targets_of(page, &mut targets);
            links.push(&mut targets)?;
        }
        Ok(links)
    }

    /// Sorts links that have arrived into `targets`. The source of each link is the index of its
    /// page among this worker's pages. Takes one round.
    ///
    /// # Errors
    /// Returns [`Error::TooManyRows`] if there are 2^32 or more links. Returns any error of the
    /// disk, and an error if the run has ended.
    pub(crate) fn of_page_ranges(
        net: &mut Net<'_>,
        directory: Arc<Directory>,
        link_ranges: PageRanges<[Page; 2]>,
        targets: Array<Page>,
    ) -> Result<WorkerLinks> {
        let mut links = WorkerLinks::empty(directory, net.index(), targets);
        let (mut ends, mut targets, mut page_targets) = (Vec::new(), Vec::new(), Vec::new());
        link_ranges.for_each(net, |places, rows| {
            let source = |link: &[Page; 2]| link[0].0 - places.start as u32;
            by_number(rows, source, |link: &[Page; 2]| link[1], places.len(), &mut ends, &mut targets);
            let mut start = 0;
            for &end in &ends {
                page_targets.clear();
                page_targets.extend_from_slice(&targets[start..end as usize]);
                links.push(&mut page_targets)?;
                start = end as usize;
            }
            Ok(())
        })?;
        links.message(net)
    }

    /// Completes the links with the hosts that have links, of all workers.
    fn message(mut self, net: &mut Net<'_>) -> Result<WorkerLinks> {
        let hosts = &self.directory.hosts;
        let count = hosts.iter().max().map_or(0, |host| host.index() + 1);
        let mut linking = vec![false; count];
        let pages = self.directory.owned(self.worker).zip(self.counts()).filter(|(_, links)| *links > 0);
        pages.for_each(|(page, _)| linking[hosts[page].index()] = true);
        let own_hosts = (0..count).filter(|&host| linking[host]).map(HostId::from_index).collect();
        drop(linking);
        let linking_hosts = net.broadcast("hosts with links", own_hosts)?;
        self.linking = net.once_per_process(|| {
            let mut linking = vec![false; count];
            linking_hosts.iter().for_each(|host| linking[host.index()] = true);
            linking
        })?;
        Ok(self)
    }

    /// Returns the worker that owns the source pages.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// True if some page of a host links to a page of the crawl.
    pub fn lead_from(&self, host: HostId) -> bool {
        self.linking[host.index()]
    }

    /// Appends the links of the next page.
    fn push(&mut self, targets: &mut Vec<Page>) -> Result<()> {
        targets.sort_unstable();
        targets.dedup();
        self.targets.push(targets)?;
        let end = u32::try_from(self.targets.len()).map_err(|_| {
            let (link_count, allowed) = (self.targets.len(), u64::from(u32::MAX));
            Error::TooManyRows { what: "links of a worker's pages".into(), found: link_count, allowed }
        })?;
        self.ends.push(end);
        Ok(())
    }

    /// Returns the number of links.
    pub fn len(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// True if there are no links.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes up to about `bytes` bytes of targets to disk. Returns the number of bytes written.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn give_up(&mut self, bytes: u64) -> Result<u64> {
        self.targets.give_up(bytes)
    }

    /// Returns the number of bytes on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.targets.spilled_bytes()
    }

    /// Returns the number of links of each page, in the order of pages.
    pub fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.ends.len()).map(|place| self.range(place).len())
    }

    /// Returns a reader of the links of pages.
    pub fn reader(&self) -> LinkReader<'_> {
        LinkReader { links: self, targets: self.targets.reader() }
    }

    /// Returns all links, block by block.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Vec<(Page, Page)>>> + '_ {
        let mut sources = self.sources(0..self.len());
        let blocks = self.targets.blocks();
        blocks.map(move |targets| Ok(targets?.into_iter().zip(&mut sources).map(|(dst, src)| (src, dst)).collect()))
    }

    /// Returns the links in a range of indices among all links.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn read(&self, places: Range<usize>) -> Result<Vec<(Page, Page)>> {
        let mut scratch = Vec::new();
        let targets = self.targets.get(places.start as u64, places.len(), &mut scratch)?;
        Ok(self.sources(places).zip(targets.iter().copied()).collect())
    }

    /// Returns the sources of the links in a range of indices.
    fn sources(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = Page> + '_ {
        let first_page = self.ends.partition_point(|&end| end as usize <= places.start);
        let pages = self.directory.owned_from(self.worker, first_page);
        Sources { links: self, pages, src: Page::NONE, end: 0, next_page: first_page, places }
    }

    /// Returns, for each partition with links, the range of indices of the links from its pages.
    pub fn by_partition(&self) -> Vec<(usize, Range<usize>)> {
        let (mut pages_before, mut first_link) = (0, 0);
        let part_links = |(partition, pages): (usize, Range<u32>)| {
            pages_before += pages.len();
            let links = first_link..self.range(pages_before - 1).end;
            first_link = links.end;
            (partition, links)
        };
        self.directory.parts(self.worker).map(part_links).filter(|(_, links)| !links.is_empty()).collect()
    }

    fn range(&self, place: usize) -> Range<usize> {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        start as usize..self.ends[place] as usize
    }
}

/// Reader of the links of a worker's pages, optimized for the order of pages.
#[derive(Debug)]
pub struct LinkReader<'a> {
    links: &'a WorkerLinks,
    targets: ArrayReader<'a, Page>,
}

impl LinkReader<'_> {
    /// Returns the targets of a page of this worker, ascending.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn targets(&mut self, page: Page) -> Result<&[Page]> {
        debug_assert_eq!(self.links.directory.owner(page), self.links.worker);
        let places = self.links.range(self.links.directory.place(page));
        self.targets.get(places.start as u64, places.len())
    }
}

/// Iterator over the sources of links.
struct Sources<'a, P> {
    links: &'a WorkerLinks,
    /// Pages after `src`.
    pages: P,
    src: Page,
    /// End of the targets of `src`.
    end: usize,
    /// Index of the page after `src`.
    next_page: usize,
    /// Indices of the remaining links.
    places: Range<usize>,
}

impl<P: Iterator<Item = Page>> Iterator for Sources<'_, P> {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        let at = self.places.next()?;
        while self.end <= at {
            self.src = self.pages.next()?;
            self.end = self.links.ends[self.next_page] as usize;
            self.next_page += 1;
        }
        Some(self.src)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl<P: Iterator<Item = Page>> ExactSizeIterator for Sources<'_, P> {}

/// Page that is sent to the worker of its component, with the number of links to it from other
/// hosts, in 8 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct LinkedPage {
    pub page: Page,
    pub links_from_elsewhere: u32,
}

/// Resolves the links of all workers' local pages. The links are at the owners of their source
/// pages.
///
/// Takes three rounds, and the rounds of [`Redirects::gather`] if a record or a page leads to
/// another URL. Links out of the crawl are dropped.
///
/// # Errors
/// Returns [`Error::DiskLimit`] or [`Error::DiskFull`] if links beyond the memory budget do not fit
/// on the disk, and [`Error::TooManyRows`] if a worker's pages have 2^32 links. Also fails if the
/// run has ended.
///
/// # Memory
/// Takes the memory of [`WorkerLinks`], and 8 bytes for each link in transit, or the budget of the
/// step if it is smaller.
pub fn resolve(net: &mut Net<'_>, local_pages: &mut WorkerPages, crawl: &Crawl) -> Result<WorkerLinks> {
    let directory = crawl.directory.clone();
    let [lead_on, editions] =
        [local_pages.redirects.len() + local_pages.leads.len(), local_pages.editions.len()].map(|rows| rows as u64);
    let [lead_on, editions, link_count] =
        net.all_sum("redirects and links", [lead_on, editions, local_pages.links.items()])?;
    let redirects = if lead_on > 0 { Redirects::gather(net, local_pages, &directory)? } else { Redirects::default() };
    let by_doc_id = directory.by_doc_id()?;
    let (mut slots, mut links_of) = (local_pages.kept(), local_pages.links.reader());
    let source = |send: &mut dyn FnMut([Page; 2])| {
        // Sends the links of some pages per call, so that receiving can proceed in between.
        let mut inspected_links = 0;
        for (slot, src) in slots.by_ref() {
            let targets = links_of.get(slot)?;
            for &target in targets {
                redirects.pages(target, &by_doc_id, |dst| {
                    if dst != src {
                        send([src, dst]);
                    }
                });
            }
            inspected_links += targets.len() + 1;
            if inspected_links >= 1 << 15 {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut link_ranges = PageRanges::new(net, crawl.pages.len(), link_count / net.peers() as u64, 1);
    net.exchange_from(
        "LINK",
        source,
        |link| directory.owner(link[0]),
        |rows: &[[Page; 2]]| {
            rows.iter().try_for_each(|&[src, dst]| {
                let place = directory.place(src);
                link_ranges.push(place, [Page(place as u32), dst])
            })
        },
    )?;
    drop(slots);
    drop(by_doc_id);
    // The page links inherit the memory limit of the doc id links, which are freed first.
    let targets = local_pages.links.held_alike();
    local_pages.links.clear();
    let links = WorkerLinks::of_page_ranges(net, directory, link_ranges, targets)?;
    Ok(WorkerLinks { name_editions: editions > 0, ..links })
}

/// Counts the links to each of this worker's pages from pages of other hosts, in the order of its
/// pages. Takes one exchange.
///
/// # Errors
/// Returns any error of the disk, on which links may be, and an error if the run has ended.
pub fn count_incoming(net: &mut Net<'_>, links: &WorkerLinks) -> Result<SpillColumn<u32>> {
    let (directory, hosts) = (&links.directory, &links.directory.hosts);
    let mut counts = vec![0u32; directory.owned(net.index()).count()];
    let count = |targets: &[Page]| {
        targets.iter().for_each(|&target| counts[directory.place(target)] += 1);
        Ok(())
    };
    let rows = links.blocks().flatten_ok().filter_ok(|&(src, dst)| hosts[src] != hosts[dst]).map_ok(|link| link.1);
    net.exchange_into("links from elsewhere", rows, |dst| directory.owner(*dst), count)?;
    SpillColumn::from_rows(counts, &net.memory)
}

/// Counts the links to the pages of each host from pages of other hosts, by host, in every process.
/// Takes one exchange.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub fn to_hosts(net: &mut Net<'_>, incoming_links: &SpillColumn<u32>, crawl: &Crawl) -> Result<Arc<Vec<u32>>> {
    let hosts = &crawl.directory.hosts;
    let mut link_counts: BTreeMap<HostId, u32> = BTreeMap::new();
    let pages = crawl.directory.owned(net.index());
    for (page, links) in pages.zip(incoming_links.rows()) {
        let links = links?;
        if links > 0 {
            *link_counts.entry(hosts[page]).or_default() += links;
        }
    }
    let rows =
        net.broadcast("links to hosts", link_counts.into_iter().map(|(host, links)| [host.number(), links]).collect())?;
    net.once_per_process(|| {
        let mut sums = vec![0u32; hosts.iter().max().map_or(0, |host| host.index() + 1)];
        rows.iter().for_each(|&[host, links]| sums[host as usize] = sums[host as usize].saturating_add(links));
        sums
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shuffle::directory::TablePartitions;

    proptest! {
        #[test]
        fn links_are_ascending_and_distinct(
            given in prop::collection::vec((0u32..40, 0u32..40), 0..200), pages in 0u32..40, peers in 1usize..4
        ) {
            let partitions = TablePartitions::new(8, peers);
            let hosts = vec![HostId(0); pages as usize];
            let directory = Arc::new(Directory::even(hosts, partitions));
            let sample_links: Vec<(Page, Page)> =
                given.into_iter().filter(|link| link.0 < pages).map(|link| (Page(link.0), Page(link.1))).collect();
            for worker in 0..peers {
                let mut expected: Vec<(Page, Page)> =
                    sample_links.iter().copied().filter(|link| directory.owner(link.0) == worker).collect();
                expected.sort_unstable();
                expected.dedup();
                let links = WorkerLinks::of_worker(Arc::clone(&directory), worker, |page, targets| {
                    targets.extend(sample_links.iter().filter(|link| link.0 == page).map(|link| link.1));
                }).unwrap();
                prop_assert_eq!(links.blocks().map(Result::unwrap).collect::<Vec<_>>().concat(), &expected[..]);
                let mut reader = links.reader();
                for page in directory.owned(worker) {
                    let targets = expected.iter().filter(|link| link.0 == page).map(|link| link.1);
                    prop_assert_eq!(reader.targets(page).unwrap(), targets.collect::<Vec<_>>());
                }
                for start in 0..=expected.len() {
                    prop_assert_eq!(links.read(start..expected.len()).unwrap(), &expected[start..]);
                }
                let parts = links.by_partition();
                for (partition, places) in &parts {
                    let partition_links = links.read(places.clone()).unwrap();
                    prop_assert!(partition_links.into_iter().all(|link| directory.partition(link.0) == *partition));
                }
                prop_assert_eq!(parts.into_iter().flat_map(|part| part.1).collect::<Vec<_>>(), (0..expected.len()).collect::<Vec<_>>());
            }
        }
    }
}
