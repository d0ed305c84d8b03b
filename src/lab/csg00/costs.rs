//! Table 1: storage and time costs for computing trivial similar clusters.

use super::super::made::tables::Chunking;
use super::super::source::{ComparisonUnit, MeasuredRun, made_up, not_ours};
use super::super::{FigureRow, Options, figure, row_against_published};
use super::PAGES;
use webtwin_base::error::Result;

/// Returns a column of Table 1, section 5: megabytes of fingerprints, minutes to compute trivial
/// similar clusters.
fn paper_costs(unit: ComparisonUnit) -> Option<(f64, f64)> {
    match unit {
        ComparisonUnit::Document => Some((800.0, 97.0)),
        ComparisonUnit::FourLines => Some((2400.0, 302.0)),
        ComparisonUnit::TwoLines => Some((4600.0, 630.0)),
        ComparisonUnit::Other => None,
    }
}

/// The row "Compute fingerprints", which is the same in all columns.
const READING_ROW: (&str, f64) = ("compute fingerprints", 44.0 * 3600.0);

/// Reproduces Table 1, from a run or from synthetic tables.
pub(super) fn table_1(options: &Options) -> Result<Vec<FigureRow>> {
    let mut rows = Vec::new();
    let mut push = |unit: ComparisonUnit, pages: f64, bytes: f64, seconds: f64| {
        let (space, minutes) = paper_costs(unit).unzip();
        let share = pages / PAGES;
        let scaled = |figure: Option<f64>, by: f64| figure.map(|figure| figure * by * share);
        let [name, name_of_time] = ["fingerprints", "trivial clusters"].map(|what| format!("{}: {what}", unit.name()));
        rows.push(FigureRow { published: scaled(space, 1.0), ..figure(&name, bytes / 1e6, "MB") });
        rows.push(FigureRow { published: scaled(minutes, 60.0), ..figure(&name_of_time, seconds, "s") });
    };
    if let Some(run) = &options.input {
        let run = MeasuredRun::read(run)?;
        let pages = run.summary.pages.pages as f64;
        let row_bytes = run.manifest.job["chunks"]["bits"].as_u64().unwrap_or(64) as f64 / 8.0 + 4.0;
        let seconds = |stage: &str| run.manifest.seconds.get(stage).copied().unwrap_or(0.0);
        // The stage "2 find" of a run also includes the time of its collections.
        push(run.by(), pages, run.summary.overlap.tuples as f64 * row_bytes, seconds("2 find"));
        rows.push(row_against_published(READING_ROW.0, seconds("1 read"), READING_ROW.1 * pages / PAGES, "s"));
        rows.push(figure("pages", pages, "pages"));
        return Ok(rows);
    }
    let pages = options.scale as f64;
    for (unit, chunking) in
        [(ComparisonUnit::FourLines, Chunking::FourLines), (ComparisonUnit::TwoLines, Chunking::TwoLines)]
    {
        let table = made_up(options, chunking)?;
        if unit == ComparisonUnit::FourLines {
            push(ComparisonUnit::Document, pages, pages * 8.0, table.seconds[0]);
        }
        push(unit, pages, table.rows as f64 * 8.0, table.seconds.iter().sum());
    }
    // A synthetic table has no pages to read.
    rows.push(not_ours(READING_ROW.0, READING_ROW.1 * pages / PAGES, "s"));
    rows.push(figure("pages", pages, "pages"));
    Ok(rows)
}
