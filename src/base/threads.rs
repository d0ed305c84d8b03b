//! Start of threads, and parallel work on numbered items.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use memmap2::MmapMut;

use crate::error::{Error, Result};

/// Size of the address space that a thread needs for its stack and for the C library at its start,
/// in bytes. If the C library cannot get its part, it ends the process.
const STACK_BYTES: usize = 4 << 20;

/// Checks that `threads` more threads are likely to start.
///
/// # Errors
/// Returns [`Error::NoThread`] if there is not enough address space.
pub fn check_memory_for(threads: usize) -> Result<()> {
    MmapMut::map_anon(threads * STACK_BYTES).map(drop).map_err(no_thread)
}

fn no_thread(cause: std::io::Error) -> Error {
    Error::NoThread(cause.to_string())
}

/// Starts a thread.
///
/// # Errors
/// Returns [`Error::NoThread`] if the system cannot start it.
pub fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    check_memory_for(1)?;
    Builder::new().spawn(work).map_err(no_thread)
}

/// Starts a thread that ends within `scope`.
///
/// # Errors
/// Returns [`Error::NoThread`] if the system cannot start it.
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    check_memory_for(1)?;
    Builder::new().spawn_scoped(scope, work).map_err(no_thread)
}

/// Calls `work` with each number below `count`, on at most `threads` threads. Each thread has an
/// outcome of its own, which it passes to `work`. Returns the outcomes. The first error stops all
/// threads.
///
/// # Errors
/// Returns the first error of `work`, [`Error::NoThread`] if a thread cannot be started, and
/// [`Error::Invariant`] if `work` panics.
pub fn for_each<O: Send>(
    threads: usize,
    count: usize,
    outcome: impl Fn() -> O + Sync,
    work: impl Fn(&mut O, usize) -> Result<()> + Sync,
) -> Result<Vec<O>> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let one_thread = || -> Result<O> {
        let mut outcome = outcome();
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            work(&mut outcome, number).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        }
        Ok(outcome)
    };
    std::thread::scope(|scope| {
        let started: Result<Vec<_>> =
            (0..threads.clamp(1, count.max(1))).map(|_| start_in(scope, one_thread)).collect();
        let threads = started.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        let panicked = || Err(Error::Invariant("a thread ended with a panic".into()));
        // All threads are joined, even if one has failed.
        let results: Vec<Result<O>> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect();
        results.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_processed_once_with_any_threads() {
        for threads in [0, 1, 3, 50] {
            let numbers = for_each(threads, 20, Vec::new, |local_numbers, number| {
                local_numbers.push(number);
                Ok(())
            });
            let mut numbers: Vec<usize> = numbers.unwrap().into_iter().flatten().collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..20).collect::<Vec<_>>());
        }
        assert_eq!(for_each(3, 0, || 7, |_, _| Ok(())).unwrap(), [7]);
    }

    #[test]
    fn error_or_panic_ends_all_threads() {
        let failed = for_each(
            2,
            1000,
            || (),
            |(), number| match number {
                5 => Err(Error::Invariant("five".into())),
                _ => Ok(()),
            },
        );
        assert_eq!(failed.unwrap_err().to_string(), Error::Invariant("five".into()).to_string());
        let panicked = for_each(
            2,
            10,
            || (),
            |(), number| {
                assert!(number != 3, "three");
                Ok(())
            },
        );
        assert!(panicked.unwrap_err().to_string().contains("panic"));
    }
}
