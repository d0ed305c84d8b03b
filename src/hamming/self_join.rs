//! All pairs of a set of fingerprints that differ in at most k bits.
//!
//! Cut in k + 1 blocks of bits, two such fingerprints agree in at least one block (\[MJS07\] section 3.1, the design with one
//! block chosen). So for each block the fingerprints are sorted by it, and those that agree in it are compared.

use crate::ids::SimHash;

/// The pairs of `fingerprints`, ascending and each once, that differ in at most `k` bits: (place of the one, place of the
/// other, bits), with the smaller place first; ascending.
///
/// # Cost
/// For n uniform fingerprints k + 1 sorts and n² (k + 1) / 2^(64 / (k + 1) + 1) comparisons, or all n² / 2 if that is less.
pub fn within_k(fingerprints: &[SimHash], k: u32) -> Vec<(u32, u32, u32)> {
    let mut found = Vec::new();
    let blocks = k + 1;
    if blocks >= 64 / blocks {
        for (at, &x) in (0..).zip(fingerprints) {
            let near = (at + 1..).zip(&fingerprints[at as usize + 1..]);
            found.extend(near.map(|(other, &y)| (at, other, (x ^ y).count_ones())).filter(|pair| pair.2 <= k));
        }
        return found;
    }
    let masks: Vec<u64> = (0..blocks).map(|block| mask(block, blocks)).collect();
    let mut places: Vec<u32> = (0..fingerprints.len() as u32).collect();
    let of = |place: u32| fingerprints[place as usize];
    for (block, mask) in masks.iter().enumerate() {
        places.sort_unstable_by_key(|&place| (of(place) & mask, place));
        for run in places.chunk_by(|&x, &y| of(x) & mask == of(y) & mask) {
            for (at, &x) in run.iter().enumerate() {
                for &y in &run[at + 1..] {
                    let differ = of(x) ^ of(y);
                    if differ.count_ones() <= k && masks[..block].iter().all(|earlier| differ & earlier != 0) {
                        found.push((x, y, differ.count_ones()));
                    }
                }
            }
        }
    }
    found.sort_unstable();
    found
}

/// Bits of a block: the 64 bits in `blocks` parts of equal length, but for one bit.
fn mask(block: u32, blocks: u32) -> u64 {
    let below = |block: u32| (1u128 << (64 * block / blocks)) - 1;
    (below(block + 1) & !below(block)) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_find_every_pair_within_k_once(
            seeds in prop::collection::vec((any::<u64>(), prop::collection::vec(0u32..64, 0..6)), 0..60), k in 0u32..12
        ) {
            let mut all: Vec<u64> = seeds.iter().map(|seed| seed.0).collect();
            all.extend(seeds.iter().map(|(seed, flips)| flips.iter().fold(*seed, |print, bit| print ^ 1 << bit)));
            all.sort_unstable();
            all.dedup();
            let mut want = Vec::new();
            for (a, x) in (0u32..).zip(&all) {
                for (b, y) in (0u32..).zip(&all).filter(|(b, _)| *b > a) {
                    want.push((a, b, (x ^ y).count_ones()));
                }
            }
            want.retain(|pair| pair.2 <= k);
            prop_assert_eq!(within_k(&all, k), want);
        }
    }
}
