//! Random numbers that depend only on a seed and a path.
//!
//! A page can be made independently on any worker, because no draw comes from a shared sequence.
//! Each object (crawl, manual, page, sentence) has a key and draws from the stream of that key, and
//! keys are derived from keys.

use webtwin_base::ids::splitmix64;

/// Derives the key of the object at `path` below the object with key `above`.
pub fn key(above: u64, path: &[u64]) -> u64 {
    path.iter().fold(above, |key, &step| splitmix64(splitmix64(key) ^ step))
}

/// SplitMix64 sequence that starts at a key.
#[derive(Debug, Clone)]
pub struct Stream(u64);

impl Stream {
    /// Returns the sequence of the object with a key.
    pub fn new(key: u64) -> Stream {
        Stream(key)
    }

    /// Draws uniformly from all 64-bit numbers.
    pub fn draw(&mut self) -> u64 {
        let number = splitmix64(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        number
    }

    /// Draws uniformly from `0..bound`. `bound` must be at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws from `0..bound` with a strong preference for small numbers: a third of the draws fall
    /// into the first ninth.
    pub fn skewed(&mut self, bound: u64) -> u64 {
        let square = (u128::from(self.draw() >> 32) * u128::from(bound)) >> 32;
        ((u128::from(self.draw() >> 32) * (square + 1)) >> 32) as u64
    }

    /// Returns true with a probability of `percent` per cent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_the_order_of_the_path() {
        assert_ne!(key(1, &[2, 3]), key(1, &[3, 2]));
        assert_eq!(key(1, &[2, 3]), key(key(1, &[2]), &[3]));
    }

    #[test]
    fn draws_stay_below_their_bound_and_reach_all_of_it() {
        let mut stream = Stream::new(7);
        let (mut uniform, mut skewed) = ([0; 9], [0; 9]);
        for _ in 0..9_000 {
            uniform[stream.below(9) as usize] += 1;
            skewed[stream.skewed(9) as usize] += 1;
        }
        assert!(uniform.iter().all(|n| (850..1150).contains(n)), "{uniform:?}");
        assert!(skewed[0] > 2_500 && skewed[8] > 20, "{skewed:?}");
    }
}
