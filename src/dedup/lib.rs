//! Deduplication of a corpus of texts: writes the same corpus without its duplicates.
//!
//! ```text
//!  files ──▶ batches ──▶ text ─┬─▶ hash of 128 bits ──▶ exact copies ─┐
//!   │        batches.rs  reader.rs                      exact.rs      ├─▶ verdicts ──▶ write.rs
//!   │                          └─▶ shingles, bands ──▶ star cover ────┘                 ▲
//!   │                              minhash/            near.rs                          │
//!   └────────────────────── read a second time, record by record ───────────────────────┘
//! ```
//!
//! Records are numbered in the order of the input: files by name, and records by position. Those of
//! `against` come first. The *order of keeping* sorts them by preference (`order.rs`). All
//! decisions are made in this order, so the number of threads does not change the result.
//!
//! With checkpoints (`resume.rs`), a file that an interrupted run has read is not read again for
//! the comparison.
//!
//! # Memory
//! About 60 bytes for each record. Sets of shingles, keys of bands, hashes and ids beyond their
//! budgets are on the local disk (`budget.rs`).

pub mod again;
mod annotate;
mod batch_prints;
mod batches;
mod buckets;
mod budget;
mod corpus;
mod counts;
mod encode;
mod exact;
pub mod explained;
mod fields;
mod inputs;
mod near;
mod order;
mod parquet_copy;
mod parquet_encodings;
mod parquet_texts;
mod read;
mod reader;
mod record;
mod report;
mod resume;
mod sample;
pub mod settings;
mod verdicts;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use webtwin_base::error::Result;
use webtwin_base::progress::{Progress, StageTimes};
use webtwin_storage::location::Location;
use webtwin_storage::output;

pub use budget::Prediction;
pub use counts::ValueCounts;
pub use fields::MAX_COUNTED_FIELDS;
pub use report::DedupSummary;
use resume::Checkpoints;
pub use resume::folder as checkpoint_folder;
use settings::DedupSettings;

/// Stages of a run, in order. The first and the last one read the input.
pub const STAGES: [&str; 4] = ["reading", "exact copies", "near-duplicates", "writing"];

/// Deduplication of a corpus whose files have been found. By all estimates before reading, it fits
/// in memory.
pub struct Dedup<'s> {
    settings: &'s DedupSettings,
    folder: Location,
    inputs: inputs::Inputs,
    budget: budget::Budget,
    checkpoints: Option<Checkpoints>,
    /// Progress of the run, in bytes of files.
    pub progress: Arc<Progress>,
}

impl<'s> Dedup<'s> {
    /// Finds the corpus. The predicted resources and the skipped files are reported with `notify`.
    ///
    /// # Errors
    /// Returns the errors of inputs, of an output folder that is not writable, and of limits.
    pub fn find(settings: &'s DedupSettings, notify: &dyn Fn(String)) -> Result<Dedup<'s>> {
        let folder = Location::parse(&settings.output)?;
        output::prepare(&folder)?;
        let inputs = inputs::find(settings, notify)?;
        let budget = budget::Budget::new(settings, &inputs)?;
        notify(budget.prediction.to_string());
        let progress = Arc::new(Progress::new(budget.prediction.file_bytes));
        Ok(Dedup { settings, folder, inputs, budget, checkpoints: None, progress })
    }

    /// Restores the checkpoints in a folder, and adds new ones to it.
    ///
    /// # Errors
    /// Returns any error of the disk.
    pub fn resume(self, checkpoints: &Path) -> Result<Dedup<'s>> {
        let checkpoints = Checkpoints::open(checkpoints, self.settings, &self.inputs)?;
        Ok(Dedup { checkpoints: Some(checkpoints), ..self })
    }

    /// Describes the restored checkpoints, if checkpoints are enabled.
    pub fn resumed(&self) -> Option<String> {
        self.checkpoints.as_ref().map(Checkpoints::report)
    }

    /// Removes the duplicates, and writes the result.
    ///
    /// # Errors
    /// Returns the errors of inputs, stores and limits, and
    /// [`webtwin_base::error::Error::TooManyBad`] if a file has too many damaged records.
    pub fn run(&self) -> Result<DedupSummary> {
        let Dedup { settings, inputs, budget, checkpoints, progress, .. } = self;
        let [reading, exact_copies, near_duplicates, writing] = STAGES;
        let mut stage_times = StageTimes::start();
        let mut corpus = read::read(settings, inputs, budget, checkpoints.as_ref(), progress)?;
        stage_times.end_stage(reading);
        progress.enter(exact_copies);
        let order = order::Order::determine(settings, &corpus)?;
        let copies = exact::copies(&mut corpus, &order, &budget.bounds, settings.workers)?;
        stage_times.end_stage(exact_copies);
        progress.enter(near_duplicates);
        let near_copies = near::left_out(settings, &mut corpus, &order, &copies, budget)?;
        stage_times.end_stage(near_duplicates);
        progress.read_again(writing);
        // The second pass does not read the files of `against`.
        let against_bytes: u64 = inputs.files[..inputs.n_against].iter().map(|file| file.stamp.bytes).sum();
        progress.done.store(against_bytes, Ordering::Relaxed);
        // The writer needs memory for compression, and disk space.
        corpus.keep_ids_only();
        let verdicts = verdicts::Verdicts::new(&corpus, order, copies, near_copies.dropped_texts);
        let summary = report::DedupSummary::new(settings, inputs, &corpus, &verdicts, near_copies.n_comparisons)?;
        write::write(self, &corpus, &verdicts, &summary, &mut stage_times)?;
        checkpoints.iter().for_each(Checkpoints::remove);
        Ok(summary)
    }
}

#[cfg(test)]
mod tests;
