//! Exact counts of pairs of pages, from one occurrence for each chunk that the two pages share.

use webtwin_base::ids::Page;

/// Returns a pair as a number that sorts as pairs do; `a < b`.
#[inline]
pub fn pair_key(a: Page, b: Page) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Returns the smaller page of a pair.
#[inline]
pub fn smaller(pair: u64) -> Page {
    Page((pair >> 32) as u32)
}

/// Scratch buffers of [`count`], reused from one bucket to the next.
#[derive(Debug, Default)]
pub struct CountScratch {
    starts: Vec<u32>,
    partners: Vec<Page>,
    table: Vec<(Page, u32)>,
    found: Vec<(Page, u32)>,
}

/// Calls `emit(a, b, F)` for each distinct pair that occurs at least `min_shared` times, in
/// ascending order.
///
/// `pairs` are keys in any order whose `a` is in `first..first + pages`.
///
/// # Cost
/// One scatter of the pairs by `a`, and one look-up in a small hash table for each pair.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::count_pairs::{CountScratch, count, pair_key};
///
/// // One key for each chunk that two pages share.
/// let shared = [(0, 2), (0, 1), (1, 2), (0, 2)];
/// let keys = shared.map(|(a, b)| pair_key(Page(a), Page(b)));
/// let mut pairs = Vec::new();
/// count(&keys, Page(0), 2, 2, &mut CountScratch::default(), |a, b, f| pairs.push((a.0, b.0, f)));
/// assert_eq!(pairs, [(0, 2, 2)]);
/// ```
pub fn count(
    pairs: &[u64],
    first: Page,
    pages: usize,
    min_shared: u32,
    scratch: &mut CountScratch,
    mut emit: impl FnMut(Page, Page, u32),
) {
    let CountScratch { starts, partners, table, found: enough } = scratch;
    let page = |pair: u64| (smaller(pair).0 - first.0) as usize;
    starts.clear();
    starts.resize(pages + 1, 0);
    pairs.iter().for_each(|&pair| starts[page(pair) + 1] += 1);
    // During the scatter, starts[p + 1] is the next free slot of page p; afterwards it is the end
    // of p.
    let mut start_of_page = 0;
    for start in &mut starts[1..] {
        start_of_page += std::mem::replace(start, start_of_page);
    }
    partners.clear();
    partners.resize(pairs.len(), Page::NONE);
    for &pair in pairs {
        let at = &mut starts[page(pair) + 1];
        partners[*at as usize] = Page(pair as u32);
        *at += 1;
    }
    for at in 0..pages {
        let page_partners = &partners[starts[at] as usize..starts[at + 1] as usize];
        // A page with fewer than T pairs cannot share T chunks with any single partner.
        if page_partners.len() < min_shared.max(1) as usize {
            continue;
        }
        // An open-addressing table of at least twice the size of the input needs no growth check.
        // It stays in the cache for most pages, unlike a table of all pairs.
        let bits = (page_partners.len() * 2).next_power_of_two().trailing_zeros();
        table.clear();
        table.resize(1 << bits, (Page::NONE, 0));
        enough.clear();
        for &b in page_partners {
            let mut slot = (b.0.wrapping_mul(0x9e37_79b1) >> (32 - bits.min(31))) as usize & ((1 << bits) - 1);
            loop {
                let (page, count) = &mut table[slot];
                if *page == b {
                    *count += 1;
                    if *count == min_shared {
                        enough.push((b, slot as u32));
                    }
                    break;
                }
                if *page == Page::NONE {
                    (*page, *count) = (b, 1);
                    if min_shared <= 1 {
                        enough.push((b, slot as u32));
                    }
                    break;
                }
                slot = (slot + 1) & ((1 << bits) - 1);
            }
        }
        // `enough` has the order in which counts reached `min_shared`, but pairs must be ascending.
        enough.sort_unstable();
        enough.iter().for_each(|&(b, slot)| emit(Page(first.0 + at as u32), b, table[slot as usize].1));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_equal_those_of_a_map(
            pairs in prop::collection::vec((100u32..110, 0u32..40), 0..400), least in 0u32..6
        ) {
            let keys: Vec<u64> = pairs.iter().map(|&(a, b)| pair_key(Page(a), Page(b * 1000 + 200))).collect();
            let mut expected = BTreeMap::new();
            keys.iter().for_each(|&key| *expected.entry(key).or_insert(0u32) += 1);
            let mut actual = Vec::new();
            let mut scratch = CountScratch::default();
            count(&[pair_key(Page(7), Page(8))], Page(7), 1, 1, &mut scratch, |_, _, _| {});
            count(&keys, Page(100), 10, least, &mut scratch, |a, b, f| actual.push((pair_key(a, b), f)));
            expected.retain(|_, f| *f >= least);
            prop_assert_eq!(actual, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
