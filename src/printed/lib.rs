//! Documents made for paper become text: what the helper process does for one document.
//!
//! In: a PDF or PostScript document on stdin. Out: on stdout, for PDF an [`Answer`] in JSON, for PostScript plain text.
//! [`webtwin_pages::helper`] starts the process, and judges how it ends.
//!
//! Readers of such documents panic, recurse, loop and ask for all memory, if a document wants them to. So the process
//! first limits itself ([`bounds`]), reads one document, and ends: nothing that one document does reaches the next, and
//! what comes of a document does not depend on those before it, as it would in a process that is kept.

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

use webtwin_job::Limits;
#[cfg(feature = "pdf")]
use webtwin_pages::helper::Answer;
use webtwin_pages::helper::GHOSTSCRIPT;

/// Stack of the thread that reads a PDF, bytes; deeper recursion ends the process.
#[cfg(feature = "pdf")]
const STACK_BYTES: usize = 64 << 20;

/// Answers for the PDF on stdin.
///
/// # Errors
/// Those of the system; a document that goes beyond the limits ends the process.
#[cfg(feature = "pdf")]
pub fn pdf(limits: Limits) -> std::io::Result<()> {
    bounds::set(&limits)?;
    // What a reader has to say of a document before it gives up helps nobody.
    std::panic::set_hook(Box::new(|_| ()));
    let mut bytes = Vec::new();
    stdin().lock().read_to_end(&mut bytes)?;
    let reader = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || pdf::read(&bytes, &limits))?;
    let answer: Answer = reader.join().unwrap_or_else(|_| pdf::unreadable("its reader has failed"));
    let mut out = stdout().lock();
    serde_json::to_writer(&mut out, &answer)?;
    out.flush()
}

/// Becomes Ghostscript, which prints the text of the PostScript program on stdin as `ps2ascii` does.
///
/// # Errors
/// Those of the system; it returns only with one.
pub fn postscript(limits: &Limits) -> std::io::Result<Infallible> {
    bounds::set(limits)?;
    // What the program itself prints is no text of the document.
    let quietly = ["-q", "-dSAFER", "-sDEVICE=txtwrite", "-sstdout=%stderr", "-o", "-", "-"];
    Err(Command::new(GHOSTSCRIPT).args(quietly).exec())
}
