//! Reads similar pairs that another program has found (`pairs.from`), of pages given by doc id. The
//! pages are looked up, and each pair is counted once, by the owner of its smaller page. If only
//! labels are given, each page is paired with the smallest page of the same label.
//!
//! Takes one exchange for the pairs, one or two for the labels, and two for the guard.
//!
//! # Memory
//! Takes 8 bytes for each page in each process while pages are looked up. Takes 12 bytes for each
//! pair and for each labelled page, or the budget of the step if it is smaller. With a guard, the
//! pairs of a worker are in memory while the guard decides.

use std::cmp::Reverse;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::exact::fold;
use super::guards::keep_mutual_best;
use crate::reading::captures::Crawl;
use crate::reading::foreign_rows::{ForeignRow, RowCounts};
use crate::shuffle::directory::DocIdIndex;
use crate::shuffle::page_ranges::PageRanges;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{Net, Owners};
use webtwin_job::Guard;
use webtwin_spill::SpillColumn;

/// Value of a pair that is given without a value: that of equal pages, as a resemblance in
/// millionths.
pub const EQUAL_VALUE: u32 = 1_000_000;

/// Two pages that are given as similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenPair {
    /// Doc id of the first page.
    pub a: DocId,
    /// Doc id of the second page.
    pub b: DocId,
    /// Similarity of the pages; higher for more similar pages.
    pub value: u32,
}

/// Page with a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenLabel {
    /// Hash of the label.
    pub label: FPrint,
    /// Doc id of the page.
    pub page: DocId,
}

/// Numbers of given rows by outcome, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenCounts {
    /// Numbers of rows.
    pub rows: RowCounts,
    /// Distinct pairs of pages that the rows specify.
    pub similar: u64,
    /// Pairs that the guard refused.
    pub guarded: u64,
}

/// Returns the pair of two pages of this crawl. Otherwise counts the reason and returns `None`.
fn known_pair(counts: &mut RowCounts, row: ForeignRow<GivenPair>, ids: &DocIdIndex<'_>) -> Option<SimilarPair> {
    let GivenPair { a, b, value } = counts.understood(row)?;
    if a == b {
        counts.self_pairs += 1;
        return None;
    }
    let pages = ids.page(a).zip(ids.page(b));
    counts.unknown += u64::from(pages.is_none());
    pages.map(|(a, b)| SimilarPair { a: a.min(b), b: a.max(b), value })
}

/// Returns a page of this crawl with its label. Otherwise counts the row as unknown or malformed
/// and returns `None`.
fn labelled(counts: &mut RowCounts, row: ForeignRow<GivenLabel>, ids: &DocIdIndex<'_>) -> Option<(FPrint, Page)> {
    let GivenLabel { label, page } = counts.understood(row)?;
    let page = ids.page(page);
    counts.unknown += u64::from(page.is_none());
    Some((label, page?))
}

/// Finds the similar pairs that rows of any worker specify. The pairs are ascending at the owner of
/// the smaller page, and all workers return the same counts. If several rows name a pair, the
/// highest value counts. This worker has about `expected_rows` rows.
///
/// The guard is one of those for simhashes, because not all pairs of similar pages need be given:
/// none, or mutual best matches.
///
/// # Errors
/// Returns the first error of `rows`. Returns any error of the disk, and an error if the run has
/// ended.
pub fn similar_pairs(
    net: &mut Net<'_>,
    crawl: &Crawl,
    guard: Guard,
    expected_rows: u64,
    rows: impl Iterator<Item = Result<GivenPair>>,
) -> Result<(SpillColumn<SimilarPair>, GivenCounts)> {
    of_rows(net, crawl, guard, expected_rows, rows.map_ok(Ok), std::iter::empty())
}

/// Finds the similar pairs that rows specify, like [`similar_pairs`], from pairs and from labels.
/// Rows may be malformed.
pub(super) fn of_rows(
    net: &mut Net<'_>,
    crawl: &Crawl,
    guard: Guard,
    expected_rows: u64,
    pairs: impl Iterator<Item = Result<ForeignRow<GivenPair>>>,
    labels: impl Iterator<Item = Result<ForeignRow<GivenLabel>>>,
) -> Result<(SpillColumn<SimilarPair>, GivenCounts)> {
    let (directory, mut counts) = (&crawl.directory, RowCounts::default());
    let ids = directory.by_doc_id()?;
    let labels = labels.filter_map_ok(|row| labelled(&mut counts, row, &ids));
    let stars = fold(net, labels, expected_rows)?;
    let stars = stars.rows().map_ok(|pair| SimilarPair { value: EQUAL_VALUE, ..pair });
    let rows = pairs.filter_map_ok(|row| known_pair(&mut counts, row, &ids)).chain(stars);
    let mut owned = PageRanges::new(net, crawl.pages.len(), expected_rows, 1);
    net.exchange_into(
        "given pairs",
        rows,
        |pair| directory.owner(pair.a),
        |pairs| pairs.iter().try_for_each(|pair| owned.push(directory.place(pair.a), *pair)),
    )?;
    drop(ids);
    // The highest value of equal pairs comes first, so that the others can be dropped as
    // duplicates.
    let mut pairs = owned.sorted(net, |pair| (pair.a, pair.b, Reverse(pair.value)))?;
    let previous_count = pairs.len();
    let mut previous = None;
    pairs.retain_mut(|pair| {
        let is_first = previous.replace((pair.a, pair.b)) != Some((pair.a, pair.b));
        // A page that has the same label twice is paired with itself.
        is_first && pair.a != pair.b
    })?;
    counts.duplicates = (previous_count - pairs.len()) as u64;
    let similar = pairs.len() as u64;
    if guard != Guard::None {
        let mut list = pairs.take()?;
        keep_mutual_best(net, &mut list, &directory.hosts, &**directory, |pair| (pair.value, 1))?;
        pairs = SpillColumn::from_rows(list, &net.memory)?;
    }
    let rows = counts.of_all(net)?;
    let [similar, guarded] = net.all_sum("given pairs", [similar, similar - pairs.len() as u64])?;
    Ok((pairs, GivenCounts { rows, similar, guarded }))
}
