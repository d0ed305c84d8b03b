//! Inner loops, each in a portable form and in forms for AVX2 and AVX-512, chosen at run time.
//!
//! All forms of a kernel return the same result; [`Level`] selects the form. The portable form is
//! plain Rust and is the reference of the others. Except for `gather`, the AVX2 form is the same
//! source compiled for AVX2.

mod lanes;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use lanes::{Lanes, SIBLING_BITS, Survivor};

use std::sync::OnceLock;

use super::conditions::Condition;

/// Instruction set that a kernel may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Instructions that every machine has.
    Portable,
    /// AVX2 with BMI2.
    Avx2,
    /// AVX-512 with VPOPCNTDQ and BITALG.
    Avx512,
}

impl Level {
    /// Returns the best level of this machine.
    pub fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Level::all().into_iter().rev().find(|level| level.is_here()).unwrap_or(Level::Portable))
    }

    /// Returns all levels, lowest first.
    pub fn all() -> [Level; 3] {
        [Level::Portable, Level::Avx2, Level::Avx512]
    }

    /// True if this machine has the level's instructions.
    pub fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2");
            match self {
                Level::Portable => true,
                Level::Avx2 => avx2,
                Level::Avx512 => {
                    avx2 && is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512vl")
                        && is_x86_feature_detected!("avx512vpopcntdq")
                        && is_x86_feature_detected!("avx512bitalg")
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == Level::Portable
        }
    }

    /// Returns the name of the level for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

/// Packs the bits of each value that `mask` selects into the low end of the corresponding key.
///
/// # Panics
/// Panics if the slices differ in length, or if the mask has more than 32 bits.
pub fn gather(level: Level, values: &[u64], mask: u64, keys: &mut [u32]) {
    assert_eq!(values.len(), keys.len());
    assert!(mask.count_ones() <= 32, "keys have 32 bits");
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 if level.is_here() => x86::gather(values, mask, keys),
        _ => lanes::gather(values, mask, keys),
    }
}

/// Appends to `pairs` the pairs of positions, (left, right, distance), of values at most `k` bits
/// apart, in ascending order.
///
/// # Cost
/// left x right; about 0.1 ns a pair of values with AVX-512.
pub fn cross(level: Level, left: &[u64], right: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 if level.is_here() => x86::cross(left, right, k, pairs),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if level.is_here() => x86::cross_avx2(left, right, k, pairs),
        _ => lanes::cross(left, right, k, pairs),
    }
}

/// Appends the pairs that [`cross`] finds between a list and itself, each pair once, left before
/// right.
pub fn within(level: Level, values: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 if level.is_here() => x86::within(values, k, pairs),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if level.is_here() => x86::within_avx2(values, k, pairs),
        _ => lanes::within(values, k, pairs),
    }
}

/// Appends the positions of the siblings that differ from `sibling` in at most `errors` bits.
///
/// # Cost
/// About 1 ns for 32 siblings with AVX-512.
pub fn scan(level: Level, siblings: &[u16], sibling: u16, errors: u32, near: &mut Vec<u32>) {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 if level.is_here() => x86::scan(siblings, sibling, errors, near),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if level.is_here() => x86::scan_avx2(siblings, sibling, errors, near),
        _ => lanes::scan(siblings, sibling, errors, near),
    }
}

/// Reads the line of each fingerprint. Appends a survivor for each fingerprint whose line has a
/// lane, or the flag, within the condition's errors; positions count from `base`. See
/// [`super::query_tables`] for the content of a line.
pub fn probe(
    level: Level,
    lanes: Lanes,
    lines: &[u16],
    condition: &Condition,
    fingerprints: &[u64],
    base: u32,
    survivors: &mut Vec<Survivor>,
) {
    assert_eq!(lines.len(), lanes.count() << SIBLING_BITS);
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 if level.is_here() => x86::probe(lanes, lines, condition, fingerprints, base, survivors),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if level.is_here() => x86::probe_avx2(lanes, lines, condition, fingerprints, base, survivors),
        _ => lanes::probe(lanes, lines, condition, fingerprints, base, survivors),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conditions::conditions;
    use super::*;
    use proptest::prelude::*;

    fn values(near: bool) -> impl Strategy<Value = Vec<u64>> {
        let bits = if near { 0x0000_0f01_0000_0033 } else { u64::MAX };
        prop::collection::vec(any::<u64>().prop_map(move |value| value & bits), 0..70)
    }

    proptest! {
        #[test]
        fn every_kernel_level_gathers_equally(values in values(false), mask in any::<u64>()) {
            let mut mask = mask;
            while mask.count_ones() > 32 {
                mask &= mask - 1;
            }
            let plain: Vec<u32> = values
                .iter()
                .map(|value| {
                    let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
                    bits.enumerate().fold(0, |key, (to, from)| key | ((value >> from & 1) as u32) << to)
                })
                .collect();
            for level in Level::all() {
                let mut keys = vec![0; values.len()];
                gather(level, &values, mask, &mut keys);
                prop_assert_eq!(&keys, &plain, "{:?}", level);
            }
        }

        #[test]
        fn every_level_finds_the_same_pairs(left in values(true), right in values(true), k in 0u32..7) {
            let mut plain = Vec::new();
            for (i, x) in (0..).zip(&left) {
                for (j, y) in (0..).zip(&right) {
                    let distance = (x ^ y).count_ones();
                    if distance <= k {
                        plain.push((i, j, distance));
                    }
                }
            }
            for level in Level::all() {
                let mut pairs = Vec::new();
                cross(level, &left, &right, k, &mut pairs);
                prop_assert_eq!(&pairs, &plain, "{:?}", level);
                let (mut pairs, mut self_pairs) = (Vec::new(), Vec::new());
                within(level, &left, k, &mut pairs);
                cross(Level::Portable, &left, &left, k, &mut self_pairs);
                self_pairs.retain(|pair| pair.0 < pair.1);
                prop_assert_eq!(&pairs, &self_pairs, "{:?}", level);
            }
        }

        #[test]
        fn every_kernel_level_scans_equally(siblings in prop::collection::vec(0u16..64, 0..100), sibling in 0u16..64, errors in 0u32..4) {
            let near = |place: &usize| (siblings[*place] ^ sibling).count_ones() <= errors;
            let plain: Vec<u32> = (0..siblings.len()).filter(near).map(|place| place as u32).collect();
            for level in Level::all() {
                let mut near = Vec::new();
                scan(level, &siblings, sibling, errors, &mut near);
                prop_assert_eq!(&near, &plain, "{:?}", level);
            }
        }

        #[test]
        fn every_kernel_level_probes_equally(
            fingerprints in prop::collection::vec(any::<u64>(), 0..150),
            lanes in prop::sample::select(vec![Lanes::Eight, Lanes::Sixteen, Lanes::ThirtyTwo]),
            k in 0u32..7,
            seed in any::<u64>(),
        ) {
            let mut lines = vec![0u16; lanes.count() << SIBLING_BITS];
            let flag = |slot: usize| slot % lanes.count() == lanes.count() - 1;
            for (slot, lane) in lines.iter_mut().enumerate() {
                let random = webtwin_base::ids::splitmix64(seed ^ slot as u64);
                // Few distinct bits, so that some lanes are near.
                *lane = if flag(slot) { if random.is_multiple_of(9) { 0 } else { u16::MAX } } else { random as u16 & 0x0f03 };
            }
            let fingerprints: Vec<u64> = fingerprints.iter().map(|value| value & 0x0f03_0f03_0f03_0f03).collect();
            for condition in conditions(k) {
                let mut plain = Vec::new();
                lanes::probe(lanes, &lines, &condition, &fingerprints, 7, &mut plain);
                for level in Level::all() {
                    let mut survivors = Vec::new();
                    probe(level, lanes, &lines, &condition, &fingerprints, 7, &mut survivors);
                    prop_assert_eq!(&survivors, &plain, "{:?} {:?}", level, condition);
                }
                for (at, fingerprint) in (7..).zip(&fingerprints) {
                    let key = condition.key_of(*fingerprint) as usize;
                    let line = &lines[key * lanes.count()..][..lanes.count()];
                    let sibling = condition.sibling_of(*fingerprint);
                    let hits = (0..lanes.count() - 1)
                        .filter(|&lane| (line[lane] ^ sibling).count_ones() <= condition.errors)
                        .fold(u32::from(line[lanes.count() - 1] == 0) << (lanes.count() - 1), |hits, lane| hits | 1 << lane);
                    let message = plain.iter().find(|survivor| survivor.at == at).map_or(0, |survivor| survivor.lanes);
                    prop_assert_eq!(message, hits);
                }
            }
        }
    }
}
