//! Conversion of the references of a page into doc ids of their targets.
//!
//! Input: values of `href` and `src`, as written, in page order. Output: doc ids of the canonical
//! URLs, without repetitions. A reference to anything but an http(s) URL is not a link.
//!
//! # Cost
//! A page repeats most of its references, and most of the others are plain (`../a/b.html`,
//! `http://host/path`). Repeated references are recognised by hash. Plain ones are resolved without
//! parsing the base again. All others are resolved by the `url` crate, which is also the reference
//! implementation for the plain ones in the tests.

use xxhash_rust::xxh3::xxh3_64;

use super::entities;
use crate::url::{CanonicalUrl, MAX_URL_BYTES};
use webtwin_base::by_hash::Hashes;
use webtwin_base::ids::{DocId, doc_id, splitmix64};

/// Number of references of a page that are remembered. A forgotten one only costs time.
const REMEMBERED_LINKS: usize = 1024;

/// Collector of the links of one page after another.
#[derive(Debug)]
pub(super) struct LinkCollector {
    limit: usize,
    too_many: bool,
    /// Targets in page order; `known` is the same as a set.
    targets: Vec<DocId>,
    known_links: Hashes,
    /// Hashes of references as written. A hash is stored at the index given by its low bits. It
    /// includes the number of the page, so that entries of earlier pages never match.
    recent_hashes: Box<[u64; REMEMBERED_LINKS]>,
    page: u64,
    reference: String,
    target: String,
}

impl LinkCollector {
    /// Makes a collector that keeps at most `limit` links per page.
    pub(super) fn new(limit: u32) -> LinkCollector {
        LinkCollector {
            limit: limit as usize,
            too_many: false,
            targets: Vec::new(),
            known_links: Hashes::default(),
            recent_hashes: Box::new([0; REMEMBERED_LINKS]),
            page: 0,
            reference: String::new(),
            target: String::new(),
        }
    }

    /// Removes the links of the previous page.
    pub(super) fn clear(&mut self) {
        self.too_many = false;
        self.targets.clear();
        self.known_links.clear();
        self.page += 1;
    }

    /// True if there were more links than the limit.
    pub(super) fn too_many(&self) -> bool {
        self.too_many
    }

    /// Returns the links so far, ascending, without `page` itself.
    pub(super) fn sorted(&mut self, page: DocId) -> &[DocId] {
        self.targets.retain(|&target| target != page);
        self.targets.sort_unstable();
        &self.targets
    }

    /// Adds the target of an attribute value in which character references are not decoded.
    pub(super) fn add(&mut self, value: &str, base: &Base) {
        if self.too_many {
            return;
        }
        self.reference.clear();
        let reference = if value.contains('&') {
            entities::decode_attribute(value, &mut self.reference);
            &self.reference
        } else {
            value
        };
        let reference = without_fragment(reference);
        // The page number is not used as the seed of the hash: XXH3 adds the seed to short input,
        // so other bytes on another page would collide.
        let hash = xxh3_64(reference.as_bytes()) ^ splitmix64(self.page);
        let slot = &mut self.recent_hashes[hash as usize % REMEMBERED_LINKS];
        if *slot == hash {
            return;
        }
        *slot = hash;
        if let Some(target) = base.target(reference, &mut self.target) {
            self.insert(target);
        }
    }

    /// Adds the target of a decoded reference, and returns it.
    pub(super) fn add_decoded(&mut self, reference: &str, base: &Base) -> Option<DocId> {
        let target = base.leads_to(reference)?;
        if !self.too_many {
            self.insert(target);
        }
        Some(target)
    }

    fn insert(&mut self, target: DocId) {
        if self.known_links.contains(&target) {
            return;
        }
        if self.targets.len() == self.limit {
            self.too_many = true;
            return;
        }
        self.known_links.insert(target);
        self.targets.push(target);
    }
}

/// Base URL of the references of a page.
#[derive(Debug, Clone)]
pub(super) struct Base {
    url: CanonicalUrl,
    /// Length of scheme, host and port, in bytes.
    origin: usize,
    /// Length up to and including the last `/` of the path, in bytes.
    directory: usize,
    /// Length of the part before the query, in bytes.
    path: usize,
}

impl Base {
    /// Makes the base of a page without `<base href>`.
    pub(super) fn new(url: CanonicalUrl) -> Base {
        let (origin, path) = (url.origin().len(), url.without_query().len());
        let directory = url.without_query().rfind('/').expect("the path of an http URL begins with /") + 1;
        Base { url, origin, directory, path }
    }

    /// Returns the base after `<base href>` with this value, or the same base if the value is not
    /// an http(s) URL.
    pub(super) fn rebased(&self, value: &str) -> Base {
        let mut reference = String::new();
        entities::decode_attribute(value, &mut reference);
        self.url.join(&reference).map_or_else(|_| self.clone(), Base::new)
    }

    /// Returns the doc id of a reference, if it is an http(s) URL.
    pub(super) fn leads_to(&self, reference: &str) -> Option<DocId> {
        self.target(without_fragment(reference), &mut String::new())
    }

    /// Returns the doc id of a reference without fragment, if it is an http(s) URL. `buffer` is
    /// scratch.
    fn target(&self, reference: &str, buffer: &mut String) -> Option<DocId> {
        if reference.len() > MAX_URL_BYTES {
            return None;
        }
        if self.put_together(reference, buffer) {
            return Some(doc_id(buffer));
        }
        match scheme(reference) {
            Some(scheme) if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") => None,
            _ => self.url.join(reference).ok().map(|url| doc_id(url.as_str())),
        }
    }

    /// Resolves a reference of plain characters into `output`. Returns false if the reference is
    /// not plain.
    fn put_together(&self, reference: &str, output: &mut String) -> bool {
        let base = self.url.as_str();
        let (path, query) = match memchr::memchr(b'?', reference.as_bytes()) {
            Some(split_at) => reference.split_at(split_at),
            None => (reference, ""),
        };
        if !path.bytes().all(|byte| PLAIN[byte as usize] & PATH != 0)
            || !query.bytes().all(|byte| PLAIN[byte as usize] & QUERY != 0)
        {
            return false;
        }
        output.clear();
        let root;
        if let Some(rest) = path.strip_prefix("http://").or_else(|| path.strip_prefix("https://")) {
            let host = &rest[..rest.find('/').unwrap_or(rest.len())];
            if !is_plain_host(host) {
                return false;
            }
            root = path.len() - rest.len() + host.len();
            output.push_str(&path[..root]);
            output.push('/');
            append_path(rest[host.len()..].strip_prefix('/').unwrap_or(""), root, output);
        } else if scheme(path).is_some() || path.starts_with("//") {
            return false;
        } else if let Some(path) = path.strip_prefix('/') {
            output.push_str(&base[..=self.origin]);
            append_path(path, self.origin, output);
        } else if path.is_empty() {
            output.push_str(if query.is_empty() { base } else { &base[..self.path] });
        } else {
            output.push_str(&base[..self.directory]);
            append_path(path, self.origin, output);
        }
        output.push_str(query);
        true
    }
}

/// Appends the segments of `path` to `output`, which ends with `/`. The path of the URL begins at
/// `root`.
fn append_path(path: &str, root: usize, output: &mut String) {
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." => {}
            ".." => {
                let parent = output[root..output.len() - 1].rfind('/').map_or(root, |at| root + at);
                output.truncate(parent + 1);
            }
            _ => {
                output.push_str(segment);
                if segments.peek().is_some() {
                    output.push('/');
                }
            }
        }
    }
}

/// True if a host is already in the form that the `url` crate writes: a name of lower-case ASCII
/// letters, digits and hyphens that is not an address, without user, port, or final dot.
fn is_plain_host(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or("");
    host.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
        && last.starts_with(|first: char| first.is_ascii_lowercase())
        && !host.contains("xn--")
}

/// Returns the scheme of an absolute reference.
fn scheme(reference: &str) -> Option<&str> {
    let reference = reference.trim_start_matches(|character| character <= ' ');
    let end = reference
        .bytes()
        .position(|byte| !matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.'))?;
    (reference.as_bytes()[end] == b':' && reference.as_bytes()[0].is_ascii_alphabetic()).then_some(&reference[..end])
}

fn without_fragment(reference: &str) -> &str {
    memchr::memchr(b'#', reference.as_bytes()).map_or(reference, |at| &reference[..at])
}

/// Class of bytes that the `url` crate does not change in a path; `QUERY`: in a query.
const PATH: u8 = 1;
const QUERY: u8 = 2;

/// Classes of bytes. A `%` is never plain in a path, because `%2e` is a dot.
static PLAIN: [u8; 256] = {
    let mut is_plain = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        is_plain[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => PATH | QUERY,
            b'-' | b'.' | b'_' | b'~' | b'/' | b':' | b'@' | b'!' | b'$' | b'&' | b'(' | b')' => PATH | QUERY,
            b'*' | b'+' | b',' | b';' | b'=' => PATH | QUERY,
            b'%' | b'?' => QUERY,
            _ => 0,
        };
        byte += 1;
    }
    is_plain
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn base(url: &str) -> Base {
        Base::new(CanonicalUrl::parse(url).unwrap())
    }

    #[test]
    fn unusual_references_resolve_as_in_a_browser() {
        let base = base("http://example.com/a/b?q");
        for (reference, expected) in [
            ("", Some("http://example.com/a/b?q")),
            ("  c ", Some("http://example.com/a/c")),
            ("?x=1&y", Some("http://example.com/a/b?x=1&y")),
            ("//other.example", Some("http://other.example/")),
            ("../../../etc/passwd", Some("http://example.com/etc/passwd")),
            ("/x/%2e%2E/y", Some("http://example.com/y")),
            ("..", Some("http://example.com/")),
            ("c//../d/.", Some("http://example.com/a/c/d/")),
            ("\\c\\d", Some("http://example.com/c/d")),
            ("http:c", Some("http://example.com/a/c")),
            ("https:c", Some("https://c/")),
            ("HTTP://EXAMPLE.org", Some("http://example.org/")),
            ("http://example.org", Some("http://example.org/")),
            ("http://example.org?x", Some("http://example.org/?x")),
            ("http://example.org:80/..", Some("http://example.org/")),
            ("http://example.org:8080", Some("http://example.org:8080/")),
            ("http://me:pw@example.org/", Some("http://example.org/")),
            ("http://bücher.example/", Some("http://xn--bcher-kva.example/")),
            ("http://[::0:1]/", Some("http://[::1]/")),
            ("http://0x7f.1/", Some("http://127.0.0.1/")),
            ("http://example.org./", Some("http://example.org/")),
            ("ht\ntp://example.org/\ta", Some("http://example.org/a")),
            ("a\0b", Some("http://example.com/a/a%00b")),
            ("d:e", None),
            ("./d:e", Some("http://example.com/a/d:e")),
            ("/wiki/File:A_(b)", Some("http://example.com/wiki/File:A_(b)")),
            ("javascript:void(0)", None),
            (" java\nscript:void(0)", None),
            ("data:text/html,x", None),
            ("mailto:a@example.com", None),
            ("blob:http://example.com/1", None),
            ("ftp://example.com/", None),
            ("file:///etc/passwd", None),
            ("about:blank", None),
            ("http://", None),
            ("http:///", None),
            ("http://1.2.3.999/", None),
        ] {
            assert_eq!(base.target(reference, &mut String::new()), expected.map(doc_id), "{reference:?}");
        }
        let long =
            |reference: &str, length| base.target(&format!("{reference}{}", "a".repeat(length)), &mut String::new());
        assert!(long("http://a.example/", 8000).is_some() && long("http://\u{e9}.example/", 8000).is_some());
        assert!(long("http://a.example/", 70_000).is_none() && long("http://\u{e9}.example/", 70_000).is_none());
        let long_label = format!("http://{}.example/", "a".repeat(300));
        assert_eq!(long(&long_label, 0), base.url.join(&long_label).ok().map(|url| doc_id(url.as_str())));
    }

    #[test]
    fn the_first_links_are_kept_when_there_are_too_many() {
        let base = base("http://example.com/");
        let mut links = LinkCollector::new(2);
        for reference in ["a", "./a#x", "mailto:x", "b", "a", "b?"] {
            assert!(!links.too_many());
            links.add(reference, &base);
        }
        assert!(links.too_many());
        let mut expected = [doc_id("http://example.com/a"), doc_id("http://example.com/b")];
        expected.sort_unstable();
        assert_eq!(links.sorted(0), expected);
        links.clear();
        links.add("a&#x23;?", &base);
        assert!(!links.too_many());
        assert_eq!(links.sorted(0), [doc_id("http://example.com/a")]);
        assert!(links.sorted(doc_id("http://example.com/a")).is_empty());
    }

    #[test]
    fn references_of_earlier_pages_do_not_hide_links() {
        let base = base("http://example.com/");
        let mut links = LinkCollector::new(1000);
        let references: Vec<String> =
            (0..200).map(|n| format!("/{n}")).chain((0..200).map(|n| format!("p{n}.htm"))).collect();
        for page in 0..500 {
            links.clear();
            let mut expected = Vec::new();
            for reference in references.iter().skip(page % 7).step_by(page % 5 + 1) {
                links.add(reference, &base);
                links.add(reference, &base);
                expected.push(base.target(reference, &mut String::new()).unwrap());
            }
            expected.sort_unstable();
            assert_eq!(links.sorted(0), expected, "page {page}");
        }
    }

    proptest! {
        #[test]
        fn resolved_references_equal_those_of_the_url_crate(
            base in "https?://[a-c]{1,2}\\.x(:81)?(/[a.]{0,2}){0,4}(\\?[a/]{0,2})?",
            reference in prop_oneof![
                "[a./?:]{0,10}",
                "/?((\\.|\\.\\.|a|)/){0,5}(\\.{0,2}|b)(\\?[a%&=/?:]{0,3})?",
                "(https?:)?//[a-c0-2x.-]{0,8}(/[a.%-]{0,3}){0,3}(\\?x)?",
                "[ -~é]{0,12}",
            ],
        ) {
            let base = self::base(&base);
            let reference = without_fragment(&reference);
            let parsed = base.url.join(reference);
            let mut ours = String::new();
            if base.put_together(reference, &mut ours) {
                prop_assert_eq!(parsed.as_ref().map(CanonicalUrl::as_str), Ok(ours.as_str()));
            }
            prop_assert_eq!(base.target(reference, &mut ours), parsed.ok().map(|url| doc_id(url.as_str())));
        }
    }
}
