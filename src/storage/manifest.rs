//! The file `manifest.json`, which makes a folder of tables a result. It is written last and lists
//! every other file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use super::location::{Location, is_plain, working_folder};
use super::output::Attempt;
use webtwin_base::error::{Error, Result};

/// Version of the manifest format that this build reads and writes.
pub const FORMAT: u32 = 1;

/// File name of the manifest.
pub const NAME: &str = "manifest.json";

/// Folder for everything in a corpus folder that does not belong to the corpus. Most programs that
/// read data folders skip names that begin with an underscore. DuckDB, polars and Hugging Face
/// datasets do not, so no name in the folder has the extension of a data file.
pub const CORPUS_SIDE_FOLDER: &str = "_webtwin/";

/// Name of the manifest of a corpus.
pub const CORPUS_NAME: &str = "_webtwin/manifest";

/// Possible names of a manifest.
pub const NAMES: [&str; 2] = [NAME, CORPUS_NAME];

/// Entry of one file of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path relative to the folder of the result.
    pub path: String,
    /// Number of rows, if the file belongs to a table.
    pub rows: Option<u64>,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// 128-bit XXH3 checksum, in hexadecimal.
    pub xxh3: String,
}

impl FileEntry {
    /// Creates the entry of a file with the given bytes.
    pub fn new(path: &str, rows: Option<u64>, bytes: &[u8]) -> FileEntry {
        FileEntry::of_parts(path, rows, &[bytes])
    }

    /// Returns the name of the table that the file belongs to, if it does.
    pub fn table(&self) -> Option<&str> {
        let (table, _) = self.path.split_once("/part-")?;
        Some(table.strip_prefix(CORPUS_SIDE_FOLDER).unwrap_or(table))
    }

    /// Creates the entry of a file from its consecutive parts.
    pub fn of_parts(path: &str, rows: Option<u64>, parts: &[&[u8]]) -> FileEntry {
        let mut digest = Xxh3Default::new();
        parts.iter().for_each(|part| digest.update(part));
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        FileEntry { path: path.into(), rows, bytes, xxh3: format!("{:032x}", digest.digest128()) }
    }
}

fn checksum(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

/// True if a folder has a manifest.
///
/// # Errors
/// Returns any error of the store.
pub fn is_in(folder: &Location) -> Result<bool> {
    for name in NAMES {
        if folder.join(name)?.exists()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Resource usage of one process of a run, until its tables were staged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessCosts {
    /// Peak memory, in bytes.
    pub peak_memory_bytes: u64,
    /// Processor seconds by stage, in user mode and in the kernel, including helper processes.
    pub cpu_seconds: BTreeMap<String, f64>,
    /// Bytes of rows that its workers have sent to other workers by collective calls. Includes
    /// workers of the same process, except for rows with texts.
    pub exchanged_bytes: u64,
    /// Part of `exchanged_bytes` that was sent to other processes, before encryption.
    pub sent_bytes: u64,
    /// Bytes written to spill files.
    pub spilled_bytes: u64,
    /// Maximum size of the spill files on disk at a time, in bytes; 0 in manifests of builds that
    /// did not record it.
    #[serde(default)]
    pub spilled_at_once_bytes: u64,
}

/// Description of a run, and of every file that it wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the manifest format.
    pub format: u32,
    /// Random identifier of the run that wrote the manifest.
    pub attempt: String,
    /// Digest of the job, in hexadecimal.
    pub digest: String,
    /// Effective job, with all settings resolved.
    pub job: serde_json::Value,
    /// Names of the recipes that produced the fingerprints.
    pub recipes: BTreeMap<String, String>,
    /// Version and commit of the build that wrote the manifest.
    pub build: String,
    /// Number of workers of all processes.
    pub workers: u64,
    /// Main counts, as in `summary.json`.
    pub counts: BTreeMap<String, u64>,
    /// Seconds by stage, on worker 0.
    pub seconds: BTreeMap<String, f64>,
    /// Peak memory of process 0, in bytes.
    pub peak_memory_bytes: u64,
    /// Number of times that all workers have waited for messages of all others, if the result was
    /// made by a run. Each time takes the latency between the processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Resource usage of each process by its number, if the result was made by a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessCosts>,
    /// Steps after reading that were restored from the checkpoints of an interrupted run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_up: Vec<String>,
    /// Working directory of process 0, to which relative names of inputs refer. Empty if it is
    /// unknown.
    #[serde(default)]
    pub started_in: String,
    /// Attempt of the earlier result that determined what to keep, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<String>,
    /// All other files of the result, by path.
    pub files: Vec<FileEntry>,
}

impl Manifest {
    /// Creates the manifest of an attempt by a single worker of this process. Its counts, recipes
    /// and files are empty. The digest is that of the job's text.
    pub fn new(attempt: &str, job: serde_json::Value) -> Manifest {
        Manifest {
            format: FORMAT,
            attempt: attempt.into(),
            digest: checksum(job.to_string().as_bytes()),
            job,
            recipes: BTreeMap::new(),
            build: webtwin_base::build_info::version().into(),
            workers: 1,
            counts: BTreeMap::new(),
            seconds: BTreeMap::new(),
            peak_memory_bytes: webtwin_base::build_info::peak_memory_bytes(),
            rounds: None,
            processes: Vec::new(),
            taken_up: Vec::new(),
            started_in: working_folder(),
            earlier: None,
            files: Vec::new(),
        }
    }

    /// Commits the files of an attempt, which must all be staged. Makes the folder of the attempt a
    /// result.
    ///
    /// # Errors
    /// Returns the errors of [`Attempt::commit`].
    pub fn commit(&self, attempt: &Attempt) -> Result<()> {
        self.commit_as(NAME, attempt)
    }

    /// Commits the files of an attempt, with one of [`NAMES`] as the name of the manifest.
    ///
    /// # Errors
    /// Returns the errors of [`Attempt::commit`].
    pub fn commit_as(&self, name: &str, attempt: &Attempt) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).expect("a manifest is plain values");
        attempt.commit(name, &bytes, self.files.iter().map(|file| (file.path.clone(), file.bytes)).collect())
    }

    /// Reads the manifest of a result.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the manifest is missing, unreadable, of another format, or lists
    /// files outside of its folder.
    pub fn read(folder: &Location) -> Result<Manifest> {
        for name in NAMES {
            let location = folder.join(name)?;
            if let Some(manifest) = location.get_as(|bytes| Manifest::decode(location.name(), &bytes))? {
                return manifest;
            }
        }
        Err(Error::input(
            folder.name(),
            "no manifest.json: this is not a result, or the run that wrote it did not finish; name the folder of a \
             finished result",
        ))
    }

    fn decode(name: &str, bytes: &[u8]) -> Result<Manifest> {
        let refuse = |reason: String| Err(Error::input(name, reason));
        let value: serde_json::Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(cause) => return refuse(format!("cannot be read: {cause}; run the job again")),
        };
        let format = value["format"].as_u64();
        if format != Some(u64::from(FORMAT)) {
            let written = format.map_or_else(|| "an unknown format".into(), |format| format!("format {format}"));
            return refuse(format!(
                "written in {written}, but this build reads format {FORMAT}; run the job again, or use the other build"
            ));
        }
        let manifest: Manifest = match serde_json::from_value(value) {
            Ok(manifest) => manifest,
            Err(cause) => return refuse(format!("cannot be read: {cause}; run the job again")),
        };
        match manifest.files.iter().find(|file| !is_plain(&file.path)) {
            Some(file) => refuse(format!("names {:?}, which is outside of its folder; run the job again", file.path)),
            None => Ok(manifest),
        }
    }

    /// Reads one file of the result and compares it with its entry.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the file is missing, or has another length or checksum.
    pub fn read_file(&self, folder: &Location, file: &FileEntry) -> Result<Vec<u8>> {
        let location = folder.join(&file.path)?;
        let checked = |bytes: Vec<u8>| match bytes.len() as u64 == file.bytes && checksum(&bytes) == file.xxh3 {
            true => Ok(bytes),
            false => {
                Err(Error::input(location.name(), "length or checksum differ from the manifest; run the job again"))
            }
        };
        location.get_as(checked)?.unwrap_or_else(|| {
            Err(Error::input(location.name(), "missing, though the manifest names it; run the job again"))
        })
    }

    /// Compares every file of the result with its entry.
    ///
    /// # Errors
    /// Returns [`Error::Input`] for the first file that differs from its entry.
    pub fn verify(&self, folder: &Location) -> Result<()> {
        self.files.iter().try_for_each(|file| self.read_file(folder, file).map(drop))
    }

    /// Returns the files of one table, in the order of its parts.
    pub fn table<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a FileEntry> {
        self.files.iter().filter(move |file| file.table() == Some(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Location) {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::parse(dir.path().to_str().unwrap()).unwrap();
        (dir, location)
    }

    fn manifest(attempt: &str, files: Vec<FileEntry>) -> Manifest {
        Manifest { files, ..Manifest::new(attempt, serde_json::Value::Null) }
    }

    #[test]
    fn folder_without_a_manifest_is_not_a_result() {
        let (_dir, folder) = folder();
        let error = Manifest::read(&folder).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("not a result"));
    }

    #[test]
    fn first_of_two_commits_wins_and_the_second_is_rejected() {
        let (_dir, folder) = folder();
        let commit = |id: &str| manifest(id, vec![]).commit(&Attempt::new(&folder, id).unwrap());
        commit("1").unwrap();
        assert_eq!(commit("2").unwrap_err().exit_code(), 4);
        assert_eq!(Manifest::read(&folder).unwrap().attempt, "1");
    }

    #[test]
    fn corpus_with_a_separate_manifest_is_a_result() {
        let (_dir, folder) = folder();
        let corpus = |id: &str| Attempt::new(&folder, id).unwrap();
        let entries = |attempt: &Attempt| {
            let paths = ["a.jsonl", "_webtwin/removed/part-00000"];
            paths.iter().try_for_each(|path| attempt.put(path, b"rows")).unwrap();
            paths.map(|path| FileEntry::new(path, None, b"rows")).to_vec()
        };
        assert!(!is_in(&folder).unwrap());
        let first = corpus("1");
        manifest("1", entries(&first)).commit_as(CORPUS_NAME, &first).unwrap();
        assert!(is_in(&folder).unwrap());
        let manifest_read = Manifest::read(&folder).unwrap();
        manifest_read.verify(&folder).unwrap();
        assert_eq!(manifest_read.table("removed").count(), 1);
        assert_eq!(super::super::output::prepare(&folder).unwrap_err().exit_code(), 4);
        let other_corpus = corpus("2");
        assert_eq!(
            manifest("2", entries(&other_corpus)).commit_as(CORPUS_NAME, &other_corpus).unwrap_err().exit_code(),
            4
        );
        let mut names = folder.entries().unwrap();
        names.sort();
        assert_eq!(names, ["_webtwin", "a.jsonl"]);
    }

    #[test]
    fn missing_changed_and_shortened_files_are_detected() {
        let (_dir, folder) = folder();
        let entry = FileEntry::new("pages/part-00000.parquet", Some(1), b"rows");
        let manifest = manifest("a", vec![entry.clone()]);
        assert!(manifest.read_file(&folder, &entry).unwrap_err().to_string().contains("missing"));
        let location = folder.join(&entry.path).unwrap();
        for (bytes, whole) in [(&b"rows"[..], true), (b"rowz", false), (b"row", false)] {
            location.put(bytes).unwrap();
            assert_eq!(manifest.read_file(&folder, &entry).is_ok(), whole);
        }
    }

    #[test]
    fn stale_foreign_and_escaping_manifests_are_rejected() {
        let (_dir, folder) = folder();
        let write = |text: String| folder.join(NAME).unwrap().put(text.as_bytes()).unwrap();
        let wandering = manifest("a", vec![FileEntry::new("../x", None, b"")]);
        let newer = Manifest { format: FORMAT + 1, ..manifest("a", vec![]) };
        for (text, word) in [
            (serde_json::to_string(&wandering).unwrap(), "outside"),
            (serde_json::to_string(&newer).unwrap(), "format"),
            ("{\"format\": 1".into(), "cannot be read"),
        ] {
            write(text);
            assert!(Manifest::read(&folder).unwrap_err().to_string().contains(word));
        }
    }
}
