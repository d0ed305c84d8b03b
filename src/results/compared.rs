//! The two sides of a comparison: the rows of a run, and a truth with URLs in the same form.

use super::FinishedRun;
use super::pages::PageTable;
use webtwin_base::error::{Error, Result};
use webtwin_evaluate::{
    ClusterRow, EvaluationReport, LinkRow, ResultRows, TruthMemberRow, TruthPageRow, TruthRow, evaluate, read_truth,
};
use webtwin_pages::url::CanonicalUrl;
use webtwin_storage::table::Table;
use webtwin_synth::Synth;

/// Returns the canonical form of a URL in a file.
///
/// # Errors
/// Returns [`Error::Input`] with the name of the file if the URL has no canonical form.
pub fn canonical(file: &str, url: &str) -> Result<CanonicalUrl> {
    CanonicalUrl::parse(url).map_err(|why| Error::input(file, format!("{url} is not the URL of a page: {why}")))
}

/// Reads a truth and canonicalises its URLs, as the reader of a crawl does.
///
/// # Errors
/// Returns any error of [`read_truth`], and [`Error::Input`] for a URL without a canonical form.
pub fn truth(file: &str, text: &str) -> Result<Vec<TruthRow>> {
    let mut truth = read_truth(file, text)?;
    for row in &mut truth {
        row.url = canonical(file, &row.url)?.as_str().to_string();
    }
    Ok(truth)
}

/// Reads the rows of a run that are measured.
///
/// # Errors
/// Returns any error of [`FinishedRun::table`].
pub fn rows(run: &FinishedRun, pages: &PageTable, truth: Vec<TruthRow>) -> Result<ResultRows> {
    let (clusters, members, links) = (run.table("clusters")?, run.table("members")?, run.table("links")?);
    let columns = |table: &Table, names: [&str; 3]| -> Result<Vec<[u64; 3]>> {
        let [a, b, c] = [table.u64(names[0])?, table.u64(names[1])?, table.u64(names[2])?];
        Ok(a.iter().zip(b).zip(c).map(|((a, b), c)| [*a, *b, *c]).collect())
    };
    let urls = pages.urls()?.iter().map(String::from);
    let page_rows = pages.doc_ids()?.iter().zip(urls).zip(pages.0.u64("body")?);
    let pages = page_rows.map(|((&doc_id, url), &body)| TruthPageRow { doc_id, url, body }).collect();
    let clusters = columns(&clusters, ["cluster", "doc_id", "doc_id"])?
        .into_iter()
        .map(|[cluster, doc_id, _]| ClusterRow { cluster, doc_id })
        .collect();
    let members = columns(&members, ["similar_cluster", "collection", "doc_id"])?
        .into_iter()
        .map(|[similar_cluster, collection, doc_id]| TruthMemberRow { similar_cluster, collection, doc_id })
        .collect();
    let links = links.u64("src")?.iter().zip(links.u64("dst")?).map(|(&src, &dst)| LinkRow { src, dst }).collect();
    Ok(ResultRows { pages, clusters, members, links, truth })
}

/// Returns the truth about a synthetic crawl, which needs no file.
///
/// # Errors
/// Returns any error of [`Synth::parse`].
pub fn planted(url: &str) -> Result<Vec<TruthRow>> {
    let mut text = Vec::new();
    Synth::parse(url)?.truth_tsv(&mut text).map_err(|cause| Error::storage(url, cause))?;
    truth(url, &String::from_utf8_lossy(&text))
}

/// Compares a run with a truth.
///
/// # Errors
/// Returns any error of [`rows`].
pub fn report(run: &FinishedRun, truth: Vec<TruthRow>) -> Result<EvaluationReport> {
    let ResultRows { pages, clusters, members, links, truth } = rows(run, &PageTable::from_run(run)?, truth)?;
    Ok(evaluate(&pages, &clusters, &members, &links, &truth))
}
