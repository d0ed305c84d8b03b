//! Editions of a page in other languages, which the page itself declares in `<link rel=alternate
//! hreflang=...>` or in the HTTP header `Link`.
//!
//! The language of the page is the one under which it lists its own URL, or otherwise that of its
//! root element. Only the first part of a language tag counts, because editions for several regions
//! often have the same text. `x-default` is not a language.
//!
//! # Source
//! WHATWG HTML, section 4.6.7.1, for `alternate` with `hreflang`; BCP 47, section 2.1, for the
//! parts of a language tag.

use super::entities;
use super::tokenizer::StartTag;
use webtwin_base::ids::DocId;

/// Maximum number of editions of a page. Later ones are ignored.
const MAX_EDITIONS: usize = 256;

/// First part of a language tag: two or three letters in lower case, padded with zeros.
pub(super) type Primary = [u8; 3];

/// Editions that a page declares, and buffers to evaluate them.
#[derive(Debug, Default)]
pub(super) struct Editions {
    named_editions: Vec<(Primary, DocId)>,
    /// Number of editions that the transport declares.
    n_from_transport: usize,
    other_editions: Vec<DocId>,
}

impl Editions {
    /// Begins a page with the editions that its transport declares.
    pub(super) fn begin(&mut self, transport_rows: impl Iterator<Item = (Primary, DocId)>) {
        self.named_editions.clear();
        self.named_editions.extend(transport_rows.take(MAX_EDITIONS));
        self.n_from_transport = self.named_editions.len();
    }

    /// Begins a pass over the page. A second pass discards the editions of the first.
    pub(super) fn begin_pass(&mut self) {
        self.named_editions.truncate(self.n_from_transport);
    }

    /// Adds an edition that the page declares.
    pub(super) fn add(&mut self, language: Primary, url: DocId) {
        if self.named_editions.len() < MAX_EDITIONS {
            self.named_editions.push((language, url));
        }
    }

    /// Returns the editions in other languages than that of the page: ascending, without
    /// repetitions and without the page itself. Returns none if the language of the page is
    /// unknown. `root` is the language of the root element.
    pub(super) fn in_other_languages(&mut self, page: DocId, root: Option<Primary>) -> &[DocId] {
        let Editions { named_editions: named, other_editions: others, .. } = self;
        others.clear();
        let mut own_languages = named.iter().filter(|row| row.1 == page).map(|row| row.0);
        let first = own_languages.next();
        let is_one = own_languages.all(|language| Some(language) == first);
        if let Some(language) = first.or(root).filter(|_| is_one) {
            others.extend(named.iter().filter(|row| row.0 != language && row.1 != page).map(|row| row.1));
            // A URL that serves each reader in the preferred language is listed under several
            // languages, so it is not an edition in another one.
            others.retain(|url| !named.contains(&(language, *url)));
            others.sort_unstable();
            others.dedup();
        }
        others
    }
}

/// Returns the first part of a language tag.
pub(super) fn primary(tag: &str) -> Option<Primary> {
    let first = tag.trim().split(['-', '_']).next()?.as_bytes();
    let is_language = matches!(first.len(), 2..=3) && first.iter().all(u8::is_ascii_alphabetic);
    let mut primary = [0; 3];
    primary.iter_mut().zip(first).for_each(|(to, from)| *to = from.to_ascii_lowercase());
    is_language.then_some(primary)
}

/// Returns the language of an `html` element.
pub(super) fn language(tag: &StartTag<'_>) -> Option<Primary> {
    primary(tag.value.or_else(|| tag.attribute("xml:lang"))?)
}

/// Returns the language and the reference of a `link` element that declares an edition of the page.
pub(super) fn edition(tag: &StartTag<'_>) -> Option<(Primary, String)> {
    // Few elements have the attribute. A search for one letter takes less time than parsing all
    // attributes.
    let bytes = tag.attributes.as_bytes();
    let is_name_end = |end: usize| {
        let start = (end + 1).checked_sub(NAME.len());
        start.is_some_and(|start| bytes[start..=end].eq_ignore_ascii_case(NAME))
    };
    if !memchr::memchr2_iter(b'g', b'G', bytes).any(is_name_end) {
        return None;
    }
    let is_alternate = |word: &str| word.eq_ignore_ascii_case("alternate");
    if !tag.attribute("rel")?.split_ascii_whitespace().any(is_alternate) {
        return None;
    }
    let language = primary(tag.attribute("hreflang")?)?;
    let mut reference = String::new();
    entities::decode_attribute(tag.value?, &mut reference);
    (!reference.trim().is_empty()).then_some((language, reference))
}

const NAME: &[u8] = b"hreflang";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_of_a_tag_is_its_language() {
        let primary_text = |tag| primary(tag).map(|primary| String::from_utf8(primary.to_vec()).unwrap());
        assert_eq!(primary_text("en-GB").as_deref(), Some("en\0"));
        assert_eq!(primary_text(" ZH_hant-TW ").as_deref(), Some("zh\0"));
        assert_eq!(primary_text("deu").as_deref(), Some("deu"));
        assert!(["x-default", "", "-de", "english", "d", "d3", "*"].iter().all(|tag| primary_text(tag).is_none()));
    }

    #[test]
    fn editions_are_in_other_languages_than_the_page() {
        let [de, en, fr] = ["de", "en-US", "fr"].map(|tag| primary(tag).unwrap());
        let other_editions = |rows: &[(Primary, DocId)], root| {
            let mut editions = Editions::default();
            editions.begin(rows.iter().copied());
            editions.in_other_languages(1, root).to_vec()
        };
        assert_eq!(other_editions(&[(fr, 5), (en, 1), (de, 4), (en, 3), (de, 4)], Some(fr)), [4, 5]);
        assert_eq!(other_editions(&[(fr, 5), (de, 4)], Some(de)), [5]);
        assert!(other_editions(&[(fr, 5), (de, 4)], None).is_empty());
        // The page lists its own URL under two languages, or another URL under its language.
        assert!(other_editions(&[(en, 1), (fr, 1), (de, 4)], Some(en)).is_empty());
        assert_eq!(other_editions(&[(en, 1), (fr, 5), (en, 5), (de, 4)], None), [4]);
    }
}
