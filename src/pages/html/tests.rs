use proptest::prelude::*;

use super::*;

fn page(html: &str) -> (String, Vec<DocId>) {
    let mut extractor = Extractor::new(&RecordLimits::default());
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
fn title_is_returned_separately_and_also_in_the_text() {
    let url = CanonicalUrl::parse("http://a/").unwrap();
    let mut extractor = Extractor::new(&RecordLimits::default());
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
        ("<script><!--<script>a</script>b--></script>c<script><!--a</script>d<SCRIPT>e</SCRIPTx></script >f", "cdf"),
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
fn self_closing_xhtml_elements_have_no_content() {
    const NAMESPACE: &str = "http://www.w3.org/1999/xhtml";
    let mut extractor = Extractor::new(&RecordLimits::default());
    let url = CanonicalUrl::parse("http://example.com/").unwrap();
    let page_with_root = |root: &str, body: &str| format!("<?xml version='1.0'?>\n<{root}>{body}</{root}>");
    for (body, expected) in [
        ("<script src='x'/><p>a</p>", "a"),
        ("<style/><p>a</p><title/><p>b</p>", "a\n\nb"),
        ("a<textarea/>b<iframe src='x'/>c<noscript/>d<a id='x'/>e", "a\n\nbc\nde"),
        ("a<pre/>b\nc<template/>d<br/>e<br></br>f<svg/><title>g</title>", "a\n\nb cd\ne\nf\n\ng"),
        ("<svg><svg/><title>no</title></svg><title>yes</title>", "yes"),
        ("<title>a <![CDATA[& <b>]]> c &amp; d<!-- e --></title>f", "a & <b> c & d\n\nf"),
        ("<p>a<![CDATA[ &amp; <b> ]]>c</p><script><![CDATA[</script>]]></script>d", "a &amp; <b> c\n\nd"),
        ("<textarea><![CDATA[a\nb]]></textarea>", "a\nb"),
    ] {
        let page = page_with_root("html", body);
        assert_eq!(extractor.xhtml(page.as_bytes(), None, &url).text, expected, "{body}");
        assert_eq!(extractor.xhtml(body.as_bytes(), None, &url).text, expected, "{body}, without a root");
        let page = page.replacen("<html", &format!("<html xmlns='{NAMESPACE}'"), 1);
        assert_eq!(extractor.html(page.as_bytes(), None, &url).text, expected, "{body}, by its namespace");
    }
    let prefixed = "<h:head><h:title>a</h:title><h:script/></h:head><h:p>b</h:p><h:a href='c'>d</h:a>";
    let prefixed = page_with_root("h:html", prefixed).replacen("<h:html", &format!("<h:html xmlns:h='{NAMESPACE}'"), 1);
    let extracted = extractor.html(prefixed.as_bytes(), None, &url);
    assert_eq!((extracted.text, extracted.links), ("a\n\nb\n\nd", &[doc_id("http://example.com/c")][..]));
    // Without its declaration, or without its namespace, the page is HTML.
    for html in
        [page_with_root("html", "<script/>a</script>b"), format!("<html xmlns='{NAMESPACE}'><script/>a</script>b")]
    {
        assert_eq!(extractor.html(html.as_bytes(), None, &url).text, "b", "{html}");
    }
}

#[test]
fn links_are_references_to_pages() {
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
fn first_base_applies_to_the_whole_page() {
    let expected = targets(&["http://example.com/else/a", "http://example.com/else/b"]);
    assert_eq!(page("<base target=x><base href=/else/><a href=a><base href=/no/><a href=b>").1, expected);
    assert_eq!(page("<a href=a><base href='../else/c'><a href=b>").1, expected);
    assert_eq!(page("<base href=data:x><base href=/no/><a href=../else/a><a href=/else/b>").1, expected);
    assert_eq!(page("<base href=http://other.example><a href=#x><a href=page>").1.len(), 2);
}

#[test]
fn refresh_within_ten_seconds_is_a_redirect_and_a_link() {
    let mut extractor =
        Extractor::following(&RecordLimits::default(), &Follow { redirects: true, refresh: true, canonical: true });
    let url = CanonicalUrl::parse("http://example.com/dir/page").unwrap();
    let mut lead_of = |html: &str| {
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
        assert_eq!(lead_of(&html), (Some(next), vec![next]), "{content}");
    }
    for content in ["11;url=next", "5", "", "url=next", "0;url=", "0;url=page", "0;url=javascript:x", "0url=next"] {
        let html = format!("<meta http-equiv=refresh content='{content}'>");
        assert_eq!(lead_of(&html), (None, vec![]), "{content}");
    }
    assert_eq!(lead_of("<meta name=refresh content='0;url=next'><meta content='0;url=next'>"), (None, vec![]));
    assert_eq!(lead_of("<template><meta http-equiv=refresh content='0;url=next'></template>"), (None, vec![]));
    let late_base = "<meta http-equiv=refresh content='0;url=next'><base href=/dir/x/../>";
    assert_eq!(lead_of(late_base), (Some(next), vec![next]));

    assert_eq!(lead_of("<link rel='x Canonical' href=next>"), (Some(next), vec![]));
    assert_eq!(lead_of("<link rel=stylesheet href=next><link rel=canonical>"), (None, vec![]));
    assert_eq!(lead_of("<link rel=canonical href=page>"), (None, vec![]));
    let canonical_and_refresh = "<link rel=canonical href=other><meta http-equiv=refresh content='0;url=next'>";
    assert_eq!(lead_of(canonical_and_refresh), (Some(next), vec![next]));
    // The canonical URL is reported whether links follow it or not.
    let url = CanonicalUrl::parse("http://example.com/page").unwrap();
    let canonical = |html: &str| Extractor::new(&RecordLimits::default()).html(html.as_bytes(), None, &url).canonical;
    assert_eq!(canonical(canonical_and_refresh), Some(doc_id("http://example.com/other")));
    assert_eq!(canonical("<base href=/dir/><link rel=canonical href=x>"), Some(doc_id("http://example.com/dir/x")));
    assert_eq!(canonical("<link rel=canonical href=page>"), None);
}

#[test]
fn plain_text_retains_lines_and_is_not_parsed_as_markup() {
    let mut extractor = Extractor::new(&RecordLimits::default());
    let extracted = extractor.text(b"\xef\xbb\xbf a  <b>&amp;\r\nc\n\n \n\nhttp://example.com/ \n", Some("latin1"));
    assert_eq!(extracted.text, "a <b>&amp;\nc\n\nhttp://example.com/");
    assert_eq!((extracted.links, extracted.replaced), (&[][..], 0));
    assert_eq!(extractor.text(b"<meta charset=koi8-r>\xff", Some("utf-8")).replaced, 1);
}

#[test]
fn charset_of_the_page_determines_its_text() {
    let mut extractor = Extractor::new(&RecordLimits::default());
    let url = CanonicalUrl::parse("http://example.com/").unwrap();
    let body = b"<meta charset=shift_jis><p>\x93\xfa\x96{<a href=\x93\xfa>\x8c\xea";
    assert_eq!(extractor.html(body, None, &url).text, "日本語");
    assert_eq!(extractor.html(body, None, &url).links, [doc_id("http://example.com/%E6%97%A5")]);
    assert_eq!(extractor.html(b"<meta charset=shift_jis>\x93hi\x94", Some("windows-1252"), &url).text, "“hi”");
    assert_eq!(extractor.html(b"\xff\xfe<\0p\0>\0e\x01", Some("ascii"), &url).text, "ť");
}

#[test]
fn page_does_not_affect_the_next_one() {
    let mut extractor = Extractor::new(&RecordLimits { links: 1, ..RecordLimits::default() });
    let url = CanonicalUrl::parse("http://example.com/").unwrap();
    for _ in 0..2 {
        let hostile = extractor.html(b"<title>t</title><svg><pre><template><a href=x>", None, &url);
        assert_eq!((hostile.text, hostile.links.len()), ("t", 0));
        let usual_page = extractor.html(b"<base href=/b/><title>t</title><a href=x>a\nb<style/>c</style>", None, &url);
        assert_eq!((usual_page.text, usual_page.links), ("t\n\na b", &targets(&["http://example.com/b/x"])[..]));
        assert!(!usual_page.too_many_links);
        assert!(extractor.html(b"<a href=x><a href=y>", None, &url).too_many_links);
    }
}

fn seconds(html: &str) -> f64 {
    let mut extractor = Extractor::new(&RecordLimits::default());
    let url = CanonicalUrl::parse("http://example.com/").unwrap();
    let start = std::time::Instant::now();
    std::hint::black_box(extractor.html(html.as_bytes(), None, &url));
    start.elapsed().as_secs_f64()
}

/// Checks that a page of 8 times the size takes about 8 times as long. Quadratic time would take 64
/// times as long. A busy machine gets more tries.
fn assert_linear(case: &str, page: impl Fn(usize) -> String) {
    let (short_page, long) = (page(1), page(8));
    let ratios = std::iter::repeat_with(|| seconds(&long) / seconds(&short_page));
    assert!(ratios.take(20).any(|ratio| ratio < 24.0), "{case:?}");
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
    fn text_is_always_normalised(
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
    fn any_bytes_are_extracted(body in proptest::collection::vec(any::<u8>(), 0..300), charset in "utf-8|utf-16|big5|none") {
        let mut extractor = Extractor::new(&RecordLimits::default());
        let url = CanonicalUrl::parse("http://example.com/").unwrap();
        extractor.html(&body, Some(&charset), &url);
        extractor.text(&body, Some(&charset));
    }
}

#[test]
fn editions_in_other_languages_are_alternates_with_another_language_than_that_of_the_page() {
    let url = CanonicalUrl::parse("http://example.com/dir/page").unwrap();
    let mut extractor = Extractor::new(&RecordLimits::default());
    let mut editions = |html: &str| extractor.html(html.as_bytes(), Some("utf-8"), &url).editions.to_vec();
    let own_edition = "<link rel=alternate hreflang=en-GB href=page>";
    let other_edition = "<link HREF='/a?b&amp;c' REL='x Alternate' HrefLang='DE_de'>";
    let expected = targets(&["http://example.com/a?b&c"]);
    assert_eq!(editions(&format!("{own_edition}{other_edition}")), expected);
    assert_eq!(editions(&format!("<html lang=en>{other_edition}{other_edition}")), expected);
    assert_eq!(editions(&format!("<html xml:lang=en>{other_edition}")), expected);
    let german = "<link rel=alternate hreflang=de href=page>";
    for html in [
        other_edition.to_string(),
        format!("<html lang=de>{other_edition}"),
        format!("{german}{other_edition}"),
        format!("{own_edition}{german}{other_edition}"),
        format!("<template>{other_edition}</template>{own_edition}"),
        format!("{own_edition}<link rel=alternate hreflang=x-default href=a><link rel=alternate hreflang=en href=a>"),
        format!(
            "{own_edition}<link rel=alternate href=a title=hreflang><link rel=next hreflang=de href=a><a hreflang=de href=a>"
        ),
        format!("{own_edition}<link rel=alternate hreflang=de><link rel=alternate hreflang=de href=mailto:x>"),
    ] {
        assert!(editions(&html).is_empty(), "{html}");
    }
    // References before the base are relative to it, too.
    let based = editions(
        "<link rel=alternate hreflang=en href=../dir/page><link rel=alternate hreflang=de href=a><base href=/x/>",
    );
    assert_eq!(based, targets(&["http://example.com/x/a"]));
}

#[test]
fn the_transport_names_editions_of_pages_of_any_markup() {
    let url = CanonicalUrl::parse("http://example.com/dir/page").unwrap();
    let mut extractor = Extractor::new(&RecordLimits::default());
    let edition = |language: &str, url: &str| (language.to_string(), url.to_string());
    let mut page = crate::record::RawPage {
        mime: "text/html".into(),
        editions: vec![edition("en", "page"), edition("de", "a"), edition("x-default", "c")],
        ..crate::record::RawPage::new(
            url.as_str(),
            b"<base href=/x/><link rel=alternate hreflang=fr href=b><p>text".to_vec(),
            PageForm::Html,
        )
    };
    let expected = targets(&["http://example.com/dir/a", "http://example.com/x/b"]);
    assert_eq!(extractor.page(&page, &url).unwrap().unwrap().editions, expected);
    // Editions of one page are not reported for the next.
    page.editions.clear();
    assert!(extractor.page(&page, &url).unwrap().unwrap().editions.is_empty());
}
