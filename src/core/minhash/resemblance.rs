//! Resemblance of two sets, computed by counting common elements.

/// A threshold of resemblance in millionths, because comparisons are made in whole numbers.
///
/// # Examples
/// ```
/// use webtwin_core::minhash::resemblance::Threshold;
///
/// // Two of four elements are in both sets.
/// let (left, right) = ([1, 2, 3], [2, 3, 4]);
/// assert_eq!(Threshold::new(0.5).reached(&left, &right), Some(0.5));
/// assert_eq!(Threshold::new(0.6).reached(&left, &right), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold(u32);

impl Threshold {
    /// Creates the threshold nearest to a fraction, 0 to 1.
    pub fn new(share: f64) -> Threshold {
        Threshold((share * 1e6).round() as u32)
    }

    /// Returns the threshold as a fraction.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// Returns the minimum number of elements that two sets whose sizes add up to `sum` must share.
    fn required_shared(self, sum: usize) -> usize {
        // shared / (sum - shared) >= t, solved for shared.
        (sum as u128 * u128::from(self.0)).div_ceil(1_000_000 + u128::from(self.0)) as usize
    }

    /// Returns the resemblance of two sets, each ascending, if it reaches the threshold. Empty sets
    /// never do.
    ///
    /// # Cost
    /// One pass over both, which ends early if too many elements have no counterpart.
    pub fn reached(self, left: &[u32], right: &[u32]) -> Option<f64> {
        let shared = self.shared(left, right)?;
        Some(shared as f64 / (left.len() + right.len() - shared) as f64)
    }

    /// Returns the resemblance in millionths, rounded down, if it reaches the threshold. The result
    /// is then never below the threshold.
    pub fn reached_millionths(self, left: &[u32], right: &[u32]) -> Option<u32> {
        let shared = self.shared(left, right)?;
        Some((shared as u64 * 1_000_000 / (left.len() + right.len() - shared) as u64) as u32)
    }

    /// Returns the number of elements in both sets, if it is enough.
    fn shared(self, left: &[u32], right: &[u32]) -> Option<usize> {
        let (smaller, larger) = if left.len() < right.len() { (left, right) } else { (right, left) };
        let min_shared = self.required_shared(smaller.len() + larger.len()).max(1);
        if smaller.len() < min_shared {
            return None;
        }
        let (mut x, mut y, mut shared) = (0, 0, 0);
        while x < smaller.len() && y < larger.len() {
            // The test runs once per stride, so that the inner loop has no branch except its end.
            if shared + smaller.len() - x < min_shared {
                return None;
            }
            let stop = (x + STRIDE).min(smaller.len());
            while x < stop && y < larger.len() {
                let (a, b) = (smaller[x], larger[y]);
                shared += usize::from(a == b);
                x += usize::from(a <= b);
                y += usize::from(b <= a);
            }
        }
        (shared >= min_shared).then_some(shared)
    }
}

/// Number of elements between two tests of whether the threshold can still be reached.
const STRIDE: usize = 32;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn threshold_is_decided_by_the_sets(
            left in prop::collection::btree_set(0u32..120, 0..100), right in prop::collection::btree_set(0u32..120, 0..100),
            thousandths in 0u32..=1000,
        ) {
            let (x, y): (Vec<u32>, Vec<u32>) = (left.iter().copied().collect(), right.iter().copied().collect());
            let shared = left.intersection(&right).count();
            let union = left.union(&right).collect::<BTreeSet<_>>().len();
            let is_reached = shared > 0 && shared * 1000 >= thousandths as usize * union;
            let resemblance = Threshold::new(f64::from(thousandths) / 1000.0).reached(&x, &y);
            prop_assert_eq!(resemblance, is_reached.then(|| shared as f64 / union as f64));
            let millionths = Threshold::new(f64::from(thousandths) / 1000.0).reached_millionths(&x, &y);
            prop_assert_eq!(millionths, is_reached.then(|| (shared * 1_000_000 / union) as u32));
            prop_assert!(millionths.is_none_or(|got| got >= 1000 * thousandths));
        }
    }

    #[test]
    fn a_pair_exactly_at_the_threshold_reaches_it() {
        let (x, y): (Vec<u32>, Vec<u32>) = ((0..20).collect(), (0..11).collect());
        assert_eq!(Threshold::new(0.55).reached(&x, &y), Some(0.55));
        assert_eq!(Threshold::new(0.550001).reached(&x, &y), None);
    }
}
