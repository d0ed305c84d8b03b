//! Checkpoints: the prints of whole files on the local disk. With them an interrupted run that is
//! started again does not have to read these files again for the comparison.
//!
//! A checkpoint belongs to a file of the input by its name and version, and to the settings that
//! the result depends on. It gets its name after all batches of its file have been written. The
//! comparison and the writing are always repeated: their output is as large as the corpus, and
//! neither can be resumed in the middle.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_seed};

use super::batch_prints::BatchPrints;
use super::inputs::{CorpusFile, Inputs};
use super::settings::DedupSettings;
use webtwin_base::error::{Error, Result};
use webtwin_storage::location::Location;
use webtwin_storage::records::{RecordStore, SavedRecords, folder_below};
use webtwin_storage::step_records::{StepRecord, StepRecords, StepStamp};

/// Name of the step in the file names of checkpoints.
const STEP: &str = "read";

/// Checkpoints of a run, which its threads share.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    records: SavedRecords,
    files: Vec<Checkpoint>,
    restored: AtomicUsize,
    recorded: AtomicUsize,
    /// True after a checkpoint could not be written. Then no more are written.
    gave_up: AtomicBool,
}

/// Checkpoint of a file.
#[derive(Debug)]
struct Checkpoint {
    steps: StepRecords,
    stamp: StepStamp,
    recording: Mutex<Option<Recording>>,
}

/// Checkpoint that is being written.
#[derive(Debug)]
struct Recording {
    record: StepRecord,
    n_written: u32,
    /// Number of batches, once the file has been read to its end.
    batches: Option<u32>,
}

/// Returns the folder for the checkpoints of a run.
///
/// # Errors
/// Returns the errors of [`folder_below`].
pub fn folder(settings: &DedupSettings, output: &Location) -> Result<PathBuf> {
    let root = settings.records.as_deref().map(Location::parse).transpose()?;
    let digest = format!("{:016x}", xxh3_64(settings.answer().to_string().as_bytes()));
    folder_below(root.as_ref().unwrap_or(output), &digest, "--records DIR")
}

impl Checkpoints {
    /// Opens the checkpoints in a folder, which is created if it is missing.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub(crate) fn open(folder: &Path, settings: &DedupSettings, inputs: &Inputs) -> Result<Checkpoints> {
        let mut answer = settings.answer().to_string();
        if let Some(near_settings) = settings.near {
            answer += &near_settings.shingling.recipe();
        }
        let digest = [xxh3_128(answer.as_bytes()), xxh3_128_with_seed(answer.as_bytes(), 1)];
        let records =
            SavedRecords::open(folder, bytemuck::cast(digest), webtwin_base::build_info::version(), Vec::new())?;
        let count = inputs.files.len();
        let checkpoint = |(number, file): (usize, &CorpusFile)| {
            let steps = records.steps(number, count)?;
            let identity =
                format!("{}\n{}\n{}\n{}", file.name(), file.stamp.bytes, file.stamp.version, file.format.name());
            Some(Checkpoint {
                steps,
                stamp: StepStamp { input_digest: xxh3_64(identity.as_bytes()), run: 0 },
                recording: Mutex::default(),
            })
        };
        let files = inputs.files.iter().enumerate().filter_map(checkpoint).collect();
        let (restored, recorded, gave_up) = Default::default();
        Ok(Checkpoints { records, files, restored, recorded, gave_up })
    }

    /// Opens the checkpoint of a file. Returns `None` if there is no intact one for this version of
    /// the file.
    pub(crate) fn find(&self, file: usize) -> Option<impl Read + use<>> {
        let Checkpoint { steps, stamp, .. } = &self.files[file];
        let record = (steps.stamp(STEP)? == *stamp).then(|| steps.read(STEP).ok())??;
        self.restored.fetch_add(1, Ordering::Relaxed);
        Some(record)
    }

    /// Returns the error for a checkpoint that was intact when it was found but cannot be read.
    pub(crate) fn unreadable(&self, cause: io::Error) -> Error {
        Error::storage(self.records.folder().to_string_lossy(), cause)
    }

    /// Adds the prints of a batch to the checkpoint of its file.
    pub(crate) fn add(&self, file: usize, prints: &BatchPrints) {
        self.record(file, |recording| {
            recording.n_written += 1;
            prints.encode(&mut recording.record).is_ok()
        });
    }

    /// Records that a file has been read to its end and has the given number of batches.
    pub(crate) fn end(&self, file: usize, batches: u32) {
        self.record(file, |recording| {
            recording.batches = Some(batches);
            true
        });
    }

    /// Applies `change` to the checkpoint of a file, and finishes the checkpoint if it is complete.
    /// If that fails, the run continues without checkpoints.
    fn record(&self, file: usize, change: impl FnOnce(&mut Recording) -> bool) {
        let Checkpoint { steps, stamp, recording } = &self.files[file];
        let mut place = recording.lock().unwrap_or_else(PoisonError::into_inner);
        if self.gave_up.load(Ordering::Relaxed) {
            *place = None;
            return;
        }
        let step_recording = place.take().map_or_else(|| steps.begin(STEP, *stamp).map(Recording::of), Ok);
        let is_recorded = match step_recording {
            Ok(mut recording) => change(&mut recording) && self.put_back(recording, &mut place),
            Err(_) => false,
        };
        if !is_recorded {
            self.gave_up.store(true, Ordering::Relaxed);
        }
    }

    /// Finishes a checkpoint that has all batches, and stores any other for the next call. Returns
    /// false if finishing fails.
    fn put_back(&self, recording: Recording, place: &mut Option<Recording>) -> bool {
        if recording.batches != Some(recording.n_written) {
            *place = Some(recording);
            return true;
        }
        let is_whole = recording.record.finish().is_ok();
        self.recorded.fetch_add(usize::from(is_whole), Ordering::Relaxed);
        is_whole
    }

    /// Describes the restored and the written checkpoints.
    pub(crate) fn report(&self) -> String {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let folder = self.records.folder().display();
        let end = match self.gave_up.load(Ordering::Relaxed) {
            true => format!("; no more checkpoints were saved, because {folder} cannot be written"),
            false => String::new(),
        };
        format!(
            "resume: {} of {} files restored from checkpoints in {folder}, {} saved{end}",
            count(&self.restored),
            self.files.len(),
            count(&self.recorded)
        )
    }

    /// Removes all checkpoints, after the result has been committed.
    pub(crate) fn remove(&self) {
        self.records.remove();
    }
}

impl Recording {
    fn of(record: StepRecord) -> Recording {
        Recording { record, n_written: 0, batches: None }
    }
}
