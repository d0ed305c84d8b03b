//! What the index says: of a page that was added, of a URL that might be fetched, and of itself.

use serde::Serialize;

/// Kind of a page that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageState {
    /// Like no page before it.
    New,
    /// It has the text of a page before it.
    Exact,
    /// It is a near-duplicate of a page before it.
    Near,
    /// The same page with the same text was added before.
    Again,
}

/// A page that another one is a copy of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OriginalPage {
    /// Its URL.
    pub url: String,
    /// Share of the chunks of the larger page that both have, or of all chunks for pages of one host; 1 for the same text.
    pub resemblance: f64,
    /// Measure that found it: `exact`, `overlap`, or `view` for another URL of one page.
    pub by: &'static str,
}

/// A mirrored folder that a page is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MirroredFolder {
    /// Prefix of its URLs.
    pub prefix: String,
    /// Prefix of the mirror that is kept.
    pub kept: String,
}

/// Answer to a page that was added.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AddedPageAnswer {
    /// Canonical URL.
    pub url: String,
    /// Doc id in hexadecimal.
    pub doc_id: String,
    /// Its kind.
    pub state: PageState,
    /// The page that it is a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<OriginalPage>,
    /// Its trivial cluster: the doc id of the first page of it, in hexadecimal.
    pub cluster: String,
    /// The growing collection that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<MirroredFolder>,
}

/// Answer to a question about a URL that was added.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UrlAnswer {
    /// As [`AddedPageAnswer`], of the newest page of the URL.
    #[serde(flatten)]
    pub answer: AddedPageAnswer,
    /// Seconds since 1970; 0 when unknown.
    pub fetch_time: i64,
    /// Other pages of its cluster, at most twenty.
    pub copies: Vec<String>,
}

/// Decision about a URL that might be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum UrlVerdict {
    /// Fetch it.
    Fetch {
        /// `new`, or `probe`: advice speaks against it, and its page shows whether that is right.
        why: &'static str,
    },
    /// Do not fetch it.
    Skip {
        /// `fetched`, `mirror`, `url_rule` or `trap`.
        why: &'static str,
        /// The URL from which its page has been fetched; absent in a trap.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    /// Fetch another URL in its place. If that has no page, fetch this one.
    Rewrite {
        /// `mirror` or `url_rule`.
        why: &'static str,
        /// The other URL.
        url: String,
    },
}

/// Counts of what the index has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Pages, each version of one counted.
    pub pages: u64,
    /// Hosts.
    pub hosts: u64,
    /// Trivial clusters, those of one page included.
    pub clusters: u64,
    /// URLs that gave no page.
    pub missing: u64,
    /// Mirrors and aliases that are rewritten now.
    pub mirrors: u64,
    /// URL rules now.
    pub url_rules: u64,
    /// Number of the last advice.
    pub advice: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Sorted runs of postings.
    pub runs: u64,
}
