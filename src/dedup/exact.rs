//! Exact copies: records with identical texts, recognised by a hash of 128 bits.

use super::buckets::{WorkBounds, each_bucket};
use super::corpus::{Corpus, ExactRow};
use super::order::Order;
use webtwin_base::error::Result;

/// Placeholder for records that are not copies.
pub(crate) const NONE: u32 = u32::MAX;

/// Returns, for each place in the order of keeping, the first place with the same text, or [`NONE`]
/// if that is the place itself.
///
/// # Errors
/// Returns any error of the disk with the hashes, and [`webtwin_base::error::Error::MemoryLimit`]
/// if the copies of one text do not fit in memory.
pub(crate) fn copies(corpus: &mut Corpus, order: &Order, bounds: &WorkBounds, threads: usize) -> Result<Vec<u32>> {
    let first_of_arrival = &corpus.first_of_arrival;
    let place = |row: &ExactRow| order.place(first_of_arrival[row.record[0] as usize] + row.record[1]);
    let hashes = corpus.workers.iter_mut().map(|worker| &mut worker.exact).collect();
    let found = each_bucket(hashes, threads, bounds, Vec::new, |found, rows: &mut Vec<ExactRow>| {
        let mut texts: Vec<([u64; 2], u32)> = rows.iter().map(|row| (row.hash, place(row))).collect();
        texts.sort_unstable();
        for same in texts.chunk_by(|x, y| x.0 == y.0) {
            found.extend(same[1..].iter().map(|&(_, copy)| (copy, same[0].1)));
        }
        Ok(())
    })?;
    let mut copies = vec![NONE; order.records as usize];
    found.into_iter().flatten().for_each(|(copy, first): (u32, u32)| copies[copy as usize] = first);
    Ok(copies)
}
