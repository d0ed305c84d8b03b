//! Canonical URLs: the unique spelling of an address from which the doc id of a page is made.
//!
//! Input: a URL as in a crawl or link. Output: [`CanonicalUrl`], an absolute http(s) URL as
//! serialised by the WHATWG URL standard, with
//!
//! - no fragment, user or password, default port, or dot at the end of the host;
//! - everything else unchanged: the order of the query, `index.html`, `www.`, upper case in the
//!   path. The comparison of texts decides which addresses have the same page. A rule about URLs
//!   could only assume it.
//!
//! Canonicalisation is idempotent.

use url::Url;

use super::record::Reason;

/// Maximum length of a URL or reference, in bytes as written.
pub(super) const MAX_URL_BYTES: usize = 8 << 10;

/// Reason why a URL of more than [`MAX_URL_BYTES`] is refused.
const TOO_LONG: &str = "longer than 8 KiB";

/// Returns the reason to refuse a record for whose URL [`CanonicalUrl::parse`] returned `cause`.
pub fn refusal_reason(cause: &str) -> Reason {
    if cause == TOO_LONG { Reason::UrlTooLong } else { Reason::BadUrl }
}

/// An http(s) URL in canonical form.
///
/// # Examples
/// ```
/// use webtwin_pages::url::CanonicalUrl;
///
/// let url = CanonicalUrl::parse("HTTP://user@A.example:80/b/../Index.html?y&x#top")?;
/// assert_eq!(url.as_str(), "http://a.example/Index.html?y&x");
/// assert_eq!(url.join("c.html")?.as_str(), "http://a.example/c.html");
/// assert_eq!(CanonicalUrl::parse("mailto:b@a.example"), Err("not http or https"));
/// # Ok::<(), &'static str>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CanonicalUrl {
    pub(super) url: Url,
}

impl CanonicalUrl {
    /// Canonicalises a URL from a crawl. Strips white space, and the angle brackets that some WARC
    /// writers add.
    ///
    /// # Errors
    /// Returns the reason for the `rejected` table if the text is not the URL of a page.
    pub fn parse(text: &str) -> Result<CanonicalUrl, &'static str> {
        let text = strip_brackets(text);
        if text.len() > MAX_URL_BYTES {
            return Err(TOO_LONG);
        }
        CanonicalUrl::of(Url::parse(text).map_err(why)?)
    }

    /// Resolves a reference in the page at this URL.
    ///
    /// # Errors
    /// Returns the errors of [`CanonicalUrl::parse`].
    pub fn join(&self, reference: &str) -> Result<CanonicalUrl, &'static str> {
        if reference.len() > MAX_URL_BYTES {
            return Err(TOO_LONG);
        }
        CanonicalUrl::of(self.url.join(reference).map_err(why)?)
    }

    fn of(mut url: Url) -> Result<CanonicalUrl, &'static str> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err("not http or https");
        }
        url.set_fragment(None);
        url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| "no host")?;
        let host = url.host_str().ok_or("no host")?;
        if host.ends_with('.') {
            let host = host.trim_end_matches('.').to_owned();
            if host.is_empty() {
                return Err("no host");
            }
            url.set_host(Some(&host)).map_err(why)?;
        }
        Ok(CanonicalUrl { url })
    }

    /// Returns the URL as text. The doc id is its hash.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Returns the host: in lower case, IDNA in ASCII form, IPv6 in brackets.
    pub fn host(&self) -> &str {
        self.url.host_str().expect("an http URL has a host")
    }

    /// Returns the path, from its first `/`.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// Returns scheme, host and port: the part before the path.
    pub fn origin(&self) -> &str {
        &self.url[..url::Position::BeforePath]
    }

    /// Returns the query, without its `?`.
    pub fn query(&self) -> Option<&str> {
        self.url.query()
    }

    /// Returns the port, unless it is the default of the scheme.
    pub fn port(&self) -> Option<u16> {
        self.url.port()
    }

    /// Returns the part before the query, without `?`.
    pub fn without_query(&self) -> &str {
        &self.url[..url::Position::AfterPath]
    }
}

impl std::fmt::Display for CanonicalUrl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Returns the scheme of a target that is a URI outside of the web. White space and brackets are
/// stripped as in [`CanonicalUrl::parse`].
///
/// The rest of the URI does not matter. A word with a dot is a host without a scheme
/// (`example.com:80/`), because no scheme that crawlers use contains a dot.
pub(super) fn scheme_beyond_web(text: &str) -> Option<&str> {
    let (scheme, _) = strip_brackets(text).split_once(':')?;
    let letters = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'));
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    (letters && !is_web).then_some(scheme)
}

/// Strips white space and the angle brackets that some WARC writers add.
fn strip_brackets(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('<').and_then(|inner| inner.strip_suffix('>')).unwrap_or(text)
}

fn why(error: url::ParseError) -> &'static str {
    match error {
        url::ParseError::EmptyHost => "no host",
        url::ParseError::RelativeUrlWithoutBase => "not an absolute URL",
        url::ParseError::InvalidPort => "the port is not a number from 0 to 65535",
        _ => "the host is not a host name or an address",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        CanonicalUrl::parse(text).map_or_else(|why| format!("({why})"), |url| url.to_string())
    }

    #[test]
    fn targets_of_other_schemes_are_distinguished_from_invalid_urls() {
        for (text, scheme) in [
            ("metadata://gnu.org/software/wget/warc/MANIFEST.txt", Some("metadata")),
            (" <metadata://gnu.org/software/wget/warc/wget.log>", Some("metadata")),
            ("urn:text:http://example.com/", Some("urn")),
            ("ftp://[no host/", Some("ftp")),
            ("filedesc://a.arc", Some("filedesc")),
            ("DNS:example.com", Some("DNS")),
            ("whois://whois.example/example.com", Some("whois")),
            ("mailto:a@example.com", Some("mailto")),
            ("http://", None),
            ("HTTPS:", None),
            ("<http://1.2.3.999/>", None),
            ("htt p://example.com/", None),
            ("://example.com/", None),
            ("example.com:80/", None),
            ("/a:b", None),
            ("example.com", None),
            ("", None),
        ] {
            assert_eq!(scheme_beyond_web(text), scheme, "{text:?}");
        }
    }

    #[test]
    fn urls_are_canonicalised_by_exactly_the_documented_rules() {
        for (text, expected) in [
            ("http://example.com", "http://example.com/"),
            (" \t<http://example.com/a>\r\n", "http://example.com/a"),
            ("HTTP://EXAMPLE.com:80/%7Ea/A?b=2&a=1#top", "http://example.com/%7Ea/A?b=2&a=1"),
            ("https://example.com:443/", "https://example.com/"),
            ("https://example.com:80/", "https://example.com:80/"),
            ("http://user:secret@example.com/", "http://example.com/"),
            ("http://example.com./x", "http://example.com/x"),
            ("http://example.com..:8080/x", "http://example.com:8080/x"),
            ("http://bücher.example/ü?ü", "http://xn--bcher-kva.example/%C3%BC?%C3%BC"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://127.1./", "http://127.0.0.1/"),
            ("http://127.1../", "http://127.0.0.1/"),
            ("http://[::0:1]:80/", "http://[::1]/"),
            ("http://example.com/a/../../b/./c", "http://example.com/b/c"),
            ("http:\\\\example.com\\a", "http://example.com/a"),
            ("http:example.com", "http://example.com/"),
            ("http://example.com/a b\u{0}c", "http://example.com/a%20b%00c"),
            ("http://example.com/?", "http://example.com/?"),
            ("http://", "(no host)"),
            ("http://./", "(no host)"),
            ("http://user@/", "(no host)"),
            ("ftp://example.com/", "(not http or https)"),
            ("file:///etc/passwd", "(not http or https)"),
            ("javascript:alert(1)", "(not http or https)"),
            ("data:text/html,<p>", "(not http or https)"),
            ("mailto:a@example.com", "(not http or https)"),
            ("blob:http://example.com/1", "(not http or https)"),
            ("dns:example.com", "(not http or https)"),
            ("example.com/a", "(not an absolute URL)"),
            ("", "(not an absolute URL)"),
            ("http://example.com:99999/", "(the port is not a number from 0 to 65535)"),
            ("http://1.2.3.999/", "(the host is not a host name or an address)"),
            ("http://a b/", "(the host is not a host name or an address)"),
            ("http://[::1/", "(the host is not a host name or an address)"),
        ] {
            assert_eq!(canonical(text), expected, "{text:?}");
        }
        assert_eq!(canonical(&format!("http://example.com/{}", "a".repeat(8 << 10))), "(longer than 8 KiB)");
        let reason = |text: &str| refusal_reason(CanonicalUrl::parse(text).unwrap_err());
        assert_eq!((reason(&"a".repeat(9 << 10)), reason("a")), (Reason::UrlTooLong, Reason::BadUrl));
        assert!(Reason::UrlTooLong.is_over_a_limit() && !Reason::BadUrl.is_over_a_limit());
    }

    proptest! {
        #[test]
        fn a_canonical_url_is_its_own_canonical_form(
            raw in "https?:[/\\\\]{1,3}([a-z.]{0,3}@)?[a-z0-9.xXAü%-]{1,8}\\.{0,2}(:[0-9]{0,3})?[/\\\\?#.%a2eE ü]{0,12}"
        ) {
            if let Ok(url) = CanonicalUrl::parse(&raw) {
                let again = CanonicalUrl::parse(url.as_str());
                prop_assert_eq!(again.as_ref(), Ok(&url));
                prop_assert!(!url.host().is_empty() && !url.host().ends_with('.') && url.path().starts_with('/'));
                prop_assert_eq!(format!("{}{}", url.origin(), url.path()), url.without_query());
            }
        }
    }
}
