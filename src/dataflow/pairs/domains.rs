//! Finds the domains that have several sites. A site is a scheme and a host.
//!
//! # Memory
//! Takes 8 bytes for each slot of a hash table at each worker while sites are counted, and a bit in
//! each process. There are up to eight slots for each host, and a million in all. Takes 8 bytes for
//! each host at each worker.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

use crate::reading::captures::Crawl;
use crate::shuffle::page_counts::{CounterValue, pages_by_sum};
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Number, Page};
use webtwin_core::overlap::prune::PageSet;
use webtwin_engine::Net;
use webtwin_pages::public_suffix::domain_of;

/// First and last site of a domain. A site is a scheme and a host. Both are stored as numbers whose
/// maximum is wanted: the bitwise complement of the first site, and the last site plus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Sites([u32; 2]);

impl CounterValue for Sites {
    fn plus(self, Sites([smaller_site, larger_site]): Sites) -> Sites {
        Sites([self.0[0].max(smaller_site), self.0[1].max(larger_site)])
    }
}

/// Domains that have several sites. Due to hash collisions there may be a few other domains among
/// them.
pub(super) struct Domains {
    /// True if any page declares another URL as canonical.
    pub are_declared: bool,
    places: usize,
    /// Slots of the hash table whose domains have several sites.
    have_several: Arc<PageSet>,
    /// Hash of the domain of each host that this worker has looked up; 0 for other hosts.
    of_hosts: Vec<u64>,
}

impl Domains {
    /// Maximum number of slots of the hash table.
    const PLACES: usize = 1 << 20;

    /// Collects the sites of all pages. Takes one collective sum.
    pub(super) fn learn(net: &mut Net<'_>, crawl: &Crawl) -> Result<Domains> {
        let host_names = &crawl.directory.hosts;
        let hosts = *net.once_per_process(|| host_names.iter().max().map_or(0, |host| host.index() + 1))?;
        let places = (4 * hosts).next_power_of_two().min(Domains::PLACES);
        let several_sites = Arc::new(PageSet::new(0, |_| false));
        let mut domains =
            Domains { are_declared: false, places, have_several: several_sites, of_hosts: vec![0; hosts] };
        // An additional slot at the end records if any page declares another URL as canonical.
        let mut sites = vec![Sites::zeroed(); places + 1];
        crawl.pages.for_each(|row| {
            let host = host_names[row.page];
            let place = domains.hash(host, row.url()) as usize & (places - 1);
            let site = host.0 << 1 | u32::from(row.url().starts_with("https:"));
            sites[place] = sites[place].plus(Sites([!site, site + 1]));
            sites[places].0[0] |= u32::from(row.rare_fields().canonical != 0);
        })?;
        let are_several = |place: Page, Sites([smaller_site, larger_site]): Sites| match place.index() == places {
            true => smaller_site != 0,
            false => larger_site > 0 && !smaller_site != larger_site - 1,
        };
        domains.have_several = pages_by_sum(net, "sites of domains", &sites, are_several)?;
        domains.are_declared = domains.have_several.contains(Page::from_index(places));
        Ok(domains)
    }

    /// Returns the hash of the domain of a host, given a URL on this host.
    fn hash(&mut self, host: HostId, url: &str) -> u64 {
        let hash = &mut self.of_hosts[host.index()];
        if *hash == 0 {
            *hash = xxh3_64(domain_of(url).as_bytes()).max(1);
        }
        *hash
    }

    /// Returns the hash of the domain of a host, given a URL on this host, if the domain has
    /// several sites.
    pub(super) fn with_more_hosts(&mut self, host: HostId, url: &str) -> Option<u64> {
        let hash = self.hash(host, url);
        let place = Page::from_index(hash as usize & (self.places - 1));
        self.have_several.contains(place).then_some(hash)
    }
}
