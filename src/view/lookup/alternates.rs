//! Copies of a page at other URLs, for a client that finds the page gone or slow.
//!
//! # Source
//! \[SGM98\] section 1: for a page that no longer exists (404) a search engine offers the replicas
//! that it knows; and "more up-to-date copies".

use std::cmp::Reverse;

use serde::Serialize;

use super::answer::hexadecimal;
use super::index::LookupIndex;
use super::rows::{IndexedPageRow, NONE};
use webtwin_base::error::Result;

/// Copy of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alternate {
    /// Doc id of the copy, in hexadecimal.
    pub id: String,
    /// Canonical URL of the copy.
    pub url: String,
    /// Title of the copy; may be empty.
    pub title: String,
    /// Fetch time in seconds since 1970; absent if unknown.
    pub fetched: Option<u32>,
    /// True if the copy has the same text, or the same bytes if there is little text.
    pub same_text: bool,
    /// Hamming distance of the simhashes, if both pages have one.
    pub bits: Option<u32>,
    /// True if the copy is the kept page.
    pub stays: bool,
    /// True if the copy is on another origin.
    pub elsewhere: bool,
}

/// Order and filter of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyOrder {
    /// True to return the newest copies first, instead of those with the nearest text.
    pub newest: bool,
    /// True to return only copies on other origins.
    pub elsewhere: bool,
}

/// Returns at most `limit` other pages of a page's trivial cluster. Pages with the same text come
/// first, then those with the nearest simhash, then the newest, then the kept page, then the
/// smallest id. With [`CopyOrder::newest`] the fetch time is compared first.
///
/// # Errors
/// Returns any error of [`LookupIndex::page`].
///
/// # Cost
/// Reads the rows of all pages of the cluster.
pub fn alternates(index: &LookupIndex, page: u32, order: CopyOrder, limit: usize) -> Result<Vec<Alternate>> {
    let (row, own_content) = (index.page(page)?, index.content(page)?);
    if row.cluster == NONE {
        return Ok(Vec::new());
    }
    let has_simhash = |row: &IndexedPageRow| row.bits & IndexedPageRow::SIMHASH != 0;
    let mut alternates = Vec::new();
    for rank in index.cluster(row.cluster)?.filter(|&rank| rank != page) {
        let (other_row, content) = (index.page(rank)?, index.content(rank)?);
        if order.elsewhere && other_row.origin == row.origin {
            continue;
        }
        let is_same_text = own_content.exact != 0 && own_content.exact == content.exact;
        let bits = (has_simhash(&row) && has_simhash(&other_row))
            .then(|| (own_content.simhash ^ content.simhash).count_ones());
        let distance = (!is_same_text, bits.unwrap_or(u32::MAX));
        let time = Reverse(other_row.time);
        let first = if order.newest { (time, distance) } else { (Reverse(0), distance) };
        alternates.push(((first, time, other_row.is_skipped(), rank), is_same_text, bits, other_row));
    }
    alternates.sort_unstable_by_key(|one| one.0);
    alternates.truncate(limit);
    let alternate = |(key, is_same_text, bits, other_row): (_, bool, Option<u32>, IndexedPageRow)| {
        let (.., rank): (_, _, _, u32) = key;
        Ok(Alternate {
            id: hexadecimal(other_row.doc_id),
            url: index.url(rank)?,
            title: index.title(rank)?,
            fetched: (other_row.time > 0).then_some(other_row.time),
            same_text: is_same_text,
            bits,
            stays: !other_row.is_skipped(),
            elsewhere: other_row.origin != row.origin,
        })
    };
    alternates.into_iter().map(alternate).collect()
}
