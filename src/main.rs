//! Parses the command line, runs it, turns an error into an exit code.

use nix::sys::signal::{SigSet, Signal};

/// The commit this program is built from, with `-dirty` after it if the tree held more; compiled anew whenever git's
/// HEAD or index change, and nothing else is.
const COMMIT: &str = git_version::git_version!(
    args = ["--always", "--exclude=*", "--abbrev=12", "--dirty=-dirty"],
    fallback = "unknown commit"
);

#[global_allocator]
static HEAP: webtwin::heap::Heap = webtwin::heap::Heap;

fn main() -> std::process::ExitCode {
    // A file that grows beyond `ulimit -f` is then an error like others, and not the end of the process without a word. All
    // threads inherit it; if it cannot be set, the signal ends the process as before.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    webtwin::build_info::built_from(COMMIT);
    webtwin::cli::main()
}
