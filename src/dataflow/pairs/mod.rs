//! Similar pairs by each measure: exact copies, shared chunks, near simhashes, colliding
//! signatures, shingles, and given pairs; and views of one page.

pub(crate) mod allowance;
pub mod apart;
mod candidates;
mod changes;
mod chunk_runs;
pub mod counts;
mod domains;
pub mod editions;
pub mod exact;
pub mod fprint_docid;
pub mod given;
pub mod given_tables;
pub(crate) mod guards;
pub mod hyperlink_map;
pub mod kinds;
pub mod minhash_pairs;
pub mod overlap;
pub mod overlap_before;
pub mod overlap_join;
mod overlap_merge;
pub mod overlap_work;
mod pair_buckets;
mod postings;
pub mod signatures;
pub mod simhash_pairs;
pub mod similar;
mod view_groups;
pub mod views;
