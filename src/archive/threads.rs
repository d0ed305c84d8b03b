//! Work on many files by several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Calls `work` with each number below `count`, on several threads. The first error stops them all.
///
/// # Errors
/// Those of `work`.
pub(super) fn for_each(workers: usize, count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let one_thread = || -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            work(number).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers.clamp(1, count.max(1))).map(|_| scope.spawn(one_thread)).collect();
        let panicked = || Err(Error::Invariant("a thread ended with a panic".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).fold(Ok(()), Result::and)
    })
}
