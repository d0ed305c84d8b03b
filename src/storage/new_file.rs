//! Writer of a file in pieces, on the local disk or in an object store.

use std::fs::{self, File};
use std::io::{self, Write};

use object_store::{ObjectStoreExt, WriteMultipart};
use xxhash_rust::xxh3::Xxh3Default;

use super::blocking::wait;
use super::files::folder_of;
use super::location::{Backend, Location};
use super::manifest::FileEntry;
use webtwin_base::error::{Error, Result};

/// Size of a part of an object in bytes. A shorter object is written in a single request.
const PART_BYTES: usize = 16 << 20;

/// Maximum number of parts that are being sent to a store at a time.
const PARTS_ON_THE_WAY: usize = 4;

/// File that is being written. It must not be read before it is finished. If it is dropped
/// unfinished, the partial file remains.
pub struct NewFile {
    location: Location,
    path: String,
    bytes: u64,
    digest: Box<Xxh3Default>,
    open: Vec<u8>,
    sink: Sink,
}

enum Sink {
    Local(File),
    Remote(Option<WriteMultipart>),
}

impl NewFile {
    /// Creates the file `location`, whose path in the manifest of its folder is `path`. Creates
    /// missing folders.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] or another error of a failed write if the file cannot be created.
    pub fn create(location: &Location, path: &str) -> Result<NewFile> {
        let sink = match &location.place {
            Backend::Local(at) => Sink::Local(
                fs::create_dir_all(folder_of(at))
                    .and_then(|()| File::create_new(at))
                    .map_err(|cause| location.write_error(cause, 0))?,
            ),
            Backend::Remote(..) => Sink::Remote(None),
        };
        let digest = Box::default();
        Ok(NewFile { location: location.clone(), path: path.into(), bytes: 0, digest, open: Vec::new(), sink })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// Returns [`Error::Storage`], or another error of a failed write, if the store fails.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let piece_bytes = if matches!(self.sink, Sink::Local(_)) { 1 << 20 } else { PART_BYTES };
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        bytes.chunks(piece_bytes).try_for_each(|piece| {
            self.open.extend_from_slice(piece);
            if self.open.len() >= piece_bytes { self.flush_open() } else { Ok(()) }
        })
    }

    /// Ends the file and makes it durable. Returns its entry, with `rows` as the number of rows if
    /// it is a table.
    ///
    /// # Errors
    /// Returns [`Error::Storage`], or another error of a failed write, if the store fails.
    pub fn finish(mut self, rows: Option<u64>) -> Result<FileEntry> {
        let finished = match (&mut self.sink, &self.location.place) {
            (Sink::Remote(None), _) => return self.location.put(&self.open).map(|()| self.entry(rows)),
            _ => self.flush_open(),
        };
        finished.and_then(|()| self.end())?;
        Ok(self.entry(rows))
    }

    fn entry(&self, rows: Option<u64>) -> FileEntry {
        let xxh3 = format!("{:032x}", self.digest.digest128());
        FileEntry { path: self.path.clone(), rows, bytes: self.bytes, xxh3 }
    }

    fn end(&mut self) -> Result<()> {
        match &mut self.sink {
            Sink::Local(file) => file.sync_all().map_err(|cause| self.location.write_error(cause, 0)),
            Sink::Remote(upload) => match upload.take() {
                Some(upload) => wait(upload.finish())?.map(drop).map_err(|cause| self.location.store_error(cause)),
                None => Ok(()),
            },
        }
    }

    fn flush_open(&mut self) -> Result<()> {
        match (&mut self.sink, &self.location.place) {
            (Sink::Local(file), _) => {
                file.write_all(&self.open).map_err(|cause| self.location.write_error(cause, self.open.len()))?;
            }
            (Sink::Remote(upload), Backend::Remote(store, key)) => {
                let open = &self.open;
                let outcome = wait(async {
                    let upload = match upload {
                        Some(upload) => upload,
                        slot => {
                            let begun = store.put_multipart(key).await?;
                            slot.insert(WriteMultipart::new_with_chunk_size(begun, PART_BYTES))
                        }
                    };
                    upload.wait_for_capacity(PARTS_ON_THE_WAY).await?;
                    upload.write(open);
                    Ok(())
                })?;
                outcome.map_err(|cause| self.location.store_error(cause))?;
            }
            (Sink::Remote(_), Backend::Local(_)) => {
                return Err(Error::Invariant(format!("{} is local, but written as an object", self.location)));
            }
        }
        self.open.clear();
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map(|()| bytes.len()).map_err(io::Error::other)
    }

    /// Does nothing: the written bytes are durable only after the file is finished.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn pieces_of_a_file_equal_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let local = Location::parse(folder.path().join("a/b/file").to_str().unwrap()).unwrap();
        let remote = Location::of_store(Arc::new(InMemory::new()), "memory://", "a/file").unwrap();
        for location in [local, remote] {
            for length in [0, 10, (1 << 20) + 1, 40 << 20] {
                let bytes: Vec<u8> = (0..length).map(|at: usize| (at * 7 / 3) as u8).collect();
                let mut file = NewFile::create(&location, "file").unwrap();
                bytes.chunks(700_001).for_each(|piece| file.write_all(piece).unwrap());
                let entry = file.finish(Some(3)).unwrap();
                assert_eq!(entry, FileEntry::new("file", Some(3), &bytes));
                assert!(location.get().unwrap().unwrap() == bytes);
                location.remove().unwrap();
            }
        }
    }
}
