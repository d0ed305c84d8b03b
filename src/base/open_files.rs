//! Limit of open files and connections of this process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{Error, Result};

/// Number of files that a process may have open in addition to its connections: inputs, outputs,
/// spill files, checkpoints, stores.
const OWN_FILES: u64 = 64;

/// Number of file descriptors for each peer: the connections and what watches them.
const FILES_PER_PEER: u64 = 6;

/// Raises the limit of open files to allow connections to `peers` other processes, up to the hard
/// limit. The soft limit is often 1024 although the hard limit is much larger.
///
/// # Errors
/// Returns [`Error::Storage`] with the required number if it exceeds the hard limit.
pub fn raise_limit(peers: usize) -> Result<()> {
    let n_needed = OWN_FILES + FILES_PER_PEER * peers as u64;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    if soft >= n_needed {
        return Ok(());
    }
    let refused = |cause: String| {
        let why = format!(
            "{cause}; with {peers} peers this process needs {n_needed} open files and connections; \
             raise its limit (ulimit -n)"
        );
        Err(Error::storage("files and connections", why))
    };
    if n_needed > hard {
        return refused(format!("at most {hard} are allowed"));
    }
    setrlimit(Resource::RLIMIT_NOFILE, n_needed, hard).or_else(|cause| refused(cause.to_string()))
}
