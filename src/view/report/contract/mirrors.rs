//! Mirrors and their hosts in a report.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Amount;
use webtwin_base::ids::as_text;

/// Originals with their mirrors.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MirrorReport {
    /// Number of originals in the result.
    pub all: u64,
    /// Originals with the most pages in copies that are not kept, ordered by the number of pages
    /// that may be skipped, the most first.
    pub shown: Vec<MirrorGroup>,
}

/// Original with its mirrors: a similar cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MirrorGroup {
    /// Id of the similar cluster.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Title of the root page of the kept copy; empty if it has none.
    pub title: String,
    /// Language of that page, a value of `pages.language`; empty if unknown.
    pub language: String,
    /// URL of the root page of the kept copy.
    pub url: String,
    /// Number of copies, including the kept one.
    pub copies: u64,
    /// Number of hosts with a copy.
    pub hosts: u64,
    /// Number of pages of the largest copy.
    pub largest: u64,
    /// Number of pages of all copies.
    pub pages: u64,
    /// Number of pages of the copies that are not kept.
    pub surplus: u64,
    /// Pages of all copies that may be skipped. `None` if there are too many pages to examine.
    pub skip: Option<Amount>,
    /// Mean fraction of the text of these pages that the kept pages contain (`avoid.contained`), in
    /// thousandths. `None` if no page may be skipped.
    pub contained: Option<u32>,
    /// Kept copy, then the largest ones.
    pub shown: Vec<MirrorCopy>,
}

/// Collection that is a copy of an original.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MirrorCopy {
    /// Id of the collection.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Host of the collection.
    pub host: String,
    /// URL of its root page.
    pub url: String,
    /// Common prefix of the URLs of its pages.
    pub prefix: String,
    /// Number of pages.
    pub size: u64,
    /// True if it is the kept copy.
    pub keep: bool,
    /// Number of links to its pages from other hosts, which select the kept copy unless the job
    /// specifies another rule. `None` if the result lacks it.
    pub links_from_elsewhere: Option<u64>,
}

/// Hosts and pairs of hosts that share pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// Number of all hosts.
    pub all: u64,
    /// Hosts with the most pages to skip, the most first.
    pub shown: Vec<ReportedHost>,
    /// Number of pairs by kind: `alias`, `mirror`, `part`.
    pub pairs: BTreeMap<String, u64>,
    /// Pairs that share the most pages, the most first.
    pub shown_pairs: Vec<HostPair>,
    /// Hosts of the matrix; similar hosts are adjacent.
    pub matrix_hosts: Vec<String>,
    /// Pairs among the hosts of the matrix.
    pub matrix: Vec<HostPair>,
}

/// Host with its pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedHost {
    /// Name of the host.
    pub host: String,
    /// Pages of the host.
    pub crawl: Amount,
    /// Pages of the host that may be skipped.
    pub skip: Amount,
}

/// Two hosts that share pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostPair {
    /// Name of one host.
    pub a: String,
    /// Name of the other host.
    pub b: String,
    /// Number of pages of each host that have a copy of their own on the other.
    pub shared: u64,
    /// Number of these with equal text and equal path.
    pub same_path: u64,
    /// Number of pages of the first host.
    pub pages_a: u64,
    /// Number of pages of the second host.
    pub pages_b: u64,
    /// `alias`, `mirror` or `part`.
    pub kind: String,
}
