//! Helper process of [`webtwin_pages::helper`], which converts a document on stdin to text. Not for
//! users.

use webtwin_base::error::{Error, Result};
use webtwin_job::RecordLimits;
use webtwin_printed as printed;

#[derive(Debug, clap::Parser)]
pub(super) struct Args {
    /// Format of the document on stdin
    format: Format,
    /// Processor time, seconds
    seconds: u64,
    /// Address space, bytes
    memory: u64,
    /// Text, bytes
    text: u64,
    /// Links
    links: u32,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    #[cfg(feature = "pdf")]
    Pdf,
    #[value(name = "postscript")]
    PostScript,
}

pub(super) fn run(args: Args) -> Result<()> {
    let limits = RecordLimits {
        printed_seconds: args.seconds,
        printed_bytes: args.memory,
        record_bytes: args.text,
        links: args.links,
        ..RecordLimits::default()
    };
    let failed = |cause| Error::storage("the helper process", cause);
    match args.format {
        #[cfg(feature = "pdf")]
        Format::Pdf => printed::pdf(limits).map_err(failed),
        Format::PostScript => printed::postscript(&limits).map(|never| match never {}).map_err(failed),
    }
}
