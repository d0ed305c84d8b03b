//! `webtwin-lab synth`: a synthetic crawl as WARC files, and the truth about it.

use std::io::BufWriter;

use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_storage::location::Location;
use webtwin_storage::output;
use webtwin_synth::{Params, Synth};

/// Number of pages per WARC file.
const PAGES_PER_FILE: u64 = 10_000;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder for crawl-NNNNN.warc.gz and truth.tsv; optional with --truth
    #[arg(long, value_name = "URL", required_unless_present = "truth")]
    output: Option<String>,
    /// Approximate number of pages
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pages: u64,
    /// Seed: the same seed makes the same crawl
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// File for the truth about synth://?pages=N&seed=S, written without a crawl
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    truth: Option<std::path::PathBuf>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let synth = Synth::new(&Params { pages: args.pages, seed: args.seed, ..Params::default() })?;
    if let Some(path) = &args.truth {
        let failed = |cause: std::io::Error| Error::storage(path.display().to_string(), cause);
        let mut file = BufWriter::new(std::fs::File::create(path).map_err(failed)?);
        synth.truth_tsv(&mut file).map_err(failed)?;
        return std::io::Write::flush(&mut file).map_err(failed);
    }
    let Some(output) = &args.output else { return Ok(()) };
    let folder = Location::parse(output)?;
    write(&synth, &folder)?;
    notify(format_args!("{} pages and their truth: {}", synth.len(), folder.name()));
    Ok(())
}

/// Writes a synthetic crawl as WARC files, and the truth about it, into an empty folder.
///
/// # Errors
/// Returns any error of [`output::prepare`], and an error if a file cannot be written.
pub fn write(synth: &Synth, folder: &Location) -> Result<()> {
    output::prepare(folder)?;
    for (number, start) in (0..synth.len()).step_by(PAGES_PER_FILE as usize).enumerate() {
        let mut bytes = Vec::new();
        let file = folder.join(&format!("crawl-{number:05}.warc.gz"))?;
        let result = synth.write_warc(start..synth.len().min(start + PAGES_PER_FILE), &mut bytes);
        result.map_err(|cause| Error::storage(file.name(), cause))?;
        file.put(&bytes)?;
    }
    let mut truth = Vec::new();
    let file = folder.join("truth.tsv")?;
    synth.truth_tsv(&mut truth).map_err(|cause| Error::storage(file.name(), cause))?;
    file.put(&truth)
}
