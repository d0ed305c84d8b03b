//! What is known of all records between the two passes.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::counts::Values;
use super::inputs::InputFile;
use webtwin_base::error::Result;
use webtwin_pages::record::Reason;
use webtwin_spill::{Array, MemoryPool, Partitions};

/// Bytes of memory of a record, from beginning to end, where records are counted by some fields.
pub(crate) fn record_bytes(count_by: &[String]) -> u64 {
    (size_of::<Record>() + 4 + 8 + 8 + 4 * count_by.len()) as u64
}

/// A record, as far as it is held in memory.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Position of its set of shingles with its worker.
    pub set_at: u64,
    /// Its place in the order of keeping, as far as the rule tells.
    pub key: u64,
    /// Position of its id with its worker; [`NO_ID`] for none.
    pub id_at: u64,
    /// Size of the set.
    pub set_size: u32,
    /// Row in its batch.
    pub row: u32,
    /// Bytes of its text.
    pub text_bytes: u32,
}

/// Stands for the id of a record without one.
pub(crate) const NO_ID: u64 = u64::MAX;

/// The hash of a text, and the record that has it: 24 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ExactRow {
    /// The hash.
    pub hash: [u64; 2],
    /// Batch, by its number of arrival, and the record in it.
    pub record: [u32; 2],
}

/// The key of a band, and the record that has it: 16 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BandRow {
    /// The key.
    pub key: u64,
    /// As [`ExactRow::record`].
    pub record: [u32; 2],
}

/// The records of a batch.
#[derive(Debug)]
pub struct BatchRecords {
    /// File, by number.
    pub file: u32,
    /// Number in its file.
    pub number: u32,
    /// Number by arrival, with all files.
    pub arrival: u32,
    /// Who has its sets and ids.
    pub worker: u32,
    /// Rows, of which blank and rejected ones are none of the records.
    pub rows: u64,
    /// Row in the file with which the batch begins.
    pub first_row: u64,
    /// Number of the first record.
    pub first: u32,
    /// The records, by row.
    pub records: Vec<Record>,
    /// For each record, the numbers of its values of the fields that are counted by, with those of the worker.
    pub values: Vec<u32>,
}

/// What a thread has put aside.
pub struct Worker {
    /// Sets of shingles, one after the other.
    pub sets: Array<u32>,
    /// Ids, each with its length before it, in two bytes.
    pub ids: Array<u8>,
    /// Hashes, in buckets.
    pub exact: Partitions<ExactRow>,
    /// Keys of bands, in buckets.
    pub bands: Partitions<BandRow>,
    /// Values of each field that is counted by.
    pub values: Vec<Values>,
}

/// A record that was read and not kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rejection {
    /// File, by number; another run may give it another one.
    #[serde(skip)]
    pub file: u32,
    /// Where the record begins in the decoded file; the row of a table.
    pub offset: u64,
    /// Why.
    pub reason: Reason,
    /// The same for people.
    pub detail: String,
    /// Bytes of the file after it, as it is stored, that could not be read.
    pub lost: u64,
}

/// Everything that was read.
pub struct Corpus {
    /// The files.
    pub files: Vec<InputFile>,
    /// How many of them belong to `against`.
    pub against_files: usize,
    /// By file and place.
    pub batches: Vec<BatchRecords>,
    /// By number of arrival, the first record of a batch.
    pub first_of_arrival: Vec<u32>,
    /// What each thread has put aside.
    pub workers: Vec<Worker>,
    /// By file and place.
    pub rejections: Vec<Rejection>,
    /// Records without a word or character.
    pub empty: u64,
    /// Records without what `--id-field` names.
    pub without_id: u64,
    /// Records without what the rule for keeping looks at.
    pub without_key: u64,
}

impl Corpus {
    /// Number of records.
    pub fn count(&self) -> u32 {
        self.batches.last().map_or(0, |last| last.first + last.records.len() as u32)
    }

    /// Number of records of `against`, which are the first.
    pub fn against(&self) -> u32 {
        let of_input = self.batches.iter().find(|batch| batch.file as usize >= self.against_files);
        of_input.map_or(self.count(), |batch| batch.first)
    }

    /// The batch of a record.
    pub fn batch_of(&self, record: u32) -> &BatchRecords {
        &self.batches[self.batches.partition_point(|batch| batch.first <= record) - 1]
    }

    /// A record by its number.
    pub fn record(&self, number: u32) -> &Record {
        let batch = self.batch_of(number);
        &batch.records[(number - batch.first) as usize]
    }

    /// File and row of a record.
    pub fn place(&self, number: u32) -> (u32, u64) {
        let batch = self.batch_of(number);
        let record = &batch.records[(number - batch.first) as usize];
        (batch.file, batch.first_row + u64::from(record.row))
    }

    /// The id of a record: what its field says, or file and row.
    ///
    /// # Errors
    /// Those of the disk that holds ids.
    pub fn id(&self, number: u32) -> Result<String> {
        let batch = self.batch_of(number);
        let record = &batch.records[(number - batch.first) as usize];
        if record.id_at == NO_ID {
            let (file, row) = self.place(number);
            return Ok(format!("{}:{row}", self.files[file as usize].name()));
        }
        let (ids, mut room) = (&self.workers[batch.worker as usize].ids, Vec::new());
        let length = ids.get(record.id_at, 4, &mut room)?;
        let length = u32::from_le_bytes(length.try_into().expect("four bytes were asked for")) as usize;
        Ok(String::from_utf8_lossy(ids.get(record.id_at + 4, length, &mut room)?).into_owned())
    }

    /// The shingles of a record, in place or in `room`.
    ///
    /// # Errors
    /// Those of the disk that holds sets.
    pub fn set<'a>(&'a self, number: u32, room: &'a mut Vec<u32>) -> Result<&'a [u32]> {
        let batch = self.batch_of(number);
        let record = &batch.records[(number - batch.first) as usize];
        self.workers[batch.worker as usize].sets.get(record.set_at, record.set_size as usize, room)
    }

    /// Frees the memory and the disk of what decided about records: sets, keys and hashes.
    pub fn keep_ids_only(&mut self) {
        let none = MemoryPool::default();
        for worker in &mut self.workers {
            worker.sets = Array::default();
            (worker.exact, worker.bands) = (Partitions::new(0, &none), Partitions::new(0, &none));
        }
    }

    /// The number of a record that a hash or key names.
    pub fn number(&self, record: [u32; 2]) -> u32 {
        self.first_of_arrival[record[0] as usize] + record[1]
    }

    /// The batches of a file.
    pub fn of_file(&self, file: u32) -> &[BatchRecords] {
        let start = self.batches.partition_point(|batch| batch.file < file);
        let end = self.batches.partition_point(|batch| batch.file <= file);
        &self.batches[start..end]
    }
}
