//! The output of crawl readers: pages as fetched, and records that were refused.

use crate::warc::segments::Segment;
use webtwin_base::error::Result;
use webtwin_job::{Input, Printed};

/// The form in which a page came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// HTML as fetched; text and links are to be extracted.
    Html,
    /// XHTML as fetched, in which any element may close itself.
    Xhtml,
    /// Text that was extracted already (WET, a `text` column); it has no links.
    Text,
    /// A PDF document; its text and links are to be extracted.
    Pdf,
    /// A PostScript program; its text is what it prints.
    PostScript,
}

impl Form {
    /// The form of bytes that are made for paper, by their first ones.
    pub(super) fn printed(bytes: &[u8]) -> Option<Form> {
        let marks = [(&b"%PDF-"[..], Form::Pdf), (b"%!PS", Form::PostScript)];
        marks.into_iter().find(|(mark, _)| bytes.starts_with(mark)).map(|(_, form)| form)
    }

    /// Returns the name of the form, of which recorded hashes depend.
    pub fn name(self) -> &'static str {
        match self {
            Form::Html => "html",
            Form::Xhtml => "xhtml",
            Form::Text => "text",
            Form::Pdf => "pdf",
            Form::PostScript => "postscript",
        }
    }

    /// Whether the job takes documents of this form for pages.
    pub(super) fn is_wanted(self, input: &Input) -> bool {
        match self {
            Form::Html | Form::Xhtml | Form::Text => true,
            Form::Pdf => input.printed != Printed::Skip,
            Form::PostScript => input.printed == Printed::Text,
        }
    }
}

/// A page as read from a crawl, before its text is extracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPage {
    /// Target URL as in the crawl, not yet canonical.
    pub url: String,
    /// Fetch time in seconds since 1970; 0 if the crawl does not say.
    pub fetch_time: i64,
    /// HTTP status; 200 if the crawl does not say.
    pub status: u16,
    /// Media type without parameters, lower case; empty if not given, and as written where it is none.
    pub mime: String,
    /// Charset of the transport (HTTP header), if it names one.
    pub charset: Option<String>,
    /// The page's bytes, transfer and content encodings removed.
    pub body: Vec<u8>,
    /// Whether `body` is HTML or text.
    pub form: Form,
    /// Where the record starts in its file: byte offset (WARC, JSONL), row number from 0 (Parquet), 0 (one page per
    /// file).
    pub offset: u64,
    /// Length of the record in its file, in bytes; 0 if unknown.
    pub length: u64,
    /// Damage that was repaired while reading, as a [`Reason`]; the page is kept.
    pub mended: Option<Reason>,
    /// URL that the transport calls canonical (HTTP header `Link`), as written.
    pub canonical: Option<String>,
    /// Language and URL of editions of the page that the transport names (HTTP header `Link`), as written.
    pub editions: Vec<(String, String)>,
    /// What stands for the address that the page came from; 0 if the crawl does not say.
    pub address: u64,
    /// By what revisit records may refer to the page's record.
    pub names: Names,
    /// For a WARC conversion record, the id of the record it was made of, as [`Names::id`].
    pub converted_from: Option<u64>,
    /// As [`Names::payload`], of each form of the payload, where [`Digests::Compute`](webtwin_job::Digests::Compute) asks for it.
    pub payloads: Vec<u64>,
}

impl RawPage {
    /// A page of which nothing else is known.
    pub fn new(url: impl Into<String>, body: Vec<u8>, form: Form) -> RawPage {
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
            mended: None,
            canonical: None,
            editions: Vec::new(),
            address: 0,
            names: Names::default(),
            converted_from: None,
            payloads: Vec::new(),
        }
    }
}

/// By what a record may be referred to, beside its URL and date; each as a hash, 0 where it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Names {
    /// `WARC-Record-ID`.
    pub id: u64,
    /// `WARC-Payload-Digest`.
    pub payload: u64,
}

/// Why something is refused, with details.
pub type Refusal = (Reason, String);

/// A record that was read and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// As [`RawPage::offset`].
    pub offset: u64,
    /// Why it is not kept.
    pub reason: Reason,
    /// Details for people: a value, an expectation; never page text.
    pub detail: String,
    /// Bytes of the file that it stands for, estimated within a compressed member; 0 if unknown.
    pub bytes: u64,
    /// What the record says of pages, although it is none.
    pub means: Option<Box<Means>>,
}

impl Refused {
    /// A record that says nothing of any page.
    pub fn new(offset: u64, reason: Reason, detail: impl Into<String>) -> Refused {
        Refused { offset, reason, detail: detail.into(), bytes: 0, means: None }
    }

    /// The same, with the URL of the page that it would have been at the end of its details, unless they name it: so that who
    /// misses the page finds out why it is not there.
    pub fn naming(mut self, url: &str) -> Refused {
        let url = url.trim_start_matches('<').trim_end_matches('>');
        let is_page = !matches!(self.reason, Reason::NotAPageRecord | Reason::BadVersion | Reason::Revisit);
        if is_page && ["http://", "https://"].iter().any(|web| url.starts_with(web)) && !self.detail.contains(url) {
            let blank = if self.detail.is_empty() { "" } else { " " };
            self.detail = format!("{}{blank}{url}", self.detail);
        }
        self
    }
}

/// What a record that is no page says of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Means {
    /// A page is what another record holds.
    Revisit(Revisit),
    /// Its URL leads to another.
    Redirect(Redirect),
    /// It has a part of a page.
    Segment(Segment),
}

/// A response that leads to another URL (301, 302, 303, 307, 308).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Target URL as in the crawl, not yet canonical.
    pub url: String,
    /// As [`RawPage::fetch_time`].
    pub fetch_time: i64,
    /// `Location`, as written: relative to `url`, or absolute.
    pub location: String,
    /// True if it holds for good (301, 308).
    pub is_permanent: bool,
}

/// A WARC revisit record: its URL was fetched again, and another record holds what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revisit {
    /// Target URL as in the crawl, not yet canonical.
    pub url: String,
    /// As [`RawPage::fetch_time`].
    pub fetch_time: i64,
    /// As [`RawPage::length`].
    pub length: u64,
    /// As [`RawPage::address`].
    pub address: u64,
    /// Its own record id, and the digest of the payload that it does not repeat; none where the server said no more than
    /// that nothing has changed.
    pub names: Names,
    /// Record id of the original, as a hash; 0 if it is not named.
    pub refers_to: u64,
    /// URL of the original; empty if it is not named.
    pub refers_to_url: String,
    /// Fetch time of the original; 0 if it is not named.
    pub refers_to_time: i64,
}

/// One result of a reader, per record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A page that was kept.
    Page(RawPage),
    /// A record that is not a page or cannot be read.
    Refused(Refused),
}

/// Receives the results of a reader. An error (of storage, or of the run) ends the reading.
pub type Sink<'a> = dyn FnMut(Found) -> Result<()> + 'a;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $class:ident;)*) => {
        /// Why a record is not kept, or which damage was repaired in one that is.
        ///
        /// [`Reason::is_bad`] tells damage, which counts toward `--max-bad`, from records that are simply not pages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason; `docs/input.md` explains them all.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];

            /// The word in the column `rejected.reason`.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => $text),* }
            }

            /// Whether the record is damaged, rather than well formed but not a page of interest.
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
    /// A well-formed WARC record that holds no page: warcinfo, request, metadata, dns, an unknown type, the
    /// continuation of another record,
    /// or a target that is no http(s) URL.
    NotAPageRecord = "not_a_page_record", NoPage;
    /// A WARC revisit record whose original is not in the input, or is no page.
    Revisit = "revisit", NoPage;
    /// A segment of a record, of which others are not in the input.
    Segmented = "segmented", NoPage;
    /// HTTP status other than 2xx.
    StatusNot2xx = "status_not_2xx", NoPage;
    /// Media type that is neither HTML nor plain text, nor that of documents the job wants.
    NotText = "not_text", NoPage;
    /// A PDF that cannot be read; or one of which a part cannot, and the page is kept with the rest.
    PdfDamaged = "pdf_damaged", NoPage;
    /// A PDF that asks for a password.
    PdfEncrypted = "pdf_encrypted", NoPage;
    /// A PDF without text: scanned pages, drawings.
    PdfNoText = "pdf_no_text", NoPage;
    /// A PDF that would take more processor time than `limits.printed_seconds`.
    PdfTooLong = "pdf_too_long", NoPage;
    /// A PDF that would take more memory than `limits.printed_bytes`, or has more text than `limits.record_bytes`.
    PdfTooLarge = "pdf_too_large", NoPage;
    /// A PostScript program that fails, prints no text, or goes beyond the limits.
    PostScriptFailed = "postscript_failed", NoPage;
    /// A document that needs a program which is not there: Ghostscript, or our own.
    NoConverter = "no_converter", NoPage;
    /// The record has no target URL.
    NoTargetUri = "no_target_uri", Bad;
    /// The target is not an http(s) URL with a host, and not that of a [`Reason::NotAPageRecord`].
    BadUrl = "bad_url", Bad;
    /// The WARC version line is not 0.18, 1.0 or 1.1.
    BadVersion = "bad_version", Bad;
    /// A WARC header line has no colon, or the head does not end.
    BadHeader = "bad_header", Bad;
    /// A WARC or HTTP head over the limit.
    HeaderTooLarge = "header_too_large", Bad;
    /// Content-Length missing, doubled, negative, not a number, or beyond the end of its file.
    BadContentLength = "bad_content_length", Bad;
    /// A digest is given, and none that is given fits; the page is kept as it is.
    DigestMismatch = "digest_mismatch", Bad;
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
    /// A record, member or frame within which the file ends, or encoded content that ends early.
    Truncated = "truncated", Bad;
    /// Bytes between records that belong to no record.
    Garbage = "garbage", Bad;
    /// No HTTP status line.
    BadHttpStatus = "bad_http_status", Bad;
    /// An HTTP head that never ends.
    HttpHeaderUnterminated = "http_header_unterminated", Bad;
    /// A damaged chunked body.
    BadChunk = "bad_chunk", Bad;
    /// A content encoding of an unknown name, or a word that names none; the body is taken as it is, unless it is no text.
    UnknownEncoding = "unknown_encoding", Bad;
    /// More stacked content encodings than allowed.
    TooManyEncodings = "too_many_encodings", Bad;
    /// A content encoding is named, but the body is not encoded in it; the body is taken as it is.
    EncodingLie = "encoding_lie", Bad;
    /// A line of JSONL that is not a JSON object.
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
