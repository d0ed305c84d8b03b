//! Files in the folder of an index other than its log and its runs: the lock, the settings with
//! which the index was created, and the file of advice.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::Path;

use serde_json::json;

use crate::advice::Advice;
use webtwin_base::error::{Error, Result};
use webtwin_job::Job;

/// Version of the folder. It covers the formats of its files and the rules by which a replayed log
/// makes advice.
const FORMAT: u32 = 1;

/// Locks a folder for this process; the lock is held while the returned file is open.
///
/// # Errors
/// Returns [`Error::Usage`] if another process holds the lock, and [`Error::Storage`] if the lock
/// cannot be taken.
pub(crate) fn lock(folder: &Path) -> Result<File> {
    let failed = |cause| Error::storage(folder.display().to_string(), cause);
    let lock = File::create(folder.join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let why = "another process has opened this index; end it, or use another folder";
            return Err(Error::Usage(format!("{}: {why}", folder.display())));
        }
        Err(TryLockError::Error(cause)) => return Err(failed(cause)),
    }
    Ok(lock)
}

/// Name of the file of advice, in NDJSON.
pub(crate) const ADVICE: &str = "advice.ndjson";

/// Returns the line of the advice file for one item of advice.
pub(crate) fn line(advice: &Advice) -> String {
    serde_json::to_string(advice).expect("advice is plain values") + "\n"
}

/// Rewrites the advice file with the advice of the log, and returns the file, open for more lines.
pub(crate) fn write_advice(folder: &Path, advice: &[Advice]) -> std::io::Result<File> {
    let (path, temporary) = (folder.join(ADVICE), folder.join("advice.part"));
    let mut file = File::create(&temporary)?;
    file.write_all(advice.iter().map(line).collect::<String>().as_bytes())?;
    fs::rename(&temporary, &path)?;
    Ok(file)
}

/// Checks that a folder was created with the settings of a job; records the settings in a new
/// folder.
///
/// # Errors
/// Returns [`Error::Usage`] if the folder was created with other settings or by another version,
/// and [`Error::Storage`] if the settings cannot be read or written.
pub(crate) fn check_settings(folder: &Path, job: &Job) -> Result<()> {
    let settings = json!({
        "format": FORMAT,
        "limits": job.input.limits,
        "links": job.links,
        "chunks": job.chunks,
        // Only settings that change digests or clusters are compared; the budget of memory may
        // change.
        "overlap": job.overlap,
    });
    let path = folder.join("live.json");
    let failed = |cause| Error::storage(path.display().to_string(), cause);
    match fs::read(&path) {
        Ok(bytes) if serde_json::from_slice::<serde_json::Value>(&bytes).ok().as_ref() == Some(&settings) => Ok(()),
        Ok(_) => Err(Error::Usage(format!(
            "{}: the index was created with other settings or by another version; use the settings in its live.json, \
             or a new folder",
            folder.display()
        ))),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            let temporary = folder.join("live.part");
            let mut file = File::create(&temporary).map_err(failed)?;
            let text = serde_json::to_string_pretty(&settings).expect("settings are plain values") + "\n";
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
            fs::rename(&temporary, &path).and_then(|()| File::open(folder)?.sync_all()).map_err(failed)
        }
        Err(cause) => Err(failed(cause)),
    }
}
