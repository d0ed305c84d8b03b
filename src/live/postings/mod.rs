//! Postings: a log-structured merge tree that maps each chunk to the pages that have it.
//!
//! New postings are in a table in memory. A full table is frozen, and a background thread writes it
//! as a [`PostingsFile`]. The same thread merges four neighbouring runs of similar size into one.
//! So adding a page does not wait for the disk, unless the next table reaches twice its size before
//! the frozen one is written. A look-up reads the table, the frozen table if there is one, and
//! about ten runs, most of which a filter excludes.
//!
//! Runs follow from the log, which has the postings of each page. A run that is missing or damaged
//! when the index is opened is rebuilt.
//!
//! # Source
//! O'Neil et al., *The log-structured merge-tree* (1996). The sorted tables that are permuted and
//! probed by interpolation are those of \[MJS07\] section 3; here the key is a chunk, so one table
//! is enough.

mod filter;
mod run;
mod table;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use self::run::{Posting, PostingsFile};
use self::table::ChunkTable;
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;

/// Bytes of a posting in memory: in the table, in the hash table of its chunk, and in the sorted
/// copy of a frozen table.
pub(crate) const POSTING_BYTES: u64 = 40;

/// Number of runs of similar size that are merged.
const FAN_IN: usize = 4;

/// Postings of all chunks.
#[derive(Debug)]
pub(crate) struct ChunkPostings {
    folder: PathBuf,
    /// Number of postings at which the table is frozen.
    capacity: usize,
    table: ChunkTable,
    /// Number of the first page whose postings are in the table.
    first: u32,
    frozen_table: Option<(Arc<ChunkTable>, Range<u32>)>,
    /// Runs of neighbouring ranges of pages, in ascending order.
    runs: Vec<Arc<PostingsFile>>,
    work: Option<JoinHandle<Result<PostingsFile>>>,
}

impl ChunkPostings {
    /// Opens the runs in a folder, which may be missing. The table is frozen when it has `capacity`
    /// postings. The caller must insert the postings of the pages from
    /// [`ChunkPostings::first_missing`] on again.
    ///
    /// # Errors
    /// Returns [`Error::Storage`] if the runs cannot be read.
    pub(crate) fn open(folder: &Path, capacity: usize) -> Result<ChunkPostings> {
        let failed = |cause| Error::storage(folder.display().to_string(), cause);
        fs::create_dir_all(folder).map_err(failed)?;
        let mut pages = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let run =
                if path.extension().is_some_and(|ending| ending == "run") { PostingsFile::open(&path)? } else { None };
            match run {
                Some(run) => pages.push(run),
                // The file is incomplete or damaged, and its postings are in the log.
                None => fs::remove_file(&path).map_err(failed)?,
            }
        }
        // After a crash, a merged run and its sources may both exist. The larger one is sorted
        // first and kept.
        pages.sort_unstable_by_key(|run| (run.pages().start, std::cmp::Reverse(run.pages().end)));
        let (mut runs, mut first): (Vec<Arc<PostingsFile>>, u32) = (Vec::new(), 0);
        for run in pages {
            if run.pages().start == first && run.pages().end > first {
                first = run.pages().end;
                runs.push(Arc::new(run));
            } else {
                run.remove();
            }
        }
        let (table, frozen_table, work) = (ChunkTable::default(), None, None);
        Ok(ChunkPostings { folder: folder.to_path_buf(), capacity, table, first, frozen_table, runs, work })
    }

    /// Returns the number of the first page whose postings are in no run.
    pub(crate) fn first_missing(&self) -> u32 {
        self.first
    }

    /// Adds a page that has a chunk. Pages must be added in the order of their numbers.
    pub(crate) fn insert(&mut self, hash: u64, page: u32) {
        self.table.insert(hash, page);
    }

    /// Writes the pages that have a chunk to `pages`, in no particular order.
    ///
    /// # Errors
    /// Returns any error of reading a run.
    pub(crate) fn find(&self, hash: u64, pages: &mut Vec<u32>) -> Result<()> {
        pages.clear();
        self.table.find(hash, pages);
        if let Some((table, _)) = &self.frozen_table {
            table.find(hash, pages);
        }
        self.runs.iter().try_for_each(|run| run.find(hash, pages))
    }

    /// Advances background work. `pages` is the number of pages so far, all of which are on disk in
    /// the log.
    ///
    /// # Errors
    /// Returns any error of writing a run.
    pub(crate) fn tend(&mut self, pages: u32) -> Result<()> {
        // The table may grow to twice its size before it waits for the frozen one to be written.
        let must_wait = self.frozen_table.is_some() && self.table.len() >= 2 * self.capacity;
        if must_wait || self.work.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_work()?;
        }
        if self.table.len() >= self.capacity && self.frozen_table.is_none() {
            let table = Arc::new(std::mem::take(&mut self.table));
            self.frozen_table = Some((table, self.first..pages));
            self.first = pages;
        }
        if self.work.is_none() {
            self.begin_work()?;
        }
        Ok(())
    }

    /// Starts to write the frozen table, or else to merge runs.
    fn begin_work(&mut self) -> Result<()> {
        let folder = self.folder.clone();
        if let Some((table, pages)) = self.frozen_table.clone() {
            let write = move || {
                let postings = table.sorted();
                PostingsFile::write(&folder, pages, postings.len() as u64, postings.into_iter().map(Ok))
            };
            self.work = Some(threads::start(write)?);
        } else if let Some(range) = self.runs_to_merge() {
            let runs = self.runs[range].to_vec();
            self.work = Some(threads::start(move || merge_runs(&folder, &runs))?);
        }
        Ok(())
    }

    /// Waits for the background work and adds its run.
    fn finish_work(&mut self) -> Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let run = work.join().map_err(|_| Error::Invariant("a thread that writes postings has panicked".into()))??;
        let pages = run.pages();
        if self.frozen_table.as_ref().is_some_and(|(_, of_table)| *of_table == pages) {
            self.frozen_table = None;
        }
        let inside = |other: &Arc<PostingsFile>| pages.start <= other.pages().start && other.pages().end <= pages.end;
        self.runs.extract_if(.., |other| inside(other)).for_each(|other| other.remove());
        let position = self.runs.partition_point(|other| other.pages().start < pages.start);
        self.runs.insert(position, Arc::new(run));
        Ok(())
    }

    /// Returns the last neighbouring runs of similar size, if there are enough of them.
    fn runs_to_merge(&self) -> Option<Range<usize>> {
        let tier = |run: &Arc<PostingsFile>| (run.len() / self.capacity.max(1) as u64).max(1).ilog(FAN_IN as u64);
        (FAN_IN..=self.runs.len()).rev().map(|end| end - FAN_IN..end).find(|range| {
            let merged_runs = &self.runs[range.clone()];
            let max_tier = merged_runs.iter().map(tier).max().expect("there are four");
            merged_runs.iter().all(|run| tier(run) == max_tier)
        })
    }

    /// Returns the memory that the postings may take while a run is being written, in bytes; an
    /// estimate.
    pub(crate) fn bytes(&self) -> u64 {
        let table = 2 * self.capacity as u64 * POSTING_BYTES;
        self.runs.iter().map(|run| run.bytes()).sum::<u64>() + table
    }

    /// Returns the number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }
}

impl Drop for ChunkPostings {
    fn drop(&mut self) {
        // If the write fails, the run is rebuilt from the log when the index is opened.
        let _ = self.finish_work();
    }
}

/// Merges neighbouring runs into one.
fn merge_runs(folder: &Path, runs: &[Arc<PostingsFile>]) -> Result<PostingsFile> {
    let pages = runs[0].pages().start..runs[runs.len() - 1].pages().end;
    let count = runs.iter().map(|run| run.len()).sum();
    let order = |x: &Result<Posting>, y: &Result<Posting>| match (x, y) {
        (Ok(x), Ok(y)) => x <= y,
        // Errors come first, so that the merge stops at once.
        (x, _) => x.is_err(),
    };
    let postings = itertools::Itertools::kmerge_by(runs.iter().map(|run| run.postings()), order);
    PostingsFile::write(folder, pages, count, postings)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn find_pages(postings: &ChunkPostings, hash: u64) -> Vec<u32> {
        let mut pages = Vec::new();
        postings.find(hash, &mut pages).unwrap();
        pages.sort_unstable();
        pages
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn runs_equal_a_map(lists in prop::collection::vec(prop::collection::vec(0_u64..40, 0..30), 0..80), seed: u64) {
            let folder = tempfile::tempdir().unwrap();
            let mut postings = ChunkPostings::open(folder.path(), 50).unwrap();
            let mut map: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for (page, list) in lists.iter().enumerate() {
                if (seed >> (page % 64)) & 7 == 7 {
                    // Postings that are in no run are inserted again after opening, as the index
                    // does.
                    drop(postings);
                    postings = ChunkPostings::open(folder.path(), 50).unwrap();
                    let first = postings.first_missing() as usize;
                    for (missing, list) in lists[..page].iter().enumerate().skip(first) {
                        list.iter().for_each(|&hash| postings.insert(hash << 40, missing as u32));
                    }
                }
                for &hash in list {
                    postings.insert(hash << 40, page as u32);
                    map.entry(hash << 40).or_default().push(page as u32);
                }
                postings.tend(page as u32 + 1).unwrap();
                let hash = (seed % 40) << 40;
                prop_assert_eq!(find_pages(&postings, hash), map.get(&hash).cloned().unwrap_or_default());
            }
            for hash in (0..40).map(|hash| hash << 40) {
                prop_assert_eq!(find_pages(&postings, hash), map.get(&hash).cloned().unwrap_or_default());
            }
        }
    }

    #[test]
    fn damaged_run_is_an_error_or_rebuilt() {
        let folder = tempfile::tempdir().unwrap();
        let mut postings = ChunkPostings::open(folder.path(), 1).unwrap();
        (0..1000).for_each(|hash| postings.insert(hash, 0));
        postings.tend(1).unwrap();
        drop(postings);
        let path = folder.path().join("0000000000-0000000001.run");
        let bytes = fs::read(&path).unwrap();
        for position in [5, 5000, bytes.len() - 60, bytes.len() - 5] {
            let mut damaged_run = bytes.clone();
            damaged_run[position] ^= 1;
            fs::write(&path, damaged_run).unwrap();
            let postings = ChunkPostings::open(folder.path(), 1).unwrap();
            let is_rebuilt = postings.first_missing() == 0;
            assert_eq!(is_rebuilt, position > 3 * 4096, "byte {position}");
            let fails = (0..1000).any(|hash| postings.find(hash, &mut Vec::new()).is_err());
            assert_eq!(fails, !is_rebuilt);
        }
    }
}
