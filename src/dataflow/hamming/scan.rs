//! Scan of a piece of F against tables built from Q.
//!
//! Memory: the tables once in each process; a decoded piece (48 MB) and the rows found in it, in
//! each worker.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use super::merge::pool_of_sorter;
use super::rows::NearPair;
use super::work::HammingWork;
use crate::shuffle::memory::refuse_beyond_bound;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, SimHash};
use webtwin_core::hamming::close_pairs::{Joiner, NumberedFingerprint};
use webtwin_core::hamming::conditions::MAX_K;
use webtwin_core::hamming::kernels::Level;
use webtwin_core::hamming::postings::{FingerprintPostings, distinct};
use webtwin_core::hamming::query_tables::{FingerprintHit, JoinBuffers, MAX_QUERIES, QueryTables};
use webtwin_core::hamming::spread::Spread;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_results::fingerprints::ChunkPiece;
use webtwin_spill::{MemoryPool, RowSorter};

/// Maximum number of rows of a piece. Smaller pieces load tables into the cache more often than
/// necessary.
const MAX_ROWS: u64 = 1 << 22;

/// Minimum number of rows of a piece. To load a table into the cache takes as long as some ten
/// thousand lookups in it.
const MIN_ROWS: u64 = 1 << 17;

/// Minimum number of pieces for each worker, unless pieces would become too small. Keeps all
/// workers busy until the end.
const PIECES: u64 = 4;

/// Bytes that a worker holds of the piece that it scans: fingerprints and the ends of their rows.
const PIECE_BYTES: u64 = 12 * MAX_ROWS;

/// Returns the number of rows of a piece, if `workers` workers scan `rows` rows.
pub(super) fn piece_rows(rows: u64, workers: usize) -> u64 {
    (rows / (PIECES * workers as u64)).clamp(MIN_ROWS, MAX_ROWS)
}

/// Returns the bytes that a process holds of queries and their tables.
fn bytes(queries: &FingerprintPostings, k: u32) -> u64 {
    let distinct = queries.fingerprints().len();
    // The rows as they arrived, the distinct fingerprints with their documents, and the spread
    // copy.
    let posting_bytes = 16 * queries.documents() as u64 * 2 + 20 * distinct as u64;
    let sets = (0..distinct).step_by(MAX_QUERIES).map(|first| MAX_QUERIES.min(distinct - first));
    posting_bytes + if k > MAX_K { 0 } else { sets.map(|queries| QueryTables::bytes(queries, k)).sum() }
}

/// Fingerprint of F that is near a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanMatch {
    /// Number of its chunk.
    pub chunk: u32,
    /// First of its rows in the chunk.
    pub row: u32,
    /// Number of rows with this fingerprint.
    pub copies: u32,
    /// Index of the query among the distinct queries.
    pub query: u32,
    /// Number of bits in which the two differ.
    pub distance: u32,
}

impl ScanMatch {
    /// Returns the number of pairs of documents that this row stands for.
    pub(super) fn pairs(&self, queries: &FingerprintPostings) -> u64 {
        u64::from(self.copies) * queries.doc_ids(self.query as usize).len() as u64
    }
}

/// Method of looking up the queries.
enum Search {
    /// Tables, one set for every [`MAX_QUERIES`] queries.
    Tables(Vec<QueryTables>),
    /// Partitioning of the queries together with each chunk, for distances for which there are no
    /// tables.
    Partition(Vec<NumberedFingerprint>),
}

impl Search {
    fn new(queries: &[u64], f: u32, k: u32) -> Result<Search> {
        let mut spread = queries.to_vec();
        Spread::all(f, &mut spread);
        if k > MAX_K {
            return Ok(Search::Partition(
                (0..).zip(spread).map(|(n, query)| NumberedFingerprint::new(query, n)).collect(),
            ));
        }
        let sets = spread.chunks(MAX_QUERIES).map(|batch| QueryTables::new(batch, k, Level::best()));
        Ok(Search::Tables(sets.collect::<Result<_>>()?))
    }

    /// Calls `sink` with every pair of a fingerprint and a query within k bits.
    fn join(
        &self,
        fingerprints: &[u64],
        scratch: &mut JoinBuffers,
        joiner: &mut Joiner,
        sink: &mut impl FnMut(FingerprintHit),
    ) {
        match self {
            Search::Tables(sets) => {
                for (set, tables) in sets.iter().enumerate() {
                    let first = (set * MAX_QUERIES) as u32;
                    tables.join(fingerprints, scratch, &mut |hit| {
                        sink(FingerprintHit { query: first + hit.query, ..hit })
                    });
                }
            }
            Search::Partition(queries) => {
                let mut left: Vec<NumberedFingerprint> =
                    (0..).zip(fingerprints).map(|(n, value)| NumberedFingerprint::new(*value, n)).collect();
                let (mut right, mut left_scratch, mut right_scratch) = (queries.clone(), left.clone(), queries.clone());
                joiner.across(
                    (&mut left, &mut left_scratch),
                    (&mut right, &mut right_scratch),
                    &mut |x, y, distance| {
                        sink(FingerprintHit { at: x.number, query: y.number, distance });
                    },
                );
            }
        }
    }
}

/// Q and the tables built from it, which the workers of a process share.
pub(super) struct Queries {
    /// Distinct queries with their documents.
    pub postings: FingerprintPostings,
    /// Memory pool of a sorter in the process, in addition to the tables.
    pub sorter: MemoryPool,
    search: Search,
}

impl Queries {
    /// Builds the tables for the queries of a job, given as (fingerprint, document), in a process
    /// with `workers` workers.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::MemoryLimit`] if the tables do not fit in the memory
    /// that the job allows, or in the available memory.
    pub(super) fn new(rows: Vec<(SimHash, DocId)>, f: u32, workers: usize, job: &Job) -> Result<Queries> {
        let (postings, k) = (FingerprintPostings::new(rows), job.hamming.k);
        let table_bytes = bytes(&postings, k) + workers as u64 * PIECE_BYTES;
        let needed_bytes = table_bytes + workers as u64 * RowSorter::<NearPair>::MIN_BYTES;
        refuse_beyond_bound("queries and their tables", needed_bytes, workers, job.effort.memory_bytes)?;
        let search = Search::new(postings.fingerprints(), f, k)?;
        let sorter = pool_of_sorter(table_bytes, workers, &job.effort);
        Ok(Queries { postings, sorter, search })
    }
}

/// Scanner of pieces on one worker, with its buffers.
pub(super) struct Mapper {
    work: Arc<HammingWork>,
    scratch: JoinBuffers,
    joiner: Joiner,
    fingerprints: Vec<SimHash>,
    ends: Vec<u32>,
}

impl Mapper {
    /// Creates a scanner for distances up to `k`.
    pub(super) fn new(work: &Arc<HammingWork>, k: u32) -> Mapper {
        let (scratch, joiner) = (JoinBuffers::new(k, Level::best()), Joiner::new(k, Level::best()));
        Mapper { work: Arc::clone(work), scratch, joiner, fingerprints: Vec::new(), ends: Vec::new() }
    }

    /// Returns the near fingerprints of a piece, ascending by row and query.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if the chunk of the piece is damaged.
    pub(super) fn scan(&mut self, piece: ChunkPiece, queries: &Queries) -> Result<Vec<ScanMatch>> {
        let Mapper { work, scratch, joiner, fingerprints, ends } = self;
        let first = work.set.read_piece(piece, fingerprints)? as u32;
        let rows = fingerprints.len() as u64;
        distinct(fingerprints, ends);
        Spread::all(work.set.manifest.f, fingerprints);
        let mut matches = Vec::new();
        queries.search.join(fingerprints, scratch, joiner, &mut |FingerprintHit { at, query, distance }| {
            let start = at.checked_sub(1).map_or(0, |before| ends[before as usize]);
            let (chunk, copies) = (piece.chunk as u32, ends[at as usize] - start);
            matches.push(ScanMatch { chunk, row: first + start, copies, query, distance });
        });
        matches.sort_unstable_by_key(|near| (near.row, near.query));
        work.progress.done.fetch_add(rows, Ordering::Relaxed);
        work.progress.records.fetch_add(rows, Ordering::Relaxed);
        Ok(matches)
    }
}

/// Iterator over the pairs of documents that the near fingerprints of a piece stand for.
pub(super) struct ScanPairs {
    queries: Arc<OnceLock<Queries>>,
    near: Vec<ScanMatch>,
    /// Documents of the near rows: either of all rows from the first to the last near row, or only
    /// of the near rows.
    documents: Vec<DocId>,
    /// True if equal doc ids in F and Q name the same document.
    is_same_set: bool,
    /// Position of the next pair: index of the near row, start of its documents, index of its
    /// document, and index of the query's document.
    at: usize,
    start: usize,
    document: usize,
    other: usize,
}

impl ScanPairs {
    /// Maximum number of near rows for which doc ids are read row by row. Doc ids are verified a
    /// thousand at a time, so more rows are read together.
    const SINGLE_READ_ROWS: usize = 1000;

    /// Creates the iterator for the near fingerprints that [`Mapper::scan`] has found in a piece.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if doc ids are damaged.
    pub(super) fn new(work: &HammingWork, queries: Arc<OnceLock<Queries>>, near: Vec<ScanMatch>) -> Result<ScanPairs> {
        let rows = |near: &ScanMatch| near.row as usize..(near.row + near.copies) as usize;
        let mut documents = Vec::new();
        if near.len() > ScanPairs::SINGLE_READ_ROWS {
            let (first, last) = (&near[0], &near[near.len() - 1]);
            documents = work.set.documents(first.chunk as usize, rows(first).start..rows(last).end)?;
        } else {
            for row_matches in near.chunk_by(|x, y| x.row == y.row) {
                documents.extend(work.set.documents(row_matches[0].chunk as usize, rows(&row_matches[0]))?);
            }
        }
        let is_same_set = work.set.doc_ids && work.queries.as_ref().is_none_or(|queries| queries.doc_ids);
        Ok(ScanPairs { queries, near, documents, is_same_set, at: 0, start: 0, document: 0, other: 0 })
    }

    /// Moves to the next near row.
    fn next_row(&mut self) {
        let (current, next) = (self.near[self.at], self.near.get(self.at + 1));
        if let Some(next) = next.filter(|next| next.row != current.row) {
            let is_whole = self.near.len() > ScanPairs::SINGLE_READ_ROWS;
            self.start += if is_whole { next.row - current.row } else { current.copies } as usize;
        }
        (self.at, self.document, self.other) = (self.at + 1, 0, 0);
    }
}

impl Iterator for ScanPairs {
    type Item = NearPair;

    fn next(&mut self) -> Option<NearPair> {
        loop {
            let near = *self.near.get(self.at)?;
            let query_tables = self.queries.get().expect("tables are built before pieces are scanned");
            let query_ids = query_tables.postings.doc_ids(near.query as usize);
            if self.other == query_ids.len() {
                (self.document, self.other) = (self.document + 1, 0);
            }
            if self.document == near.copies as usize {
                self.next_row();
                continue;
            }
            let (a, b) = (self.documents[self.start + self.document], query_ids[self.other]);
            self.other += 1;
            if !self.is_same_set || a != b {
                return Some(NearPair { a, b, distance: near.distance });
            }
        }
    }
}

/// Calls `take` with all queries that are near one fingerprint of F, and with the documents that
/// have the fingerprint. `near` are the rows of this worker, in the order of pieces, and of
/// [`Mapper::scan`] within a piece.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if doc ids are damaged.
pub(super) fn with_documents(
    net: &Net<'_>,
    work: &HammingWork,
    near: &[ScanMatch],
    mut take: impl FnMut(&[ScanMatch], &[DocId]),
) -> Result<()> {
    /// Maximum number of near rows for which doc ids are read row by row. Doc ids are verified a
    /// thousand at a time.
    const SINGLE_READ_ROWS: usize = 1000;
    for chunk_matches in near.chunk_by(|x, y| x.chunk == y.chunk) {
        let number = chunk_matches[0].chunk as usize;
        let documents = |rows: Range<usize>| work.set.documents(number, rows);
        let count = work.set.manifest.chunks[number].count as usize;
        let all_ids = if chunk_matches.len() > SINGLE_READ_ROWS { Some(documents(0..count)?) } else { None };
        for row_matches in chunk_matches.chunk_by(|x, y| x.row == y.row) {
            net.check()?;
            let rows = row_matches[0].row as usize..(row_matches[0].row + row_matches[0].copies) as usize;
            match &all_ids {
                Some(all) => take(row_matches, &all[rows]),
                None => take(row_matches, &documents(rows)?),
            }
        }
    }
    Ok(())
}
