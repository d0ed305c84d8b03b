//! \[PBZ06\]: where and how duplicates occur.
//!
//! Synthetic collections ([`super::made::duplicates`]) have the clusters, parts and near-duplicates
//! of the paper planted. Rows that are marked as planted therefore only show that the study finds
//! them again. Its true findings are the growth over the steps, the estimates, and the division of
//! clusters. With `--input` all rows are those of a study of a real crawl.

mod figures;
mod of_table;
mod tables;
mod time;

use std::sync::Arc;

use super::made::duplicates::{SyntheticCollection, Year};
use super::source::not_ours;
use super::{Experiment, ExperimentRun, FigureRow, Options, figure, row_against_published};
use of_table::of_table;
use webtwin_base::error::{Error, Result};
use webtwin_dataflow::study::{StudySummary, read_summary};
use webtwin_job::{Job, resolve};

/// Returns the entries for the tables and figures of the paper, and for the time of a study.
pub fn entries() -> Vec<Experiment> {
    let experiment = |name, summary, run| Experiment {
        name,
        about: summary,
        unit: "documents of each made-up collection, without --input",
        scale: 200_000,
        full: Year::Y2005.documents(),
        run: ExperimentRun::Alone(run),
    };
    vec![
        experiment(
            "pbz06-table1",
            "characteristics of the collections (PBZ06 Table 1); --input STUDY",
            tables::table_1,
        ),
        experiment(
            "pbz06-table2",
            "clusters and duplicates (PBZ06 Table 2); --input STUDY for a real crawl",
            tables::table_2,
        ),
        experiment("pbz06-table3", "near-duplicates (PBZ06 Table 3); --input STUDY", tables::table_3),
        experiment(
            "pbz06-table4",
            "duplicates by connected and disconnected part (PBZ06 Table 4); --input STUDY",
            tables::table_4,
        ),
        experiment(
            "pbz06-table5",
            "clusters with a document in the connected part (PBZ06 Table 5); --input STUDY",
            tables::table_5,
        ),
        experiment(
            "pbz06-table6",
            "unique and useful documents in the connected part (PBZ06 Table 6); --input STUDY",
            tables::table_6,
        ),
        experiment("pbz06-figure2", "documents per cluster, 2003 (PBZ06 Figure 2); --input STUDY", figures::figure_2),
        experiment("pbz06-figure3", "documents per cluster, 2004 (PBZ06 Figure 3); --input STUDY", figures::figure_3),
        experiment("pbz06-figure4", "documents per cluster, 2005 (PBZ06 Figure 4); --input STUDY", figures::figure_4),
        experiment(
            "pbz06-figure5",
            "growth by steps, and estimates from the first (PBZ06 Figure 5, section 4.2); --input STUDY",
            figures::figure_5,
        ),
        Experiment {
            name: "bench-study",
            about: "studies of 2 million documents: from marks and links in memory, and from pages of HTML",
            unit: "documents of a made-up collection, pages of a made-up crawl",
            scale: 200_000,
            full: 2_000_000,
            run: ExperimentRun::Alone(time::run),
        },
    ]
}

/// Collections of the paper, in its order.
const YEARS: [Year; 3] = [Year::Y2003, Year::Y2004, Year::Y2005];

fn name(year: Year) -> &'static str {
    match year {
        Year::Y2003 => "2003",
        Year::Y2004 => "2004",
        Year::Y2005 => "2005",
    }
}

/// Returns m for the collection of each year (section 4.2).
fn steps(year: Year) -> u32 {
    match year {
        Year::Y2003 => 15,
        Year::Y2004 => 40,
        Year::Y2005 => 50,
    }
}

/// A study of a synthetic collection for a year of the paper, or of a crawl.
struct Study {
    year: Option<Year>,
    summary: StudySummary,
}

/// Returns the given study, or studies of synthetic collections of these years.
fn studies(options: &Options, job: &str, years: &[Year]) -> Result<Vec<Study>> {
    if let Some(run) = &options.input {
        return Ok(vec![Study { year: None, summary: read_summary(run)? }]);
    }
    let job = resolve("jobs/repro", job, &[])?;
    years.iter().map(|&year| Ok(Study { year: Some(year), summary: made_up_study(options, &job, year)? })).collect()
}

fn made_up_study(options: &Options, job: &Job, year: Year) -> Result<StudySummary> {
    let documents = u32::try_from(options.scale)
        .map_err(|_| Error::Usage(format!("--scale {}: at most {}", options.scale, u32::MAX)))?;
    let mut job = job.clone();
    job.study.steps = steps(year);
    let collection = Arc::new(SyntheticCollection::new(year, documents, 1)?);
    Ok(of_table(&collection, &job, options.workers)?.summary)
}

/// Returns the value of each study next to that of the paper. For the study of a real crawl, the
/// values of the paper follow in separate rows.
fn rows(
    studies: &[Study],
    label: &str,
    is_planted: bool,
    unit: &str,
    value_of: impl Fn(&StudySummary) -> f64,
    paper_value: [f64; 3],
) -> Vec<FigureRow> {
    let paper_values = || YEARS.into_iter().zip(paper_value);
    let mut rows = Vec::new();
    for Study { year, summary } in studies {
        match year {
            Some(year) => {
                let suffix = if is_planted { " (planted)" } else { "" };
                let paper = paper_values().find(|(other, _)| other == year).map_or(0.0, |(_, published)| published);
                rows.push(row_against_published(
                    &format!("{}: {label}{suffix}", name(*year)),
                    value_of(summary),
                    paper,
                    unit,
                ));
            }
            None => {
                rows.push(figure(&format!("this crawl: {label}"), value_of(summary), unit));
                rows.extend(
                    paper_values().map(|(year, paper)| not_ours(&format!("{}: {label}", name(year)), paper, unit)),
                );
            }
        }
    }
    rows
}
