//! Rows that one worker partitions into buckets, and that all workers of its process then read.
//! They are in memory and, beyond a budget, on the local disk.
//!
//! [`super::Partitions`] releases its buckets one by one together with their memory. An arena keeps
//! all rows until it is dropped, and reading takes only a shared reference. So the rows can lie in
//! a few long arrays on huge pages, because the first mapping of a row's memory costs more than
//! copying the row. And workers of a process can read each other's rows in place, instead of
//! receiving them.
//!
//! The rows of a bucket are collected in a *lot*, which stays in the core's cache, and are copied
//! to the bucket's block as soon as the lot is full. A core cannot keep track of hundreds of memory
//! locations that are written row by row in turn.

use bytemuck::Pod;

use super::disk::{Extent, SpillFile};
use super::pool::MemoryPool;
use webtwin_base::error::Result;
use webtwin_base::huge::HugeArray;

/// Number of rows of a lot.
const LOT: usize = 64;

/// Number of rows of a block: a multiple of the lot.
const BLOCK: usize = 16 * LOT;

/// Size of a long array in bytes. Only its written part takes memory.
const SLAB_BYTES: usize = 64 << 20;

/// Rows by bucket, in memory and on disk.
pub struct Arena<T> {
    /// Lots of all buckets, one after the other.
    lots: Vec<T>,
    buckets: Vec<Bucket>,
    slabs: Vec<HugeArray<T>>,
    /// Number of blocks that were ever used, and the blocks among them that are free again.
    known_blocks: usize,
    free: Vec<u32>,
    max_blocks: usize,
    /// Bucket that is written to disk next.
    next: usize,
    file: SpillFile,
}

#[derive(Clone, Default)]
struct Bucket {
    spilled: Vec<Extent>,
    blocks: Vec<u32>,
    /// Number of rows in the last block.
    of_last: usize,
    /// Number of rows in the lot.
    of_lot: usize,
}

impl Bucket {
    fn has_capacity(&self) -> bool {
        !self.blocks.is_empty() && self.of_last < BLOCK
    }

    fn full_blocks(&self) -> usize {
        self.blocks.len() - usize::from(self.has_capacity())
    }
}

impl<T: Pod> Arena<T> {
    /// Creates `count` empty buckets. Their blocks hold in memory what the pool allows a worker,
    /// but at least [`Arena::required_bytes`].
    pub fn new(count: usize, pool: &MemoryPool) -> Arena<T> {
        let blocks = usize::try_from(pool.of_worker()).unwrap_or(usize::MAX) / (BLOCK * size_of::<T>());
        Arena {
            lots: vec![T::zeroed(); count * LOT],
            buckets: vec![Bucket::default(); count],
            slabs: Vec::new(),
            known_blocks: 0,
            free: Vec::new(),
            max_blocks: blocks.clamp(count, u32::MAX as usize),
            next: 0,
            file: SpillFile::new(&pool.disk()),
        }
    }

    /// Returns the memory in bytes of `count` buckets that all have rows: a lot and a block each.
    pub fn required_bytes(count: usize) -> u64 {
        (count * (LOT + BLOCK) * size_of::<T>()) as u64
    }

    /// Adds each row to the bucket that `bucket` returns for it.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::NoMemory`] if the system refuses memory, and
    /// [`webtwin_base::error::Error::DiskLimit`], [`webtwin_base::error::Error::DiskFull`] or
    /// [`webtwin_base::error::Error::Storage`] if rows cannot be written to disk.
    pub fn partition(&mut self, rows: &[T], mut bucket: impl FnMut(&T) -> usize) -> Result<()> {
        for row in rows {
            let number = bucket(row);
            let position = &mut self.buckets[number].of_lot;
            self.lots[number * LOT + *position] = *row;
            *position += 1;
            if *position == LOT {
                self.put_away(number)?;
            }
        }
        Ok(())
    }

    /// Copies a full lot to a block.
    fn put_away(&mut self, number: usize) -> Result<()> {
        if !self.buckets[number].has_capacity() {
            let block = self.free_block()?;
            self.buckets[number].blocks.push(block);
            self.buckets[number].of_last = 0;
        }
        let bucket = &mut self.buckets[number];
        let (slab, start) = place::<T>(bucket.blocks[bucket.blocks.len() - 1]);
        let to = &mut self.slabs[slab][start + bucket.of_last..][..LOT];
        to.copy_from_slice(&self.lots[number * LOT..][..LOT]);
        bucket.of_last += LOT;
        bucket.of_lot = 0;
        Ok(())
    }

    fn free_block(&mut self) -> Result<u32> {
        if self.free.is_empty() && self.known_blocks == self.max_blocks {
            self.spill()?;
        }
        if let Some(block) = self.free.pop() {
            return Ok(block);
        }
        if self.known_blocks == self.slabs.len() * blocks_of_slab::<T>() {
            self.slabs.push(HugeArray::zeroed(blocks_of_slab::<T>() * BLOCK)?);
        }
        self.known_blocks += 1;
        Ok(self.known_blocks as u32 - 1)
    }

    /// Writes full blocks to disk, one bucket after the other, until an eighth of all blocks is
    /// free. There are at least as many blocks as buckets, and the bucket that requests a block has
    /// no partial one, so at least one block is full.
    fn spill(&mut self) -> Result<()> {
        let mut piece: Vec<T> = Vec::new();
        for _ in 0..self.buckets.len() {
            let bucket = &mut self.buckets[self.next];
            self.next = (self.next + 1) % self.lots.len().div_ceil(LOT);
            let full = bucket.full_blocks();
            if full == 0 {
                continue;
            }
            piece.clear();
            for block in bucket.blocks.drain(..full) {
                let (slab, start) = place::<T>(block);
                piece.extend_from_slice(&self.slabs[slab][start..start + BLOCK]);
                self.free.push(block);
            }
            bucket.spilled.push(self.file.append(bytemuck::cast_slice(&piece))?);
            if self.free.len() > self.max_blocks / 8 {
                break;
            }
        }
        Ok(())
    }

    /// Passes the rows of a bucket to `take`, in several calls and in no particular order. Rows on
    /// disk are read into the scratch buffer `scratch`.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails.
    pub fn read(&self, number: usize, scratch: &mut Vec<T>, mut take: impl FnMut(&[T])) -> Result<()> {
        let bucket = &self.buckets[number];
        for extent in &bucket.spilled {
            scratch.clear();
            self.file.read(*extent, scratch)?;
            take(scratch);
        }
        for (at, block) in (1..).zip(&bucket.blocks) {
            let (slab, start) = place::<T>(*block);
            let rows = if at == bucket.blocks.len() { bucket.of_last } else { BLOCK };
            take(&self.slabs[slab][start..start + rows]);
        }
        take(&self.lots[number * LOT..][..bucket.of_lot]);
        Ok(())
    }

    /// Drops the rows of a bucket, and makes their memory available to other buckets.
    pub fn empty(&mut self, number: usize) {
        let bucket = std::mem::take(&mut self.buckets[number]);
        self.free.extend(bucket.blocks);
    }

    /// Returns the number of buckets.
    pub fn count(&self) -> usize {
        self.buckets.len()
    }

    /// Returns the size in bytes of the blocks in memory that are in use, without the lots.
    pub fn held_bytes(&self) -> u64 {
        ((self.known_blocks - self.free.len()) * BLOCK * size_of::<T>()) as u64
    }

    /// Returns the number of bytes written to disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.written_bytes()
    }
}

const fn blocks_of_slab<T>() -> usize {
    SLAB_BYTES / (BLOCK * size_of::<T>())
}

/// Returns the slab of a block, and the position of the block in it.
fn place<T>(block: u32) -> (usize, usize) {
    let (slab, at) = (block as usize / blocks_of_slab::<T>(), block as usize % blocks_of_slab::<T>());
    (slab, at * BLOCK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows_of(arena: &Arena<u64>, bucket: usize) -> Vec<u64> {
        let mut rows = Vec::new();
        arena.read(bucket, &mut vec![9], |some| rows.extend_from_slice(some)).unwrap();
        rows.sort_unstable();
        rows
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn buckets_have_the_pushed_rows_after_any_spills_and_releases(
            seed: u64, count in 1usize..6, partitioned in 0u64..60_000, allowed in 0u64..600_000
        ) {
            let mut arena = Arena::<u64>::new(count, &MemoryPool::default().limited(allowed));
            let bucket = |row: &u64| (seed.wrapping_mul((row * row) | 1) >> 40) as usize % count;
            let rows: Vec<u64> = (0..partitioned).collect();
            let rows_in_bucket = |number: usize, rows: &[u64]| -> Vec<u64> {
                rows.iter().copied().filter(|row| bucket(row) == number).collect()
            };
            for batch in rows.chunks(777) {
                arena.partition(batch, bucket).unwrap();
            }
            prop_assert!(arena.held_bytes() <= allowed.max(Arena::<u64>::required_bytes(count)));
            prop_assert!(partitioned * 8 <= allowed + Arena::<u64>::required_bytes(count) || arena.spilled_bytes() > 0);
            for number in 0..count {
                prop_assert_eq!(rows_of(&arena, number), rows_in_bucket(number, &rows));
            }
            // The memory of an emptied bucket is reused, and later rows are the only ones in it.
            for number in (0..count).step_by(2) {
                arena.empty(number);
                prop_assert!(rows_of(&arena, number).is_empty());
            }
            let later_rows: Vec<u64> = (partitioned..partitioned + 5000).collect();
            arena.partition(&later_rows, bucket).unwrap();
            for number in 0..count {
                let remaining = if number % 2 == 0 { &[][..] } else { &rows };
                prop_assert_eq!(rows_of(&arena, number), [rows_in_bucket(number, remaining), rows_in_bucket(number, &later_rows)].concat());
            }
        }
    }

    #[test]
    fn missing_spill_disk_is_named_if_needed() {
        let nowhere = MemoryPool::new(0, std::path::Path::new("/nowhere/at/all"), super::super::SPILL);
        let mut arena = Arena::<u64>::new(1, &nowhere);
        let error = arena.partition(&[1; 3 * BLOCK], |_| 0).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all (effort.spill)"), "{error}");
    }
}
