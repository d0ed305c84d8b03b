//! F, the file of existing fingerprints: sorted and divided into chunks, each of which is a file
//! that can be read alone.
//!
//! A chunk holds up to [`CHUNK_ROWS`] fingerprints (64 MB raw, as in the paper; fewer in a small
//! set), ascending, in blocks ([`super::coding`]). If doc ids were given, it also holds these, in
//! the same order. The chunks of a set are listed in a manifest, [`manifest::NAME`]. They divide
//! the fingerprint space into ascending ranges.
//!
//! ```text
//! head (see sections)   f, coder, recipe, count, first and last fingerprint
//! 0  unused             nothing
//! 1  directory          for each block: key (8 bytes), rows (4) and bytes (4) up to its end, checksum (4)
//! 2  checks of doc ids  for each block of 1024 doc ids: checksum (4)
//! 3  fingerprints       the blocks
//! 4  doc ids            8 bytes each, or nothing
//! ```
//!
//! Checksums of 4 bytes are the low halves of XXH3. Numbers are little-endian. Reading fingerprints
//! never touches the doc ids, and reading one block never touches the other blocks.
//!
//! # Source
//! \[MJS07\] section 3.3.

mod manifest;
mod read;
mod write;

pub use manifest::{ChunkEntry, FingerprintManifest, NAME};
pub use read::FingerprintFile;
pub use write::{ChunkEncoder, ChunkParts, ChunkWriter, EncodedChunk, chunk};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::sections::{FileKind, short_checksum};
use crate::hamming::coding::Coder;

/// Maximum number of fingerprints in a chunk: 64 MB of eight bytes each.
pub const CHUNK_ROWS: usize = 1 << 23;

/// Format of chunks that this build writes and reads.
pub const FORMAT: u32 = 1;

const KIND: FileKind = FileKind {
    magic: b"wt-fprnt",
    format: FORMAT,
    description: "a fingerprint file",
    remedy: "make the fingerprint file again",
};

/// Number of doc ids that share a checksum.
const DOC_IDS: usize = 1024;

/// Bytes of a block's entry in the directory.
const ENTRY: usize = 20;

const UNUSED: usize = 0;
const DIRECTORY: usize = 1;
const DOC_ID_CHECKS: usize = 2;
const FINGERPRINTS: usize = 3;
const DOC_IDS_THEMSELVES: usize = 4;
const SECTIONS: usize = 5;

/// Description of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkHeader {
    /// Width of the fingerprints, in bits.
    pub f: u32,
    /// Encoding of the fingerprints.
    #[serde(deserialize_with = "known_coder")]
    pub coder: Coder,
    /// Name of the recipe that made the fingerprints.
    pub recipe: String,
    /// Number of fingerprints.
    pub count: u64,
    /// Smallest fingerprint, or 0 if there is none.
    pub first: u64,
    /// Largest fingerprint, or 0 if there is none.
    pub last: u64,
    /// True if the chunk has doc ids.
    pub doc_ids: bool,
}

/// Reads the name of a coder. A coder that this build does not have is an error with a remedy.
fn known_coder<'de, D: Deserializer<'de>>(from: D) -> Result<Coder, D::Error> {
    let name = String::deserialize(from)?;
    Coder::ALL.into_iter().find(|coder| coder.name() == name).ok_or_else(|| {
        D::Error::custom(format!(
            "its fingerprints are encoded as `{name}`, which this build does not read; make the fingerprint file again"
        ))
    })
}

#[cfg(test)]
mod tests;
