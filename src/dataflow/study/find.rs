//! Steps of a study after reading. Results are the same on every worker, with one copy in each
//! process.

use std::sync::Arc;

use itertools::Itertools;

use super::{matches, near, web};
use crate::memory_estimate::MemoryEstimate;
use crate::pairs::exact;
use crate::reading::worker_pages::WorkerPages;
use crate::shuffle::components::components;
use crate::shuffle::memory::agree;
use crate::shuffle::page_counts::sum;
use crate::shuffle::page_set::page_set;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::clusters::labels::SetLabels;
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::study::clusters::StudyClusters;
use webtwin_core::study::report::{self, NearColumn, Tables, tables};
use webtwin_engine::Net;
use webtwin_job::Job;

/// Results of a study.
pub struct StudyFindings {
    /// Pages that are documents.
    pub documents: Arc<PageSet>,
    /// Smallest page with the same multiset of shingle paragraphs, for every page.
    pub same_multiset: Arc<Vec<Page>>,
    /// All tables except Table 3, and the clusters by the paper's rule.
    pub tables: Arc<(Tables, StudyClusters)>,
    /// Documents in clusters.
    pub clustered: Arc<PageSet>,
    /// Columns of Table 3, each with the documents that have a near-duplicate at its level.
    pub near: [Arc<(NearColumn, PageSet)>; 3],
    /// Links, and the pages that a crawl reaches along them.
    pub web: Arc<web::StudyWeb>,
}

/// Studies the local pages of all workers, whose numbers are below `pages`. `estimate` and `links`
/// are those of this worker; each link occurs once.
///
/// # Errors
/// Returns any error of [`crate::pairs::overlap_join::similar_pairs`]. Returns
/// [`webtwin_base::error::Error::MemoryLimit`] if the links do not fit in memory, and an error if
/// the run has ended.
///
/// # Cost
/// Exchanges each document's marks once for near-duplicates, and a fingerprint of the whole
/// document once for duplicates. Each process holds the links three times, at 4 to 8 bytes each,
/// and then about 60 bytes for each page.
pub fn find(
    net: &mut Net<'_>,
    job: &Job,
    local_pages: &WorkerPages,
    pages: usize,
    estimate: MemoryEstimate,
    links: Vec<[Page; 2]>,
    seed: Option<Page>,
) -> Result<StudyFindings> {
    let own_documents = local_pages.kept().filter(|&(slot, _)| local_pages.exact[slot] != 0).map(|(_, page)| page);
    let documents = page_set(net, "documents", own_documents, pages)?;
    let web = web::web(net, job, pages, links, seed, &documents)?;

    agree(net, estimate.local_pages_bytes(), 0, &job.effort)?;
    let texts = local_pages.kept().map(|(slot, page)| Ok((local_pages.exact[slot], page)));
    let equal = exact::fold(net, texts, local_pages.slots() as u64)?;
    let multisets: Arc<SetLabels<Page>> =
        components(net, "same multisets", pages, || equal.rows().map_ok(|pair| (pair.a, pair.b)))?;
    drop(equal);
    let same_multiset = net.once_per_process(|| multisets.to_list())?;
    drop(multisets);
    let matches = matches::matches(net, local_pages, &same_multiset)?;
    let findings = report::Findings {
        same_text: &same_multiset,
        matches: &matches,
        documents: &documents,
        reachable: &web.reachable,
        steps: job.study.steps,
    };
    let tables = net.once_per_process(|| tables(&findings))?;
    let clustered = net.once_per_process(|| {
        let labels = &tables.1.labels;
        let mut set = PageSet::new(pages, |page| labels[page] != page);
        let duplicates = Page::first(pages).zip(labels).filter(|&(page, &label)| label != page);
        duplicates.for_each(|(_, &label)| set.insert(label));
        set
    })?;

    let mut lengths = vec![0u32; pages];
    local_pages.kept().for_each(|(slot, page)| lengths[page] = local_pages.fprints.size(slot) as u32);
    let lengths = sum(net, "paragraphs of documents", &lengths)?;
    agree(net, estimate.local_pages_bytes(), 0, &job.effort)?;
    let near = near::near(net, local_pages, &lengths, &same_multiset, &tables.1.labels, &documents)?;
    Ok(StudyFindings { documents, same_multiset, tables, clustered, near, web })
}
