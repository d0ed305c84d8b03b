//! Lists of numbers by slot: the chunks, features and links of the pages on a shelf, in memory or on the local disk.
//!
//! Whoever reads has a reader of its own and takes slots mostly ascending, as [`WorkerPages::kept`] gives them; a reader of lists
//! on disk reads each part of it once then, and some kilobytes for each slot it jumps to.
//!
//! [`WorkerPages::kept`]: crate::reading::worker_pages::WorkerPages::kept

use std::ops::Range;

use bytemuck::Pod;

use webtwin_base::error::{Error, Result};
use webtwin_core::text::Feature;
use webtwin_storage::spill_array::{Reader, SpillArray};
use webtwin_storage::spill_file::Disk;

/// Numbers after which memory is given back while lists are taken out: two blocks of them.
const PASSED_AT_ONCE: u64 = 1 << 18;

/// Lists for whose ends the numbers before them are held once.
const GROUP: usize = 64;

/// Where lists that lie back to back end.
///
/// # Memory
/// 4 bytes a list, and 8 for each [`GROUP`].
#[derive(Debug, Default)]
struct Ends {
    /// Numbers before each group.
    before: Vec<u64>,
    /// Numbers of its group up to the end of each list.
    within: Vec<u32>,
}

impl Ends {
    fn push(&mut self, end: u64) -> Result<()> {
        if self.within.len().is_multiple_of(GROUP) {
            self.before.push(self.start(self.within.len()));
        }
        let found = end - self.before[self.before.len() - 1];
        let within = u32::try_from(found).map_err(|_| {
            let what = format!("numbers in the lists of {GROUP} pages that follow each other");
            Error::TooManyRows { what, found, allowed: u64::from(u32::MAX) }
        })?;
        self.within.push(within);
        Ok(())
    }

    /// Where the list in a slot begins.
    fn start(&self, slot: usize) -> u64 {
        if slot == 0 { 0 } else { self.before[(slot - 1) / GROUP] + u64::from(self.within[slot - 1]) }
    }

    fn len(&self) -> usize {
        self.within.len()
    }
}

/// Lists of numbers back to back. By default they stay in memory.
///
/// # Memory
/// 4 bytes a list; 8 a number in memory, or what [`SpillArray`] needs for those on disk.
#[derive(Debug, Default)]
pub struct Lists {
    ends: Ends,
    items: SpillArray<u64>,
}

impl Lists {
    /// No lists yet; those that may not be held go to `disk`.
    pub fn beside(disk: &Disk) -> Lists {
        Lists { ends: Ends::default(), items: SpillArray::new(u64::MAX, disk) }
    }

    /// Appends a list.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Storage`] and its like when the disk does not take it; [`Error::TooManyRows`] for 2^32 numbers in few
    /// lists.
    pub fn push(&mut self, list: &[u64]) -> Result<()> {
        self.items.push(list)?;
        self.ends.push(self.items.len())
    }

    /// Appends the list of an earlier slot.
    ///
    /// # Errors
    /// As [`Lists::push`], and those of reading.
    pub fn push_again(&mut self, slot: usize) -> Result<()> {
        let list = self.reader().get(slot)?.to_vec();
        self.push(&list)
    }

    /// Reads lists.
    pub fn reader(&self) -> ListReader<'_> {
        ListReader { lists: self, items: self.items.reader() }
    }

    /// Numbers in the list of a slot.
    pub fn size(&self, slot: usize) -> usize {
        let Range { start, end } = self.range(slot);
        (end - start) as usize
    }

    /// Whether the list of a slot is in memory, in one piece.
    pub fn is_in_memory(&self, slot: usize) -> bool {
        let Range { start, end } = self.range(slot);
        self.items.is_in_memory(start, (end - start) as usize)
    }

    /// Numbers in the lists of neighbouring slots; none where there are no such slots.
    pub fn items_of(&self, slots: Range<usize>) -> u64 {
        if slots.is_empty() { 0 } else { self.range(slots.end - 1).end - self.range(slots.start).start }
    }

    fn range(&self, slot: usize) -> Range<u64> {
        self.ends.start(slot)..self.ends.start(slot + 1)
    }

    /// No lists, held as these are.
    pub fn like(&self) -> Lists {
        self.like_part(1)
    }

    /// The same for one of so many parts of what these may hold.
    pub(super) fn like_part(&self, parts: u64) -> Lists {
        Lists { ends: Ends::default(), items: self.items.like_part(parts) }
    }

    /// The list of a slot, in place if it is in memory, else in `room`.
    ///
    /// # Errors
    /// As [`ListReader::get`].
    pub(super) fn get<'a>(&'a self, slot: usize, room: &'a mut Vec<u64>) -> Result<&'a [u64]> {
        let Range { start, end } = self.range(slot);
        self.items.get(start, (end - start) as usize, room)
    }

    /// As [`SpillArray::give_up`].
    ///
    /// # Errors
    /// As [`Lists::push`].
    pub(super) fn give_up(&mut self, bytes: u64) -> Result<u64> {
        self.items.give_up(bytes)
    }

    /// Takes what is on disk into memory, whatever may be held.
    ///
    /// # Errors
    /// As [`ListReader::get`].
    pub(super) fn take_in(&mut self) -> Result<()> {
        self.items.take_in()
    }

    /// An array that may hold as many bytes in memory, beside the same disk.
    pub fn held_alike<T: Pod>(&self) -> SpillArray<T> {
        self.items.held_alike()
    }

    /// Calls `each` with the lists from a slot on, until they have `items` numbers together; returns the slot after them. These lists
    /// and those before give their memory back, and are not read again.
    ///
    /// # Errors
    /// Those of the disk, and of `each`.
    pub fn pass(&mut self, from: usize, items: u64, mut each: impl FnMut(&[u64]) -> Result<()>) -> Result<usize> {
        let most = self.range(from).start + items;
        let mut next = from;
        let mut lists = self.reader();
        while next < self.slots() && self.range(next).start < most {
            each(lists.get(next)?)?;
            next += 1;
        }
        self.items.forget_before(self.range(next - 1).end);
        Ok(next)
    }

    /// Calls `each` with all lists, in the order of their slots, of which none is left.
    ///
    /// # Errors
    /// Those of the disk, and of `each`.
    pub fn drain(&mut self, mut each: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
        let mut next = 0;
        while next < self.slots() {
            next = self.pass(next, PASSED_AT_ONCE, &mut each)?;
        }
        *self = self.like();
        Ok(())
    }

    /// Drops the lists in slots that do not stay.
    pub(super) fn retain(&mut self, stays: &[bool]) -> Result<()> {
        let (mut kept, mut stays) = (self.like(), stays.iter());
        self.drain(|list| if stays.next() == Some(&true) { kept.push(list) } else { Ok(()) })?;
        *self = kept;
        Ok(())
    }

    /// Holds at most so many bytes of numbers in memory from now on.
    ///
    /// # Errors
    /// As [`Lists::push`].
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.items.hold_at_most(bytes)
    }

    /// Bytes on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.items.spilled_bytes()
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.ends.len()
    }

    /// Numbers in all lists.
    pub fn items(&self) -> u64 {
        self.items.len()
    }

    /// Gives back memory and disk.
    pub fn clear(&mut self) {
        *self = Lists::default();
    }
}

/// Reads lists, mostly in the order of their slots.
#[derive(Debug)]
pub struct ListReader<'a> {
    lists: &'a Lists,
    items: Reader<'a, u64>,
}

impl ListReader<'_> {
    /// The list in a slot.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Storage`] if the disk fails, or has other bytes than were written.
    pub fn get(&mut self, slot: usize) -> Result<&[u64]> {
        let Range { start, end } = self.lists.range(slot);
        self.items.get(start, (end - start) as usize)
    }
}

/// Gives `take`, which takes rows that cannot fail, what comes before the first failure.
///
/// # Errors
/// That failure; else those of `take`.
pub fn until_failure<T, I: Iterator<Item = Result<T>>, R>(
    all: I,
    take: impl FnOnce(UntilFailure<'_, I>) -> Result<R>,
) -> Result<R> {
    let mut failed = None;
    let taken = take(UntilFailure { all, failed: &mut failed });
    failed.map_or(taken, Err)
}

/// What comes before the first failure.
pub struct UntilFailure<'a, I> {
    all: I,
    failed: &'a mut Option<Error>,
}

impl<T, I: Iterator<Item = Result<T>>> Iterator for UntilFailure<'_, I> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.failed.is_some() {
            return None;
        }
        match self.all.next()? {
            Ok(one) => Some(one),
            Err(error) => {
                *self.failed = Some(error);
                None
            }
        }
    }
}

/// Weighted features back to back.
#[derive(Debug, Default)]
pub struct FeatureLists {
    hashes: Lists,
    weights: SpillArray<u16>,
}

impl FeatureLists {
    /// No features yet; those that may not be held go to `disk`.
    pub fn beside(disk: &Disk) -> FeatureLists {
        FeatureLists { hashes: Lists::beside(disk), weights: SpillArray::new(u64::MAX, disk) }
    }

    /// Appends the features of a page; a weight beyond 65,535 sixteenths is that.
    ///
    /// # Errors
    /// As [`Lists::push`].
    pub fn push(&mut self, features: &[Feature]) -> Result<()> {
        let hashes: Vec<u64> = features.iter().map(|feature| feature.hash).collect();
        let weight = |feature: &Feature| feature.weight.min(u32::from(u16::MAX)) as u16;
        let weights: Vec<u16> = features.iter().map(weight).collect();
        self.push_as_kept(&hashes, &weights)
    }

    /// Appends the features of a page as [`FeatureReader::get`] gives them.
    ///
    /// # Errors
    /// As [`Lists::push`].
    pub fn push_as_kept(&mut self, hashes: &[u64], weights: &[u16]) -> Result<()> {
        self.hashes.push(hashes)?;
        self.weights.push(weights)?;
        Ok(())
    }

    /// As [`Lists::push_again`].
    ///
    /// # Errors
    /// Likewise.
    pub fn push_again(&mut self, slot: usize) -> Result<()> {
        let mut reader = self.reader();
        let (hashes, weights) = reader.get(slot)?;
        let (hashes, weights) = (hashes.to_vec(), weights.to_vec());
        self.push_as_kept(&hashes, &weights)
    }

    /// Reads features.
    pub fn reader(&self) -> FeatureReader<'_> {
        FeatureReader { hashes: self.hashes.reader(), weights: self.weights.reader() }
    }

    /// Features in a slot.
    pub fn size(&self, slot: usize) -> usize {
        self.hashes.size(slot)
    }

    /// Features in neighbouring slots; none where there are no slots.
    pub fn items_of(&self, slots: Range<usize>) -> u64 {
        if self.slots() == 0 { 0 } else { self.hashes.items_of(slots) }
    }

    /// As [`Lists::retain`]; no slots stay none.
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

    /// Holds at most so many bytes of features in memory from now on.
    ///
    /// # Errors
    /// As [`Lists::push`].
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        // A hash has four times the bytes of a weight.
        self.weights.hold_at_most(bytes / 5)?;
        self.hashes.hold_at_most(bytes / 5 * 4)
    }

    /// Bytes on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.hashes.spilled_bytes() + self.weights.spilled_bytes()
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.hashes.slots()
    }

    /// Features in all lists.
    pub fn items(&self) -> u64 {
        self.weights.len()
    }

    /// Gives back memory and disk.
    pub fn clear(&mut self) {
        *self = FeatureLists::default();
    }
}

/// Reads features, mostly in the order of their slots.
#[derive(Debug)]
pub struct FeatureReader<'a> {
    hashes: ListReader<'a>,
    weights: Reader<'a, u16>,
}

impl FeatureReader<'_> {
    /// Hashes and weights of the features in a slot.
    ///
    /// # Errors
    /// As [`ListReader::get`].
    pub fn get(&mut self, slot: usize) -> Result<(&[u64], &[u16])> {
        let Range { start, end } = self.hashes.lists.range(slot);
        Ok((self.hashes.get(slot)?, self.weights.get(start, (end - start) as usize)?))
    }
}
