//! SURT forms of URLs: the key of capture indexes, and the form that Heritrix compares.
//!
//! The key is that of CDX and CDXJ files: the default form of the Python library `surt`, which
//! pywb, the tools of warcio and the Common Crawl index use. It unifies more URLs than the
//! canonical form, so two pages may have the same key.

use url::Host;

use super::url::CanonicalUrl;

/// Returns the key of a URL in capture indexes.
///
/// ```text
/// http://www.example.com/A//b/?d=e&b=c    com,example)/a/b?b=c&d=e
/// https://example.com:8080/               com,example:8080)/
/// http://192.0.2.1/                       1,2,0,192)/
/// ```
///
/// - The host without `www.` or `www1.`, its labels from last to first; a port that is not the
///   default of the scheme.
/// - The path: unescaped until nothing changes, without empty segments, `.` and `..`, escaped
///   again, in lower case, without ASP.NET session ids and without a slash at the end.
/// - The query: unescaped and escaped like the path, without session ids, in lower case, with its
///   parameters sorted.
pub fn surt_key(url: &CanonicalUrl) -> String {
    let mut key = String::with_capacity(url.as_str().len());
    push_reversed(&mut key, without_www(url.host()), ",");
    if let Some(port) = url.port() {
        key += &format!(":{port}");
    }
    key.push(')');
    let path = normal_path(&unescaped(url.path().as_bytes()));
    let path = without_path_session(percent_encoded(&path).to_ascii_lowercase());
    key += path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(&path);
    let query = url.query().map(|query| percent_encoded(&unescaped(query.as_bytes()))).unwrap_or_default();
    if !query.is_empty() {
        let query = without_query_session(query).to_ascii_lowercase();
        if !query.is_empty() {
            key.push('?');
            key += &ordered(&query);
        }
    }
    key
}

/// Returns the [`surt_key`] of a canonical URL given as text. Parses only the few URLs that need
/// it.
pub fn surt_key_of(url: &str) -> String {
    let Some((host, path)) = split_plain(url) else {
        return CanonicalUrl::parse(url).map_or_else(|_| url.to_string(), |url| surt_key(&url));
    };
    let mut key = String::with_capacity(url.len());
    push_reversed(&mut key, without_www(host), ",");
    key.push(')');
    key += path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
    key.make_ascii_lowercase();
    key
}

/// Returns the [`surt_prefix`] of a canonical URL given as text. Parses only the few URLs that need
/// it. A text that is not a URL is returned unchanged.
///
/// # Examples
/// ```
/// use webtwin_pages::surt::surt_prefix_of;
///
/// let prefix = surt_prefix_of("https://www.example.com/Docs/");
/// assert_eq!(prefix, "http://(com,example,www,)/docs/");
/// ```
pub fn surt_prefix_of(url: &str) -> String {
    let Some((host, path)) = split_plain(url) else {
        return CanonicalUrl::parse(url).map_or_else(|_| url.to_string(), |url| surt_prefix(&url));
    };
    let mut form = String::from("http://(");
    push_reversed(&mut form, host, ",");
    form.push_str(",)");
    form += path;
    form.make_ascii_lowercase();
    form
}

/// Splits a canonical URL into host and path if only the case of letters can change in its SURT
/// form. The host must be a name without a port. The path must have no query, no escapes, no empty
/// segments and no segments that begin with a dot.
fn split_plain(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let (host, path) = rest.split_at(rest.find('/')?);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let is_host_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    // The last label of an IP address begins with a digit.
    let is_named =
        host.rsplit('.').next().is_some_and(|label| label.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase()));
    let is_folded = path.as_bytes().windows(2).all(|two| two[0] != b'/' || (two[1] != b'/' && two[1] != b'.'));
    (is_named && is_folded && host.bytes().all(is_host_byte) && path.bytes().all(is_plain)).then_some((host, path))
}

/// Returns the form in which Heritrix 3 compares a URL, or a prefix of one.
///
/// It has the labels of the host in reverse, each followed by a comma, then the path, all in lower
/// case, with https replaced by http: `http://(com,example,www,)/docs/`.
pub fn surt_prefix(url: &CanonicalUrl) -> String {
    let mut form = String::from("http://(");
    if url.has_labels() {
        push_reversed(&mut form, url.host(), ",");
        form.push(',');
    } else {
        form += url.host();
    }
    if let Some(port) = url.port() {
        form += &format!(":{port}");
    }
    form.push(')');
    form += &url.as_str()[url.origin().len()..];
    form.to_lowercase()
}

impl CanonicalUrl {
    /// True if the host is a name rather than an address.
    fn has_labels(&self) -> bool {
        matches!(self.url.host(), Some(Host::Domain(_)))
    }
}

fn push_reversed(form: &mut String, host: &str, comma: &str) {
    for (nth, label) in host.rsplit('.').enumerate() {
        form.push_str(if nth > 0 { comma } else { "" });
        form.push_str(label);
    }
}

fn without_www(host: &str) -> &str {
    let rest = host.strip_prefix("www").map(|rest| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    rest.and_then(|rest| rest.strip_prefix('.')).unwrap_or(host)
}

/// Replaces percent escapes by their bytes, repeatedly, until none is left.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    loop {
        let mut decoded_bytes = Vec::with_capacity(text.len());
        let mut position = 0;
        while position < text.len() {
            let hex = |at: usize| text.get(at).and_then(|&digit| char::from(digit).to_digit(16));
            match (text[position], hex(position + 1), hex(position + 2)) {
                (b'%', Some(high), Some(low)) => {
                    decoded_bytes.push((16 * high + low) as u8);
                    position += 3;
                }
                (byte, ..) => {
                    decoded_bytes.push(byte);
                    position += 1;
                }
            }
        }
        if decoded_bytes.len() == text.len() {
            return decoded_bytes;
        }
        text = decoded_bytes;
    }
}

/// Percent-encodes all bytes except printable ASCII, and also `#` and `%`.
fn percent_encoded(text: &[u8]) -> String {
    let mut output = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'#' | b'%' | ..=b' ' | 0x7f.. => output += &format!("%{byte:02X}"),
            byte => output.push(byte.into()),
        }
    }
    output
}

/// Removes empty segments, `.` and `..` from a path.
fn normal_path(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !segments.is_empty() => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut normal = vec![b'/'];
    if let Some((last, folders)) = segments.split_last() {
        for folder in folders.iter().filter(|folder| !folder.is_empty()) {
            normal.extend_from_slice(folder);
            normal.push(b'/');
        }
        normal.extend_from_slice(last);
    }
    normal
}

/// Removes the session id of ASP.NET, a folder in parentheses, from a lower-case path of an `.aspx`
/// page.
fn without_path_session(mut path: String) -> String {
    let id = |text: &str| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // One or more groups of a letter and an id in parentheses.
    let lettered = |text: &str| {
        let mut parts = text.split_inclusive(')').peekable();
        let is_part = |part: &str| {
            let (letter, rest) = part.split_at_checked(1).unwrap_or_default();
            let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            letter.bytes().all(|byte| byte.is_ascii_lowercase()) && inner.is_some_and(id)
        };
        parts.peek().is_some() && parts.all(is_part)
    };
    for is_session in [&lettered as &dyn Fn(&str) -> bool, &id] {
        let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        let bounds = ends.windows(2).rev().find(|pair| {
            let inner = path[pair[0] + 1..pair[1]].strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
            let rest = &path[pair[1] + 1..];
            let page = rest[..rest.find('?').unwrap_or(rest.len())].rfind(".aspx");
            inner.is_some_and(is_session) && page.is_some_and(|at| at > 0)
        });
        if let Some(&[begin, end]) = bounds.and_then(|pair| <&[usize; 2]>::try_from(pair).ok()) {
            path.replace_range(begin + 1..=end, "");
        }
    }
    path
}

/// Function that returns the length of a session id of some kind at the beginning of a text.
type SessionId<'a> = &'a dyn Fn(&str) -> Option<usize>;

/// Removes session ids from a query: the last one of each kind.
fn without_query_session(mut query: String) -> String {
    let alphanumeric = |text: &str| text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let letters = |text: &str| text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let value = |text: &str| text.bytes().take_while(|&byte| byte != b'&').count();
    let is_parameter = move |name: &'static str| {
        move |text: &str| {
            let rest = &text[strip(text, name)?..];
            (alphanumeric(rest) == 32).then_some(name.len() + 32)
        }
    };
    let asp = |text: &str| {
        let name = strip(text, "aspsessionid")?;
        let rest = text.get(name + 8..).filter(|_| letters(&text[name..]) == 8)?;
        let rest = rest.strip_prefix('=')?;
        (letters(rest) == 24 && alphanumeric(rest) == 24).then_some(name + 8 + 1 + 24)
    };
    let cfid = |text: &str| {
        let id = strip(text, "cfid=")?;
        let token = id + value(&text[id..]);
        let end = token + strip(&text[token..], "&cftoken=")?;
        let length = value(&text[end..]);
        (token > id && length > 0).then_some(end + length)
    };
    let kinds: [SessionId<'_>; 5] =
        [&is_parameter("jsessionid="), &is_parameter("phpsessid="), &is_parameter("sid="), &asp, &cfid];
    for length in kinds {
        let bounds = (0..query.len()).rev().filter_map(|at| Some((at, at + length(query.get(at..)?)?)));
        let ends_well = |end: usize| end == query.len() || query.as_bytes()[end] == b'&';
        if let Some((begin, end)) = bounds.into_iter().find(|&(_, end)| ends_well(end)) {
            query.replace_range(begin..(end + 1).min(query.len()), "");
        }
    }
    query
}

/// Returns the length of `name` if the text begins with it, in upper or lower case.
fn strip(text: &str, name: &str) -> Option<usize> {
    text.get(..name.len()).filter(|begin| begin.eq_ignore_ascii_case(name)).map(str::len)
}

/// Sorts parameters by name, then by value. A parameter without a value comes before one with a
/// value.
fn ordered(query: &str) -> String {
    let mut parameters: Vec<(&str, Option<&str>)> = query
        .split('&')
        .map(|parameter| parameter.split_once('=').map_or((parameter, None), |(x, y)| (x, Some(y))))
        .collect();
    parameters.sort_unstable();
    let words: Vec<String> = parameters
        .into_iter()
        .map(|(name, value)| value.map_or(name.into(), |value| format!("{name}={value}")))
        .collect();
    words.join("&")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(url: &str) -> String {
        surt_key(&CanonicalUrl::parse(url).unwrap())
    }

    proptest! {
        #[test]
        fn unparsed_forms_equal_those_of_the_parsed_url(
            scheme in "https?", host in "(www[0-9]?\\.)?[a-z0-9-]{1,4}(\\.[a-z0-9]{1,4}){0,2}(:80[0-9]?)?",
            path in prop::collection::vec("/[A-Za-z0-9._~%()!-]{0,4}", 0..4), query in "(\\?[a-z=&]{0,5})?", slash in "/?"
        ) {
            let written = format!("{scheme}://{host}{}{slash}{query}", path.concat());
            let Ok(url) = CanonicalUrl::parse(&written) else { return Ok(()) };
            prop_assert_eq!(surt_key_of(url.as_str()), surt_key(&url));
            prop_assert_eq!(surt_prefix_of(url.as_str()), surt_prefix(&url));
        }
    }

    #[test]
    fn most_urls_need_no_parsing() {
        for url in ["http://www.example.com/", "https://docs.example.org/A/b_c/d-1.2~3.html"] {
            assert!(split_plain(url).is_some(), "{url}");
        }
        for url in
            ["http://example.com:8080/", "http://192.0.2.1/a", "http://example.com/?a", "http://example.com/a%20b"]
        {
            assert!(split_plain(url).is_none(), "{url}");
        }
    }

    #[test]
    fn keys_equal_those_of_capture_indexes() {
        // Output of surt 0.3.1.
        for (url, expected) in [
            ("http://www.example.com/a?b=c", "com,example)/a?b=c"),
            ("http://www2.example.com/", "com,example)/"),
            ("http://wwwx.example.com/", "com,example,wwwx)/"),
            ("https://example.com:8080/", "com,example:8080)/"),
            ("http://localhost", "localhost)/"),
            ("http://192.0.2.1/a", "1,2,0,192)/a"),
            ("http://example.com/A//b/", "com,example)/a/b"),
            ("http://example.com/a%252Fb%20c", "com,example)/a/b%20c"),
            ("http://example.com/%E4%bd", "com,example)/%e4%bd"),
            ("http://example.com/?d=e&b=c&b&a", "com,example)/?a&b&b=c&d=e"),
            ("http://example.com/?", "com,example)/"),
            ("http://example.com/x?a=1&PHPSESSID=0123456789abcdef0123456789abcdef&b=2", "com,example)/x?a=1&b=2"),
            ("http://example.com/x?sid=0123456789abcdef0123456789abcdef", "com,example)/x"),
            (
                "http://example.com/x?sid=0123456789abcdef0123456789abcdef0",
                "com,example)/x?sid=0123456789abcdef0123456789abcdef0",
            ),
            ("http://example.com/x?ASPSESSIONIDabcdefgh=ABCDEFGHIJKLMNOPQRSTUVWX&y=1", "com,example)/x?y=1"),
            ("http://example.com/x?cfid=17&cftoken=abc&y=1", "com,example)/x?y=1"),
            ("http://example.com/(abcdefghij0123456789klmn)/x.aspx?y", "com,example)/x.aspx?y"),
            ("http://example.com/a/(S(abcdefghij0123456789klmn))/x.aspx", "com,example)/a/x.aspx"),
        ] {
            assert_eq!(key(url), expected, "{url}");
        }
    }

    #[test]
    fn surt_prefix_equals_that_of_heritrix() {
        for (url, prefix) in [
            ("http://www.example.com/docs/", "http://(com,example,www,)/docs/"),
            ("https://example.com:8080/Docs/", "http://(com,example,:8080)/docs/"),
            ("http://10.0.0.1/a?B", "http://(10.0.0.1)/a?b"),
        ] {
            assert_eq!(surt_prefix(&CanonicalUrl::parse(url).unwrap()), prefix);
        }
    }
}
