//! The portable form of the kernels.

use crate::hamming::conditions::Condition;

/// Number of bits of a key, and of a sibling.
pub const SIBLING_BITS: u32 = 16;

/// Number of lanes of a line. All lanes but the last are siblings of the queries in a bucket; the
/// last is the flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// Seven siblings, 16 bytes.
    Eight,
    /// Fifteen siblings, 32 bytes.
    Sixteen,
    /// Thirty-one siblings, a cache line.
    ThirtyTwo,
}

impl Lanes {
    /// Returns the number of lanes of a line, including the flag.
    pub fn count(self) -> usize {
        match self {
            Lanes::Eight => 8,
            Lanes::Sixteen => 16,
            Lanes::ThirtyTwo => 32,
        }
    }
}

/// A fingerprint whose line has a lane within the errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survivor {
    /// Position of the fingerprint.
    pub at: u32,
    /// Bit set of the lanes within the errors; the highest lane of a line is the flag.
    pub lanes: u32,
}

pub(super) fn gather(values: &[u64], mask: u64, keys: &mut [u32]) {
    // Adjacent bits of the mask are moved together.
    let mut runs = Vec::new();
    let (mut remaining, mut to) = (mask, 0);
    while remaining != 0 {
        let from = remaining.trailing_zeros();
        let width = (remaining >> from).trailing_ones();
        runs.push((from, to, super::super::design::width_mask(width)));
        remaining &= !(super::super::design::width_mask(width) << from);
        to += width;
    }
    for (key, value) in keys.iter_mut().zip(values) {
        *key = runs.iter().fold(0, |key, &(from, to, bits)| key | ((value >> from & bits) << to) as u32);
    }
}

#[inline(always)]
pub(super) fn cross(left: &[u64], right: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    for (i, x) in (0..).zip(left) {
        compare_one(i, *x, 0, right, k, pairs);
    }
}

#[inline(always)]
pub(super) fn within(values: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    for (i, x) in values.iter().enumerate() {
        compare_one(i as u32, *x, i as u32 + 1, &values[i + 1..], k, pairs);
    }
}

/// Compares one value with many, whose positions count from `base`.
#[inline(always)]
fn compare_one(i: u32, x: u64, base: u32, others: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    const STEP: usize = 16;
    for (step, ys) in others.chunks(STEP).enumerate() {
        let nearest = ys.iter().fold(64, |nearest, y| nearest.min((x ^ y).count_ones()));
        if nearest <= k {
            for (j, y) in ys.iter().enumerate() {
                let distance = (x ^ y).count_ones();
                if distance <= k {
                    pairs.push((i, base + (step * STEP + j) as u32, distance));
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn scan(siblings: &[u16], sibling: u16, errors: u32, near: &mut Vec<u32>) {
    const STEP: usize = 32;
    for (step, batch) in siblings.chunks(STEP).enumerate() {
        let nearest = batch.iter().fold(16, |nearest, other| nearest.min((other ^ sibling).count_ones()));
        if nearest <= errors {
            let hits = (0..batch.len()).filter(|&at| (batch[at] ^ sibling).count_ones() <= errors);
            near.extend(hits.map(|at| (step * STEP + at) as u32));
        }
    }
}

#[inline(always)]
pub(super) fn probe(
    lanes: Lanes,
    lines: &[u16],
    condition: &Condition,
    fingerprints: &[u64],
    base: u32,
    survivors: &mut Vec<Survivor>,
) {
    match lanes {
        Lanes::Eight => probe_lines::<8>(lines, condition, fingerprints, base, survivors),
        Lanes::Sixteen => probe_lines::<16>(lines, condition, fingerprints, base, survivors),
        Lanes::ThirtyTwo => probe_lines::<32>(lines, condition, fingerprints, base, survivors),
    }
}

#[inline(always)]
fn probe_lines<const L: usize>(
    lines: &[u16],
    condition: &Condition,
    fingerprints: &[u64],
    base: u32,
    survivors: &mut Vec<Survivor>,
) {
    const STEP: usize = 256;
    let (lines, _) = lines.as_chunks::<L>();
    let (mut keys, mut siblings) = ([0; STEP], [0; STEP]);
    for (step, batch) in fingerprints.chunks(STEP).enumerate() {
        gather(batch, condition.key, &mut keys[..batch.len()]);
        gather(batch, condition.sibling, &mut siblings[..batch.len()]);
        for i in 0..batch.len() {
            let hits = hits(&lines[keys[i] as usize], siblings[i] as u16, condition.errors);
            if hits != 0 {
                survivors.push(Survivor { at: base + (step * STEP + i) as u32, lanes: hits });
            }
        }
    }
}

/// Returns the lanes of a line that differ from the sibling in at most `errors` bits. The flag lane
/// is compared with 0.
#[inline(always)]
fn hits<const L: usize>(line: &[u16; L], sibling: u16, errors: u32) -> u32 {
    let mut siblings = [sibling; L];
    siblings[L - 1] = 0;
    let mut different = [0; L];
    for lane in 0..L {
        different[lane] = line[lane] ^ siblings[lane];
    }
    for _ in 0..errors {
        // Each round clears the lowest set bit, so a lane with at most `errors` bits becomes 0.
        different.iter_mut().for_each(|bits| *bits &= bits.wrapping_sub(1));
    }
    if different.iter().fold(u16::MAX, |least, bits| least.min(*bits)) > 0 {
        return 0;
    }
    (0..L).fold(0, |hits, lane| hits | u32::from(different[lane] == 0) << lane)
}
