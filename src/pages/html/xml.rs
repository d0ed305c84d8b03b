//! Rules of XML that XHTML has and HTML does not: any element may close itself, and CDATA sections
//! are text.
//!
//! XHTML is often not well formed, and a browser would refuse such a page. This reader accepts as
//! much as in HTML: unknown entities stay as written, and tags need not match.
//!
//! # Deviations
//! - Child elements of `<script>` and `<style>` are not parsed, as in HTML. Only CDATA sections and
//!   comments may contain their end tag.
//! - Names of elements are those of HTML, in upper or lower case. Only the namespace of the root
//!   counts, not the namespaces that elements below it declare.
//! - Entities that the doctype declares are not replaced.

use memchr::memchr;
use memchr::memmem::{find, rfind};

use super::tokenizer::named;

const CDATA: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";
const COMMENT: &[u8] = b"<!--";
const COMMENT_END: &[u8] = b"-->";

/// Properties of a whole page of XHTML that must be known before it is read.
#[derive(Debug, Default)]
pub(super) struct Xml {
    /// Prefix of the names of its elements, including the colon; empty if XHTML is the default
    /// namespace.
    pub prefix: Vec<u8>,
    /// Position of the last `]]>`; `last_comment_end` is that of the last `-->`. A section that
    /// opens after it is never closed and is not searched for its end, which keeps reading linear.
    last_cdata_end: usize,
    last_comment_end: usize,
}

impl Xml {
    /// Prepares to read a page. `prefix` is that of its root element.
    pub(super) fn new(page: &str, prefix: &[u8]) -> Xml {
        let prefix = if prefix.is_empty() { Vec::new() } else { [prefix, b":"].concat() };
        let last = |mark| rfind(page.as_bytes(), mark).unwrap_or(0);
        Xml { prefix, last_cdata_end: last(CDATA_END), last_comment_end: last(COMMENT_END) }
    }

    /// Returns the text of the CDATA section that begins at `position`, and the end of the section.
    pub(super) fn cdata<'p>(&self, page: &'p str, position: usize) -> Option<(&'p str, usize)> {
        let (start, end) = self.section(page.as_bytes(), position, CDATA, CDATA_END, self.last_cdata_end)?;
        Some((&page[start..end], end + CDATA_END.len()))
    }

    /// Returns the end of the content of a raw element: the position of its end tag outside of
    /// CDATA sections and comments, or the end of the page.
    pub(super) fn content_end(&self, bytes: &[u8], start: usize, name: &str) -> usize {
        let mut position = start;
        while let Some(length) = memchr(b'<', &bytes[position..]) {
            position += length;
            let cdata = || self.section(bytes, position, CDATA, CDATA_END, self.last_cdata_end);
            let comment = || self.section(bytes, position, COMMENT, COMMENT_END, self.last_comment_end);
            if bytes[position + 1..].starts_with(b"/") && named(&bytes[position + 2..], name.as_bytes()) {
                return position;
            }
            position = cdata().or_else(comment).map_or(position + 1, |(_, end)| end);
        }
        bytes.len()
    }

    /// Returns the range of the content of a section that begins at `position`.
    fn section(&self, bytes: &[u8], position: usize, open: &[u8], close: &[u8], last: usize) -> Option<(usize, usize)> {
        let start = position + open.len();
        let is_closed = start <= last && bytes[position..].starts_with(open);
        let length = if is_closed { find(&bytes[start..], close) } else { None };
        length.map(|length| (start, start + length))
    }
}

/// Passes the character data of an element to `push`: text with references, and CDATA sections, for
/// which the flag is true. Comments are skipped.
pub(super) fn character_data(text: &str, mut push: impl FnMut(&str, bool)) {
    let xml = Xml::new(text, b"");
    let (mut position, mut start) = (0, 0);
    while let Some(length) = memchr(b'<', &text.as_bytes()[position..]) {
        position += length;
        let end = match xml.cdata(text, position) {
            Some((verbatim, end)) => {
                push(&text[start..position], false);
                push(verbatim, true);
                end
            }
            None => match xml.section(text.as_bytes(), position, COMMENT, COMMENT_END, xml.last_comment_end) {
                Some((_, end)) => {
                    push(&text[start..position], false);
                    end + COMMENT_END.len()
                }
                None => {
                    position += 1;
                    continue;
                }
            },
        };
        (position, start) = (end, end);
    }
    push(&text[start..], false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_data_is_text_and_cdata_without_comments() {
        let text_of = |text: &str| {
            let mut pieces = String::new();
            character_data(text, |piece, is_verbatim| {
                let marks = if is_verbatim { ['[', ']'] } else { ['(', ')'] };
                pieces.extend([&marks[0].to_string(), piece, &marks[1].to_string()]);
            });
            pieces.replace("()", "")
        };
        assert_eq!(text_of("a &amp; <![CDATA[b & <c>]]> d"), "(a &amp; )[b & <c>]( d)");
        assert_eq!(text_of("a<!-- <![CDATA[ -->b<![CDATA[]]>"), "(a)(b)[]");
        assert_eq!(text_of("a<![CDATA[b < c"), "(a<![CDATA[b < c)");
    }
}
