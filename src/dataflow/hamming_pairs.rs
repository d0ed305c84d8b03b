//! Pairs of pages whose simhashes are near: the simhashes of all centres go to one worker, which joins them with themselves.
//!
//! Two exchanges, simhashes in and pairs out. What a pair is, is decided in [`crate::hamming::pairs`]; there too is why equal
//! simhashes do not make a pair of every two pages.
//!
//! # Memory
//! 12 bytes a page and about 60 a pair of near simhashes, on worker 0.

use serde::{Deserialize, Serialize};

use super::captures::Crawl;
use crate::engine::Net;
use crate::error::Result;
use crate::hamming::pairs::{self, Found, SimhashDocId};
use crate::ids::Rank;
use crate::job::Hamming;
use crate::overlap::SimilarPair;

/// What was counted on the way; all of it by worker 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Pages that have a simhash and are not the copy of another.
    pub simhashes: u64,
    /// Distinct ones among these.
    pub distinct: u64,
    /// Pairs of distinct simhashes within k bits.
    pub near: u64,
    /// Those that the guard took away.
    pub guarded: u64,
    /// Pairs of pages, as few as make the same clusters.
    pub similar: u64,
}

/// Finds the similar pairs among the centres, `exact_pairs` being this worker's (centre, copy) pairs; they come ascending, all
/// at worker 0, and so do the counts.
pub fn similar_pairs(
    net: &mut Net<'_>,
    crawl: &Crawl,
    exact_pairs: &[SimilarPair],
    settings: &Hamming,
) -> Result<(Vec<SimilarPair>, Counts)> {
    let mine = crawl.pages.iter().filter_map(|(rank, page)| Some(SimhashDocId::new(page.simhash?, *rank)));
    let mut rows = net.exchange_all("simhashes of centres", mine, |_| 0)?;
    let mut copies: Vec<Rank> = net.exchange_all("copies", exact_pairs.iter().map(|pair| pair.b), |_| 0)?;
    copies.sort_unstable();
    rows.retain(|row| copies.binary_search(&row.doc).is_err());
    let (pairs, Found { distinct, near, guarded }) = pairs::similar_pairs(&mut rows, &crawl.directory.hosts, settings);
    let counts = Counts { simhashes: rows.len() as u64, distinct, near, guarded, similar: pairs.len() as u64 };
    Ok((pairs, counts))
}
