//! Files in memory: mapped, or read as a whole.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{ErrorKind, Read};

use memmap2::{Mmap, MmapMut};

use super::location::Location;
use webtwin_base::error::{Error, Result};

/// Way in which the bytes of a file are held in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residence {
    /// Mapped: the system reads pages on access. Only for local files, which must not change in the
    /// meantime: truncating a mapped file ends the process (SIGBUS).
    Mapped,
    /// Read into memory of this process, on huge pages if the system grants them.
    Loaded,
}

/// Bytes of a file, mapped or loaded.
#[derive(Debug)]
pub struct FileBytes(HeldBytes);

#[derive(Debug)]
enum HeldBytes {
    Mapped(Mmap),
    Loaded(MmapMut, usize),
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            HeldBytes::Mapped(bytes) => bytes,
            HeldBytes::Loaded(bytes, length) => &bytes[..*length],
        }
    }
}

/// Maps or loads a file. A file of a store is always loaded.
///
/// # Errors
/// Returns [`Error::Input`] if the file does not exist, [`Error::Storage`] if it cannot be read,
/// and [`Error::NoMemory`] if the system refuses the memory.
pub fn file_bytes(location: &Location, residence: Residence) -> Result<FileBytes> {
    let missing = || Error::input(location.name(), "there is no such file; check the path");
    let read_error = |error: std::io::Error, bytes: usize| match error.kind() {
        ErrorKind::NotFound => missing(),
        ErrorKind::OutOfMemory => Error::NoMemory { what: location.name().into(), needed_bytes: bytes as u64 },
        _ => Error::storage(location.name(), error),
    };
    let Some(path) = location.path() else {
        let bytes = location.get()?.ok_or_else(missing)?;
        return loaded(&mut &bytes[..], bytes.len()).map_err(|error| read_error(error, bytes.len()));
    };
    let mut file = File::open(path).map_err(|error| read_error(error, 0))?;
    let length = file.metadata().map_err(|error| read_error(error, 0))?.len() as usize;
    match residence {
        // An empty file cannot be mapped.
        Residence::Mapped if length > 0 => {
            // SAFETY: the bytes are only read. The caller must ensure that the file does not
            // change, and its content is validated like any input.
            let bytes = unsafe { Mmap::map(&file) }.map_err(|error| read_error(error, length))?;
            Ok(FileBytes(HeldBytes::Mapped(bytes)))
        }
        _ => loaded(&mut file, length).map_err(|error| read_error(error, length)),
    }
}

fn loaded(from: &mut dyn Read, length: usize) -> std::io::Result<FileBytes> {
    let mut bytes = MmapMut::map_anon(length.max(1))?;
    // Huge pages only make random reads faster, so a refusal is ignored.
    #[cfg(target_os = "linux")]
    let _ = bytes.advise(memmap2::Advice::HugePage);
    from.read_exact(&mut bytes[..length])?;
    Ok(FileBytes(HeldBytes::Loaded(bytes, length)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn mapped_loaded_and_fetched_bytes_equal_the_file() {
        let folder = tempfile::tempdir().unwrap();
        for content in [&b""[..], b"some bytes"] {
            let local = Location::parse(folder.path().join("file").to_str().unwrap()).unwrap();
            let store = Arc::new(object_store::memory::InMemory::new());
            let remote = Location::of_store(store, "memory://", "file").unwrap();
            for location in [local, remote] {
                location.put(content).unwrap();
                for residence in [Residence::Mapped, Residence::Loaded] {
                    assert_eq!(file_bytes(&location, residence).unwrap().as_ref(), content);
                }
                location.remove().unwrap();
                assert_eq!(file_bytes(&location, Residence::Loaded).unwrap_err().exit_code(), 3);
                assert_eq!(file_bytes(&location, Residence::Mapped).unwrap_err().exit_code(), 3);
            }
        }
    }
}
