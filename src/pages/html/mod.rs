//! HTML to text and links, in one pass.
//!
//! In: bodies as fetched. Out: [`Extracted`]: the text a reader sees, in lines and paragraphs, and the pages linked to.
//!
//! **Text** is the title, an empty line, and the content of the page outside of scripts, styles, templates and frames.
//! White space becomes one space between words. `br`, list items and table rows end a line. Paragraphs, headings,
//! lists, tables and other blocks have an empty line before and after them; so do an empty line of preformatted text
//! and a second `br` in a row. Table cells are separated by a space. Text that only a style sheet or a script would
//! hide is kept, and `noscript` is shown.
//!
//! **Links** are `href` of `a` and `area` and `src` of `frame` and `iframe`, resolved against the first `base` of the
//! page, wherever it is, and given as doc ids of canonical URLs. A page may also lead to another as a redirect does
//! (`leads`).
//!
//! # Cost
//! Time is linear in the body, and memory a small multiple of it, whatever its tags and references; once the buffers
//! have grown, nothing is allocated per page.
//!
//! # Deviations
//! - There is no tree, so tags that a browser would ignore or move (`</p>` alone, text in a table) break lines where
//!   they are written.
//! - A base that is not an http(s) URL is ignored.

mod elements;
mod entities;
mod leads;
mod links;
mod text;
pub(super) mod tokenizer;

use elements::{Content, Element, Gap, Role};
use links::{Base, Links};
use text::Lines;
use tokenizer::{Sink, Tag, tokenize};

use crate::error::Result;
use crate::ids::{DocId, doc_id};
use crate::job::{Limits, Links as Follow};
use crate::pages::charset::{Decoded, Decoder};
use crate::pages::helper::{self, Document};
use crate::pages::record::{Form, RawPage, Refusal};
use crate::pages::url::CanonicalUrl;

/// Extracts one page after another, reusing its buffers.
///
/// # Examples
/// ```
/// # mod webtwin { pub use {webtwin_base::*, webtwin_pages::*}; }
/// use webtwin::ids::doc_id;
/// use webtwin::job::Limits;
/// use webtwin::pages::html::Extractor;
/// use webtwin::pages::url::CanonicalUrl;
///
/// let url = CanonicalUrl::parse("http://a.example/manual/").unwrap();
/// let page = b"<title>Manual</title><h1>Chapter 1</h1><p>See <a href=two.html#top>the next one</a>.";
/// let mut extractor = Extractor::new(&Limits::default());
/// let extracted = extractor.html(page, Some("utf-8"), &url);
/// assert_eq!(extracted.text, "Manual\n\nChapter 1\n\nSee the next one.");
/// assert_eq!(extracted.links, [doc_id("http://a.example/manual/two.html")]);
/// ```
#[derive(Debug)]
pub struct Extractor {
    decoder: Decoder,
    lines: Lines,
    links: Links,
    limits: Limits,
    follow: Follow,
}

/// Text and links of one page, borrowed from the extractor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extracted<'a> {
    /// Lines ended by `
    /// `, except for the last; an empty line ends a paragraph.
    pub text: &'a str,
    /// Its title, as in the text; empty if it has none.
    pub title: &'a str,
    /// Doc ids of the pages it links to: ascending, each once, without the page itself.
    pub links: &'a [DocId],
    /// Doc id of the URL that the page leads to, if any: by its refresh, or else by its canonical URL.
    pub leads_to: Option<DocId>,
    /// Whether it has more links than `limits.links`, of which only the first are kept.
    pub too_many_links: bool,
    /// Whether a part of it could not be read, and the text is that of the rest.
    pub is_partial: bool,
    /// Number of malformed sequences that U+FFFD replaced.
    pub replaced: u64,
}

impl Extractor {
    /// Keeps at most `limits.links` links per page, and follows no page to another.
    pub fn new(limits: &Limits) -> Extractor {
        Extractor::following(limits, &Follow { redirects: false, refresh: false, canonical: false })
    }

    /// Keeps at most `limits.links` links per page, and tells where pages lead as `follow` says.
    pub fn following(limits: &Limits, follow: &Follow) -> Extractor {
        Extractor {
            decoder: Decoder::default(),
            lines: Lines::default(),
            links: Links::new(limits.links),
            limits: *limits,
            follow: *follow,
        }
    }

    /// Text and links of a page of any form, fetched from `url`; or why it has none.
    ///
    /// # Errors
    /// When the helper for documents made for paper cannot be started.
    pub fn page<'a>(
        &'a mut self,
        page: &RawPage,
        url: &CanonicalUrl,
    ) -> Result<std::result::Result<Extracted<'a>, Refusal>> {
        let charset = page.charset.as_deref();
        Ok(match page.form {
            Form::Html => Ok(self.html(&page.body, charset, url)),
            Form::Text => Ok(self.text(&page.body, charset)),
            form @ (Form::Pdf | Form::PostScript) => {
                helper::document(form, &page.body, &self.limits)?.map(|document| self.document(&document, url))
            }
        })
    }

    /// Text and links of HTML fetched from `url`, with the charset that its transport named.
    pub fn html<'a>(&'a mut self, body: &[u8], transport_charset: Option<&str>, url: &CanonicalUrl) -> Extracted<'a> {
        let Decoded { text: page, replaced } = self.decoder.decode(body, transport_charset, true);
        let mut base = Base::new(url.clone());
        let mut based = false;
        let (leads_to, title) = loop {
            let mut pass = Pass::new(&mut self.lines, &mut self.links, base, based, self.follow);
            tokenize(page, &mut pass);
            match pass.late_base {
                // References before the base are relative to it, too.
                Some(late) => (base, based) = (late, true),
                None => break (pass.refresh.or(pass.canonical), pass.title),
            }
        };
        let too_many_links = self.links.too_many();
        let me = doc_id(url.as_str());
        let links = self.links.sorted(me);
        let leads_to = leads_to.filter(|&other| other != me);
        let text = self.lines.as_str();
        let title = text[title.unwrap_or_default()].trim();
        Extracted { text, title, links, leads_to, too_many_links, is_partial: false, replaced }
    }

    /// Text that was extracted already: white space is normalised as for HTML, and nothing else is done.
    pub fn text<'a>(&'a mut self, body: &[u8], transport_charset: Option<&str>) -> Extracted<'a> {
        let Decoded { text, replaced } = self.decoder.decode(body, transport_charset, false);
        self.lines.clear();
        self.lines.enter_preformatted();
        self.lines.push(text);
        let text = self.lines.as_str();
        Extracted { text, title: "", links: &[], leads_to: None, too_many_links: false, is_partial: false, replaced }
    }

    /// What a document made for paper says: its title, an empty line, and its lines; links are relative to `url`.
    fn document(&mut self, document: &Document, url: &CanonicalUrl) -> Extracted<'_> {
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
        let too_many_links = self.links.too_many();
        Extracted {
            text: self.lines.as_str(),
            title: &self.lines.as_str()[..title],
            links: self.links.sorted(doc_id(url.as_str())),
            leads_to: None,
            too_many_links,
            is_partial: !document.is_whole,
            replaced: 0,
        }
    }
}

/// One pass over a page.
struct Pass<'a> {
    lines: &'a mut Lines,
    links: &'a mut Links,
    base: Base,
    /// Whether the page's base has been found.
    based: bool,
    /// Whether a link has been found; below, the base that came after it.
    linked: bool,
    late_base: Option<Base>,
    follow: Follow,
    /// Where the first refresh leads; below, the first canonical URL.
    refresh: Option<DocId>,
    canonical: Option<DocId>,
    /// Where the title is in the lines, once it was found.
    title: Option<std::ops::Range<usize>>,
    /// Number of open templates; below, of open SVG or MathML elements.
    templates: u32,
    foreign: u32,
}

impl<'a> Pass<'a> {
    fn new(lines: &'a mut Lines, links: &'a mut Links, base: Base, based: bool, follow: Follow) -> Pass<'a> {
        lines.clear();
        links.clear();
        Pass {
            lines,
            links,
            base,
            based,
            linked: false,
            late_base: None,
            follow,
            refresh: None,
            canonical: None,
            title: None,
            templates: 0,
            foreign: 0,
        }
    }
}

impl Pass<'_> {
    fn link(&mut self, value: Option<&str>) {
        if let Some(value) = value {
            self.linked = true;
            self.links.add(value, &self.base);
        }
    }

    /// A reader of the page is led to the target of its first refresh, as if by a link.
    fn refresh(&mut self, tag: &Tag<'_>) {
        if self.follow.refresh
            && self.refresh.is_none()
            && let Some(reference) = leads::refresh(tag)
        {
            self.linked = true;
            self.refresh = self.links.add_decoded(&reference, &self.base);
        }
    }

    fn canonical(&mut self, tag: &Tag<'_>) {
        if self.follow.canonical
            && self.canonical.is_none()
            && let Some(reference) = leads::canonical(tag)
        {
            self.linked = true;
            self.canonical = self.base.leads_to(&reference);
        }
    }

    fn rebase(&mut self, value: Option<&str>) {
        let Some(value) = value else { return };
        if std::mem::replace(&mut self.based, true) {
            return;
        }
        let base = self.base.rebased(value);
        if self.linked {
            self.late_base = Some(base);
        } else {
            self.base = base;
        }
    }
}

impl Sink for Pass<'_> {
    #[inline(always)]
    fn text(&mut self, text: &str) {
        if self.templates == 0 {
            self.lines.push_escaped(text);
        }
    }

    #[inline(always)]
    fn start(&mut self, tag: &Tag<'_>) -> bool {
        let Element { gap, role, .. } = *tag.element;
        if role == Role::Template {
            self.templates += 1;
        }
        if self.templates == 0 {
            self.lines.separate(gap);
            match role {
                Role::Preformatted => self.lines.enter_preformatted(),
                Role::Break => self.lines.end_line(),
                Role::Foreign => self.foreign += u32::from(!tag.closes_itself),
                Role::Base => self.rebase(tag.value),
                // Frames are hidden, but their source is a link.
                Role::Link | Role::Hidden => self.link(tag.value),
                Role::Meta => self.refresh(tag),
                Role::Relation => self.canonical(tag),
                Role::Usual | Role::Title | Role::Template => {}
            }
        }
        // In SVG, `<style/>` is complete; in HTML, style follows it.
        !(tag.closes_itself && self.foreign > 0)
    }

    fn content(&mut self, element: &'static Element, text: &str) {
        if self.templates > 0 || element.role == Role::Hidden {
            return;
        }
        if element.role == Role::Title {
            // Titles inside drawings are tooltips.
            if self.foreign == 0 && self.title.is_none() {
                self.lines.separate(Gap::Paragraph);
                let from = self.lines.as_str().len();
                self.lines.push_escaped(text);
                self.title = Some(from..self.lines.as_str().len());
                self.lines.separate(Gap::Paragraph);
            }
        } else if element.content == Content::Escapable {
            self.lines.push_escaped(text);
        } else {
            self.lines.push(text);
        }
    }

    #[inline(always)]
    fn end(&mut self, element: &'static Element) {
        if element.role == Role::Template {
            self.templates = self.templates.saturating_sub(1);
        }
        if self.templates == 0 {
            self.lines.separate(element.gap);
            match element.role {
                Role::Preformatted => self.lines.leave_preformatted(),
                // The standard reads `</br>` as `<br>`.
                Role::Break => self.lines.end_line(),
                Role::Foreign => self.foreign = self.foreign.saturating_sub(1),
                Role::Usual | Role::Hidden | Role::Title | Role::Template => {}
                Role::Base | Role::Link | Role::Meta | Role::Relation => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(html: &str) -> (String, Vec<DocId>) {
        let mut extractor = Extractor::new(&Limits::default());
        let url = CanonicalUrl::parse("http://example.com/dir/page?q").unwrap();
        let extracted = extractor.html(html.as_bytes(), Some("utf-8"), &url);
        assert!(extracted.links.windows(2).all(|pair| pair[0] < pair[1]));
        (extracted.text.to_owned(), extracted.links.to_vec())
    }

    fn targets(urls: &[&str]) -> Vec<DocId> {
        let mut targets = urls.iter().map(|url| doc_id(url)).collect::<Vec<_>>();
        targets.sort_unstable();
        targets
    }

    #[test]
    fn the_title_is_told_beside_the_text_that_has_it() {
        let url = CanonicalUrl::parse("http://a/").unwrap();
        let mut extractor = Extractor::new(&Limits::default());
        for (page, title) in [
            ("<title> A\n &amp; b </title><p>x", "A & b"),
            ("x<svg><title>no</title></svg><title>yes</title><title>no</title>", "yes"),
            ("<title></title><title>late</title>x", ""),
            ("x<a href=y><base href=/b/><title>t</title>", "t"),
            ("<p>none", ""),
        ] {
            assert_eq!(extractor.html(page.as_bytes(), None, &url).title, title, "{page}");
        }
        assert_eq!(extractor.text(b"A text", None).title, "");
    }

    #[test]
    fn text_is_lines_and_paragraphs() {
        for (html, expected) in [
            (
                "<!doctype html><html><head><meta charset=utf-8><title> A\n title </title><style>p{}</style>\n<script>x</script>\
                 </head> <body><h1>Head<b>line</b></h1>  <p>One\n two  <i> three</i>.<p>Four<br>five<br><br>six</body>",
                "A title\n\nHeadline\n\nOne two three.\n\nFour\nfive\n\nsix",
            ),
            ("a<ul><li>b<li>c <ul><li>d</ul></ul>e", "a\n\nb\nc\n\nd\n\ne"),
            ("<table><tr><th>a</th><td>b<td>c<tr><td>d</table>e", "a b c\nd\n\ne"),
            ("<pre>\n a  b\n\tc\n\n\nd</pre>e\nf", "a b\nc\n\nd\n\ne f"),
            ("<textarea>\na &amp; <b>\nb</textarea>c", "a & <b>\nb\n\nc"),
            ("<xmp>a &amp;\n<p></xmp>b<plaintext>c\n</plaintext>", "a &amp;\n<p>\n\nb\n\nc\n</plaintext>"),
            ("x&lt;y&nbsp;&amp;&#32; z&eacute", "x<y & zé"),
            ("a<template>b<p>c<template>d</template>e</template>f</template>g", "afg"),
            ("a<iframe src=x>b</iframe><noframes>c</noframes><noembed>d</noembed><noscript>e</noscript>f", "a\ne\nf"),
            ("a<svg><title>b</title><style/><text>c</text></svg>d<title>e</title><title>f</title>g", "acd\n\ne\n\ng"),
            ("a<!-- b --><!-->c<!--->d<!doctype 'e>'f><![CDATA[g>h]]>", "acd'f>h]]>"),
            ("1 < 2 <3 </ 4><a", "1 < 2 <3"),
            ("a<img alt=b>c<wbr>d<input value=e>", "acd"),
            ("a</p>b</br>c<P\n/>d<hr>e", "a\n\nb\nc\n\nd\n\ne"),
            (
                "a<p title='>'>b<p title=\"a'>\">c<p title=>d<p title=a'>e<p =>f<p / a=/>g",
                "a\n\nb\n\nc\n\nd\n\ne\n\nf\n\ng",
            ),
            (
                "<script><!--<script>a</script>b--></script>c<script><!--a</script>d<SCRIPT>e</SCRIPTx></script >f",
                "cdf",
            ),
            ("<script><!--><script></script>a<script><!--<script>--></script>b<script>x", "ab"),
            ("<title>never closed <p>", "never closed <p>"),
            ("a<!-- never closed <p>", "a"),
            ("<p>a\0b\0</p>", "ab"),
            ("", ""),
        ] {
            assert_eq!(page(html).0, expected, "{html}");
        }
    }

    #[test]
    fn links_are_those_that_lead_to_pages() {
        let html = "<a href=a>1</a><A HREF='/b#c'>2</A><area href=\"?x=1&amp;y=2&copy=3\"><frame src=frame><iframe src=//other.example>\
            </iframe><a href=#top><a href=''><a name=x><a href=page?q><a src=no><img src=no><link href=no><a href=mailto:x>\
            <template><a href=no></a></template><!-- <a href=no> --><script>'<a href=no>'</script><a href=first href=no><a href=no";
        let expected = targets(&[
            "http://example.com/dir/a",
            "http://example.com/b",
            "http://example.com/dir/page?x=1&y=2&copy=3",
            "http://example.com/dir/frame",
            "http://other.example/",
            "http://example.com/dir/first",
        ]);
        assert_eq!(page(html).1, expected);
    }

    #[test]
    fn the_first_base_holds_for_the_whole_page() {
        let expected = targets(&["http://example.com/else/a", "http://example.com/else/b"]);
        assert_eq!(page("<base target=x><base href=/else/><a href=a><base href=/no/><a href=b>").1, expected);
        assert_eq!(page("<a href=a><base href='../else/c'><a href=b>").1, expected);
        assert_eq!(page("<base href=data:x><base href=/no/><a href=../else/a><a href=/else/b>").1, expected);
        assert_eq!(page("<base href=http://other.example><a href=#x><a href=page>").1.len(), 2);
    }

    #[test]
    fn a_refresh_leads_on_within_ten_seconds_and_is_a_link() {
        let mut extractor =
            Extractor::following(&Limits::default(), &Follow { redirects: true, refresh: true, canonical: true });
        let url = CanonicalUrl::parse("http://example.com/dir/page").unwrap();
        let mut leads = |html: &str| {
            let extracted = extractor.html(html.as_bytes(), Some("utf-8"), &url);
            (extracted.leads_to, extracted.links.to_vec())
        };
        let next = doc_id("http://example.com/dir/next");
        for content in [
            "0;url=next",
            "0; URL='next'",
            " 10 , url = \"next\" x",
            "3;next",
            "0 next",
            "0;url=next#x",
            ".5;url=next",
            "1.5; url=next",
            "0;URL=&#110;ext",
        ] {
            let html = format!("<META HTTP-EQUIV=Refresh CONTENT='{}'>", content.replace('\'', "&apos;"));
            assert_eq!(leads(&html), (Some(next), vec![next]), "{content}");
        }
        for content in ["11;url=next", "5", "", "url=next", "0;url=", "0;url=page", "0;url=javascript:x", "0url=next"] {
            let html = format!("<meta http-equiv=refresh content='{content}'>");
            assert_eq!(leads(&html), (None, vec![]), "{content}");
        }
        assert_eq!(leads("<meta name=refresh content='0;url=next'><meta content='0;url=next'>"), (None, vec![]));
        assert_eq!(leads("<template><meta http-equiv=refresh content='0;url=next'></template>"), (None, vec![]));
        let late = "<meta http-equiv=refresh content='0;url=next'><base href=/dir/x/../>";
        assert_eq!(leads(late), (Some(next), vec![next]));

        assert_eq!(leads("<link rel='x Canonical' href=next>"), (Some(next), vec![]));
        assert_eq!(leads("<link rel=stylesheet href=next><link rel=canonical>"), (None, vec![]));
        assert_eq!(leads("<link rel=canonical href=page>"), (None, vec![]));
        let both = "<link rel=canonical href=other><meta http-equiv=refresh content='0;url=next'>";
        assert_eq!(leads(both), (Some(next), vec![next]));
    }

    #[test]
    fn plain_text_keeps_its_lines_and_has_no_markup() {
        let mut extractor = Extractor::new(&Limits::default());
        let extracted = extractor.text(b"\xef\xbb\xbf a  <b>&amp;\r\nc\n\n \n\nhttp://example.com/ \n", Some("latin1"));
        assert_eq!(extracted.text, "a <b>&amp;\nc\n\nhttp://example.com/");
        assert_eq!((extracted.links, extracted.replaced), (&[][..], 0));
        assert_eq!(extractor.text(b"<meta charset=koi8-r>\xff", Some("utf-8")).replaced, 1);
    }

    #[test]
    fn the_charset_of_the_page_decides_how_it_reads() {
        let mut extractor = Extractor::new(&Limits::default());
        let url = CanonicalUrl::parse("http://example.com/").unwrap();
        let body = b"<meta charset=shift_jis><p>\x93\xfa\x96{<a href=\x93\xfa>\x8c\xea";
        assert_eq!(extractor.html(body, None, &url).text, "日本語");
        assert_eq!(extractor.html(body, None, &url).links, [doc_id("http://example.com/%E6%97%A5")]);
        assert_eq!(extractor.html(b"<meta charset=shift_jis>\x93hi\x94", Some("windows-1252"), &url).text, "“hi”");
        assert_eq!(extractor.html(b"\xff\xfe<\0p\0>\0e\x01", Some("ascii"), &url).text, "ť");
    }

    #[test]
    fn a_page_leaves_nothing_behind_for_the_next() {
        let mut extractor = Extractor::new(&Limits { links: 1, ..Limits::default() });
        let url = CanonicalUrl::parse("http://example.com/").unwrap();
        for _ in 0..2 {
            let hostile = extractor.html(b"<title>t</title><svg><pre><template><a href=x>", None, &url);
            assert_eq!((hostile.text, hostile.links.len()), ("t", 0));
            let usual = extractor.html(b"<base href=/b/><title>t</title><a href=x>a\nb<style/>c</style>", None, &url);
            assert_eq!((usual.text, usual.links), ("t\n\na b", &targets(&["http://example.com/b/x"])[..]));
            assert!(!usual.too_many_links);
            assert!(extractor.html(b"<a href=x><a href=y>", None, &url).too_many_links);
        }
    }

    fn seconds(html: &str) -> f64 {
        let mut extractor = Extractor::new(&Limits::default());
        let url = CanonicalUrl::parse("http://example.com/").unwrap();
        let start = std::time::Instant::now();
        std::hint::black_box(extractor.html(html.as_bytes(), None, &url));
        start.elapsed().as_secs_f64()
    }

    /// Eight times the page should take 8 times as long, and 64 times were it quadratic; a busy machine gets more tries.
    fn assert_linear(what: &str, page: impl Fn(usize) -> String) {
        let (short, long) = (page(1), page(8));
        let ratios = std::iter::repeat_with(|| seconds(&long) / seconds(&short));
        assert!(ratios.take(20).any(|ratio| ratio < 24.0), "{what:?}");
    }

    #[test]
    fn time_is_linear_in_the_page_for_hostile_pages() {
        for unit in [
            "<div>",
            "</div>",
            "<",
            "</",
            "<!",
            "<!--",
            "<!-- -",
            "<!----!",
            "-->",
            "<a ",
            "<a href='",
            "<a b=\"",
            "=",
            "'",
            "&",
            "&#",
            "&#1",
            "&a",
            "&ampa",
            "&notit",
            "<script>",
            "<script><!--",
            "<!--<script>",
            "</script",
            "<title>",
            "</titl",
            "<style><",
            "<?",
            "<pre>\n",
            "<template>",
            "<svg>",
            "<a href=javascript:x>",
            "<a href=..>",
            "<a href=http://[>",
            "<base href=x>",
            "\u{a0}",
            "\0",
            "<textarea></",
            "<plaintext>",
            "<![CDATA[",
            "<p a=b c='d' e>",
            "<a/b",
            "é",
            "<br>",
        ] {
            assert_linear(unit, |times| unit.repeat(200_000 * times / unit.len()));
        }
        assert_linear("links", |times| {
            (0..10_000 * times).map(|nth| format!("<a href=/{nth}/../{nth}?&#{nth};>")).collect()
        });
        assert_linear("a long attribute", |times| format!("<a href='{}'>", "../".repeat(100_000 * times)));
        assert_linear("a base at the end", |times| format!("{}<base href=/x/>", "<a href=x>".repeat(20_000 * times)));
    }

    #[test]
    fn a_million_nested_elements_are_a_page_like_any_other() {
        let html = format!("{}deep{}", "<div>".repeat(1_000_000), "</div>".repeat(1_000_000));
        assert_eq!(page(&html).0, "deep");
    }

    proptest! {
        #[test]
        fn text_is_always_in_its_form(
            parts in proptest::collection::vec(prop_oneof![
                "[a-c \n\r\té&;#<>/!\u{a0}]{1,4}".boxed(),
                "</?(p|pre|br|td|li|title|textarea|template|svg|script|xmp|b)( x='[>a]')?/?>".boxed(),
                "&(#1[03]|#x20|#32|nbsp|lt|amp|NewLine|Tab|emsp);?".boxed(),
            ], 0..20)
        ) {
            let html = parts.concat();
            let (text, _) = page(&html);
            prop_assert!(!text.starts_with(char::is_whitespace) && !text.ends_with(char::is_whitespace));
            for odd in ["  ", " \n", "\n ", "\n\n\n", "\t", "\r", "\0", "\u{a0}", "\u{2003}"] {
                prop_assert!(!text.contains(odd), "{:?} in {:?}", odd, text);
            }
        }

        #[test]
        fn no_bytes_are_too_odd(body in proptest::collection::vec(any::<u8>(), 0..300), charset in "utf-8|utf-16|big5|none") {
            let mut extractor = Extractor::new(&Limits::default());
            let url = CanonicalUrl::parse("http://example.com/").unwrap();
            extractor.html(&body, Some(&charset), &url);
            extractor.text(&body, Some(&charset));
        }
    }
}
