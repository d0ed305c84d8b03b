//! Rows that must meet by a key, in bounded memory: with the owner of the key, in shares of some megabytes.

use bytemuck::Pod;

use crate::shuffle::memory_budget::{BUCKET_BYTES, MemoryBudget, bucket_bits};
use webtwin_base::error::Result;
use webtwin_base::ids::splitmix64;
use webtwin_core::overlap::rows::Shares;
use webtwin_engine::Net;
use webtwin_storage::spill::Buckets;

/// The rows whose keys this worker owns, by share: all rows of a key are in one.
pub struct HashPartitions<T> {
    buckets: Buckets<T>,
}

impl<T: Pod + Send> HashPartitions<T> {
    /// Sends rows to the owners of their keys, who lay them down in shares.
    ///
    /// `count` is about how many there are here. One round where they take no more than a share with every worker, for these
    /// wait with their owners until it is known how many shares there are; otherwise two.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::DiskLimit`] or [`webtwin_base::error::Error::DiskFull`], the same on all workers, when the disk does not
    /// take what `room` has no memory for; or when the run has ended.
    ///
    /// # Memory
    /// What `room` allows, and up to [`BUCKET_BYTES`] from each worker while rows wait.
    pub fn laid_down<K: Into<u64>>(
        net: &mut Net<'_>,
        name: &str,
        count: u64,
        rows: impl IntoIterator<Item = T>,
        key: impl Fn(&T) -> K,
        room: &MemoryBudget,
    ) -> Result<HashPartitions<T>> {
        let is_few = |count: u64| count * size_of::<T>() as u64 <= BUCKET_BYTES;
        let hash = |row: &T| splitmix64(key(row).into());
        let mut rows = rows.into_iter();
        let few = is_few(count).then(|| rows.by_ref()).into_iter().flatten();
        let (owners, mut waiting) = (Shares::new(net.peers(), 0), Vec::new());
        let counts = net.exchange_telling(
            name,
            count,
            few,
            |row| owners.owner(hash(row)),
            |rows| {
                waiting.extend_from_slice(rows);
                Ok(())
            },
        )?;
        let bits = bucket_bits(counts.iter().sum::<u64>() / net.peers() as u64 * size_of::<T>() as u64);
        let mut partitions = HashPartitions::empty(net, bits, 1, room);
        let shares = Shares::new(net.peers(), bits);
        partitions.lay_down(&waiting, hash, &shares)?;
        if !counts.into_iter().all(is_few) {
            partitions.receive(net, name, rows, hash, shares)?;
        }
        Ok(partitions)
    }

    /// The same in `2^bits` shares here: rows of several kinds that have keys in common meet in shares of the same number. Other
    /// workers may have other numbers of shares.
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
        let mut partitions = HashPartitions::empty(net, bits, 1, room);
        let hash = |row: &T| splitmix64(key(row).into());
        partitions.receive(net, name, rows, hash, Shares::new(net.peers(), bits))?;
        Ok(partitions)
    }

    /// One of so many kinds of rows that share the room.
    fn empty(net: &Net<'_>, bits: u32, kinds: u64, room: &MemoryBudget) -> HashPartitions<T> {
        let bytes = room.of_buckets(net, kinds, 1 << bits);
        HashPartitions { buckets: Buckets::new(1 << bits, bytes, &room.parted(kinds).disk(net)) }
    }

    fn receive(
        &mut self,
        net: &mut Net<'_>,
        name: &str,
        rows: impl IntoIterator<Item = T>,
        hash: impl Fn(&T) -> u64,
        shares: Shares,
    ) -> Result<()> {
        net.exchange(name, rows, |row| shares.owner(hash(row)), |rows| self.lay_down(rows, &hash, &shares))
    }

    fn lay_down(&mut self, rows: &[T], hash: impl Fn(&T) -> u64, shares: &Shares) -> Result<()> {
        rows.iter().try_for_each(|row| self.buckets.push(shares.bucket(hash(row)), *row))
    }

    /// Rows in all shares.
    pub fn rows(&self) -> u64 {
        self.buckets.rows()
    }

    /// Number of shares.
    pub fn count(&self) -> usize {
        self.buckets.count()
    }

    /// Replaces the content of `into` by the rows of a share, in no particular order, and forgets them.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Storage`] when the disk fails.
    pub fn take(&mut self, share: usize, into: &mut Vec<T>) -> Result<()> {
        self.buckets.take(share, into)
    }

    /// The same, and they stay.
    ///
    /// # Errors
    /// As [`HashPartitions::take`].
    pub fn read(&self, share: usize, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        self.buckets.each_piece(share, &mut Vec::new(), |rows| into.extend_from_slice(rows))
    }
}

/// Whether rows with this key meet with this worker, in whatever shares.
pub fn is_own(net: &Net<'_>, key: impl Into<u64>) -> bool {
    Shares::new(net.peers(), 0).owner(splitmix64(key.into())) == net.index()
}

/// Rows of two kinds that have keys in common, as [`HashPartitions::with_bits`] lays them down, each in half of `room`. One round.
///
/// # Errors
/// As [`HashPartitions::laid_down`].
pub fn two_with_bits<T: Pod + Send, U: Pod + Send, K: Into<u64>>(
    net: &mut Net<'_>,
    (name, bits): (&str, u32),
    (first, first_key): (impl IntoIterator<Item = T>, impl Fn(&T) -> K),
    (second, second_key): (impl IntoIterator<Item = U>, impl Fn(&U) -> K),
    room: &MemoryBudget,
) -> Result<(HashPartitions<T>, HashPartitions<U>)> {
    let shares = Shares::new(net.peers(), bits);
    let (mut of_first, mut of_second) =
        (HashPartitions::empty(net, bits, 2, room), HashPartitions::empty(net, bits, 2, room));
    let first_hash = |row: &T| splitmix64(first_key(row).into());
    let second_hash = |row: &U| splitmix64(second_key(row).into());
    net.exchange_two(
        name,
        (first, |row| shares.owner(first_hash(row)), |rows| of_first.lay_down(rows, first_hash, &shares)),
        (second, |row| shares.owner(second_hash(row)), |rows| of_second.lay_down(rows, second_hash, &shares)),
    )?;
    Ok((of_first, of_second))
}
