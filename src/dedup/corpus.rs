//! Data of all records that is held between the two passes.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::counts::Values;
use super::inputs::CorpusFile;
use webtwin_base::error::Result;
use webtwin_pages::record::Reason;
use webtwin_spill::{Array, MemoryPool, Partitions};

/// Returns the memory of a record over the whole run in bytes, if records are counted by the given
/// fields.
pub(crate) fn record_bytes(count_by: &[String]) -> u64 {
    (size_of::<CorpusRecord>() + 4 + 8 + 8 + 4 * count_by.len()) as u64
}

/// Data of a record that is held in memory.
#[derive(Debug, Clone, Copy)]
pub struct CorpusRecord {
    /// Position of its set of shingles in the sets of its worker.
    pub set_at: u64,
    /// Sort key of the record by the keep rule.
    pub key: u64,
    /// Position of its id in the ids of its worker; [`NO_ID`] for none.
    pub id_at: u64,
    /// Size of the set.
    pub set_size: u32,
    /// Row in the batch.
    pub row: u32,
    /// Length of the text in bytes.
    pub text_bytes: u32,
}

/// Placeholder for a missing id.
pub(crate) const NO_ID: u64 = u64::MAX;

/// Hash of a text and the record with the text: 24 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct ExactRow {
    /// Hash of the text.
    pub hash: [u64; 2],
    /// Arrival number of the batch, and index of the record in the batch.
    pub record: [u32; 2],
}

/// Key of a band and a record with the key: 16 bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BandRow {
    /// Key of the band.
    pub key: u64,
    /// Record, in the form of [`ExactRow::record`].
    pub record: [u32; 2],
}

/// Records of a batch.
#[derive(Debug)]
pub struct BatchRecords {
    /// Number of the file.
    pub file: u32,
    /// Number of the batch in its file.
    pub number: u32,
    /// Arrival number of the batch, across all files.
    pub arrival_number: u32,
    /// Number of the worker that holds its sets and ids.
    pub worker: u32,
    /// Number of rows. Blank and rejected rows are counted, but are not among the records.
    pub rows: u64,
    /// First row of the batch in its file.
    pub first_row: u64,
    /// Number of the first record.
    pub first: u32,
    /// Records, by row.
    pub records: Vec<CorpusRecord>,
    /// Numbers of the values of the fields that records are counted by, for each record. The worker
    /// assigns the numbers.
    pub values: Vec<u32>,
}

/// Data that one thread has collected.
pub struct Worker {
    /// Sets of shingles, one after the other.
    pub sets: Array<u32>,
    /// Ids, each preceded by its length in four bytes.
    pub ids: Array<u8>,
    /// Hashes, in buckets.
    pub exact: Partitions<ExactRow>,
    /// Keys of bands, in buckets.
    pub bands: Partitions<BandRow>,
    /// Values of each field that records are counted by.
    pub values: Vec<Values>,
}

/// Record that was read and rejected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CorpusRejection {
    /// Number of the file. It may differ in another run.
    #[serde(skip)]
    pub file: u32,
    /// Offset of the record in the decoded file, or its row in a table.
    pub offset: u64,
    /// Reason of the rejection.
    pub reason: Reason,
    /// Description for users.
    pub detail: String,
    /// Number of bytes of the stored file after the record that could not be read.
    pub lost: u64,
}

/// Data of all records.
pub struct Corpus {
    /// All files.
    pub files: Vec<CorpusFile>,
    /// Number of files that belong to `against`.
    pub n_against_files: usize,
    /// Batches, by file and position.
    pub batches: Vec<BatchRecords>,
    /// Number of the first record of each batch, by arrival number.
    pub first_records: Vec<u32>,
    /// Data that each thread has collected.
    pub workers: Vec<Worker>,
    /// Rejected records, by file and position.
    pub rejections: Vec<CorpusRejection>,
    /// Number of records whose text is only white space.
    pub empty: u64,
    /// Number of records without the field of `--id-field`.
    pub n_without_id: u64,
    /// Number of records without the field that the keep rule compares.
    pub n_without_key: u64,
}

impl Corpus {
    /// Returns the number of records.
    pub fn count(&self) -> u32 {
        self.batches.last().map_or(0, |last| last.first + last.records.len() as u32)
    }

    /// Returns the number of records of `against`, which come first.
    pub fn against(&self) -> u32 {
        let first_input = self.batches.iter().find(|batch| batch.file as usize >= self.n_against_files);
        first_input.map_or(self.count(), |batch| batch.first)
    }

    /// Returns the batch of a record.
    pub fn batch_of(&self, record: u32) -> &BatchRecords {
        &self.batches[self.batches.partition_point(|batch| batch.first <= record) - 1]
    }

    /// Returns a record by its number.
    pub fn record(&self, number: u32) -> &CorpusRecord {
        let batch = self.batch_of(number);
        &batch.records[(number - batch.first) as usize]
    }

    /// Returns the file and the row of a record.
    pub fn place(&self, number: u32) -> (u32, u64) {
        let batch = self.batch_of(number);
        let record = &batch.records[(number - batch.first) as usize];
        (batch.file, batch.first_row + u64::from(record.row))
    }

    /// Returns the id of a record: the value of its id field, or its file and row.
    ///
    /// # Errors
    /// Returns any error of the disk with the ids.
    pub fn id(&self, number: u32) -> Result<String> {
        let batch = self.batch_of(number);
        let record = &batch.records[(number - batch.first) as usize];
        if record.id_at == NO_ID {
            let (file, row) = self.place(number);
            return Ok(format!("{}:{row}", self.files[file as usize].name()));
        }
        let (ids, mut scratch) = (&self.workers[batch.worker as usize].ids, Vec::new());
        let length = ids.get(record.id_at, 4, &mut scratch)?;
        let length = u32::from_le_bytes(length.try_into().expect("four bytes were asked for")) as usize;
        Ok(String::from_utf8_lossy(ids.get(record.id_at + 4, length, &mut scratch)?).into_owned())
    }

    /// Returns the shingles of a record, in place or in the scratch buffer `scratch`.
    ///
    /// # Errors
    /// Returns any error of the disk with the sets.
    pub fn set<'a>(&'a self, number: u32, scratch: &'a mut Vec<u32>) -> Result<&'a [u32]> {
        let batch = self.batch_of(number);
        let record = &batch.records[(number - batch.first) as usize];
        self.workers[batch.worker as usize].sets.get(record.set_at, record.set_size as usize, scratch)
    }

    /// Frees the memory and the disk space of the data that decisions are based on: sets, keys and
    /// hashes.
    pub fn keep_ids_only(&mut self) {
        let empty_pool = MemoryPool::default();
        for worker in &mut self.workers {
            worker.sets = Array::default();
            (worker.exact, worker.bands) = (Partitions::new(0, &empty_pool), Partitions::new(0, &empty_pool));
        }
    }

    /// Returns the number of the record that a hash or key refers to.
    pub fn number(&self, record: [u32; 2]) -> u32 {
        self.first_records[record[0] as usize] + record[1]
    }

    /// Returns the batches of a file.
    pub fn of_file(&self, file: u32) -> &[BatchRecords] {
        let start = self.batches.partition_point(|batch| batch.file < file);
        let end = self.batches.partition_point(|batch| batch.file <= file);
        &self.batches[start..end]
    }
}
