//! Web archives inside a zip archive, such as a WACZ file, read in place.
//!
//! The WACZ standard requires that WARC files are stored without further compression. Each is
//! therefore a range of the zip file and is read like a separate file: in pieces, by several
//! workers, from object stores. Any zip archive with such entries is accepted, at any path in it.
//! Of other entries (indexes, lists of pages, logs) only the names are read.
//!
//! A zip archive within a zip archive (a package of several WACZ files) is opened in the same way.
//! Deeper nesting is refused.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::{Deref, Range};

use zip::CompressionMethod;
use zip::read::ZipArchive;
use zip::result::ZipError;

use super::detect::{claims_archive, is_zip_name};
use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::RandomAccess;

/// Size of the read buffer for the directory, in bytes.
const BUFFER: usize = 64 << 10;

/// A web archive in a zip archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebArchiveEntry {
    /// Name in the zip archive. For an entry of an inner archive, the name of that archive and `!/`
    /// precede it.
    pub name: String,
    /// Range of bytes in the outermost file.
    pub range: Range<u64>,
}

/// Returns the web archives in a zip archive, ascending by name, or the reason why they cannot be
/// read.
///
/// # Errors
/// Returns any error of the file.
///
/// # Cost
/// Reads the directory at the end of the file, and the head of each entry that is returned.
pub(super) fn entries(file: &dyn RandomAccess) -> Result<std::result::Result<Vec<WebArchiveEntry>, &'static str>> {
    let mut entries = Vec::new();
    if let Err(reason) = add_entries(file, 0..file.len(), "", &mut entries)? {
        return Ok(Err(reason));
    }
    if entries.is_empty() {
        return Ok(Err("a zip archive with no WARC or ARC file in it; unpack it, or give the files that it lists"));
    }
    entries.sort_by(|x, y| x.name.cmp(&y.name));
    Ok(Ok(entries))
}

/// Adds the web archives of the zip archive at `outer_range`. `outer_name` is the prefix of their
/// names.
fn add_entries(
    file: &dyn RandomAccess,
    outer_range: Range<u64>,
    outer_name: &str,
    entries: &mut Vec<WebArchiveEntry>,
) -> Result<std::result::Result<(), &'static str>> {
    let slice = Slice { file, range: outer_range.clone() };
    let mut directory = match ZipArchive::new(BufReader::with_capacity(BUFFER, Cursor { file: &slice, position: 0 })) {
        Ok(directory) => directory,
        Err(error) => return damage_of(error).map(Err),
    };
    let names: Vec<String> = directory.file_names_raw().map(|raw| String::from_utf8_lossy(raw).into()).collect();
    for (number, name) in names.into_iter().enumerate() {
        let is_zip = is_zip_name(&name);
        if !claims_archive(&name) && !is_zip {
            continue;
        }
        let entry = match directory.by_index_raw(number) {
            Ok(entry) => entry,
            Err(error) => return damage_of(error).map(Err),
        };
        if entry.encrypted() {
            return Ok(Err("a zip archive with encrypted WARC files; decrypt it"));
        }
        if entry.compression() != CompressionMethod::Stored {
            return Ok(Err("a zip archive that compresses its WARC files, which the WACZ standard forbids; \
                           unpack it, and give the files"));
        }
        let Some(start) = entry.data_start() else { return Ok(Err(DAMAGED)) };
        let Some(end) = start.checked_add(entry.compressed_size()).filter(|&end| end <= slice.len()) else {
            return Ok(Err(DAMAGED));
        };
        let (name, range) = (format!("{outer_name}{name}"), outer_range.start + start..outer_range.start + end);
        match is_zip {
            false => entries.push(WebArchiveEntry { name, range }),
            true if !outer_name.is_empty() => return Ok(Err("zip archives nested three deep; unpack the outer ones")),
            true => {
                if let Err(reason) = add_entries(file, range, &format!("{name}!/"), entries)? {
                    return Ok(Err(reason));
                }
            }
        }
    }
    Ok(Ok(()))
}

const DAMAGED: &str = "a damaged zip archive, perhaps a download that was cut off, or one with more than 64 KiB after \
                       its end; fetch it again";

/// Separates a failure of the store, which is returned as an error, from a damaged archive.
fn damage_of(error: ZipError) -> Result<&'static str> {
    let ZipError::Io(error) = error else { return Ok(DAMAGED) };
    match error.into_inner().map(|inner| inner.downcast::<Error>()) {
        Some(Ok(failure)) => Err(*failure),
        _ => Ok(DAMAGED),
    }
}

/// A range of a file that is read like a file.
pub(super) struct Slice<F> {
    pub file: F,
    pub range: Range<u64>,
}

impl<F: Deref<Target: RandomAccess> + Send + Sync> RandomAccess for Slice<F> {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let left = self.len().saturating_sub(offset);
        self.file.read_at(self.range.start + offset.min(self.len()), left.min(length as u64) as usize)
    }
}

/// Adapter of a file for the zip crate. A failure of the store is an [`io::Error`] that contains
/// our [`Error`].
struct Cursor<'a> {
    file: &'a dyn RandomAccess,
    position: u64,
}

impl Read for Cursor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(self.position, buffer.len()).map_err(io::Error::other)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }
}

impl Seek for Cursor<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(target) => Some(target),
            SeekFrom::End(delta) => self.file.len().checked_add_signed(delta),
            SeekFrom::Current(delta) => self.position.checked_add_signed(delta),
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;
    use webtwin_base::read_at::Bytes;

    fn zip_of(files: &[(&str, &[u8])], large: bool) -> Vec<u8> {
        let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, bytes) in files {
            let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
            zip.start_file(*name, stored).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn read(bytes: &[u8]) -> std::result::Result<Vec<(String, Vec<u8>)>, &'static str> {
        let contents =
            |entry: WebArchiveEntry| (entry.name, bytes[entry.range.start as usize..entry.range.end as usize].to_vec());
        Ok(entries(&Bytes(bytes.to_vec())).unwrap()?.into_iter().map(contents).collect())
    }

    #[test]
    fn archives_are_found_in_a_package_and_other_entries_are_skipped() {
        let files: [(&str, &[u8]); 4] =
            [("datapackage.json", b"{}"), ("archive/b.warc.gz", b"two"), ("archive/a.warc", b"one"), ("x/c.cdx", b"")];
        let expected =
            [("archive/a.warc".to_string(), b"one".to_vec()), ("archive/b.warc.gz".to_string(), b"two".to_vec())];
        for large in [false, true] {
            assert_eq!(read(&zip_of(&files, large)).unwrap(), expected, "zip64: {large}");
        }
        // Some zip files have bytes before the first entry, such as a program that unpacks them.
        assert_eq!(read(&[b"some bytes".to_vec(), zip_of(&files, false)].concat()).unwrap(), expected);
        // Some have bytes after the directory, from a download into a longer file or from a
        // signature.
        for (trailing, large) in
            [(vec![0; 100], false), (b"PK\x05\x06 signed".to_vec(), true), (vec![7; 60_000], false)]
        {
            assert_eq!(read(&[zip_of(&files, large), trailing].concat()).unwrap(), expected);
        }
        assert!(read(&[zip_of(&files, false), vec![7; 70_000]].concat()).unwrap_err().contains("more than 64 KiB"));
    }

    #[test]
    fn package_in_a_package_is_opened_only_one_level_deep() {
        let inner = zip_of(&[("archive/a.warc", b"one")], false);
        let outer_archive = zip_of(&[("datapackage.json", b"{}"), ("1.wacz", &inner)], false);
        assert_eq!(read(&outer_archive).unwrap(), [("1.wacz!/archive/a.warc".to_string(), b"one".to_vec())]);
        assert!(read(&zip_of(&[("2.wacz", &outer_archive)], false)).unwrap_err().contains("nested"));
    }

    #[test]
    fn unreadable_package_is_reported() {
        let archive = zip_of(&[("archive/a.warc", b"one"), ("b", b"x")], false);
        let mut deflated = archive.clone();
        let mut encrypted = archive.clone();
        let directory = memchr::memmem::find(&archive, b"PK\x01\x02").unwrap();
        deflated[directory + 10] = 8;
        encrypted[directory + 8] |= 1;
        let mut far_archive = archive.clone();
        far_archive[directory + 20..directory + 28].fill(0x7f);
        for (bytes, words) in [
            (deflated, "compresses its WARC files"),
            (encrypted, "encrypted"),
            (far_archive, "damaged"),
            (archive[..archive.len() - 30].to_vec(), "damaged"),
            (b"PK\x03\x04".to_vec(), "damaged"),
            (zip_of(&[("a.txt", b"x")], false), "no WARC"),
            (zip_of(&[], false), "no WARC"),
        ] {
            assert!(read(&bytes).unwrap_err().contains(words), "{words}: {:?}", read(&bytes));
        }
    }

    proptest! {
        #[test]
        fn damage_never_leads_beyond_the_file(place in 0usize..400, byte: u8, cut in 0usize..400) {
            let mut bytes = zip_of(&[("archive/a.warc", b"one"), ("1.wacz", &zip_of(&[("b.warc", b"two")], true))], true);
            let place = place % bytes.len();
            bytes[place] = byte;
            bytes.truncate(bytes.len() - cut % 50);
            if let Ok(found) = entries(&Bytes(bytes.clone())).unwrap() {
                prop_assert!(found.iter().all(|entry| entry.range.end <= bytes.len() as u64));
            }
        }
    }
}
