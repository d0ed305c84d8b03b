//! Signature of a set: its minimum under each of many permutations of all hashes.

#![cfg_attr(target_arch = "x86_64", allow(unsafe_code))]

use crate::hamming::kernels::Level;
use webtwin_base::ids::splitmix64;

/// Number of permutations that are computed together: as many as fit in the registers of AVX2, with
/// their factors.
const LANES: usize = 32;

/// Permutations of 32-bit hashes: x ↦ (x ⊕ a) · b modulo 2³², with odd b.
///
/// # Examples
/// The fraction of equal minima estimates the resemblance of two sets, which is a half here.
/// ```
/// use webtwin_base::ids::splitmix64;
/// use webtwin_core::minhash::signature::Permutations;
///
/// let hashes: Vec<u32> = (0..200).map(|n| (splitmix64(n) >> 32) as u32).collect();
/// let permutations = Permutations::new(1024);
/// let (mut left, mut right) = (Vec::new(), Vec::new());
/// permutations.signature(&hashes[..100], &mut left);
/// permutations.signature(&hashes, &mut right);
///
/// let equal = left.iter().zip(&right).filter(|(x, y)| x == y).count();
/// assert!((462..562).contains(&equal));
/// ```
#[derive(Debug, Clone)]
pub struct Permutations {
    count: usize,
    /// Factors (a, b) of each permutation, in blocks.
    blocks: Vec<Factors>,
}

#[derive(Debug, Clone, Copy)]
struct Factors {
    a: [u32; LANES],
    b: [u32; LANES],
}

impl Permutations {
    /// Creates the first `count` permutations, which never change between versions.
    pub fn new(count: usize) -> Permutations {
        let factor = |number: usize, which: u64| (splitmix64(2 * number as u64 + which) >> 32) as u32;
        let block = |block: usize| Factors {
            a: std::array::from_fn(|lane| factor(LANES * block + lane, 0)),
            b: std::array::from_fn(|lane| factor(LANES * block + lane, 1) | 1),
        };
        Permutations { count, blocks: (0..count.div_ceil(LANES)).map(block).collect() }
    }

    /// Replaces the content of `into` with the minimum of `set` under each permutation. The minima
    /// of an empty set are `u32::MAX`.
    ///
    /// # Cost
    /// set x permutations; about 10 ns per hash for 128 permutations with AVX2.
    pub fn signature(&self, set: &[u32], into: &mut Vec<u32>) {
        self.signature_at(Level::best(), set, into);
    }

    fn signature_at(&self, level: Level, set: &[u32], into: &mut Vec<u32>) {
        into.clear();
        for factors in &self.blocks {
            into.extend_from_slice(&match level {
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 if level.is_here() => minima_avx512(set, factors),
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 if level.is_here() => minima_avx2(set, factors),
                _ => minima(set, factors),
            });
        }
        into.truncate(self.count);
    }
}

#[inline(always)]
fn minima(set: &[u32], Factors { a, b }: &Factors) -> [u32; LANES] {
    let mut minima = [u32::MAX; LANES];
    for &hash in set {
        for lane in 0..LANES {
            minima[lane] = minima[lane].min((hash ^ a[lane]).wrapping_mul(b[lane]));
        }
    }
    minima
}

#[cfg(target_arch = "x86_64")]
fn minima_avx2(set: &[u32], factors: &Factors) -> [u32; LANES] {
    #[target_feature(enable = "avx2")]
    fn go(set: &[u32], factors: &Factors) -> [u32; LANES] {
        minima(set, factors)
    }
    // SAFETY: the caller has checked that the machine has AVX2.
    unsafe { go(set, factors) }
}

#[cfg(target_arch = "x86_64")]
fn minima_avx512(set: &[u32], factors: &Factors) -> [u32; LANES] {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn go(set: &[u32], factors: &Factors) -> [u32; LANES] {
        minima(set, factors)
    }
    // SAFETY: the caller has checked that the machine has these instructions.
    unsafe { go(set, factors) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_level_finds_the_minima(set in prop::collection::vec(any::<u32>(), 0..70), count in 1usize..140) {
            let permutations = Permutations::new(count);
            let permuted = |number: usize, hash: u32| {
                let Factors { a, b } = &permutations.blocks[number / LANES];
                (hash ^ a[number % LANES]).wrapping_mul(b[number % LANES])
            };
            let minimum = |number| set.iter().map(|&hash| permuted(number, hash)).min().unwrap_or(u32::MAX);
            let plain: Vec<u32> = (0..count).map(minimum).collect();
            for level in Level::all() {
                let mut signature = vec![7];
                permutations.signature_at(level, &set, &mut signature);
                prop_assert_eq!(&signature, &plain, "{:?}", level);
            }
        }
    }

    #[test]
    fn permutations_differ() {
        let blocks = Permutations::new(4096).blocks;
        let factors: BTreeSet<(u32, u32)> = blocks.iter().flat_map(|f| f.a.into_iter().zip(f.b)).collect();
        assert_eq!(factors.len(), 4096);
    }

    /// The fraction of equal minima of many pairs of sets is their resemblance, within four
    /// standard deviations.
    #[test]
    fn agreeing_minima_estimate_the_resemblance() {
        let permutations = Permutations::new(128);
        for (shared, own_count) in [(10u64, 10u64), (50, 25), (80, 10), (5, 0), (1, 1)] {
            let resemblance = shared as f64 / (shared + 2 * own_count) as f64;
            let (mut agree, mut total) = (0, 0);
            let (mut x, mut y) = (Vec::new(), Vec::new());
            for pair in 0..200u64 {
                let hash = |number: u64| (splitmix64(pair << 32 | number) >> 32) as u32;
                let set = |from: u64| (0..shared).chain(from..from + own_count).map(hash).collect::<Vec<u32>>();
                permutations.signature(&set(1000), &mut x);
                permutations.signature(&set(2000), &mut y);
                agree += x.iter().zip(&y).filter(|(x, y)| x == y).count();
                total += x.len();
            }
            let deviation = (resemblance * (1.0 - resemblance) / total as f64).sqrt();
            let deviation_found = (agree as f64 / total as f64 - resemblance).abs();
            assert!(
                deviation_found <= 4.0 * deviation + 1e-12,
                "{shared} shared, {own_count} own: off by {deviation_found}, {deviation}"
            );
        }
    }
}
