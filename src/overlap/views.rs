//! Views: pages of one host that show one page under several URLs.
//!
//! A session, a tracking parameter, a print version or another order of the same list gives a page another URL and changes
//! little of it. Such views share their links and nearly all of their text, so the filter of boilerplate takes their text for
//! boilerplate as soon as there are more of them than `overlap.template_pages`, and the guard `neighbours` takes them for
//! chapters. What chapters, products or threads do not share is their title. So two texts of one host are views if
//!
//! - they have the same title,
//! - their chunks resemble each other by `overlap.views`, and
//! - so do those of their chunks that are not boilerplate of the host; three quarters of that suffice, unless the title is
//!   common on the host and therefore tells little.
//!
//! The *resemblance* of two sets is |A ∩ B| / |A ∪ B|. Boilerplate is relative here: a chunk on more than a quarter of the
//! host's texts ([`most`]), of which [`SAMPLE`] are inspected on a large host. Pages with equal text count once, so a page that
//! exists a thousand times is not its own boilerplate. A host with few texts has no boilerplate.
//!
//! Only texts with one title are compared, and of more than [`BLOCK`] of them only those with similar numbers of chunks
//! ([`blocks`]).
//!
//! # Source
//! \[MJS07\] section 1 and \[DDGMP03\] name pages of this kind. Broder, *On the resemblance and containment of documents*
//! (1997) for resemblance.

use std::cmp::Ordering;

use super::{SimilarPair, millionths};
use crate::clusters::union_find::UnionFind;
use crate::ids::{FPrint, HostId, Page, splitmix64};
use crate::job::Overlap;

/// Texts of a host that may have a chunk without its being boilerplate, however few texts the host has.
pub const FEW: u32 = 12;

/// Number of texts of a large host, about, in which boilerplate is looked for.
pub const SAMPLE: u32 = 256;

/// Texts with one title of which every two are compared.
pub const BLOCK: usize = 128;

/// A text with a title, as the order within [`blocks`] needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Titled {
    /// Number of its chunks.
    pub chunks: u32,
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    /// Smallest page of the host that has the text.
    pub page: Page,
}

/// Texts that may have a chunk without its being boilerplate, among `texts` that are inspected.
pub fn most(texts: u32) -> u32 {
    FEW.max(texts / 4)
}

/// True if a text is inspected for boilerplate, on a host with `texts` texts.
pub fn is_sampled(exact: FPrint, texts: u32) -> bool {
    texts <= SAMPLE || splitmix64(exact) % u64::from(texts) < u64::from(SAMPLE)
}

/// True if a chunk on `count` of the inspected texts of a host with `texts` texts is boilerplate.
pub fn is_boilerplate(count: u32, texts: u32) -> bool {
    count > most(texts.min(SAMPLE))
}

/// Key of a chunk on a host.
pub fn on_host(fprint: FPrint, host: HostId) -> u64 {
    splitmix64(fprint ^ splitmix64(u64::from(host)))
}

/// Chunk of a page as views are compared by it: a hash, and whether the chunk is the page's own, which is to say no boilerplate.
///
/// Equal chunks of one host are equal numbers.
pub fn marked(fprint: FPrint, is_own: bool) -> u32 {
    ((splitmix64(fprint) >> 32) as u32) & !1 | u32::from(is_own)
}

/// Puts the texts with one title in order and cuts them into blocks, within each of which every two texts are compared.
///
/// Texts with similar numbers of chunks share a block. Of more than [`BLOCK`] texts, each is in two blocks, but for those at
/// either end.
pub fn blocks(texts: &mut [Titled]) -> impl Iterator<Item = &[Titled]> {
    texts.sort_unstable();
    let texts = &*texts;
    let count = texts.len();
    let starts = (0..count).step_by(BLOCK / 2).take_while(move |&start| start == 0 || start + BLOCK / 2 < count);
    starts.map(move |start| &texts[start..count.min(start + BLOCK)])
}

/// Own resemblance of two texts in millionths, if they are views; their marked chunks ascend. `is_common` is true if
/// more than [`most`] texts of the host have their title.
pub fn resemblance(a: &[u32], b: &[u32], is_common: bool, settings: &Overlap) -> Option<u32> {
    let needed = millionths(settings.views);
    let reaches = |common: u64, union: u64, needed: u64| common * 1_000_000 >= needed * union;
    let (fewer, more) = (a.len().min(b.len()) as u64, a.len().max(b.len()) as u64);
    if fewer == 0 || !reaches(fewer, more, needed) {
        return None;
    }
    let (mut x, mut y, mut common, mut own_common) = (0, 0, 0u64, 0u64);
    while x < a.len() && y < b.len() {
        match a[x].cmp(&b[y]) {
            Ordering::Less => x += 1,
            Ordering::Greater => y += 1,
            Ordering::Equal => {
                common += 1;
                own_common += u64::from(a[x] & 1);
                (x, y) = (x + 1, y + 1);
            }
        }
    }
    let own = |chunks: &[u32]| chunks.iter().map(|chunk| u64::from(chunk & 1)).sum::<u64>();
    let own_union = own(a) + own(b) - own_common;
    let own_needed = if is_common { needed } else { needed / 4 * 3 };
    let are_views =
        own_common > 0 && reaches(common, fewer + more - common, needed) && reaches(own_common, own_union, own_needed);
    are_views.then(|| (own_common * 1_000_000 / own_union) as u32)
}

/// Finds views within one block, whose pages ascend: pairs of pages in order, without those that join what earlier ones have
/// joined.
pub fn join(block: &[(Page, &[u32])], is_common: bool, settings: &Overlap, found: &mut Vec<SimilarPair>) {
    let mut joined = UnionFind::new(block.len());
    for (at, &(a, of_a)) in block.iter().enumerate() {
        for (after, &(b, of_b)) in block.iter().enumerate().skip(at + 1) {
            if joined.find(at as u32) == joined.find(after as u32) {
                continue;
            }
            if let Some(value) = resemblance(of_a, of_b, is_common, settings) {
                joined.union(at as u32, after as u32);
                found.push(SimilarPair { a, b, value });
            }
        }
    }
}

/// A page for [`by_definition`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Host of the page.
    pub host: HostId,
    /// Title of the page.
    pub title: String,
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    /// Fingerprints of its chunks: ascending, each once.
    pub chunks: Vec<FPrint>,
}

/// Views among the pages, by definition: every host, chunk and title by itself. Ascending, each pair once.
pub fn by_definition(pages: &[Shown], settings: &Overlap) -> Vec<SimilarPair> {
    let of = |page: Page| &pages[page];
    let with_text = || Page::first(pages.len()).filter(|&page| !of(page).chunks.is_empty());
    let is_first = |&page: &Page| {
        let same = |other: &Page| of(*other).host == of(page).host && of(*other).exact == of(page).exact;
        with_text().find(same) == Some(page)
    };
    let mut found = Vec::new();
    for page in with_text().filter(is_first) {
        let &Shown { host, ref title, .. } = of(page);
        let texts: Vec<Page> = with_text().filter(|other| of(*other).host == host).filter(is_first).collect();
        let count = texts.len() as u32;
        let titled: Vec<Page> = texts.iter().copied().filter(|other| of(*other).title == *title).collect();
        if title.is_empty() || titled[0] != page {
            continue;
        }
        let inspected = || texts.iter().filter(|text| is_sampled(of(**text).exact, count));
        let is_own = |chunk: FPrint| {
            let with_chunk = inspected().filter(|text| of(**text).chunks.contains(&chunk)).count() as u32;
            !is_boilerplate(with_chunk, count)
        };
        let mut rows: Vec<Titled> = titled
            .iter()
            .map(|&page| Titled { chunks: of(page).chunks.len() as u32, exact: of(page).exact, page })
            .collect();
        for block in blocks(&mut rows) {
            let mut pages: Vec<Page> = block.iter().map(|text| text.page).collect();
            pages.sort_unstable();
            let sets: Vec<(Page, Vec<u32>)> = pages
                .into_iter()
                .map(|page| {
                    let mut set: Vec<u32> = of(page).chunks.iter().map(|&chunk| marked(chunk, is_own(chunk))).collect();
                    set.sort_unstable();
                    (page, set)
                })
                .collect();
            let sets: Vec<(Page, &[u32])> = sets.iter().map(|(page, set)| (*page, &set[..])).collect();
            join(&sets, titled.len() as u32 > most(count), settings, &mut found);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::job::Job;

    fn overlap() -> Overlap {
        Job::default().overlap
    }

    fn set(boilerplate: std::ops::Range<u64>, own: std::ops::Range<u64>) -> Vec<u32> {
        let mut set: Vec<u32> =
            boilerplate.map(|chunk| marked(chunk, false)).chain(own.map(|chunk| marked(chunk, true))).collect();
        set.sort_unstable();
        set
    }

    #[test]
    fn texts_are_views_if_all_chunks_and_own_chunks_agree() {
        let of = |a: &[u32], b: &[u32], is_common| resemblance(a, b, is_common, &overlap());
        let page = set(0..40, 100..110);
        assert_eq!(of(&page, &page, true), Some(1_000_000));
        // Of eleven own chunks nine are shared, then eight of twelve.
        assert_eq!(of(&page, &set(0..40, 101..111), true), Some(818_181));
        assert_eq!(of(&page, &set(0..40, 102..112), true), None);
        assert_eq!(of(&page, &set(0..40, 102..112), false), Some(666_666));
        // Boilerplate alone makes no views, and neither do own chunks without it.
        assert_eq!(of(&set(0..40, 0..0), &set(0..40, 0..0), false), None);
        assert_eq!(of(&page, &set(50..90, 100..110), false), None);
        assert_eq!(of(&[], &[], false), None);
    }

    #[test]
    fn boilerplate_is_on_more_than_a_quarter_of_many_texts() {
        assert_eq!([0, 12, 50, 100, 256].map(most), [12, 12, 12, 25, 64]);
        assert!(is_boilerplate(65, 1_000_000) && !is_boilerplate(64, 1_000_000));
        let sampled = (0..100_000).filter(|&exact| is_sampled(exact, 100_000)).count();
        assert!((200..320).contains(&sampled), "{sampled}");
    }

    #[test]
    fn texts_share_a_block_with_those_of_similar_size() {
        for count in [0usize, 1, 2, 63, 64, 65, 127, 128, 129, 192, 193, 1000] {
            let mut texts: Vec<Titled> =
                (0..count as u32).rev().map(|at| Titled { chunks: at, exact: u64::from(at), page: Page(at) }).collect();
            let all: Vec<Vec<u32>> =
                blocks(&mut texts).map(|block| block.iter().map(|text| text.page.0).collect()).collect();
            assert!(all.iter().all(|block| block.len() <= BLOCK), "{count}");
            let together = |x: u32, y: u32| all.iter().any(|block| block.contains(&x) && block.contains(&y));
            for at in 0..count as u32 {
                let near = (at + 1..count as u32).take(if count <= BLOCK { BLOCK } else { BLOCK / 2 });
                assert!(near.clone().all(|other| together(at, other)), "{count} {at}");
            }
            assert!(count < 2 || !all.is_empty());
        }
    }

    #[test]
    fn one_article_under_twelve_urls_is_one_page_and_its_siblings_are_others() {
        let page = |title: &str, body: std::ops::Range<u64>, extra: u64| {
            let mut chunks: Vec<u64> = (0..10).chain(body).chain([extra]).collect();
            chunks.sort_unstable();
            Shown { host: HostId(0), title: title.into(), exact: splitmix64(extra), chunks }
        };
        let views = (0..12).map(|view| page("article", 100..120, 1000 + view));
        let siblings = (0..12).map(|other| page("sibling", 200 + 20 * other..220 + 20 * other, 2000 + other));
        let pages: Vec<Shown> = views.chain(siblings).collect();
        let found = by_definition(&pages, &overlap());
        assert_eq!(found.len(), 11);
        assert!(found.iter().all(|pair| pair.b < Page(12)));
    }

    proptest! {
        #[test]
        fn resemblance_is_that_of_sets(a in prop::collection::btree_set(0u64..60, 0..40), b in prop::collection::btree_set(0u64..60, 0..40), own in 0u64..60, is_common: bool) {
            let marked = |set: &std::collections::BTreeSet<u64>| {
                let mut all: Vec<u32> = set.iter().map(|&chunk| marked(chunk, chunk < own)).collect();
                all.sort_unstable();
                all
            };
            let of = |keep: &dyn Fn(u64) -> bool| {
                let common = a.intersection(&b).filter(|&&chunk| keep(chunk)).count();
                (common, a.union(&b).filter(|&&chunk| keep(chunk)).count())
            };
            let ((common, union), (own_common, own_union)) = (of(&|_| true), of(&|chunk| chunk < own));
            let needed = if is_common { 0.8 } else { 0.6 };
            let reaches = |common: usize, union: usize, needed: f64| common as f64 >= needed * union as f64 - 1e-9;
            let are_views = own_common > 0 && reaches(common, union, 0.8) && reaches(own_common, own_union, needed);
            let want = are_views.then(|| (own_common * 1_000_000 / own_union) as u32);
            prop_assert_eq!(resemblance(&marked(&a), &marked(&b), is_common, &overlap()), want);
        }
    }
}
