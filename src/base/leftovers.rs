//! Temporary files that must not outlive the process, even if it ends abruptly.
//!
//! If a thread returns in order, its temporary files are removed when they are dropped. A process
//! that is ended by a signal drops nothing, and neither does one that the heartbeat ends because a
//! worker does not return: [`exit`] removes the remaining files.

use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::Duration;

use crate::console::notify;

/// Paths of all temporary files and folders.
///
/// A thread that holds the lock allocates nothing: a thread that gets no memory waits until the
/// process has ended, and the thread that ends it needs the lock.
static TEMPORARY_PATHS: Mutex<Option<Box<Node>>> = Mutex::new(None);

/// A path in a linked list, which grows and shrinks without an allocation under the lock.
struct Node {
    path: PathBuf,
    next: Option<Box<Node>>,
}

/// File, or folder with its content, that is removed on drop if it still exists.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Registers a path for removal. The file need not exist yet.
    pub fn at(path: PathBuf) -> Temporary {
        let mut node = Box::new(Node { path: path.clone(), next: None });
        let mut first = left();
        node.next = first.take();
        *first = Some(node);
        Temporary(path)
    }

    /// Cancels the removal.
    pub fn release(self) {
        forget(&self.0);
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
            notify(format_args!("warning: {} could not be removed: {cause}; remove it by hand", self.0.display()));
        }
        forget(&self.0);
    }
}

/// Removes a path from the list.
fn forget(path: &Path) {
    let mut first = left();
    let mut link = &mut *first;
    while link.as_ref().is_some_and(|node| node.path != path) {
        link = &mut link.as_mut().expect("it is a node").next;
    }
    let removed_node = link.take().map(|mut node| {
        *link = node.next.take();
        node
    });
    drop(first);
    drop(removed_node);
}

/// Ends the process with `code`, and removes all temporary files that other threads still use.
pub fn exit(code: u8) -> ! {
    // The lock is held until the end, so that no thread can register another file.
    let first = left();
    remove_all(&first);
    std::process::exit(i32::from(code))
}

/// Ends the process like [`exit`], from a thread that may hold the lock itself, since removing
/// files allocates memory. In that case the files remain.
pub fn exit_from_anywhere(code: u8) -> ! {
    // Other threads hold the lock for moments only, because they allocate nothing meanwhile.
    for _ in 0..100 {
        match TEMPORARY_PATHS.try_lock() {
            Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(10)),
            Ok(first) => {
                remove_all(&first);
                break;
            }
            Err(TryLockError::Poisoned(first)) => {
                remove_all(first.get_ref());
                break;
            }
        }
    }
    std::process::exit(i32::from(code))
}

/// Removes the files of a list.
fn remove_all(first: &Option<Box<Node>>) {
    for node in std::iter::successors(first.as_deref(), |node| node.next.as_deref()) {
        // Another thread may create a file in a folder while it is removed, so a second attempt is
        // made. The reason for the end has already been reported, and remaining files can be
        // recognised by their names.
        let _ = remove(&node.path).or_else(|_| remove(&node.path));
    }
}

fn remove(path: &Path) -> Result<()> {
    let result = std::fs::symlink_metadata(path).and_then(|metadata| match metadata.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    });
    match result {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Locks the list of paths. A poisoned lock is still consistent, because no code panics while it is
/// held.
fn left() -> MutexGuard<'static, Option<Box<Node>>> {
    TEMPORARY_PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_are_removed_with_their_owner_and_renamed_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path_of = |name: &str| folder.path().join(name);
        let (file, inner, renamed) =
            (Temporary::at(path_of("file")), Temporary::at(path_of("folder")), Temporary::at(path_of("renamed")));
        std::fs::write(file.path(), "").unwrap();
        std::fs::create_dir(inner.path()).unwrap();
        std::fs::write(inner.path().join("file"), "").unwrap();
        std::fs::write(renamed.path(), "").unwrap();
        std::fs::rename(renamed.path(), path_of("result")).unwrap();
        drop((file, inner, renamed));
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["result"]);
        let first = left();
        let mut nodes = std::iter::successors(first.as_deref(), |node| node.next.as_deref());
        assert!(nodes.all(|node| !node.path.starts_with(folder.path())));
    }
}
