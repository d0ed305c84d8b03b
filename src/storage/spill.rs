//! Rows that do not fit in memory: kept in blocks and, beyond an allowance, written to the local disk.
//!
//! A [`Buckets`] takes rows in any order and returns them bucket by bucket; a [`RunLog`] returns records in the order
//! they came. Both write sequentially, in pieces of a few hundred kilobytes, and read each piece once.

use bytemuck::Pod;

use super::spill_file::{Disk, Extent, SpillFile};
use webtwin_base::error::Result;

/// Bytes of a block of a bucket.
pub const BLOCK_BYTES: usize = 64 << 10;

/// Bytes of a bucket's blocks that are written at a time.
const PIECE_BYTES: usize = 4 << 20;

/// Bytes of a block of a tape; more if a single record is longer.
pub const TAPE_BLOCK_BYTES: usize = 1 << 20;

/// Rows grouped by bucket, in memory and on disk.
#[derive(Debug)]
pub struct Buckets<T> {
    open: Vec<Vec<T>>,
    full: Vec<Vec<Vec<T>>>,
    spilled: Vec<Vec<Extent>>,
    held_bytes: u64,
    allowed_bytes: u64,
    /// The bucket to be written next.
    next: usize,
    file: SpillFile,
    rows: u64,
}

impl<T: Pod> Buckets<T> {
    const ROWS: usize = BLOCK_BYTES / size_of::<T>();

    /// Makes `count` empty buckets that hold up to `allowed_bytes` in full blocks, plus an open block each.
    pub fn new(count: usize, allowed_bytes: u64, disk: &Disk) -> Buckets<T> {
        Buckets {
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

    /// Number of buckets, as given to [`Buckets::new`].
    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// Rows in all buckets that have not been taken yet.
    pub fn rows(&self) -> u64 {
        self.rows + self.open.iter().map(|block| block.len() as u64).sum::<u64>()
    }

    /// Rows in a bucket.
    pub fn rows_of(&self, bucket: usize) -> u64 {
        let spilled: usize = self.spilled[bucket].iter().map(|extent| extent.bytes / size_of::<T>()).sum();
        (spilled + self.full[bucket].len() * Self::ROWS + self.open[bucket].len()) as u64
    }

    /// Bytes held in memory, but for the open block of each bucket.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Those of a bucket.
    pub fn held_bytes_of(&self, bucket: usize) -> u64 {
        (self.full[bucket].len() * Self::ROWS * size_of::<T>()) as u64
    }

    /// Writes full blocks to disk until at most `bytes` are held in them.
    ///
    /// # Errors
    /// [`Error::DiskLimit`](webtwin_base::error::Error::DiskLimit), [`Error::DiskFull`](webtwin_base::error::Error::DiskFull) or [`Error::Storage`](webtwin_base::error::Error::Storage) when the disk does not take them.
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.spill_down_to(bytes).map(drop)
    }

    /// Bytes written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.written_bytes()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk is full or fails.
    #[inline]
    pub fn push(&mut self, bucket: usize, row: T) -> Result<()> {
        if self.open[bucket].len() == self.open[bucket].capacity() {
            self.begin_block(bucket)?;
        }
        self.open[bucket].push(row);
        Ok(())
    }

    #[cold]
    fn begin_block(&mut self, bucket: usize) -> Result<()> {
        let bytes = (Self::ROWS * size_of::<T>()) as u64;
        let full = std::mem::take(&mut self.open[bucket]);
        if full.is_empty() {
            self.open[bucket] = Vec::with_capacity(Self::ROWS);
            return Ok(());
        }
        self.rows += full.len() as u64;
        self.full[bucket].push(full);
        self.held_bytes += bytes;
        self.open[bucket] = if self.held_bytes > self.allowed_bytes {
            self.spill_down_to(self.allowed_bytes / 8 * 7)?
        } else {
            Vec::with_capacity(Self::ROWS)
        };
        Ok(())
    }

    /// Writes full blocks, bucket by bucket in turn, until few enough are held; returns one of the blocks, emptied.
    ///
    /// Full blocks of a bucket are written together, so that the pieces on disk are worth a seek.
    fn spill_down_to(&mut self, bytes: u64) -> Result<Vec<T>> {
        let mut emptied = Vec::new();
        let mut gathered: Vec<T> = Vec::new();
        while self.held_bytes > bytes {
            let bucket = self.next;
            self.next = (bucket + 1) % self.full.len();
            if self.full[bucket].is_empty() {
                continue;
            }
            while !self.full[bucket].is_empty() {
                gathered.clear();
                let left = self.full[bucket].len().saturating_sub(PIECE_BYTES / BLOCK_BYTES);
                for block in self.full[bucket].drain(left..) {
                    self.held_bytes -= (Self::ROWS * size_of::<T>()) as u64;
                    gathered.extend_from_slice(&block);
                    emptied = block;
                }
                let extent = self.file.append(bytemuck::cast_slice(&gathered))?;
                self.spilled[bucket].push(extent);
            }
        }
        emptied.clear();
        Ok(emptied)
    }

    /// Replaces the content of `into` with the rows of a bucket, in no particular order, and forgets them.
    ///
    /// # Errors
    /// [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk fails.
    pub fn take(&mut self, bucket: usize, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        into.reserve(self.rows_of(bucket) as usize);
        for &extent in &self.spilled[bucket] {
            self.file.read(extent, into)?;
        }
        self.in_memory(bucket).for_each(|block| into.extend_from_slice(block));
        self.forget(bucket);
        Ok(())
    }

    /// Calls `with` for the rows of a bucket, some at a time, in no particular order; they stay. `room` is scratch.
    ///
    /// # Errors
    /// [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk fails.
    pub fn each_piece(&self, bucket: usize, room: &mut Vec<T>, mut with: impl FnMut(&[T])) -> Result<()> {
        for &extent in &self.spilled[bucket] {
            room.clear();
            self.file.read(extent, room)?;
            with(room);
        }
        self.in_memory(bucket).for_each(with);
        Ok(())
    }

    /// As [`Buckets::each_piece`], but each piece is forgotten as soon as `with` has had it.
    ///
    /// # Errors
    /// [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk fails, and those of `with`.
    pub fn drain(&mut self, bucket: usize, room: &mut Vec<T>, mut with: impl FnMut(&[T]) -> Result<()>) -> Result<()> {
        while let Some(extent) = self.spilled[bucket].pop() {
            room.clear();
            self.file.read(extent, room)?;
            self.file.give_back(extent.offset, extent.bytes);
            self.rows -= room.len() as u64;
            with(room)?;
        }
        while let Some(block) = self.full[bucket].pop() {
            self.held_bytes -= (Self::ROWS * size_of::<T>()) as u64;
            self.rows -= block.len() as u64;
            with(&block)?;
        }
        with(&std::mem::take(&mut self.open[bucket]))
    }

    /// Forgets the rows of a bucket, and frees their memory and disk.
    pub fn forget(&mut self, bucket: usize) {
        self.rows -= self.rows_of(bucket) - self.open[bucket].len() as u64;
        self.held_bytes -= self.held_bytes_of(bucket);
        self.spilled[bucket].iter().for_each(|extent| self.file.give_back(extent.offset, extent.bytes));
        (self.open[bucket], self.full[bucket], self.spilled[bucket]) = Default::default();
    }

    fn in_memory(&self, bucket: usize) -> impl Iterator<Item = &[T]> {
        self.full[bucket].iter().chain([&self.open[bucket]]).map(Vec::as_slice)
    }
}

/// Records in the order they came, in memory and on disk.
#[derive(Debug)]
pub struct RunLog<T> {
    pieces: Vec<Piece<T>>,
    open: Vec<T>,
    held_bytes: u64,
    allowed_bytes: u64,
    file: SpillFile,
}

#[derive(Debug)]
enum Piece<T> {
    Held(Vec<T>),
    Spilled(Extent),
}

impl<T: Pod> RunLog<T> {
    const ROWS: usize = TAPE_BLOCK_BYTES / size_of::<T>();

    /// Makes an empty tape that holds up to `allowed_bytes`.
    pub fn new(allowed_bytes: u64, disk: &Disk) -> RunLog<T> {
        RunLog { pieces: Vec::new(), open: Vec::new(), held_bytes: 0, allowed_bytes, file: SpillFile::new(disk) }
    }

    /// Appends a record; its rows stay within one block.
    ///
    /// # Errors
    /// [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk is full or fails.
    pub fn push(&mut self, record: impl ExactSizeIterator<Item = T>) -> Result<()> {
        if self.open.len() + record.len() > self.open.capacity() {
            let size = Self::ROWS.max(record.len());
            let full = std::mem::take(&mut self.open);
            self.open = self.put_away(full)?.filter(|block| block.capacity() == size).unwrap_or_default();
            self.open.reserve_exact(size);
        }
        self.open.extend(record);
        Ok(())
    }

    /// Keeps a block in memory or writes it to disk; in the latter case returns it, emptied.
    fn put_away(&mut self, mut full: Vec<T>) -> Result<Option<Vec<T>>> {
        if full.is_empty() {
            return Ok(None);
        }
        let bytes = (full.capacity() * size_of::<T>()) as u64;
        if self.held_bytes + bytes <= self.allowed_bytes {
            self.held_bytes += bytes;
            self.pieces.push(Piece::Held(full));
            return Ok(None);
        }
        let extent = self.file.append(bytemuck::cast_slice(&full))?;
        self.pieces.push(Piece::Spilled(extent));
        full.clear();
        Ok(Some(full))
    }

    /// Ends writing; required before reading.
    ///
    /// # Errors
    /// [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk is full or fails.
    pub fn finish(&mut self) -> Result<()> {
        let open = std::mem::take(&mut self.open);
        self.put_away(open).map(drop)
    }

    /// Bytes held in memory.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Number of blocks of a finished tape.
    pub fn blocks(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.written_bytes()
    }

    /// Replaces the content of `into` with the records of a block.
    ///
    /// # Errors
    /// [`Error::Storage`](webtwin_base::error::Error::Storage) if the disk fails.
    pub fn read(&self, number: usize, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        match &self.pieces[number] {
            Piece::Held(rows) => into.extend_from_slice(rows),
            Piece::Spilled(extent) => self.file.read(*extent, into)?,
        }
        Ok(())
    }

    /// Frees the memory or the disk of a block that will not be read again.
    pub fn forget(&mut self, number: usize) {
        match std::mem::replace(&mut self.pieces[number], Piece::Held(Vec::new())) {
            Piece::Held(rows) => self.held_bytes -= (rows.capacity() * size_of::<T>()) as u64,
            Piece::Spilled(extent) => self.file.give_back(extent.offset, extent.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use webtwin_base::error::Error;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn buckets_give_back_their_rows_whatever_is_spilled(
            seed: u64, count in 1usize..5, rows in 0u64..60_000, allowed in 0u64..1_000_000, drained: bool
        ) {
            let mut buckets = Buckets::<u64>::new(count, allowed, &Disk::new(&std::env::temp_dir(), 0));
            let mut want = vec![Vec::new(); count];
            for n in 0..rows {
                let bucket = (seed.wrapping_mul((n * n) | 1) >> 40) as usize % count;
                buckets.push(bucket, n).unwrap();
                want[bucket].push(n);
            }
            prop_assert_eq!(buckets.rows(), rows);
            prop_assert!(rows * 8 <= allowed + (count * BLOCK_BYTES) as u64 || buckets.spilled_bytes() > 0);
            let mut got = vec![9];
            for (bucket, want) in want.iter().enumerate() {
                let mut pieces = Vec::new();
                buckets.each_piece(bucket, &mut got, |piece| pieces.extend_from_slice(piece)).unwrap();
                if drained {
                    let mut all = Vec::new();
                    let mut room = std::mem::take(&mut got);
                    buckets.drain(bucket, &mut room, |piece| { all.extend_from_slice(piece); Ok(()) }).unwrap();
                    got = all;
                } else {
                    buckets.take(bucket, &mut got).unwrap();
                }
                for mut got in [pieces, got.clone()] {
                    got.sort_unstable();
                    prop_assert_eq!(&got, want);
                }
            }
            prop_assert_eq!((buckets.rows(), buckets.held_bytes()), (0, 0));
        }

        #[test]
        fn a_tape_gives_back_its_records_in_order(
            lengths in prop::collection::vec(0usize..200_000, 0..30), allowed in 0u64..8_000_000
        ) {
            let mut tape = RunLog::<u32>::new(allowed, &Disk::new(&std::env::temp_dir(), 0));
            for (number, &length) in lengths.iter().enumerate() {
                tape.push((0..length + 1).map(|at| if at == 0 { length as u32 } else { number as u32 })).unwrap();
            }
            tape.finish().unwrap();
            let (mut got, mut room) = (Vec::new(), Vec::new());
            for block in 0..tape.blocks() {
                tape.read(block, &mut room).unwrap();
                let mut rest = &room[..];
                while let Some((&length, after)) = rest.split_first() {
                    prop_assert!(after[..length as usize].iter().all(|&number| number == got.len() as u32));
                    got.push(length as usize);
                    rest = &after[length as usize..];
                }
                tape.forget(block);
            }
            prop_assert_eq!(got, lengths);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_taken_gives_back_its_disk() {
        const ROWS: u64 = 300_000;
        let fill = |buckets: &mut Buckets<u64>| (0..ROWS).try_for_each(|row| buckets.push(row as usize % 3, row));
        // Room for the rows once, and a little.
        let disk = Disk::new(&std::env::temp_dir(), 9 * ROWS);
        let mut buckets = Buckets::<u64>::new(3, 0, &disk);
        fill(&mut buckets).unwrap();
        assert_eq!(fill(&mut buckets).unwrap_err().exit_code(), 9);
        drop(buckets);
        let (mut buckets, mut rows) = (Buckets::<u64>::new(3, 0, &disk), Vec::new());
        for time in 0..3 {
            fill(&mut buckets).unwrap();
            assert!(buckets.file.taken_bytes() <= 9 * ROWS, "{time}: {} bytes", buckets.file.taken_bytes());
            for bucket in 0..3 {
                buckets.take(bucket, &mut rows).unwrap();
                rows.sort_unstable();
                assert!(rows.iter().copied().eq((bucket as u64..ROWS).step_by(3)));
            }
        }
    }

    #[test]
    fn spill_files_leave_no_name_behind() {
        let folder = std::env::temp_dir().join(format!("webtwin-spill-test-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut buckets = Buckets::<u64>::new(1, 0, &Disk::new(&folder, 0));
        (0..100_000).for_each(|row| buckets.push(0, row).unwrap());
        assert!(buckets.spilled_bytes() > 0);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn a_disk_that_returns_other_bytes_is_an_error_and_no_row() {
        let disk = Disk::new(&std::env::temp_dir(), 0);
        let mut buckets = Buckets::<u64>::new(1, 0, &disk);
        (0..100_000).for_each(|row| buckets.push(0, row).unwrap());
        buckets.file.damage(70_000);
        let mut tape = RunLog::<u32>::new(0, &disk);
        tape.push((0..1000).map(|_| 7)).unwrap();
        tape.finish().unwrap();
        tape.file.damage(3999);
        for refused in [buckets.take(0, &mut Vec::new()), tape.read(0, &mut Vec::new())] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.exit_code(), 8);
            assert!(refused.to_string().contains("returned other bytes than were written"), "{refused}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let mut tape = RunLog::<u32>::new(0, &Disk::new(Path::new("/nowhere/at/all"), 0));
        tape.push([1, 2].into_iter()).unwrap();
        assert!(tape.finish().unwrap_err().to_string().contains("/nowhere/at/all (effort.spill)"));
    }

    #[test]
    fn a_disk_takes_no_more_than_it_may_and_has_room_again_when_files_are_gone() {
        let disk = Disk::new(&std::env::temp_dir(), 200_000);
        let fill = |rows: u64| {
            let mut buckets = Buckets::<u64>::new(1, 0, &disk);
            (0..rows).try_for_each(|row| buckets.push(0, row))
        };
        fill(20_000).unwrap();
        fill(20_000).unwrap();
        let refused = fill(40_000).unwrap_err();
        let Error::DiskLimit { needed_bytes, allowed_bytes: 200_000, ref setting, .. } = refused else {
            panic!("{refused}")
        };
        assert!((200_000..330_000).contains(&needed_bytes) && setting == "effort.disk_bytes", "{refused}");
    }

    #[test]
    fn disks_of_the_process_count_what_all_of_them_take() {
        let fill = |disk: Disk| {
            let mut buckets = Buckets::<u64>::new(1, 0, &disk);
            (0..20_000).try_for_each(|row| buckets.push(0, row)).map(|()| buckets)
        };
        let held = fill(Disk::new(&std::env::temp_dir(), 200_000)).unwrap();
        let refused = fill(Disk::of_process(&std::env::temp_dir(), 200_000)).unwrap_err();
        assert!(
            matches!(refused, Error::DiskLimit { needed_bytes: 200_001.., allowed_bytes: 200_000, .. }),
            "{refused}"
        );
        drop(held);
    }

    #[test]
    fn a_refusal_tells_what_the_setting_of_a_process_must_be_not_the_share_of_a_worker() {
        let refusal = |is_set: bool| {
            let disk = Disk::share(&std::env::temp_dir(), 200_000, 800_000, is_set);
            let mut buckets = Buckets::<u64>::new(1, 0, &disk);
            (0..40_000).try_for_each(|row| buckets.push(0, row)).unwrap_err()
        };
        let refused = refusal(true);
        let Error::DiskLimit { needed_bytes, allowed_bytes, .. } = refused else { panic!("{refused}") };
        assert!((800_000..1_320_000).contains(&needed_bytes) && allowed_bytes == 800_000, "{refused}");
        // Nobody has set what is free: there is nothing to raise.
        let line = refusal(false).to_string();
        assert!(line.contains("no space left on device") && line.contains("781.2 KiB free"), "{line}");
        assert!(!line.contains("disk_bytes") && line.contains("effort.spill"), "{line}");
    }
}
