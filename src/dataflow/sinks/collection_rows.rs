//! Rows of the tables `collections` and `members`.

use serde::{Deserialize, Serialize};

use webtwin_base::ids::{ClusterId, Page, SimilarClusterId};
use webtwin_core::clusters::collection::PageCollection;

/// A row of the `collections` table. Orders by similar cluster, then collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CollectionRow {
    /// Smallest page of the similar cluster.
    pub similar_cluster: SimilarClusterId,
    /// Smallest page of the collection.
    pub collection: Page,
    /// Collections in the similar cluster.
    pub cardinality: u32,
    /// Pages in the collection, those attached to it among them.
    pub size: u32,
    /// Its entry page: the one in the fewest folders, of these the one named as entries are.
    pub root: Page,
    /// URL of that page.
    pub root_url: String,
    /// Longest folder that the URLs of its pages begin with, those attached to it aside.
    pub prefix: String,
    /// Whether it is the collection that is kept of its cluster.
    pub kept: bool,
    /// Links to its pages from other hosts.
    pub links_from_elsewhere: u64,
    /// The first collection of the similar cluster that is identical to it (\[CSG00\] Definition 3); itself if none is before.
    pub identical_to: Page,
}

/// A row of the `members` table. Orders by similar cluster, collection, trivial cluster, page.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable, Serialize, Deserialize,
)]
#[repr(C)]
pub struct MemberRow {
    /// Smallest page of the similar cluster.
    pub similar_cluster: SimilarClusterId,
    /// Smallest page of the collection.
    pub collection: Page,
    /// Trivial cluster of the page; of a page without copies it is named by the page itself.
    pub cluster: ClusterId,
    /// The page.
    pub page: Page,
    /// 1 for a page that was attached to the collection without a counterpart in the others, 0 otherwise.
    pub attached: u32,
}

impl MemberRow {
    /// The rows of a collection, in no particular order; `labels` has for each page its trivial cluster.
    pub fn of(similar: SimilarClusterId, collection: &PageCollection, labels: &[ClusterId]) -> Vec<MemberRow> {
        let smallest = collection.first_page();
        let row = |cluster, page, attached| MemberRow {
            similar_cluster: similar,
            collection: smallest,
            cluster,
            page,
            attached,
        };
        let members = collection.members.iter().map(|&(cluster, page)| row(cluster, page, 0));
        members.chain(collection.nearby.iter().map(|&page| row(labels[page], page, 1))).collect()
    }
}
