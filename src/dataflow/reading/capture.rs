//! A captured page by itself, as it is read and as records have it; rows of them are [`crate::reading::capture_rows`].

use std::borrow::Cow;

use bincode::Options;
use serde::{Deserialize, Deserializer, Serialize};

use webtwin_base::ids::{DocId, FPrint, SimHash};
use webtwin_core::text::language::Language;
use webtwin_pages::record::Reason;

/// Media type of nearly all pages.
pub const HTML: &str = "text/html";

/// Most bytes of a media type that a capture holds.
const MIME_BYTES: usize = 254;

/// A media type as a capture holds it.
pub fn mime(name: &str) -> Cow<'static, str> {
    if name == HTML {
        return Cow::Borrowed(HTML);
    }
    let end = (0..=name.len().min(MIME_BYTES)).rfind(|&at| name.is_char_boundary(at));
    Cow::Owned(name[..end.unwrap_or(0)].to_string())
}

fn shared_mime<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Cow<'static, str>, D::Error> {
    String::deserialize(from).map(|name| mime(&name))
}

/// Most bytes of a title that a capture holds.
pub const TITLE_BYTES: usize = 160;

/// A title as a capture holds it: its words, a space between each, as many bytes of them as there is room for.
pub fn short_title(title: &str) -> Box<str> {
    let mut short = String::new();
    for word in title.split_whitespace() {
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
        if short.len() > TITLE_BYTES {
            let end = (0..=TITLE_BYTES).rfind(|&at| short.is_char_boundary(at));
            short.truncate(end.unwrap_or(0));
            break;
        }
    }
    short.truncate(short.trim_end().len());
    short.into_boxed_str()
}

/// A captured page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Hash of the canonical URL.
    pub doc_id: DocId,
    /// Canonical URL.
    pub url: String,
    /// Seconds since 1970; 0 when unknown.
    pub fetch_time: i64,
    /// HTTP status.
    pub status: u16,
    /// Media type; nearly all pages have `text/html`, which takes no memory of its own.
    #[serde(deserialize_with = "shared_mime")]
    pub mime: Cow<'static, str>,
    /// Its title: white space folded, cut at [`TITLE_BYTES`].
    pub title: Box<str>,
    /// Language of its text.
    pub language: Language,
    /// Bytes as fetched, decoded.
    pub body_bytes: u64,
    /// Fingerprint of these bytes.
    pub body: FPrint,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Chunks, each as often as it stands on the page.
    pub chunks: u32,
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    /// Simhash of the features of its text; `None` for a page with too few of them, and as long as it waits for the crawl.
    pub simhash: Option<SimHash>,
    /// `ΠD` of its text, of as many numbers as signatures have; none for a page without signatures.
    pub projected: Vec<i64>,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Where its record starts.
    pub offset: u64,
    /// Length of the record.
    pub length: u64,
    /// What was mended in it.
    pub mended: Vec<Reason>,
    /// Worker on whose shelf the fingerprints and links are.
    pub worker: u32,
    /// Slot on that shelf.
    pub slot: u32,
    /// For a revisit, where the record with its content is.
    pub original: Option<Box<Place>>,
    /// For a record in segments, where those after the first are: numbers of inputs, and offsets.
    pub segments: Vec<(u32, u64)>,
    /// True if it was made of another record, of which a capture may be in the crawl.
    pub is_conversion: bool,
    /// 32 bits of the id of its record, for a conversion of the record it was made of; 0 where that is not known.
    pub record: u32,
    /// Hash of the form and charset of its bytes, of which its text and links depend, too.
    pub variant: u16,
    /// Doc id of the URL that the page calls canonical, if that is another; 0 for none.
    pub canonical: DocId,
    /// Notice in its text that there is nothing at its URL ([`webtwin_core::text::notices`]); 0 for none.
    pub notice: u64,
}

/// Where a record is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Number of the input.
    pub source: u32,
    /// Where the record starts.
    pub offset: u64,
    /// Its canonical URL.
    pub url: String,
}

/// Whole numbers of fixed width; nothing may follow what is read.
pub(crate) fn codec() -> impl Options {
    bincode::DefaultOptions::new().with_fixint_encoding()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_folded_and_cut_between_characters() {
        assert_eq!(&*short_title(" A\n\ttitle\u{a0}of it "), "A title of it");
        assert_eq!(&*short_title(&"é".repeat(10_000)), "é".repeat(TITLE_BYTES / 2));
        assert_eq!(short_title(&format!("a{}", "é".repeat(100))).len(), TITLE_BYTES - 1);
        assert_eq!(&*short_title(&format!("{} b", "a".repeat(TITLE_BYTES))), "a".repeat(TITLE_BYTES));
        assert_eq!(&*short_title(""), "");
    }
}
