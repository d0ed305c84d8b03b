//! What the manifest of an index says of it.

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

/// The run that an index was made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfRun {
    /// Its folder, as it is called from anywhere.
    pub url: String,
    /// Hash of its files but the manifest, in hexadecimal: equal for equal results, whoever made
    /// them. With those of the comparison whose list is in force, for other lists are other
    /// answers.
    pub result: String,
    /// Digest of its job.
    pub digest: String,
    /// Its job.
    #[serde(deserialize_with = "job_of_run")]
    pub job: Job,
    /// Names of its recipes.
    pub recipes: BTreeMap<String, String>,
}

fn job_of_run<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Job, D::Error> {
    Job::of_run(&serde_json::Value::deserialize(from)?).map_err(D::Error::custom)
}

/// What an index is about: `job` of its manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Always `index`.
    pub kind: String,
    /// Version of this format.
    pub format: u32,
    /// The run.
    pub run: OfRun,
    /// Its pages.
    pub pages: u64,
    /// Words of roles and reasons, those of records that were not kept among them, by the numbers that rows have.
    pub words: Vec<String>,
    /// Strings by name: URLs, titles, origins, prefixes, URL rules.
    pub strings: BTreeMap<String, u64>,
    /// Columns by name.
    pub columns: BTreeMap<String, Seal>,
    /// k of the tables of simhashes, if there are any.
    pub simhash_k: Option<u32>,
    /// Folder of the comparison whose list is in force, as it is called from anywhere; the list of
    /// the run where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
    /// Texts that can be searched, if they were asked for.
    #[serde(default)]
    pub texts: Option<u64>,
}

impl About {
    /// Reads what an index is about from the manifest in its folder.
    ///
    /// # Errors
    /// [`Error::Input`] when the folder is none of an index that this build reads.
    pub fn read(folder: &Location) -> Result<(Manifest, About)> {
        let manifest = Manifest::read(folder)?;
        let refuse = |what: String| Err(Error::input(folder.name(), what));
        if manifest.job["kind"] != "index" {
            return refuse("this is no index; `webtwin index RUN --output IDX` makes one of a run".into());
        }
        match manifest.job["format"].as_u64() {
            Some(format) if format == u64::from(FORMAT) => {}
            format => {
                return refuse(format!("an index of format {format:?}, but this build reads {FORMAT}; make it anew"));
            }
        }
        match serde_json::from_value::<About>(manifest.job.clone()) {
            // Names of columns are joined to the folder's.
            Ok(about) => match about.columns.keys().find(|name| !is_plain(name)) {
                Some(name) => refuse(format!("its manifest names a column {name:?}, which is not in its folder")),
                None => Ok((manifest, about)),
            },
            Err(cause) => refuse(format!("its manifest does not read: {cause}; make the index anew")),
        }
    }
}
