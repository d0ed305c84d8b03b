//! An index, opened: its columns, and what they say of a page, a set, a collection or a prefix; and its URL rules, in
//! memory.

mod open;

use xxhash_rust::xxh3::xxh3_64;

use super::about::About;
use super::column::Column;
use super::find::{find, lower_bound};
use super::rows::{CollectionRow, ContentRow, HashRow, ListedCluster, ListedOriginal, NONE, PageRow, StandingRow};
#[cfg(feature = "search")]
use super::search::Words;
use super::strings::Strings;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::DocId;
use webtwin_core::hamming::online::OnlineIndex;
use webtwin_core::url_rules::rules::Rules;
use webtwin_storage::location::Location;
use webtwin_storage::mapped::FileBytes;

/// Name of the strings that are URL rules.
pub(super) const RULES: &str = "url_rules";

/// Name of the column of pages that stand on the list in force.
pub(super) const STANDING: &str = "standing";

/// Names of the columns of trivial clusters, then of similar clusters, the largest first.
pub(super) const BY_SIZE: [&str; 2] = ["clusters.by_size", "mirrors.by_size"];

/// Names of the columns of the words of these.
pub(super) const NAMES: [&str; 2] = ["clusters.names", "mirrors.names"];

/// Chunks of the crawl, if the index has them.
#[derive(Debug)]
pub struct Chunks {
    /// Chunk and the page that has it, or its list; ascending.
    pub postings: Column<HashRow>,
    /// Lists of several pages: their number, then their ranks.
    pub lists: Column<u32>,
    /// By rank, the chunks of a page that count.
    pub counts: Column<u32>,
}

/// An index; threads may share it.
#[derive(Debug)]
pub struct Index {
    /// What it is about.
    pub about: About,
    /// Its folder.
    pub folder: Location,
    pages: Column<PageRow>,
    contents: Column<ContentRow>,
    texts: Column<HashRow>,
    urls: Strings,
    origins: Strings,
    prefixes: Strings,
    rules: Rules,
    standing: Option<Column<StandingRow>>,
    cluster_starts: Column<u64>,
    cluster_members: Column<u32>,
    collections: Column<CollectionRow>,
    collection_members: Column<u32>,
    titles: Strings,
    pub(super) clusters_by_size: Column<ListedCluster>,
    pub(super) cluster_names: Column<HashRow>,
    pub(super) mirrors_by_size: Column<ListedOriginal>,
    pub(super) mirror_names: Column<HashRow>,
    hosts: Column<HashRow>,
    rejected: Column<HashRow>,
    chunks: Option<Chunks>,
    near: Option<OnlineIndex<FileBytes>>,
    #[cfg(feature = "search")]
    words: Option<Words>,
    bytes: u64,
}

/// The error for an index of which something is not as it was made.
fn broken(folder: &Location, what: &str) -> Error {
    Error::input(folder.name(), format!("{what}; make the index anew"))
}

impl Index {
    /// Holds every file against the manifest.
    ///
    /// # Errors
    /// [`Error::Input`] for the first that differs.
    ///
    /// # Cost
    /// All of it is read.
    pub fn verify(&self) -> Result<()> {
        About::read(&self.folder)?.0.verify(&self.folder)
    }

    /// Pages of the run.
    pub fn pages(&self) -> usize {
        self.pages.rows()
    }

    /// Bytes of all its files.
    pub fn len_bytes(&self) -> u64 {
        self.bytes
    }

    /// Rank of a page, if it is one of the run.
    ///
    /// # Errors
    /// [`Error::Input`] when the index is damaged where this looks; so with all below.
    #[inline]
    pub fn rank(&self, page: DocId) -> Result<Option<u32>> {
        Ok(find(self.pages.rows(), page, |at| Ok(self.pages.get(at)?.doc_id))?.map(|rank| rank as u32))
    }

    /// The row of a page that was not crawled, if it stands on the list in force.
    ///
    /// # Errors
    /// As [`Index::rank`].
    pub fn standing(&self, page: DocId) -> Result<Option<StandingRow>> {
        let Some(rows) = &self.standing else { return Ok(None) };
        find(rows.rows(), page, |at| Ok(rows.get(at)?.doc_id))?.map(|at| rows.get(at)).transpose()
    }

    /// The row of a page.
    ///
    /// # Errors
    /// As [`Index::rank`]; also when there is no such page.
    #[inline]
    pub fn page(&self, rank: u32) -> Result<PageRow> {
        self.pages.get(rank as usize)
    }

    /// What the text of a page hashes to.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn content(&self, rank: u32) -> Result<ContentRow> {
        self.contents.get(rank as usize)
    }

    /// Appends the URL of a page to `into`.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn append_url(&self, rank: u32, into: &mut String) -> Result<()> {
        self.origins.append(self.page(rank)?.origin as usize, into)?;
        self.urls.append(rank as usize, into)
    }

    /// The URL of a page.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn url(&self, rank: u32) -> Result<String> {
        let mut url = String::new();
        self.append_url(rank, &mut url).map(|()| url)
    }

    /// The title of a page; empty if it has none.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn title(&self, rank: u32) -> Result<String> {
        self.titles.get(rank as usize)
    }

    /// Pages of a host.
    ///
    /// # Errors
    /// As [`Index::rank`].
    pub fn pages_of_host(&self, host: &str) -> Result<u32> {
        let row = find(self.hosts.rows(), xxh3_64(host.as_bytes()), |at| Ok(self.hosts.get(at)?.hash()))?;
        row.map_or(Ok(0), |row| Ok(self.hosts.get(row)?.value))
    }

    /// Why the record of a URL was not kept, if the run read one and the URL is no page.
    ///
    /// # Errors
    /// As [`Index::rank`].
    pub fn rejected(&self, id: DocId) -> Result<Option<&str>> {
        let row = find(self.rejected.rows(), id, |at| Ok(self.rejected.get(at)?.hash()))?;
        row.map(|row| Ok(self.word(self.rejected.get(row)?.value as u8))).transpose()
    }

    /// What URLs of pages begin with, by [`PageRow::origin`].
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn origin(&self, number: u32) -> Result<String> {
        self.origins.get(number as usize)
    }

    /// A word of a row.
    pub fn word(&self, number: u8) -> &str {
        self.about.words.get(usize::from(number)).map_or("", String::as_str)
    }

    /// The prefix of the avoid list that a canonical URL begins with, if there is one. `room` is scratch.
    ///
    /// # Errors
    /// As [`Index::rank`].
    pub fn prefix_of(&self, url: &str, room: &mut Vec<u8>) -> Result<Option<usize>> {
        // No prefix begins with another, so none can stand between the one that covers the URL and the URL itself.
        let Some(last) = self.prefixes.last_not_after(url, room)? else { return Ok(None) };
        Ok(url.starts_with(&self.prefix(last)?).then_some(last))
    }

    /// A prefix of the avoid list.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn prefix(&self, number: usize) -> Result<String> {
        self.prefixes.get(number)
    }

    /// How many prefixes there are.
    pub fn prefixes(&self) -> usize {
        self.prefixes.count()
    }

    /// URL rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Pages of a trivial cluster, ascending.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn cluster(&self, number: u32) -> Result<impl ExactSizeIterator<Item = u32> + '_> {
        let start = self.cluster_starts.get(number as usize)? as usize;
        let end = self.cluster_starts.get(number as usize + 1)? as usize;
        self.cluster_members.range(start..end)
    }

    /// Trivial clusters.
    pub fn clusters(&self) -> usize {
        self.cluster_starts.rows().saturating_sub(1)
    }

    /// The id of a cluster: the doc id of its smallest page.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn cluster_id(&self, number: u32) -> Result<DocId> {
        let first = self.cluster(number)?.next();
        self.page(first.ok_or_else(|| broken(&self.folder, "a cluster has no pages"))?).map(|page| page.doc_id)
    }

    /// A collection.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn collection(&self, number: u32) -> Result<CollectionRow> {
        self.collections.get(number as usize)
    }

    /// Similar clusters: originals with their mirrors.
    pub fn originals(&self) -> usize {
        self.mirrors_by_size.rows()
    }

    /// Collections.
    pub fn collections(&self) -> usize {
        self.collections.rows()
    }

    /// Pages of a collection, ascending.
    ///
    /// # Errors
    /// As [`Index::page`].
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

    /// The collection with an id: that of its smallest page.
    ///
    /// # Errors
    /// As [`Index::rank`].
    pub fn collection_of_id(&self, id: u64) -> Result<Option<u32>> {
        let Some(rank) = self.rank(id)? else { return Ok(None) };
        let number = self.page(rank)?.collection;
        Ok((number != NONE && self.collection(number)?.id == id).then_some(number))
    }

    /// Numbers of the collections of a similar cluster.
    ///
    /// # Errors
    /// As [`Index::rank`].
    pub fn mirrors(&self, similar_cluster: u64) -> Result<std::ops::Range<u32>> {
        let key = |at: usize| Ok(self.collections.get(at)?.similar_cluster);
        let from = lower_bound(self.collections.rows(), similar_cluster, key)?;
        let to = match similar_cluster.checked_add(1) {
            Some(next) => lower_bound(self.collections.rows(), next, key)?,
            None => self.collections.rows(),
        };
        Ok(from as u32..to as u32)
    }

    /// Pages with a text that hashes to this, ascending.
    ///
    /// # Errors
    /// As [`Index::rank`].
    pub fn with_text(&self, exact: u64, most: usize) -> Result<Vec<u32>> {
        let from = lower_bound(self.texts.rows(), exact, |at| Ok(self.texts.get(at)?.hash()))?;
        let mut found = Vec::new();
        for at in from..self.texts.rows().min(from.saturating_add(most)) {
            let row = self.texts.get(at)?;
            if row.hash() != exact {
                break;
            }
            found.push(row.value);
        }
        Ok(found)
    }

    /// The chunks, if they were asked for when the index was made.
    pub fn chunks(&self) -> Option<&Chunks> {
        self.chunks.as_ref()
    }

    /// Texts by their words, if they were asked for when the index was made.
    #[cfg(feature = "search")]
    pub fn words(&self) -> Option<&Words> {
        self.words.as_ref()
    }

    /// The tables of simhashes, if they were asked for when the index was made.
    pub fn simhashes(&self) -> Option<&OnlineIndex<FileBytes>> {
        self.near.as_ref()
    }
}
