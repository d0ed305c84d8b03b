//! What a worker has read of a work item, as a record: written while a run reads, taken up by the next. An interrupted run
//! resumes from records on its local disk ([`webtwin_storage::records`]), a scheduled one goes on from those of its state
//! ([`webtwin_storage::state`]).
//!
//! A record says nothing of numbers that may differ in the next run: those of inputs, items, workers and slots are given anew
//! when it is put on a shelf. So it serves any number of workers, and inputs may have been added or have changed beside it.
//!
//! Both stores frame a record ([`crate::reading::item_record`]) with its length and checksum. Records of a state are
//! read by later builds, so a change of their fields, or of what reading makes of a page, needs another number in
//! [`webtwin_job::READING`]; a test shows both.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::reading::item_part::Part;
use crate::reading::item_record::{decode, encode};
use crate::reading::known_pages::KnownPages;
use crate::reading::worker_pages::WorkerPages;
use webtwin_base::error::Result;
use webtwin_pages::work_items::Work;
use webtwin_storage::records::RecordStore;

/// Records are written once they have this many bytes,
const ENOUGH_BYTES: u64 = 64 << 20;

/// or, where a run may be interrupted, after this time or a hundredth of the time read so far, whichever is longer.
const OFTEN: Duration = Duration::from_millis(100);

/// Records of the items of a run, and what came of them. The workers of a process share it.
#[derive(Debug)]
pub struct Resume {
    /// Where they lie.
    pub store: Arc<dyn RecordStore>,
    /// Items that were not read again.
    pub taken_up: AtomicU64,
    /// Items whose records were written.
    pub recorded: AtomicU64,
    /// Pages whose bytes an earlier run has read elsewhere, and which were not read again.
    pub known: AtomicU64,
    /// Whether a record could not be written; then no more are.
    pub gave_up: AtomicBool,
    /// Which similar pairs were taken over from the run before, for people.
    pub pairs: OnceLock<String>,
    /// For each item, whether an earlier crawl has it.
    of_earlier_crawls: Vec<bool>,
    known_pages: Mutex<Weak<KnownPages>>,
    steps: Mutex<StepNames>,
}

/// Steps after reading, by name and in their order.
#[derive(Debug, Default)]
pub struct StepNames {
    /// Those that were taken from records.
    pub taken_up: Vec<&'static str>,
    /// Those that were recorded.
    pub recorded: Vec<&'static str>,
}

impl Resume {
    /// Takes up these records of items, and adds to them.
    pub fn new(store: Arc<dyn RecordStore>, work: &Work) -> Resume {
        let of_earlier_crawls = work.items.iter().map(|item| work.is_original(item.input)).collect();
        let (taken_up, recorded, known, gave_up, known_pages) = Default::default();
        let (pairs, steps) = Default::default();
        Resume { store, taken_up, recorded, known, gave_up, pairs, of_earlier_crawls, known_pages, steps }
    }

    /// What became of the steps after reading, so far.
    pub fn steps(&self) -> MutexGuard<'_, StepNames> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pages in records of items of earlier crawls and of files that this run does not have; they are looked for when they
    /// are first asked for, and held as long as anybody holds them.
    pub fn known_pages(&self, memory_is_bounded: bool) -> Arc<KnownPages> {
        let mut held = self.known_pages.lock().unwrap_or_else(PoisonError::into_inner);
        held.upgrade().unwrap_or_else(|| {
            let is_taken_up = |item: usize| !self.of_earlier_crawls.get(item).is_some_and(|is| *is);
            let known = Arc::new(KnownPages::of(self.store.left_over(&is_taken_up, memory_is_bounded)));
            *held = Arc::downgrade(&known);
            known
        })
    }

    /// Puts what an earlier run has read of an item on the shelf; false, and nothing on it, when there is no good record.
    ///
    /// # Errors
    /// Those of the disk that takes what has no room in memory.
    pub fn take_up(&self, number: usize, input: u32, worker: u32, shelf: &mut WorkerPages) -> Result<bool> {
        let Some(record) = self.store.read(number) else { return Ok(false) };
        let put = decode(&record, number as u32, input, worker, shelf)?;
        match put {
            true => drop(self.taken_up.fetch_add(1, Ordering::Relaxed)),
            false => self.store.refuse(),
        }
        Ok(put)
    }
}

/// Writes down what one worker reads.
#[derive(Debug)]
pub struct Recorder<'a> {
    resume: &'a Resume,
    unwritten: Vec<(usize, Part)>,
    unwritten_bytes: u64,
    began: Instant,
    written: Instant,
}

impl<'a> Recorder<'a> {
    /// Nothing read yet.
    pub fn new(resume: &'a Resume) -> Recorder<'a> {
        let now = Instant::now();
        Recorder { resume, unwritten: Vec::new(), unwritten_bytes: 0, began: now, written: now }
    }

    /// Notes that an item is on the shelf, and writes what has come together if it is time.
    pub fn note(&mut self, number: usize, part: Part, shelf: &WorkerPages) {
        self.unwritten_bytes += part.bytes(shelf);
        self.unwritten.push((number, part));
        let often = OFTEN.max(self.began.elapsed() / 100);
        let is_time = self.resume.store.writes_at_once() && self.written.elapsed() >= often;
        if self.unwritten_bytes >= ENOUGH_BYTES || is_time {
            self.write(shelf);
        }
    }

    /// Writes what has come together.
    pub fn write(&mut self, shelf: &WorkerPages) {
        if !self.unwritten.is_empty() && !self.resume.gave_up.load(Ordering::Relaxed) {
            let numbers: Vec<usize> = self.unwritten.iter().map(|item| item.0).collect();
            let mut parts = self.unwritten.iter().map(|item| &item.1);
            let mut encode = |_, record: &mut Vec<u8>| encode(parts.next().expect("a part an item"), shelf, record);
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
