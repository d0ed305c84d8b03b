//! Sends the rows of pairs and of `LinkSummary` to the owners of the pages that they begin with,
//! for the tables.

use crate::pairs::kinds::PairsByKind;
use crate::reading::captures::Crawl;
use crate::shuffle::page_ranges::PageRanges;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::clusters::link_summary::LinkSummary;
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{Net, Owners};
use webtwin_spill::SpillColumn;

/// Row of `pairs`: two pages, the [`PairKind`](crate::pairs::kinds::PairKind) as a number, and the value.
pub type PairRow = [u32; 4];

/// Sends pairs to the owners of their smaller pages, and rows of `LinkSummary` to the owners of
/// their source clusters' smallest pages. The rows are stored in ascending order for the tables.
/// Takes one exchange.
///
/// # Errors
/// Returns any error of the disk, and an error if the run has ended.
///
/// # Memory
/// Takes 16 bytes for each pair and 32 for each row, or the budget of the step if it is smaller.
pub fn by_first(
    net: &mut Net<'_>,
    crawl: &Crawl,
    pairs: PairsByKind,
    link_summary: SpillColumn<LinkSummary>,
) -> Result<(SpillColumn<PairRow>, SpillColumn<LinkSummary>)> {
    let (directory, pages) = (&crawl.directory, crawl.pages.len());
    let count = pairs.len() as u64;
    let mut owned = PageRanges::new(net, pages, count, 2);
    let mut owned_summary = PageRanges::new(net, pages, link_summary.len() as u64, 2);
    let rows = pairs.rows().map(|row| row.map(|(kind, SimilarPair { a, b, value })| [a.0, b.0, kind as u32, value]));
    net.exchange_two(
        "pairs and link summary",
        (
            rows,
            |&[a, ..]: &PairRow| directory.owner(Page(a)),
            |rows: &[PairRow]| rows.iter().try_for_each(|row| owned.push(directory.place(Page(row[0])), *row)),
        ),
        (
            link_summary.rows(),
            |row| directory.owner(row.src_cluster.smallest()),
            |rows: &[LinkSummary]| {
                let place = |row: &LinkSummary| directory.place(row.src_cluster.smallest());
                rows.iter().try_for_each(|row| owned_summary.push(place(row), *row))
            },
        ),
    )?;
    drop((pairs, link_summary));
    Ok((owned.sorted(net, |row| *row)?, owned_summary.sorted(net, |row| *row)?))
}
