//! Lists of all trivial clusters and of all originals with their mirrors, the largest first;
//! optionally only those that match all words of a query.

use std::collections::BTreeSet;

use serde::Serialize;

use super::answer::{PageAnswer, hexadecimal};
use super::index::LookupIndex;
use super::names::{self, SetPlaces};
use webtwin_base::error::Result;

/// Number of pages of a set whose hosts are counted.
pub const HOST_COUNT_PAGES: usize = 64;

/// Maximum number of copies of an original whose sizes are listed.
const SIZES: usize = 24;

/// Request for a part of a list.
#[derive(Debug, Clone, Copy)]
pub struct ListRequest<'q> {
    /// Words that the titles and URLs of a set's pages must contain. Empty for all sets.
    pub words: &'q str,
    /// Place in the list of the first set.
    pub from: u32,
    /// Maximum number of sets.
    pub limit: usize,
}

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListPage<T> {
    /// Length of the whole list, independent of the request.
    pub all: usize,
    /// Number of sets that match; absent if counting would require a separate search.
    pub matches: Option<usize>,
    /// Matching sets, the largest first.
    pub shown: Vec<T>,
    /// Place in the list for the next request; absent if there are no more sets.
    pub next: Option<u32>,
}

impl ListPage<()> {
    /// Returns the requested places in a list of length `total`.
    fn places(
        total: usize,
        request: ListRequest<'_>,
        find: impl FnOnce(&[u64]) -> Result<SetPlaces>,
    ) -> Result<ListPage<u32>> {
        let words = names::question(request.words);
        let SetPlaces { places, all: matches, next } = match request.words.trim().is_empty() {
            false => find(&words)?,
            true => {
                let end = total.min((request.from as usize).saturating_add(request.limit));
                let next = (end < total).then_some(end as u32);
                SetPlaces { places: (request.from..end as u32).collect(), all: Some(total), next }
            }
        };
        Ok(ListPage { all: total, matches, shown: places, next })
    }
}

impl ListPage<u32> {
    fn rows_shown<T>(self, row_of: impl FnMut(u32) -> Result<T>) -> Result<ListPage<T>> {
        let ListPage { all: total, matches, shown: rows, next } = self;
        Ok(ListPage { all: total, matches, shown: rows.into_iter().map(row_of).collect::<Result<_>>()?, next })
    }
}

/// Trivial cluster in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedSet {
    /// Id of the cluster, in hexadecimal.
    pub id: String,
    /// Number of pages.
    pub pages: usize,
    /// Number of hosts of the first [`HOST_COUNT_PAGES`] pages.
    pub hosts: usize,
    /// Kept page, or else the first page.
    pub page: PageAnswer,
    /// Title of that page.
    pub title: String,
}

/// Lists trivial clusters, those with most pages first.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a damaged part of the index is read.
///
/// # Cost
/// That of [`names::find`], and the rows of [`HOST_COUNT_PAGES`] pages for each cluster in the
/// answer.
pub fn sets(index: &LookupIndex, request: ListRequest<'_>) -> Result<ListPage<ListedSet>> {
    let find = |words: &[u64]| names::find(&index.cluster_names, words, request.from, request.limit);
    ListPage::places(index.clusters(), request, find)?.rows_shown(|place| {
        let row = index.clusters_by_size.get(place as usize)?;
        let pages = index.cluster(row.cluster)?;
        let count = pages.len();
        let origins =
            pages.take(HOST_COUNT_PAGES).map(|page| Ok(index.page(page)?.origin)).collect::<Result<BTreeSet<u32>>>()?;
        let mut hosts = BTreeSet::new();
        for origin in origins {
            // A host under both schemes counts once.
            hosts.insert(index.origin(origin)?.split_once("://").map_or_else(String::new, |(_, host)| host.into()));
        }
        Ok(ListedSet {
            id: hexadecimal(index.cluster_id(row.cluster)?),
            pages: count,
            hosts: hosts.len(),
            page: PageAnswer::read(index, row.shown)?,
            title: index.title(row.shown)?,
        })
    })
}

/// Similar cluster in a list: an original with its mirrors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedOriginal {
    /// Id of the kept collection, in hexadecimal.
    pub id: String,
    /// Root of the kept collection.
    pub root: PageAnswer,
    /// Title of that root.
    pub title: String,
    /// Number of pages of the kept collection.
    pub pages: u32,
    /// Number of copies, including the kept one.
    pub copies: u32,
    /// Number of pages of the copies that are not kept.
    pub surplus: u32,
    /// Number of pages of the kept copy, then of other copies.
    pub sizes: Vec<u32>,
}

/// Lists originals with their mirrors, those with most pages in copies that are not kept first.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a damaged part of the index is read.
pub fn originals(index: &LookupIndex, request: ListRequest<'_>) -> Result<ListPage<ListedOriginal>> {
    let find = |words: &[u64]| names::find(&index.mirror_names, words, request.from, request.limit);
    ListPage::places(index.originals(), request, find)?.rows_shown(|place| {
        let row = index.mirrors_by_size.get(place as usize)?;
        let kept_row = index.collection(row.kept)?;
        let mut sizes = vec![kept_row.size];
        for other_number in index.mirrors(kept_row.similar_cluster)?.filter(|&other| other != row.kept).take(SIZES - 1)
        {
            sizes.push(index.collection(other_number)?.size);
        }
        Ok(ListedOriginal {
            id: hexadecimal(kept_row.id),
            root: PageAnswer::read(index, kept_row.root)?,
            title: index.title(kept_row.root)?,
            pages: kept_row.size,
            copies: kept_row.cardinality,
            surplus: row.surplus,
            sizes,
        })
    })
}
