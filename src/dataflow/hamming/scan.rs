//! The scan: every piece of F against tables built from Q.
//!
//! No exchange. Memory: the tables once a process; a decoded piece (32 MB) and what was found in each worker.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Work;
use crate::engine::Net;
use crate::error::Result;
use crate::hamming::close_pairs::{Joiner, Numbered};
use crate::hamming::conditions::MAX_K;
use crate::hamming::kernels::Level;
use crate::hamming::postings::{Postings, distinct};
use crate::hamming::query_tables::{Hit, MOST_QUERIES, QueryTables, Scratch};
use crate::hamming::spread::Spread;
use crate::ids::DocId;
use crate::job::Job;

/// Rows of the largest piece: fewer make tables come into cache more often than need be.
const MOST_ROWS: u64 = 1 << 22;

/// Rows of the smallest piece: a table takes as long to come into cache as some ten thousand to be looked up in it.
const LEAST_ROWS: u64 = 1 << 17;

/// Pieces that a worker has at least, as long as they are not too small: so that all are at work until the end.
const PIECES: u64 = 4;

/// Bytes that a worker holds of the piece it scans: fingerprints and where their rows end.
pub const PIECE_BYTES: u64 = 12 * MOST_ROWS;

/// Rows of a piece where so many workers scan so many rows.
fn piece_rows(rows: u64, workers: usize) -> u64 {
    (rows / (PIECES * workers as u64)).clamp(LEAST_ROWS, MOST_ROWS)
}

/// Bytes that a process holds of queries and their tables.
pub fn bytes(queries: &Postings, k: u32) -> u64 {
    let distinct = queries.fingerprints().len();
    // Rows as they came, distinct ones with their documents, and the spread copy.
    let held = 16 * queries.documents() as u64 * 2 + 20 * distinct as u64;
    let sets = (0..distinct).step_by(MOST_QUERIES).map(|first| MOST_QUERIES.min(distinct - first));
    held + if k > MAX_K { 0 } else { sets.map(|queries| QueryTables::bytes(queries, k)).sum() }
}

/// A fingerprint of F that is near a query.
#[derive(Debug, Clone, Copy)]
pub struct Near {
    /// Its chunk.
    pub chunk: u32,
    /// First of its rows in the chunk.
    pub row: u32,
    /// Rows that have it.
    pub copies: u32,
    /// Place of the query among the distinct ones.
    pub query: u32,
    /// Bits in which they differ.
    pub distance: u32,
}

impl Near {
    /// Pairs of documents that this stands for.
    pub fn pairs(&self, queries: &Postings) -> u64 {
        u64::from(self.copies) * queries.doc_ids(self.query as usize).len() as u64
    }
}

/// How the queries are looked up.
enum Search {
    /// By tables, one set for every [`MOST_QUERIES`] queries.
    Tables(Vec<QueryTables>),
    /// By partitioning them with each chunk: distances for which there are no conditions.
    Partition(Vec<Numbered>),
}

impl Search {
    fn new(queries: &[u64], f: u32, k: u32) -> Result<Search> {
        let mut spread = queries.to_vec();
        Spread::all(f, &mut spread);
        if k > MAX_K {
            return Ok(Search::Partition((0..).zip(spread).map(|(n, query)| Numbered::new(query, n)).collect()));
        }
        let sets = spread.chunks(MOST_QUERIES).map(|batch| QueryTables::new(batch, k, Level::best()));
        Ok(Search::Tables(sets.collect::<Result<_>>()?))
    }

    /// Calls `sink` with every fingerprint and query within k bits.
    fn join(&self, fingerprints: &[u64], scratch: &mut Scratch, joiner: &mut Joiner, sink: &mut impl FnMut(Hit)) {
        match self {
            Search::Tables(sets) => {
                for (set, tables) in sets.iter().enumerate() {
                    let first = (set * MOST_QUERIES) as u32;
                    tables.join(fingerprints, scratch, &mut |hit| sink(Hit { query: first + hit.query, ..hit }));
                }
            }
            Search::Partition(queries) => {
                let mut left: Vec<Numbered> =
                    (0..).zip(fingerprints).map(|(n, value)| Numbered::new(*value, n)).collect();
                let (mut right, mut left_scratch, mut right_scratch) = (queries.clone(), left.clone(), queries.clone());
                joiner.across(
                    (&mut left, &mut left_scratch),
                    (&mut right, &mut right_scratch),
                    &mut |x, y, distance| {
                        sink(Hit { at: x.number, query: y.number, distance });
                    },
                );
            }
        }
    }
}

/// Scans the pieces that this worker pulls; returns what is near, ascending by chunk, row and query.
///
/// # Errors
/// [`crate::error::Error::Input`] when a chunk is damaged, the same on all workers.
pub fn near(net: &mut Net<'_>, job: &Job, work: &Work, queries: &Arc<Postings>) -> Result<Vec<Near>> {
    let (f, k) = (work.set.manifest.f, job.hamming.k);
    let search = net.once(|| Search::new(queries.fingerprints(), f, k))?;
    let search = (*search).as_ref().map_err(Clone::clone)?;
    let found = scan(net, k, work, search);
    found
}

fn scan(net: &Net<'_>, k: u32, work: &Work, search: &Search) -> Result<Vec<Near>> {
    let (mut scratch, mut joiner) = (Scratch::new(k, Level::best()), Joiner::new(k, Level::best()));
    let (mut fingerprints, mut ends, mut found) = (Vec::new(), Vec::new(), Vec::new());
    let pieces = work.set.pieces(piece_rows(work.set.manifest.count, net.peers()));
    while let Some(&piece) = pieces.get(work.pieces_read.next(net)) {
        net.check()?;
        let first = work.set.read_piece(piece, &mut fingerprints)? as u32;
        let rows = fingerprints.len() as u64;
        distinct(&mut fingerprints, &mut ends);
        Spread::all(work.set.manifest.f, &mut fingerprints);
        let before = found.len();
        search.join(&fingerprints, &mut scratch, &mut joiner, &mut |Hit { at, query, distance }| {
            let start = at.checked_sub(1).map_or(0, |before| ends[before as usize]);
            let (chunk, copies) = (piece.chunk as u32, ends[at as usize] - start);
            found.push(Near { chunk, row: first + start, copies, query, distance });
        });
        found[before..].sort_unstable_by_key(|near| (near.row, near.query));
        work.progress.done.fetch_add(rows, Ordering::Relaxed);
        work.progress.records.fetch_add(rows, Ordering::Relaxed);
    }
    Ok(found)
}

/// Calls `take` with all that is near one fingerprint of F, and the documents that have it; `near` is this worker's, in the
/// order in which [`near`] gives it.
///
/// # Errors
/// [`crate::error::Error::Input`] when doc ids are damaged.
pub fn with_documents(
    net: &Net<'_>,
    work: &Work,
    near: &[Near],
    mut take: impl FnMut(&[Near], &[DocId]),
) -> Result<()> {
    /// Rows for which doc ids are read one by one; they are checked a thousand at a time.
    const FEW: usize = 1000;
    for of_chunk in near.chunk_by(|x, y| x.chunk == y.chunk) {
        let number = of_chunk[0].chunk as usize;
        let documents = |rows: Range<usize>| work.set.documents(number, rows);
        let count = work.set.manifest.chunks[number].count as usize;
        let all = if of_chunk.len() > FEW { Some(documents(0..count)?) } else { None };
        for of_row in of_chunk.chunk_by(|x, y| x.row == y.row) {
            net.check()?;
            let rows = of_row[0].row as usize..(of_row[0].row + of_row[0].copies) as usize;
            match &all {
                Some(all) => take(of_row, &all[rows]),
                None => take(of_row, &documents(rows)?),
            }
        }
    }
    Ok(())
}
