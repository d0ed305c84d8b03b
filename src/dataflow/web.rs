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

/// Pages and links of this worker.
pub struct Web {
    /// Its pages, and what all workers know of all pages.
    pub crawl: Crawl,
    /// LINK(src, dst): links from its pages.
    pub links: Links,
    /// Links from other hosts to its pages, in their order.
    pub from_elsewhere: Column<u32>,
    /// Links from other hosts to every host.
    pub links_to_host: Arc<Vec<u32>>,
}

/// Makes pages of captures, numbers them by doc id, and resolves links; equal texts fold into their first page, their *centre*
/// (\[SGM98\] section 2.2), and this worker's pairs of centre and copy are returned. `floors[item]` is the offset from which the
/// records of a work item are true. A crawl with fewer pages than `least` is refused.
///
/// # Errors
/// [`webtwin_base::error::Error::MemoryLimit`], [`webtwin_base::error::Error::TooFewPages`]; those of the disk; or when the run has ended.
pub fn settle(run: &mut Run<'_, '_>, floors: &[u64], least: Option<&LeastPages>) -> Result<(Web, Column<SimilarPair>)> {
    let Run { net, job, shelf, partitions, .. } = run;
    make_room(net, "pages and links, and the steps after", shelf, job)?;
    // Captures have it, too.
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
