//! Copies of a page known elsewhere, for who finds it gone or slow.
//!
//! # Source
//! \[SGM98\] section 1: of a page that is not there any more (404) a search engine offers the replicas that it knows; and "more
//! up-to-date copies".

use std::cmp::Reverse;

use serde::Serialize;

use super::answer::hexadecimal;
use super::index::Index;
use super::rows::{NONE, PageRow};
use webtwin_base::error::Result;

/// A copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternate {
    /// Its doc id, in hexadecimal.
    pub id: String,
    /// Its canonical URL.
    pub url: String,
    /// Its title, which may be empty.
    pub title: String,
    /// When it was fetched, seconds since 1970; absent if that is not known.
    pub fetched: Option<u32>,
    /// Whether it has the same text, or bytes where there is little text.
    pub same_text: bool,
    /// Bits in which the simhashes differ, if both have one.
    pub bits: Option<u32>,
    /// Whether it is the page that stays.
    pub stays: bool,
    /// Whether it is on another host.
    pub elsewhere: bool,
}

/// Which copies come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The newest first, instead of those with the nearest text.
    pub newest: bool,
    /// Only copies on other hosts.
    pub elsewhere: bool,
}

/// Ranks of the other pages of a page's cluster, at most `most`: those with the same text first, then by bits in which simhashes
/// differ, then the newest, then the page that stays, then the smallest id; or by fetch time first.
///
/// # Errors
/// As [`Index::page`].
///
/// # Cost
/// A look at each page of the cluster.
pub fn alternates(index: &Index, page: u32, wanted: Wanted, most: usize) -> Result<Vec<Alternate>> {
    let (row, own) = (index.page(page)?, index.content(page)?);
    if row.cluster == NONE {
        return Ok(Vec::new());
    }
    let has_simhash = |row: &PageRow| row.bits & PageRow::SIMHASH != 0;
    let mut found = Vec::new();
    for rank in index.cluster(row.cluster)?.filter(|&rank| rank != page) {
        let (other, content) = (index.page(rank)?, index.content(rank)?);
        if wanted.elsewhere && other.origin == row.origin {
            continue;
        }
        let same_text = own.exact != 0 && own.exact == content.exact;
        let bits = (has_simhash(&row) && has_simhash(&other)).then(|| (own.simhash ^ content.simhash).count_ones());
        let near = (!same_text, bits.unwrap_or(u32::MAX));
        let time = Reverse(other.time);
        let first = if wanted.newest { (time, near) } else { (Reverse(0), near) };
        found.push(((first, time, other.is_skipped(), rank), same_text, bits, other));
    }
    found.sort_unstable_by_key(|one| one.0);
    found.truncate(most);
    let alternate = |(key, same_text, bits, other): (_, bool, Option<u32>, PageRow)| {
        let (.., rank): (_, _, _, u32) = key;
        Ok(Alternate {
            id: hexadecimal(other.doc_id),
            url: index.url(rank)?,
            title: index.title(rank)?,
            fetched: (other.time > 0).then_some(other.time),
            same_text,
            bits,
            stays: !other.is_skipped(),
            elsewhere: other.origin != row.origin,
        })
    };
    found.into_iter().map(alternate).collect()
}
