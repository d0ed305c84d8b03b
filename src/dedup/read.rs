//! First pass: reads every record, and keeps the data that decisions are based on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::budget::Budget;
use super::corpus::{Corpus, CorpusRejection, Worker, record_bytes};
use super::fields::required_fields;
use super::inputs::{CorpusFormat, Inputs};
use super::reader::{FileProgress, ReaderState, ThreadTally, panicked, work};
use super::resume::Checkpoints;
use super::settings::DedupSettings;
use webtwin_base::error::Result;
use webtwin_base::progress::Progress;
use webtwin_base::threads;
use webtwin_core::minhash::candidates;
use webtwin_pages::damage::Damage;

/// Reads all files.
///
/// # Errors
/// Returns any error of inputs and stores, [`webtwin_base::error::Error::TooManyBad`] if a file has
/// too many damaged records, and [`webtwin_base::error::Error::MemoryLimit`] if the records do not
/// fit in memory.
///
/// # Cost
/// One pass over the input. [`Budget`] describes the memory.
pub(crate) fn read(
    settings: &DedupSettings,
    inputs: &Inputs,
    budget: &Budget,
    checkpoints: Option<&Checkpoints>,
    progress: &Progress,
) -> Result<Corpus> {
    let state = ReaderState {
        settings,
        checkpoints,
        progress,
        query: required_fields(settings),
        files: inputs.files.iter().map(|file| (file, Mutex::new(FileProgress::NotOpened))).collect(),
        max_records: (budget.records / record_bytes(&settings.count_by)).min(u64::from(candidates::MAX_TEXTS)),
        arrivals: AtomicU32::new(0),
        stop: AtomicBool::new(false),
    };
    let results: Vec<Result<(Worker, ThreadTally)>> = std::thread::scope(|scope| -> Result<_> {
        let state = &state;
        let started: Result<Vec<_>> =
            (0..settings.workers as u32).map(|me| threads::start_in(scope, move || work(me, state, budget))).collect();
        // If a thread cannot be started, those that run must end before the scope joins them.
        let threads = started.inspect_err(|_| state.stop.store(true, Ordering::Relaxed))?;
        Ok(threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect())
    })?;
    let mut corpus = Corpus {
        files: inputs.files.clone(),
        n_against_files: inputs.n_against,
        batches: Vec::new(),
        first_records: vec![0; state.arrivals.into_inner() as usize],
        workers: Vec::new(),
        rejections: Vec::new(),
        empty: 0,
        n_without_id: 0,
        n_without_key: 0,
    };
    let mut damage = Vec::new();
    for result in results {
        let (worker, tally) = result?;
        corpus.workers.push(worker);
        corpus.batches.extend(tally.batches);
        damage.extend(tally.rejections);
        corpus.empty += tally.empty;
        corpus.n_without_id += tally.n_without_id;
        corpus.n_without_key += tally.n_without_key;
    }
    // Batches arrive in any order, so rows and records are numbered after sorting.
    corpus.batches.sort_unstable_by_key(|batch| (batch.file, batch.number));
    let (mut first, mut last_batch) = (0, (u32::MAX, 0));
    let mut rejections = Vec::with_capacity(damage.len());
    damage.sort_unstable_by_key(|(number, rejection): &(u32, CorpusRejection)| {
        (rejection.file, *number, rejection.offset)
    });
    let mut damage = damage.into_iter().peekable();
    for batch in &mut corpus.batches {
        batch.first_row = if last_batch.0 == batch.file { last_batch.1 } else { 0 };
        last_batch = (batch.file, batch.first_row + batch.rows);
        batch.first = first;
        first += batch.records.len() as u32;
        corpus.first_records[batch.arrival_number as usize] = batch.first;
        // Rows of a table are counted from the beginning of the file, not of the batch.
        let is_table = inputs.files[batch.file as usize].format == CorpusFormat::Parquet;
        let is_of_batch =
            |(number, rejection): &(u32, CorpusRejection)| (rejection.file, *number) == (batch.file, batch.number);
        while let Some((_, mut rejection)) = damage.next_if(is_of_batch) {
            rejection.offset += if is_table { batch.first_row } else { 0 };
            rejections.push(rejection);
        }
    }
    corpus.rejections = rejections;
    check_against_max_bad(&corpus, settings.max_bad)?;
    Ok(corpus)
}

/// Returns an error for the first file with too much damage.
fn check_against_max_bad(corpus: &Corpus, max_bad: f64) -> Result<()> {
    corpus.rejections.chunk_by(|x, y| x.file == y.file).try_for_each(|rejections| {
        let file = &corpus.files[rejections[0].file as usize];
        let records = corpus.of_file(rejections[0].file).iter().map(|batch| batch.records.len() as u64).sum();
        let mut damage = Damage { records, pages: records, ..Damage::default() };
        for CorpusRejection { offset, reason, detail, lost: lost_bytes, .. } in rejections {
            damage.add_bad((*offset, *reason, detail.clone()), *lost_bytes);
        }
        damage.check_against(max_bad, file.name(), file.stamp.bytes)
    })
}
