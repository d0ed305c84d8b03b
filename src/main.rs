//! Parses the command line, runs it, turns an error into an exit code.

fn main() -> std::process::ExitCode {
    webtwin::cli::main()
}
