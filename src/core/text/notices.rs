//! Notices of missing pages, on pages that a server sends with status 200: soft 404s.
//!
//! Such a page is the template of its site around a line such as *The page /abc does not exist*.
//! The line names the requested URL, so the pages of a thousand wrong URLs have a thousand texts. A
//! *notice* is the hash of the first line of a short text that contains one of [`PHRASES`], without
//! words of the page's own URL and without words with a digit. It is equal on all these pages.
//!
//! A notice alone is no proof, because a manual may describe a file with such a line. Pages with a
//! notice are placeholders only if many texts of one host have it and few own chunks otherwise
//! ([`crate::overlap::views`]).

use std::collections::HashSet;

use memchr::memmem::Finder;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum bytes of a text that can have a notice.
pub const SHORT_TEXT: usize = 4096;

/// Phrases that sites use on pages in place of missing ones, in lower case.
pub const PHRASES: [&str; 34] = [
    "not found",
    "not exist",
    "n't exist",
    "no such",
    "no longer exist",
    "no longer available",
    "be found",
    "n't find",
    "not find",
    "no page",
    "error 404",
    "404 error",
    "nicht gefunden",
    "nicht vorhanden",
    "existiert nicht",
    "introuvable",
    "existe pas",
    "no encontrad",
    "no existe",
    "não encontrad",
    "não existe",
    "non trovat",
    "non esiste",
    "niet gevonden",
    "bestaat niet",
    "ikke fundet",
    "ikke funnet",
    "hittades inte",
    "nie znalezion",
    "nie istnieje",
    "не найден",
    "не существует",
    "見つかりません",
    "不存在",
];

/// Extractor of the notice of one text after another, which reuses its buffers.
#[derive(Debug)]
pub struct Notices {
    phrases: Vec<Finder<'static>>,
    lower: String,
    url: String,
}

impl Default for Notices {
    fn default() -> Notices {
        let phrases = PHRASES.iter().map(|phrase| Finder::new(*phrase)).collect();
        Notices { phrases, lower: String::new(), url: String::new() }
    }
}

impl Notices {
    /// Returns the notice of the text of a page with the given URL, or 0 if it has none or more
    /// than [`SHORT_TEXT`] bytes.
    ///
    /// # Examples
    /// ```
    /// use webtwin_core::text::notices::Notices;
    ///
    /// let mut notices = Notices::default();
    /// let one = notices.notice("Shop\nThe page /cart was not found.", "http://a.example/cart");
    /// let other = notices.notice("Shop\nThe page /tea/7 was not found.", "http://a.example/tea/7");
    /// assert!(one == other && one != 0);
    /// assert_eq!(notices.notice("Shop\nTea, 7 g", "http://a.example/tea"), 0);
    /// ```
    ///
    /// # Cost
    /// A search for each phrase, for short texts only.
    pub fn notice(&mut self, text: &str, url: &str) -> u64 {
        if text.len() > SHORT_TEXT {
            return 0;
        }
        lower_into(&mut self.lower, text);
        let first = self.phrases.iter().filter_map(|phrase| phrase.find(self.lower.as_bytes())).min();
        let Some(at) = first else { return 0 };
        let start = self.lower[..at].rfind('\n').map_or(0, |before| before + 1);
        let line = &self.lower[start..];
        let line = &line[..line.find('\n').unwrap_or(line.len())];
        lower_into(&mut self.url, url);
        let url_words: HashSet<&str> = words(&self.url).collect();
        let mut message = String::new();
        for word in words(line).filter(|word| !url_words.contains(word) && !word.contains(|c: char| c.is_numeric())) {
            message.push_str(word);
            message.push(' ');
        }
        xxh3_64(message.as_bytes()).max(1)
    }
}

fn lower_into(lower: &mut String, text: &str) {
    lower.clear();
    let mut remaining = text;
    while let Some(other) = remaining.bytes().position(|byte| !byte.is_ascii()) {
        push_lower(lower, &remaining[..other]);
        let ascii_start =
            remaining[other..].find(|c: char| c.is_ascii()).map_or(remaining.len(), |length| other + length);
        lower.extend(remaining[other..ascii_start].chars().flat_map(char::to_lowercase));
        remaining = &remaining[ascii_start..];
    }
    push_lower(lower, remaining);
}

/// Appends an ASCII text in lower case.
fn push_lower(lower: &mut String, ascii: &str) {
    let start = lower.len();
    lower.push_str(ascii);
    lower[start..].make_ascii_lowercase();
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_case_is_that_of_each_character() {
        for text in ["", "Not Found", "Über-uns", "ÄÖ A ß İx", "日本 ABC Кот"] {
            let mut lower = String::from("x");
            lower_into(&mut lower, text);
            assert_eq!(lower, text.chars().flat_map(char::to_lowercase).collect::<String>());
        }
    }

    #[test]
    fn pages_with_the_same_phrase_about_their_urls_have_one_notice() {
        let mut notices = Notices::default();
        let mut notice_of = |text: &str, url: &str| notices.notice(text, url);
        let topic_notice = notice_of("Wiki\n\nThis topic does not exist yet\nTrace: a", "http://w.example/?id=a");
        assert_eq!(
            topic_notice,
            notice_of("Wiki\n\nThis topic does not exist yet\nTrace: b", "http://w.example/?id=b")
        );
        assert_ne!(topic_notice, notice_of("Wiki\n\nThis file does not exist", "http://w.example/?id=a"));
        let named_notice = notice_of("Oops: Über-uns konnte nicht gefunden werden", "http://w.example/über-uns");
        assert_eq!(named_notice, notice_of("Oops: 404 konnte nicht gefunden werden", "http://w.example/x"));
        assert_ne!(named_notice, 0);
    }

    #[test]
    fn long_texts_and_texts_without_a_phrase_have_none() {
        let mut notices = Notices::default();
        assert_eq!(notices.notice("All is well.", "http://a.example/"), 0);
        assert_eq!(notices.notice("", "http://a.example/"), 0);
        let long_text = format!("not found\n{}", "word ".repeat(SHORT_TEXT / 5));
        assert_eq!(notices.notice(&long_text, "http://a.example/"), 0);
    }

    #[test]
    fn phrases_are_in_lower_case() {
        assert!(PHRASES.iter().all(|phrase| phrase.to_lowercase() == **phrase));
    }
}
