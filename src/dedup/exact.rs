//! Exact copies: records with the same text, byte for byte, known by a hash of 128 bits.

use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;

use super::corpus::{Corpus, ExactRow};
use super::order::Order;
use crate::error::Result;
use crate::storage::spill::Buckets;
use crate::threads;

/// Stands for the place of a record that is no copy.
pub const NONE: u32 = u32::MAX;

/// For each place in the order of keeping, the first place with the same text, if that is another; [`NONE`] if not.
///
/// # Errors
/// Those of the disk that holds hashes.
pub fn copies(corpus: &mut Corpus, order: &Order, threads: usize) -> Result<Vec<u32>> {
    let first_of_arrival = &corpus.first_of_arrival;
    let place = |row: &ExactRow| order.place(first_of_arrival[row.record[0] as usize] + row.record[1]);
    let hashes = corpus.workers.iter_mut().map(|worker| &mut worker.exact).collect();
    let found = each_bucket(hashes, threads, Vec::new, |found, rows: &mut Vec<ExactRow>| {
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

/// Calls `work` with all rows of each bucket, in several threads, each with an outcome of its own to work into.
///
/// # Errors
/// Those of `work`, and of the disk that holds rows.
pub fn each_bucket<T: Pod + Send, O: Send>(
    mut parts: Vec<&mut Buckets<T>>,
    threads: usize,
    outcome: impl Fn() -> O + Sync,
    work: impl Fn(&mut O, &mut Vec<T>) -> Result<()> + Sync,
) -> Result<Vec<O>> {
    let buckets = parts.first().map_or(0, |part| part.count());
    let parts = Mutex::new(&mut parts);
    let begun = || (outcome(), Vec::new(), Vec::new());
    let done = threads::for_each(threads, buckets, begun, |(outcome, rows, some), bucket| {
        rows.clear();
        for part in parts.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            part.take(bucket, some)?;
            rows.extend_from_slice(some);
        }
        work(outcome, rows)
    })?;
    Ok(done.into_iter().map(|(outcome, ..)| outcome).collect())
}
