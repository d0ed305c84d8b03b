//! Converts rows in any order into the chunks of F, in ascending ranges of the fingerprint space.
//!
//! Each worker partitions the rows that it reads into *buckets*, which are equal parts of the
//! space, and counts the rows by their leading bits. After all rows are read, the counts of all
//! workers divide the space into *ranges* of about one chunk each, which are dealt out to processes
//! in turn. So chunks do not depend on the number of workers. A row is sent to another process at
//! most once, if that process writes it. Within a process no row is sent, because workers read the
//! buckets of all workers of their process. An idle worker takes the next range of its process,
//! gathers it bucket by bucket, sorts it and writes it.
//!
//! # Memory
//! Takes 16 bytes for each row in buckets, over all workers, which are spilled to disk beyond half
//! of `effort.memory_bytes`. Takes 25 for each row of the range that a worker writes, and 32 for
//! each row of one bucket.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use crate::reading::work_queue::WorkQueue;
use crate::shuffle::memory::{agree, check_bytes_against_bound};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, SimHash};
use webtwin_core::hamming::coding::Coder;
use webtwin_core::hamming::fingerprint_file::{CHUNK_ROWS, ChunkEncoder, ChunkEntry};
use webtwin_core::hamming::rows::{FingerprintRow, sort};
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_spill::Arena;
use webtwin_storage::output::Attempt;

/// Number of leading bits by which rows are counted. It determines how finely ranges can be cut.
const COUNTER_BITS: u32 = 12;

/// Number of leading bits of a bucket. With some million rows, a bucket has some ten thousand rows,
/// which are sorted within a core's cache.
const BUCKET_BITS: u32 = 9;

/// Minimum number of ranges, unless ranges would become too small. Keeps several workers busy for
/// about the same time.
const RANGES: u64 = 16;

/// Minimum number of rows of a range, so that files do not become tiny.
const MIN_ROWS: u64 = 1 << 20;

/// Bytes that a worker holds for each row of the range that it writes: fingerprint, document, and
/// at most the encoded row.
const WRITING_BYTES: u64 = 16 + 9;

/// Bytes that a worker holds for each row of the bucket that it sorts: the row, and its place in
/// the scratch of the sort.
const SORTING_BYTES: u64 = 32;

/// Number of rows that are sent before arrived ones are processed.
const BATCH: usize = 1 << 15;

/// Memory that a process holds while F is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessHoldings {
    /// Bytes of rows in buckets, which are spilled to disk beyond half of the limit.
    pub buckets: u64,
    /// Bytes of the ranges that its workers write at the same time.
    pub writing: u64,
}

/// Estimates what one of `processes` processes with `workers` workers each will hold, for a total
/// of `rows` rows, if fingerprints are evenly distributed.
pub fn holdings(rows: u64, processes: u64, workers: u64) -> ProcessHoldings {
    let largest = max_rows(rows).min(rows);
    let bucket_rows = rows >> BUCKET_BITS;
    let a_writer = WRITING_BYTES * largest + SORTING_BYTES * largest.min(bucket_rows);
    // There are no more writers than ranges.
    let writers = workers.min(rows.div_ceil(largest.max(1)).div_ceil(processes));
    ProcessHoldings {
        buckets: size_of::<FingerprintRow>() as u64 * rows.div_ceil(processes),
        writing: writers * a_writer,
    }
}

/// Returns the maximum number of rows of a range, for a total of `rows` rows.
fn max_rows(rows: u64) -> u64 {
    (rows / RANGES).clamp(MIN_ROWS, CHUNK_ROWS as u64)
}

/// Origin of the fingerprints of a set.
pub(super) struct FingerprintSource {
    /// Width of the fingerprints, in bits.
    pub f: u32,
    /// Name of the recipe that made them.
    pub recipe: String,
}

/// Fingerprint space of f bits, divided by leading bits into values that are counted, and into
/// buckets of several values.
#[derive(Clone, Copy)]
struct Space {
    f: u32,
}

impl Space {
    /// Returns the value of a fingerprint's leading bits.
    #[inline]
    fn value(self, fingerprint: SimHash) -> usize {
        (fingerprint >> (self.f - self.counted_bits())) as usize
    }

    fn counted_bits(self) -> u32 {
        COUNTER_BITS.min(self.f)
    }

    /// Returns the number of bits of a value below the bits of its bucket.
    fn bits_within(self) -> u32 {
        self.counted_bits() - BUCKET_BITS.min(self.f)
    }

    fn values(self) -> usize {
        1 << self.counted_bits()
    }

    fn buckets(self) -> usize {
        self.values() >> self.bits_within()
    }

    #[inline]
    fn bucket_of(self, value: usize) -> usize {
        value >> self.bits_within()
    }

    #[inline]
    fn bucket(self, row: &FingerprintRow) -> usize {
        self.bucket_of(self.value(row.fingerprint))
    }

    fn values_of(self, bucket: usize) -> Range<usize> {
        bucket << self.bits_within()..(bucket + 1) << self.bits_within()
    }
}

/// Rows that are written together: as many adjacent values as fill a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    values: Range<usize>,
    rows: u64,
    /// Number of its first chunk.
    first_chunk: u64,
}

/// Writes the rows that `source` provides into chunks that `attempt` stages, each row once. Every
/// worker returns the entries of all chunks, in order.
///
/// # Errors
/// Returns any error of `source`. Returns [`Error::MemoryLimit`], [`Error::DiskLimit`] or
/// [`Error::DiskFull`] if memory or disk space does not suffice, and [`Error::Storage`].
pub(super) fn write(
    net: &mut Net<'_>,
    job: &Job,
    description: &FingerprintSource,
    source: impl FnOnce(&mut dyn FnMut(&[FingerprintRow]) -> Result<()>) -> Result<()>,
    attempt: &Attempt,
) -> Result<Vec<ChunkEntry>> {
    let space = Space { f: description.f };
    agree(net, 0, 0, &job.effort)?;
    let mut arena = Arena::new(space.buckets(), &net.memory.part(2));
    let mut counts = vec![0u64; space.values()];
    source(&mut |rows| {
        net.check()?;
        arena.partition(rows, |row| {
            let value = space.value(row.fingerprint);
            counts[value] += 1;
            space.bucket_of(value)
        })
    })?;

    let counts = sum_over_workers(net, &counts)?;
    let spans = spans(&counts);
    let largest = spans.iter().map(|span| span.rows).max().unwrap_or(0);
    let largest_bucket = counts.chunks(1 << space.bits_within()).map(|values| values.iter().sum()).max().unwrap_or(0);
    let held_bytes = arena.held_bytes() + WRITING_BYTES * largest + SORTING_BYTES * largest.min(largest_bucket);
    check_bytes_against_bound(net, "fingerprints to write", held_bytes, job.effort.memory_bytes)?;

    if net.processes() > 1 {
        bring_to_writers(net, space, &spans, &mut arena)?;
    }
    let (pooled, turns) = (net.gather_in_process(arena)?, net.once_per_process(WorkQueue::default)?);
    let mut writer = SpanWriter::new(space, description, &pooled, attempt);
    let mut written = Vec::new();
    while let Some(span) = spans.get(turns.next(net)) {
        writer.write(net, span, &mut written)?;
    }
    let mut entries: Vec<(u64, String)> = net.all_gather("chunks", written)?.into_iter().flatten().collect();
    entries.sort_unstable();
    let entry = |(_, entry): &(u64, String)| serde_json::from_str(entry);
    entries.iter().map(entry).collect::<serde_json::Result<_>>().map_err(|cause| Error::Invariant(cause.to_string()))
}

/// Returns the sums of the counts over all workers.
fn sum_over_workers(net: &mut Net<'_>, counts: &[u64]) -> Result<Vec<u64>> {
    let own_counts = (0..).zip(counts).filter(|(_, n)| **n > 0).map(|(at, n)| [at, *n]).collect();
    let mut totals = vec![0; counts.len()];
    net.broadcast("counts", own_counts)?.iter().for_each(|&[at, n]: &[u64; 2]| totals[at as usize] += n);
    Ok(totals)
}

/// Divides the space into spans by the counts of its values.
fn spans(counts: &[u64]) -> Vec<Span> {
    let row_limit = max_rows(counts.iter().sum());
    let mut spans: Vec<Span> = Vec::new();
    let mut chunks = 0;
    for (value, &rows) in counts.iter().enumerate().filter(|(_, rows)| **rows > 0) {
        match spans.last_mut().filter(|span| span.rows + rows <= row_limit) {
            Some(span) => {
                span.values.end = value + 1;
                span.rows += rows;
            }
            None => {
                chunks += spans.last().map_or(0, |span| span.rows.div_ceil(CHUNK_ROWS as u64));
                spans.push(Span { values: value..value + 1, rows, first_chunk: chunks });
            }
        }
    }
    spans
}

/// Sends rows to the processes that write them. Arriving rows take the space of rows that leave.
fn bring_to_writers(net: &mut Net<'_>, space: Space, spans: &[Span], arena: &mut Arena<FingerprintRow>) -> Result<()> {
    let at = net.position();
    let mut writers = vec![at.process; space.values()];
    for (number, span) in spans.iter().enumerate() {
        writers[span.values.clone()].fill(number % at.processes);
    }
    let stays = |row: &FingerprintRow| writers[space.value(row.fingerprint)] == at.process;
    let has_leaving_rows =
        |bucket: &usize| writers[space.values_of(*bucket)].iter().any(|writer| *writer != at.process);
    let mut buckets = (0..space.buckets()).filter(has_leaving_rows);
    let arena = RefCell::new(arena);
    let (mut own_rows, mut leaving, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    let source = |send: &mut dyn FnMut(FingerprintRow)| {
        if leaving.is_empty() {
            let Some(bucket) = buckets.next() else { return Ok(false) };
            let mut arena = arena.borrow_mut();
            arena.read(bucket, &mut buffer, |rows| {
                rows.iter().for_each(|row| if stays(row) { own_rows.push(*row) } else { leaving.push(*row) });
            })?;
            arena.empty(bucket);
            arena.partition(&own_rows, |row| space.bucket(row))?;
            own_rows.clear();
        }
        leaving.drain(leaving.len().saturating_sub(BATCH)..).for_each(send);
        Ok(true)
    };
    let to = |row: &FingerprintRow| {
        let value = space.value(row.fingerprint);
        at.first_of(writers[value]) + space.bucket_of(value) % at.workers
    };
    net.exchange_from("fingerprints", source, to, |rows| arena.borrow_mut().partition(rows, |row| space.bucket(row)))
}

/// Writer that gathers, sorts and writes one span after the other.
struct SpanWriter<'a> {
    space: Space,
    description: &'a FingerprintSource,
    /// Rows of all workers of the process.
    pooled: &'a [Arc<Arena<FingerprintRow>>],
    attempt: &'a Attempt,
    rows: Vec<FingerprintRow>,
    /// Scratch of the sort, and of reading rows from disk.
    scratch: Vec<FingerprintRow>,
    fingerprints: Vec<SimHash>,
    documents: Vec<DocId>,
    encoder: ChunkEncoder,
}

impl<'a> SpanWriter<'a> {
    fn new(
        space: Space,
        description: &'a FingerprintSource,
        pooled: &'a [Arc<Arena<FingerprintRow>>],
        attempt: &'a Attempt,
    ) -> SpanWriter<'a> {
        SpanWriter {
            space,
            description,
            pooled,
            attempt,
            rows: Vec::new(),
            scratch: Vec::new(),
            fingerprints: Vec::new(),
            documents: Vec::new(),
            encoder: ChunkEncoder::default(),
        }
    }

    /// Writes a span in chunks, and appends their numbers and entries to `written`.
    fn write(&mut self, net: &Net<'_>, span: &Span, written: &mut Vec<(u64, String)>) -> Result<()> {
        self.fingerprints.clear();
        self.documents.clear();
        self.fingerprints.reserve(span.rows as usize);
        self.documents.reserve(span.rows as usize);
        for bucket in self.space.bucket_of(span.values.start)..=self.space.bucket_of(span.values.end - 1) {
            net.check()?;
            self.gather(bucket, &span.values)?;
            sort(&mut self.rows, &mut self.scratch);
            self.rows.dedup();
            self.fingerprints.extend(self.rows.iter().map(|row| row.fingerprint));
            self.documents.extend(self.rows.iter().map(|row| row.document));
        }
        let chunks = self.fingerprints.chunks(CHUNK_ROWS).zip(self.documents.chunks(CHUNK_ROWS));
        for (number, (fingerprints, documents)) in (span.first_chunk..).zip(chunks) {
            let FingerprintSource { f, ref recipe } = *self.description;
            let parts = self.encoder.encode(f, Coder::EliasFano, recipe, fingerprints, Some(documents))?;
            let chunk = ChunkEntry::new(format!("part-{number:05}.fp"), fingerprints, &parts.all_parts());
            self.attempt.put_parts(&chunk.name, &parts.all_parts())?;
            written.push((number, serde_json::to_string(&chunk).expect("an entry is plain values")));
        }
        Ok(())
    }

    /// Replaces `rows` by the rows of a bucket that have one of the values, in no particular order.
    fn gather(&mut self, bucket: usize, values: &Range<usize>) -> Result<()> {
        let (space, rows) = (self.space, &mut self.rows);
        let bucket_values = space.values_of(bucket);
        let is_whole = values.start <= bucket_values.start && bucket_values.end <= values.end;
        let is_wanted = |row: &&FingerprintRow| values.contains(&space.value(row.fingerprint));
        rows.clear();
        for arena in self.pooled {
            arena.read(bucket, &mut self.scratch, |piece| match is_whole {
                true => rows.extend_from_slice(piece),
                false => rows.extend(piece.iter().filter(is_wanted)),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn spans_contain_each_row_once_in_order_and_fill_about_a_chunk(
            counts in prop::collection::vec(prop_oneof![3 => Just(0), 9 => 0u64..1 << 20, 1 => 0u64..1 << 25], 0..300)
        ) {
            let (spans, total) = (spans(&counts), counts.iter().sum::<u64>());
            prop_assert_eq!(spans.iter().map(|span| span.rows).sum::<u64>(), total);
            for span in &spans {
                prop_assert_eq!(counts[span.values.clone()].iter().sum::<u64>(), span.rows);
                let is_one = span.values.len() == 1;
                prop_assert!(span.rows > 0 && (is_one || span.rows <= (total / RANGES).max(MIN_ROWS)));
                prop_assert!(is_one || span.rows <= CHUNK_ROWS as u64);
            }
            for two in spans.windows(2) {
                prop_assert!(two[0].values.end <= two[1].values.start);
                prop_assert_eq!(two[0].first_chunk + two[0].rows.div_ceil(CHUNK_ROWS as u64), two[1].first_chunk);
            }
        }
    }

    #[test]
    fn values_and_buckets_partition_a_space_of_any_width() {
        for f in [1, 8, 9, 10, 12, 13, 32, 64] {
            let space = Space { f };
            let widest = u64::MAX >> (64 - f);
            assert_eq!((space.value(0), space.value(widest)), (0, space.values() - 1), "f {f}");
            assert_eq!(space.bucket_of(space.values() - 1), space.buckets() - 1);
            for value in 0..space.values() {
                assert!(space.values_of(space.bucket_of(value)).contains(&value));
            }
        }
    }
}
