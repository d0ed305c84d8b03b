//! Links of the crawl in each process, the bow tie that they form, and the pages that a crawl
//! reaches from the seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::shuffle::memory::check_bytes_against_bound;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::Page;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::study::bow_tie::{BowTiePlace, WebGraph, bow_tie};
use webtwin_core::study::report::percent;
use webtwin_engine::Net;
use webtwin_job::Job;

/// Counts of the web of a study, and of the pages that a crawl reaches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReachReport {
    /// Number of pages, including those that are not documents.
    pub pages: u64,
    /// Number of links between these pages.
    pub links: u64,
    /// URL of the page from which the crawl was simulated.
    pub seed: String,
    /// Number of pages that the simulated crawl reaches.
    pub connected: u64,
    /// Percentage of all documents that the simulated crawl reaches.
    pub documents_connected_percent: f64,
    /// Numbers of pages by their place in the bow tie.
    pub pages_by_place: BTreeMap<BowTiePlace, u64>,
    /// Numbers of documents by their place in the bow tie.
    pub documents_by_place: BTreeMap<BowTiePlace, u64>,
}

/// Bytes of a link: in the list, and once in each direction.
const LINK_BYTES: u64 = 16;

/// Bytes of a page while its component and place are computed.
const PAGE_BYTES: u64 = 40;

/// Links, and the pages that a crawl reaches along them.
pub struct StudyWeb {
    /// Place of every page in the bow tie.
    pub places: Vec<BowTiePlace>,
    /// Pages that the crawl reaches.
    pub reachable: PageSet,
    /// Page at which the crawl begins; `None` in a crawl without pages.
    pub seed: Option<Page>,
    /// Counts. The caller fills in the URL of the seed.
    pub reach: ReachReport,
}

/// Simulates a crawl along all links from `seed`, or from the smallest page of the core.
///
/// # Errors
/// Returns [`Error::MemoryLimit`] if the links do not fit in memory, and [`Error::TooManyRows`] if
/// there are 2^32 or more.
pub(super) fn web(
    net: &mut Net<'_>,
    job: &Job,
    pages: usize,
    links: Vec<[Page; 2]>,
    seed: Option<Page>,
    documents: &PageSet,
) -> Result<Arc<StudyWeb>> {
    let [link_count] = net.all_sum("links", [links.len() as u64])?;
    let bytes = LINK_BYTES * link_count + PAGE_BYTES * pages as u64;
    let share = bytes / net.workers_per_process() as u64;
    check_bytes_against_bound(net, "links of a study", share, job.effort.memory_bytes)?;
    if link_count > u64::from(u32::MAX) {
        let content = "links of a study".into();
        return Err(Error::TooManyRows { what: content, found: link_count, allowed: u64::from(u32::MAX) });
    }
    let links = net.broadcast("links", links)?;
    net.once_per_process(|| {
        let (forwards, backwards) = (WebGraph::new(pages, &links, false), WebGraph::new(pages, &links, true));
        let core = forwards.core();
        let places = bow_tie(&links, &forwards, &backwards, &core);
        let seed = seed.or(core.first().copied());
        let reachable = forwards.reachable_from(seed.into_iter());
        let count = |is_counted: &dyn Fn(Page) -> bool| {
            let mut counts: BTreeMap<BowTiePlace, u64> = BTreeMap::new();
            let pages = Page::first(pages).filter(|&page| is_counted(page));
            pages.for_each(|page| *counts.entry(places[page]).or_default() += 1);
            counts
        };
        let connected = Page::first(pages).filter(|&page| documents.contains(page) && reachable.contains(page)).count();
        let reach = ReachReport {
            pages: pages as u64,
            links: links.len() as u64,
            seed: String::new(),
            connected: reachable.count(),
            documents_connected_percent: percent(connected as u64, documents.count()),
            pages_by_place: count(&|_| true),
            documents_by_place: count(&|page| documents.contains(page)),
        };
        StudyWeb { places, reachable, seed, reach }
    })
}
