//! The first pass: every record is read, and what decides about it is kept.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use xxhash_rust::xxh3::xxh3_128;

use super::annotate;
use super::batches::{Batch, Batches, Row, lines};
use super::buckets::bucket;
use super::budget::Budget;
use super::corpus::{BandRow, BatchRecords, Corpus, ExactRow, NO_ID, Record, Rejection, Worker, record_bytes};
use super::counts::Values;
use super::fields::wanted;
use super::inputs::{InputFile, Inputs};
use super::order::{self, Key};
use super::record::{self, LineRecord, NoRecord};
use super::settings::{Keep, Near, Settings};
use crate::error::{Error, Result};
use crate::minhash::candidates;
use crate::minhash::shingles::Shingles;
use crate::minhash::signature::Permutations;
use crate::pages::damage::Damage;
use crate::pages::json_fields::Wanted;
use crate::pages::record::Reason;
use crate::progress::Progress;
use crate::storage::spill::Buckets;
use crate::storage::spill_array::SpillArray;
use crate::threads;

/// Reads all files.
///
/// # Errors
/// Those of inputs and stores; [`Error::TooManyBad`] when a file has too many damaged records;
/// [`Error::MemoryLimit`] when there are more records than memory for them.
///
/// # Cost
/// One pass over the input; see [`Budget`] for the memory.
pub fn read(settings: &Settings, inputs: &Inputs, budget: &Budget, progress: &Progress) -> Result<Corpus> {
    let shared = Shared {
        settings,
        progress,
        wanted: wanted(settings),
        files: inputs.files.iter().map(|file| (file, Mutex::new(Reading::Ahead))).collect(),
        most_records: (budget.records / record_bytes(&settings.count_by)).min(u64::from(candidates::MOST)),
        arrivals: AtomicU32::new(0),
        stop: AtomicBool::new(false),
    };
    let done: Vec<Result<(Worker, Tally)>> = std::thread::scope(|scope| -> Result<_> {
        let shared = &shared;
        let started: Result<Vec<_>> =
            (0..settings.workers as u32).map(|me| threads::start_in(scope, move || work(me, shared, budget))).collect();
        let threads = started.inspect_err(|_| shared.stop.store(true, Ordering::Relaxed))?;
        Ok(threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect())
    })?;
    let mut corpus = Corpus {
        files: inputs.files.clone(),
        against_files: inputs.against,
        batches: Vec::new(),
        first_of_arrival: vec![0; shared.arrivals.into_inner() as usize],
        workers: Vec::new(),
        rejections: Vec::new(),
        empty: 0,
        without_id: 0,
        without_key: 0,
    };
    let mut damage = Vec::new();
    for done in done {
        let (worker, tally) = done?;
        corpus.workers.push(worker);
        corpus.batches.extend(tally.batches);
        damage.extend(tally.rejections);
        corpus.empty += tally.empty;
        corpus.without_id += tally.without_id;
        corpus.without_key += tally.without_key;
    }
    corpus.batches.sort_unstable_by_key(|batch| (batch.file, batch.number));
    let (mut first, mut before) = (0, (u32::MAX, 0));
    let mut rejections = Vec::with_capacity(damage.len());
    damage.sort_unstable_by_key(|(number, rejection): &(u32, Rejection)| (rejection.file, *number, rejection.offset));
    let mut damage = damage.into_iter().peekable();
    for batch in &mut corpus.batches {
        batch.first_row = if before.0 == batch.file { before.1 } else { 0 };
        before = (batch.file, batch.first_row + batch.rows);
        batch.first = first;
        first += batch.records.len() as u32;
        corpus.first_of_arrival[batch.arrival as usize] = batch.first;
        // The rows of a table are counted from the beginning of its file.
        let is_table = inputs.files[batch.file as usize].format == super::inputs::Format::Parquet;
        let of_batch = |(number, rejection): &(u32, Rejection)| (rejection.file, *number) == (batch.file, batch.number);
        while let Some((_, mut rejection)) = damage.next_if(of_batch) {
            rejection.offset += if is_table { batch.first_row } else { 0 };
            rejections.push(rejection);
        }
    }
    corpus.rejections = rejections;
    hold_against_max_bad(&corpus, settings.max_bad)?;
    Ok(corpus)
}

/// What all threads share.
struct Shared<'s> {
    settings: &'s Settings,
    progress: &'s Progress,
    wanted: Wanted,
    files: Vec<(&'s InputFile, Mutex<Reading>)>,
    most_records: u64,
    arrivals: AtomicU32,
    stop: AtomicBool,
}

/// How far a file is.
enum Reading {
    Ahead,
    Open(Batches, u32),
    Done,
}

/// What a thread has counted.
#[derive(Default)]
struct Tally {
    batches: Vec<BatchRecords>,
    /// With the number of the batch; offsets of rows count from the batch.
    rejections: Vec<(u32, Rejection)>,
    empty: u64,
    without_id: u64,
    without_key: u64,
}

fn panicked() -> Error {
    Error::Invariant("a thread of dedup ended with a panic".into())
}

fn work(me: u32, shared: &Shared<'_>, budget: &Budget) -> Result<(Worker, Tally)> {
    let (disk, shares) = (&budget.disk, budget.of_worker);
    let mut reader = Reader {
        me,
        shared,
        worker: Worker {
            sets: SpillArray::new(shares.sets, disk),
            ids: SpillArray::new(shares.ids, disk),
            exact: Buckets::new(budget.buckets, shares.exact, disk),
            bands: Buckets::new(budget.buckets, shares.bands, disk),
            values: shared.settings.count_by.iter().map(|_| Values::default()).collect(),
        },
        near: shared.settings.near.map(|near| Prints::new(&near)),
        tally: Tally::default(),
    };
    let read = reader.read_all();
    if read.is_err() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    read.map(|()| (reader.worker, reader.tally))
}

/// Makes the prints of texts.
struct Prints {
    near: Near,
    shingles: Shingles,
    permutations: Permutations,
    signature: Vec<u32>,
}

impl Prints {
    fn new(near: &Near) -> Prints {
        Prints {
            near: *near,
            shingles: Shingles::new(near.shingling),
            permutations: Permutations::new(near.bands.permutations()),
            signature: Vec::new(),
        }
    }
}

/// A thread that reads.
struct Reader<'s> {
    me: u32,
    shared: &'s Shared<'s>,
    worker: Worker,
    near: Option<Prints>,
    tally: Tally,
}

impl Reader<'_> {
    fn read_all(&mut self) -> Result<()> {
        let mut first = 0;
        while let Some((file, number, batch)) = self.next_batch(&mut first)? {
            if self.shared.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.batch(file, number, batch)?;
        }
        Ok(())
    }

    /// The next batch of the first file that nobody reads at the moment; of the first at all if there is none.
    fn next_batch(&self, first: &mut usize) -> Result<Option<(u32, u32, Batch)>> {
        loop {
            let files = &self.shared.files;
            let (mut waited_for, mut at) = (None, *first);
            let mut is_first = true;
            while at < files.len() {
                let reading = match files[at].1.try_lock() {
                    Ok(reading) => Some(reading),
                    Err(TryLockError::Poisoned(_)) => return Err(panicked()),
                    Err(TryLockError::WouldBlock) => None,
                };
                match reading {
                    Some(reading) if matches!(*reading, Reading::Done) => *first += usize::from(is_first),
                    Some(reading) => match self.read_from(at, reading)? {
                        Some((number, batch)) => return Ok(Some((at as u32, number, batch))),
                        None => *first += usize::from(is_first),
                    },
                    None => {
                        waited_for = waited_for.or(Some(at));
                        is_first = false;
                    }
                }
                at += 1;
            }
            let Some(at) = waited_for else { return Ok(None) };
            let reading = files[at].1.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((number, batch)) = self.read_from(at, reading)? {
                return Ok(Some((at as u32, number, batch)));
            }
        }
    }

    fn read_from(&self, file: usize, mut reading: MutexGuard<'_, Reading>) -> Result<Option<(u32, Batch)>> {
        if let Reading::Ahead = *reading {
            *reading = Reading::Open(Batches::open(self.shared.files[file].0, self.shared.settings)?, 0);
        }
        let Reading::Open(batches, number) = &mut *reading else { return Ok(None) };
        let batch = batches.next()?;
        self.shared.progress.done.fetch_add(batches.taken(), Ordering::Relaxed);
        match batch {
            Some(batch) => {
                *number += 1;
                Ok(Some((*number - 1, batch)))
            }
            None => {
                *reading = Reading::Done;
                Ok(None)
            }
        }
    }

    fn batch(&mut self, file: u32, number: u32, batch: Batch) -> Result<()> {
        let arrival = self.shared.arrivals.fetch_add(1, Ordering::Relaxed);
        let (records, values) = (Vec::new(), Vec::new());
        let me = self.me;
        let mut of_batch =
            BatchRecords { file, number, arrival, worker: me, rows: 0, first_row: 0, first: 0, records, values };
        match batch {
            Batch::Lines { offset, bytes } => {
                let mut at = offset;
                for line in lines(&bytes) {
                    self.line(line, at, &mut of_batch)?;
                    at += line.len() as u64;
                    of_batch.rows += 1;
                }
            }
            Batch::TooLong { offset, length } => {
                let detail = record::too_long(length, &self.shared.settings.limits);
                self.reject(&of_batch, offset, Reason::RecordTooLarge, detail);
                of_batch.rows = 1;
            }
            Batch::Damaged { offset, reason, detail, lost } => {
                let rejection = Rejection { file, offset, reason, detail, lost };
                self.tally.rejections.push((number, rejection));
            }
            Batch::Rows(rows) => {
                for row in rows {
                    self.row(row, &mut of_batch)?;
                    of_batch.rows += 1;
                }
            }
        }
        of_batch.records.shrink_to_fit();
        of_batch.values.shrink_to_fit();
        let progress = self.shared.progress;
        let text_bytes: u64 = of_batch.records.iter().map(|record| u64::from(record.text_bytes)).sum();
        progress.page_bytes.fetch_add(text_bytes, Ordering::Relaxed);
        let so_far = progress.records.fetch_add(of_batch.records.len() as u64, Ordering::Relaxed);
        if so_far + of_batch.records.len() as u64 > self.shared.most_records {
            return Err(self.too_many(so_far));
        }
        self.tally.batches.push(of_batch);
        Ok(())
    }

    fn too_many(&self, so_far: u64) -> Error {
        if so_far >= u64::from(candidates::MOST) - 1 {
            return Error::TooManyRows { what: "records".into(), found: so_far, allowed: candidates::MOST.into() };
        }
        Error::MemoryLimit {
            what: format!("dedup of more than {so_far} records"),
            needed_bytes: self.shared.settings.memory_bytes * 2,
            allowed_bytes: self.shared.settings.memory_bytes,
            setting: "--memory".into(),
        }
    }

    fn reject(&mut self, batch: &BatchRecords, offset: u64, reason: Reason, detail: String) {
        self.tally.rejections.push((batch.number, Rejection { file: batch.file, offset, reason, detail, lost: 0 }));
    }

    fn line(&mut self, line: &[u8], offset: u64, batch: &mut BatchRecords) -> Result<()> {
        let (shared, mut repaired) = (self.shared, None);
        match record::of_line(line, shared.settings, &shared.wanted, &mut repaired) {
            Ok(LineRecord { text, id, key, values }) => {
                self.count(&values, batch)?;
                self.record(&text, id.as_deref(), key, batch)
            }
            Err(NoRecord::Blank) => Ok(()),
            Err(NoRecord::Rejected(reason, detail)) => {
                self.reject(batch, offset, reason, detail);
                Ok(())
            }
            Err(NoRecord::Annotated) => Err(annotate::taken(shared.files[batch.file as usize].0.name(), Some(offset))),
        }
    }

    fn row(&mut self, row: Row, batch: &mut BatchRecords) -> Result<()> {
        match record::text_of_row(&row, &self.shared.settings.limits) {
            Ok(text) => {
                self.count(&row.values, batch)?;
                self.record(text, row.id.as_deref(), row.key, batch)
            }
            Err((reason, detail)) => {
                self.reject(batch, batch.rows, reason, detail);
                Ok(())
            }
        }
    }

    /// Notes the values of the fields that records are counted by.
    fn count(&mut self, values: &[Option<String>], batch: &mut BatchRecords) -> Result<()> {
        for (at, (field, value)) in self.shared.settings.count_by.iter().zip(values).enumerate() {
            batch.values.push(self.worker.values[at].number(field, value.as_deref())?);
        }
        Ok(())
    }

    /// Takes in a record, which is the last of its batch so far.
    fn record(&mut self, text: &str, id: Option<&str>, key: Key, batch: &mut BatchRecords) -> Result<()> {
        let settings = self.shared.settings;
        let keep = &settings.keep;
        let key = order::key(keep, text, id, key);
        self.tally.without_key += u64::from(key == order::MISSING && *keep != Keep::Longest);
        let name = [batch.arrival, batch.records.len() as u32];
        let mut record = Record {
            set_at: 0,
            key,
            id_at: NO_ID,
            set_size: 0,
            row: batch.rows as u32,
            text_bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
        };
        if let Some(id) = id {
            record.id_at = self.worker.ids.push(&(id.len() as u32).to_le_bytes())?;
            self.worker.ids.push(id.as_bytes())?;
        } else {
            self.tally.without_id += u64::from(settings.id_field.is_some());
        }
        if text.trim().is_empty() {
            self.tally.empty += 1;
        } else {
            self.prints(text, name, &mut record)?;
        }
        batch.records.push(record);
        Ok(())
    }

    fn prints(&mut self, text: &str, name: [u32; 2], record: &mut Record) -> Result<()> {
        let Worker { sets, exact, bands, .. } = &mut self.worker;
        let hash = xxh3_128(text.as_bytes());
        let hash = [(hash >> 64) as u64, hash as u64];
        exact.push(bucket(hash[0], exact.count()), ExactRow { hash, record: name })?;
        let Some(Prints { near, shingles, permutations, signature }) = &mut self.near else { return Ok(()) };
        let set = shingles.of(text);
        if !set.is_empty() {
            (record.set_at, record.set_size) = (sets.push(set)?, set.len() as u32);
            permutations.signature(set, signature);
            for key in near.bands.keys(signature) {
                bands.push(bucket(key, bands.count()), BandRow { key, record: name })?;
            }
        }
        Ok(())
    }
}

/// Fails for the first file of which too much is damaged.
fn hold_against_max_bad(corpus: &Corpus, max_bad: f64) -> Result<()> {
    corpus.rejections.chunk_by(|x, y| x.file == y.file).try_for_each(|of_file| {
        let file = &corpus.files[of_file[0].file as usize];
        let records = corpus.of_file(of_file[0].file).iter().map(|batch| batch.records.len() as u64).sum();
        let mut damage = Damage { records, pages: records, ..Damage::default() };
        for Rejection { offset, reason, detail, lost, .. } in of_file {
            damage.add_bad((*offset, *reason, detail.clone()), *lost);
        }
        damage.hold_against(max_bad, file.name(), file.stamp.bytes)
    })
}
