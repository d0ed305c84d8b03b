//! The sets of shingles of the pages on a shelf: on the local disk where memory has a bound, for only the pages that
//! are compared need theirs again.

use webtwin_base::error::Result;
use webtwin_spill::{Array, MemoryPool};

/// A set for each slot of a shelf.
///
/// # Memory
/// 16 bytes a slot, and 4 a shingle or, on disk, a block of 1 MiB.
#[derive(Debug)]
pub struct ShingleSets {
    hashes: Array<u32>,
    /// Position and size of each slot's set.
    places: Vec<(u64, u32)>,
    items: u64,
}

impl ShingleSets {
    /// No sets yet. Where memory has a bound, the disk takes all of them.
    pub fn new(pool: &MemoryPool) -> ShingleSets {
        ShingleSets { hashes: Array::new(&pool.on_disk()), places: Vec::new(), items: 0 }
    }

    /// Appends the set of the next slot, ascending.
    ///
    /// # Errors
    /// Those of a disk that does not take it.
    pub fn push(&mut self, set: &[u32]) -> Result<()> {
        let at = self.hashes.push(set)?;
        self.places.push((at, set.len() as u32));
        self.items += set.len() as u64;
        Ok(())
    }

    /// Gives the next slot the set of an earlier one.
    pub fn push_again(&mut self, slot: usize) {
        self.places.push(self.places[slot]);
    }

    /// The set of a slot, in place or in `room`.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn get<'a>(&'a self, slot: usize, room: &'a mut Vec<u32>) -> Result<&'a [u32]> {
        let (at, size) = self.places[slot];
        self.hashes.get(at, size as usize, room)
    }

    /// Size of the set of a slot.
    pub fn size(&self, slot: usize) -> u32 {
        self.places[slot].1
    }

    /// Sizes of the sets of neighbouring slots, added up.
    pub fn items_of(&self, slots: std::ops::Range<usize>) -> u64 {
        self.places[slots].iter().map(|place| u64::from(place.1)).sum()
    }

    /// Shingles in all sets that are stored.
    pub fn items(&self) -> u64 {
        self.items
    }
}
