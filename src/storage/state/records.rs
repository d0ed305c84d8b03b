//! Records of a state as seen by one run: those of the previous generation, and new ones.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

use super::{Generation, JobState, ReadAhead, RecordAt, RecordFile};
use crate::location::Location;
use crate::mapped::{Residence, file_bytes};
use crate::open::{OpenFile, open};
use crate::records::{RecordStore, SavedShares, UnusedRecords};
use crate::step_records::StepRecords;
use webtwin_base::error::Result;
use webtwin_base::read_at::RandomAccess;

/// Records of the work items of a run. Threads may share them.
#[derive(Debug)]
pub struct StateRecords {
    state: JobState,
    keys: Vec<String>,
    /// Files of the previous generation, and then files that were read ahead. They are opened on
    /// first use; `None` if a file cannot be opened.
    files: Vec<(RecordFile, OnceLock<Option<Arc<OpenFile>>>)>,
    /// Number of files of the previous generation.
    files_before: usize,
    /// File and record of each item.
    places: Vec<Option<(usize, usize)>>,
    /// True for files of which less than half is live. Their records are moved to new files.
    sparse: Vec<bool>,
    written: Mutex<Vec<RecordFile>>,
    /// Files with the workers' results in the previous generation.
    pub(super) found_before: Vec<RecordFile>,
    pub(super) found: Mutex<Vec<RecordFile>>,
    failure: Mutex<Option<String>>,
    /// Number of records that are damaged or missing.
    pub damaged: AtomicU64,
}

impl StateRecords {
    /// Returns the records of the items with the given keys, as found in the generation `previous`
    /// and among those that were read ahead.
    pub fn new(state: &JobState, previous: Option<&Generation>, ahead: Vec<ReadAhead>, keys: &[u128]) -> StateRecords {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key:032x}")).collect();
        let mut files: Vec<RecordFile> = previous.map_or(Vec::new(), |generation| generation.files.clone());
        let files_before = files.len();
        files.extend(ahead.into_iter().flat_map(|list| list.files));
        let mut by_key = HashMap::new();
        // If both have a record of an item, that of the previous generation is used.
        for (file, records) in files.iter().enumerate().rev() {
            by_key.extend(records.records.iter().enumerate().map(|(n, record)| (record.key.as_str(), (file, n))));
        }
        let places: Vec<_> = keys.iter().map(|key| by_key.get(key.as_str()).copied()).collect();
        let mut live = vec![0; files.len()];
        for &(file, record) in places.iter().flatten() {
            live[file] += files[file].records[record].bytes;
        }
        let sparse = files.iter().zip(live).map(|(file, live)| live < file.bytes / 2).collect();
        StateRecords {
            state: state.clone(),
            keys,
            files: files.into_iter().map(|file| (file, OnceLock::new())).collect(),
            files_before,
            places,
            sparse,
            written: Mutex::default(),
            found_before: previous.map_or(Vec::new(), |generation| generation.found.clone()),
            found: Mutex::default(),
            failure: Mutex::default(),
            damaged: AtomicU64::new(0),
        }
    }

    /// Drops the records of some items, which will be read again.
    pub fn forget(&mut self, is_forgotten: impl Fn(usize) -> bool) {
        for (number, place) in self.places.iter_mut().enumerate() {
            *place = place.filter(|_| !is_forgotten(number));
        }
    }

    /// Returns the number of items that have a record.
    pub fn found(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// Returns the number of items whose record was read ahead.
    pub fn found_ahead(&self) -> usize {
        self.places.iter().flatten().filter(|(file, _)| *file >= self.files_before).count()
    }

    /// Returns the number of records of the previous generation whose items are gone or have
    /// changed.
    pub fn stale(&self) -> usize {
        let records: usize = self.files[..self.files_before].iter().map(|(file, _)| file.records.len()).sum();
        records - (self.found() - self.found_ahead())
    }

    /// Returns the files that this process has written.
    pub fn written(&self) -> Vec<RecordFile> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the files with the results of this process's workers.
    pub fn found_now(&self) -> Vec<RecordFile> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Removes the files that this process wrote, because no generation will name them. Files that
    /// cannot be removed now are pruned later.
    pub fn discard(&self) {
        let _ = self.state.discard(&[self.written(), self.found_now()].concat());
    }

    /// Returns the reason why a file could not be written, if one could not.
    pub fn failed(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the files of the next generation: those `written` by all processes, and those of the
    /// previous generation with records of other items. They are ascending by name, with the
    /// records of the items for which `stays` is true.
    pub fn next(&self, mut written: Vec<RecordFile>, stays: impl Fn(usize) -> bool) -> Vec<RecordFile> {
        let new: HashSet<&str> =
            written.iter().flat_map(|file| &file.records).map(|record| record.key.as_str()).collect();
        let mut kept_records: Vec<Vec<RecordAt>> = vec![Vec::new(); self.files.len()];
        for (item, (key, &place)) in self.keys.iter().zip(&self.places).enumerate() {
            if let Some((file, record)) = place.filter(|_| !new.contains(key.as_str()) && stays(item)) {
                kept_records[file].push(self.files[file].0.records[record].clone());
            }
        }
        drop(new);
        let leaving: HashSet<&str> =
            self.keys.iter().enumerate().filter(|(item, _)| !stays(*item)).map(|(_, key)| key.as_str()).collect();
        written.iter_mut().for_each(|file| file.records.retain(|record| !leaving.contains(record.key.as_str())));
        written.retain(|file| !file.records.is_empty());
        let old =
            self.files.iter().zip(kept_records).map(|((file, _), records)| RecordFile { records, ..file.clone() });
        let mut files: Vec<RecordFile> = old.filter(|file| !file.records.is_empty()).chain(written).collect();
        files.iter_mut().for_each(|file| file.records.sort_unstable_by_key(|record| record.offset));
        files.sort_unstable_by(|x, y| x.name.cmp(&y.name));
        // Files with equal content have equal names, so their entries are merged.
        files.dedup_by(|duplicate, file| {
            let is_same_file = duplicate.name == file.name;
            if is_same_file {
                file.records.append(&mut duplicate.records);
                file.records.sort_unstable_by_key(|record| record.offset);
                file.records.dedup();
            }
            is_same_file
        });
        files
    }

    /// Writes a file with the given records, and adds it to `note`.
    pub(super) fn put(&self, bytes: &[u8], records: Vec<RecordAt>, note: &Mutex<Vec<RecordFile>>) -> Result<()> {
        let name = format!("{:032x}", xxh3_128(bytes));
        // An existing file is written again, so that its age is new and `prune` keeps it.
        if let Err(cause) = self.state.run_at(&name).and_then(|file| file.put(bytes)) {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause.to_string());
            return Err(cause);
        }
        let file = RecordFile { name, bytes: bytes.len() as u64, records };
        note.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        Ok(())
    }

    /// Returns a record of a file of this state, if it is intact.
    pub(super) fn whole_record(&self, file: &RecordFile, record: &RecordAt) -> Option<Vec<u8>> {
        let payload = open(&self.state.run_at(&file.name).ok()?).ok().and_then(|open| whole(&open, record));
        if payload.is_none() {
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
        payload
    }

    fn file(&self, number: usize) -> Option<&Arc<OpenFile>> {
        let (file, handle) = &self.files[number];
        handle.get_or_init(|| open(&self.state.run_at(&file.name).ok()?).ok()).as_ref()
    }
}

impl RecordStore for StateRecords {
    fn read(&self, number: usize) -> Option<Vec<u8>> {
        let (file, record) = self.places[number]?;
        let payload = self.file(file).and_then(|open| whole(open, &self.files[file].0.records[record]));
        if payload.is_none() {
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
        payload
    }

    fn write(&self, numbers: &[usize], encode: &mut dyn FnMut(usize, &mut Vec<u8>) -> Result<()>) -> Result<()> {
        let (mut bytes, mut records, mut record) = (Vec::new(), Vec::new(), Vec::new());
        for &number in numbers {
            record.clear();
            encode(number, &mut record)?;
            let checksum = format!("{:032x}", xxh3_128(&record));
            let (offset, key) = (bytes.len() as u64, self.keys[number].clone());
            records.push(RecordAt { key, offset, bytes: record.len() as u64, checksum });
            bytes.extend_from_slice(&record);
        }
        self.put(&bytes, records, &self.written)
    }

    fn moves(&self, number: usize) -> bool {
        self.places[number].is_some_and(|(file, _)| self.sparse[file])
    }

    fn writes_at_once(&self) -> bool {
        false
    }

    /// Returns `None`, because a scheduled run is short.
    fn steps(&self, _: usize, _: usize) -> Option<StepRecords> {
        None
    }

    fn shares(&self) -> Option<&dyn SavedShares> {
        Some(self)
    }

    fn refuse(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }

    fn left_over(&self, is_restored: &dyn Fn(usize) -> bool, memory_is_bounded: bool) -> Vec<UnusedRecords> {
        let restored: HashSet<(usize, usize)> =
            (0..self.places.len()).filter(|&item| is_restored(item)).filter_map(|item| self.places[item]).collect();
        let left = |number: usize| {
            let file = &self.files[number].0;
            let records = file.records.iter().enumerate().filter(|(record, _)| !restored.contains(&(number, *record)));
            let records: Vec<&RecordAt> = records.map(|(_, record)| record).collect();
            let location = self.state.run_at(&file.name).ok().filter(|_| !records.is_empty())?;
            if location.path().is_none() && memory_is_bounded {
                return None;
            }
            let file = file_bytes(&location, Residence::Mapped).ok()?;
            let places = records.into_iter().filter_map(|record| whole_in(file.as_ref(), record));
            let records: Vec<Range<usize>> = places.collect();
            Some(UnusedRecords { file, records })
        };
        (0..self.files.len()).filter_map(left).collect()
    }
}

/// Returns a record, if it is intact.
fn whole(file: &OpenFile, at: &RecordAt) -> Option<Vec<u8>> {
    let end = at.offset.checked_add(at.bytes)?;
    if end > file.stamp().bytes {
        return None;
    }
    let record = file.read_at(at.offset, at.bytes as usize).ok()?;
    (format!("{:032x}", xxh3_128(&record)) == at.checksum).then_some(record)
}

/// Returns the range of a record in the content of its file, if it is intact.
fn whole_in(file: &[u8], at: &RecordAt) -> Option<Range<usize>> {
    let (start, end) = (at.offset as usize, at.offset.checked_add(at.bytes)? as usize);
    let record = file.get(start..end)?;
    (format!("{:032x}", xxh3_128(record)) == at.checksum).then_some(start..end)
}

/// True if any of the given records is damaged or missing.
pub(super) fn damaged(location: &Location, records: &[&RecordAt]) -> bool {
    match open(location) {
        Ok(file) => records.iter().any(|record| whole(&file, record).is_none()),
        Err(_) => !records.is_empty(),
    }
}
