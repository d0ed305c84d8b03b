//! Rows of selected chunks of a crawl: of chunks on changed pages, as [`super::overlap_merge`]
//! requests them.
//!
//! Most rows of such chunks belong to menus and footers, which are on nearly all pages of a site.
//! They do not count, regardless of the content of a few changed pages. So these chunks are found
//! first, and only the rows of the changed pages themselves are sent for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pairs::changes::PageChanges;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::by_hash::Hashes;
use webtwin_base::error::Result;
use webtwin_base::ids::{FPrint, HostId, Number, Page, splitmix64};
use webtwin_core::overlap::rows::{FPrintRow, KeyShares, Row64, sort_bucket};
use webtwin_engine::Net;
use webtwin_job::OverlapSettings;

/// Number of rows that are sent before arrived ones are processed.
const BATCH: usize = 1 << 15;

/// Number of slots for counts of chunks by host, as a power of two. They take 1 MiB, which fits in
/// a core's share of the cache.
const COUNTS_BITS: u32 = 16;

/// Approximate set of fingerprints with false positives, like a Bloom filter with one hash
/// function.
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
        // Fingerprints of few bits are well mixed only in their low bits.
        let at = fprint.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((at >> 6) as usize, at & 63)
    }

    #[inline]
    fn contains(&self, fprint: FPrint) -> bool {
        let (word, bit) = self.place(fprint);
        self.bits[word] >> bit & 1 == 1
    }

    /// Removes a fingerprint, and others that share its bit.
    fn remove(&mut self, fprint: FPrint) {
        let (word, bit) = self.place(fprint);
        self.bits[word] &= !(1 << bit);
    }
}

/// Approximate set of chunks whose rows are requested, and the boilerplate among them.
pub(super) struct AskedChunks {
    chunks: Arc<Sieve>,
    /// Keys of the rows of boilerplate chunks.
    boilerplate: Arc<Hashes>,
}

fn key(fprint: FPrint) -> u64 {
    Row64::new(fprint, Page::NONE).key()
}

impl AskedChunks {
    /// Creates the set of the given fingerprints, which are the same on all workers. Takes at most
    /// two rounds.
    ///
    /// # Errors
    /// Returns any error of the disk, on which chunks may be, and an error if the run has ended.
    ///
    /// # Memory
    /// Takes 2 bytes for each chunk in each worker and process, and 12 for each boilerplate chunk
    /// in each process.
    pub(super) fn new(
        net: &mut Net<'_>,
        local_pages: &WorkerPages,
        changes: &PageChanges,
        settings: &OverlapSettings,
        fprints: &[FPrint],
    ) -> Result<AskedChunks> {
        let boilerplate = match settings.template_pages {
            0 => Arc::default(),
            max_pages => {
                let own_boilerplate = unchanged_boilerplate(local_pages, changes, max_pages, fprints)?;
                let shared_boilerplate = net.broadcast("boilerplate that stays", own_boilerplate)?;
                net.once_per_process(|| shared_boilerplate.iter().copied().collect::<Hashes>())?
            }
        };
        let remaining = || fprints.iter().filter(|&&fprint| !boilerplate.contains(&key(fprint)));
        let chunks = net.once_per_process(|| Sieve::new(remaining().count(), remaining()))?;
        Ok(AskedChunks { chunks, boilerplate })
    }

    /// True if all rows of a chunk are requested.
    #[inline]
    pub(super) fn contains(&self, fprint: FPrint) -> bool {
        self.chunks.contains(fprint) && !self.boilerplate.contains(&key(fprint))
    }

    /// True if all rows of a chunk are requested, or if the chunk is boilerplate.
    pub(super) fn covers(&self, fprint: FPrint) -> bool {
        self.chunks.contains(fprint) || self.boilerplate.contains(&key(fprint))
    }

    /// True if the chunk of a row is boilerplate. Only the rows of changed pages are requested for
    /// it.
    pub(super) fn is_boilerplate(&self, row: &Row64) -> bool {
        self.boilerplate.contains(&row.key())
    }
}

/// Returns keys of chunks that are on more than `max_pages` unchanged pages of one host, so that
/// they were and are boilerplate. Only chunks for which this worker's own pages show it are found,
/// and not all of these.
fn unchanged_boilerplate(
    local_pages: &WorkerPages,
    changes: &PageChanges,
    max_pages: u32,
    fprints: &[FPrint],
) -> Result<Vec<u64>> {
    let mut open = Sieve::new(fprints.len(), fprints.iter());
    // Number of unchanged pages of a host with a chunk, or less: if two chunks share a slot, each
    // decrements the count of the other.
    let mut counts = vec![(FPrint::default(), HostId::default(), 0u32); 1 << COUNTS_BITS];
    let (mut lists, mut boilerplate) = (local_pages.fprints.reader(), Vec::new());
    for (slot, page) in local_pages.kept().filter(|&(_, page)| !changes.is_changed.contains(page)) {
        let host = changes.hosts[page];
        for &fprint in lists.get(slot)? {
            if !open.contains(fprint) {
                continue;
            }
            let place = splitmix64(fprint ^ u64::from(host) << 32) >> (64 - COUNTS_BITS);
            let (current_fprint, current_host, count) = &mut counts[place as usize];
            if (*current_fprint, *current_host) == (fprint, host) {
                *count += 1;
                if *count > max_pages {
                    boilerplate.push(key(fprint));
                    open.remove(fprint);
                }
            } else if *count == 0 {
                (*current_fprint, *current_host, *count) = (fprint, host, 1);
            } else {
                *count -= 1;
            }
        }
    }
    Ok(boilerplate)
}

/// Sends all previous and current rows of chunks for which `is_asked` returns true to their owners.
/// Returns this worker's rows, sorted by fingerprint.
pub(super) fn postings(
    net: &mut Net<'_>,
    local_pages: &WorkerPages,
    is_asked: impl Fn(Page, FPrint) -> bool,
    changes: &PageChanges,
    rows_before: &BTreeMap<u64, Vec<FPrint>>,
) -> Result<Vec<Row64>> {
    let (mut slots, mut fprints_of) = (local_pages.kept(), local_pages.fprints.reader());
    let pages_with = |rows: u64| {
        let from = changes.page_rows.partition_point(|row| row.0 < rows);
        changes.page_rows[from..].iter().take_while(move |row| row.0 == rows).map(|row| row.1)
    };
    let mut previous_rows =
        rows_before.iter().flat_map(|(&rows, fprints)| pages_with(rows).map(move |page| (fprints, page)));
    let source = |send: &mut dyn FnMut(Row64)| {
        let mut inspected_rows = 0;
        for (slot, page) in slots.by_ref() {
            let fprints = fprints_of.get(slot)?;
            let asked_fprints = fprints.iter().filter(|&&fprint| is_asked(page, fprint));
            asked_fprints.for_each(|&fprint| send(Row64::new(fprint, page)));
            inspected_rows += fprints.len();
            if inspected_rows >= BATCH {
                return Ok(true);
            }
        }
        for (fprints, page) in previous_rows.by_ref() {
            // Previous rows have page numbers beyond all current ones, so that both fit into one
            // list.
            let page = Page::from_index(changes.hosts.len() + page.index());
            fprints.iter().for_each(|&fprint| send(Row64::new(fprint, page)));
            inspected_rows += fprints.len();
            if inspected_rows >= BATCH {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let shares = KeyShares::new(net.peers(), 0);
    let mut received_rows = Vec::new();
    net.exchange_from(
        "rows of chunks on changed pages",
        source,
        |row| shares.owner(row.key()),
        |rows: &[Row64]| {
            received_rows.extend_from_slice(rows);
            Ok(())
        },
    )?;
    sort_bucket(&mut received_rows, &mut Vec::new(), shares);
    Ok(received_rows)
}
