//! Pages that share a key of a band become pairs to compare.
//!
//! Of few pages with one key all pairs are made. Of many, such as thousands of pages with one template, all pairs would
//! be their square; each of them makes a pair with the smallest only, and the pairs that are left out are counted. Pages
//! that resemble each other much share several keys, and few of these with all pages of a template.

use webtwin_base::ids::Page;

/// The pairs `(a, b)`, `a < b`, of pages with one key, each once; `pages` are ascending, each once.
///
/// With more than `all_below` pages these are the pairs of the first page.
pub fn pairs(pages: &[Page], all_below: usize) -> impl Iterator<Item = (Page, Page)> + '_ {
    let firsts = if pages.len() > all_below { &pages[..1] } else { pages };
    firsts.iter().enumerate().flat_map(|(at, &a)| pages[at + 1..].iter().map(move |&b| (a, b)))
}

/// How many pairs of `pages` pages [`pairs`] leaves out.
pub fn left_out(pages: usize, all_below: usize) -> u64 {
    let pages = pages as u64;
    if pages > all_below as u64 { (pages - 1) * (pages - 2) / 2 } else { 0 }
}

/// The similar pairs with their resemblance in millionths, by definition: `keys` and `sets` of each page, every two
/// pages looked at. Returns also how many pairs of pages, once for each key that they share, are left out.
pub fn by_definition(
    keys: &[Vec<u64>],
    sets: &[Vec<u32>],
    all_below: usize,
    resemblance: impl Fn(&[u32], &[u32]) -> Option<u32>,
) -> (Vec<(Page, Page, u32)>, u64) {
    let have = |key: u64| Page::first(keys.len()).filter(move |&page| keys[page].contains(&key));
    let (mut found, mut left_out) = (Vec::new(), 0);
    for a in Page::first(keys.len()) {
        for b in Page::first(keys.len()).filter(|&b| b > a) {
            let shared = || keys[a].iter().filter(|key| keys[b].contains(key));
            let is_made = |key: u64| have(key).count() <= all_below || have(key).next() == Some(a);
            left_out += shared().filter(|&&key| !is_made(key)).count() as u64;
            if shared().any(|&key| is_made(key)) {
                found.extend(resemblance(&sets[a], &sets[b]).map(|value| (a, b, value)));
            }
        }
    }
    (found, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pages_with_one_key_are_compared_with_the_smallest_and_the_rest_is_counted() {
        let of = |pages: &[u32], all_below| -> Vec<(u32, u32)> {
            pairs(bytemuck::cast_slice(pages), all_below).map(|(a, b)| (a.0, b.0)).collect()
        };
        assert_eq!(of(&[3, 5, 9], 3), [(3, 5), (3, 9), (5, 9)]);
        assert_eq!(of(&[3, 5, 9], 2), [(3, 5), (3, 9)]);
        assert_eq!(of(&[3], 2), []);
        for pages in 1..20u32 {
            let all: Vec<u32> = (0..pages).collect();
            for all_below in 2..20 {
                let made = of(&all, all_below).len() as u64 + left_out(all.len(), all_below);
                assert_eq!(made, u64::from(pages * (pages - 1) / 2));
            }
        }
    }
}
