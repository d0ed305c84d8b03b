//! Which pages the rows of the table `rejected` would have been.

use webtwin_pages::url::CanonicalUrl;

/// The URL that a row names among the words of its detail.
pub fn url_in(detail: &str) -> Option<CanonicalUrl> {
    let is_url = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    let word = detail.split_whitespace().find(is_url)?;
    CanonicalUrl::parse(word.trim_end_matches([',', ';', ':'])).ok()
}
