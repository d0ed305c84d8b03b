//! Table 1: storage and time costs for computing Overlap.

use super::super::made::tables::Chunking;
use super::super::source::{ComparisonUnit, MeasuredRun, made_up, not_ours};
use super::super::{FigureRow, Options, figure, row_against_published};
use super::PAGES;
use webtwin_base::error::Result;

/// Returns a column of Table 1, section 3: megabytes of fingerprints, minutes to sort and to
/// compute all-pairs overlap.
///
/// 800 MB for 24 million documents are 33 bytes each. A row of fingerprint and docID has 8, and the
/// paper does not explain the others.
fn paper_costs(unit: ComparisonUnit) -> Option<(f64, f64, f64)> {
    match unit {
        ComparisonUnit::Document => Some((800.0, 52.0, 45.0)),
        ComparisonUnit::FourLines => Some((2400.0, 163.0, 85.0)),
        ComparisonUnit::TwoLines => Some((4600.0, 7.14 * 60.0, 2.42 * 60.0)),
        ComparisonUnit::Other => None,
    }
}

/// Rows below the columns: Server Map and URL Map in megabytes, reading and computing fingerprints
/// in hours.
const MAPS_AND_READING: [(&str, f64, &str); 3] = [
    ("Server Map", 750.0, "MB"),
    ("URL Map", 1500.0, "MB"),
    ("read \"pagefeed\" and compute fingerprints", 44.0 * 3600.0, "s"),
];

/// Reproduces Table 1, from a run or from synthetic tables.
pub(super) fn table_1(options: &Options) -> Result<Vec<FigureRow>> {
    match &options.input {
        Some(run) => run_costs(&MeasuredRun::read(run)?),
        None => table_costs(options),
    }
}

fn table_costs(options: &Options) -> Result<Vec<FigureRow>> {
    let share = options.scale as f64 / PAGES;
    let mut rows = vec![figure("pages", options.scale as f64, "pages")];
    for (unit, chunking) in
        [(ComparisonUnit::FourLines, Chunking::FourLines), (ComparisonUnit::TwoLines, Chunking::TwoLines)]
    {
        let table = made_up(options, chunking)?;
        let name = unit.name();
        let (space, sort, overlap) = paper_costs(unit).expect("a column of the table");
        if unit == ComparisonUnit::FourLines {
            let (space, sort, overlap) = paper_costs(ComparisonUnit::Document).expect("a column of the table");
            let bytes = options.scale as f64 * 8.0;
            rows.push(row_against_published("entire document: fingerprints", bytes / 1e6, space * share, "MB"));
            let minutes = sort + overlap;
            rows.push(row_against_published(
                "entire document: sort and overlap",
                table.seconds[0],
                minutes * 60.0 * share,
                "s",
            ));
        }
        rows.push(row_against_published(
            &format!("{name}: fingerprints"),
            table.rows as f64 * 8.0 / 1e6,
            space * share,
            "MB",
        ));
        rows.push(row_against_published(
            &format!("{name}: sort FPrint-DocID"),
            table.seconds[1],
            sort * 60.0 * share,
            "s",
        ));
        rows.push(row_against_published(
            &format!("{name}: all-pairs overlap"),
            table.seconds[2],
            overlap * 60.0 * share,
            "s",
        ));
    }
    // A synthetic table has no servers, no URLs, and no pages to read.
    rows.extend(MAPS_AND_READING.map(|(what, published, unit)| not_ours(what, published * share, unit)));
    rows.push(figure("peak memory", webtwin_base::build_info::peak_memory_bytes() as f64 / 1e6, "MB"));
    Ok(rows)
}

fn run_costs(run: &MeasuredRun) -> Result<Vec<FigureRow>> {
    let pages = run.summary.pages.pages as f64;
    let (share, unit) = (pages / PAGES, run.by());
    let row_bytes = run.manifest.job["chunks"]["bits"].as_u64().unwrap_or(64) as f64 / 8.0 + 4.0;
    let seconds = |stage: &str| run.manifest.seconds.get(stage).copied().unwrap_or(0.0);
    let name = unit.name();
    let mut rows = vec![
        figure("pages", pages, "pages"),
        figure(&format!("{name}: fingerprints"), run.summary.overlap.tuples as f64 * row_bytes / 1e6, "MB"),
        // A run does not time the two steps separately, and grows collections in the same stage.
        figure(&format!("{name}: sort, overlap, clusters, collections"), seconds("2 find"), "s"),
    ];
    if let Some((space, sort, overlap)) = paper_costs(unit) {
        rows[1].published = Some(space * share);
        rows[2].published = Some((sort + overlap) * 60.0 * share);
    }
    let values = [run.bytes("hosts") as f64 / 1e6, run.bytes("pages") as f64 / 1e6, seconds("1 read")];
    let names = ["Server Map (table hosts)", "URL Map (table pages, with all its columns)"];
    for (number, (label, paper_value, unit)) in MAPS_AND_READING.into_iter().enumerate() {
        rows.push(row_against_published(
            names.get(number).unwrap_or(&label),
            values[number],
            paper_value * share,
            unit,
        ));
    }
    rows.push(figure("workers", run.manifest.workers as f64, "threads"));
    rows.push(figure("peak memory", run.manifest.peak_memory_bytes as f64 / 1e6, "MB"));
    Ok(rows)
}
