//! One mapper of the paper: reads and decodes a chunk of F, joins it with a million queries, and
//! writes the pairs.

use std::path::Path;
use std::sync::Arc;

use super::super::made::fingerprints;
use super::super::measure::{core_seconds, forget_peak_memory, median, memory_scan, seconds};
use super::super::{FigureRow, Options, figure, row_against_published};
use super::{K, QUERIES};
use webtwin_base::build_info::{memory_bytes, peak_memory_bytes};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::splitmix64;
use webtwin_base::threads;
use webtwin_core::hamming::coding::Coder;
use webtwin_core::hamming::fingerprint_file::{FingerprintFile, chunk};
use webtwin_core::hamming::kernels::{Level, cross};
use webtwin_core::hamming::postings::{FingerprintPostings, distinct};
use webtwin_core::hamming::query_tables::{FingerprintHit, JoinBuffers, QueryTables};
use webtwin_storage::location::Location;
use webtwin_storage::open::open;
use webtwin_storage::table::{Table, TableColumn, encode};

/// Number of passes. The median counts.
const PASSES: usize = 5;

/// Number of fingerprints that are compared with all queries one by one, to measure the cost of
/// brute force.
const BRUTE_FORCE_FINGERPRINTS: usize = 4096;

/// Number of queries that fit into a first-level cache.
const CACHED_QUERIES: usize = 2048;

/// Number of queries near a fingerprint of the chunk. If 10,000 of a million queries are near
/// something in F, ten are near something in one of its 1024 chunks. This number is larger, so that
/// there is something to find.
const NEAR_QUERIES: u64 = 100;

/// Returns a chunk as dense as in a set of 2^33 fingerprints, and queries from the whole value
/// range, with [`NEAR_QUERIES`] of them within 0 to 5 flips of a fingerprint.
fn input(options: &Options) -> (Vec<u64>, Vec<u64>) {
    let count = options.scale as usize;
    let fingerprints = fingerprints::even(count, 54.min(31 + options.scale.max(2).ilog2()), 1);
    let query = |number: u64| {
        let random = splitmix64(number ^ 0x51);
        if number >= NEAR_QUERIES || fingerprints.is_empty() {
            return random;
        }
        let near_fingerprint = fingerprints[random as usize % fingerprints.len()];
        (0..number % 6).fold(near_fingerprint, |value, flip| value ^ 1 << (splitmix64(random ^ flip) & 63))
    };
    let mut queries: Vec<u64> = (0..QUERIES as u64).map(query).collect();
    queries.sort_unstable();
    queries.dedup();
    (fingerprints, queries)
}

/// State of a worker in addition to the tables.
struct Mapper {
    scratch: JoinBuffers,
    fingerprints: Vec<u64>,
    ends: Vec<u32>,
}

impl Mapper {
    fn new() -> Mapper {
        Mapper { scratch: JoinBuffers::new(K, Level::best()), fingerprints: Vec::new(), ends: Vec::new() }
    }

    /// Reads a chunk, joins it, and writes the pairs. Returns their number.
    fn map(&mut self, tables: &QueryTables, source: &Location, target: &Location) -> Result<usize> {
        FingerprintFile::open(source.name(), open(source)?)?.decode_all(&mut self.fingerprints)?;
        distinct(&mut self.fingerprints, &mut self.ends);
        let mut hits: Vec<FingerprintHit> = Vec::new();
        tables.join(&self.fingerprints, &mut self.scratch, &mut |hit| hits.push(hit));
        hits.sort_unstable();
        let column = |of: fn(&FingerprintHit) -> u32| TableColumn::U32(hits.iter().map(of).collect());
        let columns =
            [("at", column(|hit| hit.at)), ("query", column(|hit| hit.query)), ("value", column(|hit| hit.distance))];
        target.put(&encode(&Table::new(columns))?)?;
        Ok(hits.len())
    }
}

/// Measures one mapper on one core and on two, and compares it with brute force.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let (fingerprints, queries) = input(options);
    let (source, target) = (file(&options.work, "chunk.fp")?, file(&options.work, "pairs.parquet")?);
    let second_target = file(&options.work, "pairs-of-two.parquet")?;
    let bytes = chunk(64, Coder::EliasFano, "even", &fingerprints, None)?;
    source.put(&bytes)?;
    let count = fingerprints.len() as f64;
    let (build_seconds, tables) = core_seconds(|| QueryTables::new(&queries, K, Level::best()));
    let tables = Arc::new(tables?);

    let (mut single_times, mut double_times, mut clock_times) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut second) = (Mapper::new(), Mapper::new());
    let pairs = first.map(&tables, &source, &target)?;
    second.map(&tables, &source, &second_target)?;
    for _ in 0..PASSES {
        let (single_seconds, (map_seconds, mapped)) = seconds(|| core_seconds(|| first.map(&tables, &source, &target)));
        mapped?;
        single_times.push(count / map_seconds / 1e6);
        let (both_seconds, (first_result, second_result)) = seconds(|| {
            std::thread::scope(|scope| {
                let second_result =
                    threads::start_in(scope, || core_seconds(|| second.map(&tables, &source, &second_target)));
                (
                    core_seconds(|| first.map(&tables, &source, &target)),
                    second_result.map(|row_against_published| row_against_published.join()),
                )
            })
        });
        let second_result = second_result?.map_err(|_| Error::Invariant("a mapper ended with a panic".into()))?;
        first_result.1.and(second_result.1)?;
        // Both begin together, so the slower one determines the time.
        double_times.push(2.0 * count / first_result.0.max(second_result.0) / 1e6);
        clock_times.push(2.0 * single_seconds / both_seconds);
    }
    let (single_median, double_median) = (median(single_times), median(double_times));
    let brute_sample = &fingerprints[..BRUTE_FORCE_FINGERPRINTS.min(fingerprints.len())];
    let mut pairs_found = Vec::new();
    let (duration, ()) = core_seconds(|| {
        for queries in queries.chunks(CACHED_QUERIES) {
            cross(Level::best(), brute_sample, queries, K, &mut pairs_found);
        }
    });
    let brute = brute_sample.len() as f64 / duration / 1e6;
    let scan = memory_scan() / 1e6;
    // The pairs of the brute-force sample must equal those of the join.
    let mut n_joined = 0;
    tables.join(brute_sample, &mut first.scratch, &mut |_| n_joined += 1);
    Ok(vec![
        row_against_published("one core: read, join, write", single_median, 0.67, "million fingerprints a second")
            .at_least(75.0),
        figure("two workers, by the slower one's processor time", double_median, "million fingerprints a second"),
        figure("two workers against one, likewise", double_median / single_median, "times").at_least(1.7),
        figure("two workers against one, by the clock", median(clock_times), "times").at_least(1.7),
        figure(&format!("brute force ({})", Level::best().as_str()), brute, "million fingerprints a second"),
        figure("against brute force", single_median / brute, "times").at_least(5000.0),
        figure("memory scan, one core", scan, "million fingerprints a second"),
        figure("of the memory scan", single_median / scan, "share").at_least(0.02),
        figure("tables built in", build_seconds * 1000.0, "ms"),
        figure("pairs", pairs as f64, "pairs"),
        figure(
            "pairs that brute force finds and the join does not, or the other way round",
            (pairs_found.len() as f64 - f64::from(n_joined)).abs(),
            "pairs",
        )
        .at_most(0.0),
    ])
}

/// Measures clustered fingerprints: the cost per reported pair, with all documents of equal
/// fingerprints reported.
pub(super) fn clustered(options: &Options) -> Result<Vec<FigureRow>> {
    let rows = fingerprints::clustered(options.scale as usize, 1);
    let queries = FingerprintPostings::new(fingerprints::clustered(QUERIES, 2).into_iter().zip(0..).collect());
    let tables = QueryTables::new(queries.fingerprints(), K, Level::best())?;
    let (mut scratch, mut fingerprints, mut ends) = (JoinBuffers::new(K, Level::best()), Vec::new(), Vec::new());
    let (mut times, mut near_count, mut pairs) = (Vec::new(), 0u64, 0u64);
    let mut buffer: Vec<(u32, u64, u32)> = Vec::with_capacity(1 << 20);
    for _ in 0..3 {
        (near_count, pairs) = (0, 0);
        fingerprints.clone_from(&rows);
        let (duration, ()) = core_seconds(|| {
            distinct(&mut fingerprints, &mut ends);
            tables.join(&fingerprints, &mut scratch, &mut |FingerprintHit { at: position, query, distance }| {
                near_count += 1;
                let first = position.checked_sub(1).map_or(0, |before| ends[before as usize]);
                for row in first..ends[position as usize] {
                    for &document in queries.doc_ids(query as usize) {
                        if buffer.len() == buffer.capacity() {
                            pairs += std::hint::black_box(&buffer).len() as u64;
                            buffer.clear();
                        }
                        buffer.push((row, document, distance));
                    }
                }
            });
        });
        pairs += buffer.len() as u64;
        buffer.clear();
        times.push(duration);
    }
    let median_time = median(times);
    Ok(vec![
        figure("distinct fingerprints", fingerprints.len() as f64, "fingerprints"),
        figure("distinct queries", queries.fingerprints().len() as f64, "queries"),
        figure("pairs of distinct fingerprints", near_count as f64, "pairs"),
        figure("pairs of documents, all reported", pairs as f64, "pairs"),
        figure("one core", median_time, "s"),
        figure("one core, by fingerprint", median_time * 1e9 / rows.len() as f64, "ns"),
        figure("one core, by pair of distinct fingerprints", median_time * 1e9 / near_count as f64, "ns"),
        figure("one core, by reported pair", median_time * 1e9 / pairs as f64, "ns").at_most(15.0),
    ])
}

/// Measures the memory of the tables, and of everything else that a join needs.
pub(super) fn memory(options: &Options) -> Result<Vec<FigureRow>> {
    let (fingerprints, queries) = input(options);
    let resets = forget_peak_memory();
    let memory_before = memory_bytes();
    let tables = QueryTables::new(&queries, K, Level::best())?;
    let mut scratch = JoinBuffers::new(K, Level::best());
    let mut pairs = 0u64;
    tables.join(&fingerprints, &mut scratch, &mut |_| pairs += 1);
    let held_bytes = if resets { peak_memory_bytes() } else { memory_bytes() }.saturating_sub(memory_before);
    Ok(vec![
        figure("tables and buffers for a million queries", held_bytes as f64 / 1e6, "MB").at_most(100.0),
        figure("as reckoned by the plan", QueryTables::bytes(queries.len(), K) as f64 / 1e6, "MB"),
        figure("pairs", pairs as f64, "pairs"),
    ])
}

/// Returns a file in the work folder.
fn file(folder: &Path, name: &str) -> Result<Location> {
    Location::parse(&folder.join(name).display().to_string())
}
