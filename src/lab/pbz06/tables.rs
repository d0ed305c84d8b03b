//! Table 1, and Tables 2 to 6 as percentages, because the collections differ in size.

use super::super::source::not_ours;
use super::super::{FigureRow, Options, figure};
use super::{Study, YEARS, name, rows, studies};
use webtwin_base::error::Result;
use webtwin_core::study::report::{ClusterTotals, percent};
use webtwin_dataflow::study::{StudySummary, read_summary};

fn documents(studies: &[Study]) -> Vec<FigureRow> {
    let value_of = |summary: &StudySummary| summary.tables.complete.documents as f64;
    rows(studies, "documents", false, "documents", value_of, [2_067_278.0, 2_033_113.0, 2_174_520.0])
}

/// Reproduces Table 1. Synthetic collections begin with the documents of Table 2, so without a
/// study only the values of the paper are reported.
pub(super) fn table_1(options: &Options) -> Result<Vec<FigureRow>> {
    let mut figures = Vec::new();
    if let Some(run) = &options.input {
        let summary = read_summary(run)?;
        let (kept_records, n_compared) = (summary.records.kept, summary.tables.complete.documents);
        figures.push(figure("this crawl: documents", kept_records as f64, "documents"));
        figures.push(figure(
            "this crawl: more than 450 characters",
            percent(n_compared, kept_records),
            "% of documents",
        ));
    }
    let paper_value =
        [(2_862_126.0, 9.4, 2_067_278.0), (2_796_749.0, 11.8, 2_033_113.0), (2_883_455.0, 11.3, 2_174_520.0)];
    for (year, (documents, gigabytes, paper_compared)) in YEARS.into_iter().map(name).zip(paper_value) {
        figures.push(not_ours(&format!("{year}: documents"), documents, "documents"));
        figures.push(not_ours(&format!("{year}: size"), gigabytes, "GB"));
        // The documents in Table 2 as a percentage of those in Table 1.
        let share = 100.0 * paper_compared / documents;
        figures.push(not_ours(&format!("{year}: more than 450 characters"), share, "% of documents"));
    }
    Ok(figures)
}

/// Reproduces Table 2: clusters and duplicates.
pub(super) fn table_2(options: &Options) -> Result<Vec<FigureRow>> {
    let studies = studies(options, include_str!("../../../jobs/repro/pbz06-table2.toml"), &YEARS)?;
    let percent_of = |count_of: fn(&ClusterTotals) -> u64| {
        move |summary: &StudySummary| percent(count_of(&summary.tables.complete), summary.tables.complete.documents)
    };
    let mut figures = documents(&studies);
    figures.extend(rows(
        &studies,
        "clusters",
        true,
        "% of documents",
        percent_of(|part| part.clusters),
        [12.17, 13.10, 11.75],
    ));
    figures.extend(rows(
        &studies,
        "duplicates",
        true,
        "% of documents",
        percent_of(|part| part.duplicates),
        [38.9, 43.1, 35.8],
    ));
    // "Only 48.9% of the documents are unique": the table itself has 43.8 % for 2004 and 48.9 % for
    // 2003.
    figures.extend(rows(
        &studies,
        "unique",
        true,
        "% of documents",
        percent_of(|part| part.unique),
        [48.92, 43.81, 52.45],
    ));
    for study in &studies {
        let complete = &study.summary.tables.complete;
        let multiset_percent = percent(complete.duplicates_by_multiset, complete.documents);
        let name = study.year.map_or("this crawl", name);
        figures.push(figure(&format!("{name}: duplicates by the multiset rule"), multiset_percent, "% of documents"));
        let only = complete.duplicates - complete.duplicates_by_multiset;
        figures.push(figure(&format!("{name}: duplicates by false matches only"), only as f64, "documents"));
    }
    Ok(figures)
}

/// Reproduces Table 3: near-duplicates.
pub(super) fn table_3(options: &Options) -> Result<Vec<FigureRow>> {
    let studies = studies(options, include_str!("../../../jobs/repro/pbz06-table3.toml"), &YEARS)?;
    let mut figures = documents(&studies);
    let value_of = |summary: &StudySummary| summary.tables.complete.duplicates_percent;
    figures.extend(rows(&studies, "duplicates", true, "% of documents", value_of, [38.9, 43.1, 35.8]));
    let paper_value = [[40.8, 44.5, 37.0], [46.1, 47.9, 43.2], [52.8, 53.4, 49.9]];
    for (level, (minimum, paper_value)) in ["90 %", "70 %", "50 %"].into_iter().zip(paper_value).enumerate() {
        let value_of = |summary: &StudySummary| summary.tables.near[level].near_duplicates_percent;
        figures.extend(rows(
            &studies,
            &format!("near-duplicates at {minimum}"),
            true,
            "% of documents",
            value_of,
            paper_value,
        ));
    }
    Ok(figures)
}

/// Reproduces Table 4: duplicates by part.
pub(super) fn table_4(options: &Options) -> Result<Vec<FigureRow>> {
    let studies = studies(options, include_str!("../../../jobs/repro/pbz06-table4.toml"), &YEARS)?;
    let mut figures = documents(&studies);
    let connected = |summary: &StudySummary| summary.web.documents_connected_percent;
    figures.extend(rows(&studies, "connected", true, "% of documents", connected, [51.6, 56.8, 63.9]));
    type Percent = fn(&StudySummary) -> f64;
    let parts: [(&str, Percent, [f64; 3]); 3] = [
        ("duplicates, complete", |s| s.tables.complete.duplicates_percent, [38.9, 43.1, 35.8]),
        ("duplicates, connected", |s| s.tables.connected.duplicates_percent, [25.9, 29.3, 26.0]),
        ("duplicates, disconnected", |s| s.tables.disconnected.duplicates_percent, [43.0, 50.4, 41.1]),
    ];
    for (label, value_of, paper_value) in parts {
        figures.extend(rows(&studies, label, true, "% of its documents", value_of, paper_value));
    }
    // "The absolute real number of duplicates is two or three times the absolute number of
    // duplicates in the connected component."
    let times = |s: &StudySummary| s.tables.complete.duplicates as f64 / s.tables.connected.duplicates.max(1) as f64;
    figures.extend(rows(&studies, "duplicates, complete for one connected", true, "times", times, [2.91, 2.59, 2.16]));
    Ok(figures)
}

/// Reproduces Table 5: clusters with a document in the connected part.
pub(super) fn table_5(options: &Options) -> Result<Vec<FigureRow>> {
    let studies = studies(options, include_str!("../../../jobs/repro/pbz06-table5.toml"), &YEARS)?;
    let mut figures = documents(&studies);
    let value_of = |summary: &StudySummary| summary.tables.clusters_in_connected.percent;
    figures.extend(rows(
        &studies,
        "clusters with a document in the connected part",
        true,
        "%",
        value_of,
        [71.8, 76.0, 81.6],
    ));
    Ok(figures)
}

/// Reproduces Table 6: unique and useful documents in the connected part.
pub(super) fn table_6(options: &Options) -> Result<Vec<FigureRow>> {
    let studies = studies(options, include_str!("../../../jobs/repro/pbz06-table6.toml"), &YEARS)?;
    let mut figures = documents(&studies);
    let unique = |summary: &StudySummary| summary.tables.unique_in_connected.percent;
    figures.extend(rows(&studies, "unique documents in the connected part", true, "%", unique, [60.3, 68.9, 71.9]));
    let useful = |summary: &StudySummary| summary.tables.useful_in_connected.percent;
    figures.extend(rows(&studies, "useful documents in the connected part", true, "%", useful, [62.6, 70.5, 73.6]));
    Ok(figures)
}
