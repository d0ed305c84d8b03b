//! A generation: what a state knew after one run.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// Format of generations, and of the files of records that they name.
const FORMAT: u32 = 1;

/// What a state knew after one run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Generation {
    /// 1 for the first.
    pub number: u64,
    /// Identifier of the run that wrote it, random.
    pub id: String,
    /// What the records depend on beside their input, in hexadecimal.
    pub reading: String,
    /// Version of Ghostscript that PostScript was read with, if any was met.
    pub ghostscript: Option<String>,
    /// Digest of the job whose result was written, in hexadecimal.
    pub job: String,
    /// Folder of that result.
    pub result: String,
    /// Pages of that result; older builds did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// Folder of the comparison with the result before, where one was asked for; it may have failed.
    pub diff: Option<String>,
    /// The live inputs, as they were given.
    pub inputs: Vec<String>,
    /// Files of earlier crawls that live pages have their content from.
    pub originals: Vec<String>,
    /// Inputs of the crawl before this one, and files that its pages needed, where this crawl has revisits: parts of it may still
    /// arrive, and refer to any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crawl_before: Vec<String>,
    /// Folder in which the run was started: where relative names begin.
    pub working_folder: String,
    /// Files that hold records of the live inputs, with these.
    pub files: Vec<RecordFile>,
    /// Files of what workers have found in steps after reading, of this run alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<RecordFile>,
}

/// How many pages a result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Pages of the crawl.
    pub kept: u64,
    /// Those of them that are on the avoid list.
    pub skip: u64,
}

/// A file of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFile {
    /// XXH3 of 128 bits of the file, in hexadecimal: its name.
    pub name: String,
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Those of its records that belong to live inputs, ascending by offset.
    pub records: Vec<RecordAt>,
}

/// Place of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordAt {
    /// Key of the work item, in hexadecimal: its file, the version of this, and the piece of it. Of what a worker has found, the
    /// step, and which worker of how many it was.
    pub key: String,
    /// Where the record starts.
    pub offset: u64,
    /// Its length, in bytes.
    pub bytes: u64,
    /// XXH3 of 128 bits of the record, in hexadecimal.
    pub checksum: String,
}

/// A generation on its way to a file and back.
#[derive(Serialize, Deserialize)]
struct Framed {
    format: u32,
    checksum: String,
    generation: Generation,
}

impl Generation {
    /// The bytes of its file.
    pub fn encode(&self) -> Vec<u8> {
        let framed = Framed { format: FORMAT, checksum: self.checksum(), generation: self.clone() };
        serde_json::to_vec(&framed).expect("a generation is plain values")
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with them, as a part of a sentence.
    pub fn decode(bytes: &[u8]) -> Result<Generation, String> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let format = serde_json::from_slice(bytes).map_err(|cause| format!("damaged: {cause}"))?;
        if let Format { format } = format
            && format != FORMAT
        {
            return Err(format!("of format {format}, not {FORMAT}: another version of this program wrote it"));
        }
        let framed: Framed = serde_json::from_slice(bytes).map_err(|cause| format!("damaged: {cause}"))?;
        // Not the checksum alone: the name of an optional field may be damaged too.
        if framed.generation.encode() != bytes {
            return Err("damaged: its checksum differs".into());
        }
        // A name is joined to the folder's.
        let is_name = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(file) = framed.generation.all_files().find(|file| !is_name(&file.name)) {
            return Err(format!("damaged: it names a file {:?}, which no state has", file.name));
        }
        Ok(framed.generation)
    }

    fn checksum(&self) -> String {
        format!("{:032x}", xxh3_128(&serde_json::to_vec(self).expect("a generation is plain values")))
    }

    /// Records of live inputs.
    pub fn records(&self) -> usize {
        self.files.iter().map(|file| file.records.len()).sum()
    }

    /// Bytes of these, and of what workers have found.
    pub fn bytes(&self) -> u64 {
        self.all_files().flat_map(|file| &file.records).map(|record| record.bytes).sum()
    }

    /// All files that it names.
    pub fn all_files(&self) -> impl Iterator<Item = &RecordFile> {
        self.files.iter().chain(&self.found)
    }
}
