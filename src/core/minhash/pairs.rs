//! Pairs to compare of pages that share a key of a band.
//!
//! Few pages with one key become all their pairs. For many pages, such as thousands of pages with
//! one template, the number of all pairs would be the square of their number. Then each page is
//! paired with the smallest only, and the omitted pairs are counted. Pages with a high resemblance
//! share several keys, of which few are shared by all pages of a template.

use webtwin_base::ids::Page;

/// Yields the pairs `(a, b)`, `a < b`, of pages with one key, each once. `pages` must be ascending
/// and without duplicates.
///
/// With more than `all_below` pages, yields only the pairs of the first page.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::minhash::pairs::{omitted_pairs, pairs};
///
/// let pages = [3, 5, 8].map(Page);
/// let of = |all_below| pairs(&pages, all_below).map(|(a, b)| (a.0, b.0)).collect::<Vec<_>>();
/// assert_eq!(of(3), [(3, 5), (3, 8), (5, 8)]);
/// assert_eq!(of(2), [(3, 5), (3, 8)]);
/// assert_eq!(omitted_pairs(3, 2), 1);
/// ```
pub fn pairs(pages: &[Page], all_below: usize) -> impl Iterator<Item = (Page, Page)> + '_ {
    let firsts = if pages.len() > all_below { &pages[..1] } else { pages };
    firsts.iter().enumerate().flat_map(|(at, &a)| pages[at + 1..].iter().map(move |&b| (a, b)))
}

/// Returns the number of pairs of `pages` pages that [`pairs`] omits.
pub fn omitted_pairs(pages: usize, all_below: usize) -> u64 {
    let pages = pages as u64;
    if pages > all_below as u64 { (pages - 1) * (pages - 2) / 2 } else { 0 }
}

/// Computes the similar pairs with their resemblance in millionths by definition, from the `keys`
/// and `sets` of each page, comparing every two pages. Also returns the number of omitted pairs of
/// pages, counted once for each key that they share.
pub fn by_definition(
    keys: &[Vec<u64>],
    sets: &[Vec<u32>],
    all_below: usize,
    resemblance: impl Fn(&[u32], &[u32]) -> Option<u32>,
) -> (Vec<(Page, Page, u32)>, u64) {
    let pages_with_key = |key: u64| Page::first(keys.len()).filter(move |&page| keys[page].contains(&key));
    let (mut pairs, mut omitted) = (Vec::new(), 0);
    for a in Page::first(keys.len()) {
        for b in Page::first(keys.len()).filter(|&b| b > a) {
            let shared = || keys[a].iter().filter(|key| keys[b].contains(key));
            let is_made = |key: u64| pages_with_key(key).count() <= all_below || pages_with_key(key).next() == Some(a);
            omitted += shared().filter(|&&key| !is_made(key)).count() as u64;
            if shared().any(|&key| is_made(key)) {
                pairs.extend(resemblance(&sets[a], &sets[b]).map(|value| (a, b, value)));
            }
        }
    }
    (pairs, omitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pages_with_one_key_are_compared_with_the_smallest_and_the_rest_is_counted() {
        let pairs_of = |pages: &[u32], all_below| -> Vec<(u32, u32)> {
            pairs(bytemuck::cast_slice(pages), all_below).map(|(a, b)| (a.0, b.0)).collect()
        };
        assert_eq!(pairs_of(&[3, 5, 9], 3), [(3, 5), (3, 9), (5, 9)]);
        assert_eq!(pairs_of(&[3, 5, 9], 2), [(3, 5), (3, 9)]);
        assert_eq!(pairs_of(&[3], 2), []);
        for pages in 1..20u32 {
            let all_pages: Vec<u32> = (0..pages).collect();
            for all_below in 2..20 {
                let pair_count =
                    pairs_of(&all_pages, all_below).len() as u64 + omitted_pairs(all_pages.len(), all_below);
                assert_eq!(pair_count, u64::from(pages * (pages - 1) / 2));
            }
        }
    }
}
