//! What a crawl reader hands on: pages as fetched, and records it had to refuse.

use crate::error::Result;

/// The form in which a page came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// HTML as fetched; text and links are to be extracted.
    Html,
    /// Text that somebody extracted already (WET, a `text` column); it has no links.
    Text,
}

/// A page as read from a crawl, before its text is extracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPage {
    /// Target URL as the crawl has it, not yet canonical.
    pub url: String,
    /// Seconds since 1970 at which it was fetched; 0 when the crawl does not say.
    pub fetch_time: i64,
    /// HTTP status; 200 when the crawl does not say.
    pub status: u16,
    /// Media type without parameters, lower case; empty when not said.
    pub mime: String,
    /// Charset of the transport (HTTP header), if it names one.
    pub charset: Option<String>,
    /// The page's bytes, transfer and content encodings removed.
    pub body: Vec<u8>,
    /// HTML or text.
    pub form: Form,
    /// Where the record starts in its file: byte offset (WARC), line number from 1 (JSONL), row number (Parquet), 0 (a file a page).
    pub offset: u64,
    /// Length of the record in its file, in bytes; 0 when unknown.
    pub length: u64,
    /// Damage that was mended while reading, in the words of [`Reason`]; the page is kept.
    pub mended: Option<Reason>,
}

/// A record that was read and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// As [`RawPage::offset`].
    pub offset: u64,
    /// Why.
    pub reason: Reason,
    /// Particulars for a person: a value, an expectation; never page text.
    pub detail: String,
}

/// What a reader finds, one call a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A page.
    Page(RawPage),
    /// A record that is no page or cannot be read.
    Refused(Refused),
}

/// Takes what a reader finds. An error (of storage, or of the run) ends the reading.
pub type Sink<'a> = dyn FnMut(Found) -> Result<()> + 'a;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $class:ident;)*) => {
        /// Why a record is not kept, or what was mended in one that is.
        ///
        /// [`Reason::is_bad`] tells damage, which counts toward `--max-bad`, from records that are simply no pages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason there is, in the order of the table in the docs.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];

            /// The word in the `rejected` table.
            pub fn word(self) -> &'static str {
                match self { $(Reason::$name => $text),* }
            }

            /// Whether the record is damaged, as opposed to well formed but no page of interest.
            pub fn is_bad(self) -> bool {
                match self { $(Reason::$name => matches!(Class::$class, Class::Bad)),* }
            }
        }
    };
}

enum Class {
    Bad,
    NoPage,
}

reasons! {
    /// A later capture of the same URL is in the crawl.
    OlderCapture = "older_capture", NoPage;
    /// Another URL has the same 64-bit doc id.
    DocIdCollision = "doc_id_collision", Bad;
    /// A well-formed WARC record that holds no page: warcinfo, request, metadata, dns, a continuation, an unknown type.
    NotAPageRecord = "not_a_page_record", NoPage;
    /// A WARC revisit record: its payload is in another record.
    Revisit = "revisit", NoPage;
    /// HTTP status other than 2xx.
    StatusNot2xx = "status_not_2xx", NoPage;
    /// Media type that is neither HTML nor plain text.
    NotText = "not_text", NoPage;
    /// No target URL.
    NoTargetUri = "no_target_uri", Bad;
    /// The target URL is no http(s) URL with a host.
    BadUrl = "bad_url", Bad;
    /// The WARC version line is not 0.18, 1.0 or 1.1.
    BadVersion = "bad_version", Bad;
    /// A WARC header line has no colon, or the head does not end.
    BadHeader = "bad_header", Bad;
    /// A WARC or HTTP head over the limit.
    HeaderTooLarge = "header_too_large", Bad;
    /// Content-Length missing, doubled, negative, no number or beyond the limit of its file.
    BadContentLength = "bad_content_length", Bad;
    /// The date cannot be read; the page counts as fetched at time 0.
    BadDate = "bad_date", Bad;
    /// A record over `limits.record_bytes`.
    RecordTooLarge = "record_too_large", Bad;
    /// A payload over the limits once decoded.
    DecodedTooLarge = "decoded_too_large", Bad;
    /// A gzip or zstd member whose data is damaged.
    BadCompression = "bad_compression", Bad;
    /// A gzip member whose checksum or length is wrong though its data decodes.
    GzipCrc = "gzip_crc", Bad;
    /// A gzip member or record that ends with the file.
    Truncated = "truncated", Bad;
    /// Bytes between records that belong to none.
    Garbage = "garbage", Bad;
    /// No HTTP status line.
    BadHttpStatus = "bad_http_status", Bad;
    /// An HTTP head that never ends.
    HttpHeaderUnterminated = "http_header_unterminated", Bad;
    /// A damaged chunked body.
    BadChunk = "bad_chunk", Bad;
    /// A content encoding nobody knows.
    UnknownEncoding = "unknown_encoding", Bad;
    /// More stacked content encodings than allowed.
    TooManyEncodings = "too_many_encodings", Bad;
    /// A content encoding is named, but the body is not so encoded; the body is taken as it is.
    EncodingLie = "encoding_lie", Bad;
    /// A line of JSONL that is no JSON object.
    BadJson = "bad_json", Bad;
    /// A line that is not UTF-8.
    NotUtf8 = "not_utf8", Bad;
    /// A row without the field, or with a field of the wrong type.
    BadField = "bad_field", Bad;
    /// A part of a Parquet file that cannot be decoded.
    BadParquet = "bad_parquet", Bad;
    /// More links than `limits.links`; the first ones are kept.
    TooManyLinks = "too_many_links", Bad;
}
