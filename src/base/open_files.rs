//! How many files and connections this process may have open at a time.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{Error, Result};

/// Files of a process beside its connections: inputs, outputs, spill files, records, stores.
const OWN: u64 = 64;

/// Connections to each other process, and what watches them.
const OF_A_PEER: u64 = 6;

/// Makes room for the connections to so many other processes, as far as the system allows it: the soft limit is often 1024 where
/// much more may be asked for.
///
/// # Errors
/// [`Error::Storage`] with the number that would do when no more than the hard limit may be asked for.
pub fn make_room(peers: usize) -> Result<()> {
    let needed = OWN + OF_A_PEER * peers as u64;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    if soft >= needed {
        return Ok(());
    }
    let refused = |cause: String| {
        let why = format!(
            "{cause}; with {peers} peers this process needs {needed} open files and connections; \
             raise its limit (ulimit -n)"
        );
        Err(Error::storage("files and connections", why))
    };
    if needed > hard {
        return refused(format!("at most {hard} may be open"));
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard).or_else(|cause| refused(cause.to_string()))
}
