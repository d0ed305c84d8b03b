//! Ways through the crawl ([`crate::applications::ways`]) over all workers: each has the pages of some hosts.
//!
//! Two exchanges bring pages and links to the owners of their hosts. Two passes of three stay within hosts; for the other,
//! links between hosts are exchanged until no better way is found, in as many rounds as a best way leaves a worker's hosts.
//!
//! # Memory
//! [`WebPart::bytes`]; 8 bytes for each link before its part is made, or what the room for them allows; 16 for each that is on its
//! way between hosts.

use std::collections::HashSet;

use crate::applications::ways::{Crossing, LINKED_FROM_ELSEWHERE, PASSES, ROOT, SEED, Scope, WebPage, WebPart};
use crate::dataflow::clusters::links::Links;
use crate::dataflow::reading::captures::{Crawl, path};
use crate::dataflow::reading::lists::until_failure;
use crate::dataflow::shuffle::memory_budget::{MemoryBudget, bucket_bits};
use crate::dataflow::shuffle::memory_estimate::{MemoryEstimate, hold_bytes_against_bound};
use crate::engine::{HashOwners, Net, Owners};
use crate::error::Result;
use crate::ids::{HostId, Page};
use crate::storage::spill::Buckets;

/// What became of the ways of a crawler that obeys the avoid list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ways {
    /// Pages that a crawler may know before it follows a link: roots of hosts, seeds, pages that no page links to, and pages
    /// that another host links to.
    pub entry_points: u64,
    /// Pages that links lead to from these.
    pub reachable: u64,
    /// Pages with copies that a crawler visits because pages that stay are reached by way of them.
    pub visited_for_the_way: u64,
    /// Pages that stay, were reachable, and no longer are. None.
    pub cut_off: u64,
}

/// The ways through the pages and links of this worker's hosts.
pub struct WaysThrough {
    part: WebPart,
    owners: HashOwners,
}

impl WaysThrough {
    /// Brings pages and links to the owners of their hosts. `links` are this worker's, which are aside afterwards; `from_elsewhere` counts
    /// the links to its pages from other hosts, `seeds` are canonical URLs, `held` is what this worker has in memory; `room` is for links
    /// on their way.
    ///
    /// # Errors
    /// [`crate::error::Error::MemoryLimit`] when there is no room for them; those of the disk; or when the run has ended.
    pub fn gather(
        net: &mut Net<'_>,
        crawl: &Crawl,
        links: &mut Links,
        from_elsewhere: &[u32],
        seeds: &HashSet<String>,
        (held, allowed_bytes, room): (MemoryEstimate, u64, &MemoryBudget),
    ) -> Result<WaysThrough> {
        hold_bytes_against_bound(net, "the ways through the crawl", held.shelf_bytes_with_ways(), allowed_bytes)?;
        let (owners, hosts) = (HashOwners::new(net), &crawl.directory.hosts);
        let mut from_elsewhere = from_elsewhere.iter();
        let rows = crawl.pages.map(|row| WebPage {
            page: row.page,
            host: hosts[row.page],
            path_length: path(row.url()).chars().count() as u32,
            entry: if from_elsewhere.next() > Some(&0) { LINKED_FROM_ELSEWHERE } else { 0 }
                | if seeds.contains(row.url()) { SEED } else { 0 },
        });
        let owner = |page: &WebPage| owners.owner(page.host);
        let web = until_failure(rows, |rows| net.exchange_all("pages by host", rows, owner))?;
        links.take_up()?;
        let rows = links.iter().map(<[Page; 2]>::from);
        let mut part = WebPart::new(web);
        // By stretches of pages, ascending.
        let about = links.len() as u64 * part.len() as u64 / crawl.pages.len().max(1) as u64;
        let bits = bucket_bits(about * size_of::<[Page; 2]>() as u64);
        let stretch = (part.len() >> bits) + 1;
        let mut arrived = Buckets::new(1 << bits, room.of_worker(net), &room.disk(net));
        net.exchange(
            "links by host",
            rows,
            |link| owners.owner(hosts[link[0]]),
            |rows: &[[Page; 2]]| rows.iter().try_for_each(|&link| arrived.push(part.place(link[0]) / stretch, link)),
        )?;
        links.put_aside((allowed_bytes > 0).then(|| room.disk(net)).as_ref())?;
        room.give_back();
        let mut some = Vec::new();
        for bucket in 0..arrived.count() {
            net.check()?;
            arrived.take(bucket, &mut some)?;
            part.link(&mut some, |page| hosts[page])?;
        }
        Ok(WaysThrough { part, owners })
    }

    /// Links from the root of its host, or a seed there, to each of this worker's pages of the crawl, in their order; `u32::MAX`
    /// where there is no way. One exchange.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn depths(&mut self, net: &mut Net<'_>, crawl: &Crawl) -> Result<Vec<u32>> {
        self.part.start(ROOT | SEED);
        self.part.settle(Scope::WithinHosts);
        let rows = self.part.depths().filter_map(|(page, depth)| Some([page.0, depth?]));
        let mut depths = vec![u32::MAX; crawl.pages.len()];
        let directory = &crawl.directory;
        net.exchange(
            "depths",
            rows,
            |row| directory.owner(Page(row[0])),
            |rows: &[[u32; 2]]| {
                rows.iter().for_each(|&[page, depth]| depths[directory.place(Page(page))] = depth);
                Ok(())
            },
        )?;
        Ok(depths)
    }

    /// Takes pages off the list of those to skip until none that stays is cut off. `skip` are any pages; returns those of this
    /// worker's hosts that a crawler visits after all, and what is told of all.
    ///
    /// # Errors
    /// Only when the run has ended.
    pub fn clear(mut self, net: &mut Net<'_>, crawl: &Crawl, skip: Vec<Page>) -> Result<(Vec<Page>, Ways)> {
        let hosts = &crawl.directory.hosts;
        let owner = |owners: HashOwners, page: Page| owners.owner(hosts[page]);
        let owners = self.owners;
        let skip = net.exchange_all("pages to skip by host", skip, |&page| owner(owners, page))?;
        self.part.skip(skip);
        let mut all_visited = Vec::new();
        let mut reachable = 0;
        for (nth, (entry, scope)) in PASSES.into_iter().enumerate() {
            self.settle(net, hosts, entry, scope)?;
            if nth == 0 {
                reachable = self.part.depths().filter(|row| row.1.is_some()).count() as u64;
            }
            let arriving = match scope {
                Scope::WithinHosts => Vec::new(),
                Scope::AllLinks => {
                    let rows: Vec<Crossing> = self.part.crossings().collect();
                    net.exchange_all("links between hosts", rows, |link| owner(owners, link.dst))?
                }
            };
            self.part.trace(scope, &arriving);
            let (mut seen, mut visit) = (vec![false; self.part.len()], Vec::new());
            let mut back = self.part.go_back(&self.part.cut_off(), &mut seen, &mut visit);
            let mut goes_on = scope == Scope::AllLinks;
            while goes_on {
                let (sent, mut rows) = (back.len() as u64, Vec::new());
                let take = |pages: &[Page]| {
                    rows.extend_from_slice(pages);
                    Ok(())
                };
                let all = net.exchange_telling("ways back", sent, back, |&page| owner(owners, page), take)?;
                goes_on = all.iter().any(|&sent| sent > 0);
                back = self.part.go_back(&rows, &mut seen, &mut visit);
            }
            self.part.visit(&visit);
            all_visited.append(&mut visit);
        }
        let mut cut_off = 0;
        for (entry, scope) in PASSES {
            self.settle(net, hosts, entry, scope)?;
            cut_off += self.part.cut_off().len() as u64;
        }
        let entry_points = self.part.entries(PASSES[0].0);
        let counts = [entry_points, reachable, all_visited.len() as u64, cut_off];
        let [entry_points, reachable, visited_for_the_way, cut_off] = net.sum("ways", counts)?;
        Ok((all_visited, Ways { entry_points, reachable, visited_for_the_way, cut_off }))
    }

    /// Finds the best ways from some entry points.
    fn settle(&mut self, net: &mut Net<'_>, hosts: &[HostId], entry: u32, scope: Scope) -> Result<()> {
        self.part.start(entry);
        self.part.settle(scope);
        if scope == Scope::WithinHosts {
            return Ok(());
        }
        loop {
            let leaving = self.part.leave();
            let owners = self.owners;
            let part = &mut self.part;
            let sent = net.exchange_telling(
                "better ways",
                leaving.len() as u64,
                leaving,
                |link| owners.owner(hosts[link.dst]),
                |links: &[Crossing]| {
                    links.iter().for_each(|link| part.arrive(link));
                    Ok(())
                },
            )?;
            if sent.iter().all(|&sent| sent == 0) {
                return Ok(());
            }
            self.part.settle(scope);
        }
    }
}
