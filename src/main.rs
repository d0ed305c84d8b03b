//! Parses the command line, runs it, turns an error into an exit code.

use nix::sys::signal::{SigSet, Signal};

fn main() -> std::process::ExitCode {
    // A file that grows beyond `ulimit -f` is then an error like others, and not the end of the process without a word. All
    // threads inherit it; where it cannot be had, that is how it was.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    webtwin::cli::main()
}
