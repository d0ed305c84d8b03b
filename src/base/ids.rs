//! Identifiers: their widths, order and meaning.
//!
//! | type | width | meaning |
//! |---|---|---|
//! | [`DocId`] | 64 bits | page, permanently: hash of its canonical URL, the same in every crawl |
//! | [`Page`] | 32 bits | page within one run: its number in ascending `DocId` order |
//! | [`HostId`] | 32 bits | host within one run: its number in ascending order of hashed names |
//! | [`ClusterId`], [`PieceId`], [`SimilarClusterId`] | 32 bits | set of pages within one run, named by its smallest page |
//! | [`ComponentId`] | 32 bits | component of the graph of trivial clusters, named by its smallest cluster |
//! | [`FPrint`] | 64 bits | chunk of text (32-bit recipes leave the high half zero) |
//! | [`SimHash`] | up to 64 bits | features of a page; bits above the recipe's width f are zero |
//!
//! Pages are numbered in the order of their doc ids, so the page with the smallest doc id is the
//! smallest page.
//!
//! Numbers within a run are separate types, so that they cannot be confused. They index the lists
//! that have an entry for each number: `hosts[page]` is the host of a page. `DocId`, `FPrint` and
//! `SimHash` are aliases of `u64`: they are hashes, which kernels compare, shift and mix, and no
//! list is indexed by them.

use std::ops::{Index, IndexMut};

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Identifier of a page: the hash of its canonical URL.
pub type DocId = u64;

/// Fingerprint of a chunk of text.
pub type FPrint = u64;

/// Simhash of a page's features (\[MJS07\] section 2).
pub type SimHash = u64;

/// 32-bit number of a thing of one kind, counted from 0, which indexes lists with an entry for
/// each.
pub trait Number: Pod + Ord + Send + Sync {
    /// Returns the number with the given index, which must be below 2^32.
    fn from_index(index: usize) -> Self;

    /// Returns the number as an integer.
    fn number(self) -> u32;

    /// Returns the index of the number in lists.
    #[inline]
    fn index(self) -> usize {
        self.number() as usize
    }
}

impl Number for u32 {
    #[inline]
    fn from_index(index: usize) -> u32 {
        index as u32
    }

    #[inline]
    fn number(self) -> u32 {
        self
    }
}

/// Defines a type of numbers, whose rows and files are identical to those of `u32`.
macro_rules! number {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl Number for $name {
            #[inline]
            fn from_index(index: usize) -> $name {
                $name(index as u32)
            }

            #[inline]
            fn number(self) -> u32 {
                self.0
            }
        }

        impl $name {
            /// Placeholder for the absence of a number.
            pub const NONE: $name = $name(u32::MAX);
        }

        impl From<$name> for u64 {
            fn from(number: $name) -> u64 {
                number.0.into()
            }
        }

        impl<T> Index<$name> for [T] {
            type Output = T;

            #[inline]
            fn index(&self, number: $name) -> &T {
                &self[Number::index(number)]
            }
        }

        impl<T> IndexMut<$name> for [T] {
            #[inline]
            fn index_mut(&mut self, number: $name) -> &mut T {
                &mut self[Number::index(number)]
            }
        }

        impl<T> Index<$name> for Vec<T> {
            type Output = T;

            #[inline]
            fn index(&self, number: $name) -> &T {
                &self[Number::index(number)]
            }
        }

        impl<T> IndexMut<$name> for Vec<T> {
            #[inline]
            fn index_mut(&mut self, number: $name) -> &mut T {
                &mut self[Number::index(number)]
            }
        }
    };
}

number! {
    /// Page within one run: its number, from 0, in ascending [`DocId`] order.
    Page
}

impl Page {
    /// Returns the first `count` pages of a run, ascending.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Page> + ExactSizeIterator + Clone {
        (0..count as u32).map(Page)
    }
}

number! {
    /// Host within one run: its number, from 0, in ascending order of hashed host names.
    HostId
}

/// Defines a type of sets of pages, each named by its smallest page.
macro_rules! named_by_page {
    ($(#[$about:meta])* $name:ident) => {
        number! {
            $(#[$about])*
            $name
        }

        impl $name {
            /// Returns the set whose smallest page is `smallest`.
            #[inline]
            pub fn from_smallest(smallest: Page) -> $name {
                $name(smallest.0)
            }

            /// Returns the smallest page of the set.
            #[inline]
            pub fn smallest(self) -> Page {
                Page(self.0)
            }
        }
    };
}

named_by_page! {
    /// Trivial cluster (\[CSG00\] Def. 5): pages that are copies of each other.
    ClusterId
}

named_by_page! {
    /// Piece: pages of one host that are connected by links, an intermediate result of the search
    /// for collections.
    PieceId
}

named_by_page! {
    /// Similar cluster: collections that are copies of each other.
    SimilarClusterId
}

number! {
    /// Component of the graph of trivial clusters, named by its smallest cluster.
    ComponentId
}

/// Ids as JSON strings, because JavaScript and jq round numbers above 2^53. For `#[serde(with =
/// ...)]`.
pub mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes an id.
    pub fn serialize<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    /// Reads an id.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Returns the doc id of a canonical URL (recipe `xxh3-64`, seed 0).
pub fn doc_id(canonical_url: &str) -> DocId {
    xxh3_64(canonical_url.as_bytes())
}

/// Mixes a key over all 64 bits (the finaliser of SplitMix64), to route keys that are not hashes.
pub fn splitmix64(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
