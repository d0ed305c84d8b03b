//! Conversion of a whole WARC record into a page, or into the reason why it is not one.

use std::borrow::Cow;

use super::form::{form, form_of_media, is_gzip, leaves_it_to_the_bytes, no_text, no_text_declared};
use super::{digests, encodings, http, record_head::RecordHead, revisits};
use crate::fetch_time;
use crate::record::{PageForm, RawPage, Reason, RecordIds, Refusal};
use crate::url::{CanonicalUrl, refusal_reason, scheme_beyond_web};
use webtwin_job::{InputSettings, RecordLimits};

/// Makes a page of a record. The caller sets its place in the file. `repair_reason` is the damage
/// found so far.
///
/// # Errors
/// Returns the reason why the record is refused.
pub(super) fn page(
    head: &RecordHead,
    payload: &[u8],
    repair_reason: Option<Reason>,
    input: &InputSettings,
) -> Result<RawPage, Refusal> {
    no_page(head).map_or(Ok(()), |refusal| Err(revisits::refusal(head, payload, input).unwrap_or(refusal)))?;
    if head.uri.is_empty() {
        return Err(no_target(head));
    }
    let mut page = if is_http(head) && !is_bare(head, payload) {
        from_http(head, payload, input)?
    } else {
        let (body, packing_damage) = unwrapped(&head.media, Cow::Borrowed(payload), &input.limits)?;
        let form = form(&head.media, &head.identified, &body, input)?;
        raw_page(200, head.media.clone(), head.charset.clone(), body, form, packing_damage)
    };
    page.repaired = repair_reason.or(page.repaired).or_else(|| damage_of_head(head));
    page.url.clone_from(&head.uri);
    page.fetch_time = fetch_time::parse(&head.date).unwrap_or(0);
    page.names = RecordIds { id: revisits::name(&head.id), payload: digests::name(&head.payload_digest) };
    page.address = head.address;
    page.converted_from = (head.kind == "conversion").then(|| revisits::name(&head.refers_to));
    Ok(page)
}

/// Returns the damage of a head that does not prevent the use of its record.
pub(super) fn damage_of_head(head: &RecordHead) -> Option<Reason> {
    let is_bad_date = !head.date.is_empty() && fetch_time::parse(&head.date).is_none();
    is_bad_date.then_some(Reason::BadDate).or(head.odd_line.then_some(Reason::BadHeader))
}

/// True if the digests of a record do not match its content. `decoded_block` is the body of its
/// page.
pub(super) fn is_other(head: &RecordHead, block: &[u8], decoded_block: &[u8], limits: &RecordLimits) -> bool {
    digests::mismatch(
        (&head.block_digest, block),
        &head.payload_digest,
        payload_forms(head, block, decoded_block, limits),
    )
}

/// Returns the hashes of the payload digest, for each form of the payload over which a crawler may
/// have computed it.
pub(super) fn payload_names(head: &RecordHead, block: &[u8], decoded_block: &[u8], limits: &RecordLimits) -> Vec<u64> {
    let mut names: Vec<u64> =
        payload_forms(head, block, decoded_block, limits).map(|form| digests::name_of(&form)).collect();
    names.dedup();
    names
}

/// Returns the forms of a payload: as received, without its chunk framing, and decoded.
fn payload_forms<'b>(
    head: &RecordHead,
    block: &'b [u8],
    decoded_block: &'b [u8],
    limits: &'b RecordLimits,
) -> impl Iterator<Item = Cow<'b, [u8]>> {
    let response = is_http(head).then(|| http::parse(block, limits).ok()).flatten();
    let received = response.as_ref().map_or(block, |response| response.body);
    let unchunked = move || match &response {
        Some(response) if response.chunked => http::unchunk(response.body, limits).ok().map(|(body, _)| body),
        _ => None,
    };
    std::iter::once(Cow::Borrowed(received))
        .chain(std::iter::once_with(unchunked).flatten())
        .chain(std::iter::once(Cow::Borrowed(decoded_block)))
}

fn no_target(head: &RecordHead) -> Refusal {
    (Reason::NoTargetUri, format!("{} without WARC-Target-URI", head.kind))
}

/// Returns the refusal of a record that cannot be a page, by its head alone.
pub(super) fn no_page(head: &RecordHead) -> Option<Refusal> {
    if let Some(version) = &head.bad_version {
        return Some((Reason::BadVersion, version.clone()));
    }
    let not_a_page = |what: &str| (Reason::NotAPageRecord, what.chars().take(80).collect());
    match head.kind.as_str() {
        "response" if !is_http(head) => Some(not_a_page(&format!("response {}", head.media))),
        "resource" | "conversion" if head.media == "text/dns" => Some(not_a_page(&format!("{} text/dns", head.kind))),
        // Data of a crawler about its crawl (`metadata://gnu.org/...`, `urn:pageinfo:...`), or
        // content from servers other than web servers.
        "response" | "resource" | "conversion" | "revisit" if scheme_beyond_web(&head.uri).is_some() => {
            Some(not_a_page(&format!("{} {}", head.kind, head.uri)))
        }
        "response" | "resource" | "conversion" if head.segment.is_some() => {
            Some((Reason::Segmented, "the first of several segments".to_owned()))
        }
        "response" | "resource" | "conversion" => None,
        "revisit" if head.uri.is_empty() => Some(no_target(head)),
        "revisit" => Some(match CanonicalUrl::parse(&head.uri) {
            Ok(_) => (Reason::Revisit, head.refers_to_uri.chars().take(200).collect()),
            Err(cause) => {
                (refusal_reason(cause), format!("{cause}: {}", head.uri.chars().take(200).collect::<String>()))
            }
        }),
        "" => Some((Reason::BadHeader, "no WARC-Type".to_owned())),
        kind => Some(not_a_page(kind)),
    }
}

/// True if the payload is an HTTP message: the record declares it, or is a response with an http(s)
/// target or without a media type.
pub(super) fn is_http(head: &RecordHead) -> bool {
    let uri = head.uri.trim_start_matches('<');
    let web = uri.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
    head.media == "application/http" || (head.kind == "response" && (web || head.media.is_empty()))
}

/// True if the response of a web server is the page alone, under its own media type and without an
/// HTTP head. Some programs write such records. By the standard the type would be that of the
/// message.
fn is_bare(head: &RecordHead, payload: &[u8]) -> bool {
    !http::begins(payload) && form_of_media(&head.media).is_some()
}

fn from_http(head: &RecordHead, payload: &[u8], input: &InputSettings) -> Result<RawPage, Refusal> {
    let limits = &input.limits;
    let response = http::parse(payload, limits)?;
    if !(200..300).contains(&response.status) {
        return Err((Reason::StatusNot2xx, response.status.to_string()));
    }
    no_text(&response.media, input).map_or(Ok(()), Err)?;
    let decoded_body = decode(&response, limits);
    // A body that its head does not declare as a page is no loss, so it is not reported as damaged.
    let decoded_body = decoded_body.map_err(|refusal| no_text_declared(&response.media).unwrap_or(refusal));
    let (body, repair_reason) = decoded_body?;
    let (body, packing_damage) = unwrapped(&response.media, body, limits)?;
    let repair_reason = repair_reason.or(packing_damage);
    let form = form(&response.media, &head.identified, &body, input)?;
    let page = raw_page(response.status, response.media, response.charset, body, form, repair_reason);
    Ok(RawPage { canonical: response.canonical, editions: response.editions, ..page })
}

/// Returns the PDF or PostScript document that a gzip file contains, such as `paper.ps.gz`, and the
/// damage found. Any other body is returned unchanged.
///
/// Servers send such files with a content encoding, or as the document without one, or as gzip.
fn unwrapped<'b>(
    media: &str,
    body: Cow<'b, [u8]>,
    limits: &RecordLimits,
) -> Result<(Cow<'b, [u8]>, Option<Reason>), Refusal> {
    if !body.starts_with(b"\x1f\x8b\x08") {
        return Ok((body, None));
    }
    let is_document = match form_of_media(media) {
        Some(PageForm::Pdf | PageForm::PostScript) => true,
        // The first bytes decide before the whole body is decoded, because most such files are
        // programs.
        None if leaves_it_to_the_bytes(media) || is_gzip(media) => {
            PageForm::printed(&encodings::gunzipped_head(&body)).is_some()
        }
        _ => false,
    };
    if is_document { encodings::decode(&["gzip".to_owned()], body, limits) } else { Ok((body, None)) }
}

/// Returns the body without transfer and content encodings, and the damage that was repaired in it.
fn decode<'b>(
    response: &http::Response<'b>,
    limits: &RecordLimits,
) -> Result<(Cow<'b, [u8]>, Option<Reason>), Refusal> {
    let (body, broken_chunks) = match response.chunked {
        true => http::unchunk(response.body, limits)?,
        false => (Cow::Borrowed(response.body), None),
    };
    let (body, broken_encoding) = encodings::decode(&response.encodings, body, limits)?;
    Ok((body, broken_chunks.or(broken_encoding)))
}

fn raw_page(
    status: u16,
    mime: String,
    charset: Option<String>,
    body: Cow<[u8]>,
    form: PageForm,
    repair_reason: Option<Reason>,
) -> RawPage {
    RawPage { status, mime, charset, repaired: repair_reason, ..RawPage::new("", body.into_owned(), form) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warc::record_head::parse;

    fn page_of_fields(fields: &str, payload: &str, repair_reason: Option<Reason>) -> Result<RawPage, Reason> {
        let head = parse(format!("WARC/1.0\r\nContent-Length: 1\r\n{fields}\r\n").as_bytes());
        page(&head, payload.as_bytes(), repair_reason, &InputSettings::default()).map_err(|refusal| refusal.0)
    }

    const RESPONSE: &str = "WARC-Type: response\r\nWARC-Target-URI: http://a/\r\nContent-Type: application/http\r\n";

    #[test]
    fn printed_document_in_a_gzip_file_is_recognised() {
        let gzip = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let head = parse(format!("WARC/1.0\r\nContent-Length: 1\r\n{RESPONSE}\r\n").as_bytes());
        let form_of = |fields: &str, body: &[u8]| {
            let http = [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), body].concat();
            page(&head, &http, None, &InputSettings::default())
                .map(|page| (page.form, page.body))
                .map_err(|refusal| refusal.0)
        };
        let (ps, pdf) = ("%!PS-Adobe-2.0\nshowpage", "%PDF-1.4 x");
        let document = |form, text: &str| Ok((form, text.as_bytes().to_vec()));
        for encoding in ["", "Content-Encoding: gzip\r\n", "Content-Encoding: x-gzip\r\n"] {
            let typed = |media: &str| format!("Content-Type: {media}\r\n{encoding}");
            assert_eq!(
                form_of(&typed("application/postscript"), &gzip(ps)),
                document(PageForm::PostScript, ps),
                "{encoding}"
            );
            assert_eq!(form_of(&typed("application/pdf"), &gzip(pdf)), document(PageForm::Pdf, pdf), "{encoding}");
            for media in ["application/x-gzip", "application/gzip", "application/octet-stream"] {
                assert_eq!(form_of(&typed(media), &gzip(ps)), document(PageForm::PostScript, ps), "{media} {encoding}");
                assert_eq!(form_of(&typed(media), &gzip("a program")), Err(Reason::NotText), "{media} {encoding}");
            }
        }
        // The server compresses a file that is already compressed.
        let twice_packed = {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            std::io::Write::write_all(&mut encoder, &gzip(ps)).unwrap();
            encoder.finish().unwrap()
        };
        let fields = "Content-Type: application/postscript\r\nContent-Encoding: gzip\r\n";
        assert_eq!(form_of(fields, &twice_packed), document(PageForm::PostScript, ps));
        // The decoded part of a truncated file is kept, as with any other encoding.
        let truncated = &gzip(&ps.repeat(50))[..40];
        assert!(
            form_of("Content-Type: application/postscript\r\n", truncated)
                .is_ok_and(|(form, _)| form == PageForm::PostScript)
        );
        assert_eq!(form_of("Content-Type: text/html\r\n", &gzip(ps)), Err(Reason::NotText));
        let resource = "WARC-Type: resource\r\nWARC-Target-URI: http://a/p.ps.gz\r\nContent-Type: application/x-gzip";
        let resource = parse(format!("WARC/1.0\r\nContent-Length: 1\r\n{resource}\r\n\r\n").as_bytes());
        assert_eq!(page(&resource, &gzip(ps), None, &InputSettings::default()).unwrap().body, ps.as_bytes());
    }

    #[test]
    fn resources_and_conversions_are_their_payload() {
        let wet = page_of_fields(
            "WARC-Type: conversion\r\nWARC-Target-URI: http://a/\r\nContent-Type: text/plain\r\n",
            "text",
            None,
        )
        .unwrap();
        assert_eq!((wet.form, wet.body.as_slice(), wet.status), (PageForm::Text, b"text".as_slice(), 200));
        let page = page_of_fields(
            "WARC-Type: resource\r\nWARC-Target-URI: http://a/\r\nContent-Type: text/html; charset=x\r\n",
            "<p>",
            None,
        )
        .unwrap();
        assert_eq!((page.form, page.charset.as_deref()), (PageForm::Html, Some("x")));
    }

    #[test]
    fn identified_type_replaces_a_missing_server_type() {
        let form_of_types = |identified: &str, form_of: &str| {
            let fields = format!("{RESPONSE}WARC-Identified-Payload-Type: {identified}\r\n");
            page_of_fields(&fields, &format!("HTTP/1.1 200 OK\r\n{form_of}\r\nx"), None).map(|page| page.form)
        };
        assert_eq!(form_of_types("text/html", ""), Ok(PageForm::Html));
        assert_eq!(form_of_types("image/png", "Content-Type: text/html\r\n"), Err(Reason::NotText));
        let resource =
            "WARC-Type: resource\r\nWARC-Target-URI: http://a/\r\nContent-Type: application/octet-stream\r\n";
        let identified = format!("{resource}WARC-Identified-Payload-Type: text/html\r\n");
        assert_eq!(page_of_fields(&identified, "<p>", None).map(|page| page.form), Ok(PageForm::Html));
        assert_eq!(page_of_fields(resource, "<p>", None), Err(Reason::NotText));
    }

    #[test]
    fn a_response_without_an_http_head_is_a_page_if_its_type_is_that_of_one() {
        let page_of = |media: &str, payload: &str| {
            let fields = format!("WARC-Type: response\r\nWARC-Target-URI: http://a/\r\nContent-Type: {media}\r\n");
            page_of_fields(&fields, payload, None).map(|page| (page.form, page.body))
        };
        assert_eq!(page_of("text/html; charset=utf-8", "\n<p>x"), Ok((PageForm::Html, b"\n<p>x".to_vec())));
        assert_eq!(
            page_of("text/html", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nx").unwrap().0,
            PageForm::Text
        );
        assert_eq!(page_of("application/http", "<p>x"), Err(Reason::BadHttpStatus));
        assert_eq!(page_of("", "<p>x"), Err(Reason::BadHttpStatus));
        assert_eq!(page_of("image/png", "x"), Err(Reason::BadHttpStatus));
    }

    #[test]
    fn a_page_is_whole_if_any_digest_fits_any_form_of_it() {
        use sha1::{Digest, Sha1};
        let sha1 = |bytes: &str| {
            format!("sha1:{}", Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        };
        let http = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n0\r\n\r\n";
        let is_other_page = |block: &str, payload: &str| {
            let head =
                format!("WARC/1.0\r\n{RESPONSE}WARC-Block-Digest: {block}\r\nWARC-Payload-Digest: {payload}\r\n\r\n");
            is_other(&parse(head.as_bytes()), http.as_bytes(), b"decoded", &RecordLimits::default())
        };
        let wrong_digest = sha1("another");
        assert!(!is_other_page(&sha1(http), &wrong_digest));
        for form in ["3\r\n<p>\r\n0\r\n\r\n", "<p>", "decoded"] {
            assert!(!is_other_page(&wrong_digest, &sha1(form)), "{form}");
            assert!(!is_other_page("", &sha1(form)), "{form}");
        }
        assert!(
            is_other_page(&wrong_digest, &wrong_digest)
                && is_other_page("", &wrong_digest)
                && is_other_page(&wrong_digest, "")
        );
        assert!(!is_other_page("", "") && !is_other_page("xyz:1", ""));
        let empty = "md5:d41d8cd98f00b204e9800998ecf8427e";
        assert!(is_other_page(empty, empty));
    }

    #[test]
    fn damage_nearest_to_the_file_is_reported() {
        let fields = format!("{RESPONSE}WARC-Date: yesterday\r\nodd\r\n");
        let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n<p>";
        assert_eq!(page_of_fields(&fields, http, Some(Reason::GzipCrc)).unwrap().repaired, Some(Reason::GzipCrc));
        assert_eq!(page_of_fields(&fields, http, None).unwrap().repaired, Some(Reason::EncodingLie));
        assert_eq!(
            page_of_fields(&fields, &http.replace("gzip", "identity"), None).unwrap().repaired,
            Some(Reason::BadDate)
        );
    }
}
