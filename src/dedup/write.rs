//! Second pass: reads every file again and writes its kept records, followed by the tables, the
//! summary and the manifest.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use super::annotate::{self, RecordNote};
use super::batches::{LineBatches, RecordBatch, lines};
use super::corpus::Corpus;
use super::encode::{Coding, HEAD, OutputCompressor};
use super::inputs::{CorpusFile, CorpusFormat, Inputs, SUMMARY};
use super::parquet_copy;
use super::report::DedupSummary;
use super::settings::DedupSettings;
use super::verdicts::Verdicts;
use super::{Dedup, STAGES, exact::NONE};
use webtwin_base::error::{Error, Result};
use webtwin_base::progress::{Progress, StageTimes};
use webtwin_base::read_at::RandomAccess;
use webtwin_base::threads;
use webtwin_storage::manifest::{CORPUS_NAME, CORPUS_SIDE_FOLDER, FileEntry, Manifest};
use webtwin_storage::new_file::NewFile;
use webtwin_storage::open::open_pinned;
use webtwin_storage::output::{Attempt, random_id};
use webtwin_storage::table::{Table, TableColumn};
use webtwin_storage::table_encoder::{self, Encoding};
use webtwin_storage::texts::StringTable;

/// Number of rows of a table that are encoded together.
const GROUP_ROWS: usize = 1 << 17;

/// Approximate size of a table's file in bytes, after which a new file is begun.
const FILE_BYTES: usize = 64_000_000;

/// Writes the result and commits it.
///
/// # Errors
/// Returns any error of inputs and stores. Then no file is left behind.
pub(crate) fn write(
    dedup: &Dedup<'_>,
    corpus: &Corpus,
    verdicts: &Verdicts,
    summary: &DedupSummary,
    stage_times: &mut StageTimes,
) -> Result<()> {
    let Dedup { settings, folder, inputs, progress, .. } = dedup;
    let attempt = Attempt::new(folder, &random_id()?)?;
    let temporary = attempt.temporary();
    let write_files = || -> Result<Vec<FileEntry>> {
        let mut files = Output { settings, inputs, corpus, verdicts, progress, attempt: &attempt }.corpus_files()?;
        files.extend(write_removed(&attempt, inputs, corpus, verdicts)?);
        files.extend(write_rejected(&attempt, inputs, corpus)?);
        let text = serde_json::to_string_pretty(summary).expect("a summary is plain values") + "\n";
        attempt.put(SUMMARY, text.as_bytes())?;
        files.push(FileEntry::new(SUMMARY, None, text.as_bytes()));
        files.sort_unstable();
        Ok(files)
    };
    let files = write_files().inspect_err(|_| attempt.discard())?;
    stage_times.end_stage(STAGES[3]);
    // After the next call the attempt may be decided on, and then its files must stay.
    if let Some(temporary) = temporary {
        temporary.release();
    }
    manifest(settings, summary, stage_times, files, attempt.id()).commit_as(CORPUS_NAME, &attempt)
}

fn manifest(
    settings: &DedupSettings,
    summary: &DedupSummary,
    stage_times: &StageTimes,
    files: Vec<FileEntry>,
    attempt: &str,
) -> Manifest {
    let answer = settings.answer();
    let mut recipes = std::collections::BTreeMap::from([("exact".to_string(), "xxh3-128 of the text".to_string())]);
    if let Some(near_settings) = settings.near {
        recipes.insert("minhash".into(), near_settings.shingling.recipe());
    }
    let records = &summary.records;
    let counts =
        [("read", records.read), ("kept", records.kept), ("removed", records.removed), ("rejected", records.rejected)];
    Manifest {
        recipes,
        workers: settings.workers as u64,
        counts: counts.map(|(name, n)| (name.to_string(), n)).into(),
        seconds: stage_times.seconds.clone(),
        files,
        ..Manifest::new(attempt, answer)
    }
}

/// State that the writing threads share.
struct Output<'o> {
    settings: &'o DedupSettings,
    inputs: &'o Inputs,
    corpus: &'o Corpus,
    verdicts: &'o Verdicts,
    progress: &'o Progress,
    attempt: &'o Attempt,
}

impl Output<'_> {
    /// Writes the files of the corpus, each on one thread.
    fn corpus_files(&self) -> Result<Vec<FileEntry>> {
        let n_against = self.inputs.n_against;
        let count = self.inputs.files.len() - n_against;
        let outcomes = threads::for_each(self.settings.workers, count, Vec::new, |files, number| {
            let number = n_against + number;
            files.push(self.file(number as u32, &self.inputs.files[number])?);
            Ok(())
        })?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    fn file(&self, number: u32, file: &CorpusFile) -> Result<FileEntry> {
        let path = file.path.as_deref().ok_or_else(|| Error::Invariant(format!("{} has no path", file.name())))?;
        let output = self.attempt.create(path)?;
        let (encoder, rows) = match file.format {
            CorpusFormat::Jsonl(compression) => {
                let head = open_pinned(&file.location, &file.stamp)?.read_at(0, HEAD)?;
                // If there are fewer files than threads, each file gets several threads.
                let threads = self.settings.workers / (self.inputs.files.len() - self.inputs.n_against).max(1);
                let encoder = OutputCompressor::new(output, Coding::like(compression, &head), threads)?;
                (self.lines(number, file, encoder)?, None)
            }
            CorpusFormat::Parquet => {
                let (encoder, rows) = self.rows(number, file, output)?;
                self.progress.done.fetch_add(file.stamp.bytes, Ordering::Relaxed);
                (encoder, Some(rows))
            }
        };
        encoder.finish(rows)
    }

    /// Writes the lines of the kept records.
    fn lines(&self, number: u32, file: &CorpusFile, mut compressor: OutputCompressor) -> Result<NewFile> {
        let mut rows = self.rows_of(number);
        let mut next = rows.next();
        let names = annotate::names(self.settings);
        let mut batches = LineBatches::open(file, &self.settings.limits)?;
        let (mut row, mut notes) = (0, Vec::new());
        let failed = |cause: io::Error| write_failed(file.name(), cause);
        while let Some(batch) = batches.next()? {
            self.progress.done.fetch_add(batches.take_bytes_read(), Ordering::Relaxed);
            let bytes = match batch {
                RecordBatch::Lines { bytes, .. } => bytes,
                RecordBatch::TooLong { .. } => {
                    row += 1;
                    continue;
                }
                RecordBatch::Damaged { .. } | RecordBatch::Rows(_) => break,
            };
            self.progress.page_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            for line in lines(&bytes) {
                if let Some((_, record)) = next.filter(|(of_record, _)| *of_record == row) {
                    match &names {
                        Some(names) => {
                            notes.clear();
                            annotate::line(
                                line,
                                names,
                                &RecordNote::on(record, self.corpus, self.verdicts)?,
                                &mut notes,
                            );
                            compressor.write_all(&notes).map_err(failed)?;
                        }
                        None if self.verdicts.removal(record).is_none() => {
                            compressor.write_all(line).map_err(failed)?
                        }
                        None => {}
                    }
                    next = rows.next();
                }
                row += 1;
            }
        }
        if next.is_some() {
            return Err(Error::input(file.name(), "the file changed while it was read; run again"));
        }
        compressor.finish().map_err(failed)
    }

    /// Writes the kept rows of a table.
    fn rows(&self, number: u32, file: &CorpusFile, new_file: NewFile) -> Result<(NewFile, u64)> {
        let total = self.corpus.of_file(number).iter().map(|batch| batch.first_row).max();
        let mut records =
            vec![NONE; total.map_or(0, |_| self.rows_of(number).map(|(row, _)| row + 1).max().unwrap_or(0)) as usize];
        self.rows_of(number).for_each(|(row, record)| records[row as usize] = record);
        let record = |row: u64| records.get(row as usize).copied().filter(|record| *record != NONE);
        let annotates = self.settings.annotate.is_some();
        let is_kept = |row: u64| record(row).is_some_and(|record| annotates || self.verdicts.removal(record).is_none());
        let note = |row: u64| match record(row) {
            Some(record) => RecordNote::on(record, self.corpus, self.verdicts),
            None => Err(Error::Invariant(format!("{} has a row {row} that was not read", file.name()))),
        };
        let names = annotate::names(self.settings);
        let notes = names.as_ref().map(|names| (names, &note as &dyn Fn(u64) -> Result<RecordNote>));
        parquet_copy::copy(file, &parquet_copy::RowActions { is_kept: &is_kept, notes }, new_file)
    }

    /// Returns the row and the number of each record of a file.
    fn rows_of(&self, file: u32) -> impl Iterator<Item = (u64, u32)> + '_ {
        let first_numbers = |batch: &'_ super::corpus::BatchRecords| (batch.first_row, batch.first);
        self.corpus.of_file(file).iter().flat_map(move |batch| {
            let (first_row, first) = first_numbers(batch);
            batch.records.iter().zip(first..).map(move |(at, record)| (first_row + u64::from(at.row), record))
        })
    }
}

fn write_failed(name: &str, cause: io::Error) -> Error {
    let text = cause.to_string();
    match cause.into_inner().map(|inner| inner.downcast::<Error>()) {
        Some(Ok(error)) => *error,
        _ => Error::storage(name, text),
    }
}

/// Writes the table `removed`: one row for each removed record, by file and row.
fn write_removed(attempt: &Attempt, inputs: &Inputs, corpus: &Corpus, verdicts: &Verdicts) -> Result<Vec<FileEntry>> {
    let name = |file: u32| inputs.files[file as usize].name().to_string();
    let removed_records =
        (corpus.against()..corpus.count()).filter_map(|record| Some((record, verdicts.removal(record)?)));
    let mut rows = removed_records.peekable();
    let mut files = Parts::new(attempt, "removed");
    while files.is_empty() || rows.peek().is_some() {
        let group: Vec<_> = rows.by_ref().take(GROUP_ROWS).collect();
        let kept_of = |row: &(u32, super::verdicts::RemovedRecord)| row.1.kept_record;
        let ids = |number_of: &dyn Fn(&(u32, super::verdicts::RemovedRecord)) -> u32| -> Result<TableColumn> {
            group.iter().map(|row| corpus.id(number_of(row))).collect::<Result<StringTable>>().map(TableColumn::Text)
        };
        let places = |number_of: &dyn Fn(&(u32, super::verdicts::RemovedRecord)) -> u32| -> (TableColumn, TableColumn) {
            let (files, rows) =
                group.iter().map(|row| corpus.place(number_of(row))).map(|(file, row)| (name(file), row)).unzip();
            (TableColumn::Text(files), TableColumn::Count(rows))
        };
        let ((file, row), (kept_file, kept_row)) = (places(&|row| row.0), places(&kept_of));
        let table = Table::new([
            ("id", ids(&|row| row.0)?),
            ("file", file),
            ("row", row),
            ("kept_id", ids(&kept_of)?),
            ("kept_file", kept_file),
            ("kept_row", kept_row),
            ("why", TableColumn::Text(group.iter().map(|row| row.1.why.as_str().to_string()).collect())),
            ("similarity", TableColumn::F64(group.iter().map(|row| row.1.similarity).collect())),
        ]);
        files.write(&table)?;
    }
    files.finish()
}

/// Writes the table `rejected`, in the form that the main job uses.
fn write_rejected(attempt: &Attempt, inputs: &Inputs, corpus: &Corpus) -> Result<Vec<FileEntry>> {
    let mut rows = corpus.rejections.iter().filter(|row| row.file as usize >= inputs.n_against).peekable();
    let mut files = Parts::new(attempt, "rejected");
    while files.is_empty() || rows.peek().is_some() {
        let group: Vec<_> = rows.by_ref().take(GROUP_ROWS).collect();
        let source = |row: &&super::corpus::CorpusRejection| inputs.files[row.file as usize].name().to_string();
        let table = Table::new([
            ("source", TableColumn::Text(group.iter().map(source).collect())),
            ("offset", TableColumn::Count(group.iter().map(|row| row.offset).collect())),
            ("reason", TableColumn::Text(group.iter().map(|row| row.reason.as_str().to_string()).collect())),
            ("detail", TableColumn::Text(group.iter().map(|row| row.detail.clone()).collect())),
        ]);
        files.write(&table)?;
    }
    files.finish()
}

/// Files of a table, which are written row by row.
struct Parts<'a> {
    attempt: &'a Attempt,
    name: &'static str,
    files: Vec<FileEntry>,
    /// Encoder of the current file, and its number of rows.
    open: Option<(table_encoder::TableEncoder, u64)>,
}

impl<'a> Parts<'a> {
    fn new(attempt: &'a Attempt, name: &'static str) -> Parts<'a> {
        Parts { attempt, name, files: Vec::new(), open: None }
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.open.is_none()
    }

    fn write(&mut self, rows: &Table) -> Result<()> {
        let (mut encoder, n_before) = match self.open.take() {
            Some(open) => open,
            None => (table_encoder::TableEncoder::new(&Encoding::from_table(rows)?)?, 0),
        };
        encoder.write(rows)?;
        let is_full = encoder.len() >= FILE_BYTES;
        self.open = Some((encoder, n_before + rows.rows() as u64));
        if is_full { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        let Some((encoder, rows)) = self.open.take() else { return Ok(()) };
        let path = format!("{CORPUS_SIDE_FOLDER}{}/part-{:05}", self.name, self.files.len());
        let bytes = encoder.finish()?;
        self.attempt.put(&path, &bytes)?;
        self.files.push(FileEntry::new(&path, Some(rows), &bytes));
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<FileEntry>> {
        self.close()?;
        Ok(self.files)
    }
}
