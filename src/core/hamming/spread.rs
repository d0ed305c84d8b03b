//! Even distribution of fingerprints of fewer than 64 bits over 64 bits.
//!
//! The conditions of the batch join divide 64 bits into words. Narrower fingerprints would leave
//! some words empty, and every query in one bucket. After spreading, every word has an equal part
//! of the bits. Distances do not change.

use super::design::width_mask;

/// Table that spreads the bits of an f-bit fingerprint over 64 bits, in their order.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::spread::Spread;
///
/// // Each of the 32 bits becomes the lower one of two bits.
/// let spread = Spread::new(32);
/// assert_eq!(spread.apply(0b1011), 0b0100_0101);
/// ```
pub struct Spread {
    /// Spread bits for each byte of a fingerprint and each value of that byte.
    bytes: Box<[[u64; 256]; 8]>,
}

impl Spread {
    /// Creates the table for fingerprints of `f` bits, 1 to 64.
    pub fn new(f: u32) -> Spread {
        let place = |bit: u32| 1u64 << (bit * 64 / f);
        let mut bytes = Box::new([[0; 256]; 8]);
        for bit in 0..f {
            for value in (0..256).filter(|value| value >> (bit % 8) & 1 == 1) {
                bytes[(bit / 8) as usize][value] |= place(bit);
            }
        }
        Spread { bytes }
    }

    /// Returns the spread fingerprint; bits above f are dropped.
    pub fn apply(&self, fingerprint: u64) -> u64 {
        (0..8).fold(0, |spread, byte| spread | self.bytes[byte][(fingerprint >> (8 * byte) & 0xff) as usize])
    }

    /// Spreads fingerprints of `f` bits in place. Fingerprints of 64 bits do not change.
    pub fn all(f: u32, fingerprints: &mut [u64]) {
        if f < 64 {
            let spread = Spread::new(f);
            fingerprints.iter_mut().for_each(|fingerprint| *fingerprint = spread.apply(*fingerprint & width_mask(f)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_and_distances_are_preserved(f in 1u32..=64, x in any::<u64>(), y in any::<u64>()) {
            let (x, y) = (x & width_mask(f), y & width_mask(f));
            let spread = Spread::new(f);
            let (u, v) = (spread.apply(x), spread.apply(y));
            prop_assert_eq!((u ^ v).count_ones(), (x ^ y).count_ones());
            prop_assert_eq!(u.cmp(&v), x.cmp(&y));
        }
    }

    #[test]
    fn bits_are_spread_evenly_over_words() {
        for f in [16, 24, 32, 48, 60] {
            let spread = Spread::new(f).apply(width_mask(f));
            let shares: Vec<u32> = (0..4).map(|word| (spread >> (16 * word) & 0xffff).count_ones()).collect();
            assert!(shares.iter().all(|share| share.abs_diff(f / 4) <= 1), "{f}: {shares:?}");
        }
    }
}
