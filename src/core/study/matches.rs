//! Documents all of whose shingle paragraphs are found in another one with as many: the matches that equal multisets do not
//! explain, among documents that stand for all of the same multiset.
//!
//! Let d match e. If no paragraph repeats in d, it has as many different ones as e has in all, so e has just these, each
//! once. So only documents with repeated paragraphs can match another multiset, and they are few: every process holds them
//! all. Each is looked for by one of its paragraphs, the one that stands in the fewest documents of its length (its *probe*),
//! and what is found by that is compared whole.
//!
//! # Source
//! \[PBZ06\] section 3: "a duplicate is detected if all shingles of a document in C have a match in a document of S_i and both
//! documents have the same number of shingles"; false matches at its end.

use bytemuck::{Pod, Zeroable};

use super::paragraphs::is_repeat;
use webtwin_base::ids::{FPrint, Page, splitmix64};

/// A document whose shingle paragraphs are all found in another one of as many. Orders by document, then the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct Match {
    /// d: the document of C.
    pub document: Page,
    /// e: the document that the hash table holds.
    pub within: Page,
}

/// Appends a document with repeated paragraphs to a list, as [`Repeating::new`] reads it; nothing for another one.
///
/// `marks` are ascending. The list has, for each document: its page, its marks, how many of these are even, and those.
pub fn push_repeating(document: Page, marks: &[FPrint], list: &mut Vec<u64>) {
    let paragraphs = marks.iter().filter(|&&mark| !is_repeat(mark));
    let different = paragraphs.clone().count();
    if different < marks.len() {
        list.extend([u64::from(document), marks.len() as u64, different as u64]);
        list.extend(paragraphs);
    }
}

/// A document with repeated paragraphs.
#[derive(Debug)]
struct Document {
    page: Page,
    /// Its shingle paragraphs, each as often as it stands there.
    all: usize,
    /// The different ones, ascending.
    paragraphs: Vec<FPrint>,
}

/// All documents with repeated paragraphs, to be looked for in all documents.
#[derive(Debug)]
pub struct Repeating {
    documents: Vec<Document>,
    /// Different keys of their paragraphs, ascending.
    keys: Vec<u64>,
    /// Where keys with the same leading bits begin.
    starts: Vec<u32>,
}

/// Which document is looked for by which key: number of the key, number of the document; ascending.
#[derive(Debug)]
pub struct Probes(Vec<(u32, u32)>);

/// A paragraph in documents of one length.
fn key(mark: FPrint, all: usize) -> u64 {
    splitmix64(splitmix64(mark) ^ all as u64)
}

impl Repeating {
    /// The documents of a list, in any order.
    pub fn new(mut list: &[u64]) -> Repeating {
        let mut documents = Vec::new();
        while let [page, all, different, rest @ ..] = list {
            let (paragraphs, rest) = rest.split_at(*different as usize);
            documents.push(Document { page: Page(*page as u32), all: *all as usize, paragraphs: paragraphs.to_vec() });
            list = rest;
        }
        documents.sort_unstable_by_key(|document| document.page);
        let of =
            |document: &Document| document.paragraphs.iter().map(|&mark| key(mark, document.all)).collect::<Vec<_>>();
        let mut keys: Vec<u64> = documents.iter().flat_map(of).collect();
        keys.sort_unstable();
        keys.dedup();
        let bits = keys.len().next_power_of_two().trailing_zeros().max(1);
        let start = |leading: u64| keys.partition_point(|key| key >> (64 - bits) < leading) as u32;
        let starts = (0..=1 << bits).map(start).collect();
        Repeating { documents, keys, starts }
    }

    /// How many counts [`Repeating::count`] needs.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    fn number(&self, key: u64) -> Option<usize> {
        let bits = (self.starts.len() - 1).trailing_zeros();
        let leading = (key >> (64 - bits)) as usize;
        let (start, end) = (self.starts[leading] as usize, self.starts[leading + 1] as usize);
        Some(start + self.keys[start..end].binary_search(&key).ok()?)
    }

    /// The keys that a document has, by number.
    fn numbers(&self, marks: &[FPrint]) -> impl Iterator<Item = usize> {
        marks.iter().filter(|&&mark| !is_repeat(mark)).filter_map(|&mark| self.number(key(mark, marks.len())))
    }

    /// Counts the paragraphs of a document by key.
    pub fn count(&self, marks: &[FPrint], counts: &mut [u32]) {
        self.numbers(marks).for_each(|number| counts[number] += 1);
    }

    /// The probes, where so many documents have each key.
    pub fn probes(&self, counts: &[u32]) -> Probes {
        let probe = |document: &Document| {
            let numbers = document.paragraphs.iter().filter_map(|&mark| self.number(key(mark, document.all)));
            numbers.min_by_key(|&number| (counts[number], number)).map(|number| number as u32)
        };
        let mut by_probe: Vec<(u32, u32)> =
            self.documents.iter().zip(0..).filter_map(|(document, at)| Some((probe(document)?, at))).collect();
        by_probe.sort_unstable();
        Probes(by_probe)
    }

    /// The matches within a document.
    pub fn within(&self, probes: &Probes, within: Page, marks: &[FPrint], mut found: impl FnMut(Match)) {
        for number in self.numbers(marks) {
            let first = probes.0.partition_point(|&(probe, _)| (probe as usize) < number);
            for (_, at) in probes.0[first..].iter().take_while(|(probe, _)| *probe as usize == number) {
                let Document { page, all, paragraphs } = &self.documents[*at as usize];
                if *page != within && *all == marks.len() && paragraphs.iter().all(|p| marks.binary_search(p).is_ok()) {
                    found(Match { document: *page, within });
                }
            }
        }
    }
}

/// All matches among documents of different multisets, given as (page, marks), ascending: what the wiring must equal.
pub fn matches(documents: &[(Page, Vec<FPrint>)]) -> Vec<Match> {
    let mut list = Vec::new();
    documents.iter().for_each(|(page, marks)| push_repeating(*page, marks, &mut list));
    let repeating = Repeating::new(&list);
    let mut counts = vec![0; repeating.keys()];
    documents.iter().for_each(|(_, marks)| repeating.count(marks, &mut counts));
    let probes = repeating.probes(&counts);
    let mut found = Vec::new();
    documents.iter().for_each(|(page, marks)| repeating.within(&probes, *page, marks, |one| found.push(one)));
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::paragraphs::mark;
    use super::*;
    use webtwin_base::ids::Number;

    proptest! {
        #[test]
        fn matches_are_those_of_every_pair_looked_at(
            texts in prop::collection::btree_set(prop::collection::vec(0u64..5, 1..7), 0..25)
        ) {
            let mut seen = BTreeSet::new();
            let mut documents = Vec::new();
            for text in &texts {
                let mut sorted = text.clone();
                sorted.sort_unstable();
                if seen.insert(sorted) {
                    let mut marks: Vec<FPrint> = text.iter().map(|&name| splitmix64(name)).collect();
                    mark(&mut marks);
                    documents.push((Page::from_index(3 * documents.len()), marks, text.clone()));
                }
            }
            let mut want = Vec::new();
            for (document, _, d) in &documents {
                for (within, _, e) in &documents {
                    if document != within && d.len() == e.len() && d.iter().all(|paragraph| e.contains(paragraph)) {
                        want.push(Match { document: *document, within: *within });
                    }
                }
            }
            let documents: Vec<_> = documents.into_iter().map(|(page, marks, _)| (page, marks)).collect();
            prop_assert_eq!(matches(&documents), want);
        }
    }
}
