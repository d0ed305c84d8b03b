//! Makes F: from the pages of a crawl, or from ready-made fingerprints, to chunks in ascending ranges.
//!
//! The fingerprint space is cut in ranges of about a chunk each, by counts of leading bits over all rows; so chunks do not
//! depend on the number of workers. Each range goes to one worker, which sorts and writes it.
//!
//! Two exchanges. Memory: 16 bytes a row to read, up to 32 while rows arrive and are sorted, over all workers.

use std::sync::Arc;

use crate::dataflow::directory::Partitions;
use crate::dataflow::ingest::Queue;
use crate::dataflow::memory::hold_bytes_against_bound;
use crate::dataflow::progress::Progress;
use crate::dataflow::replicas::read_crawl;
use crate::dataflow::turns::Turns;
use crate::dataflow::{captures, idf};
use crate::engine::Net;
use crate::error::{Error, Result};
use crate::hamming::fingerprint_file::{CHUNK_ROWS, Chunk, ChunkWriter, Manifest, NAME};
use crate::hamming::recipe::Recipe;
use crate::ids::{DocId, SimHash};
use crate::job::Job;
use crate::storage::fingerprints::Sources;
use crate::storage::location::Location;

/// Leading bits by which rows are counted.
const COUNTED_BITS: u32 = 16;

/// Ready-made fingerprints, as one process sees them.
pub struct Ready {
    /// Where they are.
    pub sources: Sources,
    turns: Turns,
    /// For people who watch.
    pub progress: Arc<Progress>,
}

impl Ready {
    /// Finds the sources of a job.
    ///
    /// # Errors
    /// As [`Sources::find`].
    pub fn find(job: &Job) -> Result<Ready> {
        let sources = Sources::find(&job.fingerprints.from)?;
        let progress = Arc::new(Progress::new(sources.items.len() as u64));
        Ok(Ready { sources, turns: Turns::default(), progress })
    }
}

/// What makes the fingerprints of a set.
struct Made {
    f: u32,
    recipe: String,
}

/// A fingerprint and its document, as it travels.
type Row = [u64; 2];

/// Builds F from ready-made fingerprints; every worker returns its manifest once it is written.
///
/// # Errors
/// [`Error::Input`] when a source is missing or damaged; [`Error::LostCommit`]; [`Error::Storage`].
pub fn from_fingerprints(net: &mut Net<'_>, job: &Job, ready: &Ready, folder: &Location) -> Result<Manifest> {
    let (f, recipe) = ready.sources.made.clone().unwrap_or((job.simhash.bits, "given".into()));
    let read = || {
        let mut rows: Vec<Row> = Vec::new();
        while let Some(item) = ready.sources.items.get(ready.turns.next(net)) {
            net.check()?;
            rows.extend(item.read(f)?.into_iter().map(|(fingerprint, document)| [fingerprint, document]));
            ready.progress.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(rows)
    };
    let rows = read();
    let rows = rows?;
    write(net, job, &Made { f, recipe }, rows, folder)
}

/// Builds F from the pages of a crawl that have a simhash, the newest capture of each; as [`from_fingerprints`].
///
/// # Errors
/// Also those of reading a crawl.
pub fn from_crawl(net: &mut Net<'_>, job: &Job, queue: &Queue, folder: &Location) -> Result<Manifest> {
    let (mut shelf, floors) = read_crawl(net, job, queue)?;
    queue.progress.enter("sorting");
    let partitions = Partitions::new(job.output.partitions, net.peers());
    let mut crawl = captures::settle(net, &mut shelf, &floors, partitions)?;
    if job.simhash.idf {
        idf::simhashes(net, &mut shelf, &mut crawl, job.simhash.bits)?;
    }
    let rows = crawl.pages.iter().filter_map(|(_, page)| Some([page.simhash?, page.doc_id])).collect();
    let made = Made { f: job.simhash.bits, recipe: Recipe::new(&job.simhash).name() };
    write(net, job, &made, rows, folder)
}

fn write(net: &mut Net<'_>, job: &Job, made: &Made, rows: Vec<Row>, folder: &Location) -> Result<Manifest> {
    hold_bytes_against_bound(net, "fingerprints to be sorted", 48 * rows.len() as u64, job.effort.memory_bytes)?;
    let counted = |fingerprint: SimHash| (fingerprint >> made.f.saturating_sub(COUNTED_BITS)) as usize;
    let mut counts = vec![0u64; 1 << COUNTED_BITS.min(made.f)];
    rows.iter().for_each(|row| counts[counted(row[0])] += 1);
    let counts = counts.into_iter().enumerate().filter(|count| count.1 > 0).map(|(at, n)| [at as u64, n]).collect();
    let all = net.share("counts", counts)?;
    let ranges = net.once(|| ranges(&all, COUNTED_BITS.min(made.f)))?;
    let peers = net.peers();
    let mut rows = net.exchange_all("fingerprints", rows, |row| ranges[counted(row[0])] as usize % peers)?;
    rows.sort_unstable();
    rows.dedup();

    // Names follow the order of the space, so chunks are counted before they are written.
    let mine: Vec<(u64, u64)> = rows
        .chunk_by(|x, y| ranges[counted(x[0])] == ranges[counted(y[0])])
        .map(|range| (u64::from(ranges[counted(range[0][0])]), range.len().div_ceil(CHUNK_ROWS) as u64))
        .collect();
    let mut chunks: Vec<_> = net.all_gather("chunks", mine)?.into_iter().flatten().collect();
    chunks.sort_unstable();
    let before = |range: u64| chunks.iter().take_while(|other| other.0 < range).map(|other| other.1).sum::<u64>();
    let put = || {
        let mut written = Vec::new();
        for range in rows.chunk_by(|x, y| ranges[counted(x[0])] == ranges[counted(y[0])]) {
            let first = before(u64::from(ranges[counted(range[0][0])])) as usize;
            written.extend(put_range(net, job, made, range, first, folder)?);
        }
        Ok(written)
    };
    let written = put();
    let written: Vec<String> = written?;
    let mut chunks: Vec<Chunk> = net
        .all_gather("chunks of all", written)?
        .iter()
        .flatten()
        .map(|chunk| serde_json::from_str(chunk).map_err(|cause| Error::Invariant(cause.to_string())))
        .collect::<Result<_>>()?;
    chunks.sort_unstable_by(|x, y| x.name.cmp(&y.name));
    let (_, mut manifest) = ChunkWriter::new(made.f, job.fingerprints.coder, &made.recipe, true).finish()?;
    manifest.count = chunks.iter().map(|chunk| chunk.count).sum();
    manifest.chunks = chunks;
    let bytes = manifest.to_json();
    let committed =
        if net.index() > 0 { Ok(()) } else { folder.join(NAME)?.put_if_absent(&bytes, |stored| stored == bytes) };
    committed?;
    Ok(manifest)
}

/// The range of each value of the leading bits: as many neighbours together as fill a chunk.
fn ranges(counts: &[[u64; 2]], bits: u32) -> Vec<u32> {
    let mut all = vec![0u64; 1 << bits];
    counts.iter().for_each(|&[at, n]| all[at as usize] += n);
    let (mut range, mut held) = (0, 0);
    all.into_iter()
        .map(|n| {
            if held > 0 && held + n > CHUNK_ROWS as u64 {
                (range, held) = (range + 1, 0);
            }
            held += n;
            range
        })
        .collect()
}

/// Writes one range in chunks, the first of which has the number `first`; returns their entries.
fn put_range(
    net: &Net<'_>,
    job: &Job,
    made: &Made,
    rows: &[Row],
    first: usize,
    folder: &Location,
) -> Result<Vec<String>> {
    let mut entries = Vec::new();
    for (number, some) in (first..).zip(rows.chunks(CHUNK_ROWS)) {
        net.check()?;
        let fingerprints: Vec<SimHash> = some.iter().map(|row| row[0]).collect();
        let documents: Vec<DocId> = some.iter().map(|row| row[1]).collect();
        let bytes = crate::hamming::fingerprint_file::chunk(
            made.f,
            job.fingerprints.coder,
            &made.recipe,
            &fingerprints,
            Some(&documents),
        )?;
        let chunk = Chunk::of(format!("part-{number:05}.wtf"), &fingerprints, &bytes);
        folder.join(&chunk.name)?.put(&bytes)?;
        entries.push(serde_json::to_string(&chunk).expect("an entry is plain values"));
    }
    Ok(entries)
}
