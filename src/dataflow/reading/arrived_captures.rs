//! Captures at the owners of their doc ids, before they are deduplicated, in ranges of doc ids.
//!
//! Captures arrive in any order and are read in the order of doc ids. On disk the captures of a
//! range are close to each other, and they are deleted when the range has been read. A reader in
//! the order of doc ids reads each capture from memory: when it reaches a range, the range is
//! divided into parts, each of which is read as a whole.

use crate::reading::capture_rows::{CaptureRow, CaptureRows};
use crate::shuffle::directory::TablePartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;

/// Approximate bytes of a range, unless this would make more than [`MAX_RANGES`] ranges.
const RANGE_BYTES: u64 = 256 << 20;

/// Approximate bytes of a part of a range, unless this would make more than [`MAX_RANGES`] parts.
const PART_BYTES: u64 = 16 << 20;

/// Maximum number of ranges of a worker, and of parts of a range. The blocks that are being filled
/// take 16 MiB.
const MAX_RANGES: u64 = 16;

/// Words of captures that are moved before their memory and disk space are released.
const WORDS_PER_RELEASE: u64 = 1 << 18;

/// Maximum bytes of a part that is read into memory. A part may be larger: one page was fetched a
/// hundred thousand times.
const MAX_BYTES_IN_MEMORY: u64 = 64 << 20;

/// Captures that have arrived at this worker.
#[derive(Debug)]
pub(super) struct ArrivedCaptures {
    partitions: TablePartitions,
    ranges: Vec<CaptureRows>,
    /// Approximate bytes of a part of a divided range.
    part_bytes: u64,
    /// Index of the range that is being read. Earlier ranges are no longer read.
    current_range: usize,
    /// Parts of that range, if the range was on disk.
    parts: Parts,
}

/// Parts of a range, by doc id.
#[derive(Debug, Default)]
struct Parts {
    rows: Vec<CaptureRows>,
    /// Index of the part that is being read, which is in memory.
    current_range: usize,
    /// Number in its part of each capture of the range, by its number in the range.
    numbers: Vec<u32>,
}

impl ArrivedCaptures {
    /// Creates an empty container with the memory limit of `sent_rows`. About as many captures are
    /// expected as there are in `sent_rows`. A single range suffices if `sent_rows` is in memory.
    pub(super) fn like(sent_rows: &CaptureRows, partitions: TablePartitions) -> ArrivedCaptures {
        let ranges = (sent_rows.spilled_bytes() / RANGE_BYTES + 1).min(MAX_RANGES);
        ArrivedCaptures::in_ranges(sent_rows, partitions, ranges, PART_BYTES)
    }

    fn in_ranges(sent_rows: &CaptureRows, partitions: TablePartitions, count: u64, part_bytes: u64) -> ArrivedCaptures {
        let ranges = (0..count).map(|_| sent_rows.like_part(count)).collect();
        ArrivedCaptures { partitions, ranges, part_bytes, current_range: 0, parts: Parts::default() }
    }

    fn range(&self, doc_id: DocId) -> usize {
        self.partitions.range(doc_id, self.ranges.len())
    }

    /// Adds an encoded capture. Returns the number of the capture in its range.
    ///
    /// # Errors
    /// Returns any error of [`CaptureRows::push_words`].
    pub(super) fn push(&mut self, words: &[u64]) -> Result<u32> {
        let range = self.range(CaptureRow::from_words(words).doc_id);
        let rows = &mut self.ranges[range];
        let number = rows.len() as u32;
        rows.push_words(words)?;
        Ok(number)
    }

    /// Returns the capture with the given doc id and number in its range. `scratch` is scratch.
    ///
    /// # Errors
    /// Returns any error of [`CaptureRows::get`].
    pub(super) fn get<'a>(&'a self, doc_id: DocId, number: u32, scratch: &'a mut Vec<u64>) -> Result<CaptureRow<'a>> {
        self.ranges[self.range(doc_id)].get(number as usize, scratch)
    }

    /// Returns the capture with the given doc id and number in its range. Calls must be in
    /// ascending order of doc ids: ranges and parts before the one with `doc_id` release their
    /// memory and disk space.
    ///
    /// # Errors
    /// Returns any error of [`CaptureRows::get`], and any error of the disk to which parts are
    /// written.
    ///
    /// # Cost
    /// Writes and reads each byte of a range on disk once more. Memory: 4 bytes for each capture of
    /// the range, and one part.
    pub(super) fn take<'a>(
        &'a mut self,
        doc_id: DocId,
        number: u32,
        scratch: &'a mut Vec<u64>,
    ) -> Result<CaptureRow<'a>> {
        let range = self.range(doc_id);
        if self.current_range < range {
            self.ranges[self.current_range..range].fill_with(CaptureRows::default);
            (self.current_range, self.parts) = (range, Parts::default());
        }
        if self.parts.rows.is_empty() && self.ranges[range].spilled_bytes() > 0 {
            self.divide(range)?;
        }
        if self.parts.rows.is_empty() {
            return self.ranges[range].get(number as usize, scratch);
        }
        let part = part(self.partitions, [self.ranges.len(), self.parts.rows.len()], doc_id);
        let Parts { rows, current_range: taken_parts, numbers } = &mut self.parts;
        if *taken_parts < part {
            rows[*taken_parts..part].fill_with(CaptureRows::default);
            take_in(&mut rows[part])?;
            *taken_parts = part;
        }
        rows[part].get(numbers[number as usize] as usize, scratch)
    }

    /// Divides a range into parts.
    fn divide(&mut self, range: usize) -> Result<()> {
        let mut rows = std::mem::take(&mut self.ranges[range]);
        let parts = (8 * rows.words() / self.part_bytes + 1).min(MAX_RANGES);
        self.parts.rows = (0..parts).map(|_| rows.like_part(parts)).collect();
        self.parts.numbers.reserve_exact(rows.len());
        let counts = [self.ranges.len(), parts as usize];
        let mut next = 0;
        while next < rows.len() {
            next = rows.pass(next, WORDS_PER_RELEASE, |capture, words| {
                let part = part(self.partitions, counts, capture.doc_id);
                let rows = &mut self.parts.rows[part];
                self.parts.numbers.push(rows.len() as u32);
                rows.push_words(words)
            })?;
        }
        take_in(&mut self.parts.rows[0])
    }
}

/// Returns the part of its range that contains a doc id, given the numbers of ranges and of parts
/// in a range.
fn part(partitions: TablePartitions, [ranges, parts]: [usize; 2], doc_id: DocId) -> usize {
    partitions.range(doc_id, ranges * parts) % parts
}

/// Reads a part into memory, unless it is too long.
fn take_in(part: &mut CaptureRows) -> Result<()> {
    if 8 * part.words() <= MAX_BYTES_IN_MEMORY { part.take_in() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reading::capture::Capture;
    use webtwin_engine::Owners;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn captures_are_found_by_doc_id_in_any_ranges_and_their_files_are_removed(
            doc_ids in prop::collection::vec(prop::sample::select(vec![0u64, 1 << 62, 3 << 61, 1 << 63, u64::MAX]), 0..40),
            count in 1u64..17, workers in 1usize..6, partitions in 0u32..5, on_disk: bool,
            part_bytes in prop::sample::select(vec![1u64 << 18, 1 << 21, 1 << 30])
        ) {
            let partitions = TablePartitions::new(1 << partitions, workers);
            let own_ids: Vec<DocId> = doc_ids.into_iter().filter(|&doc_id| partitions.owner(doc_id) == 0).collect();
            // Each capture fills a sixth of a block.
            let url = format!("http://a.example/{}", "x".repeat(1 << 18));
            let capture = |at: usize| Capture { doc_id: own_ids[at], offset: at as u64, url: url.clone(), ..Capture::default() };
            let mut sent_rows = CaptureRows::new(&webtwin_spill::MemoryPool::default());
            sent_rows.hold_at_most(if on_disk { 0 } else { u64::MAX }).unwrap();
            (0..own_ids.len()).for_each(|at| sent_rows.push(&capture(at)).unwrap());
            let mut captures = ArrivedCaptures::in_ranges(&sent_rows, partitions, count, part_bytes);
            let mut order = Vec::new();
            sent_rows.pass(0, 1 << 40, |capture, words| {
                order.push((capture.doc_id, captures.push(words)?, capture.offset));
                Ok(())
            }).unwrap();
            order.sort_unstable();

            let mut scratch = Vec::new();
            for &(doc_id, number, offset) in &order {
                let row = captures.get(doc_id, number, &mut scratch).unwrap();
                prop_assert_eq!((row.doc_id, row.offset), (doc_id, offset));
            }
            let mut offsets = Vec::new();
            for (doc_id, number, offset) in order {
                let row = captures.take(doc_id, number, &mut scratch).unwrap();
                prop_assert_eq!((row.doc_id, row.offset), (doc_id, offset));
                let range_index = captures.range(doc_id);
                prop_assert!(captures.ranges[..range_index].iter().all(CaptureRows::is_empty));
                let Parts { rows, current_range: taken_parts, .. } = &captures.parts;
                prop_assert!(rows.iter().take(*taken_parts).all(CaptureRows::is_empty));
                offsets.push(offset);
            }
            offsets.sort_unstable();
            prop_assert!(offsets.into_iter().eq(0..own_ids.len() as u64));
        }
    }
}
