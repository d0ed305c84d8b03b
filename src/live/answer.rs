//! Answers of the index about a page that was added, about a URL that might be fetched, and about
//! the index itself.

use serde::Serialize;

/// Relation of an added page to the pages that were added before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageState {
    /// The page resembles no earlier page.
    New,
    /// The page has the text of an earlier page.
    Exact,
    /// The page is a near-duplicate of an earlier page.
    Near,
    /// This URL was added before with this text. The index is unchanged.
    Again,
}

/// The earlier page that an added page is a copy of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OriginalPage {
    /// URL of the earlier page.
    pub url: String,
    /// Resemblance of the two pages, from 0 to 1; 1 for equal texts. For pages of different hosts:
    /// the shared chunks as a fraction of the chunks of the larger page. For pages of one host: the
    /// shared chunks as a fraction of the chunks that either page has.
    pub resemblance: f64,
    /// Measure that found the earlier page: `exact`, `overlap`, or `view` for another URL of one
    /// page.
    pub by: &'static str,
}

/// The mirrored folder that a page is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MirroredFolder {
    /// URL prefix of the folder.
    pub prefix: String,
    /// URL prefix of the mirror that is kept in its place.
    pub kept: String,
}

/// Answer to a page that was added.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AddedPageAnswer {
    /// Canonical URL of the page.
    pub url: String,
    /// Doc id of the page, in hexadecimal.
    pub doc_id: String,
    /// Relation of the page to earlier pages.
    pub state: PageState,
    /// The earlier page that this page is a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<OriginalPage>,
    /// Trivial cluster of the page: the doc id of the first page of the cluster, in hexadecimal.
    pub cluster: String,
    /// The mirrored folder that the page is in, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<MirroredFolder>,
}

/// Answer to a question about a URL that was added.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UrlAnswer {
    /// Answer about the newest page of the URL.
    #[serde(flatten)]
    pub answer: AddedPageAnswer,
    /// Time of the fetch, in seconds since 1970; 0 if unknown.
    pub fetch_time: i64,
    /// URLs of other pages of the cluster, at most 20.
    pub copies: Vec<String>,
}

/// Decision about a URL that might be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum UrlVerdict {
    /// The URL should be fetched.
    Fetch {
        /// Reason: `new`, or `probe`. A probe is fetched against the advice, to test whether the
        /// advice is right.
        why: &'static str,
    },
    /// The URL should not be fetched.
    Skip {
        /// Reason: `fetched`, `mirror`, `url_rule` or `trap`.
        why: &'static str,
        /// URL from which the page has been fetched already; absent for a trap.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    /// Another URL should be fetched instead. If that one has no page, this URL should be fetched.
    Rewrite {
        /// Reason: `mirror` or `url_rule`.
        why: &'static str,
        /// The URL to fetch instead.
        url: String,
    },
}

/// Counts of the contents of an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Number of pages. Each version of a page is counted.
    pub pages: u64,
    /// Number of hosts.
    pub hosts: u64,
    /// Number of trivial clusters, including those of one page.
    pub clusters: u64,
    /// Number of fetches that gave no page.
    pub missing: u64,
    /// Number of mirrors and aliases whose URLs are rewritten at present.
    pub mirrors: u64,
    /// Number of URL rules at present.
    pub url_rules: u64,
    /// Sequence number of the newest published advice.
    pub advice: u64,
    /// Size of the log, in bytes.
    pub log_bytes: u64,
    /// Number of sorted runs of postings.
    pub runs: u64,
}
