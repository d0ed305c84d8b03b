//! `online-index.json`: the list of the files of an index.

use serde::{Deserialize, Serialize};

use super::super::design::TableDesign;
use super::super::sections::read_list;
use webtwin_base::error::{Error, Result};

/// Format of the list of files that this build writes and reads.
pub(super) const FORMAT: u32 = 1;

/// Name of the list of files in the index's folder. It is written last.
pub const NAME: &str = "online-index.json";

/// A file of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnlineIndexFile {
    /// Name of the file.
    pub name: String,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// XXH3 of the file's head (64 bits), in hexadecimal; the head has the checksums of the rest.
    pub head: String,
}

/// List of the files of an index: `online-index.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnlineManifest {
    /// Version of this format.
    pub format: u32,
    /// Name of the recipe that made the fingerprints.
    pub recipe: String,
    /// Width, largest distance, and the key of each table.
    pub design: TableDesign,
    /// Number of distinct fingerprints.
    pub fingerprints: u64,
    /// Number of documents; 0 if no doc ids are kept.
    pub documents: u64,
    /// Tables, one for each key, in the order of the keys.
    pub tables: Vec<OnlineIndexFile>,
    /// File of the doc ids, if they are kept.
    pub doc_ids: Option<OnlineIndexFile>,
}

impl OnlineManifest {
    /// Returns the bytes of the manifest file.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a manifest is plain values")
    }

    /// Reads a manifest with the given name for messages.
    ///
    /// # Errors
    /// Returns [`Error::Input`] if the bytes are not a manifest, have another format, or contradict
    /// themselves.
    pub fn from_json(name: &str, bytes: &[u8]) -> Result<OnlineManifest> {
        let manifest: OnlineManifest = read_list(name, bytes, FORMAT, "online index")?;
        let files = || manifest.tables.iter().chain(&manifest.doc_ids);
        // Names are joined to the path of the folder, so they must not lead out of it.
        let plain =
            |file: &OnlineIndexFile| !file.name.contains(['/', '\\']) && ![".", "..", ""].contains(&&file.name[..]);
        if manifest.tables.len() != manifest.design.keys.len() || !files().all(plain) {
            return Err(Error::input(name, "its list of files contradicts its design; build the index again"));
        }
        Ok(manifest)
    }
}
