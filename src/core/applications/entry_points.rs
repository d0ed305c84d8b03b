//! Entry points: the pages where crawlers start, and the links that they follow.

use bytemuck::{Pod, Zeroable};

use webtwin_base::ids::{HostId, Page};

/// Entry point kind of the root of a host, or of the page with the shortest URL if the root was not
/// crawled.
pub const ROOT: u32 = 1;
/// Entry point kind of a page that a crawler starts with.
pub const SEED: u32 = 2;
/// Entry point kind of a page that no other page of the crawl links to: it was found in another
/// way.
pub const NOT_LINKED: u32 = 4;
/// Entry point kind of a page that pages of other hosts link to.
pub const LINKED_FROM_ELSEWHERE: u32 = 8;

/// Set of links that a crawler follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkScope {
    /// Links to pages of the same host.
    WithinHosts,
    /// All links.
    AllLinks,
}

/// Entry points and links of each pass: a crawler that starts at all pages with links from other
/// hosts, one that starts with pages that are not linked, and one that stays on a host and starts
/// at its root.
pub const PASSES: [(u32, LinkScope); 3] = [
    (ROOT | SEED | NOT_LINKED | LINKED_FROM_ELSEWHERE, LinkScope::WithinHosts),
    (ROOT | SEED | NOT_LINKED, LinkScope::AllLinks),
    (ROOT | SEED, LinkScope::WithinHosts),
];

/// A page as input of a [`WebPart`](super::reachability::WebPart).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct WebPage {
    /// The page.
    pub page: Page,
    /// Host of the page.
    pub host: HostId,
    /// Number of characters of path and query: 1 for the root of a host.
    pub path_length: u32,
    /// Entry point kinds of the page. Roots, and pages that are not linked within the part, are
    /// marked by the part.
    pub entry: u32,
}

/// Marks the root of each host: pages with the path `/`, or else the first of those with the
/// shortest path.
pub(super) fn mark_roots(web: &mut [WebPage]) {
    let mut by_host: Vec<usize> = (0..web.len()).collect();
    by_host.sort_unstable_by_key(|&at| (web[at].host, web[at].path_length, web[at].page));
    let mut previous_host = None;
    for at in by_host {
        let page = &mut web[at];
        if previous_host != Some(page.host) || page.path_length == 1 {
            page.entry |= ROOT;
        }
        previous_host = Some(page.host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_with_the_shortest_path_replaces_a_missing_root() {
        let page = |page: u32, host: u32, path_length: u32| WebPage {
            page: Page(page),
            host: HostId(host),
            path_length,
            entry: 0,
        };
        let mut web = [page(0, 0, 9), page(1, 0, 5), page(2, 0, 5), page(3, 1, 1), page(4, 1, 1)];
        mark_roots(&mut web);
        assert_eq!(web.iter().map(|page| page.entry).collect::<Vec<_>>(), [0, ROOT, 0, ROOT, ROOT]);
    }
}
