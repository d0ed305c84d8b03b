//! Content sniffing: formats that the first bytes of a file or body show, independent of its name
//! and media type.
//!
//! # Source
//! WHATWG MIME Sniffing, sections 6 and 7.1.
//!
//! # Deviations
//! - More elements than the standard lists begin HTML, and a byte order mark may precede them.
//! - XML is HTML if `html` is its root element.
//! - A bitmap (`BM`) must have a known header size, because a text may begin with these letters.

/// Number of bytes within which the root element of XML must begin.
pub(super) const ROOT_BYTES: usize = 4 << 10;

/// Elements with which an HTML page may begin.
const ELEMENTS: [&str; 36] = [
    "html",
    "head",
    "script",
    "iframe",
    "h1",
    "div",
    "font",
    "table",
    "a",
    "style",
    "title",
    "b",
    "body",
    "br",
    "p",
    "meta",
    "link",
    "base",
    "center",
    "frameset",
    "noscript",
    "ul",
    "ol",
    "form",
    "h2",
    "h3",
    "hr",
    "img",
    "span",
    "pre",
    "main",
    "article",
    "header",
    "nav",
    "section",
    "!doctype html",
];

/// The root element of an XML document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct XmlRoot<'a> {
    /// Prefix of the name; empty if there is none.
    pub prefix: &'a [u8],
    /// Name without the prefix.
    pub name: &'a [u8],
    /// Start tag, which may be cut off.
    pub tag: &'a [u8],
}

impl XmlRoot<'_> {
    fn is_html(&self) -> bool {
        self.name.eq_ignore_ascii_case(b"html")
    }

    /// True if this is the root element of XHTML, by its name and namespace.
    pub(crate) fn is_xhtml(&self) -> bool {
        self.is_html() && memchr::memmem::find(self.tag, b"http://www.w3.org/1999/xhtml").is_some()
    }
}

/// True if the bytes begin like an HTML or XHTML page.
pub fn is_html(bytes: &[u8]) -> bool {
    let start = text_start(bytes);
    if has_xml_declaration(start) {
        return root(start).is_some_and(|root| root.is_html());
    }
    let begins_with = |name: &str| {
        let tag = &start[1..];
        tag.len() > name.len()
            && tag[..name.len()].eq_ignore_ascii_case(name.as_bytes())
            && matches!(tag[name.len()], b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
    };
    start.first() == Some(&b'<') && (start.starts_with(b"<!--") || ELEMENTS.into_iter().any(begins_with))
}

/// Returns the root element of XHTML that begins with an XML declaration.
pub(super) fn declared_xhtml(bytes: &[u8]) -> Option<XmlRoot<'_>> {
    let start = text_start(bytes);
    if has_xml_declaration(start) { root(start).filter(XmlRoot::is_xhtml) } else { None }
}

/// Returns the root element of XML, with or without a declaration, if it is `html`.
pub(super) fn html_root(bytes: &[u8]) -> Option<XmlRoot<'_>> {
    root(text_start(bytes)).filter(XmlRoot::is_html)
}

fn text_start(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start()
}

fn has_xml_declaration(start: &[u8]) -> bool {
    start.starts_with(b"<?xml") && start.get(5).is_some_and(u8::is_ascii_whitespace)
}

/// Returns the root element of a document. Skips declarations, comments, processing instructions
/// and the doctype.
fn root(start: &[u8]) -> Option<XmlRoot<'_>> {
    let mut rest = &start[..start.len().min(ROOT_BYTES)];
    loop {
        rest = rest.trim_ascii_start();
        let end = match rest {
            [b'<', b'?', ..] => rest_after(rest, b"?>")?,
            [b'<', b'!', b'-', b'-', ..] => rest_after(rest, b"-->")?,
            [b'<', b'!', ..] => doctype_end(rest)?,
            [b'<', tag @ ..] => {
                let tag = &tag[..memchr::memchr(b'>', tag).unwrap_or(tag.len())];
                let is_name_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
                let name = &tag[..tag.iter().position(is_name_end).unwrap_or(tag.len())];
                let colon = memchr::memchr(b':', name);
                let (prefix, name) = colon.map_or((&name[..0], name), |at| (&name[..at], &name[at + 1..]));
                return Some(XmlRoot { prefix, name, tag });
            }
            _ => return None,
        };
        rest = &rest[end..];
    }
}

/// Returns the end of a doctype, which may contain declarations in brackets.
pub(super) fn doctype_end(doctype: &[u8]) -> Option<usize> {
    match memchr::memchr2(b'>', b'[', doctype)? {
        end if doctype[end] == b'>' => Some(end + 1),
        bracket => {
            let close = bracket + memchr::memchr(b']', &doctype[bracket..])?;
            Some(close + memchr::memchr(b'>', &doctype[close..])? + 1)
        }
    }
}

fn rest_after(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, mark).map(|at| at + mark.len())
}

/// Returns the media type of bytes that are certainly not text, independent of the declared media
/// type.
pub(super) fn binary(body: &[u8]) -> Option<&'static str> {
    const MARKS: [(usize, &[u8], &str); 20] = [
        (0, b"%PDF-", "application/pdf"),
        (0, b"\x89PNG\r\n\x1a\n", "image/png"),
        (0, b"\xff\xd8\xff", "image/jpeg"),
        (0, b"GIF87a", "image/gif"),
        (0, b"GIF89a", "image/gif"),
        (8, b"WEBPVP8", "image/webp"),
        (0, b"II*\0", "image/tiff"),
        (0, b"MM\0*", "image/tiff"),
        (0, b"\0\0\x01\0", "image/x-icon"),
        (0, b"\0\0\x02\0", "image/x-icon"),
        (4, b"ftypavif", "image/avif"),
        (4, b"ftyphei", "image/heic"),
        (4, b"ftyp", "video/mp4"),
        (4, b"jP  \r\n\x87\n", "image/jp2"),
        (4, b"JXL \r\n\x87\n", "image/jxl"),
        (0, b"8BPS\0\x01", "image/vnd.adobe.photoshop"),
        (0, b"PK\x03\x04", "application/zip"),
        (0, b"\x1f\x8b\x08", "application/gzip"),
        (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
        (0, b"\x7fELF", "application/x-elf"),
    ];
    // Formats with a mark at the fifth byte begin with a four-byte length, whose first byte is 0.
    let is_match = |&&(offset, mark, _): &&(usize, &[u8], &str)| {
        body.get(offset..).is_some_and(|rest| rest.starts_with(mark)) && (offset != 4 || body[0] == 0)
    };
    MARKS.iter().find(is_match).map(|&(_, _, name)| name).or_else(|| is_bitmap(body).then_some("image/bmp"))
}

fn is_bitmap(body: &[u8]) -> bool {
    body.starts_with(b"BM") && matches!(body.get(14..18), Some([12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0]))
}

/// True if the bytes are not text, because one of the first 512 is a control byte that no text has.
/// Text in UTF-16 begins with a byte order mark and is exempt.
pub(super) fn has_control_bytes(body: &[u8]) -> bool {
    let start = &body[..body.len().min(512)];
    let is_marked = start.starts_with(b"\xfe\xff") || start.starts_with(b"\xff\xfe");
    !is_marked && start.iter().any(|&byte| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_begins_with_one_of_its_elements() {
        for page in [
            "<!DOCTYPE HTML>",
            "\u{feff} <!doctype html public>",
            "<html\n xmlns=x>",
            "<HEAD>",
            "<a href=x>",
            "<p>",
            "<br/>",
            "<!-- x -->",
            "<?xml version='1.0'?><html>",
            "<?xml version='1.0'?>\n<!DOCTYPE html [<!ENTITY a 'b>'>]><x:html>",
            "<?xml version='1.0'?><?xml-stylesheet href='x'?><!-- <rss> --><html xmlns='y'>",
        ] {
            assert!(is_html(page.as_bytes()), "{page}");
        }
        for text in
            ["", "<", "x<html>", "<rss>", "<abbr>", "<htmlx>", "<?xml version='1.0'?><rss><html>", "<?xml", "{\"a\":1}"]
        {
            assert!(!is_html(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn xhtml_is_recognised_by_its_namespace() {
        let prefix_of = |page: &'static str| declared_xhtml(page.as_bytes()).map(|root| root.prefix);
        let declaration = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>";
        assert_eq!(prefix_of(declaration), Some(&b""[..]));
        assert_eq!(prefix_of("<?xml version='1.0'?><h:html xmlns:h='http://www.w3.org/1999/xhtml'>"), Some(&b"h"[..]));
        assert_eq!(prefix_of("<?xml version='1.0'?><html>"), None);
        assert_eq!(prefix_of("<html xmlns='http://www.w3.org/1999/xhtml'>"), None);
        assert!(html_root(b"<html>").is_some() && html_root(b"<rss>").is_none());
    }

    #[test]
    fn pictures_are_recognised_by_their_magic_numbers_and_words_are_not_bitmaps() {
        for (body, name) in [
            (&b"\x89PNG\r\n\x1a\nx"[..], Some("image/png")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"\0\0\0\x20ftypavif", Some("image/avif")),
            (b"\0\0\0\x20ftypisom", Some("video/mp4")),
            (b"BM\x36\0\x0c\0\0\0\0\0\x36\0\0\0\x28\0\0\0", Some("image/bmp")),
            (b"BM is a bitmap, and this is a text.", None),
            (b"The ftyp box comes first.", None),
            (b"<html>", None),
            (b"", None),
        ] {
            assert_eq!(binary(body), name);
        }
        assert!(has_control_bytes(b"a\0b") && !has_control_bytes(b"a\tb\x1b$B") && !has_control_bytes(b"\xff\xfea\0"));
    }
}
