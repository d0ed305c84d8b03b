//! Classification of bodies: a body is a page, and in which form, by its media type, the type that
//! the crawler identified, and its first bytes.
//!
//! A body is a page if a browser would show it as HTML or plain text. A type without information
//! (`*/*`, `unknown/unknown`, `html`, or none) leaves the decision to the bytes.
//! `application/octet-stream` and types of other formats do not, because a browser would save such
//! a body to a file.
//!
//! # Source
//! WHATWG MIME Sniffing, section 7.
//!
//! # Deviations
//! - A text without a media type is not a page: most such bodies are scripts, style sheets or data.
//! - Types that browsers do not know but that name HTML (`application/html`, `text/x-html`) are
//!   HTML.
//! - A body that is certainly a picture or archive is not a page under any media type.

use super::media_type::is_media_type;
use crate::record::{PageForm, Reason, Refusal};
use crate::sniff;
use webtwin_job::InputSettings;

/// Returns the form of a body that has text, by media type, `WARC-Identified-Payload-Type` and
/// first bytes.
///
/// # Errors
/// Returns the reason if the body has no text.
pub(super) fn form(media: &str, identified: &str, body: &[u8], input: &InputSettings) -> Result<PageForm, Refusal> {
    let label = || if media.is_empty() { "no media type" } else { media };
    let declared_form = form_of_media(media);
    if let Some(form @ (PageForm::Pdf | PageForm::PostScript)) =
        declared_form.or_else(|| PageForm::printed(body).filter(|_| leaves_it_to_the_bytes(media) || is_gzip(media)))
    {
        return if form.is_wanted(input) { Ok(form) } else { Err(not_text(label())) };
    }
    if let Some(really) = sniff::binary(body).or_else(|| is_picture(identified).then_some(identified)) {
        return Err(not_text(&match media {
            "" => format!("{really} with no media type"),
            media => format!("{really} with the media type {media}"),
        }));
    }
    let sniffed_form = || match media {
        _ if is_xml(media) => sniff::html_root(body).map(|_| PageForm::Xhtml),
        _ if !leaves_it_to_the_bytes(media) => None,
        _ if is_uninformative(media) && sniff::is_html(body) => Some(PageForm::Html),
        _ => form_of_media(identified).filter(|form| matches!(form, PageForm::Html | PageForm::Xhtml)),
    };
    declared_form.or_else(sniffed_form).ok_or_else(|| not_text(label()))
}

/// Returns the refusal of a page whose media type excludes text, for any body.
pub(super) fn no_text(media: &str, input: &InputSettings) -> Option<Refusal> {
    match form_of_media(media) {
        Some(form) if form.is_wanted(input) => None,
        None if leaves_it_to_the_bytes(media) || is_gzip(media) || is_xml(media) => None,
        _ => Some(not_text(media)),
    }
}

/// Returns the refusal of a page that is no loss if its body cannot be decoded, because its media
/// type is not that of a page.
pub(super) fn no_text_declared(media: &str) -> Option<Refusal> {
    (!media.is_empty() && form_of_media(media).is_none()).then(|| not_text(media))
}

fn not_text(media_type: &str) -> Refusal {
    (Reason::NotText, media_type.chars().take(80).collect())
}

/// True if a media type leaves the decision to the bytes, or to the type that the crawler
/// identified.
pub(super) fn leaves_it_to_the_bytes(media: &str) -> bool {
    is_uninformative(media) || matches!(media, "application/octet-stream" | "binary/octet-stream")
}

/// True if a value is not a media type, or is one that declares itself unknown.
fn is_uninformative(media: &str) -> bool {
    !is_media_type(media) || media.split(['/', '-', '.', '+']).any(|word| matches!(word, "unknown" | "*"))
}

/// True if a media type is that of gzip, with any content.
pub(super) fn is_gzip(media: &str) -> bool {
    matches!(media, "application/gzip" | "application/x-gzip")
}

fn is_xml(media: &str) -> bool {
    matches!(media, "text/xml" | "application/xml")
}

/// True if a media type is that of pictures, sounds, videos or fonts.
fn is_picture(media: &str) -> bool {
    ["image/", "audio/", "video/", "font/"].iter().any(|kind| media.starts_with(kind))
}

/// Returns the form that a media type denotes.
pub(super) fn form_of_media(media: &str) -> Option<PageForm> {
    let names = |is_named: &[&str]| {
        let text_subtype = media.strip_prefix("text/").or_else(|| media.strip_prefix("application/"));
        text_subtype.is_some_and(|subtype| subtype.split(['+', '-', '.']).any(|word| is_named.contains(&word)))
    };
    match media {
        "text/plain" => Some(PageForm::Text),
        "application/pdf" | "application/x-pdf" => Some(PageForm::Pdf),
        "application/postscript" | "application/x-postscript" => Some(PageForm::PostScript),
        _ if names(&["xhtml"]) => Some(PageForm::Xhtml),
        _ if names(&["html", "htm", "shtml"]) => Some(PageForm::Html),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_job::PrintedFormats;

    fn of(media: &str, identified: &str, body: &str) -> Result<PageForm, Reason> {
        form(media, identified, body.as_bytes(), &InputSettings::default()).map_err(|refusal| refusal.0)
    }

    #[test]
    fn media_type_and_first_bytes_decide_the_form() {
        let html = "<!doctype html><p>x";
        let xhtml = "<?xml version='1.0'?><html>";
        let no = Err(Reason::NotText);
        for (media, body, expected) in [
            ("text/html", "x", Ok(PageForm::Html)),
            ("application/html", "x", Ok(PageForm::Html)),
            ("text/htm", "x", Ok(PageForm::Html)),
            ("text/x-server-parsed-html", "x", Ok(PageForm::Html)),
            ("application/xhtml+xml", "x", Ok(PageForm::Xhtml)),
            ("application/vnd.wap.xhtml+xml", "x", Ok(PageForm::Xhtml)),
            ("application/xml+xhtml", "x", Ok(PageForm::Xhtml)),
            ("text/plain", "<p>", Ok(PageForm::Text)),
            ("image/png", "x", no),
            ("text/html", "%PDF-1.4", no),
            ("text/html", "GIF89a", no),
            ("text/html", "BM is no bitmap", Ok(PageForm::Html)),
            ("", " \u{feff}x", no),
            ("", "\u{feff} <!DOCTYPE html>", Ok(PageForm::Html)),
            ("", xhtml, Ok(PageForm::Html)),
            ("", "<?xml version='1.0'?><rss>", no),
            ("", "%PDF-1.4", Ok(PageForm::Pdf)),
            ("html", html, Ok(PageForm::Html)),
            ("text", html, Ok(PageForm::Html)),
            ("none", html, Ok(PageForm::Html)),
            ("*/*", html, Ok(PageForm::Html)),
            ("unknown/unknown", html, Ok(PageForm::Html)),
            ("application/x-unknown-content-type", html, Ok(PageForm::Html)),
            ("unknown/unknown", "function f() {}", no),
            ("text/xml", xhtml, Ok(PageForm::Xhtml)),
            ("application/xml", "<!DOCTYPE html><html>", Ok(PageForm::Xhtml)),
            ("application/xml", "<p>", no),
            ("text/xml", "<rss>", no),
            ("application/rss+xml", xhtml, no),
            ("application/pdf", "\n%PDF-1.4", Ok(PageForm::Pdf)),
            ("application/octet-stream", "%PDF-1.4", Ok(PageForm::Pdf)),
            ("application/octet-stream", "%!PS-Adobe-3.0", Ok(PageForm::PostScript)),
            ("application/octet-stream", html, no),
            ("application/postscript", "x", Ok(PageForm::PostScript)),
            ("multipart/mixed", html, no),
            ("text/vnd.wap.wml", html, no),
            ("application/json", html, no),
        ] {
            assert_eq!(of(media, "", body), expected, "{media} {body}");
            let refused = no_text(media, &InputSettings::default());
            assert!(refused.is_none() || expected.is_err(), "{media} {body}");
        }
    }

    #[test]
    fn identified_type_applies_without_a_media_type_or_for_pictures() {
        assert_eq!(of("", "text/html", "x"), Ok(PageForm::Html));
        assert_eq!(of("application/octet-stream", "application/xhtml+xml", "x"), Ok(PageForm::Xhtml));
        assert_eq!(of("", "text/plain", "x"), Err(Reason::NotText));
        assert_eq!(of("image/png", "text/html", "<p>"), Err(Reason::NotText));
        assert_eq!(of("text/html", "image/png", "x"), Err(Reason::NotText));
        assert_eq!(of("text/html", "application/rss+xml", "x"), Ok(PageForm::Html));
    }

    #[test]
    fn printed_documents_are_rejected_if_the_job_excludes_them() {
        let input = InputSettings { printed: PrintedFormats::Skip, ..InputSettings::default() };
        for (media, body) in [("application/pdf", "%PDF-1.4"), ("", "%PDF-1.4"), ("", "%!PS"), ("text/plain", "%PDF-")]
        {
            assert_eq!(form(media, "", body.as_bytes(), &input).unwrap_err().0, Reason::NotText);
        }
        assert!(no_text("application/pdf", &input).is_some() && no_text("application/postscript", &input).is_some());
        assert!(no_text("application/pdf", &InputSettings::default()).is_none());
        let input = InputSettings { printed: PrintedFormats::Pdf, ..InputSettings::default() };
        assert!(no_text("application/pdf", &input).is_none() && no_text("application/postscript", &input).is_some());
    }
}
