//! Rows of the columns of an index. Pages are numbered by rank: their place in ascending order of doc ids.

use bytemuck::{Pod, Zeroable};

/// Stands for no page, cluster or collection.
pub const NONE: u32 = u32::MAX;

/// A page: 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PageRow {
    /// Its doc id.
    pub doc_id: u64,
    /// Rank of the page that stays for it, or [`NONE`].
    pub keep: u32,
    /// Number of its trivial cluster, or [`NONE`].
    pub cluster: u32,
    /// Number of its collection, or [`NONE`].
    pub collection: u32,
    /// Number of what its URL begins with, up to its path.
    pub origin: u32,
    /// When it was fetched, seconds since 1970; 0 if that is not known, or before.
    pub time: u32,
    /// Word of its role in the cluster; see [`super::about::About::words`].
    pub role: u8,
    /// Word that says why it may be skipped.
    pub why: u8,
    /// [`PageRow::SKIP`], [`PageRow::SIMHASH`].
    pub bits: u8,
    pub(super) zero: u8,
}

impl PageRow {
    /// Bytes before the fields that follow the doc id.
    pub const SKIP: u8 = 1;
    /// The page has a simhash.
    pub const SIMHASH: u8 = 2;

    /// Whether a crawler may skip it.
    pub fn is_skipped(&self) -> bool {
        self.bits & PageRow::SKIP != 0
    }
}

/// A page that was not crawled and stands on the list in force: 16 bytes. Orders by doc id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct StandingRow {
    /// Its doc id.
    pub doc_id: u64,
    /// Rank of the page that stays for it, or [`NONE`].
    pub keep: u32,
    /// Word that says why it may be skipped.
    pub why: u8,
    pub(super) zero: [u8; 3],
}

/// What the text of a page hashes to: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ContentRow {
    /// As `pages.exact`: of the whole text, or of the bytes where there is little; 0 if there is none.
    pub exact: u64,
    /// As `pages.simhash`; means nothing without [`PageRow::SIMHASH`].
    pub simhash: u64,
}

/// A hash, and what it leads to: 12 bytes. Orders by hash, then value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct HashRow {
    high: u32,
    low: u32,
    /// What it leads to.
    pub value: u32,
}

impl HashRow {
    /// Makes a row.
    pub fn new(hash: u64, value: u32) -> HashRow {
        HashRow { high: (hash >> 32) as u32, low: hash as u32, value }
    }

    /// The hash.
    pub fn hash(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// A trivial cluster in the list of all: 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ListedCluster {
    /// Its number.
    pub cluster: u32,
    /// Rank of its page with the role `keep`, or else of its smallest page.
    pub shown: u32,
}

/// A similar cluster in the list of all: 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ListedOriginal {
    /// Number of its collection that is kept, or else of its first.
    pub kept: u32,
    /// Pages of the other collections.
    pub surplus: u32,
}

/// A collection with its mirrors: 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CollectionRow {
    /// Its id: the smallest doc id in it.
    pub id: u64,
    /// Id of its similar cluster.
    pub similar_cluster: u64,
    /// First of its members in the list of all.
    pub start: u64,
    /// Rank of its root.
    pub root: u32,
    /// Collections of the similar cluster.
    pub cardinality: u32,
    /// Pages, attached ones included.
    pub size: u32,
    /// 1 if it is the one that is kept.
    pub keep: u32,
}
