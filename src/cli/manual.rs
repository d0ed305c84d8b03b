//! `webtwin manual FOLDER`: writes manual pages, for packages.

use std::fs::{File, create_dir_all, read_dir};
use std::io::Write;
use std::path::PathBuf;

use clap::CommandFactory;

use webtwin_base::error::{Error, Result};

/// Exit codes and their meaning. `docs/operations.md` describes the remedy for each.
const EXIT_STATUS: [(&str, &str); 14] = [
    ("0", "Done."),
    ("2", "Wrong usage, job or cluster file, or processes that do not belong together."),
    ("3", "An input is missing, of an unknown format, or changed while it was read; or a folder is not a result."),
    ("4", "Another run has committed to this output already, or has made the next generation of the state."),
    ("5", "Too many damaged records in one input, or too few pages in a scheduled crawl."),
    ("6", "The store did not say whether the result was committed: run again."),
    ("7", "A process was lost or did not join in time: run again."),
    ("8", "Reading or writing a store failed: run again."),
    ("9", "Memory, disk, threads or numbers of pages do not suffice; the message says what to do."),
    ("10", "Nothing to do: no input of a scheduled job has changed."),
    ("70", "A defect of this program."),
    ("130", "Stopped by SIGINT."),
    ("137", "Killed by the system, as when memory is short."),
    ("143", "Stopped by SIGTERM."),
];

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder for the pages; those of the same names in it are replaced
    folder: PathBuf,
}

/// Writes a page for the program and for each public command: `webtwin.1`, `webtwin-run.1` and so
/// on.
pub(super) fn run(args: Args) -> Result<()> {
    let failed = |cause: std::io::Error| Error::write(args.folder.display().to_string(), &cause, 0, "make room there");
    create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(super::CommandLine::command(), &args.folder).map_err(failed)?;
    for page in read_dir(&args.folder).map_err(failed)? {
        let page = page.map_err(failed)?;
        let name = page.file_name().to_string_lossy().into_owned();
        if name.starts_with("webtwin") && name.ends_with(".1") {
            let mut page = File::options().append(true).open(page.path()).map_err(failed)?;
            page.write_all(exit_status().as_bytes()).map_err(failed)?;
        }
    }
    Ok(())
}

/// Returns the section of exit codes.
fn exit_status() -> String {
    let codes = EXIT_STATUS.map(|(code, meaning)| format!(".TP\n\\fB{code}\\fR\n{meaning}\n"));
    format!(".SH \"EXIT STATUS\"\n{}", codes.concat())
}
