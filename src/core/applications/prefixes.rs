//! Computation of the shortest list of URL prefixes that covers every page a crawler may skip and
//! no page it must visit.

/// A URL prefix under which all crawled pages may be skipped. Orders by the prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct SkipPrefix {
    /// URL up to and including a `/`, or a whole URL if it covers a single page.
    pub prefix: String,
    /// True if the prefix is a whole URL.
    pub single: bool,
    /// Number of crawled pages under the prefix.
    pub pages: u64,
    /// Bytes of HTML of these pages, decoded.
    pub bytes: u64,
}

impl SkipPrefix {
    /// True if the prefix covers a URL.
    pub fn covers(&self, url: &str) -> bool {
        if self.single { self.prefix == url } else { url.starts_with(&self.prefix) }
    }
}

/// A crawled page of one host. Orders by URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct CrawledPage {
    /// Canonical URL.
    pub url: String,
    /// True if a crawler may skip the page.
    pub avoid: bool,
    /// Bytes of the HTML of the page, decoded.
    pub bytes: u64,
    /// Length in bytes of the widest folder of the URL that a prefix covering the page may name;
    /// `u32::MAX` if no prefix may cover it.
    pub root: u32,
}

/// Minimum number of pages that make a prefix. Fewer pages are listed one by one, because a prefix
/// also covers pages that were never crawled.
const MIN_PAGES: usize = 3;

/// Returns the part of a URL up to its path. Exactly the URLs of the site begin with this part, so
/// sites follow each other in the order of their URLs. A URL with a colon directly before its path
/// (`a:/b`) is a site by itself, because `a://b` is ordered between others of that form.
///
/// # Examples
/// ```
/// use webtwin_core::applications::prefixes::site;
///
/// assert_eq!(site("https://a.example:8080/b/c"), "https://a.example:8080/");
/// ```
pub fn site(url: &str) -> &str {
    let host = host_at(url);
    let path = url[host..].find('/').map(|at| host + at).filter(|&at| !url[..at].ends_with(':'));
    &url[..path.map_or(url.len(), |at| at + 1)]
}

/// Returns the start of the host: after `://`, if the first slash is part of that, else 0.
fn host_at(url: &str) -> usize {
    let after_scheme = url.find('/').filter(|&at| url[..at].ends_with(':') && url[at + 1..].starts_with('/'));
    after_scheme.map_or(0, |at| at + 2)
}

/// Covers the pages to avoid among all crawled pages of one site, which must be ascending by URL.
/// No prefix is wider than the root of any page under it ([`CrawledPage::root`]).
///
/// # Cost
/// Pages times path segments.
///
/// # Examples
/// ```
/// use webtwin_core::applications::prefixes::{CrawledPage, cover};
///
/// // A mirror of three pages, and two pages of which one may be skipped.
/// let page = |path: &str, avoid| {
///     let url = format!("http://a.example/{path}");
///     CrawledPage { url, avoid, bytes: 100, root: 0 }
/// };
/// let [a, b, c] = ["m/1", "m/2", "m/3"].map(|path| page(path, true));
/// let prefixes = cover(&[a, b, c, page("x/1", false), page("x/2", true)]);
///
/// let texts: Vec<&str> = prefixes.iter().map(|prefix| prefix.prefix.as_str()).collect();
/// assert_eq!(texts, ["http://a.example/m/", "http://a.example/x/2"]);
/// assert!(!prefixes[0].single && prefixes[1].single);
/// ```
pub fn cover(pages: &[CrawledPage]) -> Vec<SkipPrefix> {
    let mut prefixes = Vec::new();
    let start = pages.first().map_or(0, |page| host_at(&page.url));
    descend(pages, start, &mut prefixes);
    prefixes
}

/// Covers `pages`, which agree up to `length`, as a whole or separately for each next path segment.
fn descend(pages: &[CrawledPage], length: usize, prefixes: &mut Vec<SkipPrefix>) {
    if !pages.iter().any(|page| page.avoid) {
        return;
    }
    let segment =
        |page: &CrawledPage| page.url.as_bytes()[length..].iter().position(|&b| b == b'/').map(|at| length + at + 1);
    for group in pages.chunk_by(|x, y| match (segment(x), segment(y)) {
        (Some(end), Some(_)) => x.url.as_bytes().get(..end) == y.url.as_bytes().get(..end),
        _ => false,
    }) {
        let Some(end) = segment(&group[0]) else {
            prefixes.extend(group[0].avoid.then(|| single(&group[0])));
            continue;
        };
        let prefix = common_folder(&group[0].url, &group[group.len() - 1].url);
        let may_be_covered = |page: &CrawledPage| page.avoid && page.root as usize <= prefix.len();
        if group.len() >= MIN_PAGES && group.iter().all(may_be_covered) {
            let bytes = group.iter().map(|page| page.bytes).sum();
            prefixes.push(SkipPrefix { prefix: prefix.to_string(), single: false, pages: group.len() as u64, bytes });
        } else {
            descend(group, end, prefixes);
        }
    }
}

/// Returns the longest folder that two URLs share, so that a prefix covers no more than its pages
/// have in common.
fn common_folder<'a>(first: &'a str, last: &str) -> &'a str {
    let common = first.bytes().zip(last.bytes()).take_while(|(x, y)| x == y).count();
    &first[..first.as_bytes()[..common].iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1)]
}

fn single(page: &CrawledPage) -> SkipPrefix {
    SkipPrefix { prefix: page.url.clone(), single: true, pages: 1, bytes: page.bytes }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn visited(urls: &[(&str, bool)]) -> Vec<CrawledPage> {
        let mut pages: Vec<_> = urls
            .iter()
            .map(|&(path, avoid)| CrawledPage { url: format!("http://h/{path}"), avoid, bytes: 1, root: 0 })
            .collect();
        pages.sort();
        pages
    }

    #[test]
    fn prefix_is_not_wider_than_the_roots_of_its_pages() {
        let mut pages = visited(&[("m/a", true), ("m/b/c", true), ("m/b/d", true), ("m/b/e", true), ("n/a", true)]);
        let prefixes = |pages: &[CrawledPage]| cover(pages).into_iter().map(|found| found.prefix).collect::<Vec<_>>();
        assert_eq!(prefixes(&pages), ["http://h/"]);
        pages.iter_mut().for_each(|page| page.root = "http://h/m/".len() as u32);
        assert_eq!(prefixes(&pages), ["http://h/m/", "http://h/n/a"]);
        // A page in no collection is covered by no prefix.
        pages[0].root = u32::MAX;
        assert_eq!(prefixes(&pages), ["http://h/m/a", "http://h/m/b/", "http://h/n/a"]);
    }

    #[test]
    fn a_mirror_is_one_prefix_and_stray_copies_are_single_urls() {
        let pages =
            visited(&[("m/a", true), ("m/b", true), ("m/c/d", true), ("x/a", false), ("x/b", true), ("i", false)]);
        let cover: Vec<_> = cover(&pages).into_iter().map(|p| (p.prefix, p.single, p.pages)).collect();
        assert_eq!(cover, [("http://h/m/".into(), false, 3), ("http://h/x/b".into(), true, 1)]);
    }

    #[test]
    fn prefix_is_the_longest_that_covers_all_its_pages() {
        let pages = visited(&[("a", true), ("b", true), ("c/d", true)]);
        assert_eq!(cover(&pages)[0].prefix, "http://h/");
        let pages = visited(&[("pub/m/a", true), ("pub/m/b", true), ("pub/m/c/d", true)]);
        assert_eq!(cover(&pages)[0].prefix, "http://h/pub/m/");
    }

    #[test]
    fn a_site_is_the_url_up_to_its_path() {
        let assert_site = |url, of| assert_eq!(site(url), of);
        assert_site("http://a.b/c://d/e", "http://a.b/");
        assert_site("https://a.b:8080/c", "https://a.b:8080/");
        assert_site("http://a.b", "http://a.b");
        assert_site("a/b://c/d", "a/");
        assert_site("a:/b/c", "a:/b/c");
        assert_site("a", "a");
    }

    proptest! {
        #[test]
        fn sites_are_contiguous(mut urls in prop::collection::vec("(a|https?)?(:?//?)?[ab]?(:8|-b)?/?[ab:/-]{0,3}", 0..30)) {
            urls.sort();
            let sites: Vec<&str> = urls.chunk_by(|x, y| site(x) == site(y)).map(|urls| site(&urls[0])).collect();
            let distinct: std::collections::BTreeSet<&str> = sites.iter().copied().collect();
            prop_assert_eq!(sites.len(), distinct.len(), "{:?}", urls);
        }

        #[test]
        fn cover_contains_all_pages_to_avoid_and_no_other(
            pages in prop::collection::btree_map("[ab](/[ab]){0,3}/?", any::<bool>(), 1..20)
        ) {
            let pages: Vec<_> = pages.iter().map(|(path, avoid)| (path.as_str(), *avoid)).collect();
            let pages = visited(&pages);
            let cover = cover(&pages);
            for page in &pages {
                prop_assert_eq!(cover.iter().filter(|prefix| prefix.covers(&page.url)).count(), usize::from(page.avoid), "{}", page.url);
            }
        }
    }
}
