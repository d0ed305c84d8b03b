//! Pages that a crawler must visit whatever copies they have: each describes its own host, or lists
//! new pages there.

/// Media types of feeds.
const FEEDS: [&str; 4] =
    ["application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"];

/// Names of feeds, which count unless the media type is HTML or unknown.
const FEED_NAMES: [&str; 9] =
    ["feed", "rss", "atom", "feed.xml", "rss.xml", "atom.xml", "index.xml", "index.rdf", "feed.json"];

/// True if a page is `robots.txt`, a sitemap, a feed, or below `/.well-known/`. `path` must begin
/// with `/` and end before the query.
///
/// # Examples
/// ```
/// use webtwin_core::applications::never_skipped::never_skipped;
///
/// assert!(never_skipped("/robots.txt", "text/plain"));
/// assert!(never_skipped("/blog/feed", "application/xml"));
/// // HTML at such a path is a page about a feed.
/// assert!(!never_skipped("/blog/feed", "text/html"));
/// ```
pub fn never_skipped(path: &str, mime: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let sitemap = name.starts_with("sitemap")
        && [".xml", ".xml.gz", ".txt", ".txt.gz"].iter().any(|ending| name.ends_with(ending));
    let named_feed = FEED_NAMES.contains(&name) || name.ends_with(".rss") || name.ends_with(".atom");
    let html = mime.is_empty() || mime.contains("html");
    path == "/robots.txt"
        || path.starts_with("/.well-known/")
        || sitemap
        || FEEDS.contains(&mime)
        || named_feed && !html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robots_and_similar_files_are_distinguished_from_similar_names() {
        for path in ["/robots.txt", "/sitemap.xml", "/a/sitemap_index.xml", "/sitemap-3.xml.gz", "/.well-known/x"] {
            assert!(never_skipped(path, "text/plain"), "{path}");
        }
        assert!(never_skipped("/news", "application/rss+xml"));
        assert!(never_skipped("/blog/feed/", "text/xml"));
        assert!(never_skipped("/news.rss", "text/xml"));
        for (path, mime) in [
            ("/doc/robots.txt", "text/plain"),
            ("/blog/feed/", "text/html"),
            ("/sitemap.html", "text/html"),
            ("/sitemap", "text/html"),
            ("/index.html", "text/html"),
            ("/a.txt", "text/plain"),
        ] {
            assert!(!never_skipped(path, mime), "{path}");
        }
    }
}
