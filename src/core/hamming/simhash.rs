//! Simhash: a fingerprint made of weighted features, which differs in few bits for similar pages.
//!
//! Every feature hashes to f bits. A bit adds the feature's weight to its component if it is 1, and
//! subtracts it if it is 0; the signs of the f components are the bits of the fingerprint. So the
//! component of bit i is 2 S(i) - W, where S(i) is the weight of the features that have bit i and W
//! the weight of all features.
//!
//! # Source
//! \[MJS07\] section 2.
//!
//! # Deviations
//! - The paper does not define the bit of a component of zero; here it is 0.
//! - An empty page has simhash 0 in the paper, and all of them are near-duplicates (section 4.2).
//!   Here a page with fewer features than a minimum has no simhash.
//! - Sums are stored in bit slices: word p of [`Sums`] holds bit p of all 64 sums, so that a few
//!   operations on words add a feature to 64 sums.

use crate::text::Feature;
use webtwin_base::ids::SimHash;

/// Number of bits of a sum, enough for 2^28 features of the largest weight.
const PLANES: usize = 60;

/// Number of features that are added together.
const BLOCK: usize = 16;

/// 64 sums in bit slices, one for each bit of a feature's hash: the total weight of the features
/// that have the bit.
///
/// # Examples
/// Three features of four bits; the components are +2, -2, +4 and -4, from the highest bit to the
/// lowest.
/// ```
/// use webtwin_core::hamming::simhash::Sums;
/// use webtwin_core::text::Feature;
///
/// let mut sums = Sums::default();
/// sums.add_weighted(&[(0b1010, 3), (0b0110, 2), (0b1001, 1)].map(|(hash, weight)| Feature { hash, weight }));
/// assert_eq!(sums.simhash(4), 0b1010);
/// ```
#[derive(Debug, Clone)]
pub struct Sums {
    planes: [u64; PLANES],
    /// Weight of all features.
    total: u64,
}

impl Default for Sums {
    fn default() -> Self {
        Sums { planes: [0; PLANES], total: 0 }
    }
}

impl Sums {
    /// Adds features by their hashes, each with the weight 2^`plane`.
    pub fn add_all(&mut self, hashes: &[u64], plane: usize) {
        self.total += (hashes.len() as u64) << plane;
        let (blocks, tail) = hashes.as_chunks::<BLOCK>();
        let [mut ones, mut twos, mut fours, mut eights] = [0; 4];
        for h in blocks {
            // A tree of carry-save adders that counts sixteen words into five (Harley and Seal).
            let (a, o) = add(h[0], h[1], ones);
            let (b, o) = add(h[2], h[3], o);
            let (fours_a, t) = add(a, b, twos);
            let (a, o) = add(h[4], h[5], o);
            let (b, o) = add(h[6], h[7], o);
            let (fours_b, t) = add(a, b, t);
            let (eights_a, f) = add(fours_a, fours_b, fours);
            let (a, o) = add(h[8], h[9], o);
            let (b, o) = add(h[10], h[11], o);
            let (fours_a, t) = add(a, b, t);
            let (a, o) = add(h[12], h[13], o);
            let (b, o) = add(h[14], h[15], o);
            let (fours_b, t) = add(a, b, t);
            let (eights_b, f) = add(fours_a, fours_b, f);
            let (sixteens, e) = add(eights_a, eights_b, eights);
            (ones, twos, fours, eights) = (o, t, f, e);
            self.add_word(sixteens, plane + 4);
        }
        for (word, weight) in [ones, twos, fours, eights].into_iter().zip(plane..) {
            self.add_word(word, weight);
        }
        tail.iter().for_each(|&hash| self.add_word(hash, plane));
    }

    /// Adds features of any weight.
    pub fn add_weighted(&mut self, features: &[Feature]) {
        for &Feature { hash, weight } in features {
            self.total += u64::from(weight);
            let mut bits = weight;
            while bits != 0 {
                self.add_word(hash, bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Adds 2^`plane` to the sums whose bit is set in `word`.
    fn add_word(&mut self, word: u64, plane: usize) {
        let (mut carry, mut plane) = (word, plane);
        while carry != 0 {
            let sum = &mut self.planes[plane];
            (*sum, carry) = (*sum ^ carry, *sum & carry);
            plane += 1;
        }
    }

    /// Returns the simhash of `f` bits, 1 to 64, from the low bits of the hashes.
    pub fn simhash(&self, f: u32) -> SimHash {
        // Tests 2 S(i) > W for all i together: S is compared with W / 2 rounded down, from the
        // highest bit to the lowest.
        let half = self.total / 2;
        let (mut greater, mut equal) = (0, u64::MAX);
        for (plane, &sums) in self.planes.iter().enumerate().rev() {
            let half = if half >> plane & 1 == 1 { u64::MAX } else { 0 };
            greater |= equal & sums & !half;
            equal &= !(sums ^ half);
        }
        greater & (u64::MAX >> (64 - f))
    }
}

/// Adds three bits in each of 64 columns. Returns (carries, sums).
fn add(x: u64, y: u64, z: u64) -> (u64, u64) {
    let half = x ^ y;
    (x & y | half & z, half ^ z)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// Computes the simhash as the paper describes it.
    fn by_components(features: &[Feature], f: u32) -> SimHash {
        let mut v = vec![0i64; f as usize];
        for feature in features {
            for (i, component) in v.iter_mut().enumerate() {
                *component += if feature.hash >> i & 1 == 1 { 1 } else { -1 } * i64::from(feature.weight);
            }
        }
        v.iter().enumerate().map(|(i, &component)| u64::from(component > 0) << i).sum()
    }

    fn simhash_of(features: &[Feature], f: u32) -> SimHash {
        let mut sums = Sums::default();
        sums.add_weighted(features);
        sums.simhash(f)
    }

    fn text(sentences: std::ops::Range<u32>) -> Vec<u64> {
        sentences.flat_map(|n| (0..8).map(move |word| xxh3_64(format!("{} {word}", n).as_bytes()))).collect()
    }

    #[test]
    fn near_pages_are_near_and_far_pages_are_far() {
        let distance = |x: &[u64], y: &[u64]| {
            let [x, y] = [x, y].map(|hashes| {
                let mut sums = Sums::default();
                sums.add_all(hashes, 0);
                sums.simhash(64)
            });
            (x ^ y).count_ones()
        };
        assert!(distance(&text(0..200), &text(1..200)) <= 6);
        assert!(distance(&text(0..200), &text(200..400)) >= 18);
    }

    proptest! {
        #[test]
        fn slices_of_bits_equal_the_components_of_the_paper(
            features in prop::collection::vec((any::<u64>(), 1u32..5000), 0..200), f in 1u32..=64
        ) {
            let features: Vec<_> = features.iter().map(|&(hash, weight)| Feature { hash, weight }).collect();
            prop_assert_eq!(simhash_of(&features, f), by_components(&features, f));
        }

        #[test]
        fn whole_blocks_equal_the_components_of_the_paper(
            hashes in prop::collection::vec(any::<u64>(), 0..200), dense: u64, plane in 0usize..5
        ) {
            let hashes: Vec<u64> = hashes.iter().map(|hash| hash | dense).collect();
            let weight = 1 << plane;
            let features: Vec<_> = hashes.iter().map(|&hash| Feature { hash, weight }).collect();
            let mut sums = Sums::default();
            sums.add_all(&hashes, plane);
            prop_assert_eq!(sums.simhash(64), by_components(&features, 64));
        }

        #[test]
        fn order_of_features_does_not_matter(hashes in prop::collection::vec((any::<u64>(), 1u32..99), 1..80), turn in 0usize..80) {
            let mut features: Vec<_> = hashes.iter().map(|&(hash, weight)| Feature { hash, weight }).collect();
            let simhash = simhash_of(&features, 64);
            features.rotate_left(turn % hashes.len());
            features.reverse();
            prop_assert_eq!(simhash_of(&features, 64), simhash);
        }
    }
}
