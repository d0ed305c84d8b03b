//! URLs of the pages that rejected records would have been.

use webtwin_pages::url::CanonicalUrl;

/// Returns the first URL in the detail of a row of the table `rejected`.
///
/// # Examples
/// ```
/// use webtwin_results::rejected::url_in;
///
/// let url = url_in("status 404: http://a.example/gone, and nothing else");
/// assert_eq!(url.unwrap().as_str(), "http://a.example/gone");
/// ```
pub fn url_in(detail: &str) -> Option<CanonicalUrl> {
    let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    let word = detail.split_whitespace().find(is_url)?;
    CanonicalUrl::parse(word.trim_end_matches([',', ';', ':'])).ok()
}
