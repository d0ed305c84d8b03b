//! Pages of a crawl that have changed since the run before.

use std::collections::BTreeMap;

use super::overlap_before::digest;
use webtwin_base::ids::{HostId, Number, Page};
use webtwin_core::overlap::prune::PageSet;

/// A changed page, as all workers hear of it.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Changed {
    /// Digest of its rows before, if it was there.
    pub(super) rows: u64,
    /// Hash of its host's name then.
    pub(super) host: u64,
    /// Its number, or [`Page::NONE`] when it is gone.
    pub(super) page: Page,
    /// 0 for a new page, 1 for one that was there, 2 for one that was an exact copy.
    pub(super) was: u32,
}

/// All changed pages, once in each process. Gone ones have the numbers that follow those of this run's pages. A row that a changed
/// page had before is one of a page whose number is as much larger as there are numbers.
pub(super) struct Changes {
    pub(super) is_changed: PageSet,
    /// Exact copies of before.
    pub(super) was_copy: PageSet,
    /// Hosts of all pages, by number.
    pub(super) hosts: Vec<HostId>,
    /// Digests of rows before with the page that had them, ascending; without pages that had none.
    pub(super) wanted: Vec<(u64, Page)>,
}

impl Changes {
    /// Numbers what has gone, of hosts that are `known` by the hash of their names.
    pub(super) fn new(
        changed: &[Changed],
        hosts: &[HostId],
        is_copy: &PageSet,
        known: &BTreeMap<u64, HostId>,
    ) -> Changes {
        let gone = changed.iter().filter(|row| row.page == Page::NONE).count();
        let (pages, all) = (hosts.len(), hosts.len() + gone);
        let mut changes = Changes {
            is_changed: PageSet::new(all, |page| page.index() >= pages),
            was_copy: PageSet::new(all, |page| page.index() < pages && is_copy.contains(page)),
            hosts: hosts.to_vec(),
            wanted: Vec::new(),
        };
        // Hosts that have gone with all of their pages are none of this run's.
        let mut unknown = BTreeMap::new();
        for row in changed {
            let page = if row.page == Page::NONE { Page::from_index(changes.hosts.len()) } else { row.page };
            if row.page == Page::NONE {
                let next = HostId(u32::MAX - unknown.len() as u32);
                let host = known.get(&row.host).copied().unwrap_or_else(|| *unknown.entry(row.host).or_insert(next));
                changes.hosts.push(host);
            }
            changes.is_changed.insert(page);
            match row.was {
                2 => changes.was_copy.insert(page),
                _ => changes.was_copy.remove(page),
            }
            if row.was > 0 && row.rows != digest(&[]) {
                changes.wanted.push((row.rows, page));
            }
        }
        changes.wanted.sort_unstable();
        changes
    }

    /// Whether the page of a row has it now.
    pub(super) fn is_now(&self, page: Page) -> bool {
        page.index() < self.hosts.len()
    }

    /// The page of a row that had it before, if it did.
    pub(super) fn page_before(&self, page: Page) -> Option<Page> {
        match page.index().checked_sub(self.hosts.len()) {
            Some(number) => Some(Page::from_index(number)),
            None => (!self.is_changed.contains(page)).then_some(page),
        }
    }
}
