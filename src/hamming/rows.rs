//! Fingerprints with their documents on their way to F, and their sort.
//!
//! The sort goes from the highest byte down: rows are dealt into 256 buckets by a byte, and each bucket by the next one, until
//! it is small. A byte that is the same in all rows is passed over, so fingerprints that share their leading bits, as those
//! of one bucket of the space do, cost no more than others; copies of one fingerprint are sorted by document in the same way.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::close_pairs::Item;
use crate::ids::{DocId, SimHash};

/// A fingerprint and a document that has it. Orders by fingerprint, then document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct FingerprintRow {
    /// The fingerprint.
    pub fingerprint: SimHash,
    /// The document.
    pub document: DocId,
}

impl FingerprintRow {
    /// Byte number `at` of the row, from the highest of the fingerprint to the lowest of the document.
    fn byte(&self, at: u32) -> usize {
        let word = if at < 8 { self.fingerprint } else { self.document };
        (word >> (56 - 8 * (at % 8)) & 0xff) as usize
    }
}

/// A distinct fingerprint, and which of the rows in ascending order have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run {
    /// The fingerprint.
    pub fingerprint: SimHash,
    /// Place of the first of its rows.
    pub first: u32,
    /// How many they are.
    pub copies: u32,
}

impl Item for Run {
    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Two runs whose fingerprints are near; a run of several rows is near itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NearRuns {
    /// The one.
    pub x: Run,
    /// The other.
    pub y: Run,
    /// Bits in which they differ.
    pub distance: u32,
}

impl NearRuns {
    /// Whether both are one run.
    pub fn is_one(&self) -> bool {
        self.x.first == self.y.first
    }

    /// Pairs of rows that this stands for.
    pub fn pairs(&self) -> u64 {
        let (x, y) = (u64::from(self.x.copies), u64::from(self.y.copies));
        if self.is_one() { x * (x - 1) / 2 } else { x * y }
    }
}

/// Rows that are sorted by comparing them.
const FEW: usize = 64;

/// Bytes of a row.
const BYTES: u32 = 16;

/// Sorts rows; `scratch` is grown to as many.
///
/// # Cost
/// For each row a copy there and back for each byte that it takes to leave `FEW` rows together: two for ten thousand even
/// fingerprints.
pub fn sort(rows: &mut [FingerprintRow], scratch: &mut Vec<FingerprintRow>) {
    if scratch.len() < rows.len() {
        scratch.resize(rows.len(), FingerprintRow::default());
    }
    sort_from(0, rows, &mut scratch[..rows.len()]);
}

/// Sorts rows that have equal bytes before byte number `at`.
fn sort_from(mut at: u32, rows: &mut [FingerprintRow], scratch: &mut [FingerprintRow]) {
    if rows.len() <= FEW {
        rows.sort_unstable();
        return;
    }
    while at < BYTES {
        let mut ends = [0u32; 256];
        rows.iter().for_each(|row| ends[row.byte(at)] += 1);
        at += 1;
        if ends[rows[0].byte(at - 1)] as usize == rows.len() {
            continue;
        }
        let mut sum = 0;
        for end in &mut ends {
            (*end, sum) = (sum, sum + *end);
        }
        for row in &*rows {
            let place = &mut ends[row.byte(at - 1)];
            scratch[*place as usize] = *row;
            *place += 1;
        }
        rows.copy_from_slice(scratch);
        let mut start = 0;
        for end in ends {
            let bucket = start..end as usize;
            sort_from(at, &mut rows[bucket.clone()], &mut scratch[bucket]);
            start = end as usize;
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::splitmix64;

    proptest! {
        #[test]
        fn rows_come_in_the_order_that_comparing_gives(
            kinds in prop::collection::vec((0u32..4, any::<u64>(), any::<u64>()), 0..40), copies in 1u64..60
        ) {
            let row = |&(kind, x, y): &(u32, u64, u64), copy: u64| match kind {
                0 => FingerprintRow { fingerprint: splitmix64(x ^ copy), document: y },
                1 => FingerprintRow { fingerprint: x, document: splitmix64(y ^ copy) },
                2 => FingerprintRow { fingerprint: 7, document: y % 3 },
                _ => FingerprintRow { fingerprint: copy & 0xff00, document: copy },
            };
            let mut rows: Vec<_> = kinds.iter().flat_map(|kind| (0..copies).map(|copy| row(kind, copy))).collect();
            let mut expected = rows.clone();
            expected.sort_unstable();
            sort(&mut rows, &mut Vec::new());
            prop_assert_eq!(rows, expected);
        }
    }
}
