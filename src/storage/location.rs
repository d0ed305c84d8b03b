//! Name of a file or folder, on the local disk or in an object store. [`super::files`] has the
//! operations on it.
//!
//! The part of a store's URL after the bucket is the literal key, as in the vendors' own tools. It
//! is not percent-decoded, so every key that a store can hold can be named. A `file://` URL is a
//! URL and is decoded.

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path as Key;

use super::open::FileStamp;
use super::stores::Stores;
use webtwin_base::error::{Error, Result};

/// File or folder. Locations are compared by name, and by path if their names are equal. They are
/// cheap to clone.
///
/// In the name of a path that is not UTF-8, invalid bytes are written as `\xE9`.
#[derive(Clone)]
pub struct Location {
    name: Arc<str>,
    pub(crate) place: Backend,
}

/// Resource that a name refers to.
#[derive(Clone)]
pub(crate) enum Backend {
    Local(Arc<Path>),
    Remote(Arc<dyn ObjectStore>, Key),
}

/// A file found by [`Location::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Name of the file.
    pub location: Location,
    /// Length and version of the file when it was listed.
    pub stamp: FileStamp,
}

impl Location {
    /// Parses a path or URL, with the stores of the environment.
    ///
    /// # Errors
    /// Returns [`Error::Input`] for an unknown scheme, a URL without a bucket or with a password,
    /// or a key with an empty, `.` or `..` segment.
    pub fn parse(url: &str) -> Result<Location> {
        Location::parse_with(url, Stores::of_env())
    }

    /// Parses a path or URL like [`Location::parse`], with explicit stores.
    pub fn parse_with(url: &str, stores: &Stores) -> Result<Location> {
        let Some((scheme, bucket_and_key)) = split_scheme(url) else {
            if url.is_empty() {
                return Err(Error::input("\"\"", "the name is empty; give a path or URL"));
            }
            return Ok(Location::local(PathBuf::from(url), url.to_string()));
        };
        if scheme == "file" {
            let path = url::Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
            let path = path.ok_or_else(|| Error::input(url, "not a local file; write file:///absolute/path"))?;
            let name = path.to_string_lossy().into_owned();
            return Ok(Location::local(path, name));
        }
        let (bucket, key) = bucket_and_key.split_once('/').unwrap_or((bucket_and_key, ""));
        // The container of an Azure URL precedes an `@`. A colon in front of the `@` would
        // introduce a password, which must not reach a log.
        if bucket.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
            return Err(Error::input(
                format!("{scheme}://***"),
                "the URL has credentials; set them in the environment instead",
            ));
        }
        if bucket.is_empty() {
            return Err(Error::input(url, "names no bucket; write scheme://bucket/key"));
        }
        let root = format!("{scheme}://{bucket}");
        let store = stores.client(&scheme, &root)?;
        Location::of_store(store, &root, key)
    }

    /// Returns the location of a key in an open store. `root` is the prefix of its name.
    ///
    /// # Errors
    /// Returns [`Error::Input`] for a key with an empty, `.` or `..` segment.
    pub fn of_store(store: Arc<dyn ObjectStore>, root: &str, key: &str) -> Result<Location> {
        let name = format!("{root}/{key}");
        let key = Key::parse(key).map_err(|error| Error::input(&name, error))?;
        Ok(Location { name: name.into(), place: Backend::Remote(store, key) })
    }

    pub(super) fn local(path: PathBuf, name: String) -> Location {
        Location { name: name.into(), place: Backend::Local(path.into()) }
    }

    /// Returns the path or URL as the user writes it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the last segment of the name.
    pub fn file_name(&self) -> &str {
        self.name.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path of a location on the local disk, and `None` otherwise.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Backend::Local(path) => Some(path),
            Backend::Remote(..) => None,
        }
    }

    /// True if the name ends with a slash, and so names a folder.
    pub fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }

    /// Returns this location as a folder.
    pub fn into_folder(self) -> Location {
        match self.is_folder() {
            true => self,
            false => Location { name: format!("{}/", self.name).into(), place: self.place },
        }
    }

    /// Returns the location of a file below this folder. The segments of `relative` are separated
    /// by `/`.
    ///
    /// # Errors
    /// Returns [`Error::Input`] under the conditions of [`Location::of_store`].
    pub fn join(&self, relative: &str) -> Result<Location> {
        let name = match self.name.trim_end_matches('/') {
            "" => format!("/{relative}"),
            folder => format!("{folder}/{relative}"),
        };
        Ok(match &self.place {
            Backend::Local(path) => Location::local(path.join(relative), name),
            Backend::Remote(store, key) => {
                let key_text = if key.is_root() { relative.to_string() } else { format!("{key}/{relative}") };
                let key = Key::parse(key_text).map_err(|error| Error::input(&name, error))?;
                Location { name: name.into(), place: Backend::Remote(Arc::clone(store), key) }
            }
        })
    }

    /// Returns the location of a file in the same folder as this file.
    pub fn sibling(&self, relative: &str) -> Result<Location> {
        let folder = match self.name.rfind('/') {
            Some(slash) => &self.name[..slash],
            None => "",
        };
        match &self.place {
            Backend::Local(path) => {
                let path = path.parent().unwrap_or(Path::new("")).join(relative);
                let name = if self.name.contains('/') { format!("{folder}/{relative}") } else { relative.to_string() };
                Ok(Location::local(path, name))
            }
            Backend::Remote(store, key) => {
                let parent = key.parent().unwrap_or_default();
                Location { name: folder.into(), place: Backend::Remote(Arc::clone(store), parent) }.join(relative)
            }
        }
    }

    /// Returns the current folder, with an empty name. Relative patterns without a slash are
    /// searched in it.
    pub fn current_folder() -> Location {
        Location::local(PathBuf::new(), String::new())
    }

    /// True if this location is `folder` or below it, whatever the names of both.
    pub fn is_within(&self, folder: &Location) -> bool {
        match (self.path(), folder.path()) {
            (Some(path), Some(folder)) => resolve_links(path).starts_with(resolve_links(folder)),
            (None, None) => {
                let [name, folder] = [self, folder].map(|of| of.name.trim_end_matches('/'));
                name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            _ => false,
        }
    }

    /// Converts an error of a store. Adds the location and, for the most common mistake, the
    /// remedy.
    pub fn store_error(&self, error: object_store::Error) -> Error {
        let mut reason = error.to_string();
        if reason.contains("169.254.") {
            reason.push_str(
                "; no credentials are set, so those of the cloud's own machine were requested; set credentials, or \
                 AWS_SKIP_SIGNATURE=true (GOOGLE_SKIP_SIGNATURE, AZURE_SKIP_SIGNATURE) for a public bucket",
            );
        }
        Error::storage(self.name(), reason)
    }
}

/// Returns the name of a file as text. Bytes that are not UTF-8 become `\xE9`.
pub(super) fn text_of(name: &std::ffi::OsStr) -> String {
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02X}")));
    }
    text
}

/// True if a path is relative and plain: names separated by `/`, none of which is empty, `.` or
/// `..`. So a folder joined with the path is below that folder, unless there are links.
pub fn is_plain(path: &str) -> bool {
    !path.contains('\0') && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// Returns an absolute path. Links are resolved in the part that exists.
fn resolve_links(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let real = |above: &Path| Some(above.canonicalize().ok()?.join(path.strip_prefix(above).ok()?));
    path.ancestors().find_map(real).unwrap_or_else(|| path.clone())
}

/// Returns the working directory of this process, or an empty text if the system does not report
/// it.
pub fn working_folder() -> String {
    std::env::current_dir().map_or(String::new(), |folder| folder.to_string_lossy().into_owned())
}

/// Resolves `name` against the folder `folder` to an absolute path. URLs are returned unchanged.
pub fn seen_from_anywhere(name: &str, folder: &str) -> String {
    if split_scheme(name).is_some() {
        return name.into();
    }
    let path = Path::new(folder).join(name);
    std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
}

/// Splits a URL into its scheme, in lower case, and the rest after `://`. Returns `None` if there
/// is no valid scheme.
fn split_scheme(url: &str) -> Option<(String, &str)> {
    let (scheme, path) = url.split_once("://")?;
    let mut characters = scheme.chars();
    let well_formed = characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|other| other.is_ascii_alphanumeric() || "+-.".contains(other));
    well_formed.then(|| (scheme.to_ascii_lowercase(), path))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

impl PartialEq for Location {
    fn eq(&self, other: &Location) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Location {}

impl PartialOrd for Location {
    fn partial_cmp(&self, other: &Location) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Location {
    fn cmp(&self, other: &Location) -> Ordering {
        self.name.cmp(&other.name).then_with(|| self.path().cmp(&other.path()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_url_is_decoded_and_a_path_is_not() {
        assert_eq!(Location::parse("file:///a%20b/c").unwrap().path().unwrap(), Path::new("/a b/c"));
        assert_eq!(Location::parse("/a%20b/c").unwrap().path().unwrap(), Path::new("/a%20b/c"));
        assert_eq!(Location::parse("a:b//c").unwrap().path().unwrap(), Path::new("a:b//c"));
    }

    #[test]
    fn plain_path_does_not_leave_its_folder() {
        for plain in ["a", "pages/part-00000.parquet", "a b/ü", "...", "a\\b", ".a/..b"] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in ["", "/", "/etc/x", "..", "../x", "a/../../x", "a/..", "./a", "a//b", "a/", "a\0b"] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn relative_name_is_resolved_against_its_folder_and_others_are_unchanged() {
        for (name, absolute) in [
            ("a/./b.warc", "/in/a/b.warc"),
            ("site/", "/in/site/"),
            ("/x/y", "/x/y"),
            ("s3://bucket/a/./b", "s3://bucket/a/./b"),
            ("synth://?pages=3", "synth://?pages=3"),
        ] {
            assert_eq!(seen_from_anywhere(name, "/in"), absolute);
        }
    }

    #[test]
    fn files_of_a_folder_are_within_it_by_any_name_and_neighbours_are_not() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
        let within = |name: &str, folder_name: &str| {
            let [name, parent] =
                [name, folder_name].map(|name| Location::parse(folder.path().join(name).to_str().unwrap()).unwrap());
            name.is_within(&parent)
        };
        for name in ["real", "real/", "link/a/b", "real/./a"] {
            assert!(within(name, "real") && within(name, "link/"), "{name}");
        }
        for name in ["really", "other/real", "."] {
            assert!(!within(name, "real"), "{name}");
        }
        assert!(within("not/there/a", "not/there") && !within("not/there", "not/there/a"));
    }

    #[cfg(feature = "aws")]
    #[test]
    fn buckets_have_folders_too() {
        let within = |name: &str, of: &str| Location::parse(name).unwrap().is_within(&Location::parse(of).unwrap());
        assert!(within("s3://bucket/a/b", "s3://bucket/a/") && within("s3://bucket/a/", "s3://bucket/a"));
        assert!(!within("s3://bucket/ab", "s3://bucket/a") && !within("s3://other/a", "s3://bucket/a"));
        assert!(!within("a/b", "s3://bucket/a"));
    }

    #[cfg(feature = "aws")]
    #[test]
    fn invalid_urls_are_rejected_by_name_without_passwords() {
        for (url, words) in [
            ("", "name is empty"),
            ("http://host/x", "http:// is not supported"),
            ("s3:///key", "no bucket"),
            ("s3://bucket/a/../b", ".."),
            ("s3://bucket/a//b", "a//b"),
            ("file://relative/x", "file:///absolute"),
            ("s3://user:hunter2@bucket/x", "environment"),
        ] {
            let error = Location::parse(url).unwrap_err();
            assert_eq!(error.exit_code(), 3, "{url}");
            assert!(error.to_string().contains(words), "{url}: {error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
