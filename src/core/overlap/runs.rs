//! Chunks as runs: the pages of one chunk after those of another, without the fingerprints, which
//! later steps do not need.
//!
//! A run is a record of 32-bit words: the number of pages, then the pages, ascending. It takes 4
//! bytes per row and 4 per chunk, a third of `FPrint-DocID`.

use webtwin_base::ids::Page;

/// Returns the words of the record of a run.
pub fn record(docs: &[Page]) -> impl ExactSizeIterator<Item = u32> + '_ {
    Record { head: Some(docs.len() as u32), docs: docs.iter() }
}

struct Record<'a> {
    head: Option<u32>,
    docs: std::slice::Iter<'a, Page>,
}

impl Iterator for Record<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.head.take().or_else(|| self.docs.next().map(|page| page.0))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.docs.len() + usize::from(self.head.is_some());
        (left, Some(left))
    }
}

impl ExactSizeIterator for Record<'_> {}

/// Iterator over the runs in a sequence of records.
///
/// # Examples
/// ```
/// use webtwin_base::ids::Page;
/// use webtwin_core::overlap::runs::{RecordRuns, pairs_of, record};
///
/// let (two, three) = ([0, 4].map(Page), [1, 4, 7].map(Page));
/// let words: Vec<u32> = record(&two).chain(record(&three)).collect();
/// assert_eq!(words, [2, 0, 4, 3, 1, 4, 7]);
/// assert_eq!(RecordRuns(&words).map(pairs_of).collect::<Vec<_>>(), [1, 3]);
/// ```
#[derive(Debug, Clone)]
pub struct RecordRuns<'a>(pub &'a [u32]);

impl<'a> Iterator for RecordRuns<'a> {
    type Item = &'a [Page];

    fn next(&mut self) -> Option<&'a [Page]> {
        let (&pages, words) = self.0.split_first()?;
        let (docs, later_runs) = words.split_at(pages as usize);
        self.0 = later_runs;
        Some(bytemuck::cast_slice(docs))
    }
}

/// Returns the number of pairs of pages in a run.
pub fn pairs_of(docs: &[Page]) -> u64 {
    let pages = docs.len() as u64;
    pages * pages.saturating_sub(1) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_returned_as_recorded(runs: Vec<Vec<u32>>) {
            let runs: Vec<Vec<Page>> = runs.into_iter().map(bytemuck::cast_vec).collect();
            let words: Vec<u32> = runs.iter().flat_map(|docs| record(docs)).collect();
            prop_assert_eq!(words.len(), runs.iter().map(|docs| record(docs).len()).sum::<usize>());
            prop_assert_eq!(RecordRuns(&words).map(<[Page]>::to_vec).collect::<Vec<_>>(), runs);
        }
    }
}
