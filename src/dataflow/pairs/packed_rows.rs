//! Rows of `FPrint-DocID` on their way to a worker each, in [`PackedRow`]s: the page once for its
//! chunks, and the significant bits of their keys.
//!
//! A packed row begins with a page in full. Then come groups of chunks: their number in 4 bits, and
//! the significant bits of their keys. The number is 0 where another page begins, and is followed
//! by its distance from the page before.

use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::overlap::rows::FPrintRow;

use crate::shuffle::packed::{OpenRow, PackedRow, of_signed, signed};

/// Maximum number of chunks of a group.
const MAX_CHUNKS: u64 = 14;

/// Stands for no more groups; fills the end of a packed row.
const END: u64 = 15;

/// 4-bit groups of a key.
const fn key_groups<R: FPrintRow>() -> usize {
    (R::KEY_BITS / 4) as usize
}

/// A packed row that is being written for a worker.
#[derive(Debug, Clone)]
struct OpenGroup {
    row: OpenRow,
    page: Page,
    /// Position of the number of chunks of the last group, and that number.
    group: (usize, u64),
}

/// Packs rows, given one by one, for their workers.
#[derive(Debug)]
pub(super) struct RowPacker(Vec<Option<OpenGroup>>);

impl RowPacker {
    /// Packs rows for `peers` workers.
    pub(super) fn new(peers: usize) -> RowPacker {
        RowPacker(vec![None; peers])
    }

    /// Appends a row for a worker, and calls `send` with the packed row that was full before. Rows
    /// of one page should come together.
    #[inline]
    pub(super) fn push<R: FPrintRow>(&mut self, to: usize, row: &R, mut send: impl FnMut(PackedRow)) {
        let open = &mut self.0[to];
        if open.as_mut().is_some_and(|open| open.push(row)) {
            return;
        }
        let mut next = OpenGroup { row: OpenRow::new(row.doc().0), page: row.doc(), group: (0, MAX_CHUNKS) };
        next.push(row);
        if let Some(full) = open.replace(next) {
            send(full.row.finish());
        }
    }

    /// Calls `send` with the packed rows that are not full.
    pub(super) fn finish(&mut self, send: impl FnMut(PackedRow)) {
        self.0.iter_mut().filter_map(Option::take).map(|open| open.row.finish()).for_each(send);
    }
}

impl OpenGroup {
    #[inline]
    fn push<R: FPrintRow>(&mut self, row: &R) -> bool {
        let groups = key_groups::<R>();
        let (place, chunks) = self.group;
        if row.doc() == self.page && chunks < MAX_CHUNKS {
            if !self.row.has_room_for(groups) {
                return false;
            }
            self.group.1 += 1;
            self.row.replace(place, (chunks + 1) as u8);
        } else {
            // The number of chunks, and what another page takes at most.
            if !self.row.has_room_for(1 + 1 + 11 + groups) {
                return false;
            }
            if row.doc() != self.page {
                self.row.push_fixed(0, 1);
                self.row.push(signed(row.doc().0, self.page.0));
                self.page = row.doc();
            }
            self.group = (self.row.used(), 1);
            self.row.push_fixed(1, 1);
        }
        self.row.push_fixed(row.key() >> (u64::BITS - R::KEY_BITS), groups);
        true
    }
}

/// Calls `visit` with the rows of a packed row.
///
/// # Errors
/// The first error of `visit`.
pub(super) fn each_row<R: FPrintRow>(packed: &PackedRow, mut visit: impl FnMut(R) -> Result<()>) -> Result<()> {
    let mut page = packed.first;
    let mut numbers = packed.numbers();
    while numbers.has_more() {
        let chunks = numbers.fixed(1);
        if chunks == END {
            break;
        }
        if chunks == 0 {
            page = of_signed(numbers.next().unwrap_or(0), page);
            continue;
        }
        for _ in 0..chunks {
            visit(R::of_key(numbers.fixed(key_groups::<R>()) << (u64::BITS - R::KEY_BITS), Page(page)))?;
        }
    }
    Ok(())
}

/// The first row of a packed row.
#[inline]
pub(super) fn first_row<R: FPrintRow>(packed: &PackedRow) -> R {
    let mut numbers = packed.numbers();
    numbers.fixed(1);
    R::of_key(numbers.fixed(key_groups::<R>()) << (u64::BITS - R::KEY_BITS), Page(packed.first))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use webtwin_core::overlap::rows::{Row32, Row64};

    use super::*;

    fn packed_and_back<R: FPrintRow + std::fmt::Debug>(values: &[(u64, u32)], peers: usize) {
        let mut rows: Vec<R> = values.iter().map(|&(fprint, page)| R::new(fprint, Page(page))).collect();
        let to = |row: &R| (row.key() >> 50) as usize % peers;
        let (mut packer, mut packed, mut unpacked) = (RowPacker::new(peers), Vec::new(), Vec::new());
        rows.iter().for_each(|row| packer.push(to(row), row, |full| packed.push(full)));
        packer.finish(|last| packed.push(last));
        for packed in &packed {
            each_row(packed, |row: R| {
                assert_eq!(to(&row), to(&first_row::<R>(packed)));
                unpacked.push(row);
                Ok(())
            })
            .unwrap();
        }
        unpacked.sort_unstable();
        rows.sort_unstable();
        assert_eq!(unpacked, rows);
    }

    proptest! {
        #[test]
        fn every_row_arrives_at_its_worker(
            pages in prop::collection::vec((any::<u32>(), 0u64..40), 0..30), peers in 1usize..5
        ) {
            let chunks = |&(page, chunks): &(u32, u64)| (0..chunks).map(move |n| ((n + 1).wrapping_mul(0x0123_4567_89ab_cdef), page));
            let mut values: Vec<(u64, u32)> = pages.iter().flat_map(chunks).collect();
            values.push((u64::MAX, u32::MAX));
            packed_and_back::<Row32>(&values, peers);
            packed_and_back::<Row64>(&values, peers);
        }
    }
}
