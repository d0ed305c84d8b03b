//! Structure of a manual: the pages of each version, their order, and the pages that a copy holds.
//!
//! Page 0 is the contents, pages `1..=chapters` are chapters, and the others are sections of a
//! chapter. Versions differ in their sections. An older version (age 1, 2, …) lacks the youngest
//! sections and has some that were dropped since, numbered from `newest` on. Their numbers follow
//! from a formula, so a plan can count pages without enumerating them.

use super::random::{Stream, key};

/// Structure of a manual, determined by its key and its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct ManualOutline {
    pub(super) key: u64,
    /// Number of pages of the newest version.
    pub(super) newest: u32,
}

impl ManualOutline {
    /// Returns the number of chapters.
    pub(super) fn chapters(self) -> u32 {
        self.newest.isqrt()
    }

    fn sections(self) -> u32 {
        self.newest - 1 - self.chapters()
    }

    /// Returns the number of sections of the newest version that do not exist in the version of
    /// this age.
    fn missing(self, age: u32) -> u32 {
        if age == 0 { 0 } else { (1 + self.sections() * age / 25).min(self.sections() / 2) }
    }

    /// Returns the number of sections of the version of this age that the newest version no longer
    /// has.
    fn n_dropped(self, age: u32) -> u32 {
        if age == 0 { 0 } else { (1 + self.sections() * age / 40).min(self.sections() / 2) }
    }

    /// Returns the number of pages of the version of this age.
    pub(super) fn pages(self, age: u32) -> u32 {
        self.newest - self.missing(age) + self.n_dropped(age)
    }

    /// Returns the key of a page.
    pub(super) fn page_key(self, page: u32) -> u64 {
        key(self.key, &[3, u64::from(page)])
    }

    /// True if the page is a section, not the contents or a chapter.
    pub(super) fn is_section(self, page: u32) -> bool {
        page > self.chapters()
    }

    /// Returns the parent of a page. The parent of the contents is the contents itself.
    pub(super) fn parent(self, page: u32) -> u32 {
        if self.is_section(page) {
            1 + Stream::new(key(self.page_key(page), &[4])).below(u64::from(self.chapters())) as u32
        } else {
            0
        }
    }

    /// Returns up to three pages to which this page refers. A version may lack them.
    pub(super) fn see_also(self, page: u32) -> impl Iterator<Item = u32> {
        let mut stream = Stream::new(key(self.page_key(page), &[5]));
        let count = stream.below(4);
        (0..count).map(move |_| stream.skewed(u64::from(self.newest)) as u32).filter(move |&other| other != page)
    }

    /// Returns the pages of the version of this age in reading order.
    fn reading_order(self, age: u32) -> Vec<u32> {
        let mut sections: Vec<u32> = (self.chapters() + 1..self.newest).collect();
        sections.sort_by_cached_key(|&page| key(self.page_key(page), &[6]));
        let young = self.missing(age) as usize;
        let mut pages: Vec<u32> = (0..=self.chapters())
            .chain(sections.into_iter().skip(young))
            .chain(self.newest..self.newest + self.n_dropped(age))
            .collect();
        pages.sort_by_cached_key(|&page| if self.is_section(page) { (self.parent(page), page) } else { (page, 0) });
        pages
    }
}

/// A copy that is open for reading: the pages of its version, and those that the copy holds.
#[derive(Debug)]
pub(super) struct View {
    pub(super) outline: ManualOutline,
    /// Pages of the version in reading order.
    order: Vec<u32>,
    /// Index of each page in `order`.
    place: Vec<Option<u32>>,
    /// Pages that the copy holds: all of `order`, or those that were grown from the contents.
    pages_held: Vec<u32>,
    holds: Vec<bool>,
}

impl View {
    /// Opens a copy of the version of this age that holds `n_held` pages. If these are not all,
    /// they are selected by growth along links.
    pub(super) fn open(outline: ManualOutline, age: u32, n_held: u32, growth: u64) -> View {
        let order = outline.reading_order(age);
        let numbers = (outline.newest + outline.n_dropped(age)) as usize;
        let mut place = vec![None; numbers];
        for (number, &page) in order.iter().enumerate() {
            place[page as usize] = Some(number as u32);
        }
        let mut view = View { outline, pages_held: order.clone(), order, place, holds: vec![true; numbers] };
        if (n_held as usize) < view.order.len() {
            view.keep(n_held as usize, growth);
        }
        view
    }

    fn keep(&mut self, n_held: usize, growth: u64) {
        let mut stream = Stream::new(growth);
        let mut is_seen = vec![false; self.place.len()];
        let mut frontier = vec![0];
        is_seen[0] = true;
        self.pages_held.clear();
        self.holds.fill(false);
        while self.pages_held.len() < n_held && !frontier.is_empty() {
            let page = frontier.swap_remove(stream.below(frontier.len() as u64) as usize);
            self.pages_held.push(page);
            self.holds[page as usize] = true;
            let links = self.children(page).chain(self.see_also(page)).chain(self.after(page));
            frontier.extend(links.filter(|&other| !std::mem::replace(&mut is_seen[other as usize], true)));
        }
    }

    /// Returns the pages that the copy holds. The first is the contents.
    pub(super) fn held(&self) -> &[u32] {
        &self.pages_held
    }

    /// True if the copy holds the page.
    pub(super) fn holds(&self, page: u32) -> bool {
        self.holds[page as usize]
    }

    fn place_of(&self, page: u32) -> usize {
        self.place[page as usize].expect("only pages of this version are looked up") as usize
    }

    /// Returns the next page of the version in reading order.
    pub(super) fn after(&self, page: u32) -> Option<u32> {
        self.order.get(self.place_of(page) + 1).copied()
    }

    /// Returns the previous page of the version in reading order.
    pub(super) fn before(&self, page: u32) -> Option<u32> {
        self.order[..self.place_of(page)].last().copied()
    }

    /// Returns the chapters of the contents, or the sections of a chapter, in reading order.
    pub(super) fn children(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        let outline = self.outline;
        self.order[self.place_of(page) + 1..].iter().copied().filter(move |&other| outline.parent(other) == page)
    }

    /// Returns the pages of this version to which the page refers.
    pub(super) fn see_also(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        self.outline.see_also(page).filter(|&other| self.place[other as usize].is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn version_has_the_number_of_pages_of_the_formula() {
        for newest in [20, 21, 57, 200] {
            for age in [0, 1, 2, 5, 40] {
                let outline = ManualOutline { key: 3, newest };
                let view = View::open(outline, age, outline.pages(age), 0);
                assert_eq!(view.held().len(), outline.pages(age) as usize);
                assert_eq!(view.held().iter().collect::<BTreeSet<_>>().len(), view.held().len());
                assert_eq!(view.held()[0], 0);
            }
        }
    }

    #[test]
    fn an_older_version_lacks_some_pages_and_has_others() {
        let outline = ManualOutline { key: 3, newest: 100 };
        let pages = |age| outline.reading_order(age).into_iter().collect::<BTreeSet<_>>();
        assert!(pages(0).difference(&pages(1)).count() > 0);
        assert!(pages(1).difference(&pages(0)).count() > 0);
        assert!(pages(0).difference(&pages(2)).count() > pages(0).difference(&pages(1)).count());
    }

    #[test]
    fn a_part_is_reached_from_the_contents_along_links_inside_it() {
        let outline = ManualOutline { key: 11, newest: 90 };
        for growth in 0..20 {
            let view = View::open(outline, 0, 40, growth);
            assert_eq!(view.held().len(), 40);
            let mut reached_pages = BTreeSet::from([0]);
            for &page in view.held() {
                assert!(reached_pages.contains(&page));
                reached_pages.extend(view.children(page).chain(view.see_also(page)).chain(view.after(page)));
            }
        }
    }

    #[test]
    fn children_of_all_pages_and_the_contents_make_up_the_version() {
        let outline = ManualOutline { key: 5, newest: 64 };
        let view = View::open(outline, 2, outline.pages(2), 0);
        let mut pages: Vec<u32> =
            view.held().iter().filter(|&&p| !outline.is_section(p)).flat_map(|&p| view.children(p)).collect();
        pages.push(0);
        pages.sort_unstable();
        let mut held_pages = view.held().to_vec();
        held_pages.sort_unstable();
        assert_eq!(pages, held_pages);
    }
}
