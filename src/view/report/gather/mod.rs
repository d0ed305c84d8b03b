//! Reads the content of a report from the tables of a result.
//!
//! Every table that grows with the crawl is read in batches ([`webtwin_results::scan`]). Only the
//! top rows of an order are kept, or the rows of items that were selected before.
//!
//! # Memory
//! A batch of rows (262,144, at most a few hundred megabytes of URLs); 64 MB for the examined sets
//! and as much for their links ([`sets`]); 32 MB for members of mirrors ([`mirrors`]); the pages
//! that are compared. None of this grows with the crawl.

pub mod compare;
pub mod corpus;
pub mod hosts;
pub mod mirrors;
pub mod overview;
pub mod page_rows;
pub mod parts;
pub mod run_facts;
pub mod sets;
pub mod skip_lists;

use std::collections::BTreeMap;

use super::contract::{Compare, FORMAT, ResultReport, ViewPart};
use page_rows::PageRows;
use webtwin_base::error::{Error, Result};
use webtwin_results::FinishedRun;

/// Kinds of jobs whose results have pages.
const KINDS_WITH_PAGES: [&str; 3] = ["replicas", "signatures", "batch"];

/// True if a result has pages, for [`gather`]. Other results have an [`parts::outline`].
pub fn has_pages(run: &FinishedRun) -> bool {
    KINDS_WITH_PAGES.iter().any(|kind| run.manifest.job["kind"] == *kind)
}

/// Optional content of a report.
#[derive(Debug)]
pub struct ReportOptions {
    /// Comparison of this result with an earlier one.
    pub baseline: Option<FinishedRun>,
    /// Output of `webtwin-lab evaluate --json` for this result: name and content of the file.
    pub evaluation: Option<(String, String)>,
    /// Maximum number of pairs of pages to compare, which are read again from the input.
    pub pairs: usize,
    /// True to include facts of the machine, which differ between runs of one job.
    pub machine: bool,
}

impl Default for ReportOptions {
    fn default() -> ReportOptions {
        ReportOptions { baseline: None, evaluation: None, pairs: 8, machine: true }
    }
}

/// Reads the report of a result that has pages.
///
/// # Errors
/// Returns [`Error::Usage`] for a result of another kind, and for a comparison or evaluation of
/// another result. Returns [`Error::Input`] for files that differ from the manifest. Pages that
/// cannot be read again from the input are not an error: the report states the reason.
///
/// # Cost
/// Reads `clusters` and `server_pairs` twice, `pages` also twice if pages are compared, and other
/// tables except `links` once; and a few pages of the input.
pub fn gather(run: &FinishedRun, options: &ReportOptions) -> Result<ResultReport> {
    let kind = run.manifest.job["kind"].as_str().unwrap_or_default().to_string();
    if !has_pages(run) {
        return Err(Error::Usage(format!(
            "{}: the result of a job of kind `{kind}` has no pages; name a result of `webtwin run`",
            run.folder
        )));
    }
    let summary = run.summary()?;
    let mut parts = Vec::new();
    // Optional parts come first, so that an unsuitable file fails before the tables are read.
    if let Some(baseline) = &options.baseline {
        parts.push(changes(run, baseline)?);
    }
    if let Some((file, text)) = &options.evaluation {
        parts.push(parts::evaluation(file, text, &run.manifest.digest)?);
    }
    let (mut mirrors, mut details) = mirrors::gather(run)?;
    let (mut sets, forest) = sets::gather(run)?;
    // Pairs are selected before `pages` is read, so that a single pass reads the rows of all named
    // pages.
    let pairs = compare::choose(&mirrors, &details, &sets, options.pairs);

    let mut ids: Vec<u64> = details.roots.clone();
    ids.extend(sets.shown.iter().flat_map(|set| set.members.iter().map(|member| member.id)));
    ids.extend(pairs.iter().flat_map(|pair| pair.pages));
    let skipped_pages = details.skipped(run)?;
    let rows = PageRows::read(run, ids, &skipped_pages)?;
    mirrors::name(&mut mirrors, &details, &rows);
    sets::name(&mut sets, &rows);
    let compare = match pairs.is_empty() {
        true => Compare::default(),
        false => compare::gather(run, &pairs, &forest, &rows)?,
    };

    let urls = run.manifest.job["input"]["urls"].as_array().into_iter().flatten();
    Ok(ResultReport {
        format: FORMAT,
        kind,
        digest: run.manifest.digest.clone(),
        inputs: urls.filter_map(|url| Some(url.as_str()?.to_string())).collect(),
        overview: overview::gather(&summary, &run.manifest.job),
        mirrors,
        hosts: hosts::gather(run)?,
        sets,
        compare,
        skip: skip_lists::gather(run)?,
        run: run_facts::gather(run, &summary, options.machine)?,
        parts,
    })
}

/// Builds the view of a comparison, whose newer result must be `run`.
fn changes(run: &FinishedRun, baseline: &FinishedRun) -> Result<ViewPart> {
    let job = &baseline.manifest.job;
    if job["kind"] != "diff" {
        return Err(Error::Usage(format!(
            "{}: is not a result of `webtwin diff`, which --against needs",
            baseline.folder
        )));
    }
    if job["new"]["attempt"] != run.manifest.attempt {
        let (against, new, run) = (&baseline.folder, &job["new"]["url"], &run.folder);
        return Err(Error::Usage(format!(
            "{against}: the newer result is {new}, not {run}; name a comparison of {run}"
        )));
    }
    parts::comparison(baseline, &baseline.summary()?)
}

/// Returns a count of a summary; 0 if it is missing.
fn count(value: &serde_json::Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Returns the counts by name of a summary.
fn counts(value: &serde_json::Value) -> BTreeMap<String, u64> {
    let counts = value.as_object().into_iter().flatten();
    counts.map(|(what, value)| (what.clone(), count(value))).collect()
}
