//! Files opened for positional reading, each pinned to the version that was seen first.
//!
//! A crawl file that changes while it is read would give a result that belongs to no input. So the
//! length and version of a file are recorded when it is first seen. Stores compare the version in
//! every request; local files are compared on demand ([`OpenFile::still_same`]).

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use object_store::{GetOptions, GetRange, ObjectMeta};

use super::blocking::wait;
use super::files::{MAX_READS, is_as_tagged};
use super::location::{Backend, Location};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;

/// Minimum number of bytes requested from a store, because a smaller request costs the same.
const FIRST_WINDOW: u64 = 64 << 10;

/// Maximum number of bytes read ahead for a sequential reader.
const LARGEST_WINDOW: u64 = 4 << 20;

/// Number of positions in one file that can be read alternately without losing the bytes read
/// ahead.
const WINDOWS: usize = 4;

/// Length and version of a file at the time it was seen.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileStamp {
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Entity tag of an object, or time of the last change of a local file.
    pub version: String,
}

impl FileStamp {
    pub(crate) fn of_file(metadata: &fs::Metadata) -> FileStamp {
        let modified_at = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        FileStamp {
            bytes: metadata.len(),
            version: modified_at.map_or(String::new(), |time| time.as_nanos().to_string()),
        }
    }

    pub(crate) fn of_object(meta: &ObjectMeta) -> FileStamp {
        let tag = meta.e_tag.clone().or_else(|| meta.version.clone());
        FileStamp { bytes: meta.size, version: tag.unwrap_or_else(|| meta.last_modified.to_rfc3339()) }
    }
}

/// File opened for positional reading, which threads may share.
pub struct OpenFile {
    location: Location,
    stamp: FileStamp,
    bytes: Source,
}

enum Source {
    Local(fs::File),
    Remote(Mutex<Vec<Window>>),
}

/// Bytes of an object from `start` that have been read. A list of windows ends with the most
/// recently used one.
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// Opens the current version of a file.
///
/// # Errors
/// Returns [`Error::Input`] if the file does not exist, and [`Error::Storage`] if the store fails.
pub fn open(location: &Location) -> Result<Arc<OpenFile>> {
    let missing = || Error::input(location.name(), "there is no such file; check the path");
    let stamp = location.stamp()?.ok_or_else(missing)?;
    open_pinned(location, &stamp)
}

/// Opens the version of a file that a stamp identifies. A store is not contacted before the first
/// read.
///
/// # Errors
/// Returns the errors of [`open`], and [`Error::Input`] if a local file has changed since.
pub fn open_pinned(location: &Location, stamp: &FileStamp) -> Result<Arc<OpenFile>> {
    let bytes = match &location.place {
        Backend::Local(path) => Source::Local(fs::File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::input(location.name(), "the file was removed after it was found; put it back and run again")
            }
            _ => Error::storage(location.name(), error),
        })?),
        Backend::Remote(..) => Source::Remote(Mutex::default()),
    };
    let file = OpenFile { location: location.clone(), stamp: stamp.clone(), bytes };
    if let Source::Local(_) = file.bytes {
        file.still_same()?;
    }
    Ok(Arc::new(file))
}

impl OpenFile {
    /// Returns the location of the file.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the length and version that the file is pinned to.
    pub fn stamp(&self) -> &FileStamp {
        &self.stamp
    }

    /// Checks that the name still refers to the pinned version.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file has changed or vanished, and [`Error::Storage`] if the
    /// store fails.
    ///
    /// # Cost
    /// One `stat`, or one request.
    pub fn still_same(&self) -> Result<()> {
        match self.location.stamp()? {
            Some(now) if now == self.stamp => Ok(()),
            Some(_) => Err(self.changed_error()),
            None => Err(self.vanished()),
        }
    }

    fn changed_error(&self) -> Error {
        Error::input(self.location.name(), "it changed while it was read; run again when no program writes to it")
    }

    fn vanished(&self) -> Error {
        Error::input(self.location.name(), "it was removed while it was read; put it back and run again")
    }

    fn read_local(&self, file: &fs::File, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        match file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.changed_error()),
            Err(error) => Err(Error::storage(self.location.name(), error)),
        }
    }

    /// Serves a read from the windows, and fetches the missing bytes. A reader that continues at
    /// the end of a window gets a window of twice the size. So a scan soon requests windows of
    /// maximum size, while random reads stay cheap.
    fn read_windows(&self, windows: &Mutex<Vec<Window>>, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::with_capacity(length);
        while buffer.len() < length {
            let (at, missing) = (offset + buffer.len() as u64, length - buffer.len());
            let mut ahead = FIRST_WINDOW;
            {
                let mut windows = windows.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(hit) = windows.iter().position(|window| (window.start..window.end()).contains(&at)) {
                    let window = windows.remove(hit);
                    let from = (at - window.start) as usize;
                    let end_in_window = window.bytes.len().min(from + missing);
                    buffer.extend_from_slice(&window.bytes[from..end_in_window]);
                    windows.push(window);
                    continue;
                }
                if let Some(predecessor) = windows.iter().position(|window| window.end() == at) {
                    ahead = (2 * windows.remove(predecessor).bytes.len() as u64).clamp(FIRST_WINDOW, LARGEST_WINDOW);
                }
            }
            // The lock is not held during the request, so that other threads can read.
            let end = self.stamp.bytes.min(at + ahead.max(missing as u64));
            let window = Window { start: at, bytes: self.fetch(at, end)? };
            let mut windows = windows.lock().unwrap_or_else(PoisonError::into_inner);
            if windows.len() == WINDOWS {
                windows.remove(0);
            }
            windows.push(window);
        }
        Ok(buffer)
    }

    /// Requests a range of the pinned version from the store. If the range is the whole object, it
    /// is requested again if its tag shows that the bytes were damaged in transit.
    fn fetch(&self, start: u64, end: u64) -> Result<Bytes> {
        let is_whole = start == 0 && end == self.stamp.bytes;
        let mut bytes = self.request(start, end)?;
        for _ in 1..MAX_READS {
            if !is_whole || is_as_tagged(&bytes, Some(&self.stamp.version)) {
                break;
            }
            let second_reply = self.request(start, end)?;
            // A tag of 32 digits need not be a checksum. But damage in transit differs each time,
            // so two equal reads are correct.
            if second_reply == bytes {
                break;
            }
            bytes = second_reply;
        }
        Ok(bytes)
    }

    fn request(&self, start: u64, end: u64) -> Result<Bytes> {
        let Backend::Remote(store, key) = &self.location.place else {
            return Err(Error::Invariant(format!("{} is local, but was requested over the network", self.location)));
        };
        // A weak tag never satisfies If-Match. The tag of the response is compared below in any
        // case.
        let strong = self.stamp.version.starts_with('"').then(|| self.stamp.version.clone());
        let options =
            GetOptions { range: Some(GetRange::Bounded(start..end)), if_match: strong, ..GetOptions::default() };
        let answer = wait(async {
            let answer = store.get_opts(key, options).await?;
            let stamp = FileStamp::of_object(&answer.meta);
            Ok((stamp, answer.bytes().await?))
        })?;
        match answer {
            Ok((stamp, bytes)) if stamp == self.stamp && bytes.len() as u64 == end - start => Ok(bytes),
            Ok(_) | Err(object_store::Error::Precondition { .. }) => Err(self.changed_error()),
            Err(object_store::Error::NotFound { .. }) => Err(self.vanished()),
            Err(error) => Err(self.location.store_error(error)),
        }
    }
}

impl std::fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFile").field("location", &self.location).field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl RandomAccess for OpenFile {
    fn len(&self) -> u64 {
        self.stamp.bytes
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let length = self.stamp.bytes.saturating_sub(offset).min(length as u64) as usize;
        if length == 0 {
            return Ok(Vec::new());
        }
        match &self.bytes {
            Source::Local(file) => self.read_local(file, offset, length),
            // Reading ahead is pointless for a read of this size.
            Source::Remote(_) if length as u64 >= LARGEST_WINDOW => {
                Ok(self.fetch(offset, offset + length as u64)?.into())
            }
            Source::Remote(windows) => self.read_windows(windows, offset, length),
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use proptest::prelude::*;

    use super::*;

    fn local(bytes: &[u8]) -> (tempfile::TempDir, Location) {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::parse(folder.path().join("file").to_str().unwrap()).unwrap();
        location.put(bytes).unwrap();
        (folder, location)
    }

    fn remote(bytes: &[u8]) -> Location {
        let location = Location::of_store(Arc::new(InMemory::new()), "memory://", "file").unwrap();
        location.put(bytes).unwrap();
        location
    }

    fn sample(length: u32) -> Vec<u8> {
        (0..length).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn reads_in_any_order_equal_slices_of_the_file(
            reads in proptest::collection::vec((0u64..700_000, 0usize..200_000), 1..40),
        ) {
            let bytes = sample(600_000);
            let (_folder, local) = local(&bytes);
            for location in [local, remote(&bytes)] {
                let file = open(&location).unwrap();
                for &(offset, length) in &reads {
                    let from = (offset as usize).min(bytes.len());
                    let end = (from + length).min(bytes.len());
                    prop_assert!(file.read_at(offset, length).unwrap() == bytes[from..end]);
                }
            }
        }
    }

    #[test]
    fn many_small_reads_of_an_object_become_few_requests() {
        let bytes = sample(9 << 20);
        let file = open(&remote(&bytes)).unwrap();
        let mut windows_seen = std::collections::BTreeSet::new();
        for offset in (0..bytes.len() as u64).step_by(1000) {
            assert!(
                file.read_at(offset, 1000).unwrap() == bytes[offset as usize..bytes.len().min(offset as usize + 1000)]
            );
            let Source::Remote(windows) = &file.bytes else { panic!("the object is remote") };
            windows_seen.extend(windows.lock().unwrap().iter().map(|window| window.start));
        }
        assert!(windows_seen.len() <= 10, "{windows_seen:?}");
    }

    #[test]
    fn an_input_that_changes_shrinks_or_vanishes_ends_the_run_with_exit_3() {
        let (_folder, location) = local(&sample(5000));
        let file = open(&location).unwrap();
        assert!(file.still_same().is_ok());
        location.put(&sample(5001)).unwrap();
        let error = file.still_same().unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().contains("changed while it was read")), (3, true));
        assert_eq!(open_pinned(&location, file.stamp()).err().unwrap().exit_code(), 3);
        location.remove().unwrap();
        assert_eq!(file.still_same().unwrap_err().exit_code(), 3);
        assert_eq!(open(&location).err().unwrap().exit_code(), 3);

        // Truncation keeps the inode of a file, so the open handle sees it.
        let (_folder, location) = local(&sample(5000));
        let file = open(&location).unwrap();
        fs::OpenOptions::new().write(true).open(location.path().unwrap()).unwrap().set_len(100).unwrap();
        assert_eq!(file.read_at(50, 100).unwrap_err().exit_code(), 3);
    }

    #[test]
    fn an_object_that_changes_or_vanishes_ends_the_run_with_exit_3() {
        let location = remote(&sample(500_000));
        let file = open(&location).unwrap();
        assert!(file.read_at(0, 10).is_ok());
        location.put(&sample(500_000)).unwrap();
        let error = file.read_at(400_000, 10).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().contains("changed while it was read")), (3, true));
        assert_eq!(file.still_same().unwrap_err().exit_code(), 3);
        location.remove().unwrap();
        let error = file.read_at(300_000, 10).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().contains("removed while it was read")), (3, true));
    }

    #[test]
    fn an_object_shorter_than_it_was_listed_is_an_input_error() {
        let location = remote(&sample(1000));
        let listed_stamp = FileStamp { bytes: 2000, ..location.stamp().unwrap().unwrap() };
        assert_eq!(open_pinned(&location, &listed_stamp).unwrap().read_at(0, 2000).unwrap_err().exit_code(), 3);
    }

    #[test]
    fn weak_tag_is_compared_but_not_sent_as_a_condition() {
        let location = remote(&sample(1000));
        let weak = FileStamp { version: "W/\"another\"".into(), ..location.stamp().unwrap().unwrap() };
        assert_eq!(open_pinned(&location, &weak).unwrap().read_at(0, 10).unwrap_err().exit_code(), 3);
    }

    #[test]
    fn folder_is_not_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::parse(folder.path().to_str().unwrap()).unwrap();
        assert_eq!(open(&location).err().unwrap().exit_code(), 3);
    }
}
