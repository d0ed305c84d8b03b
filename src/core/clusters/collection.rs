//! Collections and similar clusters (\[CSG00\] Definitions 2, 5, 6 and 8), and the check that the
//! results of growth satisfy these definitions.
//!
//! Under `Extended`, collections may lack pages that others have. So Definition 5 is checked on the
//! pages that both collections have. A page whose parents are all missing matches any page: its
//! parents are the "virtual" ones of section 4.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use webtwin_base::ids::{ClusterId, HostId, Page, SimilarClusterId};
use webtwin_job::{ClusterSettings, MergeCondition};

/// A collection: pages of the web, at most one of each trivial cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCollection {
    /// (trivial cluster, page), ascending.
    pub members: Vec<(ClusterId, Page)>,
    /// Pages that belong to the collection without a copy elsewhere, ascending. Only tolerant
    /// growth attaches them.
    pub nearby: Vec<Page>,
    /// The page with the most links from other hosts. Ties go to the page with the most links from
    /// inside, then to the smallest.
    pub root: Page,
    /// Number of links from other hosts to the pages of the collection.
    pub links_from_elsewhere: u64,
    /// Host of the root, which is the host of all pages if collections are on a single site.
    pub host: HostId,
}

impl PageCollection {
    /// Returns the smallest of the members, which names the collection.
    pub fn first_page(&self) -> Page {
        self.members.iter().map(|member| member.1).min().expect("a collection has pages")
    }

    /// Returns the collection's page of a trivial cluster.
    pub fn page_of(&self, cluster: ClusterId) -> Option<Page> {
        self.members.binary_search_by_key(&cluster, |member| member.0).ok().map(|at| self.members[at].1)
    }
}

/// A similar cluster (Def. 8): two or more collections, pairwise similar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimilarCluster {
    /// Collections, ordered by smallest member. Their number is the cluster cardinality.
    pub collections: Vec<PageCollection>,
    /// Number of pages taken out because their trivial cluster failed Definition 5.
    pub taken_out: u32,
    /// True if the cluster is on fewer than `clusters.min_hosts` hosts. Such collections are not
    /// reported, but one of them is kept whole.
    pub double: bool,
}

impl SimilarCluster {
    /// Returns the name of the cluster: the smallest of its pages.
    pub fn id(&self) -> SimilarClusterId {
        let smallest = self.collections.iter().map(PageCollection::first_page).min();
        SimilarClusterId::from_smallest(smallest.expect("a similar cluster has collections"))
    }
}

/// Removes trivial clusters that fail Definition 5 until all satisfy it, then collections that are
/// too small, then clusters with fewer than two collections.
///
/// `parents(page)` yields the (cluster, page) of the pages that link to `page` and were put in the
/// same collection.
pub(super) fn take_out_what_fails<I: Iterator<Item = (ClusterId, Page)>>(
    mut collections: Vec<PageCollection>,
    parents: impl Fn(Page) -> I,
    settings: &ClusterSettings,
) -> Option<SimilarCluster> {
    let mut removed_pages = 0;
    loop {
        let mut clusters: Vec<ClusterId> =
            collections.iter().flat_map(|c| c.members.iter().map(|member| member.0)).collect();
        clusters.sort_unstable();
        clusters.dedup();
        let failing: BTreeSet<ClusterId> = clusters
            .into_iter()
            .filter(|&cluster| {
                let member_collections = collections.iter().filter_map(|c| c.page_of(cluster).map(|page| (c, page)));
                let sets: Vec<Vec<ClusterId>> = member_collections
                    .map(|(collection, page)| {
                        let member_parents =
                            parents(page).filter(|parent| collection.members.binary_search(parent).is_ok());
                        let mut set: Vec<ClusterId> = member_parents.map(|parent| parent.0).collect();
                        set.sort_unstable();
                        set.dedup();
                        set
                    })
                    .collect();
                !have_similar_parents(&sets, settings.merge)
            })
            .collect();
        if failing.is_empty() {
            break;
        }
        for collection in &mut collections {
            let previous_count = collection.members.len();
            collection.members.retain(|member| !failing.contains(&member.0));
            removed_pages += (previous_count - collection.members.len()) as u32;
        }
    }
    collections.retain(|collection| collection.members.len() >= settings.min_size as usize);
    collections.sort_unstable_by_key(PageCollection::first_page);
    (collections.len() > 1).then_some(SimilarCluster { collections, taken_out: removed_pages, double: false })
}

/// True if the pages of one trivial cluster satisfy Definition 5, "similar links": any two have
/// parents in a common trivial cluster, or neither has a parent.
fn have_similar_parents(sets: &[Vec<ClusterId>], merge: MergeCondition) -> bool {
    let present: Vec<&Vec<ClusterId>> = sets.iter().filter(|set| !set.is_empty()).collect();
    if present.is_empty() {
        return true;
    }
    if present.len() < sets.len() && merge == MergeCondition::Exact {
        return false;
    }
    let contains = |set: &[ClusterId], cluster: &ClusterId| set.binary_search(cluster).is_ok();
    let meet = |x: &[ClusterId], y: &[ClusterId]| x.iter().any(|cluster| contains(y, cluster));
    // Usually all pages have a parent in common, which is quicker to find than a parent for each
    // two pages.
    present[0].iter().any(|cluster| present.iter().all(|set| contains(set, cluster)))
        || present.iter().enumerate().all(|(at, x)| present[at + 1..].iter().all(|y| meet(x, y)))
}

/// True if Definitions 5 and 8 hold as the paper states them, pair by pair: the reference for the
/// results of growth.
///
/// `labels[page]` is the trivial cluster of a page. `links` are all links. Under `Extended`, sizes
/// may differ and parents may be virtual, see the module documentation.
///
/// # Cost
/// A scan of all links for every page of every two collections.
///
/// # Examples
/// Figure 3(d) of \[CSG00\]: one matching link is enough. In the first collection p and q link to
/// r, in the second only q does.
/// ```
/// use webtwin_base::ids::{ClusterId, Page};
/// use webtwin_core::clusters::collection::{PageCollection, is_similar_cluster};
/// use webtwin_job::MergeCondition::Exact;
///
/// // Pages 0, 1, 2 are p, q, r, and pages 3, 4, 5 their copies.
/// let labels = [0, 1, 2, 0, 1, 2].map(ClusterId);
/// let links = [(0, 2), (1, 2), (4, 5)].map(|(x, y)| (Page(x), Page(y)));
/// let collection = |pages: &[u32]| PageCollection {
///     members: pages.iter().map(|&page| (labels[page as usize], Page(page))).collect(),
///     ..PageCollection::default()
/// };
/// let are_similar = |left: &[u32], right: &[u32]| {
///     is_similar_cluster(&[collection(left), collection(right)], &labels, &links, Exact)
/// };
/// assert!(are_similar(&[0, 1, 2], &[3, 4, 5]));
/// // Without q, the first r has a parent and the second has none.
/// assert!(!are_similar(&[0, 2], &[3, 5]));
/// ```
pub fn is_similar_cluster(
    collections: &[PageCollection],
    labels: &[ClusterId],
    links: &[(Page, Page)],
    merge: MergeCondition,
) -> bool {
    let extended = merge == MergeCondition::Extended;
    let parents = |collection: &PageCollection, page: Page| -> BTreeSet<ClusterId> {
        let is_member = |src: Page| collection.members.iter().any(|member| member.1 == src);
        links.iter().filter(|&&(src, dst)| dst == page && is_member(src)).map(|&(src, _)| labels[src]).collect()
    };
    let similar = |c1: &PageCollection, c2: &PageCollection| {
        let clusters = |c: &PageCollection| c.members.iter().map(|member| member.0).collect::<Vec<_>>();
        let equi_sized = extended || clusters(c1) == clusters(c2);
        let one_to_one = clusters(c1).windows(2).all(|pair| pair[0] < pair[1]);
        let links = c1.members.iter().filter_map(|&(cluster, p)| c2.page_of(cluster).map(|q| (p, q))).all(|(p, q)| {
            let (p1, p2) = (parents(c1, p), parents(c2, q));
            let virtual_parents = extended && (p1.is_empty() || p2.is_empty());
            (p1.is_empty() && p2.is_empty()) || virtual_parents || !p1.is_disjoint(&p2)
        });
        equi_sized && one_to_one && links
    };
    collections.iter().all(|c1| collections.iter().all(|c2| similar(c1, c2)))
}
