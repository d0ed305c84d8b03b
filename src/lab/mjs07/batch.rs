//! The whole batch job of the paper: F on disk in compressed chunks, a million queries, all
//! workers.

use serde::{Deserialize, Serialize};

use super::super::measure::{memory_scan, seconds};
use super::super::{FigureRow, LabProcess, Options, figure, row_against_published};
use super::{K, QUERIES, files};
use webtwin_base::error::Result;
use webtwin_base::ids::splitmix64;
use webtwin_core::hamming::coding::Coder;
use webtwin_core::hamming::fingerprint_file::{CHUNK_ROWS, ChunkEntry, ChunkWriter, NAME, chunk};
use webtwin_engine::Net;
use webtwin_job::{Job, JobKind};
use webtwin_storage::location::Location;

/// Binary logarithm of the value range that a chunk of a set of 2^33 fingerprints covers.
const CHUNK_BITS: u32 = 54;

/// Number of queries that are planted within 0 to 5 flips of a fingerprint.
const PLANTED_QUERIES: usize = QUERIES / 100;

/// Makes F and Q, runs the batch job, and checks the planted pairs.
pub(super) fn run(options: &Options, place: &LabProcess) -> Result<Vec<FigureRow>> {
    let rows = options.scale as usize;
    let path = |name: &str| options.work.join(name).display().to_string();
    let mut job = Job { kind: JobKind::Hamming, ..Job::default() };
    job.hamming.k = K;
    job.batch.fingerprints = path("f");
    job.batch.queries = vec![path("q.u64")];
    job.output.url = path("pairs");

    let (f, q) = (Location::parse(&path("f"))?, Location::parse(&path("q.u64"))?);
    let (make_seconds, planted_queries) =
        seconds(|| files::make(options, place, &job, move |net| write(net, rows, &f, &q)));
    let (planted_queries, bytes) = planted_queries?;
    let (join_seconds, summary) = files::join(place, &job)?;
    if place.process > 0 {
        return Ok(Vec::new());
    }

    let (manifest, pairs_found) = files::pairs(&job)?;
    // A planted query with more than k flips is too far from its fingerprint to be found.
    let near_queries = planted_queries.iter().enumerate().filter(|(_, planted)| planted.distance <= K);
    let (mut expected, mut n_missed) = (0, 0);
    for (query, planted_query) in near_queries {
        expected += 1;
        n_missed += usize::from(pairs_found.binary_search(&(planted_query.place, query as u64)).is_err());
    }
    let scale = rows as f64 / 2f64.powi(33);
    let paper_value = 100.0 * scale;
    let rate = rows as f64 / join_seconds;
    let workers = place.workers() as f64;
    Ok(vec![
        row_against_published("end to end", join_seconds, paper_value, "s").at_most(paper_value),
        figure("processes", place.cluster.processes() as f64, "processes"),
        figure("workers of all", workers, "threads"),
        row_against_published("fingerprints of F", rate / 1e6, 134.0, "million a second"),
        row_against_published(
            "the same by worker (the paper's mappers)",
            rate / 1e6 / workers,
            0.67,
            "million a second",
        ),
        figure("scan alone", manifest.seconds.get("2 scan").copied().unwrap_or(0.0), "s"),
        row_against_published("F on disk", bytes as f64 / rows as f64 / 8.0, 0.5, "of raw").at_most(0.53),
        figure("F on disk", bytes as f64 / 1e9, "GB"),
        figure("read from disk", bytes as f64 / join_seconds / 1e9, "GB a second"),
        figure("of the memory scan of one core", rate / workers / memory_scan(), "share"),
        figure("pairs", summary.pairs as f64, "pairs"),
        figure("planted pairs within k", f64::from(expected), "pairs"),
        figure("planted pairs missed", n_missed as f64, "pairs").at_most(0.0),
        figure("peak memory of process 0", webtwin_base::build_info::peak_memory_bytes() as f64 / 1e6, "MB"),
        figure("F made in", make_seconds, "s"),
    ])
}

/// A query that was made near a fingerprint.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Planted {
    query: u64,
    place: u64,
    distance: u32,
}

/// Writes F and Q. Every chunk of F is sorted and as dense as in a set of 2^33 fingerprints, and
/// each worker writes its own chunks. Returns the planted queries, and the number of bytes of F.
fn write(net: &mut Net<'_>, rows: usize, f: &Location, q: &Location) -> Result<(Vec<Planted>, u64)> {
    let chunks = rows.div_ceil(CHUNK_ROWS);
    let mut local_chunks = Vec::new();
    for number in (net.index()..chunks).step_by(net.peers()) {
        net.check()?;
        let count = CHUNK_ROWS.min(rows - number * CHUNK_ROWS);
        let fingerprints = even_range(number as u64, count);
        let bytes = chunk(64, Coder::EliasFano, "even", &fingerprints, None)?;
        let entry = ChunkEntry::new(format!("part-{number:05}.fp"), &fingerprints, &[&bytes]);
        f.join(&entry.name)?.put(&bytes)?;
        let chunk_queries = (number * PLANTED_QUERIES / chunks..(number + 1) * PLANTED_QUERIES / chunks).map(|plant| {
            let random = splitmix64(plant as u64 ^ 0xf1a7);
            let row = random as usize % count;
            let flips = (0..plant as u64 % 6).fold(0, |flips, flip| flips ^ 1 << (splitmix64(random ^ flip) & 63));
            let query = fingerprints[row] ^ flips;
            // If there are equal fingerprints, any of their rows will do, because the job reports
            // all.
            Planted { query, place: (number * CHUNK_ROWS + row) as u64, distance: flips.count_ones() }
        });
        local_chunks.push((number, entry, chunk_queries.collect::<Vec<_>>()));
    }
    let mut all_chunks: Vec<(usize, ChunkEntry, Vec<Planted>)> =
        net.all_gather("chunks", local_chunks)?.into_iter().flatten().collect();
    all_chunks.sort_unstable_by_key(|chunk| chunk.0);
    let (_, mut manifest) = ChunkWriter::new(64, Coder::EliasFano, "even", false).finish()?;
    let mut planted_queries = Vec::new();
    for (_, entry, chunk_queries) in all_chunks {
        manifest.count += entry.count;
        manifest.chunks.push(entry);
        planted_queries.extend(chunk_queries);
    }
    if net.index() == 0 {
        f.join(NAME)?.put(&manifest.to_json())?;
        let query = |number: usize| {
            planted_queries.get(number).map_or_else(|| splitmix64(!(number as u64)), |planted: &Planted| planted.query)
        };
        q.put(&(0..QUERIES).flat_map(|number| query(number).to_le_bytes()).collect::<Vec<u8>>())?;
    }
    Ok((planted_queries, manifest.chunks.iter().map(|chunk| chunk.bytes).sum()))
}

/// Returns `count` random fingerprints of the range of a chunk, ascending. They are uniform order
/// statistics, generated by exponential gaps.
fn even_range(number: u64, count: usize) -> Vec<u64> {
    let seed = splitmix64(number ^ 0xe4e4);
    let gap = |gap_number: u64| {
        let unit = (splitmix64(seed.wrapping_add(gap_number)) >> 11) as f64 / (1u64 << 53) as f64;
        -(1.0 - unit).ln()
    };
    let mut sum = 0.0;
    let mut sums: Vec<f64> = (0..count as u64)
        .map(|number| {
            sum += gap(number);
            sum
        })
        .collect();
    let scale = ((1u64 << CHUNK_BITS) - 1) as f64 / (sum + gap(count as u64));
    let base = number << CHUNK_BITS;
    sums.drain(..).map(|sum| base | (sum * scale) as u64).collect()
}
