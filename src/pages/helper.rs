//! Text of PDF and PostScript documents, extracted by one helper process per document.
//!
//! Such documents are programs, or close to it: a reader of them may crash, loop, or exhaust
//! memory. Each document is therefore read by a process of its own, which sets its own limits of
//! processor time and memory (`src/printed/`). The helper is this program under another command. A
//! caller of the library names the program with [`use_program`]. Without one, documents are refused
//! as [`Reason::NoConverter`], and so are PDF documents without the cargo feature `pdf`.
//!
//! # Cost
//! The start of a process, and the time that the document takes; the worker waits for both. There
//! is no wall-clock limit, because a helper only computes and its processor time is bounded.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::Builder;

use serde::{Deserialize, Serialize};

use super::record::{PageForm, Reason, Refusal};
use webtwin_base::build_info::lacks;
use webtwin_base::error::{Error, Result};
use webtwin_job::{READS_PDF, RecordLimits};

/// Program that prints the text of PostScript.
pub const GHOSTSCRIPT: &str = "gs";

/// Command of the helper, which is followed by the format and the limits.
pub const COMMAND: &str = "print-text";

/// Signals with which the system, or a refused allocation, ends a helper.
const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Version of [`GHOSTSCRIPT`], set by the first document that needs it; empty if the program is not
/// installed.
static VERSION: OnceLock<String> = OnceLock::new();

/// Sets the program that implements [`COMMAND`], a `webtwin` of this build. Only the first call has
/// an effect.
pub fn use_program(path: PathBuf) {
    // The result is ignored because later callers may only repeat the first.
    let _ = PROGRAM.set(path);
}

/// Returns the version of Ghostscript with which this process has read PostScript, empty if it is
/// not installed. Returns `None` if the process has read no PostScript.
pub fn ghostscript() -> Option<&'static str> {
    VERSION.get().map(String::as_str)
}

/// Returns the version of the installed Ghostscript, empty if there is none.
///
/// After this call, [`ghostscript`] reports the version even if this process reads no PostScript. A
/// recrawl needs that, because the earlier pages that it reuses may have been read with
/// Ghostscript.
pub fn ghostscript_version() -> &'static str {
    VERSION.get_or_init(|| {
        let status = Command::new(GHOSTSCRIPT).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
        status.map_or(String::new(), |answer| String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    })
}

/// Reply of the helper for a document.
#[derive(Debug, Serialize, Deserialize)]
pub enum HelperAnswer {
    /// The document has text.
    Document(DocumentText),
    /// The document is refused as a page, with the reason and details.
    Refused(Reason, String),
}

/// Content of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentText {
    /// Title; empty if the document has none.
    pub title: String,
    /// Text, in lines as printed.
    pub text: String,
    /// URIs of links, as written.
    pub links: Vec<String>,
    /// True if all of the document could be read as written, without repair.
    pub is_whole: bool,
}

/// Returns the offset at which a PDF starts in these bytes. Other bytes may precede it: a head that
/// a script has printed twice, or part of a page.
pub fn pdf_start(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, b"%PDF-")
}

/// Extracts the content of a document in the helper process.
///
/// # Errors
/// Returns [`Error::Storage`] if the helper cannot be started, or is another program.
///
/// # Panics
/// Panics if `form` is HTML, XHTML or text.
pub(super) fn document(
    form: PageForm,
    body: &[u8],
    limits: &RecordLimits,
) -> Result<std::result::Result<DocumentText, Refusal>> {
    let format = match form {
        PageForm::Pdf if pdf_start(body).is_none() => {
            return Ok(Err((Reason::PdfDamaged, "the document has no %PDF- header".to_owned())));
        }
        PageForm::Pdf => "pdf",
        PageForm::PostScript => "postscript",
        PageForm::Html | PageForm::Xhtml | PageForm::Text => unreachable!("HTML, XHTML and text need no helper"),
    };
    let missing = |what: &str| Ok(Err((Reason::NoConverter, format!("{format}: {what}"))));
    if form == PageForm::Pdf && !READS_PDF {
        return missing(&lacks("cannot read PDF", "pdf"));
    }
    let Some(program) = PROGRAM.get() else { return missing("no helper program is set") };
    if form == PageForm::PostScript && ghostscript_version().is_empty() {
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
        // A separate process group: an interrupt from the terminal stops only this process, which
        // then decides about its helpers.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    // JSON escapes make a text at most six times as long.
    let (status, message) = fed(child, body, 8 * limits.record_bytes + (1 << 20)).map_err(failed)?;
    if let Some(refusal) = limit_refusal(form, status, limits) {
        return Ok(Err(refusal));
    }
    if form == PageForm::PostScript {
        return Ok(document_of(status, message, limits));
    }
    match serde_json::from_slice(&message) {
        Ok(HelperAnswer::Document(document)) => Ok(Ok(document)),
        Ok(HelperAnswer::Refused(reason, detail)) => Ok(Err((reason, detail))),
        Err(_) if status.success() => {
            Err(failed(std::io::Error::other("it is not the same build of webtwin as this process; run again")))
        }
        Err(_) => Ok(Err((Reason::PdfDamaged, format!("the PDF reader failed: {status}")))),
    }
}

/// Writes `bytes` to a process and reads its output, up to `limit` bytes. A process that exceeds
/// them is killed.
fn fed(mut child: Child, bytes: &[u8], limit: u64) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let (mut stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut message = Vec::new();
    let read_result = std::thread::scope(|scope| {
        // An error of the write is ignored: a process that needs no more input closes its end.
        Builder::new().spawn_scoped(scope, move || drop(stdin.write_all(bytes))).inspect_err(|_| drop(child.kill()))?;
        let read_result = stdout.take(limit + 1).read_to_end(&mut message);
        if read_result.is_err() || message.len() as u64 > limit {
            let _ = child.kill();
        }
        read_result
    });
    let status = child.wait()?;
    read_result.map(|_| (status, message))
}

/// Returns the refusal of a document whose helper was ended by one of its limits.
fn limit_refusal(form: PageForm, status: ExitStatus, limits: &RecordLimits) -> Option<Refusal> {
    let reason_of = |pdf| if form == PageForm::Pdf { pdf } else { Reason::PostScriptFailed };
    let RecordLimits { printed_seconds: seconds, printed_bytes: bytes, .. } = limits;
    match status.signal()? {
        SIGXCPU => Some((
            reason_of(Reason::PdfTooLong),
            format!("more than {seconds} s of processor time (input.limits.printed_seconds)"),
        )),
        // A refused allocation aborts the process, and so does a stack overflow.
        SIGABRT | SIGKILL => Some((
            reason_of(Reason::PdfTooLarge),
            format!("more than {bytes} bytes of memory, or too much stack (input.limits.printed_bytes)"),
        )),
        _ => None,
    }
}

/// Makes a document of the output of Ghostscript.
fn document_of(
    status: ExitStatus,
    message: Vec<u8>,
    limits: &RecordLimits,
) -> std::result::Result<DocumentText, Refusal> {
    let failed = |why: String| Err((Reason::PostScriptFailed, why));
    if !status.success() {
        return failed(format!("Ghostscript failed: {status}"));
    }
    if message.len() as u64 > limits.record_bytes {
        return failed(format!("more than {} bytes of text (input.limits.record_bytes)", limits.record_bytes));
    }
    // Ghostscript ends each page with a form feed.
    let text = String::from_utf8_lossy(&message).replace('\u{c}', "\n\n");
    if text.trim().is_empty() {
        return failed("no text".to_owned());
    }
    Ok(DocumentText { text, is_whole: true, ..DocumentText::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_program_a_document_is_rejected_with_the_reason() {
        let refusal_of = |form, body: &[u8]| document(form, body, &RecordLimits::default()).unwrap().unwrap_err();
        assert_eq!(refusal_of(PageForm::Pdf, b"%PDF-1.4").0, Reason::NoConverter);
        assert_eq!(refusal_of(PageForm::PostScript, b"%!PS").0, Reason::NoConverter);
        assert_eq!(refusal_of(PageForm::Pdf, b"<html>").0, Reason::PdfDamaged);
    }
}
