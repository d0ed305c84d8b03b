//! Sets of shingles of the local pages. They are on the local disk if memory is limited, because
//! only pages that are compared need their sets again.

use webtwin_base::error::Result;
use webtwin_spill::{Array, MemoryPool};

/// One set of shingles for each slot of the local pages.
///
/// # Memory
/// Takes 16 bytes for each slot, and 4 for each shingle or, if they are on disk, a block of 1 MiB.
#[derive(Debug)]
pub struct ShingleSets {
    hashes: Array<u32>,
    /// Position and size of the set of each slot.
    places: Vec<(u64, u32)>,
    items: u64,
}

impl ShingleSets {
    /// Creates an empty container. If memory is limited, all sets are written to disk.
    pub fn new(pool: &MemoryPool) -> ShingleSets {
        ShingleSets { hashes: Array::new(&pool.on_disk()), places: Vec::new(), items: 0 }
    }

    /// Appends the set of the next slot, which must be ascending.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn push(&mut self, set: &[u32]) -> Result<()> {
        let at = self.hashes.push(set)?;
        self.places.push((at, set.len() as u32));
        self.items += set.len() as u64;
        Ok(())
    }

    /// Assigns the set of an earlier slot to the next slot.
    pub fn push_again(&mut self, slot: usize) {
        self.places.push(self.places[slot]);
    }

    /// Returns the set of a slot, borrowed or read into `scratch`.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn get<'a>(&'a self, slot: usize, scratch: &'a mut Vec<u32>) -> Result<&'a [u32]> {
        let (at, size) = self.places[slot];
        self.hashes.get(at, size as usize, scratch)
    }

    /// Returns the size of the set of a slot.
    pub fn size(&self, slot: usize) -> u32 {
        self.places[slot].1
    }

    /// Returns the sum of the sizes of the sets of a range of slots.
    pub fn items_of(&self, slots: std::ops::Range<usize>) -> u64 {
        self.places[slots].iter().map(|place| u64::from(place.1)).sum()
    }

    /// Returns the number of shingles in all stored sets; sets of several slots count once.
    pub fn items(&self) -> u64 {
        self.items
    }
}
