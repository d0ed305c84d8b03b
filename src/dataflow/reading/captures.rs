//! Newest capture wins: every canonical URL becomes one page with a number.
//!
//! Two exchanges: captures to the owner of their doc id, numbers of those that are kept back to the shelf; then the directory
//! is shared.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::dataflow::reading::worker_pages::{Capture, NOT_KEPT, Rejection, WorkerPages};
use crate::dataflow::shuffle::directory::{Directory, Entry, Partitions};
use crate::engine::{HashOwners, Net, Owners};
use crate::error::Result;
use crate::ids::{HostId, Number, Page};
use crate::pages::record::Reason;

/// The pages of the run, settled.
#[derive(Debug)]
pub struct Crawl {
    /// All pages by number.
    pub directory: Arc<Directory>,
    /// Rows of the pages that this worker owns, ascending by page.
    pub pages: Vec<(Page, Capture)>,
    /// Records that were read twice, because a work item began inside another's record.
    pub overlapping: u64,
}

impl Crawl {
    /// The row of a page that this worker owns.
    pub fn page(&self, page: Page) -> &Capture {
        let at = self.pages.partition_point(|(other, _)| *other < page);
        &self.pages[at].1
    }

    /// The same, to be changed.
    pub fn page_mut(&mut self, page: Page) -> &mut Capture {
        let at = self.pages.partition_point(|(other, _)| *other < page);
        &mut self.pages[at].1
    }
}

/// Settles the captures on all shelves. `floors[item]` is the offset from which the records of a work item are true.
pub fn settle(net: &mut Net<'_>, shelf: &mut WorkerPages, floors: &[u64], partitions: Partitions) -> Result<Crawl> {
    let before = shelf.rejections.len();
    shelf.rejections.retain(|rejection| rejection.offset >= floors[rejection.item as usize]);
    let mut overlapping = (before - shelf.rejections.len()) as u64;

    let rows = std::mem::take(&mut shelf.captures);
    let owner = |capture: &Capture| partitions.owner(capture.doc_id);
    let mut captures = net.exchange_rows("captures", rows.into_iter().map(move |row| (owner(&row), row)))?;
    captures.sort_unstable_by(|x, y| order(x).cmp(&order(y)));

    let mut pages: Vec<Capture> = Vec::new();
    for capture in captures {
        let reason = match pages.last() {
            _ if capture.offset < floors[capture.item as usize] => {
                overlapping += 1;
                continue;
            }
            Some(kept) if kept.doc_id == capture.doc_id && kept.url == capture.url => Reason::OlderCapture,
            Some(kept) if kept.doc_id == capture.doc_id => Reason::DocIdCollision,
            _ => {
                pages.push(capture);
                continue;
            }
        };
        let Capture { source, offset, url, item, .. } = capture;
        shelf.rejections.push(Rejection { source, offset, reason, detail: url, item });
    }

    let mut counts = vec![0u32; partitions.count()];
    pages.iter().for_each(|page| counts[partitions.of(page.doc_id)] += 1);
    let all = net.all_gather("pages a partition", counts)?;
    let mut next = vec![0u32; partitions.count()];
    for partition in 1..next.len() {
        next[partition] = next[partition - 1] + all.iter().map(|counts| counts[partition - 1]).sum::<u32>();
    }
    let pages: Vec<(Page, Capture)> = pages
        .into_iter()
        .map(|capture| {
            let next = &mut next[partitions.of(capture.doc_id)];
            *next += 1;
            (Page(*next - 1), capture)
        })
        .collect();

    shelf.pages = vec![NOT_KEPT; shelf.exact.len()];
    let kept = pages.iter().map(|(page, capture)| [capture.worker, capture.slot, page.0]);
    for [_, slot, page] in net.exchange_all("pages of slots", kept, |reply| reply[0] as usize)? {
        shelf.pages[slot as usize] = Page(page);
    }
    let directory = directory(net, &pages, partitions)?;
    Ok(Crawl { directory, pages, overlapping })
}

/// Groups captures of one doc id, those of the smallest URL first, the newest of these first of all.
fn order(capture: &Capture) -> (u64, &str, Reverse<i64>, u32, u64) {
    (capture.doc_id, &capture.url, Reverse(capture.fetch_time), capture.source, capture.offset)
}

fn directory(net: &mut Net<'_>, pages: &[(Page, Capture)], partitions: Partitions) -> Result<Arc<Directory>> {
    let mut mine: Vec<u64> = pages.iter().map(|(_, capture)| host_key(&capture.url)).collect();
    mine.sort_unstable();
    mine.dedup();
    let owners = HashOwners::new(net);
    let mut owned = net.exchange_all("hosts", mine, |key| owners.owner(*key))?;
    owned.sort_unstable();
    owned.dedup();
    let hosts = net.share("all hosts", owned)?;
    let hosts = net.once(|| {
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        hosts
    })?;
    let number = |capture: &Capture| HostId::from_index(hosts.partition_point(|&key| key < host_key(&capture.url)));
    let entries = pages
        .iter()
        .map(|(page, capture)| Entry { doc_id: capture.doc_id, page: *page, host: number(capture) })
        .collect();
    let entries = net.share("directory rows", entries)?;
    net.once(|| Directory::new(&entries, partitions))
}

/// Host (with port) of a canonical URL.
pub fn host(canonical_url: &str) -> &str {
    host_and_path(canonical_url).0
}

/// Hash of the name of a canonical URL's host.
pub(crate) fn host_key(canonical_url: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(host(canonical_url).as_bytes())
}

/// Path and query of a canonical URL.
pub fn path(canonical_url: &str) -> &str {
    host_and_path(canonical_url).1
}

fn host_and_path(canonical_url: &str) -> (&str, &str) {
    let schemes = ["http://", "https://"];
    let rest = schemes.iter().find_map(|scheme| canonical_url.strip_prefix(scheme)).unwrap_or(canonical_url);
    rest.split_at(rest.bytes().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_what_follows_the_host_with_its_query() {
        assert_eq!(path("http://h.example:8080/a/b?c=d"), "/a/b?c=d");
        assert_eq!(path("https://h.example/"), "/");
    }
}
