//! Append-only array with access by position. Its blocks are in memory up to a budget, and beyond
//! that on the local disk.
//!
//! Blocks on disk are read in pieces of 4 KiB, each compared with its checksum. [`Array::get`] is
//! for single positions. An [`ArrayReader`] is for many positions in approximately ascending order;
//! it keeps the pieces that it has read last.

use bytemuck::Pod;
use xxhash_rust::xxh3::xxh3_64;

use super::disk::{Disk, SpillFile};
use super::partitions::BLOCK_BYTES;
use super::pool::MemoryPool;
use super::run_log::RUN_LOG_BLOCK_BYTES;
use webtwin_base::error::Result;

/// Size in bytes of the unit that is read and checked.
const PIECE_BYTES: usize = 4 << 10;

/// Number of pieces that an [`ArrayReader`] reads together while its positions ascend.
const PIECES_AHEAD: u64 = 16;

/// Items in insertion order.
///
/// # Memory
/// The budget, a block of 1 MiB that is being filled, and 2 bytes for each KiB on disk.
#[derive(Debug)]
pub struct Array<T> {
    /// Full blocks, all of the same length.
    blocks: Vec<Block<T>>,
    /// Items after the last full block.
    open: Vec<T>,
    /// Number of blocks that [`Array::forget_before`] has processed.
    passed: usize,
    held_bytes: u64,
    allowed_bytes: u64,
    file: SpillFile,
}

#[derive(Debug)]
enum Block<T> {
    InMemory(Vec<T>),
    Spilled {
        /// Offset in the file.
        offset: u64,
        /// Checksums of the pieces of the block.
        checks: Box<[u64]>,
    },
    Forgotten,
}

/// Creates an array that stays in memory.
impl<T: Pod> Default for Array<T> {
    fn default() -> Array<T> {
        Array::new(&MemoryPool::default())
    }
}

impl<T: Pod> Array<T> {
    const BLOCK: usize = RUN_LOG_BLOCK_BYTES / size_of::<T>();
    const PIECE: u64 = (PIECE_BYTES / size_of::<T>()) as u64;

    /// Creates an empty array that holds in memory what the pool allows a worker, plus one block.
    pub fn new(pool: &MemoryPool) -> Array<T> {
        Array::with_limit(pool.of_worker(), &pool.disk())
    }

    fn with_limit(allowed_bytes: u64, disk: &Disk) -> Array<T> {
        const { assert!(PIECE_BYTES.is_multiple_of(size_of::<T>())) };
        let file = SpillFile::new(disk);
        Array { blocks: Vec::new(), open: Vec::new(), passed: 0, held_bytes: 0, allowed_bytes, file }
    }

    /// Creates an empty array with the same memory budget and the same disk.
    pub fn like(&self) -> Array<T> {
        self.held_alike()
    }

    /// Creates an empty array with the memory budget of this one divided by `parts`, and the same
    /// disk.
    pub fn like_part(&self, parts: u64) -> Array<T> {
        Array::with_limit(self.allowed_bytes / parts, self.file.disk())
    }

    /// Creates an empty array of other items with the same memory budget and the same disk.
    pub fn held_alike<U: Pod>(&self) -> Array<U> {
        Array::with_limit(self.allowed_bytes, self.file.disk())
    }

    /// Appends items, and returns the position of the first of them.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] or another error of a full disk if the items
    /// cannot be written to disk.
    pub fn push(&mut self, mut items: &[T]) -> Result<u64> {
        let at = self.len();
        while !items.is_empty() {
            if self.open.capacity() == 0 {
                self.open.reserve_exact(Self::BLOCK);
            }
            let (head, rest) = items.split_at(items.len().min(Self::BLOCK - self.open.len()));
            self.open.extend_from_slice(head);
            items = rest;
            if self.open.len() == Self::BLOCK {
                self.put_away()?;
            }
        }
        Ok(at)
    }

    fn put_away(&mut self) -> Result<()> {
        if self.held_bytes + RUN_LOG_BLOCK_BYTES as u64 <= self.allowed_bytes {
            self.held_bytes += RUN_LOG_BLOCK_BYTES as u64;
            self.blocks.push(Block::InMemory(std::mem::take(&mut self.open)));
            return Ok(());
        }
        let spilled = spill(&mut self.file, &self.open)?;
        self.blocks.push(spilled);
        self.open.clear();
        Ok(())
    }

    /// Sets the memory budget of full blocks to `bytes`, and writes the blocks beyond it to disk.
    ///
    /// # Errors
    /// Returns the errors of [`Array::push`].
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.allowed_bytes = bytes;
        let mut held_blocks = self.blocks.iter_mut().rev().filter(|block| matches!(block, Block::InMemory(_)));
        while self.held_bytes > bytes {
            let block = held_blocks.next().expect("held items are in blocks");
            let Block::InMemory(items) = block else { unreachable!("others are filtered out") };
            *block = spill(&mut self.file, items)?;
            self.held_bytes -= RUN_LOG_BLOCK_BYTES as u64;
        }
        Ok(())
    }

    /// Writes up to `bytes` bytes of full blocks to disk, rounded up to a block, and reduces the
    /// memory budget to the remaining blocks. Returns the number of bytes that were written.
    ///
    /// # Errors
    /// Returns the errors of [`Array::push`].
    pub fn give_up(&mut self, bytes: u64) -> Result<u64> {
        let previous_bytes = self.held_bytes;
        self.hold_at_most(previous_bytes.saturating_sub(bytes))?;
        Ok(previous_bytes - self.held_bytes)
    }

    /// Reads all blocks on disk into memory, regardless of the budget.
    ///
    /// # Errors
    /// Returns the errors of [`Array::get`].
    pub fn take_in(&mut self) -> Result<()> {
        for at in 0..self.blocks.len() {
            if let Block::Spilled { offset, .. } = self.blocks[at] {
                let mut items = Vec::with_capacity(Self::BLOCK);
                self.read_pieces((at * Self::BLOCK) as u64, Self::BLOCK, &mut items)?;
                self.file.release(offset, Self::BLOCK * size_of::<T>());
                self.blocks[at] = Block::InMemory(items);
                self.held_bytes += RUN_LOG_BLOCK_BYTES as u64;
            }
        }
        Ok(())
    }

    /// Frees the memory or the disk space of blocks that end at `position` or before. Their items
    /// cannot be read again.
    pub fn forget_before(&mut self, position: u64) {
        while self.passed < (position / Self::BLOCK as u64) as usize {
            match std::mem::replace(&mut self.blocks[self.passed], Block::Forgotten) {
                Block::InMemory(_) => self.held_bytes -= RUN_LOG_BLOCK_BYTES as u64,
                Block::Spilled { offset, .. } => self.file.release(offset, Self::BLOCK * size_of::<T>()),
                Block::Forgotten => {}
            }
            self.passed += 1;
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> u64 {
        (self.blocks.len() * Self::BLOCK + self.open.len()) as u64
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the full blocks in memory, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the number of bytes written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.written_bytes()
    }

    /// Returns the `count` items from `at` on: in place if they are contiguous in memory, otherwise
    /// in the scratch buffer `scratch`.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails or returns other bytes
    /// than were written.
    ///
    /// # Panics
    /// Panics if there are fewer items.
    pub fn get<'a>(&'a self, at: u64, count: usize, scratch: &'a mut Vec<T>) -> Result<&'a [T]> {
        if let Some(items) = self.in_place(at, count) {
            return Ok(items);
        }
        scratch.clear();
        let begin = at - at % Self::PIECE;
        self.append_pieces(begin, at + count as u64, scratch)?;
        Ok(&scratch[(at - begin) as usize..][..count])
    }

    /// True if the `count` items from `at` on are contiguous in memory.
    ///
    /// # Panics
    /// Panics if there are fewer items.
    pub fn is_in_memory(&self, at: u64, count: usize) -> bool {
        self.in_place(at, count).is_some()
    }

    /// Returns all items, in blocks.
    ///
    /// # Errors
    /// Returns the errors of [`Array::get`].
    pub fn blocks(&self) -> impl Iterator<Item = Result<Vec<T>>> + '_ {
        let (mut reader, count, items_per_block) = (self.reader(), self.len(), (BLOCK_BYTES / size_of::<T>()) as u64);
        let starts = (0..count).step_by(items_per_block as usize);
        starts.map(move |start| Ok(reader.get(start, items_per_block.min(count - start) as usize)?.to_vec()))
    }

    /// Returns a reader with an empty cache.
    pub fn reader(&self) -> ArrayReader<'_, T> {
        ArrayReader { array: self, begin: 0, items: Vec::new() }
    }

    fn in_place(&self, at: u64, count: usize) -> Option<&[T]> {
        self.in_memory(at)?.get(..count)
    }

    /// Returns the items from `at` to the end of their block, if the block is in memory.
    fn in_memory(&self, at: u64) -> Option<&[T]> {
        let (block, at) = ((at / Self::BLOCK as u64) as usize, (at % Self::BLOCK as u64) as usize);
        match self.blocks.get(block) {
            Some(Block::InMemory(items)) => Some(&items[at..]),
            Some(Block::Spilled { .. }) => None,
            Some(Block::Forgotten) => unreachable!("released blocks are not read"),
            None => Some(&self.open[at..]),
        }
    }

    /// Appends the items from `begin` to `end` to `scratch`. `begin` must be the beginning of a
    /// piece. For blocks on disk the range is extended to the end of the last piece.
    fn append_pieces(&self, begin: u64, end: u64, scratch: &mut Vec<T>) -> Result<()> {
        let mut at = begin;
        while at < end {
            let previous_length = scratch.len();
            let end_of_block = (at / Self::BLOCK as u64 + 1) * Self::BLOCK as u64;
            match self.in_memory(at) {
                Some(items) => scratch.extend_from_slice(&items[..(end.min(end_of_block) - at) as usize]),
                None => {
                    let count = end.next_multiple_of(Self::PIECE).min(end_of_block) - at;
                    self.read_pieces(at, count as usize, scratch)?;
                }
            }
            at += (scratch.len() - previous_length) as u64;
        }
        Ok(())
    }

    /// Appends whole pieces of one block on disk to `scratch`.
    fn read_pieces(&self, at: u64, count: usize, scratch: &mut Vec<T>) -> Result<()> {
        let (block, within) = ((at / Self::BLOCK as u64) as usize, at % Self::BLOCK as u64);
        let Block::Spilled { offset, checks } = &self.blocks[block] else { unreachable!("the block is on disk") };
        let start = scratch.len();
        self.file.read_unchecked(offset + within * size_of::<T>() as u64, count, scratch)?;
        let pieces = scratch[start..].chunks(Self::PIECE as usize).zip(&checks[(within / Self::PIECE) as usize..]);
        for (piece, &check) in pieces {
            if xxh3_64(bytemuck::cast_slice(piece)) != check {
                return Err(self.file.damaged());
            }
        }
        Ok(())
    }
}

/// Writes a block to disk.
fn spill<T: Pod>(file: &mut SpillFile, items: &[T]) -> Result<Block<T>> {
    let bytes: &[u8] = bytemuck::cast_slice(items);
    Ok(Block::Spilled { offset: file.write(bytes)?, checks: bytes.chunks(PIECE_BYTES).map(xxh3_64).collect() })
}

/// Reader of an array at positions that mostly ascend. In that case each piece on disk is read
/// once.
#[derive(Debug)]
pub struct ArrayReader<'a, T> {
    array: &'a Array<T>,
    /// Position of the first cached item, which is the beginning of a piece.
    begin: u64,
    items: Vec<T>,
}

impl<T: Pod> ArrayReader<'_, T> {
    /// Returns the `count` items from `at` on.
    ///
    /// # Errors
    /// Returns the errors of [`Array::get`].
    ///
    /// # Panics
    /// Panics if there are fewer items.
    pub fn get(&mut self, at: u64, count: usize) -> Result<&[T]> {
        // The lookup is made twice because the borrow checker rejects a result that may borrow from
        // either.
        if self.array.in_place(at, count).is_none() {
            self.fill(at, at + count as u64)?;
            return Ok(&self.items[(at - self.begin) as usize..][..count]);
        }
        Ok(self.array.in_place(at, count).expect("it has just been there"))
    }

    /// Reads the items from `at` to `end` into the cache, unless they are there.
    fn fill(&mut self, at: u64, end: u64) -> Result<()> {
        let piece = Array::<T>::PIECE;
        let buffered = self.begin..self.begin + self.items.len() as u64;
        if buffered.contains(&at) && end <= buffered.end {
            return Ok(());
        }
        let begin = at - at % piece;
        let is_sequential = buffered.start <= begin && begin <= buffered.end && !self.items.is_empty();
        // Whole pieces of the cache that are still needed are kept.
        let whole = if is_sequential { buffered.end - buffered.end % piece } else { begin };
        if is_sequential {
            self.items.truncate((whole - buffered.start) as usize);
            self.items.drain(..(begin - buffered.start) as usize);
        } else {
            self.items.clear();
        }
        self.begin = begin;
        let ahead = if is_sequential { (begin + PIECES_AHEAD * piece).min(self.array.len()) } else { end };
        self.array.append_pieces(whole, end.max(ahead), &mut self.items)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn within<T: Pod>(allowed_bytes: u64) -> Array<T> {
        Array::new(&MemoryPool::default().limited(allowed_bytes))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn pushed_values_are_read_from_memory_and_disk(
            lengths in prop::collection::vec(0usize..300_000, 1..12), allowed in 0u64..6_000_000, later in 0u64..6_000_000
        ) {
            let mut array = within::<u32>(allowed);
            let mut pushed: Vec<u32> = Vec::new();
            let mut places = Vec::new();
            for length in lengths {
                let items: Vec<u32> = (0..length).map(|at| (pushed.len() + at) as u32).collect();
                prop_assert_eq!(array.push(&items).unwrap(), pushed.len() as u64);
                places.push((pushed.len(), length));
                pushed.extend(items);
                prop_assert!(array.held_bytes() <= allowed);
            }
            prop_assert_eq!(array.len(), pushed.len() as u64);
            for allowed in [allowed, allowed.min(later)] {
                array.hold_at_most(allowed).unwrap();
                prop_assert!(array.held_bytes() <= allowed);
                prop_assert!(array.spilled_bytes() > 0 || pushed.len() * 4 <= allowed as usize + 2 * RUN_LOG_BLOCK_BYTES);
                prop_assert!(array.blocks().map(Result::unwrap).collect::<Vec<_>>().concat() == pushed);
                let (mut scratch, mut reader) = (Vec::new(), array.reader());
                for &(at, length) in &places {
                    for (from, count) in [(at, length), (at, length / 2), (at + length / 2, length - length / 2)] {
                        prop_assert!(array.get(from as u64, count, &mut scratch).unwrap() == &pushed[from..from + count]);
                        prop_assert!(reader.get(from as u64, count).unwrap() == &pushed[from..from + count]);
                    }
                }
            }
        }

        #[test]
        fn reader_returns_the_same_sequentially_and_at_random(
            lengths in prop::collection::vec(0usize..3000, 1..400), allowed in 0u64..3_000_000,
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..100)
        ) {
            let mut array = within::<u16>(allowed);
            let lists: Vec<(u64, Vec<u16>)> = lengths.iter().enumerate().map(|(number, &length)| {
                let list: Vec<u16> = (0..length).map(|at| (number * 7 + at) as u16).collect();
                (array.push(&list).unwrap(), list)
            }).collect();
            let (mut reader, mut scratch) = (array.reader(), Vec::new());
            let random_lists = places.iter().map(|place| place.get(&lists));
            for (at, list) in lists.iter().chain(random_lists).chain(&lists) {
                prop_assert_eq!(reader.get(*at, list.len()).unwrap(), &list[..]);
                prop_assert_eq!(array.get(*at, list.len(), &mut scratch).unwrap(), &list[..]);
            }
        }
    }

    #[test]
    fn released_values_are_freed_and_the_others_are_read() {
        let mut array = within::<u64>(u64::MAX);
        let items: Vec<u64> = (0..400_000).collect();
        array.push(&items).unwrap();
        assert_eq!(array.held_bytes(), 3 << 20);
        array.forget_before((2 << 17) + 5);
        assert_eq!(array.held_bytes(), 1 << 20);
        array.forget_before((2 << 17) + 6);
        assert_eq!(array.reader().get(2 << 17, 100_000).unwrap(), &items[2 << 17..][..100_000]);
    }

    #[test]
    fn values_within_memory_are_read_there_and_others_from_disk() {
        let mut array = within::<u64>(1 << 20);
        let items: Vec<u64> = (0..700_000).collect();
        array.push(&items[..400_000]).unwrap();
        array.take_in().unwrap();
        assert_eq!(array.held_bytes(), 3 << 20);
        let spilled_bytes = array.spilled_bytes();
        array.push(&items[400_000..]).unwrap();
        assert!(array.spilled_bytes() > spilled_bytes && array.held_bytes() == 3 << 20);
        array.forget_before(1 << 17);
        assert_eq!(array.held_bytes(), 2 << 20);
        assert_eq!(array.reader().get(1 << 17, 500_000).unwrap(), &items[1 << 17..][..500_000]);
    }

    #[test]
    fn released_values_leave_the_disk_and_the_others_are_read() {
        let mut array = within::<[u32; 2]>(0);
        let items: Vec<[u32; 2]> = (0..400_000).map(|n| [n, n + 1]).collect();
        array.push(&items).unwrap();
        let block = Array::<[u32; 2]>::BLOCK;
        let full = array.file.taken_bytes();
        array.forget_before(2 * block as u64 + 5);
        let freed = (full - array.file.taken_bytes()) as usize;
        assert!(cfg!(not(target_os = "linux")) || (1 << 21) - (3 * PIECE_BYTES) < freed, "{freed} bytes were freed");
        assert_eq!(array.reader().get(2 * block as u64, 100_000).unwrap(), &items[2 * block..][..100_000]);
    }

    #[test]
    fn a_damaged_piece_is_an_error_and_the_others_are_read() {
        let mut array = within::<u64>(0);
        let items: Vec<u64> = (0..300_000).collect();
        array.push(&items).unwrap();
        array.file.damage(5 * PIECE_BYTES as u64 + 9);
        let piece = Array::<u64>::PIECE;
        let (mut scratch, mut reader) = (Vec::new(), array.reader());
        for outcome in [array.get(6 * piece - 1, 2, &mut scratch).map(drop), reader.get(5 * piece, 1).map(drop)] {
            let error = outcome.unwrap_err();
            assert_eq!(error.exit_code(), 8);
            assert!(error.to_string().contains("returned other bytes than were written"), "{error}");
        }
        assert_eq!(array.get(6 * piece, 2, &mut scratch).unwrap(), &items[6 * piece as usize..][..2]);
    }
}
