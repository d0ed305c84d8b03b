//! Hash-partitions rows by key in bounded memory. Each worker receives the keys that it owns, in
//! partitions of some megabytes.

use bytemuck::Pod;
use itertools::Itertools;

use super::packed::PackedRow;
use super::packed_links::{each_link, packed_links};
use webtwin_base::error::Result;
use webtwin_base::ids::{Page, splitmix64};
use webtwin_core::overlap::rows::KeyShares;
use webtwin_engine::{Net, TryIntoRow};
use webtwin_spill::{PARTITION_BYTES, Partitions, ReleaseOnDrop, partition_bits};

/// Rows whose keys this worker owns, by partition. All rows with the same key are in one partition.
pub struct HashPartitions<T> {
    partitions: Partitions<T>,
    /// Returns free memory to the system on drop. Otherwise the next step would lack the memory of
    /// many rows.
    _release: ReleaseOnDrop,
}

/// Partitioning that several kinds of rows with common keys share, so that rows with the same key
/// are in partitions with the same number.
#[derive(Debug, Clone, Copy)]
pub struct CommonPartitions {
    /// Number of partitions on this worker, as a power of two. Other workers may have other numbers
    /// of partitions.
    pub bits: u32,
    /// Number of kinds of rows that share the memory budget of the step.
    pub kinds: u64,
}

impl<T: Pod + Send> HashPartitions<T> {
    /// Sends rows to the owners of their keys.
    ///
    /// `count` is the approximate number of rows on this worker. Takes one round if the rows of
    /// every worker fit into a partition: these rows wait at their owners until the number of
    /// partitions is known. Otherwise takes two rounds.
    ///
    /// # Errors
    /// Returns the first error of `rows`. Returns [`webtwin_base::error::Error::DiskLimit`] or
    /// [`webtwin_base::error::Error::DiskFull`], the same on all workers, if rows beyond the memory
    /// budget do not fit on the disk. Also fails if the run has ended.
    ///
    /// # Memory
    /// Takes the budget of the step, and up to 4 MiB from each worker while rows wait.
    pub fn new<K: Into<u64>>(
        net: &mut Net<'_>,
        name: &str,
        count: u64,
        rows: impl IntoIterator<Item: TryIntoRow<T>>,
        key: impl Fn(&T) -> K,
    ) -> Result<HashPartitions<T>> {
        HashPartitions::one_of(net, name, 1, count, rows, key)
    }

    /// Sends rows to the owners of their keys, like [`HashPartitions::new`], if `kinds` kinds of
    /// rows share the memory budget of the step.
    ///
    /// # Errors
    /// Returns any error of [`HashPartitions::new`].
    pub fn one_of<K: Into<u64>>(
        net: &mut Net<'_>,
        name: &str,
        kinds: u64,
        count: u64,
        rows: impl IntoIterator<Item: TryIntoRow<T>>,
        key: impl Fn(&T) -> K,
    ) -> Result<HashPartitions<T>> {
        let is_few = |count: u64| count * size_of::<T>() as u64 <= PARTITION_BYTES;
        let hash = |row: &T| splitmix64(key(row).into());
        let mut rows = rows.into_iter();
        let few_rows = is_few(count).then(|| rows.by_ref()).into_iter().flatten();
        let (owners, mut waiting) = (KeyShares::new(net.peers(), 0), Vec::new());
        let counts = net.exchange_with_reports(
            name,
            count,
            few_rows,
            |row| owners.owner(hash(row)),
            |rows| {
                waiting.extend_from_slice(rows);
                Ok(())
            },
        )?;
        let bits = partition_bits::<T>(counts.iter().sum::<u64>() / net.peers() as u64);
        let mut partitions = HashPartitions::empty(net, CommonPartitions { bits, kinds });
        let shares = KeyShares::new(net.peers(), bits);
        partitions.put(&waiting, hash, &shares)?;
        if !counts.into_iter().all(is_few) {
            net.exchange_into(name, rows, |row| shares.owner(hash(row)), |rows| partitions.put(rows, hash, &shares))?;
        }
        Ok(partitions)
    }

    /// Sends rows to the owners of their keys, in the same partitioning as other rows. Takes one
    /// round.
    ///
    /// # Errors
    /// Returns any error of [`HashPartitions::new`].
    pub fn alike<K: Into<u64>>(
        net: &mut Net<'_>,
        name: &str,
        partitioning: CommonPartitions,
        rows: impl IntoIterator<Item: TryIntoRow<T>>,
        key: impl Fn(&T) -> K,
    ) -> Result<HashPartitions<T>> {
        let mut partitions = HashPartitions::empty(net, partitioning);
        let shares = KeyShares::new(net.peers(), partitioning.bits);
        let hash = |row: &T| splitmix64(key(row).into());
        net.exchange_into(name, rows, |row| shares.owner(hash(row)), |rows| partitions.put(rows, hash, &shares))?;
        Ok(partitions)
    }

    /// Creates empty partitions in the same partitioning as other rows, for rows that a worker
    /// derives from these, partition by partition.
    pub fn empty(net: &Net<'_>, CommonPartitions { bits, kinds }: CommonPartitions) -> HashPartitions<T> {
        HashPartitions {
            partitions: Partitions::new(1 << bits, &net.memory.for_partitions(kinds, bits)),
            _release: net.memory.release_on_drop(),
        }
    }

    /// Adds a row of this worker to a partition.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn push(&mut self, partition: usize, row: T) -> Result<()> {
        self.partitions.push(partition, row)
    }

    /// Returns all rows, one partition after the other, and keeps them.
    pub fn iter(&self) -> impl Iterator<Item = Result<T>> + '_ {
        let rows_of = |partition| {
            let mut rows = Vec::new();
            self.read(partition, &mut rows).map(|()| rows)
        };
        (0..self.count()).map(rows_of).flatten_ok()
    }

    fn put(&mut self, rows: &[T], hash: impl Fn(&T) -> u64, shares: &KeyShares) -> Result<()> {
        rows.iter().try_for_each(|row| self.partitions.push(shares.bucket(hash(row)), *row))
    }

    /// Returns the number of rows in all partitions.
    pub fn rows(&self) -> u64 {
        self.partitions.rows()
    }

    /// Returns the number of partitions.
    pub fn count(&self) -> usize {
        self.partitions.count()
    }

    /// Replaces the content of `into` by the rows of a partition, in no particular order, and
    /// removes the rows from the partition.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails.
    pub fn take(&mut self, partition: usize, into: &mut Vec<T>) -> Result<()> {
        self.partitions.take(partition, into)
    }

    /// Replaces the content of `into` by the rows of a partition, in no particular order, and keeps
    /// the rows.
    ///
    /// # Errors
    /// Returns any error of [`HashPartitions::take`].
    pub fn read(&self, partition: usize, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        self.partitions.each_piece(partition, &mut Vec::new(), |rows| into.extend_from_slice(rows))
    }
}

/// Sends rows of two kinds with common keys to the owners of their keys, in the same partitioning.
/// Takes one round.
///
/// # Errors
/// Returns any error of [`HashPartitions::new`].
pub fn two_alike<T: Pod + Send, U: Pod + Send, K: Into<u64>>(
    net: &mut Net<'_>,
    name: &str,
    partitioning: CommonPartitions,
    (first, first_key): (impl IntoIterator<Item: TryIntoRow<T>>, impl Fn(&T) -> K),
    (second, second_key): (impl IntoIterator<Item: TryIntoRow<U>>, impl Fn(&U) -> K),
) -> Result<(HashPartitions<T>, HashPartitions<U>)> {
    let shares = KeyShares::new(net.peers(), partitioning.bits);
    let (mut first_partitions, mut second_partitions) =
        (HashPartitions::empty(net, partitioning), HashPartitions::empty(net, partitioning));
    let first_hash = |row: &T| splitmix64(first_key(row).into());
    let second_hash = |row: &U| splitmix64(second_key(row).into());
    net.exchange_two(
        name,
        (first, |row| shares.owner(first_hash(row)), |rows| first_partitions.put(rows, first_hash, &shares)),
        (second, |row| shares.owner(second_hash(row)), |rows| second_partitions.put(rows, second_hash, &shares)),
    )?;
    Ok((first_partitions, second_partitions))
}

/// Rows, and links that have keys in common with them by their sources, in partitions that are
/// alike. Links leave a process packed. One round.
///
/// # Errors
/// As [`HashPartitions::new`], and the first error of `links`.
pub fn rows_and_links<T: Pod + Send, K: Into<u64>>(
    net: &mut Net<'_>,
    name: &str,
    partitioning: CommonPartitions,
    (rows, row_key): (impl IntoIterator<Item: TryIntoRow<T>>, impl Fn(&T) -> K),
    (links, link_key): (impl IntoIterator<Item = Result<(Page, Page)>>, impl Fn(Page) -> K),
) -> Result<(HashPartitions<T>, HashPartitions<[Page; 2]>)> {
    if net.processes() == 1 {
        let links = links.into_iter().map_ok(<[Page; 2]>::from);
        return two_alike(net, name, partitioning, (rows, row_key), (links, |link: &[Page; 2]| link_key(link[0])));
    }
    let shares = KeyShares::new(net.peers(), partitioning.bits);
    let (mut row_partitions, mut link_partitions) =
        (HashPartitions::empty(net, partitioning), HashPartitions::empty(net, partitioning));
    let row_hash = |row: &T| splitmix64(row_key(row).into());
    let link_hash = |source: Page| splitmix64(link_key(source).into());
    let links = packed_links(links, |source| shares.owner(link_hash(source)), net.peers());
    let take_links = |rows: &[PackedRow]| {
        let mut put_link = |source, target| link_partitions.push(shares.bucket(link_hash(source)), [source, target]);
        rows.iter().try_for_each(|row| each_link(row, &mut put_link))
    };
    net.exchange_two(
        name,
        (rows, |row| shares.owner(row_hash(row)), |rows| row_partitions.put(rows, row_hash, &shares)),
        (links, |row| shares.owner(link_hash(Page(row.first))), take_links),
    )?;
    Ok((row_partitions, link_partitions))
}
