//! Bridge to async code: the only module that waits for a future.
//!
//! Object stores are async, but workers of the dataflow are not: they call [`wait`] and block. Two
//! threads are enough, because they only move bytes between sockets and buffers; the callers
//! process the bytes.

use std::future::Future;
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

use webtwin_base::error::{Error, Result};

/// Runs a future of a store to completion and blocks the calling thread.
///
/// # Errors
/// Returns [`Error::Storage`] if the system cannot start the two threads of the runtime.
///
/// # Panics
/// Panics if called from a thread of the runtime itself, which no future of this program does.
pub fn wait<F: Future>(future: F) -> Result<F::Output> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(2).thread_name("webtwin-store").enable_all().build()
    });
    match runtime {
        Ok(runtime) => Ok(runtime.block_on(future)),
        Err(error) => Err(Error::storage(
            "the store client",
            format!("cannot start its threads: {error}; raise the limits of this process (ulimit -u)"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_can_wait_simultaneously() {
        std::thread::scope(|scope| {
            for number in 0..8u64 {
                scope.spawn(move || assert_eq!(wait(async move { number + 1 }).unwrap(), number + 1));
            }
        });
    }
}
