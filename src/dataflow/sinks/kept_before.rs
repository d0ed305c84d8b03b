//! What an earlier result kept (`keep.sticky`), and what becomes of it.
//!
//! A page was kept if another one was on the `avoid` list for its sake. Files of that table are dealt out to the workers, each
//! of which reads one column of them; one exchange brings the doc ids to the owners of these pages. The earlier result has
//! another crawl, so pages of it may be gone; those are counted, too.
//!
//! # Memory
//! 8 bytes for each row of the earlier list on the way, and a block of rows; then 4 bytes for each page kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::verdict::Verdict;
use crate::reading::captures::Crawl;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, Page};
use webtwin_core::applications::keep::Role;
use webtwin_engine::{Net, Owners, RoundRobin};
use webtwin_job::Keep;
use webtwin_results::Run;
use webtwin_results::scan::scan_file;
use webtwin_spill::Column;

/// What became of the pages that an earlier result kept. `pages` is the sum of all others but `flipped_by`, which sums up to
/// `flipped`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBefore {
    /// Pages that it kept for others.
    pub pages: u64,
    /// Those that stay for their copies again.
    pub kept: u64,
    /// Those that have no copies now.
    pub alone: u64,
    /// Those that are visited, though another page stays for their copies.
    pub visited: u64,
    /// Those that may be skipped now.
    pub flipped: u64,
    /// The same by what they have less of than the page that stays (`avoid.lost_by`).
    pub flipped_by: BTreeMap<String, u64>,
    /// Those that are not in this crawl.
    pub gone: u64,
}

/// What a worker knows of the earlier result.
#[derive(Debug, Default)]
pub struct Memory {
    /// Its pages that were kept, ascending.
    pub pages: Vec<Page>,
    /// Kept pages that are not in this crawl, of which this worker was told.
    gone: u64,
    /// Whether there is an earlier result.
    is_there: bool,
}

/// The earlier result of a job, if it names one.
///
/// # Errors
/// [`Error::Input`] if there is none in that folder, or none with an avoid list.
pub fn open(keep: &Keep) -> Result<Option<Run>> {
    if keep.sticky.is_empty() {
        return Ok(None);
    }
    let run = Run::open(&keep.sticky)?;
    if run.manifest.table("avoid").next().is_none() {
        return Err(Error::input(&keep.sticky, "has no table avoid, so it kept no page for others (keep.sticky)"));
    }
    Ok(Some(run))
}

/// Reads which of this worker's pages the earlier result, of [`open`], kept.
///
/// # Errors
/// [`Error::Input`] for files that are not what the manifest names; [`Error::Handshake`] when processes see
/// different results.
///
/// # Cost
/// All files of the earlier list are read once by one worker or another, and once more to check them.
pub fn read(net: &mut Net<'_>, crawl: &Crawl, keep: &Keep, earlier: Option<&Run>) -> Result<Memory> {
    let Some(run) = earlier else { return Ok(Memory::default()) };
    let attempt = run.manifest.attempt.clone();
    let seen = net.all_gather("earlier results", attempt.clone())?;
    if seen.iter().any(|other| *other != attempt) {
        let what = "processes see different results; all must see the same folder, or start all of them again";
        return Err(Error::Handshake(format!("keep.sticky = {:?}: {what}", keep.sticky)));
    }
    let (directory, dealt) = (&crawl.directory, RoundRobin::new(net.peers()));
    let mut kept: Vec<DocId> = Vec::new();
    for (_, entry) in run.manifest.table("avoid").enumerate().filter(|(n, _)| dealt.owner(*n) == net.index()) {
        scan_file(run, entry, (&["keep_doc_id"], &[]), |_| Ok(false), &mut |batch| {
            kept.extend(batch.u64("keep_doc_id")?);
            Ok(())
        })?;
    }
    kept.sort_unstable();
    kept.dedup();
    // Of a page that is not in this crawl, too: only one counts it.
    let mut mine = net.exchange("pages kept before", kept, |doc_id| directory.owner_of(*doc_id))?;
    mine.sort_unstable();
    mine.dedup();
    let by_doc_id = directory.by_doc_id()?;
    let pages: Vec<Page> = mine.iter().filter_map(|&doc_id| by_doc_id.page(doc_id)).collect();
    Ok(Memory { gone: (mine.len() - pages.len()) as u64, pages, is_there: true })
}

impl Memory {
    /// What became of all pages kept before, the same on every worker; `None` without an earlier result. `verdicts` are final.
    ///
    /// # Errors
    /// [`Error::Invariant`] when the counts do not add up; those of the disk.
    pub fn outcome(&self, net: &mut Net<'_>, verdicts: &Column<Verdict>) -> Result<Option<KeptBefore>> {
        if !self.is_there {
            return Ok(None);
        }
        let mut mine =
            KeptBefore { pages: self.gone + self.pages.len() as u64, gone: self.gone, ..KeptBefore::default() };
        for block in verdicts.blocks() {
            for verdict in block?.iter().filter(|verdict| verdict.was_kept()) {
                match verdict.role() {
                    Role::Keep => mine.kept += 1,
                    Role::Visit(_) => mine.visited += 1,
                    Role::Skip(_, lost_by) => {
                        mine.flipped += 1;
                        *mine.flipped_by.entry(lost_by.as_str().into()).or_default() += 1;
                    }
                }
            }
        }
        let mut all = KeptBefore::default();
        for part in net.all_gather("what became of pages kept before", mine)? {
            all.pages += part.pages;
            all.kept += part.kept;
            all.visited += part.visited;
            all.flipped += part.flipped;
            all.gone += part.gone;
            part.flipped_by.into_iter().for_each(|(by, n)| *all.flipped_by.entry(by).or_default() += n);
        }
        let judged = all.kept + all.visited + all.flipped + all.gone;
        all.alone = all.pages.checked_sub(judged).ok_or_else(|| {
            Error::Invariant(format!("{} pages were kept before, but {judged} of them are judged or gone", all.pages))
        })?;
        Ok(Some(all))
    }
}
