//! Opened index: access to its columns by page, set, collection or prefix. URL rules are in memory.

mod open;

use xxhash_rust::xxh3::xxh3_64;

use super::about::IndexSubject;
use super::column::IndexColumn;
use super::find::{find, lower_bound};
use super::rows::{
    ContentRow, HashRow, IndexedCollectionRow, IndexedPageRow, ListedCluster, NONE, OriginalRow, StandingRow,
};
#[cfg(feature = "search")]
use super::search::WordIndex;
use super::strings::Strings;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_core::hamming::online::OnlineIndex;
use webtwin_core::url_rules::rules::Rules;
use webtwin_storage::location::Location;
use webtwin_storage::mapped::FileBytes;

/// Name of the list of URL rules.
pub(super) const RULES: &str = "url_rules";

/// Name of the column of pages on the list in force.
pub(super) const STANDING_COLUMN: &str = "standing";

/// Names of the columns with trivial clusters and with similar clusters, the largest first.
pub(super) const SIZE_LISTS: [&str; 2] = ["clusters.by_size", "mirrors.by_size"];

/// Names of the columns with the words of these sets.
pub(super) const NAMES: [&str; 2] = ["clusters.names", "mirrors.names"];

/// Columns of chunks.
#[derive(Debug)]
pub struct IndexChunks {
    /// Each chunk with the page that has it, or with the position of its list; ascending.
    pub postings: IndexColumn<HashRow>,
    /// Lists of pages: the number of pages, then their ranks.
    pub lists: IndexColumn<u32>,
    /// Number of chunks that count of each page, by rank.
    pub counts: IndexColumn<u32>,
}

/// Opened index. Threads may share it.
#[derive(Debug)]
pub struct LookupIndex {
    /// Description from the manifest.
    pub about: IndexSubject,
    /// Folder of the index.
    pub folder: Location,
    pages: IndexColumn<IndexedPageRow>,
    contents: IndexColumn<ContentRow>,
    texts: IndexColumn<HashRow>,
    urls: Strings,
    origin_strings: Strings,
    prefixes: Strings,
    rules: Rules,
    standing_rows: Option<IndexColumn<StandingRow>>,
    cluster_starts: IndexColumn<u64>,
    cluster_members: IndexColumn<u32>,
    collections: IndexColumn<IndexedCollectionRow>,
    collection_members: IndexColumn<u32>,
    titles: Strings,
    pub(super) clusters_by_size: IndexColumn<ListedCluster>,
    pub(super) cluster_names: IndexColumn<HashRow>,
    pub(super) mirrors_by_size: IndexColumn<OriginalRow>,
    pub(super) mirror_names: IndexColumn<HashRow>,
    hosts: IndexColumn<HashRow>,
    rejected_rows: IndexColumn<HashRow>,
    chunks: Option<IndexChunks>,
    near_tables: Option<OnlineIndex<FileBytes>>,
    #[cfg(feature = "search")]
    words: Option<WordIndex>,
    bytes: u64,
}

/// Returns the error for an index that is not as it was built.
fn broken_index(folder: &Location, message: &str) -> Error {
    Error::input(folder.name(), format!("{message}; rebuild the index"))
}

impl LookupIndex {
    /// Compares the checksum of every file with the manifest.
    ///
    /// # Errors
    /// Returns [`Error::Input`] for the first file that differs.
    ///
    /// # Cost
    /// Reads all files.
    pub fn verify(&self) -> Result<()> {
        IndexSubject::read(&self.folder)?.0.verify(&self.folder)
    }

    /// Returns the number of pages of the run.
    pub fn pages(&self) -> usize {
        self.pages.rows()
    }

    /// Returns the total size of the files in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the rank of a page, if it is a page of the run.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a damaged part of the index is read. All functions below return
    /// this error too.
    #[inline]
    pub fn rank(&self, page: DocId) -> Result<Option<u32>> {
        Ok(find(self.pages.rows(), page, |at| Ok(self.pages.get(at)?.doc_id))?.map(|rank| rank as u32))
    }

    /// Returns the row of a page that was not crawled, if it is on the list in force.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`].
    pub fn standing(&self, page: DocId) -> Result<Option<StandingRow>> {
        let Some(rows) = &self.standing_rows else { return Ok(None) };
        find(rows.rows(), page, |at| Ok(rows.get(at)?.doc_id))?.map(|at| rows.get(at)).transpose()
    }

    /// Returns the row of a page.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`], and [`Error::Input`] if the page does not exist.
    #[inline]
    pub fn page(&self, rank: u32) -> Result<IndexedPageRow> {
        self.pages.get(rank as usize)
    }

    /// Returns the hashes of a page's text.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn content(&self, rank: u32) -> Result<ContentRow> {
        self.contents.get(rank as usize)
    }

    /// Appends the URL of a page to `output`.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn append_url(&self, rank: u32, output: &mut String) -> Result<()> {
        self.origin_strings.append(self.page(rank)?.origin as usize, output)?;
        self.urls.append(rank as usize, output)
    }

    /// Returns the URL of a page.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn url(&self, rank: u32) -> Result<String> {
        let mut url = String::new();
        self.append_url(rank, &mut url).map(|()| url)
    }

    /// Returns the title of a page; empty if it has none.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn title(&self, rank: u32) -> Result<String> {
        self.titles.get(rank as usize)
    }

    /// Returns the number of pages of a host.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`].
    pub fn pages_of_host(&self, host: &str) -> Result<u32> {
        let row = find(self.hosts.rows(), xxh3_64(host.as_bytes()), |at| Ok(self.hosts.get(at)?.hash()))?;
        row.map_or(Ok(0), |row| Ok(self.hosts.get(row)?.value))
    }

    /// Returns the reason why the record of a URL was not kept, if the run read one and the URL is
    /// not a page.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`].
    pub fn rejected(&self, id: DocId) -> Result<Option<&str>> {
        let row = find(self.rejected_rows.rows(), id, |at| Ok(self.rejected_rows.get(at)?.hash()))?;
        row.map(|row| Ok(self.word(self.rejected_rows.get(row)?.value as u8))).transpose()
    }

    /// Returns the origin of a number in [`IndexedPageRow::origin`].
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn origin(&self, number: u32) -> Result<String> {
        self.origin_strings.get(number as usize)
    }

    /// Returns the text of a value in a row.
    pub fn word(&self, number: u8) -> &str {
        self.about.words.get(usize::from(number)).map_or("", String::as_str)
    }

    /// Returns the number of the avoid-list prefix that a canonical URL starts with, if there is
    /// one. `scratch` is scratch.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`].
    pub fn prefix_of(&self, url: &str, scratch: &mut Vec<u8>) -> Result<Option<usize>> {
        // No prefix starts with another one. So no other prefix sorts between the covering one and
        // the URL.
        let Some(last) = self.prefixes.last_not_after(url, scratch)? else { return Ok(None) };
        Ok(url.starts_with(&self.prefix(last)?).then_some(last))
    }

    /// Returns a prefix of the avoid list.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn prefix(&self, number: usize) -> Result<String> {
        self.prefixes.get(number)
    }

    /// Returns the number of prefixes.
    pub fn prefixes(&self) -> usize {
        self.prefixes.count()
    }

    /// Returns the URL rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the pages of a trivial cluster, ascending.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn cluster(&self, number: u32) -> Result<impl ExactSizeIterator<Item = u32> + '_> {
        let start = self.cluster_starts.get(number as usize)? as usize;
        let end = self.cluster_starts.get(number as usize + 1)? as usize;
        self.cluster_members.range(start..end)
    }

    /// Returns the number of trivial clusters.
    pub fn clusters(&self) -> usize {
        self.cluster_starts.rows().saturating_sub(1)
    }

    /// Returns the id of a cluster: the doc id of its smallest page.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn cluster_id(&self, number: u32) -> Result<DocId> {
        let first = self.cluster(number)?.next();
        self.page(first.ok_or_else(|| broken_index(&self.folder, "a cluster has no pages"))?).map(|page| page.doc_id)
    }

    /// Returns the row of a collection.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn collection(&self, number: u32) -> Result<IndexedCollectionRow> {
        self.collections.get(number as usize)
    }

    /// Returns the number of similar clusters: originals with their mirrors.
    pub fn originals(&self) -> usize {
        self.mirrors_by_size.rows()
    }

    /// Returns the number of collections.
    pub fn collections(&self) -> usize {
        self.collections.rows()
    }

    /// Returns the pages of a collection, ascending.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn collection_pages(&self, number: u32) -> Result<impl ExactSizeIterator<Item = u32> + '_> {
        let start = self.collection(number)?.start as usize;
        let next = number as usize + 1;
        let end = if next < self.collections.rows() {
            self.collections.get(next)?.start as usize
        } else {
            self.collection_members.rows()
        };
        self.collection_members.range(start..end)
    }

    /// Returns the collection with an id, which is the doc id of its smallest page.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`].
    pub fn collection_of_id(&self, id: u64) -> Result<Option<u32>> {
        let Some(rank) = self.rank(id)? else { return Ok(None) };
        let number = self.page(rank)?.collection;
        Ok((number != NONE && self.collection(number)?.id == id).then_some(number))
    }

    /// Returns the numbers of the collections in a similar cluster.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`].
    pub fn mirrors(&self, similar_cluster: u64) -> Result<std::ops::Range<u32>> {
        let key = |at: usize| Ok(self.collections.get(at)?.similar_cluster);
        let start = lower_bound(self.collections.rows(), similar_cluster, key)?;
        let end = match similar_cluster.checked_add(1) {
            Some(next) => lower_bound(self.collections.rows(), next, key)?,
            None => self.collections.rows(),
        };
        Ok(start as u32..end as u32)
    }

    /// Returns at most `limit` pages whose text has the hash `exact`, ascending.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::rank`].
    pub fn with_text(&self, exact: u64, limit: usize) -> Result<Vec<u32>> {
        let start = lower_bound(self.texts.rows(), exact, |at| Ok(self.texts.get(at)?.hash()))?;
        let mut pages = Vec::new();
        for position in start..self.texts.rows().min(start.saturating_add(limit)) {
            let row = self.texts.get(position)?;
            if row.hash() != exact {
                break;
            }
            pages.push(row.value);
        }
        Ok(pages)
    }

    /// Returns the columns of chunks, if the index was built with them.
    pub fn chunks(&self) -> Option<&IndexChunks> {
        self.chunks.as_ref()
    }

    /// Returns the texts for search, if the index was built with them.
    #[cfg(feature = "search")]
    pub fn words(&self) -> Option<&WordIndex> {
        self.words.as_ref()
    }

    /// Returns the tables of simhashes, if the index was built with them.
    pub fn simhashes(&self) -> Option<&OnlineIndex<FileBytes>> {
        self.near_tables.as_ref()
    }
}
