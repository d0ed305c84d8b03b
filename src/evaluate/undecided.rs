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
    same: Vec<Common<'a>>,
    /// Words that make pairs open, ascending.
    perhaps: Vec<&'a str>,
}

/// Classes of the known pages.
#[derive(Debug)]
pub(super) struct PageKinds<'a> {
    kinds: Vec<Kind<'a>>,
    /// Index in `kinds` by index of the page.
    of_page: Vec<usize>,
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
        let mut found = PageKinds { kinds: Vec::new(), of_page: Vec::new() };
        let mut numbers = HashMap::new();
        for page in pages {
            let source = source(page);
            let own = page.target_page.map(|of| of.name);
            // Pages of one source have the same set of names, which includes their own.
            let key = (source, page.perhaps, if source.is_none() { own } else { None });
            let kind = *numbers.entry(key).or_insert_with(|| {
                let of_source = source.iter().flat_map(|source| &names[source]).copied().chain(own);
                let mut same: Vec<Common<'_>> = source.into_iter().chain(of_source.map(Common::Name)).collect();
                same.sort_unstable();
                same.dedup();
                let mut perhaps: Vec<&str> = page.perhaps.split_ascii_whitespace().collect();
                perhaps.sort_unstable();
                found.kinds.push(Kind { same, perhaps });
                found.kinds.len() - 1
            });
            found.of_page.push(kind);
        }
        found
    }

    /// Returns the status of two pages that are not copies by name, given by their indices.
    pub(super) fn verdict(&self, a: usize, b: usize) -> NonCopyVerdict {
        let [a, b] = [a, b].map(|page| &self.kinds[self.of_page[page]]);
        if a.same.iter().any(|common| b.same.binary_search(common).is_ok()) {
            NonCopyVerdict::Accidental
        } else if a.perhaps.iter().any(|word| b.perhaps.binary_search(word).is_ok()) {
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
        pages.for_each(|page| *sizes.entry(self.of_page[page]).or_default() += 1);
        let alone = |kind: usize| {
            let Kind { same, perhaps } = &self.kinds[kind];
            (same.is_empty(), perhaps.is_empty())
        };
        let within = |kinds: &mut dyn Iterator<Item = (&usize, &u64)>| kinds.map(|(_, n)| n * (n - 1) / 2).sum::<u64>();
        let between = |pairs: &BTreeSet<(usize, usize)>| pairs.iter().map(|(a, b)| sizes[a] * sizes[b]).sum::<u64>();
        let same = in_common(sizes.keys().map(|&kind| (kind, &self.kinds[kind].same[..])));
        let mut perhaps = in_common(sizes.keys().map(|&kind| (kind, &self.kinds[kind].perhaps[..])));
        perhaps.retain(|pair| !same.contains(pair));
        let accidental = within(&mut sizes.iter().filter(|(kind, _)| !alone(**kind).0)) + between(&same);
        let open = within(&mut sizes.iter().filter(|(kind, _)| alone(**kind) == (true, false))) + between(&perhaps);
        (accidental, open)
    }
}

/// Returns the pairs of different classes with a common property.
fn in_common<'k, T: Ord + 'k>(kinds: impl Iterator<Item = (usize, &'k [T])>) -> BTreeSet<(usize, usize)> {
    let mut with: BTreeMap<&T, Vec<usize>> = BTreeMap::new();
    for (kind, commons) in kinds {
        commons.iter().for_each(|common| with.entry(common).or_default().push(kind));
    }
    let mut pairs = BTreeSet::new();
    for kinds in with.values() {
        for (at, &a) in kinds.iter().enumerate() {
            pairs.extend(kinds[at + 1..].iter().filter(|&&b| b != a).map(|&b| (a.min(b), a.max(b))));
        }
    }
    pairs
}
