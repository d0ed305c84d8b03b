//! Figure 1, and the savings for a crawler.

use std::fmt::Write;

use super::super::made::tables::Chunking;
use super::super::source::{ComparisonUnit, MeasuredRun, made_up, put, replication};
use super::super::table_clusters::ClusterHistogram;
use super::super::{FigureRow, Options, draw, figure};
use webtwin_base::error::Result;

/// Values in the text about Figure 1 (section 3; \[CSG00\] section 5.1 has the same ones about its
/// Figure 11): "about 64% [...] have one exact replica (itself); about 18% of pages have an
/// additional replica", "about 5% of pages have between 10 and 100 replicas", "about 48% (100-52%)
/// for two-line chunks". The bars themselves are missing from our copy.
const PUBLISHED: [(ComparisonUnit, &str, f64); 4] = [
    (ComparisonUnit::Document, "1", 0.64),
    (ComparisonUnit::Document, "2", 0.18),
    (ComparisonUnit::Document, "10-99", 0.05),
    (ComparisonUnit::TwoLines, "1", 0.52),
];

/// Reproduces Figure 1.
pub(super) fn figure_1(options: &Options) -> Result<Vec<FigureRow>> {
    histogram(options, "sgm98-figure1", "Document replication (SGM98 Figure 1)")
}

/// Returns the bars of replicas as rows, and draws them as a figure.
pub(in super::super) fn histogram(options: &Options, name: &str, title: &str) -> Result<Vec<FigureRow>> {
    let histograms = replication(options)?;
    let mut tsv = String::from("compared by\treplicas\tpages\tshare\n");
    let mut rows = Vec::new();
    for (unit, bars) in &histograms {
        for bar in bars {
            let label = format!("{}: pages with {} replicas", unit.name(), bar.replicas);
            let paper_value = PUBLISHED.iter().find(|known| (known.0, known.1) == (*unit, &bar.replicas[..]));
            rows.push(FigureRow { published: paper_value.map(|known| known.2), ..figure(&label, bar.share, "share") });
            let _ = writeln!(tsv, "{}\t{}\t{}\t{:.6}", unit.name(), bar.replicas, bar.pages, bar.share);
        }
        let replicated_share = 1.0 - bars[0].share;
        let paper_value = match unit {
            ComparisonUnit::Document => Some(0.36),
            ComparisonUnit::TwoLines => Some(0.48),
            _ => None,
        };
        rows.push(FigureRow {
            published: paper_value,
            ..figure(
                &format!("{}: pages with more than one", unit.name()),
                (replicated_share * 1e6).round() / 1e6,
                "share",
            )
        });
    }
    let labels: Vec<&str> = histograms[0].1.iter().map(|bar| &bar.replicas[..]).collect();
    let series: Vec<(&str, Vec<f64>)> =
        histograms.iter().map(|(by, bars)| (by.name(), bars.iter().map(|bar| bar.share).collect())).collect();
    put(options, name, draw::grouped_bars(title, "replicas, the page itself counted", &labels, &series), tsv)?;
    Ok(rows)
}

/// Returns the published savings: "the number of pages to be visited can be reduced by 22%", "29%"
/// for 15 four-line chunks, "33%" for 25 two-line chunks (section 3).
fn paper_savings(unit: ComparisonUnit) -> Option<f64> {
    match unit {
        ComparisonUnit::Document => Some(0.22),
        ComparisonUnit::FourLines => Some(0.29),
        ComparisonUnit::TwoLines => Some(0.33),
        ComparisonUnit::Other => None,
    }
}

/// Reproduces the savings of section 3.
pub(super) fn savings(options: &Options) -> Result<Vec<FigureRow>> {
    let row = |unit: ComparisonUnit, saved_share: f64, paper_unit: &str| FigureRow {
        published: paper_savings(unit),
        ..figure(&format!("{}: {paper_unit} saved", unit.name()), (saved_share * 1e6).round() / 1e6, "share")
    };
    if let Some(run) = &options.input {
        let run = MeasuredRun::read(run)?;
        let summary = &run.summary;
        let mut rows = vec![
            figure("pages", summary.pages.pages as f64, "pages"),
            row(ComparisonUnit::Document, summary.exact_pairs as f64 / summary.pages.pages.max(1) as f64, "pages"),
        ];
        if run.by() != ComparisonUnit::Document {
            rows.push(row(run.by(), summary.skip_share_of_pages, "pages"));
        }
        // The paper assumes bytes in proportion to pages: 33 and 50 of 150 GB.
        rows.push(row(run.by(), summary.skip_share_of_bytes, "bytes"));
        return Ok(rows);
    }
    let saved_by = |groups: &ClusterHistogram| 1.0 - groups.values().sum::<u64>() as f64 / options.scale as f64;
    let (four, two_lines) = (made_up(options, Chunking::FourLines)?, made_up(options, Chunking::TwoLines)?);
    Ok(vec![
        figure("pages", options.scale as f64, "pages"),
        row(ComparisonUnit::Document, saved_by(&two_lines.exact), "pages"),
        row(ComparisonUnit::FourLines, saved_by(&four.similar), "pages"),
        row(ComparisonUnit::TwoLines, saved_by(&two_lines.similar), "pages"),
    ])
}
