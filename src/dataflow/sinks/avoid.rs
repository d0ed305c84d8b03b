//! The avoid list: of every trivial cluster one page stays; what the others cost is what a crawler saves.
//!
//! Two exchanges: copies and placed pages to the owner of their trivial cluster. Two more where clusters vote for collections:
//! placed pages before, and the votes. Then those of [`resemblance`] and [`ways`](super::ways), which take pages off the list
//! again, and of [`avoid_table`](super::avoid_table), which tells of it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::resemblance::{self, Resemblance};
use super::ways::{Ways, WaysThrough};
use crate::applications::keep::{Keeping, PageCopy, Role, Visit, Votes, keeper, kept_collection, why};
use crate::applications::never_skipped::never_skipped;
use crate::clusters::collection::SimilarCluster;
use crate::dataflow::reading::capture_rows::CaptureRow;
use crate::dataflow::reading::captures::{Crawl, path};
use crate::dataflow::reading::lists::until_failure;
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::memory_budget::MemoryBudget;
use crate::engine::{Net, Owners};
use crate::error::Result;
use crate::ids::{ClusterId, Page};
use crate::job::Keep;
use crate::pages::url::CanonicalUrl;

/// Verdict on a page of a trivial cluster of two pages or more. Rows order by cluster, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Verdict {
    /// Its trivial cluster.
    pub cluster: ClusterId,
    /// The page.
    pub page: Page,
    /// The page that stays.
    pub keep: Page,
    /// What becomes of it.
    pub role: Role,
    /// What it has in common with the page that stays.
    pub resemblance: Resemblance,
    /// Whether the earlier result kept it.
    pub kept_before: bool,
    /// Whether it is pinned.
    pub pinned: bool,
}

impl Verdict {
    /// Whether a crawler may skip the page.
    fn skips(&self) -> bool {
        matches!(self.role, Role::Skip(..))
    }
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

/// The canonical forms of the URLs that a crawler starts with. What is no URL is passed over.
pub fn seeds(keep: &Keep) -> HashSet<String> {
    keep.seeds.iter().filter_map(|seed| Some(CanonicalUrl::parse(seed).ok()?.to_string())).collect()
}

/// The pages of trivial clusters of two pages or more, ascending, with the owner of their cluster's smallest page.
/// `kept_before` are this worker's pages that the earlier result kept, and `pinned` the pages that are pinned; both ascend.
pub fn copies(
    net: &mut Net<'_>,
    crawl: &Crawl,
    (labels, sizes): (&[ClusterId], &[u32]),
    (from_elsewhere, depths): (&[u32], &[u32]),
    links_to_host: &[u32],
    (keeping, kept_before, pinned): (&Keeping, &[Page], &[Page]),
    seeds: &HashSet<String>,
) -> Result<Vec<PageCopy>> {
    let mut place = 0..;
    let rows = crawl.pages.map(|row| {
        let (page, place) = (row.page, place.next().expect("without an end"));
        let (cluster, host) = (labels[page], crawl.directory.hosts[page]);
        let copy = |url: &str| PageCopy {
            exact: row.exact,
            merit: keeping.merit(row.fetch_time, row.text_bytes, url, page),
            cluster,
            page,
            preference: keeping.preference(url),
            links_from_elsewhere: from_elsewhere[place],
            links_to_host: links_to_host[host],
            depth: depths[place],
            url_length: url.chars().count() as u32,
            must_visit: u16::from(seeds.contains(url) || must_visit(&row)),
            kept_before: u8::from(kept_before.binary_search(&page).is_ok()),
            pinned: u8::from(pinned.binary_search(&page).is_ok()),
        };
        (sizes[cluster] > 1).then(|| copy(row.url()))
    });
    let owner = |copy: &PageCopy| crawl.directory.owner(copy.cluster.smallest());
    let mut copies = until_failure(rows, |rows| net.exchange_all("copies", rows.flatten(), owner))?;
    copies.sort_unstable_by_key(|copy| (copy.cluster, copy.page));
    Ok(copies)
}

/// Whether a page is one that no crawler may skip.
fn must_visit(page: &CaptureRow<'_>) -> bool {
    never_skipped(path(page.url()).split('?').next().unwrap_or_default(), page.mime())
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
    let mut votes: Vec<Vec<Votes>> = vec![Vec::new(); similar_clusters.len()];
    let mut judged = Judged { similar_clusters, kept: Vec::new() };
    if keeping.has_votes() {
        let placed = judged.placed(net, crawl)?;
        let rows = copies.chunk_by(|x, y| x.cluster == y.cluster).filter_map(|copies| {
            let of_collections = copies.iter().filter(|copy| find(&placed, copy.page).is_some());
            let winner = keeper(of_collections, |_| None)?;
            let row = find(&placed, winner.page)?;
            let known = [winner.pinned, winner.kept_before].map(u32::from);
            let vote = [row.worker, row.similar, row.collection, known[0], known[1]];
            keeping.votes(winner).then_some(vote)
        });
        for [_, similar, collection, pinned, remembered] in net.exchange_all("votes", rows, |row| row[0] as usize)? {
            let votes = &mut votes[similar as usize];
            votes.resize(similar_clusters[similar as usize].collections.len(), Votes::default());
            votes[collection as usize].pinned += pinned;
            votes[collection as usize].remembered += remembered;
            votes[collection as usize].all += 1;
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
    let collection_stays = |page: Page| find(&placed, page).map(|row| row.kept == 1);
    let host = |page: Page| crawl.directory.hosts[page];
    let mut verdicts = Vec::with_capacity(copies.len());
    for copies in copies.chunk_by(|x, y| x.cluster == y.cluster) {
        // A page with the same text on the same host, in no collection itself, is as good: of index.html and manual.html the way
        // in stays.
        let stays = copies.iter().find(|copy| collection_stays(copy.page) == Some(true));
        let stands_in = |page: Page| {
            let copy = || &copies[copies.partition_point(|copy| copy.page < page)];
            stays.is_some_and(|stays| host(page) == host(stays.page) && copy().exact == stays.exact)
        };
        let placed = |page: Page| collection_stays(page).or_else(|| stands_in(page).then_some(true));
        let Some(keep) = keeper(copies, placed) else { continue };
        let role = |copy: &PageCopy| match copy {
            copy if copy.page == keep.page => Role::Keep,
            PageCopy { must_visit: 1, .. } => Role::Visit(Visit::Must),
            copy => Role::Skip(why(copy, keep, placed), keeping.lost_by(copy, keep, placed)),
        };
        verdicts.extend(copies.iter().map(|copy| Verdict {
            cluster: copy.cluster,
            page: copy.page,
            keep: keep.page,
            role: role(copy),
            resemblance: if copy.exact == keep.exact { Resemblance::WHOLE } else { Resemblance::default() },
            kept_before: copy.kept_before == 1,
            pinned: copy.pinned == 1,
        }));
    }
    Ok(verdicts)
}

/// Fills in how alike pages to skip are to those that stay, and lets those stay that are less alike than `least`. Takes the
/// chunks from the shelf.
///
/// # Errors
/// As [`resemblance::with_kept`].
pub fn compare(
    net: &mut Net<'_>,
    crawl: &Crawl,
    shelf: &mut WorkerPages,
    labels: &[ClusterId],
    verdicts: &mut [Verdict],
    least: f64,
    room: &MemoryBudget,
) -> Result<()> {
    let unlike = verdicts.iter().filter(|row| row.skips() && row.resemblance != Resemblance::WHOLE);
    let pairs = unlike.map(|row| [row.page, row.keep]).collect();
    let directory = &crawl.directory;
    let asks = |page: Page| directory.owner(labels[page].smallest());
    let found = resemblance::with_kept(net, shelf, directory.len(), pairs, asks, room)?;
    for (page, resemblance) in found {
        find_verdict(verdicts, labels, page).resemblance = resemblance;
    }
    for verdict in verdicts.iter_mut().filter(|row| row.skips() && row.resemblance.share() < least) {
        verdict.role = Role::Visit(Visit::Unlike);
    }
    Ok(())
}

/// Lets pages stay that others are reached by way of.
///
/// # Errors
/// Only when the run has ended.
pub fn clear_ways(
    net: &mut Net<'_>,
    crawl: &Crawl,
    labels: &[ClusterId],
    verdicts: &mut [Verdict],
    through: WaysThrough,
) -> Result<Ways> {
    let skip = verdicts.iter().filter(|row| row.skips()).map(|row| row.page).collect();
    let (visit, ways) = through.clear(net, crawl, skip)?;
    let owner = |page: &Page| crawl.directory.owner(labels[*page].smallest());
    for page in net.exchange_all("pages on the way", visit, owner)? {
        find_verdict(verdicts, labels, page).role = Role::Visit(Visit::Way);
    }
    Ok(ways)
}

/// The verdict on a page among those of this worker, which ascend.
fn find_verdict<'v>(verdicts: &'v mut [Verdict], labels: &[ClusterId], page: Page) -> &'v mut Verdict {
    let at = verdicts.partition_point(|row| (row.cluster, row.page) < (labels[page], page));
    &mut verdicts[at]
}
