//! Writes HTML. Markup comes from the program alone, and what was crawled can only become text.
//!
//! The types keep them apart: [`Html::markup`] takes `&'static str`, which no crawled text is, and everything else is escaped.
//! Bytes of a page may say what they like: `</script>`, `javascript:` or a right-to-left override change the words that are
//! shown, and nothing around them.
//!
//! A library of templates would escape as well, but takes any string for markup that somebody marks as such; here none can be.

use std::fmt::{Display, Write};

use data_encoding::BASE64;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// A piece of HTML in the making.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// Nothing yet.
    pub fn new() -> Html {
        Html::default()
    }

    /// Adds markup, as it stands.
    pub fn markup(&mut self, markup: &'static str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// Adds text of the program's own: figures and words. It is escaped.
    pub fn text(&mut self, text: impl Display) -> &mut Html {
        // Writing to a string cannot fail.
        let _ = write!(Escape(&mut self.0), "{text}");
        self
    }

    /// Adds text that was crawled: escaped, and set apart from what stands beside it, so that marks of direction in it end
    /// with it.
    pub fn crawled(&mut self, text: &str) -> &mut Html {
        self.markup("<bdi>").text(text).markup("</bdi>")
    }

    /// Adds an attribute, for markup that ends within a tag. The name must not be one that holds a URL or a script.
    pub fn attribute(&mut self, name: &'static str, value: impl Display) -> &mut Html {
        debug_assert!(!matches!(name, "href" | "src" | "style" | "srcdoc" | "action") && !name.starts_with("on"));
        self.markup(" ").markup(name).markup("=\"").text(value).markup("\"")
    }

    /// Adds a link to a crawled URL, of which `shown` is shown; without the link unless the URL is one of `http` or `https`.
    pub fn link(&mut self, url: &str, shown: &str) -> &mut Html {
        match is_web(url) {
            true => self.markup("<a rel=noreferrer href=\"").text(url).markup("\">"),
            false => self.markup("<bdi>"),
        };
        // The stylesheet sets such a link apart as it does a `bdi`.
        self.text(shown).markup(if is_web(url) { "</a>" } else { "</bdi>" })
    }

    /// Adds data for the script of the page.
    pub fn json(&mut self, id: &'static str, value: &impl Serialize) -> &mut Html {
        self.markup("<script type=\"application/json\" id=\"").markup(id).markup("\">");
        let json = serde_json::to_string(value).expect("a report is plain values");
        json.chars().for_each(|c| match c {
            // Outside of strings JSON has none of these.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(self.0, "\\u{:04x}", u32::from(c)),
            c => self.0.push(c),
        });
        self.markup("</script>")
    }

    /// Adds another piece.
    pub fn piece(&mut self, piece: &Html) -> &mut Html {
        self.0.push_str(&piece.0);
        self
    }

    /// Length so far, in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The HTML.
    pub fn finish(self) -> String {
        self.0
    }
}

/// The stylesheet of all pages that people look at: light, dark and print, from 420 to 1400 pixels.
pub const STYLE: &str = include_str!("style.css");

/// The source that a content security policy allows for an inline script or stylesheet of this text.
pub fn policy_hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(&Sha256::digest(text.as_bytes())))
}

/// Whether a URL may be a link.
pub fn is_web(url: &str) -> bool {
    let begins = |with: &str| url.get(..with.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(with));
    begins("http://") || begins("https://")
}

/// Escapes what is written to it, for text and for attributes between double quotes.
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
                // NUL is an error of syntax in HTML; none of them can be seen.
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
    fn what_was_crawled_becomes_text_whatever_it_says() {
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
        // The example of the standard, CSP level 3 section 2.3.1 (sha256 of its script).
        assert_eq!(policy_hash("doSomething();"), "'sha256-RFWPLDbv2BY+rCkDzsE+0fr8ylGr2R2faWMhq4lfEQc='");
    }

    proptest! {
        #[test]
        fn data_stay_what_they_were_and_within_their_script(value in ".*") {
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
