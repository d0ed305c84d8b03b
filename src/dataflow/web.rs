//! The web of a crawl: its pages, and the links between them.

use std::sync::Arc;

use super::clusters::links::{self, WorkerLinks};
use super::enough_memory::reserve_memory;
use super::memory_estimate::MemoryEstimate;
use super::pairs::exact;
use super::reading::captures::{self, Crawl};
use super::reading::idf;
use super::reading::least_pages::LeastPages;
use super::run::WorkerRun;
use super::shuffle::memory::agree;
use webtwin_base::error::Result;
use webtwin_core::overlap::SimilarPair;
use webtwin_spill::SpillColumn;

/// Pages and links that one worker owns.
pub struct WorkerWeb {
    /// Pages of this worker, and the data that all workers share about all pages.
    pub crawl: Crawl,
    /// LINK(src, dst): links from this worker's pages.
    pub links: WorkerLinks,
    /// Number of links from other hosts to each page of this worker, in the order of the pages.
    pub incoming_links: SpillColumn<u32>,
    /// Number of links from other hosts to each host.
    pub links_to_host: Arc<Vec<u32>>,
}

/// Deduplicates captures into pages, numbers the pages by doc id, and resolves links. Pages with
/// equal texts are folded into the first of them, their *centre* (\[SGM98\] section 2.2); the
/// second value returned is this worker's pairs of centre and copy. `floors[item]` is the offset
/// from which the records of a work item are valid. A crawl with fewer pages than `floor` is
/// refused.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::MemoryLimit`] or
/// [`webtwin_base::error::Error::TooFewPages`]. Returns any error of the disk, and an error if the
/// run has ended.
pub fn settle(
    run: &mut WorkerRun<'_, '_>,
    floors: &[u64],
    floor: Option<&LeastPages>,
) -> Result<(WorkerWeb, SpillColumn<SimilarPair>)> {
    let WorkerRun { net, job, local_pages, partitions, .. } = run;
    reserve_memory(net, "pages, links and the steps after reading", local_pages, job)?;
    // The captures contain the same digests.
    local_pages.exact = Vec::new();
    let mut crawl = captures::settle(net, local_pages, floors, *partitions)?;
    floor.map_or(Ok(()), |least| least.check_against(crawl.directory.len() as u64))?;
    if job.simhash.features.idf && job.simhash.bits > 0 {
        idf::simhashes(net, local_pages, &mut crawl, job)?;
    }
    let estimate = MemoryEstimate::with(local_pages, &crawl.pages, None);
    agree(net, estimate.local_pages_bytes(), 4 * crawl.pages.len() as u64, &job.effort)?;
    let texts = crawl.pages.map(|row| (row.exact, row.page));
    let exact = exact::fold(net, texts, crawl.pages.len() as u64)?;
    let links = links::resolve(net, local_pages, &crawl)?;
    let incoming_links = links::count_incoming(net, &links)?;
    let links_to_host = links::to_hosts(net, &incoming_links, &crawl)?;
    crawl.directory.spill_doc_ids(&net.memory)?;
    Ok((WorkerWeb { crawl, links, incoming_links, links_to_host }, exact))
}
