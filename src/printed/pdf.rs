//! Conversion of PDF to text, title and links.
//!
//! The crates `pdf-extract` and `lopdf` read the document. If they fail on a page, the rest of that
//! page is lost. The other pages are read, and the text counts as damaged. So does the text of a
//! document whose cross-reference table was repaired. Line ends are those of the printed pages,
//! with an empty line between two pages. Documents that open without a password are decrypted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use pdf_extract::encryption::DecryptionError;
use pdf_extract::xref::XrefEntry;
use pdf_extract::{
    ConvertToFmt, Dictionary, Document as Pdf, Error, MediaBox, Object, ObjectId, OutputDev, OutputError,
    PlainTextOutput, Transform, decode_text_string, output_doc, output_doc_page,
};

use super::repair;
use webtwin_job::RecordLimits;
use webtwin_pages::helper::{DocumentText, HelperAnswer, pdf_start};
use webtwin_pages::record::Reason;

/// Maximum number of characters of a title.
const TITLE_CHARACTERS: usize = 1000;

/// Makes the answer for a document that cannot be read.
pub fn unreadable(why: impl Into<String>) -> HelperAnswer {
    HelperAnswer::Refused(Reason::PdfDamaged, why.into())
}

/// Returns the text, title and links of a PDF. A document of which a part cannot be read is
/// repaired (`repair.rs`), and the repaired document is used if it has more text.
///
/// # Cost
/// Time and memory are determined by the document and unbounded here, so the caller must limit the
/// process.
pub fn read(bytes: &[u8], limits: &RecordLimits) -> HelperAnswer {
    let Some(start) = pdf_start(bytes) else { return unreadable("the document has no %PDF- header") };
    let bytes = &bytes[start..];
    let (answer, is_sound) = match caught(|| Pdf::load_mem(bytes)) {
        Some(Ok(pdf)) => {
            let is_sound = !has_lost_objects(&pdf);
            (read_loaded(pdf, limits), is_sound)
        }
        Some(Err(error)) => (refusal(error), true),
        None => (unreadable("the PDF reader failed"), true),
    };
    let text_bytes = match &answer {
        HelperAnswer::Refused(Reason::PdfTooLarge, _) => return answer,
        HelperAnswer::Refused(Reason::PdfDamaged, _) => 0,
        HelperAnswer::Document(document) if !(document.is_whole && is_sound) => document.text.len(),
        HelperAnswer::Refused(..) if !is_sound => 0,
        HelperAnswer::Document(_) | HelperAnswer::Refused(..) => return answer,
    };
    match caught(|| repair::document(bytes)).flatten().map(|pdf| read_loaded(pdf, limits)) {
        Some(HelperAnswer::Document(repaired_document)) if repaired_document.text.len() > text_bytes => {
            HelperAnswer::Document(DocumentText { is_whole: false, ..repaired_document })
        }
        // The reason why the repaired document has no text is more specific.
        Some(refused @ HelperAnswer::Refused(..)) if matches!(answer, HelperAnswer::Refused(Reason::PdfDamaged, _)) => {
            refused
        }
        _ => answer,
    }
}

/// True if an object is not at the position that the cross-reference table gives, or if the length
/// of a stream is wrong, in which case `lopdf` reads only its dictionary. In a decrypted document,
/// the object that describes the encryption is always missing.
fn has_lost_objects(pdf: &Pdf) -> bool {
    let is_lost = |&(&number, entry): &(&u32, &XrefEntry)| {
        !matches!(entry, XrefEntry::Free | XrefEntry::UnusableFree)
            && pdf.objects.range((number, 0)..=(number, u16::MAX)).next().is_none()
    };
    let encryption = usize::from(pdf.encryption_state.is_some());
    let is_torn = |object: &Object| matches!(object, Object::Dictionary(dictionary) if dictionary.has(b"Length"));
    pdf.reference_table.entries.iter().filter(is_lost).count() > encryption || pdf.objects.values().any(is_torn)
}

/// Returns the text, title and links of a loaded document.
fn read_loaded(mut pdf: Pdf, limits: &RecordLimits) -> HelperAnswer {
    if pdf.is_encrypted() {
        match caught(|| pdf.decrypt("")) {
            Some(Ok(())) => (),
            Some(Err(error)) => return refusal(error),
            None => return unreadable("the PDF reader failed"),
        }
    }
    // A document that is still encrypted has no meaningful text.
    if pdf.trailer.has(b"Encrypt") {
        return HelperAnswer::Refused(
            Reason::PdfEncrypted,
            "with an encryption that the PDF reader does not support".to_owned(),
        );
    }
    let pages = caught(|| pdf.get_pages()).unwrap_or_default();
    if pages.is_empty() {
        return unreadable("the document has no pages that can be found");
    }
    let output = Printed { text: String::new(), limit: limits.record_bytes as usize, pages: 0 };
    let shared_output = Rc::new(RefCell::new(output));
    let is_whole = print(&pdf, &pages, &shared_output);
    let Printed { text, limit, .. } = &mut *shared_output.borrow_mut();
    if text.len() > *limit {
        return HelperAnswer::Refused(
            Reason::PdfTooLarge,
            format!("more than {limit} bytes of text (input.limits.record_bytes)"),
        );
    }
    let text = std::mem::take(text);
    match (text.trim().is_empty(), is_whole) {
        (true, true) => HelperAnswer::Refused(Reason::PdfNoText, format!("none of its {} pages has text", pages.len())),
        (true, false) => unreadable("no page of the document can be read"),
        (false, is_whole) => {
            let title = caught(|| title(&pdf)).flatten().unwrap_or_default();
            let links = caught(|| links(&pdf, &pages, limits)).unwrap_or_default();
            HelperAnswer::Document(DocumentText { title, text, links, is_whole })
        }
    }
}

/// Returns the result of a reader; `None` if it panics.
fn caught<T>(read: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()
}

fn refusal(error: Error) -> HelperAnswer {
    let detail = error.to_string().chars().take(200).collect();
    match error {
        Error::Decryption(DecryptionError::IncorrectPassword) | Error::InvalidPassword => {
            HelperAnswer::Refused(Reason::PdfEncrypted, "it needs a password".to_owned())
        }
        Error::Decryption(_) | Error::UnsupportedSecurityHandler(_) => {
            HelperAnswer::Refused(Reason::PdfEncrypted, detail)
        }
        _ => unreadable(detail),
    }
}

/// Prints all pages, except those that fail. Returns true if none failed.
fn print(pdf: &Pdf, pages: &BTreeMap<u32, ObjectId>, output: &Rc<RefCell<Printed>>) -> bool {
    if matches!(caught(|| output_doc(pdf, &mut Printer::printer_to(output))), Some(Ok(()))) {
        return true;
    }
    // The first call prints all pages up to the failure. Single pages are printed only after it,
    // because each such call enumerates all pages.
    let failed = output.borrow().pages;
    output.borrow_mut().end_page();
    for &number in pages.keys().skip(failed + 1) {
        if output.borrow().is_full() {
            break;
        }
        let _ = caught(|| output_doc_page(pdf, &mut Printer::printer_to(output), number));
        output.borrow_mut().end_page();
    }
    false
}

/// Text that has been printed.
struct Printed {
    text: String,
    /// Maximum number of bytes of text.
    limit: usize,
    /// Number of completed pages.
    pages: usize,
}

impl Printed {
    fn end_page(&mut self) {
        self.text.push_str("\n\n");
    }

    fn is_full(&self) -> bool {
        self.text.len() > self.limit
    }
}

/// Writer that appends lines to [`Printed`].
struct Paper(Rc<RefCell<Printed>>);

impl fmt::Write for Paper {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut output = self.0.borrow_mut();
        output.text.push_str(text);
        if output.is_full() { Err(fmt::Error) } else { Ok(()) }
    }
}

impl ConvertToFmt for Paper {
    type Writer = Paper;

    fn convert(self) -> Paper {
        self
    }
}

/// Output device that writes characters in lines, and an empty line after each page.
struct Printer {
    lines: PlainTextOutput<Paper>,
    output: Rc<RefCell<Printed>>,
}

impl Printer {
    fn printer_to(output: &Rc<RefCell<Printed>>) -> Printer {
        Printer { lines: PlainTextOutput::new(Paper(Rc::clone(output))), output: Rc::clone(output) }
    }
}

impl OutputDev for Printer {
    fn begin_page(
        &mut self,
        number: u32,
        media: &MediaBox,
        art: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.lines.begin_page(number, media, art)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.lines.end_page()?;
        let mut output = self.output.borrow_mut();
        output.end_page();
        output.pages += 1;
        Ok(())
    }

    fn output_character(
        &mut self,
        place: &Transform,
        width: f64,
        spacing: f64,
        size: f64,
        character: &str,
    ) -> Result<(), OutputError> {
        self.lines.output_character(place, width, spacing, size, character)
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.lines.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.lines.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.lines.end_line()
    }
}

/// Returns an object, or the object to which it refers.
fn resolve<'p>(pdf: &'p Pdf, object: &'p Object) -> Option<&'p Object> {
    pdf.dereference(object).ok().map(|(_, object)| object)
}

fn entry<'p>(pdf: &'p Pdf, dictionary: &'p Dictionary, key: &[u8]) -> Option<&'p Object> {
    resolve(pdf, dictionary.get(key).ok()?)
}

/// Returns the title in the document information dictionary.
fn title(pdf: &Pdf) -> Option<String> {
    let info = entry(pdf, &pdf.trailer, b"Info")?.as_dict().ok()?;
    let title = decode_text_string(entry(pdf, info, b"Title")?).ok()?;
    Some(title.chars().take(TITLE_CHARACTERS).collect())
}

/// Returns the URIs in the annotations of the pages, as written and in order. If there are more
/// than the limit, returns one more than the limit.
fn links(pdf: &Pdf, pages: &BTreeMap<u32, ObjectId>, limits: &RecordLimits) -> Vec<String> {
    let annotations = pages.values().filter_map(|&page| {
        let page = pdf.get_object(page).ok()?.as_dict().ok()?;
        entry(pdf, page, b"Annots")?.as_array().ok()
    });
    let uri = |annotation: &Object| {
        let action = entry(pdf, resolve(pdf, annotation)?.as_dict().ok()?, b"A")?.as_dict().ok()?;
        let uri = entry(pdf, action, b"URI")?.as_str().ok()?;
        Some(String::from_utf8_lossy(uri).into_owned())
    };
    annotations.flatten().filter_map(uri).take(limits.links as usize + 1).collect()
}
