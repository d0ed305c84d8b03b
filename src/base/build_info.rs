//! Identifies the build, and measures the process it runs in.

use std::sync::OnceLock;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

static VERSION: OnceLock<String> = OnceLock::new();

/// Says which commit the program was built from. Only the program knows: a library that held it would have to be
/// compiled again after each commit, or tell an old one.
///
/// The first call counts, and only if it comes before [`version`].
pub fn built_from(commit: &str) {
    // A second caller may only repeat what is known.
    let _ = VERSION.set(format!("{} ({commit})", env!("CARGO_PKG_VERSION")));
}

/// Version, commit and whether the tree was dirty: what `--version` prints, manifests hold and records are read by.
///
/// Without a program, as in tests of the library, the commit is unknown.
pub fn version() -> &'static str {
    VERSION.get_or_init(|| format!("{} (unknown commit)", env!("CARGO_PKG_VERSION")))
}

/// Says that this build lacks something for want of a cargo feature, and how to get it.
pub fn lacks(what: &str, feature: &str) -> String {
    format!("this build {what}: build it with `cargo build --release --features {feature}`, or use one of the packages")
}

/// Most memory this process ever held, in bytes; 0 if the system does not tell.
pub fn peak_memory_bytes() -> u64 {
    status("VmHWM:")
}

/// Memory this process holds now, in bytes; 0 if the system does not tell.
pub fn memory_bytes() -> u64 {
    status("VmRSS:")
}

/// Processor seconds that this process has taken, in user mode and in the kernel, with those of helper processes that have
/// ended; 0 if the system does not tell.
pub fn cpu_seconds() -> f64 {
    let of = |who| getrusage(who).map_or(0, |usage| (usage.user_time() + usage.system_time()).num_microseconds());
    (of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN)) as f64 / 1e6
}

/// Memory that the machine can still give to processes, in bytes; `None` if the system does not tell.
pub fn available_memory_bytes() -> Option<u64> {
    Some(kilobytes("/proc/meminfo", "MemAvailable:")).filter(|bytes| *bytes > 0)
}

fn status(name: &str) -> u64 {
    kilobytes("/proc/self/status", name)
}

/// A line of a file of the kernel that gives KiB, in bytes; 0 without one.
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
