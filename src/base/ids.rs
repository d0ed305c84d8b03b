//! Identifiers: their widths, order and meaning.
//!
//! | type | width | what it is |
//! |---|---|---|
//! | [`DocId`] | 64 bits | a page for ever: hash of its canonical URL, the same in every crawl |
//! | [`Page`] | 32 bits | a page within one run: its number in ascending `DocId` order |
//! | [`HostId`] | 32 bits | a host within one run: its number in ascending order of hashed names |
//! | [`ClusterId`], [`PieceId`], [`SimilarClusterId`] | 32 bits | a set of pages within one run, named by the smallest |
//! | [`ComponentId`] | 32 bits | a component of the graph of trivial clusters, named by the smallest |
//! | [`FPrint`] | 64 bits | a chunk of text (32-bit recipes leave the high half zero) |
//! | [`SimHash`] | up to 64 bits | the features of a page; bits above the recipe's width f are zero |
//!
//! Because pages are numbered in the order of doc ids, the page of the smallest doc id is the smallest page.
//!
//! Numbers within a run are types of their own, so that none stands where another should, and index the lists that have an
//! entry for each: `hosts[page]` is the host of a page. `DocId`, `FPrint` and `SimHash` are other names of `u64`: they are
//! hashes, which kernels compare, shift and mix as such, and no list is indexed by them.

use std::ops::{Index, IndexMut};

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// A page, by the hash of its canonical URL.
pub type DocId = u64;

/// Fingerprint of a chunk of text.
pub type FPrint = u64;

/// Simhash of a page's features (\[MJS07\] section 2).
pub type SimHash = u64;

/// Numbers from 0 of the things of one kind, in 32 bits: what lists with an entry for each are indexed by.
pub trait Number: Pod + Ord + Send + Sync {
    /// The thing of an entry. There are fewer than 2^32.
    fn from_index(index: usize) -> Self;

    /// The number itself.
    fn number(self) -> u32;

    /// The entry of a thing.
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

/// Makes a type of numbers, with rows and files the same as those of `u32`.
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
            /// Stands for no such thing.
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
    /// A page within one run: its number, from 0, in ascending [`DocId`] order.
    Page
}

impl Page {
    /// The first `count` pages of a run, ascending.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Page> + ExactSizeIterator + Clone {
        (0..count as u32).map(Page)
    }
}

number! {
    /// A host within one run: its number, from 0, in ascending order of hashed host names.
    HostId
}

/// Makes a type of sets of pages, each named by its smallest page.
macro_rules! named_by_page {
    ($(#[$about:meta])* $name:ident) => {
        number! {
            $(#[$about])*
            $name
        }

        impl $name {
            /// The set whose smallest page this is.
            #[inline]
            pub fn of(smallest: Page) -> $name {
                $name(smallest.0)
            }

            /// Its smallest page.
            #[inline]
            pub fn smallest(self) -> Page {
                Page(self.0)
            }
        }
    };
}

named_by_page! {
    /// A trivial cluster (\[CSG00\] Def. 5): pages that are copies of each other.
    ClusterId
}

named_by_page! {
    /// A piece: pages of one host that hang together by links, on the way to a collection.
    PieceId
}

named_by_page! {
    /// A similar cluster: collections that are copies of each other.
    SimilarClusterId
}

number! {
    /// A component of the graph of trivial clusters, named by the smallest of these.
    ComponentId
}

/// Ids in JSON: as strings, because JavaScript and jq round numbers above 2^53. For `#[serde(with = ...)]`.
pub mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes an id.
    pub fn serialize<S: Serializer>(id: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    /// Reads an id.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Returns the doc id of a canonical URL (recipe `xxh3-64`, seed 0).
pub fn doc_id(canonical_url: &str) -> DocId {
    xxh3_64(canonical_url.as_bytes())
}

/// Spreads a key over all 64 bits (the finaliser of SplitMix64), for routing keys that are not hashes themselves.
pub fn splitmix64(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
