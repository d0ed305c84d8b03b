//! The text of PDF and PostScript documents, from a helper process for each.
//!
//! Such documents are programs, or nearly so: what reads them may crash, loop, or take all memory. So a process of its own
//! reads each, within limits of processor time and memory that it sets itself (`src/printed/`). The helper is this program
//! under another command; a caller of the library names one with [`use_program`], and without one the documents are
//! refused as [`Reason::NoConverter`], as are PDF documents without the cargo feature `pdf`.
//!
//! # Cost
//! The start of a process, and the time that the document takes; the worker waits for it. There is no limit of time by
//! the clock: a helper does nothing but compute, and its processor time is bounded.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::Builder;

use serde::{Deserialize, Serialize};

use super::record::{Form, Reason, Refusal};
use webtwin_base::build_info::lacks;
use webtwin_base::error::{Error, Result};
use webtwin_job::{Limits, READS_PDF};

/// The program that prints the text of PostScript.
pub const GHOSTSCRIPT: &str = "gs";

/// The command of the helper; the format and the limits follow.
pub const COMMAND: &str = "print-text";

/// Signals by which the system, or a refused allocation, ends a helper.
const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Version of [`GHOSTSCRIPT`], once a document has asked for it; empty where it is not installed.
static VERSION: OnceLock<String> = OnceLock::new();

/// Names the program that understands [`COMMAND`]: a `webtwin` of this build. The first call counts.
pub fn use_program(path: PathBuf) {
    // A second caller may only repeat what is known.
    let _ = PROGRAM.set(path);
}

/// The version of Ghostscript that this process has read PostScript with, empty if there is none; `None` if it has met no
/// such document.
pub fn ghostscript() -> Option<&'static str> {
    VERSION.get().map(String::as_str)
}

/// The version of Ghostscript that is installed, empty if there is none; from now on this process counts as one that has met
/// PostScript, for what it goes on from has.
pub fn ghostscript_version() -> &'static str {
    VERSION.get_or_init(|| {
        let asked = Command::new(GHOSTSCRIPT).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
        asked.map_or(String::new(), |answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    })
}

/// What the helper says of a document.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// It has text.
    Document(Document),
    /// It is no page.
    Refused(Reason, String),
}

/// What a document says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its title; empty if it has none.
    pub title: String,
    /// Its text, in lines as printed.
    pub text: String,
    /// URIs it links to, as written.
    pub links: Vec<String>,
    /// True if all of it could be read, as it is written.
    pub is_whole: bool,
}

/// Returns where a PDF starts in these bytes. Other bytes may come before it: a head that a script has printed twice, or
/// part of a page.
pub fn pdf_start(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, b"%PDF-")
}

/// The text of a document of this form.
///
/// # Errors
/// [`Error::Storage`] when the helper cannot be started, or is another program.
///
/// # Panics
/// If the form is not one for the helper.
pub(super) fn document(form: Form, body: &[u8], limits: &Limits) -> Result<std::result::Result<Document, Refusal>> {
    let format = match form {
        Form::Pdf if pdf_start(body).is_none() => {
            return Ok(Err((Reason::PdfDamaged, "it has no %PDF-".to_owned())));
        }
        Form::Pdf => "pdf",
        Form::PostScript => "postscript",
        Form::Html | Form::Xhtml | Form::Text => unreachable!("pages are no documents"),
    };
    let missing = |what: &str| Ok(Err((Reason::NoConverter, format!("{format}: {what}"))));
    if form == Form::Pdf && !READS_PDF {
        return missing(&lacks("reads no PDF", "pdf"));
    }
    let Some(program) = PROGRAM.get() else { return missing("no helper program is named") };
    if form == Form::PostScript && ghostscript_version().is_empty() {
        return missing("Ghostscript (gs) is not installed");
    }
    let failed = |cause: std::io::Error| Error::storage(program.display().to_string(), cause);
    let numbers = [limits.printed_seconds, limits.printed_bytes, limits.record_bytes, limits.links.into()];
    let child = Command::new(program)
        .args([COMMAND, format])
        .args(numbers.map(|number| number.to_string()))
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Who stops the run from a terminal stops this process, which then decides.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    // Text in JSON is at most six times as long as it is.
    let (status, said) = fed(child, body, 8 * limits.record_bytes + (1 << 20)).map_err(failed)?;
    if let Some(refusal) = beyond(form, status, limits) {
        return Ok(Err(refusal));
    }
    if form == Form::PostScript {
        return Ok(of_postscript(status, said, limits));
    }
    match serde_json::from_slice(&said) {
        Ok(Answer::Document(document)) => Ok(Ok(document)),
        Ok(Answer::Refused(reason, detail)) => Ok(Err((reason, detail))),
        Err(_) if status.success() => Err(failed(std::io::Error::other("it is no webtwin of this build"))),
        Err(_) => Ok(Err((Reason::PdfDamaged, format!("its reader has failed: {status}")))),
    }
}

/// Feeds a process, and takes what it says, up to `most` bytes; then it is killed.
fn fed(mut child: Child, bytes: &[u8], most: u64) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let (mut stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut said = Vec::new();
    let taken = std::thread::scope(|scope| {
        // One that wants no more closes its end.
        Builder::new().spawn_scoped(scope, move || drop(stdin.write_all(bytes))).inspect_err(|_| drop(child.kill()))?;
        let taken = stdout.take(most + 1).read_to_end(&mut said);
        if taken.is_err() || said.len() as u64 > most {
            let _ = child.kill();
        }
        taken
    });
    let status = child.wait()?;
    taken.map(|_| (status, said))
}

/// Why a document is refused whose helper was ended by its limits.
fn beyond(form: Form, status: ExitStatus, limits: &Limits) -> Option<Refusal> {
    let of = |pdf| if form == Form::Pdf { pdf } else { Reason::PostScriptFailed };
    let Limits { printed_seconds: seconds, printed_bytes: bytes, .. } = limits;
    match status.signal()? {
        SIGXCPU => Some((of(Reason::PdfTooLong), format!("more than {seconds} s of processor time"))),
        // A refused allocation aborts, and so does recursion beyond the stack.
        SIGABRT | SIGKILL => Some((of(Reason::PdfTooLarge), format!("more than {bytes} bytes of memory, or of stack"))),
        _ => None,
    }
}

/// What Ghostscript has made of a document.
fn of_postscript(status: ExitStatus, said: Vec<u8>, limits: &Limits) -> std::result::Result<Document, Refusal> {
    let failed = |why: String| Err((Reason::PostScriptFailed, why));
    if !status.success() {
        return failed(format!("Ghostscript: {status}"));
    }
    if said.len() as u64 > limits.record_bytes {
        return failed(format!("more than {} bytes of text", limits.record_bytes));
    }
    // Pages end with a form feed.
    let text = String::from_utf8_lossy(&said).replace('\u{c}', "\n\n");
    if text.trim().is_empty() {
        return failed("no text".to_owned());
    }
    Ok(Document { text, is_whole: true, ..Document::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_program_a_document_is_refused_with_the_reason() {
        let of = |form, body: &[u8]| document(form, body, &Limits::default()).unwrap().unwrap_err();
        assert_eq!(of(Form::Pdf, b"%PDF-1.4").0, Reason::NoConverter);
        assert_eq!(of(Form::PostScript, b"%!PS").0, Reason::NoConverter);
        assert_eq!(of(Form::Pdf, b"<html>").0, Reason::PdfDamaged);
    }
}
