//! Links of a part of the web, as plain numbers that can be spilled while the links of other parts
//! are followed.

use super::entry_points::LinkScope;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{HostId, Page};

/// Index of a page among the pages of its part.
pub(super) type Local = u32;

/// Links of the pages of a part, as a view of plain numbers that may be stored elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct PartLinks<'a> {
    /// Start of the links of each page in `targets`, and the end of those within its host.
    places: &'a [[u32; 2]],
    targets: &'a [Local],
    /// Links to other parts, ordered by source: index of the source in this part, and number of the
    /// target page.
    leaving: &'a [[u32; 2]],
}

impl<'a> PartLinks<'a> {
    /// Indexes the links from `pages`, the pages of a part, ascending. Returns the words of the
    /// index. Calls `linked` with each page of the part that another page of the part links to.
    /// See [`WebPart::link`](super::reachability::WebPart::link) for the rest.
    pub(super) fn to_words(
        pages: &[Page],
        links: &mut [[Page; 2]],
        host: impl Fn(Page) -> HostId,
        mut linked: impl FnMut(Local),
    ) -> Result<Vec<u32>> {
        let (link_count, allowed) = (links.len() as u64, u64::from(u32::MAX));
        if link_count > allowed {
            return Err(Error::TooManyRows {
                what: "links from the pages of some hosts".into(),
                found: link_count,
                allowed,
            });
        }
        links.sort_unstable();
        let (mut places, mut targets, mut leaving) = (Vec::with_capacity(pages.len()), Vec::new(), Vec::new());
        for page_links in links.chunk_by_mut(|x, y| x[0] == y[0]) {
            let page = page_links[0][0];
            let (src, home) = (local(pages, page), host(page));
            // Links within the host come first, so that `places` can limit a scope to them.
            page_links.sort_by_key(|link| host(link[1]) != home);
            let begin = targets.len() as u32;
            places.resize(src as usize, [begin; 2]);
            let mut within = begin;
            for &[_, dst] in page_links.iter().filter(|link| link[1] != page) {
                match pages.binary_search(&dst) {
                    Ok(target) => {
                        linked(target as Local);
                        targets.push(target as Local);
                        within += u32::from(host(dst) == home);
                    }
                    Err(_) => leaving.push([src, dst.0]),
                }
            }
            places.push([begin, within]);
        }
        places.resize(pages.len(), [targets.len() as u32; 2]);
        let mut words = vec![places.len() as u32, targets.len() as u32];
        words.extend_from_slice(bytemuck::cast_slice(&places));
        words.extend_from_slice(&targets);
        words.extend_from_slice(bytemuck::cast_slice(&leaving));
        Ok(words)
    }

    /// Creates a view of the words that [`WebPart::link`](super::reachability::WebPart::link) returned.
    pub fn from_words(words: &'a [u32]) -> PartLinks<'a> {
        let (sizes, words) = words.split_at(2);
        let (places, words) = words.split_at(2 * sizes[0] as usize);
        let (targets, leaving) = words.split_at(sizes[1] as usize);
        PartLinks { places: bytemuck::cast_slice(places), targets, leaving: bytemuck::cast_slice(leaving) }
    }

    /// Returns the pages of this part that a page links to, limited to the links in `scope`.
    pub(super) fn followed(&self, page: Local, scope: LinkScope) -> &'a [Local] {
        let [begin, within] = self.places[page as usize];
        let end = match scope {
            LinkScope::WithinHosts => within,
            LinkScope::AllLinks => self.places.get(page as usize + 1).map_or(self.targets.len() as u32, |next| next[0]),
        };
        &self.targets[begin as usize..end as usize]
    }

    /// Returns the pages of other parts that a page links to.
    pub(super) fn leaving(self, page: Local) -> impl Iterator<Item = Page> + 'a {
        let begin = self.leaving.partition_point(|link| link[0] < page);
        self.leaving[begin..].iter().take_while(move |link| link[0] == page).map(|link| Page(link[1]))
    }

    /// Returns all links to pages of other parts, ascending by source.
    pub(super) fn all_leaving(self) -> impl Iterator<Item = (Local, Page)> + 'a {
        self.leaving.iter().map(|&[src, dst]| (src, Page(dst)))
    }
}

/// Returns the index of a page among the pages of its part.
pub(super) fn local(pages: &[Page], page: Page) -> Local {
    pages.binary_search(&page).expect("a page of this part") as Local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_divided_by_host_and_part() {
        // Pages 1 and 4 are of one host, page 6 of another host, and page 9 of another part.
        let pages = [1, 4, 6].map(Page);
        let mut links = [[6, 9], [1, 6], [1, 9], [1, 1], [1, 4]].map(|link| link.map(Page));
        let mut linked = Vec::new();
        let host = |page: Page| HostId(page.0 / 6);
        let words = PartLinks::to_words(&pages, &mut links, host, |page| linked.push(page)).unwrap();
        assert_eq!(linked, [1, 2]);
        let links = PartLinks::from_words(&words);
        assert_eq!(links.followed(0, LinkScope::WithinHosts), [1]);
        assert_eq!(links.followed(0, LinkScope::AllLinks), [1, 2]);
        assert!(links.followed(2, LinkScope::AllLinks).is_empty());
        assert!(links.leaving(0).eq([Page(9)]) && links.leaving(1).eq([]));
        assert!(links.all_leaving().eq([(0, Page(9)), (2, Page(9))]));
    }
}
