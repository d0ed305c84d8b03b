//! Creating a file that must not exist yet: how one of two runs wins an output.
//!
//! A conditional create can lie in both directions. If the store created the file and its answer was lost, the retry
//! reports that the file exists, although it is ours; after a conflict (409) it reports the same although nothing is
//! stored. So on any answer but a plain yes the file is read back and decides: ours, we won; another's, we lost;
//! absent, try again a bounded number of times; unreadable, nobody knows, and nothing may be deleted.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use object_store::{PutMode, PutOptions};

use super::blocking::wait;
use super::files::{sync_folder_of, write_beside};
use super::location::{Location, Place};
use webtwin_base::error::{Error, Result};

/// Creations tried while the file stays absent.
const TRIES: u32 = 5;

/// An answer other than "created".
#[derive(Debug)]
enum Refusal {
    /// Nothing was written, and trying again will not help: no permission, no space.
    Final(Error),
    /// The file may or may not be there.
    Unclear,
}

impl Location {
    /// Creates this file with `bytes` unless it exists. `ours` tells whether bytes read back were written by this
    /// attempt, so the bytes must carry an identifier that no other attempt has.
    ///
    /// # Errors
    /// [`Error::LostCommit`] when another attempt was first; [`Error::CommitUnknown`] when the store does not tell;
    /// [`Error::Storage`] or [`Error::DiskFull`] when nothing was written.
    pub fn put_if_absent(&self, bytes: &[u8], ours: impl Fn(&[u8]) -> bool) -> Result<()> {
        settle(self.name(), || self.create(bytes), || self.get(), ours, std::thread::sleep)
    }

    fn create(&self, bytes: &[u8]) -> std::result::Result<(), Refusal> {
        match &self.place {
            Place::Local(path) => create_local(path, bytes).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Refusal::Unclear,
                _ => Refusal::Final(self.write_error(error, bytes.len())),
            }),
            Place::Remote(store, key) => {
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

/// Links a whole, synced file to its name, which fails if the name is taken. On file systems without hard links (some
/// network mounts, FAT) it creates the name first and fills it; the winner is as certain, but a reader may see a
/// half-written file.
fn create_local(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_beside(path, &[bytes])?;
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

/// Decides the outcome of a creation by what can be read back.
fn settle(
    name: &str,
    create: impl Fn() -> std::result::Result<(), Refusal>,
    read_back: impl Fn() -> Result<Option<Vec<u8>>>,
    ours: impl Fn(&[u8]) -> bool,
    pause: impl Fn(Duration),
) -> Result<()> {
    for tried in 0..TRIES {
        let Err(refusal) = create() else { return Ok(()) };
        match (read_back(), refusal) {
            (Ok(Some(found)), _) if ours(&found) => return Ok(()),
            (Ok(Some(_)), _) => return Err(Error::LostCommit(name.to_string())),
            // Only a first refusal is known to have left nothing: an earlier, unclear attempt may still arrive.
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

    /// What a faulty store does with each creation in turn, and whether it can be read.
    #[derive(Clone, Copy)]
    enum Fault {
        None,
        /// 409, 503 before it was done: nothing stored, no yes.
        NotDone,
        /// Done, and the answer lost.
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
        let read = || match readable {
            true => Ok(stored.borrow().map(<[u8]>::to_vec)),
            false => Err(Error::storage("out", "503")),
        };
        let result = settle("out", create, read, |bytes| bytes == b"us", |_| ());
        (result, *stored.borrow(), calls.get())
    }

    #[test]
    fn every_lie_of_a_conditional_create_is_seen_through() {
        use Fault::*;
        for (what, faults, readable, exit, calls) in [
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
            let got = result.err().map_or(0, |error| error.exit_code());
            assert_eq!((got, called), (exit, calls), "{what}");
            assert!(exit != 0 || stored == Some(b"us"), "{what}");
        }
    }

    #[test]
    fn of_sixteen_racing_runs_one_wins_and_its_bytes_stand() {
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
