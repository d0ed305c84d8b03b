//! Reading a table of a result in ranges of its key, so that two results can be merged within the
//! memory of one range of each.

use std::ops::Range;

use super::FinishedRun;
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;
use webtwin_storage::manifest::FileEntry;
use webtwin_storage::table::Table;
use webtwin_storage::table_rows::TableFile;

/// Number of keys that are read at a time.
const KEYS: usize = 1 << 18;

/// Division of the keys, which are ids or hashes, into equal ranges by their leading bits.
///
/// # Examples
/// ```
/// use webtwin_results::ranges::Ranges;
///
/// // 800 rows, about 100 in each range, in at most 64 ranges.
/// let ranges = Ranges::new(800, 100, 64);
/// assert_eq!(ranges.count(), 8);
/// assert_eq!([0, 1 << 61, u64::MAX].map(|key| ranges.range(key)), [0, 1, 7]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranges {
    bits: u32,
}

impl Ranges {
    /// Returns the smallest power of two of ranges for which `rows` evenly distributed keys have
    /// about `rows_a_range` in each range, but at most `max_ranges` ranges.
    pub fn new(rows: u64, rows_a_range: u64, max_ranges: u32) -> Ranges {
        let ranges = rows.div_ceil(rows_a_range).clamp(1, u64::from(max_ranges.max(1)));
        Ranges { bits: ranges.next_power_of_two().min(u64::from(max_ranges)).ilog2() }
    }

    /// Returns the number of ranges.
    pub fn count(self) -> usize {
        1 << self.bits
    }

    /// Returns the range of a key.
    #[inline]
    pub fn range(self, key: u64) -> usize {
        // A shift of a `u64` by 64 bits would overflow.
        if self.bits == 0 { 0 } else { (key >> (64 - self.bits)) as usize }
    }
}

/// A table that is sorted by a key and read in ranges of that key.
#[derive(Debug)]
pub struct RangedTable {
    name: String,
    /// Files in order. Each has the rows at which the ranges begin, and its end.
    files: Vec<(TableFile, Vec<usize>)>,
}

impl RangedTable {
    /// Finds the files of a table, checks them against the manifest, and finds the rows at which
    /// ranges of its column `key` begin. Keys are `key_bits` wide. Returns `None` if the result has
    /// no such table.
    ///
    /// # Errors
    /// Returns [`Error::Input`] for files that differ from the manifest, and for keys that do not
    /// ascend.
    ///
    /// # Cost
    /// The files, and this column of them, are read once, by `workers` threads.
    pub fn find(
        run: &FinishedRun,
        table: &str,
        (key, key_bits): (&str, u32),
        ranges: Ranges,
        workers: usize,
    ) -> Result<Option<RangedTable>> {
        let entries: Vec<&FileEntry> = run.manifest.table(table).collect();
        if entries.is_empty() {
            return Ok(None);
        }
        let name = format!("{}/{table}", run.folder.name().trim_end_matches('/'));
        let first_keys = threads::for_each(workers, entries.len(), Vec::new, |entries_found, number| {
            let file = TableFile::find(&run.folder, entries[number])?;
            entries_found.push((number, inspect(&file, key, key_bits, ranges, &name)?, file));
            Ok(())
        })?;
        let mut sorted_entries: Vec<_> = first_keys.into_iter().flatten().collect();
        sorted_entries.sort_unstable_by_key(|one| one.0);
        let ends: Vec<(u64, u64)> = sorted_entries.iter().filter_map(|one| one.1.1).collect();
        if !ends.is_sorted_by(|x, y| x.1 <= y.0) {
            return Err(unsorted(&name, key));
        }
        Ok(Some(RangedTable {
            name,
            files: sorted_entries.into_iter().map(|(_, (starts, _), file)| (file, starts)).collect(),
        }))
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.0.rows as u64).sum()
    }

    /// Reads some columns of the rows of a range.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a file has changed, or lacks a column.
    pub fn read(&self, range: usize, columns: &[&str]) -> Result<Table> {
        let rows = |starts: &[usize]| -> Range<usize> { starts[range]..starts[range + 1] };
        let with_rows = || self.files.iter().filter(|file| !rows(&file.1).is_empty());
        let mut table = Table::default();
        for (file, starts) in with_rows() {
            table.append(file.open()?.read(rows(starts), columns)?)?;
        }
        if table.columns.is_empty() {
            table = self.files[0].0.open()?.read(0..0, columns)?;
        }
        let is_missing = |column: &&&str| !table.columns.iter().any(|(name, _)| name == **column);
        match columns.iter().find(is_missing) {
            None => Ok(table),
            Some(column) => {
                let message =
                    format!("has no column {column}, so an earlier build may have written it; run the job again");
                Err(Error::input(&self.name, message))
            }
        }
    }
}

fn unsorted(name: &str, key: &str) -> Error {
    Error::input(name, format!("its rows are not ascending by {key}, so webtwin did not write it; run the job again"))
}

/// Rows at which ranges begin in a file, with the end of the last; and the first and last key, if
/// the file has rows.
type InspectedInput = (Vec<usize>, Option<(u64, u64)>);

fn inspect(file: &TableFile, key: &str, key_bits: u32, ranges: Ranges, name: &str) -> Result<InspectedInput> {
    let open = file.open()?;
    let mut starts = vec![0; ranges.count() + 1];
    let (mut first, mut last): (Option<u64>, u64) = (None, 0);
    for start in (0..file.rows).step_by(KEYS) {
        let table = open.read(start..file.rows.min(start + KEYS), &[key])?;
        for &value in table.u64(key)? {
            if value < last {
                return Err(unsorted(name, key));
            }
            (first, last) = (first.or(Some(value)), value);
            starts[ranges.range(value << (64 - key_bits)) + 1] += 1;
        }
    }
    for range in 0..ranges.count() {
        starts[range + 1] += starts[range];
    }
    Ok((starts, first.map(|first| (first, last))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_ranges_follows_from_rows_and_ranges_cover_all_keys() {
        assert_eq!([1, 100, 101, 1_000_000].map(|rows| Ranges::new(rows, 100, 64).count()), [1, 1, 2, 64]);
        let ranges = Ranges::new(800, 100, 64);
        assert_eq!([0, 1 << 61, u64::MAX].map(|key| ranges.range(key)), [0, 1, 7]);
        assert_eq!(Ranges::new(0, 100, 64).range(u64::MAX), 0);
    }
}
