//! Edits of URLs: the changes that rules make within their scopes.

use super::address::{SEPARATORS, UrlParts, name, with_separators, without_pieces};

/// A change of one part of a URL. An edit of a URL without that part has no effect.
///
/// ```
/// use webtwin_core::url_rules::{address::UrlParts, edit::UrlEdit};
///
/// let edit = UrlEdit::parse("parameter", "sid", "").unwrap();
/// let address = UrlParts::parse("http://a.example/x?id=1&sid=8f0e").unwrap();
/// assert_eq!(edit.apply(&address).as_deref(), Some("http://a.example/x?id=1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UrlEdit {
    /// Sorts the parameters.
    Order,
    /// Drops parameters by their names, ascending.
    Parameters(Vec<String>),
    /// Drops a parameter with this value.
    Default(String),
    /// Replaces a parameter and its value by another value of the parameter.
    Value(String, String),
    /// Replaces scheme, host and port.
    Origin(String, String),
    /// Drops `;name=value` from the path.
    PathParameter(String),
    /// Adds a slash at the end of a path whose last segment has no dot, or drops it.
    Slash(Slash),
    /// Converts the path, or the value of the parameter with this name, to lower case.
    Case(Option<String>),
    /// Replaces the first occurrence of a part of the path.
    Part(String, String),
    /// Replaces a part at the end of the path.
    End(String, String),
    /// Drops the part of the path after this path.
    Tail(String),
    /// Drops the first segment that is an id between this prefix and suffix. An id has at least
    /// eight letters and digits.
    Segment(String, String),
    /// Replaces path and query, where a `*` matches the same name or number on both sides.
    Template(String, String),
    /// Replaces the whole URL.
    Page(String),
}

/// Change of a slash at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slash {
    /// The slash is added.
    Add,
    /// The slash is dropped.
    Drop,
}

/// Minimum number of characters of an id in a path.
pub const SHORTEST_ID: usize = 8;

impl UrlEdit {
    /// Returns the edited URL, or `None` if it does not change.
    pub fn apply(&self, address: &UrlParts<'_>) -> Option<String> {
        let path = |path: &str| address.with_path(path);
        let edit_query = |edit: &dyn Fn(&str) -> Option<String>| {
            let query = address.query?;
            let edited_query = edit(query);
            // An unchanged URL is not edited, so it must not count as evidence.
            (edited_query.as_deref() != Some(query)).then(|| address.with_query(edited_query.as_deref()))
        };
        match self {
            UrlEdit::Order => edit_query(&|query| Some(sorted(query))),
            UrlEdit::Parameters(names) => {
                edit_query(&|query| without_pieces(query, |piece| names.iter().any(|own| own == name(piece))))
            }
            UrlEdit::Default(of) => edit_query(&|query| without_pieces(query, |piece| piece == of)),
            UrlEdit::Value(from, to) => edit_query(&|query| {
                Some(map_pieces(query, |piece| if piece == from { to.clone() } else { piece.to_string() }))
            }),
            UrlEdit::Case(Some(parameter)) => edit_query(&|query| {
                Some(map_pieces(query, |piece| match piece.split_once('=') {
                    Some((name, value)) if name == parameter => format!("{name}={}", lower(value)),
                    _ => piece.to_string(),
                }))
            }),
            UrlEdit::Case(None) => {
                Some(lower(address.path)).filter(|lower| lower != address.path).map(|lower| path(&lower))
            }
            UrlEdit::Origin(from, to) => (address.origin == from).then(|| format!("{to}{}", address.target())),
            UrlEdit::PathParameter(name) => without_path_parameter(address.path, name).map(|left| path(&left)),
            UrlEdit::Slash(Slash::Add) => {
                let last = address.path.rsplit('/').next().unwrap_or_default();
                // A last segment with a dot names a file, and files have no slash at the end.
                (!last.is_empty() && !last.contains('.')).then(|| path(&format!("{}/", address.path)))
            }
            UrlEdit::Slash(Slash::Drop) => address.path.strip_suffix('/').filter(|left| !left.is_empty()).map(path),
            UrlEdit::Part(from, to) => {
                let at = address.path.find(from.as_str())?;
                Some(path(&format!("{}{to}{}", &address.path[..at], &address.path[at + from.len()..])))
            }
            UrlEdit::End(from, to) => Some(path(&format!("{}{to}", address.path.strip_suffix(from.as_str())?))),
            UrlEdit::Tail(head) => address.path.strip_prefix(head.as_str())?.starts_with('/').then(|| path(head)),
            UrlEdit::Segment(before, after) => without_id(address.path, before, after).map(|left| path(&left)),
            UrlEdit::Template(from, to) => {
                let (target, (prefix, suffix)) = (address.target(), from.split_once('*')?);
                let value = target.strip_prefix(prefix)?.strip_suffix(suffix)?;
                // Without this test a template would match all URLs with this prefix and suffix.
                is_name(value).then(|| format!("{}{}", address.origin, to.replacen('*', value, 1)))
            }
            UrlEdit::Page(to) => {
                let target = to.strip_prefix(address.origin);
                (target != Some(address.target().as_ref())).then(|| to.clone())
            }
        }
    }

    /// Returns the name of the kind of edit in the column `url_rules.kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            UrlEdit::Order => "order",
            UrlEdit::Parameters(_) => "parameter",
            UrlEdit::Default(_) => "default-value",
            UrlEdit::Value(..) => "value",
            UrlEdit::Origin(..) => "host",
            UrlEdit::PathParameter(_) => "path-parameter",
            UrlEdit::Slash(_) => "slash",
            UrlEdit::Case(_) => "case",
            UrlEdit::Part(..) => "path",
            UrlEdit::End(..) => "path-end",
            UrlEdit::Tail(_) => "path-tail",
            UrlEdit::Segment(..) => "path-id",
            UrlEdit::Template(..) => "template",
            UrlEdit::Page(_) => "page",
        }
    }

    /// Returns the values of the columns `url_rules.pattern` and `url_rules.replacement`.
    pub fn texts(&self) -> (String, String) {
        let (from, to) = match self {
            UrlEdit::Order => ("", ""),
            UrlEdit::Parameters(names) => return (names.join("&"), String::new()),
            UrlEdit::Default(from) | UrlEdit::PathParameter(from) => (from.as_str(), ""),
            UrlEdit::Tail(head) => return (format!("{head}/*"), head.clone()),
            UrlEdit::Segment(before, after) => return (format!("/{before}*{after}"), String::new()),
            UrlEdit::Page(to) => ("*", to.as_str()),
            UrlEdit::Slash(Slash::Add) => ("", "/"),
            UrlEdit::Slash(Slash::Drop) => ("/", ""),
            UrlEdit::Case(of) => (of.as_deref().unwrap_or("/"), ""),
            UrlEdit::Value(from, to) | UrlEdit::Origin(from, to) | UrlEdit::Part(from, to) => {
                (from.as_str(), to.as_str())
            }
            UrlEdit::End(from, to) | UrlEdit::Template(from, to) => (from.as_str(), to.as_str()),
        };
        (from.to_string(), to.to_string())
    }

    /// Parses the strings that [`UrlEdit::kind`] and [`UrlEdit::texts`] return. Returns `None` if
    /// there is no such edit.
    pub fn parse(kind: &str, pattern: &str, replacement: &str) -> Option<UrlEdit> {
        let (from, to) = (pattern.to_string(), replacement.to_string());
        Some(match kind {
            "order" => UrlEdit::Order,
            "parameter" => UrlEdit::Parameters(pattern.split('&').map(str::to_string).collect()),
            "default-value" => UrlEdit::Default(from),
            "value" => UrlEdit::Value(from, to),
            "host" => UrlEdit::Origin(from, to),
            "path-parameter" => UrlEdit::PathParameter(from),
            "slash" => UrlEdit::Slash(if pattern.is_empty() { Slash::Add } else { Slash::Drop }),
            "case" => UrlEdit::Case((pattern != "/").then_some(from)),
            "path" => UrlEdit::Part(from, to),
            "path-end" => UrlEdit::End(from, to),
            "path-tail" => UrlEdit::Tail(to),
            "path-id" => {
                let (prefix, suffix) = pattern.strip_prefix('/')?.split_once('*')?;
                UrlEdit::Segment(prefix.to_string(), suffix.to_string())
            }
            "template" => UrlEdit::Template(from, to),
            "page" => UrlEdit::Page(to),
            _ => return None,
        })
    }
}

/// True if a text is a name or a number, the texts that the `*` of an [`UrlEdit::Template`]
/// matches.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~%+".contains(&byte))
}

/// Converts a text to lower case, except the escapes `%XX`.
fn lower(text: &str) -> String {
    let mut escaped = 0;
    let lower_character = |character: char| {
        escaped = if character == '%' { 3_u32 } else { escaped.saturating_sub(1) };
        if escaped > 0 { character } else { character.to_ascii_lowercase() }
    };
    text.chars().map(lower_character).collect()
}

/// Sorts the pieces of a query, and leaves the separators in their places.
fn sorted(query: &str) -> String {
    let mut pieces: Vec<&str> = query.split(SEPARATORS).collect();
    pieces.sort_unstable();
    let mut pieces = pieces.into_iter();
    map_pieces(query, |_| pieces.next().unwrap_or_default().to_string())
}

fn map_pieces(query: &str, mut convert: impl FnMut(&str) -> String) -> String {
    let mut mapped = String::with_capacity(query.len());
    for (piece, separator) in with_separators(query) {
        mapped.push_str(&convert(piece));
        mapped.push_str(separator);
    }
    mapped
}

/// Returns the path without `;name=value`.
fn without_path_parameter(path: &str, name: &str) -> Option<String> {
    let start = path.find(&format!(";{name}="))?;
    let end = path[start + 1..].find([';', '/']).map_or(path.len(), |at| start + 1 + at);
    Some(format!("{}{}", &path[..start], &path[end..]))
}

/// Returns the path without its first segment that is an id between `prefix` and `suffix`. The last
/// segment is never removed.
fn without_id(path: &str, prefix: &str, suffix: &str) -> Option<String> {
    let mut start = 0;
    loop {
        let end = start + 1 + path[start + 1..].find('/')?;
        let id = path[start + 1..end].strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
        if id.is_some_and(is_id) {
            return Some(format!("{}{}", &path[..start], &path[end..]));
        }
        start = end;
    }
}

/// True if a text is an id: [`SHORTEST_ID`] or more letters and digits.
pub fn is_id(text: &str) -> bool {
    text.len() >= SHORTEST_ID && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One edit of each kind.
    pub(in crate::url_rules) const EDITS: [(&str, &str, &str); 17] = [
        ("order", "", ""),
        ("parameter", "a", ""),
        ("parameter", "a&b", ""),
        ("default-value", "a=1", ""),
        ("value", "a=1", "a=2"),
        ("host", "http://www.x.y", "http://x.y"),
        ("path-parameter", "s", ""),
        ("slash", "", "/"),
        ("slash", "/", ""),
        ("case", "/", ""),
        ("case", "a", ""),
        ("path", "/p/", "/"),
        ("path-end", "/index.html", "/"),
        ("path-tail", "/d.php/*", "/d.php"),
        ("path-id", "/(S(*))", ""),
        ("template", "/story?id=*", "/story_*"),
        ("page", "*", "http://x.y/p"),
    ];

    #[test]
    fn each_kind_of_edit_changes_its_part() {
        for (kind, pattern, replacement, url, expected) in [
            ("order", "", "", "/?b=1;a=2&c", Some("/?a=2;b=1&c")),
            ("order", "", "", "/?a=1&b=2", None),
            ("parameter", "a&b", "", "/?b=1&c=1&a", Some("/?c=1")),
            ("parameter", "a", "", "/?a=1", Some("/")),
            ("parameter", "a", "", "/?aa=1", None),
            ("default-value", "a=1", "", "/?a=1&b=1", Some("/?b=1")),
            ("default-value", "a=1", "", "/?a=12", None),
            ("value", "a=1", "a=2", "/?b&a=1", Some("/?b&a=2")),
            ("host", "http://x.y", "https://z", "/q?r", Some("https://z/q?r")),
            ("path-parameter", "s", "", "/a;s=12/b;s=3", Some("/a/b;s=3")),
            ("path-parameter", "s", "", "/a;ss=12", None),
            ("slash", "", "/", "/a/b?c", Some("/a/b/?c")),
            ("slash", "", "/", "/a/b.html", None),
            ("slash", "/", "", "/a/?c", Some("/a?c")),
            ("slash", "/", "", "/", None),
            ("case", "/", "", "/A%2F%2fB?Q", Some("/a%2F%2fb?Q")),
            ("case", "id", "", "/A?id=A:B&x=Y", Some("/A?id=a:b&x=Y")),
            ("path", "/p/", "/", "/a/p/p/b", Some("/a/p/b")),
            ("path", "//", "/", "/a//b", Some("/a/b")),
            ("path-end", "/index.html", "/", "/a/index.html?b", Some("/a/?b")),
            ("path-end", "/index.html", "/", "/index.html/b", None),
            ("path-tail", "/d.php/*", "/d.php", "/d.php/x/y?z", Some("/d.php?z")),
            ("path-tail", "/d.php/*", "/d.php", "/d.phpx/y", None),
            ("path-id", "/(S(*))", "", "/a/(S(12345678))/b", Some("/a/b")),
            ("path-id", "/*", "", "/a/12345678/b", Some("/a/b")),
            ("path-id", "/*", "", "/a/12345678", None),
            ("template", "/story?id=*", "/story_*", "/story?id=17", Some("/story_17")),
            ("template", "/story?id=*", "/story_*", "/story?id=17&x", None),
            ("page", "*", "http://x.y/p", "/p?q", Some("/p")),
            ("page", "*", "http://x.y/p", "/p", None),
        ] {
            let url = format!("http://x.y{url}");
            let edit = UrlEdit::parse(kind, pattern, replacement).unwrap();
            let actual = edit.apply(&UrlParts::parse(&url).unwrap());
            let expected_urls = expected
                .map(|edited| if edited.starts_with('/') { format!("http://x.y{edited}") } else { edited.into() });
            assert_eq!(actual, expected_urls, "{kind} {pattern} of {url}");
        }
    }

    #[test]
    fn an_edit_is_read_as_written() {
        for (kind, pattern, replacement) in EDITS {
            let edit = UrlEdit::parse(kind, pattern, replacement).unwrap();
            let (from, to) = edit.texts();
            assert_eq!((edit.kind(), from.as_str(), to.as_str()), (kind, pattern, replacement));
        }
        assert_eq!(UrlEdit::parse("other", "", ""), None);
    }

    proptest! {
        #[test]
        fn an_edited_url_has_parts_and_is_another(
            url in "http://(www\\.)?x\\.y(/(d\\.php|[apAS]|p|story|\\(S\\(abcdefgh\\)\\)|index\\.html|;s=1){0,1}){1,4}(\\?[abAid=12&;]{0,8})?",
            edit in 0..EDITS.len(),
        ) {
            let (kind, pattern, replacement) = EDITS[edit];
            let edit = UrlEdit::parse(kind, pattern, replacement).unwrap();
            if let Some(edited_url) = edit.apply(&UrlParts::parse(&url).unwrap()) {
                prop_assert!(UrlParts::parse(&edited_url).is_some(), "{}", edited_url);
                prop_assert_ne!(edited_url, url);
            }
        }
    }
}
