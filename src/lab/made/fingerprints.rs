//! Made-up fingerprints for measurements: even, as the paper assumes, and clustered, as simhashes are.
//!
//! The same numbers for the same arguments, everywhere.
//!
//! # Source
//! \[MJS07\] section 4.2 for what clusters look like.

use webtwin_base::ids::splitmix64;

/// `count` sorted fingerprints, spread evenly over the values below 2^bits.
///
/// With 54 bits and 2^23 of them this is a 64-MB chunk of a set of 2^33.
pub fn even(count: usize, bits: u32, seed: u64) -> Vec<u64> {
    let mut fingerprints: Vec<u64> = (0..count as u64).map(|at| random(seed, at) >> (64 - bits)).collect();
    fingerprints.sort_unstable();
    fingerprints
}

/// `count` fingerprints of 64 bits, spread evenly and in no order.
pub fn unsorted(count: usize, seed: u64) -> Vec<u64> {
    (0..count as u64).map(|at| random(seed, at)).collect()
}

/// `count` sorted 64-bit fingerprints: a fifth within 12 bits of one of a thousand centres, a fiftieth of 0 (empty pages),
/// the others even.
pub fn clustered(count: usize, seed: u64) -> Vec<u64> {
    let fingerprint = |at: usize| {
        let value = random(seed, at as u64);
        let centre = if at < count / 5 { splitmix64(value % 1000) } else { 0 };
        if at < count / 5 + count / 50 { flipped(centre, (value >> 32) as u32 % 13, value) } else { value }
    };
    let mut fingerprints: Vec<u64> = (0..count).map(fingerprint).collect();
    fingerprints.sort_unstable();
    fingerprints
}

/// `count` queries, every other one an existing fingerprint, each with 0 to 6 flips.
pub fn queries(existing: &[u64], count: usize, seed: u64) -> Vec<u64> {
    let query = |at: u64| {
        let value = random(!seed, at);
        let known = at.is_multiple_of(2) && !existing.is_empty();
        let base = if known { existing[value as usize % existing.len()] } else { splitmix64(value) };
        flipped(base, at as u32 % 7, value)
    };
    (0..count as u64).map(query).collect()
}

fn random(seed: u64, at: u64) -> u64 {
    splitmix64(splitmix64(seed).wrapping_add(at))
}

/// Flips up to `flips` bits; one that is drawn twice is flipped back.
fn flipped(fingerprint: u64, flips: u32, seed: u64) -> u64 {
    (0..flips).fold(fingerprint, |flipped, flip| flipped ^ 1 << (random(seed, u64::from(flip)) % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_sorted_and_as_wide_as_asked_for() {
        let even = even(10_000, 54, 1);
        assert!(even.is_sorted() && even[9_999] >> 53 == 1);
        let clustered = clustered(10_000, 1);
        let near_zero = clustered.iter().filter(|fingerprint| fingerprint.count_ones() <= 12).count();
        assert!(clustered.is_sorted() && (200..250).contains(&near_zero), "{near_zero}");
    }

    #[test]
    fn every_other_query_is_near_an_existing_fingerprint() {
        let existing = even(1000, 64, 1);
        for (at, query) in queries(&existing, 100, 2).into_iter().enumerate() {
            let least = existing.iter().map(|fingerprint| (fingerprint ^ query).count_ones()).min().unwrap();
            assert_eq!(least <= 6, at % 2 == 0, "{at}: {least}");
        }
    }
}
