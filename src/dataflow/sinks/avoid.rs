//! The avoid list: one page of every trivial cluster is kept, and the bytes of the others are what
//! a crawler saves.
//!
//! Takes two exchanges: copies and placed pages are sent to the owner of their trivial cluster.
//! Takes two more if clusters vote for collections: placed pages are sent before, and the votes.
//! Further exchanges are those of [`substitutes`](super::substitutes) and [`reachability`](super::reachability),
//! which remove pages from the list, and of [`avoid_table`](super::avoid_table), which writes it.
//!
//! # Memory
//! Takes 48 bytes for each page that has copies. In addition takes 44 for each of them and 24 for
//! each page of a reported collection, or the budget of the step if it is smaller.

use std::collections::HashSet;

use bytemuck::Pod;
use itertools::Itertools;

use super::reachability::{Reachability, ReachabilityCounts};
use super::verdict::PageVerdict;
use crate::clusters::trivial::TrivialClusters;
use crate::reading::capture_rows::CaptureRow;
use crate::reading::captures::{Crawl, path};
use crate::shuffle::directory::Directory;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, HostId, Page};
use webtwin_core::applications::keep::{
    CollectionVotes, CopyRole, Criterion, Keeping, PageCopy, SkipReason, VisitReason, keeper, kept_collection,
    skip_reason, sort_best_first,
};
use webtwin_core::applications::never_skipped::never_skipped;
use webtwin_core::clusters::collection::SimilarCluster;
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::text::language::Language;
use webtwin_core::text::titles::TitleWords;
use webtwin_engine::{Net, Owners, TryIntoRow};
use webtwin_job::KeepSettings;
use webtwin_pages::url::CanonicalUrl;
use webtwin_spill::{Partitions, SpillColumn, partition_bits};

/// Page of a reported collection, in transit to the owner of its trivial cluster.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct PlacedMember {
    cluster: ClusterId,
    page: Page,
    is_kept: u32,
    /// Place of its similar cluster: a worker, and an index in the worker's list.
    worker: u32,
    similar: u32,
    /// Index of its collection in the similar cluster.
    collection: u32,
}

/// Partitions of rows by trivial cluster, at the owners of the clusters. Each partition has larger
/// cluster ids than the previous one.
struct Shares<'a> {
    directory: &'a Directory,
    /// Number of partitions, as a power of two.
    bits: u32,
    /// Number of pages of an owner that may be the smallest pages of the clusters of a partition.
    range: usize,
}

impl Shares<'_> {
    /// Sends rows to the owners of their clusters. Takes one round.
    fn partitioned<T: Pod + Send>(
        &self,
        net: &mut Net<'_>,
        name: &str,
        rows: impl IntoIterator<Item: TryIntoRow<T>>,
        cluster: impl Fn(&T) -> ClusterId,
    ) -> Result<Partitions<T>> {
        // Rows of two kinds share the memory.
        let mut shares = Partitions::new(1 << self.bits, &net.memory.for_partitions(2, self.bits));
        let share = |row: &T| self.directory.place(cluster(row).smallest()) / self.range;
        net.exchange_into(
            name,
            rows,
            |row| self.directory.owner(cluster(row).smallest()),
            |rows| rows.iter().try_for_each(|row| shares.push(share(row), *row)),
        )?;
        Ok(shares)
    }
}

/// Pages of trivial clusters of two or more pages, in partitions.
pub struct CopyShares<'a> {
    shares: Shares<'a>,
    rows: Partitions<PageCopy>,
}

impl CopyShares<'_> {
    /// Reads a partition, ascending by cluster and page, and keeps it.
    fn read(&self, share: usize, scratch: &mut Vec<PageCopy>, into: &mut Vec<PageCopy>) -> Result<()> {
        into.clear();
        self.rows.each_piece(share, scratch, |rows| into.extend_from_slice(rows))?;
        into.sort_unstable_by_key(|copy| (copy.cluster, copy.page));
        Ok(())
    }

    /// Reads and removes a partition, ascending by cluster and page.
    fn take(&mut self, share: usize, into: &mut Vec<PageCopy>) -> Result<()> {
        self.rows.take(share, into)?;
        into.sort_unstable_by_key(|copy| (copy.cluster, copy.page));
        Ok(())
    }
}

/// Similar clusters with the collections that are kept.
pub struct JudgedClusters<'f> {
    /// Similar clusters of this worker.
    pub similar_clusters: &'f [SimilarCluster],
    /// Index of the collection that is kept, for each of these clusters.
    pub kept_collections: Vec<usize>,
}

impl JudgedClusters<'_> {
    /// Sends pages in collections to the owners of their trivial clusters, in the same partitions
    /// as the copies.
    fn members(&self, net: &mut Net<'_>, copies: &CopyShares<'_>) -> Result<Partitions<PlacedMember>> {
        let worker = net.index() as u32;
        let rows = self.similar_clusters.iter().zip(0..).flat_map(|(cluster, similar)| {
            let kept_one = self.kept_collections.get(similar as usize);
            cluster.collections.iter().zip(0..).flat_map(move |(members, collection)| {
                let is_kept = u32::from(kept_one == Some(&(collection as usize)));
                let row = move |&(cluster, page)| PlacedMember { cluster, page, is_kept, worker, similar, collection };
                members.members.iter().map(row)
            })
        });
        copies.shares.partitioned(net, "placed pages", rows, |row| row.cluster)
    }
}

/// Reads and removes the placed pages of a partition, ascending by page.
fn take_placed(members: &mut Partitions<PlacedMember>, share: usize, into: &mut Vec<PlacedMember>) -> Result<()> {
    members.take(share, into)?;
    into.sort_unstable_by_key(|row| row.page);
    Ok(())
}

/// Returns the row of a page among the placed pages.
fn find(members: &[PlacedMember], page: Page) -> Option<&PlacedMember> {
    members.binary_search_by_key(&page, |row| row.page).ok().map(|at| &members[at])
}

/// Returns the canonical forms of the URLs that a crawler starts with. Invalid URLs are ignored.
pub fn seeds(keep: &KeepSettings) -> HashSet<String> {
    keep.seeds.iter().filter_map(|seed| Some(CanonicalUrl::parse(seed).ok()?.to_string())).collect()
}

/// Link properties of this worker's pages, which are used to choose among copies.
pub struct PageLinks<'a> {
    /// Number of links from other hosts to each page.
    pub incoming_links: &'a SpillColumn<u32>,
    /// Number of links from the root of the host, or from a seed on the host, to each page.
    pub depths: &'a [u32],
    /// Number of links from other hosts to every host.
    pub links_to_host: &'a [u32],
}

/// Pages that were selected before the choice among copies.
pub struct ChosenPages<'a> {
    /// Pages of this worker that the earlier result kept, ascending.
    pub previously_kept: &'a [Page],
    /// Pinned pages, ascending.
    pub pinned_pages: &'a [Page],
    /// Pages that other pages rightly declare canonical.
    pub originals: &'a PageSet,
    /// URLs that a crawler starts with.
    pub seeds: &'a HashSet<String>,
    /// Number of the first input of earlier crawls. Pages of these inputs are preferred to others,
    /// and are never skipped.
    pub first_earlier_source: u32,
}

/// Collects the pages of trivial clusters of two or more pages.
pub fn copies<'a>(
    net: &mut Net<'_>,
    crawl: &'a Crawl,
    TrivialClusters { labels, sizes }: &TrivialClusters,
    keeping: &Keeping,
    &PageLinks { incoming_links, depths, links_to_host }: &PageLinks<'_>,
    &ChosenPages { previously_kept, pinned_pages, originals, seeds, first_earlier_source }: &ChosenPages<'_>,
) -> Result<CopyShares<'a>> {
    let mut linked = incoming_links.rows().zip(depths);
    let rows = crawl.pages.map(|row| {
        let (page, (link_count, &depth)) = (row.page, linked.next().expect("all pages have both"));
        let links_from_elsewhere = link_count?;
        let (cluster, host) = (labels.label(page), crawl.directory.hosts[page]);
        let is_earlier = row.source >= first_earlier_source;
        let copy = |url: &str| PageCopy {
            exact: row.exact,
            title: TitleWords::from_title(row.title()),
            merit: keeping.merit(row.fetch_time, row.text_bytes, url, page),
            cluster,
            page,
            preference: keeping.preference(url),
            links_from_elsewhere,
            links_to_host: links_to_host[host],
            depth,
            url_length: url.chars().count().min(u16::MAX.into()) as u16,
            is_original: u16::from(originals.contains(page)),
            must_visit: u8::from(is_earlier || seeds.contains(url) || must_visit(&row)),
            language: row.language().number(),
            kept_before: u8::from(is_earlier || previously_kept.binary_search(&page).is_ok()),
            pinned: u8::from(pinned_pages.binary_search(&page).is_ok()),
        };
        Ok((sizes.size(cluster) > 1).then(|| copy(row.url())))
    });
    let rows = rows.map(|row| row?);
    let directory = &*crawl.directory;
    let owned = directory.owned(net.index()).map(|page| u64::from(sizes.size(ClusterId::from_smallest(page))));
    let bits = partition_bits::<PageCopy>(owned.filter(|&pages| pages > 1).sum());
    let shares = Shares { directory, bits, range: (crawl.pages.len() >> bits) + 1 };
    let rows = shares.partitioned(net, "copies", rows.flatten_ok(), |copy| copy.cluster)?;
    Ok(CopyShares { shares, rows })
}

/// Returns true if no crawler may skip the page.
fn must_visit(page: &CaptureRow<'_>) -> bool {
    never_skipped(path(page.url()).split('?').next().unwrap_or_default(), page.mime())
}

/// Decides which collection of each similar cluster is kept.
pub fn judge<'f>(
    net: &mut Net<'_>,
    copies: &CopyShares<'_>,
    similar_clusters: &'f [SimilarCluster],
    links_to_host: &[u32],
    keeping: &Keeping,
) -> Result<JudgedClusters<'f>> {
    let mut votes: Vec<Vec<CollectionVotes>> = vec![Vec::new(); similar_clusters.len()];
    let mut judged_clusters = JudgedClusters { similar_clusters, kept_collections: Vec::new() };
    if keeping.has_votes() {
        let mut member_partitions = judged_clusters.members(net, copies)?;
        let (mut share, mut scratch, mut scratch_rows, mut members) = (0, Vec::new(), Vec::new(), Vec::new());
        let source = |send: &mut dyn FnMut([u32; 5])| {
            if share == 1 << copies.shares.bits {
                return Ok(false);
            }
            copies.read(share, &mut scratch, &mut scratch_rows)?;
            take_placed(&mut member_partitions, share, &mut members)?;
            share += 1;
            let clusters = scratch_rows.chunk_by(|x, y| x.cluster == y.cluster);
            clusters.filter_map(|copies| vote(copies, &members, keeping)).for_each(send);
            Ok(true)
        };
        net.exchange_from(
            "votes",
            source,
            |row| row[0] as usize,
            |rows: &[[u32; 5]]| {
                for &[_, similar, collection, pin_votes, remembered] in rows {
                    let votes = &mut votes[similar as usize];
                    votes.resize(similar_clusters[similar as usize].collections.len(), CollectionVotes::default());
                    votes[collection as usize].pinned += pin_votes;
                    votes[collection as usize].remembered += remembered;
                    votes[collection as usize].total += 1;
                }
                Ok(())
            },
        )?;
    }
    let kept_collections =
        similar_clusters.iter().zip(&votes).map(|(similar, votes)| kept_collection(similar, votes, links_to_host));
    judged_clusters.kept_collections = kept_collections.collect();
    Ok(judged_clusters)
}

/// Returns the vote of a trivial cluster, if it has one: the place of the page that wins, and the
/// flags that the page is pinned or was kept before.
fn vote(copies: &[PageCopy], members: &[PlacedMember], keeping: &Keeping) -> Option<[u32; 5]> {
    let collection_copies = copies.iter().filter(|copy| find(members, copy.page).is_some());
    let winner = keeper(collection_copies, |_| None)?;
    let row = find(members, winner.page)?;
    let reasons = [winner.pinned, winner.kept_before].map(u32::from);
    keeping.votes(winner).then_some([row.worker, row.similar, row.collection, reasons[0], reasons[1]])
}

/// Decides for every page that has copies if it is kept, visited or skipped. Languages are
/// considered if the job compares texts (`compares`). Verdicts are ascending, at the owner of their
/// cluster's smallest page.
pub fn verdicts(
    net: &mut Net<'_>,
    crawl: &Crawl,
    mut copies: CopyShares<'_>,
    judged_clusters: &JudgedClusters<'_>,
    keeping: &Keeping,
    compares: bool,
) -> Result<SpillColumn<PageVerdict>> {
    let mut member_partitions = judged_clusters.members(net, &copies)?;
    let mut verdicts = SpillColumn::new(&net.memory);
    let (mut share_copies, mut members) = (Vec::new(), Vec::new());
    for share in 0..1 << copies.shares.bits {
        net.check()?;
        copies.take(share, &mut share_copies)?;
        take_placed(&mut member_partitions, share, &mut members)?;
        for copies in share_copies.chunk_by(|x, y| x.cluster == y.cluster) {
            let mut new_verdicts = verdicts_on(copies, &members, &crawl.directory.hosts, keeping, compares);
            new_verdicts.try_for_each(|verdict| verdicts.push(verdict))?;
        }
    }
    Ok(verdicts)
}

/// Returns the verdicts on the pages of one trivial cluster. If the job compares texts
/// (`compares`), a page is visited if its language differs from the language of the page that is
/// kept. It is also visited if it is in no collection with that page, is on another host, and has a
/// title that names something else.
fn verdicts_on<'c>(
    copies: &'c [PageCopy],
    members: &'c [PlacedMember],
    hosts: &'c [HostId],
    keeping: &'c Keeping,
    compares: bool,
) -> impl Iterator<Item = PageVerdict> + 'c {
    let collection_stays = move |page: Page| find(members, page).map(|row| row.is_kept == 1);
    let host = |page: Page| hosts[page];
    // A page with the same text on the same host that is in no collection is as good as a page of
    // the collection: of index.html and manual.html, the entry page is kept.
    let stays = copies.iter().find(|copy| collection_stays(copy.page) == Some(true));
    let stands_in = move |page: Page| {
        let copy = || &copies[copies.partition_point(|copy| copy.page < page)];
        stays.is_some_and(|stays| host(page) == host(stays.page) && copy().exact == stays.exact)
    };
    let staying = move |page: Page| collection_stays(page).or_else(|| stands_in(page).then_some(true));
    let mut best_first: Vec<&PageCopy> = copies.iter().collect();
    sort_best_first(&mut best_first, staying);
    let keep = best_first.first().copied();
    // Rank and criterion of each copy, in the order of `copies`.
    let mut ranks = vec![(0, Criterion::LAST_CRITERION); copies.len()];
    for (rank, neighbours) in best_first.windows(2).enumerate() {
        let at = copies.partition_point(|copy| copy.page < neighbours[1].page);
        ranks[at] = (rank as u32 + 1, keeping.criterion(neighbours[1], neighbours[0], staying));
    }
    // A page that others rightly declare canonical represents them under any title.
    let are_distinct = move |copy: &PageCopy, keep: &PageCopy| {
        host(copy.page) != host(keep.page) && keep.is_original == 0 && copy.title.differ_from(keep.title)
    };
    let role = move |copy: &PageCopy, keep: &PageCopy| {
        let [language, keep_language] = [copy.language, keep.language].map(Language::from_number);
        match copy {
            copy if copy.page == keep.page => CopyRole::Keep,
            PageCopy { must_visit: 1, .. } => CopyRole::Visit(VisitReason::Must),
            copy if compares && copy.exact != keep.exact && language.differs_from(keep_language) => {
                CopyRole::Visit(VisitReason::Language)
            }
            copy => match skip_reason(copy, keep, staying) {
                SkipReason::Similar if compares && are_distinct(copy, keep) => CopyRole::Visit(VisitReason::Title),
                why => CopyRole::Skip(why, keeping.lost_by(keeping.criterion(copy, keep, staying))),
            },
        }
    };
    let verdict = move |copy: &PageCopy, keep: &PageCopy, (rank, criterion): (u32, Criterion)| {
        PageVerdict::new(copy, keep, role(copy, keep), rank, criterion)
    };
    keep.into_iter().flat_map(move |keep| {
        copies.iter().zip(std::mem::take(&mut ranks)).map(move |(copy, rank)| verdict(copy, keep, rank))
    })
}

/// Keeps those pages in the crawl through which other pages are reached.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
pub fn keep_reachable(
    net: &mut Net<'_>,
    crawl: &Crawl,
    labels: &SetLabels<ClusterId>,
    verdicts: &mut SpillColumn<PageVerdict>,
    gather_reachability: impl FnOnce(&mut Net<'_>) -> Result<Reachability>,
) -> Result<ReachabilityCounts> {
    let mut skip = Vec::new();
    for block in verdicts.blocks() {
        skip.extend(block?.iter().filter(|row| row.skips()).map(|row| row.page));
    }
    let (visit, ways) = gather_reachability(net)?.clear(net, crawl, skip)?;
    let owner = |page: &Page| crawl.directory.owner(labels.label(*page).smallest());
    let mut pages_to_visit = net.exchange("pages on the way", visit, owner)?;
    pages_to_visit.sort_unstable_by_key(|&page| (labels.label(page), page));
    let mut remaining_visits = pages_to_visit.into_iter().peekable();
    verdicts.retain_mut(|row| {
        if remaining_visits.next_if_eq(&row.page).is_some() {
            row.role = CopyRole::Visit(VisitReason::Way).into();
        }
        true
    })?;
    Ok(ways)
}
