//! Files that must not outlive the process, although it may be ended at once.
//!
//! Where a thread returns in order, its temporary files go as they are dropped. A process that is ended by a signal, or
//! by the heartbeat because a worker does not return, drops nothing: [`exit`] removes what is left.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::console::tell;

static LEFT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file, or a folder with all that is in it, that is removed when this is dropped, if it is still there.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Takes charge of a path, at which there need not be anything yet.
    pub fn at(path: PathBuf) -> Temporary {
        left().insert(path.clone());
        Temporary(path)
    }

    /// Leaves what is there, whatever happens from now on.
    pub fn release(self) {
        left().remove(&self.0);
        std::mem::forget(self);
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(cause) = remove(&self.0) {
            tell(format_args!("warning: {} could not be removed: {cause}; remove it by hand", self.0.display()));
        }
        left().remove(&self.0);
    }
}

/// Ends the process with `code`, and removes all temporary files that other threads are at work on.
pub fn exit(code: u8) -> ! {
    // Held to the end, so that nobody begins another file.
    let left = left();
    for path in left.iter() {
        // Whoever ends the process is told why already, and what stays is found by its name.
        let _ = remove(path);
    }
    std::process::exit(i32::from(code))
}

/// As [`exit`], from a place that may hold the lock itself: then what is left stays.
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

/// No code panics while it holds the lock.
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
