//! Rows of `FPrint-DocID` before grouping. Their fingerprints are spread so that equal parts of the
//! key space hold equal numbers of rows.
//!
//! Grouping needs equal fingerprints next to each other, in any order. So a fingerprint is replaced
//! by a bijective function of itself with well mixed leading bits, which determine worker, bucket
//! and position alike. The original fingerprint is never restored.

use bytemuck::{Pod, Zeroable};

use webtwin_base::ids::{FPrint, Page, splitmix64};

/// A row of `FPrint-DocID` of a fixed width. Rows order by key, then page.
pub trait FPrintRow: Pod + Ord + Send {
    /// Creates the row of a fingerprint and a page.
    fn new(fprint: FPrint, doc: Page) -> Self;

    /// Number of leading bits of a key that may be set.
    const KEY_BITS: u32;

    /// Creates the row of a key and a page.
    fn of_key(key: u64, doc: Page) -> Self;

    /// Returns the spread fingerprint; its leading bits are well mixed.
    fn key(&self) -> u64;

    /// Returns the page that has the chunk.
    fn doc(&self) -> Page;
}

/// A row for recipes with 32-bit fingerprints: 8 bytes, as in \[SGM98\] section 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct Row32(u64);

impl FPrintRow for Row32 {
    const KEY_BITS: u32 = 32;

    fn of_key(key: u64, doc: Page) -> Row32 {
        Row32(key & !0xffff_ffff | u64::from(doc))
    }

    fn new(fprint: FPrint, doc: Page) -> Row32 {
        Row32(u64::from((fprint as u32).wrapping_mul(0x9e37_79b1)) << 32 | u64::from(doc))
    }

    fn key(&self) -> u64 {
        self.0 & !0xffff_ffff
    }

    fn doc(&self) -> Page {
        Page(self.0 as u32)
    }
}

/// A row for recipes with 64-bit fingerprints: 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Row64 {
    high: u32,
    low: u32,
    doc: Page,
}

impl FPrintRow for Row64 {
    const KEY_BITS: u32 = 64;

    fn of_key(key: u64, doc: Page) -> Row64 {
        Row64 { high: (key >> 32) as u32, low: key as u32, doc }
    }

    fn new(fprint: FPrint, doc: Page) -> Row64 {
        let key = splitmix64(fprint);
        Row64 { high: (key >> 32) as u32, low: key as u32, doc }
    }

    fn key(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }

    fn doc(&self) -> Page {
        self.doc
    }
}

/// Partition of the key space into equal parts: by worker, then by pass, then by bucket. Passes are
/// processed one after the other.
///
/// # Examples
/// ```
/// use webtwin_core::overlap::rows::KeyShares;
///
/// // Four workers, with eight buckets each.
/// let shares = KeyShares::new(4, 3);
/// assert_eq!((shares.owner(0), shares.bucket(0)), (0, 0));
/// assert_eq!((shares.owner(1 << 63), shares.bucket(1 << 63)), (2, 0));
/// assert_eq!((shares.owner(u64::MAX), shares.bucket(u64::MAX)), (3, 7));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct KeyShares {
    workers: u64,
    pass_bits: u32,
    bucket_bits: u32,
}

impl KeyShares {
    /// Partitions the key space for `workers`, with `2^bucket_bits` buckets for each and one pass.
    pub fn new(workers: usize, bucket_bits: u32) -> KeyShares {
        KeyShares { workers: workers as u64, pass_bits: 0, bucket_bits }
    }

    /// Returns the partition with `2^pass_bits` passes.
    pub fn in_passes(self, pass_bits: u32) -> KeyShares {
        KeyShares { pass_bits, ..self }
    }

    /// Returns the pass that processes a key.
    #[inline]
    pub fn pass(&self, key: u64) -> u64 {
        let within = key.wrapping_mul(self.workers);
        if self.pass_bits == 0 { 0 } else { within >> (64 - self.pass_bits) }
    }

    /// Returns the worker that owns a key.
    #[inline]
    pub fn owner(&self, key: u64) -> usize {
        ((u128::from(key) * u128::from(self.workers)) >> 64) as usize
    }

    /// Returns the bucket of a key at its worker, in its pass.
    #[inline]
    pub fn bucket(&self, key: u64) -> usize {
        let within = key.wrapping_mul(self.workers) << self.pass_bits;
        if self.bucket_bits == 0 { 0 } else { (within >> (64 - self.bucket_bits)) as usize }
    }

    /// Returns the position of a key within its bucket, ascending with the key, spread over 64
    /// bits.
    #[inline]
    fn within(&self, key: u64) -> u64 {
        key.wrapping_mul(self.workers) << (self.pass_bits + self.bucket_bits)
    }
}

/// Sorts the rows of one bucket. `scratch` is a scratch buffer, which is resized to the number of
/// rows.
///
/// # Cost
/// Two passes of a radix sort over enough leading bits to distinguish most rows, and a comparison
/// sort of the few rows that agree in these bits.
pub fn sort_bucket<R: FPrintRow>(rows: &mut [R], scratch: &mut Vec<R>, shares: KeyShares) {
    let bits = (usize::BITS - rows.len().leading_zeros()).clamp(8, 24) & !1;
    if rows.len() < 256 {
        rows.sort_unstable();
        return;
    }
    let half = bits / 2;
    let low = |row: &R| ((shares.within(row.key()) >> (64 - bits)) & ((1 << half) - 1)) as usize;
    let high = |row: &R| (shares.within(row.key()) >> (64 - half)) as usize;
    let mut starts = vec![[0u32; 2]; 1 << half];
    for row in rows.iter() {
        starts[low(row)][0] += 1;
        starts[high(row)][1] += 1;
    }
    let mut start_of_digit = [0; 2];
    for start in &mut starts {
        for pass in 0..2 {
            start_of_digit[pass] += std::mem::replace(&mut start[pass], start_of_digit[pass]);
        }
    }
    scratch.clear();
    scratch.resize(rows.len(), R::zeroed());
    for row in rows.iter() {
        let at = &mut starts[low(row)][0];
        scratch[*at as usize] = *row;
        *at += 1;
    }
    for row in scratch.iter() {
        let at = &mut starts[high(row)][1];
        rows[*at as usize] = *row;
        *at += 1;
    }
    let digits = |row: &R| shares.within(row.key()) >> (64 - bits);
    for equal_rows in rows.chunk_by_mut(|x, y| digits(x) == digits(y)) {
        if equal_rows.len() > 1 {
            equal_rows.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorts<R: FPrintRow + std::fmt::Debug>(fprints: &[u64], workers: usize, (pass_bits, bucket_bits): (u32, u32)) {
        let shares = KeyShares::new(workers, bucket_bits).in_passes(pass_bits);
        let rows: Vec<R> = fprints.iter().zip(0..).map(|(&fprint, doc)| R::new(fprint, Page(doc))).collect();
        let mut sorted_rows: Vec<R> = Vec::new();
        for worker in 0..workers {
            for place in 0..1 << (pass_bits + bucket_bits) {
                let (pass, bucket) = (place >> bucket_bits, place & ((1 << bucket_bits) - 1));
                let place = |key| (shares.owner(key), shares.pass(key), shares.bucket(key));
                let is_own = |row: &&R| place(row.key()) == (worker, pass as u64, bucket);
                let mut actual: Vec<R> = rows.iter().filter(is_own).copied().collect();
                let mut expected = actual.clone();
                sort_bucket(&mut actual, &mut Vec::new(), shares);
                expected.sort();
                assert_eq!(actual, expected);
                sorted_rows.extend(actual);
            }
        }
        // Worker by worker, pass by pass, bucket by bucket: all rows, ascending.
        assert!(sorted_rows.is_sorted() && sorted_rows.len() == rows.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn bucket_is_returned_sorted(
            distinct in 1u64..5_000, rows in 0usize..8_000, seed: u64, workers in 1usize..4,
            bits in (0u32..3, 0u32..4), mixed: bool
        ) {
            let fprint = |n: usize| {
                let number = splitmix64(seed ^ n as u64) % distinct;
                if mixed { splitmix64(number) } else { number }
            };
            let fprints: Vec<u64> = (0..rows).map(fprint).collect();
            sorts::<Row64>(&fprints, workers, bits);
            let narrow: Vec<u64> = fprints.iter().map(|fprint| fprint >> if mixed { 32 } else { 0 }).collect();
            sorts::<Row32>(&narrow, workers, bits);
        }

        #[test]
        fn keys_are_equal_only_for_equal_fingerprints(x: u64, y: u64) {
            prop_assert_eq!(Row64::new(x, Page(0)).key() == Row64::new(y, Page(0)).key(), x == y);
            let (x, y) = (x >> 32, y >> 32);
            prop_assert_eq!(Row32::new(x, Page(0)).key() == Row32::new(y, Page(0)).key(), x == y);
        }
    }

    #[test]
    fn small_fingerprints_are_spread_evenly() {
        let shares = KeyShares::new(3, 4);
        let mut rows = vec![[0u32; 2]; 3 * 16];
        for fprint in 0..48_000 {
            for (kind, key) in
                [Row32::new(fprint, Page(0)).key(), Row64::new(fprint, Page(0)).key()].into_iter().enumerate()
            {
                rows[shares.owner(key) * 16 + shares.bucket(key)][kind] += 1;
            }
        }
        assert!(rows.iter().flatten().all(|n| (800..1200).contains(n)), "{rows:?}");
    }
}
