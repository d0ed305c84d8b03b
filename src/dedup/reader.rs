//! Thread of the first pass. It takes batches from the first file that no other thread is reading,
//! and keeps the data of their records that decisions are based on.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use xxhash_rust::xxh3::xxh3_128;

use super::annotate;
use super::batch_prints::{BatchPrints, RecordPrints};
use super::batches::{Batches, RecordBatch};
use super::buckets::bucket;
use super::budget::Budget;
use super::corpus::{BandRow, BatchRecords, CorpusRecord, CorpusRejection, ExactRow, NO_ID, Worker};
use super::counts::Values;
use super::inputs::CorpusFile;
use super::order;
use super::record::{self, InputRecord, NoRecord};
use super::resume::Checkpoints;
use super::settings::{DedupSettings, KeepRule, NearSettings};
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::Progress;
use webtwin_core::minhash::candidates;
use webtwin_core::minhash::shingles::Shingles;
use webtwin_core::minhash::signature::Permutations;
use webtwin_pages::json_fields::FieldQuery;
use webtwin_pages::record::Refusal;
use webtwin_spill::{Array, Partitions};

/// State that all threads share.
pub(crate) struct ReaderState<'s> {
    pub settings: &'s DedupSettings,
    pub checkpoints: Option<&'s Checkpoints>,
    pub progress: &'s Progress,
    pub query: FieldQuery,
    pub files: Vec<(&'s CorpusFile, Mutex<FileProgress>)>,
    pub max_records: u64,
    pub arrivals: AtomicU32,
    pub stop: AtomicBool,
}

/// Reading state of a file.
pub(crate) enum FileProgress {
    NotOpened,
    Open(Batches, u32),
    Done,
}

/// Counts of one thread.
#[derive(Default)]
pub(crate) struct ThreadTally {
    pub batches: Vec<BatchRecords>,
    /// Rejections, each with the number of its batch. Offsets in tables are relative to the batch.
    pub rejections: Vec<(u32, CorpusRejection)>,
    pub empty: u64,
    pub n_without_id: u64,
    pub n_without_key: u64,
}

pub(crate) fn panicked() -> Error {
    Error::Invariant("a thread of dedup ended with a panic".into())
}

pub(crate) fn work(me: u32, state: &ReaderState<'_>, budget: &Budget) -> Result<(Worker, ThreadTally)> {
    let (limited, shares) = (|bytes: u64| budget.pool.limited(bytes), budget.thread_shares);
    let mut reader = Reader {
        thread: me,
        state,
        worker: Worker {
            sets: Array::new(&limited(shares.sets)),
            ids: Array::new(&limited(shares.ids)),
            exact: Partitions::new(budget.buckets, &limited(shares.exact)),
            bands: Partitions::new(budget.buckets, &limited(shares.bands)),
            values: state.settings.count_by.iter().map(|_| Values::default()).collect(),
        },
        signatures: state.settings.near.map(|near| Signatures::new(&near)),
        shingles: state.settings.near.map(|near| Shingles::new(near.shingling)),
        prints: BatchPrints::default(),
        tally: ThreadTally::default(),
    };
    let read = reader.read_all();
    if read.is_err() {
        state.stop.store(true, Ordering::Relaxed);
    }
    read.map(|()| (reader.worker, reader.tally))
}

/// Computation of the keys of bands from sets of shingles.
struct Signatures {
    settings: NearSettings,
    permutations: Permutations,
    signature: Vec<u32>,
}

impl Signatures {
    fn new(settings: &NearSettings) -> Signatures {
        Signatures {
            settings: *settings,
            permutations: Permutations::new(settings.bands.permutations()),
            signature: Vec::new(),
        }
    }
}

/// State of a reading thread.
struct Reader<'s> {
    thread: u32,
    state: &'s ReaderState<'s>,
    worker: Worker,
    signatures: Option<Signatures>,
    shingles: Option<Shingles>,
    /// Prints of the current batch.
    prints: BatchPrints,
    tally: ThreadTally,
}

impl<'s> Reader<'s> {
    fn read_all(&mut self) -> Result<()> {
        let mut first = 0;
        while let Some((file, number, batch)) = self.next_batch(&mut first)? {
            if self.state.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.batch(file, number, batch)?;
        }
        Ok(())
    }

    /// Returns the next batch of the first file that no other thread is reading. If all files are
    /// being read, waits for the first one.
    fn next_batch(&mut self, first: &mut usize) -> Result<Option<(u32, u32, RecordBatch)>> {
        loop {
            let files: &'s [_] = &self.state.files;
            let (mut waited_for, mut row) = (None, *first);
            let mut is_first = true;
            while row < files.len() {
                let reading = match files[row].1.try_lock() {
                    Ok(reading) => Some(reading),
                    Err(TryLockError::Poisoned(_)) => return Err(panicked()),
                    Err(TryLockError::WouldBlock) => None,
                };
                match reading {
                    Some(reading) if matches!(*reading, FileProgress::Done) => *first += usize::from(is_first),
                    Some(reading) => match self.read_from(row, reading)? {
                        Some((number, batch)) => return Ok(Some((row as u32, number, batch))),
                        None => *first += usize::from(is_first),
                    },
                    None => {
                        waited_for = waited_for.or(Some(row));
                        is_first = false;
                    }
                }
                row += 1;
            }
            let Some(row) = waited_for else { return Ok(None) };
            let reading = files[row].1.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((number, batch)) = self.read_from(row, reading)? {
                return Ok(Some((row as u32, number, batch)));
            }
        }
    }

    fn read_from(
        &mut self,
        file: usize,
        mut reading: MutexGuard<'_, FileProgress>,
    ) -> Result<Option<(u32, RecordBatch)>> {
        if let FileProgress::NotOpened = *reading {
            if self.restore(file)? {
                *reading = FileProgress::Done;
                return Ok(None);
            }
            *reading = FileProgress::Open(Batches::open(self.state.files[file].0, self.state.settings)?, 0);
        }
        let FileProgress::Open(batches, number) = &mut *reading else { return Ok(None) };
        let batch = batches.next()?;
        self.state.progress.done.fetch_add(batches.take_bytes_read(), Ordering::Relaxed);
        match batch {
            Some(batch) => {
                *number += 1;
                Ok(Some((*number - 1, batch)))
            }
            None => {
                if let Some(checkpoints) = self.state.checkpoints {
                    checkpoints.end(file, *number);
                }
                *reading = FileProgress::Done;
                Ok(None)
            }
        }
    }

    /// Restores a file from its checkpoint. Returns false if there is none.
    fn restore(&mut self, file: usize) -> Result<bool> {
        let ReaderState { files, checkpoints, progress, .. } = self.state;
        let Some(checkpoints) = checkpoints else { return Ok(false) };
        let Some(mut checkpoint) = checkpoints.find(file) else { return Ok(false) };
        while let Some(prints) = BatchPrints::decode(&mut checkpoint).map_err(|cause| checkpoints.unreadable(cause))? {
            self.take_in(file as u32, &prints)?;
        }
        progress.done.fetch_add(files[file].0.stamp.bytes, Ordering::Relaxed);
        Ok(true)
    }

    fn batch(&mut self, file: u32, number: u32, batch: RecordBatch) -> Result<()> {
        self.prints.begin(number);
        let state = self.state;
        record::each(batch, state.settings, &state.query, &mut |place, row| {
            match row {
                Ok(record) => self.print(record),
                Err(NoRecord::Blank) => {}
                Err(NoRecord::Rejected(refusal)) => self.reject(place, refusal, 0),
                Err(NoRecord::Lost(refusal, lost_bytes)) => {
                    self.reject(place, refusal, lost_bytes);
                    return Ok(false);
                }
                Err(NoRecord::Annotated) => {
                    return Err(annotate::existing_field_error(state.files[file as usize].0.name(), Some(place)));
                }
            }
            self.prints.head.rows += 1;
            Ok(true)
        })?;
        let prints = std::mem::take(&mut self.prints);
        self.take_in(file, &prints)?;
        if let Some(checkpoints) = self.state.checkpoints {
            checkpoints.add(file as usize, &prints);
        }
        self.prints = prints;
        Ok(())
    }

    /// Adds the prints of a batch to the corpus, whether it was read or restored.
    fn take_in(&mut self, file: u32, prints: &BatchPrints) -> Result<()> {
        let ReaderState { settings, arrivals, progress, max_records, .. } = self.state;
        let BatchPrints { head, records, shingles } = prints;
        let number_of_arrival = arrivals.fetch_add(1, Ordering::Relaxed);
        let mut batch_records = BatchRecords {
            file,
            number: head.number,
            arrival_number: number_of_arrival,
            worker: self.thread,
            rows: head.rows,
            first_row: 0,
            first: 0,
            records: Vec::with_capacity(records.len()),
            values: Vec::with_capacity(head.values.len()),
        };
        let mut rest = &shingles[..];
        let mut text_bytes = 0;
        for ((prints, id), row) in records.iter().zip(&head.ids).zip(0..) {
            let (set, remainder) = rest.split_at(prints.shingles as usize);
            rest = remainder;
            text_bytes += u64::from(prints.text_bytes);
            batch_records.records.push(self.record(prints, id.as_deref(), set, [number_of_arrival, row])?);
        }
        for (number, value) in head.values.iter().enumerate() {
            let field = number % settings.count_by.len();
            batch_records.values.push(self.worker.values[field].number(&settings.count_by[field], value.as_deref())?);
        }
        let rejections =
            head.rejections.iter().map(|rejection| (head.number, CorpusRejection { file, ..rejection.clone() }));
        self.tally.rejections.extend(rejections);
        progress.page_bytes.fetch_add(text_bytes, Ordering::Relaxed);
        let n_so_far = progress.records.fetch_add(records.len() as u64, Ordering::Relaxed);
        if n_so_far + records.len() as u64 > *max_records {
            return Err(self.too_many(n_so_far));
        }
        self.tally.batches.push(batch_records);
        Ok(())
    }

    /// Stores the data of a record. `name` is the form in which hashes and keys refer to it.
    fn record(&mut self, prints: &RecordPrints, id: Option<&str>, set: &[u32], name: [u32; 2]) -> Result<CorpusRecord> {
        let settings = self.state.settings;
        let Worker { sets, ids, exact, bands, .. } = &mut self.worker;
        let RecordPrints { key, hash, row, text_bytes, shingles: set_size, is_blank } = *prints;
        self.tally.n_without_key += u64::from(key == order::MISSING && settings.keep != KeepRule::Longest);
        self.tally.n_without_id += u64::from(id.is_none() && settings.id_field.is_some());
        let mut record = CorpusRecord { set_at: 0, key, id_at: NO_ID, set_size, row, text_bytes };
        if let Some(id) = id {
            record.id_at = ids.push(&(id.len() as u32).to_le_bytes())?;
            ids.push(id.as_bytes())?;
        }
        if is_blank == 1 {
            self.tally.empty += 1;
            return Ok(record);
        }
        exact.push(bucket(hash[0], exact.count()), ExactRow { hash, record: name })?;
        if let (Some(Signatures { settings: near_settings, permutations, signature }), false) =
            (&mut self.signatures, set.is_empty())
        {
            record.set_at = sets.push(set)?;
            permutations.signature(set, signature);
            for key in near_settings.bands.keys(signature) {
                bands.push(bucket(key, bands.count()), BandRow { key, record: name })?;
            }
        }
        Ok(record)
    }

    fn too_many(&self, n_so_far: u64) -> Error {
        if n_so_far >= u64::from(candidates::MAX_TEXTS) - 1 {
            return Error::TooManyRows {
                what: "records".into(),
                found: n_so_far,
                allowed: candidates::MAX_TEXTS.into(),
            };
        }
        Error::MemoryLimit {
            what: format!("dedup of more than {n_so_far} records"),
            needed_bytes: self.state.settings.memory_bytes * 2,
            allowed_bytes: self.state.settings.memory_bytes,
            setting: "--memory".into(),
        }
    }

    fn reject(&mut self, offset: u64, (reason, detail): Refusal, lost_bytes: u64) {
        self.prints.head.rejections.push(CorpusRejection { file: 0, offset, reason, detail, lost: lost_bytes });
    }

    /// Adds the prints of a record to those of its batch.
    fn print(&mut self, InputRecord { text, id, key, values }: InputRecord<'_>) {
        let BatchPrints { head, records, shingles } = &mut self.prints;
        let is_blank = text.trim().is_empty();
        let set = match &mut self.shingles {
            Some(finder) if !is_blank => finder.hashes(&text),
            _ => &[],
        };
        let hash = if is_blank { 0 } else { xxh3_128(text.as_bytes()) };
        records.push(RecordPrints {
            key: order::key(&self.state.settings.keep, &text, id.as_deref(), key),
            hash: [(hash >> 64) as u64, hash as u64],
            row: head.rows as u32,
            text_bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
            shingles: set.len() as u32,
            is_blank: u32::from(is_blank),
        });
        shingles.extend_from_slice(set);
        head.ids.push(id);
        head.values.extend(values);
    }
}
