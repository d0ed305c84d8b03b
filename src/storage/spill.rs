//! Rows that do not fit in memory: kept in blocks and, beyond an allowance, written to the local disk.
//!
//! A [`Buckets`] takes rows in any order and returns them bucket by bucket; a [`RunLog`] returns records in the order
//! they came. Both write sequentially, in pieces of a few hundred kilobytes, and read each piece once.
//!
//! A spill file has no name: it is unlinked as soon as it is open, so its space is freed however the process ends. What is
//! read back is held against a checksum that stayed in memory: a disk that returns other bytes ends the run.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result, size};

/// Bytes of a block of a bucket.
pub const BLOCK_BYTES: usize = 64 << 10;

/// Bytes of a bucket's blocks that are written at a time.
const PIECE_BYTES: usize = 4 << 20;

/// Bytes of a block of a tape; more if a single record is longer.
pub const TAPE_BLOCK_BYTES: usize = 1 << 20;

/// Bytes that this process has ever written to spill files.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Bytes of spill files of this process that are on disk, and the most there ever were.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static TAKEN_AT_ONCE: AtomicU64 = AtomicU64::new(0);

/// Bytes that this process has on disk in spill files now.
pub fn taken_bytes() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// The most bytes that this process has ever had on disk in spill files.
pub fn taken_at_once_bytes() -> u64 {
    TAKEN_AT_ONCE.load(Ordering::Relaxed)
}

/// Bytes that this process has written to spill files, whether or not they are still there.
pub fn spilled_bytes() -> u64 {
    WRITTEN.load(Ordering::Relaxed)
}

/// Place of bytes in a spill file, and their checksum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    offset: u64,
    pub(super) bytes: usize,
    check: u64,
}

/// A folder for spill files, and the bytes they may take together.
#[derive(Debug, Clone)]
pub struct Disk {
    folder: PathBuf,
    allowed_bytes: u64,
    taken: Arc<AtomicU64>,
    /// Whether what all files of the process take is allowed together.
    is_of_process: bool,
    /// What names the folder, for messages.
    setting: &'static str,
    /// What all disks of the process may take, and whether a setting says so.
    of_process: (u64, bool),
}

impl Disk {
    /// Files in `folder` may take `allowed_bytes` together; 0 sets no limit but the device's.
    pub fn new(folder: &Path, allowed_bytes: u64) -> Disk {
        Disk::share(folder, allowed_bytes, allowed_bytes, true)
    }

    /// As [`Disk::new`], for a share of the `process_bytes` that a process may take: by `effort.disk_bytes` if `is_set`,
    /// or because no more is free.
    pub fn share(folder: &Path, allowed_bytes: u64, process_bytes: u64, is_set: bool) -> Disk {
        let (of_process, taken) = ((process_bytes, is_set), Arc::default());
        Disk { folder: folder.to_path_buf(), allowed_bytes, taken, is_of_process: false, setting: SPILL, of_process }
    }

    /// Files in `folder` may take what all spill files of the process leave of `process_bytes`.
    pub fn of_process(folder: &Path, process_bytes: u64) -> Disk {
        Disk { is_of_process: true, ..Disk::new(folder, process_bytes) }
    }

    /// The same, whose folder is named by another setting or option than `effort.spill`.
    pub fn set_by(self, setting: &'static str) -> Disk {
        Disk { setting, ..self }
    }

    /// Looks whether files can be made in the folder, before there is something to write. Nothing is left behind.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such folder, or it may not be written.
    pub fn look(&self) -> Result<()> {
        let Err(cause) = SpillFile::new(self).open() else { return Ok(()) };
        match cause.kind() {
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem => Err(Error::Usage(format!(
                "{}: {cause}; it names a folder on a local disk that can be written",
                self.name()
            ))),
            _ => Err(self.failed(cause)),
        }
    }

    fn failed(&self, cause: impl std::fmt::Display) -> Error {
        Error::storage(self.name(), cause)
    }

    fn name(&self) -> String {
        format!("{} ({})", self.folder.display(), self.setting)
    }

    /// Reserves more bytes.
    fn take(&self, bytes: u64) -> Result<()> {
        let of_process = TAKEN.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let of_disk = self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let taken = if self.is_of_process { of_process } else { of_disk };
        if self.allowed_bytes > 0 && taken > self.allowed_bytes {
            self.give_back(bytes);
            let (process_bytes, is_set) = self.of_process;
            // As if every other share were as full.
            let needed = u128::from(taken) * u128::from(process_bytes);
            let needed_bytes = needed.div_ceil(u128::from(self.allowed_bytes)) as u64;
            return Err(no_room_on_disk(SPILLED, &self.folder, needed_bytes, process_bytes, is_set));
        }
        TAKEN_AT_ONCE.fetch_max(of_process, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        TAKEN.fetch_sub(bytes, Ordering::Relaxed);
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

const SPILLED: &str = "rows that do not fit in memory";

/// The setting of a job that names the folder.
pub const SPILL: &str = "effort.spill";

/// What to do when the device of spill files is full, whose folder a setting names.
fn remedy(setting: &str) -> String {
    format!("make room there, or set {setting} to a folder on a larger disk")
}

/// The refusal to write `needed_bytes` of a process in `folder`, where `allowed_bytes` are allowed by `effort.disk_bytes` if
/// `is_set`, or free.
pub fn no_room_on_disk(what: &str, folder: &Path, needed_bytes: u64, allowed_bytes: u64, is_set: bool) -> Error {
    let path = folder.display().to_string();
    let what = what.to_string();
    if is_set {
        let setting = "effort.disk_bytes".into();
        return Error::DiskLimit { what, folder: path, needed_bytes, allowed_bytes, setting };
    }
    let cause = format!("no space left on device for {what}: {} free", size(allowed_bytes));
    Error::DiskFull { path, needed_bytes, cause, remedy: remedy(SPILL) }
}

/// Bytes that are free for this user on the device of a folder, which `setting` names.
///
/// # Errors
/// [`Error::Storage`] if the system does not tell, for example because there is no such folder.
pub fn free_bytes(folder: &Path, setting: &str) -> Result<u64> {
    let told = nix::sys::statvfs::statvfs(folder);
    let told = told.map_err(|cause| Error::storage(format!("{} ({setting})", folder.display()), cause))?;
    Ok(told.blocks_available() * told.fragment_size())
}

/// A file without a name that is written at its end, and may give back what lies before.
#[derive(Debug)]
pub(super) struct SpillFile {
    disk: Disk,
    file: Option<File>,
    end: u64,
    /// Bytes of a block of the file, of which only whole ones are given back.
    block_bytes: u64,
    given_back: u64,
}

impl SpillFile {
    pub(super) fn new(disk: &Disk) -> SpillFile {
        SpillFile { disk: disk.clone(), file: None, end: 0, block_bytes: 1, given_back: 0 }
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<Extent> {
        Ok(Extent { offset: self.write(bytes)?, bytes: bytes.len(), check: xxh3_64(bytes) })
    }

    /// Appends bytes of which the caller keeps checksums; returns where they are.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<u64> {
        if self.file.is_none() {
            let file = self.open().map_err(|cause| self.disk.failed(cause))?;
            self.block_bytes = file.metadata().map_err(|cause| self.disk.failed(cause))?.blksize().max(1);
            self.file = Some(file);
        }
        self.disk.take(bytes.len() as u64)?;
        let file = self.file.as_ref().expect("opened above");
        file.write_all_at(bytes, self.end).map_err(|cause| {
            let taken = self.disk.taken.load(Ordering::Relaxed);
            self.disk.give_back(bytes.len() as u64);
            Error::write(self.disk.name(), &cause, taken, &remedy(self.disk.setting))
        })?;
        self.end += bytes.len() as u64;
        WRITTEN.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(self.end - bytes.len() as u64)
    }

    fn open(&self) -> std::io::Result<File> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(std::io::Error::other)?;
        let path = self.disk.folder.join(format!(".webtwin-spill-{:016x}", u64::from_le_bytes(number)));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }

    /// Gives back the disk that these bytes took, which are not read again, as far as the system can.
    pub(super) fn give_back(&mut self, offset: u64, bytes: usize) {
        let (start, end) = (offset.next_multiple_of(self.block_bytes), offset + bytes as u64);
        let bytes = (end - end % self.block_bytes).saturating_sub(start);
        if bytes > 0 && self.file.as_ref().is_some_and(|file| punch_hole(file, start, bytes)) {
            self.disk.give_back(bytes);
            self.given_back += bytes;
        }
    }

    /// Where it is.
    pub(super) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Bytes written so far.
    pub(super) fn written_bytes(&self) -> u64 {
        self.end
    }

    /// Bytes that the system says it takes.
    #[cfg(test)]
    pub(super) fn taken_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.metadata().unwrap().blocks() * 512)
    }

    /// Appends the rows of `extent` to `into`.
    pub(super) fn read<T: Pod>(&self, extent: Extent, into: &mut Vec<T>) -> Result<()> {
        let start = into.len();
        self.read_unchecked(extent.offset, extent.bytes / size_of::<T>(), into)?;
        if xxh3_64(bytemuck::cast_slice(&into[start..])) == extent.check { Ok(()) } else { Err(self.damaged()) }
    }

    /// Appends the `count` rows at `offset` to `into`; the caller holds them against checksums.
    pub(super) fn read_unchecked<T: Pod>(&self, offset: u64, count: usize, into: &mut Vec<T>) -> Result<()> {
        let start = into.len();
        into.resize(start + count, T::zeroed());
        let file = self.file.as_ref().expect("it was written");
        let bytes = bytemuck::cast_slice_mut(&mut into[start..]);
        file.read_exact_at(bytes, offset).map_err(|cause| self.disk.failed(cause))
    }

    /// What is wrong when rows are not those that were written.
    pub(super) fn damaged(&self) -> Error {
        self.disk
            .failed("the disk returned other bytes than were written to a spill file; check it, or name another folder")
    }

    /// Overwrites a byte, as a failing disk might.
    #[cfg(test)]
    pub(super) fn damage(&self, offset: u64) {
        let (file, mut byte) = (self.file.as_ref().expect("it was written"), [0]);
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[!byte[0]], offset).unwrap();
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.disk.give_back(self.end - self.given_back);
    }
}

/// Frees these bytes of a file, whose size stays; says whether the system has.
#[cfg(target_os = "linux")]
fn punch_hole(file: &File, offset: u64, bytes: u64) -> bool {
    use nix::fcntl::{FallocateFlags, fallocate};
    let how = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file, how, offset as i64, bytes as i64).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn punch_hole(_: &File, _: u64, _: u64) -> bool {
    false
}

/// Rows grouped by bucket, in memory and on disk.
#[derive(Debug)]
pub struct Buckets<T> {
    open: Vec<Vec<T>>,
    full: Vec<Vec<Vec<T>>>,
    spilled: Vec<Vec<Extent>>,
    held_bytes: u64,
    allowed_bytes: u64,
    /// The bucket to be written next.
    next: usize,
    file: SpillFile,
    rows: u64,
}

impl<T: Pod> Buckets<T> {
    const ROWS: usize = BLOCK_BYTES / size_of::<T>();

    /// Makes `count` empty buckets that hold up to `allowed_bytes` in full blocks, plus an open block each.
    pub fn new(count: usize, allowed_bytes: u64, disk: &Disk) -> Buckets<T> {
        Buckets {
            open: (0..count).map(|_| Vec::new()).collect(),
            full: (0..count).map(|_| Vec::new()).collect(),
            spilled: vec![Vec::new(); count],
            held_bytes: 0,
            allowed_bytes,
            next: 0,
            file: SpillFile::new(disk),
            rows: 0,
        }
    }

    /// Number of buckets, as given to [`Buckets::new`].
    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// Rows in all buckets that have not been taken yet.
    pub fn rows(&self) -> u64 {
        self.rows + self.open.iter().map(|block| block.len() as u64).sum::<u64>()
    }

    /// Rows in a bucket.
    pub fn rows_of(&self, bucket: usize) -> u64 {
        let spilled: usize = self.spilled[bucket].iter().map(|extent| extent.bytes / size_of::<T>()).sum();
        (spilled + self.full[bucket].len() * Self::ROWS + self.open[bucket].len()) as u64
    }

    /// Writes full blocks to disk until at most `bytes` are held in them.
    ///
    /// # Errors
    /// [`Error::DiskLimit`], [`Error::DiskFull`] or [`Error::Storage`] when the disk does not take them.
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.spill_down_to(bytes).map(drop)
    }

    /// Bytes written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.end
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::Storage`] if the disk is full or fails.
    #[inline]
    pub fn push(&mut self, bucket: usize, row: T) -> Result<()> {
        if self.open[bucket].len() == self.open[bucket].capacity() {
            self.begin_block(bucket)?;
        }
        self.open[bucket].push(row);
        Ok(())
    }

    #[cold]
    fn begin_block(&mut self, bucket: usize) -> Result<()> {
        let bytes = (Self::ROWS * size_of::<T>()) as u64;
        let full = std::mem::take(&mut self.open[bucket]);
        if full.is_empty() {
            self.open[bucket] = Vec::with_capacity(Self::ROWS);
            return Ok(());
        }
        self.rows += full.len() as u64;
        self.full[bucket].push(full);
        self.held_bytes += bytes;
        self.open[bucket] = if self.held_bytes > self.allowed_bytes {
            self.spill_down_to(self.allowed_bytes / 8 * 7)?
        } else {
            Vec::with_capacity(Self::ROWS)
        };
        Ok(())
    }

    /// Writes full blocks, bucket by bucket in turn, until few enough are held; returns one of the blocks, emptied.
    ///
    /// Full blocks of a bucket are written together, so that the pieces on disk are worth a seek.
    fn spill_down_to(&mut self, bytes: u64) -> Result<Vec<T>> {
        let mut emptied = Vec::new();
        let mut gathered: Vec<T> = Vec::new();
        while self.held_bytes > bytes {
            let bucket = self.next;
            self.next = (bucket + 1) % self.full.len();
            if self.full[bucket].is_empty() {
                continue;
            }
            while !self.full[bucket].is_empty() {
                gathered.clear();
                let left = self.full[bucket].len().saturating_sub(PIECE_BYTES / BLOCK_BYTES);
                for block in self.full[bucket].drain(left..) {
                    self.held_bytes -= (Self::ROWS * size_of::<T>()) as u64;
                    gathered.extend_from_slice(&block);
                    emptied = block;
                }
                let extent = self.file.append(bytemuck::cast_slice(&gathered))?;
                self.spilled[bucket].push(extent);
            }
        }
        emptied.clear();
        Ok(emptied)
    }

    /// Replaces the content of `into` with the rows of a bucket, in no particular order, and forgets them.
    ///
    /// # Errors
    /// [`Error::Storage`] if the disk fails.
    pub fn take(&mut self, bucket: usize, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        into.reserve(self.rows_of(bucket) as usize);
        for &extent in &self.spilled[bucket] {
            self.file.read(extent, into)?;
        }
        self.in_memory(bucket).for_each(|block| into.extend_from_slice(block));
        self.forget(bucket);
        Ok(())
    }

    /// Calls `with` for the rows of a bucket, some at a time, in no particular order; they stay. `room` is scratch.
    ///
    /// # Errors
    /// [`Error::Storage`] if the disk fails.
    pub fn each_piece(&self, bucket: usize, room: &mut Vec<T>, mut with: impl FnMut(&[T])) -> Result<()> {
        for &extent in &self.spilled[bucket] {
            room.clear();
            self.file.read(extent, room)?;
            with(room);
        }
        self.in_memory(bucket).for_each(with);
        Ok(())
    }

    /// Forgets the rows of a bucket, and frees their memory and disk.
    pub fn forget(&mut self, bucket: usize) {
        self.rows -= self.rows_of(bucket) - self.open[bucket].len() as u64;
        self.held_bytes -= (self.full[bucket].len() * Self::ROWS * size_of::<T>()) as u64;
        self.spilled[bucket].iter().for_each(|extent| self.file.give_back(extent.offset, extent.bytes));
        (self.open[bucket], self.full[bucket], self.spilled[bucket]) = Default::default();
    }

    fn in_memory(&self, bucket: usize) -> impl Iterator<Item = &[T]> {
        self.full[bucket].iter().chain([&self.open[bucket]]).map(Vec::as_slice)
    }
}

/// Records in the order they came, in memory and on disk.
#[derive(Debug)]
pub struct RunLog<T> {
    pieces: Vec<Piece<T>>,
    open: Vec<T>,
    held_bytes: u64,
    allowed_bytes: u64,
    file: SpillFile,
}

#[derive(Debug)]
enum Piece<T> {
    Held(Vec<T>),
    Spilled(Extent),
}

impl<T: Pod> RunLog<T> {
    const ROWS: usize = TAPE_BLOCK_BYTES / size_of::<T>();

    /// Makes an empty tape that holds up to `allowed_bytes`.
    pub fn new(allowed_bytes: u64, disk: &Disk) -> RunLog<T> {
        RunLog { pieces: Vec::new(), open: Vec::new(), held_bytes: 0, allowed_bytes, file: SpillFile::new(disk) }
    }

    /// Appends a record; its rows stay within one block.
    ///
    /// # Errors
    /// [`Error::Storage`] if the disk is full or fails.
    pub fn push(&mut self, record: impl ExactSizeIterator<Item = T>) -> Result<()> {
        if self.open.len() + record.len() > self.open.capacity() {
            let size = Self::ROWS.max(record.len());
            let full = std::mem::take(&mut self.open);
            self.open = self.put_away(full)?.filter(|block| block.capacity() == size).unwrap_or_default();
            self.open.reserve_exact(size);
        }
        self.open.extend(record);
        Ok(())
    }

    /// Keeps a block in memory or writes it to disk; in the latter case returns it, emptied.
    fn put_away(&mut self, mut full: Vec<T>) -> Result<Option<Vec<T>>> {
        if full.is_empty() {
            return Ok(None);
        }
        let bytes = (full.capacity() * size_of::<T>()) as u64;
        if self.held_bytes + bytes <= self.allowed_bytes {
            self.held_bytes += bytes;
            self.pieces.push(Piece::Held(full));
            return Ok(None);
        }
        let extent = self.file.append(bytemuck::cast_slice(&full))?;
        self.pieces.push(Piece::Spilled(extent));
        full.clear();
        Ok(Some(full))
    }

    /// Ends writing; required before reading.
    ///
    /// # Errors
    /// [`Error::Storage`] if the disk is full or fails.
    pub fn finish(&mut self) -> Result<()> {
        let open = std::mem::take(&mut self.open);
        self.put_away(open).map(drop)
    }

    /// Bytes held in memory.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Number of blocks of a finished tape.
    pub fn blocks(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.end
    }

    /// Replaces the content of `into` with the records of a block.
    ///
    /// # Errors
    /// [`Error::Storage`] if the disk fails.
    pub fn read(&self, number: usize, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        match &self.pieces[number] {
            Piece::Held(rows) => into.extend_from_slice(rows),
            Piece::Spilled(extent) => self.file.read(*extent, into)?,
        }
        Ok(())
    }

    /// Frees the memory or the disk of a block that will not be read again.
    pub fn forget(&mut self, number: usize) {
        match std::mem::replace(&mut self.pieces[number], Piece::Held(Vec::new())) {
            Piece::Held(rows) => self.held_bytes -= (rows.capacity() * size_of::<T>()) as u64,
            Piece::Spilled(extent) => self.file.give_back(extent.offset, extent.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn buckets_give_back_their_rows_whatever_is_spilled(
            seed: u64, count in 1usize..5, rows in 0u64..60_000, allowed in 0u64..1_000_000
        ) {
            let mut buckets = Buckets::<u64>::new(count, allowed, &Disk::new(&std::env::temp_dir(), 0));
            let mut want = vec![Vec::new(); count];
            for n in 0..rows {
                let bucket = (seed.wrapping_mul((n * n) | 1) >> 40) as usize % count;
                buckets.push(bucket, n).unwrap();
                want[bucket].push(n);
            }
            prop_assert_eq!(buckets.rows(), rows);
            prop_assert!(rows * 8 <= allowed + (count * BLOCK_BYTES) as u64 || buckets.spilled_bytes() > 0);
            let mut got = vec![9];
            for (bucket, want) in want.iter().enumerate() {
                let mut pieces = Vec::new();
                buckets.each_piece(bucket, &mut got, |piece| pieces.extend_from_slice(piece)).unwrap();
                buckets.take(bucket, &mut got).unwrap();
                for mut got in [pieces, got.clone()] {
                    got.sort_unstable();
                    prop_assert_eq!(&got, want);
                }
            }
            prop_assert_eq!(buckets.rows(), 0);
        }

        #[test]
        fn a_tape_gives_back_its_records_in_order(
            lengths in prop::collection::vec(0usize..200_000, 0..30), allowed in 0u64..8_000_000
        ) {
            let mut tape = RunLog::<u32>::new(allowed, &Disk::new(&std::env::temp_dir(), 0));
            for (number, &length) in lengths.iter().enumerate() {
                tape.push((0..length + 1).map(|at| if at == 0 { length as u32 } else { number as u32 })).unwrap();
            }
            tape.finish().unwrap();
            let (mut got, mut room) = (Vec::new(), Vec::new());
            for block in 0..tape.blocks() {
                tape.read(block, &mut room).unwrap();
                let mut rest = &room[..];
                while let Some((&length, after)) = rest.split_first() {
                    prop_assert!(after[..length as usize].iter().all(|&number| number == got.len() as u32));
                    got.push(length as usize);
                    rest = &after[length as usize..];
                }
                tape.forget(block);
            }
            prop_assert_eq!(got, lengths);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_taken_gives_back_its_disk() {
        const ROWS: u64 = 300_000;
        let fill = |buckets: &mut Buckets<u64>| (0..ROWS).try_for_each(|row| buckets.push(row as usize % 3, row));
        // Room for the rows once, and a little.
        let disk = Disk::new(&std::env::temp_dir(), 9 * ROWS);
        let mut buckets = Buckets::<u64>::new(3, 0, &disk);
        fill(&mut buckets).unwrap();
        assert_eq!(fill(&mut buckets).unwrap_err().exit_code(), 9);
        drop(buckets);
        let (mut buckets, mut rows) = (Buckets::<u64>::new(3, 0, &disk), Vec::new());
        for time in 0..3 {
            fill(&mut buckets).unwrap();
            assert!(buckets.file.taken_bytes() <= 9 * ROWS, "{time}: {} bytes", buckets.file.taken_bytes());
            for bucket in 0..3 {
                buckets.take(bucket, &mut rows).unwrap();
                rows.sort_unstable();
                assert!(rows.iter().copied().eq((bucket as u64..ROWS).step_by(3)));
            }
        }
    }

    #[test]
    fn spill_files_leave_no_name_behind() {
        let folder = std::env::temp_dir().join(format!("webtwin-spill-test-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut buckets = Buckets::<u64>::new(1, 0, &Disk::new(&folder, 0));
        (0..100_000).for_each(|row| buckets.push(0, row).unwrap());
        assert!(buckets.spilled_bytes() > 0);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn a_disk_that_returns_other_bytes_is_an_error_and_no_row() {
        let disk = Disk::new(&std::env::temp_dir(), 0);
        let mut buckets = Buckets::<u64>::new(1, 0, &disk);
        (0..100_000).for_each(|row| buckets.push(0, row).unwrap());
        buckets.file.damage(70_000);
        let mut tape = RunLog::<u32>::new(0, &disk);
        tape.push((0..1000).map(|_| 7)).unwrap();
        tape.finish().unwrap();
        tape.file.damage(3999);
        for refused in [buckets.take(0, &mut Vec::new()), tape.read(0, &mut Vec::new())] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.exit_code(), 8);
            assert!(refused.to_string().contains("returned other bytes than were written"), "{refused}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let mut tape = RunLog::<u32>::new(0, &Disk::new(Path::new("/nowhere/at/all"), 0));
        tape.push([1, 2].into_iter()).unwrap();
        assert!(tape.finish().unwrap_err().to_string().contains("/nowhere/at/all (effort.spill)"));
    }

    #[test]
    fn a_disk_takes_no_more_than_it_may_and_has_room_again_when_files_are_gone() {
        let disk = Disk::new(&std::env::temp_dir(), 200_000);
        let fill = |rows: u64| {
            let mut buckets = Buckets::<u64>::new(1, 0, &disk);
            (0..rows).try_for_each(|row| buckets.push(0, row))
        };
        fill(20_000).unwrap();
        fill(20_000).unwrap();
        let refused = fill(40_000).unwrap_err();
        let Error::DiskLimit { needed_bytes, allowed_bytes: 200_000, ref setting, .. } = refused else {
            panic!("{refused}")
        };
        assert!((200_000..330_000).contains(&needed_bytes) && setting == "effort.disk_bytes", "{refused}");
    }

    #[test]
    fn disks_of_the_process_count_what_all_of_them_take() {
        let fill = |disk: Disk| {
            let mut buckets = Buckets::<u64>::new(1, 0, &disk);
            (0..20_000).try_for_each(|row| buckets.push(0, row)).map(|()| buckets)
        };
        let held = fill(Disk::new(&std::env::temp_dir(), 200_000)).unwrap();
        let refused = fill(Disk::of_process(&std::env::temp_dir(), 200_000)).unwrap_err();
        assert!(
            matches!(refused, Error::DiskLimit { needed_bytes: 200_001.., allowed_bytes: 200_000, .. }),
            "{refused}"
        );
        drop(held);
    }

    #[test]
    fn a_refusal_tells_what_the_setting_of_a_process_must_be_not_the_share_of_a_worker() {
        let refusal = |is_set: bool| {
            let disk = Disk::share(&std::env::temp_dir(), 200_000, 800_000, is_set);
            let mut buckets = Buckets::<u64>::new(1, 0, &disk);
            (0..40_000).try_for_each(|row| buckets.push(0, row)).unwrap_err()
        };
        let refused = refusal(true);
        let Error::DiskLimit { needed_bytes, allowed_bytes, .. } = refused else { panic!("{refused}") };
        assert!((800_000..1_320_000).contains(&needed_bytes) && allowed_bytes == 800_000, "{refused}");
        // Nobody has set what is free: there is nothing to raise.
        let line = refusal(false).to_string();
        assert!(line.contains("no space left on device") && line.contains("781.2 KiB free"), "{line}");
        assert!(!line.contains("disk_bytes") && line.contains("effort.spill"), "{line}");
    }

    #[test]
    fn a_full_device_is_an_error_of_space() {
        let full = Path::new("/dev/full");
        let disk = Disk::new(full, 0);
        let mut file = SpillFile::new(&disk.set_by("--spill"));
        if let Ok(device) = OpenOptions::new().write(true).open(full) {
            file.file = Some(device);
            let refused = file.append(&[0; 100]).unwrap_err();
            assert!(matches!(refused, Error::DiskFull { needed_bytes: 100, .. }), "{refused}");
            let line = refused.to_string();
            assert!(line.contains("no space left on device") && line.contains("set --spill to"), "{line}");
            assert!(!line.contains("effort"), "{line}");
        }
    }
}
