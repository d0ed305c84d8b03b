//! Pages on the list in force of a comparison that the run does not have, because the crawler
//! obeyed the list.

use super::Making;
use super::sets::WordNumbers;
use super::staged::StagedIndex;
use crate::lookup::index::STANDING_COLUMN;
use crate::lookup::rows::{NONE, StandingRow};
use webtwin_base::error::{Error, Result};
use webtwin_results::FinishedRun;

/// Table of a comparison with these pages.
const TABLE: &str = "avoid_standing";

/// Opens a comparison whose newer result is `run`.
///
/// # Errors
/// Returns [`Error::Usage`] if the folder is not a comparison, compares another result, or compares
/// results with different settings; and any error of [`FinishedRun::open`].
pub(super) fn open(url: &str, run: &FinishedRun) -> Result<FinishedRun> {
    let comparison = FinishedRun::open(url)?;
    let refused = |what: String| Err(Error::Usage(format!("--in-force {url}: {what}")));
    let job = &comparison.manifest.job;
    if job["kind"] != "diff" {
        return refused(
            "is not a comparison; name the folder that `webtwin diff` or `webtwin run --diff` wrote".into(),
        );
    }
    if job["new"]["attempt"] != run.manifest.attempt.as_str() {
        let new = job["new"]["url"].as_str().unwrap_or("another result");
        return refused(format!(
            "the newer result of this comparison is {new}, not {}; name a comparison of this run",
            run.folder
        ));
    }
    if comparison.manifest.table(TABLE).next().is_none() {
        return refused(
            "compares results of different settings, so it has no avoid lists; leave the option out".into(),
        );
    }
    Ok(comparison)
}

/// Writes the pages that stand on the list, ascending by doc id.
pub(super) fn write(
    making: &Making<'_>,
    comparison: &FinishedRun,
    words: &mut WordNumbers,
    index_files: &mut StagedIndex,
) -> Result<()> {
    let mut column = index_files.column::<StandingRow>(STANDING_COLUMN)?;
    let pages = making.table_of(comparison, TABLE, "doc_id")?;
    for range in 0..making.ranges.count() {
        let Some(pages) = &pages else { break };
        let rows = pages.read(range, &["doc_id", "keep_doc_id", "why", "crawls_ago"])?;
        let (ids, keep) = (rows.u64("doc_id")?, rows.u64("keep_doc_id")?);
        let (why, crawls_ago) = (rows.text("why")?, rows.u32("crawls_ago")?);
        // Rows with `crawls_ago` above 0 stood next to the older list and serve a repeated
        // comparison only. A page of the run has its own row, so the list is not needed for it.
        for row in (0..ids.len()).filter(|&row| crawls_ago[row] == 0 && making.rank(ids[row]).is_err()) {
            // A crawl without pages has no kept page either.
            let keep = making.rank(keep[row]).unwrap_or(NONE);
            column.push(StandingRow { doc_id: ids[row], keep, why: words.number(&why[row])?, zero: [0; 3] })?;
        }
    }
    index_files.add(STANDING_COLUMN, column)
}
