//! Relative names of a set of files: their paths below the deepest common folder.

use std::collections::HashSet;
use std::path::Component;

use super::location::Location;
use webtwin_base::error::{Error, Result};

/// Returns the segments of a name, of which the last is the file name. They do not depend on the
/// way the file was specified. On the local disk they are those of the absolute path without `.`
/// and `..`. In a store they are the scheme, the bucket and the segments of the key.
///
/// Links are not resolved, because they are names, too.
pub fn segments(location: &Location) -> Vec<String> {
    let Some(path) = location.path() else {
        let name = location.name().replacen("://", "/", 1);
        return name.split('/').filter(|part| !part.is_empty()).map(String::from).collect();
    };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut parts: Vec<String> = Vec::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts
}

/// Returns the path of each file below the deepest common folder, with `/` as the separator.
pub fn below_common_folder(names: &[Vec<String>]) -> Vec<String> {
    let folders = names.iter().map(|name| &name[..name.len().saturating_sub(1)]);
    let common = folders.reduce(|x, y| &x[..x.iter().zip(y).take_while(|(x, y)| x == y).count()]).map_or(0, <[_]>::len);
    names.iter().map(|name| name[common..].join("/")).collect()
}

/// Verifies that the files of the input and those of `--against` are disjoint, however the user
/// specified them. `files` are either of the two, and `others` are the other files.
///
/// # Errors
/// Returns [`Error::Usage`] with the name in `files` of the first file that is in both.
pub fn verify_distinct<'a>(
    mut files: impl Iterator<Item = &'a Location>,
    others: impl Iterator<Item = &'a Location>,
) -> Result<()> {
    let other_names: HashSet<Vec<String>> = others.map(segments).collect();
    match files.find(|file| other_names.contains(&segments(file))) {
        None => Ok(()),
        Some(file) => {
            Err(Error::Usage(format!("{file} is both in the input and in --against; remove it from one of them")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    fn paths(names: &[&str]) -> Vec<String> {
        let segments_of = |name: &&str| segments(&Location::parse(name).unwrap());
        below_common_folder(&names.iter().map(segments_of).collect::<Vec<_>>())
    }

    #[test]
    fn path_is_relative_to_the_deepest_common_folder() {
        assert_eq!(paths(&["/a/b/x"]), ["x"]);
        assert_eq!(paths(&["/a/b/x", "/a/b/y"]), ["x", "y"]);
        assert_eq!(paths(&["/a/b/x", "/a/bc/x"]), ["b/x", "bc/x"]);
        assert_eq!(paths(&["/a/x", "/a/b/x"]), ["x", "b/x"]);
        assert_eq!(paths(&["/a/b/../c/x", "/a/c/./y"]), ["x", "y"]);
        assert_eq!(paths(&["/x", "/y/x"]), ["x", "y/x"]);
        assert!(paths(&["x", "../x"]).iter().all(|path| !path.contains("..")));
        assert!(paths(&[]).is_empty());
    }

    #[test]
    fn name_is_the_same_for_any_form_of_the_path() {
        let segments_of = |name: &str| segments(&Location::parse(name).unwrap());
        assert_eq!(segments_of("/a/./b/../c"), ["a", "c"]);
        assert_eq!(segments_of("x"), segments_of("y/../x"));
        let stored = Location::of_store(Arc::new(InMemory::new()), "s3://bucket", "a/x").unwrap();
        assert_eq!(segments(&stored), ["s3", "bucket", "a", "x"]);
    }

    #[test]
    fn a_file_in_both_is_reported_by_its_first_name() {
        let locations = |names: &[&str]| names.iter().map(|name| Location::parse(name).unwrap()).collect::<Vec<_>>();
        let verify = |files: &[&str], others: &[&str]| {
            verify_distinct(locations(files).iter(), locations(others).iter()).map_err(|error| error.to_string())
        };
        assert_eq!(verify(&["/a/x", "/a/y"], &["/b/x"]), Ok(()));
        let refused = verify(&["/a/y", "/a/./x"], &["/a/b/../x"]).unwrap_err();
        assert!(refused.contains("/a/./x is both"), "{refused}");
    }
}
