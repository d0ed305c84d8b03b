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

/// Outcome of the rows, over all workers; `read = used + unknown + malformed + self_pairs + duplicates`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenCounts {
    /// Rows read.
    pub read: u64,
    /// Rows that are the first to say what they do of pages of this crawl.
    pub used: u64,
    /// Rows with a page that is not in this crawl.
    pub unknown: u64,
    /// Rows that cannot be understood.
    pub malformed: u64,
    /// Bytes of these, where they are lines of text.
    pub malformed_bytes: u64,
    /// Pairs of a page with itself.
    pub self_pairs: u64,
    /// Rows that repeat a pair, or the label of a page.
    pub duplicates: u64,
    /// Distinct pairs of pages that the rows stand for.
    pub similar: u64,
    /// Those that the guard refused.
    pub guarded: u64,
}

/// A row that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Its bytes, where it is a line of text.
    pub bytes: u64,
}

/// A row of a file that may have any content.
pub(super) type Row<T> = std::result::Result<T, Malformed>;

impl GivenCounts {
    /// The sum over all workers.
    fn of_all(self, net: &mut Net<'_>) -> Result<GivenCounts> {
        let GivenCounts { read, unknown, malformed, malformed_bytes, self_pairs, duplicates, similar, guarded, .. } =
            self;
        let mine = [read, unknown, malformed, malformed_bytes, self_pairs, duplicates, similar, guarded];
        let [read, unknown, malformed, malformed_bytes, self_pairs, duplicates, similar, guarded] =
            net.all_sum("given pairs", mine)?;
        let used = read - unknown - malformed - self_pairs - duplicates;
        Ok(GivenCounts { read, used, unknown, malformed, malformed_bytes, self_pairs, duplicates, similar, guarded })
    }

    /// The pair of two pages of this crawl, or `None` after counting why there is none.
    fn pair(&mut self, row: Row<GivenPair>, all: &ByDocId<'_>) -> Option<SimilarPair> {
        let GivenPair { a, b, value } = self.understood(row)?;
        if a == b {
            self.self_pairs += 1;
            return None;
        }
        match (all.page(a), all.page(b)) {
            (Some(a), Some(b)) => Some(SimilarPair { a: a.min(b), b: a.max(b), value }),
            _ => {
                self.unknown += 1;
                None
            }
        }
    }

    /// A page of this crawl with its label, or `None` after counting that there is none.
    fn labelled(&mut self, row: Row<GivenLabel>, all: &ByDocId<'_>) -> Option<(FPrint, Page)> {
        let GivenLabel { label, page } = self.understood(row)?;
        let page = all.page(page);
        self.unknown += u64::from(page.is_none());
        Some((label, page?))
    }

    fn understood<T>(&mut self, row: Row<T>) -> Option<T> {
        self.read += 1;
        match row {
            Ok(row) => Some(row),
            Err(Malformed { bytes }) => {
                self.malformed += 1;
                self.malformed_bytes += bytes;
                None
            }
        }
    }
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
    pairs: impl Iterator<Item = Result<Row<GivenPair>>>,
    labels: impl Iterator<Item = Result<Row<GivenLabel>>>,
) -> Result<(Column<SimilarPair>, GivenCounts)> {
    let (directory, mut counts) = (&crawl.directory, GivenCounts::default());
    let all = directory.by_doc_id()?;
    let labels = labels.filter_map_ok(|row| counts.labelled(row, &all));
    let stars = fold(net, labels, about)?;
    let stars = stars.rows().map_ok(|pair| SimilarPair { value: ALIKE, ..pair });
    let rows = pairs.filter_map_ok(|row| counts.pair(row, &all)).chain(stars);
    let mut owned = Stretches::new(net, crawl.pages.len(), about, 1);
    net.exchange_into(
        "given pairs",
        rows,
        |pair| directory.owner(pair.a),
        |pairs| pairs.iter().try_for_each(|pair| owned.push(directory.place(pair.a), *pair)),
    )?;
    drop(all);
    let mut pairs = owned.sorted(net, |pair| (pair.a, pair.b, Reverse(pair.value)))?;
    let rows = pairs.len();
    let mut previous = None;
    pairs.retain_mut(|pair| {
        let is_first = previous.replace((pair.a, pair.b)) != Some((pair.a, pair.b));
        // A page that has one label twice is paired with itself.
        is_first && pair.a != pair.b
    })?;
    counts.duplicates = (rows - pairs.len()) as u64;
    counts.similar = pairs.len() as u64;
    if guard != Guard::None {
        let mut list = pairs.take()?;
        keep_mutual_best(net, &mut list, &directory.hosts, &**directory, |pair| (pair.value, 1))?;
        pairs = Column::of(list, &net.memory)?;
    }
    counts.guarded = counts.similar - pairs.len() as u64;
    Ok((pairs, counts.of_all(net)?))
}
