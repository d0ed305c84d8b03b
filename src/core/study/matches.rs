//! Matches: documents whose shingle paragraphs are all found in another document with the same
//! number of paragraphs, where the multisets differ. Each document represents all documents of the
//! same multiset.
//!
//! Let d match e. If no paragraph repeats in d, it has as many different ones as e has in total, so
//! e has exactly these, each once. So only documents with repeated paragraphs can match another
//! multiset. They are few, so every process holds all of them. Each is searched by one of its
//! paragraphs, the one that is in the fewest documents of its length (its *probe*), and the
//! documents found are compared as a whole.
//!
//! # Source
//! \[PBZ06\] section 3: "a duplicate is detected if all shingles of a document in C have a match in
//! a document of S_i and both documents have the same number of shingles"; false matches at its
//! end.

use bytemuck::{Pod, Zeroable};

use super::paragraphs::is_repeat;
use webtwin_base::ids::{FPrint, Page, splitmix64};

/// A document whose shingle paragraphs are all found in another one with the same number. Orders by
/// document, then the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct DocumentMatch {
    /// d: document of C.
    pub document: Page,
    /// e: document in the hash table.
    pub within: Page,
}

/// Appends a document with repeated paragraphs to a list for [`RepeatingDocuments::new`]. Appends
/// nothing for a document without repeated paragraphs.
///
/// `marks` must be ascending. For each document the list has: its page, the number of its marks,
/// the number of even marks, and the even marks.
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
    /// Number of shingle paragraphs, including repeats.
    paragraph_count: usize,
    /// Distinct shingle paragraphs, ascending.
    paragraphs: Vec<FPrint>,
}

/// All documents with repeated paragraphs, which are searched in all documents.
#[derive(Debug)]
pub struct RepeatingDocuments {
    documents: Vec<Document>,
    /// Distinct keys of the paragraphs of these documents, ascending.
    keys: Vec<u64>,
    /// Start of the keys with each value of the leading bits.
    starts: Vec<u32>,
}

/// Probes of the documents, as (number of the key, index of the document), ascending.
#[derive(Debug)]
pub struct Probes(Vec<(u32, u32)>);

/// Returns the key of a paragraph in documents of one length.
fn key(mark: FPrint, paragraph_count: usize) -> u64 {
    splitmix64(splitmix64(mark) ^ paragraph_count as u64)
}

impl RepeatingDocuments {
    /// Reads the documents of a list, in any order.
    pub fn new(mut list: &[u64]) -> RepeatingDocuments {
        let mut documents = Vec::new();
        while let [page, paragraph_count, different, tail @ ..] = list {
            let (paragraphs, later_documents) = tail.split_at(*different as usize);
            documents.push(Document {
                page: Page(*page as u32),
                paragraph_count: *paragraph_count as usize,
                paragraphs: paragraphs.to_vec(),
            });
            list = later_documents;
        }
        documents.sort_unstable_by_key(|document| document.page);
        let keys_of = |document: &Document| {
            document.paragraphs.iter().map(|&mark| key(mark, document.paragraph_count)).collect::<Vec<_>>()
        };
        let mut keys: Vec<u64> = documents.iter().flat_map(keys_of).collect();
        keys.sort_unstable();
        keys.dedup();
        let bits = keys.len().next_power_of_two().trailing_zeros().max(1);
        let start = |leading: u64| keys.partition_point(|key| key >> (64 - bits) < leading) as u32;
        let starts = (0..=1 << bits).map(start).collect();
        RepeatingDocuments { documents, keys, starts }
    }

    /// Returns the number of counters that [`RepeatingDocuments::count`] needs.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    fn number(&self, key: u64) -> Option<usize> {
        let bits = (self.starts.len() - 1).trailing_zeros();
        let leading = (key >> (64 - bits)) as usize;
        let (start, end) = (self.starts[leading] as usize, self.starts[leading + 1] as usize);
        Some(start + self.keys[start..end].binary_search(&key).ok()?)
    }

    /// Yields the numbers of the keys that a document has.
    fn numbers(&self, marks: &[FPrint]) -> impl Iterator<Item = usize> {
        marks.iter().filter(|&&mark| !is_repeat(mark)).filter_map(|&mark| self.number(key(mark, marks.len())))
    }

    /// Adds the paragraphs of a document to the counters by key.
    pub fn count(&self, marks: &[FPrint], counts: &mut [u32]) {
        self.numbers(marks).for_each(|number| counts[number] += 1);
    }

    /// Chooses the probe of each document, given the number of documents with each key.
    pub fn probes(&self, counts: &[u32]) -> Probes {
        let probe = |document: &Document| {
            let numbers =
                document.paragraphs.iter().filter_map(|&mark| self.number(key(mark, document.paragraph_count)));
            numbers.min_by_key(|&number| (counts[number], number)).map(|number| number as u32)
        };
        let mut by_probe: Vec<(u32, u32)> =
            self.documents.iter().zip(0..).filter_map(|(document, at)| Some((probe(document)?, at))).collect();
        by_probe.sort_unstable();
        Probes(by_probe)
    }

    /// Calls `emit` with the matches within a document.
    pub fn within(&self, probes: &Probes, within: Page, marks: &[FPrint], mut emit: impl FnMut(DocumentMatch)) {
        for number in self.numbers(marks) {
            let first = probes.0.partition_point(|&(probe, _)| (probe as usize) < number);
            for (_, at) in probes.0[first..].iter().take_while(|(probe, _)| *probe as usize == number) {
                let Document { page, paragraph_count, paragraphs } = &self.documents[*at as usize];
                if *page != within
                    && *paragraph_count == marks.len()
                    && paragraphs.iter().all(|p| marks.binary_search(p).is_ok())
                {
                    emit(DocumentMatch { document: *page, within });
                }
            }
        }
    }
}

/// Computes all matches among documents of different multisets, given as (page, marks), ascending:
/// the reference for the dataflow.
///
/// # Examples
/// A false match of the paper: all paragraphs of "eded" are found in "bedf", which has the same
/// number of paragraphs.
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::study::matches::{DocumentMatch, matches};
/// use webtwin_core::study::paragraphs::mark;
///
/// let marks = |paragraphs: &str| {
///     let mut marks: Vec<u64> = paragraphs.bytes().map(|letter| u64::from(letter) << 8).collect();
///     mark(&mut marks);
///     marks
/// };
/// let found = matches(&[(Page(0), marks("bedf")), (Page(1), marks("eded"))]);
/// assert_eq!(found, [DocumentMatch { document: Page(1), within: Page(0) }]);
/// ```
pub fn matches(documents: &[(Page, Vec<FPrint>)]) -> Vec<DocumentMatch> {
    let mut list = Vec::new();
    documents.iter().for_each(|(page, marks)| push_repeating(*page, marks, &mut list));
    let repeating = RepeatingDocuments::new(&list);
    let mut counts = vec![0; repeating.keys()];
    documents.iter().for_each(|(_, marks)| repeating.count(marks, &mut counts));
    let probes = repeating.probes(&counts);
    let mut matches = Vec::new();
    documents.iter().for_each(|(page, marks)| repeating.within(&probes, *page, marks, |one| matches.push(one)));
    matches.sort_unstable();
    matches
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
        fn matches_equal_a_comparison_of_every_pair(
            texts in prop::collection::btree_set(prop::collection::vec(0u64..5, 1..7), 0..25)
        ) {
            let mut distinct = BTreeSet::new();
            let mut documents = Vec::new();
            for text in &texts {
                let mut sorted = text.clone();
                sorted.sort_unstable();
                if distinct.insert(sorted) {
                    let mut marks: Vec<FPrint> = text.iter().map(|&name| splitmix64(name)).collect();
                    mark(&mut marks);
                    documents.push((Page::from_index(3 * documents.len()), marks, text.clone()));
                }
            }
            let mut expected = Vec::new();
            for (document, _, d) in &documents {
                for (within, _, e) in &documents {
                    if document != within && d.len() == e.len() && d.iter().all(|paragraph| e.contains(paragraph)) {
                        expected.push(DocumentMatch { document: *document, within: *within });
                    }
                }
            }
            let documents: Vec<_> = documents.into_iter().map(|(page, marks, _)| (page, marks)).collect();
            prop_assert_eq!(matches(&documents), expected);
        }
    }
}
