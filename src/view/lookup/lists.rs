//! Lists of all trivial clusters, and of all originals with their mirrors: the largest first, or of those the ones that have
//! all words of a question.

use std::collections::BTreeSet;

use serde::Serialize;

use super::answer::{OfPage, hexadecimal};
use super::index::Index;
use super::names::{self, Places};
use webtwin_base::error::Result;

/// Pages of a set whose hosts are counted.
pub const HOSTS_OF: usize = 64;

/// Copies of an original whose sizes are listed.
const SIZES: usize = 24;

/// What is asked of a list.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'q> {
    /// Words that a set must have in the titles and URLs of its pages; all sets without any.
    pub words: &'q str,
    /// Place of the first one.
    pub from: u32,
    /// Maximum number.
    pub limit: usize,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed<T> {
    /// Number of all, whatever is asked.
    pub all: usize,
    /// Number of those that match; absent if counting would take a search of its own.
    pub matches: Option<usize>,
    /// Some of those that match, the largest first.
    pub shown: Vec<T>,
    /// Place from which to ask for more; absent if there are no more.
    pub next: Option<u32>,
}

impl Listed<()> {
    /// The places that are asked for, in a list of `all`.
    fn places(all: usize, asked: Asked<'_>, find: impl FnOnce(&[u64]) -> Result<Places>) -> Result<Listed<u32>> {
        let words = names::question(asked.words);
        let Places { places, all: matches, next } = match asked.words.trim().is_empty() {
            false => find(&words)?,
            true => {
                let end = all.min((asked.from as usize).saturating_add(asked.limit));
                let next = (end < all).then_some(end as u32);
                Places { places: (asked.from..end as u32).collect(), all: Some(all), next }
            }
        };
        Ok(Listed { all, matches, shown: places, next })
    }
}

impl Listed<u32> {
    fn shown<T>(self, one: impl FnMut(u32) -> Result<T>) -> Result<Listed<T>> {
        let Listed { all, matches, shown, next } = self;
        Ok(Listed { all, matches, shown: shown.into_iter().map(one).collect::<Result<_>>()?, next })
    }
}

/// A trivial cluster in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedSet {
    /// Its id, in hexadecimal.
    pub id: String,
    /// Its pages.
    pub pages: usize,
    /// Hosts of its first [`HOSTS_OF`] pages.
    pub hosts: usize,
    /// The page that stays, or else its first.
    pub page: OfPage,
    /// Title of that page.
    pub title: String,
}

/// Trivial clusters, those with the most pages first.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] when the index is damaged where this looks.
///
/// # Cost
/// That of [`names::find`], and a look at [`HOSTS_OF`] pages of each cluster that is shown.
pub fn sets(index: &Index, asked: Asked<'_>) -> Result<Listed<ListedSet>> {
    let find = |words: &[u64]| names::find(&index.cluster_names, words, asked.from, asked.limit);
    Listed::places(index.clusters(), asked, find)?.shown(|place| {
        let row = index.clusters_by_size.get(place as usize)?;
        let pages = index.cluster(row.cluster)?;
        let count = pages.len();
        let origins =
            pages.take(HOSTS_OF).map(|page| Ok(index.page(page)?.origin)).collect::<Result<BTreeSet<u32>>>()?;
        let mut hosts = BTreeSet::new();
        for origin in origins {
            // Both schemes of a host are one.
            hosts.insert(index.origin(origin)?.split_once("://").map_or_else(String::new, |(_, host)| host.into()));
        }
        Ok(ListedSet {
            id: hexadecimal(index.cluster_id(row.cluster)?),
            pages: count,
            hosts: hosts.len(),
            page: OfPage::of(index, row.shown)?,
            title: index.title(row.shown)?,
        })
    })
}

/// An original with its mirrors in a list: a similar cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedOriginal {
    /// Id of the collection that is kept, in hexadecimal.
    pub id: String,
    /// Its root.
    pub root: OfPage,
    /// Title of its root.
    pub title: String,
    /// Its pages.
    pub pages: u32,
    /// Copies, the one that is kept among them.
    pub copies: u32,
    /// Pages of the copies that are not kept.
    pub surplus: u32,
    /// Pages of the copy that is kept, then of others.
    pub sizes: Vec<u32>,
}

/// Originals with their mirrors, those with the most pages in copies that are not kept first.
///
/// # Errors
/// [`webtwin_base::error::Error::Input`] when the index is damaged where this looks.
pub fn originals(index: &Index, asked: Asked<'_>) -> Result<Listed<ListedOriginal>> {
    let find = |words: &[u64]| names::find(&index.mirror_names, words, asked.from, asked.limit);
    Listed::places(index.originals(), asked, find)?.shown(|place| {
        let row = index.mirrors_by_size.get(place as usize)?;
        let kept = index.collection(row.kept)?;
        let mut sizes = vec![kept.size];
        for other in index.mirrors(kept.similar_cluster)?.filter(|&other| other != row.kept).take(SIZES - 1) {
            sizes.push(index.collection(other)?.size);
        }
        Ok(ListedOriginal {
            id: hexadecimal(kept.id),
            root: OfPage::of(index, kept.root)?,
            title: index.title(kept.root)?,
            pages: kept.size,
            copies: kept.cardinality,
            surplus: row.surplus,
            sizes,
        })
    })
}
