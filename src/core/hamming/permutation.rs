//! Bit permutation of a table: the bits of its key are on top, the others below, both in their
//! original order.
//!
//! Distances do not change under a permutation of bits, and two fingerprints agree on the key
//! exactly if their permuted forms agree on the top p bits. So in a sorted table of permuted
//! fingerprints, all that agree on the key are next to each other.
//!
//! # Source
//! \[MJS07\] section 3.1, where p_i and pi_i belong to table T_i.
//!
//! # Deviations
//! The paper picks one of the many suitable permutations at random. This one keeps the order of
//! bits within the key and of the other bits, for which processors have an instruction (PEXT), and
//! is the identity for a key of leading bits.
#![allow(unsafe_code)]

/// A permutation of the lowest f bits.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::permutation::Permutation;
///
/// // The low four of eight bits are the key, which comes on top.
/// let permutation = Permutation::new(8, 0x0f);
/// assert_eq!((permutation.top_bits(), permutation.apply(0xa6)), (4, 0x6a));
/// assert_eq!(permutation.invert(0x6a), 0xa6);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    f: u32,
    key: u64,
    low_key: u64,
    runs: Vec<Run>,
}

/// A run of adjacent bits that stay adjacent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    mask: u64,
    from: u32,
    to: u32,
}

impl Permutation {
    /// Creates the permutation of f bits that puts the bits of `key` on top.
    ///
    /// # Panics
    /// Panics if the key has bits above f, or if f is over 64.
    pub fn new(f: u32, key: u64) -> Permutation {
        assert!(f <= 64 && (f == 64 || key >> f == 0), "a key {key:#x} for {f} bits");
        let low_key = !key & if f == 64 { u64::MAX } else { (1 << f) - 1 };
        let mut runs: Vec<Run> = Vec::new();
        let mut to = 0;
        for part in [low_key, key] {
            let mut left = part;
            while left != 0 {
                let from = left.trailing_zeros();
                let length = (left >> from).trailing_ones();
                let mask = if length == 64 { u64::MAX } else { (1 << length) - 1 };
                runs.push(Run { mask, from, to });
                to += length;
                left &= !(mask << from);
            }
        }
        Permutation { f, key, low_key, runs }
    }

    /// Returns p, the number of bits in the key.
    pub fn top_bits(&self) -> u32 {
        self.key.count_ones()
    }

    /// True if the permutation changes no fingerprint.
    pub fn is_identity(&self) -> bool {
        self.runs.iter().all(|run| run.from == run.to)
    }

    /// Returns the permuted form of a fingerprint of f bits.
    pub fn apply(&self, fingerprint: u64) -> u64 {
        let mut permuted = [fingerprint];
        self.apply_all(&mut permuted);
        permuted[0]
    }

    /// Permutes every fingerprint in place.
    pub fn apply_all(&self, fingerprints: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has the instructions.
            unsafe { self.apply_bmi2(fingerprints) };
            return;
        }
        fingerprints.iter_mut().for_each(|fingerprint| *fingerprint = self.apply_by_runs(*fingerprint));
    }

    /// Returns the fingerprint of a permuted form.
    pub fn invert(&self, permuted: u64) -> u64 {
        self.runs.iter().fold(0, |all, run| all | (permuted >> run.to & run.mask) << run.from)
    }

    fn apply_by_runs(&self, fingerprint: u64) -> u64 {
        self.runs.iter().fold(0, |all, run| all | (fingerprint >> run.from & run.mask) << run.to)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi2")]
    fn apply_bmi2(&self, fingerprints: &mut [u64]) {
        use std::arch::x86_64::_pext_u64;
        // If the key has no bits and the rest has all 64, the shift is by 64 bits, which `<<` does
        // not allow.
        let low_bits = self.f - self.top_bits();
        for fingerprint in fingerprints {
            let top = _pext_u64(*fingerprint, self.key).unbounded_shl(low_bits);
            *fingerprint = top | _pext_u64(*fingerprint, self.low_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Permutes bit by bit, as defined in the module documentation.
    fn plain(f: u32, key: u64, fingerprint: u64) -> u64 {
        let is_in_key = |&bit: &u32| key >> bit & 1 == 1;
        let top = (0..f).rev().filter(is_in_key);
        let low = (0..f).rev().filter(|bit| !is_in_key(bit));
        top.chain(low).fold(0, |permuted, bit| permuted << 1 | fingerprint >> bit & 1)
    }

    proptest! {
        #[test]
        fn kernel_runs_and_plain_agree_and_are_undone(f in 1u32..=64, key: u64, other: u64, fingerprint: u64) {
            let width = u64::MAX >> (64 - f);
            for key in [key & width, key & other & width, 0, width] {
                let fingerprint = fingerprint & width;
                let permutation = Permutation::new(f, key);
                let permuted = permutation.apply(fingerprint);
                prop_assert_eq!(permuted, plain(f, key, fingerprint));
                prop_assert_eq!(permutation.apply_by_runs(fingerprint), permuted);
                prop_assert_eq!(permutation.invert(permuted), fingerprint);
            }
        }
    }

    #[test]
    fn leading_bits_as_key_are_the_identity() {
        assert!(Permutation::new(64, 0xffff << 48).is_identity());
        assert!(Permutation::new(32, 0xff << 24).is_identity());
        assert!(!Permutation::new(64, 0xffff << 32).is_identity());
    }
}
