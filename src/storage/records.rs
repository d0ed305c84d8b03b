//! Records on the local disk, from which an interrupted run resumes. A record is the saved result
//! of reading one work item.
//!
//! A file contains the records of some work items, each under a 128-bit key that identifies the
//! input bytes it was made of. This module treats records as bytes; the writer interprets them.
//!
//! # Layout
//! A `FileHead` (magic, format, job digest, build, checksum), then for each record an
//! `RecordPrefix` (key, length, two checksums) and its bytes. Numbers are in the byte order of the
//! machine; another order gives another magic.
//!
//! # Safety of the answer
//! A record is used only if it is complete and was made by the same build, for the same job, from
//! the same input. (Two builds of one commit with different uncommitted changes count as the same
//! build, because their version strings are equal.) Files get their final names after they are
//! complete. They are not synced: if a crash of the machine leaves a partial file, its checksum
//! reveals that, and the input is read again.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use crate::location::Location;
use crate::mapped::FileBytes;
use crate::output::RECORDS;
use crate::step_records::StepRecords;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;

const MAGIC: u64 = u64::from_le_bytes(*b"wtrecord");

/// Version of the format of the files, and of the local pages in them.
const FORMAT: u64 = 2;

/// Extension of complete files.
const RECORDS_EXTENSION: &str = "records";

/// Extension of files that are being written.
pub(super) const HALF: &str = "half";

/// Extension of checkpoints of finished steps ([`super::step_records`]).
pub(super) const STEP: &str = "step";

/// Store of the records of work items, for use by a later run. Threads may share it.
pub trait RecordStore: std::fmt::Debug + Send + Sync {
    /// Returns the record of an item, or `None` if there is no usable one.
    fn read(&self, number: usize) -> Option<Vec<u8>>;

    /// Stores the records of some items. `encode` appends the record of an item to an empty list.
    ///
    /// # Errors
    /// Returns [`Error::Storage`], or another error of a failed write, and any error of `encode`.
    /// Then no record of the call is stored.
    fn write(&self, numbers: &[usize], encode: &mut dyn FnMut(usize, &mut Vec<u8>) -> Result<()>) -> Result<()>;

    /// True if an item restored from its record must be written again.
    fn moves(&self, number: usize) -> bool;

    /// True if records are written as early as possible, because the run may end at any moment.
    fn writes_at_once(&self) -> bool;

    /// Counts a complete record whose content is invalid.
    fn refuse(&self);

    /// Returns the checkpoints of the steps after reading of one worker, among `workers`. Returns
    /// `None` if steps are not saved.
    fn steps(&self, worker: usize, workers: usize) -> Option<StepRecords>;

    /// Returns the results of steps after reading that the workers of the previous run have saved,
    /// and that this run can save. Returns `None` if the store does not keep them.
    fn shares(&self) -> Option<&dyn SavedShares>;

    /// Returns the complete records that no item uses: those of files that this run does not read,
    /// and those of items for which `is_restored` is false. If memory is bounded, files that would
    /// have to be read into memory are omitted.
    fn left_over(&self, is_restored: &dyn Fn(usize) -> bool, memory_is_bounded: bool) -> Vec<UnusedRecords>;
}

/// Results of each worker in a step, which the next run updates where its input has changed.
/// Threads may share them.
pub trait SavedShares {
    /// Returns the number of workers of the previous run that have saved their result of a step, or
    /// 0 if the results are not complete.
    fn count(&self, step: &str) -> usize;

    /// Returns the result of one of these workers, or `None` if it is damaged.
    fn read(&self, step: &str, worker: usize) -> Option<Vec<u8>>;

    /// Saves the result of a worker. `of` is its index and the number of workers.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] or another error of a failed write.
    fn write(&self, step: &str, of: (usize, usize), share: &[u8]) -> Result<()>;
}

/// Records in a file that no work item uses.
#[derive(Debug)]
pub struct UnusedRecords {
    /// Content of the file.
    pub file: FileBytes,
    /// Positions of the records in the file.
    pub records: Vec<Range<usize>>,
}

impl RecordStore for SavedRecords {
    fn read(&self, number: usize) -> Option<Vec<u8>> {
        SavedRecords::read(self, number)
    }

    fn write(&self, numbers: &[usize], encode: &mut dyn FnMut(usize, &mut Vec<u8>) -> Result<()>) -> Result<()> {
        SavedRecords::write(self, numbers, encode)
    }

    fn moves(&self, _: usize) -> bool {
        false
    }

    fn writes_at_once(&self) -> bool {
        true
    }

    fn refuse(&self) {
        self.ignored.damaged.fetch_add(1, Ordering::Relaxed);
    }

    fn steps(&self, worker: usize, workers: usize) -> Option<StepRecords> {
        Some(StepRecords::new(&self.folder, self.head, (worker, workers)))
    }

    /// Returns `None`, because the steps of a run with the same inputs are restored as they are.
    fn shares(&self) -> Option<&dyn SavedShares> {
        None
    }

    /// Returns no records, because the earlier run had the same inputs.
    fn left_over(&self, _: &dyn Fn(usize) -> bool, _: bool) -> Vec<UnusedRecords> {
        Vec::new()
    }
}

/// Header of a file, which identifies the job and the build of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct FileHead {
    magic: u64,
    format: u64,
    job: [u64; 4],
    build: [u64; 2],
    /// Checksum of the fields above.
    checksum: u64,
}

impl FileHead {
    pub(super) fn new(digest: [u8; 32], build: &str) -> FileHead {
        let hash = xxh3_128(build.as_bytes());
        let build = [hash as u64, (hash >> 64) as u64];
        let mut head = FileHead { magic: MAGIC, format: FORMAT, job: bytemuck::cast(digest), build, checksum: 0 };
        head.checksum = head.sum();
        head
    }

    fn sum(&self) -> u64 {
        xxh3_64(bytemuck::bytes_of(&FileHead { checksum: 0, ..*self }))
    }
}

/// Header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RecordPrefix {
    key: [u64; 2],
    bytes: u64,
    /// Checksum of key, length and record.
    content: [u64; 2],
    /// Checksum of the fields above, so that a damaged length is never used.
    checksum: u64,
}

impl RecordPrefix {
    pub(super) fn new(key: u128, record: &[u8]) -> RecordPrefix {
        let key = [key as u64, (key >> 64) as u64];
        let mut hash = Xxh3::new();
        hash.update(bytemuck::bytes_of(&key));
        hash.update(&(record.len() as u64).to_ne_bytes());
        hash.update(record);
        let content = hash.digest128();
        let content = [content as u64, (content >> 64) as u64];
        let mut entry = RecordPrefix { key, bytes: record.len() as u64, content, checksum: 0 };
        entry.checksum = entry.sum();
        entry
    }

    fn sum(&self) -> u64 {
        xxh3_64(bytemuck::bytes_of(&RecordPrefix { checksum: 0, ..*self }))
    }

    /// Returns the length of the record in bytes, or `None` if the header is damaged.
    pub(super) fn length(&self) -> Option<u64> {
        (self.checksum == self.sum()).then_some(self.bytes)
    }

    fn key(&self) -> u128 {
        u128::from(self.key[0]) | u128::from(self.key[1]) << 64
    }
}

/// Position of a record.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: usize,
    offset: u64,
    entry: RecordPrefix,
}

/// Numbers of records that were found but are not used.
#[derive(Debug, Default)]
pub struct IgnoredCounts {
    /// Partial or damaged files and records.
    pub damaged: AtomicU64,
    /// Files of another job, build or format.
    pub foreign: AtomicU64,
    /// Records of input that has changed since, or is now divided into other items.
    pub stale: AtomicU64,
}

impl IgnoredCounts {
    /// Describes for users which records were ignored and why. Returns `None` if there are none.
    pub fn message(&self) -> Option<String> {
        let counts = [
            (&self.damaged, "damaged"),
            (&self.foreign, "of another job, build or format"),
            (&self.stale, "of input that has changed"),
        ];
        let message = |&(n, description): &(&AtomicU64, &str)| match n.load(Ordering::Relaxed) {
            0 => None,
            n => Some(format!("{n} {description}")),
        };
        let message: Vec<String> = counts.iter().filter_map(message).collect();
        (!message.is_empty()).then(|| message.join(", "))
    }
}

/// Returns the folder for the records of a job with this digest, below `root`. Messages contain
/// `other`, the option for another root.
///
/// # Errors
/// Returns [`Error::Usage`] for a root in a store, and for a symbolic link in place of the folder.
pub fn folder_below(root: &Location, digest: &str, other: &str) -> Result<PathBuf> {
    let Some(root) = root.path() else {
        return Err(Error::Usage(format!("--resume needs a local disk, but {root} is in a store; add {other}")));
    };
    // Most readers of Parquet folders skip names that begin with an underscore.
    let records = root.join(format!("{RECORDS}{digest}"));
    match records.is_symlink() {
        false => Ok(records),
        // The name is predictable, so anyone who may write here could redirect the records by a
        // link.
        true => Err(Error::Usage(format!(
            "--resume: {} is a symbolic link, which runs do not make; remove it, or name another folder with {other}",
            records.display()
        ))),
    }
}

/// Records of one job in one folder: those of earlier runs, and new ones. Threads may share them.
#[derive(Debug)]
pub struct SavedRecords {
    folder: PathBuf,
    head: FileHead,
    keys: Vec<u128>,
    files: Vec<PathBuf>,
    places: Vec<Option<Place>>,
    /// Records that were found but are not used.
    pub ignored: IgnoredCounts,
}

impl SavedRecords {
    /// Finds the records of the items with the given keys in `folder`, which is created if it is
    /// missing.
    ///
    /// Removes partially written files of ended runs, so no other run may use the folder at the
    /// same time.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the folder cannot be created or listed.
    ///
    /// # Cost
    /// A positioned read of 48 bytes for each record.
    pub fn open(folder: &Path, digest: [u8; 32], build: &str, keys: Vec<u128>) -> Result<SavedRecords> {
        let folder_error = |cause| Error::storage(folder.to_string_lossy(), cause);
        fs::create_dir_all(folder).map_err(folder_error)?;
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(folder).map_err(folder_error)? {
            let path = entry.map_err(folder_error)?.path();
            match kind(&path) {
                Some(Written::Whole) => files.push(path),
                Some(Written::Half) => drop(fs::remove_file(path)),
                Some(Written::Step) | None => {}
            }
        }
        files.sort_unstable();
        let places = vec![None; keys.len()];
        let head = FileHead::new(digest, build);
        let mut records =
            SavedRecords { folder: folder.into(), head, keys, files, places, ignored: IgnoredCounts::default() };
        let numbers: HashMap<u128, usize> = records.keys.iter().enumerate().map(|(n, &key)| (key, n)).collect();
        for file in 0..records.files.len() {
            if records.index(file, &numbers).is_err() {
                records.ignored.damaged.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(records)
    }

    /// Indexes the records of a file, up to the first that is partial or unreadable, which is an
    /// error.
    fn index(&mut self, file: usize, numbers: &HashMap<u128, usize>) -> std::io::Result<()> {
        let mut open = File::open(&self.files[file])?;
        let length = open.metadata()?.len();
        let head: FileHead = read_pod(&mut open)?;
        if head.magic != MAGIC || head.checksum != head.sum() {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        if head != self.head {
            self.ignored.foreign.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let mut offset = size_of::<FileHead>() as u64;
        while offset < length {
            open.seek(SeekFrom::Start(offset))?;
            let entry: RecordPrefix = read_pod(&mut open)?;
            offset += size_of::<RecordPrefix>() as u64;
            if entry.length().is_none_or(|bytes| bytes > length - offset) {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            match numbers.get(&entry.key()) {
                Some(&number) => self.places[number] = Some(Place { file, offset, entry }),
                None => drop(self.ignored.stale.fetch_add(1, Ordering::Relaxed)),
            }
            offset += entry.bytes;
        }
        Ok(())
    }

    /// Returns the folder with the records.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number of items that have a record, judged by its header.
    pub fn found(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// Returns the record of an item, or `None` if there is no usable one.
    pub fn read(&self, number: usize) -> Option<Vec<u8>> {
        let Place { file, offset, entry } = self.places[number]?;
        let read_file = || -> std::io::Result<Vec<u8>> {
            let mut record = vec![0; entry.bytes as usize];
            File::open(&self.files[file])?.read_exact_at(&mut record, offset)?;
            Ok(record)
        };
        let whole = |record: &Vec<u8>| RecordPrefix::new(self.keys[number], record).content == entry.content;
        let record = read_file().ok().filter(whole);
        if record.is_none() {
            self.ignored.damaged.fetch_add(1, Ordering::Relaxed);
        }
        record
    }

    /// Writes the records of some items as one file. `encode` appends the record of an item to an
    /// empty list.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if writing fails, and any error of `encode`. Then no file is
    /// left.
    pub fn write(&self, numbers: &[usize], mut encode: impl FnMut(usize, &mut Vec<u8>) -> Result<()>) -> Result<()> {
        let mut random = [0; 8];
        let folder_error = |cause: std::io::Error| Error::storage(self.folder.to_string_lossy(), cause);
        getrandom::fill(&mut random).map_err(|cause| folder_error(std::io::Error::other(cause)))?;
        let path = self.folder.join(format!("{:016x}.{RECORDS_EXTENSION}", u64::from_ne_bytes(random)));
        let half = Temporary::at(path.with_extension(HALF));
        let mut write = || -> Result<()> {
            let mut file = BufWriter::new(File::create_new(half.path()).map_err(folder_error)?);
            file.write_all(bytemuck::bytes_of(&self.head)).map_err(folder_error)?;
            let mut record = Vec::new();
            for &number in numbers {
                record.clear();
                encode(number, &mut record)?;
                let entry = RecordPrefix::new(self.keys[number], &record);
                file.write_all(bytemuck::bytes_of(&entry))
                    .and_then(|()| file.write_all(&record))
                    .map_err(folder_error)?;
            }
            file.into_inner().map_err(|error| folder_error(error.into_error()))?;
            fs::rename(half.path(), &path).map_err(folder_error)
        };
        write()
    }

    /// Removes all records and checkpoints from the folder, and the folder itself if nothing else
    /// is in it. Files that cannot be removed only take disk space.
    pub fn remove(&self) {
        SavedRecords::remove_from(&self.folder);
    }

    /// Removes all records and checkpoints from a folder, like [`SavedRecords::remove`].
    pub fn remove_from(folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if kind(&entry.path()).is_some() {
                drop(fs::remove_file(entry.path()));
            }
        }
        drop(fs::remove_dir(folder));
    }
}

/// Types of the files in the folder.
enum Written {
    Whole,
    Half,
    Step,
}

fn kind(path: &Path) -> Option<Written> {
    match path.extension()?.to_str()? {
        RECORDS_EXTENSION => Some(Written::Whole),
        HALF => Some(Written::Half),
        STEP => Some(Written::Step),
        _ => None,
    }
}

pub(super) fn read_pod<T: Pod>(file: &mut impl Read) -> std::io::Result<T> {
    let mut value = T::zeroed();
    file.read_exact(bytemuck::bytes_of_mut(&mut value))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [u128; 4] = [7, 1 << 100, 3, 4];

    fn open(folder: &Path) -> SavedRecords {
        SavedRecords::open(folder, [5; 32], "build", KEYS.to_vec()).unwrap()
    }

    fn text(number: usize) -> Vec<u8> {
        format!("record {number} ").repeat(number * 8).into_bytes()
    }

    fn write(folder: &Path, numbers: &[usize]) {
        let encode = |number, record: &mut Vec<u8>| {
            record.extend(text(number));
            Ok(())
        };
        open(folder).write(numbers, encode).unwrap();
    }

    fn the_file(folder: &Path) -> PathBuf {
        fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
    }

    #[test]
    fn records_are_read_by_item_and_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("a/b");
        write(&folder, &[2, 0]);
        write(&folder, &[3]);
        let records = open(&folder);
        assert_eq!((records.found(), records.ignored.message()), (3, None));
        for number in [0, 2, 3] {
            assert_eq!(records.read(number).unwrap(), text(number));
        }
        assert_eq!(records.read(1), None);
        records.remove();
        assert!(!folder.exists());
    }

    #[test]
    fn another_job_another_build_and_other_input_are_counted_and_not_used() {
        let temporary = tempfile::tempdir().unwrap();
        write(temporary.path(), &[0, 1]);
        for (digest, build, keys, message) in [
            ([6; 32], "build", &KEYS[..], "1 of another job, build or format"),
            ([5; 32], "build 2", &KEYS, "1 of another job, build or format"),
            ([5; 32], "build", &KEYS[2..], "2 of input that has changed"),
        ] {
            let records = SavedRecords::open(temporary.path(), digest, build, keys.to_vec()).unwrap();
            assert_eq!((records.found(), records.ignored.message().as_deref()), (0, Some(message)));
            assert!((0..keys.len()).all(|number| records.read(number).is_none()));
        }
    }

    #[test]
    fn flipped_bit_or_truncation_loses_only_its_record() {
        let temporary = tempfile::tempdir().unwrap();
        write(temporary.path(), &[1, 2]);
        let file = the_file(temporary.path());
        let whole = fs::read(&file).unwrap();
        let mut left = [0; 3];
        for at in 0..whole.len() {
            for cut in [false, true] {
                let mut bytes = whole.clone();
                if cut {
                    bytes.truncate(at)
                } else {
                    bytes[at] ^= 16
                }
                fs::write(&file, bytes).unwrap();
                let records = open(temporary.path());
                let readable: Vec<_> = [1, 2].into_iter().filter_map(|n| Some((n, records.read(n)?))).collect();
                assert!(readable.iter().all(|(n, record)| *record == text(*n)), "{at} {cut}");
                left[readable.len()] += 1;
                let between = cut && at == size_of::<FileHead>() + size_of::<RecordPrefix>() + text(1).len();
                let untold = between || cut && at == size_of::<FileHead>();
                assert_eq!(records.ignored.message().is_none(), untold, "{at} {cut}");
            }
        }
        assert!(left[0] > 0 && left[1] > whole.len() && left[2] == 0, "{left:?}");
    }

    #[test]
    fn incomplete_file_is_never_used_and_is_removed() {
        let temporary = tempfile::tempdir().unwrap();
        write(temporary.path(), &[1]);
        let file = the_file(temporary.path());
        fs::rename(&file, file.with_extension(HALF)).unwrap();
        fs::write(temporary.path().join("notes.txt"), "of a person").unwrap();
        let records = open(temporary.path());
        assert_eq!(records.found(), 0);
        records.remove();
        assert_eq!(the_file(temporary.path()).file_name().unwrap(), "notes.txt");
    }

    #[test]
    fn folder_that_cannot_be_created_is_named() {
        let error = SavedRecords::open(Path::new("/dev/null/x"), [0; 32], "", Vec::new()).unwrap_err();
        assert!(error.exit_code() == 8 && error.to_string().contains("/dev/null/x"), "{error}");
    }
}
