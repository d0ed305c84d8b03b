//! Parses the command line, runs it, turns an error into an exit code.

/// The commit this program is built from, with `-dirty` after it if the tree held more; compiled anew whenever git's
/// HEAD or index change, and nothing else is.
const COMMIT: &str = git_version::git_version!(
    args = ["--always", "--exclude=*", "--abbrev=12", "--dirty=-dirty"],
    fallback = "unknown commit"
);

fn main() -> std::process::ExitCode {
    webtwin::build::built_from(COMMIT);
    webtwin::cli::main()
}
