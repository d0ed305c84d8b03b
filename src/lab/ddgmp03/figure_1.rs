//! Figure 1: precision and recall over (C, D), from the signatures of a run and the truth about its
//! crawl.
//!
//! The authors of the paper judged 100 sampled documents by hand, and the lists that their cosine
//! returned. Here the truth is known for all pages. Precision and recall are also reported for
//! pairs, because the decision whether "a document has a replica" is easy where nearly every page
//! has one. As in the paper, all pages take part, including exact copies, and there is no guard and
//! no clustering. The synthetic crawl only shows that the code works, because all its pages share
//! one small vocabulary.

use std::collections::HashMap;
use std::fmt::Write;

use super::super::source::{MeasuredRun, put};
use super::super::{FigureRow, Options, draw, figure, row_against_published};
use super::curves::{CurvePoint, Curves, Page, Quality};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, doc_id};
use webtwin_core::signatures::parts;
use webtwin_results::compared;

/// Break-even points of RP alone, and of RP + HM (section 3).
const PUBLISHED: (f64, f64) = (0.90, 0.93);

/// Number of grid steps between the values of D in the figure.
const GRID_STEPS: usize = 4;

/// Reproduces Figure 1.
pub(super) fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let job = include_str!("../../../jobs/repro/ddgmp03-figure1.toml");
    let run = MeasuredRun::given_or_made(options, "jobs/repro/ddgmp03-figure1.toml", job)?;
    let (pages, dims) = pages(&run, &names(options, &run)?)?;
    let curves = Curves::new(&pages, dims);

    let best_single = curves.best(|cell| cell.pairs, true);
    let combined = curves.best(|cell| cell.pairs, false);
    let cell_at = |(d, c): (usize, usize)| &curves.cells[d][c];
    let drawn_rows =
        [combined.0.saturating_sub(GRID_STEPS), combined.0, (combined.0 + GRID_STEPS).min(curves.cells.len() - 1)];
    draw_curves(options, &curves, drawn_rows)?;

    let tolerance = |step: usize| curves.tolerances[step];
    let mut rows = vec![
        figure("pages that have signatures", pages.len() as f64, "pages"),
        figure("K", dims as f64, "components"),
        figure("true pairs", curves.true_pairs as f64, "pairs"),
    ];
    let break_even_of = |step| cell_at(step).pairs.break_even();
    rows.push(row_against_published("RP alone: break-even of pairs", break_even_of(best_single), PUBLISHED.0, ""));
    rows.push(figure("RP alone: D", tolerance(best_single.0), ""));
    rows.push(row_against_published(
        "RP + HM: break-even of pairs, at the best (C, D)",
        break_even_of(combined),
        PUBLISHED.1,
        "",
    ));
    rows.push(figure("RP + HM: D", tolerance(combined.0), ""));
    rows.push(figure("RP + HM: C", tolerance(combined.1), ""));
    let gain = break_even_of(combined) - break_even_of(best_single);
    rows.push(
        row_against_published("what HM adds to pairs", gain, PUBLISHED.1 - PUBLISHED.0, "")
            .at_least(PUBLISHED.1 - PUBLISHED.0),
    );
    let best_single = cell_at(curves.best(|cell| cell.documents, true)).documents.break_even();
    let combined = cell_at(curves.best(|cell| cell.documents, false)).documents.break_even();
    rows.push(row_against_published(
        "RP alone: break-even of documents, as the paper counts",
        best_single,
        PUBLISHED.0,
        "",
    ));
    rows.push(row_against_published(
        "RP + HM: break-even of documents, as the paper counts",
        combined,
        PUBLISHED.1,
        "",
    ));
    rows.push(row_against_published(
        "what HM adds to documents",
        combined - best_single,
        PUBLISHED.1 - PUBLISHED.0,
        "",
    ));
    Ok(rows)
}

/// Returns the name of each page by doc id. It is equal for copies, and `None` for pages without a
/// target. Pages unknown to the truth are absent.
fn names(options: &Options, run: &MeasuredRun) -> Result<HashMap<DocId, Option<u32>>> {
    let rows = match &options.truth {
        Some(path) => {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|cause| Error::input(&file, cause))?;
            compared::truth(&file, &text)?
        }
        None => {
            let synth_url = run.manifest.job["input"]["urls"][0].as_str().filter(|url| url.starts_with("synth://"));
            let url = synth_url.ok_or_else(|| {
                Error::Usage("ddgmp03-figure1 --input RUN needs the truth about its crawl; add --truth FILE".into())
            })?;
            compared::planted(url)?
        }
    };
    let (mut names, mut numbers) = (HashMap::new(), HashMap::new());
    for row in rows {
        let (page, is_of_target) = (doc_id(&row.url), row.is_of_target());
        let name = is_of_target.then(|| {
            let next = numbers.len() as u32;
            *numbers.entry((row.target, row.page)).or_insert(next)
        });
        names.entry(page).or_insert(name);
    }
    Ok(names)
}

/// Returns the pages that have signatures and are in the truth, with K.
fn pages(run: &MeasuredRun, names: &HashMap<DocId, Option<u32>>) -> Result<(Vec<Page>, usize)> {
    let table = run.table("signatures")?;
    let dims = table.columns.iter().filter(|(name, _)| name.starts_with("rp_")).count();
    if dims == 0 {
        let reason = "the run has no signatures; run again with kind = \"signatures\"";
        return Err(Error::input("signatures", reason));
    }
    let columns: Vec<&[f64]> = ["rp", "hm"]
        .iter()
        .flat_map(|name| (0..dims).map(move |dim| format!("{name}_{dim}")))
        .map(|name| table.f64(&name))
        .collect::<Result<_>>()?;
    let rows_with_names = table.u64("doc_id")?.iter().enumerate().filter_map(|(row, doc_id)| {
        let point = columns.iter().map(|column| parts(column[row])).collect();
        Some(Page { point, name: *names.get(doc_id)? })
    });
    Ok((rows_with_names.collect(), dims))
}

fn draw_curves(options: &Options, curves: &Curves, drawn_rows: [usize; 3]) -> Result<()> {
    let last = curves.tolerances.len() - 1;
    let point = |cell: &CurvePoint| (cell.pairs.recall, cell.pairs.precision);
    let mut series: Vec<(String, Vec<(f64, f64)>)> = drawn_rows
        .iter()
        .map(|&d| (format!("D = {:.1e}", curves.tolerances[d]), curves.cells[d].iter().map(point).collect()))
        .collect();
    series.push(("C = 1".into(), curves.cells.iter().map(|row| point(&row[last])).collect()));
    let title = "Precision and recall of colliding signatures (DDGMP03 Figure 1)";
    let svg = draw::curves(title, ("recall", 1.0), ("precision", 1.0), &series);
    let mut tsv = String::from("D\tC\tprecision\trecall\tdocument_precision\tdocument_recall\n");
    for (d, row) in curves.cells.iter().enumerate() {
        for (c, CurvePoint { pairs, documents }) in row.iter().enumerate() {
            let to_tsv = |quality: &Quality| format!("{:.6}\t{:.6}", quality.precision, quality.recall);
            let (d, c) = (curves.tolerances[d], curves.tolerances[c]);
            let _ = writeln!(tsv, "{d:.3e}\t{c:.3e}\t{}\t{}", to_tsv(pairs), to_tsv(documents));
        }
    }
    put(options, "ddgmp03-figure1", svg, tsv)
}
