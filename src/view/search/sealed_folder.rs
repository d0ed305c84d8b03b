//! Read-only directory for tantivy over files that the caller holds.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};

use super::texts::TextIndexFile;

/// Files by name. Write operations fail.
#[derive(Clone)]
pub(super) struct SealedFolder(Arc<BTreeMap<String, Arc<Handle>>>);

impl SealedFolder {
    pub(super) fn new(files: BTreeMap<String, Box<dyn TextIndexFile>>) -> SealedFolder {
        let handle = |(name, file): (String, Box<dyn TextIndexFile>)| {
            // These files have a few bytes for each text, and every search reads them completely.
            // So they are read once.
            let is_kept = [".fieldnorm", ".fast"].iter().any(|ending| name.ends_with(ending));
            (name, Arc::new(Handle { file, cache: is_kept.then(OnceLock::new) }))
        };
        SealedFolder(Arc::new(files.into_iter().map(handle).collect()))
    }

    fn find(&self, path: &Path) -> Result<&Arc<Handle>, OpenReadError> {
        let file = path.to_str().and_then(|name| self.0.get(name));
        file.ok_or_else(|| OpenReadError::FileDoesNotExist(path.into()))
    }
}

impl fmt::Debug for SealedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

struct Handle {
    file: Box<dyn TextIndexFile>,
    cache: Option<OnceLock<OwnedBytes>>,
}

impl Handle {
    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.file.read(range).map(|bytes| OwnedBytes::new(bytes.to_vec())).map_err(io::Error::other)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.file.len())
    }
}

impl HasLen for Handle {
    fn len(&self) -> usize {
        self.file.len()
    }
}

impl FileHandle for Handle {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let Some(cell) = &self.cache else { return self.read(range) };
        let bytes = match cell.get() {
            Some(bytes) => bytes,
            None => {
                let bytes = self.read(0..self.file.len())?;
                cell.get_or_init(|| bytes)
            }
        };
        match range.start <= range.end && range.end <= bytes.len() {
            true => Ok(bytes.slice(range)),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn sealed() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "an index is not changed")
}

impl Directory for SealedFolder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::clone(self.find(path)?) as Arc<dyn FileHandle>)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.find(path).is_ok())
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let file = &self.find(path)?.file;
        let failed = |cause| OpenReadError::wrap_io_error(io::Error::other(cause), path.into());
        file.read(0..file.len()).map(<[u8]>::to_vec).map_err(failed)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(sealed()), filepath: path.into() })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(sealed(), path.into()))
    }

    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(sealed())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    /// Returns a lock without locking: no writer exists.
    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
