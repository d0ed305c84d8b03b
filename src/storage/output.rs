//! Commit protocol: makes the files of a run a result, whatever other runs do in the same folder at
//! the same time.
//!
//! ```text
//! stage      every worker writes its files below OUT/_attempt-HEX/, where no other run writes
//! decide     OUT/_commit.json is created unless it exists: it names the attempt, its files and its
//!            manifest
//! publish    the files of the decided attempt move to their names; then the manifest; then all
//!            else is removed
//! ```
//!
//! Two runs cannot corrupt each other's result. Before the decision no run writes to the final
//! names; after it there is one set of bytes for each of them. So every run may publish a decision,
//! concurrently and repeatedly: the run that made it, a run that lost, or the next run, if the
//! winner has died during publishing. No run has to find out if another is alive, and no clock is
//! needed.
//!
//! A decision may be removed only after the manifest exists, and every run checks for a manifest
//! after it has made or read a decision and before it publishes it. So if a run decides after the
//! result was published, when `_commit.json` has already been removed, it detects that it is too
//! late.
//!
//! # Trust
//! A decision may come from someone else: everyone who may write to the folder can create one, and
//! the next run acts on it. So a decision is rejected unless each of its paths is one that a run
//! may write, below the folder and not through a symbolic link.
//!
//! # Cost
//! On a local disk, one rename for each file. In a store, one copy within the store and one removal
//! for each file, eight at a time.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{MAX_READS, sync_folder, write_temporary};
use super::location::{Location, is_plain};
use super::manifest::{self, FileEntry};
use super::new_file::NewFile;
use webtwin_base::error::{Error, Result};
use webtwin_base::leftovers::Temporary;
use webtwin_base::threads;

/// Names of the files that make a folder a result.
const MANIFESTS: [&str; 3] = [manifest::NAME, manifest::CORPUS_NAME, "fingerprints.json"];

/// File name of the decision.
const DECISION: &str = "_commit.json";

/// Prefix of the folders in which attempts stage their files.
const STAGING_PREFIX: &str = "_attempt-";

/// Prefix of the folders in which unfinished runs keep records and checkpoints.
pub const RECORDS: &str = "_records-";

/// Version of the decision format.
const FORMAT: u32 = 1;

/// Size in bytes of the file that tests if a disk is writable.
const PROBE_BYTES: usize = 4096;

/// Number of files that are moved at a time, in a store.
const MOVERS: usize = 8;

/// Checks that a run may write to `folder`, before it does any work. A decision of another run is
/// published first.
///
/// Leaves no file behind.
///
/// # Errors
/// Returns [`Error::LostCommit`] if there is already a result; [`Error::Usage`] if there are files
/// that no unfinished run has left, something else is in place of the folder, or the folder must
/// not be written; [`Error::Input`] if the decision of another run leads out of the folder; and
/// [`Error::Storage`] if writing fails otherwise, or the store lets two runs create the same
/// object.
pub fn prepare(folder: &Location) -> Result<()> {
    if let Some(path) = folder.path() {
        refuse_what_is_no_folder(path, "--output")?;
    }
    refuse_committed(folder)?;
    if let Some(file) = folder.first_file(of_unfinished_runs)? {
        // The file may belong to a result that another run has published in the meantime.
        refuse_committed(folder)?;
        return Err(Error::Usage(format!(
            "output {folder}: has {file}, which is not from an unfinished run and is not overwritten; choose a new \
             --output"
        )));
    }
    refuse_unwritable(folder, "--output")
}

/// Checks that a run may write to the folder that an option names, whatever its content. Leaves no
/// file behind.
///
/// # Errors
/// Returns [`Error::Usage`] if there is a file or a dangling link in place of the folder, or the
/// folder must not be written; and [`Error::Storage`] or [`Error::DiskFull`] if writing fails
/// otherwise, or the store lets two runs create the same object.
pub fn refuse_unwritable(folder: &Location, option: &str) -> Result<()> {
    match folder.path() {
        Some(path) => writable_disk(folder, path, option),
        None => writable_store(&Attempt::new(folder, &random_id()?)?),
    }
}

/// True if an entry of an output folder does not belong to a result. A folder whose name only
/// begins like that of an attempt belongs to a user.
fn of_unfinished_runs(name: &str) -> bool {
    let is_records = name.strip_prefix(RECORDS).is_some_and(is_hexadecimal);
    is_staged(name) || is_records || name == DECISION || is_half_written(name)
}

/// True if an entry is the folder of an attempt.
fn is_staged(name: &str) -> bool {
    name.strip_prefix(STAGING_PREFIX).is_some_and(is_hexadecimal)
}

fn is_hexadecimal(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// True if an entry is a manifest or decision that was partially written when its process was
/// killed.
fn is_half_written(name: &str) -> bool {
    let is_temporary_of = |whole: &&str| name.strip_prefix('.').is_some_and(|name| name.starts_with(*whole));
    name.ends_with(".tmp") && MANIFESTS.iter().chain(&[DECISION]).any(is_temporary_of)
}

/// Checks that nothing else exists in place of a folder or of its ancestors. `option` is the option
/// that named it.
///
/// # Errors
/// Returns [`Error::Usage`] for a file, and for a dangling symbolic link.
fn refuse_what_is_no_folder(path: &Path, option: &str) -> Result<()> {
    let refuse =
        |what: String| Err(Error::Usage(format!("{option} {}: {what}; choose another {option}", path.display())));
    // Without a trailing slash, which would make the system follow a link.
    let path: &Path = path.components().as_path();
    let link = path.ancestors().take_while(|above| !above.exists()).find(|above| above.is_symlink());
    if let Some(link) = link {
        let target = link.read_link().unwrap_or_default();
        let (link, target) = (link.display(), target.display());
        return refuse(format!("{link} is a symbolic link to {target}, which does not exist; make that folder"));
    }
    match nearest(path) {
        file if !file.is_dir() => refuse(format!("{} is a file", file.display())),
        _ => Ok(()),
    }
}

/// Checks that the nearest existing folder is writable, by writing and removing a file. Permissions
/// alone do not reveal full devices, quotas, and pseudo file systems (`/proc`).
fn writable_disk(folder: &Location, path: &Path, option: &str) -> Result<()> {
    refuse_what_is_no_folder(path, option)?;
    let nearest = nearest(path);
    // Other runs ignore a file of this name.
    match write_temporary(&nearest.join(DECISION), &[&[0; PROBE_BYTES]]) {
        Ok(_removed) => Ok(()),
        Err(cause) if matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            let remedy = format!("free some space there, or choose another {option}");
            Err(Error::write(nearest.display().to_string(), &cause, PROBE_BYTES as u64, &remedy))
        }
        Err(cause) => {
            let refusal = format!("cannot write to {}: {cause}; choose another {option}", nearest.display());
            match cause.kind() {
                // A later attempt would find the same.
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotFound => {
                    Err(Error::Usage(format!("output {folder}: {refusal}")))
                }
                _ => Err(Error::storage(folder.name(), refusal)),
            }
        }
    }
}

/// Returns the free space on the disk of an output in bytes. Returns `None` for a store, or if the
/// system does not report it.
pub fn free_bytes(folder: &Location) -> Option<u64> {
    webtwin_spill::free_bytes(nearest(folder.path()?), "output").ok()
}

/// Returns the nearest ancestor of a path, or the path itself, that exists.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."))
}

/// Checks a store by creating an object twice: the first creation must succeed, and the second must
/// fail.
fn writable_store(attempt: &Attempt) -> Result<()> {
    let create = |bytes: &[u8]| attempt.staged.join("probe")?.put_if_absent(bytes, |stored| stored == bytes);
    let probed = create(b"first").and_then(|()| match create(b"second") {
        Err(Error::LostCommit(_)) => Ok(()),
        Err(other) => Err(other),
        Ok(()) => Err(Error::storage(
            attempt.folder.name(),
            "this store overwrites an existing object where it must refuse, so two runs could both commit; use another \
             store",
        )),
    });
    attempt.discard();
    probed.map_err(|error| attempt.true_cause(error))
}

/// Fails if the folder has a result. A pending decision is published first.
fn refuse_committed(folder: &Location) -> Result<()> {
    let decision = Decision::read(folder)?;
    let committed = committed(folder)?.is_some();
    if let Some(decision) = &decision {
        if committed { clear(folder) } else { decision.publish(folder)? }
    }
    match committed || decision.is_some() {
        true => Err(Error::LostCommit(folder.name().into())),
        false => Ok(()),
    }
}

/// Returns the manifest of the result in a folder, if there is one.
fn committed(folder: &Location) -> Result<Option<Vec<u8>>> {
    for name in MANIFESTS {
        if let Some(bytes) = folder.join(name)?.get()? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// Removes everything that does not belong to the result, which must exist. Entries that cannot be
/// removed are harmless.
fn clear(folder: &Location) {
    let entries = folder.entries().unwrap_or_default();
    for name in entries.iter().filter(|name| is_staged(name)) {
        let _ = folder.join(name).and_then(|attempt| attempt.remove_all());
    }
    for name in entries.iter().filter(|name| is_half_written(name) || *name == DECISION) {
        let _ = folder.join(name).and_then(|file| file.remove());
    }
    // A partially written manifest of a corpus lies in a subfolder, and exists only on disks.
    if let Ok(side_folder) = folder.join(manifest::CORPUS_SIDE_FOLDER.trim_end_matches('/'))
        && folder.path().is_some()
    {
        let is_left = |name: &&String| name.starts_with(".manifest") && name.ends_with(".tmp");
        for name in side_folder.entries().unwrap_or_default().iter().filter(is_left) {
            let _ = side_folder.join(name).and_then(|file| file.remove());
        }
    }
}

/// Returns the identifier of a new attempt: 128 random bits in hexadecimal.
///
/// # Errors
/// Returns [`Error::Invariant`] if the system provides no random numbers.
pub fn random_id() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|cause| Error::Invariant(format!("no random numbers: {cause}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// File of an attempt: its path relative to the folder, and its length in bytes.
pub type StagedFile = (String, u64);

/// Files of one run that are to become a result. All workers of a run share one attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    id: String,
    folder: Location,
    staged: Location,
}

impl Attempt {
    /// Returns the attempt `id` to make `folder` a result.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the name of the folder is invalid.
    pub fn new(folder: &Location, id: &str) -> Result<Attempt> {
        Ok(Attempt { id: id.into(), folder: folder.clone(), staged: folder.join(&format!("{STAGING_PREFIX}{id}"))? })
    }

    /// Returns the identifier of the attempt.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Begins a file of the result that is written in pieces. It becomes visible under its path
    /// when the attempt is decided on.
    ///
    /// # Errors
    /// Returns the errors of [`NewFile::create`].
    pub fn create(&self, path: &str) -> Result<NewFile> {
        NewFile::create(&self.staged.join(path)?, path)
    }

    /// Writes a file of the result: `write` appends its bytes. The entry has no number of rows.
    ///
    /// # Errors
    /// Returns any error of `write`, and the errors of [`Attempt::put`].
    pub fn write(&self, path: &str, write: impl FnOnce(&mut NewFile) -> Result<()>) -> Result<FileEntry> {
        let written = self.create(path).and_then(|mut file| {
            write(&mut file)?;
            file.finish(None)
        });
        written.map_err(|error| self.true_cause(error))
    }

    /// Returns a guard for the folder of this attempt, if it is on the local disk. The folder is
    /// removed when the guard is dropped, unless it is released before [`Attempt::commit`].
    pub fn temporary(&self) -> Option<Temporary> {
        self.staged.path().map(|path| Temporary::at(path.to_path_buf()))
    }

    /// Writes a file of the result. It becomes visible under its path when the attempt is decided
    /// on.
    ///
    /// # Errors
    /// Returns the errors of [`Location::put`], and [`Error::LostCommit`] if another run was
    /// committed, which removes staged files.
    pub fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.put_parts(path, &[bytes])
    }

    /// Writes a file of the result like [`Attempt::put`], from several consecutive parts.
    ///
    /// # Errors
    /// Returns the errors of [`Attempt::put`].
    pub fn put_parts(&self, path: &str, parts: &[&[u8]]) -> Result<()> {
        self.staged.join(path)?.put_parts(parts).map_err(|error| self.true_cause(error))
    }

    /// Makes the folder a result with `files`, which must all be staged, and with `manifest` under
    /// `name`.
    ///
    /// # Errors
    /// Returns [`Error::LostCommit`] if another run was first, after publishing its result;
    /// [`Error::CommitUnknown`] if the outcome in the store is unknown, or if the store fails after
    /// the decision; and [`Error::Storage`] if a staged file is missing or altered, or if the store
    /// or disk fails. If that happens during publishing, the next run into the folder continues it.
    pub fn commit(&self, name: &str, manifest: &[u8], files: Vec<StagedFile>) -> Result<()> {
        let text = String::from_utf8_lossy(manifest).into_owned();
        let decision = Decision { format: FORMAT, attempt: self.id.clone(), name: name.into(), manifest: text, files };
        if let Some(fault) = decision.fault() {
            return Err(Error::Invariant(format!("a decision {fault}")));
        }
        // Until the decision, the staged files are removed if this process ends itself.
        let temporary = self.temporary();
        let presence = decision.all_in(&self.staged);
        if let Some(temporary) = temporary {
            temporary.release();
        }
        let decided = presence.and_then(|()| {
            self.folder.join(DECISION)?.put_if_absent(&decision.to_json(), |stored| {
                serde_json::from_slice::<Decision>(stored).is_ok_and(|stored| stored.attempt == self.id)
            })
        });
        let published = match decided {
            Ok(()) => decision.publish(&self.folder).map_err(|error| match error {
                // Whatever the store has reported, the decision is made.
                Error::Storage { .. } if self.folder.path().is_none() => {
                    Error::CommitUnknown(self.folder.name().into())
                }
                other => other,
            }),
            // The decision may have been made, so the staged files must stay.
            Err(Error::CommitUnknown(_)) => return Err(Error::CommitUnknown(self.folder.name().into())),
            Err(error) => {
                let error = self.true_cause(error);
                self.discard();
                Err(error)
            }
        };
        if let Err(Error::LostCommit(_)) = published {
            // The winner may have died since, so its result is completed before it is reported.
            let _ = refuse_committed(&self.folder);
            self.discard();
            return Err(Error::LostCommit(self.folder.name().into()));
        }
        published
    }

    /// Removes the staged files, if possible.
    pub fn discard(&self) {
        let _ = self.staged.remove_all();
    }

    /// Replaces `error` by [`Error::LostCommit`] if another run was committed, because its removal
    /// of staged files is then the cause.
    fn true_cause(&self, error: Error) -> Error {
        match committed(&self.folder) {
            Ok(Some(_)) => Error::LostCommit(self.folder.name().into()),
            _ => error,
        }
    }
}

/// Choice of the attempt that becomes the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Decision {
    format: u32,
    attempt: String,
    /// File name of the manifest.
    name: String,
    /// Content of the manifest.
    manifest: String,
    files: Vec<StagedFile>,
}

impl Decision {
    fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a decision is plain values")
    }

    fn read(folder: &Location) -> Result<Option<Decision>> {
        let location = folder.join(DECISION)?;
        location.get_as(|bytes| Decision::decode(location.name(), &bytes))?.transpose()
    }

    fn decode(name: &str, bytes: &[u8]) -> Result<Decision> {
        let fault = match serde_json::from_slice::<Decision>(bytes) {
            Ok(decision) if decision.format == FORMAT => match decision.fault() {
                None => return Ok(decision),
                Some(fault) => fault,
            },
            // Without hard links, a process killed at this moment leaves a partial decision, which
            // must be ignored.
            _ => "is not a decision of this build".into(),
        };
        let reason = format!("{fault}; no file was moved; if no run is writing here, remove this file and run again");
        Err(Error::input(name, reason))
    }

    /// Describes the first content that no run writes, as a part of a sentence. Returns `None` if
    /// the decision is valid.
    fn fault(&self) -> Option<String> {
        let is_result = |path: &str| {
            let top = path.split('/').next().unwrap_or_default();
            is_plain(path) && !of_unfinished_runs(top) && !MANIFESTS.contains(&path)
        };
        if !is_hexadecimal(&self.attempt) {
            return Some(format!("names the attempt {:?}, which is not an id", self.attempt));
        }
        if !MANIFESTS.contains(&self.name.as_str()) {
            return Some(format!("names the manifest {:?}, which is not a manifest of a result", self.name));
        }
        let (path, _) = self.files.iter().find(|(path, _)| !is_result(path))?;
        Some(format!("names {path:?}, which is not a file of a result in its folder"))
    }

    /// Fails if a symbolic link would redirect the source or the destination of a file.
    fn refuse_links(&self, staged: &Location, folder: &Location) -> Result<()> {
        let (Some(staged), Some(folder)) = (staged.path(), folder.path()) else { return Ok(()) };
        let paths = || self.files.iter().map(|(path, _)| Path::new(path));
        let folders: BTreeSet<&Path> = paths().flat_map(|path| path.ancestors().skip(1)).collect();
        let strip_root = |root: &Path, path: &Path| match path.as_os_str().is_empty() {
            true => root.to_path_buf(),
            false => root.join(path),
        };
        // The folder itself may be a link, because its user has named it.
        let to = folders.iter().filter(|path| !path.as_os_str().is_empty()).map(|path| folder.join(path));
        let from = folders.iter().map(|path| strip_root(staged, path)).chain(paths().map(|path| staged.join(path)));
        match to.chain(from).find(|path| path.is_symlink()) {
            None => Ok(()),
            Some(link) => Err(Error::input(
                folder.join(DECISION).to_string_lossy(),
                format!(
                    "{} is a symbolic link, which runs do not write, so no file was moved; remove the link",
                    link.display()
                ),
            )),
        }
    }

    /// Moves all files to their final names. Concurrent and repeated calls are harmless.
    fn publish(&self, folder: &Location) -> Result<()> {
        match committed(folder)? {
            Some(bytes) if bytes == self.manifest.as_bytes() => {}
            Some(_) => return Err(Error::LostCommit(folder.name().into())),
            None => {
                self.move_all(folder)?;
                self.all_in(folder)?;
                let manifest = folder.join(&self.name)?;
                manifest.put_if_absent(self.manifest.as_bytes(), |stored| stored == self.manifest.as_bytes())?;
            }
        }
        clear(folder);
        Ok(())
    }

    fn move_all(&self, folder: &Location) -> Result<()> {
        let staged = Attempt::new(folder, &self.attempt)?.staged;
        self.refuse_links(&staged, folder)?;
        let move_some = |files: &[StagedFile]| -> Result<()> {
            // Another run has already moved the files that are missing here.
            files.iter().try_for_each(|(path, bytes)| staged.join(path)?.move_to(&folder.join(path)?, *bytes))
        };
        if folder.path().is_some() {
            return move_some(&self.files);
        }
        let share = self.files.len().div_ceil(MOVERS).max(1);
        std::thread::scope(|scope| {
            let movers: Vec<_> =
                self.files.chunks(share).map(|files| threads::start_in(scope, move || move_some(files))).collect();
            movers.into_iter().try_for_each(|mover| mover?.join().expect("nothing in it panics"))
        })
    }

    /// Returns the first file that is missing below `root` or has another length.
    fn first_missing(&self, root: &Location) -> Result<Option<&str>> {
        let prefix_length = root.name().trim_end_matches('/').len() + 1;
        let listed_files = root.list(None)?;
        let stored_files: BTreeSet<(&str, u64)> = listed_files
            .iter()
            .map(|file| (file.location.name().get(prefix_length..).unwrap_or_default(), file.stamp.bytes))
            .collect();
        let mut files = self.files.iter();
        Ok(files.find(|(path, bytes)| !stored_files.contains(&(path.as_str(), *bytes))).map(|(path, _)| path.as_str()))
    }

    /// Fails unless all files are below `root` with their lengths. Makes their names durable on a
    /// local disk.
    fn all_in(&self, root: &Location) -> Result<()> {
        // A list may have been damaged in transit from a store.
        let lists = if root.path().is_some() { 1 } else { MAX_READS };
        let mut missing = self.first_missing(root);
        for _ in 1..lists {
            if !matches!(missing, Ok(None)) {
                missing = self.first_missing(root);
            }
        }
        if let Some(path) = missing? {
            return Err(Error::storage(
                root.join(path)?.name(),
                "missing or changed after it was written; if several processes run, give them an output that all share",
            ));
        }
        let Some(root) = root.path() else { return Ok(()) };
        let folders: BTreeSet<_> =
            self.files.iter().flat_map(|file| Path::new(&file.0).ancestors().skip(1)).map(|at| root.join(at)).collect();
        folders.iter().try_for_each(|at| sync_folder(at).map_err(|cause| Error::storage(at.to_string_lossy(), cause)))
    }
}

#[cfg(test)]
mod tests;
