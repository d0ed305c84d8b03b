//! HTTP responses as crawlers store them: status, head, and a body in its transfer encoding.

use std::borrow::Cow;

use super::encodings;
use super::fields::{Line, is_blank, lines, next_line, text};
use super::media_type::media_type;
use crate::record::{Reason, Refusal};
use webtwin_job::RecordLimits;

/// A response whose body is still encoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response<'m> {
    /// HTTP status code, three digits.
    pub status: u16,
    /// Media type in lower case; empty if absent.
    pub media: String,
    /// Charset that `Content-Type` declares.
    pub charset: Option<String>,
    /// True if the head declares that the body is chunked.
    pub chunked: bool,
    /// Content encodings as written but in lower case, in the order in which they were applied.
    pub encodings: Vec<String>,
    /// Header `Location` as written; empty if absent.
    pub location: String,
    /// Target of the canonical link in `Link`, as written.
    pub canonical: Option<String>,
    /// Language and target of the links in `Link` that declare editions, as written.
    pub editions: Vec<(String, String)>,
    /// Bytes after the head.
    pub body: &'m [u8],
}

/// Parses the head of a response. Skips interim responses (1xx) before it. Only a page (2xx)
/// requires a blank line after the head.
pub(super) fn parse<'m>(mut message: &'m [u8], limits: &RecordLimits) -> Result<Response<'m>, Refusal> {
    loop {
        let status = status(message)?;
        let head = &message[..message.len().min(limits.head_bytes as usize)];
        let Some(end) = blank_line(head) else {
            // A redirect or an error is complete without a body.
            if head.len() == message.len() && !(100..300).contains(&status) {
                return Ok(with_fields(status, message, &[]));
            }
            return Err(if head.len() < message.len() {
                (Reason::HeaderTooLarge, format!("HTTP head of more than {} bytes", limits.head_bytes))
            } else {
                (Reason::HttpHeaderUnterminated, format!("no blank line in {} bytes", message.len()))
            });
        };
        let body = &message[end..];
        if (100..200).contains(&status) && begins(body) {
            message = body;
            continue;
        }
        return Ok(with_fields(status, &message[..end], body));
    }
}

/// True if a message begins with a status line of HTTP or of a SHOUTcast stream (`ICY 200 OK`).
pub(super) fn begins(message: &[u8]) -> bool {
    let starts_with = |name: &[u8]| message.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    starts_with(b"HTTP/") || starts_with(b"ICY")
}

fn status(message: &[u8]) -> Result<u16, Refusal> {
    let line = next_line(&message[..message.len().min(200)]).0;
    let mut words = line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty());
    let version = words.next().unwrap_or_default();
    let code = words.next().filter(|code| code.len() == 3 && code.iter().all(u8::is_ascii_digit));
    match code {
        Some(code) if begins(version) => Ok(code.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'))),
        _ => Err((Reason::BadHttpStatus, "the payload does not start with an HTTP status line".to_owned())),
    }
}

/// Returns the length of the head, including its blank line.
pub(super) fn blank_line(bytes: &[u8]) -> Option<usize> {
    let mut line = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        if line > 0 && is_blank(&bytes[line..end]) {
            return Some(end + 1);
        }
        line = end + 1;
    }
    None
}

fn with_fields<'m>(status: u16, head: &[u8], body: &'m [u8]) -> Response<'m> {
    let mut response = Response {
        status,
        media: String::new(),
        charset: None,
        chunked: false,
        encodings: Vec::new(),
        location: String::new(),
        canonical: None,
        editions: Vec::new(),
        body,
    };
    let mut content_types = String::new();
    for line in lines(head) {
        let Line::Field(name, value) = line else { continue };
        let is_named = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        if is_named("Content-Type") {
            content_types.push_str(&text(&value));
            content_types.push(',');
        } else if is_named("Location") && response.location.is_empty() {
            response.location = text(&value);
        } else if is_named("Link") {
            let field = text(&value);
            response.canonical = response.canonical.or_else(|| canonical(&field));
            response.editions.extend(links(&field).flat_map(|link| link.editions()));
        } else if is_named("Transfer-Encoding") || is_named("Content-Encoding") {
            for word in encodings::words(&text(&value)) {
                match word.as_str() {
                    "chunked" => response.chunked = true,
                    _ => response.encodings.push(word),
                }
            }
        }
    }
    (response.media, response.charset) = media_type(&content_types);
    response
}

/// A link in a `Link` field: its target, as written, and its parameters.
struct Link<'f> {
    target: &'f str,
    parameters: &'f str,
}

/// Returns the links in a `Link` field.
///
/// # Source
/// RFC 8288, section 3.
fn links(field: &str) -> impl Iterator<Item = Link<'_>> {
    pieces(field, ',').filter_map(|link| {
        let (target, parameters) = link.trim_start().strip_prefix('<')?.split_once('>')?;
        let target = target.trim();
        (!target.is_empty()).then_some(Link { target, parameters })
    })
}

impl<'f> Link<'f> {
    /// Returns the values of all parameters with this name, without quotes.
    fn values(&self, name: &'static str) -> impl Iterator<Item = &'f str> + use<'f> {
        pieces(self.parameters, ';').filter_map(move |parameter| {
            let (parameter_name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            parameter_name.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
        })
    }

    fn is_relation(&self, relation: &str) -> bool {
        self.values("rel").flat_map(str::split_ascii_whitespace).any(|word| word.eq_ignore_ascii_case(relation))
    }

    /// Returns language and target, for each language of the target, if the link declares an
    /// edition of the page.
    fn editions(&self) -> Vec<(String, String)> {
        let languages = self.values("hreflang").filter(|_| self.is_relation("alternate"));
        languages.map(|language| (language.to_owned(), self.target.to_owned())).collect()
    }
}

/// Returns the target of the first link with `rel=canonical` in a `Link` field, as written.
///
/// # Source
/// RFC 6596.
fn canonical(field: &str) -> Option<String> {
    links(field).find(|link| link.is_relation("canonical")).map(|link| link.target.to_owned())
}

/// Splits a text at separators that are not in a quoted string or in `<>`.
fn pieces(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_target) = (false, false);
    text.split(move |character| {
        match character {
            '"' if !is_target => is_quoted = !is_quoted,
            '<' | '>' if !is_quoted => is_target = character == '<',
            _ => {}
        }
        character == separator && !is_quoted && !is_target
    })
}

/// Removes the chunk framing from a body.
///
/// A body that does not start with a chunk is returned unchanged, with [`Reason::EncodingLie`].
/// Common Crawl, for example, stores decoded bodies under the head as received. If a body is cut
/// off, the received part is returned.
pub(super) fn unchunk<'m>(body: &'m [u8], limits: &RecordLimits) -> Result<(Cow<'m, [u8]>, Option<Reason>), Refusal> {
    let mut whole_body = Vec::new();
    let mut rest = body;
    loop {
        let Some((digits, chunk)) = chunk_line(rest) else {
            return Ok(match (rest.len() == body.len(), rest.is_empty()) {
                (true, _) => (Cow::Borrowed(body), Some(Reason::EncodingLie)),
                (false, true) => (Cow::Owned(whole_body), Some(Reason::Truncated)),
                (false, false) => (Cow::Owned(whole_body), Some(Reason::BadChunk)),
            });
        };
        let size = text(digits).trim_start_matches('0').to_owned();
        let size = if size.is_empty() { Some(0) } else { u64::from_str_radix(&size, 16).ok() };
        let Some(size) = size.filter(|&size| size <= limits.record_bytes) else {
            return Err((Reason::BadChunk, format!("chunk of 0x{} bytes", text(&digits[..digits.len().min(40)]))));
        };
        if size == 0 {
            return Ok((Cow::Owned(whole_body), None));
        }
        let chunk_length = chunk.len().min(size as usize);
        whole_body.extend_from_slice(&chunk[..chunk_length]);
        if chunk_length < size as usize {
            return Ok((Cow::Owned(whole_body), Some(Reason::Truncated)));
        }
        rest = &chunk[chunk_length..];
        rest = rest.strip_prefix(b"\r\n").or(rest.strip_prefix(b"\n")).unwrap_or(rest);
    }
}

/// Splits off the line with the length of a chunk. Returns its hexadecimal digits, and the bytes
/// after the line.
fn chunk_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    const LONGEST: usize = 4096;
    let line = memchr::memchr(b'\n', &bytes[..bytes.len().min(LONGEST)]).map_or(bytes.len(), |end| end + 1);
    let digits = bytes[..line.min(LONGEST)].split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let hexadecimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    (hexadecimal && line <= LONGEST).then(|| (digits, &bytes[line..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(message: &[u8]) -> Reason {
        parse(message, &RecordLimits::default()).unwrap_err().0
    }

    #[test]
    fn the_canonical_link_is_the_first_with_that_relation() {
        let canonical_of = |fields: &str| {
            let message = format!("HTTP/1.1 200 OK\r\n{fields}\r\n<p>");
            parse(message.as_bytes(), &RecordLimits::default()).unwrap().canonical
        };
        assert_eq!(canonical_of("Link: <http://a/b>; rel=\"canonical\"\r\n").as_deref(), Some("http://a/b"));
        assert_eq!(
            canonical_of("link: </s.css>; rel=preload; as=style, </b,c>;REL=Canonical\r\n").as_deref(),
            Some("/b,c")
        );
        assert_eq!(canonical_of("Link: <x>; title=\"a, b; rel=canonical\"; rel=next, <y>; rel='x'\r\n"), None);
        assert_eq!(
            canonical_of("Link: <x>; rel=\"alternate canonical\"\r\nLink: <y>; rel=canonical\r\n").as_deref(),
            Some("x")
        );
        assert_eq!(canonical_of("Link: <>; rel=canonical\r\nLink: <x; rel=canonical\r\n"), None);
    }

    #[test]
    fn editions_are_alternates_with_a_language() {
        let editions_of = |fields: &str| {
            let message = format!("HTTP/1.1 200 OK\r\n{fields}\r\n<p>");
            let editions = parse(message.as_bytes(), &RecordLimits::default()).unwrap().editions;
            editions.into_iter().map(|(language, target)| format!("{language} {target}")).collect::<Vec<_>>()
        };
        let two_links =
            "Link: </de>; rel=alternate; hreflang=de, </a>; rel=\"alternate\"; HrefLang=\"fr-CA\"; hreflang=fr\r\n";
        assert_eq!(editions_of(two_links), ["de /de", "fr-CA /a", "fr /a"]);
        assert_eq!(editions_of("Link: <x>; rel=canonical\r\nlink: <y>; rel='alternate'; hreflang=de\r\n"), [""; 0]);
        assert_eq!(
            editions_of("Link: <x>; rel=alternate; type=\"a/b\", <y>; hreflang=de, <>; rel=alternate; hreflang=de\r\n"),
            [""; 0]
        );
    }

    #[test]
    fn endless_header_is_damage_only_if_a_body_is_expected() {
        let parse = |message: &str| {
            parse(message.as_bytes(), &RecordLimits::default()).map(|head| (head.status, head.location))
        };
        assert_eq!(parse("HTTP/1.0 302 \r\r\nLocation: /x\r\r\n"), Ok((302, "/x".into())));
        assert_eq!(parse("HTTP/1.1 404 Not Found"), Ok((404, String::new())));
        assert_eq!(parse("ICY 401 Service Unavailable\r\n"), Ok((401, String::new())));
        assert_eq!(parse("HTTP/1.1 200 OK\r\nA: b\r\n").unwrap_err().0, Reason::HttpHeaderUnterminated);
    }

    #[test]
    fn a_response_has_status_type_and_encodings() {
        let message = b"HTTP/1.1 200\nContent-Type: text/html; charset=x\nTransfer-Encoding: gzip, Chunked\n\
            Content-Encoding: br\n\nbody\n\nmore";
        let response = parse(message, &RecordLimits::default()).unwrap();
        assert_eq!((response.status, response.media.as_str(), response.chunked), (200, "text/html", true));
        assert_eq!(response.charset.as_deref(), Some("x"));
        assert_eq!(response.encodings, ["gzip", "br"]);
        assert_eq!(response.body, b"body\n\nmore");
    }

    #[test]
    fn repeated_type_is_one_type_and_the_last_one_applies() {
        let media = |fields: &str| {
            let message = format!("http/1.1 200 OK\n{fields}\n\n");
            let response = parse(message.as_bytes(), &RecordLimits::default()).unwrap();
            (response.media, response.charset)
        };
        let html = |charset: Option<&str>| ("text/html".to_owned(), charset.map(str::to_owned));
        assert_eq!(media("Content-Type: text/html\nContent-Type: text/html; charset=utf-8"), html(Some("utf-8")));
        assert_eq!(media("Content-Type: text/plain\nContent-Type: text/html"), html(None));
        assert_eq!(media("Content-Type: text/html\nContent-Type: */*"), html(None));
    }

    #[test]
    fn an_interim_response_is_skipped() {
        let message = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/2 404 x\r\n\r\nb";
        assert_eq!(parse(message, &RecordLimits::default()).unwrap().status, 404);
    }

    #[test]
    fn a_head_must_start_with_a_status_and_end() {
        assert_eq!(reason(b"<html>"), Reason::BadHttpStatus);
        assert_eq!(reason(b"HTTP/1.1 OK\r\n\r\n"), Reason::BadHttpStatus);
        assert_eq!(reason(b"HTTP/1.1 200 OK\r\nA: b\r\n"), Reason::HttpHeaderUnterminated);
        let long = [b"HTTP/1.1 200 OK\r\nA: ".as_slice(), &[b'a'; 70_000]].concat();
        assert_eq!(reason(&long), Reason::HeaderTooLarge);
    }

    fn unchunked(body: &[u8]) -> (Vec<u8>, Option<Reason>) {
        let (bytes, repair_reason) = unchunk(body, &RecordLimits::default()).unwrap();
        (bytes.into_owned(), repair_reason)
    }

    #[test]
    fn chunks_are_joined_with_any_padding_extensions_and_line_ends() {
        assert_eq!(unchunked(b"3\r\nabc\r\n004;x=y\ndefg\n0000\r\nA: b\r\n\r\n"), (b"abcdefg".to_vec(), None));
        assert_eq!(unchunked(b"3 \r\nabc\r\n0\r\n\r\n"), (b"abc".to_vec(), None));
    }

    #[test]
    fn broken_chunks_yield_the_received_bytes() {
        assert_eq!(unchunked(b"3\r\nabc\r\n9\r\ndef"), (b"abcdef".to_vec(), Some(Reason::Truncated)));
        assert_eq!(unchunked(b"3\r\nabc\r\n"), (b"abc".to_vec(), Some(Reason::Truncated)));
        assert_eq!(unchunked(b"3\r\nabc\r\n<p>\r\n"), (b"abc".to_vec(), Some(Reason::BadChunk)));
        assert_eq!(unchunked(b"<p>plain</p>"), (b"<p>plain</p>".to_vec(), Some(Reason::EncodingLie)));
    }

    #[test]
    fn a_chunk_over_the_limit_is_refused() {
        for size in ["FFFFFFFFFFFFFFFF", "1000001", "123456789abcdef0123"] {
            let body = format!("{size}\r\nabc");
            assert_eq!(unchunk(body.as_bytes(), &RecordLimits::default()).unwrap_err().0, Reason::BadChunk, "{size}");
        }
    }
}
