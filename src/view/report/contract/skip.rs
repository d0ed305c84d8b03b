//! What a report says of that which crawlers are given.

use serde::Serialize;

use super::Amount;

/// What crawlers are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SkipLists {
    /// Prefixes with the most pages, most first.
    pub prefixes: Vec<Prefix>,
    /// The files in `exports/`, with their first lines.
    pub exports: Vec<Export>,
    /// URL rules that save the most pages, most first.
    pub rules: Vec<UrlRule>,
    /// All of them.
    pub all_rules: u64,
    /// Pages that they save together.
    pub saved_by_rules: u64,
}

/// A URL rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UrlRule {
    /// For which URLs.
    pub scope: String,
    /// Kind of its edit, what this changes, and what it puts in its place.
    pub kind: String,
    /// See above.
    pub pattern: String,
    /// See above.
    pub replacement: String,
    /// Pages that are copies of the page whose URL they get.
    pub support: u64,
    /// Pages that are none.
    pub violations: u64,
    /// Pages of the crawl that it would have saved.
    pub saved: u64,
}

/// A URL prefix under which all crawled pages may be skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prefix {
    /// The prefix.
    pub prefix: String,
    /// Crawled pages under it, and their bytes.
    pub covers: Amount,
}

/// A file in `exports/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Export {
    /// Its path in the result.
    pub path: String,
    /// Its length, in bytes.
    pub bytes: u64,
    /// Its first lines that say something.
    pub head: Vec<String>,
}
