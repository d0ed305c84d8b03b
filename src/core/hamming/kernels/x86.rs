//! Kernels with the instructions of newer x86 machines.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::lanes::{self, Lanes, SIBLING_BITS, Survivor};
use crate::hamming::conditions::Condition;

/// Distance, in fingerprints, between the prefetch of a line and its use.
const PREFETCH_DISTANCE: usize = 48;

/// Number of fingerprints that share one comparison.
const GROUP: usize = 4;

pub(super) fn gather(values: &[u64], mask: u64, keys: &mut [u32]) {
    #[target_feature(enable = "bmi2")]
    fn go(values: &[u64], mask: u64, keys: &mut [u32]) {
        for (key, value) in keys.iter_mut().zip(values) {
            *key = _pext_u64(*value, mask) as u32;
        }
    }
    // SAFETY: the caller has checked that the machine has BMI2.
    unsafe { go(values, mask, keys) }
}

pub(super) fn cross_avx2(left: &[u64], right: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    #[target_feature(enable = "avx2,popcnt")]
    fn go(left: &[u64], right: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
        lanes::cross(left, right, k, pairs);
    }
    // SAFETY: the caller has checked that the machine has AVX2, and with it POPCNT.
    unsafe { go(left, right, k, pairs) }
}

pub(super) fn within_avx2(values: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    #[target_feature(enable = "avx2,popcnt")]
    fn go(values: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
        lanes::within(values, k, pairs);
    }
    // SAFETY: the caller has checked that the machine has AVX2, and with it POPCNT.
    unsafe { go(values, k, pairs) }
}

pub(super) fn scan_avx2(siblings: &[u16], sibling: u16, errors: u32, near: &mut Vec<u32>) {
    #[target_feature(enable = "avx2,popcnt")]
    fn go(siblings: &[u16], sibling: u16, errors: u32, near: &mut Vec<u32>) {
        lanes::scan(siblings, sibling, errors, near);
    }
    // SAFETY: the caller has checked that the machine has AVX2, and with it POPCNT.
    unsafe { go(siblings, sibling, errors, near) }
}

pub(super) fn scan(siblings: &[u16], sibling: u16, errors: u32, near: &mut Vec<u32>) {
    #[target_feature(enable = "avx512f,avx512bw,avx512bitalg")]
    fn go(siblings: &[u16], sibling: u16, errors: u32, near: &mut Vec<u32>) {
        let (sibling_lanes, limit) = (_mm512_set1_epi16(sibling as i16), _mm512_set1_epi16(errors as i16));
        for (step, batch) in siblings.chunks(32).enumerate() {
            let lanes = u32::MAX >> (32 - batch.len());
            // SAFETY: only the `lanes`, one for each element of the chunk, are read.
            let line = unsafe { _mm512_maskz_loadu_epi16(lanes, batch.as_ptr().cast()) };
            let bits = _mm512_popcnt_epi16(_mm512_xor_si512(line, sibling_lanes));
            let mut hits = _mm512_mask_cmple_epu16_mask(lanes, bits, limit);
            while hits != 0 {
                near.push(step as u32 * 32 + hits.trailing_zeros());
                hits &= hits - 1;
            }
        }
    }
    // SAFETY: the caller has checked that the machine has these instructions.
    unsafe { go(siblings, sibling, errors, near) }
}

pub(super) fn probe_avx2(
    lanes: Lanes,
    lines: &[u16],
    condition: &Condition,
    fingerprints: &[u64],
    base: u32,
    survivors: &mut Vec<Survivor>,
) {
    #[target_feature(enable = "avx2,popcnt")]
    fn go(
        lanes: Lanes,
        lines: &[u16],
        condition: &Condition,
        fingerprints: &[u64],
        base: u32,
        survivors: &mut Vec<Survivor>,
    ) {
        lanes::probe(lanes, lines, condition, fingerprints, base, survivors);
    }
    // SAFETY: the caller has checked that the machine has AVX2, and with it POPCNT.
    unsafe { go(lanes, lines, condition, fingerprints, base, survivors) }
}

pub(super) fn cross(left: &[u64], right: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    // SAFETY: the caller has checked that the machine has these instructions.
    unsafe { cross_go(left, right, k, pairs) }
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn cross_go(left: &[u64], right: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    let limit = _mm512_set1_epi64(i64::from(k));
    let (vectors, tail) = right.as_chunks::<8>();
    let (groups, single) = left.as_chunks::<GROUP>();
    let mut block_hits = Vec::new();
    for (group, xs) in groups.iter().enumerate() {
        block_hits.clear();
        let xs = xs.map(|x| _mm512_set1_epi64(x as i64));
        for (v, ys) in vectors.iter().enumerate() {
            // SAFETY: 64 bytes can be read from a chunk of eight.
            let ys = unsafe { _mm512_loadu_epi64(ys.as_ptr().cast()) };
            let bits = xs.map(|x| _mm512_popcnt_epi64(_mm512_xor_epi64(x, ys)));
            let minimum = _mm512_min_epu64(_mm512_min_epu64(bits[0], bits[1]), _mm512_min_epu64(bits[2], bits[3]));
            if _mm512_cmple_epu64_mask(minimum, limit) != 0 {
                block_hits.push(v);
            }
        }
        // Few vectors have a near value. They are compared again, in the order of the result.
        for (i, x) in (0..).zip(&left[group * GROUP..][..GROUP]) {
            let i = (group * GROUP) as u32 + i;
            for &v in &block_hits {
                near(i, *x, (v * 8) as u32, &vectors[v], k, pairs);
            }
            near(i, *x, (vectors.len() * 8) as u32, tail, k, pairs);
        }
    }
    for (i, x) in (0..).zip(single) {
        compare_one((groups.len() * GROUP) as u32 + i, *x, 0, right, k, pairs);
    }
}

pub(super) fn within(values: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    // SAFETY: the caller has checked that the machine has these instructions.
    unsafe { within_go(values, k, pairs) }
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn within_go(values: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    let (limit, first_pair) = (_mm512_set1_epi64(i64::from(k)), pairs.len());
    for (v, ys) in values.chunks(8).enumerate() {
        let (base, lanes) = (v * 8, u8::MAX >> (8 - ys.len()));
        // SAFETY: only the `lanes`, one for each element of the chunk, are read.
        let vector = unsafe { _mm512_maskz_loadu_epi64(lanes, ys.as_ptr().cast()) };
        let bits = |x: u64| _mm512_popcnt_epi64(_mm512_xor_epi64(_mm512_set1_epi64(x as i64), vector));
        let (groups, _) = values[..base].as_chunks::<GROUP>();
        for (group, xs) in groups.iter().enumerate() {
            let distances = xs.map(bits);
            let minimum = _mm512_min_epu64(
                _mm512_min_epu64(distances[0], distances[1]),
                _mm512_min_epu64(distances[2], distances[3]),
            );
            if _mm512_mask_cmple_epu64_mask(lanes, minimum, limit) != 0 {
                for (i, x) in (group * GROUP..).zip(xs) {
                    near(i as u32, *x, base as u32, ys, k, pairs);
                }
            }
        }
        for (i, x) in ys.iter().enumerate() {
            let later = lanes & (0xfe << i);
            if _mm512_mask_cmple_epu64_mask(later, bits(*x), limit) != 0 {
                near((base + i) as u32, *x, (base + i + 1) as u32, &ys[i + 1..], k, pairs);
            }
        }
    }
    pairs[first_pair..].sort_unstable();
}

/// Compares one value with many, whose positions count from `base`.
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn compare_one(i: u32, x: u64, base: u32, others: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    let (xs, limit) = (_mm512_set1_epi64(x as i64), _mm512_set1_epi64(i64::from(k)));
    for (v, ys) in others.chunks(8).enumerate() {
        let lanes = u8::MAX >> (8 - ys.len());
        // SAFETY: only the `lanes`, one for each element of the chunk, are read.
        let vector = unsafe { _mm512_maskz_loadu_epi64(lanes, ys.as_ptr().cast()) };
        let bits = _mm512_popcnt_epi64(_mm512_xor_epi64(xs, vector));
        if _mm512_mask_cmple_epu64_mask(lanes, bits, limit) != 0 {
            near(i, x, base + (v * 8) as u32, ys, k, pairs);
        }
    }
}

/// Appends those of up to eight `ys` that are near x.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn near(i: u32, x: u64, base: u32, ys: &[u64], k: u32, pairs: &mut Vec<(u32, u32, u32)>) {
    let lanes = !(u32::MAX << ys.len().min(8)) as u8;
    // SAFETY: only the `lanes`, one for each element, are read.
    let vector = unsafe { _mm512_maskz_loadu_epi64(lanes, ys.as_ptr().cast()) };
    let bits = _mm512_popcnt_epi64(_mm512_xor_epi64(_mm512_set1_epi64(x as i64), vector));
    let mut hits = _mm512_mask_cmple_epu64_mask(lanes, bits, _mm512_set1_epi64(i64::from(k)));
    while hits != 0 {
        let lane = hits.trailing_zeros();
        pairs.push((i, base + lane, (x ^ ys[lane as usize]).count_ones()));
        hits &= hits - 1;
    }
}

pub(super) fn probe(
    lanes: Lanes,
    lines: &[u16],
    condition: &Condition,
    fingerprints: &[u64],
    base: u32,
    survivors: &mut Vec<Survivor>,
) {
    let bytes = bytes_of(condition.sibling);
    // SAFETY: the caller has checked that the machine has these instructions.
    unsafe {
        match (lanes, bytes.is_some()) {
            (Lanes::ThirtyTwo, true) => probe_32::<true>(lines, condition, fingerprints, base, survivors),
            (Lanes::ThirtyTwo, false) => probe_32::<false>(lines, condition, fingerprints, base, survivors),
            (Lanes::Sixteen, true) => probe_16::<true>(lines, condition, fingerprints, base, survivors),
            (Lanes::Sixteen, false) => probe_16::<false>(lines, condition, fingerprints, base, survivors),
            (Lanes::Eight, true) => probe_8::<true>(lines, condition, fingerprints, base, survivors),
            (Lanes::Eight, false) => probe_8::<false>(lines, condition, fingerprints, base, survivors),
        }
    }
}

/// Returns the two bytes that a mask consists of, the lower one first, or `None` for a mask of
/// other bits.
fn bytes_of(mask: u64) -> Option<[u8; 2]> {
    let bytes = mask.to_le_bytes();
    let mut whole = (0u8..).zip(bytes).filter(|(_, byte)| *byte == u8::MAX).map(|(at, _)| at);
    Some([whole.next()?, whole.next()?])
}

/// Returns the control of a byte shuffle that puts the sibling of a broadcast fingerprint into
/// every lane except the flag lane.
fn control(sibling: u64, lanes: usize) -> [u8; 64] {
    let two = bytes_of(sibling).unwrap_or_default();
    let mut control = [0; 64];
    control.iter_mut().enumerate().for_each(|(at, byte)| *byte = two[at % 2]);
    // A control byte with the high bit set writes a zero.
    for line in control.chunks_mut(2 * lanes) {
        line[2 * lanes - 2..].fill(0x80);
    }
    control
}

/// Defines the probe for one width of line, from the vector type's operations.
macro_rules! probe_width {
    ($name:ident, $lanes:literal, $broadcast:ident, $spread:ident, $load:ident, $flagless:expr, $shuffle:ident, $xor:ident, $popcnt:ident, $min:ident, $le:ident) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bitalg,bmi2")]
        fn $name<const BYTES: bool>(
            lines: &[u16],
            condition: &Condition,
            fingerprints: &[u64],
            base: u32,
            survivors: &mut Vec<Survivor>,
        ) {
            let (lines, _) = lines.as_chunks::<$lanes>();
            let lines: &[[u16; $lanes]; 1 << SIBLING_BITS] = lines.try_into().expect("a line for each key");
            let control = control(condition.sibling, $lanes);
            // SAFETY: the control is 64 bytes; no vector is longer.
            let control = unsafe { $load(control.as_ptr().cast()) };
            let limit = $spread(condition.errors as i16);
            let key = |fingerprint: u64| _pext_u64(fingerprint, condition.key) as u16 as usize;
            let bits = |fingerprint: u64| {
                let sibling = if BYTES {
                    $shuffle($broadcast(fingerprint as i64), control)
                } else {
                    $flagless(_pext_u64(fingerprint, condition.sibling) as i16)
                };
                // SAFETY: a line is as long as the vector.
                let line = unsafe { $load(lines[key(fingerprint)].as_ptr().cast()) };
                $popcnt($xor(sibling, line))
            };
            let (groups, tail) = fingerprints.as_chunks::<GROUP>();
            for (group, vectors) in groups.iter().enumerate() {
                if let Some(ahead) = groups.get(group + PREFETCH_DISTANCE / GROUP) {
                    for fingerprint in ahead {
                        _mm_prefetch::<_MM_HINT_T0>(lines[key(*fingerprint)].as_ptr().cast());
                    }
                }
                let distances = vectors.map(bits);
                let minimum = $min($min(distances[0], distances[1]), $min(distances[2], distances[3]));
                if $le(minimum, limit) != 0 {
                    for (at, distance) in (0..).zip(distances) {
                        let lanes = $le(distance, limit) as u32;
                        if lanes != 0 {
                            survivors.push(Survivor { at: base + (group * GROUP) as u32 + at, lanes });
                        }
                    }
                }
            }
            for (at, fingerprint) in (0..).zip(tail) {
                let lanes = $le(bits(*fingerprint), limit) as u32;
                if lanes != 0 {
                    survivors.push(Survivor { at: base + (groups.len() * GROUP) as u32 + at, lanes });
                }
            }
        }
    };
}

probe_width!(
    probe_32,
    32,
    _mm512_set1_epi64,
    _mm512_set1_epi16,
    _mm512_loadu_epi8,
    |sibling| _mm512_maskz_set1_epi16(u32::MAX >> 1, sibling),
    _mm512_shuffle_epi8,
    _mm512_xor_si512,
    _mm512_popcnt_epi16,
    _mm512_min_epu16,
    _mm512_cmple_epu16_mask
);
probe_width!(
    probe_16,
    16,
    _mm256_set1_epi64x,
    _mm256_set1_epi16,
    _mm256_loadu_epi8,
    |sibling| _mm256_maskz_set1_epi16(u16::MAX >> 1, sibling),
    _mm256_shuffle_epi8,
    _mm256_xor_si256,
    _mm256_popcnt_epi16,
    _mm256_min_epu16,
    _mm256_cmple_epu16_mask
);
probe_width!(
    probe_8,
    8,
    _mm_set1_epi64x,
    _mm_set1_epi16,
    _mm_loadu_epi8,
    |sibling| _mm_maskz_set1_epi16(u8::MAX >> 1, sibling),
    _mm_shuffle_epi8,
    _mm_xor_si128,
    _mm_popcnt_epi16,
    _mm_min_epu16,
    _mm_cmple_epu16_mask
);
