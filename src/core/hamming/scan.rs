//! Inner loop of an online query: finds the packed numbers that differ from a given one in at most
//! k bits.
//!
//! Numbers of `width` bytes each, 1 to 8, little-endian, are stored without gaps. With AVX-512
//! (VBMI and VPOPCNTDQ) eight numbers are compared at a time, otherwise one.
#![allow(unsafe_code)]

use std::ops::Range;

/// Number of bytes that one load reads.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Returns one of the packed numbers.
///
/// # Panics
/// Panics if there is no such number.
#[inline(always)]
pub fn packed(bytes: &[u8], width: usize, row: usize) -> u64 {
    let from = row * width;
    match bytes.get(from..from + 8) {
        Some(eight) => first(eight, width),
        None => {
            let mut eight = [0; 8];
            eight[..width].copy_from_slice(&bytes[from..from + width]);
            u64::from_le_bytes(eight)
        }
    }
}

#[inline(always)]
fn first(eight: &[u8], width: usize) -> u64 {
    let whole = u64::from_le_bytes(*eight.first_chunk().expect("eight bytes were taken"));
    whole & (u64::MAX >> (64 - 8 * width))
}

/// Appends to `near` those of `rows` whose number differs from `query` in at most `k` bits, in
/// order.
///
/// # Panics
/// Panics if there are no such rows, or if the width is not 1 to 8.
pub fn scan(bytes: &[u8], width: usize, rows: Range<usize>, query: u64, k: u32, near: &mut Vec<usize>) {
    assert!((1..=8).contains(&width) && rows.end <= bytes.len() / width);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f") && has!("avx512bw") && has!("avx512vbmi") && has!("avx512vpopcntdq") && has!("popcnt") {
            // SAFETY: the processor has the instructions.
            return unsafe { scan_avx512(bytes, width, rows, query, k, near) };
        }
        if has!("popcnt") {
            // SAFETY: the processor has the instruction.
            return unsafe { scan_popcnt(bytes, width, rows, query, k, near) };
        }
    }
    scan_plainly(bytes, width, rows, query, k, near);
}

#[inline(always)]
fn scan_plainly(bytes: &[u8], width: usize, rows: Range<usize>, query: u64, k: u32, near: &mut Vec<usize>) {
    near.extend(rows.filter(|&row| (packed(bytes, width, row) ^ query).count_ones() <= k));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn scan_popcnt(bytes: &[u8], width: usize, rows: Range<usize>, query: u64, k: u32, near: &mut Vec<usize>) {
    scan_plainly(bytes, width, rows, query, k, near);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,popcnt")]
fn scan_avx512(bytes: &[u8], width: usize, rows: Range<usize>, query: u64, k: u32, near: &mut Vec<usize>) {
    use std::arch::x86_64::{
        _mm512_cmple_epu64_mask, _mm512_loadu_si512, _mm512_maskz_permutexvar_epi8, _mm512_popcnt_epi64,
        _mm512_set1_epi64, _mm512_xor_si512,
    };
    // Byte b of lane j comes from byte j * width + b of the line if b < width; the other bytes are
    // zero.
    let mut from = [0u8; LINE];
    let mut lane_mask = 0u64;
    for (to, from) in from.iter_mut().enumerate() {
        let (lane, byte) = (to / 8, to % 8);
        if byte < width {
            *from = (lane * width + byte) as u8;
            lane_mask |= 1 << to;
        }
    }
    // SAFETY: both are loads of 64 bytes from arrays of 64 bytes.
    let load = |line: &[u8; LINE]| unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let from = load(&from);
    let (query_lanes, k_lanes) = (_mm512_set1_epi64(query as i64), _mm512_set1_epi64(i64::from(k)));
    let mut row = rows.start;
    while row + 8 <= rows.end {
        let Some(line) = bytes.get(row * width..).and_then(|rest| rest.first_chunk()) else { break };
        let numbers = _mm512_maskz_permutexvar_epi8(lane_mask, from, load(line));
        let differing = _mm512_popcnt_epi64(_mm512_xor_si512(numbers, query_lanes));
        let mut lanes = _mm512_cmple_epu64_mask(differing, k_lanes);
        while lanes != 0 {
            near.push(row + lanes.trailing_zeros() as usize);
            lanes &= lanes - 1;
        }
        row += 8;
    }
    scan_plainly(bytes, width, row..rows.end, query, k, near);
}

/// Prefetches the cache line of a byte that will be read soon.
#[inline(always)]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is that of an existing byte; a prefetch has no effect that a program
        // can observe.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Kernel = fn(&[u8], usize, Range<usize>, u64, u32, &mut Vec<usize>);

    proptest! {
        #[test]
        fn every_kernel_equals_the_plain_loop(
            numbers in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..100),
            query: u64,
            width in 1usize..=8,
            k in 0u32..8,
            cut in (0usize..100, 0usize..100),
        ) {
            let mask = u64::MAX >> (64 - 8 * width);
            // Three in four bits as in the query, then most of them.
            let near = |&(a, b, c): &(u64, u64, u64)| (query ^ (a & b & c & b.rotate_left(9))) & mask;
            let numbers: Vec<u64> = numbers.iter().map(near).collect();
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()[..width].to_vec()).collect();
            let (from, end) = (cut.0.min(numbers.len()), cut.1.min(numbers.len()));
            let rows = from.min(end)..end;
            let scan_with = |scan: Kernel| {
                let mut near = vec![7];
                scan(&bytes, width, rows.clone(), query & mask, k, &mut near);
                near
            };
            let mut expected = vec![7];
            expected.extend(rows.clone().filter(|&row| (numbers[row] ^ (query & mask)).count_ones() <= k));
            prop_assert_eq!(&scan_with(scan), &expected);
            prop_assert_eq!(&scan_with(scan_plainly), &expected);
        }
    }
}
