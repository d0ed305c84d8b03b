//! Bands: a signature is divided into bands of a few rows, and texts that agree in all rows of some
//! band are candidates.
//!
//! With resemblance s, a band of r rows agrees with probability sʳ, so at least one of b bands
//! agrees with probability 1 − (1 − sʳ)ᵇ: an S-shaped curve in s. More rows reduce false
//! candidates, more bands reduce missed pairs.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use webtwin_job::Minhash;

/// Minimum probability with which a pair at the threshold becomes a candidate.
pub const RECALL: f64 = 0.99;

/// Division of a signature into bands.
///
/// # Examples
/// ```
/// use webtwin_core::minhash::bands::BandLayout;
///
/// let bands = BandLayout::choose(128, 0.8);
/// assert_eq!(bands, BandLayout { bands: 21, rows: 6 });
/// // At the threshold nearly every pair is a candidate, and far below it few pairs are.
/// assert!(bands.probability(0.8) > 0.99);
/// assert!(bands.probability(0.3) < 0.05);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandLayout {
    /// b: number of bands.
    pub bands: u32,
    /// r: number of rows in each band.
    pub rows: u32,
}

impl BandLayout {
    /// Chooses the bands with the most rows that make a pair with resemblance `threshold` a
    /// candidate with probability [`RECALL`], with at most `permutations` rows in total. If there
    /// are none, chooses bands of one row.
    pub fn choose(permutations: u32, threshold: f64) -> BandLayout {
        let layout_of_rows = |rows: u32| BandLayout { bands: permutations / rows, rows };
        let suffices = |bands: &BandLayout| bands.probability(threshold) >= RECALL;
        (1..=permutations).rev().map(layout_of_rows).find(suffices).unwrap_or(layout_of_rows(1))
    }

    /// Returns the bands of a job: those of its settings, or else those of [`BandLayout::choose`].
    pub fn from_settings(settings: &Minhash) -> BandLayout {
        match *settings {
            Minhash { bands: 0, permutations, threshold, .. } => BandLayout::choose(permutations, threshold),
            Minhash { bands, rows, .. } => BandLayout { bands, rows },
        }
    }

    /// Returns the probability that a pair with this resemblance is a candidate.
    pub fn probability(self, resemblance: f64) -> f64 {
        1.0 - (1.0 - resemblance.powf(f64::from(self.rows))).powf(f64::from(self.bands))
    }

    /// Returns the total number of rows.
    pub fn permutations(self) -> usize {
        self.bands as usize * self.rows as usize
    }

    /// Yields a key for each band of a signature. Different bands have equal keys only by chance.
    pub fn keys(self, signature: &[u32]) -> impl Iterator<Item = u64> + '_ {
        let bands = signature.chunks_exact(self.rows as usize).take(self.bands as usize);
        bands.zip(1..).map(|(rows, band)| xxh3_64_with_seed(bytemuck::cast_slice(rows), band))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minhash::signature::Permutations;
    use webtwin_base::ids::splitmix64;

    #[test]
    fn number_of_rows_follows_from_the_recall() {
        let layout_for = |threshold| BandLayout::choose(128, threshold);
        assert_eq!(layout_for(0.8), BandLayout { bands: 21, rows: 6 });
        assert_eq!(layout_for(0.7), BandLayout { bands: 32, rows: 4 });
        assert_eq!(layout_for(1.0), BandLayout { bands: 1, rows: 128 });
        assert_eq!(BandLayout::choose(1, 0.5), BandLayout { bands: 1, rows: 1 });
        for threshold in [0.5, 0.6, 0.7, 0.8, 0.9, 0.95] {
            let bands = layout_for(threshold);
            assert!(bands.probability(threshold) >= RECALL && bands.permutations() <= 128);
            let next = BandLayout { bands: 128 / (bands.rows + 1), rows: bands.rows + 1 };
            assert!(next.probability(threshold) < RECALL);
        }
    }

    /// The number of candidates among many pairs with one resemblance agrees with theory within
    /// four standard deviations.
    #[test]
    fn number_of_candidates_equals_theory() {
        let bands = BandLayout::choose(128, 0.8);
        let permutations = Permutations::new(bands.permutations());
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for (shared, own_count) in [(40u64, 40u64), (50, 25), (60, 15), (70, 10), (80, 10), (90, 5)] {
            let expected = bands.probability(shared as f64 / (shared + 2 * own_count) as f64);
            let pairs = 1000;
            let mut collisions = 0;
            for pair in 0..pairs {
                let hash = |number: u64| (splitmix64(pair << 32 | number) >> 32) as u32;
                let set = |from: u64| (0..shared).chain(from..from + own_count).map(hash).collect::<Vec<u32>>();
                permutations.signature(&set(1000), &mut x);
                permutations.signature(&set(2000), &mut y);
                collisions += u32::from(bands.keys(&x).zip(bands.keys(&y)).any(|(x, y)| x == y));
            }
            let deviation = (expected * (1.0 - expected) / pairs as f64).sqrt();
            let share = f64::from(collisions) / pairs as f64;
            assert!(
                (share - expected).abs() <= 4.0 * deviation + 1e-3,
                "{shared}, {own_count}: {share}, not {expected}"
            );
        }
    }
}
