//! Captured page as a stand-alone value, as it is read and as checkpoints store it. Many captures
//! are stored as [`crate::reading::capture_rows`].

use std::borrow::Cow;

use bincode::Options;
use serde::{Deserialize, Deserializer, Serialize};

use webtwin_base::ids::{DocId, FPrint, SimHash};
use webtwin_core::text::language::Language;
use webtwin_pages::record::Reason;

/// Media type of nearly all pages.
pub const HTML: &str = "text/html";

/// Maximum bytes of a media type that a capture stores.
const MIME_BYTES: usize = 254;

/// Returns a media type in the form that a capture stores: cut to the maximum length.
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

/// Maximum bytes of a title that a capture stores.
pub const TITLE_BYTES: usize = 160;

/// Returns a title in the form that a capture stores: words separated by single spaces, cut to
/// [`TITLE_BYTES`].
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

/// Captured page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Hash of the canonical URL.
    pub doc_id: DocId,
    /// Canonical URL.
    pub url: String,
    /// Fetch time in seconds since 1970; 0 if it is unknown.
    pub fetch_time: i64,
    /// HTTP status.
    pub status: u16,
    /// Media type. Nearly all pages have `text/html`, which takes no memory on the heap.
    #[serde(deserialize_with = "shared_mime")]
    pub mime: Cow<'static, str>,
    /// Title with folded white space, cut at [`TITLE_BYTES`].
    pub title: Box<str>,
    /// Language of the text.
    pub language: Language,
    /// Bytes of the body as fetched, after decoding.
    pub body_bytes: u64,
    /// Fingerprint of the body.
    pub body: FPrint,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Number of chunks, with repetitions.
    pub chunks: u32,
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    /// Simhash of the features of the text. `None` for a page with too few features, and until the
    /// crawl has been read if simhashes need weights of the whole crawl.
    pub simhash: Option<SimHash>,
    /// Projection `ΠD` of the text, with as many numbers as a signature has. Empty for a page
    /// without signatures.
    pub projected: Vec<i64>,
    /// Number of the input.
    pub source: u32,
    /// Number of the work item.
    pub item: u32,
    /// Offset at which the record starts.
    pub offset: u64,
    /// Length of the record.
    pub length: u64,
    /// Defects of the record that were repaired.
    pub repaired: Vec<Reason>,
    /// Worker whose local pages contain the fingerprints and links.
    pub worker: u32,
    /// Slot in the local pages of that worker.
    pub slot: u32,
    /// Place of the record with the content, for a revisit.
    pub original: Option<Box<RecordPlace>>,
    /// Places of the segments after the first, for a record in segments: numbers of inputs, and
    /// offsets.
    pub segments: Vec<(u32, u64)>,
    /// True if the capture is a conversion of another record, which may be a capture in the crawl,
    /// too.
    pub is_conversion: bool,
    /// 32 bits of a record id: of the converted record for a conversion, otherwise of the capture's
    /// own record. 0 if the id is not known.
    pub record: u32,
    /// Hash of the form and charset of the body. Text and links depend on both.
    pub variant: u16,
    /// Doc id of the canonical URL that the page declares, if it is another URL; otherwise 0.
    pub canonical: DocId,
    /// Fingerprint of a notice in the text that there is nothing at this URL
    /// ([`webtwin_core::text::notices`]); 0 if there is none.
    pub notice: u64,
}

/// Place of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPlace {
    /// Number of the input.
    pub source: u32,
    /// Offset at which the record starts.
    pub offset: u64,
    /// Canonical URL of the record.
    pub url: String,
}

/// Returns the codec of checkpoints: integers of fixed width, and an error if bytes follow the
/// value.
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
