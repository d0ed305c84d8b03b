//! Identity of the build, and resource usage of the process.

use std::sync::OnceLock;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

static VERSION: OnceLock<String> = OnceLock::new();

/// Sets the commit that the program was built from. The program passes it at run time: if this
/// library contained it, the library would have to be compiled again after each commit, or would
/// report an old one.
///
/// Only the first call has an effect, and only if it comes before [`version`].
pub fn built_from(commit: &str) {
    // A second call fails, and can only repeat the same commit.
    let _ = VERSION.set(format!("{} ({commit})", env!("CARGO_PKG_VERSION")));
}

/// Returns the version, the commit and a mark for a dirty tree: the text that `--version` prints,
/// that manifests store, and that checkpoints are compared with.
///
/// The commit is unknown if no program has set it, as in tests of the library.
pub fn version() -> &'static str {
    VERSION.get_or_init(|| format!("{} (unknown commit)", env!("CARGO_PKG_VERSION")))
}

/// Returns the message that this build lacks a cargo feature, and how to get a build with it.
pub fn lacks(missing_part: &str, feature: &str) -> String {
    format!(
        "this build {missing_part}; build it with `cargo build --release --features {feature}`, or use one of the packages"
    )
}

/// Returns the peak resident memory of this process in bytes, or 0 if the system does not report
/// it.
pub fn peak_memory_bytes() -> u64 {
    status("VmHWM:")
}

/// Returns the resident memory of this process in bytes, or 0 if the system does not report it.
pub fn memory_bytes() -> u64 {
    status("VmRSS:")
}

/// Returns the processor time of this process in seconds, in user mode and in the kernel, including
/// helper processes that have ended; 0 if the system does not report it.
pub fn cpu_seconds() -> f64 {
    let seconds_of =
        |who| getrusage(who).map_or(0, |usage| (usage.user_time() + usage.system_time()).num_microseconds());
    (seconds_of(UsageWho::RUSAGE_SELF) + seconds_of(UsageWho::RUSAGE_CHILDREN)) as f64 / 1e6
}

/// Returns the memory that is available to processes on this machine in bytes, or `None` if the
/// system does not report it.
pub fn available_memory_bytes() -> Option<u64> {
    Some(kilobytes("/proc/meminfo", "MemAvailable:")).filter(|bytes| *bytes > 0)
}

fn status(name: &str) -> u64 {
    kilobytes("/proc/self/status", name)
}

/// Returns the value of a line in a kernel file that is given in KiB, in bytes; 0 if there is no
/// such line.
fn kilobytes(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().map_or(0, |kib| kib * 1024)
}

/// Describes the machine, for reports.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    format!("{} {}, {cores} cores", std::env::consts::OS, std::env::consts::ARCH)
}
