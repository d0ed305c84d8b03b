//! URLs domain by domain, at the owners of registered domains, in bounded memory.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::by_key::{KeyedRow, each_key};
use crate::reading::captures::Crawl;
use crate::reading::other_records::RedirectRecord;
use crate::shuffle::directory::TablePartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, DocId, HostId, Page};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_engine::{Net, Owners};
use webtwin_pages::public_suffix::domain_of;

/// URL with its domain: of a page, or of a permanent redirect. Ordered by the key of the domain,
/// then URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DomainRow {
    /// Hash of the name of the registered domain.
    pub domain: u64,
    /// Canonical URL.
    pub url: String,
    /// Content at the URL.
    pub what: UrlState,
}

/// Content at a URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UrlState {
    /// Page, with its trivial cluster; true if a crawler may skip it.
    Page(ClusterId, bool),
    /// A redirect to the URL with this doc id.
    Redirect(DocId),
}

/// Properties of a worker's pages.
pub struct WorkerPageFacts<'k> {
    /// Pages of the crawl.
    pub crawl: &'k Crawl,
    /// Trivial clusters of all pages.
    pub labels: &'k SetLabels<ClusterId>,
    /// Pages of this worker that may be skipped, ascending.
    pub pages_to_skip: &'k [Page],
    /// Permanent redirects within domains that this worker has read. May contain repetitions.
    pub redirects: &'k [RedirectRecord],
}

impl KeyedRow for DomainRow {
    type Key = u64;

    fn key(&self) -> u64 {
        self.domain
    }
}

/// Bytes of a row, and bytes for each byte of its URL, while the rules of its domain are learned.
/// Measured.
const ROW_BYTES: [u64; 2] = [250, 3];

/// Returns the bytes that one worker takes to learn the URL rules of a domain with the given number
/// of pages, whose URLs have `url_bytes` bytes together, if memory is limited.
pub fn bytes_of_domain(pages: u64, url_bytes: u64) -> u64 {
    let [a_row, a_byte] = ROW_BYTES;
    (a_row + a_byte * size_of::<DomainRow>() as u64) * pages + a_byte * url_bytes
}

/// Calls `visit` with the pages and redirects of one registered domain after the other, ascending
/// by the key of the domain, at the owner of the key.
///
/// # Errors
/// Returns any error of `visit`. Returns any error of the disk, on which captures may be, too, and
/// an error if the run has ended.
///
/// # Memory
/// Takes the memory of all URLs. If memory is limited, takes 4 bytes for each page, the rows of the
/// largest domain, and about the square root of the bytes of a worker's URLs, both in MiB.
pub fn each_domain(
    net: &mut Net<'_>,
    facts: &WorkerPageFacts<'_>,
    partitions: TablePartitions,
    visit: impl FnMut(Vec<DomainRow>) -> Result<()>,
) -> Result<()> {
    let crawl = facts.crawl;
    let mut pages_to_skip = facts.pages_to_skip.iter().peekable();
    let mut keys: HashMap<HostId, u64> = HashMap::new();
    let rows = crawl.pages.map(|row| {
        let avoid = pages_to_skip.next_if_eq(&&row.page).is_some();
        let key = || xxh3_64(domain_of(row.url()).as_bytes());
        let domain = *keys.entry(crawl.directory.hosts[row.page]).or_insert_with(key);
        let state = UrlState::Page(facts.labels.label(row.page), avoid);
        (partitions.owner(domain), DomainRow { domain, url: row.url().to_string(), what: state })
    });
    let rows = rows.chain(facts.redirects.iter().map(|row| {
        let domain = xxh3_64(domain_of(&row.url).as_bytes());
        Ok((partitions.owner(domain), DomainRow { domain, url: row.url.clone(), what: UrlState::Redirect(row.to) }))
    }));
    let bytes = || {
        let mut bytes = facts.redirects.iter().map(|row| weight(&row.url)).sum();
        crawl.pages.for_each(|row| bytes += weight(row.url()))?;
        Ok(bytes)
    };
    let part = |row: &DomainRow, parts: usize| partitions.range(row.domain, parts);
    each_key(net, "URLs by domain", bytes, rows, part, ROW_BYTES, visit)
}

/// Returns the bytes of a row with this URL.
fn weight(url: &str) -> u64 {
    (size_of::<DomainRow>() + url.len()) as u64
}
