//! Lists of clusters and mirrors by size, and the words by which they are found.

use std::cmp::Reverse;

use super::Making;
use super::staged::StagedIndex;
use crate::lookup::index::{NAMES, SIZE_LISTS};
use crate::lookup::names::each_word;
use crate::lookup::rows::{HashRow, IndexedCollectionRow, ListedCluster, OriginalRow};
use webtwin_base::error::Result;
use webtwin_core::text::words::WordSplitter;
use webtwin_spill::Partitions;

/// Writes the trivial clusters in descending order of size. The input is the row of each cluster
/// and its number of pages. Returns the place of each cluster in the list.
pub(super) fn clusters(mut sizes: Vec<(ListedCluster, u32)>, index_files: &mut StagedIndex) -> Result<Vec<u32>> {
    sizes.sort_unstable_by_key(|(row, pages)| (Reverse(*pages), row.cluster));
    let mut column = index_files.column(SIZE_LISTS[0])?;
    let mut places = vec![0; sizes.len()];
    for (place, (row, _)) in sizes.iter().enumerate() {
        column.push(*row)?;
        places[row.cluster as usize] = place as u32;
    }
    index_files.add(SIZE_LISTS[0], column).map(|()| places)
}

/// Writes the similar clusters in descending order of surplus pages. Returns the root of each
/// collection with the place of its similar cluster, ascending.
pub(super) fn originals(
    collections: &[IndexedCollectionRow],
    index_files: &mut StagedIndex,
) -> Result<Vec<(u32, u32)>> {
    let mut first = 0;
    let mut groups: Vec<(OriginalRow, std::ops::Range<usize>)> = Vec::new();
    for copies in collections.chunk_by(|x, y| x.similar_cluster == y.similar_cluster) {
        let kept_index = copies.iter().position(|row| row.keep == 1).unwrap_or(0);
        let surplus = copies.iter().map(|row| row.size).fold(0, u32::saturating_add) - copies[kept_index].size;
        let range = first..first + copies.len();
        groups.push((OriginalRow { kept: (first + kept_index) as u32, surplus }, range));
        first += copies.len();
    }
    groups.sort_unstable_by_key(|(row, _)| (Reverse(row.surplus), row.kept));
    let (mut column, mut roots) = (index_files.column(SIZE_LISTS[1])?, Vec::with_capacity(collections.len()));
    for (place, (row, copies)) in groups.into_iter().enumerate() {
        column.push(row)?;
        roots.extend(collections[copies].iter().map(|copy| (copy.root, place as u32)));
    }
    roots.sort_unstable();
    index_files.add(SIZE_LISTS[1], column).map(|()| roots)
}

/// Collects the words of sets, by place in a list.
pub(super) struct NameWords<'m> {
    making: &'m Making<'m>,
    rows: Partitions<HashRow>,
    words: WordSplitter,
}

impl<'m> NameWords<'m> {
    /// Creates an empty collector. Rows beyond an eighth of the memory budget are spilled to disk.
    pub(super) fn new(making: &'m Making<'m>) -> NameWords<'m> {
        let rows = Partitions::new(making.ranges.count(), &making.pool.part(8));
        NameWords { making, rows, words: WordSplitter::default() }
    }

    /// Adds the words of a page to those of the set at a place.
    pub(super) fn add(&mut self, place: u32, title: &str, url: &str) -> Result<()> {
        let NameWords { making, rows, words } = self;
        let mut outcome = Ok(());
        for text in [title, url] {
            each_word(words, text, |hash| {
                if outcome.is_ok() {
                    outcome = rows.push(making.ranges.range(hash), HashRow::new(hash, place));
                }
            });
        }
        outcome
    }

    /// Writes the words of a list: 0 for clusters, 1 for mirrors.
    pub(super) fn write(mut self, list: usize, index_files: &mut StagedIndex) -> Result<()> {
        let (mut column, mut rows) = (index_files.column(NAMES[list])?, Vec::new());
        for bucket in 0..self.rows.count() {
            self.rows.take(bucket, &mut rows)?;
            rows.sort_unstable();
            rows.dedup();
            column.extend(&rows)?;
        }
        index_files.add(NAMES[list], column)
    }
}
