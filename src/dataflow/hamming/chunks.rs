//! From rows in any order to the chunks of F, in ascending ranges of the fingerprint space.
//!
//! Two exchanges. Every row goes to the worker that has its *bucket*, an even part of the space. When all have come, the space is cut
//! in *ranges* of about a chunk each, by counts of leading bits over all rows; so chunks do not depend on the number of
//! workers. Then, round by round, each worker sorts its buckets of the next ranges, one a worker, and sends them to the
//! workers that write these: all sort, whatever number of chunks there is.
//!
//! # Memory
//! 16 bytes a row in buckets, over all workers, which go to disk beyond half of `effort.memory_bytes`; and 36 a row of the
//! range that a worker writes.

use crate::dataflow::shuffle::memory_estimate::{MemoryEstimate, hold_bytes_against_bound, room};
use crate::engine::{Net, Owners, RoundRobin};
use crate::error::{Error, Result};
use crate::hamming::fingerprint_file::{CHUNK_ROWS, Chunk, chunk};
use crate::hamming::rows::{FingerprintRow, sort};
use crate::ids::{DocId, SimHash};
use crate::job::{Coder, Job};
use crate::storage::output::Attempt;
use crate::storage::spill::{BLOCK_BYTES, Buckets};

/// Leading bits by which rows are counted.
const COUNTED_BITS: u32 = 16;

/// Leading bits of a bucket: some ten thousand rows of a chunk, which are sorted within a core's cache.
const BUCKET_BITS: u32 = 9;

/// Bytes that a worker holds for each row of the range that it writes: fingerprint and document, the row as it is encoded, and
/// the file.
const WRITING_BYTES: u64 = 16 + 5 + 15;

/// What makes the fingerprints of a set.
pub(super) struct Made {
    /// Width of the fingerprints, in bits.
    pub f: u32,
    /// Name of the recipe that made them.
    pub recipe: String,
    /// How they are written.
    pub coder: Coder,
}

/// The fingerprint space of f bits, cut by leading bits.
#[derive(Clone, Copy)]
struct Space {
    f: u32,
    /// Who sorts which bucket.
    dealt: RoundRobin,
}

impl Space {
    fn leading(self, fingerprint: SimHash, bits: u32) -> usize {
        (fingerprint >> self.f.saturating_sub(bits)) as usize
    }

    fn counted(self, fingerprint: SimHash) -> usize {
        self.leading(fingerprint, COUNTED_BITS)
    }

    fn counts(self) -> usize {
        1 << COUNTED_BITS.min(self.f)
    }

    fn bucket(self, fingerprint: SimHash) -> usize {
        self.leading(fingerprint, BUCKET_BITS)
    }

    fn buckets(self) -> usize {
        1 << BUCKET_BITS.min(self.f)
    }
}

/// Writes the rows that `source` gives, which is called again while it returns true, in chunks that `attempt` stages; each row once.
/// Every worker returns the entries of all chunks, in order.
///
/// # Errors
/// Those of `source`; [`Error::MemoryLimit`], [`Error::DiskLimit`] or [`Error::DiskFull`] when memory or disk does not suffice; [`Error::Storage`].
pub(super) fn write(
    net: &mut Net<'_>,
    job: &Job,
    made: &Made,
    source: impl FnMut(&mut dyn FnMut(FingerprintRow)) -> Result<bool>,
    attempt: &Attempt,
) -> Result<Vec<Chunk>> {
    let space = Space { f: made.f, dealt: RoundRobin::new(net.peers()) };
    let room = room(net, MemoryEstimate::default(), job)?;
    let allowed = match room.memory_bytes {
        0 => u64::MAX,
        bytes => bytes / 2 / net.workers_per_process() as u64,
    };
    let own = space.dealt.most(space.buckets());
    let open_bytes = (own * BLOCK_BYTES) as u64;
    let mut buckets = Buckets::new(own, allowed.saturating_sub(open_bytes), &room.disk(net));
    let mut counts = vec![0u64; space.counts()];
    let to = |row: &FingerprintRow| space.dealt.owner(space.bucket(row.fingerprint));
    net.exchange_from("fingerprints", source, to, |rows| {
        rows.iter().try_for_each(|row| {
            counts[space.counted(row.fingerprint)] += 1;
            buckets.push(space.dealt.index(space.bucket(row.fingerprint)), *row)
        })
    })?;

    let counts = sum_over_workers(net, &counts)?;
    let ranges = ranges(&counts);
    let mut rows_of = vec![0u64; ranges.last().map_or(0, |last| *last as usize + 1)];
    counts.iter().zip(&ranges).for_each(|(n, range)| rows_of[*range as usize] += n);
    rows_of.retain(|rows| *rows > 0);
    let largest = rows_of.iter().max().copied().unwrap_or(0);
    let held = (16 * buckets.rows()).min(allowed) + WRITING_BYTES * largest;
    hold_bytes_against_bound(net, "fingerprints to be written", held, job.effort.memory_bytes)?;

    let mut sorted = Sorted { space, buckets, next: net.index(), rows: Vec::new(), at: 0, scratch: Vec::new() };
    let mut chunks: Vec<Chunk> = Vec::new();
    for first in (0..rows_of.len()).step_by(net.peers()) {
        let range_of = |row: &FingerprintRow| ranges[space.counted(row.fingerprint)] as usize;
        let mut range = Range::new(space, &counts, &ranges, first + net.index());
        let end = first + net.peers();
        let source = |send: &mut dyn FnMut(FingerprintRow)| sorted.send(|row| range_of(row) < end, send);
        net.exchange_from(
            "sorted fingerprints",
            source,
            |row| range_of(row) - first,
            |rows| {
                rows.iter().for_each(|row| range.put(row));
                Ok(())
            },
        )?;
        let (fingerprints, documents) = range.finish();
        // Names follow the order of the space, so chunks are counted before they are written.
        let of_round = net.all_gather("chunks", fingerprints.len().div_ceil(CHUNK_ROWS))?;
        let number = chunks.len() + of_round[..net.index()].iter().sum::<usize>();
        let written = put(net, made, number, &fingerprints, &documents, attempt)?;
        for chunk in net.all_gather("chunks of all", written)?.iter().flatten() {
            chunks.push(serde_json::from_str(chunk).map_err(|cause| Error::Invariant(cause.to_string()))?);
        }
    }
    Ok(chunks)
}

/// The counts of all workers together.
fn sum_over_workers(net: &mut Net<'_>, counts: &[u64]) -> Result<Vec<u64>> {
    let mine = (0..).zip(counts).filter(|(_, n)| **n > 0).map(|(at, n)| [at, *n]).collect();
    let mut all = vec![0; counts.len()];
    net.share("counts", mine)?.iter().for_each(|&[at, n]: &[u64; 2]| all[at as usize] += n);
    Ok(all)
}

/// The range of each value of the leading bits: as many neighbours together as fill a chunk.
fn ranges(counts: &[u64]) -> Vec<u32> {
    let (mut range, mut held) = (0, 0);
    let of_value = |n: &u64| {
        if held > 0 && held + n > CHUNK_ROWS as u64 {
            (range, held) = (range + 1, 0);
        }
        held += n;
        range
    };
    counts.iter().map(of_value).collect()
}

/// The rows of a worker's buckets, sorted bucket by bucket as they are asked for.
struct Sorted {
    space: Space,
    buckets: Buckets<FingerprintRow>,
    /// The bucket that is sorted next.
    next: usize,
    /// The bucket at hand, each row once, and how many of its rows are sent.
    rows: Vec<FingerprintRow>,
    at: usize,
    scratch: Vec<FingerprintRow>,
}

impl Sorted {
    /// Sends some ten thousand of the next rows that are wanted; false when the next one is not, or there is none.
    fn send(
        &mut self,
        is_wanted: impl Fn(&FingerprintRow) -> bool,
        send: &mut dyn FnMut(FingerprintRow),
    ) -> Result<bool> {
        if self.at == self.rows.len() {
            if self.next >= self.space.buckets() {
                return Ok(false);
            }
            self.buckets.take(self.space.dealt.index(self.next), &mut self.rows)?;
            sort(&mut self.rows, &mut self.scratch);
            self.rows.dedup();
            (self.at, self.next) = (0, self.next + self.space.dealt.peers());
        }
        let next = &self.rows[self.at..self.rows.len().min(self.at + BATCH)];
        let wanted = next.iter().take_while(|row| is_wanted(row)).map(|row| send(*row)).count();
        self.at += wanted;
        Ok(wanted == next.len())
    }
}

/// Rows that are sent before what has arrived is looked at.
const BATCH: usize = 1 << 15;

/// A range that this worker writes: the rows of each of its buckets come from one worker, in order.
struct Range {
    space: Space,
    fingerprints: Vec<SimHash>,
    documents: Vec<DocId>,
    /// Where the rows of each bucket begin, and where its next one goes.
    places: Vec<(usize, usize)>,
}

impl Range {
    /// Range `number`, without rows yet; there may be none of that number.
    fn new(space: Space, counts: &[u64], ranges: &[u32], number: usize) -> Range {
        let values_a_bucket = space.counts() / space.buckets();
        let mut rows = vec![0; space.buckets()];
        for (value, n) in counts.iter().enumerate().filter(|(value, _)| ranges[*value] as usize == number) {
            rows[value / values_a_bucket] += *n as usize;
        }
        let mut sum = 0;
        let place = |rows: usize| {
            sum += rows;
            (sum - rows, sum - rows)
        };
        let places = rows.into_iter().map(place).collect();
        Range { space, fingerprints: vec![0; sum], documents: vec![0; sum], places }
    }

    fn put(&mut self, row: &FingerprintRow) {
        let (_, next) = &mut self.places[self.space.bucket(row.fingerprint)];
        self.fingerprints[*next] = row.fingerprint;
        self.documents[*next] = row.document;
        *next += 1;
    }

    /// The rows, ascending.
    fn finish(mut self) -> (Vec<SimHash>, Vec<DocId>) {
        // Rows that stood there twice were counted twice, and leave gaps behind those of their bucket.
        let mut end = 0;
        for (start, next) in self.places {
            self.fingerprints.copy_within(start..next, end);
            self.documents.copy_within(start..next, end);
            end += next - start;
        }
        self.fingerprints.truncate(end);
        self.documents.truncate(end);
        (self.fingerprints, self.documents)
    }
}

/// Writes one range in chunks, the first of which has the number `first`; returns their entries.
fn put(
    net: &Net<'_>,
    made: &Made,
    first: usize,
    fingerprints: &[SimHash],
    documents: &[DocId],
    attempt: &Attempt,
) -> Result<Vec<String>> {
    let rows = fingerprints.chunks(CHUNK_ROWS).zip(documents.chunks(CHUNK_ROWS));
    let put = |(number, (fingerprints, documents)): (usize, (&[SimHash], &[DocId]))| {
        net.check()?;
        let bytes = chunk(made.f, made.coder, &made.recipe, fingerprints, Some(documents))?;
        let chunk = Chunk::of(format!("part-{number:05}.fp"), fingerprints, &bytes);
        attempt.put(&chunk.name, &bytes)?;
        Ok(serde_json::to_string(&chunk).expect("an entry is plain values"))
    };
    (first..).zip(rows).map(put).collect()
}
