//! Which domains have several sites, a site being a scheme and a host.
//!
//! # Memory
//! 8 bytes for each place with each worker while they are counted, of which there are up to eight a host and a million in all, and a bit in each
//! process; 8 bytes a host with each worker.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

use crate::reading::captures::Crawl;
use crate::shuffle::page_counts::{Count, pages_by_sum};
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Number, Page};
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;
use webtwin_pages::public_suffix::domain_of;

/// The first and the last site of a domain, which are a scheme and a host each, as numbers that only grow: the first negated, the
/// last plus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Sites([u32; 2]);

impl Count for Sites {
    fn plus(self, Sites([before, after]): Sites) -> Sites {
        Sites([self.0[0].max(before), self.0[1].max(after)])
    }
}

/// Domains that have several sites, and perhaps a few others that share a place with another domain.
pub(super) struct Domains {
    /// True if any page calls another URL canonical.
    pub are_declared: bool,
    places: usize,
    /// The places whose domains have several sites.
    have_several: Arc<PageSet>,
    /// Hash of the domain of each host that this worker has asked for; 0 for others.
    of_hosts: Vec<u64>,
}

impl Domains {
    /// Most places.
    const PLACES: usize = 1 << 20;

    /// Learns of the sites of all pages. One sum.
    pub(super) fn learn(net: &mut Net<'_>, crawl: &Crawl) -> Result<Domains> {
        let of = &crawl.directory.hosts;
        let hosts = *net.once_per_process(|| of.iter().max().map_or(0, |host| host.index() + 1))?;
        let places = (4 * hosts).next_power_of_two().min(Domains::PLACES);
        let have_several = Arc::new(PageSet::new(0, |_| false));
        let mut domains = Domains { are_declared: false, places, have_several, of_hosts: vec![0; hosts] };
        // Behind the places is one that any page fills which calls another URL canonical.
        let mut sites = vec![Sites::zeroed(); places + 1];
        crawl.pages.each(|row| {
            let host = of[row.page];
            let place = domains.hash(host, row.url()) as usize & (places - 1);
            let site = host.0 << 1 | u32::from(row.url().starts_with("https:"));
            sites[place] = sites[place].plus(Sites([!site, site + 1]));
            sites[places].0[0] |= u32::from(row.rest().canonical != 0);
        })?;
        let are_several = |place: Page, Sites([before, after]): Sites| match place.index() == places {
            true => before != 0,
            false => after > 0 && !before != after - 1,
        };
        domains.have_several = pages_by_sum(net, "sites of domains", &sites, are_several)?;
        domains.are_declared = domains.have_several.contains(Page::from_index(places));
        Ok(domains)
    }

    /// Hash of the domain of a host, given a URL there.
    fn hash(&mut self, host: HostId, url: &str) -> u64 {
        let hash = &mut self.of_hosts[host.index()];
        if *hash == 0 {
            *hash = xxh3_64(domain_of(url).as_bytes()).max(1);
        }
        *hash
    }

    /// Hash of the domain of a host, given a URL there, if the domain has several sites.
    pub(super) fn with_more_hosts(&mut self, host: HostId, url: &str) -> Option<u64> {
        let hash = self.hash(host, url);
        let place = Page::from_index(hash as usize & (self.places - 1));
        self.have_several.contains(place).then_some(hash)
    }
}
