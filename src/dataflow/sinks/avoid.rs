//! The avoid list: of every trivial cluster one page stays; what the others cost is what a crawler saves.
//!
//! Five exchanges: copies and placed pages to the owner of their trivial cluster, the verdicts by way of the kept page
//! (which knows its URL) to the page's owner, and all URLs to the owner of their host for the prefixes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::applications::keep::{PageCopy, Why, keeper, kept_collection, why};
use crate::applications::prefixes::{Prefix, Visited, cover};
use crate::clusters::collection::SimilarCluster;
use crate::dataflow::reading::captures::{Crawl, host};
use crate::engine::{HashOwners, Net, Owners};
use crate::error::Result;
use crate::ids::{ClusterId, DocId, Page};

/// Verdict on a page of a trivial cluster of two pages or more. Rows order by cluster, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verdict {
    /// Its trivial cluster.
    pub cluster: ClusterId,
    /// The page.
    pub page: Page,
    /// The page that stays.
    pub keep: Page,
    /// Why it may be skipped; `None` for the page that stays.
    pub why: Option<Why>,
}

/// A row of the `avoid` table, with its page's owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Avoid {
    /// The page to skip.
    pub page: Page,
    /// Doc id of the page that stays.
    pub keep_doc_id: DocId,
    /// Its URL.
    pub keep_url: String,
    /// Why the page may be skipped.
    pub why: Why,
}

/// A page of a reported collection, on its way to the owner of its trivial cluster.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Placed {
    cluster: ClusterId,
    page: Page,
    kept: u32,
}

/// Decides for every page that has copies. Verdicts lie, ascending, with the owner of their cluster's smallest page.
pub fn verdicts(
    net: &mut Net<'_>,
    crawl: &Crawl,
    labels: &[ClusterId],
    sizes: &[u32],
    from_elsewhere: &[u32],
    links_to_host: &[u32],
    similar_clusters: &[SimilarCluster],
) -> Result<Vec<Verdict>> {
    let directory = crawl.directory.clone();
    let rows = crawl.pages.iter().zip(from_elsewhere).filter_map(|((page, capture), &links_from_elsewhere)| {
        let (cluster, host) = (labels[*page as usize], crawl.directory.hosts[*page as usize]);
        (sizes[cluster] > 1).then_some(PageCopy {
            exact: capture.exact,
            cluster,
            page: *page,
            links_from_elsewhere,
            links_to_host: links_to_host[host],
            url_length: capture.url.chars().count() as u64,
        })
    });
    let mut copies = net.exchange_all("copies", rows, |copy| directory.owner(copy.cluster.smallest()))?;
    copies.sort_unstable_by_key(|copy| (copy.cluster, copy.page));

    let rows = similar_clusters.iter().flat_map(|similar| {
        let kept = kept_collection(similar, links_to_host);
        similar.collections.iter().enumerate().flat_map(move |(number, collection)| {
            let kept = u32::from(number == kept);
            collection.members.iter().map(move |&(cluster, page)| Placed { cluster, page, kept })
        })
    });
    let placed = net.exchange_all("placed pages", rows, |row: &Placed| directory.owner(row.cluster.smallest()))?;
    let placed: BTreeMap<Page, bool> = placed.iter().map(|row| (row.page, row.kept == 1)).collect();

    let placed = |page: Page| placed.get(&page).copied();
    let mut verdicts = Vec::with_capacity(copies.len());
    for copies in copies.chunk_by(|x, y| x.cluster == y.cluster) {
        let keep = keeper(copies, placed);
        verdicts.extend(copies.iter().map(|copy| Verdict {
            cluster: copy.cluster,
            page: copy.page,
            keep: keep.page,
            why: (copy.page != keep.page).then(|| why(copy, keep, placed)),
        }));
    }
    Ok(verdicts)
}

/// The `avoid` rows of this worker's pages, ascending by page.
pub fn rows(net: &mut Net<'_>, crawl: &Crawl, verdicts: &[Verdict]) -> Result<Vec<Avoid>> {
    let directory = crawl.directory.clone();
    let rows = verdicts
        .iter()
        .filter_map(|&Verdict { page, keep, why, .. }| Some((directory.owner(keep), (keep, page, why?))));
    let asked: Vec<(Page, Page, Why)> = net.exchange_rows("pages to skip", rows)?;
    let rows = asked.into_iter().map(|(keep, page, why)| {
        let kept = &crawl.page(keep).url;
        let row = Avoid { page, keep_doc_id: directory.doc_ids[keep as usize], keep_url: kept.clone(), why };
        (directory.owner(page), row)
    });
    let mut rows = net.exchange_rows("avoid", rows)?;
    rows.sort_unstable_by_key(|row| row.page);
    Ok(rows)
}

/// URL prefixes that cover the pages to skip and no other; all of them at worker 0, ascending, none elsewhere.
pub fn prefixes(net: &mut Net<'_>, crawl: &Crawl, avoid: &[Avoid]) -> Result<Vec<Prefix>> {
    let owners = HashOwners::new(net);
    let mut to_skip = avoid.iter().map(|row| row.page).peekable();
    let rows = crawl.pages.iter().map(|(page, capture)| {
        let avoid = to_skip.next_if_eq(page).is_some();
        let host = crawl.directory.hosts[*page as usize];
        let visited = Visited { url: capture.url.clone(), avoid, bytes: capture.body_bytes };
        (owners.owner(host), visited)
    });
    let mut visited = net.exchange_rows("URLs by host", rows)?;
    visited.sort_unstable_by(|x, y| (host(&x.url), &x.url).cmp(&(host(&y.url), &y.url)));
    let mut found = Vec::new();
    for pages in visited.chunk_by(|x, y| host(&x.url) == host(&y.url)) {
        // One host may be visited by http and https; a prefix speaks for one of them.
        let scheme = |page: &Visited| page.url.split_once("://").map(|(scheme, _)| scheme.len());
        for pages in pages.chunk_by(|x, y| scheme(x) == scheme(y)) {
            found.extend(cover(pages));
        }
    }
    let mut all = net.exchange_rows("prefixes", found.into_iter().map(|prefix| (0, prefix)))?;
    all.sort_unstable_by(|x, y| x.prefix.cmp(&y.prefix));
    Ok(all)
}
