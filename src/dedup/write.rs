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
    let staged = || -> Result<Vec<FileEntry>> {
        let mut files = Output { settings, inputs, corpus, verdicts, progress, attempt: &attempt }.corpus_files()?;
        files.extend(removed(&attempt, inputs, corpus, verdicts)?);
        files.extend(rejected(&attempt, inputs, corpus)?);
        let text = serde_json::to_string_pretty(summary).expect("a summary is plain values") + "\n";
        attempt.put(SUMMARY, text.as_bytes())?;
        files.push(FileEntry::new(SUMMARY, None, text.as_bytes()));
        files.sort_unstable();
        Ok(files)
    };
    let files = staged().inspect_err(|_| attempt.discard())?;
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
    if let Some(near) = settings.near {
        recipes.insert("minhash".into(), near.shingling.recipe());
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
        let against = self.inputs.against;
        let count = self.inputs.files.len() - against;
        let written = threads::for_each(self.settings.workers, count, Vec::new, |written, number| {
            let number = against + number;
            written.push(self.file(number as u32, &self.inputs.files[number])?);
            Ok(())
        })?;
        Ok(written.into_iter().flatten().collect())
    }

    fn file(&self, number: u32, file: &CorpusFile) -> Result<FileEntry> {
        let path = file.path.as_deref().ok_or_else(|| Error::Invariant(format!("{} has no path", file.name())))?;
        let out = self.attempt.create(path)?;
        let (out, rows) = match file.format {
            CorpusFormat::Jsonl(compression) => {
                let head = open_pinned(&file.location, &file.stamp)?.read_at(0, HEAD)?;
                // If there are fewer files than threads, each file gets several threads.
                let threads = self.settings.workers / (self.inputs.files.len() - self.inputs.against).max(1);
                let out = OutputCompressor::new(out, Coding::like(compression, &head), threads)?;
                (self.lines(number, file, out)?, None)
            }
            CorpusFormat::Parquet => {
                let (out, rows) = self.rows(number, file, out)?;
                self.progress.done.fetch_add(file.stamp.bytes, Ordering::Relaxed);
                (out, Some(rows))
            }
        };
        out.finish(rows)
    }

    /// Writes the lines of the kept records.
    fn lines(&self, number: u32, file: &CorpusFile, mut out: OutputCompressor) -> Result<NewFile> {
        let mut rows = self.rows_of(number);
        let mut next = rows.next();
        let names = annotate::names(self.settings);
        let mut batches = LineBatches::open(file, &self.settings.limits)?;
        let (mut row, mut noted) = (0, Vec::new());
        let failed = |cause: io::Error| write_failed(file.name(), cause);
        while let Some(batch) = batches.next()? {
            self.progress.done.fetch_add(batches.taken(), Ordering::Relaxed);
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
                            noted.clear();
                            annotate::line(
                                line,
                                names,
                                &RecordNote::on(record, self.corpus, self.verdicts)?,
                                &mut noted,
                            );
                            out.write_all(&noted).map_err(failed)?;
                        }
                        None if self.verdicts.removal(record).is_none() => out.write_all(line).map_err(failed)?,
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
        out.finish().map_err(failed)
    }

    /// Writes the kept rows of a table.
    fn rows(&self, number: u32, file: &CorpusFile, out: NewFile) -> Result<(NewFile, u64)> {
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
        parquet_copy::copy(file, &parquet_copy::RowActions { is_kept: &is_kept, notes }, out)
    }

    /// Returns the row and the number of each record of a file.
    fn rows_of(&self, file: u32) -> impl Iterator<Item = (u64, u32)> + '_ {
        let of_batch = |batch: &'_ super::corpus::BatchRecords| (batch.first_row, batch.first);
        self.corpus.of_file(file).iter().flat_map(move |batch| {
            let (first_row, first) = of_batch(batch);
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
fn removed(attempt: &Attempt, inputs: &Inputs, corpus: &Corpus, verdicts: &Verdicts) -> Result<Vec<FileEntry>> {
    let name = |file: u32| inputs.files[file as usize].name().to_string();
    let of_input = (corpus.against()..corpus.count()).filter_map(|record| Some((record, verdicts.removal(record)?)));
    let mut rows = of_input.peekable();
    let mut files = Parts::new(attempt, "removed");
    while files.is_empty() || rows.peek().is_some() {
        let some: Vec<_> = rows.by_ref().take(GROUP_ROWS).collect();
        let kept = |row: &(u32, super::verdicts::RemovedRecord)| row.1.kept;
        let ids = |of: &dyn Fn(&(u32, super::verdicts::RemovedRecord)) -> u32| -> Result<TableColumn> {
            some.iter().map(|row| corpus.id(of(row))).collect::<Result<StringTable>>().map(TableColumn::Text)
        };
        let places = |of: &dyn Fn(&(u32, super::verdicts::RemovedRecord)) -> u32| -> (TableColumn, TableColumn) {
            let (files, rows) =
                some.iter().map(|row| corpus.place(of(row))).map(|(file, row)| (name(file), row)).unzip();
            (TableColumn::Text(files), TableColumn::Count(rows))
        };
        let ((file, row), (kept_file, kept_row)) = (places(&|row| row.0), places(&kept));
        let table = Table::new([
            ("id", ids(&|row| row.0)?),
            ("file", file),
            ("row", row),
            ("kept_id", ids(&kept)?),
            ("kept_file", kept_file),
            ("kept_row", kept_row),
            ("why", TableColumn::Text(some.iter().map(|row| row.1.why.as_str().to_string()).collect())),
            ("similarity", TableColumn::F64(some.iter().map(|row| row.1.similarity).collect())),
        ]);
        files.write(&table)?;
    }
    files.finish()
}

/// Writes the table `rejected`, in the form that the main job uses.
fn rejected(attempt: &Attempt, inputs: &Inputs, corpus: &Corpus) -> Result<Vec<FileEntry>> {
    let mut rows = corpus.rejections.iter().filter(|row| row.file as usize >= inputs.against).peekable();
    let mut files = Parts::new(attempt, "rejected");
    while files.is_empty() || rows.peek().is_some() {
        let some: Vec<_> = rows.by_ref().take(GROUP_ROWS).collect();
        let source = |row: &&super::corpus::CorpusRejection| inputs.files[row.file as usize].name().to_string();
        let table = Table::new([
            ("source", TableColumn::Text(some.iter().map(source).collect())),
            ("offset", TableColumn::Count(some.iter().map(|row| row.offset).collect())),
            ("reason", TableColumn::Text(some.iter().map(|row| row.reason.as_str().to_string()).collect())),
            ("detail", TableColumn::Text(some.iter().map(|row| row.detail.clone()).collect())),
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
        let (mut encoder, before) = match self.open.take() {
            Some(open) => open,
            None => (table_encoder::TableEncoder::new(&Encoding::from_table(rows)?)?, 0),
        };
        encoder.write(rows)?;
        let is_full = encoder.len() >= FILE_BYTES;
        self.open = Some((encoder, before + rows.rows() as u64));
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
