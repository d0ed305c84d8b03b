//! Where the crawl is, how it is read, and which URLs stand for others.

use serde::{Deserialize, Serialize};

/// Where the crawl is and how it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// URLs, paths, globs, `@LIST` files, or one `synth://` URL.
    pub urls: Vec<String>,
    /// Inputs of earlier crawls, as `urls`: revisit records find their originals there, and nothing else of them is a page.
    #[serde(default)]
    pub originals: Vec<String>,
    /// URL under which the files of a folder of HTML appear.
    pub base: String,
    /// Largest share of damaged records in one input, 0 to 1.
    pub max_bad: f64,
    /// Field names of JSONL and Parquet rows.
    pub fields: Fields,
    /// Whether digests in WARC records are checked.
    pub digests: Digests,
    /// Which documents of formats made for paper are pages.
    #[serde(default)]
    pub printed: Printed,
    /// Limits of a single record.
    pub limits: Limits,
}

impl Default for Input {
    fn default() -> Self {
        Input {
            urls: Vec::new(),
            originals: Vec::new(),
            base: "http://localhost/".into(),
            max_bad: 0.01,
            fields: Fields::default(),
            digests: Digests::Ignore,
            printed: Printed::Text,
            limits: Limits::default(),
        }
    }
}

/// What is done with the digests that WARC records give of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Digests {
    /// A page whose digests do not fit is kept and counted as mended (`digest_mismatch`).
    Check,
    /// Nothing.
    Ignore,
    /// Where a record gives none of its payload, it is computed; no setting, for only a run knows when it is of use.
    #[serde(skip)]
    Compute,
}

/// Which documents of formats made for paper are pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Printed {
    /// PDF and PostScript, whose text is a page.
    #[default]
    Text,
    /// PDF; PostScript is no page (`not_text`).
    Pdf,
    /// None of them (`not_text`).
    Skip,
}

/// Field or column names of JSONL and Parquet rows; the first name of each list that exists counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields {
    /// Names of the field with the URL.
    pub url: Vec<String>,
    /// Names of the field with the HTML.
    pub html: Vec<String>,
    /// Names of the field with the text, used if there is no HTML.
    pub text: Vec<String>,
    /// Names of the field with the fetch time.
    pub time: Vec<String>,
}

impl Default for Fields {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Fields {
            url: names(&["url", "uri"]),
            html: names(&["html"]),
            text: names(&["text", "content"]),
            time: names(&["fetch_time", "date", "timestamp"]),
        }
    }
}

/// Bounds that keep a hostile record from costing more than a fixed time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Largest record payload, bytes, before and after each decoding.
    pub record_bytes: u64,
    /// Largest head (WARC or HTTP), bytes: eight times what servers accept of each other.
    #[serde(skip)]
    pub head_bytes: u64,
    /// Largest window of a zstd frame or xz stream, bytes: what its decoder keeps in memory.
    pub window_bytes: u64,
    /// Links kept of one page; the rest is dropped and the page marked `too_many_links`.
    pub links: u32,
    /// Processor time that a PDF or PostScript document may take to become text, seconds.
    pub printed_seconds: u64,
    /// Memory that it may take, bytes of address space.
    pub printed_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            record_bytes: 16 << 20,
            head_bytes: 64 << 10,
            window_bytes: 256 << 20,
            links: 10_000,
            printed_seconds: 10,
            printed_bytes: 1 << 30,
        }
    }
}

/// Which URLs stand for others: a link to one of them counts as a link to the page that it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Through", into = "Through")]
pub struct Links {
    /// URLs whose record is a redirect (301, 302, 303, 307, 308).
    pub redirects: bool,
    /// Pages with `<meta http-equiv=refresh>` that lead to another URL within 10 seconds.
    pub refresh: bool,
    /// Pages with `<link rel=canonical>` that name another URL.
    pub canonical: bool,
}

impl Default for Links {
    fn default() -> Self {
        Links { redirects: true, refresh: true, canonical: false }
    }
}

/// [`Links`] as a setting.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default)]
struct Through {
    through: Vec<Lead>,
}

/// What leads from one URL to another.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Lead {
    Redirects,
    Refresh,
    Canonical,
}

impl Default for Through {
    fn default() -> Self {
        Links::default().into()
    }
}

impl From<Through> for Links {
    fn from(Through { through }: Through) -> Self {
        let has = |lead: Lead| through.contains(&lead);
        Links { redirects: has(Lead::Redirects), refresh: has(Lead::Refresh), canonical: has(Lead::Canonical) }
    }
}

impl From<Links> for Through {
    fn from(links: Links) -> Self {
        let leads =
            [(links.redirects, Lead::Redirects), (links.refresh, Lead::Refresh), (links.canonical, Lead::Canonical)];
        Through { through: leads.into_iter().filter_map(|(is_on, lead)| is_on.then_some(lead)).collect() }
    }
}
