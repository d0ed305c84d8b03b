//! The avoid list: of every trivial cluster one page stays; what the others cost is what a crawler saves.
//!
//! Five exchanges: copies and placed pages to the owner of their trivial cluster, the verdicts by way of the kept page
//! (which knows its URL) to the page's owner, and all URLs to the owner of their host for the prefixes. Two more where
//! clusters vote for collections: placed pages before, and the votes.

use serde::{Deserialize, Serialize};

use crate::applications::keep::{Keeping, LostBy, PageCopy, Why, keeper, kept_collection, why};
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
    /// Why it may be skipped, and what it has less of; `None` for the page that stays.
    pub why: Option<(Why, LostBy)>,
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
    /// What it has less of than the page that stays.
    pub lost_by: LostBy,
}

/// A page of a reported collection, on its way to the owner of its trivial cluster.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Placed {
    cluster: ClusterId,
    page: Page,
    kept: u32,
    /// Where its similar cluster is: a worker, and a place in its list.
    worker: u32,
    similar: u32,
    /// Place of its collection there.
    collection: u32,
}

/// What is known of the similar clusters when copies are judged.
pub struct Judged<'f> {
    /// The similar clusters of this worker.
    pub similar_clusters: &'f [SimilarCluster],
    /// For each of them, the place of the collection that is kept.
    pub kept: Vec<usize>,
}

impl Judged<'_> {
    /// Sends pages in collections to the owners of their trivial clusters; they come ascending by page.
    fn placed(&self, net: &mut Net<'_>, crawl: &Crawl) -> Result<Vec<Placed>> {
        let worker = net.index() as u32;
        let rows = self.similar_clusters.iter().zip(0..).flat_map(|(cluster, similar)| {
            let kept_one = self.kept.get(similar as usize);
            cluster.collections.iter().zip(0..).flat_map(move |(members, collection)| {
                let kept = u32::from(kept_one == Some(&(collection as usize)));
                let row = move |&(cluster, page)| Placed { cluster, page, kept, worker, similar, collection };
                members.members.iter().map(row)
            })
        });
        let mut placed =
            net.exchange_all("placed pages", rows, |row: &Placed| crawl.directory.owner(row.cluster.smallest()))?;
        placed.sort_unstable_by_key(|row| row.page);
        Ok(placed)
    }
}

/// The row of a page among those that are placed.
fn find(placed: &[Placed], page: Page) -> Option<&Placed> {
    placed.binary_search_by_key(&page, |row| row.page).ok().map(|at| &placed[at])
}

/// The pages of trivial clusters of two pages or more, ascending, with the owner of their cluster's smallest page.
pub fn copies(
    net: &mut Net<'_>,
    crawl: &Crawl,
    (labels, sizes): (&[ClusterId], &[u32]),
    from_elsewhere: &[u32],
    links_to_host: &[u32],
    keeping: &Keeping,
) -> Result<Vec<PageCopy>> {
    let rows = crawl.pages.iter().zip(from_elsewhere).filter_map(|((page, capture), &links_from_elsewhere)| {
        let (cluster, host) = (labels[*page as usize], crawl.directory.hosts[*page as usize]);
        (sizes[cluster] > 1).then(|| PageCopy {
            exact: capture.exact,
            merit: keeping.merit(capture.fetch_time, capture.text_bytes, &capture.url, *page),
            cluster,
            page: *page,
            preference: keeping.preference(&capture.url),
            links_from_elsewhere,
            links_to_host: links_to_host[host],
            url_length: capture.url.chars().count() as u32,
        })
    });
    let mut copies = net.exchange_all("copies", rows, |copy| crawl.directory.owner(copy.cluster.smallest()))?;
    copies.sort_unstable_by_key(|copy| (copy.cluster, copy.page));
    Ok(copies)
}

/// Decides which collection of each similar cluster is kept. `copies` is what [`copies`] gave.
pub fn judge<'f>(
    net: &mut Net<'_>,
    crawl: &Crawl,
    copies: &[PageCopy],
    similar_clusters: &'f [SimilarCluster],
    links_to_host: &[u32],
    keeping: &Keeping,
) -> Result<Judged<'f>> {
    let mut votes: Vec<Vec<u32>> = vec![Vec::new(); similar_clusters.len()];
    let mut judged = Judged { similar_clusters, kept: Vec::new() };
    if keeping.votes() {
        let placed = judged.placed(net, crawl)?;
        let rows = copies.chunk_by(|x, y| x.cluster == y.cluster).filter_map(|copies| {
            let of_collections = copies.iter().filter(|copy| find(&placed, copy.page).is_some());
            find(&placed, keeper(of_collections, |_| None)?.page)
        });
        let rows = rows.map(|row| [row.worker, row.similar, row.collection]);
        for [_, similar, collection] in net.exchange_all("votes", rows, |row| row[0] as usize)? {
            let votes = &mut votes[similar as usize];
            votes.resize(similar_clusters[similar as usize].collections.len(), 0);
            votes[collection as usize] += 1;
        }
    }
    let kept =
        similar_clusters.iter().zip(&votes).map(|(similar, votes)| kept_collection(similar, votes, links_to_host));
    judged.kept = kept.collect();
    Ok(judged)
}

/// Decides for every page that has copies. Verdicts lie, ascending, with the owner of their cluster's smallest page.
pub fn verdicts(
    net: &mut Net<'_>,
    crawl: &Crawl,
    copies: &[PageCopy],
    judged: &Judged<'_>,
    keeping: &Keeping,
) -> Result<Vec<Verdict>> {
    let placed = judged.placed(net, crawl)?;
    let placed = |page: Page| find(&placed, page).map(|row| row.kept == 1);
    let mut verdicts = Vec::with_capacity(copies.len());
    for copies in copies.chunk_by(|x, y| x.cluster == y.cluster) {
        let Some(keep) = keeper(copies, placed) else { continue };
        verdicts.extend(copies.iter().map(|copy| Verdict {
            cluster: copy.cluster,
            page: copy.page,
            keep: keep.page,
            why: (copy.page != keep.page).then(|| (why(copy, keep, placed), keeping.lost_by(copy, keep, placed))),
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
    let asked: Vec<(Page, Page, (Why, LostBy))> = net.exchange_rows("pages to skip", rows)?;
    let rows = asked.into_iter().map(|(keep, page, (why, lost_by))| {
        let kept = &crawl.page(keep).url;
        let row = Avoid { page, keep_doc_id: directory.doc_ids[keep as usize], keep_url: kept.clone(), why, lost_by };
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
