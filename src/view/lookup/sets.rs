//! Trivial clusters and collections, page by page.

use serde::Serialize;

use super::answer::{OfPage, hexadecimal};
use super::index::Index;
use super::rows::{NONE, PageRow};
use webtwin_base::error::Result;

/// A page of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Its doc id, in hexadecimal.
    pub id: String,
    /// Its canonical URL.
    pub url: String,
    /// Its title, which may be empty.
    pub title: String,
    /// Its role in its cluster: a word of `clusters.role`; absent for a page without copies.
    pub role: Option<String>,
    /// Why it may be skipped.
    pub why: Option<String>,
    /// Doc id of the page that stays for it.
    pub keep: Option<String>,
    /// When it was fetched, seconds since 1970.
    pub fetched: Option<u32>,
    /// Hash of its text, in hexadecimal: equal for equal texts.
    pub text: Option<String>,
    /// Its simhash, in hexadecimal.
    pub simhash: Option<String>,
}

impl Member {
    /// What is known of a page.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn of(index: &Index, rank: u32) -> Result<Member> {
        let (row, content) = (index.page(rank)?, index.content(rank)?);
        Ok(Member {
            id: hexadecimal(row.doc_id),
            url: index.url(rank)?,
            title: index.title(rank)?,
            role: (row.cluster != NONE).then(|| index.word(row.role).into()),
            why: row.is_skipped().then(|| index.word(row.why).into()),
            keep: (row.keep != NONE).then(|| index.page(row.keep).map(|page| hexadecimal(page.doc_id))).transpose()?,
            fetched: (row.time > 0).then_some(row.time),
            text: (content.exact != 0).then(|| hexadecimal(content.exact)),
            simhash: (row.bits & PageRow::SIMHASH != 0).then(|| hexadecimal(content.simhash)),
        })
    }
}

/// A trivial cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Set {
    /// Its id, in hexadecimal: the doc id of its smallest page.
    pub id: String,
    /// Its pages.
    pub pages: usize,
    /// First of those that follow.
    pub from: usize,
    /// Some of them, ascending by id.
    pub members: Vec<Member>,
}

/// A trivial cluster by the id of any of its pages, with at most `most` of them from the one at `from` on; `None` if there is none.
///
/// # Errors
/// As [`Index::rank`].
pub fn set(index: &Index, id: u64, from: usize, most: usize) -> Result<Option<Set>> {
    let Some(rank) = index.rank(id)? else { return Ok(None) };
    let cluster = index.page(rank)?.cluster;
    if cluster == NONE {
        return Ok(None);
    }
    let pages = index.cluster(cluster)?;
    let (id, count) = (hexadecimal(index.cluster_id(cluster)?), pages.len());
    let members = pages.skip(from).take(most).map(|page| Member::of(index, page)).collect::<Result<_>>()?;
    Ok(Some(Set { id, pages: count, from, members }))
}

/// A collection beside its mirrors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mirror {
    /// Its id, in hexadecimal: the doc id of its smallest page.
    pub id: String,
    /// Its root.
    pub root: OfPage,
    /// Title of its root, which may be empty.
    pub title: String,
    /// Its pages.
    pub size: u32,
    /// Whether it is the one that is kept.
    pub keep: bool,
}

/// A collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collection {
    /// Itself.
    #[serde(flatten)]
    pub own: Mirror,
    /// Id of its similar cluster, in hexadecimal.
    pub similar_cluster: String,
    /// Collections of the similar cluster, itself among them.
    pub cardinality: u32,
    /// Some of them.
    pub mirrors: Vec<Mirror>,
    /// First of the members that follow.
    pub from: usize,
    /// Some of its pages, ascending by id.
    pub members: Vec<Member>,
}

/// A collection by its number.
///
/// # Errors
/// As [`Index::page`].
pub fn mirror(index: &Index, number: u32) -> Result<Mirror> {
    let row = index.collection(number)?;
    Ok(Mirror {
        id: hexadecimal(row.id),
        root: OfPage::of(index, row.root)?,
        title: index.title(row.root)?,
        size: row.size,
        keep: row.keep == 1,
    })
}

/// A collection by its id, with at most `most` pages from the one at `from` on, and as many mirrors; `None` if there is none.
///
/// # Errors
/// As [`Index::rank`].
pub fn collection(index: &Index, id: u64, from: usize, most: usize) -> Result<Option<Collection>> {
    let Some(number) = index.collection_of_id(id)? else { return Ok(None) };
    let row = index.collection(number)?;
    let pages = index.collection_pages(number)?;
    Ok(Some(Collection {
        own: mirror(index, number)?,
        similar_cluster: hexadecimal(row.similar_cluster),
        cardinality: row.cardinality,
        mirrors: index.mirrors(row.similar_cluster)?.take(most).map(|one| mirror(index, one)).collect::<Result<_>>()?,
        from,
        members: pages.skip(from).take(most).map(|page| Member::of(index, page)).collect::<Result<_>>()?,
    }))
}
