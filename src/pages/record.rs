//! Output of crawl readers: pages as fetched, and refused records.

use crate::warc::segments::WarcSegment;
use webtwin_base::error::Result;
use webtwin_job::{InputSettings, PrintedFormats};

/// Format of the body of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageForm {
    /// HTML as fetched, from which text and links must still be extracted.
    Html,
    /// XHTML as fetched, in which any element may close itself.
    Xhtml,
    /// Text that was already extracted (WET, a `text` column), without links.
    Text,
    /// A PDF document, from which text and links must still be extracted.
    Pdf,
    /// A PostScript program, whose text is its printed output.
    PostScript,
}

impl PageForm {
    /// Detects PDF or PostScript from the first bytes.
    pub(super) fn printed(bytes: &[u8]) -> Option<PageForm> {
        let marks = [(&b"%PDF-"[..], PageForm::Pdf), (b"%!PS", PageForm::PostScript)];
        marks.into_iter().find(|(mark, _)| bytes.starts_with(mark)).map(|(_, form)| form)
    }

    /// Returns the name of the form. Stored hashes depend on it.
    pub fn name(self) -> &'static str {
        match self {
            PageForm::Html => "html",
            PageForm::Xhtml => "xhtml",
            PageForm::Text => "text",
            PageForm::Pdf => "pdf",
            PageForm::PostScript => "postscript",
        }
    }

    /// True if the job accepts documents of this form as pages.
    pub(super) fn is_wanted(self, input: &InputSettings) -> bool {
        match self {
            PageForm::Html | PageForm::Xhtml | PageForm::Text => true,
            PageForm::Pdf => input.printed != PrintedFormats::Skip,
            PageForm::PostScript => input.printed == PrintedFormats::Text,
        }
    }
}

/// A page as read from a crawl, before its text is extracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPage {
    /// Target URL as in the crawl, not yet canonical.
    pub url: String,
    /// Fetch time in seconds since 1970; 0 if the crawl has none.
    pub fetch_time: i64,
    /// HTTP status; 200 if the crawl has none.
    pub status: u16,
    /// Media type in lower case without parameters; empty if absent. A value that is not a media
    /// type is kept as written.
    pub mime: String,
    /// Charset that the transport declares (HTTP header), if any.
    pub charset: Option<String>,
    /// Bytes of the page, after removal of transfer and content encodings.
    pub body: Vec<u8>,
    /// Format of `body`.
    pub form: PageForm,
    /// Position of the record in its file: byte offset (WARC, JSONL), row number from 0 (Parquet),
    /// or 0 (one page per file).
    pub offset: u64,
    /// Length of the record in its file, in bytes; 0 if unknown.
    pub length: u64,
    /// Reason of damage that was repaired while reading. The page is kept.
    pub repaired: Option<Reason>,
    /// Canonical URL that the transport declares (HTTP header `Link`), as written.
    pub canonical: Option<String>,
    /// Language and URL of editions of the page that the transport declares (HTTP header `Link`),
    /// as written.
    pub editions: Vec<(String, String)>,
    /// Hash of the network address from which the page was fetched; 0 if the crawl has none.
    pub address: u64,
    /// Identifiers by which revisit records may refer to the record of the page.
    pub names: RecordIds,
    /// Id of the record from which a WARC conversion record was made, in the form of
    /// [`RecordIds::id`].
    pub converted_from: Option<u64>,
    /// Digests of each form of the payload, in the form of [`RecordIds::payload`]. Empty unless
    /// [`DigestPolicy::Compute`](webtwin_job::DigestPolicy::Compute) asks for them.
    pub payloads: Vec<u64>,
}

impl RawPage {
    /// Makes a page with defaults for all other fields.
    pub fn new(url: impl Into<String>, body: Vec<u8>, form: PageForm) -> RawPage {
        RawPage {
            url: url.into(),
            fetch_time: 0,
            status: 200,
            mime: String::new(),
            charset: None,
            body,
            form,
            offset: 0,
            length: 0,
            repaired: None,
            canonical: None,
            editions: Vec::new(),
            address: 0,
            names: RecordIds::default(),
            converted_from: None,
            payloads: Vec::new(),
        }
    }
}

/// Hashes of identifiers by which other records may refer to a record, in addition to its URL and
/// date. An absent identifier is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RecordIds {
    /// Hash of `WARC-Record-ID`.
    pub id: u64,
    /// Hash of `WARC-Payload-Digest`.
    pub payload: u64,
}

/// Reason for a refusal, and details.
pub type Refusal = (Reason, String);

/// A record that was read and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRecord {
    /// Position of the record in its file; see [`RawPage::offset`].
    pub offset: u64,
    /// Reason why the record is not kept.
    pub reason: Reason,
    /// Details for users, such as a value or an expectation; never page text.
    pub detail: String,
    /// Number of bytes of the file that the record occupies, estimated within a compressed member;
    /// 0 if unknown.
    pub bytes: u64,
    /// Information about pages in a record that is not a page itself.
    pub means: Option<Box<NonPage>>,
}

impl RefusedRecord {
    /// Makes a refused record without information about other pages.
    pub fn new(offset: u64, reason: Reason, detail: impl Into<String>) -> RefusedRecord {
        RefusedRecord { offset, reason, detail: detail.into(), bytes: 0, means: None }
    }

    /// Appends the URL of the page to the details, unless they contain it, so that users who miss a
    /// page find the reason in the `rejected` table. Records that are never pages remain unchanged.
    pub fn naming(mut self, url: &str) -> RefusedRecord {
        let url = url.trim_start_matches('<').trim_end_matches('>');
        let is_page = !matches!(self.reason, Reason::NotAPageRecord | Reason::BadVersion | Reason::Revisit);
        if is_page && ["http://", "https://"].iter().any(|web| url.starts_with(web)) && !self.detail.contains(url) {
            let blank = if self.detail.is_empty() { "" } else { " " };
            self.detail = format!("{}{blank}{url}", self.detail);
        }
        self
    }
}

/// Information about pages in a record that is not a page itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NonPage {
    /// The content of a page is in another record.
    Revisit(Revisit),
    /// The URL of the record redirects to another.
    Redirect(Redirect),
    /// The record has a part of a page.
    Segment(WarcSegment),
}

/// A response that redirects to another URL (301, 302, 303, 307, 308).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Target URL as in the crawl, not yet canonical.
    pub url: String,
    /// Fetch time; see [`RawPage::fetch_time`].
    pub fetch_time: i64,
    /// Header `Location` as written: relative to `url`, or absolute.
    pub location: String,
    /// True if the redirect is permanent (301, 308).
    pub is_permanent: bool,
}

/// A WARC revisit record: its URL was fetched again, and another record holds the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisit {
    /// Target URL as in the crawl, not yet canonical.
    pub url: String,
    /// Fetch time; see [`RawPage::fetch_time`].
    pub fetch_time: i64,
    /// Length of the record; see [`RawPage::length`].
    pub length: u64,
    /// Damage of the record that was repaired while reading; see [`RawPage::repaired`].
    pub repaired: Option<Reason>,
    /// Hash of the network address; see [`RawPage::address`].
    pub address: u64,
    /// Id of this record, and digest of the payload that it does not repeat. There is no digest if
    /// the server only reported that the page has not changed.
    pub names: RecordIds,
    /// Hash of the record id of the original; 0 if the record does not name it.
    pub refers_to: u64,
    /// URL of the original; empty if the record does not name it.
    pub refers_to_url: String,
    /// Fetch time of the original; 0 if the record does not name it.
    pub refers_to_time: i64,
}

/// Result of a reader for one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadResult {
    /// A page that was kept.
    Page(RawPage),
    /// A record that is not a page or cannot be read.
    Refused(RefusedRecord),
}

/// Receiver of the results of a reader. An error, of storage or of the run, ends the reading.
pub type RecordSink<'a> = dyn FnMut(ReadResult) -> Result<()> + 'a;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $class:ident;)*) => {
        /// Reason why a record is not kept, or kind of damage that was repaired in a kept record.
        ///
        /// [`Reason::is_bad`] separates damage, which counts toward `--max-bad`, from records that
        /// are intact but not pages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All reasons; `docs/input.md` explains each.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];

            /// Returns the value in the column `rejected.reason`.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => $text),* }
            }

            /// True if the record is whole, but it or its URL is over a limit, as with a film. The
            /// bytes of such a record are no measure of the damage of its input.
            pub fn is_over_a_limit(self) -> bool {
                matches!(self, Reason::RecordTooLarge | Reason::DecodedTooLarge | Reason::UrlTooLong)
            }

            /// True if the record is damaged; false if it is well formed but not a wanted page.
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
    /// A WARC conversion record whose original is in the crawl.
    Conversion = "conversion", NoPage;
    /// Another URL has the same 64-bit doc id.
    DocIdCollision = "doc_id_collision", Bad;
    /// A well-formed WARC record without a page: warcinfo, request, metadata, dns, an unknown type,
    /// the continuation of another record, or a target that is not an http(s) URL.
    NotAPageRecord = "not_a_page_record", NoPage;
    /// A WARC revisit record whose original is not in the input, or is not a page.
    Revisit = "revisit", NoPage;
    /// A segment of a record whose other segments are not all in the input.
    Segmented = "segmented", NoPage;
    /// HTTP status other than 2xx.
    StatusNot2xx = "status_not_2xx", NoPage;
    /// Media type other than HTML, plain text and the types of documents that the job accepts.
    NotText = "not_text", NoPage;
    /// A PDF that cannot be read. If only a part cannot be read, the page is kept with the rest.
    PdfDamaged = "pdf_damaged", NoPage;
    /// A PDF that requires a password.
    PdfEncrypted = "pdf_encrypted", NoPage;
    /// A PDF without text, such as scanned pages or drawings.
    PdfNoText = "pdf_no_text", NoPage;
    /// A PDF that needs more processor time than `limits.printed_seconds`.
    PdfTooLong = "pdf_too_long", NoPage;
    /// A PDF that needs more memory than `limits.printed_bytes`, or has more text than
    /// `limits.record_bytes`.
    PdfTooLarge = "pdf_too_large", NoPage;
    /// A PostScript program that fails, prints no text, or exceeds the limits.
    PostScriptFailed = "postscript_failed", NoPage;
    /// A document that needs a program which is not available: Ghostscript, or the helper of this
    /// program.
    NoConverter = "no_converter", NoPage;
    /// The record has no target URL.
    NoTargetUri = "no_target_uri", Bad;
    /// The target is not an http(s) URL with a host, and [`Reason::NotAPageRecord`] does not apply.
    BadUrl = "bad_url", Bad;
    /// The target is a URL longer than 8 KiB.
    UrlTooLong = "url_too_long", Bad;
    /// The WARC version line is not 0.18, 1.0 or 1.1.
    BadVersion = "bad_version", Bad;
    /// A WARC header line has no colon, or the head does not end.
    BadHeader = "bad_header", Bad;
    /// A WARC or HTTP head that exceeds the limit.
    HeaderTooLarge = "header_too_large", Bad;
    /// A Content-Length that is missing, given twice, negative, not a number, or beyond the end of
    /// the file.
    BadContentLength = "bad_content_length", Bad;
    /// No digest of the record matches its content, although at least one is given. The page is
    /// kept.
    DigestMismatch = "digest_mismatch", Bad;
    /// The date cannot be parsed. The fetch time of the page is 0.
    BadDate = "bad_date", Bad;
    /// A record that exceeds `limits.record_bytes`.
    RecordTooLarge = "record_too_large", Bad;
    /// A payload that exceeds the limits after decoding.
    DecodedTooLarge = "decoded_too_large", Bad;
    /// A gzip or zstd member whose data is damaged.
    BadCompression = "bad_compression", Bad;
    /// A gzip member whose data decodes, but whose checksum or length is wrong.
    GzipCrc = "gzip_crc", Bad;
    /// A record, member or frame that is cut off by the end of the file, or encoded content that
    /// ends early.
    Truncated = "truncated", Bad;
    /// Bytes between records that belong to no record.
    Garbage = "garbage", Bad;
    /// The HTTP status line is missing.
    BadHttpStatus = "bad_http_status", Bad;
    /// An HTTP head that never ends.
    HttpHeaderUnterminated = "http_header_unterminated", Bad;
    /// A damaged chunked body.
    BadChunk = "bad_chunk", Bad;
    /// A content encoding with an unknown name, or a value that is not the name of one. The body is
    /// used undecoded, unless it is not text.
    UnknownEncoding = "unknown_encoding", Bad;
    /// More stacked content encodings than the limit allows.
    TooManyEncodings = "too_many_encodings", Bad;
    /// The body is not in the content encoding that the record declares. It is used undecoded.
    EncodingLie = "encoding_lie", Bad;
    /// A line of JSONL that is not a JSON object.
    BadJson = "bad_json", Bad;
    /// A line that is not UTF-8.
    NotUtf8 = "not_utf8", Bad;
    /// A row without a required field, or with a field of the wrong type.
    BadField = "bad_field", Bad;
    /// A part of a Parquet file that cannot be decoded.
    BadParquet = "bad_parquet", Bad;
    /// More links than `limits.links`. The first ones are kept.
    TooManyLinks = "too_many_links", Bad;
}
