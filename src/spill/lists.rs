//! Numbered lists, stored consecutively in memory or on the local disk.
//!
//! Each reader has a cache of its own and should read lists in mostly ascending order. Then each
//! part on disk is read once, plus a few KiB for each list that is out of order.

use std::ops::Range;

use bytemuck::Pod;

use super::array::{Array, ArrayReader};
use super::pool::MemoryPool;
use webtwin_base::error::{Error, Result};

/// Number of items after which memory is released while lists are drained: two blocks of them.
const ITEMS_PER_RELEASE: u64 = 1 << 18;

/// Number of lists that share one base offset.
const GROUP: usize = 64;

/// End positions of consecutive lists.
///
/// # Memory
/// 4 bytes for each list, and 8 bytes for each [`GROUP`].
#[derive(Debug, Default)]
struct Ends {
    /// Number of items before each group.
    group_starts: Vec<u64>,
    /// Number of items in the group up to the end of each list.
    within: Vec<u32>,
}

impl Ends {
    fn push(&mut self, end: u64) -> Result<()> {
        if self.within.len().is_multiple_of(GROUP) {
            self.group_starts.push(self.start(self.within.len()));
        }
        let relative_end = end - self.group_starts[self.group_starts.len() - 1];
        let within = u32::try_from(relative_end).map_err(|_| {
            let content = format!("numbers in the lists of {GROUP} pages that follow each other");
            Error::TooManyRows { what: content, found: relative_end, allowed: u64::from(u32::MAX) }
        })?;
        self.within.push(within);
        Ok(())
    }

    /// Returns the position of the first item of the list in a slot.
    fn start(&self, slot: usize) -> u64 {
        if slot == 0 { 0 } else { self.group_starts[(slot - 1) / GROUP] + u64::from(self.within[slot - 1]) }
    }

    fn len(&self) -> usize {
        self.within.len()
    }
}

/// Numbered lists, stored consecutively. By default they stay in memory.
///
/// # Memory
/// 4 bytes for each list, and the items in memory, or the overhead of an [`Array`] for items on
/// disk.
#[derive(Debug)]
pub struct SpillLists<T> {
    ends: Ends,
    items: Array<T>,
}

/// Creates lists that stay in memory.
impl<T: Pod> Default for SpillLists<T> {
    fn default() -> SpillLists<T> {
        SpillLists { ends: Ends::default(), items: Array::default() }
    }
}

impl<T: Pod> SpillLists<T> {
    /// Creates an empty container.
    pub fn new(pool: &MemoryPool) -> SpillLists<T> {
        SpillLists { ends: Ends::default(), items: Array::new(pool) }
    }

    /// Appends a list.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] or another error of a full disk if the list
    /// cannot be written to disk, and [`Error::TooManyRows`] if a group of lists has 2^32 items.
    pub fn push(&mut self, list: &[T]) -> Result<()> {
        self.items.push(list)?;
        self.ends.push(self.items.len())
    }

    /// Appends a copy of the list in an earlier slot.
    ///
    /// # Errors
    /// Returns the errors of [`SpillLists::push`] and of [`ListReader::get`].
    pub fn push_again(&mut self, slot: usize) -> Result<()> {
        let list = self.reader().get(slot)?.to_vec();
        self.push(&list)
    }

    /// Returns a reader of the lists.
    pub fn reader(&self) -> ListReader<'_, T> {
        ListReader { lists: self, items: self.items.reader() }
    }

    /// Returns the number of items in the list of a slot.
    pub fn size(&self, slot: usize) -> usize {
        let Range { start, end } = self.range(slot);
        (end - start) as usize
    }

    /// True if the list of a slot is contiguous in memory.
    pub fn is_in_memory(&self, slot: usize) -> bool {
        let Range { start, end } = self.range(slot);
        self.items.is_in_memory(start, (end - start) as usize)
    }

    /// Returns the number of items in the lists of consecutive slots, which is 0 for an empty
    /// range.
    pub fn items_of(&self, slots: Range<usize>) -> u64 {
        if slots.is_empty() { 0 } else { self.range(slots.end - 1).end - self.range(slots.start).start }
    }

    /// Returns the range of the list of a slot in the sequence of all items.
    pub fn range(&self, slot: usize) -> Range<u64> {
        self.ends.start(slot)..self.ends.start(slot + 1)
    }

    /// Creates an empty container with the same memory budget and the same disk.
    pub fn like(&self) -> SpillLists<T> {
        self.like_part(1)
    }

    /// Creates an empty container with the memory budget of this one divided by `parts`, and the
    /// same disk.
    pub fn like_part(&self, parts: u64) -> SpillLists<T> {
        SpillLists { ends: Ends::default(), items: self.items.like_part(parts) }
    }

    /// Returns the list of a slot: in place if it is in memory, otherwise in the scratch buffer
    /// `scratch`.
    ///
    /// # Errors
    /// Returns the errors of [`ListReader::get`].
    pub fn get<'a>(&'a self, slot: usize, scratch: &'a mut Vec<T>) -> Result<&'a [T]> {
        let Range { start, end } = self.range(slot);
        self.items.get(start, (end - start) as usize, scratch)
    }

    /// Writes up to `bytes` bytes of items to disk, like [`Array::give_up`].
    ///
    /// # Errors
    /// Returns the errors of [`SpillLists::push`].
    pub fn give_up(&mut self, bytes: u64) -> Result<u64> {
        self.items.give_up(bytes)
    }

    /// Reads all items on disk into memory, regardless of the budget.
    ///
    /// # Errors
    /// Returns the errors of [`ListReader::get`].
    pub fn take_in(&mut self) -> Result<()> {
        self.items.take_in()
    }

    /// Creates an empty array with the same memory budget and the same disk.
    pub fn held_alike<U: Pod>(&self) -> Array<U> {
        self.items.held_alike()
    }

    /// Calls `visit` with the lists from slot `from` on, until they have `items` items in total.
    /// Returns the slot after the last of them. Releases the memory of these lists and of all
    /// before them; they cannot be read again.
    ///
    /// # Errors
    /// Returns any error of the disk, and the first error of `visit`.
    pub fn pass(&mut self, from: usize, items: u64, mut visit: impl FnMut(&[T]) -> Result<()>) -> Result<usize> {
        let end = self.range(from).start + items;
        let mut next = from;
        let mut lists = self.reader();
        while next < self.slots() && self.range(next).start < end {
            visit(lists.get(next)?)?;
            next += 1;
        }
        self.items.forget_before(self.range(next - 1).end);
        Ok(next)
    }

    /// Calls `visit` with all lists in the order of their slots, and removes them.
    ///
    /// # Errors
    /// Returns any error of the disk, and the first error of `visit`.
    pub fn drain(&mut self, mut visit: impl FnMut(&[T]) -> Result<()>) -> Result<()> {
        let mut next = 0;
        while next < self.slots() {
            next = self.pass(next, ITEMS_PER_RELEASE, &mut visit)?;
        }
        *self = self.like();
        Ok(())
    }

    /// Drops the lists of the slots for which `stays` is false. The remaining lists get new slots
    /// in the same order.
    pub fn retain(&mut self, stays: &[bool]) -> Result<()> {
        let (mut retained, mut stays) = (self.like(), stays.iter());
        self.drain(|list| if stays.next() == Some(&true) { retained.push(list) } else { Ok(()) })?;
        *self = retained;
        Ok(())
    }

    /// Sets the memory budget of the items to `bytes`, and writes the items beyond it to disk.
    ///
    /// # Errors
    /// Returns the errors of [`SpillLists::push`].
    pub fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.items.hold_at_most(bytes)
    }

    /// Returns the number of bytes written to disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.items.spilled_bytes()
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of items in all lists.
    pub fn items(&self) -> u64 {
        self.items.len()
    }

    /// Removes all lists, and releases memory and disk space.
    pub fn clear(&mut self) {
        *self = SpillLists::default();
    }
}

/// Reader of lists, mostly in the order of their slots.
#[derive(Debug)]
pub struct ListReader<'a, T> {
    lists: &'a SpillLists<T>,
    items: ArrayReader<'a, T>,
}

impl<T: Pod> ListReader<'_, T> {
    /// Returns the list in a slot.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails or returns other bytes
    /// than were written.
    pub fn get(&mut self, slot: usize) -> Result<&[T]> {
        let Range { start, end } = self.lists.range(slot);
        self.items.get(start, (end - start) as usize)
    }
}
