//! A finished run as an index that answers one question at a time: may this URL be skipped, what stays for it, is this text known?
//!
//! | file | a row | for |
//! |---|---|---|
//! | `pages` | doc id, page that stays, cluster, collection, origin, time, words: 32 bytes ([`rows::PageRow`]) | look-ups: interpolation by doc id |
//! | `contents` | hash of the text, simhash: 16 bytes | alternates, sets |
//! | `texts` | hash of a text, page: 12 bytes, by hash | is this very text known? |
//! | `origins`, `urls` | what URLs begin with; paths, by page: in blocks of 16 ([`strings`]) | the URL of a page |
//! | `prefixes` | prefixes of the avoid list, ascending | URLs that were never crawled |
//! | `standing` | doc id, page that stays, word: 16 bytes, by doc id; with a comparison | URLs on the list in force that were not crawled |
//! | `clusters`, `collections`, each with `.pages` | lists of pages | what else is in a set |
//! | `titles` | titles of pages, as `urls` | lists and members |
//! | `clusters.by_size`, `mirrors.by_size` | trivial clusters and similar clusters, the largest first | lists ([`lists`]) |
//! | `clusters.names`, `mirrors.names` | hash of a word of a title or URL, place in that order: 12 bytes | lists by words ([`names`]) |
//! | `hosts` | hash of a host, its pages: 12 bytes | why is a URL unknown ([`unknown`])? |
//! | `rejected` | doc id of a URL that was read but is no page, reason: 12 bytes | the same |
//! | `chunks`, `chunks.pages`, `chunks.counts` | chunk and its pages: 12 bytes a distinct chunk; on request | is a text like this known? |
//! | `online-index.json`, `table-NN.fptable`, `doc-ids.docids` | as of `webtwin hamming index`; on request | the same by simhash |
//! | `words/...`, `words.starts`, `words.pages` | texts by their words, the pages of each text and what they are rolled up with; on request | search |
//! | `manifest.json` | the run, checksums; last | whether it is an index, and of what |
//!
//! Files are mapped and checked block by block when they are touched ([`mod@column`]): damage is an error, never a wrong answer.
//!
//! # Deviations
//! A URL that hashes to the doc id of another page is taken for that page: among 10^8 pages one of 10^11 unknown URLs.

pub mod about;
pub mod alternates;
pub mod answer;
pub mod build;
pub mod check;
pub mod chunks;
pub mod column;
mod find;
pub mod index;
pub mod lists;
pub mod names;
pub mod rows;
#[cfg(feature = "search")]
pub mod search;
pub mod sets;
pub mod strings;
pub mod unknown;

pub use index::Index;
