//! Properties of elements by name: how their content is tokenized, where their text breaks, and
//! which attribute is a link.
//!
//! Each tag takes one look-up, so names are packed into an integer and found in a table made at
//! compile time.

/// Separation of two words of text, ordered from weakest to strongest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// No separation: the words are one.
    #[default]
    None,
    /// White space: a single space.
    Space,
    /// The end of a line: one line feed.
    Line,
    /// The end of a paragraph: two line feeds.
    Paragraph,
}

/// Way in which the content of an element is tokenized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementContent {
    /// Text, character references and tags.
    Data,
    /// Text and character references up to its end tag.
    Escapable,
    /// Text up to its end tag, without character references.
    Raw,
    /// Raw text, but a script within a comment within a script does not end it.
    Script,
    /// Text up to the end of the page.
    Plain,
}

/// Special role of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementRole {
    /// No special role.
    Usual,
    /// The content is not shown.
    Hidden,
    /// The content is the title.
    Title,
    /// Line ends in the content are kept.
    Preformatted,
    /// The element ends a line.
    Break,
    /// The content is neither shown nor linked, including its tags.
    Template,
    /// SVG or MathML, in which a tag may close itself.
    Foreign,
    /// The attribute is the base of all links.
    Base,
    /// The attribute is a link.
    Link,
    /// A `meta` element, which may lead to another page.
    Meta,
    /// A `link` element, which may declare a canonical URL, or editions in other languages.
    Relation,
    /// The `html` element, which may have the language of the page.
    Root,
}

/// Properties of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    /// Separation of the text of the element from the text before and after it.
    pub gap: Gap,
    /// Way in which the content is tokenized.
    pub content: ElementContent,
    /// Special role, if any.
    pub role: ElementRole,
    /// Name of the attribute with a URL, in lower case; empty if there is none.
    pub attribute: &'static str,
}

const USUAL_ELEMENT: Element =
    Element { gap: Gap::None, content: ElementContent::Data, role: ElementRole::Usual, attribute: "" };
const BLOCK: Element = Element { gap: Gap::Paragraph, ..USUAL_ELEMENT };
const LINK: Element = Element { role: ElementRole::Link, attribute: "href", ..USUAL_ELEMENT };
const HIDDEN: Element = Element { content: ElementContent::Raw, role: ElementRole::Hidden, ..USUAL_ELEMENT };
const PREFORMATTED: Element = Element { role: ElementRole::Preformatted, ..BLOCK };

/// Names with the same properties. The first row applies to all other names.
static ELEMENTS: [(&str, Element); 23] = [
    ("", USUAL_ELEMENT),
    ("td th rt", Element { gap: Gap::Space, ..USUAL_ELEMENT }),
    (
        "li dt dd tr thead tbody tfoot option optgroup select legend summary noscript",
        Element { gap: Gap::Line, ..USUAL_ELEMENT },
    ),
    ("p div h1 h2 h3 h4 h5 h6 ul ol dl table hr blockquote section article aside header footer main nav form", BLOCK),
    ("html", Element { role: ElementRole::Root, attribute: "lang", ..BLOCK }),
    ("head body frameset hgroup search address center figure figcaption caption details dialog fieldset", BLOCK),
    ("dir menu", BLOCK),
    ("br", Element { role: ElementRole::Break, ..USUAL_ELEMENT }),
    ("pre listing", PREFORMATTED),
    ("textarea", Element { content: ElementContent::Escapable, ..PREFORMATTED }),
    ("xmp", Element { content: ElementContent::Raw, ..PREFORMATTED }),
    ("plaintext", Element { content: ElementContent::Plain, ..PREFORMATTED }),
    ("title", Element { content: ElementContent::Escapable, role: ElementRole::Title, ..USUAL_ELEMENT }),
    ("script", Element { content: ElementContent::Script, ..HIDDEN }),
    ("style noembed noframes", HIDDEN),
    ("iframe", Element { attribute: "src", ..HIDDEN }),
    ("frame", Element { attribute: "src", ..LINK }),
    ("a area", LINK),
    ("base", Element { role: ElementRole::Base, ..LINK }),
    ("meta", Element { role: ElementRole::Meta, attribute: "content", ..USUAL_ELEMENT }),
    ("link", Element { role: ElementRole::Relation, ..LINK }),
    ("template", Element { role: ElementRole::Template, ..USUAL_ELEMENT }),
    ("svg math", Element { role: ElementRole::Foreign, ..USUAL_ELEMENT }),
];

/// Tag name, packed into an integer while it is read: the lower-case bytes of its last 16
/// characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct TagName(u128);

impl TagName {
    /// Empty name, before the first byte.
    pub(super) const EMPTY: TagName = TagName(0);

    /// Appends a byte. Only the last 16 bytes count, and no name in the table is longer than 10.
    #[inline(always)]
    pub(super) const fn with(self, byte: u8) -> TagName {
        TagName(self.0 << 8 | byte.to_ascii_lowercase() as u128)
    }

    /// Returns the properties of elements with this name.
    #[inline(always)]
    pub(super) fn element(self) -> &'static Element {
        let mut slot = self.slot();
        while TABLE[slot].0 != self.0 && TABLE[slot].0 != 0 {
            slot = (slot + 1) % SLOTS;
        }
        &ELEMENTS[TABLE[slot].1 as usize].1
    }

    #[inline(always)]
    const fn slot(self) -> usize {
        let hash = self.0 as u64 ^ (self.0 >> 64) as u64;
        (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())) as usize
    }
}

const SLOTS: usize = 256;

/// Hash table with open addressing and linear probing. An empty slot has name 0 and refers to row 0
/// of [`ELEMENTS`].
static TABLE: [(u128, u8); SLOTS] = {
    let mut table = [(0, 0); SLOTS];
    let mut row = 1;
    while row < ELEMENTS.len() {
        let names = ELEMENTS[row].0.as_bytes();
        let (mut position, mut name) = (0, TagName::EMPTY);
        while position <= names.len() {
            if position == names.len() || names[position] == b' ' {
                let mut slot = name.slot();
                while table[slot].0 != 0 {
                    slot = (slot + 1) % SLOTS;
                }
                table[slot] = (name.0, row as u8);
                name = TagName::EMPTY;
            } else {
                name = name.with(names[position]);
            }
            position += 1;
        }
        row += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str) -> &'static Element {
        name.bytes().fold(TagName::EMPTY, TagName::with).element()
    }

    #[test]
    fn every_element_name_finds_its_row_in_any_case() {
        for (names, expected) in &ELEMENTS[1..] {
            for name in names.split(' ') {
                assert_eq!(element(name), expected, "{name}");
                assert_eq!(element(&name.to_uppercase()), expected, "{name}");
                assert!(
                    name.len() <= 16
                        && ELEMENTS.iter().flat_map(|row| row.0.split(' ')).filter(|n| *n == name).count() == 1
                );
            }
        }
    }

    #[test]
    fn unknown_element_names_have_default_properties() {
        for name in
            ["", "b", "h7", "hr2", "scripts", "x-script", "blockquot", "a\0", "\0", "custom-element-of-a-long-name"]
        {
            assert_eq!(element(name), &USUAL_ELEMENT, "{name}");
        }
    }
}
