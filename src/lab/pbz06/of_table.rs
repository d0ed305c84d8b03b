//! A study of a synthetic collection, without reading and writing.

use std::sync::Arc;
use std::time::Instant;

use super::super::made::duplicates::SyntheticCollection;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::Page;
use webtwin_core::study::paragraphs::whole;
use webtwin_dataflow::memory_estimate::MemoryEstimate;
use webtwin_dataflow::reading::worker_pages::WorkerPages;
use webtwin_dataflow::study::{StudyFindings, StudySummary, find};
use webtwin_engine::{ClusterLayout, run};
use webtwin_job::Job;

/// Result of a study.
#[derive(Debug, Clone, Default)]
pub(super) struct StudiedCollection {
    /// Findings. Records, digest and seed are not set.
    pub summary: StudySummary,
    /// Seconds of the slowest worker to make marks and links. They are not part of the study.
    pub making: f64,
    /// Seconds of the slowest worker from marks and links in memory to all tables.
    pub studying: f64,
}

/// Studies a synthetic collection in one process. Compares the clusters by the multiset rule, and
/// the connected part, with the planted truth.
///
/// # Errors
/// Returns any error of [`find`], and [`Error::Invariant`] if the findings differ from the planted
/// truth.
pub(super) fn of_table(collection: &Arc<SyntheticCollection>, job: &Job, workers: usize) -> Result<StudiedCollection> {
    let inputs = (Arc::clone(collection), job.clone());
    let mut parts = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| {
        let (collection, job) = (&inputs.0, &inputs.1);
        let make_start = Instant::now();
        let (mut local_pages, mut links) = (WorkerPages::default(), Vec::new());
        let (mut marks, mut targets) = (Vec::new(), Vec::new());
        for document in collection.part(net.index(), net.peers()).map(Page) {
            collection.marks(document, &mut marks);
            local_pages.exact.push(whole(&marks));
            local_pages.fprints.push(&marks)?;
            local_pages.pages.push(document);
            collection.links(document, &mut targets);
            links.extend(targets.iter().map(|&target| [document, target]));
        }
        net.all_gather("made", 0u8)?;
        let making = make_start.elapsed().as_secs_f64();
        let study_start = Instant::now();
        let documents = collection.documents() as usize;
        let findings = find(net, job, &local_pages, documents, MemoryEstimate::on(&local_pages), links, None)?;
        let study_seconds = study_start.elapsed().as_secs_f64();
        let comparison = net.once_per_process(|| compared_with_truth(collection, &findings))?;
        Result::clone(&comparison)?;
        let mut tables = findings.tables.0.clone();
        tables.near = findings.near.iter().map(|near| near.0).collect();
        Ok(StudiedCollection {
            summary: StudySummary { web: findings.web.reach.clone(), tables, ..StudySummary::default() },
            making,
            studying: study_seconds,
        })
    })?;
    let slowest_part = |of: fn(&StudiedCollection) -> f64| parts.iter().map(of).fold(0.0, f64::max);
    let (making, study_seconds) = (slowest_part(|part| part.making), slowest_part(|part| part.studying));
    Ok(StudiedCollection { making, studying: study_seconds, ..parts.swap_remove(0) })
}

fn compared_with_truth(collection: &SyntheticCollection, findings: &StudyFindings) -> Result<()> {
    let mut smallest = vec![Page::NONE; findings.same_multiset.len()];
    for (document, &same_as) in Page::first(findings.same_multiset.len()).zip(findings.same_multiset.iter()) {
        let smallest_same = &mut smallest[collection.cluster(document) as usize];
        *smallest_same = document.min(*smallest_same);
        if *smallest_same != same_as {
            let (document, same_as, smallest_same) = (document.0, same_as.0, smallest_same.0);
            return Err(Error::Invariant(format!("document {document} is with {same_as}, not with {smallest_same}")));
        }
        if findings.web.reachable.contains(document) != collection.is_reached(document) {
            return Err(Error::Invariant(format!("document {} is in the wrong part", document.0)));
        }
    }
    Ok(())
}
