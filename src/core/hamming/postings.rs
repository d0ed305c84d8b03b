//! Index from fingerprints to documents: each distinct fingerprint once, with the documents that
//! have it.

use webtwin_base::ids::{DocId, SimHash};

/// Distinct fingerprints, ascending, each with its documents, ascending.
///
/// # Examples
/// ```
/// use webtwin_core::hamming::postings::FingerprintPostings;
///
/// let postings = FingerprintPostings::new(vec![(0xff, 12), (0xfe, 11), (0xff, 10), (0xff, 12)]);
/// assert_eq!(postings.fingerprints(), [0xfe, 0xff]);
/// assert_eq!(postings.doc_ids(1), [10, 12]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FingerprintPostings {
    fingerprints: Vec<SimHash>,
    /// End of each fingerprint's documents in `doc_ids`.
    ends: Vec<u32>,
    doc_ids: Vec<DocId>,
}

impl FingerprintPostings {
    /// Gathers rows in any order; a row that occurs twice counts once.
    pub fn new(mut rows: Vec<(SimHash, DocId)>) -> FingerprintPostings {
        rows.sort_unstable();
        rows.dedup();
        let mut postings = FingerprintPostings::default();
        for documents in rows.chunk_by(|x, y| x.0 == y.0) {
            postings.fingerprints.push(documents[0].0);
            postings.doc_ids.extend(documents.iter().map(|row| row.1));
            postings.ends.push(postings.doc_ids.len() as u32);
        }
        postings
    }

    /// Returns the distinct fingerprints, ascending.
    pub fn fingerprints(&self) -> &[SimHash] {
        &self.fingerprints
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> usize {
        self.doc_ids.len()
    }

    /// Returns the documents of the fingerprint with the given index, ascending.
    pub fn doc_ids(&self, place: usize) -> &[DocId] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.doc_ids[start as usize..self.ends[place] as usize]
    }
}

/// Removes repeated values from the ascending `fingerprints`. `ends[place]` becomes the number of
/// original values up to and including those of that index.
pub fn distinct(fingerprints: &mut Vec<SimHash>, ends: &mut Vec<u32>) {
    ends.clear();
    if !fingerprints.windows(2).any(|pair| pair[0] == pair[1]) {
        ends.extend(1..=fingerprints.len() as u32);
        return;
    }
    let mut distinct_count = 0;
    for at in 0..fingerprints.len() {
        let fingerprint = fingerprints[at];
        if distinct_count > 0 && fingerprints[distinct_count - 1] == fingerprint {
            ends[distinct_count - 1] += 1;
        } else {
            fingerprints[distinct_count] = fingerprint;
            ends.push(at as u32 + 1);
            distinct_count += 1;
        }
    }
    fingerprints.truncate(distinct_count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_document_is_listed_under_its_fingerprint(rows in prop::collection::vec((0u64..9, 0u64..30), 0..40)) {
            let postings = FingerprintPostings::new(rows.clone());
            let message: Vec<_> = postings
                .fingerprints()
                .iter()
                .enumerate()
                .flat_map(|(place, &fingerprint)| postings.doc_ids(place).iter().map(move |&doc| (fingerprint, doc)))
                .collect();
            let mut expected = rows;
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(postings.documents(), expected.len());
            prop_assert_eq!(message, expected);
        }

        #[test]
        fn distinct_keeps_each_value_once_and_returns_row_ends(mut all in prop::collection::vec(0u64..9, 0..40)) {
            all.sort_unstable();
            let (mut unique, mut ends) = (all.clone(), vec![7]);
            distinct(&mut unique, &mut ends);
            prop_assert_eq!(unique.len(), ends.len());
            let mut start = 0;
            let mut expanded = Vec::new();
            for (fingerprint, end) in unique.iter().zip(&ends) {
                expanded.extend((start..*end).map(|_| *fingerprint));
                start = *end;
            }
            prop_assert_eq!(expanded, all);
            prop_assert!(unique.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
