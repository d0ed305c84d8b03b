//! Operations on a file or folder at a [`Location`]: read, write, move, remove, list.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use data_encoding::HEXLOWER_PERMISSIVE;
use futures_util::TryStreamExt;
use md5::{Digest, Md5};
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, WriteMultipart};

use super::blocking::wait;
use super::location::{Backend, ListedFile, Location, text_of};
use super::open::FileStamp;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;

/// Maximum number of reads from a store if a checksum shows that bytes are damaged.
pub(super) const MAX_READS: usize = 3;

impl Location {
    /// Returns all bytes of the file, or `None` if it does not exist.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the store fails.
    pub fn get(&self) -> Result<Option<Vec<u8>>> {
        match &self.place {
            Backend::Local(path) => match fs::read(path) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(Error::storage(self.name(), error)),
            },
            Backend::Remote(store, key) => {
                let mut previous: Option<Vec<u8>> = None;
                for _ in 0..MAX_READS {
                    let answer = wait(async {
                        let answer = store.get(key).await?;
                        let tag = answer.meta.e_tag.clone();
                        Ok((answer.bytes().await?, tag))
                    })?;
                    let bytes: Vec<u8> = match answer {
                        Ok((bytes, tag)) if is_as_tagged(&bytes, tag.as_deref()) => return Ok(Some(bytes.into())),
                        Ok((bytes, _)) => bytes.into(),
                        Err(object_store::Error::NotFound { .. }) => return Ok(None),
                        Err(error) => return Err(self.store_error(error)),
                    };
                    // A tag of 32 digits need not be a checksum. But damage in transit differs each
                    // time, so two equal reads are correct.
                    if previous.replace(bytes) == previous {
                        return Ok(previous);
                    }
                }
                Err(Error::storage(
                    self.name(),
                    "its bytes arrive from the store with different damage each time; check the network and the store",
                ))
            }
        }
    }

    /// Reads and decodes the file, or returns `None` if it does not exist. If decoding fails, the
    /// file is read from a store again a few times, because the bytes may have been damaged in
    /// transit.
    ///
    /// # Errors
    /// Returns the errors of [`Location::get`]. The inner result is that of the last `decode`.
    pub fn get_as<T, E>(
        &self,
        decode: impl Fn(Vec<u8>) -> std::result::Result<T, E>,
    ) -> Result<Option<std::result::Result<T, E>>> {
        let reads = if self.path().is_some() { 1 } else { MAX_READS };
        let mut decoded = None;
        for _ in 0..reads {
            let Some(bytes) = self.get()? else { return Ok(None) };
            match decode(bytes) {
                Ok(good) => return Ok(Some(Ok(good))),
                bad => decoded = Some(bad),
            }
        }
        Ok(decoded)
    }

    /// Returns true if the file exists.
    ///
    /// # Errors
    /// Returns the errors of [`Location::get`].
    pub fn exists(&self) -> Result<bool> {
        Ok(self.stamp()?.is_some())
    }

    /// Returns the length and version of the file, or `None` if it does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`Location::get`].
    pub fn stamp(&self) -> Result<Option<FileStamp>> {
        match &self.place {
            Backend::Local(path) => match fs::metadata(path) {
                Ok(metadata) => Ok(metadata.is_file().then(|| FileStamp::of_file(&metadata))),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(Error::storage(self.name(), error)),
            },
            Backend::Remote(store, key) => match wait(store.head(key))? {
                Ok(meta) => Ok(Some(FileStamp::of_object(&meta))),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(self.store_error(error)),
            },
        }
    }

    /// Returns the time of the last write to the file, or `None` if the file does not exist or its
    /// time is unknown.
    ///
    /// # Errors
    /// Returns the errors of [`Location::get`].
    pub fn changed(&self) -> Result<Option<SystemTime>> {
        match &self.place {
            Backend::Local(path) => match fs::metadata(path) {
                Ok(metadata) => Ok(metadata.modified().ok()),
                Err(error) if is_missing(&error) => Ok(None),
                Err(error) => Err(Error::storage(self.name(), error)),
            },
            Backend::Remote(store, key) => match wait(store.head(key))? {
                Ok(meta) => Ok(Some(meta.last_modified.into())),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(self.store_error(error)),
            },
        }
    }

    /// Writes the whole file atomically, and replaces an existing one.
    ///
    /// Local files are written under a temporary name in the same folder, synced and renamed, and
    /// then the folder is synced. Missing folders are created.
    ///
    /// # Errors
    /// Returns [`Error::DiskFull`] if the disk is full, and [`Error::Storage`] for any other
    /// failure.
    pub fn put(&self, bytes: &[u8]) -> Result<()> {
        self.put_parts(&[bytes])
    }

    /// Writes a file like [`Location::put`], from several consecutive parts.
    ///
    /// # Errors
    /// Returns the errors of [`Location::put`].
    pub fn put_parts(&self, parts: &[&[u8]]) -> Result<()> {
        match &self.place {
            Backend::Local(path) => {
                let written = write_temporary(path, parts).and_then(|temporary| {
                    fs::rename(temporary.path(), path)?;
                    sync_folder_of(path)
                });
                written.map_err(|error| self.write_error(error, parts.iter().map(|part| part.len()).sum()))
            }
            Backend::Remote(store, key) => {
                let bytes = parts.concat();
                let answer = wait(async {
                    // On a slow connection, a single request for a larger file would exceed the
                    // time limit of a request.
                    const WHOLE: usize = 32 << 20;
                    if bytes.len() <= WHOLE {
                        return store.put(key, bytes.into()).await.map(drop);
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

    /// Removes the file. Succeeds if it does not exist.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the file cannot be removed.
    pub fn remove(&self) -> Result<()> {
        match &self.place {
            Backend::Local(path) => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::storage(self.name(), error)),
                _ => Ok(()),
            },
            Backend::Remote(store, key) => match wait(store.delete(key))? {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(self.store_error(error)),
            },
        }
    }

    /// Moves the file to another name on the same disk or store, and replaces an existing file.
    /// `bytes` is its length. A missing file is not an error, so several processes may move it
    /// concurrently.
    ///
    /// On a local disk the folders are not synced.
    ///
    /// # Errors
    /// Returns the errors of [`Location::put`].
    pub fn move_to(&self, to: &Location, bytes: u64) -> Result<()> {
        match (&self.place, &to.place) {
            (Backend::Local(from), Backend::Local(path)) => {
                let outcome = fs::create_dir_all(folder_of(path)).and_then(|()| fs::rename(from, path));
                match outcome {
                    Err(error) if is_missing(&error) && !from.exists() => Ok(()),
                    moved => moved.map_err(|error| to.write_error(error, bytes as usize)),
                }
            }
            (Backend::Remote(store, from), Backend::Remote(_, key)) => {
                // S3 cannot copy a larger object in one request.
                const MAX_COPY_BYTES: u64 = 5 << 30;
                if bytes > MAX_COPY_BYTES {
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
            _ => Err(Error::Invariant(format!("{self} and {to} are not in the same store"))),
        }
    }

    /// Removes this folder with its content. A missing folder is not an error.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if something cannot be removed.
    pub fn remove_all(&self) -> Result<()> {
        match &self.place {
            Backend::Local(path) => match fs::remove_dir_all(path) {
                Err(error) if !is_missing(&error) => Err(Error::storage(self.name(), error)),
                _ => Ok(()),
            },
            Backend::Remote(..) => self.list(None)?.iter().try_for_each(|file| file.location.remove()),
        }
    }

    /// Returns the names of the files and folders directly in this folder, ascending. A missing
    /// folder has none.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the folder cannot be listed.
    pub fn entries(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = match &self.place {
            Backend::Local(path) => match fs::read_dir(path) {
                Err(error) if is_missing(&error) => Vec::new(),
                entries => entries
                    .and_then(|entries| {
                        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
                    })
                    .map_err(|error| Error::storage(self.name(), error))?,
            },
            Backend::Remote(store, key) => {
                let prefix = (!key.is_root()).then_some(key);
                let listing = wait(store.list_with_delimiter(prefix))?.map_err(|error| self.store_error(error))?;
                let objects = listing.objects.into_iter().map(|meta| meta.location);
                let last = |key: Key| key.filename().map(str::to_string);
                objects.chain(listing.common_prefixes).filter_map(last).collect()
            }
        };
        names.sort_unstable();
        Ok(names)
    }

    /// Returns a file below this folder, or `None` if there is none. Entries of the folder for
    /// which `passed_over` is true are skipped.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if a folder cannot be listed.
    pub fn first_file(&self, passed_over: impl Fn(&str) -> bool) -> Result<Option<Location>> {
        for name in self.entries()?.iter().filter(|name| !passed_over(name)) {
            let entry = self.join(name)?;
            if entry.exists()? {
                return Ok(Some(entry));
            }
            match &entry.place {
                Backend::Local(_) => {
                    if let Some(file) = entry.list(None)?.into_iter().next() {
                        return Ok(Some(file.location));
                    }
                }
                // Stores have no empty folders, so the folder contains a file.
                Backend::Remote(..) => return Ok(Some(entry.into_folder())),
            }
        }
        Ok(None)
    }

    /// Lists the files below this folder, by ascending name. `depth` limits the depth; 1 means only
    /// the folder's own files.
    ///
    /// A link to a file counts as the file. A link to a folder is not followed, so cyclic links
    /// cause no endless recursion. A missing folder has no files.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if a folder cannot be listed.
    ///
    /// # Cost
    /// A store lists everything below the prefix, whatever the depth.
    pub fn list(&self, depth: Option<usize>) -> Result<Vec<ListedFile>> {
        let mut files = match &self.place {
            Backend::Local(path) => {
                let mut files = Vec::new();
                self.walk(path, "", depth.unwrap_or(usize::MAX), &mut files)?;
                files
            }
            Backend::Remote(store, key) => {
                let prefix = (!key.is_root()).then_some(key);
                let mut outcome: object_store::Result<Vec<_>> = wait(store.list(prefix).try_collect())?;
                for _ in 1..MAX_READS {
                    // A list that cannot be parsed may have been damaged in transit. The client has
                    // already retried all other errors.
                    if let Err(object_store::Error::Generic { .. }) = outcome {
                        outcome = wait(store.list(prefix).try_collect())?;
                    }
                }
                let objects = outcome.map_err(|error| self.store_error(error))?;
                let skip = if key.is_root() { 0 } else { key.as_ref().len() + 1 };
                let mut files = Vec::with_capacity(objects.len());
                for meta in objects {
                    // An object with the folder's own name is not below the folder.
                    let Some(relative) = meta.location.as_ref().get(skip..).filter(|relative| !relative.is_empty())
                    else {
                        continue;
                    };
                    if depth.is_none_or(|depth| relative.split('/').count() <= depth) {
                        files.push(ListedFile { location: self.join(relative)?, stamp: FileStamp::of_object(&meta) });
                    }
                }
                files
            }
        };
        files.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        Ok(files)
    }

    fn walk(&self, folder: &Path, prefix: &str, depth: usize, files: &mut Vec<ListedFile>) -> Result<()> {
        let folder_error = |error| Error::storage(folder.to_string_lossy(), error);
        // A glob without a slash gives the current folder as `""`.
        let readable = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let entries = match fs::read_dir(readable) {
            Err(error) if is_missing(&error) => return Ok(()),
            entries => entries.map_err(folder_error)?,
        };
        for entry in entries {
            let entry = entry.map_err(folder_error)?;
            let path = folder.join(entry.file_name());
            let relative = format!("{prefix}{}", text_of(&entry.file_name()));
            if entry.file_type().map_err(folder_error)?.is_dir() {
                if depth > 1 {
                    self.walk(&path, &format!("{relative}/"), depth - 1, files)?;
                }
            } else if let Some(metadata) = fs::metadata(&path).ok().filter(|metadata| metadata.is_file()) {
                let name = if self.name().is_empty() { relative } else { self.join(&relative)?.name().to_string() };
                files.push(ListedFile { location: Location::local(path, name), stamp: FileStamp::of_file(&metadata) });
            }
        }
        Ok(())
    }

    pub(crate) fn write_error(&self, error: io::Error, bytes: usize) -> Error {
        Error::write(self.name(), &error, bytes as u64, "free some space there, or choose another folder")
    }
}

/// Writes and syncs a temporary file in the folder of `path`, and returns it. Creates missing
/// folders.
pub fn write_temporary(path: &Path, parts: &[&[u8]]) -> io::Result<Temporary> {
    let folder = folder_of(path);
    fs::create_dir_all(folder).map_err(|error| match error.kind() {
        // The existing entry is a file.
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })?;
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = path.file_name().ok_or_else(|| io::Error::other("the path does not name a file"))?.to_string_lossy();
    let temporary = Temporary::at(folder.join(format!(".{name}.{:016x}.tmp", u64::from_le_bytes(random))));
    let mut file = fs::File::create_new(temporary.path())?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()?;
    Ok(temporary)
}

/// Syncs the folder of a file, so that the file's new name survives a crash of the machine.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    sync_folder(folder_of(path))
}

/// Syncs a folder, so that the names in it survive a crash of the machine.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// True if the entity tag is not an MD5, or is the MD5 of `bytes`. For most objects on S3 the tag
/// is an MD5.
pub(super) fn is_as_tagged(bytes: &[u8], tag: Option<&str>) -> bool {
    let digest = tag.and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"')).filter(|tag| tag.len() == 32);
    let Some(digest) = digest.and_then(|tag| HEXLOWER_PERMISSIVE.decode(tag.as_bytes()).ok()) else { return true };
    Md5::digest(bytes)[..] == digest[..]
}

/// True if the error means that the file does not exist. `a/b/c` does not exist if `a/b` is a file,
/// either.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    fn names(files: &[ListedFile]) -> Vec<&str> {
        files.iter().map(|file| file.location.name()).collect()
    }

    /// Puts, reads, lists and removes files with unusual names. The behaviour must be the same
    /// below any folder.
    fn round_trip(folder: &Location) {
        let odd = ["a b", "a%2Fb", "a#b", "a+b?c=d", "ü", "d/e/f", "d/e/g"];
        for name in odd {
            folder.join(name).unwrap().put(name.as_bytes()).unwrap();
        }
        for name in odd {
            assert_eq!(folder.join(name).unwrap().get().unwrap().unwrap(), name.as_bytes());
        }
        let files = folder.list(None).unwrap();
        let mut expected: Vec<String> = odd.iter().map(|name| folder.join(name).unwrap().name().to_string()).collect();
        expected.sort();
        assert_eq!(names(&files), expected);
        assert_eq!(folder.list(Some(1)).unwrap().len(), 5);
        assert_eq!(folder.join("d").unwrap().list(Some(1)).unwrap(), []);
        assert_eq!(files[0].stamp, files[0].location.stamp().unwrap().unwrap());
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
    fn files_with_special_names_round_trip_on_disk_and_in_a_store() {
        let temporary = tempfile::tempdir().unwrap();
        round_trip(&Location::parse(temporary.path().join("out").to_str().unwrap()).unwrap());
        round_trip(&Location::of_store(Arc::new(InMemory::new()), "memory://", "some/prefix").unwrap());
        round_trip(&Location::of_store(Arc::new(InMemory::new()), "memory://", "").unwrap());
    }

    #[test]
    fn newline_in_a_local_name_is_literal() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Location::parse(temporary.path().to_str().unwrap()).unwrap();
        folder.join("a\nb").unwrap().put(b"x").unwrap();
        assert_eq!(folder.list(None).unwrap()[0].location.get().unwrap().unwrap(), b"x");
    }

    #[test]
    fn a_large_object_is_uploaded_in_parts() {
        let folder = Location::of_store(Arc::new(InMemory::new()), "memory://", "").unwrap();
        let bytes: Vec<u8> = (0..40u32 << 20).map(|i| (i / 997) as u8).collect();
        folder.join("large").unwrap().put(&bytes).unwrap();
        assert!(folder.join("large").unwrap().get().unwrap().unwrap() == bytes);
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
        let files = folder.list(None).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.location.file_name()).collect();
        assert_eq!(names, ["link", "page"]);
    }

    #[test]
    fn interrupted_write_leaves_the_old_file_and_no_temporary_file() {
        let temporary = tempfile::tempdir().unwrap();
        // A folder exists at the destination, so the rename fails after the temporary file was
        // written.
        let file = Location::parse(temporary.path().join("file").to_str().unwrap()).unwrap();
        file.join("inside").unwrap().put(b"x").unwrap();
        assert_eq!(file.put(b"new").unwrap_err().exit_code(), 2);
        assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 1);
    }
}
