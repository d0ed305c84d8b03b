//! A corpus of texts becomes the same corpus without its duplicates.
//!
//! ```text
//!  files ──▶ batches of records ──▶ text ─┬─▶ hash of 128 bits ──▶ exact copies ─┐
//!   │        batches.rs             read.rs                        exact.rs      ├─▶ verdicts ──▶ write.rs
//!   │                                     └─▶ shingles, bands ──▶ star cover ────┘                 ▲
//!   │                                         minhash/            near.rs                          │
//!   └───────────────────────────────── read a second time, record by record ───────────────────────┘
//! ```
//!
//! Records are numbered in the order of the input: files by name, records by place; those of `against` come first. The
//! *order of keeping* puts them in the order of preference (`order.rs`), and all decisions are made in it, so threads
//! change nothing.
//!
//! # Memory
//! About 60 bytes a record; sets of shingles, keys of bands, hashes and ids go to the local disk beyond
//! their share (`budget.rs`).

mod annotate;
mod batches;
mod budget;
mod corpus;
mod exact;
mod inputs;
mod json_fields;
mod near;
mod order;
mod parquet_copy;
mod parquet_texts;
mod read;
mod report;
pub mod settings;
mod verdicts;
mod write;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::error::Result;
use crate::storage::location::Location;
use crate::storage::output;

pub use budget::Prediction;
pub use report::Summary;
use settings::Settings;

/// Removes the duplicates of a corpus; `tell` is told what is going to be done, and each surprise.
///
/// # Errors
/// Those of inputs, stores and limits; [`crate::error::Error::TooManyBad`] when a file has too many damaged records.
pub fn run(settings: &Settings, tell: &(dyn Fn(String) + Sync)) -> Result<Summary> {
    let folder = Location::parse(&settings.output)?;
    output::prepare(&folder)?;
    let mut laps = Laps::start();
    let inputs = inputs::find(settings, tell)?;
    let budget = budget::Budget::new(settings, &inputs)?;
    tell(budget.predicted.to_string());
    let mut corpus = read::read(settings, &inputs, &budget)?;
    laps.lap("reading");
    let order = order::Order::of(settings, &corpus)?;
    let copies = exact::copies(&mut corpus, &order, settings.workers)?;
    laps.lap("exact copies");
    let near = near::left_out(settings, &mut corpus, &order, &copies, &budget)?;
    laps.lap("near-duplicates");
    let verdicts = verdicts::Verdicts::new(&corpus, order, copies, near.left_out);
    let summary = report::Summary::new(settings, &inputs, &corpus, &verdicts, near.compared);
    write::write(settings, &folder, &inputs, &corpus, &verdicts, &summary, &mut laps)?;
    summary.surprises(settings).into_iter().for_each(tell);
    Ok(summary)
}

/// Seconds by step, in thousandths.
struct Laps {
    seconds: BTreeMap<String, f64>,
    start: Instant,
}

impl Laps {
    fn start() -> Laps {
        Laps { seconds: BTreeMap::new(), start: Instant::now() }
    }

    fn lap(&mut self, step: &str) {
        self.seconds.insert(step.into(), (self.start.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
        self.start = Instant::now();
    }
}

#[cfg(test)]
mod tests;
