//! Generations: snapshots of a state after each run.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// Version of the format of generations, and of the files of records that they name.
const FORMAT: u32 = 1;

/// Snapshot of a state after one run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Generation {
    /// Number of the generation, from 1.
    pub number: u64,
    /// Random identifier of the run that wrote the generation.
    pub id: String,
    /// Digest of everything besides the input that the records depend on, in hexadecimal.
    pub reading: String,
    /// Version of Ghostscript that PostScript was read with, if the input had any.
    pub ghostscript: Option<String>,
    /// Digest of the job whose result was written, in hexadecimal.
    pub job: String,
    /// Folder of that result.
    pub result: String,
    /// Numbers of pages of that result; `None` for older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageTotals>,
    /// Folder of the comparison with the previous result, if it was requested. The comparison may
    /// have failed.
    pub diff: Option<String>,
    /// Live inputs, as they were given.
    pub inputs: Vec<String>,
    /// Files of earlier crawls from which live pages have their content.
    pub originals: Vec<String>,
    /// Inputs of the previous crawl, and files that its pages needed, if this crawl has revisits.
    /// Further parts of this crawl may still arrive and refer to any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crawl_before: Vec<String>,
    /// Working directory of the run, to which relative names refer.
    pub working_folder: String,
    /// Files that contain records of the live inputs, with these records.
    pub files: Vec<RecordFile>,
    /// Files with the workers' results of steps after reading, of this run only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<RecordFile>,
}

/// Numbers of pages of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTotals {
    /// Number of pages of the crawl.
    pub kept: u64,
    /// Number of these pages that are on the avoid list.
    pub skip: u64,
}

/// File of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFile {
    /// File name: the 128-bit XXH3 hash of its content, in hexadecimal.
    pub name: String,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Records of the file that belong to live inputs, ascending by offset.
    pub records: Vec<RecordAt>,
}

/// Position of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordAt {
    /// Key of the record. For a work item, in hexadecimal: a hash of its file, the version of the
    /// file, and the part of the file. For a worker's result: the step, the index of the worker and
    /// the number of workers.
    pub key: String,
    /// Offset of the record in bytes.
    pub offset: u64,
    /// Length of the record in bytes.
    pub bytes: u64,
    /// 128-bit XXH3 hash of the record, in hexadecimal.
    pub checksum: String,
}

/// Encoded form of a generation.
#[derive(Serialize, Deserialize)]
struct Framed {
    format: u32,
    checksum: String,
    generation: Generation,
}

impl Generation {
    /// Returns the content of the generation's file.
    pub fn encode(&self) -> Vec<u8> {
        let framed = Framed { format: FORMAT, checksum: self.checksum(), generation: self.clone() };
        serde_json::to_vec(&framed).expect("a generation is plain values")
    }

    /// Decodes the content of a generation's file.
    ///
    /// # Errors
    /// Returns a description of the fault, as a part of a sentence.
    pub fn decode(bytes: &[u8]) -> Result<Generation, String> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let format = serde_json::from_slice(bytes).map_err(|cause| format!("damaged: {cause}"))?;
        if let Format { format } = format
            && format != FORMAT
        {
            return Err(format!("of format {format}, not {FORMAT}, so another version of this program wrote it"));
        }
        let framed: Framed = serde_json::from_slice(bytes).map_err(|cause| format!("damaged: {cause}"))?;
        // Comparing the checksum alone is not enough, because the name of an optional field may be
        // damaged, too.
        if framed.generation.encode() != bytes {
            return Err("damaged: its checksum differs".into());
        }
        // The names are joined to the folder's path, so they must be validated.
        let is_name = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(file) = framed.generation.all_files().find(|file| !is_name(&file.name)) {
            return Err(format!("damaged: it names a file {:?}, which is not a file of a state", file.name));
        }
        Ok(framed.generation)
    }

    fn checksum(&self) -> String {
        format!("{:032x}", xxh3_128(&serde_json::to_vec(self).expect("a generation is plain values")))
    }

    /// Returns the number of records of live inputs.
    pub fn records(&self) -> usize {
        self.files.iter().map(|file| file.records.len()).sum()
    }

    /// Returns the total size of these records and of the workers' results, in bytes.
    pub fn bytes(&self) -> u64 {
        self.all_files().flat_map(|file| &file.records).map(|record| record.bytes).sum()
    }

    /// Returns all files that the generation names.
    pub fn all_files(&self) -> impl Iterator<Item = &RecordFile> {
        self.files.iter().chain(&self.found)
    }
}
