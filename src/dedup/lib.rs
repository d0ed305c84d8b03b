//! A corpus of texts becomes the same corpus without its duplicates.
//!
//! ```text
//!  files ──▶ batches of records ──▶ text ─┬─▶ hash of 128 bits ──▶ exact copies ─┐
//!   │        batches.rs             reader.rs                      exact.rs      ├─▶ verdicts ──▶ write.rs
//!   │                                     └─▶ shingles, bands ──▶ star cover ────┘                 ▲
//!   │                                         minhash/            near.rs                          │
//!   └───────────────────────────────── read a second time, record by record ───────────────────────┘
//! ```
//!
//! Records are numbered in the order of the input: files by name, records by place; those of `against` come first. The
//! *order of keeping* puts them in the order of preference (`order.rs`), and all decisions are made in it, so threads
//! change nothing.
//!
//! With checkpoints (`resume.rs`) a file that an interrupted run has read is not read again for the comparison.
//!
//! # Memory
//! About 60 bytes a record; sets of shingles, keys of bands, hashes and ids go to the local disk beyond
//! their share (`budget.rs`).

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
use webtwin_base::progress::{Laps, Progress};
use webtwin_storage::location::Location;
use webtwin_storage::output;

pub use budget::Prediction;
pub use counts::ValueCounts;
pub use fields::MOST_COUNTED;
pub use report::Summary;
use resume::Checkpoints;
pub use resume::folder as checkpoint_folder;
use settings::Settings;

/// The stages of a run, in order. The first and the last read the input.
pub const STAGES: [&str; 4] = ["reading", "exact copies", "near-duplicates", "writing"];

/// A corpus that has been found, and has room in memory by all that can be told before it is read.
pub struct Dedup<'s> {
    settings: &'s Settings,
    folder: Location,
    inputs: inputs::Inputs,
    budget: budget::Budget,
    checkpoints: Option<Checkpoints>,
    /// How far the run is, by bytes of files.
    pub progress: Arc<Progress>,
}

impl<'s> Dedup<'s> {
    /// Finds the corpus; `tell` is told what is going to be done, and what is passed over.
    ///
    /// # Errors
    /// Those of inputs, of a folder that cannot be written, and of limits.
    pub fn find(settings: &'s Settings, tell: &dyn Fn(String)) -> Result<Dedup<'s>> {
        let folder = Location::parse(&settings.output)?;
        output::prepare(&folder)?;
        let inputs = inputs::find(settings, tell)?;
        let budget = budget::Budget::new(settings, &inputs)?;
        tell(budget.predicted.to_string());
        let progress = Arc::new(Progress::new(budget.predicted.file_bytes));
        Ok(Dedup { settings, folder, inputs, budget, checkpoints: None, progress })
    }

    /// Goes on from the checkpoints in a folder, and adds to them.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn resume(self, checkpoints: &Path) -> Result<Dedup<'s>> {
        let checkpoints = Checkpoints::open(checkpoints, self.settings, &self.inputs)?;
        Ok(Dedup { checkpoints: Some(checkpoints), ..self })
    }

    /// Describes what was taken from checkpoints, if there are any.
    pub fn resumed(&self) -> Option<String> {
        self.checkpoints.as_ref().map(Checkpoints::report)
    }

    /// Removes the duplicates, and writes the result.
    ///
    /// # Errors
    /// Those of inputs, stores and limits; [`webtwin_base::error::Error::TooManyBad`] when a file has too many damaged records.
    pub fn run(&self) -> Result<Summary> {
        let Dedup { settings, inputs, budget, checkpoints, progress, .. } = self;
        let [reading, exact_copies, near_duplicates, writing] = STAGES;
        let mut laps = Laps::start();
        let mut corpus = read::read(settings, inputs, budget, checkpoints.as_ref(), progress)?;
        laps.lap(reading);
        progress.enter(exact_copies);
        let order = order::Order::of(settings, &corpus)?;
        let copies = exact::copies(&mut corpus, &order, &budget.bounds, settings.workers)?;
        laps.lap(exact_copies);
        progress.enter(near_duplicates);
        let near = near::left_out(settings, &mut corpus, &order, &copies, budget)?;
        laps.lap(near_duplicates);
        progress.read_again(writing);
        // The files of `against` are not read again.
        let against: u64 = inputs.files[..inputs.against].iter().map(|file| file.stamp.bytes).sum();
        progress.done.store(against, Ordering::Relaxed);
        // The output needs memory, to be compressed, and disk.
        corpus.keep_ids_only();
        let verdicts = verdicts::Verdicts::new(&corpus, order, copies, near.left_out);
        let summary = report::Summary::new(settings, inputs, &corpus, &verdicts, near.compared)?;
        write::write(self, &corpus, &verdicts, &summary, &mut laps)?;
        checkpoints.iter().for_each(Checkpoints::remove);
        Ok(summary)
    }
}

#[cfg(test)]
mod tests;
