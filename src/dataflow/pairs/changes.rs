//! Pages of a crawl that have changed since the previous run.

use std::collections::BTreeMap;

use super::overlap_before::digest;
use webtwin_base::ids::{HostId, Number, Page};
use webtwin_core::overlap::prune::PageSet;

/// Changed page in the form that is broadcast to all workers.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct ChangedPage {
    /// Digest of the rows that the page had in the previous run, if it existed.
    pub(super) rows: u64,
    /// Hash of the name of the host that the page had in the previous run.
    pub(super) host: u64,
    /// Number of the page, or [`Page::NONE`] if it no longer exists.
    pub(super) page: Page,
    /// 0 for a new page, 1 for a page of the previous run, 2 for an exact copy in the previous run.
    pub(super) was: u32,
}

/// All changed pages, once in each process. Pages that no longer exist are numbered after the pages
/// of this run. A row that a changed page had in the previous run is assigned to that page's number
/// plus the count of all numbers.
pub(super) struct PageChanges {
    pub(super) is_changed: PageSet,
    /// Pages that were exact copies in the previous run.
    pub(super) was_copy: PageSet,
    /// Hosts of all pages, by page number.
    pub(super) hosts: Vec<HostId>,
    /// Digests of the previous rows of changed pages, each with its page, ascending. Pages that had
    /// no rows are left out.
    pub(super) page_rows: Vec<(u64, Page)>,
}

impl PageChanges {
    /// Assigns numbers to pages that no longer exist. `known_hosts` maps hashes of host names to
    /// the hosts of this run.
    pub(super) fn new(
        changed_pages: &[ChangedPage],
        hosts: &[HostId],
        is_copy: &PageSet,
        known_hosts: &BTreeMap<u64, HostId>,
    ) -> PageChanges {
        let removed_count = changed_pages.iter().filter(|row| row.page == Page::NONE).count();
        let (pages, total_pages) = (hosts.len(), hosts.len() + removed_count);
        let mut changes = PageChanges {
            is_changed: PageSet::new(total_pages, |page| page.index() >= pages),
            was_copy: PageSet::new(total_pages, |page| page.index() < pages && is_copy.contains(page)),
            hosts: hosts.to_vec(),
            page_rows: Vec::new(),
        };
        // Hosts without any remaining page are not in this run, so they receive unused numbers from
        // the end.
        let mut unknown = BTreeMap::new();
        for row in changed_pages {
            let page = if row.page == Page::NONE { Page::from_index(changes.hosts.len()) } else { row.page };
            if row.page == Page::NONE {
                let next = HostId(u32::MAX - unknown.len() as u32);
                let host =
                    known_hosts.get(&row.host).copied().unwrap_or_else(|| *unknown.entry(row.host).or_insert(next));
                changes.hosts.push(host);
            }
            changes.is_changed.insert(page);
            match row.was {
                2 => changes.was_copy.insert(page),
                _ => changes.was_copy.remove(page),
            }
            if row.was > 0 && row.rows != digest(&[]) {
                changes.page_rows.push((row.rows, page));
            }
        }
        changes.page_rows.sort_unstable();
        changes
    }

    /// True if the page of a row has the row in this run.
    pub(super) fn is_now(&self, page: Page) -> bool {
        page.index() < self.hosts.len()
    }

    /// Returns the page that had a row in the previous run, if the row existed then.
    pub(super) fn page_before(&self, page: Page) -> Option<Page> {
        match page.index().checked_sub(self.hosts.len()) {
            Some(number) => Some(Page::from_index(number)),
            None => (!self.is_changed.contains(page)).then_some(page),
        }
    }
}
