//! Pairs of pages, once for each chunk they share, become counts.

use crate::error::Result;
use crate::ids::{Page, splitmix64};

/// A pair as a number that sorts as pairs do; `a < b`.
#[inline]
pub fn pair_key(a: Page, b: Page) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// The smaller page of a pair.
#[inline]
pub fn smaller(pair: u64) -> Page {
    Page((pair >> 32) as u32)
}

/// Scratch of [`count`], reused from one bucket to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    starts: Vec<u32>,
    partners: Vec<Page>,
    table: Vec<(Page, u32)>,
    found: Vec<(Page, u32)>,
}

/// Calls `found(a, b, F)` for each distinct pair that occurs at least `least` times, in ascending order; returns the
/// number of distinct pairs among the pages that are in that many.
///
/// `pairs` are keys in any order whose `a` are in `first..first + pages`.
///
/// # Cost
/// One scatter of the pairs by `a`, and one look-up in a small hash table for each.
pub fn count(
    pairs: &[u64],
    first: Page,
    pages: usize,
    least: u32,
    scratch: &mut Scratch,
    mut found: impl FnMut(Page, Page, u32),
) -> u64 {
    let Scratch { starts, partners, table, found: enough } = scratch;
    let page = |pair: u64| (smaller(pair).0 - first.0) as usize;
    starts.clear();
    starts.resize(pages + 1, 0);
    pairs.iter().for_each(|&pair| starts[page(pair) + 1] += 1);
    // During the scatter, starts[p + 1] is the next free place of page p; afterwards it is where p ends.
    let mut before = 0;
    for start in &mut starts[1..] {
        before += std::mem::replace(start, before);
    }
    partners.clear();
    partners.resize(pairs.len(), Page::NONE);
    for &pair in pairs {
        let at = &mut starts[page(pair) + 1];
        partners[*at as usize] = Page(pair as u32);
        *at += 1;
    }
    let mut candidates = 0;
    for at in 0..pages {
        let of_page = &partners[starts[at] as usize..starts[at + 1] as usize];
        // A page in fewer rows than T cannot share T chunks with any one partner.
        if of_page.len() < least.max(1) as usize {
            continue;
        }
        let bits = (of_page.len() * 2).next_power_of_two().trailing_zeros();
        table.clear();
        table.resize(1 << bits, (Page::NONE, 0));
        enough.clear();
        for &b in of_page {
            let mut slot = (b.0.wrapping_mul(0x9e37_79b1) >> (32 - bits.min(31))) as usize & ((1 << bits) - 1);
            loop {
                let (page, count) = &mut table[slot];
                if *page == b {
                    *count += 1;
                    if *count == least {
                        enough.push((b, slot as u32));
                    }
                    break;
                }
                if *page == Page::NONE {
                    (*page, *count) = (b, 1);
                    candidates += 1;
                    if least <= 1 {
                        enough.push((b, slot as u32));
                    }
                    break;
                }
                slot = (slot + 1) & ((1 << bits) - 1);
            }
        }
        enough.sort_unstable();
        enough.iter().for_each(|&(b, slot)| found(Page(first.0 + at as u32), b, table[slot as usize].1));
    }
    candidates
}

/// Counts pairs of which so many are there that they are not held at once; `found` and what is returned are as those of [`count`], but
/// that pairs of all pages are counted as distinct.
///
/// `each_piece` hands all pairs, some at a time and in any order, to its argument, each time it is called.
///
/// # Errors
/// Those of `each_piece`.
///
/// # Cost
/// One look-up in a hash table for each pair and pass. A pass counts the smallest keys that come behind those of the one before: `most`
/// distinct ones at most, and half as many at least unless it is the last. Memory: 80 bytes for each of `most`.
pub fn count_in_passes(
    mut each_piece: impl FnMut(&mut dyn FnMut(&[u64])) -> Result<()>,
    most: usize,
    least: u32,
    mut found: impl FnMut(Page, Page, u32),
) -> Result<u64> {
    let (mut candidates, mut start) = (0, 0);
    loop {
        let mut smallest = Smallest::new(most.max(2));
        each_piece(&mut |pairs| pairs.iter().filter(|&&pair| pair >= start).for_each(|&pair| smallest.add(pair)))?;
        let end = smallest.end;
        let counted = smallest.sorted();
        candidates += counted.len() as u64;
        let enough = counted.iter().filter(|of| of.1 >= least.max(1));
        enough.for_each(|&(pair, count)| found(smaller(pair), Page(pair as u32), count));
        match end {
            Some(end) => start = end,
            None => return Ok(candidates),
        }
    }
}

/// How often each of the smallest keys has come, in a hash table with open addressing; a count of 0 is a free slot.
struct Smallest {
    slots: Vec<(u64, u32)>,
    keys: usize,
    most: usize,
    /// Keys from this on are not counted in this pass.
    end: Option<u64>,
}

impl Smallest {
    fn new(most: usize) -> Smallest {
        Smallest { slots: vec![(0, 0); 1 << 10], keys: 0, most, end: None }
    }

    #[inline]
    fn add(&mut self, key: u64) {
        if self.end.is_some_and(|end| key >= end) {
            return;
        }
        let slot = self.slot(key);
        let (of, count) = &mut self.slots[slot];
        *count += 1;
        if *count == 1 {
            *of = key;
            self.keys += 1;
            if self.keys > self.most {
                self.drop_larger_half();
            } else if self.keys * 2 > self.slots.len() {
                let counted = self.sorted();
                self.hold(&counted, self.slots.len() * 2);
            }
        }
    }

    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = splitmix64(key) as usize & mask;
        while self.slots[slot].1 > 0 && self.slots[slot].0 != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn sorted(&self) -> Vec<(u64, u32)> {
        let mut counted: Vec<(u64, u32)> = self.slots.iter().copied().filter(|slot| slot.1 > 0).collect();
        counted.sort_unstable();
        counted
    }

    #[cold]
    fn drop_larger_half(&mut self) {
        let counted = self.sorted();
        let half = counted.len().div_ceil(2);
        self.end = Some(counted[half].0);
        self.hold(&counted[..half], self.slots.len());
    }

    fn hold(&mut self, counted: &[(u64, u32)], slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, (0, 0));
        self.keys = counted.len();
        for &row in counted {
            let slot = self.slot(row.0);
            self.slots[slot] = row;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn passes_count_what_is_counted_at_once(
            pairs in prop::collection::vec((0u32..6, 0u32..50), 0..3000), most in 0usize..400, least in 0u32..6, piece in 1usize..500
        ) {
            let keys: Vec<u64> = pairs.iter().map(|&(a, b)| pair_key(Page(a), Page(b + 10))).collect();
            let (mut at_once, mut in_passes) = (Vec::new(), Vec::new());
            count(&keys, Page(0), 6, least, &mut Scratch::default(), |a, b, f| at_once.push((a, b, f)));
            let each_piece = |with: &mut dyn FnMut(&[u64])| -> Result<()> {
                keys.chunks(piece).for_each(with);
                Ok(())
            };
            let candidates = count_in_passes(each_piece, most, least, |a, b, f| in_passes.push((a, b, f))).unwrap();
            prop_assert_eq!(in_passes, at_once);
            let distinct: std::collections::BTreeSet<u64> = keys.into_iter().collect();
            prop_assert_eq!(candidates, distinct.len() as u64);
        }

        #[test]
        fn counts_are_those_of_a_map(
            pairs in prop::collection::vec((100u32..110, 0u32..40), 0..400), least in 0u32..6
        ) {
            let keys: Vec<u64> = pairs.iter().map(|&(a, b)| pair_key(Page(a), Page(b * 1000 + 200))).collect();
            let mut want = BTreeMap::new();
            keys.iter().for_each(|&key| *want.entry(key).or_insert(0u32) += 1);
            let mut got = Vec::new();
            let mut scratch = Scratch::default();
            count(&[pair_key(Page(7), Page(8))], Page(7), 1, 1, &mut scratch, |_, _, _| {});
            let candidates = count(&keys, Page(100), 10, least, &mut scratch, |a, b, f| got.push((pair_key(a, b), f)));
            if least <= 1 {
                prop_assert_eq!(candidates, want.len() as u64);
            }
            want.retain(|_, f| *f >= least);
            prop_assert_eq!(got, want.into_iter().collect::<Vec<_>>());
        }
    }
}
