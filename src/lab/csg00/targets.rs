//! Section 4: number of mirrored collections that are found.

use super::super::source::{job_and_truth, run_job};
use super::super::{FigureRow, Options, figure, row_against_published, source::not_ours};
use webtwin_base::error::Result;
use webtwin_job::MergeCondition;
use webtwin_results::compared::report;

/// Number of collections: "Our algorithm identified 180 non-trivial collections."
const COLLECTIONS: f64 = 180.0;

/// Number of problem collections under the condition of Algorithm 3.1, and under the extended one.
const PROBLEMS: [(MergeCondition, &str, f64); 2] =
    [(MergeCondition::Exact, "exact", 31.0), (MergeCondition::Extended, "extended", 8.0)];

/// Number of targets: "25 clusters, corresponding to our 25 targets".
const TARGETS: f64 = 25.0;

/// Finds the collections of one crawl under both conditions, and under the condition of its job if
/// that is a third one.
pub(super) fn section_4(options: &Options) -> Result<Vec<FigureRow>> {
    let name = "jobs/repro/csg00-section4.toml";
    let (job, truth) = job_and_truth(options, name, include_str!("../../../jobs/repro/csg00-section4.toml"))?;
    let mut rows = vec![figure("targets", 0.0, "targets")];
    let own_problem =
        (!PROBLEMS.iter().any(|of| of.0 == job.clusters.merge)).then_some((job.clusters.merge, "its own", None));
    for (merge, condition, problems) in
        PROBLEMS.map(|(merge, name, n)| (merge, name, Some(n))).into_iter().chain(own_problem)
    {
        let mut job = job.clone();
        job.clusters.merge = merge;
        job.output.url = options.work.join(condition).display().to_string();
        let collections = report(&run_job(options, job)?, truth.clone())?.collections;
        rows[0] = row_against_published("targets", collections.targets as f64, TARGETS, "targets");
        let label = |what: &str| format!("{condition}: {what}");
        let row = |row_label: &str, measured: u64, paper_value: Option<f64>, unit: &str| FigureRow {
            published: paper_value,
            ..figure(&label(row_label), measured as f64, unit)
        };
        let counts = problems.map(|_| COLLECTIONS);
        rows.push(row("collections of 10 and more pages", collections.collections, counts, "collections"));
        let problem = collections.collections - collections.corresponding;
        rows.push(row("problem collections", problem, problems, "collections"));
        let share = collections.problem_share().value().unwrap_or(0.0);
        rows.push(FigureRow {
            published: problems.map(|problems| problems / COLLECTIONS),
            ..figure(&label("problem share"), share, "share")
        });
        rows.push(row("targets found", collections.targets_found, problems.map(|_| TARGETS), "targets"));
        rows.push(row("copies found", collections.copies_found, None, "copies"));
        rows.push(row("copies", collections.copies, None, "copies"));
        rows.push(figure(&label("coverage"), collections.coverage().value().unwrap_or(0.0), "share"));
        rows.push(row("mixed clusters", collections.mixed, None, "clusters"));
    }
    rows.push(not_ours("pages of the targets (the paper's)", 35_000.0, "pages"));
    Ok(rows)
}
