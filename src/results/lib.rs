//! A finished run, read again: its job, its tables, what its pages said; and folders of fingerprints and of their indexes.

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
use webtwin_job::Job;
use webtwin_storage::location::Location;
use webtwin_storage::manifest::{BESIDE_CORPUS, Manifest};
use webtwin_storage::table::{Table, decode};

/// A finished run: a folder with a manifest.
#[derive(Debug)]
pub struct Run {
    /// The folder of the result.
    pub folder: Location,
    /// The manifest in it.
    pub manifest: Manifest,
}

impl Run {
    /// Opens the run in a folder.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn open(url: &str) -> Result<Run> {
        let folder = Location::parse(url)?;
        let manifest = Manifest::read(&folder)?;
        Ok(Run { folder, manifest })
    }

    /// The settings of the run.
    ///
    /// # Errors
    /// [`Error::Input`] if a build with other settings wrote the run, whose meaning this build does not know.
    pub fn job(&self) -> Result<Job> {
        Job::of_run(&self.manifest.job).map_err(|cause| {
            let of = format!("its job is one of another build ({}): {cause}; run it again", self.manifest.build);
            Error::input(self.folder.name(), of)
        })
    }

    /// The totals of the run: `summary.json`, or `_webtwin/summary` of a corpus.
    ///
    /// # Errors
    /// [`Error::Input`] if it is missing or damaged.
    pub fn summary(&self) -> Result<serde_json::Value> {
        let is_summary = |path: &str| path == "summary.json" || path.strip_prefix(BESIDE_CORPUS) == Some("summary");
        let entry = self.manifest.files.iter().find(|file| is_summary(&file.path));
        let entry = entry.ok_or_else(|| Error::input(self.folder.name(), "the result has no summary"))?;
        let bytes = self.manifest.read_file(&self.folder, entry)?;
        serde_json::from_slice(&bytes)
            .map_err(|cause| Error::input(self.folder.name(), format!("{}: {cause}", entry.path)))
    }

    /// Number of rows of a table, by the manifest.
    pub fn rows(&self, table: &str) -> u64 {
        self.manifest.table(table).filter_map(|file| file.rows).sum()
    }

    /// All rows of a table, ascending by key; a table without columns if the run does not have it.
    ///
    /// # Errors
    /// Those of [`Manifest::read_file`] and of decoding.
    pub fn table(&self, name: &str) -> Result<Table> {
        let mut table = Table::default();
        for file in self.manifest.table(name) {
            table.append(decode(&file.path, self.manifest.read_file(&self.folder, file)?)?)?;
        }
        Ok(table)
    }
}
