//! Creation of a file that must not exist yet. It decides which of two runs wins an output.
//!
//! The response to a conditional create can be wrong in both directions. If the store created the
//! file and its response was lost, the retry reports that the file exists although this run created
//! it. After a conflict (409) the store reports the same although nothing is stored. So after any
//! response but success the file is read back, and its content decides. If it is that of this run,
//! the run has won. If it is another's, the run has lost. If the file is absent, the creation is
//! retried a bounded number of times. If it cannot be read, the outcome is unknown, and nothing may
//! be deleted.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use object_store::{PutMode, PutOptions};

use super::blocking::wait;
use super::files::{sync_folder_of, write_temporary};
use super::location::{Backend, Location};
use webtwin_base::error::{Error, Result};

/// Maximum number of creations while the file stays absent.
const TRIES: u32 = 5;

/// Response other than "created".
#[derive(Debug)]
enum Refusal {
    /// Nothing was written, and a retry cannot succeed: no permission, no space.
    Final(Error),
    /// The file may or may not exist.
    Unclear,
}

impl Location {
    /// Creates this file with `bytes` unless it exists. `is_own` returns true for bytes that this
    /// attempt has written, so `bytes` must contain an identifier that no other attempt has.
    ///
    /// # Errors
    /// Returns [`Error::LostCommit`] if another attempt was first, [`Error::CommitUnknown`] if the
    /// outcome is unknown, and [`Error::Storage`] or [`Error::DiskFull`] if nothing was written.
    pub fn put_if_absent(&self, bytes: &[u8], is_own: impl Fn(&[u8]) -> bool) -> Result<()> {
        settle(self.name(), || self.create(bytes), || self.get(), is_own, std::thread::sleep)
    }

    fn create(&self, bytes: &[u8]) -> std::result::Result<(), Refusal> {
        match &self.place {
            Backend::Local(path) => create_local(path, bytes).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Refusal::Unclear,
                _ => Refusal::Final(self.write_error(error, bytes.len())),
            }),
            Backend::Remote(store, key) => {
                let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
                let answer = wait(store.put_opts(key, bytes.to_vec().into(), options)).map_err(Refusal::Final)?;
                answer.map(drop).map_err(|error| match error {
                    object_store::Error::PermissionDenied { .. }
                    | object_store::Error::Unauthenticated { .. }
                    | object_store::Error::NotImplemented { .. }
                    | object_store::Error::NotSupported { .. }
                    | object_store::Error::InvalidPath { .. } => Refusal::Final(self.store_error(error)),
                    _ => Refusal::Unclear,
                })
            }
        }
    }
}

/// Writes and syncs a temporary file and links it to its name, which fails if the name exists. File
/// systems without hard links (some network mounts, FAT) create the name first and then fill the
/// file. The winner is just as certain there, but a reader may see a partially written file.
fn create_local(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(path, &[bytes])?;
    let linked = fs::hard_link(temporary.path(), path);
    drop(temporary);
    match linked {
        Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
            let mut file = fs::File::create_new(path)?;
            file.write_all(bytes)?;
            file.sync_all()?;
        }
        linked => linked?,
    }
    sync_folder_of(path)
}

/// Determines the outcome of a creation by reading the file back.
fn settle(
    name: &str,
    create: impl Fn() -> std::result::Result<(), Refusal>,
    read_back: impl Fn() -> Result<Option<Vec<u8>>>,
    is_own: impl Fn(&[u8]) -> bool,
    pause: impl Fn(Duration),
) -> Result<()> {
    for tried in 0..TRIES {
        let Err(refusal) = create() else { return Ok(()) };
        match (read_back(), refusal) {
            (Ok(Some(found)), _) if is_own(&found) => return Ok(()),
            (Ok(Some(_)), _) => return Err(Error::LostCommit(name.to_string())),
            // Only after the first attempt does a refusal prove that nothing was written: an
            // earlier attempt with an unclear outcome may still take effect.
            (_, Refusal::Final(error)) if tried == 0 => return Err(error),
            (Err(_), _) | (_, Refusal::Final(_)) => break,
            (Ok(None), Refusal::Unclear) => pause(Duration::from_millis(100 << tried)),
        }
    }
    Err(Error::CommitUnknown(name.to_string()))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    /// Behaviour of a faulty store in each creation, and whether the file can be read back.
    #[derive(Clone, Copy)]
    enum Fault {
        None,
        /// Status 409, or 503 before the creation: nothing is stored, and the response is no
        /// success.
        NotDone,
        /// The file is created, but the response is lost.
        DoneAnswerLost,
        /// Another run was first.
        OtherFirst,
        Forbidden,
    }

    fn commit(faults: &[Fault], readable: bool) -> (Result<()>, Option<&'static [u8]>, usize) {
        let stored: RefCell<Option<&'static [u8]>> = RefCell::default();
        let calls = Cell::new(0);
        let create = || {
            let fault = faults[calls.get().min(faults.len() - 1)];
            calls.set(calls.get() + 1);
            match fault {
                Fault::None => {
                    stored.borrow_mut().get_or_insert(b"us");
                    Ok(())
                }
                Fault::NotDone => Err(Refusal::Unclear),
                Fault::DoneAnswerLost => {
                    stored.borrow_mut().get_or_insert(b"us");
                    Err(Refusal::Unclear)
                }
                Fault::OtherFirst => {
                    stored.borrow_mut().get_or_insert(b"them");
                    Err(Refusal::Unclear)
                }
                Fault::Forbidden => Err(Refusal::Final(Error::storage("out", "403"))),
            }
        };
        let read_back = || match readable {
            true => Ok(stored.borrow().map(<[u8]>::to_vec)),
            false => Err(Error::storage("out", "503")),
        };
        let result = settle("out", create, read_back, |bytes| bytes == b"us", |_| ());
        (result, *stored.borrow(), calls.get())
    }

    #[test]
    fn every_wrong_answer_to_a_conditional_create_is_detected() {
        use Fault::*;
        for (case, faults, readable, exit, calls) in [
            ("a plain yes is not read back", &[None][..], false, 0, 1),
            ("our own bytes behind a no are a win", &[DoneAnswerLost], true, 0, 1),
            ("another's bytes are a loss", &[OtherFirst], true, 4, 1),
            ("a conflict with nothing stored is tried again", &[NotDone, NotDone, None], true, 0, 3),
            ("and may then be lost", &[NotDone, OtherFirst], true, 4, 2),
            ("and is not tried for ever", &[NotDone], true, 6, TRIES as usize),
            ("unreadable is unknown", &[DoneAnswerLost], false, 6, 1),
            ("no permission is a storage error at once", &[Forbidden], true, 8, 1),
            ("even when reading is forbidden too", &[Forbidden], false, 8, 1),
            ("but not after an attempt that may yet arrive", &[NotDone, Forbidden], true, 6, 2),
        ] {
            let (result, stored, called) = commit(faults, readable);
            let exit_code = result.err().map_or(0, |error| error.exit_code());
            assert_eq!((exit_code, called), (exit, calls), "{case}");
            assert!(exit != 0 || stored == Some(b"us"), "{case}");
        }
    }

    #[test]
    fn exactly_one_of_sixteen_racing_runs_wins_and_its_bytes_remain() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..10 {
            let local = Location::parse(folder.path().join(format!("{round}/manifest")).to_str().unwrap()).unwrap();
            let remote = Location::of_store(Arc::new(InMemory::new()), "memory://", "manifest").unwrap();
            for place in [local, remote] {
                let won: Vec<u8> = std::thread::scope(|scope| {
                    let runs: Vec<_> = (0..16u8)
                        .map(|run| {
                            let place = &place;
                            scope.spawn(move || (run, place.put_if_absent(&[run; 100], |bytes| bytes == [run; 100])))
                        })
                        .collect();
                    let ends = runs.into_iter().map(|run| run.join().unwrap());
                    ends.filter_map(|(run, end)| match end {
                        Ok(()) => Some(run),
                        Err(error) => {
                            assert_eq!(error.exit_code(), 4);
                            Option::None
                        }
                    })
                    .collect()
                });
                assert_eq!(won.len(), 1);
                assert_eq!(place.get().unwrap().unwrap(), [won[0]; 100]);
            }
            assert_eq!(fs::read_dir(folder.path().join(round.to_string())).unwrap().count(), 1, "no scraps");
        }
    }
}
