//! Exact copies fold into their centre, the copy with the smallest doc id (\[SGM98\] section 2.2, step 2).
//!
//! One exchange, or two where there are many: whole-document fingerprints to their owner, in shares.

use std::sync::Arc;

use itertools::Itertools;

use crate::shuffle::hash_partitions::HashPartitions;
use crate::shuffle::page_set::page_set;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, Page};
use webtwin_core::overlap::prune::PageSet;
use webtwin_core::overlap::{FPrintDocId, SimilarPair};
use webtwin_engine::Net;
use webtwin_spill::Column;

/// Finds the centres among about `count` pages, given with the fingerprints of their texts, and returns (centre, copy) for every other
/// copy, ascending.
///
/// Pages without a byte are copies of nothing. Pairs lie with the owner of their fingerprint, on disk where memory has a bound.
///
/// # Errors
/// As [`HashPartitions::new`].
///
/// # Memory
/// 12 bytes a page, or what the step has memory for; 12 a pair.
pub fn fold(
    net: &mut Net<'_>,
    texts: impl Iterator<Item = Result<(FPrint, Page)>>,
    count: u64,
) -> Result<Column<SimilarPair>> {
    let rows = texts.filter_ok(|text| text.0 != 0).map_ok(|(fprint, page)| FPrintDocId::new(fprint, page));
    let mut shares = HashPartitions::new(net, "FPrint-DocID-Exact", count, rows, FPrintDocId::fprint)?;
    let (mut pairs, mut some) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut some)?;
        some.sort_unstable_by_key(FPrintDocId::key);
        for run in some.chunk_by(|x, y| x.fprint() == y.fprint()) {
            pairs.extend(run[1..].iter().map(|copy| SimilarPair { a: run[0].doc, b: copy.doc, value: 0 }));
        }
    }
    pairs.sort_unstable();
    Column::of(pairs, &net.memory)
}

/// The copies in some (centre, copy) pairs.
///
/// # Errors
/// Those of the disk that pairs may be on.
pub(super) fn copies_of(exact_pairs: &Column<SimilarPair>) -> Result<Vec<Page>> {
    exact_pairs.rows().map(|pair| Ok(pair?.b)).collect()
}

/// The copies in all workers' (centre, copy) pairs, once in each process; the run has `pages` pages.
///
/// # Errors
/// Those of the disk that pairs may be on; or when the run has ended.
pub fn copies(net: &mut Net<'_>, exact_pairs: &Column<SimilarPair>, pages: usize) -> Result<Arc<PageSet>> {
    page_set(net, "copies", copies_of(exact_pairs)?, pages)
}
