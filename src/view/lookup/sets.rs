//! Trivial clusters and collections with their pages.

use serde::Serialize;

use super::answer::{PageAnswer, hexadecimal};
use super::index::LookupIndex;
use super::rows::{IndexedPageRow, NONE};
use webtwin_base::error::Result;

/// Page of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexedMember {
    /// Doc id of the page, in hexadecimal.
    pub id: String,
    /// Canonical URL of the page.
    pub url: String,
    /// Title of the page, which may be empty.
    pub title: String,
    /// Role in its cluster, a value of `clusters.role`; absent for a page without copies.
    pub role: Option<String>,
    /// Reason why it may be skipped.
    pub why: Option<String>,
    /// Doc id of the page that is kept for it.
    pub keep: Option<String>,
    /// Fetch time in seconds since 1970.
    pub fetched: Option<u32>,
    /// Hash of its text, in hexadecimal: equal for equal texts.
    pub text: Option<String>,
    /// Simhash, in hexadecimal.
    pub simhash: Option<String>,
}

impl IndexedMember {
    /// Returns the index's data about a page.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn read(index: &LookupIndex, rank: u32) -> Result<IndexedMember> {
        let (row, content) = (index.page(rank)?, index.content(rank)?);
        Ok(IndexedMember {
            id: hexadecimal(row.doc_id),
            url: index.url(rank)?,
            title: index.title(rank)?,
            role: (row.cluster != NONE).then(|| index.word(row.role).into()),
            why: row.is_skipped().then(|| index.word(row.why).into()),
            keep: (row.keep != NONE).then(|| index.page(row.keep).map(|page| hexadecimal(page.doc_id))).transpose()?,
            fetched: (row.time > 0).then_some(row.time),
            text: (content.exact != 0).then(|| hexadecimal(content.exact)),
            simhash: (row.bits & IndexedPageRow::SIMHASH != 0).then(|| hexadecimal(content.simhash)),
        })
    }
}

/// Trivial cluster with a part of its pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Set {
    /// Id, in hexadecimal: the doc id of its smallest page.
    pub id: String,
    /// Number of pages.
    pub pages: usize,
    /// Index of the first page in `members`.
    pub from: usize,
    /// Part of its pages, ascending by id.
    pub members: Vec<IndexedMember>,
}

/// Returns the trivial cluster of a page with at most `limit` of its pages, starting with the page
/// at index `start`. Returns `None` if the page does not exist or has no copies.
///
/// # Errors
/// Returns any error of [`LookupIndex::rank`].
pub fn set(index: &LookupIndex, id: u64, start: usize, limit: usize) -> Result<Option<Set>> {
    let Some(rank) = index.rank(id)? else { return Ok(None) };
    let cluster = index.page(rank)?.cluster;
    if cluster == NONE {
        return Ok(None);
    }
    let pages = index.cluster(cluster)?;
    let (id, count) = (hexadecimal(index.cluster_id(cluster)?), pages.len());
    let members = pages.skip(start).take(limit).map(|page| IndexedMember::read(index, page)).collect::<Result<_>>()?;
    Ok(Some(Set { id, pages: count, from: start, members }))
}

/// Collection without its pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexedMirror {
    /// Id, in hexadecimal: the doc id of its smallest page.
    pub id: String,
    /// Root of the collection.
    pub root: PageAnswer,
    /// Title of its root, which may be empty.
    pub title: String,
    /// Number of pages.
    pub size: u32,
    /// True if it is the kept collection.
    pub keep: bool,
}

/// Collection with its mirrors and a part of its pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexedCollection {
    /// The collection.
    #[serde(flatten)]
    pub own: IndexedMirror,
    /// Id of its similar cluster, in hexadecimal.
    pub similar_cluster: String,
    /// Number of collections in its similar cluster, including itself.
    pub cardinality: u32,
    /// Collections of its similar cluster, up to the limit of the request.
    pub mirrors: Vec<IndexedMirror>,
    /// Index of the first page in `members`.
    pub from: usize,
    /// Part of its pages, ascending by id.
    pub members: Vec<IndexedMember>,
}

/// Returns a collection by its number.
///
/// # Errors
/// Returns any error of [`LookupIndex::page`].
pub fn mirror(index: &LookupIndex, number: u32) -> Result<IndexedMirror> {
    let row = index.collection(number)?;
    Ok(IndexedMirror {
        id: hexadecimal(row.id),
        root: PageAnswer::read(index, row.root)?,
        title: index.title(row.root)?,
        size: row.size,
        keep: row.keep == 1,
    })
}

/// Returns a collection by its id, with at most `limit` pages, starting with the page at index
/// `start`, and at most `limit` mirrors. Returns `None` if there is no collection with the id.
///
/// # Errors
/// Returns any error of [`LookupIndex::rank`].
pub fn collection(index: &LookupIndex, id: u64, start: usize, limit: usize) -> Result<Option<IndexedCollection>> {
    let Some(number) = index.collection_of_id(id)? else { return Ok(None) };
    let row = index.collection(number)?;
    let pages = index.collection_pages(number)?;
    Ok(Some(IndexedCollection {
        own: mirror(index, number)?,
        similar_cluster: hexadecimal(row.similar_cluster),
        cardinality: row.cardinality,
        mirrors: index
            .mirrors(row.similar_cluster)?
            .take(limit)
            .map(|one| mirror(index, one))
            .collect::<Result<_>>()?,
        from: start,
        members: pages.skip(start).take(limit).map(|page| IndexedMember::read(index, page)).collect::<Result<_>>()?,
    }))
}
