//! URLs host by host, at the owners of hosts, in bounded memory.

use serde::{Deserialize, Serialize};

use super::by_key::{KeyedRow, each_key};
use super::prefix_roots::PrefixRoots;
use crate::reading::captures::Crawl;
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Page, splitmix64};
use webtwin_core::applications::prefixes::CrawledPage;
use webtwin_engine::{HashOwners, Net, Owners};

/// Page in transit to the owner of its host. Ordered by host, then like [`CrawledPage`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct OnHost {
    host: HostId,
    page: CrawledPage,
}

impl KeyedRow for OnHost {
    type Key = HostId;

    fn key(&self) -> HostId {
        self.host
    }
}

/// Bytes of a page, and bytes for each byte of its URL, while the pages of its host are processed.
/// Derived from the sizes of the rows, not measured.
const ROW_BYTES: [u64; 2] = [160, 3];

/// Calls `visit` with the pages of one host after the other, ascending by URL, at the owner of the
/// host. `pages_to_skip` are the pages of this worker that may be skipped, ascending, and `roots`
/// bound the prefixes over them.
///
/// # Errors
/// Returns any error of `visit`. Returns any error of the disk, on which captures may be, too, and
/// an error if the run has ended.
///
/// # Memory
/// Takes the memory of all URLs. If memory is limited, takes 4 bytes for each page, and about the
/// square root of the bytes of a worker's URLs, both in MiB.
pub fn each_host(
    net: &mut Net<'_>,
    crawl: &Crawl,
    pages_to_skip: &[Page],
    roots: &PrefixRoots,
    mut visit: impl FnMut(&[CrawledPage]) -> Result<()>,
) -> Result<()> {
    let owners = HashOwners::new(net);
    let mut remaining_skips = pages_to_skip.iter().peekable();
    let mut roots = roots.reader();
    let rows = crawl.pages.map(|row| {
        let avoid = remaining_skips.next_if_eq(&&row.page).is_some();
        let root = if avoid { roots.root(row.page, row.url())? } else { 0 };
        let host = crawl.directory.hosts[row.page];
        let page = CrawledPage { url: row.url().to_string(), avoid, bytes: row.body_bytes, root };
        Ok((owners.owner(host), OnHost { host, page }))
    });
    let rows = rows.map(|row| row?);
    let bytes = || {
        let mut bytes = 0;
        crawl.pages.for_each(|row| bytes += weight(row.url()))?;
        Ok(bytes)
    };
    // Owners are chosen by the low bits of the hash, so parts use the high ones.
    let part = |row: &OnHost, parts: usize| ((splitmix64(row.host.into()) >> 32) % parts as u64) as usize;
    each_key(net, "URLs by host", bytes, rows, part, ROW_BYTES, |pages| {
        let pages: Vec<CrawledPage> = pages.into_iter().map(|row| row.page).collect();
        visit(&pages)
    })
}

/// Returns the bytes of a page with this URL.
fn weight(url: &str) -> u64 {
    (size_of::<OnHost>() + url.len()) as u64
}
