//! The paper's designs: Example 3.1, and the recurrence X(f, k, d) for the minimum number of
//! tables.
//!
//! # Source
//! \[MJS07\] sections 3.1.1 and 3.1.2.
//!
//! # Deviations
//! - The recurrence is printed with a minimum over r >= k. With r = k no block is exact, which
//!   makes no progress, so r > k is used here.
//! - It is printed with d < tau. With that condition a design whose smallest key has exactly the
//!   permitted number of bits would be rejected, and the recurrence would yield 20, 20, 10 and 10
//!   tables for the p of Example 3.1. With d <= tau it yields the 20, 16, 10 and 4 of the example.
//! - The paper's blocks are real numbers, and [`fewest_tables`] follows that literally.
//!   [`recursive`] builds the design with whole bits, whose smallest key may have a bit or two less
//!   (31 bits for 20 tables, as in the Example).

use std::collections::HashMap;

use super::{TableDesign, lowest, subsets, width_mask};

/// Maximum number of blocks into which a level may be divided. More blocks never resulted in fewer
/// tables for k up to 7.
const MAX_BLOCKS: u32 = 16;

/// Returns the designs of Example 3.1 with 20, 16, 10 and 4 tables for f = 64, k = 3.
///
/// # Examples
/// Fewer tables have shorter keys, so a probe among 2^34 fingerprints finds more of them: 8, 64,
/// 512 or 256K.
/// ```
/// use webtwin_core::hamming::design::paper::example_3_1;
///
/// let designs = example_3_1();
/// assert_eq!(designs.each_ref().map(|design| design.keys.len()), [20, 16, 10, 4]);
/// let found = designs.map(|design| 2f64.powi(34 - design.top_bits() as i32));
/// assert_eq!(found, [8.0, 64.0, 512.0, 262_144.0]);
/// ```
pub fn example_3_1() -> [TableDesign; 4] {
    [&[6u32][..], &[4, 4], &[5], &[4]].map(|splits| TableDesign { f: 64, k: 3, keys: split(u64::MAX, 3, splits) })
}

/// Returns the keys of the design that divides `bits` into `splits[0]` blocks, makes all but `k` of
/// them exact in every way, and divides the remaining k blocks by the next split.
fn split(bits: u64, k: u32, splits: &[u32]) -> Vec<u64> {
    let Some((&blocks, deeper)) = splits.split_first() else { return vec![0] };
    let mut remaining = bits;
    let width = bits.count_ones();
    let blocks: Vec<u64> = (0..blocks)
        .map(|block| {
            let block_bits = lowest(remaining, width / blocks + u32::from(block < width % blocks));
            remaining &= !block_bits;
            block_bits
        })
        .collect();
    let mut keys = Vec::new();
    for exact_blocks in subsets(blocks.len() as u32, blocks.len() as u32 - k) {
        let exact = blocks.iter().enumerate().filter(|(block, _)| exact_blocks >> block & 1 == 1);
        let exact = exact.fold(0, |all, (_, block)| all | block);
        keys.extend(split(bits & !exact, k, deeper).into_iter().map(|key| key | exact));
    }
    keys
}

/// Returns X(f, k, d), the minimum number of tables for 2^d documents if every key must have at
/// least `min_top_bits` bits, and the splits that reach it, outermost first.
///
/// # Cost
/// One step for every sequence of splits that matters; microseconds.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::design::paper::fewest_tables;
///
/// // 2^34 fingerprints of 64 bits, k = 3. One split into four blocks yields keys of 16 bits.
/// assert_eq!(fewest_tables(64, 3, 34.0, 16.0), (4, vec![4]));
/// // For keys of 28 bits, the other 48 bits are split into four blocks again.
/// assert_eq!(fewest_tables(64, 3, 34.0, 28.0), (16, vec![4, 4]));
/// ```
pub fn fewest_tables(f: u32, k: u32, d: f64, min_top_bits: f64) -> (u64, Vec<u32>) {
    // With tau = d - p_min, the condition d - (bits chosen so far) < tau means: bits chosen so far
    // > p_min - epsilon.
    fn go(f: f64, k: u32, d: f64, tau: f64, memo: &mut HashMap<(u64, u64), (u64, Vec<u32>)>) -> (u64, Vec<u32>) {
        if d <= tau + 1e-9 {
            return (1, Vec::new());
        }
        if f < f64::from(k) + 1.0 {
            return (u64::MAX, Vec::new());
        }
        if let Some(cached) = memo.get(&(f.to_bits(), d.to_bits())) {
            return cached.clone();
        }
        let mut best = (u64::MAX, Vec::new());
        for r in k + 1..=MAX_BLOCKS.min(f as u32) {
            let exact = f64::from(r - k) * f / f64::from(r);
            let (inner, splits) = go(f - exact, k, d - exact, tau, memo);
            let tables = binomial(r, k).saturating_mul(inner);
            if tables < best.0 {
                best = (tables, [&[r], &splits[..]].concat());
            }
        }
        memo.insert((f.to_bits(), d.to_bits()), best.clone());
        best
    }
    if k == 0 {
        return (1, vec![1]);
    }
    go(f64::from(f), k, d, d - min_top_bits, &mut HashMap::new())
}

/// Returns the design of [`fewest_tables`] with whole bits, or `None` if no split reaches
/// `min_top_bits`.
pub fn recursive(f: u32, k: u32, d: f64, min_top_bits: f64) -> Option<TableDesign> {
    let (tables, splits) = fewest_tables(f, k, d, min_top_bits);
    (tables < 1 << 16).then(|| TableDesign { f, k, keys: split(width_mask(f), k, &splits) })
}

/// Returns n choose k.
pub fn binomial(n: u32, k: u32) -> u64 {
    if k > n {
        return 0;
    }
    (0..u64::from(k.min(n - k))).fold(1, |product, i| product * (u64::from(n) - i) / (i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recurrence_returns_the_splits_of_the_fewest_tables() {
        assert_eq!(fewest_tables(64, 3, 34.0, 28.0), (16, vec![4, 4]));
        assert_eq!(fewest_tables(64, 3, 34.0, 31.0), (20, vec![6]));
        assert_eq!(fewest_tables(64, 3, 34.0, 32.0), (20, vec![6]));
    }

    #[test]
    fn every_design_of_the_recurrence_misses_nothing() {
        for k in 1..=3 {
            for p in [8.0, 14.0, 20.0, 26.0] {
                let design = recursive(64, k, 34.0, p).unwrap();
                assert!(f64::from(design.top_bits()) >= p - 2.0, "k {k}, p {p}: {}", design.top_bits());
                assert!(design.survives_exhaustively(), "k {k}, p {p}");
            }
        }
    }
}
