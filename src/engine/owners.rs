//! Who owns a row: rules from keys to workers, the same on all of them.

use super::net::Net;
use webtwin_base::ids::splitmix64;

/// A rule by which every key belongs to one worker. Rows of one key meet there, whoever sends them.
pub trait Owners<K> {
    /// Index of the worker that owns a key.
    fn owner(&self, key: K) -> usize;
}

/// Keys of any distribution, by ranges of their hash.
///
/// # Cost
/// A hash and a multiplication; equal numbers of distinct keys for each worker, however the keys are distributed.
#[derive(Debug, Clone, Copy)]
pub struct HashOwners {
    peers: u64,
}

impl HashOwners {
    /// The rule for the workers of a run.
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

/// Numbers from 0, dealt out in turn: number n to worker n mod peers, as the one of index n / peers there.
///
/// For numbers of parts that are about equal, such as partitions, buckets and stripes.
#[derive(Debug, Clone, Copy)]
pub struct RoundRobin {
    peers: usize,
}

impl RoundRobin {
    /// The rule for so many workers.
    pub fn new(peers: usize) -> RoundRobin {
        RoundRobin { peers }
    }

    /// Number of workers.
    pub fn peers(&self) -> usize {
        self.peers
    }

    /// Which of its owner's numbers one is, from 0.
    #[inline]
    pub fn index(&self, number: usize) -> usize {
        number / self.peers
    }

    /// The number of an index at a worker.
    pub fn number(&self, worker: usize, index: usize) -> usize {
        index * self.peers + worker
    }

    /// Most numbers of one worker when there are `count`.
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
    fn a_number_dealt_out_is_found_again_by_its_owner_and_index() {
        for peers in 1..5 {
            let dealt = RoundRobin::new(peers);
            for number in 0..40 {
                let owner = dealt.owner(number);
                assert!(owner < peers);
                assert_eq!(dealt.number(owner, dealt.index(number)), number);
                assert!(dealt.index(number) < dealt.most(40));
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
