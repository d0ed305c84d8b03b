//! Weighted features of pages, by slot.

use std::ops::Range;

use webtwin_base::error::Result;
use webtwin_core::text::Feature;
use webtwin_spill::{Array, ArrayReader, ListReader, MemoryPool, SpillLists};

/// Weighted features of all slots, back to back.
#[derive(Debug, Default)]
pub struct FeatureLists {
    hashes: SpillLists<u64>,
    weights: Array<u16>,
}

impl FeatureLists {
    /// Creates an empty container.
    pub fn new(pool: &MemoryPool) -> FeatureLists {
        FeatureLists { hashes: SpillLists::new(pool), weights: Array::new(pool) }
    }

    /// Appends the features of a page. Weights are clamped to 65,535 sixteenths.
    ///
    /// # Errors
    /// Returns any error of [`SpillLists::push`].
    pub fn push(&mut self, features: &[Feature]) -> Result<()> {
        let hashes: Vec<u64> = features.iter().map(|feature| feature.hash).collect();
        let weight = |feature: &Feature| feature.weight.min(u32::from(u16::MAX)) as u16;
        let weights: Vec<u16> = features.iter().map(weight).collect();
        self.push_as_kept(&hashes, &weights)
    }

    /// Appends the features of a page in the form that [`FeatureReader::get`] returns.
    ///
    /// # Errors
    /// Returns any error of [`SpillLists::push`].
    pub fn push_as_kept(&mut self, hashes: &[u64], weights: &[u16]) -> Result<()> {
        self.hashes.push(hashes)?;
        self.weights.push(weights)?;
        Ok(())
    }

    /// Appends a copy of the features of a slot, like [`SpillLists::push_again`].
    ///
    /// # Errors
    /// Returns any error of [`SpillLists::push_again`].
    pub fn push_again(&mut self, slot: usize) -> Result<()> {
        let mut reader = self.reader();
        let (hashes, weights) = reader.get(slot)?;
        let (hashes, weights) = (hashes.to_vec(), weights.to_vec());
        self.push_as_kept(&hashes, &weights)
    }

    /// Returns a reader of the features.
    pub fn reader(&self) -> FeatureReader<'_> {
        FeatureReader { lists: self, hashes: self.hashes.reader(), weights: self.weights.reader() }
    }

    /// Returns the number of features in a slot.
    pub fn size(&self, slot: usize) -> usize {
        self.hashes.size(slot)
    }

    /// Returns the number of features in a range of slots; 0 if there are no slots.
    pub fn items_of(&self, slots: Range<usize>) -> u64 {
        if self.slots() == 0 { 0 } else { self.hashes.items_of(slots) }
    }

    /// Keeps the slots for which `stays` is true, like [`SpillLists::retain`]. Does nothing if
    /// there are no slots.
    pub(super) fn retain(&mut self, stays: &[bool]) -> Result<()> {
        if self.slots() == 0 {
            return Ok(());
        }
        let mut weights = self.weights.like();
        for slot in (0..stays.len()).filter(|&slot| stays[slot]) {
            let Range { start, end } = self.hashes.range(slot);
            weights.push(self.weights.reader().get(start, (end - start) as usize)?)?;
            self.weights.forget_before(end);
        }
        self.weights = weights;
        self.hashes.retain(stays)
    }

    /// Limits the features in memory to `bytes` from now on.
    ///
    /// # Errors
    /// Returns any error of [`SpillLists::push`].
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        // A hash has four times the bytes of a weight.
        self.weights.hold_at_most(bytes / 5)?;
        self.hashes.hold_at_most(bytes / 5 * 4)
    }

    /// Returns the number of bytes on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.hashes.spilled_bytes() + self.weights.spilled_bytes()
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.hashes.slots()
    }

    /// Returns the number of features in all slots.
    pub fn items(&self) -> u64 {
        self.weights.len()
    }

    /// Removes all features, and releases their memory and disk space.
    pub fn clear(&mut self) {
        *self = FeatureLists::default();
    }
}

/// Reader of features, optimized for access in the order of slots.
#[derive(Debug)]
pub struct FeatureReader<'a> {
    lists: &'a FeatureLists,
    hashes: ListReader<'a, u64>,
    weights: ArrayReader<'a, u16>,
}

impl FeatureReader<'_> {
    /// Returns hashes and weights of the features in a slot.
    ///
    /// # Errors
    /// Returns any error of [`ListReader::get`].
    pub fn get(&mut self, slot: usize) -> Result<(&[u64], &[u16])> {
        let Range { start, end } = self.lists.hashes.range(slot);
        Ok((self.hashes.get(slot)?, self.weights.get(start, (end - start) as usize)?))
    }
}
