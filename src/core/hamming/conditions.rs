//! Conditions of the batch join: sixteen bits are equal, and another sixteen bits differ in few
//! places.
//!
//! Divide a fingerprint into halves A and B. If A has more than e1 errors and B more than e2, with
//! e1 + e2 = k - 1, then the pair is further apart than k. So within distance k, one half has few
//! errors. Choose 16-bit *keys* of a half such that any e bits of the half miss at least one key.
//! Then in a half with at most e errors some key has no error. The other 16 bits of the half are
//! the *sibling* of the key and contain all errors of the half. So every close pair meets some
//! condition (key equal, sibling within e bits).
//!
//! | e | keys of a half | taken from |
//! |---|---|---|
//! | 0 | 1 | the first word |
//! | 1 | 2 | the two words |
//! | 2 | 6 | two of the four bytes |
//! | 3 | 14 | four of the eight nibbles: the Steiner system S(3, 4, 8) |
//!
//! For e = 0, 1, 2, 3 a random query with the same key meets a condition with probability 1, 17,
//! 137 or 697 in 65,536. Therefore four tables of one-line buckets suffice for k = 3, where the
//! paper needs 16 or 20 tables of whole fingerprints.

use super::design::{BlockDesign, covering, width_mask};

/// Largest distance that has conditions. Beyond it a sibling excludes too few queries.
pub const MAX_K: u32 = 6;

/// A condition of the batch join: the key is equal, and the sibling differs in at most `errors`
/// bits. Key and sibling have 16 bits each and are disjoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Bits that must be equal.
    pub key: u64,
    /// Bits that may differ in at most `errors` places.
    pub sibling: u64,
    /// Maximum number of differing bits in the sibling.
    pub errors: u32,
}

impl Condition {
    /// True if two fingerprints that differ in the bits of `difference` meet the condition.
    pub fn is_met(&self, difference: u64) -> bool {
        difference & self.key == 0 && (difference & self.sibling).count_ones() <= self.errors
    }

    /// Returns the key's bits of a fingerprint, packed.
    pub fn key_of(&self, fingerprint: u64) -> u16 {
        pack(fingerprint, self.key)
    }

    /// Returns the sibling's bits of a fingerprint, packed.
    pub fn sibling_of(&self, fingerprint: u64) -> u16 {
        pack(fingerprint, self.sibling)
    }
}

/// Packs the bits that a mask of 16 bits selects into the low end.
fn pack(value: u64, mask: u64) -> u16 {
    let mut remaining = mask;
    let mut packed = 0;
    for to in 0..16 {
        packed |= ((value >> (remaining.trailing_zeros() & 63) & 1) as u16) << to;
        remaining &= remaining.wrapping_sub(1);
    }
    packed
}

/// Returns the conditions for distance `k`, of which every close pair meets at least one. Their
/// number is 1 for k = 0, and 2, 3, 4, 8, 12, 20 for k from 1 to 6.
///
/// # Panics
/// Panics if `k` is above [`MAX_K`].
///
/// # Examples
/// For k = 3 there are four conditions. Whatever three bits differ, at least one of them is met.
/// ```
/// use webtwin_core::hamming::conditions::conditions;
///
/// let all = conditions(3);
/// let is_met = |difference: u64| all.iter().any(|condition| condition.is_met(difference));
/// assert_eq!(all.len(), 4);
/// assert!(is_met(0b111) && is_met(1 << 60 | 1 << 40 | 1));
/// // Two bits differ in each of the four words.
/// assert!(!is_met(0x0003_0003_0003_0003));
/// ```
pub fn conditions(k: u32) -> Vec<Condition> {
    assert!(k <= MAX_K, "conditions are for distances up to {MAX_K}, not {k}");
    let low = width_mask(32);
    match k.checked_sub(1) {
        None => in_half(low, 0),
        Some(errors) => [in_half(low, errors.div_ceil(2)), in_half(!low, errors / 2)].concat(),
    }
}

/// Returns conditions for one half. A pair with at most `errors` errors among the bits of `half`
/// meets at least one of them.
fn in_half(half: u64, errors: u32) -> Vec<Condition> {
    let keys = match errors {
        0 => BlockDesign { blocks: 2, keys: vec![1] },
        1 => BlockDesign { blocks: 2, keys: vec![1, 2] },
        2 => BlockDesign { blocks: 4, keys: vec![3, 5, 6, 9, 10, 12] },
        _ => covering::steiner(),
    };
    keys.over(half).into_iter().map(|key| Condition { key, sibling: half & !key, errors }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::design::subsets_of_64;
    use super::*;

    #[test]
    fn every_error_pattern_meets_a_condition() {
        let counts = (0..=MAX_K).map(|k| conditions(k).len()).collect::<Vec<_>>();
        assert_eq!(counts, [1, 2, 3, 4, 8, 12, 20]);
        // All patterns of at most k errors. For k = 6 there are 75 million, so only those whose
        // lowest error is in the first byte, and those within one half.
        for k in 0..=5 {
            let conditions = conditions(k);
            for weight in 0..=k {
                for difference in subsets_of_64(64, weight) {
                    assert!(conditions.iter().any(|condition| condition.is_met(difference)), "{k}: {difference:x}");
                }
            }
        }
        let six = conditions(6);
        for difference in subsets_of_64(32, 6).flat_map(|half| [half, half << 32, half << 16]) {
            assert!(six.iter().any(|condition| condition.is_met(difference)), "{difference:x}");
        }
        for (low, high) in (0..=6).map(|low| (low, 6 - low)) {
            for low in subsets_of_64(32, low).step_by(101) {
                for high in subsets_of_64(32, high).step_by(103) {
                    let difference = low | high << 32;
                    assert!(six.iter().any(|condition| condition.is_met(difference)), "{difference:x}");
                }
            }
        }
    }

    #[test]
    fn every_condition_is_necessary() {
        for k in 1..=4 {
            let all_conditions = conditions(k);
            for omitted in 0..all_conditions.len() {
                let fewer =
                    || all_conditions.iter().enumerate().filter(|(i, _)| *i != omitted).map(|(_, condition)| condition);
                let missed = subsets_of_64(64, k).any(|errors| !fewer().any(|condition| condition.is_met(errors)));
                assert!(missed, "k {k}: condition {omitted} is not needed");
            }
        }
    }

    #[test]
    fn key_and_sibling_are_sixteen_bits_each() {
        for condition in (0..=MAX_K).flat_map(conditions) {
            assert_eq!((condition.key.count_ones(), condition.sibling.count_ones()), (16, 16));
            assert_eq!(condition.key & condition.sibling, 0);
        }
        let condition = Condition { key: 0xffff_0000, sibling: 0xffff, errors: 1 };
        assert_eq!((condition.key_of(0x1234_5678), condition.sibling_of(0x1234_5678)), (0x1234, 0x5678));
    }
}
