//! Places: what of a URL mirrors keep, and the folders that it is in.

use xxhash_rust::xxh3::Xxh3;

/// Returns the bytes of scheme, host and port, with the slash that follows.
fn origin_bytes(url: &str) -> usize {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url.len(), |at| host + at + 1)
}

/// Returns the bytes of a path up to its query.
fn path_bytes(url: &str) -> usize {
    url.find('?').unwrap_or(url.len())
}

/// Returns the name of the host of a URL, with its port.
pub(crate) fn host(url: &str) -> &str {
    let from = url.find("://").map_or(0, |at| at + 3);
    url[from..origin_bytes(url)].trim_end_matches('/')
}

/// Returns the folders of a URL, the whole site first: what is up to each slash of its path.
pub(crate) fn folders(url: &str) -> impl DoubleEndedIterator<Item = &str> {
    let (origin, path) = (origin_bytes(url), path_bytes(url));
    let slashes = url[..path.max(origin)].match_indices('/').map(|(at, _)| at + 1);
    slashes.filter(move |&end| end >= origin).map(|end| &url[..end])
}

/// Returns the hash of a place below a folder: mirrors write names in other cases and with other endings, as `x.htm` for `X.html`.
///
/// `place(folder, rest)` is the place of the URL `folder + rest`.
pub(crate) fn place(folder: &str, rest: &str) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(folder.to_lowercase().as_bytes());
    hash.update(name(rest).as_bytes());
    hash.digest()
}

/// Returns the hash of the place of a whole URL.
pub(crate) fn place_of(url: &str) -> u64 {
    let (origin, rest) = url.split_at(origin_bytes(url));
    place(origin, rest)
}

/// Writes the rest of a URL in lower case, without the ending of its last name.
fn name(rest: &str) -> String {
    let (stem, query) = stem(rest);
    let mut name = stem.to_lowercase();
    name.push_str(query);
    name
}

/// Returns the path of the rest of a URL without the ending of its last name, and the query.
fn stem(rest: &str) -> (&str, &str) {
    let (path, query) = rest.split_at(path_bytes(rest));
    let last = path.rfind('/').map_or(0, |at| at + 1);
    let end = path[last..].rfind('.').filter(|&at| at > 0).map_or(path.len(), |at| last + at);
    (&path[..end], query)
}

/// Returns the ending of the last name of a URL, with its dot; empty for none.
pub(crate) fn ending(url: &str) -> &str {
    let path = &url[..path_bytes(url)];
    let last = path.rfind('/').map_or(0, |at| at + 1);
    path[last..].rfind('.').filter(|&at| at > 0).map_or("", |at| &path[last + at..])
}

/// Returns the folders of two URLs below which both have the same place; `None` if not even the last names agree, or the
/// folders are one.
pub(crate) fn aligned<'u>(ours: &'u str, theirs: &'u str) -> Option<(&'u str, &'u str)> {
    // Canonical URLs are ASCII, so their case is too.
    let mut found: Option<(&str, &str)> = None;
    for (our, their) in folders(ours).rev().zip(folders(theirs).rev()) {
        let is_same = match found {
            None => {
                let (own, other) = (stem(&ours[our.len()..]), stem(&theirs[their.len()..]));
                own.0.eq_ignore_ascii_case(other.0) && own.1 == other.1
            }
            // What follows the next folder is the same already.
            Some((below, there)) => below[our.len()..].eq_ignore_ascii_case(&there[their.len()..]),
        };
        if !is_same {
            break;
        }
        found = Some((our, their));
    }
    found.filter(|(our, their)| our != their)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of [`aligned`].
    fn aligned_by_names<'u>(ours: &'u str, theirs: &'u str) -> Option<(&'u str, &'u str)> {
        let rest = |url: &'u str, folder: &str| name(&url[folder.len()..]);
        let pairs = folders(ours).rev().zip(folders(theirs).rev());
        let same = pairs.take_while(|(our, their)| rest(ours, our) == rest(theirs, their));
        same.last().filter(|(our, their)| our != their)
    }

    proptest! {
        #[test]
        fn folders_are_aligned_as_defined(paths in prop::array::uniform2("[aAb./]{0,8}[?]?[a/.]{0,2}")) {
            let urls = [format!("http://a.example/{}", paths[0]), format!("http://b.example/{}", paths[1])];
            prop_assert_eq!(aligned(&urls[0], &urls[1]), aligned_by_names(&urls[0], &urls[1]));
            prop_assert_eq!(aligned(&urls[0], &urls[0]), None);
        }
    }

    #[test]
    fn folders_and_what_two_urls_have_in_common() {
        let found: Vec<&str> = folders("http://a.example/pub/doc/x.html?y=/z").collect();
        assert_eq!(found, ["http://a.example/", "http://a.example/pub/", "http://a.example/pub/doc/"]);
        let found = aligned("http://a.example/pub/doc/api/x.html", "http://b.example/api/X.htm");
        assert_eq!(found, Some(("http://a.example/pub/doc/", "http://b.example/")));
        assert_eq!(aligned("http://a.example/x.html", "http://b.example/y.html"), None);
        assert_eq!(aligned("http://a.example/x.html", "http://a.example/X.htm"), None);
    }

    #[test]
    fn places_are_those_of_renamed_mirrors() {
        assert_eq!(place_of("http://a.example/Doc/X.html"), place("http://a.example/", "doc/x.htm"));
        assert_eq!(place_of("http://a.example/Doc/X.html"), place("http://a.example/Doc/", "x"));
        assert_ne!(place_of("http://a.example/x.html?a=1"), place_of("http://a.example/x.html"));
        assert_ne!(place_of("http://a.example/x"), place_of("http://b.example/x"));
        assert_eq!(place_of("http://a.example/.well-known"), place("http://a.example/", ".Well-Known"));
        assert_eq!((ending("http://a.example/x.html?y.z"), ending("http://a.example/")), (".html", ""));
        assert_eq!(host("http://a.example:8080/x"), "a.example:8080");
        assert_eq!(folders("http://a.example/").collect::<Vec<_>>(), ["http://a.example/"]);
    }
}
