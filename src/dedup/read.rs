//! First pass: reads every record, and keeps the data that decisions are based on.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::budget::Budget;
use super::corpus::{Corpus, CorpusRejection, Worker, record_bytes};
use super::fields::wanted;
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
    let shared = ReaderState {
        settings,
        checkpoints,
        progress,
        wanted: wanted(settings),
        files: inputs.files.iter().map(|file| (file, Mutex::new(FileProgress::Ahead))).collect(),
        most_records: (budget.records / record_bytes(&settings.count_by)).min(u64::from(candidates::MAX_TEXTS)),
        arrivals: AtomicU32::new(0),
        stop: AtomicBool::new(false),
    };
    let done: Vec<Result<(Worker, ThreadTally)>> = std::thread::scope(|scope| -> Result<_> {
        let shared = &shared;
        let started: Result<Vec<_>> =
            (0..settings.workers as u32).map(|me| threads::start_in(scope, move || work(me, shared, budget))).collect();
        // If a thread cannot be started, those that run must end before the scope joins them.
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
    // Batches arrive in any order, so rows and records are numbered after sorting.
    corpus.batches.sort_unstable_by_key(|batch| (batch.file, batch.number));
    let (mut first, mut before) = (0, (u32::MAX, 0));
    let mut rejections = Vec::with_capacity(damage.len());
    damage.sort_unstable_by_key(|(number, rejection): &(u32, CorpusRejection)| {
        (rejection.file, *number, rejection.offset)
    });
    let mut damage = damage.into_iter().peekable();
    for batch in &mut corpus.batches {
        batch.first_row = if before.0 == batch.file { before.1 } else { 0 };
        before = (batch.file, batch.first_row + batch.rows);
        batch.first = first;
        first += batch.records.len() as u32;
        corpus.first_of_arrival[batch.arrival as usize] = batch.first;
        // Rows of a table are counted from the beginning of the file, not of the batch.
        let is_table = inputs.files[batch.file as usize].format == CorpusFormat::Parquet;
        let of_batch =
            |(number, rejection): &(u32, CorpusRejection)| (rejection.file, *number) == (batch.file, batch.number);
        while let Some((_, mut rejection)) = damage.next_if(of_batch) {
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
    corpus.rejections.chunk_by(|x, y| x.file == y.file).try_for_each(|of_file| {
        let file = &corpus.files[of_file[0].file as usize];
        let records = corpus.of_file(of_file[0].file).iter().map(|batch| batch.records.len() as u64).sum();
        let mut damage = Damage { records, pages: records, ..Damage::default() };
        for CorpusRejection { offset, reason, detail, lost, .. } in of_file {
            damage.add_bad((*offset, *reason, detail.clone()), *lost);
        }
        damage.check_against(max_bad, file.name(), file.stamp.bytes)
    })
}
