//! Tokenizer of pages: characters become text, tags and the contents of raw elements, in one pass
//! without backtracking.
//!
//! Input: a page, decoded. Output: calls of a [`TokenSink`], in page order. Comments, doctypes,
//! processing instructions and, in HTML, CDATA sections are skipped. There is no tree, so depth
//! costs nothing. For each start tag the sink decides whether its content is read as
//! [`Element::content`] requires; in a browser, the tree builder decides that.
//!
//! # Cost
//! Linear in the page for any page: every search ends either at the next token, or at the end of
//! the page and then consumes the whole rest.
//!
//! # Source
//! WHATWG HTML section 13.2.5 ("tokenization"), whose states are named in comments.
//!
//! # Deviations
//! - In HTML a CDATA section is a bogus comment everywhere, not only outside of SVG and MathML.
//! - A NUL in a name is not replaced by U+FFFD, because no name in the table contains either.

use std::ops::Range;

use memchr::{memchr, memchr2};

use super::elements::{Element, ElementContent, TagName};
use super::xml::Xml;
use crate::sniff::doctype_end;

/// Receiver of the parts of a page.
pub(super) trait TokenSink {
    /// Receives text between tags, with character references as written. A run of text may be
    /// passed in several calls, cut before `<`.
    fn text(&mut self, text: &str);

    /// Receives text of a CDATA section of XHTML, in which nothing is a reference.
    fn verbatim(&mut self, text: &str);

    /// Receives a start tag. Returns true if its content must be read as [`Element::content`]
    /// requires.
    fn start(&mut self, tag: &StartTag<'_>) -> bool;

    /// Receives the whole content of a raw element, as written.
    fn content(&mut self, element: &'static Element, text: &str);

    /// Receives an end tag of this element. In XHTML, an element that closes itself has one, too.
    fn end(&mut self, element: &'static Element);
}

/// A start tag, with the value of the attribute that is a URL.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartTag<'a> {
    /// Name as written.
    pub name: &'a str,
    /// Properties of elements with that name.
    pub element: &'static Element,
    /// Everything between the name and the end of the tag, including `>`. Empty for elements
    /// without an attribute in their properties.
    pub attributes: &'a str,
    /// Value of the first attribute named [`Element::attribute`], with character references as
    /// written.
    pub value: Option<&'a str>,
    /// True if the tag ends with `/>`.
    pub closes_itself: bool,
}

impl<'a> StartTag<'a> {
    /// Returns the value of the first attribute with this name, with character references as
    /// written.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        let mut value_found = None;
        attributes(self.attributes.as_bytes(), &mut 0, |attribute_name, value| {
            if value_found.is_none() && attribute_name.eq_ignore_ascii_case(name.as_bytes()) {
                value_found = Some(&self.attributes[value]);
            }
        });
        value_found
    }
}

/// Passes a whole page of HTML to `sink`.
pub(super) fn tokenize(page: &str, sink: &mut impl TokenSink) {
    read::<false>(page, &Xml::default(), sink);
}

/// Passes a whole page of XHTML to `sink`.
pub(super) fn tokenize_xml(page: &str, xml: &Xml, sink: &mut impl TokenSink) {
    read::<true>(page, xml, sink);
}

#[inline(always)]
fn read<const XML: bool>(page: &str, xml: &Xml, sink: &mut impl TokenSink) {
    let bytes = page.as_bytes();
    let mut position = 0;
    let mut expects_doctype = XML;
    while let Some(length) = memchr(b'<', &bytes[position..]) {
        let open = position + length;
        if open > position {
            sink.text(&page[position..open]);
        }
        // Tag open state.
        position = open + 1;
        match bytes.get(position) {
            Some(letter) if letter.is_ascii_alphabetic() => {
                let Some(tag) = start_tag::<XML>(page, &mut position, xml) else { return };
                let reads_content = sink.start(&tag);
                if XML && tag.closes_itself {
                    sink.end(tag.element);
                } else if reads_content && tag.element.content != ElementContent::Data {
                    let end = match XML {
                        true => xml.content_end(bytes, position, tag.name),
                        false => content_end(bytes, position, tag.name, tag.element.content),
                    };
                    sink.content(tag.element, &page[position..end]);
                    position = end;
                }
            }
            Some(b'/') => match bytes.get(position + 1) {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    position += 1;
                    let element = name::<XML>(bytes, &mut position, xml).element();
                    if attributes(bytes, &mut position, |_, _| ()).is_none() {
                        return;
                    }
                    sink.end(element);
                }
                Some(_) => position = bogus_comment_end(bytes, position),
                None => return sink.text(&page[open..]),
            },
            Some(b'!') if bytes[position..].starts_with(b"!--") => position = comment_end(bytes, position + 1),
            Some(b'!') if XML => {
                if let Some((text, end)) = xml.cdata(page, open) {
                    sink.verbatim(text);
                    position = end;
                    continue;
                }
                // Only the first doctype may contain brackets. A search for each would go to the
                // end of the page and make reading quadratic.
                let is_doctype = std::mem::take(&mut expects_doctype);
                let end = if is_doctype { doctype_end(&bytes[open..]) } else { None };
                position = end.map_or_else(|| bogus_comment_end(bytes, position), |length| open + length);
            }
            // A doctype ends at the first `>`, too, even within its quotes.
            Some(b'!' | b'?') => position = bogus_comment_end(bytes, position),
            _ => sink.text("<"),
        }
    }
    if position < page.len() {
        sink.text(&page[position..]);
    }
}

/// Parses a start tag from its name. Returns `None` if the page ends within it, because then it is
/// not a tag.
#[inline(always)]
fn start_tag<'a, const XML: bool>(page: &'a str, position: &mut usize, xml: &Xml) -> Option<StartTag<'a>> {
    let bytes = page.as_bytes();
    let start = *position;
    let element = name::<XML>(bytes, position, xml).element();
    let name_start = *position;
    let mut tag =
        StartTag { name: &page[start..name_start], element, attributes: "", value: None, closes_itself: false };
    tag.closes_itself = if element.attribute.is_empty() {
        attributes(bytes, position, |_, _| ())?
    } else {
        let mut range = None;
        let closes_itself = attributes(bytes, position, |name, value| {
            if range.is_none() && name.eq_ignore_ascii_case(element.attribute.as_bytes()) {
                range = Some(value);
            }
        })?;
        tag.attributes = &page[name_start..*position];
        tag.value = range.map(|value| &page[value]);
        closes_itself
    };
    Some(tag)
}

/// Parses a tag name (tag name state).
#[inline(always)]
fn name<const XML: bool>(bytes: &[u8], position: &mut usize, xml: &Xml) -> TagName {
    let mut name = TagName::EMPTY;
    if XML && bytes[*position..].starts_with(&xml.prefix) {
        *position += xml.prefix.len();
    }
    while let Some(&byte) = bytes.get(*position)
        && CLASS[byte as usize] & (SPACE | END) == 0
    {
        name = name.with(byte);
        *position += 1;
    }
    name
}

/// Parses attributes from the end of a tag name up to and including `>`. Passes each name, and the
/// range of its value, to `attribute`.
///
/// Returns true if the tag closes itself, or `None` if the bytes end first.
#[inline(always)]
pub(crate) fn attributes<'a>(
    bytes: &'a [u8],
    position: &mut usize,
    mut attribute: impl FnMut(&'a [u8], Range<usize>),
) -> Option<bool> {
    let next = |at: usize| bytes.get(at).map(|&byte| (byte, CLASS[byte as usize]));
    loop {
        // Before attribute name state.
        let mut solidus = false;
        let name_start = loop {
            match next(*position)? {
                (b'>', _) => {
                    *position += 1;
                    return Some(solidus);
                }
                (b'/', _) => solidus = true,
                (_, class) if class & SPACE != 0 => solidus = false,
                _ => break *position,
            }
            *position += 1;
        };
        // Attribute name state; a name may begin with `=`.
        *position += 1;
        while next(*position)?.1 & (SPACE | END | EQUALS) == 0 {
            *position += 1;
        }
        let name = &bytes[name_start..*position];
        // After attribute name state, before attribute value state.
        while next(*position)?.1 & SPACE != 0 {
            *position += 1;
        }
        let mut value = *position..*position;
        if next(*position)?.0 == b'=' {
            *position += 1;
            while next(*position)?.1 & SPACE != 0 {
                *position += 1;
            }
            match next(*position)?.0 {
                quote @ (b'"' | b'\'') => {
                    value = *position + 1..*position + 1 + memchr(quote, &bytes[*position + 1..])?;
                    *position = value.end + 1;
                }
                _ => {
                    let name_start = *position;
                    while next(*position)?.1 & SPACE == 0 && bytes[*position] != b'>' {
                        *position += 1;
                    }
                    value = name_start..*position;
                }
            }
        }
        attribute(name, value);
    }
}

/// Returns the end of the bogus comment that contains `position`: the position after the next `>`.
fn bogus_comment_end(bytes: &[u8], position: usize) -> usize {
    memchr(b'>', &bytes[position..]).map_or(bytes.len(), |length| position + length + 1)
}

/// Returns the end of the comment whose opening dashes are at `dashes`. It is the position after
/// `-->`, which may share the opening dashes (`<!-->`, `<!--->`), or after `--!>`, which may not.
fn comment_end(bytes: &[u8], dashes: usize) -> usize {
    let mut position = dashes + 2;
    while let Some(length) = memchr(b'>', &bytes[position..]) {
        let tail_bytes = &bytes[dashes..position + length];
        position += length + 1;
        if tail_bytes.ends_with(b"--") || tail_bytes[2..].ends_with(b"--!") {
            return position;
        }
    }
    bytes.len()
}

/// Returns the end of the content of a raw element: the position of its end tag, or the end of the
/// page.
fn content_end(bytes: &[u8], start: usize, name: &str, content: ElementContent) -> usize {
    match content {
        ElementContent::Data => start,
        ElementContent::Plain => bytes.len(),
        ElementContent::Script => script_end(bytes, start),
        ElementContent::Escapable | ElementContent::Raw => {
            let mut position = start;
            while let Some(length) = memchr(b'<', &bytes[position..]) {
                position += length + 1;
                if bytes.get(position) == Some(&b'/') && named(&bytes[position + 1..], name.as_bytes()) {
                    return position - 1;
                }
            }
            bytes.len()
        }
    }
}

/// Returns the end of a script. Within `<!-- … -->` it may contain scripts, each with its end tag.
fn script_end(bytes: &[u8], start: usize) -> usize {
    #[derive(PartialEq)]
    enum State {
        Usual,
        Escaped,
        DoubleEscaped,
    }
    let (mut state, mut position) = (State::Usual, start);
    loop {
        let rest = &bytes[position..];
        let next = if state == State::Usual { memchr(b'<', rest) } else { memchr2(b'<', b'-', rest) };
        let Some(length) = next else { return bytes.len() };
        position += length;
        let rest = &bytes[position..];
        if rest[0] == b'-' {
            if rest.starts_with(b"-->") {
                state = State::Usual;
            }
        } else if state == State::Usual && rest.starts_with(b"<!--") {
            // Advances only by one byte, because the dashes may also be those of `-->`.
            state = State::Escaped;
            position += 1;
        } else if rest.get(1) == Some(&b'/') && named(&rest[2..], b"script") {
            if state != State::DoubleEscaped {
                return position;
            }
            state = State::Escaped;
        } else if state == State::Escaped && named(&rest[1..], b"script") {
            state = State::DoubleEscaped;
        }
        position += 1;
    }
}

/// True if `rest` begins with a tag name, in upper or lower case, and the name ends there.
pub(super) fn named(rest: &[u8], name: &[u8]) -> bool {
    rest.len() > name.len()
        && CLASS[rest[name.len()] as usize] & (SPACE | END) != 0
        && rest[..name.len()].eq_ignore_ascii_case(name)
}

const SPACE: u8 = 1;
/// Class of `/` and `>`, which end a tag name.
const END: u8 = 2;
const EQUALS: u8 = 4;

static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    class[b' ' as usize] = SPACE;
    class[b'\t' as usize] = SPACE;
    class[b'\n' as usize] = SPACE;
    class[b'\x0c' as usize] = SPACE;
    class[b'\r' as usize] = SPACE;
    class[b'/' as usize] = END;
    class[b'>' as usize] = END;
    class[b'=' as usize] = EQUALS;
    class
};

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use lol_html::{RewriteStrSettings, doc_text, element, rewrite_str};
    use proptest::prelude::*;

    use super::*;

    /// All text of a page, and its start tags with the values of their attributes.
    #[derive(Debug, Default, PartialEq)]
    struct Seen {
        text: String,
        tags: Vec<(String, Option<String>)>,
    }

    impl TokenSink for Seen {
        fn text(&mut self, text: &str) {
            self.text.push_str(text);
        }

        fn verbatim(&mut self, text: &str) {
            self.text.push_str(text);
        }

        fn start(&mut self, tag: &StartTag<'_>) -> bool {
            self.tags.push((tag.name.to_ascii_lowercase(), tag.value.map(str::to_owned)));
            true
        }

        fn content(&mut self, _: &'static Element, text: &str) {
            self.text.push_str(text);
        }

        fn end(&mut self, _: &'static Element) {}
    }

    fn actual_tags(page: &str) -> Seen {
        let mut tags = Seen::default();
        tokenize(page, &mut tags);
        tags
    }

    fn oracle(page: &str) -> Seen {
        let tags = RefCell::new(Seen::default());
        let settings = RewriteStrSettings::new()
            .append_element_content_handler(element!("*", |element| {
                let name = element.tag_name();
                let known = name.bytes().fold(TagName::EMPTY, TagName::with).element();
                tags.borrow_mut().tags.push((name, element.get_attribute(known.attribute)));
                Ok(())
            }))
            .append_document_content_handler(doc_text!(|chunk| {
                tags.borrow_mut().text.push_str(chunk.as_str());
                Ok(())
            }))
            .with_strict(false);
        rewrite_str(page, settings).unwrap();
        tags.into_inner()
    }

    #[test]
    fn only_the_first_attribute_of_a_name_counts() {
        let tags = actual_tags(
            "<a x=1 HREF = 'a&amp;b' href=c><a hrefs=x =href=y href>z<base href=d/><iframe src=e/ src=f><a href=\">\"/>",
        );
        let values = [Some("a&amp;b"), Some(""), Some("d/"), Some("e/")];
        assert_eq!(tags.tags.iter().map(|(_, value)| value.as_deref()).collect::<Vec<_>>(), values);
        assert_eq!(tags.text, "z<a href=\">\"/>", "an iframe without end has the rest of the page");
    }

    #[test]
    fn missing_attribute_value_still_opens_a_script() {
        assert_eq!(actual_tags("<script src= ><p></script><a href=>").text, "<p>");
        assert_eq!(actual_tags("<script src= ><p></script><a href=>").tags[1], ("a".to_owned(), Some(String::new())));
    }

    fn xhtml(page: &str) -> Seen {
        let mut tags = Seen::default();
        tokenize_xml(page, &Xml::new(page, b""), &mut tags);
        tags
    }

    #[test]
    fn in_xhtml_an_element_that_closes_itself_has_no_content() {
        for name in ["script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp", "plaintext", "a"] {
            assert_eq!(xhtml(&format!("<{name} x='y'/><p>text</p>")).text, "text", "{name}");
            assert_eq!(xhtml(&format!("<{name}>a</{name}><p>text</p>")).tags.len(), 2, "{name}");
        }
    }

    #[test]
    fn in_xhtml_cdata_is_text_and_may_hold_an_end_tag() {
        assert_eq!(xhtml("<p>a<![CDATA[ <b> & ]]>c</p>").text, "a <b> & c");
        assert_eq!(xhtml("<script>//<![CDATA[\nx = '</script>'\n//]]></script><p>b</p>").tags.len(), 2);
        assert_eq!(xhtml("<style><!-- </style> --></style><p>b</p>").tags.len(), 2);
        // An opening mark that is never closed does not begin a section.
        assert_eq!(xhtml("<script><![CDATA[ x </script><p>b</p>").tags.len(), 2);
        assert_eq!(xhtml("<p>a<![CDATA[b</p><i>c</i>").tags.len(), 2);
        assert_eq!(xhtml("<!DOCTYPE html [ <!ENTITY a '<b>'> ]><p>b</p>").text, "b");
    }

    fn sample(parts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
        proptest::sample::select(parts)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn tokens_equal_those_of_lol_html(
            parts in proptest::collection::vec(prop_oneof![
                3 => sample(&["<p>", "</p>", "<b class='x>y'>", "</b >", "<br/>", "text", "é & ", "\n", "<x-y a b=c>"]),
                3 => sample(&["<a href=\"/a?b#c\">", "<a\nHREF = x>", "<A x='' href='q'/>", "<area href=''>", "<frame src=1>"]),
                3 => sample(&["<", ">", "/", "!", "=", "'", "\"", " ", "-", "--", "?", "a", "]]>", "&lt", "<base href=b>"]),
                2 => sample(&["<!--", "-->", "--!>", "<!-->", "<!--->", "<!x", "<!doctype html>", "<!DOCTYPE 'a>b'>", "<?x"]),
                1 => sample(&["</", "</1", "</>", "</ p>", "<1>", "<![CDATA[", "</p", "<a href='"]),
                2 => sample(&["<script>", "</script>", "<script", "</script", "<SCRIPT src=x>", "</Script >", "</scriptx>"]),
                1 => sample(&["<title>", "</title>", "<textarea>", "</textarea/>", "<style>", "</style\n>", "<xmp>", "</xmp>"]),
                1 => sample(&["<iframe src=f>", "</iframe>", "<noembed>", "</noembed>", "<noframes>", "</noframes>", "<plaintext>"]),
            ], 0..24)
        ) {
            let page = parts.concat();
            // After `=>`, lol_html 3.0.3 does not treat the content of a script as raw. The test
            // above follows the standard.
            prop_assume!(!page.split_whitespace().collect::<String>().contains("=>"));
            prop_assert_eq!(actual_tags(&page), oracle(&page), "{}", page);
        }
    }
}
