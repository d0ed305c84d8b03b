//! The web of a crawl: its pages, and the links between them.

use std::sync::Arc;

use super::clusters::links::{self, Links};
use super::enough_memory::make_room;
use super::memory_estimate::MemoryEstimate;
use super::pairs::exact;
use super::reading::captures::{self, Crawl};
use super::reading::idf;
use super::reading::least_pages::LeastPages;
use super::run::Run;
use super::shuffle::memory::agree;
use webtwin_base::error::Result;
use webtwin_core::overlap::SimilarPair;
use webtwin_spill::Column;

/// Pages and links that one worker owns.
pub struct Web {
    /// Pages of this worker, and the data that all workers share about all pages.
    pub crawl: Crawl,
    /// LINK(src, dst): links from this worker's pages.
    pub links: Links,
    /// Number of links from other hosts to each page of this worker, in the order of the pages.
    pub from_elsewhere: Column<u32>,
    /// Number of links from other hosts to each host.
    pub links_to_host: Arc<Vec<u32>>,
}

/// Deduplicates captures into pages, numbers the pages by doc id, and resolves links. Pages with
/// equal texts are folded into the first of them, their *centre* (\[SGM98\] section 2.2); the
/// second value returned is this worker's pairs of centre and copy. `floors[item]` is the offset
/// from which the records of a work item are valid. A crawl with fewer pages than `least` is
/// refused.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::MemoryLimit`] or
/// [`webtwin_base::error::Error::TooFewPages`]. Returns any error of the disk, and an error if the
/// run has ended.
pub fn settle(run: &mut Run<'_, '_>, floors: &[u64], least: Option<&LeastPages>) -> Result<(Web, Column<SimilarPair>)> {
    let Run { net, job, shelf, partitions, .. } = run;
    make_room(net, "pages and links, and the steps after", shelf, job)?;
    // The captures contain the same digests.
    shelf.exact = Vec::new();
    let mut crawl = captures::settle(net, shelf, floors, *partitions)?;
    least.map_or(Ok(()), |least| least.hold_against(crawl.directory.len() as u64))?;
    if job.simhash.features.idf && job.simhash.bits > 0 {
        idf::simhashes(net, shelf, &mut crawl, job)?;
    }
    let held = MemoryEstimate::with(shelf, &crawl.pages, None);
    agree(net, held.shelf_bytes(), 4 * crawl.pages.len() as u64, &job.effort)?;
    let texts = crawl.pages.map(|row| (row.exact, row.page));
    let exact = exact::fold(net, texts, crawl.pages.len() as u64)?;
    let links = links::resolve(net, shelf, &crawl)?;
    let from_elsewhere = links::from_elsewhere(net, &links)?;
    let links_to_host = links::to_hosts(net, &from_elsewhere, &crawl)?;
    crawl.directory.put_doc_ids_aside(&net.memory)?;
    Ok((Web { crawl, links, from_elsewhere, links_to_host }, exact))
}
