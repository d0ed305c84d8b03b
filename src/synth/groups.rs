//! Pages in groups of given sizes, the members of a group far apart.
//!
//! Slots are dealt out to groups one after another; a bijection takes pages to slots. Both ways are computed, not looked
//! up, so a table of any size takes no memory.

use crate::ids::{Rank, mix};

/// Pages in groups.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    /// Pages of a group, by class.
    sizes: Vec<u32>,
    /// First slot of each class, the last class first, and the number of pages.
    starts: Vec<u32>,
    shuffle: Shuffle,
}

/// Where a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub class: usize,
    /// First slot of its group.
    pub first: u32,
    /// Its number in the group.
    pub member: u32,
}

impl Groups {
    /// `classes` are pages of a group, and pages of all such groups per thousand; the first class, of single pages, takes
    /// what is left over.
    pub fn new(pages: u32, key: u64, classes: impl Iterator<Item = (u32, u32)>) -> Groups {
        let classes: Vec<(u32, u32)> = classes.collect();
        let mut starts = vec![0];
        let mut start = 0;
        for &(size, share) in classes[1..].iter().rev() {
            start += (u64::from(pages) * u64::from(share) / 1000 / u64::from(size)) as u32 * size;
            starts.push(start);
        }
        starts.push(pages);
        let sizes = classes.iter().map(|&(size, _)| size).collect();
        Groups { sizes, starts, shuffle: Shuffle::new(pages, key) }
    }

    /// Number of pages.
    pub fn pages(&self) -> u32 {
        self.shuffle.count
    }

    /// Slot of a page.
    pub fn slot(&self, doc: Rank) -> u32 {
        self.shuffle.slot(doc)
    }

    /// Page of a slot.
    pub fn doc(&self, slot: u32) -> Rank {
        self.shuffle.doc(slot)
    }

    /// Group of a slot.
    pub fn place(&self, slot: u32) -> Place {
        let at = self.starts.partition_point(|&start| start <= slot) - 1;
        let class = self.sizes.len() - 1 - at;
        let member = (slot - self.starts[at]) % self.sizes[class];
        Place { class, first: slot - member, member }
    }

    /// First slot of single pages.
    pub fn first_single(&self) -> u32 {
        self.starts[self.starts.len() - 2]
    }

    /// Pages of a group of a class.
    pub fn size(&self, class: usize) -> u32 {
        self.sizes[class]
    }
}

/// A bijection of `0..count`: a Feistel network over the next power of four, walked until it comes out within.
#[derive(Debug, Clone)]
struct Shuffle {
    count: u32,
    half: u32,
    key: u64,
}

impl Shuffle {
    fn new(count: u32, key: u64) -> Shuffle {
        let bits = 64 - u64::from(count.max(2) - 1).leading_zeros();
        Shuffle { count, half: bits.div_ceil(2), key }
    }

    fn round(&self, half: u64, round: u64) -> u64 {
        mix(self.key ^ half << 2 ^ round) & ((1 << self.half) - 1)
    }

    fn slot(&self, doc: Rank) -> u32 {
        let mut at = u64::from(doc);
        loop {
            for round in 0..3 {
                let (left, right) = (at >> self.half, at & ((1 << self.half) - 1));
                at = right << self.half | (left ^ self.round(right, round));
            }
            if at < u64::from(self.count) {
                return at as u32;
            }
        }
    }

    fn doc(&self, slot: u32) -> Rank {
        let mut at = u64::from(slot);
        loop {
            for round in (0..3).rev() {
                let (left, right) = (at >> self.half, at & ((1 << self.half) - 1));
                at = (right ^ self.round(left, round)) << self.half | left;
            }
            if at < u64::from(self.count) {
                return at as Rank;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_page_has_a_slot_of_its_own_and_back() {
        for pages in [1_000, 1_024, 4_097] {
            let shuffle = Shuffle::new(pages, 3);
            assert_eq!((0..pages).map(|doc| shuffle.slot(doc)).collect::<BTreeSet<_>>().len(), pages as usize);
            assert!((0..pages).all(|doc| shuffle.doc(shuffle.slot(doc)) == doc));
        }
    }

    #[test]
    fn groups_have_their_sizes_and_shares() {
        let groups = Groups::new(10_000, 1, [(1, 400), (7, 350), (30, 250)].into_iter());
        let mut pages = [0; 3];
        for slot in 0..10_000 {
            let place = groups.place(slot);
            pages[place.class] += 1;
            assert!(place.member < groups.size(place.class) && place.first + place.member == slot);
        }
        assert_eq!(pages, [4_010, 3_500, 2_490]);
    }
}
