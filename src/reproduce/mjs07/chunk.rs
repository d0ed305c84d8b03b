//! One mapper: a chunk of F is read, decoded and joined with a million queries, and the pairs are written.

use std::path::Path;
use std::sync::Arc;

use super::super::measure::{forget_peak_memory, median, memory_scan, seconds};
use super::super::{Options, Row, beside, figure};
use super::{K, QUERIES};
use crate::build::{memory_bytes, peak_memory_bytes};
use crate::error::{Error, Result};
use crate::hamming::coding::Coder;
use crate::hamming::fingerprint_file::{FingerprintFile, chunk};
use crate::hamming::kernels::{Level, cross};
use crate::hamming::postings::distinct;
use crate::hamming::query_tables::{Hit, QueryTables, Scratch};
use crate::hamming::sample;
use crate::ids::mix;
use crate::storage::location::Location;
use crate::storage::open::open;
use crate::storage::table::{Column, Table, encode};

/// Passes of which the median counts.
const PASSES: usize = 5;

/// Fingerprints that are held against all queries one by one, to see what that costs.
const BRUTE: usize = 4096;

/// Queries that fit a first-level cache.
const CACHED: usize = 2048;

/// A chunk at the density of 2^33 and queries, a hundredth of them within 0 to 5 flips of a fingerprint.
fn input(options: &Options) -> (Vec<u64>, Vec<u64>) {
    let count = options.scale as usize;
    let fingerprints = sample::even(count, 54.min(31 + options.scale.max(2).ilog2()), 1);
    let query = |at: u64| {
        let random = mix(at ^ 0x51);
        if at % 100 > 0 || fingerprints.is_empty() {
            return random;
        }
        let near = fingerprints[random as usize % fingerprints.len()];
        (0..at / 100 % 6).fold(near, |value, flip| value ^ 1 << (mix(random ^ flip) & 63))
    };
    let mut queries: Vec<u64> = (0..QUERIES as u64).map(query).collect();
    queries.sort_unstable();
    queries.dedup();
    (fingerprints, queries)
}

/// What a worker needs besides the tables.
struct Mapper {
    scratch: Scratch,
    fingerprints: Vec<u64>,
    ends: Vec<u32>,
}

impl Mapper {
    fn new() -> Mapper {
        Mapper { scratch: Scratch::new(K, Level::best()), fingerprints: Vec::new(), ends: Vec::new() }
    }

    /// Reads a chunk, joins it, writes the pairs; returns how many.
    fn map(&mut self, tables: &QueryTables, from: &Location, to: &Location) -> Result<usize> {
        FingerprintFile::open(from.name(), open(from)?)?.decode_all(&mut self.fingerprints)?;
        distinct(&mut self.fingerprints, &mut self.ends);
        let mut hits: Vec<Hit> = Vec::new();
        tables.join(&self.fingerprints, &mut self.scratch, &mut |hit| hits.push(hit));
        hits.sort_unstable();
        let column = |of: fn(&Hit) -> u32| Column::U32(hits.iter().map(of).collect());
        let columns =
            [("at", column(|hit| hit.at)), ("query", column(|hit| hit.query)), ("value", column(|hit| hit.distance))];
        to.put(&encode(&Table::new(columns))?)?;
        Ok(hits.len())
    }
}

pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let (fingerprints, queries) = input(options);
    let (from, to) = (file(&options.work, "chunk.wtf")?, file(&options.work, "pairs.parquet")?);
    let other = file(&options.work, "pairs-of-two.parquet")?;
    let bytes = chunk(64, Coder::EliasFano, "even", &fingerprints, None)?;
    from.put(&bytes)?;
    let count = fingerprints.len() as f64;
    let (built, tables) = seconds(|| QueryTables::new(&queries, K, Level::best()));
    let tables = Arc::new(tables?);

    let (mut one, mut two) = (Vec::new(), Vec::new());
    let (mut first, mut second) = (Mapper::new(), Mapper::new());
    let pairs = first.map(&tables, &from, &to)?;
    second.map(&tables, &from, &other)?;
    for _ in 0..PASSES {
        let (took, mapped) = seconds(|| first.map(&tables, &from, &to));
        mapped?;
        one.push(count / took / 1e6);
        let (took, mapped) = seconds(|| {
            std::thread::scope(|scope| {
                let beside = scope.spawn(|| second.map(&tables, &from, &other));
                let mine = first.map(&tables, &from, &to);
                beside.join().map_err(|_| Error::Invariant("a mapper panicked".into()))?.and(mine)
            })
        });
        mapped?;
        two.push(2.0 * count / took / 1e6);
    }
    let (one, two) = (median(one), median(two));
    let some = &fingerprints[..BRUTE.min(fingerprints.len())];
    let mut found = Vec::new();
    let (took, ()) = seconds(|| {
        for queries in queries.chunks(CACHED) {
            cross(Level::best(), some, queries, K, &mut found);
        }
    });
    let brute = some.len() as f64 / took / 1e6;
    let scan = memory_scan() / 1e6;
    // The same pairs, by brute force, among the fingerprints that it was tried on.
    let mut joined = 0;
    tables.join(some, &mut first.scratch, &mut |_| joined += 1);
    Ok(vec![
        beside("one core: read, join, write", one, 0.67, "million fingerprints a second").at_least(75.0),
        figure("two workers", two, "million fingerprints a second"),
        figure("two workers against one", two / one, "times").at_least(1.7),
        figure(&format!("brute force ({})", Level::best().word()), brute, "million fingerprints a second"),
        figure("against brute force", one / brute, "times").at_least(5000.0),
        figure("memory scan, one core", scan, "million fingerprints a second"),
        figure("of the memory scan", one / scan, "share").at_least(0.02),
        figure("tables built in", built * 1000.0, "ms"),
        figure("pairs", pairs as f64, "pairs"),
        figure(
            "pairs that brute force finds and the join does not, or the other way round",
            (found.len() as f64 - f64::from(joined)).abs(),
            "pairs",
        )
        .at_most(0.0),
    ])
}

/// Clustered fingerprints: what a reported pair costs.
pub(super) fn clustered(options: &Options) -> Result<Vec<Row>> {
    let (mut fingerprints, mut queries) = (sample::clustered(options.scale as usize, 1), sample::clustered(QUERIES, 2));
    fingerprints.dedup();
    queries.dedup();
    let tables = QueryTables::new(&queries, K, Level::best())?;
    let mut scratch = Scratch::new(K, Level::best());
    let (mut each, mut pairs) = (Vec::new(), 0u64);
    let mut buffer: Vec<Hit> = Vec::with_capacity(1 << 20);
    for _ in 0..3 {
        pairs = 0;
        let (took, ()) = seconds(|| {
            tables.join(&fingerprints, &mut scratch, &mut |hit| {
                if buffer.len() == buffer.capacity() {
                    std::hint::black_box(&buffer);
                    buffer.clear();
                }
                buffer.push(hit);
                pairs += 1;
            });
        });
        each.push(took * 1e9 / pairs as f64);
    }
    let each = median(each);
    Ok(vec![
        figure("distinct fingerprints", fingerprints.len() as f64, "fingerprints"),
        figure("distinct queries", queries.len() as f64, "queries"),
        figure("pairs reported", pairs as f64, "pairs"),
        figure("one core, by reported pair", each, "ns").at_most(15.0),
    ])
}

/// Memory of the tables and of what a join needs besides.
pub(super) fn memory(options: &Options) -> Result<Vec<Row>> {
    let (fingerprints, queries) = input(options);
    let resets = forget_peak_memory();
    let before = memory_bytes();
    let tables = QueryTables::new(&queries, K, Level::best())?;
    let mut scratch = Scratch::new(K, Level::best());
    let mut pairs = 0u64;
    tables.join(&fingerprints, &mut scratch, &mut |_| pairs += 1);
    let held = if resets { peak_memory_bytes() } else { memory_bytes() }.saturating_sub(before);
    Ok(vec![
        figure("tables and buffers for a million queries", held as f64 / 1e6, "MB").at_most(100.0),
        figure("as reckoned by the plan", QueryTables::bytes(queries.len(), K) as f64 / 1e6, "MB"),
        figure("pairs", pairs as f64, "pairs"),
    ])
}

/// A file in the work folder.
fn file(folder: &Path, name: &str) -> Result<Location> {
    Location::parse(&folder.join(name).display().to_string())
}
