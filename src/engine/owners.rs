//! Ownership of rows: mappings from keys to workers, the same on all workers.

use super::net::Net;
use webtwin_base::ids::splitmix64;

/// Mapping that assigns every key to one worker. Rows with equal keys arrive at the same worker,
/// whichever worker sends them.
pub trait Owners<K> {
    /// Returns the index of the worker that owns `key`.
    fn owner(&self, key: K) -> usize;
}

/// Assignment of keys to workers by ranges of their hash.
///
/// # Cost
/// One hash and one multiplication. Each worker gets about the same number of distinct keys, for
/// any distribution of the keys.
#[derive(Debug, Clone, Copy)]
pub struct HashOwners {
    peers: u64,
}

impl HashOwners {
    /// Returns the mapping for the workers of a run.
    pub fn new(net: &Net<'_>) -> HashOwners {
        HashOwners { peers: net.peers() as u64 }
    }
}

impl<K: Into<u64>> Owners<K> for HashOwners {
    #[inline]
    fn owner(&self, key: K) -> usize {
        ((u128::from(splitmix64(key.into())) * u128::from(self.peers)) >> 64) as usize
    }
}

/// Round-robin assignment of numbers from 0: number n belongs to worker n mod peers, with index n /
/// peers there.
///
/// It suits numbers of parts of about equal size, such as partitions, buckets and stripes.
#[derive(Debug, Clone, Copy)]
pub struct RoundRobin {
    peers: usize,
}

impl RoundRobin {
    /// Returns the mapping for `peers` workers.
    pub fn new(peers: usize) -> RoundRobin {
        RoundRobin { peers }
    }

    /// Returns the number of workers.
    pub fn peers(&self) -> usize {
        self.peers
    }

    /// Returns the index of `number` among the numbers of its owner, from 0.
    #[inline]
    pub fn index(&self, number: usize) -> usize {
        number / self.peers
    }

    /// Returns the number with the given index at `worker`.
    pub fn number(&self, worker: usize, index: usize) -> usize {
        index * self.peers + worker
    }

    /// Returns the maximum count of numbers of one worker, for `count` numbers in total.
    pub fn most(&self, count: usize) -> usize {
        count.div_ceil(self.peers)
    }
}

impl Owners<usize> for RoundRobin {
    #[inline]
    fn owner(&self, number: usize) -> usize {
        number % self.peers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigned_number_is_found_by_owner_and_index() {
        for peers in 1..5 {
            let assignment = RoundRobin::new(peers);
            for number in 0..40 {
                let owner = assignment.owner(number);
                assert!(owner < peers);
                assert_eq!(assignment.number(owner, assignment.index(number)), number);
                assert!(assignment.index(number) < assignment.most(40));
            }
        }
    }

    #[test]
    fn keys_in_a_row_or_with_equal_low_bits_are_spread_evenly() {
        let owners = HashOwners { peers: 4 };
        for step in [1u64, 1 << 32, 1 << 48] {
            let mut keys = [0u32; 4];
            (0..4000u64).for_each(|key| keys[owners.owner(key * step)] += 1);
            assert!(keys.iter().all(|n| (900..1100).contains(n)), "{step}: {keys:?}");
        }
    }
}
