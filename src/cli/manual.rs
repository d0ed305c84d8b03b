//! `webtwin manual FOLDER`: for who packs the program.

use std::path::PathBuf;

use clap::CommandFactory;

use crate::error::{Error, Result};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder for the pages; those of the same names in it are replaced
    folder: PathBuf,
}

/// Writes a page for the program and for each command that people are to call: `webtwin.1`, `webtwin-run.1` and so on.
pub(super) fn run(args: Args) -> Result<()> {
    let failed = |cause| Error::storage(args.folder.display().to_string(), cause);
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(super::CommandLine::command(), &args.folder).map_err(failed)
}
