//! Identifies the build, and measures the process it runs in.

use std::sync::OnceLock;

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

/// Most memory this process ever held, in bytes; 0 if the system does not tell.
pub fn peak_memory_bytes() -> u64 {
    status("VmHWM:")
}

/// Memory this process holds now, in bytes; 0 if the system does not tell.
pub fn memory_bytes() -> u64 {
    status("VmRSS:")
}

fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().map_or(0, |kib| kib * 1024)
}

/// Describes the machine, for reports.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    format!("{} {}, {cores} cores", std::env::consts::OS, std::env::consts::ARCH)
}
