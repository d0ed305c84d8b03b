//! Records that were read ahead: of files that no run has had as an input yet.
//!
//! ```text
//! STATE/ahead/3fa9….json     the records of some files, under the hash of these bytes
//! ```
//!
//! Lists are written at any time, also while a run uses the state, because they claim nothing: the
//! next run restores the records of its own inputs from them. A list that is damaged is passed
//! over, which costs the time to read its files again. A list is removed once a generation has all
//! of its records.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::{Generation, JobState, RecordFile, StateRecords};
use crate::location::Location;
use webtwin_base::error::Result;

/// Folder of the lists.
const LISTS_FOLDER: &str = "ahead";

/// Ending of their names.
const ENDING: &str = ".json";

/// Records of files that were read ahead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadAhead {
    /// Settings of reading that the records depend on, in hexadecimal; as [`Generation::reading`].
    pub reading: String,
    /// Version of Ghostscript that PostScript was read with, if there was any.
    pub ghostscript: Option<String>,
    /// Files that hold the records.
    pub files: Vec<RecordFile>,
}

impl JobState {
    /// Writes the list of what `records` has written ahead of a run.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) when the list cannot be written.
    pub fn add_ahead(&self, reading: &str, ghostscript: Option<String>, records: &StateRecords) -> Result<()> {
        let list = ReadAhead { reading: reading.into(), ghostscript, files: records.written() };
        let bytes = serde_json::to_vec(&list).expect("a list is plain values");
        self.folder.join(&format!("{LISTS_FOLDER}/{:032x}{ENDING}", xxh3_128(&bytes)))?.put(&bytes)
    }

    /// Returns all lists that are whole, ascending by name.
    ///
    /// # Errors
    /// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) when the folder cannot be read.
    pub fn ahead(&self) -> Result<Vec<ReadAhead>> {
        Ok(self.ahead_lists()?.into_iter().map(|(_, list)| list).collect())
    }

    fn ahead_lists(&self) -> Result<Vec<(Location, ReadAhead)>> {
        let folder = self.folder.join(LISTS_FOLDER)?.into_folder();
        let mut lists = Vec::new();
        for name in folder.entries()? {
            let Some(hash) = name.strip_suffix(ENDING) else { continue };
            let location = folder.join(&name)?;
            let decode = |bytes: Vec<u8>| {
                let is_whole = format!("{:032x}", xxh3_128(&bytes)) == hash;
                is_whole.then(|| serde_json::from_slice(&bytes).ok()).flatten().ok_or(())
            };
            if let Some(Ok(list)) = location.get_as(decode)? {
                lists.push((location, list));
            }
        }
        lists.sort_by(|x, y| x.0.name().cmp(y.0.name()));
        Ok(lists)
    }

    /// Removes the lists of which a generation has all records.
    pub(super) fn prune_ahead(&self, newest: &Generation) -> Result<()> {
        let keys = |files: &[RecordFile]| -> HashSet<String> {
            files.iter().flat_map(|file| &file.records).map(|record| record.key.clone()).collect()
        };
        let newest_keys = keys(&newest.files);
        for (location, list) in self.ahead_lists()? {
            if keys(&list.files).is_subset(&newest_keys) {
                location.remove()?;
            }
        }
        Ok(())
    }
}
