//! Groups of records with equal keys, found by sorting in bounded memory.

use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};

use super::ArchiveEffort;
use super::record::PayloadKey;
use webtwin_base::error::Result;
use webtwin_spill::Partitions;

/// Number of partitions of the keys, which are sorted one at a time; and maximum number of parts of
/// the files, whose copies are processed one at a time.
const PARTS: usize = 256;

/// Record with a key. Records with the same key are ordered by `rank`, then by file and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct KeyedRecord {
    pub key: PayloadKey,
    pub file: u32,
    pub offset: u64,
    pub rank: i64,
    /// Hash of the name by which other records would refer to it.
    pub name: u64,
}

/// Record whose payload another record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RecordCopy {
    pub file: u32,
    pub of_file_number: u32,
    pub offset: u64,
    pub of_record_offset: u64,
}

/// Rows of several threads, 48 bytes each.
pub(super) struct KeyedRecords(Mutex<Partitions<KeyedRecord>>);

impl KeyedRecords {
    pub(crate) fn new(effort: &ArchiveEffort) -> KeyedRecords {
        KeyedRecords(Mutex::new(Partitions::new(PARTS, &effort.part(2))))
    }

    pub(crate) fn push(&self, row: KeyedRecord) -> Result<()> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.push((row.key[0] >> 24) as usize, row)
    }

    /// Passes the rows of each key to `visit`, in their order.
    fn group_by_key(self, mut visit: impl FnMut(&[KeyedRecord]) -> Result<()>) -> Result<()> {
        let mut rows = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut part = Vec::new();
        for bucket in 0..rows.count() {
            rows.take(bucket, &mut part)?;
            part.sort_unstable_by_key(|row| (row.key, row.rank, row.file, row.offset, row.name));
            part.chunk_by(|x, y| x.key == y.key).try_for_each(&mut visit)?;
        }
        Ok(())
    }
}

/// Copies, partitioned by ranges of files.
pub(super) struct RecordCopies {
    parts: Mutex<Partitions<RecordCopy>>,
    files: usize,
}

impl RecordCopies {
    fn new(files: usize, effort: &ArchiveEffort) -> RecordCopies {
        RecordCopies { parts: Mutex::new(Partitions::new(PARTS.min(files.max(1)), &effort.part(1))), files }
    }

    fn push(&mut self, copy: RecordCopy) -> Result<()> {
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        let part = copy.file as usize * parts.count() / self.files;
        parts.push(part, copy)
    }

    /// Returns the number of parts.
    pub(crate) fn parts(&self) -> usize {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).count()
    }

    /// Removes and returns a part: the range of its files, and their copies by file and offset.
    pub(crate) fn take(&self, part: usize) -> Result<(std::ops::Range<usize>, Vec<RecordCopy>)> {
        let mut copies = Vec::new();
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = parts.count();
        parts.take(part, &mut copies)?;
        drop(parts);
        copies.sort_unstable_by_key(|copy| (copy.file, copy.offset));
        let first = |part: usize| (part * self.files).div_ceil(count);
        Ok((first(part)..first(part + 1), copies))
    }
}

/// Added to the rank of a record of an older archive, so that it precedes all others.
pub(super) const OLDER_RANK: i64 = i64::MIN / 2;

/// Finds the copies. Among the records with one key, the first whose name allows references to it
/// holds the payload, and all later ones are copies. Each copy is passed to `visit`. Also returns
/// the number of records that are not copies, because no record before them can hold the payload.
/// Records of files from number `files` on never become copies, but may hold payloads.
///
/// # Errors
/// Returns any error of the disk.
pub(super) fn copies(
    rows: KeyedRecords,
    files: usize,
    effort: &ArchiveEffort,
    may_hold: impl Fn(u64) -> bool,
    mut visit: impl FnMut(&RecordCopy),
) -> Result<(RecordCopies, u64)> {
    let (mut copies, mut n_kept) = (RecordCopies::new(files, effort), 0);
    rows.group_by_key(|rows| {
        let first = rows.iter().position(|row| may_hold(row.name));
        let is_new = |row: &&KeyedRecord| (row.file as usize) < files;
        n_kept += rows[1..].iter().take(first.unwrap_or(rows.len())).filter(is_new).count() as u64;
        let [first_row, copies_of_record @ ..] = &rows[first.unwrap_or(rows.len())..] else { return Ok(()) };
        let copy = |row: &KeyedRecord| RecordCopy {
            file: row.file,
            of_file_number: first_row.file,
            offset: row.offset,
            of_record_offset: first_row.offset,
        };
        copies_of_record.iter().filter(is_new).map(copy).try_for_each(|copy| {
            visit(&copy);
            copies.push(copy)
        })
    })?;
    Ok((copies, n_kept))
}

/// Rank of a record that holds its payload.
pub(super) const HOLDER_RANK: i64 = 0;

/// Rank of a record that needs a payload.
pub(super) const REFERENCE_RANK: i64 = 1;

/// Assigns each record that needs a payload to the first record that holds it. Also returns the
/// first record, by key, whose payload no record holds.
///
/// # Errors
/// Returns any error of the disk.
pub(super) fn holders(
    rows: KeyedRecords,
    files: usize,
    effort: &ArchiveEffort,
) -> Result<(RecordCopies, Option<KeyedRecord>)> {
    let mut copies = RecordCopies::new(files, effort);
    let mut missing = None;
    rows.group_by_key(|rows| {
        let holder_row = rows[0];
        if holder_row.rank == REFERENCE_RANK {
            missing.get_or_insert(holder_row);
            return Ok(());
        }
        let copy = |row: &KeyedRecord| RecordCopy {
            file: row.file,
            of_file_number: holder_row.file,
            offset: row.offset,
            of_record_offset: holder_row.offset,
        };
        rows.iter().filter(|row| row.rank == REFERENCE_RANK).try_for_each(|row| copies.push(copy(row)))
    })?;
    Ok((copies, missing))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn effort(memory_bytes: u64) -> ArchiveEffort {
        ArchiveEffort { workers: 1, memory_bytes, spill: std::env::temp_dir() }
    }

    fn all_copies(copies: &RecordCopies) -> Vec<RecordCopy> {
        let mut files = 0;
        let mut ranges = Vec::new();
        for part in 0..copies.parts() {
            let (range, copies_found) = copies.take(part).unwrap();
            assert!(copies_found.is_sorted_by_key(|copy| (copy.file, copy.offset)));
            assert_eq!(range.start, files);
            assert!(copies_found.iter().all(|copy| range.contains(&(copy.file as usize))));
            files = range.end;
            ranges.extend(copies_found);
        }
        assert_eq!(files, copies.files);
        ranges.sort_unstable();
        ranges
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn copies_equal_those_of_a_map_with_any_memory(
            rows in prop::collection::vec((0u32..20, 0u32..700, 0u64..50, 0i64..2, 0u64..4), 0..300),
            files in 300usize..900,
            memory_bytes in prop_oneof![Just(0u64), Just(1 << 30)],
        ) {
            let row = |&(key, file, offset, rank, name): &(u32, u32, u64, i64, u64)| {
                KeyedRecord { key: [key << 27 | key, 0, 0, 0, key], file, offset, rank, name }
            };
            let rows: Vec<KeyedRecord> = rows.iter().map(row).collect();
            let mut groups: BTreeMap<PayloadKey, Vec<KeyedRecord>> = BTreeMap::new();
            for &row in &rows {
                groups.entry(row.key).or_default().push(row);
            }
            let mut plain = Vec::new();
            let (mut held, mut kept) = (Vec::new(), 0);
            for group in groups.values_mut() {
                group.sort_by_key(|row| (row.rank, row.file, row.offset, row.name));
                let (of, mut named) = (group[0], None);
                let is_new = |row: &KeyedRecord| (row.file as usize) < files;
                for (at, row) in group.iter().enumerate() {
                    match named {
                        Some(_) if !is_new(row) => {}
                        Some(KeyedRecord { file, offset, .. }) => {
                            plain.push(RecordCopy { file: row.file, of_file_number: file, offset: row.offset, of_record_offset: offset });
                        }
                        None => {
                            kept += u64::from(at > 0 && is_new(row));
                            named = Some(*row).filter(|row| row.name != 0);
                        }
                    }
                }
                for row in &group[1..] {
                    let copy = RecordCopy { file: row.file, of_file_number: of.file, offset: row.offset, of_record_offset: of.offset };
                    if of.rank == HOLDER_RANK && row.rank == REFERENCE_RANK {
                        held.push(copy);
                    }
                }
            }
            plain.sort_unstable();
            held.sort_unstable();
            let pushed = || {
                let pushed = KeyedRecords::new(&effort(memory_bytes));
                rows.iter().for_each(|&row| pushed.push(row).unwrap());
                pushed
            };
            let (found, kept_of_found) = copies(pushed(), files, &effort(memory_bytes), |name| name != 0, |_| ()).unwrap();
            prop_assert_eq!((all_copies(&found), kept_of_found), (plain, kept));
            let (found, missing) = holders(pushed(), 900, &effort(memory_bytes)).unwrap();
            prop_assert_eq!(all_copies(&found), held);
            prop_assert_eq!(missing.is_some(), groups.values().any(|group| group[0].rank == REFERENCE_RANK));
        }
    }
}
