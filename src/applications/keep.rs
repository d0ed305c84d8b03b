//! Which page of a trivial cluster stays, and why the others may go.
//!
//! Whole collections come first: a crawler that skips a mirror wants all its pages from *one* other copy. So if a
//! trivial cluster has a page in the collection that is kept of its similar cluster, that page stays. Otherwise the
//! page most linked from other hosts stays; ties go to the page whose host is most linked, then to the shorter URL,
//! then to the smaller doc id.

use bytemuck::{Pod, Zeroable};

use crate::clusters::collection::SimilarCluster;
use crate::ids::{ClusterId, FPrint, Page};

/// A page as one of several copies. Rows order by cluster, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PageCopy {
    /// Fingerprint of its whole text.
    pub exact: FPrint,
    /// Trivial cluster of the page: its smallest page.
    pub cluster: ClusterId,
    /// The page itself.
    pub page: Page,
    /// Links to the page from other hosts.
    pub links_from_elsewhere: u32,
    /// Links to any page of its host from other hosts.
    pub links_to_host: u32,
    /// Characters of its URL.
    pub url_length: u64,
}

/// Why a page may be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Its text is that of the page kept.
    Exact,
    /// It belongs to a mirror of a collection that is kept.
    Collection,
    /// It is similar to the page kept.
    Similar,
}

impl Why {
    /// The word in the column `avoid.why`.
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Exact => "exact",
            Why::Collection => "collection",
            Why::Similar => "similar",
        }
    }
}

/// Index of the collection of a similar cluster that is kept: the one most linked from other hosts; ties go to the one
/// whose host is most linked, then to more pages, then to the smallest page.
///
/// `links_to_host` counts, by host, the links to its pages from other hosts.
pub fn kept_collection(cluster: &SimilarCluster, links_to_host: &[u32]) -> usize {
    let rank = |at: &usize| {
        let collection = &cluster.collections[*at];
        let to_host = links_to_host[collection.host];
        (collection.links_from_elsewhere, to_host, collection.members.len(), std::cmp::Reverse(*at))
    };
    (0..cluster.collections.len()).max_by_key(rank).expect("a similar cluster has collections")
}

/// The page of one trivial cluster that stays. `placed(page)` is `Some(kept)` for a page of a reported collection.
pub fn keeper(copies: &[PageCopy], placed: impl Fn(Page) -> Option<bool>) -> &PageCopy {
    let rank = |copy: &&PageCopy| {
        let kept = placed(copy.page) == Some(true);
        (kept, copy.links_from_elsewhere, copy.links_to_host, std::cmp::Reverse((copy.url_length, copy.page)))
    };
    copies.iter().max_by_key(rank).expect("a trivial cluster has pages")
}

/// Why `copy` may be skipped in favour of `keeper`.
pub fn why(copy: &PageCopy, keeper: &PageCopy, placed: impl Fn(Page) -> Option<bool>) -> Why {
    if copy.exact == keeper.exact {
        Why::Exact
    } else if placed(copy.page) == Some(false) && placed(keeper.page) == Some(true) {
        Why::Collection
    } else {
        Why::Similar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(page: Page, links_from_elsewhere: u32, url_length: u64) -> PageCopy {
        PageCopy { exact: 1, cluster: ClusterId(0), page, links_from_elsewhere, links_to_host: 0, url_length }
    }

    #[test]
    fn the_page_of_the_kept_collection_stays_before_the_better_linked_one() {
        let copies = [copy(1, 9, 10), copy(2, 0, 30)];
        assert_eq!(keeper(&copies, |page| Some(page == 2)).page, 2);
        assert_eq!(keeper(&copies, |_| None).page, 1);
    }

    #[test]
    fn of_equally_linked_pages_the_shorter_url_stays_then_the_smaller_doc_id() {
        assert_eq!(keeper(&[copy(1, 0, 30), copy(2, 0, 20), copy(3, 0, 20)], |_| None).page, 2);
    }
}
