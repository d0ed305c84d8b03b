//! Extraction of text and links from HTML, in one pass.
//!
//! Input: bodies as fetched. Output: [`ExtractedPage`], the text that a reader sees, in lines and
//! paragraphs, and the pages that are linked.
//!
//! **Text** is the title, an empty line, and the content of the page outside of scripts, styles,
//! templates and frames. White space becomes one space between words. `br`, list items and table
//! rows end a line. Paragraphs, headings, lists, tables and other blocks have an empty line before
//! and after them. So do an empty line of preformatted text and a second `br` in a row. Table cells
//! are separated by a space. Text that only a style sheet or a script would hide is kept, and
//! `noscript` is shown.
//!
//! **XHTML** is read by the rules of XML where they matter (`xml`). A page is XHTML by its media
//! type, or by an XML declaration with the namespace of XHTML.
//!
//! **Links** are `href` of `a` and `area` and `src` of `frame` and `iframe`. They are resolved
//! against the first `base` of the page, at any position, and returned as doc ids of canonical
//! URLs. A page may also lead to another page, like a redirect (`leads`).
//!
//! # Cost
//! Time is linear in the body and memory a small multiple of its size, for any tags and references.
//! Once the buffers have grown, nothing is allocated per page.
//!
//! # Deviations
//! - There is no tree, so tags that a browser would ignore or move (`</p>` alone, text in a table)
//!   break lines at the position where they are written.
//! - A base that is not an http(s) URL is ignored.

mod editions;
mod elements;
mod entities;
mod leads;
mod links;
mod text;
pub(super) mod tokenizer;
mod xml;

use editions::{Editions, Primary, edition, language, primary};
use elements::{Element, ElementContent, ElementRole, Gap};
use links::{Base, LinkCollector};
use text::LineWriter;
use tokenizer::{StartTag, TokenSink, tokenize, tokenize_xml};
use xml::{Xml, character_data};

use crate::charset::{CharsetDecoder, DecodedText};
use crate::helper::{self, DocumentText};
use crate::record::{PageForm, RawPage, Refusal};
use crate::sniff;
use crate::url::CanonicalUrl;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, doc_id};
use webtwin_job::{LinkSettings as Follow, RecordLimits};

/// Extractor of text and links that reuses its buffers for one page after another.
///
/// # Examples
/// ```
/// use webtwin_base::ids::doc_id;
/// use webtwin_job::RecordLimits;
/// use webtwin_pages::html::Extractor;
/// use webtwin_pages::url::CanonicalUrl;
///
/// let url = CanonicalUrl::parse("http://a.example/manual/").unwrap();
/// let page = b"<title>Manual</title><h1>Chapter 1</h1><p>See <a href=two.html#top>the next one</a>.";
/// let mut extractor = Extractor::new(&RecordLimits::default());
/// let extracted = extractor.html(page, Some("utf-8"), &url);
/// assert_eq!(extracted.text, "Manual\n\nChapter 1\n\nSee the next one.");
/// assert_eq!(extracted.links, [doc_id("http://a.example/manual/two.html")]);
/// ```
#[derive(Debug)]
pub struct Extractor {
    decoder: CharsetDecoder,
    lines: LineWriter,
    links: LinkCollector,
    editions: Editions,
    limits: RecordLimits,
    follow: Follow,
}

/// Text and links of one page, borrowed from the extractor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractedPage<'a> {
    /// Text of the page. Lines end with a line feed, except for the last; an empty line ends a
    /// paragraph.
    pub text: &'a str,
    /// Title of the page, as in the text; empty if it has none.
    pub title: &'a str,
    /// Doc ids of the linked pages: ascending, without repetitions and without the page itself.
    pub links: &'a [DocId],
    /// Doc id of the URL to which the page leads, if any: by its refresh, or else by its canonical
    /// URL.
    pub leads_to: Option<DocId>,
    /// Doc id of the canonical URL that the page declares, if it is not its own.
    pub canonical: Option<DocId>,
    /// Doc ids of the URLs that the page declares as editions in other languages: ascending,
    /// without repetitions.
    pub editions: &'a [DocId],
    /// True if the page has more links than `limits.links`. Only the first ones are kept.
    pub too_many_links: bool,
    /// True if a part of the page could not be read. The text is that of the rest.
    pub is_partial: bool,
    /// Number of malformed sequences that were replaced by U+FFFD.
    pub replaced: u64,
}

impl Extractor {
    /// Makes an extractor that keeps at most `limits.links` links per page and ignores redirects.
    pub fn new(limits: &RecordLimits) -> Extractor {
        Extractor::following(limits, &Follow { redirects: false, refresh: false, canonical: false })
    }

    /// Makes an extractor that keeps at most `limits.links` links per page and reports the
    /// redirects that `follow` selects.
    pub fn following(limits: &RecordLimits, follow: &Follow) -> Extractor {
        Extractor {
            decoder: CharsetDecoder::default(),
            lines: LineWriter::default(),
            links: LinkCollector::new(limits.links),
            editions: Editions::default(),
            limits: *limits,
            follow: *follow,
        }
    }

    /// Returns text and links of a page of any form, fetched from `url`, or the reason why it has
    /// none.
    ///
    /// # Errors
    /// Returns an error if the helper process for PDF and PostScript cannot be started.
    pub fn page<'a>(
        &'a mut self,
        page: &RawPage,
        url: &CanonicalUrl,
    ) -> Result<std::result::Result<ExtractedPage<'a>, Refusal>> {
        let charset = page.charset.as_deref();
        let resolve = |reference: &str| Base::new(url.clone()).leads_to(reference);
        let canonical_page = page.canonical.as_deref().and_then(resolve);
        let editions = page.editions.iter();
        self.editions.begin(editions.filter_map(|(language, reference)| primary(language).zip(resolve(reference))));
        let extracted = match page.form {
            PageForm::Html => Ok(self.markup(&page.body, charset, url, false)),
            PageForm::Xhtml => Ok(self.markup(&page.body, charset, url, true)),
            PageForm::Text => Ok(self.text(&page.body, charset)),
            form @ (PageForm::Pdf | PageForm::PostScript) => {
                helper::document(form, &page.body, &self.limits)?.map(|document| self.document(&document, url))
            }
        };
        Ok(extracted.map(|extracted| {
            let canonical_page = canonical_page.filter(|&other| other != doc_id(url.as_str()));
            ExtractedPage { canonical: extracted.canonical.or(canonical_page), ..extracted }
        }))
    }

    /// Returns text and links of HTML fetched from `url`, with the charset that its transport
    /// declared. The body is read as XHTML if it begins with an XML declaration and has the
    /// namespace of XHTML.
    pub fn html<'a>(
        &'a mut self,
        body: &[u8],
        transport_charset: Option<&str>,
        url: &CanonicalUrl,
    ) -> ExtractedPage<'a> {
        self.editions.begin(std::iter::empty());
        self.markup(body, transport_charset, url, false)
    }

    /// Returns text and links like [`Extractor::html`], for a page that is XHTML by its media type
    /// or name.
    pub fn xhtml<'a>(
        &'a mut self,
        body: &[u8],
        transport_charset: Option<&str>,
        url: &CanonicalUrl,
    ) -> ExtractedPage<'a> {
        self.editions.begin(std::iter::empty());
        self.markup(body, transport_charset, url, true)
    }

    fn markup<'a>(
        &'a mut self,
        body: &[u8],
        transport_charset: Option<&str>,
        url: &CanonicalUrl,
        is_xhtml: bool,
    ) -> ExtractedPage<'a> {
        let DecodedText { text: page, replaced } = self.decoder.decode(body, transport_charset, true);
        let root = match is_xhtml {
            true => sniff::html_root(page.as_bytes()),
            false => sniff::declared_xhtml(page.as_bytes()),
        };
        let xml = (is_xhtml || root.is_some()).then(|| Xml::new(page, root.map_or(b"", |root| root.prefix)));
        let mut base = Base::new(url.clone());
        let mut based = false;
        let (refresh, canonical, title, language) = loop {
            let buffers = (&mut self.lines, &mut self.links, &mut self.editions);
            let mut pass = Pass::new(buffers, base, based, self.follow);
            pass.is_xml = xml.is_some();
            match &xml {
                Some(xml) => tokenize_xml(page, xml, &mut pass),
                None => tokenize(page, &mut pass),
            }
            match pass.late_base {
                // References before a late base are relative to it, too, so the page is read again.
                Some(late_base) => (base, based) = (late_base, true),
                None => break (pass.refresh, pass.canonical, pass.title, pass.language),
            }
        };
        let too_many_links = self.links.too_many();
        let me = doc_id(url.as_str());
        let links = self.links.sorted(me);
        let [refresh, canonical] = [refresh, canonical].map(|to| to.filter(|&other| other != me));
        let target = refresh.or(canonical.filter(|_| self.follow.canonical));
        let text = self.lines.as_str();
        let title = text[title.unwrap_or_default()].trim();
        let editions = self.editions.in_other_languages(me, language);
        ExtractedPage {
            text,
            title,
            links,
            leads_to: target,
            canonical,
            editions,
            too_many_links,
            is_partial: false,
            replaced,
        }
    }

    /// Returns text that was already extracted. White space is normalised as for HTML, and nothing
    /// else is changed.
    ///
    /// # Examples
    /// ```
    /// use webtwin_job::RecordLimits;
    /// use webtwin_pages::html::Extractor;
    ///
    /// let mut extractor = Extractor::new(&RecordLimits::default());
    /// let extracted = extractor.text(b"One   line.\r\n<b>", None);
    /// assert_eq!(extracted.text, "One line.\n<b>");
    /// assert!(extracted.links.is_empty());
    /// ```
    pub fn text<'a>(&'a mut self, body: &[u8], transport_charset: Option<&str>) -> ExtractedPage<'a> {
        let DecodedText { text, replaced } = self.decoder.decode(body, transport_charset, false);
        self.lines.clear();
        self.lines.enter_preformatted();
        self.lines.push(text);
        let text = self.lines.as_str();
        ExtractedPage {
            text,
            title: "",
            links: &[],
            leads_to: None,
            canonical: None,
            editions: &[],
            too_many_links: false,
            is_partial: false,
            replaced,
        }
    }

    /// Returns text and links of a PDF or PostScript document: its title, an empty line, and its
    /// lines. Links are relative to `url`.
    fn document(&mut self, document: &DocumentText, url: &CanonicalUrl) -> ExtractedPage<'_> {
        self.lines.clear();
        self.lines.push(&document.title);
        let title = self.lines.as_str().len();
        self.lines.separate(Gap::Paragraph);
        self.lines.enter_preformatted();
        self.lines.push(&document.text);
        self.links.clear();
        let base = Base::new(url.clone());
        for link in &document.links {
            self.links.add_decoded(link, &base);
        }
        let (too_many_links, me) = (self.links.too_many(), doc_id(url.as_str()));
        ExtractedPage {
            text: self.lines.as_str(),
            title: &self.lines.as_str()[..title],
            links: self.links.sorted(me),
            leads_to: None,
            canonical: None,
            editions: self.editions.in_other_languages(me, None),
            too_many_links,
            is_partial: !document.is_whole,
            replaced: 0,
        }
    }
}

/// State of one pass over a page.
struct Pass<'a> {
    lines: &'a mut LineWriter,
    links: &'a mut LinkCollector,
    editions: &'a mut Editions,
    base: Base,
    /// True if the base of the page has been found.
    based: bool,
    /// True if a link has been found; `late_base` is a base that came after it.
    has_link: bool,
    late_base: Option<Base>,
    follow: Follow,
    /// Target of the first refresh; `canonical` is the first canonical URL.
    refresh: Option<DocId>,
    canonical: Option<DocId>,
    /// Language of the root element.
    language: Option<Primary>,
    /// Range of the title in the lines, once it has been found.
    title: Option<std::ops::Range<usize>>,
    /// Number of open templates; `foreign` counts open SVG and MathML elements.
    templates: u32,
    foreign: u32,
    /// True if the page is XHTML.
    is_xml: bool,
}

impl<'a> Pass<'a> {
    fn new(
        (lines, links, editions): (&'a mut LineWriter, &'a mut LinkCollector, &'a mut Editions),
        base: Base,
        based: bool,
        follow: Follow,
    ) -> Pass<'a> {
        lines.clear();
        links.clear();
        editions.begin_pass();
        Pass {
            lines,
            links,
            editions,
            base,
            based,
            has_link: false,
            late_base: None,
            follow,
            refresh: None,
            canonical: None,
            language: None,
            title: None,
            templates: 0,
            foreign: 0,
            is_xml: false,
        }
    }
}

impl Pass<'_> {
    /// Appends the content of an element that contains references, but no tags.
    fn escapable(&mut self, text: &str) {
        match self.is_xml {
            true => character_data(text, |piece, is_verbatim| match is_verbatim {
                true => self.lines.push(piece),
                false => self.lines.push_escaped(piece),
            }),
            false => self.lines.push_escaped(text),
        }
    }

    fn link(&mut self, value: Option<&str>) {
        if let Some(value) = value {
            self.has_link = true;
            self.links.add(value, &self.base);
        }
    }

    /// Adds the target of the first refresh to the links, because readers are led there.
    fn refresh(&mut self, tag: &StartTag<'_>) {
        if self.follow.refresh
            && self.refresh.is_none()
            && let Some(reference) = leads::refresh(tag)
        {
            self.has_link = true;
            self.refresh = self.links.add_decoded(&reference, &self.base);
        }
    }

    fn edition(&mut self, tag: &StartTag<'_>) {
        if let Some((language, reference)) = edition(tag) {
            self.has_link = true;
            if let Some(url) = self.base.leads_to(&reference) {
                self.editions.add(language, url);
            }
        }
    }

    fn canonical(&mut self, tag: &StartTag<'_>) {
        if self.canonical.is_none()
            && let Some(reference) = leads::canonical(tag)
        {
            self.has_link = true;
            self.canonical = self.base.leads_to(&reference);
        }
    }

    fn rebase(&mut self, value: Option<&str>) {
        let Some(value) = value else { return };
        if std::mem::replace(&mut self.based, true) {
            return;
        }
        let base = self.base.rebased(value);
        if self.has_link {
            self.late_base = Some(base);
        } else {
            self.base = base;
        }
    }
}

impl TokenSink for Pass<'_> {
    #[inline(always)]
    fn text(&mut self, text: &str) {
        if self.templates == 0 {
            self.lines.push_escaped(text);
        }
    }

    fn verbatim(&mut self, text: &str) {
        if self.templates == 0 {
            self.lines.push(text);
        }
    }

    #[inline(always)]
    fn start(&mut self, tag: &StartTag<'_>) -> bool {
        let Element { gap, role, .. } = *tag.element;
        if role == ElementRole::Template {
            self.templates += 1;
        }
        if self.templates == 0 {
            self.lines.separate(gap);
            match role {
                ElementRole::Preformatted => self.lines.enter_preformatted(),
                ElementRole::Break => self.lines.end_line(),
                ElementRole::Foreign => self.foreign += u32::from(self.is_xml || !tag.closes_itself),
                ElementRole::Base => self.rebase(tag.value),
                // Content of frames is hidden, but their source is a link.
                ElementRole::Link | ElementRole::Hidden => self.link(tag.value),
                ElementRole::Meta => self.refresh(tag),
                ElementRole::Relation => {
                    self.canonical(tag);
                    self.edition(tag);
                }
                ElementRole::Root => self.language = self.language.or_else(|| language(tag)),
                ElementRole::Usual | ElementRole::Title | ElementRole::Template => {}
            }
        }
        // In SVG, `<style/>` is complete. In HTML, `/` is ignored, so the content of the style
        // follows.
        !(tag.closes_itself && self.foreign > 0)
    }

    fn content(&mut self, element: &'static Element, text: &str) {
        if self.templates > 0 || element.role == ElementRole::Hidden {
            return;
        }
        if element.role == ElementRole::Title {
            // Titles in SVG are tooltips.
            if self.foreign == 0 && self.title.is_none() {
                self.lines.separate(Gap::Paragraph);
                let start = self.lines.as_str().len();
                self.escapable(text);
                self.title = Some(start..self.lines.as_str().len());
                self.lines.separate(Gap::Paragraph);
            }
        } else if element.content == ElementContent::Escapable {
            self.escapable(text);
        } else {
            self.lines.push(text);
        }
    }

    #[inline(always)]
    fn end(&mut self, element: &'static Element) {
        if element.role == ElementRole::Template {
            self.templates = self.templates.saturating_sub(1);
        }
        if self.templates == 0 {
            self.lines.separate(element.gap);
            match element.role {
                ElementRole::Preformatted => self.lines.leave_preformatted(),
                // The standard reads `</br>` as `<br>`, but not in XHTML.
                ElementRole::Break if self.is_xml => {}
                ElementRole::Break => self.lines.end_line(),
                ElementRole::Foreign => self.foreign = self.foreign.saturating_sub(1),
                ElementRole::Usual | ElementRole::Hidden | ElementRole::Title | ElementRole::Template => {}
                ElementRole::Base
                | ElementRole::Link
                | ElementRole::Meta
                | ElementRole::Relation
                | ElementRole::Root => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
