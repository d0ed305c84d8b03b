//! Folds exact copies into their centre, the copy with the smallest doc id (\[SGM98\] section 2.2,
//! step 2).
//!
//! Takes one exchange, or two for many pages: whole-document fingerprints are sent to their owners,
//! in partitions.

use std::sync::Arc;

use itertools::Itertools;

use crate::shuffle::hash_partitions::HashPartitions;
use crate::shuffle::page_set::page_set;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::{FPrintDocId, SimilarPair};
use webtwin_engine::Net;
use webtwin_spill::SpillColumn;

/// Finds the centres among about `count` pages, which are given with the fingerprints of their
/// texts. Returns (centre, copy) for every other copy, ascending.
///
/// Pages with an empty text (fingerprint 0) are copies of nothing. Pairs remain at the owner of
/// their fingerprint, on disk if memory is limited.
///
/// # Errors
/// Returns any error of [`HashPartitions::new`].
///
/// # Memory
/// Takes 12 bytes for each page, or the budget of the step if it is smaller, and 12 for each pair.
pub fn fold(
    net: &mut Net<'_>,
    texts: impl Iterator<Item = Result<(FPrint, Page)>>,
    count: u64,
) -> Result<SpillColumn<SimilarPair>> {
    let rows = texts.filter_ok(|text| text.0 != 0).map_ok(|(fprint, page)| FPrintDocId::new(fprint, page));
    let mut shares = HashPartitions::new(net, "FPrint-DocID-Exact", count, rows, FPrintDocId::fprint)?;
    let (mut pairs, mut share_rows) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut share_rows)?;
        share_rows.sort_unstable_by_key(FPrintDocId::key);
        for run in share_rows.chunk_by(|x, y| x.fprint() == y.fprint()) {
            pairs.extend(run[1..].iter().map(|copy| SimilarPair { a: run[0].doc, b: copy.doc, value: 0 }));
        }
    }
    pairs.sort_unstable();
    SpillColumn::from_rows(pairs, &net.memory)
}

/// Returns the copies of the given (centre, copy) pairs.
///
/// # Errors
/// Returns any error of the disk, on which pairs may be.
pub(super) fn copies_of(exact_pairs: &SpillColumn<SimilarPair>) -> Result<Vec<Page>> {
    exact_pairs.rows().map(|pair| Ok(pair?.b)).collect()
}

/// Returns the copies of the (centre, copy) pairs of all workers, once in each process. The run has
/// `pages` pages.
///
/// # Errors
/// Returns any error of the disk, on which pairs may be, and an error if the run has ended.
pub fn copies(net: &mut Net<'_>, exact_pairs: &SpillColumn<SimilarPair>, pages: usize) -> Result<Arc<PageSet>> {
    page_set(net, "copies", copies_of(exact_pairs)?, pages)
}
