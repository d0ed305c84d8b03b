//! Synthetic fingerprints for measurements: evenly distributed, as the paper assumes, and
//! clustered, like simhashes.
//!
//! The same arguments yield the same numbers on every machine.
//!
//! # Source
//! \[MJS07\] section 4.2 for the form of clusters.

use webtwin_base::ids::splitmix64;

/// Returns `count` sorted fingerprints, evenly distributed over the values below 2^bits.
///
/// With 54 bits and a count of 2^23 this is a 64-MB chunk of a set of 2^33 fingerprints.
pub fn even(count: usize, bits: u32, seed: u64) -> Vec<u64> {
    let mut fingerprints: Vec<u64> = (0..count as u64).map(|at| random(seed, at) >> (64 - bits)).collect();
    fingerprints.sort_unstable();
    fingerprints
}

/// Returns `count` fingerprints of 64 bits, evenly distributed and in random order.
pub fn unsorted(count: usize, seed: u64) -> Vec<u64> {
    (0..count as u64).map(|at| random(seed, at)).collect()
}

/// Returns `count` sorted 64-bit fingerprints. A fifth is within 12 bits of one of a thousand
/// centres, a fiftieth within 12 bits of 0 (empty pages), and the others are evenly distributed.
pub fn clustered(count: usize, seed: u64) -> Vec<u64> {
    let fingerprint = |number: usize| {
        let value = random(seed, number as u64);
        let centre = if number < count / 5 { splitmix64(value % 1000) } else { 0 };
        if number < count / 5 + count / 50 { with_flips(centre, (value >> 32) as u32 % 13, value) } else { value }
    };
    let mut fingerprints: Vec<u64> = (0..count).map(fingerprint).collect();
    fingerprints.sort_unstable();
    fingerprints
}

/// Returns `count` queries. Every other query is an existing fingerprint; each has 0 to 6 flips.
pub fn queries(fingerprints: &[u64], count: usize, seed: u64) -> Vec<u64> {
    let query = |number: u64| {
        let value = random(!seed, number);
        let is_near = number.is_multiple_of(2) && !fingerprints.is_empty();
        let base = if is_near { fingerprints[value as usize % fingerprints.len()] } else { splitmix64(value) };
        with_flips(base, number as u32 % 7, value)
    };
    (0..count as u64).map(query).collect()
}

fn random(seed: u64, number: u64) -> u64 {
    splitmix64(splitmix64(seed).wrapping_add(number))
}

/// Flips up to `flips` bits. A bit that is drawn twice is flipped back.
fn with_flips(fingerprint: u64, flips: u32, seed: u64) -> u64 {
    (0..flips).fold(fingerprint, |flipped, flip| flipped ^ 1 << (random(seed, u64::from(flip)) % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_sorted_and_have_the_requested_width() {
        let sample = even(10_000, 54, 1);
        assert!(sample.is_sorted() && sample[9_999] >> 53 == 1);
        let clustered = clustered(10_000, 1);
        let near_zero = clustered.iter().filter(|fingerprint| fingerprint.count_ones() <= 12).count();
        assert!(clustered.is_sorted() && (200..250).contains(&near_zero), "{near_zero}");
    }

    #[test]
    fn every_other_query_is_near_an_existing_fingerprint() {
        let fingerprints = even(1000, 64, 1);
        for (number, query) in queries(&fingerprints, 100, 2).into_iter().enumerate() {
            let distance = fingerprints.iter().map(|fingerprint| (fingerprint ^ query).count_ones()).min().unwrap();
            assert_eq!(distance <= 6, number % 2 == 0, "{number}: {distance}");
        }
    }
}
