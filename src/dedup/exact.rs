//! Exact copies: records with the same text, byte for byte, known by a hash of 128 bits.

use super::buckets::{Bounds, each_bucket};
use super::corpus::{Corpus, ExactRow};
use super::order::Order;
use webtwin_base::error::Result;

/// Stands for the place of a record that is no copy.
pub(crate) const NONE: u32 = u32::MAX;

/// For each place in the order of keeping, the first place with the same text, if that is another; [`NONE`] if not.
///
/// # Errors
/// Those of the disk that holds hashes; [`webtwin_base::error::Error::MemoryLimit`] when the copies of one text do not fit.
pub(crate) fn copies(corpus: &mut Corpus, order: &Order, bounds: &Bounds, threads: usize) -> Result<Vec<u32>> {
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
