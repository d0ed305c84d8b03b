//! Second reading of single records from the corpus that a result was made of.

use std::collections::BTreeMap;

use super::batches::Batches;
use super::fields::required_fields;
use super::inputs::{self, CorpusFile};
use super::record::{self, NoRecord};
use super::settings::DedupSettings;
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;
use webtwin_core::explain::duplicates::RecordName;
use webtwin_results::FinishedRun;
use webtwin_storage::location::{seen_from_anywhere, working_folder};

/// Maximum number of records with the same id that an error lists.
const MAX_LISTED: usize = 5;

/// Record that was read again.
#[derive(Debug, Clone)]
pub struct RereadRecord {
    /// Name and position of the record.
    pub name: RecordName,
    /// True for a record of `--against`.
    pub is_from_against: bool,
    /// Text of the record.
    pub text: String,
}

/// Corpus that a result was made of.
#[derive(Debug)]
pub struct CorpusSource {
    /// Settings with which its records are read.
    pub settings: DedupSettings,
    files: Vec<File>,
    started_in: String,
}

#[derive(Debug)]
struct File {
    /// File name, as in the tables.
    name: String,
    is_from_against: bool,
}

/// Row of a file.
enum Row<'r> {
    /// Record with its id and its text.
    Record(Option<&'r str>, &'r str),
    /// Any other row, with its description.
    Other(String),
}

impl CorpusSource {
    /// Finds the files of the corpus of a result.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if another build wrote the result, [`Error::Usage`] if the result
    /// is not one of `dedup`, and any error of listing the files of `--against`.
    pub fn from_run(run: &FinishedRun) -> Result<CorpusSource> {
        let (job, folder) = (&run.manifest.job, run.folder.name());
        if job["kind"] != "dedup" {
            return Err(Error::Usage(format!("{folder}: not a result of `webtwin dedup`")));
        }
        let settings = DedupSettings::of_result(job);
        let settings = settings.ok_or_else(|| {
            Error::input(
                folder,
                format!(
                    "its settings cannot be read, because another build ({}) wrote it; run `webtwin dedup` again",
                    run.manifest.build
                ),
            )
        })?;
        let summary = run.summary()?;
        let input_files = summary["files"].as_array().into_iter().flatten().filter_map(|file| file["file"].as_str());
        let mut files: Vec<File> = input_files.map(|name| File { name: name.into(), is_from_against: false }).collect();
        let started_in = run.manifest.started_in.clone();
        // A list cannot be resolved from another working directory, so its name stays unchanged.
        let resolve = |name: &String| match name.starts_with('@') || started_in == working_folder() {
            true => name.clone(),
            false => seen_from_anywhere(name, &started_in),
        };
        let against_names: Vec<String> = settings.against.iter().map(resolve).collect();
        let against_files = inputs::files(&against_names, &|_| ())?;
        files.extend(against_files.iter().map(|file| File { name: file.name().into(), is_from_against: true }));
        Ok(CorpusSource { settings, files, started_in })
    }

    /// Reads records by their names: an id, or a file and a row as `FILE:ROW`.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if a name matches no record or a rejected one, [`Error::Usage`] if
    /// an id is ambiguous, and any error of reading the files.
    ///
    /// # Cost
    /// One pass over the file up to the row. For ids, one pass over the whole corpus. The texts are
    /// held in memory.
    pub fn find<const N: usize>(&self, names: [&str; N]) -> Result<[RereadRecord; N]> {
        let places = names.map(|name| self.place(name));
        let ids: Vec<&str> = (0..N).filter(|&at| places[at].is_none()).map(|at| names[at]).collect();
        if let (Some(name), None) = (ids.first(), &self.settings.id_field) {
            return Err(Error::Usage(format!(
                "{name}: not the name of a record; the run had no --id-field, so name a record as FILE:ROW"
            )));
        }
        let mut records_by_id = if ids.is_empty() { BTreeMap::new() } else { self.find_by_ids(&ids)? };
        let mut records = Vec::with_capacity(N);
        for (name, place) in names.iter().zip(places) {
            records.push(match place {
                Some((file, row)) => self.read_at_row(file, row)?,
                None => only_record(name, records_by_id.get_mut(*name).map(std::mem::take).unwrap_or_default())?,
            });
        }
        Ok(records.try_into().expect("there is a record for each name"))
    }

    /// Reads the texts of some rows of a file, which is named as in the tables.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is missing or no longer has records in these rows.
    ///
    /// # Cost
    /// One pass over the file up to the last row.
    pub fn texts(&self, file: &str, rows: &[u64]) -> Result<BTreeMap<u64, String>> {
        let mut texts = BTreeMap::new();
        let last = rows.iter().max().copied();
        self.each_row(&self.open(file)?, &mut |row, content| {
            if let (true, Row::Record(_, text)) = (rows.contains(&row), content) {
                texts.insert(row, text.to_string());
            }
            Ok(last.is_some_and(|last| row < last))
        })?;
        match rows.iter().find(|row| !texts.contains_key(row)) {
            Some(row) => {
                Err(Error::input(file, format!("row {row} is no longer a record: the file has changed since the run")))
            }
            None => Ok(texts),
        }
    }

    /// Returns the file and the row that a name refers to, if it has the form `FILE:ROW` and the
    /// file belongs to the corpus.
    fn place(&self, name: &str) -> Option<(&File, u64)> {
        let (file, row) = name.rsplit_once(':')?;
        let row = row.parse().ok()?;
        let is_named = |of: &&File| of.name == file;
        let everywhere = seen_from_anywhere(file, &working_folder());
        let is_meant = |of: &&File| seen_from_anywhere(&of.name, &self.started_in) == everywhere;
        let file = self.files.iter().find(is_named).or_else(|| self.files.iter().find(is_meant));
        file.map(|file| (file, row))
    }

    fn open(&self, name: &str) -> Result<CorpusFile> {
        inputs::from_name(&seen_from_anywhere(name, &self.started_in))
    }

    fn read_at_row(&self, file: &File, wanted_row: u64) -> Result<RereadRecord> {
        let (mut record, mut other_text, mut rows) = (None, None, 0);
        self.each_row(&self.open(&file.name)?, &mut |row, content| {
            rows = row + 1;
            match content {
                Row::Record(id, text) if row == wanted_row => record = Some(reread_record(file, row, id, text)),
                Row::Other(description) if row == wanted_row => other_text = Some(description),
                _ => {}
            }
            Ok(row < wanted_row)
        })?;
        let name = format!("{}:{wanted_row}", file.name);
        record.ok_or_else(|| match other_text {
            Some(description) => Error::input(name, description),
            None => Error::input(name, format!("the file has {rows} rows; count rows from 0")),
        })
    }

    /// Returns the first records with each of the given ids.
    fn find_by_ids(&self, ids: &[&str]) -> Result<BTreeMap<String, Vec<RereadRecord>>> {
        let results = threads::for_each(self.settings.workers, self.files.len(), Vec::new, |local_records, number| {
            let file = &self.files[number];
            let mut records: Vec<RereadRecord> = Vec::new();
            self.each_row(&self.open(&file.name)?, &mut |row, content| {
                if let Row::Record(Some(id), text) = content
                    && ids.contains(&id)
                    // One more than an error lists, which shows that there are more.
                    && records.iter().filter(|record| record.name.id == id).count() <= MAX_LISTED
                {
                    records.push(reread_record(file, row, Some(id), text));
                }
                Ok(true)
            })?;
            local_records.push((number, records));
            Ok(())
        })?;
        let mut results: Vec<(usize, Vec<RereadRecord>)> = results.into_iter().flatten().collect();
        results.sort_unstable_by_key(|(number, _)| *number);
        let mut records_by_id: BTreeMap<String, Vec<RereadRecord>> = BTreeMap::new();
        for record in results.into_iter().flat_map(|(_, records)| records) {
            records_by_id.entry(record.name.id.clone()).or_default().push(record);
        }
        Ok(records_by_id)
    }

    /// Passes each row of a file with its number, from 0, to `visit`, until that returns false.
    fn each_row(&self, file: &CorpusFile, visit: &mut dyn FnMut(u64, Row<'_>) -> Result<bool>) -> Result<()> {
        let (settings, query) = (&self.settings, required_fields(&self.settings));
        let mut batches = Batches::open(file, settings)?;
        let mut row = 0;
        let rejection = |detail: &str| Row::Other(format!("the record is rejected: {detail}"));
        while let Some(batch) = batches.next()? {
            let continues = record::each(batch, settings, &query, &mut |_, parsed| {
                let continues = match parsed {
                    Ok(record) => visit(row, Row::Record(record.id.as_deref(), &record.text))?,
                    Err(NoRecord::Rejected((_, detail))) => visit(row, rejection(&detail))?,
                    Err(NoRecord::Lost((_, detail), _)) => {
                        visit(row, rejection(&detail))?;
                        false
                    }
                    Err(NoRecord::Blank | NoRecord::Annotated) => visit(row, Row::Other("the line is blank".into()))?,
                };
                row += 1;
                Ok(continues)
            })?;
            if !continues {
                break;
            }
        }
        Ok(())
    }
}

fn reread_record(file: &File, row: u64, id: Option<&str>, text: &str) -> RereadRecord {
    let id = id.map_or_else(|| format!("{}:{row}", file.name), String::from);
    RereadRecord {
        name: RecordName { id, file: file.name.clone(), row },
        is_from_against: file.is_from_against,
        text: text.into(),
    }
}

/// Returns the record with an id, if there is exactly one.
fn only_record(id: &str, mut records: Vec<RereadRecord>) -> Result<RereadRecord> {
    match (records.pop(), &records[..]) {
        (Some(record), []) => Ok(record),
        (None, _) => {
            Err(Error::input(id, "no record of the corpus has this id; check the id, or name the record as FILE:ROW"))
        }
        (Some(last), _) => {
            let place = |record: &RereadRecord| format!("{}:{}", record.name.file, record.name.row);
            let mut places: Vec<String> = records.iter().chain([&last]).take(MAX_LISTED).map(place).collect();
            if records.len() >= MAX_LISTED {
                places.push("...".into());
            }
            Err(Error::Usage(format!(
                "{id}: several records have this id; name one as FILE:ROW: {}",
                places.join(", ")
            )))
        }
    }
}
