//! Checkpoints of work items: a worker writes what it has read of an item, and the next run
//! restores it. An interrupted run resumes from checkpoints on its local disk
//! ([`webtwin_storage::records`]). A scheduled run continues from the checkpoints of its state
//! ([`webtwin_storage::state`]).
//!
//! A checkpoint does not depend on numbers that may differ in the next run: the numbers of inputs,
//! items, workers and slots are assigned again when the checkpoint is restored. So a checkpoint can
//! be restored by any number of workers, and other inputs may have been added or changed.
//!
//! Both stores frame a checkpoint ([`crate::reading::item_record`]) with its length and checksum.
//! Checkpoints of a state are read by later builds. A change of their fields, or of what reading
//! derives from a page, therefore needs another number in [`webtwin_job::READING`]; a test detects
//! both.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::reading::item_part::ItemPart;
use crate::reading::item_record::{decode, encode};
use crate::reading::known_pages::KnownPages;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::error::Result;
use webtwin_pages::work_items::WorkList;
use webtwin_storage::records::RecordStore;

/// Bytes of unwritten checkpoints at which they are written.
const MAX_UNWRITTEN_BYTES: u64 = 64 << 20;

/// Minimum time between two writes, if the run may be interrupted. A hundredth of the time read so
/// far applies instead if it is longer.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Checkpoints of the work items of a run, with counts of their use. Shared by the workers of a
/// process.
#[derive(Debug)]
pub struct Resume {
    /// Store of the checkpoints.
    pub store: Arc<dyn RecordStore>,
    /// Number of items that were restored and not read again.
    pub taken_up: AtomicU64,
    /// Number of items whose checkpoints were written.
    pub recorded: AtomicU64,
    /// Number of pages that were not parsed again, because an earlier run has read the same bytes
    /// in another place.
    pub known: AtomicU64,
    /// True if a checkpoint could not be written; no more are written then.
    pub gave_up: AtomicBool,
    /// Description of the similar pairs that were reused from the previous run, for display.
    pub pairs: OnceLock<String>,
    /// True for each item that belongs to an earlier crawl, by number of the item.
    of_earlier_crawls: Vec<bool>,
    known_pages: Mutex<Weak<KnownPages>>,
    steps: Mutex<StepNames>,
}

/// Names of steps after reading, in their order.
#[derive(Debug, Default)]
pub struct StepNames {
    /// Steps that were restored from checkpoints.
    pub taken_up: Vec<&'static str>,
    /// Steps for which a checkpoint was written.
    pub recorded: Vec<&'static str>,
}

impl Resume {
    /// Starts to restore work items from `store`, and to write the checkpoints of other items to
    /// it.
    pub fn new(store: Arc<dyn RecordStore>, work: &WorkList) -> Resume {
        let is_earlier_crawl = work.items.iter().map(|item| work.is_original(item.input)).collect();
        let (restored_items, recorded_items, known_items, gave_up, known_pages) = Default::default();
        let (pairs, steps) = Default::default();
        Resume {
            store,
            taken_up: restored_items,
            recorded: recorded_items,
            known: known_items,
            gave_up,
            pairs,
            of_earlier_crawls: is_earlier_crawl,
            known_pages,
            steps,
        }
    }

    /// Returns the names of the steps that have been restored or have written a checkpoint so far.
    pub fn steps(&self) -> MutexGuard<'_, StepNames> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pages in checkpoints of items of earlier crawls and of files that this run does
    /// not have. They are indexed on first use, and released when no worker holds them any more.
    pub fn known_pages(&self, memory_is_bounded: bool) -> Arc<KnownPages> {
        let mut cache = self.known_pages.lock().unwrap_or_else(PoisonError::into_inner);
        cache.upgrade().unwrap_or_else(|| {
            let is_restored = |item: usize| !self.of_earlier_crawls.get(item).is_some_and(|is| *is);
            let pages = Arc::new(KnownPages::from_checkpoints(self.store.left_over(&is_restored, memory_is_bounded)));
            *cache = Arc::downgrade(&pages);
            pages
        })
    }

    /// Restores a work item from its checkpoint. If there is no valid checkpoint, returns false and
    /// leaves the local pages unchanged.
    ///
    /// # Errors
    /// Returns any error of the disk, to which lists beyond the memory limit are written.
    pub fn restore(&self, number: usize, input: u32, worker: u32, local_pages: &mut WorkerPages) -> Result<bool> {
        let Some(record) = self.store.read(number) else { return Ok(false) };
        let outcome = decode(&record, number as u32, input, worker, local_pages)?;
        match outcome {
            true => drop(self.taken_up.fetch_add(1, Ordering::Relaxed)),
            false => self.store.refuse(),
        }
        Ok(outcome)
    }
}

/// Writer of the checkpoints of one worker.
#[derive(Debug)]
pub struct Recorder<'a> {
    resume: &'a Resume,
    unwritten: Vec<(usize, ItemPart)>,
    unwritten_bytes: u64,
    began: Instant,
    written: Instant,
}

impl<'a> Recorder<'a> {
    /// Creates a writer without unwritten items.
    pub fn new(resume: &'a Resume) -> Recorder<'a> {
        let start = Instant::now();
        Recorder { resume, unwritten: Vec::new(), unwritten_bytes: 0, began: start, written: start }
    }

    /// Notes that an item has been added to the local pages, and writes the pending checkpoints if
    /// they are large or old enough.
    pub fn note(&mut self, number: usize, part: ItemPart, local_pages: &WorkerPages) {
        self.unwritten_bytes += part.bytes(local_pages);
        self.unwritten.push((number, part));
        let often = MIN_INTERVAL.max(self.began.elapsed() / 100);
        let is_time = self.resume.store.writes_at_once() && self.written.elapsed() >= often;
        if self.unwritten_bytes >= MAX_UNWRITTEN_BYTES || is_time {
            self.write(local_pages);
        }
    }

    /// Writes the pending checkpoints.
    pub fn write(&mut self, local_pages: &WorkerPages) {
        if !self.unwritten.is_empty() && !self.resume.gave_up.load(Ordering::Relaxed) {
            let numbers: Vec<usize> = self.unwritten.iter().map(|item| item.0).collect();
            let mut parts = self.unwritten.iter().map(|item| &item.1);
            let mut encode =
                |_, record: &mut Vec<u8>| encode(parts.next().expect("a part an item"), local_pages, record);
            match self.resume.store.write(&numbers, &mut encode) {
                Ok(()) => drop(self.resume.recorded.fetch_add(numbers.len() as u64, Ordering::Relaxed)),
                Err(_) => self.resume.gave_up.store(true, Ordering::Relaxed),
            }
        }
        self.unwritten.clear();
        self.unwritten_bytes = 0;
        self.written = Instant::now();
    }
}
