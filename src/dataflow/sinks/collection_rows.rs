//! Rows of the tables `collections` and `members`.

use serde::{Deserialize, Serialize};

use webtwin_base::ids::{ClusterId, Page, SimilarClusterId};
use webtwin_core::clusters::collection::PageCollection;

/// Row of the `collections` table. Ordered by similar cluster, then collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CollectionRow {
    /// Smallest page of the similar cluster.
    pub similar_cluster: SimilarClusterId,
    /// Smallest page of the collection.
    pub collection: Page,
    /// Number of collections in the similar cluster.
    pub cardinality: u32,
    /// Number of pages in the collection, including attached pages.
    pub size: u32,
    /// Entry page of the collection: the page in the fewest folders, and among these the page that
    /// is named like an entry page.
    pub root: Page,
    /// URL of the entry page.
    pub root_url: String,
    /// Longest folder with which the URLs of all pages begin, except attached pages.
    pub prefix: String,
    /// True if this collection of the similar cluster is kept.
    pub kept: bool,
    /// Number of links to the pages from other hosts.
    pub links_from_elsewhere: u64,
    /// First collection of the similar cluster that is identical to this one (\[CSG00\] Definition
    /// 3); the collection itself if there is no earlier one.
    pub identical_to: Page,
}

/// Row of the `members` table. Ordered by similar cluster, collection, trivial cluster, page.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable, Serialize, Deserialize,
)]
#[repr(C)]
pub struct MemberRow {
    /// Smallest page of the similar cluster.
    pub similar_cluster: SimilarClusterId,
    /// Smallest page of the collection.
    pub collection: Page,
    /// Trivial cluster of the page. A page without copies is a cluster of its own, named by the
    /// page.
    pub cluster: ClusterId,
    /// Number of the page.
    pub page: Page,
    /// 1 for a page that was attached to the collection without a counterpart in the others, 0
    /// otherwise.
    pub attached: u32,
}

impl MemberRow {
    /// Returns the rows of a collection, in no particular order. `cluster_of` returns the trivial
    /// cluster of a page.
    pub fn from_collection(
        similar: SimilarClusterId,
        collection: &PageCollection,
        cluster_of: impl Fn(Page) -> ClusterId,
    ) -> Vec<MemberRow> {
        let smallest = collection.first_page();
        let row = |cluster, page, attached| MemberRow {
            similar_cluster: similar,
            collection: smallest,
            cluster,
            page,
            attached,
        };
        let members = collection.members.iter().map(|&(cluster, page)| row(cluster, page, 0));
        members.chain(collection.nearby.iter().map(|&page| row(cluster_of(page), page, 1))).collect()
    }
}
