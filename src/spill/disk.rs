//! Spill files on a local disk for data that does not fit in memory, and the limit of their size.
//!
//! A spill file has no name: it is unlinked as soon as it is open, so its space is freed however
//! the process ends. Everything read back is compared with a checksum that stayed in memory. A disk
//! that returns other bytes ends the run.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::error::{Error, Result, size};

/// Total number of bytes that this process has written to spill files.
static WRITTEN_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes of this process's spill files that are on disk now, and their maximum so far.
static TAKEN_BYTES: AtomicU64 = AtomicU64::new(0);
static MAX_TAKEN_BYTES: AtomicU64 = AtomicU64::new(0);

/// Returns the size of this process's spill files on disk, in bytes.
pub fn taken_bytes() -> u64 {
    TAKEN_BYTES.load(Ordering::Relaxed)
}

/// Returns the maximum size so far of this process's spill files on disk, in bytes.
pub fn taken_at_once_bytes() -> u64 {
    MAX_TAKEN_BYTES.load(Ordering::Relaxed)
}

/// Returns the number of bytes that this process has written to spill files, including those that
/// have been freed.
pub fn spilled_bytes() -> u64 {
    WRITTEN_BYTES.load(Ordering::Relaxed)
}

/// Position of bytes in a spill file, and their checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    check: u64,
}

/// Folder for spill files, and a limit of their total size. Clones share the limit.
#[derive(Debug, Clone)]
pub(crate) struct Disk(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    allowed_bytes: u64,
    taken_bytes: AtomicU64,
    /// True if the limit applies to the spill files of all disks of the process together.
    is_of_process: bool,
    /// Setting that names the folder, for messages.
    setting: &'static str,
    /// Limit for all disks of the process in bytes, and a flag that is true if a setting defines
    /// it.
    of_process: (u64, bool),
}

impl Disk {
    /// Returns a disk whose files in `folder`, which `setting` names, may take `allowed_bytes`
    /// together (0: no limit but the device). That is a part of `process_bytes`, the limit of the
    /// process, which is `effort.disk_bytes` if `is_set` and the free space otherwise.
    pub(crate) fn share(
        folder: &Path,
        setting: &'static str,
        allowed_bytes: u64,
        process_bytes: u64,
        is_set: bool,
    ) -> Disk {
        let (path, process_limit) = (folder.to_path_buf(), (process_bytes, is_set));
        let taken_bytes = AtomicU64::new(0);
        Disk(Arc::new(Folder {
            path,
            allowed_bytes,
            taken_bytes,
            is_of_process: false,
            setting,
            of_process: process_limit,
        }))
    }

    /// Returns a disk whose files in `folder` may take `allowed_bytes` together.
    #[cfg(test)]
    pub(crate) fn new(folder: &Path, allowed_bytes: u64) -> Disk {
        Disk::share(folder, SPILL, allowed_bytes, allowed_bytes, true)
    }

    /// Returns a disk whose files in `folder` may take what the other spill files of the process
    /// leave of `process_bytes`.
    pub(crate) fn of_process(folder: &Path, setting: &'static str, process_bytes: u64) -> Disk {
        let (path, process_limit) = (folder.to_path_buf(), (process_bytes, true));
        let (allowed_bytes, taken_bytes) = (process_bytes, AtomicU64::new(0));
        Disk(Arc::new(Folder {
            path,
            allowed_bytes,
            taken_bytes,
            is_of_process: true,
            setting,
            of_process: process_limit,
        }))
    }

    /// Checks that files can be created in the folder, before there is data to write. Leaves no
    /// file behind.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the folder does not exist or is not writable.
    pub(crate) fn look(&self) -> Result<()> {
        let Err(cause) = SpillFile::new(self).open() else { return Ok(()) };
        match cause.kind() {
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem => {
                Err(Error::Usage(format!("{}: {cause}; set it to a writable folder on a local disk", self.name())))
            }
            _ => Err(self.disk_error(cause)),
        }
    }

    fn disk_error(&self, cause: impl std::fmt::Display) -> Error {
        Error::storage(self.name(), cause)
    }

    fn name(&self) -> String {
        format!("{} ({})", self.0.path.display(), self.0.setting)
    }

    /// Reserves `bytes` more bytes.
    fn take(&self, bytes: u64) -> Result<()> {
        let process_taken = TAKEN_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let disk_taken = self.0.taken_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let taken_bytes = if self.0.is_of_process { process_taken } else { disk_taken };
        if self.0.allowed_bytes > 0 && taken_bytes > self.0.allowed_bytes {
            self.release(bytes);
            let (process_bytes, is_set) = self.0.of_process;
            // An estimate: the other disks of the process are assumed to be equally full.
            let weighted_bytes = u128::from(taken_bytes) * u128::from(process_bytes);
            let needed_bytes = weighted_bytes.div_ceil(u128::from(self.0.allowed_bytes)) as u64;
            return Err(disk_too_small(SPILLED_ROWS, &self.0.path, needed_bytes, process_bytes, is_set));
        }
        MAX_TAKEN_BYTES.fetch_max(process_taken, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, bytes: u64) {
        TAKEN_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        self.0.taken_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

const SPILLED_ROWS: &str = "rows that do not fit in memory";

/// Name of the setting of a job that names the folder.
pub const SPILL: &str = "effort.spill";

/// Returns the remedy for a full device with spill files, whose folder a setting names.
fn remedy(setting: &str) -> String {
    format!("free some space there, or set {setting} to a folder on a larger disk")
}

/// Returns the error that a process cannot write `needed_bytes` to `folder`, because only
/// `allowed_bytes` are allowed by `effort.disk_bytes` if `is_set`, or are free otherwise.
pub fn disk_too_small(content: &str, folder: &Path, needed_bytes: u64, allowed_bytes: u64, is_set: bool) -> Error {
    let path = folder.display().to_string();
    let content = content.to_string();
    if is_set {
        let setting = "effort.disk_bytes".into();
        return Error::DiskLimit { what: content, folder: path, needed_bytes, allowed_bytes, setting };
    }
    let cause = format!("no space left on device for {content}: {} free", size(allowed_bytes));
    Error::DiskFull { path, needed_bytes, cause, remedy: remedy(SPILL) }
}

/// Returns the free space for this user on the device of a folder, which `setting` names, in bytes.
///
/// # Errors
/// Returns [`Error::Storage`] if the system does not report it, for example because the folder does
/// not exist.
pub fn free_bytes(folder: &Path, setting: &str) -> Result<u64> {
    let message = nix::sys::statvfs::statvfs(folder);
    let message = message.map_err(|cause| Error::storage(format!("{} ({setting})", folder.display()), cause))?;
    Ok(message.blocks_available() * message.fragment_size())
}

/// Unnamed file that is written at its end, and whose earlier parts can be freed.
#[derive(Debug)]
pub(crate) struct SpillFile {
    disk: Disk,
    file: Option<File>,
    end: u64,
    /// Size of a block of the file system in bytes. Only whole blocks can be freed.
    block_bytes: u64,
    released: u64,
}

impl SpillFile {
    pub(crate) fn new(disk: &Disk) -> SpillFile {
        SpillFile { disk: disk.clone(), file: None, end: 0, block_bytes: 1, released: 0 }
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<Extent> {
        Ok(Extent { offset: self.write(bytes)?, bytes: bytes.len(), check: xxh3_64(bytes) })
    }

    /// Appends bytes whose checksums the caller keeps. Returns their offset.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<u64> {
        if self.file.is_none() {
            let file = self.open().map_err(|cause| self.disk.disk_error(cause))?;
            self.block_bytes = file.metadata().map_err(|cause| self.disk.disk_error(cause))?.blksize().max(1);
            self.file = Some(file);
        }
        self.disk.take(bytes.len() as u64)?;
        let file = self.file.as_ref().expect("opened above");
        file.write_all_at(bytes, self.end).map_err(|cause| {
            let taken_bytes = self.disk.0.taken_bytes.load(Ordering::Relaxed);
            self.disk.release(bytes.len() as u64);
            Error::write(self.disk.name(), &cause, taken_bytes, &remedy(self.disk.0.setting))
        })?;
        self.end += bytes.len() as u64;
        WRITTEN_BYTES.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(self.end - bytes.len() as u64)
    }

    fn open(&self) -> std::io::Result<File> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(std::io::Error::other)?;
        let path = self.disk.0.path.join(format!(".webtwin-spill-{:016x}", u64::from_le_bytes(number)));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }

    /// Frees the disk space of bytes that are not read again, if the system supports it.
    pub(crate) fn release(&mut self, offset: u64, bytes: usize) {
        let (start, end) = (offset.next_multiple_of(self.block_bytes), offset + bytes as u64);
        let bytes = (end - end % self.block_bytes).saturating_sub(start);
        if bytes > 0 && self.file.as_ref().is_some_and(|file| punch_hole(file, start, bytes)) {
            self.disk.release(bytes);
            self.released += bytes;
        }
    }

    /// Returns the disk of the file.
    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.end
    }

    /// Returns the size of the file on disk as reported by the system, in bytes.
    #[cfg(test)]
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.metadata().unwrap().blocks() * 512)
    }

    /// Appends the rows of `extent` to `into`, and checks them.
    pub(crate) fn read<T: Pod>(&self, extent: Extent, into: &mut Vec<T>) -> Result<()> {
        let start = into.len();
        self.read_unchecked(extent.offset, extent.bytes / size_of::<T>(), into)?;
        if xxh3_64(bytemuck::cast_slice(&into[start..])) == extent.check { Ok(()) } else { Err(self.damaged()) }
    }

    /// Appends the `count` rows at `offset` to `into`. The caller must compare them with checksums.
    pub(crate) fn read_unchecked<T: Pod>(&self, offset: u64, count: usize, into: &mut Vec<T>) -> Result<()> {
        let start = into.len();
        into.resize(start + count, T::zeroed());
        let file = self.file.as_ref().expect("it was written");
        let bytes = bytemuck::cast_slice_mut(&mut into[start..]);
        file.read_exact_at(bytes, offset).map_err(|cause| self.disk.disk_error(cause))
    }

    /// Returns the error for rows that differ from those that were written.
    pub(crate) fn damaged(&self) -> Error {
        self.disk.disk_error(
            "the disk returned other bytes than were written to a spill file; check the disk, or use another folder",
        )
    }

    /// Overwrites a byte, like a failing disk.
    #[cfg(test)]
    pub(crate) fn damage(&self, offset: u64) {
        let (file, mut byte) = (self.file.as_ref().expect("it was written"), [0]);
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[!byte[0]], offset).unwrap();
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.disk.release(self.end - self.released);
    }
}

/// Frees a range of a file without changing its size. Returns true if the system has freed it.
#[cfg(target_os = "linux")]
fn punch_hole(file: &File, offset: u64, bytes: u64) -> bool {
    use nix::fcntl::{FallocateFlags, fallocate};
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file, flags, offset as i64, bytes as i64).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn punch_hole(_: &File, _: u64, _: u64) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_device_is_a_disk_limit_error() {
        let full = Path::new("/dev/full");
        let mut file = SpillFile::new(&Disk::share(full, "--spill", 0, 0, true));
        if let Ok(device) = OpenOptions::new().write(true).open(full) {
            file.file = Some(device);
            let error = file.append(&[0; 100]).unwrap_err();
            assert!(matches!(error, Error::DiskFull { needed_bytes: 100, .. }), "{error}");
            let line = error.to_string();
            assert!(line.contains("no space left on device") && line.contains("set --spill to"), "{line}");
            assert!(!line.contains("effort"), "{line}");
        }
    }
}
