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
    let first_records = &corpus.first_records;
    let place = |row: &ExactRow| order.place(first_records[row.record[0] as usize] + row.record[1]);
    let hashes = corpus.workers.iter_mut().map(|worker| &mut worker.exact).collect();
    let found_copies = each_bucket(hashes, threads, bounds, Vec::new, |copies, rows: &mut Vec<ExactRow>| {
        let mut texts: Vec<([u64; 2], u32)> = rows.iter().map(|row| (row.hash, place(row))).collect();
        texts.sort_unstable();
        for equal_texts in texts.chunk_by(|x, y| x.0 == y.0) {
            copies.extend(equal_texts[1..].iter().map(|&(_, copy)| (copy, equal_texts[0].1)));
        }
        Ok(())
    })?;
    let mut copies = vec![NONE; order.records as usize];
    found_copies.into_iter().flatten().for_each(|(copy, first): (u32, u32)| copies[copy as usize] = first);
    Ok(copies)
}
