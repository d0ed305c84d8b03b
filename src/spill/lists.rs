//! Lists by number: back to back in memory, or on the local disk.
//!
//! Whoever reads has a reader of its own and takes lists mostly ascending; a reader of lists on disk reads each part of it once then,
//! and some kilobytes for each list it jumps to.

use std::ops::Range;

use bytemuck::Pod;

use super::array::{Array, ArrayReader};
use super::pool::MemoryPool;
use webtwin_base::error::{Error, Result};

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

/// Lists back to back. By default they stay in memory.
///
/// # Memory
/// 4 bytes a list, and its items in memory, or what an [`Array`] needs for those on disk.
#[derive(Debug)]
pub struct Lists<T> {
    ends: Ends,
    items: Array<T>,
}

/// Lists in memory.
impl<T: Pod> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { ends: Ends::default(), items: Array::default() }
    }
}

impl<T: Pod> Lists<T> {
    /// No lists yet.
    pub fn new(pool: &MemoryPool) -> Lists<T> {
        Lists { ends: Ends::default(), items: Array::new(pool) }
    }

    /// Appends a list.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Storage`] and its like when the disk does not take it; [`Error::TooManyRows`] for 2^32 numbers in few
    /// lists.
    pub fn push(&mut self, list: &[T]) -> Result<()> {
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
    pub fn reader(&self) -> ListReader<'_, T> {
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

    /// Where the list of a slot lies among the items of all.
    pub fn range(&self, slot: usize) -> Range<u64> {
        self.ends.start(slot)..self.ends.start(slot + 1)
    }

    /// No lists, held as these are.
    pub fn like(&self) -> Lists<T> {
        self.like_part(1)
    }

    /// The same for one of so many parts of what these may hold.
    pub fn like_part(&self, parts: u64) -> Lists<T> {
        Lists { ends: Ends::default(), items: self.items.like_part(parts) }
    }

    /// The list of a slot, in place if it is in memory, else in `room`.
    ///
    /// # Errors
    /// As [`ListReader::get`].
    pub fn get<'a>(&'a self, slot: usize, room: &'a mut Vec<T>) -> Result<&'a [T]> {
        let Range { start, end } = self.range(slot);
        self.items.get(start, (end - start) as usize, room)
    }

    /// As [`Array::give_up`].
    ///
    /// # Errors
    /// As [`Lists::push`].
    pub fn give_up(&mut self, bytes: u64) -> Result<u64> {
        self.items.give_up(bytes)
    }

    /// Takes what is on disk into memory, whatever may be held.
    ///
    /// # Errors
    /// As [`ListReader::get`].
    pub fn take_in(&mut self) -> Result<()> {
        self.items.take_in()
    }

    /// An array that may hold as many bytes in memory, beside the same disk.
    pub fn held_alike<U: Pod>(&self) -> Array<U> {
        self.items.held_alike()
    }

    /// Calls `each` with the lists from a slot on, until they have `items` numbers together; returns the slot after them. These lists
    /// and those before give their memory back, and are not read again.
    ///
    /// # Errors
    /// Those of the disk, and of `each`.
    pub fn pass(&mut self, from: usize, items: u64, mut each: impl FnMut(&[T]) -> Result<()>) -> Result<usize> {
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
    pub fn drain(&mut self, mut each: impl FnMut(&[T]) -> Result<()>) -> Result<()> {
        let mut next = 0;
        while next < self.slots() {
            next = self.pass(next, PASSED_AT_ONCE, &mut each)?;
        }
        *self = self.like();
        Ok(())
    }

    /// Drops the lists in slots that do not stay.
    pub fn retain(&mut self, stays: &[bool]) -> Result<()> {
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
pub struct ListReader<'a, T> {
    lists: &'a Lists<T>,
    items: ArrayReader<'a, T>,
}

impl<T: Pod> ListReader<'_, T> {
    /// The list in a slot.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Storage`] if the disk fails, or has other bytes than were written.
    pub fn get(&mut self, slot: usize) -> Result<&[T]> {
        let Range { start, end } = self.lists.range(slot);
        self.items.get(start, (end - start) as usize)
    }
}
