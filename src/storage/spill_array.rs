//! An array that only grows and is read by position: its beginning in memory, the rest on the local disk.

use bytemuck::Pod;

use super::spill::{Disk, Extent, SpillFile, TAPE_BLOCK_BYTES};
use crate::error::Result;

/// Items in the order they came.
#[derive(Debug)]
pub struct SpillArray<T> {
    /// Full blocks, all of one length: the beginning.
    held: Vec<Vec<T>>,
    /// The end, which is no full block yet.
    open: Vec<T>,
    /// Items before `open`.
    put_away: u64,
    allowed_bytes: u64,
    file: SpillFile,
}

impl<T: Pod> SpillArray<T> {
    const BLOCK: usize = TAPE_BLOCK_BYTES / size_of::<T>();

    /// An empty array that holds up to `allowed_bytes` in memory, and a block.
    pub fn new(allowed_bytes: u64, disk: &Disk) -> SpillArray<T> {
        let file = SpillFile::new(disk);
        SpillArray { held: Vec::new(), open: Vec::new(), put_away: 0, allowed_bytes, file }
    }

    /// Appends items; returns the position of the first.
    ///
    /// # Errors
    /// [`crate::error::Error::Storage`] and its like when the disk does not take them.
    pub fn push(&mut self, mut items: &[T]) -> Result<u64> {
        let at = self.put_away + self.open.len() as u64;
        while !items.is_empty() {
            if self.open.capacity() == 0 {
                self.open.reserve_exact(Self::BLOCK);
            }
            let (some, rest) = items.split_at(items.len().min(Self::BLOCK - self.open.len()));
            self.open.extend_from_slice(some);
            items = rest;
            if self.open.len() == Self::BLOCK {
                self.put_away()?;
            }
        }
        Ok(at)
    }

    fn put_away(&mut self) -> Result<()> {
        self.put_away += self.open.len() as u64;
        let is_spilling = self.held.len() < (self.put_away / Self::BLOCK as u64 - 1) as usize;
        if !is_spilling && self.held_bytes() + TAPE_BLOCK_BYTES as u64 <= self.allowed_bytes {
            self.held.push(std::mem::take(&mut self.open));
            return Ok(());
        }
        self.file.append(bytemuck::cast_slice(&self.open))?;
        self.open.clear();
        Ok(())
    }

    /// Bytes of full blocks in memory.
    pub fn held_bytes(&self) -> u64 {
        (self.held.len() * TAPE_BLOCK_BYTES) as u64
    }

    /// Bytes written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.file.written_bytes()
    }

    /// The `count` items from `at` on, in place if they are in memory in one piece, else in `room`.
    ///
    /// # Errors
    /// [`crate::error::Error::Storage`] if the disk fails.
    ///
    /// # Panics
    /// When there are not as many items.
    pub fn get<'a>(&'a self, at: u64, count: usize, room: &'a mut Vec<T>) -> Result<&'a [T]> {
        if let Some(items) = self.in_memory(at).and_then(|items| items.get(..count)) {
            return Ok(items);
        }
        room.clear();
        while room.len() < count {
            let (at, rest) = (at + room.len() as u64, count - room.len());
            match self.in_memory(at) {
                Some(items) => room.extend_from_slice(&items[..rest.min(items.len())]),
                None => {
                    let held = (self.held.len() * Self::BLOCK) as u64;
                    let some = rest.min((self.put_away - at) as usize);
                    let offset = (at - held) * size_of::<T>() as u64;
                    self.file.read(Extent { offset, bytes: some * size_of::<T>() }, room)?;
                }
            }
        }
        Ok(room)
    }

    /// The items from `at` on to the end of their block, if that is in memory.
    fn in_memory(&self, at: u64) -> Option<&[T]> {
        match at.checked_sub(self.put_away) {
            Some(behind) => Some(&self.open[behind as usize..]),
            None => Some(&self.held.get((at / Self::BLOCK as u64) as usize)?[(at % Self::BLOCK as u64) as usize..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn what_was_pushed_is_read_wherever_it_lies(
            lengths in prop::collection::vec(0usize..300_000, 1..12), allowed in 0u64..6_000_000
        ) {
            let mut array = SpillArray::<u32>::new(allowed, &Disk::new(&std::env::temp_dir(), 0));
            let mut all: Vec<u32> = Vec::new();
            let mut places = Vec::new();
            for length in lengths {
                let items: Vec<u32> = (0..length).map(|at| (all.len() + at) as u32).collect();
                prop_assert_eq!(array.push(&items).unwrap(), all.len() as u64);
                places.push((all.len(), length));
                all.extend(items);
            }
            prop_assert!(array.held_bytes() <= allowed);
            prop_assert!(array.spilled_bytes() > 0 || all.len() * 4 <= allowed as usize + 2 * TAPE_BLOCK_BYTES);
            let mut room = Vec::new();
            for (at, length) in places {
                for (from, count) in [(at, length), (at, length / 2), (at + length / 2, length - length / 2)] {
                    let got = array.get(from as u64, count, &mut room).unwrap();
                    prop_assert!(got == &all[from..from + count]);
                }
            }
        }
    }
}
