//! `webtwin manual FOLDER`: for who packs the program.

use std::fs::{File, create_dir_all, read_dir};
use std::io::Write;
use std::path::PathBuf;

use clap::CommandFactory;

use webtwin_base::error::{Error, Result};

/// Exit codes and what they mean. `docs/operations.md` says what to do about each.
const EXIT_STATUS: [(&str, &str); 14] = [
    ("0", "Done."),
    ("2", "The command line, job file or cluster file is wrong, or processes of different runs met."),
    (
        "3",
        "An input is missing, has an unknown format or changed while it was read, or a folder is \
         not a result.",
    ),
    (
        "4",
        "Another run has already committed to this output, or has written the next generation of \
         the state.",
    ),
    ("5", "One input has too many damaged records, or a scheduled crawl has too few pages."),
    ("6", "The store did not confirm whether the result was committed; run again."),
    ("7", "A process was lost or did not join in time; run again."),
    ("8", "Reading or writing a store failed; run again."),
    (
        "9",
        "Memory, disk or threads do not suffice, or there are too many pages or pairs; follow the \
         message.",
    ),
    ("10", "No input of a scheduled job has changed, so there is nothing to do."),
    ("70", "An invariant of the program is broken, which is a defect; report it."),
    ("130", "Stopped by SIGINT."),
    ("137", "Killed by the system, for example because memory ran out."),
    ("143", "Stopped by SIGTERM."),
];

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder for the pages; those of the same names in it are replaced
    folder: PathBuf,
}

/// Writes a page for the program and for each command that people are to call: `webtwin.1`, `webtwin-run.1` and so on.
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

/// A section of a page.
fn exit_status() -> String {
    let codes = EXIT_STATUS.map(|(code, meaning)| format!(".TP\n\\fB{code}\\fR\n{meaning}\n"));
    format!(".SH \"EXIT STATUS\"\n{}", codes.concat())
}
