//! Temporary files that must not outlive the process, even if it ends abruptly.
//!
//! If a thread returns in order, its temporary files are removed when they are dropped. A process
//! that is ended by a signal drops nothing, and neither does one that the heartbeat ends because a
//! worker does not return: [`exit`] removes the remaining files.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::console::tell;

static LEFT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// File, or folder with its content, that is removed on drop if it still exists.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Registers a path for removal. The file need not exist yet.
    pub fn at(path: PathBuf) -> Temporary {
        left().insert(path.clone());
        Temporary(path)
    }

    /// Cancels the removal.
    pub fn release(self) {
        left().remove(&self.0);
        std::mem::forget(self);
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(cause) = remove(&self.0) {
            tell(format_args!("left behind: {}: {cause}", self.0.display()));
        }
        left().remove(&self.0);
    }
}

/// Ends the process with `code`, and removes all temporary files that other threads still use.
pub fn exit(code: u8) -> ! {
    // The lock is held until the end, so that no thread can register another file.
    let left = left();
    for path in left.iter() {
        // The reason for the end has already been reported, and remaining files can be recognised
        // by their names.
        let _ = remove(path);
    }
    std::process::exit(i32::from(code))
}

/// Ends the process like [`exit`], from a thread that may hold the lock itself. In that case the
/// files remain.
pub fn exit_from_anywhere(code: u8) -> ! {
    match LEFT.try_lock() {
        Ok(left) => left.iter().for_each(|path| _ = remove(path)),
        Err(TryLockError::Poisoned(left)) => left.get_ref().iter().for_each(|path| _ = remove(path)),
        Err(TryLockError::WouldBlock) => {}
    }
    std::process::exit(i32::from(code))
}

fn remove(path: &Path) -> Result<()> {
    let removed = std::fs::symlink_metadata(path).and_then(|found| match found.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    });
    match removed {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Locks the set of paths. A poisoned lock is still consistent, because no code panics while it is
/// held.
fn left() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_temporary_goes_with_its_owner_and_what_was_renamed_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (file, inner, renamed) =
            (Temporary::at(at("file")), Temporary::at(at("folder")), Temporary::at(at("renamed")));
        std::fs::write(file.path(), "").unwrap();
        std::fs::create_dir(inner.path()).unwrap();
        std::fs::write(inner.path().join("file"), "").unwrap();
        std::fs::write(renamed.path(), "").unwrap();
        std::fs::rename(renamed.path(), at("result")).unwrap();
        drop((file, inner, renamed));
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["result"]);
        assert!(left().iter().all(|path| !path.starts_with(folder.path())));
    }
}
