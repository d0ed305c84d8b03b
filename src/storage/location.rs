//! A file or folder, on the local disk or in an object store.
//!
//! The part of a store's URL after the bucket is the key, literally, as in the vendors' own tools: nothing is
//! percent-decoded, so every key that a store can hold can be named. A `file://` URL is a URL and is decoded.

use std::cmp::Ordering;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};

use super::blocking::wait;
use super::open::Stamp;
use super::stores::Stores;
use crate::error::{Error, Result};
use crate::leftovers::Temporary;

/// A file or folder; equal and ordered by its name. Cheap to clone.
#[derive(Clone)]
pub struct Location {
    name: Arc<str>,
    pub(crate) place: Place,
}

#[derive(Clone)]
pub(crate) enum Place {
    Local(Arc<Path>),
    Remote(Arc<dyn ObjectStore>, Key),
}

/// A file found by [`Location::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Name of the file.
    pub location: Location,
    /// Length and version of the file when it was listed.
    pub stamp: Stamp,
}

impl Location {
    /// Parses a path or URL, with the stores of the environment.
    ///
    /// # Errors
    /// [`Error::Input`] for an unknown scheme, a URL without a bucket or with a password, or a key with an empty, `.`
    /// or `..` segment.
    pub fn parse(url: &str) -> Result<Location> {
        Location::parse_with(url, Stores::of_env())
    }

    /// As [`Location::parse`], with explicit stores.
    pub fn parse_with(url: &str, stores: &Stores) -> Result<Location> {
        let Some((scheme, rest)) = split_scheme(url) else {
            if url.is_empty() {
                return Err(Error::input("\"\"", "an empty name; give a path or URL"));
            }
            return Ok(Location::local(PathBuf::from(url), url.to_string()));
        };
        if scheme == "file" {
            let path = url::Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
            let path = path.ok_or_else(|| Error::input(url, "no local file; write file:///absolute/path"))?;
            let name = path.to_string_lossy().into_owned();
            return Ok(Location::local(path, name));
        }
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        // The container of an Azure URL comes before an `@`; a colon there would precede a password, which must not
        // reach a log.
        if bucket.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
            return Err(Error::input(
                format!("{scheme}://***"),
                "credentials belong in the environment, not in the URL",
            ));
        }
        if bucket.is_empty() {
            return Err(Error::input(url, "names no bucket; write scheme://bucket/key"));
        }
        let root = format!("{scheme}://{bucket}");
        let store = stores.client(&scheme, &root)?;
        Location::of_store(store, &root, key)
    }

    /// Returns the location of a key in a store that is already open; `root` is the prefix of its names.
    ///
    /// # Errors
    /// [`Error::Input`] for a key with an empty, `.` or `..` segment.
    pub fn of_store(store: Arc<dyn ObjectStore>, root: &str, key: &str) -> Result<Location> {
        let name = format!("{root}/{key}");
        let key = Key::parse(key).map_err(|error| Error::input(&name, error))?;
        Ok(Location { name: name.into(), place: Place::Remote(store, key) })
    }

    fn local(path: PathBuf, name: String) -> Location {
        Location { name: name.into(), place: Place::Local(path.into()) }
    }

    /// The path or URL, as people write it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Last segment of the name.
    pub fn file_name(&self) -> &str {
        self.name.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// The local path, when this is on the local disk.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Local(path) => Some(path),
            Place::Remote(..) => None,
        }
    }

    /// Whether the name is that of a folder: it ends with a slash.
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

    /// Returns the location of a file below this folder; `relative` has `/` between its segments.
    ///
    /// # Errors
    /// [`Error::Input`] as [`Location::of_store`].
    pub fn join(&self, relative: &str) -> Result<Location> {
        let name = match self.name.trim_end_matches('/') {
            "" => format!("/{relative}"),
            folder => format!("{folder}/{relative}"),
        };
        Ok(match &self.place {
            Place::Local(path) => Location::local(path.join(relative), name),
            Place::Remote(store, key) => {
                let below = if key.is_root() { relative.to_string() } else { format!("{key}/{relative}") };
                let key = Key::parse(below).map_err(|error| Error::input(&name, error))?;
                Location { name: name.into(), place: Place::Remote(Arc::clone(store), key) }
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
            Place::Local(path) => {
                let path = path.parent().unwrap_or(Path::new("")).join(relative);
                let name = if self.name.contains('/') { format!("{folder}/{relative}") } else { relative.to_string() };
                Ok(Location::local(path, name))
            }
            Place::Remote(store, key) => {
                let parent = key.parent().unwrap_or_default();
                Location { name: folder.into(), place: Place::Remote(Arc::clone(store), parent) }.join(relative)
            }
        }
    }

    /// Returns all bytes of the file, or `None` when it does not exist.
    ///
    /// # Errors
    /// [`Error::Storage`] when the store does not answer.
    pub fn get(&self) -> Result<Option<Vec<u8>>> {
        match &self.place {
            Place::Local(path) => match fs::read(path) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(Error::storage(self.name(), error)),
            },
            Place::Remote(store, key) => {
                let answer = wait(async { store.get(key).await?.bytes().await })?;
                match answer {
                    Ok(bytes) => Ok(Some(bytes.into())),
                    Err(object_store::Error::NotFound { .. }) => Ok(None),
                    Err(error) => Err(self.store_error(error)),
                }
            }
        }
    }

    /// Whether there is a file here.
    ///
    /// # Errors
    /// As [`Location::get`].
    pub fn exists(&self) -> Result<bool> {
        Ok(self.stamp()?.is_some())
    }

    /// Length and version of the file, or `None` when there is no file here.
    ///
    /// # Errors
    /// As [`Location::get`].
    pub fn stamp(&self) -> Result<Option<Stamp>> {
        match &self.place {
            Place::Local(path) => match fs::metadata(path) {
                Ok(metadata) => Ok(metadata.is_file().then(|| Stamp::of_file(&metadata))),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(Error::storage(self.name(), error)),
            },
            Place::Remote(store, key) => match wait(store.head(key))? {
                Ok(meta) => Ok(Some(Stamp::of_object(&meta))),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(self.store_error(error)),
            },
        }
    }

    /// Writes the whole file, replacing an older one; readers see all of it or nothing.
    ///
    /// Local files are written under a temporary name in the same folder, synced and renamed, and the folder is synced;
    /// missing folders are created.
    ///
    /// # Errors
    /// [`Error::Storage`]; [`Error::DiskFull`] when the disk is.
    pub fn put(&self, bytes: &[u8]) -> Result<()> {
        match &self.place {
            Place::Local(path) => {
                let written = write_beside(path, bytes).and_then(|temporary| {
                    fs::rename(temporary.path(), path)?;
                    sync_folder_of(path)
                });
                written.map_err(|error| self.write_error(error, bytes.len()))
            }
            Place::Remote(store, key) => {
                let answer = wait(async {
                    // On a slow line, a single request beyond this size would exceed the time allowed for a request.
                    const WHOLE: usize = 32 << 20;
                    if bytes.len() <= WHOLE {
                        return store.put(key, bytes.to_vec().into()).await.map(drop);
                    }
                    let mut upload = WriteMultipart::new_with_chunk_size(store.put_multipart(key).await?, 16 << 20);
                    for part in bytes.chunks(16 << 20) {
                        upload.wait_for_capacity(4).await?;
                        upload.write(part);
                    }
                    upload.finish().await.map(drop)
                })?;
                answer.map_err(|error| self.store_error(error))
            }
        }
    }

    /// Removes the file; succeeds if it does not exist.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn remove(&self) -> Result<()> {
        match &self.place {
            Place::Local(path) => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::storage(self.name(), error)),
                _ => Ok(()),
            },
            Place::Remote(store, key) => match wait(store.delete(key))? {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(self.store_error(error)),
            },
        }
    }

    /// Moves the file to another name in the same place, over what is there; `bytes` is its length. A file that is not
    /// there is no error, so several may move it at a time.
    ///
    /// On a local disk the folders are not synced.
    ///
    /// # Errors
    /// As [`Location::put`].
    pub fn move_to(&self, to: &Location, bytes: u64) -> Result<()> {
        match (&self.place, &to.place) {
            (Place::Local(from), Place::Local(path)) => {
                let moved = fs::create_dir_all(folder_of(path)).and_then(|()| fs::rename(from, path));
                match moved {
                    Err(error) if is_missing(&error) && !from.exists() => Ok(()),
                    moved => moved.map_err(|error| to.write_error(error, bytes as usize)),
                }
            }
            (Place::Remote(store, from), Place::Remote(_, key)) => {
                // S3 copies no more in one request.
                const MOST: u64 = 5 << 30;
                if bytes > MOST {
                    let Some(whole) = self.get()? else { return Ok(()) };
                    to.put(&whole)?;
                    return self.remove();
                }
                match wait(store.copy(from, key))? {
                    Ok(()) => self.remove(),
                    Err(object_store::Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(to.store_error(error)),
                }
            }
            _ => Err(Error::Invariant(format!("{self} and {to} are not in one place"))),
        }
    }

    /// Removes this folder with all that is below it; one that does not exist is no error.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn remove_all(&self) -> Result<()> {
        match &self.place {
            Place::Local(path) => match fs::remove_dir_all(path) {
                Err(error) if !is_missing(&error) => Err(Error::storage(self.name(), error)),
                _ => Ok(()),
            },
            Place::Remote(..) => self.list(None)?.iter().try_for_each(|file| file.location.remove()),
        }
    }

    /// Names of the files and folders directly in this folder, ascending; none when it does not exist.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn entries(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = match &self.place {
            Place::Local(path) => match fs::read_dir(path) {
                Err(error) if is_missing(&error) => Vec::new(),
                entries => entries
                    .and_then(|entries| {
                        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
                    })
                    .map_err(|error| Error::storage(self.name(), error))?,
            },
            Place::Remote(store, key) => {
                let prefix = (!key.is_root()).then_some(key);
                let found = wait(store.list_with_delimiter(prefix))?.map_err(|error| self.store_error(error))?;
                let objects = found.objects.into_iter().map(|meta| meta.location);
                let last = |key: Key| key.filename().map(str::to_string);
                objects.chain(found.common_prefixes).filter_map(last).collect()
            }
        };
        names.sort_unstable();
        Ok(names)
    }

    /// A file below this folder, the folder's own entries that `passed_over` names left out; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn first_file(&self, passed_over: impl Fn(&str) -> bool) -> Result<Option<Location>> {
        for name in self.entries()?.iter().filter(|name| !passed_over(name)) {
            let entry = self.join(name)?;
            if entry.exists()? {
                return Ok(Some(entry));
            }
            match &entry.place {
                Place::Local(_) => {
                    if let Some(file) = entry.list(None)?.into_iter().next() {
                        return Ok(Some(file.location));
                    }
                }
                // Stores have no empty folders.
                Place::Remote(..) => return Ok(Some(entry.into_folder())),
            }
        }
        Ok(None)
    }

    /// Lists the files below this folder, by ascending name; `depth` bounds how many folders deep, 1 for its own files
    /// only.
    ///
    /// A link to a file counts as the file; a link to a folder is not followed, so a loop of links cannot catch us. A
    /// folder that does not exist has no files.
    ///
    /// # Errors
    /// [`Error::Storage`].
    ///
    /// # Cost
    /// Stores list everything below the prefix, whatever the depth.
    pub fn list(&self, depth: Option<usize>) -> Result<Vec<Listed>> {
        let mut files = match &self.place {
            Place::Local(path) => {
                let mut files = Vec::new();
                self.walk(path, "", depth.unwrap_or(usize::MAX), &mut files)?;
                files
            }
            Place::Remote(store, key) => {
                let prefix = (!key.is_root()).then_some(key);
                let found: Vec<_> = wait(store.list(prefix).try_collect())?.map_err(|error| self.store_error(error))?;
                let skip = if key.is_root() { 0 } else { key.as_ref().len() + 1 };
                let mut files = Vec::with_capacity(found.len());
                for meta in found {
                    // An object with the folder's own name is not below the folder.
                    let Some(relative) = meta.location.as_ref().get(skip..).filter(|relative| !relative.is_empty())
                    else {
                        continue;
                    };
                    if depth.is_none_or(|depth| relative.split('/').count() <= depth) {
                        files.push(Listed { location: self.join(relative)?, stamp: Stamp::of_object(&meta) });
                    }
                }
                files
            }
        };
        files.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        Ok(files)
    }

    fn walk(&self, folder: &Path, below: &str, depth: usize, files: &mut Vec<Listed>) -> Result<()> {
        let failed = |error| Error::storage(folder.to_string_lossy(), error);
        // A glob without a slash names the current folder as `""`.
        let readable = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let entries = match fs::read_dir(readable) {
            Err(error) if is_missing(&error) => return Ok(()),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = folder.join(entry.file_name());
            let relative = format!("{below}{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(failed)?.is_dir() {
                if depth > 1 {
                    self.walk(&path, &format!("{relative}/"), depth - 1, files)?;
                }
            } else if let Some(metadata) = fs::metadata(&path).ok().filter(|metadata| metadata.is_file()) {
                let name = if self.name.is_empty() { relative } else { self.join(&relative)?.name.to_string() };
                files.push(Listed { location: Location::local(path, name), stamp: Stamp::of_file(&metadata) });
            }
        }
        Ok(())
    }

    /// Returns the folder of a relative pattern without a slash: the current one, with an empty name.
    pub fn current_folder() -> Location {
        Location::local(PathBuf::new(), String::new())
    }

    /// Adds to a store's error where it happened and, for the commonest mistake, what to do.
    pub fn store_error(&self, error: object_store::Error) -> Error {
        let mut reason = error.to_string();
        if reason.contains("169.254.") {
            reason.push_str(
                "; no credentials are set, so the cloud's own were asked for: set them, or AWS_SKIP_SIGNATURE=true \
                 (GOOGLE_SKIP_SIGNATURE, AZURE_SKIP_SIGNATURE) for a public bucket",
            );
        }
        Error::storage(self.name(), reason)
    }

    pub(crate) fn write_error(&self, error: io::Error, bytes: usize) -> Error {
        Error::write(self.name(), &error, bytes as u64, "make room there, or choose another folder")
    }
}

/// Writes a synced temporary file in the folder of `path` and returns it; folders are made as needed.
pub fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<Temporary> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = path.file_name().ok_or_else(|| io::Error::other("names no file"))?.to_string_lossy();
    let temporary = Temporary::at(folder.join(format!(".{name}.{:016x}.tmp", u64::from_le_bytes(random))));
    let mut file = fs::File::create_new(temporary.path())?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(temporary)
}

/// Syncs the folder of a file, so that its new name survives a crash of the machine.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    sync_folder(folder_of(path))
}

/// Syncs a folder, so that the names in it outlive a crash of the machine.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether the file is missing; `a/b/c` is, too, if `a/b` is a file.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the scheme, in lower case, and what follows `://`.
fn split_scheme(url: &str) -> Option<(String, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let mut characters = scheme.chars();
    let well_formed = characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|other| other.is_ascii_alphanumeric() || "+-.".contains(other));
    well_formed.then(|| (scheme.to_ascii_lowercase(), rest))
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
        self.name == other.name
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
        self.name.cmp(&other.name)
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn names(listed: &[Listed]) -> Vec<&str> {
        listed.iter().map(|file| file.location.name()).collect()
    }

    #[test]
    fn a_file_url_is_decoded_and_a_path_is_not() {
        assert_eq!(Location::parse("file:///a%20b/c").unwrap().path().unwrap(), Path::new("/a b/c"));
        assert_eq!(Location::parse("/a%20b/c").unwrap().path().unwrap(), Path::new("/a%20b/c"));
        assert_eq!(Location::parse("a:b//c").unwrap().path().unwrap(), Path::new("a:b//c"));
    }

    #[test]
    fn bad_urls_are_refused_by_name_and_no_password_is_repeated() {
        for (url, words) in [
            ("", "empty name"),
            ("http://host/x", "http:// is not read"),
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

    /// Puts, reads, lists and removes files of awkward names, the same way below any folder.
    fn round_trip(folder: &Location) {
        let odd = ["a b", "a%2Fb", "a#b", "a+b?c=d", "ü", "d/e/f", "d/e/g"];
        for name in odd {
            folder.join(name).unwrap().put(name.as_bytes()).unwrap();
        }
        for name in odd {
            assert_eq!(folder.join(name).unwrap().get().unwrap().unwrap(), name.as_bytes());
        }
        let listed = folder.list(None).unwrap();
        let mut expected: Vec<String> = odd.iter().map(|name| folder.join(name).unwrap().name().to_string()).collect();
        expected.sort();
        assert_eq!(names(&listed), expected);
        assert_eq!(folder.list(Some(1)).unwrap().len(), 5);
        assert_eq!(folder.join("d").unwrap().list(Some(1)).unwrap(), []);
        assert_eq!(listed[0].stamp, listed[0].location.stamp().unwrap().unwrap());
        assert_eq!(folder.join("missing").unwrap().get().unwrap(), None);
        assert!(!folder.join("d").unwrap().exists().unwrap());
        assert_eq!(folder.join("missing").unwrap().list(None).unwrap(), []);
        folder.join("a b").unwrap().put(b"second").unwrap();
        assert_eq!(folder.join("a b").unwrap().get().unwrap().unwrap(), b"second");
        folder.join("a b").unwrap().remove().unwrap();
        folder.join("a b").unwrap().remove().unwrap();
        assert!(!folder.join("a b").unwrap().exists().unwrap());
        assert_eq!(folder.join("d/e/f").unwrap().sibling("h/i").unwrap(), folder.join("d/e/h/i").unwrap());
    }

    #[test]
    fn files_of_awkward_names_come_back_from_the_disk_and_from_a_store() {
        let temporary = tempfile::tempdir().unwrap();
        round_trip(&Location::parse(temporary.path().join("out").to_str().unwrap()).unwrap());
        round_trip(&Location::of_store(Arc::new(InMemory::new()), "memory://", "some/prefix").unwrap());
        round_trip(&Location::of_store(Arc::new(InMemory::new()), "memory://", "").unwrap());
    }

    #[test]
    fn a_newline_in_a_local_name_is_read_as_it_stands() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Location::parse(temporary.path().to_str().unwrap()).unwrap();
        folder.join("a\nb").unwrap().put(b"x").unwrap();
        assert_eq!(folder.list(None).unwrap()[0].location.get().unwrap().unwrap(), b"x");
    }

    #[test]
    fn a_large_object_is_uploaded_in_parts() {
        let folder = Location::of_store(Arc::new(InMemory::new()), "memory://", "").unwrap();
        let large: Vec<u8> = (0..40u32 << 20).map(|i| (i / 997) as u8).collect();
        folder.join("large").unwrap().put(&large).unwrap();
        assert!(folder.join("large").unwrap().get().unwrap().unwrap() == large);
    }

    #[cfg(unix)]
    #[test]
    fn a_loop_of_links_ends_and_a_link_to_a_file_is_the_file() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Location::parse(temporary.path().to_str().unwrap()).unwrap();
        folder.join("a/page").unwrap().put(b"x").unwrap();
        std::os::unix::fs::symlink(temporary.path(), temporary.path().join("a/loop")).unwrap();
        std::os::unix::fs::symlink("page", temporary.path().join("a/link")).unwrap();
        std::os::unix::fs::symlink("nowhere", temporary.path().join("a/dangling")).unwrap();
        let found = folder.list(None).unwrap();
        let found: Vec<&str> = found.iter().map(|file| file.location.file_name()).collect();
        assert_eq!(found, ["link", "page"]);
    }

    #[test]
    fn an_interrupted_write_leaves_the_old_file_and_no_scrap() {
        let temporary = tempfile::tempdir().unwrap();
        // A folder stands where the file should go, so the rename fails after the temporary file was written.
        let file = Location::parse(temporary.path().join("file").to_str().unwrap()).unwrap();
        file.join("inside").unwrap().put(b"x").unwrap();
        assert_eq!(file.put(b"new").unwrap_err().exit_code(), 8);
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 1);
    }
}
