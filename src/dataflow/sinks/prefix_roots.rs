//! The widest folder that a URL prefix over a skipped page may name: the folder of the page's
//! collection.
//!
//! A prefix also covers pages that were never crawled. So it must not claim more than what is known
//! to be a mirror. The owner of a similar cluster names the folders of its collections, and the
//! owner of each page, which knows its URL, verifies them. This takes one exchange of a length and
//! a hash for each page of a collection.

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

use super::collection_rows::{CollectionRow, MemberRow};
use crate::reading::captures::Crawl;
use crate::shuffle::page_ranges::PageRanges;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::Page;
use webtwin_engine::{Net, Owners};
use webtwin_spill::SpillColumn;

/// Folder of a page's collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Folder {
    page: Page,
    bytes: u32,
    /// XXH3 hash of the folder's URL.
    hash: u64,
}

/// Bounds of the prefixes over a worker's pages.
pub struct PrefixRoots {
    /// Folders of the worker's pages, ascending by page.
    folders: SpillColumn<Folder>,
}

impl PrefixRoots {
    /// Sends the folders of collections to the owners of their pages. `members` are the rows of
    /// `collections`; both are ascending.
    ///
    /// # Errors
    /// Returns any error of the disk, and an error if the run has ended.
    ///
    /// # Memory
    /// Takes 16 bytes for each page in a collection, or the budget of the step if it is smaller.
    pub fn new(
        net: &mut Net<'_>,
        crawl: &Crawl,
        collections: &[CollectionRow],
        members: &SpillColumn<MemberRow>,
    ) -> Result<PrefixRoots> {
        let directory = &*crawl.directory;
        let mut folder_ranges = PageRanges::new(net, crawl.pages.len(), members.len() as u64, 1);
        let mut collections = collections.iter().peekable();
        let folders = members.rows().map(|member| {
            let member = member?;
            let member_collection = (member.similar_cluster, member.collection);
            while collections.next_if(|row| (row.similar_cluster, row.collection) < member_collection).is_some() {}
            let folder = collections.peek().filter(|row| (row.similar_cluster, row.collection) == member_collection);
            let folder = folder.ok_or_else(|| Error::Invariant("a member has no collection".into()))?.prefix.as_bytes();
            Ok(Folder { page: member.page, bytes: folder.len() as u32, hash: xxh3_64(folder) })
        });
        let take =
            |rows: &[Folder]| rows.iter().try_for_each(|row| folder_ranges.push(directory.place(row.page), *row));
        net.exchange_into("folders of collections", folders, |row| directory.owner(row.page), take)?;
        let folders = folder_ranges.sorted(net, |row| *row)?;
        Ok(PrefixRoots { folders })
    }

    /// Returns a reader of the bounds of pages, in ascending order.
    pub fn reader(&self) -> PrefixRootReader<impl Iterator<Item = Result<Folder>>> {
        PrefixRootReader { folders: self.folders.rows().peekable() }
    }
}

/// Reader of [`PrefixRoots`].
pub struct PrefixRootReader<I: Iterator<Item = Result<Folder>>> {
    folders: std::iter::Peekable<I>,
}

impl<I: Iterator<Item = Result<Folder>>> PrefixRootReader<I> {
    /// Returns [`CrawledPage::root`](webtwin_core::applications::prefixes::CrawledPage::root) for a page to
    /// skip with the given URL. Calls must be in ascending order of pages. Of several folders, the
    /// shortest one counts. A folder that does not contain the page is ignored.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn root(&mut self, page: Page, url: &str) -> Result<u32> {
        let mut root = u32::MAX;
        while let Some(folder) = self.folders.next_if(|row| row.as_ref().map_or(true, |row| row.page <= page)) {
            let Folder { page: folder_page, bytes, hash } = folder?;
            let contains = url.as_bytes().get(..bytes as usize).is_some_and(|start| xxh3_64(start) == hash);
            if folder_page == page && contains {
                root = root.min(bytes);
            }
        }
        Ok(root)
    }
}
