//! The limits of the helper process, which it sets itself and its children inherit.

use nix::sys::resource::{Resource, setrlimit};

use webtwin_job::Limits;

/// Bounds this process in processor time, in memory, and in what it may write to disk.
///
/// Processor time is that of the process, whatever else the machine does: a document is too long on a busy machine if
/// it is on an idle one. SIGXCPU ends the process; an allocation that is refused aborts it.
///
/// # Errors
/// Those of the system.
pub fn set(limits: &Limits) -> std::io::Result<()> {
    // One second more before the system kills without a word.
    setrlimit(Resource::RLIMIT_CPU, limits.printed_seconds, limits.printed_seconds + 1)?;
    for (resource, most) in [
        (Resource::RLIMIT_AS, limits.printed_bytes),
        (Resource::RLIMIT_FSIZE, limits.record_bytes),
        (Resource::RLIMIT_CORE, 0),
    ] {
        setrlimit(resource, most, most)?;
    }
    Ok(())
}
