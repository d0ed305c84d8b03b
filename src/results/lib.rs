//! Access to finished runs: their job, their tables and the texts of their pages. Also folders of
//! fingerprints and of their indexes.

pub mod captured;
pub mod columns;
pub mod compared;
pub mod decisions;
pub mod explained;
pub mod fingerprints;
pub mod foreign;
pub mod online_index;
pub mod pages;
pub mod ranges;
pub mod rejected;
pub mod scan;
pub mod url_rules;
pub mod views;

use webtwin_base::error::{Error, Result};
use webtwin_core::applications::file_part::FilePart;
use webtwin_job::Job;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{CORPUS_SIDE_FOLDER, FileEntry, Manifest};
use webtwin_storage::table::{Table, decode};

/// A finished run: a folder with a manifest.
///
/// # Examples
/// A result with a table of one row, and the run read back from its folder.
/// ```
/// use webtwin_results::FinishedRun;
/// use webtwin_storage::location::Location;
/// use webtwin_storage::manifest::{FileEntry, Manifest};
/// use webtwin_storage::output::Attempt;
/// use webtwin_storage::table::{TableColumn, Table};
/// use webtwin_storage::table_encoder::encode;
///
/// let folder = tempfile::tempdir()?;
/// let url = folder.path().join("run").display().to_string();
/// let attempt = Attempt::new(&Location::parse(&url)?.into_folder(), "a1")?;
/// let bytes = encode(&Table::new([("doc_id", TableColumn::Id(vec![7]))]))?;
/// attempt.put("avoid/part-00000.parquet", &bytes)?;
/// let files = vec![FileEntry::new("avoid/part-00000.parquet", Some(1), &bytes)];
/// Manifest { files, ..Manifest::new(attempt.id(), Default::default()) }.commit(&attempt)?;
///
/// let run = FinishedRun::open(&url)?;
/// assert_eq!(run.rows("avoid"), 1);
/// assert_eq!(run.table("avoid")?.u64("doc_id")?, [7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FinishedRun {
    /// Folder of the result.
    pub folder: Location,
    /// Manifest in that folder.
    pub manifest: Manifest,
}

impl FinishedRun {
    /// Opens the run in a folder.
    ///
    /// # Errors
    /// Returns any error of [`Manifest::read`], and [`Error::Input`] for the index of a run, which
    /// has a manifest, too.
    pub fn open(url: &str) -> Result<FinishedRun> {
        let folder = Location::parse(url)?;
        let manifest = Manifest::read(&folder)?;
        if manifest.job["kind"] == "index" {
            let run = manifest.job["run"]["url"].as_str().unwrap_or("a run");
            let reason = format!(
                "this is an index of {run}, not a result; read it with `webtwin lookup`, `search` or `serve`, or name \
                 the folder of that run"
            );
            return Err(Error::input(folder.name(), reason));
        }
        Ok(FinishedRun { folder, manifest })
    }

    /// Returns the settings of the run.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if another build wrote the run with settings that this build does
    /// not have.
    pub fn job(&self) -> Result<Job> {
        Job::of_run(&self.manifest.job).map_err(|cause| {
            let message = format!("another build wrote its job ({}): {cause}; run the job again", self.manifest.build);
            Error::input(self.folder.name(), message)
        })
    }

    /// Returns the files of an export, in order: one, several parts, or none if the run does not
    /// have it.
    pub fn export_files(&self, name: &str) -> impl Iterator<Item = &FileEntry> {
        let is_part = move |path: &str| path.strip_prefix("exports/").is_some_and(|file| FilePart::is_part(file, name));
        self.manifest.files.iter().filter(move |file| is_part(&file.path))
    }

    /// Reads an export, such as `urls.txt`. Returns an empty text if the run does not have it.
    ///
    /// # Errors
    /// Returns any error of [`Manifest::read_file`].
    pub fn export(&self, name: &str) -> Result<String> {
        let mut bytes = Vec::new();
        for file in self.export_files(name) {
            bytes.extend(self.manifest.read_file(&self.folder, file)?);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the totals of the run: `summary.json`, or `_webtwin/summary` of a corpus.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the summary is missing or damaged.
    pub fn summary(&self) -> Result<serde_json::Value> {
        let is_summary =
            |path: &str| path == "summary.json" || path.strip_prefix(CORPUS_SIDE_FOLDER) == Some("summary");
        let entry = self.manifest.files.iter().find(|file| is_summary(&file.path));
        let entry =
            entry.ok_or_else(|| Error::input(self.folder.name(), "the result has no summary; run the job again"))?;
        let bytes = self.manifest.read_file(&self.folder, entry)?;
        serde_json::from_slice(&bytes)
            .map_err(|cause| Error::input(self.folder.name(), format!("{}: {cause}", entry.path)))
    }

    /// Returns the number of rows of a table, from the manifest.
    pub fn rows(&self, table: &str) -> u64 {
        self.manifest.table(table).filter_map(|file| file.rows).sum()
    }

    /// Returns all rows of a table, ascending by key. Returns a table without columns if the run
    /// does not have it.
    ///
    /// # Errors
    /// Returns any error of [`Manifest::read_file`] and of decoding.
    pub fn table(&self, name: &str) -> Result<Table> {
        let mut table = Table::default();
        for file in self.manifest.table(name) {
            table.append(decode(&file.path, self.manifest.read_file(&self.folder, file)?)?)?;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_storage::manifest::NAME;

    #[test]
    fn index_is_not_opened_as_a_run_and_its_run_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let url = folder.path().to_str().unwrap();
        let open_with = |job: serde_json::Value| {
            let manifest = serde_json::to_vec(&Manifest::new("a1", job)).unwrap();
            Location::parse(url).unwrap().join(NAME).unwrap().put(&manifest).unwrap();
            FinishedRun::open(url).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(open_with(serde_json::json!({ "kind": "replicas" })), Ok(()));
        let error = open_with(serde_json::json!({ "kind": "index", "run": { "url": "/runs/may" } })).unwrap_err();
        assert!(error.contains("an index of /runs/may, not a result") && error.contains("webtwin lookup"), "{error}");
    }
}
