//! Division of a URL into the parts that edits change.

/// A URL in parts, as canonical URLs are written: `origin` + `path` + `?` + `query`.
///
/// ```
/// use webtwin_core::url_rules::address::UrlParts;
///
/// let address = UrlParts::parse("http://a.example:81/b/c.php?x=1;y").unwrap();
/// assert_eq!((address.origin, address.host(), address.path), ("http://a.example:81", "a.example", "/b/c.php"));
/// assert_eq!(address.pieces().collect::<Vec<_>>(), ["x=1", "y"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UrlParts<'u> {
    /// Scheme, host and port.
    pub origin: &'u str,
    /// Path, from its first `/`.
    pub path: &'u str,
    /// Query without its `?`.
    pub query: Option<&'u str>,
}

impl<'u> UrlParts<'u> {
    /// Splits a URL. Returns `None` unless it has a scheme, a host and a path, and no fragment.
    pub fn parse(url: &'u str) -> Option<UrlParts<'u>> {
        let host = url.find("://")? + 3;
        let path = host + url[host..].find('/')?;
        let (without_query, query) = url.split_once('?').map_or((url, None), |(before, query)| (before, Some(query)));
        let is_whole = path > host && path < without_query.len() && !url.contains('#');
        is_whole.then(|| UrlParts { origin: &url[..path], path: &without_query[path..], query })
    }

    /// Returns the host without its port.
    pub fn host(&self) -> &'u str {
        let authority = self.origin.split_once("://").map_or(self.origin, |(_, authority)| authority);
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        }
    }

    /// Yields the pieces of the query between the separators `&` and `;`.
    pub fn pieces(&self) -> impl Iterator<Item = &'u str> + use<'u> {
        self.query.into_iter().flat_map(|query| query.split(SEPARATORS))
    }

    /// Returns path and query as in the URL.
    pub fn target(&self) -> String {
        target(self.path, self.query)
    }

    /// Returns the URL with another path.
    pub fn with_path(&self, path: &str) -> String {
        format!("{}{}", self.origin, target(path, self.query))
    }

    /// Returns the URL with another query.
    pub fn with_query(&self, query: Option<&str>) -> String {
        format!("{}{}", self.origin, target(self.path, query))
    }
}

fn target(path: &str, query: Option<&str>) -> String {
    query.map_or(path.to_string(), |query| format!("{path}?{query}"))
}

/// Characters that separate parameters.
pub const SEPARATORS: [char; 2] = ['&', ';'];

/// Returns the name of a parameter.
pub fn name(piece: &str) -> &str {
    piece.split_once('=').map_or(piece, |(name, _)| name)
}

/// Yields the pieces of a query, each with the separator after it; the last piece has none.
pub fn with_separators(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut start = 0;
    query.split(SEPARATORS).map(move |piece| {
        let end = start + piece.len();
        start = query.len().min(end + 1);
        (piece, &query[end..start])
    })
}

/// Returns the query without the pieces for which `is_dropped` returns true, or `None` if no other
/// piece is left. A piece is dropped together with the separator after it, the last one with the
/// separator before it.
pub fn without_pieces(query: &str, is_dropped: impl Fn(&str) -> bool) -> Option<String> {
    let (mut kept_query, mut pieces, mut ends_dropped) = (String::with_capacity(query.len()), 0, false);
    for (piece, separator) in with_separators(query) {
        ends_dropped = is_dropped(piece);
        if !ends_dropped {
            pieces += 1;
            kept_query.push_str(piece);
            kept_query.push_str(separator);
        }
    }
    if ends_dropped && pieces > 0 {
        kept_query.pop();
    }
    (pieces > 0).then_some(kept_query)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_url_has_parts() {
        let parts = |url| UrlParts::parse(url).map(|a| (a.origin, a.host(), a.path, a.query));
        assert_eq!(parts("https://a.b/"), Some(("https://a.b", "a.b", "/", None)));
        assert_eq!(parts("http://[::1]/x?"), Some(("http://[::1]", "[::1]", "/x", Some(""))));
        assert_eq!(parts("http://[::1]:8080/x?a/b?c"), Some(("http://[::1]:8080", "[::1]", "/x", Some("a/b?c"))));
        for malformed in ["a.b/c", "http://a.b", "http:///x", "http://a.b?x/y", "http://a.b/#x", ""] {
            assert_eq!(parts(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn removing_a_parameter_removes_one_separator() {
        let without_s = |query| without_pieces(query, |piece| name(piece) == "s");
        for (query, left) in [
            ("s=1", None),
            ("s", None),
            ("s=1&a=2", Some("a=2")),
            ("a=2&s=1", Some("a=2")),
            ("a=1;s=1&b=2", Some("a=1;b=2")),
            ("a=1&s=1;s=2", Some("a=1")),
            ("&s=1", Some("")),
            ("s=1&", Some("")),
            ("ss=1&a", Some("ss=1&a")),
            ("", Some("")),
        ] {
            assert_eq!(without_s(query).as_deref(), left, "{query}");
        }
    }

    proptest! {
        #[test]
        fn parts_concatenate_to_the_url(url in "https?://[a-c.:1]{0,4}[/?a;&=]{0,8}") {
            if let Some(address) = UrlParts::parse(&url) {
                prop_assert_eq!(address.with_path(address.path), url.clone());
                prop_assert_eq!(address.with_query(address.query), url);
            }
        }

        #[test]
        fn kept_parameters_stay_in_order(query in "[ab=&;]{0,12}") {
            let pieces = |query: &str| query.split(SEPARATORS).map(str::to_string).collect::<Vec<_>>();
            let mut left = pieces(&query);
            left.retain(|piece| name(piece) != "a");
            let remaining_query = without_pieces(&query, |piece| name(piece) == "a");
            prop_assert_eq!(remaining_query.map(|query| pieces(&query)), (!left.is_empty()).then_some(left));
        }
    }
}
