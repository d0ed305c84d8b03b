//! Exports for crawlers in a report.

use serde::Serialize;

use super::Amount;

/// Exports for crawlers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SkipReport {
    /// Prefixes with the most pages, the most first.
    pub prefixes: Vec<ReportedPrefix>,
    /// Files in `exports/`, with their first lines.
    pub exports: Vec<ExportFile>,
    /// URL rules that save the most pages, the most first.
    pub rules: Vec<UrlRule>,
    /// Number of all URL rules.
    pub all_rules: u64,
    /// Sum of the pages that all URL rules save.
    pub saved_by_rules: u64,
}

/// URL rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UrlRule {
    /// Scope: the URLs that the rule applies to.
    pub scope: String,
    /// Kind of the edit.
    pub kind: String,
    /// Pattern that the edit changes.
    pub pattern: String,
    /// Replacement for the pattern.
    pub replacement: String,
    /// Number of pages that are copies of the page whose URL they get.
    pub support: u64,
    /// Number of pages that are not.
    pub violations: u64,
    /// Number of pages of the crawl that the rule would have saved.
    pub saved: u64,
}

/// URL prefix below which all crawled pages may be skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedPrefix {
    /// Text of the prefix.
    pub prefix: String,
    /// Crawled pages below it.
    pub covers: Amount,
}

/// File in `exports/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportFile {
    /// Path in the result.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// First lines.
    pub head: Vec<String>,
}
