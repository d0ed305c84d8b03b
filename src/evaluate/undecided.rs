//! Pairs that the truth calls no copies, and that are no error all the same.
//!
//! A truth goes by names. A page of an edition in another language that nobody has translated is the original under another
//! name; where a generator numbers its pages anew in each version, a name says nothing. So a pair of pages that are no copies by
//! name counts neither way if it is
//!
//! - *accidental*: both pages were made of the same bytes, or one of the bytes of a copy of the other, or copies of both of the
//!   same bytes. What the truth says of these copies it says of the pair;
//! - or else *open*: their rows have a word of the column `perhaps` in common.
//!
//! What bytes a page was made of, the column `origin` says, and its HTML where there is none.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::truth::KnownPage;

/// Something that two pages may have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Common<'a> {
    /// The bytes that they were made of, by the truth.
    Origin(&'a str),
    /// The same by their HTML.
    Body(u64),
    /// That a page made of the same bytes has this name.
    Name(u32),
}

/// How two pages that are no copies by name count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As a false pair, if they are in one cluster.
    Different,
    Accidental,
    Open,
}

/// Pages that nothing but their names tells apart.
#[derive(Debug)]
struct Kind<'a> {
    /// Ascending.
    same: Vec<Common<'a>>,
    /// Ascending.
    perhaps: Vec<&'a str>,
}

/// The kinds of the known pages.
#[derive(Debug)]
pub(super) struct Undecided<'a> {
    kinds: Vec<Kind<'a>>,
    /// Index in `kinds` by index of the page.
    of_page: Vec<usize>,
}

impl<'a> Undecided<'a> {
    pub(super) fn new(pages: &[KnownPage<'a>]) -> Undecided<'a> {
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
        let mut found = Undecided { kinds: Vec::new(), of_page: Vec::new() };
        let mut numbers = HashMap::new();
        for page in pages {
            let source = source(page);
            let own = page.target_page.map(|of| of.name);
            // Pages of one source have the same names, their own among them.
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

    /// How two pages count, given by their indices, that are no copies by name.
    pub(super) fn verdict(&self, a: usize, b: usize) -> Verdict {
        let [a, b] = [a, b].map(|page| &self.kinds[self.of_page[page]]);
        if a.same.iter().any(|common| b.same.binary_search(common).is_ok()) {
            Verdict::Accidental
        } else if a.perhaps.iter().any(|word| b.perhaps.binary_search(word).is_ok()) {
            Verdict::Open
        } else {
            Verdict::Different
        }
    }

    /// Accidental pairs and true ones together, and open pairs, among these pages, given by their indices.
    ///
    /// # Cost
    /// Pairs of kinds that have something in common, not pairs of pages.
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

/// The pairs of different kinds that have something in common.
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
