//! Predicted pairs that are not copies by the truth, but are not errors either.
//!
//! A truth goes by names. An untranslated page in another language edition is the original under
//! another name. If a generator renumbers its pages in each version, a name carries no information.
//! A pair of pages that are not copies by name therefore counts neither as hit nor as error if it
//! is
//!
//! - *accidental*: both pages were made of the same bytes, or one of them of the bytes of a copy of
//!   the other, or copies of both of the same bytes. The truth about these copies then applies to
//!   the pair;
//! - or otherwise *open*: their rows have a common word in the column `perhaps`.
//!
//! The bytes of which a page was made are identified by the column `origin`, or by its HTML if that
//! is empty.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::truth::KnownPage;

/// A property that two pages may have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Common<'a> {
    /// Bytes of which the pages were made, as identified by the truth.
    Origin(&'a str),
    /// Bytes of which the pages were made, identified by their HTML.
    Body(u64),
    /// Name of a page that was made of the same bytes.
    Name(u32),
}

/// Status of a pair of pages that are not copies by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NonCopyVerdict {
    /// A false pair, if the pages are in one cluster.
    Different,
    Accidental,
    Open,
}

/// Class of pages that differ only in their names.
#[derive(Debug)]
struct Kind<'a> {
    /// Properties that make pairs accidental, ascending.
    common_names: Vec<Common<'a>>,
    /// Words that make pairs open, ascending.
    possible_names: Vec<&'a str>,
}

/// Classes of the known pages.
#[derive(Debug)]
pub(super) struct PageKinds<'a> {
    kinds: Vec<Kind<'a>>,
    /// Index in `kinds` by index of the page.
    kind_of_page: Vec<usize>,
}

impl<'a> PageKinds<'a> {
    /// Classifies the known pages.
    pub(super) fn new(pages: &[KnownPage<'a>]) -> PageKinds<'a> {
        let source = |page: &KnownPage<'a>| match (page.origin, page.body) {
            ("", 0) => None,
            ("", body) => Some(Common::Body(body)),
            (origin, _) => Some(Common::Origin(origin)),
        };
        let mut names: HashMap<Common<'_>, BTreeSet<u32>> = HashMap::new();
        for page in pages {
            if let Some(source) = source(page) {
                names.entry(source).or_default().extend(page.target_page.map(|of| of.name));
            }
        }
        let mut page_kinds = PageKinds { kinds: Vec::new(), kind_of_page: Vec::new() };
        let mut numbers = HashMap::new();
        for page in pages {
            let source = source(page);
            let own_name = page.target_page.map(|of| of.name);
            // Pages of one source have the same set of names, which includes their own.
            let key = (source, page.possible_names, if source.is_none() { own_name } else { None });
            let kind = *numbers.entry(key).or_insert_with(|| {
                let source_names = source.iter().flat_map(|source| &names[source]).copied().chain(own_name);
                let mut common_names: Vec<Common<'_>> =
                    source.into_iter().chain(source_names.map(Common::Name)).collect();
                common_names.sort_unstable();
                common_names.dedup();
                let mut possible_names: Vec<&str> = page.possible_names.split_ascii_whitespace().collect();
                possible_names.sort_unstable();
                page_kinds.kinds.push(Kind { common_names, possible_names });
                page_kinds.kinds.len() - 1
            });
            page_kinds.kind_of_page.push(kind);
        }
        page_kinds
    }

    /// Returns the status of two pages that are not copies by name, given by their indices.
    pub(super) fn verdict(&self, a: usize, b: usize) -> NonCopyVerdict {
        let [a, b] = [a, b].map(|page| &self.kinds[self.kind_of_page[page]]);
        if a.common_names.iter().any(|common| b.common_names.binary_search(common).is_ok()) {
            NonCopyVerdict::Accidental
        } else if a.possible_names.iter().any(|word| b.possible_names.binary_search(word).is_ok()) {
            NonCopyVerdict::Open
        } else {
            NonCopyVerdict::Different
        }
    }

    /// Returns the number of accidental and true pairs together, and the number of open pairs,
    /// among these pages, given by their indices.
    ///
    /// # Cost
    /// Proportional to the pairs of classes with a common property, not to the pairs of pages.
    pub(super) fn count(&self, pages: impl Iterator<Item = usize>) -> (u64, u64) {
        let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
        pages.for_each(|page| *sizes.entry(self.kind_of_page[page]).or_default() += 1);
        let has_no_pair = |kind: usize| {
            let Kind { common_names: names, possible_names } = &self.kinds[kind];
            (names.is_empty(), possible_names.is_empty())
        };
        let pairs_within =
            |kinds: &mut dyn Iterator<Item = (&usize, &u64)>| kinds.map(|(_, n)| n * (n - 1) / 2).sum::<u64>();
        let pairs_between =
            |pairs: &BTreeSet<(usize, usize)>| pairs.iter().map(|(a, b)| sizes[a] * sizes[b]).sum::<u64>();
        let same_pairs = common_pairs(sizes.keys().map(|&kind| (kind, &self.kinds[kind].common_names[..])));
        let mut possible_pairs = common_pairs(sizes.keys().map(|&kind| (kind, &self.kinds[kind].possible_names[..])));
        possible_pairs.retain(|pair| !same_pairs.contains(pair));
        let n_accidental =
            pairs_within(&mut sizes.iter().filter(|(kind, _)| !has_no_pair(**kind).0)) + pairs_between(&same_pairs);
        let open = pairs_within(&mut sizes.iter().filter(|(kind, _)| has_no_pair(**kind) == (true, false)))
            + pairs_between(&possible_pairs);
        (n_accidental, open)
    }
}

/// Returns the pairs of different classes with a common property.
fn common_pairs<'k, T: Ord + 'k>(kinds: impl Iterator<Item = (usize, &'k [T])>) -> BTreeSet<(usize, usize)> {
    let mut kinds_by_value: BTreeMap<&T, Vec<usize>> = BTreeMap::new();
    for (kind, commons) in kinds {
        commons.iter().for_each(|common| kinds_by_value.entry(common).or_default().push(kind));
    }
    let mut pairs = BTreeSet::new();
    for kinds in kinds_by_value.values() {
        for (number, &a) in kinds.iter().enumerate() {
            pairs.extend(kinds[number + 1..].iter().filter(|&&b| b != a).map(|&b| (a.min(b), a.max(b))));
        }
    }
    pairs
}
