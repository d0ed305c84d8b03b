//! Expansion of a user's inputs: files, globs, lists of paths, and folders.
//!
//! - A file is expanded to itself.
//! - A glob (`*`, `?` and `[..]` within a segment, `**` across segments) is expanded to the files
//!   whose whole name matches. Names with a leading dot match only if the pattern contains the dot.
//! - `@FILE` is expanded to the entries of the list, one per line, plain or gzip. Blank lines and
//!   `#` comments are skipped. Relative entries are relative to the list's folder.
//! - A folder with pages (a name that ends in `.html`, `.htm` or `.xhtml`, or HTML in its first
//!   file) is expanded to itself, and its name ends with `/`.
//! - Any other folder is expanded to the files in it, at any depth, except below names that begin
//!   with a dot or underscore.
//!
//! A file that exists is never interpreted as a glob, whatever its name.

use std::collections::HashMap;
use std::io::Read;

use glob::{MatchOptions, Pattern};

use super::location::{ListedFile, Location};
use super::open::open;
use super::relative::segments;
use super::stores::Stores;
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;

/// Extensions of files that make their folder a folder of pages.
const PAGE_ENDINGS: [&str; 3] = [".html", ".htm", ".xhtml"];

/// Maximum size of a decompressed list in bytes: about ten million entries.
const LIST_BYTES: u64 = 1 << 30;

/// Predicate that is true if the first bytes of a file are those of a page.
pub type PageTest = fn(&[u8]) -> bool;

/// Expansion of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedInput {
    /// Input as given.
    pub input: String,
    /// True if the locations were found in a folder or by a glob. Otherwise they are named by the
    /// input or in its list.
    pub is_search: bool,
    /// Files, or one folder of pages: at least one location, in no particular order.
    pub locations: Vec<Location>,
}

/// Expands each input, in the order of the inputs. Several inputs may be expanded to the same
/// location. A file that is named in several forms (`x`, `./x`, its absolute path) has the first of
/// them everywhere.
///
/// # Errors
/// Returns [`Error::Input`] if an input does not exist, a glob matches nothing, or a list or folder
/// has no entries. The existence of the entries of a list is not checked; opening them reports
/// those that are missing.
///
/// # Cost
/// One listing for each glob or folder, and one request for each other input.
pub fn expand(inputs: &[String], is_page: PageTest) -> Result<Vec<ExpandedInput>> {
    expand_with(inputs, is_page, Stores::of_env())
}

/// Expands inputs like [`expand`], with explicit stores.
pub fn expand_with(inputs: &[String], is_page: PageTest, stores: &Stores) -> Result<Vec<ExpandedInput>> {
    let expand_input = |input: &String| {
        let mut locations = Vec::new();
        let is_search = match input.strip_prefix('@') {
            Some(list) => {
                read_list(&Location::parse_with(list, stores)?, stores, &mut locations)?;
                false
            }
            None => expand_one(input, is_page, stores, &mut locations)?,
        };
        Ok(ExpandedInput { input: input.clone(), is_search, locations })
    };
    let mut expanded: Vec<ExpandedInput> = inputs.iter().map(expand_input).collect::<Result<_>>()?;
    let mut spellings: HashMap<(bool, Vec<String>), Location> = HashMap::new();
    for location in expanded.iter_mut().flat_map(|input| &mut input.locations) {
        let first_spelling = spellings.entry((location.is_folder(), segments(location)));
        location.clone_from(first_spelling.or_insert_with(|| location.clone()));
    }
    Ok(expanded)
}

/// Appends the locations of one input that is not a list. Returns true if they were found by a
/// search.
fn expand_one(input: &str, is_page: PageTest, stores: &Stores, locations: &mut Vec<Location>) -> Result<bool> {
    let is_glob = input.contains(['*', '?', '[']);
    // A glob need not be a valid key of a store (`**`), so it is treated as a location only if it
    // parses.
    let location = match Location::parse_with(input, stores) {
        Err(_) if is_glob => None,
        location => Some(location?),
    };
    // A glob that ends with a slash names folders, so it cannot be an existing file.
    if let Some(location) = location.filter(|location| !location.is_folder() || !is_glob) {
        if !location.is_folder() && location.exists()? {
            locations.push(location);
            return Ok(false);
        }
        let files = if is_glob { Vec::new() } else { location.list(None)? };
        if !files.is_empty() {
            expand_folder(location, files, is_page, locations)?;
            return Ok(true);
        }
        if !is_glob {
            let reason = match location.path().is_some_and(|path| path.is_dir()) {
                true => "the folder has no files; name a folder with input files",
                false => "there is no such file or folder; check the path",
            };
            return Err(Error::input(input, reason));
        }
    }
    expand_glob(input, stores, locations)?;
    Ok(true)
}

/// Finds the files that match a pattern. It lists everything below the last folder without
/// wildcards, and matches whole names.
fn expand_glob(input: &str, stores: &Stores, locations: &mut Vec<Location>) -> Result<()> {
    let pattern = Pattern::new(input).map_err(|error| Error::input(input, format!("not a valid glob: {error}")))?;
    let wildcard = input.find(['*', '?', '[']).unwrap_or(input.len());
    let (folder, glob_pattern) = match input[..wildcard].rfind('/') {
        Some(0) => (Location::parse_with("/", stores)?, &input[1..]),
        Some(slash) => (Location::parse_with(&input[..slash], stores)?, &input[slash + 1..]),
        None => (Location::current_folder(), input),
    };
    let depth = (!glob_pattern.contains("**")).then(|| glob_pattern.split('/').count());
    let options =
        MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let previous_count = locations.len();
    let files = folder.list(depth)?.into_iter().map(|file| file.location);
    locations.extend(files.filter(|file| pattern.matches_with(file.name(), options)));
    match locations.len() > previous_count {
        true => Ok(()),
        false => Err(Error::input(input, "the glob matches no file; check the pattern")),
    }
}

fn expand_folder(
    folder: Location,
    files: Vec<ListedFile>,
    is_page: PageTest,
    locations: &mut Vec<Location>,
) -> Result<()> {
    if is_page_folder(&files, is_page)? {
        locations.push(folder.into_folder());
        return Ok(());
    }
    let root = folder.name().trim_end_matches('/').len();
    let hidden = |file: &Location| file.name()[root..].split('/').any(|segment| segment.starts_with(['.', '_']));
    let previous_count = locations.len();
    locations.extend(files.into_iter().map(|file| file.location).filter(|file| !hidden(file)));
    match locations.len() > previous_count {
        true => Ok(()),
        false => Err(Error::input(
            folder.name(),
            "the folder has only files whose names begin with a dot or underscore; name them, or use a glob",
        )),
    }
}

fn is_page_folder(files: &[ListedFile], is_page: PageTest) -> Result<bool> {
    if files.iter().any(|file| has_page_ending(file.location.name())) {
        return Ok(true);
    }
    match files.iter().find(|file| file.stamp.bytes > 0 && !file.location.file_name().starts_with('.')) {
        Some(file) => Ok(is_page(&open(&file.location)?.read_at(0, 1024)?)),
        None => Ok(false),
    }
}

/// True if the name of a file has the ending of a page.
pub fn has_page_ending(name: &str) -> bool {
    PAGE_ENDINGS.iter().any(|ending| has_ending(name, ending))
}

/// True if `name` ends with `ending` in upper or lower case, and is longer than `ending`.
pub fn has_ending(name: &str, ending: &str) -> bool {
    let at = name.len().checked_sub(ending.len()).filter(|&at| at > 0);
    at.is_some_and(|at| name.as_bytes()[at..].eq_ignore_ascii_case(ending.as_bytes()))
}

/// Reads the entries of a list of paths.
fn read_list(list: &Location, stores: &Stores, locations: &mut Vec<Location>) -> Result<()> {
    let fault = |reason: String| Error::input(format!("@{list}"), reason);
    let packed = list.get()?.ok_or_else(|| fault("there is no such list; check the path after @".into()))?;
    let mut bytes = Vec::new();
    if packed.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = flate2::bufread::MultiGzDecoder::new(&packed[..]).take(LIST_BYTES + 1);
        unpacked.read_to_end(&mut bytes).map_err(|error| fault(format!("the gzip data is damaged: {error}")))?;
    } else {
        bytes = packed;
    }
    if bytes.len() as u64 > LIST_BYTES {
        return Err(fault(format!("is longer than {LIST_BYTES} bytes; split it")));
    }
    let text = String::from_utf8(bytes).map_err(|_| fault("is not UTF-8; write one path or URL per line".into()))?;
    let previous_count = locations.len();
    for (number, line) in text.lines().enumerate() {
        let entry = line.trim().trim_start_matches('\u{feff}');
        if entry.is_empty() || entry.starts_with('#') {
            continue;
        }
        let location = match entry.contains("://") || entry.starts_with('/') {
            true => Location::parse_with(entry, stores),
            false => list.sibling(entry),
        };
        locations.push(location.map_err(|error| fault(format!("line {}: {error}", number + 1)))?);
    }
    match locations.len() > previous_count {
        true => Ok(()),
        false => Err(fault("the list has no entries; write one path or URL per line".into())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;

    use flate2::write::GzEncoder;

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn tree_with(files: &[(&str, &[u8])]) -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            for (name, bytes) in files {
                Location::parse(&tree.path(name)).unwrap().put(bytes).unwrap();
            }
            tree
        }

        fn path(&self, name: &str) -> String {
            format!("{}/{name}", self.0.path().to_str().unwrap())
        }

        fn expand(&self, inputs: &[&str]) -> Result<Vec<String>> {
            let absolute = |input: &&str| match input.strip_prefix('@') {
                Some(list) => format!("@{}", self.path(list)),
                None => self.path(input),
            };
            let root = self.path("");
            let inputs: Vec<String> = inputs.iter().map(absolute).collect();
            let expanded = expand(&inputs, |head| head.starts_with(b"<!doctype html"))?;
            let locations: BTreeSet<_> = expanded.into_iter().flat_map(|one| one.locations).collect();
            Ok(locations.iter().map(|location| location.name().replacen(&root, "", 1)).collect())
        }
    }

    #[test]
    fn globs_lists_folders_and_files_become_files() {
        let mut list = GzEncoder::new(Vec::new(), Default::default());
        list.write_all("# two\r\n\r\nb/2.warc\r\n./b/1.warc\n".as_bytes()).unwrap();
        let list = list.finish().unwrap();
        let tree = Tree::tree_with(&[
            ("a/x.warc.gz", b"x"),
            ("a/[1].warc", b"x"),
            ("a/1.warc", b"x"),
            ("a/.hidden.warc", b"x"),
            ("b/1.warc", b"x"),
            ("b/2.warc", b"x"),
            ("b/_SUCCESS", b""),
            ("b/c/3.warc", b"x"),
            ("b/c/d/4 #%2F.warc", b"x"),
            ("list", b"b/1.warc\n# no\n\n  b/2.warc"),
            ("list.gz", &list),
            ("site/one.html", b"x"),
            ("site/sub/two", b"x"),
            ("bare/one", b"<!doctype html>x"),
        ]);
        for (inputs, expected) in [
            (&["b/2.warc", "b/1.warc", "b/2.warc"][..], &["b/1.warc", "b/2.warc"][..]),
            (&["a/*.warc"], &["a/1.warc", "a/[1].warc"]),
            (&["a/[1].warc"], &["a/[1].warc"]),
            (&["?/1.warc"], &["a/1.warc", "b/1.warc"]),
            (&["b/[12].warc"], &["b/1.warc", "b/2.warc"]),
            (&["b/**/*.warc"], &["b/1.warc", "b/2.warc", "b/c/3.warc", "b/c/d/4 #%2F.warc"]),
            (&["*/c/*"], &["b/c/3.warc"]),
            (&["b"], &["b/1.warc", "b/2.warc", "b/c/3.warc", "b/c/d/4 #%2F.warc"]),
            (&["b/"], &["b/1.warc", "b/2.warc", "b/c/3.warc", "b/c/d/4 #%2F.warc"]),
            (&["@list"], &["b/1.warc", "b/2.warc"]),
            (&["@list.gz", "b/1.warc"], &["b/./b/1.warc", "b/2.warc"]),
            (&["b/1.warc", "@list.gz", "b/2.warc", "b/../b/1.warc"], &["b/1.warc", "b/2.warc"]),
            (&["site"], &["site/"]),
            (&["bare/"], &["bare/"]),
        ] {
            let expected: Vec<String> = expected.iter().map(|name| name.replacen("b/./b", "./b", 1)).collect();
            assert_eq!(tree.expand(inputs).unwrap(), expected, "{inputs:?}");
        }
    }

    #[test]
    fn files_of_folders_and_globs_are_found_by_search_and_others_are_named() {
        let tree = Tree::tree_with(&[("a/1.warc", b"x"), ("a/2.warc", b"x"), ("list", b"a/1.warc\n")]);
        let list = format!("@{}", tree.path("list"));
        for (input, is_search, files) in [
            (tree.path("a/1.warc"), false, 1),
            (list, false, 1),
            (tree.path("a"), true, 2),
            (tree.path("a/*"), true, 2),
        ] {
            let [expansion] = &expand(std::slice::from_ref(&input), |_| false).unwrap()[..] else { panic!("{input}") };
            assert_eq!((&expansion.input, expansion.is_search, expansion.locations.len()), (&input, is_search, files));
        }
    }

    #[test]
    fn inputs_without_files_are_errors_that_name_them() {
        let tree = Tree::tree_with(&[("empty-list", b"# none\n"), ("latin-list", b"\xff"), ("only/.hidden", b"x")]);
        std::fs::create_dir(tree.path("folder")).unwrap();
        for (input, words) in [
            ("missing.warc", "no such file"),
            ("missing/*.warc", "matches no file"),
            ("*.warc", "matches no file"),
            ("a/[", "not a valid glob"),
            ("folder", "has no files"),
            ("only", "begin with a dot"),
            ("@missing", "no such list"),
            ("@empty-list", "no entries"),
            ("@latin-list", "not UTF-8"),
        ] {
            let error = tree.expand(&[input]).unwrap_err();
            assert_eq!(error.exit_code(), 3, "{input}");
            let is_named = error.to_string().contains(input.trim_start_matches('@'));
            assert!(is_named && error.to_string().contains(words), "{input}: {error}");
        }
    }

    #[test]
    fn a_hundred_thousand_entries_are_read_in_order() {
        let list: String = (0..100_000).rev().map(|i| format!("f{i:06}.warc\n")).collect();
        let tree = Tree::tree_with(&[("list", list.as_bytes())]);
        let expanded = tree.expand(&["@list"]).unwrap();
        assert_eq!((expanded.len(), expanded[0].as_str(), expanded.is_sorted()), (100_000, "f000000.warc", true));
    }

    #[cfg(unix)]
    #[test]
    fn recursive_glob_survives_a_loop_of_links() {
        let tree = Tree::tree_with(&[("a/1.warc", b"x")]);
        std::os::unix::fs::symlink(tree.path("a"), tree.path("a/loop")).unwrap();
        assert_eq!(tree.expand(&["**/*.warc"]).unwrap(), ["a/1.warc"]);
        assert_eq!(tree.expand(&["a"]).unwrap(), ["a/1.warc"]);
    }
}
