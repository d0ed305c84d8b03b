//! Input files: their formats, and their paths in the result.

use std::collections::BTreeMap;

use webtwin_base::error::{Error, Result};
use webtwin_pages::decoded::Compression;
use webtwin_pages::detect::{FileFormat, claims_rows, detect};
use webtwin_storage::expand::expand;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{self, CORPUS_SIDE_FOLDER, Manifest};
use webtwin_storage::open::{FileStamp, open};
use webtwin_storage::relative::{below_common_folder, segments, verify_distinct};

use super::settings::DedupSettings;

/// File name of the summary.
pub(crate) const SUMMARY: &str = "_webtwin/summary";

/// Format in which records are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorpusFormat {
    /// Lines of JSON, in a file that may be compressed as a whole.
    Jsonl(Compression),
    /// Parquet.
    Parquet,
}

impl CorpusFormat {
    /// Returns the name of the format for users.
    pub fn name(self) -> &'static str {
        match self {
            CorpusFormat::Jsonl(Compression::None) => "jsonl",
            CorpusFormat::Jsonl(Compression::Gzip) => "jsonl.gz",
            CorpusFormat::Jsonl(Compression::Zstd) => "jsonl.zst",
            CorpusFormat::Jsonl(Compression::Xz) => "jsonl.xz",
            CorpusFormat::Jsonl(Compression::Bzip2) => "jsonl.bz2",
            CorpusFormat::Parquet => "parquet",
        }
    }
}

/// File of a corpus.
#[derive(Debug, Clone)]
pub struct CorpusFile {
    /// Location of the file.
    pub location: Location,
    /// Version of the file, to which all reads are pinned.
    pub stamp: FileStamp,
    /// Format of the file.
    pub format: CorpusFormat,
    /// Path in the result; `None` for files of `against`, which are not written.
    pub path: Option<String>,
}

impl CorpusFile {
    /// Returns the name as the user writes it.
    pub fn name(&self) -> &str {
        self.location.name()
    }
}

/// All files: those of `against`, followed by those of the input, each ascending by name.
#[derive(Debug)]
pub struct Inputs {
    /// All files.
    pub files: Vec<CorpusFile>,
    /// Number of files that belong to `against`.
    pub n_against: usize,
}

/// Finds the files of a corpus.
///
/// # Errors
/// Returns [`Error::Input`] for a file that is missing or in another format; and [`Error::Usage`]
/// if a file is in both corpora, or its path in the result is reserved.
pub(crate) fn find(settings: &DedupSettings, notify: &dyn Fn(String)) -> Result<Inputs> {
    let mut files = files(&settings.against, notify)?;
    let n_against = files.len();
    let mut new = self::files(&settings.inputs, notify)?;
    let names: Vec<Vec<String>> = new.iter().map(|file| segments(&file.location)).collect();
    for (file, path) in new.iter_mut().zip(below_common_folder(&names)) {
        if path.starts_with('_') || path == manifest::NAME {
            return Err(Error::Usage(format!(
                "input {}: the name {path} is reserved for other files of the result; rename the input",
                file.name()
            )));
        }
        file.path = Some(path);
    }
    verify_distinct(files.iter().map(|file| &file.location), new.iter().map(|file| &file.location))?;
    files.extend(new);
    Ok(Inputs { files, n_against })
}

/// Returns the file with a name.
///
/// # Errors
/// Returns [`Error::Input`] if the file is missing or is not a corpus of texts.
pub(crate) fn from_name(name: &str) -> Result<CorpusFile> {
    inspect(&Location::parse(name)?)?.ok_or_else(|| no_corpus(name))
}

fn no_corpus(name: &str) -> Error {
    Error::input(name, "neither JSONL nor Parquet, so it cannot be read as a corpus of texts")
}

/// Finds the files of some inputs, ascending by name and without duplicates.
///
/// # Errors
/// Returns the errors of [`find`].
pub(crate) fn files(inputs: &[String], notify: &dyn Fn(String)) -> Result<Vec<CorpusFile>> {
    let (mut locations, mut n_passed) = (BTreeMap::new(), 0);
    let mut patterns = Vec::new();
    for input in inputs {
        match of_result(input)? {
            Some(files) => locations.extend(files.into_iter().map(|file| (file, true))),
            None => patterns.push(input.clone()),
        }
    }
    // A folder of pages is not a corpus, so no file is treated as a page.
    for input in expand(&patterns, |_| false)? {
        for location in input.locations {
            *locations.entry(location).or_insert(false) |= !input.is_search;
        }
    }
    let mut files = Vec::new();
    for (location, is_named) in locations {
        match inspect(&location) {
            Ok(Some(file)) => files.push(file),
            Ok(None) if !is_named => n_passed += 1,
            Err(Error::Input { .. }) if !is_named && !claims_rows(location.name()) => n_passed += 1,
            Ok(None) => return Err(no_corpus(location.name())),
            Err(error) => return Err(error),
        }
    }
    if n_passed > 0 {
        let files = if n_passed == 1 { "file that is" } else { "files that are" };
        notify(format!("skipped {n_passed} {files} neither JSONL nor Parquet"));
    }
    if files.is_empty() && !inputs.is_empty() {
        return Err(Error::input(inputs.join(", "), "has no file in JSONL or Parquet"));
    }
    Ok(files)
}

/// Returns the files of an earlier result, if the input is the folder of one.
fn of_result(input: &str) -> Result<Option<Vec<Location>>> {
    if input.contains(['*', '?', '[']) || input.starts_with('@') {
        return Ok(None);
    }
    let folder = Location::parse(input)?;
    if !manifest::is_in(&folder)? {
        return Ok(None);
    }
    let manifest = Manifest::read(&folder)?;
    let job = &manifest.job;
    if job["kind"] != "dedup" {
        return Ok(None);
    }
    if !job["annotate"].is_null() {
        let why = "a result of --annotate, which contains duplicates; name a result without --annotate";
        return Err(Error::input(folder.name(), why));
    }
    let corpus_files = manifest.files.iter().filter(|file| !is_corpus_side_file(&manifest, &file.path));
    corpus_files.map(|file| folder.join(&file.path)).collect::<Result<_>>().map(Some)
}

/// True if a file of a result does not belong to its corpus. Earlier builds wrote the tables of a
/// result next to the files of the corpus.
fn is_corpus_side_file(manifest: &Manifest, path: &str) -> bool {
    let is_earlier = manifest.files.iter().all(|file| file.path != SUMMARY);
    match path.split_once('/') {
        Some((folder, _)) if is_earlier => ["removed", "rejected"].contains(&folder),
        None if is_earlier => path == "summary.json",
        _ => path.starts_with(CORPUS_SIDE_FOLDER),
    }
}

/// Returns the file if its format is supported. An empty file counts as lines of JSON.
fn inspect(location: &Location) -> Result<Option<CorpusFile>> {
    if location.is_folder() {
        return Ok(None);
    }
    let file = open(location)?;
    let format = match detect(&*file, location.name())? {
        FileFormat::Jsonl(compression) => CorpusFormat::Jsonl(compression),
        FileFormat::Parquet => CorpusFormat::Parquet,
        FileFormat::Empty => {
            CorpusFormat::Jsonl(Compression::detect(&webtwin_base::read_at::RandomAccess::read_at(&*file, 0, 10)?))
        }
        FileFormat::WarcPlain
        | FileFormat::WarcGzip
        | FileFormat::WarcZstd
        | FileFormat::WarcStream(_)
        | FileFormat::Zip
        | FileFormat::HtmlFile => {
            return Ok(None);
        }
    };
    Ok(Some(CorpusFile { location: location.clone(), stamp: file.stamp().clone(), format, path: None }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the files of a folder.
    pub(crate) fn found(folder: &std::path::Path) -> Vec<CorpusFile> {
        files(&[folder.to_str().unwrap().to_string()], &|_| ()).unwrap()
    }

    #[test]
    fn record_files_without_records_are_errors_and_other_files_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let check_files = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join("good.jsonl"), "{\"text\":\"x\"}\n").unwrap();
            std::fs::write(folder.path().join(name), bytes).unwrap();
            let result = files(&[folder.path().to_str().unwrap().to_string()], &|_| ());
            std::fs::remove_file(folder.path().join(name)).unwrap();
            result.map(|files| files.len())
        };
        for name in ["a.jsonl.xz", "a.NDJSON.Bz2", "A.PARQUET"] {
            let refused = check_files(name, b"<html>not found</html>").unwrap_err();
            assert!(refused.exit_code() == 3 && refused.to_string().contains(name), "{refused}");
        }
        assert_eq!(check_files("notes.bin", b"\x01\x02\x03").unwrap(), 1);
    }
}
