//! Rows of some chunks of a crawl: those on changed pages, as [`super::overlap_merge`] asks for them.
//!
//! Most rows of such chunks are of menus and footers, which stand on nearly all pages of a site. They count nowhere, whatever a few
//! pages say now, so they are found first, and of them only rows of the changed pages themselves are sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pairs::changes::Changes;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::by_hash::Hashes;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, HostId, Number, Page, splitmix64};
use webtwin_core::overlap::rows::{Row, Row64, Shares, sort_bucket};
use webtwin_engine::Net;
use webtwin_job::Overlap;

/// Rows handed on at a time.
const BATCH: usize = 1 << 15;

/// Places for counts of chunks by host, as a power of two: 1 MiB, within a core's share of the cache.
const COUNTS_BITS: u32 = 16;

/// A set of fingerprints, and some more.
struct Sieve {
    bits: Vec<u64>,
    shift: u32,
}

impl Sieve {
    fn new<'f>(count: usize, fprints: impl Iterator<Item = &'f FPrint>) -> Sieve {
        let bits = (16 * count as u64).next_power_of_two().max(64).trailing_zeros();
        let mut set = Sieve { bits: vec![0; 1 << (bits - 6)], shift: 64 - bits };
        for &fprint in fprints {
            let (word, bit) = set.place(fprint);
            set.bits[word] |= 1 << bit;
        }
        set
    }

    #[inline]
    fn place(&self, fprint: FPrint) -> (usize, u64) {
        // Fingerprints of few bits are well mixed in their low ones only.
        let at = fprint.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((at >> 6) as usize, at & 63)
    }

    #[inline]
    fn contains(&self, fprint: FPrint) -> bool {
        let (word, bit) = self.place(fprint);
        self.bits[word] >> bit & 1 == 1
    }

    /// Takes a fingerprint out, and some more.
    fn remove(&mut self, fprint: FPrint) {
        let (word, bit) = self.place(fprint);
        self.bits[word] &= !(1 << bit);
    }
}

/// Chunks of which rows are asked for, and some more.
pub(super) struct AskedChunks {
    chunks: Arc<Sieve>,
    /// Keys of rows of those that are furniture.
    furniture: Arc<Hashes>,
}

fn key(fprint: FPrint) -> u64 {
    Row64::new(fprint, Page::NONE).key()
}

impl AskedChunks {
    /// The chunks of these fingerprints, the same on all workers. Two rounds at most.
    ///
    /// # Errors
    /// Those of the disk that holds chunks; or when the run has ended.
    ///
    /// # Memory
    /// 2 bytes a chunk in each worker and process, 12 for one that is found to be furniture in each process.
    pub(super) fn new(
        net: &mut Net<'_>,
        shelf: &WorkerPages,
        changes: &Changes,
        settings: &Overlap,
        fprints: &[FPrint],
    ) -> Result<AskedChunks> {
        let furniture = match settings.template_pages {
            0 => Arc::default(),
            few => {
                let mine = standing_furniture(shelf, changes, few, fprints)?;
                let all = net.broadcast("furniture that stays", mine)?;
                net.once_per_process(|| all.iter().copied().collect::<Hashes>())?
            }
        };
        let rest = || fprints.iter().filter(|&&fprint| !furniture.contains(&key(fprint)));
        let chunks = net.once_per_process(|| Sieve::new(rest().count(), rest()))?;
        Ok(AskedChunks { chunks, furniture })
    }

    /// Whether all rows of a chunk are asked for.
    #[inline]
    pub(super) fn contains(&self, fprint: FPrint) -> bool {
        self.chunks.contains(fprint) && !self.furniture.contains(&key(fprint))
    }

    /// Whether all rows of a chunk are asked for, or it is furniture.
    pub(super) fn covers(&self, fprint: FPrint) -> bool {
        self.chunks.contains(fprint) || self.furniture.contains(&key(fprint))
    }

    /// Whether the chunk of a row is furniture, of which rows of changed pages are asked for.
    pub(super) fn is_furniture(&self, row: &Row64) -> bool {
        self.furniture.contains(&row.key())
    }
}

/// Keys of chunks that are on more than `few` pages of one host that have not changed, so they were furniture and they are: as far as
/// this worker sees that by its own pages, and not all of these.
fn standing_furniture(shelf: &WorkerPages, changes: &Changes, few: u32, fprints: &[FPrint]) -> Result<Vec<u64>> {
    let mut open = Sieve::new(fprints.len(), fprints.iter());
    // Pages of a host that have a chunk, or fewer: where two chunks meet in one place, each takes from what the other has.
    let mut counts = vec![(FPrint::default(), HostId::default(), 0u32); 1 << COUNTS_BITS];
    let (mut lists, mut found) = (shelf.fprints.reader(), Vec::new());
    for (slot, page) in shelf.kept().filter(|&(_, page)| !changes.is_changed.contains(page)) {
        let host = changes.hosts[page];
        for &fprint in lists.get(slot)? {
            if !open.contains(fprint) {
                continue;
            }
            let place = splitmix64(fprint ^ u64::from(host) << 32) >> (64 - COUNTS_BITS);
            let (of, on, count) = &mut counts[place as usize];
            if (*of, *on) == (fprint, host) {
                *count += 1;
                if *count > few {
                    found.push(key(fprint));
                    open.remove(fprint);
                }
            } else if *count == 0 {
                (*of, *on, *count) = (fprint, host, 1);
            } else {
                *count -= 1;
            }
        }
    }
    Ok(found)
}

/// All rows, of before and now, of the chunks of pages for which `is_asked` holds, with their owners; sorted by fingerprint.
pub(super) fn postings(
    net: &mut Net<'_>,
    shelf: &WorkerPages,
    is_asked: impl Fn(Page, FPrint) -> bool,
    changes: &Changes,
    rows_before: &BTreeMap<u64, Vec<FPrint>>,
) -> Result<Vec<Row64>> {
    let (mut slots, mut fprints_of) = (shelf.kept(), shelf.fprints.reader());
    let with = |rows: u64| {
        let from = changes.wanted.partition_point(|row| row.0 < rows);
        changes.wanted[from..].iter().take_while(move |row| row.0 == rows).map(|row| row.1)
    };
    let mut before = rows_before.iter().flat_map(|(&rows, fprints)| with(rows).map(move |page| (fprints, page)));
    let source = |send: &mut dyn FnMut(Row64)| {
        let mut looked_at = 0;
        for (slot, page) in slots.by_ref() {
            let fprints = fprints_of.get(slot)?;
            let asked = fprints.iter().filter(|&&fprint| is_asked(page, fprint));
            asked.for_each(|&fprint| send(Row64::new(fprint, page)));
            looked_at += fprints.len();
            if looked_at >= BATCH {
                return Ok(true);
            }
        }
        for (fprints, page) in before.by_ref() {
            let page = Page::from_index(changes.hosts.len() + page.index());
            fprints.iter().for_each(|&fprint| send(Row64::new(fprint, page)));
            looked_at += fprints.len();
            if looked_at >= BATCH {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let shares = Shares::new(net.peers(), 0);
    let mut arrived = Vec::new();
    net.exchange_from(
        "rows of chunks on changed pages",
        source,
        |row| shares.owner(row.key()),
        |rows: &[Row64]| {
            arrived.extend_from_slice(rows);
            Ok(())
        },
    )?;
    sort_bucket(&mut arrived, &mut Vec::new(), shares);
    Ok(arrived)
}
