//! Rows that must meet by a key, in bounded memory: with the owner of the key, in shares of some megabytes.

use bytemuck::Pod;

use crate::dataflow::shuffle::memory_budget::{MemoryBudget, bucket_bits};
use crate::engine::Net;
use crate::error::Result;
use crate::ids::splitmix64;
use crate::overlap::rows::Shares;
use crate::storage::spill::Buckets;

/// The rows whose keys this worker owns, by share: all rows of a key are in one.
pub struct HashPartitions<T> {
    buckets: Buckets<T>,
}

impl<T: Pod + Send> HashPartitions<T> {
    /// Sends rows to the owners of their keys, who lay them down in shares.
    ///
    /// `count` is about how many there are here. One exchange.
    ///
    /// # Errors
    /// [`crate::error::Error::DiskLimit`] or [`crate::error::Error::DiskFull`], the same on all workers, when the disk does not
    /// take what `room` has no memory for; or when the run has ended.
    pub fn laid_down<K: Into<u64>>(
        net: &mut Net<'_>,
        name: &str,
        count: u64,
        rows: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> K,
        room: &MemoryBudget,
    ) -> Result<HashPartitions<T>> {
        let [all] = net.sum(name, [count])?;
        let bits = bucket_bits(all / net.peers() as u64 * size_of::<T>() as u64);
        HashPartitions::with_bits(net, name, bits, rows, key, room)
    }

    /// The same in `2^bits` shares: rows of several kinds that have keys in common meet in shares of the same number.
    ///
    /// # Errors
    /// As [`HashPartitions::laid_down`].
    pub fn with_bits<K: Into<u64>>(
        net: &mut Net<'_>,
        name: &str,
        bits: u32,
        rows: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> K,
        room: &MemoryBudget,
    ) -> Result<HashPartitions<T>> {
        let shares = Shares::new(net.peers(), bits);
        let key = |row: &T| splitmix64(key(row).into());
        let mut buckets = Buckets::new(1 << bits, room.of_worker(net), &room.disk(net));
        net.exchange(
            name,
            rows,
            |row| shares.owner(key(row)),
            |rows| rows.iter().try_for_each(|row| buckets.push(shares.bucket(key(row)), *row)),
        )?;
        Ok(HashPartitions { buckets })
    }

    /// Number of shares.
    pub fn count(&self) -> usize {
        self.buckets.count()
    }

    /// Replaces the content of `into` by the rows of a share, in no particular order, and forgets them.
    ///
    /// # Errors
    /// [`crate::error::Error::Storage`] when the disk fails.
    pub fn take(&mut self, share: usize, into: &mut Vec<T>) -> Result<()> {
        self.buckets.take(share, into)
    }
}
