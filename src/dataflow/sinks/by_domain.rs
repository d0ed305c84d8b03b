//! URLs domain by domain, with the owners of registered domains, in bounded memory: in partitions on disk where memory
//! has a bound.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::avoid_table::BYTES_AT_ONCE;
use crate::reading::byte_lists::ByteLists;
use crate::reading::captures::Crawl;
use crate::reading::lists::until_failure;
use crate::reading::worker_pages::Redirect;
use crate::shuffle::directory::Partitions;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, DocId, HostId, Page};
use webtwin_engine::{Net, Owners};
use webtwin_pages::public_suffix::domain_of;
use webtwin_storage::spill::TAPE_BLOCK_BYTES;
use webtwin_storage::spill_file::Disk;

/// A page with its domain, or a URL that redirects to one for good. Orders by the key of the domain, then URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OfDomain {
    /// Hash of the name of its registered domain.
    pub domain: u64,
    /// Canonical URL.
    pub url: String,
    /// What there is at the URL.
    pub what: What,
}

/// What there is at a URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum What {
    /// A page, by its trivial cluster and whether a crawler may skip it.
    Page(ClusterId, bool),
    /// A redirect to the URL with this doc id.
    Redirect(DocId),
}

/// What is known of a worker's pages.
pub struct Known<'k> {
    /// The pages.
    pub crawl: &'k Crawl,
    /// Trivial clusters of all pages.
    pub labels: &'k [ClusterId],
    /// Those of this worker's pages that may be skipped, ascending.
    pub to_skip: &'k [Page],
    /// Redirects within domains that hold for good, as this worker has read them: some more than once.
    pub redirects: &'k [Redirect],
}

/// Calls `each` with the pages and redirects of one registered domain after the other, ascending by its key, with the owner of the
/// key. One exchange, or with a `disk` as many as it takes to send some megabytes at a time.
///
/// # Errors
/// Those of `each`, and of the disk, which captures may be on, too; or when the run has ended.
///
/// # Memory
/// All URLs; or with a disk 4 bytes a page, one partition, and as much again for the ends of all partitions: about the
/// square root of the bytes of a worker's URLs in MiB. A domain is in one partition.
pub fn each_domain(
    net: &mut Net<'_>,
    known: &Known<'_>,
    partitions: Partitions,
    disk: Option<&Disk>,
    mut each: impl FnMut(&[OfDomain]) -> Result<()>,
) -> Result<()> {
    let crawl = known.crawl;
    let mut to_skip = known.to_skip.iter().peekable();
    let mut keys: HashMap<HostId, u64> = HashMap::new();
    let rows = crawl.pages.map(|row| {
        let avoid = to_skip.next_if_eq(&&row.page).is_some();
        let key = || xxh3_64(domain_of(row.url()).as_bytes());
        let domain = *keys.entry(crawl.directory.hosts[row.page]).or_insert_with(key);
        let what = What::Page(known.labels[row.page], avoid);
        (partitions.owner(domain), OfDomain { domain, url: row.url().to_string(), what })
    });
    let rows = rows.chain(known.redirects.iter().map(|row| {
        let domain = xxh3_64(domain_of(&row.url).as_bytes());
        Ok((partitions.owner(domain), OfDomain { domain, url: row.url.clone(), what: What::Redirect(row.to) }))
    }));
    let Some(disk) = disk else {
        let pages = until_failure(rows, |rows| net.exchange_rows("URLs by domain", rows))?;
        return domain_by_domain(pages, each);
    };
    let weight = |url: &str| (size_of::<OfDomain>() + url.len()) as u64;
    let mut bytes = 0;
    crawl.pages.each(|row| bytes += weight(row.url()))?;
    bytes += known.redirects.iter().map(|row| weight(&row.url)).sum::<u64>();
    let [bytes] = net.sum("bytes of URLs", [bytes])?;
    let count = (bytes / net.peers() as u64 / TAPE_BLOCK_BYTES as u64).isqrt() as usize + 1;
    let mut stretches = (0..count).map(|_| ByteLists::on(disk)).collect::<Result<Vec<_>>>()?;
    let take = |page: OfDomain| stretches[partitions.stretch(page.domain, count)].push_row(&page);
    let most = (BYTES_AT_ONCE, |page: &OfDomain| weight(&page.url));
    until_failure(rows, |rows| net.exchange_in_rounds("URLs by domain", rows, most, take))?;
    for stretch in stretches {
        net.check()?;
        let mut reader = stretch.reader();
        let pages = (0..stretch.len()).map(|number| reader.row(number)).collect::<Result<Vec<_>>>()?;
        domain_by_domain(pages, &mut each)?;
    }
    Ok(())
}

fn domain_by_domain(mut pages: Vec<OfDomain>, each: impl FnMut(&[OfDomain]) -> Result<()>) -> Result<()> {
    pages.sort_unstable();
    pages.dedup();
    pages.chunk_by(|x, y| x.domain == y.domain).try_for_each(each)
}
