//! Limits of the helper process. It sets them itself, and its child processes inherit them.

use nix::sys::resource::{Resource, setrlimit};

use webtwin_job::RecordLimits;

/// Limits the processor time, the memory, and the file size of this process.
///
/// Processor time is that of the process alone, so the load of the machine does not change which
/// documents are too long. SIGXCPU ends the process. An allocation that is refused aborts it.
///
/// # Errors
/// Returns any error of the system.
pub fn set(limits: &RecordLimits) -> std::io::Result<()> {
    // The hard limit is one second higher, because at the hard limit the system kills the process
    // with SIGKILL, which does not identify the cause.
    setrlimit(Resource::RLIMIT_CPU, limits.printed_seconds, limits.printed_seconds + 1)?;
    for (resource, limit) in [
        (Resource::RLIMIT_AS, limits.printed_bytes),
        (Resource::RLIMIT_FSIZE, limits.record_bytes),
        (Resource::RLIMIT_CORE, 0),
    ] {
        setrlimit(resource, limit, limit)?;
    }
    Ok(())
}
