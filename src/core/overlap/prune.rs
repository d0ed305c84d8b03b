//! Pruning: removes rows that cannot produce a similar pair before any pair is emitted.
//!
//! A page can share only those of its chunks that another page has, too. A page that has fewer such
//! chunks than it must share is in no similar pair. Without its rows other chunks are left on one
//! page only, and so on. The remaining rows form a core in which every page has enough chunks that
//! other pages of the core may share. Few rounds find it. Pairs, whose number grows with the square
//! of document frequencies, are emitted from the core alone.
//!
//! # Deviations
//! \[SGM98\] has no such step. It removes no pair with F >= T
//! (`core_contains_every_similar_pair`).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use webtwin_base::ids::{Number, Page};
use webtwin_job::OverlapSettings;

use super::millionths;

/// Returns the number of chunks that a page with `chunks` chunks must share to be in a similar
/// pair.
///
/// # Examples
/// ```
/// use webtwin_core::overlap::prune::required_shared;
/// use webtwin_job::OverlapSettings;
///
/// let settings = OverlapSettings { min_resemblance: 0.25, ..OverlapSettings::of_papers(10) };
/// // A short page must share T chunks, and a long one a quarter of its chunks.
/// assert_eq!([12, 100].map(|chunks| required_shared(chunks, &settings)), [10, 25]);
/// ```
pub fn required_shared(chunks: u32, settings: &OverlapSettings) -> u64 {
    let larger = u64::from(chunks) + u64::from(settings.doubt);
    let by_resemblance = (millionths(settings.min_resemblance) * larger).div_ceil(1_000_000);
    by_resemblance.max(u64::from(settings.min_shared)).max(1)
}

/// A set of pages: one bit each.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::prune::PageSet;
///
/// let even = PageSet::new(6, |page| page.0 % 2 == 0);
/// let mut pages: Vec<Page> = Page::first(6).collect();
/// even.leave_out(&mut pages);
/// assert_eq!((pages, even.count()), ([1, 3, 5].map(Page).to_vec(), 3));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSet(Vec<u64>);

impl PageSet {
    /// Creates the set of the pages below `pages` for which `is_in` returns true.
    pub fn new(pages: usize, is_in: impl Fn(Page) -> bool) -> PageSet {
        let bit = |page: usize| u64::from(is_in(Page::from_index(page))) << (page % 64);
        let word = |at: usize| (at * 64..pages.min(at * 64 + 64)).fold(0, |word, page| word | bit(page));
        PageSet((0..pages.div_ceil(64)).map(word).collect())
    }

    /// Creates a set from its words, of 64 pages each.
    pub fn of_words(words: Vec<u64>) -> PageSet {
        PageSet(words)
    }

    /// Returns the words of the set, of 64 pages each.
    pub fn into_words(self) -> Vec<u64> {
        self.0
    }

    /// Adds a page to the set.
    pub fn insert(&mut self, page: Page) {
        self.0[page.index() / 64] |= 1 << (page.0 % 64);
    }

    /// Removes a page from the set.
    pub fn remove(&mut self, page: Page) {
        self.0[page.index() / 64] &= !(1 << (page.0 % 64));
    }

    /// True if a page is in the set.
    #[inline]
    pub fn contains(&self, page: Page) -> bool {
        self.0[page.index() / 64] >> (page.0 % 64) & 1 == 1
    }

    /// Removes the pages of the set from a list. Works as `Vec::retain` without a branch. Exact
    /// copies would mispredict that branch, and without it many look-ups are in flight at the same
    /// time.
    pub fn leave_out(&self, pages: &mut Vec<Page>) {
        let mut kept_count = 0;
        for at in 0..pages.len() {
            let page = pages[at];
            pages[kept_count] = page;
            kept_count += usize::from(!self.contains(page));
        }
        pages.truncate(kept_count);
    }

    /// Returns the number of pages in the set.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the pages of the set, ascending.
    pub fn pages(&self) -> impl Iterator<Item = Page> + '_ {
        pages_of_words(self.0.iter().copied(), 0)
    }
}

/// Returns the pages of consecutive words of a set, ascending. `first` is the index of the first
/// word.
fn pages_of_words(words: impl Iterator<Item = u64>, first: usize) -> impl Iterator<Item = Page> {
    (first..).zip(words).flat_map(|(at, mut word)| {
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            word &= word.checked_sub(1)?;
            Some(Page::from_index(at * 64 + bit))
        })
    })
}

/// Set of pages that the threads of a process fill concurrently.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::prune::SharedPageSet;
///
/// let set = SharedPageSet::new(200);
/// std::thread::scope(|scope| _ = scope.spawn(|| set.insert(Page(150))));
/// set.insert(Page(7));
/// assert_eq!(set.part(0, 2).chain(set.part(1, 2)).collect::<Vec<_>>(), [Page(7), Page(150)]);
/// ```
#[derive(Debug)]
pub struct SharedPageSet(Vec<AtomicU64>);

impl SharedPageSet {
    /// Creates an empty set for pages `0..pages`.
    pub fn new(pages: usize) -> SharedPageSet {
        SharedPageSet((0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds a page to the set.
    #[inline]
    pub fn insert(&self, page: Page) {
        let (word, bit) = (&self.0[page.index() / 64], 1 << (page.0 % 64));
        // Most pages are inserted many times, and a load is much cheaper than a locked instruction.
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Returns the part of the pages that the given one of `threads` threads takes if they divide
    /// the set among themselves. Valid once all threads have inserted their pages.
    pub fn part(&self, thread: usize, threads: usize) -> impl Iterator<Item = Page> + '_ {
        let start = |thread: usize| self.0.len() * thread / threads;
        let words = &self.0[start(thread)..start(thread + 1)];
        pages_of_words(words.iter().map(|word| word.load(Relaxed)), start(thread))
    }

    /// Returns the set. Reuses its memory.
    pub fn into_set(self) -> PageSet {
        PageSet(self.0.into_iter().map(AtomicU64::into_inner).collect())
    }
}

/// Ranks of the pages of a set, in ascending order, as indices for data that is held for these
/// pages only.
///
/// # Memory
/// Two bits for each page.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::prune::{PageSet, Ranks};
///
/// let ranks = Ranks::new(PageSet::new(100, |page| page.0 >= 70));
/// assert_eq!((ranks.rank(Page(70)), ranks.rank(Page(72))), (Some(0), Some(2)));
/// assert_eq!(ranks.rank(Page(69)), None);
/// ```
#[derive(Debug)]
pub struct Ranks(Vec<RankedPages>);

/// 32 pages: one bit for each that is in the set, and the number of pages of the set before them.
/// Both are next to each other, so that a rank takes one access to memory.
#[derive(Debug)]
struct RankedPages {
    bits: u32,
    before: u32,
}

impl Ranks {
    /// Computes the ranks of the pages of a set.
    pub fn new(set: PageSet) -> Ranks {
        let mut before = 0;
        let halves = set.0.into_iter().flat_map(|word| [word as u32, (word >> 32) as u32]);
        let ranked = halves.map(|bits| {
            let pages = RankedPages { bits, before };
            before += bits.count_ones();
            pages
        });
        Ranks(ranked.collect())
    }

    /// Returns the number of pages of the set before `page`, or `None` if `page` is not in the set.
    #[inline]
    pub fn rank(&self, page: Page) -> Option<usize> {
        let RankedPages { bits, before } = self.0[page.index() / 32];
        let bit = page.0 % 32;
        (bits >> bit & 1 == 1).then(|| (before + (bits & ((1 << bit) - 1)).count_ones()) as usize)
    }

    /// True if a page is in the set.
    #[inline]
    pub fn contains(&self, page: Page) -> bool {
        self.0[page.index() / 32].bits >> (page.0 % 32) & 1 == 1
    }

    /// Returns the pages of the set, ascending.
    pub fn pages(&self) -> impl Iterator<Item = Page> + '_ {
        let words = self.0.chunks_exact(2).map(|halves| u64::from(halves[0].bits) | u64::from(halves[1].bits) << 32);
        pages_of_words(words, 0)
    }

    /// Returns the number of pages in the set.
    pub fn count(&self) -> usize {
        self.0.last().map_or(0, |last| (last.before + last.bits.count_ones()) as usize)
    }
}

/// True if a page may be in a similar pair, given the number of its chunks and the number of those
/// that another page has, too. `chunks` is ignored if no resemblance is required.
pub fn may_be_similar(shared: u8, chunks: u32, settings: &OverlapSettings) -> bool {
    u64::from(shared) >= required_shared(chunks, settings).min(255)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::overlap::{FPrintDocId, sort_based};
    use webtwin_base::ids::HostId;

    proptest! {
        #[test]
        fn rank_of_a_page_is_its_position_in_the_set(pages in prop::collection::btree_set(0u32..300, 0..300)) {
            let ranks = Ranks::new(PageSet::new(300, |page| pages.contains(&page.0)));
            let places: BTreeMap<u32, usize> = pages.iter().copied().zip(0..).collect();
            prop_assert_eq!(ranks.count(), pages.len());
            prop_assert!((0..300).all(|page| ranks.rank(Page(page)) == places.get(&page).copied()));
        }

        #[test]
        fn core_contains_every_similar_pair(
            rows in prop::collection::btree_set((0u64..30, (0u32..20).prop_map(Page)), 0..200), min_shared in 1u32..6,
            min_resemblance in prop::sample::select(vec![0.0, 0.35, 0.8]), doubt in 0u32..3, rounds in 1usize..5
        ) {
            let settings = OverlapSettings { min_shared, min_resemblance, doubt, ..OverlapSettings::of_papers(1) };
            let table: Vec<_> = rows.iter().map(|&(fprint, doc)| FPrintDocId::new(fprint, doc)).collect();
            let similar = sort_based::similar_pairs(&table, &[HostId(0); 20], &[], &settings);
            let mut chunks = [0u32; 20];
            let mut runs: BTreeMap<u64, Vec<Page>> = BTreeMap::new();
            for &(fprint, doc) in &rows {
                runs.entry(fprint).or_default().push(doc);
                chunks[doc] += 1;
            }
            for _ in 0..rounds {
                runs.retain(|_, docs| docs.len() > 1);
                let mut shared = [0u8; 20];
                runs.values().flatten().for_each(|&doc| shared[doc] = shared[doc].saturating_add(1));
                let core = PageSet::new(shared.len(), |page| may_be_similar(shared[page], chunks[page], &settings));
                runs.values_mut().for_each(|docs| docs.retain(|&doc| core.contains(doc)));
            }
            for pair in similar {
                let shared_runs = runs.values().filter(|docs| docs.contains(&pair.a) && docs.contains(&pair.b)).count();
                prop_assert_eq!(shared_runs as u32, pair.value);
            }
        }
    }

    #[test]
    fn pages_with_a_saturated_count_stay() {
        let settings = OverlapSettings { min_shared: 1000, ..OverlapSettings::of_papers(1) };
        assert!(may_be_similar(255, 2000, &settings));
        assert!(!may_be_similar(254, 2000, &settings));
    }
}
