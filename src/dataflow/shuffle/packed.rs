//! Rows that hold a list of small numbers in few bytes: a variable-length code of 4-bit groups in
//! rows of 128 bytes.
//!
//! A number takes a group for every 3 bits; the high bit of a group is set if another group of the
//! same number follows. Each row begins with a number of 32 bits in full and can be decoded without
//! other rows, so rows of several senders may arrive in any order.

use bytemuck::{Pod, Zeroable};

/// 4-bit groups of a row.
const GROUPS: usize = 248;

/// A row of 128 bytes: a number in full, then numbers in the variable-length code. An unfinished
/// number fills the end of the row.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct PackedRow {
    /// The number in full.
    pub first: u32,
    groups: [u8; GROUPS / 2],
}

impl PackedRow {
    /// Returns the numbers of the row in the order written, without the first.
    pub fn numbers(&self) -> PackedNumbers<'_> {
        PackedNumbers { groups: &self.groups, at: 0 }
    }
}

/// Iterates over the numbers of a row.
#[derive(Debug)]
pub struct PackedNumbers<'a> {
    groups: &'a [u8; GROUPS / 2],
    at: usize,
}

impl PackedNumbers<'_> {
    /// Returns the next number, of exactly `groups` groups of 4 bits.
    #[inline]
    pub fn fixed(&mut self, groups: usize) -> u64 {
        let number = (0..groups).fold(0, |number, at| number | u64::from(self.group(self.at + at)) << (4 * at));
        self.at += groups;
        number
    }

    /// Returns true unless all groups of the row were read.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.at < GROUPS
    }

    #[inline]
    fn group(&self, at: usize) -> u8 {
        self.groups[at / 2] >> (at % 2 * 4) & 15
    }
}

impl Iterator for PackedNumbers<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        while self.at < GROUPS && shift < u64::BITS {
            let group = self.group(self.at);
            self.at += 1;
            number |= u64::from(group & 7) << shift;
            shift += 3;
            if group & 8 == 0 {
                return Some(number);
            }
        }
        // Only the end of a row has such a sequence of groups that are not the last of their
        // number.
        self.at = GROUPS;
        None
    }
}

/// 4-bit groups that a number takes.
#[inline]
pub fn groups_of(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(3) as usize
}

/// Returns the distance of a number from another as a number that is small if the distance is, in
/// either direction.
#[inline]
pub fn signed(number: u32, from: u32) -> u64 {
    let distance = i64::from(number) - i64::from(from);
    (distance << 1 ^ distance >> 63) as u64
}

/// Returns the number whose distance from another is given as by [`signed`].
#[inline]
pub fn of_signed(distance: u64, from: u32) -> u32 {
    let distance = (distance >> 1) as i64 ^ -((distance & 1) as i64);
    from.wrapping_add(distance as u32)
}

/// A row that is being written.
#[derive(Debug, Clone)]
pub struct OpenRow {
    row: PackedRow,
    used_groups: usize,
}

impl OpenRow {
    /// Begins a row with a number in full.
    #[inline]
    pub fn new(first: u32) -> OpenRow {
        OpenRow { row: PackedRow { first, groups: [0xff; GROUPS / 2] }, used_groups: 0 }
    }

    /// Returns true if numbers of this many groups in all still fit.
    #[inline]
    pub fn has_room_for(&self, groups: usize) -> bool {
        self.used_groups + groups <= GROUPS
    }

    /// Appends a number, which must fit.
    #[inline]
    pub fn push(&mut self, mut number: u64) {
        loop {
            let high_bits = number >> 3;
            self.put((number & 7) as u8 | if high_bits > 0 { 8 } else { 0 });
            if high_bits == 0 {
                return;
            }
            number = high_bits;
        }
    }

    /// Appends a number of exactly `groups` groups of 4 bits, which must fit and be read by
    /// [`PackedNumbers::fixed`].
    #[inline]
    pub fn push_fixed(&mut self, number: u64, groups: usize) {
        for at in 0..groups {
            self.put((number >> (4 * at)) as u8 & 15);
        }
    }

    /// Number of groups written.
    #[inline]
    pub fn used(&self) -> usize {
        self.used_groups
    }

    /// Replaces a group that was written as a number of one group.
    #[inline]
    pub fn replace(&mut self, place: usize, group: u8) {
        let byte = &mut self.row.groups[place / 2];
        *byte = if place.is_multiple_of(2) { *byte & 0xf0 | group } else { *byte & 15 | group << 4 };
    }

    #[inline]
    fn put(&mut self, group: u8) {
        let byte = &mut self.row.groups[self.used_groups / 2];
        *byte = if self.used_groups.is_multiple_of(2) { 0xf0 | group } else { *byte & 15 | group << 4 };
        self.used_groups += 1;
    }

    /// Returns the row as it is sent.
    #[inline]
    pub fn finish(&self) -> PackedRow {
        self.row
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn row_contains_the_numbers_that_fit(
            first: u32, given in prop::collection::vec((any::<u64>(), 0u32..64), 0..260)
        ) {
            let numbers_written: Vec<u64> = given.into_iter().map(|(number, shift)| number >> shift).collect();
            let mut row = OpenRow::new(first);
            let mut written = Vec::new();
            for &number in &numbers_written {
                if !row.has_room_for(groups_of(number)) {
                    break;
                }
                row.push(number);
                written.push(number);
            }
            let row = row.finish();
            prop_assert_eq!(row.first, first);
            prop_assert_eq!(row.numbers().collect::<Vec<_>>(), written);
        }

        #[test]
        fn signed_distance_is_reversible(number: u32, from: u32) {
            prop_assert_eq!(of_signed(signed(number, from), from), number);
        }
    }
}
