//! Index of a finished run that answers single questions: may this URL be skipped, which page is
//! kept for it, is this text known?
//!
//! | file | a row | purpose |
//! |---|---|---|
//! | `pages` | doc id, kept page, cluster, collection, origin, time, values: 32 bytes ([`rows::IndexedPageRow`]) | look-ups: interpolation search by doc id |
//! | `contents` | hash of the text, simhash: 16 bytes | alternates, sets |
//! | `texts` | hash of a text, page: 12 bytes, by hash | is this exact text known? |
//! | `origins`, `urls` | origins of URLs; paths, by page: in blocks of 16 ([`strings`]) | the URL of a page |
//! | `prefixes` | prefixes of the avoid list, ascending | URLs that were never crawled |
//! | `standing` | doc id, kept page, value: 16 bytes, by doc id; with a comparison | URLs on the list in force that were not crawled |
//! | `clusters`, `collections`, each with `.pages` | lists of pages | the other pages of a set |
//! | `titles` | titles of pages, stored like `urls` | lists and members |
//! | `clusters.by_size`, `mirrors.by_size` | trivial clusters and similar clusters, the largest first | lists ([`lists`]) |
//! | `clusters.names`, `mirrors.names` | hash of a word of a title or URL, place in that order: 12 bytes | lists by words ([`names`]) |
//! | `hosts` | hash of a host, number of its pages: 12 bytes | why is a URL unknown ([`unknown`])? |
//! | `rejected` | doc id of a URL that was read but is not a page, reason: 12 bytes | why is a URL unknown? |
//! | `chunks`, `chunks.pages`, `chunks.counts` | chunk and its pages: 12 bytes a distinct chunk; on request | is a similar text known? |
//! | `online-index.json`, `table-NN.fptable`, `doc-ids.docids` | files of `webtwin hamming index`; on request | is a text with a near simhash known? |
//! | `words/...`, `words.starts`, `words.pages` | full-text index, the pages of each text and their result groups; on request | search |
//! | `manifest.json` | the run, checksums; written last | is this an index, and of which run? |
//!
//! Files are memory-mapped and checked block by block on first access ([`mod@column`]): damage is
//! an error, never a wrong answer.
//!
//! # Deviations
//! A URL that hashes to the doc id of another page is treated as that page. With 10^8 pages this
//! affects one of 10^11 unknown URLs.

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

pub use index::LookupIndex;
