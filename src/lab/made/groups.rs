//! Assignment of pages to groups of given sizes, such that the numbers of the members of a group
//! are far apart.
//!
//! Slots are assigned to groups one after another, and a bijection maps pages to slots. Both
//! directions are computed rather than looked up, so a table of any size needs no memory.

use webtwin_base::ids::{Page, splitmix64};

/// An assignment of pages to groups.
#[derive(Debug, Clone)]
pub(super) struct GroupAssignment {
    /// Number of pages per group, by class.
    sizes: Vec<u32>,
    /// First slot of each class, beginning with the last class, and the number of pages.
    starts: Vec<u32>,
    shuffle: Shuffle,
}

/// Place of a slot within its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupSlot {
    pub class: usize,
    /// First slot of the group.
    pub first: u32,
    /// Index of the slot in the group, from 0.
    pub member: u32,
}

impl GroupAssignment {
    /// Makes an assignment. `classes` are pairs of the number of pages of a group, and the number
    /// of pages of all such groups per thousand. The first class, of single pages, gets the
    /// remaining pages.
    pub(super) fn new(pages: u32, key: u64, classes: impl Iterator<Item = (u32, u32)>) -> GroupAssignment {
        let classes: Vec<(u32, u32)> = classes.collect();
        let mut starts = vec![0];
        let mut start = 0;
        for &(size, share) in classes[1..].iter().rev() {
            start += (u64::from(pages) * u64::from(share) / 1000 / u64::from(size)) as u32 * size;
            starts.push(start);
        }
        starts.push(pages);
        let sizes = classes.iter().map(|&(size, _)| size).collect();
        GroupAssignment { sizes, starts, shuffle: Shuffle::new(pages, key) }
    }

    /// Returns the number of pages in all groups.
    pub(super) fn pages(&self) -> u32 {
        self.shuffle.count
    }

    /// Returns the slot of a page.
    pub(super) fn slot(&self, doc: Page) -> u32 {
        self.shuffle.slot(doc)
    }

    /// Returns the page of a slot.
    pub(super) fn doc(&self, slot: u32) -> Page {
        self.shuffle.doc(slot)
    }

    /// Returns the place of a slot.
    pub(super) fn place(&self, slot: u32) -> GroupSlot {
        let group = self.starts.partition_point(|&start| start <= slot) - 1;
        let class = self.sizes.len() - 1 - group;
        let member = (slot - self.starts[group]) % self.sizes[class];
        GroupSlot { class, first: slot - member, member }
    }

    /// Returns the first slot of single pages.
    pub(super) fn first_single(&self) -> u32 {
        self.starts[self.starts.len() - 2]
    }

    /// Returns the number of pages per group of a class.
    pub(super) fn size(&self, class: usize) -> u32 {
        self.sizes[class]
    }
}

/// A bijection of `0..count`: a Feistel network over a rectangle of slightly more than `count`
/// places. It is repeated until the result is within range, which nearly always takes one round.
#[derive(Debug, Clone)]
struct Shuffle {
    count: u32,
    rows: u32,
    columns: u32,
    key: u64,
}

impl Shuffle {
    fn new(count: u32, key: u64) -> Shuffle {
        let columns = count.max(1).isqrt() + 1;
        Shuffle { count, rows: count.div_ceil(columns).max(1), columns, key }
    }

    /// Returns a pseudorandom number below `bound` for a row or column.
    fn round(&self, source: u32, round: u64, bound: u32) -> u32 {
        let random = splitmix64(self.key ^ (u64::from(source) << 2) ^ round) >> 32;
        ((random * u64::from(bound)) >> 32) as u32
    }

    fn slot(&self, doc: Page) -> u32 {
        let (mut row, mut column) = (doc.0 / self.columns, doc.0 % self.columns);
        loop {
            row = plus(row, self.round(column, 0, self.rows), self.rows);
            column = plus(column, self.round(row, 1, self.columns), self.columns);
            row = plus(row, self.round(column, 2, self.rows), self.rows);
            // The last places of the rectangle may exceed 32 bits.
            let slot = u64::from(row) * u64::from(self.columns) + u64::from(column);
            if slot < u64::from(self.count) {
                return slot as u32;
            }
        }
    }

    fn doc(&self, slot: u32) -> Page {
        let (mut row, mut column) = (slot / self.columns, slot % self.columns);
        loop {
            row = minus(row, self.round(column, 2, self.rows), self.rows);
            column = minus(column, self.round(row, 1, self.columns), self.columns);
            row = minus(row, self.round(column, 0, self.rows), self.rows);
            let doc = u64::from(row) * u64::from(self.columns) + u64::from(column);
            if doc < u64::from(self.count) {
                return Page(doc as u32);
            }
        }
    }
}

/// Returns `x + y` modulo `bound`.
fn plus(x: u32, y: u32, bound: u32) -> u32 {
    let sum = x + y;
    if sum >= bound { sum - bound } else { sum }
}

/// Returns `x - y` modulo `bound`.
fn minus(x: u32, y: u32, bound: u32) -> u32 {
    if x >= y { x - y } else { x + bound - y }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_page_has_a_slot_of_its_own_and_back() {
        for pages in [1, 2, 1_000, 1_023, 1_024, 1_089, 4_097] {
            let shuffle = Shuffle::new(pages, 3);
            let docs = || Page::first(pages as usize);
            assert_eq!(docs().map(|doc| shuffle.slot(doc)).collect::<BTreeSet<_>>().len(), pages as usize);
            assert!(docs().all(|doc| shuffle.doc(shuffle.slot(doc)) == doc));
        }
    }

    #[test]
    fn groups_have_their_sizes_and_shares() {
        let groups = GroupAssignment::new(10_000, 1, [(1, 400), (7, 350), (30, 250)].into_iter());
        let mut pages = [0; 3];
        for slot in 0..10_000 {
            let place = groups.place(slot);
            pages[place.class] += 1;
            assert!(place.member < groups.size(place.class) && place.first + place.member == slot);
        }
        assert_eq!(pages, [4_010, 3_500, 2_490]);
    }
}
