//! Views: pages of one site that show one page under several URLs.
//!
//! A session, a tracking parameter, a print version or another order of the same list gives a page
//! another URL and changes little of its text. Such views share their links and nearly all of their
//! text. So the boilerplate filter removes their text as boilerplate if there are more views than
//! `overlap.template_pages`, and the guard `neighbours` treats them as chapters. Chapters, products
//! and threads differ in their titles, but views share one. So two texts of one host are views if
//!
//! - they have the same title,
//! - the resemblance of their chunks is at least `overlap.views`, and
//! - the resemblance of those of their chunks that are not boilerplate of the host is at least
//!   `overlap.views`. Three quarters of that suffice, unless the title is common on the host and is
//!   therefore weak evidence.
//!
//! The *resemblance* of two sets is |A ∩ B| / |A ∪ B|. Boilerplate is relative here: a chunk on
//! more than a quarter of the host's texts ([`most`]), of which about [`SAMPLE`] are inspected on a
//! large host. Pages with equal text count once, so a page that exists a thousand times is not its
//! own boilerplate. A host with few texts has no boilerplate.
//!
//! *Placeholders* are another kind: responses that a server sends with status 200 for URLs without
//! a page, each with its own text. They have a notice in common ([`crate::text::notices`]). Two
//! texts of one host with one notice, which at least [`MIN_PLACEHOLDERS`] texts of the host have,
//! are placeholders if they have few own chunks ([`MAX_OWN_CHUNKS`]), share half of all chunks of
//! the larger text, and share half of its own chunks. [`NAMES`] own chunks, which may name the URL
//! or the session, are exempt from the last condition, but never more than twice as many may
//! differ.
//!
//! Hosts of one registered domain often show one site, for example as `www.`, `m.` or `staging.`,
//! and `http:` and `https:` do the same. Texts of such hosts with the same path and query are
//! views, too, by the same comparison, whatever their titles are. A chunk that is boilerplate of
//! one of the two hosts is not an own chunk on that host.
//!
//! A page may also *declare* that it is a copy, by naming another URL as canonical
//! (`rel=canonical`, RFC 6596). Such declarations are often wrong, for example if all pages of a
//! list name the first one as canonical. So a page is a copy of a page that it names as canonical
//! only if they share half of all chunks, and half of their own chunks.
//!
//! Only texts with one title, path or notice, or of which one names the other as canonical, are
//! compared. If more than [`BLOCK`] texts have one title, path or notice, only those with similar
//! numbers of chunks are compared ([`blocks`]).
//!
//! # Source
//! \[MJS07\] section 1 and \[DDGMP03\] name pages of this kind. Broder, *On the resemblance and
//! containment of documents* (1997) for resemblance.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::{SimilarPair, millionths};
use crate::clusters::union_find::UnionFind;
use webtwin_base::ids::{DocId, FPrint, HostId, Page, splitmix64};
use webtwin_job::OverlapSettings;

/// Number of texts of a host that may have a chunk without its being boilerplate, even if the host
/// has few texts.
pub const UNCOUNTED_TEXTS: u32 = 12;

/// Approximate number of texts of a large host that are inspected for boilerplate.
pub const SAMPLE: u32 = 256;

/// Number of texts of a block, within which every two texts are compared.
pub const BLOCK: usize = 128;

/// Minimum number of texts of a host with one notice for these to be placeholders.
pub const MIN_PLACEHOLDERS: usize = 10;

/// Maximum number of own chunks of a placeholder. The part of a placeholder that concerns its URL
/// is short.
pub const MAX_OWN_CHUNKS: u64 = 24;

/// Number of own chunks in which placeholders may differ, even if they have no others. Twice as
/// many may differ if the texts share enough own chunks.
pub const NAMES: u64 = 4;

/// Reason to compare two texts, which also determines the conditions under which they are one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kin {
    /// The texts have the same title.
    Title,
    /// The texts have the same title, which more than [`most`] texts of the host have.
    CommonTitle,
    /// The texts have the same path and query, on hosts of one domain.
    Path,
    /// The texts have the same notice.
    Notice,
    /// One text names the URL of the other as canonical.
    Canonical,
}

impl Kin {
    /// Returns the kin of `count` texts with one title on a host with `texts` texts.
    pub fn of_title(count: usize, texts: u32) -> Kin {
        if count as u32 > most(texts) { Kin::CommonTitle } else { Kin::Title }
    }
}

/// A text with a title, with the fields that define the order within [`blocks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TitledText {
    /// Number of chunks of the text.
    pub chunks: u32,
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    /// Smallest page of the host that has the text.
    pub page: Page,
}

/// Returns the maximum number of texts, among `texts` inspected ones, that may have a chunk without
/// its being boilerplate.
pub fn most(texts: u32) -> u32 {
    UNCOUNTED_TEXTS.max(texts / 4)
}

/// True if a text is inspected for boilerplate, on a host with `texts` texts.
pub fn is_sampled(exact: FPrint, texts: u32) -> bool {
    texts <= SAMPLE || splitmix64(exact) % u64::from(texts) < u64::from(SAMPLE)
}

/// True if a chunk on `count` of the inspected texts of a host with `texts` texts is boilerplate.
pub fn is_boilerplate(count: u32, texts: u32) -> bool {
    count > most(texts.min(SAMPLE))
}

/// Returns the key of a chunk on a host.
pub fn on_host(fprint: FPrint, host: HostId) -> u64 {
    splitmix64(fprint ^ splitmix64(u64::from(host)))
}

/// Returns a chunk in the form that views are compared in: a hash whose last bit is 1 if the chunk
/// is the page's own, that is, not boilerplate of its host.
pub fn marked(fprint: FPrint, is_own: bool) -> u32 {
    ((splitmix64(fprint) >> 32) as u32) & !1 | u32::from(is_own)
}

/// Sorts the texts with one title and cuts them into blocks, within each of which every two texts
/// are compared.
///
/// Texts with similar numbers of chunks share a block. If there are more than [`BLOCK`] texts, each
/// is in two blocks, except for those at either end.
pub fn blocks(texts: &mut [TitledText]) -> impl Iterator<Item = &[TitledText]> {
    texts.sort_unstable();
    let texts = &*texts;
    let count = texts.len();
    let starts = (0..count).step_by(BLOCK / 2).take_while(move |&start| start == 0 || start + BLOCK / 2 < count);
    starts.map(move |start| &texts[start..count.min(start + BLOCK)])
}

/// Returns the resemblance of two texts in millionths if they are one page. For titles and paths it
/// is the resemblance of own chunks, otherwise that of all chunks. The marked chunks of both texts
/// must ascend.
///
/// # Examples
/// Two texts with one title share three of their four own chunks. Boilerplate of the site that is
/// on both pages does not make them more alike.
/// ```
/// use webtwin_core::overlap::views::{Kin, marked, resemblance};
/// use webtwin_job::OverlapSettings;
///
/// let text = |own: [u64; 4], boilerplate: &[u64]| {
///     let own = own.map(|fprint| marked(fprint, true)).into_iter();
///     let boilerplate = boilerplate.iter().map(|&fprint| marked(fprint, false));
///     let mut chunks: Vec<u32> = own.chain(boilerplate).collect();
///     chunks.sort_unstable();
///     chunks
/// };
/// let settings = OverlapSettings { views: 0.6, ..OverlapSettings::default() };
/// let of = |boilerplate: &[u64]| {
///     let (a, b) = (text([1, 2, 3, 4], boilerplate), text([1, 2, 3, 5], boilerplate));
///     resemblance(&a, &b, Kin::Title, &settings)
/// };
/// assert_eq!((of(&[]), of(&[9])), (Some(600_000), Some(600_000)));
/// ```
pub fn resemblance(a: &[u32], b: &[u32], kin: Kin, settings: &OverlapSettings) -> Option<u32> {
    let is_counted = matches!(kin, Kin::Notice | Kin::Canonical);
    let needed_fraction = if is_counted { 500_000 } else { millionths(settings.views) };
    let reaches = |common: u64, union: u64, needed: u64| common * 1_000_000 >= needed * union;
    let (fewer, larger) = (a.len().min(b.len()) as u64, a.len().max(b.len()) as u64);
    if fewer == 0 || !reaches(fewer, larger, needed_fraction) {
        return None;
    }
    let (mut x, mut y, mut common, mut own_common, mut own_of_one) = (0, 0, 0u64, 0u64, 0u64);
    while x < a.len() && y < b.len() {
        match (a[x] | 1).cmp(&(b[y] | 1)) {
            Ordering::Less => x += 1,
            Ordering::Greater => y += 1,
            Ordering::Equal => {
                common += 1;
                own_common += u64::from(a[x] & b[y] & 1);
                own_of_one += u64::from((a[x] ^ b[y]) & 1);
                (x, y) = (x + 1, y + 1);
            }
        }
    }
    let own_count = |chunks: &[u32]| chunks.iter().map(|chunk| u64::from(chunk & 1)).sum::<u64>();
    let union = fewer + larger - common;
    if kin == Kin::Notice {
        let (own_both, own_most) = (own_common + own_of_one, own_count(a).max(own_count(b)));
        let differs_in_names = 2 * own_both + NAMES >= own_most && own_both + 2 * NAMES >= own_most;
        let are_placeholders = 2 * common >= larger && differs_in_names && own_most <= MAX_OWN_CHUNKS;
        return are_placeholders.then(|| (common * 1_000_000 / union) as u32);
    }
    let own_union = own_count(a) + own_count(b) - own_common - own_of_one;
    if kin == Kin::Canonical {
        let agree = reaches(common, union, needed_fraction) && reaches(own_common, own_union, needed_fraction);
        return agree.then(|| (common * 1_000_000 / union) as u32);
    }
    let own_needed = if kin == Kin::Title { needed_fraction / 4 * 3 } else { needed_fraction };
    let are_views =
        own_common > 0 && reaches(common, union, needed_fraction) && reaches(own_common, own_union, own_needed);
    are_views.then(|| (own_common * 1_000_000 / own_union) as u32)
}

/// Finds pairs within one block, whose pages must ascend. Calls `emit` with pairs in the order of
/// their pages, without pairs whose pages earlier pairs have joined.
pub fn join(block: &[(Page, &[u32])], kin: Kin, settings: &OverlapSettings, mut emit: impl FnMut(SimilarPair)) {
    let mut union = UnionFind::new(block.len());
    for (at, &(a, chunks_of_a)) in block.iter().enumerate() {
        for (later, &(b, chunks_of_b)) in block.iter().enumerate().skip(at + 1) {
            if union.find(at as u32) == union.find(later as u32) {
                continue;
            }
            if let Some(value) = resemblance(chunks_of_a, chunks_of_b, kin, settings) {
                union.union(at as u32, later as u32);
                emit(SimilarPair { a, b, value });
            }
        }
    }
}

/// Compares a page with others that name its URL as canonical, all of one block. Calls `visit` for
/// each of them, with a pair or with `None` if the texts do not agree.
pub fn agree(
    original: Page,
    block: &[(Page, &[u32])],
    settings: &OverlapSettings,
    mut visit: impl FnMut(Option<SimilarPair>),
) {
    let Some((_, original_chunks)) = block.iter().find(|text| text.0 == original) else { return };
    for (other, chunks) in block.iter().filter(|text| text.0 != original) {
        let value = resemblance(original_chunks, chunks, Kin::Canonical, settings);
        visit(value.map(|value| SimilarPair { a: original.min(*other), b: original.max(*other), value }));
    }
}

/// Input page of [`by_definition`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewPage {
    /// Host of the page.
    pub host: HostId,
    /// Registered domain of the host.
    pub domain: String,
    /// Path and query of the page.
    pub path: String,
    /// Title of the page; empty for none.
    pub title: String,
    /// Notice of the page; 0 for none.
    pub notice: u64,
    /// Doc id of the page, and of the URL that it names as canonical; 0 for none.
    pub doc_ids: [DocId; 2],
    /// Fingerprint of the whole text.
    pub exact: FPrint,
    /// Fingerprints of the chunks of the page: ascending, each once.
    pub chunks: Vec<FPrint>,
}

/// Computes views, placeholders and declared copies among the pages by definition, for each host,
/// chunk, title, path and notice separately. Each list ascends and has each pair once. Also returns
/// the pages that others correctly name as canonical.
pub fn by_definition(pages: &[ViewPage], settings: &OverlapSettings) -> ([Vec<SimilarPair>; 3], BTreeSet<Page>) {
    let page_at = |page: Page| &pages[page];
    let text_pages = || Page::first(pages.len()).filter(|&page| !page_at(page).chunks.is_empty());
    // Keeps the smallest page of each text.
    let texts_of = |pages: &mut dyn Iterator<Item = Page>| {
        let mut texts: Vec<Page> = Vec::new();
        for page in pages {
            if !texts.iter().any(|&text| page_at(text).exact == page_at(page).exact) {
                texts.push(page);
            }
        }
        texts
    };
    let texts_on = |host: HostId| texts_of(&mut text_pages().filter(|&page| page_at(page).host == host));
    let is_own = |chunk: FPrint, host: HostId| {
        let texts = texts_on(host);
        let count = texts.len() as u32;
        let sampled_texts = texts.iter().filter(|text| is_sampled(page_at(**text).exact, count));
        !is_boilerplate(sampled_texts.filter(|text| page_at(**text).chunks.contains(&chunk)).count() as u32, count)
    };
    let set = |page: Page| {
        let ViewPage { host, chunks, .. } = page_at(page);
        let chunks: BTreeSet<u32> = chunks.iter().map(|&chunk| marked(chunk, is_own(chunk, *host))).collect();
        (page, chunks.into_iter().collect::<Vec<u32>>())
    };
    let compare = |kin: Kin, texts: &[Page], pairs: &mut Vec<SimilarPair>| {
        let titled =
            |&page: &Page| TitledText { chunks: page_at(page).chunks.len() as u32, exact: page_at(page).exact, page };
        let mut titled: Vec<TitledText> = texts.iter().map(titled).collect();
        for block in blocks(&mut titled) {
            let pages: BTreeSet<Page> = block.iter().map(|text| text.page).collect();
            let sets: Vec<(Page, Vec<u32>)> = pages.into_iter().map(set).collect();
            let sets: Vec<(Page, &[u32])> = sets.iter().map(|(page, set)| (*page, &set[..])).collect();
            join(&sets, kin, settings, |pair| pairs.push(pair));
        }
    };
    let (mut pairs_by_kind, mut originals) = ([const { Vec::new() }; 3], BTreeSet::new());
    let titles: BTreeSet<&String> =
        text_pages().map(|page| &page_at(page).title).filter(|title| !title.is_empty()).collect();
    let hosts: BTreeSet<HostId> = pages.iter().map(|page| page.host).collect();
    for host in hosts {
        let count = texts_on(host).len() as u32;
        let host_pages = || text_pages().filter(|&page| page_at(page).host == host);
        // Views with one title differ in their queries, so a title is skipped if no URL with it has
        // a query.
        for title in &titles {
            let title_pages = || host_pages().filter(|&page| page_at(page).title == **title);
            let texts = texts_of(&mut title_pages());
            if title_pages().any(|page| page_at(page).path.contains('?')) {
                compare(Kin::of_title(texts.len(), count), &texts, &mut pairs_by_kind[0]);
            }
        }
        let notices: BTreeSet<u64> =
            host_pages().map(|page| page_at(page).notice).filter(|&notice| notice != 0).collect();
        for notice in notices {
            let notice_texts = texts_of(&mut host_pages().filter(|&page| page_at(page).notice == notice));
            if notice_texts.len() >= MIN_PLACEHOLDERS {
                compare(Kin::Notice, &notice_texts, &mut pairs_by_kind[1]);
            }
        }
    }
    let place = |page: Page| (&page_at(page).domain, &page_at(page).path);
    let places: BTreeSet<_> = text_pages().map(place).collect();
    // Paths are compared across the hosts of a domain, so they are not part of the loop over hosts.
    for place_found in places {
        let texts = texts_of(&mut text_pages().filter(|&page| place(page) == place_found));
        compare(Kin::Path, &texts, &mut pairs_by_kind[0]);
    }
    for original in text_pages() {
        let declaring = || text_pages().filter(|&page| page_at(page).doc_ids[1] == page_at(original).doc_ids[0]);
        let is_copy = |page: &Page| page_at(*page).exact == page_at(original).exact;
        if declaring().any(|page| is_copy(&page)) {
            originals.insert(original);
        }
        for other in texts_of(&mut declaring().filter(|page| !is_copy(page))) {
            let (texts, previous_count) = ([set(original), set(other)], pairs_by_kind[2].len());
            let texts = texts.each_ref().map(|(page, set)| (*page, &set[..]));
            agree(original, &texts, settings, |pair| pairs_by_kind[2].extend(pair));
            if pairs_by_kind[2].len() > previous_count {
                originals.insert(original);
            }
        }
    }
    for pairs in &mut pairs_by_kind {
        pairs.sort_unstable();
        pairs.dedup();
    }
    (pairs_by_kind, originals)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_job::Job;

    fn overlap() -> OverlapSettings {
        Job::default().overlap
    }

    fn set(boilerplate: std::ops::Range<u64>, own_chunks: std::ops::Range<u64>) -> Vec<u32> {
        let mut set: Vec<u32> =
            boilerplate.map(|chunk| marked(chunk, false)).chain(own_chunks.map(|chunk| marked(chunk, true))).collect();
        set.sort_unstable();
        set
    }

    #[test]
    fn texts_are_views_if_all_chunks_and_own_chunks_agree() {
        let resemblance_of = |a: &[u32], b: &[u32], kin| resemblance(a, b, kin, &overlap());
        let page = set(0..40, 100..110);
        assert_eq!(resemblance_of(&page, &page, Kin::CommonTitle), Some(1_000_000));
        // Of eleven own chunks nine are shared, then eight of twelve.
        assert_eq!(resemblance_of(&page, &set(0..40, 101..111), Kin::CommonTitle), Some(818_181));
        assert_eq!(resemblance_of(&page, &set(0..40, 102..112), Kin::CommonTitle), None);
        assert_eq!(resemblance_of(&page, &set(0..40, 102..112), Kin::Title), Some(666_666));
        // Neither boilerplate alone nor own chunks alone make views.
        assert_eq!(resemblance_of(&set(0..40, 0..0), &set(0..40, 0..0), Kin::Title), None);
        assert_eq!(resemblance_of(&page, &set(50..90, 100..110), Kin::Title), None);
        assert_eq!(resemblance_of(&[], &[], Kin::Title), None);
    }

    #[test]
    fn placeholders_may_differ_in_words_of_their_urls() {
        let are_views = |a: &[u32], b: &[u32]| resemblance(a, b, Kin::Notice, &overlap()).is_some();
        let page = set(0..20, 100..105);
        assert!(are_views(&page, &set(0..20, 104..109)) && are_views(&page, &set(0..20, 104..106)));
        // More own chunks, or another template, make them different pages.
        assert!(!are_views(&page, &set(0..20, 108..113)) && !are_views(&page, &set(15..35, 100..105)));
        // Half of many own chunks agree, but nine differ; or there are too many own chunks.
        assert!(
            are_views(&set(0..20, 100..120), &set(0..20, 108..128))
                && !are_views(&set(0..20, 100..120), &set(0..20, 109..129))
        );
        assert!(!are_views(&set(0..20, 100..125), &set(0..20, 101..126)));
        // If a host has nothing else, all of its chunks are boilerplate.
        assert!(
            are_views(&set(0..2, 100..101), &set(0..2, 101..102))
                && !are_views(&set(0..1, 100..102), &set(0..1, 102..104))
        );
    }

    #[test]
    fn canonical_page_agrees_if_half_of_all_chunks_and_of_own_chunks_agree() {
        let agreement_with = |other: &[u32]| {
            let (original, mut pairs) = (set(0..20, 100..110), Vec::new());
            let block = [(Page(3), other), (Page(7), &original[..])];
            agree(Page(7), &block, &overlap(), |pair| pairs.push(pair));
            assert_eq!(pairs.len(), 1);
            pairs[0].map(|pair| (pair.a, pair.b, pair.value))
        };
        // Of 31 chunks 29 are shared, then of 13 own ones 7, then of 14 own ones 6.
        assert_eq!(agreement_with(&set(0..20, 101..111)), Some((Page(3), Page(7), 935_483)));
        assert_eq!(agreement_with(&set(0..20, 103..113)), Some((Page(3), Page(7), 818_181)));
        assert_eq!(agreement_with(&set(0..20, 104..114)), None);
        // The other page of a list shares only its template.
        assert_eq!(agreement_with(&set(0..20, 200..210)), None);
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
            let mut texts: Vec<TitledText> = (0..count as u32)
                .rev()
                .map(|at| TitledText { chunks: at, exact: u64::from(at), page: Page(at) })
                .collect();
            let text_blocks: Vec<Vec<u32>> =
                blocks(&mut texts).map(|block| block.iter().map(|text| text.page.0).collect()).collect();
            assert!(text_blocks.iter().all(|block| block.len() <= BLOCK), "{count}");
            let share_block = |x: u32, y: u32| text_blocks.iter().any(|block| block.contains(&x) && block.contains(&y));
            for at in 0..count as u32 {
                let near = (at + 1..count as u32).take(if count <= BLOCK { BLOCK } else { BLOCK / 2 });
                assert!(near.clone().all(|other| share_block(at, other)), "{count} {at}");
            }
            assert!(count < 2 || !text_blocks.is_empty());
        }
    }

    #[test]
    fn one_article_under_twelve_urls_is_one_page_and_its_siblings_are_others() {
        let page = |title: &str, body: std::ops::Range<u64>, extra: u64| {
            let mut chunks: Vec<u64> = (0..10).chain(body).chain([extra]).collect();
            chunks.sort_unstable();
            let (domain, path) = ("a.example".to_string(), format!("/?{extra}"));
            let (title, doc_ids) = (title.into(), [extra, 0]);
            ViewPage { host: HostId(0), domain, path, title, notice: 0, doc_ids, exact: splitmix64(extra), chunks }
        };
        let views = (0..12).map(|view| page("article", 100..120, 1000 + view));
        let siblings = (0..12).map(|other| page("sibling", 200 + 20 * other..220 + 20 * other, 2000 + other));
        let pages: Vec<ViewPage> = views.chain(siblings).collect();
        let ([views, placeholders, declared], originals) = by_definition(&pages, &overlap());
        assert_eq!((views.len(), placeholders.len(), declared.len(), originals.len()), (11, 0, 0, 0));
        assert!(views.iter().all(|pair| pair.b < Page(12)));
    }

    proptest! {
        #[test]
        fn resemblance_equals_that_of_sets(a in prop::collection::btree_set(0u64..60, 0..40), b in prop::collection::btree_set(0u64..60, 0..40), own in 0u64..60, is_common: bool) {
            let marked = |set: &std::collections::BTreeSet<u64>| {
                let mut marked_chunks: Vec<u32> = set.iter().map(|&chunk| marked(chunk, chunk < own)).collect();
                marked_chunks.sort_unstable();
                marked_chunks
            };
            let counts_of = |keep: &dyn Fn(u64) -> bool| {
                let common = a.intersection(&b).filter(|&&chunk| keep(chunk)).count();
                (common, a.union(&b).filter(|&&chunk| keep(chunk)).count())
            };
            let ((common, union), (own_common, own_union)) = (counts_of(&|_| true), counts_of(&|chunk| chunk < own));
            let needed_fraction = if is_common { 0.8 } else { 0.6 };
            let reaches = |common: usize, union: usize, needed: f64| common as f64 >= needed * union as f64 - 1e-9;
            let are_views = own_common > 0 && reaches(common, union, 0.8) && reaches(own_common, own_union, needed_fraction);
            let expected = are_views.then(|| (own_common * 1_000_000 / own_union) as u32);
            let kin = if is_common { Kin::CommonTitle } else { Kin::Title };
            prop_assert_eq!(resemblance(&marked(&a), &marked(&b), kin, &overlap()), expected);
        }
    }
}
