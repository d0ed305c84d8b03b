//! Places ([`webtwin_core::clusters::places`]) over all workers. Finds roots by trivial cluster and
//! then by collection, and groups pages by place. Pages that belong to a collection by their place
//! are attached to it.
//!
//! The ends of the paths of pages in collections are sent to the owner of their trivial cluster,
//! which reports to the owners of the pages in how many segments the paths agree. The resulting
//! votes are sent to the owner of the collection, and the roots are broadcast. Then each page below
//! a root is sent to the owner of its place.
//!
//! # Memory
//! Takes 4 bytes for each page of collections, 8 more while these pages arrive, 2 bits for each
//! page, and 28 bytes for each collection in each process. Takes, for one partition at a time, 60
//! bytes for each page of collections, or 32 for each page below a root. Takes 8 bytes for each
//! page of collections while votes are counted, 48 for each root that pages of a collection name,
//! and 16 for each page that is attached.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use itertools::Itertools;

use crate::clusters::links::WorkerLinks;
use crate::reading::captures::Crawl;
use crate::shuffle::groups::broadcast_groups;
use crate::shuffle::hash_partitions::HashPartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::{ClusterId, Page};
use webtwin_core::clusters::collection::{PageCollection, SimilarCluster};
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::clusters::places::{
    CollectionRoot, Folders, MAX_DEPTH, PlacedPage, Roots, Vote, add_up, belonging, by_place, elect, halves, in_common,
    reports,
};
use webtwin_core::overlap::prune::{PageSet, Ranks};
use webtwin_engine::{HashOwners, Net, Owners};

/// Collections of all pages, held by each process.
#[derive(Debug)]
pub(crate) struct PagePositions {
    /// Pages that have a collection.
    collected: Ranks,
    /// Number of the collection of each of these pages.
    positions: Vec<u32>,
    /// First page of each collection, and the smallest page of its similar cluster.
    collections: Vec<(Page, Page)>,
}

/// Collections as they arrive.
#[derive(Debug, Default)]
struct BroadcastCollections {
    /// Pages, each with the number of its collection.
    positions: Vec<(Page, u32)>,
    collections: Vec<(Page, Page)>,
}

/// Minimum number of votes of single pages that a worker collects before it adds them up. The
/// threshold is twice the number of distinct votes if that is larger.
const MIN_VOTES: usize = 1 << 18;

impl PagePositions {
    /// Broadcasts the collections of all pages, of which there are `pages`.
    pub(crate) fn new(
        net: &mut Net<'_>,
        similar_clusters: &[SimilarCluster],
        pages: usize,
    ) -> Result<Arc<PagePositions>> {
        let collections = similar_clusters
            .iter()
            .filter(|cluster| !cluster.double)
            .flat_map(|cluster| cluster.collections.iter().map(|collection| (collection, cluster.id().smallest())));
        let groups = collections.map(|(collection, similar_cluster)| {
            let members = collection.members.iter().map(|member| member.1);
            ([collection.first_page(), similar_cluster], members.chain(collection.nearby.iter().copied()))
        });
        let open = |found: &mut BroadcastCollections, [first, similar_cluster]: [Page; 2]| {
            found.collections.push((first, similar_cluster));
            found.collections.len() as u32 - 1
        };
        let put_page = |found: &mut BroadcastCollections, number, page| found.positions.push((page, number));
        let found = broadcast_groups(net, "pages of mirrors", groups, BroadcastCollections::default, open, put_page)?;
        let found = net.take_back(found)?;
        net.once_per_process(|| PagePositions::from_broadcast(found.expect("it has taken it back"), pages))
    }

    fn from_broadcast(found: BroadcastCollections, pages: usize) -> PagePositions {
        let mut collected = PageSet::new(pages, |_| false);
        found.positions.iter().for_each(|&(page, _)| collected.insert(page));
        let collected = Ranks::new(collected);
        let mut positions = vec![0; collected.count()];
        for (page, number) in found.positions {
            positions[collected.rank(page).expect("the pages of all collections are in the set")] = number;
        }
        PagePositions { collected, positions, collections: found.collections }
    }

    /// Returns the first page of a page's collection, and the smallest page of its similar cluster.
    pub(super) fn position(&self, page: Page) -> Option<(Page, Page)> {
        self.collected.rank(page).map(|rank| self.collections[self.positions[rank] as usize])
    }
}

/// End of the path of a page in a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct PathEnd {
    cluster: ClusterId,
    similar_cluster: Page,
    page: Page,
    ends: [u32; MAX_DEPTH],
}

/// Finds the roots of all collections. `places` returns the collection of a page, and `labels` are
/// the trivial clusters of pages.
///
/// # Errors
/// Returns any error of [`HashPartitions::new`].
fn roots(
    net: &mut Net<'_>,
    crawl: &Crawl,
    labels: &SetLabels<ClusterId>,
    places: &PagePositions,
) -> Result<Arc<Roots>> {
    let rows = crawl.pages.map(|row| {
        let (_, similar_cluster) = places.position(row.page)?;
        let ends = Folders::new(row.url()).ends();
        Some(PathEnd { cluster: labels.label(row.page), similar_cluster, page: row.page, ends })
    });
    let count = crawl.directory.owned(net.index()).filter(|&page| places.position(page).is_some()).count() as u64;
    let key = |row: &PathEnd| row.cluster;
    let mut shares = HashPartitions::new(net, "ends of paths", count, rows.flatten_ok(), key)?;
    let (mut share_votes, mut agreeing) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut share_votes)?;
        share_votes.sort_unstable();
        let copies =
            share_votes.chunk_by(|x: &PathEnd, y| (x.cluster, x.similar_cluster) == (y.cluster, y.similar_cluster));
        for copies in copies.filter(|copies| copies.len() > 1) {
            let paths: Vec<[u32; MAX_DEPTH]> = copies.iter().map(|copy| copy.ends).collect();
            let segments = in_common(&paths) as u32;
            agreeing.extend(copies.iter().filter(|_| segments > 0).map(|copy| [copy.page, Page(segments)]));
        }
    }
    let directory = Arc::clone(&crawl.directory);
    let mut agreeing = net.exchange("segments in common", agreeing, |row| directory.owner(row[0]))?;
    let votes = votes_of(net, &mut agreeing, crawl, places)?;
    drop(agreeing);
    let owners = HashOwners::new(net);
    let mut votes = net.exchange("votes for roots", votes, |vote| owners.owner(vote.collection))?;
    let elected: Arc<Vec<CollectionRoot>> = net.broadcast("roots", elect(&mut votes))?;
    net.once_per_process(|| Roots::new(&elected))
}

/// Returns the votes of this worker's pages for the roots of their collections, added up.
/// `agreeing` are pages with the number of segments in which they agree with their copies. The
/// pages are sorted, so that their URLs are read in order.
fn votes_of(net: &Net<'_>, agreeing: &mut [[Page; 2]], crawl: &Crawl, places: &PagePositions) -> Result<Vec<Vote>> {
    agreeing.sort_unstable();
    let mut pages = crawl.reader();
    let (mut votes, mut capacity) = (Vec::new(), MIN_VOTES);
    for &[page, Page(segments)] in &*agreeing {
        let Some((collection, similar_cluster)) = places.position(page) else { continue };
        let folders = Folders::new(pages.page(page)?.url());
        let depth = folders.segments() - segments as usize;
        let root = halves(folders.root(depth));
        votes.push(Vote { collection, similar_cluster, depth: depth as u32, root, pages: 1 });
        if votes.len() == capacity {
            net.check()?;
            add_up(&mut votes);
            capacity = MIN_VOTES.max(2 * votes.len());
        }
    }
    add_up(&mut votes);
    Ok(votes)
}

/// Calls `visit` with the pages of one place after the other, at the owner of the place. `links`
/// are the links from this worker's pages.
///
/// # Errors
/// Returns any error of [`HashPartitions::new`].
pub(super) fn for_each_place(
    net: &mut Net<'_>,
    crawl: &Crawl,
    links: &WorkerLinks,
    labels: &SetLabels<ClusterId>,
    places: &PagePositions,
    mut visit: impl FnMut(&[PlacedPage]),
) -> Result<()> {
    let roots = roots(net, crawl, labels, places)?;
    let hosts = &crawl.directory.hosts;
    let mut links_of = links.reader();
    let mut links_on_host = |page: Page| -> Result<bool> {
        Ok(links_of.targets(page)?.iter().any(|&target| target != page && hosts[target] == hosts[page]))
    };
    let rows = crawl.pages.map(|row| {
        let (page, roots_above) = (row.page, roots.roots_above(&Folders::new(row.url())));
        let reports = if row.chunks > 0 { reports::CHUNKS } else { reports::little(row.title(), row.text_bytes) };
        let links = u32::from(!roots_above.is_empty() && links_on_host(page)?);
        Ok(roots_above.into_iter().map(move |(root, place)| PlacedPage {
            similar_cluster: root.similar_cluster,
            place: halves(place),
            collection: root.collection,
            page,
            votes: root.votes,
            reports,
            links,
        }))
    });
    let key = |row: &PlacedPage| u64::from(row.place[0]) << 32 | u64::from(row.place[1]);
    let count = crawl.pages.len() as u64;
    let rows = rows.map(|row| row?);
    let mut shares = HashPartitions::new(net, "pages by place", count, rows.flatten_ok(), key)?;
    let mut placed_pages = Vec::new();
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut placed_pages)?;
        by_place(&mut placed_pages).for_each(|group| visit(&group));
    }
    Ok(())
}

/// Attaches to collections the pages that belong to them by their place. Returns the number of
/// attached pages of all workers. If a page belongs to collections of several similar clusters, the
/// collection whose root has the most votes is chosen, then the collection with the smallest page.
///
/// # Errors
/// Returns any error of [`HashPartitions::new`].
pub(crate) fn attach(
    net: &mut Net<'_>,
    crawl: &Crawl,
    links: &WorkerLinks,
    labels: &SetLabels<ClusterId>,
    similar_clusters: &mut [SimilarCluster],
) -> Result<u64> {
    let places = PagePositions::new(net, similar_clusters, labels.members())?;
    let mut own_pages: Vec<PlacedPage> = Vec::new();
    for_each_place(net, crawl, links, labels, &places, |group| {
        own_pages.extend(belonging(group, |page| labels.label(page), |page| places.position(page).is_some()));
    })?;
    let rows = own_pages.iter().map(|row| [row.page, Page(row.votes), row.collection]).collect();
    let rows: Arc<Vec<[Page; 3]>> = net.broadcast("pages that belong by place", rows)?;
    let attached = net.once_per_process(|| {
        let mut rows = rows.to_vec();
        rows.sort_unstable_by_key(|&[page, votes, collection]| (page, Reverse(votes), collection));
        rows.dedup_by_key(|row| row[0]);
        rows
    })?;
    let mut collections: HashMap<Page, &mut PageCollection> = similar_clusters
        .iter_mut()
        .flat_map(|cluster| &mut cluster.collections)
        .map(|collection| (collection.first_page(), collection))
        .collect();
    for &[page, _, collection_id] in attached.iter() {
        if let Some(collection) = collections.get_mut(&collection_id) {
            collection.nearby.push(page);
        }
    }
    collections.into_values().for_each(|collection| collection.nearby.sort_unstable());
    Ok(attached.len() as u64)
}
