//! Pages that an earlier result kept (`keep.sticky`), and their outcome in this run.
//!
//! A page was kept if another page was on the `avoid` list because of it. The files of that table
//! are dealt out to the workers, each of which reads one column of its files. One exchange sends
//! the doc ids to the owners of these pages. The earlier result belongs to another crawl, so some
//! of these pages may not exist any more; they are counted, too.
//!
//! # Memory
//! Takes 8 bytes for each row of the earlier list in transit, and one block of rows; then 4 bytes
//! for each kept page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::verdict::PageVerdict;
use crate::reading::captures::Crawl;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, Page};
use webtwin_core::applications::keep::CopyRole;
use webtwin_engine::{Net, Owners, RoundRobin};
use webtwin_job::KeepSettings;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan_file;
use webtwin_spill::SpillColumn;

/// Counts of the pages that an earlier result kept, by outcome. `pages` is the sum of all other
/// counts except `flipped_by`, which adds up to `flipped`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepChanges {
    /// Pages that the earlier result kept for their copies.
    pub pages: u64,
    /// Pages that are kept for their copies again.
    pub kept: u64,
    /// Pages that have no copies now.
    pub alone: u64,
    /// Pages that are visited, although another page is kept for their copies.
    pub visited: u64,
    /// Pages that may be skipped now.
    pub flipped: u64,
    /// Pages that may be skipped now, by the criterion by which they are inferior to the kept page
    /// (`avoid.lost_by`).
    pub flipped_by: BTreeMap<String, u64>,
    /// Pages that are not in this crawl.
    pub gone: u64,
}

/// Data of the earlier result on one worker.
#[derive(Debug, Default)]
pub struct Memory {
    /// Pages of this worker that were kept, ascending.
    pub pages: Vec<Page>,
    /// Number of kept pages that are not in this crawl, among the doc ids that this worker owns.
    gone_count: u64,
    /// True if there is an earlier result.
    is_there: bool,
}

/// Opens the earlier result of a job, if it names one.
///
/// # Errors
/// Returns [`Error::Input`] if there is no result in that folder, or if the result has no avoid
/// list.
pub fn open(keep: &KeepSettings) -> Result<Option<FinishedRun>> {
    if keep.sticky.is_empty() {
        return Ok(None);
    }
    let run = FinishedRun::open(&keep.sticky)?;
    if run.manifest.table("avoid").next().is_none() {
        return Err(Error::input(&keep.sticky, "has no table avoid; set keep.sticky to a result with an avoid list"));
    }
    Ok(Some(run))
}

/// Reads which of this worker's pages the earlier result kept. `previous_run` is the result of
/// [`open`].
///
/// # Errors
/// Returns [`Error::Input`] for files that differ from the manifest, and [`Error::Handshake`] if
/// processes opened different results.
///
/// # Cost
/// Each file of the earlier list is read once by one of the workers, and once more to verify it.
pub fn read(
    net: &mut Net<'_>,
    crawl: &Crawl,
    keep: &KeepSettings,
    previous_run: Option<&FinishedRun>,
) -> Result<Memory> {
    let Some(run) = previous_run else { return Ok(Memory::default()) };
    let attempt = run.manifest.attempt.clone();
    let attempts = net.all_gather("earlier results", attempt.clone())?;
    if attempts.iter().any(|other| *other != attempt) {
        let fault = "processes read different results here; share one folder among all processes, and start them again";
        return Err(Error::Handshake(format!("keep.sticky = {:?}: {fault}", keep.sticky)));
    }
    let (directory, assignment) = (&crawl.directory, RoundRobin::new(net.peers()));
    let mut kept_ids: Vec<DocId> = Vec::new();
    for (_, entry) in run.manifest.table("avoid").enumerate().filter(|(n, _)| assignment.owner(*n) == net.index()) {
        scan_file(run, entry, (&["keep_doc_id"], &[]), |_| Ok(false), &mut |batch| {
            kept_ids.extend(batch.u64("keep_doc_id")?);
            Ok(())
        })?;
    }
    kept_ids.sort_unstable();
    kept_ids.dedup();
    // A page that is not in this crawl has an owner, too, so that it is counted once.
    let mut own_ids = net.exchange("pages kept before", kept_ids, |doc_id| directory.owner_of(*doc_id))?;
    own_ids.sort_unstable();
    own_ids.dedup();
    let by_doc_id = directory.by_doc_id()?;
    let pages: Vec<Page> = own_ids.iter().filter_map(|&doc_id| by_doc_id.page(doc_id)).collect();
    Ok(Memory { gone_count: (own_ids.len() - pages.len()) as u64, pages, is_there: true })
}

impl Memory {
    /// Returns the outcome for all pages kept before, the same on every worker; `None` without an
    /// earlier result. `verdicts` must be final.
    ///
    /// # Errors
    /// Returns [`Error::Invariant`] if the counts do not add up, and any error of the disk.
    pub fn outcome(&self, net: &mut Net<'_>, verdicts: &SpillColumn<PageVerdict>) -> Result<Option<KeepChanges>> {
        if !self.is_there {
            return Ok(None);
        }
        let mut own_changes = KeepChanges {
            pages: self.gone_count + self.pages.len() as u64,
            gone: self.gone_count,
            ..KeepChanges::default()
        };
        for block in verdicts.blocks() {
            for verdict in block?.iter().filter(|verdict| verdict.was_kept()) {
                match verdict.role() {
                    CopyRole::Keep => own_changes.kept += 1,
                    CopyRole::Visit(_) => own_changes.visited += 1,
                    CopyRole::Skip(_, lost_by) => {
                        own_changes.flipped += 1;
                        *own_changes.flipped_by.entry(lost_by.as_str().into()).or_default() += 1;
                    }
                }
            }
        }
        let mut total = KeepChanges::default();
        for part in net.all_gather("outcome of pages kept before", own_changes)? {
            total.pages += part.pages;
            total.kept += part.kept;
            total.visited += part.visited;
            total.flipped += part.flipped;
            total.gone += part.gone;
            part.flipped_by.into_iter().for_each(|(by, n)| *total.flipped_by.entry(by).or_default() += n);
        }
        let accounted = total.kept + total.visited + total.flipped + total.gone;
        total.alone = total.pages.checked_sub(accounted).ok_or_else(|| {
            Error::Invariant(format!(
                "{} pages were kept before, but {accounted} of them are judged or gone",
                total.pages
            ))
        })?;
        Ok(Some(total))
    }
}
