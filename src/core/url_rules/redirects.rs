//! URLs that redirect permanently: for rules they are further URLs of the pages that they lead to.

use std::collections::{BTreeSet, HashMap};

use super::address::UrlParts;
use super::evidence::DomainPage;
use webtwin_base::ids::{DocId, doc_id};

/// A URL without a page that redirects permanently to another URL of its registered domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainRedirect {
    /// Canonical URL.
    pub url: String,
    /// Doc id of the URL that it redirects to.
    pub to: DocId,
}

/// Maximum number of redirects that are followed one after another.
const LONGEST_CHAIN: usize = 10;

/// Maximum number of paths that redirect to one page. If more paths lead to a page, such as a form
/// to log in, or the front page in place of removed pages, their URLs do not describe that page.
const MAX_PATHS: usize = 3;

/// Adds redirecting URLs to the pages of a domain, each with the trivial cluster of the page that
/// it leads to, directly or over other redirects. Leaves out redirects that lead to no page, or to
/// a page that more than three paths lead to.
///
/// # Cost
/// A table of all pages and redirects, if there are redirects.
///
/// # Examples
/// ```
/// use webtwin_base::ids::doc_id;
/// use webtwin_core::url_rules::evidence::DomainPage;
/// use webtwin_core::url_rules::redirects::{DomainRedirect, add_redirects};
///
/// let url = "http://a.example/new".to_string();
/// let mut pages = vec![DomainPage { url, cluster: 7, skipped: false, is_page: true }];
/// let redirect = |url: &str, to: &str| DomainRedirect { url: url.into(), to: doc_id(to) };
/// // One redirect leads to the page, and another one to a page that was not crawled.
/// let redirects = [
///     redirect("http://a.example/old", "http://a.example/new"),
///     redirect("http://a.example/older", "http://a.example/gone"),
/// ];
/// add_redirects(&mut pages, &redirects);
/// assert_eq!(pages.len(), 2);
/// assert_eq!((pages[1].url.as_str(), pages[1].cluster), ("http://a.example/old", 7));
/// ```
pub fn add_redirects(pages: &mut Vec<DomainPage>, redirects: &[DomainRedirect]) {
    if redirects.is_empty() {
        return;
    }
    let page_by_id: HashMap<DocId, usize> = pages.iter().zip(0..).map(|(page, at)| (doc_id(&page.url), at)).collect();
    let leads: HashMap<DocId, DocId> = redirects.iter().map(|redirect| (doc_id(&redirect.url), redirect.to)).collect();
    let target = |redirect: &DomainRedirect| {
        let hops = std::iter::successors(Some(redirect.to), |url| leads.get(url).copied());
        hops.take(LONGEST_CHAIN).find_map(|url| page_by_id.get(&url).copied())
    };
    let targets: Vec<(usize, &str)> =
        redirects.iter().filter_map(|redirect| Some((target(redirect)?, redirect.url.as_str()))).collect();
    let mut paths: HashMap<usize, BTreeSet<&str>> = HashMap::new();
    for &(page, url) in &targets {
        let path = UrlParts::parse(url).map_or("", |address| address.path);
        paths.entry(page).or_default().insert(path.split(';').next().unwrap_or(path));
    }
    let evidence = targets.into_iter().filter(|(page, _)| paths[page].len() <= MAX_PATHS);
    let rows: Vec<DomainPage> = evidence
        .map(|(page, url)| DomainPage {
            url: url.to_string(),
            cluster: pages[page].cluster,
            skipped: true,
            is_page: false,
        })
        .collect();
    pages.extend(rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(urls: &[&str]) -> Vec<DomainPage> {
        let page = |(url, cluster): (&&str, u32)| DomainPage {
            url: format!("http://a.example{url}"),
            cluster,
            skipped: false,
            is_page: true,
        };
        urls.iter().zip(0..).map(page).collect()
    }

    /// Returns the URLs that are added, with their clusters.
    fn added(paths: &[&str], redirects: &[(&str, &str)]) -> Vec<(String, u32)> {
        let redirect = |&(url, to): &(&str, &str)| DomainRedirect {
            url: format!("http://a.example{url}"),
            to: doc_id(&format!("http://a.example{to}")),
        };
        let mut pages = pages(paths);
        add_redirects(&mut pages, &redirects.iter().map(redirect).collect::<Vec<_>>());
        let redirect_pages = pages.into_iter().filter(|page| !page.is_page);
        redirect_pages.map(|page| (page.url.replace("http://a.example", ""), page.cluster)).collect()
    }

    #[test]
    fn a_redirect_is_a_further_url_of_the_page_at_the_end_of_its_chain() {
        let redirects =
            [("/x?s=1", "/x"), ("/X", "/x?s=1"), ("/y/", "/gone"), ("/l", "/m"), ("/m", "/l"), ("/n", "/n")];
        assert_eq!(added(&["/w", "/x"], &redirects), [("/x?s=1".to_string(), 1), ("/X".to_string(), 1)]);
        let chain: Vec<(String, String)> = (0..12)
            .map(|hop| (format!("/{hop}"), if hop == 11 { "/x".into() } else { format!("/{}", hop + 1) }))
            .collect();
        let chain_refs: Vec<(&str, &str)> = chain.iter().map(|(url, to)| (url.as_str(), to.as_str())).collect();
        // The last URLs of the chain, where only three paths lead to the page.
        assert_eq!(added(&["/w", "/x"], &chain_refs[9..]).len(), 3);
        assert!(added(&["/w", "/x"], &[&chain_refs[..1], &chain_refs[3..]].concat()).is_empty());
        assert!(added(&["/x"], &[]).is_empty());
    }

    #[test]
    fn common_target_of_many_paths_is_not_their_content() {
        let login = [("/a", "/login"), ("/b/", "/login"), ("/c", "/login"), ("/d?x", "/login")];
        assert!(added(&["/login"], &login).is_empty());
        assert_eq!(added(&["/login"], &login[..3]).len(), 3);
        // One path under many queries and path parameters.
        let sessions: Vec<String> =
            (0..9).map(|n| if n % 2 == 0 { format!("/p?sid={n}") } else { format!("/p;sid={n}") }).collect();
        let sessions: Vec<(&str, &str)> = sessions.iter().map(|url| (url.as_str(), "/p")).collect();
        assert_eq!(added(&["/p"], &sessions).len(), 9);
    }
}
