//! Settings of the input: locations, formats and limits, and URLs that lead to others.

use serde::{Deserialize, Serialize};

/// Location and reading of the crawl.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputSettings {
    /// URLs, paths, globs, `@LIST` files, or one `synth://` URL.
    pub urls: Vec<String>,
    /// Inputs of earlier crawls, in the form of `urls`. Only the originals of revisit records are
    /// read from them; they contribute no other pages.
    #[serde(default)]
    pub originals: Vec<String>,
    /// Base URL of the files in a folder of HTML.
    pub base: String,
    /// Maximum fraction of damaged records in one input, 0 to 1.
    pub max_bad: f64,
    /// Field names of JSONL and Parquet rows.
    pub fields: FieldNames,
    /// Treatment of digests in WARC records.
    pub digests: DigestPolicy,
    /// Printable document formats that are read as pages.
    #[serde(default)]
    pub printed: PrintedFormats,
    /// Limits of a single record.
    pub limits: RecordLimits,
}

impl Default for InputSettings {
    fn default() -> Self {
        InputSettings {
            urls: Vec::new(),
            originals: Vec::new(),
            base: "http://localhost/".into(),
            max_bad: 0.01,
            fields: FieldNames::default(),
            digests: DigestPolicy::Ignore,
            printed: PrintedFormats::Text,
            limits: RecordLimits::default(),
        }
    }
}

/// Treatment of the digests that WARC records contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DigestPolicy {
    /// A page with a wrong digest is kept and counted as repaired (`digest_mismatch`).
    Check,
    /// Digests are ignored.
    Ignore,
    /// If a record has no digest of its payload, it is computed. This is not a setting, because the
    /// search for the originals of revisits requests it if necessary.
    #[serde(skip)]
    Compute,
}

/// Printable document formats that are read as pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrintedFormats {
    /// PDF and PostScript: their text is a page.
    #[default]
    Text,
    /// PDF only. PostScript is rejected (`not_text`).
    Pdf,
    /// None of them. All are rejected (`not_text`).
    Skip,
}

/// Names of fields or columns in JSONL and Parquet rows. The first existing name of each list is
/// used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldNames {
    /// Names of the field with the URL.
    pub url: Vec<String>,
    /// Names of the field with the HTML.
    pub html: Vec<String>,
    /// Names of the field with the text, used if there is no HTML.
    pub text: Vec<String>,
    /// Names of the field with the fetch time.
    pub time: Vec<String>,
}

impl Default for FieldNames {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        FieldNames {
            url: names(&["url", "uri"]),
            html: names(&["html"]),
            text: names(&["text", "content"]),
            time: names(&["fetch_time", "date", "timestamp"]),
        }
    }
}

/// Limits that bound the time and memory that a hostile record can cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordLimits {
    /// Maximum size of a record's payload in bytes, before and after each decoding.
    pub record_bytes: u64,
    /// Maximum size of a WARC or HTTP head in bytes: eight times what servers usually accept.
    #[serde(skip)]
    pub head_bytes: u64,
    /// Maximum window of a zstd frame or xz stream in bytes, which its decoder keeps in memory.
    pub window_bytes: u64,
    /// Maximum number of links of a page. Further links are dropped, and the page is marked
    /// `too_many_links`.
    pub links: u32,
    /// Maximum processor time for converting a PDF or PostScript document to text, in seconds.
    pub printed_seconds: u64,
    /// Maximum address space for that conversion, in bytes.
    pub printed_bytes: u64,
}

impl Default for RecordLimits {
    fn default() -> Self {
        RecordLimits {
            record_bytes: 16 << 20,
            head_bytes: 64 << 10,
            window_bytes: 256 << 20,
            links: 10_000,
            printed_seconds: 10,
            printed_bytes: 1 << 30,
        }
    }
}

/// URLs that lead to another page. A link to one of them counts as a link to that page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Through", into = "Through")]
pub struct LinkSettings {
    /// True for URLs whose record is a redirect (301, 302, 303, 307, 308).
    pub redirects: bool,
    /// True for pages with `<meta http-equiv=refresh>` that lead to another URL within 10 seconds.
    pub refresh: bool,
    /// True for pages with `<link rel=canonical>` that name another URL.
    pub canonical: bool,
}

impl Default for LinkSettings {
    fn default() -> Self {
        LinkSettings { redirects: true, refresh: true, canonical: false }
    }
}

/// [`LinkSettings`] in the form of a setting.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default)]
struct Through {
    through: Vec<Lead>,
}

/// Mechanism that leads from one URL to another.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Lead {
    Redirects,
    Refresh,
    Canonical,
}

impl Default for Through {
    fn default() -> Self {
        LinkSettings::default().into()
    }
}

impl From<Through> for LinkSettings {
    fn from(Through { through }: Through) -> Self {
        let has_lead = |lead: Lead| through.contains(&lead);
        LinkSettings {
            redirects: has_lead(Lead::Redirects),
            refresh: has_lead(Lead::Refresh),
            canonical: has_lead(Lead::Canonical),
        }
    }
}

impl From<LinkSettings> for Through {
    fn from(links: LinkSettings) -> Self {
        let leads =
            [(links.redirects, Lead::Redirects), (links.refresh, Lead::Refresh), (links.canonical, Lead::Canonical)];
        Through { through: leads.into_iter().filter_map(|(is_on, lead)| is_on.then_some(lead)).collect() }
    }
}
