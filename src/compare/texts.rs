//! Common chunks of changed pages, whose texts are read again from the inputs.

use std::sync::Mutex;

use super::gather::{PageColumns, ThreadRows};
use super::merge::{MergeSide, merge};
use super::pages::ChunkOverlap;
use super::two_crawls::ComparableResults;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint};
use webtwin_base::threads;
use webtwin_core::chunks::ChunkRecipe;
use webtwin_results::pages::PageTable;
use webtwin_spill::Partitions;

/// Chunks of changed pages by range of doc ids, of the old crawl and of the new one.
pub(super) struct ChangedTexts([ThreadRows<[u64; 2]>; 2]);

impl ChangedTexts {
    /// Counts the common chunks of a range's pages, ascending by page. A range can be taken once.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Storage`] if the disk fails.
    pub(super) fn take(&self, range: usize) -> Result<Vec<(DocId, ChunkOverlap)>> {
        let take = |side: usize| -> Result<Vec<[u64; 2]>> {
            let mut rows = self.0[side].take(range)?;
            rows.sort_unstable();
            rows.dedup();
            Ok(rows)
        };
        Ok(count_chunks(&take(0)?, &take(1)?))
    }
}

/// Counts the chunks of each page. The rows are pairs of page and fingerprint, distinct and
/// ascending. The output ascends by page.
fn count_chunks(old: &[[DocId; 2]], new: &[[FPrint; 2]]) -> Vec<(DocId, ChunkOverlap)> {
    let mut overlaps: Vec<(DocId, ChunkOverlap)> = Vec::new();
    for side in merge(old, new) {
        let (page, n_common, chunk_counts) = match side {
            MergeSide::Old(i) => (old[i][0], 0, [1, 0]),
            MergeSide::New(j) => (new[j][0], 0, [0, 1]),
            MergeSide::Both(i, _) => (old[i][0], 1, [1, 1]),
        };
        if overlaps.last().is_none_or(|last| last.0 != page) {
            overlaps.push((page, ChunkOverlap::default()));
        }
        let counts = &mut overlaps.last_mut().expect("one has been pushed").1;
        counts.n_shared += n_common;
        counts.n_chunks = [counts.n_chunks[0] + chunk_counts[0], counts.n_chunks[1] + chunk_counts[1]];
    }
    overlaps
}

/// Reads the pages whose texts differ again, in the order in which the inputs have them, and cuts
/// them into chunks with the recipe of the new result.
///
/// # Errors
/// Returns any error of [`PageTable::read`], for example if an input has changed or no longer
/// exists.
///
/// # Cost
/// Holds the tables `pages` of both results in memory, and 16 bytes for each chunk in memory or on
/// disk. The inputs are read and parsed.
pub(super) fn read(results: &ComparableResults) -> Result<ChangedTexts> {
    let (runs, recipe) = ([&results.old, &results.new], results.new.job()?.chunks);
    let pages = [PageTable::from_run(&results.old)?, PageTable::from_run(&results.new)?];
    let [old, new] = [PageColumns::from_table(&pages[0].0)?, PageColumns::from_table(&pages[1].0)?];
    let mut rows: [Vec<usize>; 2] = Default::default();
    for side in merge(old.doc_ids, new.doc_ids) {
        if let MergeSide::Both(i, j) = side
            && !old.content(i).same_text(&new.content(j))
        {
            rows[0].push(i);
            rows[1].push(j);
        }
    }
    // One file is the unit of work of a thread.
    let mut files: Vec<(usize, Vec<usize>)> = Vec::new();
    for (side, rows) in rows.iter_mut().enumerate() {
        let sources = pages[side].0.text("source")?;
        rows.sort_by_key(|&row| &sources[row]);
        files.extend(rows.chunk_by(|&x, &y| sources[x] == sources[y]).map(|rows| (side, rows.to_vec())));
    }
    let inputs = [runs[0].job()?.input, runs[1].job()?.input];
    let share = results.pool.part(results.workers as u64 * 4);
    let outcome = || std::array::from_fn(|_| Partitions::new(results.ranges.count(), &share));
    let queue = Mutex::new(files.into_iter());
    let count = queue.lock().expect("no thread has begun").len();
    let read = threads::for_each(results.workers, count, outcome, |chunks: &mut [Partitions<[u64; 2]>; 2], _| {
        let next = queue.lock().expect("nothing panics while it holds this").next();
        let Some((side, rows)) = next else { return Ok(()) };
        let (mut recipe, mut fprints) = (ChunkRecipe::new(&recipe), Vec::new());
        let doc_ids = pages[side].doc_ids()?;
        pages[side].read(&rows, &inputs[side], &mut |row, _, text| {
            recipe.fingerprint(text, &mut fprints);
            let range = results.ranges.range(doc_ids[row]);
            fprints.iter().try_for_each(|&fprint| chunks[side].push(range, [doc_ids[row], fprint]))
        })
    })?;
    let (old, new): (Vec<_>, Vec<_>) = read.into_iter().map(|[old, new]| (old, new)).unzip();
    Ok(ChangedTexts([ThreadRows::new(old), ThreadRows::new(new)]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_are_counted_page_by_page(
            old in prop::collection::btree_set((0u64..4, 0u64..9), 0..30),
            new in prop::collection::btree_set((0u64..4, 0u64..9), 0..30)
        ) {
            let list = |set: &BTreeSet<(u64, u64)>| set.iter().map(|&(a, b)| [a, b]).collect::<Vec<_>>();
            let of = |set: &BTreeSet<(u64, u64)>, page| set.iter().filter(|one| one.0 == page).map(|one| one.1).collect();
            let mut plain = Vec::new();
            for page in 0..4 {
                let (a, b): (BTreeSet<u64>, BTreeSet<u64>) = (of(&old, page), of(&new, page));
                let shared = a.intersection(&b).count() as u32;
                if !(a.is_empty() && b.is_empty()) {
                    plain.push((page, ChunkOverlap { n_shared: shared, n_chunks: [a.len() as u32, b.len() as u32] }));
                }
            }
            prop_assert_eq!(count_chunks(&list(&old), &list(&new)), plain);
        }
    }
}
