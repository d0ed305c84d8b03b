//! Places of URLs: the part of a URL that is equal in mirrors, and the folders of a URL.

use xxhash_rust::xxh3::Xxh3;

/// Returns the length of the scheme, host and port, with the slash that follows, in bytes.
fn origin_bytes(url: &str) -> usize {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url.len(), |at| host + at + 1)
}

/// Returns the length of a URL up to its query, in bytes.
fn path_bytes(url: &str) -> usize {
    url.find('?').unwrap_or(url.len())
}

/// Returns the name of the host of a URL, with its port.
pub(crate) fn host(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..origin_bytes(url)].trim_end_matches('/')
}

/// Returns the folders of a URL, the whole site first: each prefix that ends at a slash of the
/// path.
pub(crate) fn folders(url: &str) -> impl DoubleEndedIterator<Item = &str> {
    let (origin, path) = (origin_bytes(url), path_bytes(url));
    let slashes = url[..path.max(origin)].match_indices('/').map(|(at, _)| at + 1);
    slashes.filter(move |&end| end >= origin).map(|end| &url[..end])
}

/// Returns the hash of a place below a folder. The hash ignores case and the file extension,
/// because mirrors change both: `x.htm` for `X.html`.
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

/// Returns the part of a URL below a folder in lower case, without the extension of its last name.
fn name(rest: &str) -> String {
    let (stem, query) = stem(rest);
    let mut name = stem.to_lowercase();
    name.push_str(query);
    name
}

/// Splits the part of a URL below a folder into the path, without the extension of its last name,
/// and the query.
fn stem(rest: &str) -> (&str, &str) {
    let (path, query) = rest.split_at(path_bytes(rest));
    let last = path.rfind('/').map_or(0, |at| at + 1);
    let end = path[last..].rfind('.').filter(|&at| at > 0).map_or(path.len(), |at| last + at);
    (&path[..end], query)
}

/// Returns the extension of the last name of a URL, with its dot; empty for none.
pub(crate) fn ending(url: &str) -> &str {
    let path = &url[..path_bytes(url)];
    let last = path.rfind('/').map_or(0, |at| at + 1);
    path[last..].rfind('.').filter(|&at| at > 0).map_or("", |at| &path[last + at..])
}

/// Returns the widest folders of two URLs below which both URLs have the same place; `None` if not
/// even the last names agree, or if the two folders are equal.
pub(crate) fn aligned<'u>(folder_a: &'u str, folder_b: &'u str) -> Option<(&'u str, &'u str)> {
    // Canonical URLs are ASCII, so an ASCII comparison of case is enough.
    let mut longest: Option<(&str, &str)> = None;
    for (suffix_a, suffix_b) in folders(folder_a).rev().zip(folders(folder_b).rev()) {
        let is_same = match longest {
            None => {
                let (stem_a, stem_b) = (stem(&folder_a[suffix_a.len()..]), stem(&folder_b[suffix_b.len()..]));
                stem_a.0.eq_ignore_ascii_case(stem_b.0) && stem_a.1 == stem_b.1
            }
            // The parts below the narrower folders are known to be equal, so only one more name is
            // compared.
            Some((path_a, path_b)) => path_a[suffix_a.len()..].eq_ignore_ascii_case(&path_b[suffix_b.len()..]),
        };
        if !is_same {
            break;
        }
        longest = Some((suffix_a, suffix_b));
    }
    longest.filter(|(our, their)| our != their)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Specification of [`aligned`], by comparison of whole names.
    fn aligned_by_names<'u>(folder_a: &'u str, folder_b: &'u str) -> Option<(&'u str, &'u str)> {
        let rest = |url: &'u str, folder: &str| name(&url[folder.len()..]);
        let pairs = folders(folder_a).rev().zip(folders(folder_b).rev());
        let equal_names = pairs.take_while(|(our, their)| rest(folder_a, our) == rest(folder_b, their));
        equal_names.last().filter(|(our, their)| our != their)
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
    fn folders_and_common_parts_of_two_urls() {
        let folder_list: Vec<&str> = folders("http://a.example/pub/doc/x.html?y=/z").collect();
        assert_eq!(folder_list, ["http://a.example/", "http://a.example/pub/", "http://a.example/pub/doc/"]);
        let aligned_folders = aligned("http://a.example/pub/doc/api/x.html", "http://b.example/api/X.htm");
        assert_eq!(aligned_folders, Some(("http://a.example/pub/doc/", "http://b.example/")));
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
