//! Rows of fingerprints and documents, from which F is made, and their sort.
//!
//! The sort first orders rows by their leading bits, a few more than are needed to distinguish as
//! many evenly spread fingerprints, in two stable passes from the lower digit to the higher. Rows
//! that agree in these bits are sorted recursively. Bits that are equal in all rows are skipped, so
//! fingerprints that share their leading bits, as in one bucket of the key space, cost no more than
//! others. Copies of one fingerprint are sorted by document in the same way.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::close_pairs::FingerprintItem;
use webtwin_base::ids::{DocId, SimHash};

/// A fingerprint and a document that has it. Orders by fingerprint, then document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct FingerprintRow {
    /// Fingerprint of the document.
    pub fingerprint: SimHash,
    /// Document that has the fingerprint.
    pub document: DocId,
}

/// A distinct fingerprint, with the range of the sorted rows that have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct FingerprintRun {
    /// Fingerprint of the rows.
    pub fingerprint: SimHash,
    /// Index of the first row.
    pub first: u32,
    /// Number of rows.
    pub copies: u32,
}

impl FingerprintItem for FingerprintRun {
    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Two runs whose fingerprints are near. A run of several rows is also near itself.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::rows::{NearRuns, FingerprintRun};
///
/// let x = FingerprintRun { fingerprint: 0xff, first: 0, copies: 3 };
/// let y = FingerprintRun { fingerprint: 0xfe, first: 3, copies: 4 };
/// assert_eq!(NearRuns { x, y, distance: 1 }.pairs(), 12);
/// // Three rows with one fingerprint are three pairs.
/// assert_eq!(NearRuns { x, y: x, distance: 0 }.pairs(), 3);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C, packed(4))]
pub struct NearRuns {
    /// First run.
    pub x: FingerprintRun,
    /// Second run.
    pub y: FingerprintRun,
    /// Number of bits in which the fingerprints differ.
    pub distance: u32,
}

impl NearRuns {
    /// True if both are the same run.
    pub fn is_one(&self) -> bool {
        self.x.first == self.y.first
    }

    /// Returns the number of pairs of rows that this pair of runs represents.
    pub fn pairs(&self) -> u64 {
        let (x, y) = (u64::from(self.x.copies), u64::from(self.y.copies));
        if self.is_one() { x * (x - 1) / 2 } else { x * y }
    }
}

/// Maximum number of rows that are sorted by comparison.
const COMPARISON_ROWS: usize = 32;

/// Binary logarithm of the number of rows that are sorted within a core's cache, with their
/// scratch. More rows are first distributed by one digit, which divides evenly spread rows into
/// parts of at most half this number if [`DIGIT_BITS`] suffice.
const CACHED_LOG: u32 = 15;

/// Maximum number of bits of that digit. With more bits, the rows would be written to more places
/// in turn than caches can hold.
const DIGIT_BITS: u32 = 5;

/// Number of values of a digit, which has half of the bits by which that number of rows is ordered.
const DIGITS: usize = 1 << (CACHED_LOG + SPARE_BITS).div_ceil(2);

/// Number of bits by which rows are ordered beyond the binary logarithm of their number: one evenly
/// spread row in 32 has the same leading bits as the row before it.
const SPARE_BITS: u32 = 5;

/// Sorts rows. `scratch` is grown to their number.
///
/// # Cost
/// For each of 2^15 evenly spread rows three reads and two copies, and half as much again for 2^20.
pub fn sort(rows: &mut [FingerprintRow], scratch: &mut Vec<FingerprintRow>) {
    if scratch.len() < rows.len() {
        scratch.resize(rows.len(), FingerprintRow::default());
    }
    sort_with(rows, scratch);
}

fn sort_with(rows: &mut [FingerprintRow], scratch: &mut [FingerprintRow]) {
    if rows.len() <= COMPARISON_ROWS {
        rows.sort_unstable();
        return;
    }
    let scratch = &mut scratch[..rows.len()];
    let first = rows[0];
    let differ = |(fingerprints, documents): (u64, u64), row: &FingerprintRow| {
        (fingerprints | row.fingerprint ^ first.fingerprint, documents | row.document ^ first.document)
    };
    match rows.iter().fold((0, 0), differ) {
        (0, 0) => {}
        (0, documents) => sort_by_word(rows, scratch, u64::BITS - documents.leading_zeros(), |row| row.document),
        (fingerprints, _) => {
            sort_by_word(rows, scratch, u64::BITS - fingerprints.leading_zeros(), |row| row.fingerprint)
        }
    }
}

/// Sorts rows that differ at most in the low `width` bits of a word, and differ in the highest of
/// these.
#[inline(always)]
fn sort_by_word(
    rows: &mut [FingerprintRow],
    scratch: &mut [FingerprintRow],
    width: u32,
    word: impl Fn(&FingerprintRow) -> u64 + Copy,
) {
    if rows.len() > 1 << CACHED_LOG {
        let bits = (rows.len().ilog2() + 2 - CACHED_LOG).min(DIGIT_BITS).min(width);
        let digit = move |row: &FingerprintRow| (word(row) >> (width - bits)) as usize & ((1 << bits) - 1);
        let ends = deal(rows, scratch, bits, digit);
        rows.copy_from_slice(scratch);
        let mut start = 0;
        for end in ends {
            sort_with(&mut rows[start..end], &mut scratch[start..end]);
            start = end;
        }
        return;
    }
    let ordered = (rows.len().ilog2() + SPARE_BITS).min(width);
    let (low, low_bits) = (ordered.div_ceil(2), width - ordered);
    let low_digit = move |row: &FingerprintRow| (word(row) >> low_bits) as usize & ((1 << low) - 1);
    let high_digit = move |row: &FingerprintRow| (word(row) >> low_bits >> low) as usize & ((1 << (ordered - low)) - 1);
    let (mut lows, mut highs) = ([0u32; DIGITS], [0u32; DIGITS]);
    for row in &*rows {
        lows[low_digit(row) % DIGITS] += 1;
        highs[high_digit(row) % DIGITS] += 1;
    }
    deal_small(rows, scratch, &mut lows, low_digit);
    deal_small(scratch, rows, &mut highs, high_digit);
    let mut start = 0;
    while start < rows.len() {
        let leading = word(&rows[start]) >> low_bits;
        let end = start + 1 + rows[start + 1..].iter().take_while(|row| word(row) >> low_bits == leading).count();
        if end - start > 1 {
            sort_with(&mut rows[start..end], &mut scratch[start..end]);
        }
        start = end;
    }
}

/// Copies rows to `to` in the order of their digits of `bits` bits, stably. Returns the end of each
/// digit's rows.
#[inline(always)]
fn deal(
    rows: &[FingerprintRow],
    to: &mut [FingerprintRow],
    bits: u32,
    digit: impl Fn(&FingerprintRow) -> usize,
) -> Vec<usize> {
    let mut ends = vec![0; 1 << bits];
    rows.iter().for_each(|row| ends[digit(row)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        (*end, sum) = (sum, sum + *end);
    }
    for row in rows {
        let place = &mut ends[digit(row)];
        to[*place] = *row;
        *place += 1;
    }
    ends
}

/// Copies rows as [`deal`] does, for digits below [`DIGITS`] that are already counted.
#[inline(always)]
fn deal_small(
    rows: &[FingerprintRow],
    to: &mut [FingerprintRow],
    counts: &mut [u32; DIGITS],
    digit: impl Fn(&FingerprintRow) -> usize,
) {
    let mut sum = 0;
    for count in counts.iter_mut() {
        (*count, sum) = (sum, sum + *count);
    }
    for row in rows {
        let place = &mut counts[digit(row) % DIGITS];
        to[*place as usize] = *row;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_base::ids::splitmix64;

    /// A row of one of several kinds: even fingerprints, copies of one fingerprint, copies of few
    /// rows, bits in the middle.
    fn row(&(kind, x, y): &(u32, u64, u64), copy: u64) -> FingerprintRow {
        match kind {
            0 => FingerprintRow { fingerprint: splitmix64(x ^ copy), document: y },
            1 => FingerprintRow { fingerprint: x, document: splitmix64(y ^ copy) },
            2 => FingerprintRow { fingerprint: 7, document: y % 3 },
            _ => FingerprintRow { fingerprint: copy & 0xff00, document: copy },
        }
    }

    fn sorted(mut rows: Vec<FingerprintRow>) -> Vec<FingerprintRow> {
        sort(&mut rows, &mut Vec::new());
        rows
    }

    fn by_comparing(mut rows: Vec<FingerprintRow>) -> Vec<FingerprintRow> {
        rows.sort_unstable();
        rows
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn rows_are_sorted_by_comparison(
            kinds in prop::collection::vec((0u32..4, any::<u64>(), any::<u64>()), 0..40), copies in 1u64..60
        ) {
            let rows: Vec<_> = kinds.iter().flat_map(|kind| (0..copies).map(|copy| row(kind, copy))).collect();
            prop_assert_eq!(sorted(rows.clone()), by_comparing(rows));
        }

        #[test]
        fn rows_beyond_the_cache_size_are_sorted(
            kinds in prop::collection::vec((0u32..4, any::<u64>(), any::<u64>()), 1..4), more in 0u64..1000
        ) {
            let copies = ((3 << CACHED_LOG) + more) / kinds.len() as u64;
            let rows: Vec<_> = kinds.iter().flat_map(|kind| (0..copies).map(|copy| row(kind, copy))).collect();
            prop_assert!(sorted(rows.clone()) == by_comparing(rows));
        }
    }
}
