//! How much each page to skip has in common with the one that stays: resemblance of their distinct chunks.
//!
//! Pairs are told to all processes; chunks of their pages go to the owner of the page that stays, in shares; the counts, to
//! whoever asked.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::dataflow::reading::worker_pages::WorkerPages;
use crate::dataflow::shuffle::gather::Gather;
use crate::dataflow::shuffle::hash_partitions::HashPartitions;
use crate::dataflow::shuffle::memory_budget::MemoryBudget;
use crate::engine::Net;
use crate::error::Result;
use crate::ids::{FPrint, Page};
use crate::overlap::in_common;

/// Distinct chunks that two pages have in common, and those of both together (\[SGM98\] section 2.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Resemblance {
    common: u32,
    all: u32,
}

impl Resemblance {
    /// That of pages with one text.
    pub const WHOLE: Resemblance = Resemblance { common: 1, all: 1 };

    /// Resemblance of two lists of chunks, both ascending and each chunk once.
    fn of(x: &[FPrint], y: &[FPrint]) -> Resemblance {
        let (common, all) = in_common(x, y);
        Resemblance { common: common as u32, all: all as u32 }
    }

    /// From 0 to 1, to six places, so that it prints the same everywhere; 0 for pages without chunks.
    pub fn share(self) -> f64 {
        super::summary::share(self.common.into(), self.all.into())
    }
}

/// A chunk of a page that is compared.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Row {
    keep: Page,
    page: Page,
    fprint: FPrint,
}

/// A result on its way.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Counted {
    page: Page,
    common: u32,
    all: u32,
}

/// Compares pages with those that stay, given as `[page, keep]` by any worker; the resemblance of each goes, by page, to
/// `asks(page)`. Pages of no chunks are left out. `pages` is the number of all pages.
///
/// # Errors
/// [`crate::error::Error::DiskLimit`] or [`crate::error::Error::DiskFull`] when the disk does not take what `room` has no
/// memory for; or when the run has ended.
///
/// # Memory
/// 4 bytes a page in each process; 16 for each chunk of the pages compared, or what `room` allows.
pub fn with_kept(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    pages: usize,
    pairs: Vec<[Page; 2]>,
    asks: impl Fn(Page) -> usize,
    room: &MemoryBudget,
) -> Result<Vec<(Page, Resemblance)>> {
    let pairs = net.share("pages to compare", pairs)?;
    let keep_of = net.once(|| {
        let mut keep_of = vec![Page::NONE; pages];
        for &[page, keep] in pairs.iter() {
            keep_of[page] = keep;
            keep_of[keep] = keep;
        }
        keep_of
    })?;
    drop(pairs);
    let compared = || shelf.kept().filter(|&(_, page)| keep_of[page] != Page::NONE);
    let count = compared().map(|(slot, _)| shelf.fprints.get(slot).len() as u64).sum();
    let rows = compared().flat_map(|(slot, page)| {
        let keep = keep_of[page];
        shelf.fprints.get(slot).iter().map(move |&fprint| Row { keep, page, fprint })
    });
    let mut shares = HashPartitions::laid_down(net, "chunks to compare", count, rows, |row| u64::from(row.keep), room)?;
    let (mut counted, mut some) = (Vec::new(), Vec::new());
    let (mut gather, mut rows) = (Gather::default(), Vec::new());
    let (mut kept, mut chunks) = (Vec::new(), Vec::new());
    for share in 0..shares.count() {
        net.check()?;
        shares.take(share, &mut some)?;
        // The page that stays comes first.
        gather.by_key(&some, |row: &Row| (row.keep, row.page != row.keep, row.page), &mut rows);
        for compared in rows.chunk_by(|x, y| x.keep == y.keep) {
            kept.clear();
            for rows in compared.chunk_by(|x, y| x.page == y.page) {
                chunks.clear();
                chunks.extend(rows.iter().map(|row| row.fprint));
                // They are in order unless another process's blocks came between.
                chunks.sort_unstable();
                if rows[0].page == rows[0].keep {
                    std::mem::swap(&mut kept, &mut chunks);
                } else {
                    let Resemblance { common, all } = Resemblance::of(&chunks, &kept);
                    counted.push(Counted { page: rows[0].page, common, all });
                }
            }
        }
    }
    let counted = net.exchange_all("resemblance", counted, |row| asks(row.page))?;
    let mut found: Vec<_> =
        counted.into_iter().map(|row| (row.page, Resemblance { common: row.common, all: row.all })).collect();
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn resemblance_is_that_of_the_sets(
            x in prop::collection::btree_set(0u64..20, 0..20), y in prop::collection::btree_set(0u64..20, 0..20)
        ) {
            let list = |set: &BTreeSet<u64>| set.iter().copied().collect::<Vec<_>>();
            let found = Resemblance::of(&list(&x), &list(&y));
            prop_assert_eq!(found.common as usize, x.intersection(&y).count());
            prop_assert_eq!(found.all as usize, x.union(&y).count());
        }
    }
}
