//! HTML and XHTML: an extractor that has read another page before returns the same as a new one,
//! and texts and links have their documented form.

use super::first;
use webtwin_base::ids::doc_id;
use webtwin_job::{LinkSettings, RecordLimits};
use webtwin_pages::html::{ExtractedPage, Extractor};
use webtwin_pages::url::CanonicalUrl;

/// A page that leaves open every state that a page can leave open.
const OTHER: &[u8] = b"<base href=//other.example/><title>t</title><a href=x>\xe9<pre>\n\n <table><td><script>if (a";

const CHARSETS: [Option<&str>; 6] =
    [None, Some("utf-8"), Some("windows-1252"), Some("shift_jis"), Some("utf-16le"), Some("iso-2022-jp")];

fn read<'a>(extractor: &'a mut Extractor, how: usize, body: &[u8], url: &CanonicalUrl) -> ExtractedPage<'a> {
    let charset = CHARSETS[how % CHARSETS.len()];
    match (how / CHARSETS.len()) % 2 {
        0 => extractor.html(body, charset, url),
        _ => extractor.xhtml(body, charset, url),
    }
}

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    let Some((how, body)) = first(data) else { return };
    let url = CanonicalUrl::parse("http://a.example/folder/page.html?q=1").expect("a URL");
    let limits = RecordLimits { links: 8, ..RecordLimits::default() };
    let follow = LinkSettings { redirects: true, refresh: true, canonical: true };
    let (mut new, mut used) = (Extractor::following(&limits, &follow), Extractor::following(&limits, &follow));
    used.html(OTHER, Some("windows-1252"), &url);
    let page = read(&mut used, how, body, &url);
    assert_eq!(page, read(&mut new, how, body, &url));
    assert!(page.links.is_sorted_by(|x, y| x < y) && page.links.len() <= 8);
    assert!(!page.links.contains(&doc_id(url.as_str())));
    assert!(page.leads_to != Some(doc_id(url.as_str())));
    assert!(!page.text.contains("\n\n\n") && !page.text.contains("  ") && !page.text.contains(['\r', '\t']));
    assert!(!page.text.starts_with('\n') && !page.text.ends_with('\n'));
    assert!(page.text.lines().all(|line| !line.starts_with(' ') && !line.ends_with(' ')));
    assert!(page.text.len() <= 4 * body.len() + 16, "{} of {}", page.text.len(), body.len());
    new.text(body, CHARSETS[how % CHARSETS.len()]);
}
