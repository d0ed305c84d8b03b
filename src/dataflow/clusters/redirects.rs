//! Targets of URLs that are not pages, or are pages that redirect to another page.
//!
//! One exchange sends the redirects of a URL to its owner, which keeps the newest one. Then all
//! redirects are broadcast.
//!
//! # Memory
//! Takes 16 bytes for each URL with a redirect, in every process.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::directory::{Directory, DocIdIndex};
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, Number, Page, splitmix64};
use webtwin_engine::Net;

/// Maximum number of redirects that are followed one after another. A longer chain has no target,
/// and neither has a loop.
const LONGEST_CHAIN: usize = 10;

/// Redirect in transit to the owner of its URL.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Row {
    from: DocId,
    to: DocId,
    time: i64,
}

/// Target of each URL with a redirect: (from, to), ascending, with one row for each `from`.
#[derive(Debug, Clone, Default)]
pub struct Redirects(Arc<Vec<[DocId; 2]>>);

impl Redirects {
    /// Gathers the redirects of all workers' local pages. Only permanent redirects that were not
    /// replaced by another one remain there. A page of the crawl leads to another URL only if the
    /// page itself declares it; a redirect of its URL at another time does not count.
    ///
    /// # Errors
    /// Returns any error of the disk, on which doc ids may be, and an error if the run has ended.
    pub fn gather(net: &mut Net<'_>, local_pages: &mut WorkerPages, directory: &Directory) -> Result<Redirects> {
        let pages = directory.by_doc_id()?;
        let leads = std::mem::take(&mut local_pages.leads);
        local_pages.redirects.retain(|row| pages.page(row.from).is_none());
        let record_redirects =
            local_pages.redirects.iter().map(|row| Row { from: row.from, to: row.to, time: row.fetch_time });
        let page_redirects = leads.iter().filter_map(|&(slot, to)| {
            let page = local_pages.pages[slot as usize];
            let from = *pages.doc_ids().get(page.index())?;
            Some(Row { from, to, time: 0 })
        });
        let peers = net.peers() as u64;
        let rows = record_redirects.chain(page_redirects).filter(|row| row.from != row.to);
        let mut rows = net.exchange("redirects", rows, |row| (splitmix64(row.from) % peers) as usize)?;
        // Of redirects with the same time, the choice does not depend on the files.
        rows.sort_unstable_by_key(|row| (row.from, Reverse(row.time), row.to));
        rows.dedup_by_key(|row| row.from);
        let shared = net.broadcast("all redirects", rows.iter().map(|row| [row.from, row.to]).collect())?;
        let sorted = net.once_per_process(|| {
            let mut rows = shared.to_vec();
            rows.sort_unstable();
            rows
        })?;
        let redirects = Redirects(sorted);
        local_pages.redirects.retain(|row| !row.url.is_empty() && redirects.next(row.from) == Some(row.to));
        Ok(redirects)
    }

    /// Calls `visit` with the pages of the crawl for which a link to `target` counts: the target
    /// itself, and the pages to which it leads.
    pub fn pages(&self, target: DocId, by_doc_id: &DocIdIndex<'_>, mut visit: impl FnMut(Page)) {
        let mut url = target;
        for _ in 0..=LONGEST_CHAIN {
            if let Some(page) = by_doc_id.page(url) {
                visit(page);
            }
            match self.next(url) {
                Some(next) if next != target => url = next,
                _ => return,
            }
        }
    }

    fn next(&self, from: DocId) -> Option<DocId> {
        let at = self.0.binary_search_by_key(&from, |row| row[0]).ok()?;
        Some(self.0[at][1])
    }
}
