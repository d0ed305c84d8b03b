//! Row types of the columns of an index. Pages are numbered by rank: their index in ascending order
//! of doc ids.

use bytemuck::{Pod, Zeroable};

/// Value for no page, cluster or collection.
pub const NONE: u32 = u32::MAX;

/// Page row of 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct IndexedPageRow {
    /// Doc id of the page.
    pub doc_id: u64,
    /// Rank of the page that is kept for it, or [`NONE`].
    pub keep: u32,
    /// Number of its trivial cluster, or [`NONE`].
    pub cluster: u32,
    /// Number of its collection, or [`NONE`].
    pub collection: u32,
    /// Number of its URL's origin.
    pub origin: u32,
    /// Fetch time in seconds since 1970; 0 if unknown or earlier.
    pub time: u32,
    /// Role in its cluster, as an index of [`super::about::IndexSubject::words`].
    pub role: u8,
    /// Reason why it may be skipped, as an index of these values.
    pub why: u8,
    /// Flags [`IndexedPageRow::SKIP`] and [`IndexedPageRow::SIMHASH`].
    pub bits: u8,
    pub(super) zero: u8,
}

impl IndexedPageRow {
    /// Flag of a page that a crawler may skip.
    pub const SKIP: u8 = 1;
    /// Flag of a page with a simhash.
    pub const SIMHASH: u8 = 2;

    /// True if a crawler may skip the page.
    pub fn is_skipped(&self) -> bool {
        self.bits & IndexedPageRow::SKIP != 0
    }
}

/// Row of 16 bytes of a page that was not crawled and is on the list in force. Rows order by doc
/// id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct StandingRow {
    /// Doc id of the page.
    pub doc_id: u64,
    /// Rank of the page that is kept for it, or [`NONE`].
    pub keep: u32,
    /// Reason why it may be skipped, as an index of [`super::about::IndexSubject::words`].
    pub why: u8,
    pub(super) zero: [u8; 3],
}

/// Row of 16 bytes with the hashes of a page's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ContentRow {
    /// `pages.exact`: hash of the whole text, or of the bytes if there is little text; 0 if there
    /// is none.
    pub exact: u64,
    /// `pages.simhash`. Meaningless without [`IndexedPageRow::SIMHASH`].
    pub simhash: u64,
}

/// Row of 12 bytes that maps a hash to a number. Rows order by hash, then by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct HashRow {
    high: u32,
    low: u32,
    /// Number that the hash maps to.
    pub value: u32,
}

impl HashRow {
    /// Creates a row.
    pub fn new(hash: u64, value: u32) -> HashRow {
        HashRow { high: (hash >> 32) as u32, low: hash as u32, value }
    }

    /// Returns the hash.
    pub fn hash(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// Row of 8 bytes of a trivial cluster in the list of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ListedCluster {
    /// Number of the cluster.
    pub cluster: u32,
    /// Rank of its page with the role `keep`, or else of its smallest page.
    pub shown: u32,
}

/// Row of 8 bytes of a similar cluster in the list of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct OriginalRow {
    /// Number of its kept collection, or else of its first.
    pub kept: u32,
    /// Number of pages of its other collections.
    pub surplus: u32,
}

/// Row of 40 bytes of a collection that has mirrors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct IndexedCollectionRow {
    /// Id: the smallest doc id of its pages.
    pub id: u64,
    /// Id of its similar cluster.
    pub similar_cluster: u64,
    /// Position of its first member in the list of all members.
    pub start: u64,
    /// Rank of its root.
    pub root: u32,
    /// Number of collections in its similar cluster.
    pub cardinality: u32,
    /// Number of pages, including attached ones.
    pub size: u32,
    /// 1 if it is the kept collection, else 0.
    pub keep: u32,
}
