//! Identifiers: their widths, order and meaning.
//!
//! | type | width | what it is |
//! |---|---|---|
//! | [`DocId`] | 64 bits | a page for ever: hash of its canonical URL, the same in every crawl |
//! | [`Page`] | 32 bits | a page within one run: its number in ascending `DocId` order |
//! | [`HostId`] | 32 bits | a host within one run: its place in ascending order of hashed names |
//! | [`FPrint`] | 64 bits | a chunk of text (32-bit recipes leave the high half zero) |
//! | [`SimHash`] | up to 64 bits | the features of a page; bits above the recipe's width f are zero |
//!
//! Because pages are numbered in the order of doc ids, the page of the smallest doc id is the smallest page.

use xxhash_rust::xxh3::xxh3_64;

/// A page, by the hash of its canonical URL.
pub type DocId = u64;

/// A page within one run: its number, from 0, in ascending [`DocId`] order.
pub type Page = u32;

/// A host within one run: position in ascending order of hashed host names.
pub type HostId = u32;

/// Fingerprint of a chunk of text.
pub type FPrint = u64;

/// Simhash of a page's features (\[MJS07\] section 2).
pub type SimHash = u64;

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
