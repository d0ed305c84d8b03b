//! Exact copies fold into their centre, the copy with the smallest doc id (\[SGM98\] section 2.2, step 2).
//!
//! One exchange: whole-document fingerprints to their owner.

use std::sync::Arc;

use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::engine::{HashOwners, Net, Owners};
use crate::error::Result;
use crate::ids::{FPrint, Page};
use crate::overlap::SimilarPair;
use crate::overlap::prune::PageSet;

/// A row of `FPrint-DocID-Exact`. Rows order by fingerprint, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Whole {
    fprint_high: u32,
    fprint_low: u32,
    page: Page,
}

impl Whole {
    fn fprint(&self) -> FPrint {
        u64::from(self.fprint_high) << 32 | u64::from(self.fprint_low)
    }
}

/// Finds the centres and returns (centre, copy) for every other copy, ascending.
///
/// Pages without a byte are copies of nothing. Pairs lie with the owner of their fingerprint.
pub fn fold(net: &mut Net<'_>, shelf: &WorkerPages) -> Result<Vec<SimilarPair>> {
    let rows = shelf.kept().filter(|&(slot, _)| shelf.exact[slot] != 0).map(|(slot, page)| {
        let fprint = shelf.exact[slot];
        Whole { fprint_high: (fprint >> 32) as u32, fprint_low: fprint as u32, page }
    });
    let owners = HashOwners::new(net);
    let mut owned = net.exchange_all("FPrint-DocID-Exact", rows, |row| owners.owner(row.fprint()))?;
    owned.sort_unstable();
    let mut pairs = Vec::new();
    for run in owned.chunk_by(|x, y| x.fprint() == y.fprint()) {
        pairs.extend(run[1..].iter().map(|copy| SimilarPair { a: run[0].page, b: copy.page, value: 0 }));
    }
    pairs.sort_unstable();
    Ok(pairs)
}

/// The copies in all workers' (centre, copy) pairs, once in each process; the run has `pages` pages.
pub fn copies(net: &mut Net<'_>, exact_pairs: &[SimilarPair], pages: usize) -> Result<Arc<PageSet>> {
    let copies = net.share("copies", exact_pairs.iter().map(|pair| pair.b).collect())?;
    net.once(|| {
        let mut is_copy = PageSet::new(pages, |_| false);
        copies.iter().for_each(|&copy| is_copy.insert(copy));
        is_copy
    })
}
