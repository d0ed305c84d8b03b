//! The avoid list: of every trivial cluster one page stays; what the others cost is what a crawler saves.
//!
//! Five exchanges: copies and placed pages to the owner of their trivial cluster, the verdicts by way of the kept page
//! (which knows its URL) to the page's owner, and all URLs to the owner of their host for the prefixes. Two more where
//! clusters vote for collections: placed pages before, and the votes. Then those of [`resemblance`] and
//! [`ways`](super::ways), which take pages off the list again.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::resemblance::{self, Resemblance};
use super::ways::{Ways, WaysThrough};
use crate::applications::exports::AvoidLists;
use crate::applications::heritrix::{SurtRules, surt_rules};
use crate::applications::keep::{Keeping, LostBy, PageCopy, Role, Visit, Votes, Why, keeper, kept_collection, why};
use crate::applications::never_skipped::never_skipped;
use crate::applications::prefixes::{Prefix, Visited, cover};
use crate::clusters::collection::SimilarCluster;
use crate::dataflow::reading::byte_lists::ByteLists;
use crate::dataflow::reading::capture_rows::CaptureRow;
use crate::dataflow::reading::captures::{Crawl, path};
use crate::dataflow::reading::lists::until_failure;
use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::memory_budget::MemoryBudget;
use crate::engine::{HashOwners, Net, Owners};
use crate::error::Result;
use crate::ids::{ClusterId, HostId, Page};
use crate::job::Keep;
use crate::pages::surt::surt_prefix_of;
use crate::pages::url::CanonicalUrl;
use crate::storage::spill::Disk;

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

/// A row of the `avoid` table, with its page's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Avoid {
    /// The page to skip.
    pub page: Page,
    /// The page that stays.
    pub keep: Page,
    /// Why the page may be skipped.
    pub why: Why,
    /// What it has less of than the page that stays.
    pub lost_by: LostBy,
    /// What it has in common with that page.
    pub resemblance: Resemblance,
    /// When that page was fetched.
    pub keep_time: i64,
    /// Number of its URL in [`AvoidTable::keep_urls`].
    pub keep_url: u32,
}

/// The `avoid` rows of a worker's pages.
#[derive(Debug, Default)]
pub struct AvoidTable {
    /// Ascending by page.
    pub rows: Vec<Avoid>,
    /// URLs of pages that stay.
    pub keep_urls: ByteLists,
}

/// Least resemblance of a copy; a page with less is another version.
const COPY: f64 = 0.9;

impl Avoid {
    /// The word in the column `avoid.kind`: `copy` for a page that has nearly all its text in common with the one that stays,
    /// else `version`.
    pub fn kind(&self) -> &'static str {
        if self.resemblance.share() >= COPY { "copy" } else { "version" }
    }

    /// The word in the column `avoid.keep_is`, for a page fetched at this time (0: unknown).
    pub fn keep_is(&self, fetch_time: i64) -> &'static str {
        match self.keep_time.cmp(&fetch_time) {
            _ if self.keep_time == 0 || fetch_time == 0 => "unknown",
            Ordering::Less => "older",
            Ordering::Equal => "as-old",
            Ordering::Greater => "newer",
        }
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
    let mut failed = None;
    let rows = until_failure(rows, &mut failed).flatten();
    let mut copies = net.exchange_all("copies", rows, |copy| crawl.directory.owner(copy.cluster.smallest()))?;
    failed.map_or(Ok(()), Err)?;
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

/// The `avoid` rows of this worker's pages. Where memory has a bound they come in rounds, and their URLs wait on `disk`.
///
/// # Errors
/// Those of the disk, which captures may be on, too; or when the run has ended.
pub fn rows(net: &mut Net<'_>, crawl: &Crawl, verdicts: &[Verdict], disk: Option<&Disk>) -> Result<AvoidTable> {
    let directory = crawl.directory.clone();
    let rows = verdicts.iter().filter_map(|row| match row.role {
        Role::Skip(why, lost_by) => {
            Some((directory.owner(row.keep), (row.keep, row.page, why, lost_by, row.resemblance)))
        }
        _ => None,
    });
    let mut asked: Vec<(Page, Page, Why, LostBy, Resemblance)> = net.exchange_rows("pages to skip", rows)?;
    asked.sort_unstable_by_key(|row| (row.0, row.1));
    let mut pages = crawl.reader();
    let rows = asked.into_iter().map(|(keep, page, why, lost_by, resemblance)| {
        let kept = pages.page(keep)?;
        let row = Avoid { page, keep, why, lost_by, resemblance, keep_time: kept.fetch_time, keep_url: 0 };
        Ok((directory.owner(page), (row, kept.url().to_string())))
    });
    let keep_urls = disk.map(ByteLists::on).transpose()?.unwrap_or_default();
    let (mut failed, mut table) = (None, AvoidTable { rows: Vec::new(), keep_urls });
    let take = |(row, url): (Avoid, String)| {
        let keep_url = table.keep_urls.len() as u32;
        table.rows.push(Avoid { keep_url, ..row });
        table.keep_urls.push(url.as_bytes())
    };
    let rows = until_failure(rows, &mut failed);
    match disk {
        None => net.exchange_rows("avoid", rows)?.into_iter().try_for_each(take)?,
        Some(_) => net.exchange_in_rounds("avoid", rows, (ROWS_AT_ONCE, |_: &_| 1), take)?,
    }
    failed.map_or(Ok(()), Err)?;
    table.rows.sort_unstable_by_key(|row| row.page);
    Ok(table)
}

/// Pages whose URLs a worker sends in a round where memory has a bound.
const ROWS_AT_ONCE: u64 = 1 << 16;

/// What covers the pages to skip and no other, by URL and for Heritrix; all of it at worker 0, ascending, nothing elsewhere. Hosts
/// come all at once, or where memory has a bound, in so many rounds that a worker has some 65,536 pages of theirs.
///
/// # Errors
/// Those of the disk that captures may be on; or when the run has ended.
pub fn lists(net: &mut Net<'_>, crawl: &Crawl, avoid: &[Avoid], memory_is_bounded: bool) -> Result<AvoidLists> {
    let pages = crawl.directory.len() as u64 / net.peers() as u64;
    let rounds = if memory_is_bounded { pages.div_ceil(ROWS_AT_ONCE).max(1) } else { 1 };
    let mut found: Vec<(Vec<Prefix>, SurtRules)> = Vec::new();
    for round in 0..rounds {
        let mut visited = visited(net, crawl, avoid, |host| u64::from(host) % rounds == round)?;
        visited.sort_unstable();
        let (hosts, visited): (Vec<HostId>, Vec<Visited>) = visited.into_iter().unzip();
        let mut rest = &visited[..];
        for of_host in hosts.chunk_by(|x, y| x == y) {
            let pages;
            (pages, rest) = rest.split_at(of_host.len());
            // One host may be visited by http and https; a prefix speaks for one of them.
            let scheme = |page: &Visited| page.url.split_once("://").map(|(scheme, _)| scheme.len());
            let prefixes: Vec<Prefix> = pages.chunk_by(|x, y| scheme(x) == scheme(y)).flat_map(cover).collect();
            if !prefixes.is_empty() {
                let rules = surt_rules(pages, &prefixes, surt_prefix_of);
                found.push((prefixes, rules));
            }
        }
    }
    let mut all = net.exchange_rows("avoid lists", found.into_iter().map(|of_host| (0, of_host)))?;
    all.sort_unstable_by(|x, y| x.0[0].prefix.cmp(&y.0[0].prefix));
    let (prefixes, surt_rules): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let mut prefixes: Vec<Prefix> = prefixes.into_iter().flatten().collect();
    prefixes.sort_unstable_by(|x, y| x.prefix.cmp(&y.prefix));
    Ok(AvoidLists { prefixes, surt_rules })
}

/// The pages of some hosts, with the owners of these.
fn visited(
    net: &mut Net<'_>,
    crawl: &Crawl,
    avoid: &[Avoid],
    is_wanted: impl Fn(HostId) -> bool,
) -> Result<Vec<(HostId, Visited)>> {
    let owners = HashOwners::new(net);
    let mut to_skip = avoid.iter().map(|row| row.page).peekable();
    let rows = crawl.pages.map(|row| {
        let avoid = to_skip.next_if_eq(&row.page).is_some();
        let host = crawl.directory.hosts[row.page];
        let visited = || Visited { url: row.url().to_string(), avoid, bytes: row.body_bytes };
        is_wanted(host).then(|| (owners.owner(host), (host, visited())))
    });
    let mut failed = None;
    let rows = until_failure(rows, &mut failed).flatten();
    let visited = net.exchange_rows("URLs by host", rows)?;
    failed.map_or(Ok(visited), Err)
}
