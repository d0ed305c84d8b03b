//! Description of an index in its manifest.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::column::Seal;
use webtwin_base::error::{Error, Result};
use webtwin_job::Job;
use webtwin_storage::location::{Location, is_plain};
use webtwin_storage::manifest::Manifest;

/// Format of the index that this build writes and reads.
pub const FORMAT: u32 = 2;

/// Run that an index was built from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Folder of the run, as an absolute path or URL.
    pub url: String,
    /// Hash of the run's files except the manifest, in hexadecimal: equal for equal results,
    /// independent of the process that wrote them. The files of the comparison whose list is in
    /// force are included, because another list yields other answers.
    pub result: String,
    /// Digest of the run's job.
    pub digest: String,
    /// Job of the run.
    #[serde(deserialize_with = "job_of_run")]
    pub job: Job,
    /// Recipes of the run, by name.
    pub recipes: BTreeMap<String, String>,
}

fn job_of_run<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Job, D::Error> {
    Job::of_run(&serde_json::Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Description of an index: `job` of its manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IndexSubject {
    /// Always `index`.
    pub kind: String,
    /// Version of the index format.
    pub format: u32,
    /// Run that the index was built from.
    pub run: RunInfo,
    /// Number of pages.
    pub pages: u64,
    /// Values of roles, of reasons to skip a page, and of reasons why a record was not kept. Rows
    /// have the index of a value.
    pub words: Vec<String>,
    /// Number of strings in each list: URLs, titles, origins, prefixes, URL rules.
    pub strings: BTreeMap<String, u64>,
    /// Columns by name.
    pub columns: BTreeMap<String, Seal>,
    /// Maximum Hamming distance k of the simhash tables, if the index has them.
    pub simhash_k: Option<u32>,
    /// Folder of the comparison whose list is in force, as an absolute path or URL. `None` if the
    /// run's own list is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
    /// Number of texts that can be searched, if the index was built with texts.
    #[serde(default)]
    pub texts: Option<u64>,
}

impl IndexSubject {
    /// Reads the description of an index from the manifest in its folder.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the folder is not an index that this build reads.
    pub fn read(folder: &Location) -> Result<(Manifest, IndexSubject)> {
        let manifest = Manifest::read(folder)?;
        let refuse = |what: String| Err(Error::input(folder.name(), what));
        if manifest.job["kind"] != "index" {
            return refuse("this is not an index; make one of a run with `webtwin index RUN --output IDX`".into());
        }
        match manifest.job["format"].as_u64() {
            Some(format) if format == u64::from(FORMAT) => {}
            format => {
                let format = format.map_or("unknown".into(), |format| format.to_string());
                return refuse(format!(
                    "the format of the index is {format}, but this build reads {FORMAT}; rebuild the index"
                ));
            }
        }
        match serde_json::from_value::<IndexSubject>(manifest.job.clone()) {
            // Names of columns become paths in the folder, so they must not leave it.
            Ok(subject) => match subject.columns.keys().find(|name| !is_plain(name)) {
                Some(name) => refuse(format!(
                    "the manifest names a column {name:?}, which is not in the folder; rebuild the index"
                )),
                None => Ok((manifest, subject)),
            },
            Err(cause) => refuse(format!("the manifest cannot be read: {cause}; rebuild the index")),
        }
    }
}
