//! `webtwin manual FOLDER`: for who packs the program.

use std::fs::{File, create_dir_all, read_dir};
use std::io::Write;
use std::path::PathBuf;

use clap::CommandFactory;

use webtwin_base::error::{Error, Result};
use webtwin_base::exit_codes::EXIT_CODES;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder for the pages; those of the same names in it are replaced
    folder: PathBuf,
}

/// Writes a page for the program and for each command that people are to call: `webtwin.1`,
/// `webtwin-run.1` and so on.
pub(super) fn run(args: Args) -> Result<()> {
    let failed =
        |cause: std::io::Error| Error::write(args.folder.display().to_string(), &cause, 0, "free some space there");
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

/// Returns the section of a manual page that lists the exit codes.
fn exit_status() -> String {
    let codes = EXIT_CODES.map(|exit| format!(".TP\n\\fB{}\\fR\n{}\n", exit.code, exit.meaning));
    format!(".SH \"EXIT STATUS\"\n{}", codes.concat())
}
