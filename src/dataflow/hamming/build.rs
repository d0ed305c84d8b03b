//! Builds F from the pages of a crawl, or from ready-made fingerprints, which are read item by
//! item. Writes chunks and their list (`chunks`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::chunks::{self, FingerprintSource};
pub use super::chunks::{ProcessHoldings, holdings};
use crate::reading::ingest::Queue;
use crate::reading::work_queue::WorkQueue;
use crate::reading::{captures, idf};
use crate::replicas::{CrawlInput, read_crawl};
use crate::shuffle::directory::TablePartitions;
use crate::sinks::stage::{attempt, or_discard};
use webtwin_base::error::Result;
use webtwin_base::progress::Progress;
use webtwin_core::hamming::coding::Coder;
use webtwin_core::hamming::fingerprint_file::{ChunkWriter, FingerprintManifest, NAME};
use webtwin_core::hamming::rows::FingerprintRow;
use webtwin_engine::Net;
use webtwin_job::Job;
use webtwin_results::fingerprints::Sources;
use webtwin_storage::location::Location;

/// Recipe of ready-made fingerprints, whose origin is unknown.
pub const UNKNOWN_RECIPE: &str = "given";

/// Ready-made fingerprints, as one process opens them.
pub struct FingerprintInput {
    /// Sources of the fingerprints.
    pub sources: Sources,
    turns: WorkQueue,
    /// Progress, for display.
    pub progress: Arc<Progress>,
}

impl FingerprintInput {
    /// Finds the sources of a job.
    ///
    /// # Errors
    /// Returns any error of [`Sources::find`].
    pub fn find(job: &Job) -> Result<FingerprintInput> {
        let sources = Sources::find(&job.fingerprints.from)?;
        let progress = Arc::new(Progress::new(sources.items.len() as u64));
        Ok(FingerprintInput { sources, turns: WorkQueue::default(), progress })
    }
}

/// Number of rows of pages that are passed on together.
const BATCH: usize = 1 << 14;

/// Callback that receives rows, some ten thousand at a time.
type Take<'a> = &'a mut dyn FnMut(&[FingerprintRow]) -> Result<()>;

/// Builds F from ready-made fingerprints. Every worker returns the manifest after it is written.
///
/// # Errors
/// Returns any [`webtwin_base::error::Error`], the same on all workers: for example for a missing
/// or damaged source, for lack of memory or disk space, or if another run has written the output
/// first.
pub fn from_fingerprints(
    net: &mut Net<'_>,
    job: &Job,
    ready: &FingerprintInput,
    folder: &Location,
) -> Result<FingerprintManifest> {
    let (f, recipe) = ready.sources.made.clone().unwrap_or((job.simhash.bits, UNKNOWN_RECIPE.into()));
    // The first worker that arrives sets the traffic for all workers of its process.
    let _ = ready.progress.traffic.set(net.traffic());
    let (process, processes) = (net.process(), net.processes());
    let source = |take: Take<'_>| {
        while let Some(item) = ready.sources.items.get(ready.turns.next_of(process, processes)) {
            item.read(f, take)?;
            ready.progress.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    write(net, job, &FingerprintSource { f, recipe }, source, folder)
}

/// Builds F from the newest captures of the pages of a crawl that have a simhash, like
/// [`from_fingerprints`].
///
/// # Errors
/// Returns any error of [`from_fingerprints`] and of reading a crawl.
pub fn from_crawl(net: &mut Net<'_>, job: &Job, queue: &Queue, folder: &Location) -> Result<FingerprintManifest> {
    let CrawlInput { mut local_pages, floors, .. } = read_crawl(net, job, queue)?;
    queue.progress.enter("sorting");
    let partitions = TablePartitions::new(job.output.partitions, net.peers());
    let mut crawl = captures::settle(net, &mut local_pages, &floors, partitions)?;
    if job.simhash.features.idf {
        idf::simhashes(net, &mut local_pages, &mut crawl, job)?;
    }
    let mut rows: Vec<FingerprintRow> = Vec::new();
    crawl.pages.for_each(|page| {
        let row = |fingerprint| FingerprintRow { fingerprint, document: page.doc_id };
        rows.extend(page.simhash().map(row));
    })?;
    let source = |take: Take<'_>| rows.chunks(BATCH).try_for_each(take);
    let description = FingerprintSource { f: job.simhash.bits, recipe: job.simhash.recipe() };
    write(net, job, &description, source, folder)
}

fn write(
    net: &mut Net<'_>,
    job: &Job,
    description: &FingerprintSource,
    source: impl FnOnce(Take<'_>) -> Result<()>,
    folder: &Location,
) -> Result<FingerprintManifest> {
    let attempt = attempt(net, folder)?;
    let chunks = or_discard(net, &attempt, |net| chunks::write(net, job, description, source, &attempt))?;
    let (_, mut manifest) = ChunkWriter::new(description.f, Coder::EliasFano, &description.recipe, true).finish()?;
    manifest.count = chunks.iter().map(|chunk| chunk.count).sum();
    manifest.chunks = chunks;
    let files = manifest.chunks.iter().map(|chunk| (chunk.name.clone(), chunk.bytes)).collect();
    if net.index() == 0 {
        attempt.commit(NAME, &manifest.to_json(), files)?;
    }
    // No worker may return before F has been committed.
    net.all_gather("manifest", ())?;
    Ok(manifest)
}
