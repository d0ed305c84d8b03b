//! URLs host by host, with the owners of hosts, in bounded memory.

use serde::{Deserialize, Serialize};

use super::by_key::{Keyed, each_key};
use super::prefix_roots::PrefixRoots;
use crate::reading::captures::Crawl;
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Page, splitmix64};
use webtwin_core::applications::prefixes::Visited;
use webtwin_engine::{HashOwners, Net, Owners};

/// A page on its way to the owner of its host. Orders by host, then as [`Visited`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct OnHost {
    host: HostId,
    page: Visited,
}

impl Keyed for OnHost {
    type Key = HostId;

    fn key(&self) -> HostId {
        self.host
    }
}

/// Bytes of a page, and for each byte of its URL, while the pages of its host are looked at: by the sizes of the rows, not
/// measured.
const A_ROW: [u64; 2] = [300, 3];

/// Calls `each` with the pages of one host after the other, ascending by URL, with the owner of the host; `to_skip` are those of this worker's
/// pages that may be skipped, ascending, and `roots` bound the prefixes over them.
///
/// # Errors
/// Those of `each`, and of the disk, which captures may be on, too; or when the run has ended.
///
/// # Memory
/// All URLs; or within a bound 4 bytes a page, and about the square root of the bytes of a worker's URLs in MiB.
pub fn each_host(
    net: &mut Net<'_>,
    crawl: &Crawl,
    to_skip: &[Page],
    roots: &PrefixRoots,
    mut each: impl FnMut(&[Visited]) -> Result<()>,
) -> Result<()> {
    let owners = HashOwners::new(net);
    let mut to_skip = to_skip.iter().peekable();
    let mut roots = roots.reader();
    let rows = crawl.pages.map(|row| {
        let avoid = to_skip.next_if_eq(&&row.page).is_some();
        let root = if avoid { roots.root(row.page, row.url())? } else { 0 };
        let host = crawl.directory.hosts[row.page];
        let page = Visited { url: row.url().to_string(), avoid, bytes: row.body_bytes, root };
        Ok((owners.owner(host), OnHost { host, page }))
    });
    let rows = rows.map(|row| row?);
    let bytes = || {
        let mut bytes = 0;
        crawl.pages.each(|row| bytes += weight(row.url()))?;
        Ok(bytes)
    };
    // Owners go by the low bits.
    let part = |row: &OnHost, parts: usize| ((splitmix64(row.host.into()) >> 32) % parts as u64) as usize;
    each_key(net, "URLs by host", bytes, rows, part, A_ROW, |pages| {
        let pages: Vec<Visited> = pages.into_iter().map(|row| row.page).collect();
        each(&pages)
    })
}

/// Bytes of a page with this URL.
fn weight(url: &str) -> u64 {
    (size_of::<OnHost>() + url.len()) as u64
}
