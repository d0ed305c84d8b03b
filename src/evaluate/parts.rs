//! The part of the truth that a run can find: pages that have a copy, and parts of copies that
//! links connect.

use std::collections::HashMap;

use super::LinkRow;
use super::truth::CommonPages;
use webtwin_core::clusters::union_find::UnionFind;

/// Minimum number of pages that have a copy in a connected part.
const MIN_PAGES: u64 = 10;

/// Copies and connected parts of the known pages. All lists except `parts` are indexed by page.
#[derive(Debug)]
pub(super) struct Parts {
    /// True if another page is the same page of the same target.
    pub(super) has_copy: Vec<bool>,
    /// Number of the connected part, if that part has enough pages.
    pub(super) part: Vec<Option<u32>>,
    /// Copy of each part, and the number of its pages that have a copy.
    pub(super) parts: Vec<(u32, u64)>,
}

/// Finds the connected parts of all copies that are collections. Parts are numbered in the order of
/// their first known page.
pub(super) fn connected_parts(common_pages: &CommonPages, links: &[LinkRow]) -> Parts {
    let pages = &common_pages.pages;
    let mut pages_of: HashMap<u32, u64> = HashMap::new();
    pages.iter().filter_map(|page| page.target_page).for_each(|of| *pages_of.entry(of.name).or_default() += 1);
    let has_copy: Vec<bool> =
        pages.iter().map(|page| page.target_page.is_some_and(|of| pages_of[&of.name] > 1)).collect();

    let copy = |row: usize| {
        pages[row].target_page.map(|of| of.copy).filter(|&copy| common_pages.copies[copy as usize].is_collection())
    };
    let mut connected = UnionFind::new(pages.len());
    for LinkRow { src, dst } in links {
        let Some((&src, &dst)) = common_pages.place.get(src).zip(common_pages.place.get(dst)) else { continue };
        if copy(src).is_some() && copy(src) == copy(dst) {
            connected.union(src as u32, dst as u32);
        }
    }
    let labels = connected.labels();
    let mut copy_sizes: HashMap<u32, u64> = HashMap::new();
    (0..pages.len()).filter(|&at| has_copy[at]).for_each(|at| *copy_sizes.entry(labels[at]).or_default() += 1);
    let (mut numbers, mut parts) = (HashMap::new(), Vec::new());
    let part = (0..pages.len()).map(|row| {
        let copy = copy(row)?;
        let &pages = copy_sizes.get(&labels[row]).filter(|&&pages| pages >= MIN_PAGES)?;
        Some(*numbers.entry(labels[row]).or_insert_with(|| {
            parts.push((copy, pages));
            parts.len() as u32 - 1
        }))
    });
    let part = part.collect();
    Parts { has_copy, part, parts }
}
