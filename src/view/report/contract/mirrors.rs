//! What a report says of mirrors, and of the hosts that they stand on.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Amount;
use webtwin_base::ids::as_text;

/// Originals with their mirrors.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mirrors {
    /// All of them in the result.
    pub all: u64,
    /// Those with the most pages in copies that are not kept; the most that may be skipped first.
    pub shown: Vec<Mirror>,
}

/// An original with its mirrors: a similar cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mirror {
    /// The similar cluster.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Title of the root page of the copy that is kept; empty if it has none.
    pub title: String,
    /// Language of that page, as in `pages.language`; empty if it is unknown.
    pub language: String,
    /// Root page of the copy that is kept.
    pub url: String,
    /// Its copies, the one that is kept among them.
    pub copies: u64,
    /// Hosts with a copy.
    pub hosts: u64,
    /// Pages of the largest copy.
    pub largest: u64,
    /// Pages of all copies.
    pub pages: u64,
    /// Pages of the copies that are not kept.
    pub surplus: u64,
    /// Pages of all copies that may be skipped, and their bytes; none where there are too many pages to look at.
    pub skip: Option<Amount>,
    /// Mean fraction of the text of these pages that the pages which stay contain (`avoid.contained`), in thousandths; none
    /// where no page may be skipped.
    pub contained: Option<u32>,
    /// The copy that is kept, then the largest.
    pub shown: Vec<MirrorCopy>,
}

/// A collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MirrorCopy {
    /// The collection.
    #[serde(with = "as_text")]
    pub id: u64,
    /// Where it stands.
    pub host: String,
    /// Its root page.
    pub url: String,
    /// What the URLs of all its pages begin with.
    pub prefix: String,
    /// Pages in it.
    pub size: u64,
    /// Whether it is the copy that is kept.
    pub keep: bool,
    /// Links to its pages from other hosts, by which one is kept unless the job says otherwise; none if the result does not tell.
    pub links_from_elsewhere: Option<u64>,
}

/// Hosts and what they share.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hosts {
    /// All hosts.
    pub all: u64,
    /// Those with the most pages to skip, most first.
    pub shown: Vec<Host>,
    /// Pairs of hosts by kind: `alias`, `mirror`, `part`.
    pub pairs: BTreeMap<String, u64>,
    /// The pairs that share the most pages, most first.
    pub shown_pairs: Vec<HostPair>,
    /// Hosts of the matrix, those that are alike beside each other.
    pub matrix_hosts: Vec<String>,
    /// Pairs among them.
    pub matrix: Vec<HostPair>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Its pages.
    pub crawl: Amount,
    /// Of these, what may be skipped.
    pub skip: Amount,
}

/// Two hosts that share pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostPair {
    /// Name of one host.
    pub a: String,
    /// Name of the other.
    pub b: String,
    /// Pages of each that have their own copy on the other.
    pub shared: u64,
    /// Of these, those with equal text under equal paths.
    pub same_path: u64,
    /// Pages of the first.
    pub pages_a: u64,
    /// Pages of the second.
    pub pages_b: u64,
    /// `alias`, `mirror` or `part`.
    pub kind: String,
}
