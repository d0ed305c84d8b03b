//! Crawl paths ([`webtwin_core::applications::reachability`]) over all workers: each worker has the
//! pages of some hosts, in parts of some megabytes of links.
//!
//! One exchange sends pages and links to the owners of their hosts. Two of the three passes stay
//! within hosts. In the other pass, links between parts are exchanged until no better path is
//! found. This takes as many rounds as a best path leaves a part, or more if there are many of
//! these links.
//!
//! # Memory
//! Takes 13 bytes for each page, and 4 more while paths are traced back. Takes 16 for each link
//! between parts that is sent in the same round. Takes the links of one part, or of all parts if
//! the budget allows, and 24 bytes for each page and link while they arrive.

use std::collections::HashSet;
use std::ops::Range;

use itertools::Itertools;

use crate::clusters::links::WorkerLinks;
use crate::reading::captures::{Crawl, path};
use crate::shuffle::hash_partitions::{CommonPartitions, rows_and_links};
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Page, splitmix64};
use webtwin_core::applications::entry_points::{LINKED_FROM_ELSEWHERE, LinkScope, PASSES, ROOT, SEED, WebPage};
use webtwin_core::applications::part_links::PartLinks;
use webtwin_core::applications::reachability::{Crossing, WebPart};
use webtwin_core::overlap::rows::KeyShares;
use webtwin_engine::{Net, Owners};
use webtwin_spill::{Array, SpillColumn, partition_bits};

/// Approximate number of links between parts that a worker sends in a round.
const LINKS_PER_ROUND: usize = 1 << 19;

/// Effect of the avoid list on the paths of a crawler that obeys it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReachabilityCounts {
    /// Pages that a crawler may know before it follows a link: roots of hosts, seeds, pages without
    /// links to them, and pages with links from other hosts.
    pub entry_points: u64,
    /// Pages that are reachable by links from entry points.
    pub reachable: u64,
    /// Pages with copies that a crawler visits because kept pages are reached through them.
    pub visited_for_the_way: u64,
    /// Kept pages that were reachable and no longer are. Always 0.
    pub cut_off: u64,
}

/// Pages and links of this worker's hosts, on which crawl paths are computed.
pub struct Reachability {
    parts: Vec<WebPart>,
    links: StoredLinks,
    shares: KeyShares,
}

/// Links of all parts.
struct StoredLinks {
    words: Array<u32>,
    /// Range of the links of each part.
    places: Vec<Range<u64>>,
    scratch: Vec<u32>,
}

impl StoredLinks {
    fn links_of_part(&mut self, part: usize) -> Result<PartLinks<'_>> {
        let Range { start, end } = self.places[part];
        Ok(PartLinks::from_words(self.words.get(start, (end - start) as usize, &mut self.scratch)?))
    }
}

impl Reachability {
    /// Sends pages and links to the owners of their hosts. `links` are this worker's links.
    /// `incoming_links` counts the links to its pages from other hosts. `seeds` are canonical URLs.
    ///
    /// # Errors
    /// Returns any error of the disk, if memory is limited, and an error if the run has ended.
    pub fn gather(
        net: &mut Net<'_>,
        crawl: &Crawl,
        links: &WorkerLinks,
        incoming_links: &SpillColumn<u32>,
        seeds: &HashSet<String>,
    ) -> Result<Reachability> {
        let bits = partition_bits::<[Page; 2]>(links.len() as u64);
        Reachability::gather_in_parts(net, crawl, links, incoming_links, seeds, bits)
    }

    /// Sends pages and links to the owners of their hosts, like [`Reachability::gather`], in
    /// `2^bits` parts on this worker.
    ///
    /// # Errors
    /// Returns any error of [`Reachability::gather`].
    pub fn gather_in_parts(
        net: &mut Net<'_>,
        crawl: &Crawl,
        links: &WorkerLinks,
        incoming_links: &SpillColumn<u32>,
        seeds: &HashSet<String>,
        bits: u32,
    ) -> Result<Reachability> {
        let hosts = &crawl.directory.hosts;
        let mut link_counts = incoming_links.rows();
        let rows = crawl.pages.map(|row| {
            let is_linked = link_counts.next().transpose()? > Some(0);
            Ok(WebPage {
                page: row.page,
                host: hosts[row.page],
                path_length: path(row.url()).chars().count() as u32,
                entry: if is_linked { LINKED_FROM_ELSEWHERE } else { 0 }
                    | if seeds.contains(row.url()) { SEED } else { 0 },
            })
        });
        let rows = rows.map(|row| row?);
        let pages = (rows, |page: &WebPage| page.host);
        let links = (links.blocks().flatten_ok(), |source: Page| hosts[source]);
        let (mut pages, mut within) =
            rows_and_links(net, "pages and links by host", CommonPartitions { bits, kinds: 2 }, pages, links)?;
        let words = Array::new(&net.memory.part(2));
        let mut links = StoredLinks { words, places: Vec::new(), scratch: Vec::new() };
        let (mut parts, mut web, mut part_rows) = (Vec::new(), Vec::new(), Vec::new());
        for share in 0..pages.count() {
            net.check()?;
            pages.take(share, &mut web)?;
            within.take(share, &mut part_rows)?;
            let mut part = WebPart::new(&mut web);
            let start = links.words.push(&part.link(&mut part_rows, |page| hosts[page])?)?;
            links.places.push(start..links.words.len());
            parts.push(part);
        }
        Ok(Reachability { parts, links, shares: KeyShares::new(net.peers(), bits) })
    }

    /// Returns the number of links from the root of its host, or from a seed on the host, to each
    /// of this worker's pages of the crawl, in the order of pages; `u32::MAX` if there is no path.
    /// Takes one exchange.
    ///
    /// # Errors
    /// Returns any error of the disk, on which links may be, and an error if the run has ended.
    pub fn depths(&mut self, net: &mut Net<'_>, crawl: &Crawl) -> Result<Vec<u32>> {
        let mut depths = vec![u32::MAX; crawl.pages.len()];
        let directory = &crawl.directory;
        let (mut parts, links) = (self.parts.iter_mut().enumerate(), &mut self.links);
        let source = |send: &mut dyn FnMut([u32; 2])| {
            let Some((number, part)) = parts.next() else { return Ok(false) };
            part.start(ROOT | SEED);
            part.settle(links.links_of_part(number)?, LinkScope::WithinHosts);
            part.depths().filter_map(|(page, depth)| Some([page.0, depth?])).for_each(send);
            Ok(true)
        };
        let take = |rows: &[[u32; 2]]| {
            rows.iter().for_each(|&[page, depth]| depths[directory.place(Page(page))] = depth);
            Ok(())
        };
        net.exchange_from("depths", source, |row| directory.owner(Page(row[0])), take)?;
        Ok(depths)
    }

    /// Removes pages from the pages to skip until no kept page is cut off. `skip` are any pages.
    /// Returns those pages on this worker's hosts that a crawler must visit, and the counts of all
    /// workers.
    ///
    /// # Errors
    /// Returns any error of the disk, on which links may be, and an error if the run has ended.
    pub fn clear(
        mut self,
        net: &mut Net<'_>,
        crawl: &Crawl,
        skip: Vec<Page>,
    ) -> Result<(Vec<Page>, ReachabilityCounts)> {
        let hosts = &crawl.directory.hosts;
        let shares = self.shares;
        let owner = |page: &Page| owner(shares, hosts[*page]);
        for page in net.exchange("pages to skip by host", skip, owner)? {
            self.part_of(hosts[page]).skip(page);
        }
        let mut all_visited = Vec::new();
        let mut reachable = 0;
        for (nth, (entry, scope)) in PASSES.into_iter().enumerate() {
            self.settle(net, hosts, entry, scope)?;
            if nth == 0 {
                reachable = self.parts.iter().flat_map(WebPart::depths).filter(|row| row.1.is_some()).count() as u64;
            }
            self.trace(net, hosts, scope)?;
            let (mut visit, mut pages_back) = (Vec::new(), Vec::new());
            for part in &mut self.parts {
                pages_back.extend(part.cut_off().into_iter().filter_map(|page| part.go_back(page, &mut visit)));
            }
            // A path back may leave this worker's parts, so the walk is continued at other workers
            // until no walk is left.
            let mut has_more = scope == LinkScope::AllLinks;
            while has_more {
                let (sent_pages, mut rows) = (pages_back.len() as u64, Vec::new());
                let take = |pages: &[Page]| {
                    rows.extend_from_slice(pages);
                    Ok(())
                };
                let sent_counts = net.exchange_with_reports("reverse paths", sent_pages, pages_back, owner, take)?;
                has_more = sent_counts.iter().any(|&sent| sent > 0);
                pages_back =
                    rows.into_iter().filter_map(|page| self.part_of(hosts[page]).go_back(page, &mut visit)).collect();
            }
            visit.iter().for_each(|&page| self.part_of(hosts[page]).visit(page));
            all_visited.append(&mut visit);
        }
        // Verifies the result by a second computation of all passes.
        let mut cut_off = 0;
        for (entry, scope) in PASSES {
            self.settle(net, hosts, entry, scope)?;
            cut_off += self.parts.iter().map(|part| part.cut_off().len() as u64).sum::<u64>();
        }
        let entry_points = self.parts.iter().map(|part| part.entries(PASSES[0].0)).sum();
        let counts = [entry_points, reachable, all_visited.len() as u64, cut_off];
        let [entry_points, reachable, visited_for_the_way, cut_off] = net.all_sum("ways", counts)?;
        Ok((all_visited, ReachabilityCounts { entry_points, reachable, visited_for_the_way, cut_off }))
    }

    /// Returns the part of this worker that has the pages of a host.
    fn part_of(&mut self, host: HostId) -> &mut WebPart {
        &mut self.parts[self.shares.bucket(splitmix64(host.into()))]
    }

    /// Finds the best paths from the given kind of entry points.
    fn settle(&mut self, net: &mut Net<'_>, hosts: &[HostId], entry: u32, scope: LinkScope) -> Result<()> {
        for (number, part) in self.parts.iter_mut().enumerate() {
            part.start(entry);
            if scope == LinkScope::WithinHosts {
                part.settle(self.links.links_of_part(number)?, scope);
            }
        }
        if scope == LinkScope::WithinHosts {
            return Ok(());
        }
        let mut next = 0;
        loop {
            let mut leaving = Vec::new();
            // Continues with the part at which the previous round stopped.
            for _ in 0..self.parts.len() {
                if leaving.len() >= LINKS_PER_ROUND {
                    break;
                }
                if self.parts[next].waits() {
                    leaving.append(&mut self.parts[next].settle(self.links.links_of_part(next)?, scope));
                }
                next = (next + 1) % self.parts.len();
            }
            let left = self.parts.iter().filter(|part| part.waits()).count() as u64;
            if !self.exchange(net, "better paths", hosts, leaving, left, WebPart::arrive)? {
                return Ok(());
            }
        }
    }

    /// Stores for every page its predecessor on its best path.
    fn trace(&mut self, net: &mut Net<'_>, hosts: &[HostId], scope: LinkScope) -> Result<()> {
        self.parts.iter_mut().for_each(WebPart::look_back);
        let mut next = 0;
        loop {
            let mut arriving = Vec::new();
            while next < self.parts.len() && arriving.len() < LINKS_PER_ROUND {
                let links = self.links.links_of_part(next)?;
                self.parts[next].trace(links, scope);
                if scope == LinkScope::AllLinks {
                    arriving.append(&mut self.parts[next].crossings(links));
                }
                next += 1;
            }
            let left = (self.parts.len() - next) as u64;
            if scope == LinkScope::WithinHosts {
                return Ok(());
            }
            if !self.exchange(net, "links between parts", hosts, arriving, left, WebPart::trace_over)? {
                return Ok(());
            }
        }
    }

    /// Sends links between parts to their targets. Returns true if any worker has sent links, or
    /// has work `left` to do.
    fn exchange(
        &mut self,
        net: &mut Net<'_>,
        name: &str,
        hosts: &[HostId],
        links: Vec<Crossing>,
        left: u64,
        take: impl Fn(&mut WebPart, &Crossing),
    ) -> Result<bool> {
        let (message, shares) = (links.len() as u64 + left, self.shares);
        let take = |links: &[Crossing]| {
            links.iter().for_each(|link| take(self.part_of(hosts[link.dst]), link));
            Ok(())
        };
        let message = net.exchange_with_reports(name, message, links, |link| owner(shares, hosts[link.dst]), take)?;
        Ok(message.iter().any(|&message| message > 0))
    }
}

/// Returns the worker that has the pages of a host.
fn owner(shares: KeyShares, host: HostId) -> usize {
    shares.owner(splitmix64(host.into()))
}
