//! Text of documents made for paper: the code of the helper process, which reads one document.
//!
//! Input: a PDF or PostScript document on stdin. Output on stdout: for PDF an [`HelperAnswer`] in
//! JSON, for PostScript plain text. [`webtwin_pages::helper`] starts the process and interprets its
//! exit status.
//!
//! A document can make its reader panic, recurse, loop or exhaust memory. The process therefore
//! limits itself first ([`bounds`]), reads one document, and ends. No effect of a document reaches
//! the next one, and the result for a document does not depend on earlier documents, as it would in
//! a long-lived process.

pub mod bounds;
#[cfg(feature = "pdf")]
mod objects;
#[cfg(feature = "pdf")]
pub mod pdf;
#[cfg(feature = "pdf")]
mod repair;

use std::convert::Infallible;
#[cfg(feature = "pdf")]
use std::io::{Read, Write, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::process::Command;

use webtwin_job::RecordLimits;
use webtwin_pages::helper::GHOSTSCRIPT;
#[cfg(feature = "pdf")]
use webtwin_pages::helper::HelperAnswer;

/// Stack of the thread that reads a PDF, in bytes. Deeper recursion ends the process.
#[cfg(feature = "pdf")]
const STACK_BYTES: usize = 64 << 20;

/// Reads the PDF on stdin and writes the answer to stdout.
///
/// # Errors
/// Returns any error of the system. A document that exceeds the limits ends the process.
#[cfg(feature = "pdf")]
pub fn pdf(limits: RecordLimits) -> std::io::Result<()> {
    bounds::set(&limits)?;
    // Messages of a panicking reader are of no use to the caller.
    std::panic::set_hook(Box::new(|_| ()));
    let mut bytes = Vec::new();
    stdin().lock().read_to_end(&mut bytes)?;
    let reader = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || pdf::read(&bytes, &limits))?;
    let answer: HelperAnswer = reader.join().unwrap_or_else(|_| pdf::unreadable("the PDF reader failed"));
    let mut writer = stdout().lock();
    serde_json::to_writer(&mut writer, &answer)?;
    writer.flush()
}

/// Replaces this process by Ghostscript, which prints the text of the PostScript program on stdin
/// like `ps2ascii`.
///
/// # Errors
/// Returns only if the system fails, with its error.
pub fn postscript(limits: &RecordLimits) -> std::io::Result<Infallible> {
    bounds::set(limits)?;
    // Output of the PostScript program itself goes to stderr, because it is not text of the
    // document.
    let quietly = ["-q", "-dSAFER", "-sDEVICE=txtwrite", "-sstdout=%stderr", "-o", "-", "-"];
    Err(Command::new(GHOSTSCRIPT).args(quietly).exec())
}
