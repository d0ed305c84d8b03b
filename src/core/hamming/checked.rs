//! Sections whose checksums are verified block by block, each block when it is first read.
//!
//! A query needs a few pages of a mapped index; checking the whole file first would read gigabytes.
//! So a file has a checksum of 4 bytes for each block of 4096 bytes of its sections, and no answer
//! uses a block that does not match its checksum. The checksums are a section themselves, made by
//! [`checks`] from the other sections in order. That section is verified when the file is opened.
//!
//! # Cost
//! One test of a bit for a block that was verified before; one test of a flag for a section that
//! was verified as a whole.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::sections::short_checksum;

/// Number of bytes that share a checksum. A page fault reads as many anyway.
pub const BLOCK: usize = 4096;

/// Size of a checksum in bytes.
pub const CHECK: usize = 4;

/// Returns the checksums of the blocks of `sections`, section by section.
pub fn checks(sections: &[&[u8]]) -> Vec<u8> {
    let blocks = sections.iter().flat_map(|section| section.chunks(BLOCK));
    blocks.flat_map(|block| short_checksum(block).to_le_bytes()).collect()
}

/// Returns the bytes of the checksums of a section of `bytes` bytes.
pub fn checks_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK as u64) * CHECK as u64
}

/// A section of a file, with a record of the blocks that were verified. Threads may share it.
#[derive(Debug)]
pub struct CheckedSection {
    span: Range<usize>,
    /// Range of the section's checksums in the file.
    checks: Range<usize>,
    /// True if the section was verified as a whole.
    whole: AtomicBool,
    /// One bit for each block, set if the block was verified.
    good: Box<[AtomicU64]>,
}

impl CheckedSection {
    /// Describes the sections at `spans`, which follow each other, with checksums at `checks`.
    /// Returns `None` if there are too few or too many checksums.
    pub fn sections<const N: usize>(spans: [Range<usize>; N], checks: Range<usize>) -> Option<[CheckedSection; N]> {
        let mut next = checks.start;
        let sections = spans.map(|span| {
            let start = next;
            next += checks_bytes(span.len() as u64) as usize;
            let good = (0..span.len().div_ceil(BLOCK).div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
            CheckedSection { span, checks: start..next, whole: AtomicBool::new(false), good }
        });
        (next == checks.end).then_some(sections)
    }

    /// Returns the bytes of the section, verified or not.
    #[inline]
    pub fn bytes<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        &file[self.span.clone()]
    }

    /// True if the blocks that contain a range of the section match their checksums. A part of the
    /// range beyond the end of the section is ignored.
    #[inline]
    pub fn is_good(&self, file: &[u8], range: Range<usize>) -> bool {
        self.whole.load(Ordering::Relaxed) || self.blocks_are_good(file, range)
    }

    /// Records that the section was verified as a whole.
    pub fn set_good(&self) {
        self.whole.store(true, Ordering::Relaxed);
    }

    fn blocks_are_good(&self, file: &[u8], range: Range<usize>) -> bool {
        let end = if range.is_empty() { 0 } else { range.end.min(self.span.len()).div_ceil(BLOCK) };
        // Relaxed order suffices: the file is only read, so a set bit publishes no other writes.
        // Two threads may both check a block.
        (range.start / BLOCK..end).all(|block| {
            self.good[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1 || self.check(file, block)
        })
    }

    #[cold]
    fn check(&self, file: &[u8], block: usize) -> bool {
        let section = self.bytes(file);
        let bytes = &section[block * BLOCK..section.len().min((block + 1) * BLOCK)];
        let check = &file[self.checks.clone()][block * CHECK..][..CHECK];
        let is_good = short_checksum(bytes).to_le_bytes() == check;
        if is_good {
            self.good[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
        is_good
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn accepted_bytes_equal_the_written_ones(
            lengths in (0usize..20_000, 0usize..20_000), flips in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            asked in prop::collection::vec((any::<bool>(), 0usize..21_000, 0usize..9000), 1..20)
        ) {
            let bytes = |seed: u64, n: usize| (0..n as u64).map(|at| webtwin_base::ids::splitmix64(seed << 32 | at) as u8).collect::<Vec<u8>>();
            let (first, two) = (bytes(1, lengths.0), bytes(2, lengths.1));
            let checks = checks(&[&first, &two]);
            let (a, b) = (checks.len(), checks.len() + first.len());
            let spans = [a..b, b..b + two.len()];
            prop_assert!(CheckedSection::sections(spans.clone(), 0..a + 1).is_none());
            let written = [checks, first, two].concat();
            let sections = CheckedSection::sections(spans.clone(), 0..a).unwrap();
            let mut file = written.clone();
            if a < file.len() {
                flips.iter().for_each(|flip| file[a + flip.index(written.len() - a)] ^= 0x10);
            }
            for (second, from, length) in asked {
                let (section, span) = (&sections[usize::from(second)], &spans[usize::from(second)]);
                let end = (from + length).min(span.len()).next_multiple_of(BLOCK).min(span.len());
                let touched = span.start + (from / BLOCK * BLOCK).min(end)..span.start + end;
                let is_intact = length == 0 || file[touched.clone()] == written[touched];
                prop_assert_eq!(section.is_good(&file, from..from + length), is_intact);
            }
        }
    }
}
