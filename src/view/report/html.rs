//! HTML writer. Markup comes from the program only; crawled text is always escaped.
//!
//! The types separate the two: [`Html::markup`] takes `&'static str`, which crawled text cannot be,
//! and everything else is escaped. Whatever a page contains (`</script>`, `javascript:`, a
//! right-to-left override) can change the displayed text, and nothing around it.
//!
//! A template library would escape too, but accepts any string as markup that a caller marks as
//! such. Here no such way exists.

use std::fmt::{Display, Write};

use data_encoding::BASE64;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Piece of HTML under construction.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// Creates an empty piece.
    pub fn new() -> Html {
        Html::default()
    }

    /// Appends markup unchanged.
    pub fn markup(&mut self, markup: &'static str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// Appends escaped text of the program: figures and words.
    pub fn text(&mut self, text: impl Display) -> &mut Html {
        // Writing to a string cannot fail.
        let _ = write!(Escape(&mut self.0), "{text}");
        self
    }

    /// Appends crawled text: escaped and isolated, so that direction marks in it end with it.
    pub fn crawled(&mut self, text: &str) -> &mut Html {
        self.markup("<bdi>").text(text).markup("</bdi>")
    }

    /// Appends an attribute, for markup that ends within a tag. The name must not be one whose
    /// value is a URL or a script.
    pub fn attribute(&mut self, name: &'static str, value: impl Display) -> &mut Html {
        debug_assert!(!matches!(name, "href" | "src" | "style" | "srcdoc" | "action") && !name.starts_with("on"));
        self.markup(" ").markup(name).markup("=\"").text(value).markup("\"")
    }

    /// Appends a link to a crawled URL with the text `label`. Only the text is appended unless the
    /// scheme is `http` or `https`.
    pub fn link(&mut self, url: &str, label: &str) -> &mut Html {
        match is_web(url) {
            true => self.markup("<a rel=noreferrer href=\"").text(url).markup("\">"),
            false => self.markup("<bdi>"),
        };
        // The stylesheet isolates such a link like a `bdi` element.
        self.text(label).markup(if is_web(url) { "</a>" } else { "</bdi>" })
    }

    /// Appends data for the script of the page.
    pub fn json(&mut self, id: &'static str, value: &impl Serialize) -> &mut Html {
        self.markup("<script type=\"application/json\" id=\"").markup(id).markup("\">");
        let json = serde_json::to_string(value).expect("a report is plain values");
        json.chars().for_each(|c| match c {
            // In JSON these characters occur only within strings, so they can be escaped.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(self.0, "\\u{:04x}", u32::from(c)),
            c => self.0.push(c),
        });
        self.markup("</script>")
    }

    /// Appends another piece.
    pub fn piece(&mut self, piece: &Html) -> &mut Html {
        self.0.push_str(&piece.0);
        self
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the HTML.
    pub fn finish(self) -> String {
        self.0
    }
}

/// Stylesheet of all pages: light, dark and print, for widths from 420 to 1400 pixels.
pub const STYLE: &str = include_str!("style.css");

/// Returns the source expression with which a content security policy allows an inline script or
/// stylesheet with this text.
pub fn policy_hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(&Sha256::digest(text.as_bytes())))
}

/// True if a URL may become a link.
pub fn is_web(url: &str) -> bool {
    let starts_with = |with: &str| url.get(..with.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(with));
    starts_with("http://") || starts_with("https://")
}

/// Writer that escapes text for elements and for attributes in double quotes.
struct Escape<'o>(&'o mut String);

impl Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\n' | '\t' => self.0.push(c),
                // NUL is a syntax error in HTML; other control characters are invisible.
                c if c.is_control() => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> String {
        let mut html = Html::new();
        html.text(text);
        html.finish()
    }

    #[test]
    fn crawled_content_is_always_escaped_as_text() {
        assert_eq!(
            text("</script><img src=x onerror=\"a()\">&"),
            "&lt;/script&gt;&lt;img src=x onerror=&quot;a()&quot;&gt;&amp;"
        );
        assert_eq!(text("a\0b\u{1b}\u{85}\n"), "a\u{fffd}b\u{fffd}\u{fffd}\n");
        let mut html = Html::new();
        html.markup("<td").attribute("title", "\"><script>").markup(">").crawled("\u{202e}x").markup("</td>");
        assert_eq!(html.finish(), "<td title=\"&quot;&gt;&lt;script&gt;\"><bdi>\u{202e}x</bdi></td>");
    }

    #[test]
    fn only_urls_of_the_web_become_links() {
        let link = |url: &str| {
            let mut html = Html::new();
            html.link(url, "x");
            html.finish()
        };
        assert_eq!(link("HTTPS://a/?b&\"c"), "<a rel=noreferrer href=\"HTTPS://a/?b&amp;&quot;c\">x</a>");
        for url in ["javascript:alert(1)", " http://a/", "data:text/html,x", "http:/a", "", "é", "//a/"] {
            assert_eq!(link(url), "<bdi>x</bdi>", "{url}");
        }
    }

    #[test]
    fn a_script_with_its_hash_is_allowed_by_the_policy() {
        // Example of the standard, CSP level 3 section 2.3.1 (sha256 of its script).
        assert_eq!(policy_hash("doSomething();"), "'sha256-RFWPLDbv2BY+rCkDzsE+0fr8ylGr2R2faWMhq4lfEQc='");
    }

    proptest! {
        #[test]
        fn data_are_unchanged_and_stay_within_their_script(value in ".*") {
            let mut html = Html::new();
            html.json("data", &value);
            let html = html.finish();
            let inner = html.strip_prefix("<script type=\"application/json\" id=\"data\">").unwrap();
            let inner = inner.strip_suffix("</script>").unwrap();
            let forbidden = ['<', '>', '&', '\u{2028}', '\u{2029}'];
            prop_assert!(!inner.contains(forbidden));
            prop_assert_eq!(serde_json::from_str::<String>(inner).unwrap(), value);
        }

        #[test]
        fn no_text_ends_its_element_or_attribute(value in ".*") {
            prop_assert!(!text(&value).contains(['<', '>', '"']));
        }
    }
}
