//! Similar pairs that something else has found (`pairs.from`), of pages by their doc ids: the pages are looked up, and each pair is
//! counted once, by the owner of its smaller page. Where only labels are given, pages with one label are paired with the smallest of them.
//!
//! One exchange of the pairs, one or two of the labels, two for the guard.
//!
//! # Memory
//! 8 bytes a page in each process while pages are looked up; 12 a pair, and 12 a labelled page, or what the step has memory for. With a
//! guard the pairs of a worker are in its memory while it decides.

use std::cmp::Reverse;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::exact::fold;
use super::guards::keep_mutual_best;
use crate::reading::captures::Crawl;
use crate::reading::foreign_rows::{ForeignRow, RowCounts};
use crate::shuffle::directory::ByDocId;
use crate::shuffle::stretches::Stretches;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint, Page};
use webtwin_core::overlap::SimilarPair;
use webtwin_engine::{Net, Owners};
use webtwin_job::Guard;
use webtwin_spill::Column;

/// Value of a pair that is given without one: that of pages which do not differ, as a resemblance in millionths.
pub const ALIKE: u32 = 1_000_000;

/// Two pages that are said to be similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenPair {
    /// The one.
    pub a: DocId,
    /// The other.
    pub b: DocId,
    /// How much they are alike: higher for pages that are more so.
    pub value: u32,
}

/// A page that has a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenLabel {
    /// Hash of the label.
    pub label: FPrint,
    /// The page.
    pub page: DocId,
}

/// Outcome of the rows, over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenCounts {
    /// The rows.
    pub rows: RowCounts,
    /// Distinct pairs of pages that they stand for.
    pub similar: u64,
    /// Those that the guard refused.
    pub guarded: u64,
}

/// The pair of two pages of this crawl, or `None` after counting why there is none.
fn known_pair(counts: &mut RowCounts, row: ForeignRow<GivenPair>, all: &ByDocId<'_>) -> Option<SimilarPair> {
    let GivenPair { a, b, value } = counts.understood(row)?;
    if a == b {
        counts.self_pairs += 1;
        return None;
    }
    let pages = all.page(a).zip(all.page(b));
    counts.unknown += u64::from(pages.is_none());
    pages.map(|(a, b)| SimilarPair { a: a.min(b), b: a.max(b), value })
}

/// A page of this crawl with its label, or `None` after counting that there is none.
fn labelled(counts: &mut RowCounts, row: ForeignRow<GivenLabel>, all: &ByDocId<'_>) -> Option<(FPrint, Page)> {
    let GivenLabel { label, page } = counts.understood(row)?;
    let page = all.page(page);
    counts.unknown += u64::from(page.is_none());
    Some((label, page?))
}

/// Finds the similar pairs that rows of any worker stand for; they lie ascending with the owner of the smaller page, and all workers
/// return the same counts. Of rows that name one pair, the highest value counts. This worker has about `about` rows.
///
/// The guard is that of simhashes, for not all pairs of similar pages need be given: none, or mutual best matches.
///
/// # Errors
/// The first error of `rows`; those of the disk; or when the run has ended.
pub fn similar_pairs(
    net: &mut Net<'_>,
    crawl: &Crawl,
    guard: Guard,
    about: u64,
    rows: impl Iterator<Item = Result<GivenPair>>,
) -> Result<(Column<SimilarPair>, GivenCounts)> {
    of_rows(net, crawl, guard, about, rows.map_ok(Ok), std::iter::empty())
}

/// As [`similar_pairs`], of pairs and of labels, either of which may be malformed.
pub(super) fn of_rows(
    net: &mut Net<'_>,
    crawl: &Crawl,
    guard: Guard,
    about: u64,
    pairs: impl Iterator<Item = Result<ForeignRow<GivenPair>>>,
    labels: impl Iterator<Item = Result<ForeignRow<GivenLabel>>>,
) -> Result<(Column<SimilarPair>, GivenCounts)> {
    let (directory, mut counts) = (&crawl.directory, RowCounts::default());
    let all = directory.by_doc_id()?;
    let labels = labels.filter_map_ok(|row| labelled(&mut counts, row, &all));
    let stars = fold(net, labels, about)?;
    let stars = stars.rows().map_ok(|pair| SimilarPair { value: ALIKE, ..pair });
    let rows = pairs.filter_map_ok(|row| known_pair(&mut counts, row, &all)).chain(stars);
    let mut owned = Stretches::new(net, crawl.pages.len(), about, 1);
    net.exchange_into(
        "given pairs",
        rows,
        |pair| directory.owner(pair.a),
        |pairs| pairs.iter().try_for_each(|pair| owned.push(directory.place(pair.a), *pair)),
    )?;
    drop(all);
    let mut pairs = owned.sorted(net, |pair| (pair.a, pair.b, Reverse(pair.value)))?;
    let before = pairs.len();
    let mut previous = None;
    pairs.retain_mut(|pair| {
        let is_first = previous.replace((pair.a, pair.b)) != Some((pair.a, pair.b));
        // A page that has one label twice is paired with itself.
        is_first && pair.a != pair.b
    })?;
    counts.duplicates = (before - pairs.len()) as u64;
    let similar = pairs.len() as u64;
    if guard != Guard::None {
        let mut list = pairs.take()?;
        keep_mutual_best(net, &mut list, &directory.hosts, &**directory, |pair| (pair.value, 1))?;
        pairs = Column::of(list, &net.memory)?;
    }
    let rows = counts.of_all(net)?;
    let [similar, guarded] = net.all_sum("given pairs", [similar, similar - pairs.len() as u64])?;
    Ok((pairs, GivenCounts { rows, similar, guarded }))
}
