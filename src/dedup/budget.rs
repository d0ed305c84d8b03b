//! Division of the memory among the parts of a run, and prediction of its resources.

use std::fmt;

use super::buckets::WorkBounds;
use super::corpus::{BandRow, ExactRow, record_bytes};
use super::inputs::Inputs;
use super::sample::{CorpusEstimate, expected};
use super::settings::DedupSettings;
use webtwin_base::error::{Error, Result, size};
use webtwin_spill::{BLOCK_BYTES, MemoryPool, free_bytes};

/// Memory of an idle program and of the batches that its threads process, in bytes.
const IDLE_BYTES: u64 = 24 << 20;

/// Memory of a thread in bytes: a batch, its texts and prints, and open blocks.
const THREAD_BYTES: u64 = 12 << 20;

/// Size of a bucket that is sorted as a whole, in bytes.
const BUCKET_BYTES: u64 = 8 << 20;

/// Memory of a row of a bucket while it is processed, in bytes: as read, in the bucket, and with
/// the position of its record.
const ROW_BYTES: u64 = 3 * size_of::<ExactRow>() as u64;

/// Minimum memory of a run in bytes.
const MIN_BYTES: u64 = 128 << 20;

/// Average length of a word of text with the following space, in bytes, for predictions.
const WORD_BYTES: u64 = 6;

/// Budgets of the parts of a run.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Maximum size of the data of all records, in bytes.
    pub records: u64,
    /// Budgets of each thread for sets of shingles, keys of bands, hashes and ids.
    pub thread_shares: ThreadShares,
    /// Budget of each thread for candidates, in bytes.
    pub candidates: u64,
    /// Number of partitions of keys, of hashes and of candidates.
    pub buckets: usize,
    /// Memory limits of the rows of a bucket.
    pub bounds: WorkBounds,
    /// Total memory, and the folder for data that does not fit.
    pub pool: MemoryPool,
    /// Predicted resources.
    pub prediction: Prediction,
}

/// Budgets of one thread, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadShares {
    /// Sets of shingles.
    pub sets: u64,
    /// Keys of bands.
    pub bands: u64,
    /// Hashes.
    pub exact: u64,
    /// Ids.
    pub ids: u64,
}

/// Predicted resources of a run, from the lengths of its files and the beginnings of some of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prediction {
    /// Number of files.
    pub files: usize,
    /// Total size of the files in bytes.
    pub file_bytes: u64,
    /// Total size of the decoded records in bytes.
    pub decoded_bytes: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Temporary disk space in bytes.
    pub disk_bytes: u64,
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} of {} (about {} decoded): at most {} of memory",
            self.files,
            if self.files == 1 { "file" } else { "files" },
            size(self.file_bytes),
            size(self.decoded_bytes),
            size(self.memory_bytes)
        )?;
        match self.disk_bytes {
            0 => Ok(()),
            bytes => write!(f, ", about {} of temporary disk", size(bytes)),
        }
    }
}

impl Budget {
    /// Divides the memory, and predicts the required resources.
    ///
    /// # Errors
    /// Returns [`Error::MemoryLimit`] if the memory is too small for any run, or for half of the
    /// records expected from a sample; and [`Error::DiskFull`] if the disk has less free space than
    /// half of the predicted size.
    pub(crate) fn new(settings: &DedupSettings, inputs: &Inputs) -> Result<Budget> {
        let workers = settings.workers as u64;
        let fixed_bytes = IDLE_BYTES + workers * THREAD_BYTES;
        let minimum = fixed_bytes + MIN_BYTES;
        if settings.memory_bytes < minimum {
            return Err(Error::MemoryLimit {
                what: format!("dedup with {workers} threads"),
                needed_bytes: minimum,
                allowed_bytes: settings.memory_bytes,
                setting: "--memory".into(),
            });
        }
        let budget = settings.memory_bytes - fixed_bytes;
        // One half of the memory goes to the records, and the other half is divided among the parts
        // of the threads by eighths.
        let share_of_worker = |eighths: u64| budget / 16 * eighths / workers;
        let thread_shares = match settings.near {
            Some(_) => ThreadShares {
                sets: share_of_worker(4),
                bands: share_of_worker(2),
                exact: share_of_worker(1),
                ids: share_of_worker(1),
            },
            None => ThreadShares { sets: 0, bands: 0, exact: share_of_worker(6), ids: share_of_worker(2) },
        };
        let CorpusEstimate { decoded_bytes, records: texts } = expected(&inputs.files, &settings.limits)?;
        let (records, record_bytes) = (budget / 2, record_bytes(&settings.count_by));
        // A sample is inexact. A run that exceeds the limit by less than a factor of 2 is only
        // detected while it reads.
        if texts / 2 * record_bytes > records {
            return Err(Error::MemoryLimit {
                what: format!("dedup of about {texts} records, by a sample of its input"),
                needed_bytes: fixed_bytes + 2 * texts * record_bytes,
                allowed_bytes: settings.memory_bytes,
                setting: "--memory".into(),
            });
        }
        let keys = settings.near.map_or(0, |near| u64::from(near.bands.bands) * size_of::<BandRow>() as u64 * texts);
        let sets = settings.near.map_or(0, |_| decoded_bytes / WORD_BYTES * 4);
        let hashes = size_of::<ExactRow>() as u64 * texts;
        let most_buckets = (budget / 16 / (3 * BLOCK_BYTES as u64 * workers)).max(1);
        let buckets = keys.max(hashes).div_ceil(BUCKET_BYTES).clamp(1, most_buckets).next_power_of_two();
        let spilled_bytes = |bytes: u64, share: u64| bytes.saturating_sub(share * workers);
        let disk_bytes = spilled_bytes(sets, thread_shares.sets)
            + spilled_bytes(keys, thread_shares.bands)
            + spilled_bytes(hashes, thread_shares.exact);
        let total = fixed_bytes + texts * record_bytes + keys + sets + hashes;
        let prediction = Prediction {
            files: inputs.files.len(),
            file_bytes: inputs.files.iter().map(|file| file.stamp.bytes).sum(),
            decoded_bytes,
            memory_bytes: total.min(settings.memory_bytes),
            disk_bytes,
        };
        if disk_bytes > 0 {
            let free = free_bytes(&settings.spill, "--spill")?;
            // The prediction is inexact, so only a clear lack of space is an error.
            if free < disk_bytes / 2 {
                return Err(Error::DiskFull {
                    path: settings.spill.display().to_string(),
                    needed_bytes: disk_bytes,
                    cause: format!("{} free for the data that does not fit in memory", size(free)),
                    remedy: "set --spill to a folder on a larger disk, or --memory to a larger value".into(),
                });
            }
        }
        let pool = MemoryPool::new(settings.memory_bytes, &settings.spill, "--spill");
        let bounds = WorkBounds {
            row_bytes: ROW_BYTES,
            thread_bytes: budget / 16 / workers,
            hash_bytes: budget / 4,
            memory_bytes: settings.memory_bytes,
            pool: pool.clone(),
        };
        Ok(Budget {
            records,
            thread_shares,
            candidates: budget / 8 / workers,
            buckets: buckets as usize,
            bounds,
            pool,
            prediction,
        })
    }
}
