//! Rows by partition: in memory blocks and, beyond a budget, on the local disk.
//!
//! Rows are added in any order and read one partition at a time. Spilled rows are written in pieces
//! of several MiB, and each piece is read once.

use bytemuck::Pod;

use super::disk::{Disk, Extent, SpillFile};
use super::pool::MemoryPool;
use webtwin_base::error::Result;

/// Size of a block of a partition, in bytes.
pub const BLOCK_BYTES: usize = 64 << 10;

/// Maximum size of the blocks of a partition that are written together, in bytes.
const PIECE_BYTES: usize = 4 << 20;

/// Rows by partition, in memory and on disk.
#[derive(Debug)]
pub struct Partitions<T> {
    open: Vec<Vec<T>>,
    full: Vec<Vec<Vec<T>>>,
    spilled: Vec<Vec<Extent>>,
    held_bytes: u64,
    allowed_bytes: u64,
    /// Partition that is written to disk next.
    next: usize,
    file: SpillFile,
    rows: u64,
}

impl<T: Pod> Partitions<T> {
    const ROWS: usize = BLOCK_BYTES / size_of::<T>();

    /// Creates `count` empty partitions. Their full blocks hold in memory what the pool allows a
    /// worker; each partition has an open block in addition.
    pub fn new(count: usize, pool: &MemoryPool) -> Partitions<T> {
        Partitions::with_limit(count, pool.of_worker(), &pool.disk())
    }

    fn with_limit(count: usize, allowed_bytes: u64, disk: &Disk) -> Partitions<T> {
        Partitions {
            open: (0..count).map(|_| Vec::new()).collect(),
            full: (0..count).map(|_| Vec::new()).collect(),
            spilled: vec![Vec::new(); count],
            held_bytes: 0,
            allowed_bytes,
            next: 0,
            file: SpillFile::new(disk),
            rows: 0,
        }
    }

    /// Returns the number of partitions.
    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// Returns the number of rows in all partitions that have not been taken yet.
    pub fn rows(&self) -> u64 {
        self.rows + self.open.iter().map(|block| block.len() as u64).sum::<u64>()
    }

    /// Returns the number of rows in a partition.
    pub fn rows_of(&self, partition: usize) -> u64 {
        let spilled: usize = self.spilled[partition].iter().map(|extent| extent.bytes / size_of::<T>()).sum();
        (spilled + self.full[partition].len() * Self::ROWS + self.open[partition].len()) as u64
    }

    /// Returns the size of the full blocks in memory in bytes, without the open block of each
    /// partition.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the size of a partition's full blocks in memory, in bytes.
    pub fn held_bytes_of(&self, partition: usize) -> u64 {
        (self.full[partition].len() * Self::ROWS * size_of::<T>()) as u64
    }

    /// Writes full blocks to disk until those in memory have at most `bytes` bytes.
    ///
    /// # Errors
    /// Returns [`Error::DiskLimit`](webtwin_base::error::Error::DiskLimit),
    /// [`Error::DiskFull`](webtwin_base::error::Error::DiskFull) or
    /// [`Error::Storage`](webtwin_base::error::Error::Storage) if the blocks cannot be written to
    /// disk.
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.spill_down_to(bytes).map(drop)
    }

    /// Returns the number of bytes written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.written_bytes()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk is full or
    /// fails.
    #[inline]
    pub fn push(&mut self, partition: usize, row: T) -> Result<()> {
        if self.open[partition].len() == self.open[partition].capacity() {
            self.begin_block(partition)?;
        }
        self.open[partition].push(row);
        Ok(())
    }

    #[cold]
    fn begin_block(&mut self, partition: usize) -> Result<()> {
        let bytes = (Self::ROWS * size_of::<T>()) as u64;
        let full = std::mem::take(&mut self.open[partition]);
        if full.is_empty() {
            self.open[partition] = Vec::with_capacity(Self::ROWS);
            return Ok(());
        }
        self.rows += full.len() as u64;
        self.full[partition].push(full);
        self.held_bytes += bytes;
        self.open[partition] = if self.held_bytes > self.allowed_bytes {
            self.spill_down_to(self.allowed_bytes / 8 * 7)?
        } else {
            Vec::with_capacity(Self::ROWS)
        };
        Ok(())
    }

    /// Writes full blocks, one partition after the other, until those in memory have at most
    /// `bytes` bytes. Returns one of the blocks, emptied.
    ///
    /// All full blocks of a partition are written together, so that a piece on disk is long
    /// compared with the cost of a seek.
    fn spill_down_to(&mut self, bytes: u64) -> Result<Vec<T>> {
        let mut emptied = Vec::new();
        let mut piece: Vec<T> = Vec::new();
        while self.held_bytes > bytes {
            let partition = self.next;
            self.next = (partition + 1) % self.full.len();
            if self.full[partition].is_empty() {
                continue;
            }
            while !self.full[partition].is_empty() {
                piece.clear();
                let left = self.full[partition].len().saturating_sub(PIECE_BYTES / BLOCK_BYTES);
                for block in self.full[partition].drain(left..) {
                    self.held_bytes -= (Self::ROWS * size_of::<T>()) as u64;
                    piece.extend_from_slice(&block);
                    emptied = block;
                }
                let extent = self.file.append(bytemuck::cast_slice(&piece))?;
                self.spilled[partition].push(extent);
            }
        }
        emptied.clear();
        Ok(emptied)
    }

    /// Replaces the content of `into` with the rows of a partition, in no particular order, and
    /// drops them from the partition.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk fails.
    pub fn take(&mut self, partition: usize, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        into.reserve(self.rows_of(partition) as usize);
        for &extent in &self.spilled[partition] {
            self.file.read(extent, into)?;
        }
        self.in_memory(partition).for_each(|block| into.extend_from_slice(block));
        self.forget(partition);
        Ok(())
    }

    /// Calls `visit` with the rows of a partition, in several pieces and in no particular order.
    /// The rows are kept. `scratch` is a scratch buffer.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk fails.
    pub fn each_piece(&self, partition: usize, scratch: &mut Vec<T>, mut visit: impl FnMut(&[T])) -> Result<()> {
        for &extent in &self.spilled[partition] {
            scratch.clear();
            self.file.read(extent, scratch)?;
            visit(scratch);
        }
        self.in_memory(partition).for_each(visit);
        Ok(())
    }

    /// Calls `visit` with the rows of a partition like [`Partitions::each_piece`], and frees each
    /// piece before the next one.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk fails, and the
    /// first error of `visit`.
    pub fn drain(
        &mut self,
        partition: usize,
        scratch: &mut Vec<T>,
        mut visit: impl FnMut(&[T]) -> Result<()>,
    ) -> Result<()> {
        while let Some(extent) = self.spilled[partition].pop() {
            scratch.clear();
            self.file.read(extent, scratch)?;
            self.file.release(extent.offset, extent.bytes);
            self.rows -= scratch.len() as u64;
            visit(scratch)?;
        }
        while let Some(block) = self.full[partition].pop() {
            self.held_bytes -= (Self::ROWS * size_of::<T>()) as u64;
            self.rows -= block.len() as u64;
            visit(&block)?;
        }
        visit(&std::mem::take(&mut self.open[partition]))
    }

    /// Drops the rows of a partition, and frees their memory and disk space.
    pub fn forget(&mut self, partition: usize) {
        self.rows -= self.rows_of(partition) - self.open[partition].len() as u64;
        self.held_bytes -= self.held_bytes_of(partition);
        self.spilled[partition].iter().for_each(|extent| self.file.release(extent.offset, extent.bytes));
        (self.open[partition], self.full[partition], self.spilled[partition]) = Default::default();
    }

    fn in_memory(&self, partition: usize) -> impl Iterator<Item = &[T]> {
        self.full[partition].iter().chain([&self.open[partition]]).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_base::error::Error;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn buckets_return_their_rows_after_any_spills(
            seed: u64, count in 1usize..5, rows in 0u64..60_000, allowed in 0u64..1_000_000, drained: bool
        ) {
            let mut partitions = Partitions::<u64>::new(count, &MemoryPool::default().limited(allowed));
            let mut expected = vec![Vec::new(); count];
            for n in 0..rows {
                let partition = (seed.wrapping_mul((n * n) | 1) >> 40) as usize % count;
                partitions.push(partition, n).unwrap();
                expected[partition].push(n);
            }
            prop_assert_eq!(partitions.rows(), rows);
            prop_assert!(rows * 8 <= allowed + (count * BLOCK_BYTES) as u64 || partitions.spilled_bytes() > 0);
            let mut scratch_rows = vec![9];
            for (partition, expected) in expected.iter().enumerate() {
                let mut pieces = Vec::new();
                partitions.each_piece(partition, &mut scratch_rows, |piece| pieces.extend_from_slice(piece)).unwrap();
                if drained {
                    let mut drained = Vec::new();
                    let mut scratch = std::mem::take(&mut scratch_rows);
                    partitions.drain(partition, &mut scratch, |piece| { drained.extend_from_slice(piece); Ok(()) }).unwrap();
                    scratch_rows = drained;
                } else {
                    partitions.take(partition, &mut scratch_rows).unwrap();
                }
                for mut read_rows in [pieces, scratch_rows.clone()] {
                    read_rows.sort_unstable();
                    prop_assert_eq!(&read_rows, expected);
                }
            }
            prop_assert_eq!((partitions.rows(), partitions.held_bytes()), (0, 0));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn taken_partitions_release_their_disk() {
        const ROWS: u64 = 300_000;
        let fill =
            |partitions: &mut Partitions<u64>| (0..ROWS).try_for_each(|row| partitions.push(row as usize % 3, row));
        // Enough for all rows once, plus a margin.
        let disk = Disk::new(&std::env::temp_dir(), 9 * ROWS);
        let mut partitions = Partitions::<u64>::with_limit(3, 0, &disk);
        fill(&mut partitions).unwrap();
        assert_eq!(fill(&mut partitions).unwrap_err().exit_code(), 9);
        drop(partitions);
        let (mut partitions, mut rows) = (Partitions::<u64>::with_limit(3, 0, &disk), Vec::new());
        for time in 0..3 {
            fill(&mut partitions).unwrap();
            assert!(partitions.file.taken_bytes() <= 9 * ROWS, "{time}: {} bytes", partitions.file.taken_bytes());
            for partition in 0..3 {
                partitions.take(partition, &mut rows).unwrap();
                rows.sort_unstable();
                assert!(rows.iter().copied().eq((partition as u64..ROWS).step_by(3)));
            }
        }
    }

    #[test]
    fn spill_files_have_no_name() {
        let folder = std::env::temp_dir().join(format!("webtwin-spill-test-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut partitions = Partitions::<u64>::with_limit(1, 0, &Disk::new(&folder, 0));
        (0..100_000).for_each(|row| partitions.push(0, row).unwrap());
        assert!(partitions.spilled_bytes() > 0);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn changed_bytes_on_disk_are_an_error() {
        let disk = Disk::new(&std::env::temp_dir(), 0);
        let mut partitions = Partitions::<u64>::with_limit(1, 0, &disk);
        (0..100_000).for_each(|row| partitions.push(0, row).unwrap());
        partitions.file.damage(70_000);
        let error = partitions.take(0, &mut Vec::new()).unwrap_err();
        assert_eq!(error.exit_code(), 8);
        assert!(error.to_string().contains("returned other bytes than were written"), "{error}");
    }

    #[test]
    fn disk_budget_is_enforced_and_released_with_the_files() {
        let disk = Disk::new(&std::env::temp_dir(), 200_000);
        let fill = |rows: u64| {
            let mut partitions = Partitions::<u64>::with_limit(1, 0, &disk);
            (0..rows).try_for_each(|row| partitions.push(0, row))
        };
        fill(20_000).unwrap();
        fill(20_000).unwrap();
        let error = fill(40_000).unwrap_err();
        let Error::DiskLimit { needed_bytes, allowed_bytes: 200_000, ref setting, .. } = error else {
            panic!("{error}")
        };
        assert!((200_000..330_000).contains(&needed_bytes) && setting == "effort.disk_bytes", "{error}");
    }

    #[test]
    fn disk_usage_counts_all_disks_of_the_process() {
        let fill = |disk: Disk| {
            let mut partitions = Partitions::<u64>::with_limit(1, 0, &disk);
            (0..20_000).try_for_each(|row| partitions.push(0, row)).map(|()| partitions)
        };
        let held_partitions = fill(Disk::new(&std::env::temp_dir(), 200_000)).unwrap();
        let error = fill(Disk::of_process(&std::env::temp_dir(), super::super::SPILL, 200_000)).unwrap_err();
        assert!(matches!(error, Error::DiskLimit { needed_bytes: 200_001.., allowed_bytes: 200_000, .. }), "{error}");
        drop(held_partitions);
    }

    #[test]
    fn rejection_names_the_setting_of_the_process_and_not_a_workers_share() {
        let refusal = |is_set: bool| {
            let disk = Disk::share(&std::env::temp_dir(), super::super::SPILL, 200_000, 800_000, is_set);
            let mut partitions = Partitions::<u64>::with_limit(1, 0, &disk);
            (0..40_000).try_for_each(|row| partitions.push(0, row)).unwrap_err()
        };
        let error = refusal(true);
        let Error::DiskLimit { needed_bytes, allowed_bytes, .. } = error else { panic!("{error}") };
        assert!((800_000..1_320_000).contains(&needed_bytes) && allowed_bytes == 800_000, "{error}");
        // No setting defines the free space, so the message names no setting to raise.
        let line = refusal(false).to_string();
        assert!(line.contains("no space left on device") && line.contains("781.2 KiB free"), "{line}");
        assert!(!line.contains("disk_bytes") && line.contains("effort.spill"), "{line}");
    }
}
